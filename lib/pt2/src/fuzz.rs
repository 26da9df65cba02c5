//! Bodies of the fuzz targets: any bytes may be refused, none may panic, hang or take memory beyond their size.

use crate::capture::{Capture, Origin};
use crate::pickle::{self, Policy};

/// Reads bytes as an archive and captures each of its programs.
pub fn archive(bytes: &[u8]) {
    let Ok(archive) = crate::archive::Archive::open(bytes) else { return };
    for name in archive.programs() {
        let mut buffer = String::new();
        let Ok(capture) = Capture::open(bytes, Some(name), &mut buffer) else { continue };
        let origin = Origin { name: "fuzz.pt2", path: "fuzz.pt2" };
        drop(capture.plan_weights());
        drop(capture.write(&origin, "0", None, std::io::sink()));
    }
}

/// Reads bytes as a pickle under both policies.
pub fn pickle(bytes: &[u8]) {
    drop(pickle::load(bytes, Policy::Tensors));
    drop(pickle::load(bytes, Policy::Subclass));
}
