//! A graph of the sparse dialect: never a panic, and what is accepted freezes and reads back as it prints.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| m2m_lattice::fuzz::graph(bytes));
