//! An ExecuTorch program or data file: it may be refused, but never with a panic, a hang, or more memory than its size
//! warrants, and whatever is accepted can be shown and extracted.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| m2m_executorch::fuzz::pte(bytes));
