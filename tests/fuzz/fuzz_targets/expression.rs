//! A symbolic expression: never a panic, and canonical text reads to itself.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| m2m_tensor::fuzz::expression(text));
