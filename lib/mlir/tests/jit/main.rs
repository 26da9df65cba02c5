//! Modules compiled and run: results by hand, shapes known late, aliases, small floats, failing assertions.
#![allow(clippy::unwrap_used)]

use m2m_mlir::Error;
use m2m_mlir::jit::{Argument, Options, Outcome, Output, Program};

fn run(source: &str, arguments: &[Argument<'_>]) -> Result<Outcome, Error> {
    Program::compile(source.as_bytes(), "forward", Options::default())?.run(arguments)
}

/// Little-endian bytes of numbers of one type.
macro_rules! bytes {
    ($kind:ty: $($value:expr),* $(,)?) => {{
        let mut data: Vec<u8> = Vec::new();
        $( data.extend(<$kind>::to_le_bytes($value)); )*
        data
    }};
}

macro_rules! numbers {
    ($kind:ty, $output:expr) => {
        $output
            .data
            .chunks_exact(size_of::<$kind>())
            .map(|chunk| <$kind>::from_le_bytes(chunk.try_into().unwrap()))
            .collect::<Vec<$kind>>()
    };
}

fn tensor<'a>(data: &'a [u8], dims: &'a [i64]) -> Argument<'a> {
    Argument::Tensor { data, dims }
}

fn only(outcome: Result<Outcome, Error>) -> Output {
    let mut outputs = outcome.unwrap().outputs;
    assert_eq!(outputs.len(), 1);
    outputs.remove(0)
}

mod elements;
mod modules;
mod tensors;
