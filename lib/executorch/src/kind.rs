//! What a file is, by its first bytes: for messages about files of the wrong kind.

/// Identifiers of flatbuffers, at byte 4.
const FLATBUFFERS: [(&[u8; 4], &str); 6] = [
    (b"ET12", "an ExecuTorch program (.pte)"),
    (b"FT01", "an ExecuTorch data file (.ptd)"),
    (b"BP08", "an ExecuTorch bundled program (.bpte)"),
    (b"TOSA", "a TOSA flatbuffer (.tosa)"),
    (b"TFL3", "a TensorFlow Lite model (.tflite)"),
    (b"XN01", "an XNNPACK flatbuffer"),
];

/// Identifiers at byte 0.
const OTHERS: [(&[u8], &str); 9] = [
    (b"PK\x03\x04", "a zip archive (an ETRecord, a .pt2 or .pt file, or another)"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x7fELF", "an ELF binary"),
    (b"VGF1", "a VGF file (.vgf)"),
    (b"ML\xefR", "MLIR bytecode"),
    (b"\x80\x02", "a Python pickle"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\x93NUMPY", "a NumPy array (.npy)"),
    (b"{\"record\":", "a record stream"),
];

/// A noun phrase for what `bytes` are.
pub fn describe(bytes: &[u8]) -> &'static str {
    if bytes.is_empty() {
        return "an empty file";
    }
    if bytes.get(8..12) == Some(b"ED00") {
        return "an ETDump";
    }
    let flatbuffer = FLATBUFFERS.iter().find(|(identifier, _)| bytes.get(4..8) == Some(*identifier));
    let other = || OTHERS.iter().find(|(identifier, _)| bytes.starts_with(identifier)).map(|row| row.1);
    if let Some(found) = flatbuffer.map(|row| row.1).or_else(other) {
        return found;
    }
    if is_safetensors(bytes) {
        return "a safetensors file";
    }
    match std::str::from_utf8(bytes.get(..bytes.len().min(64)).unwrap_or_default()) {
        Ok(text) if !text.contains('\0') => "a text",
        _ => "bytes of an unknown kind",
    }
}

/// Eight bytes of length, and a JSON object behind them.
fn is_safetensors(bytes: &[u8]) -> bool {
    let len = bytes.first_chunk::<8>().map(|len| u64::from_le_bytes(*len));
    len.is_some_and(|len| len < bytes.len() as u64) && bytes.get(8) == Some(&b'{')
}
