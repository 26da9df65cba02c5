//! A safetensors file: never a panic, and every tensor of an accepted header lies inside the file.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| m2m_tensor::fuzz::safetensors(bytes));
