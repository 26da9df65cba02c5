//! An ETDump: it may be refused, but never with a panic, a hang, or more memory than its size warrants.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| m2m_executorch::fuzz::etdump(bytes));
