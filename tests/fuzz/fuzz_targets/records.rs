//! A record stream: never a panic, and every record that parses renders to what parses to the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| m2m_record::fuzz::stream(bytes));
