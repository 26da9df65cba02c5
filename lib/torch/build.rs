//! Compiles the C++ shim to a shared library whose bytes become part of the crate.
//!
//! libtorch is looked for in the folder that `LIBTORCH` names, in the workspace's `.env/libtorch` (`scripts/setup` puts it
//! there), and beside the active Python. Without it the crate is built without its engine and says so when the engine is
//! asked for, so that the workspace builds everywhere; a `LIBTORCH` that cannot be used is an error.

#[allow(dead_code, reason = "the library uses the rest")]
#[path = "src/find.rs"]
mod find;

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "src/cpp/shim.cpp";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={SOURCE}");
    println!("cargo:rerun-if-changed=src/find.rs");
    for variable in [find::VARIABLE, "VIRTUAL_ENV", "CXX"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let code = match libtorch() {
        Some(folder) => {
            let shim = out.join("libm2m_torch.so");
            compile(&folder, &shim);
            println!("cargo:rerun-if-changed={}", find::library(&folder).display());
            format!("Some((include_bytes!({shim:?}), {:?}))", folder.display().to_string())
        }
        None => {
            println!("cargo:warning=m2m-torch is built without its engine: no PyTorch {} was found", find::RELEASE);
            "None".to_owned()
        }
    };
    std::fs::write(out.join("shim.rs"), code).expect("OUT_DIR can be written");
}

/// The folder to build with.
fn libtorch() -> Option<PathBuf> {
    if let Some(folder) = find::named() {
        assert!(
            find::is_there(&folder) && folder.join("include").is_dir() && find::is_of_release(&folder),
            "LIBTORCH={} is not PyTorch {} with lib/libtorch_cpu.so and include/; \
             `pip install torch=={}.0` gets it, and LIBTORCH is then its folder site-packages/torch",
            folder.display(),
            find::RELEASE,
            find::RELEASE
        );
        return Some(folder);
    }
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let own = manifest.ancestors().nth(2).map(|root| root.join(".env").join("libtorch").join("torch"));
    let found = own.into_iter().chain(find::beside_python());
    found
        .into_iter()
        .find(|folder| find::is_there(folder) && folder.join("include").is_dir() && find::is_of_release(folder))
}

fn compile(libtorch: &Path, shim: &Path) {
    let include = libtorch.join("include");
    let lib = libtorch.join("lib");
    let compiler = env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let mut command = Command::new(&compiler);
    command.args(["-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-s", SOURCE, "-o"]).arg(shim);
    command.arg("-I").arg(&include).arg("-I").arg(include.join("torch/csrc/api/include"));
    command.arg("-L").arg(&lib).args(["-ltorch_cpu", "-lc10"]);
    let status = command.status().unwrap_or_else(|error| panic!("{} does not run: {error}", compiler.display()));
    assert!(status.success(), "{SOURCE} does not compile against {}", libtorch.display());
}
