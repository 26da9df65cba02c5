//! A pickle, under both lists of what it may build: it may be refused, but never with a panic or a hang.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| m2m_pt2::fuzz::pickle(bytes));
