//! Execution: a module is compiled in this process and called with buffers of the caller's.
//!
//! `Program::compile` takes text or bytecode of a linalg-on-tensors module; `Program::run` calls its entry. Argument
//! buffers are read where they are, weights in mapped files included, and never written; results are owned copies. A
//! failing `cf.assert` ends the call with its message. Sums and the like are computed in blocks that stay in the vector
//! registers of this machine; there is one thread.

#![allow(unsafe_code)]

mod ffi;
mod kind;
mod passes;

use std::ffi::c_void;
use std::ops::RangeInclusive;

use melior::ir::Module;

pub use kind::{Argument, Kind, Output, Shape};

use crate::error::Error;
use crate::module::parse;

/// How to compile and run.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// LLVM's optimization level, 0 to 3.
    pub level: u8,
    /// The most bytes that a call may have allocated at a time, arguments not counted.
    pub memory_limit: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { level: 2, memory_limit: usize::MAX }
    }
}

/// A compiled module with its entry.
pub struct Program {
    // Holds the code that `function` points into.
    _engine: ffi::Engine,
    function: ffi::Function,
    arguments: Vec<Kind>,
    results: Vec<Kind>,
    options: Options,
}

/// What a call gave.
#[derive(Debug)]
pub struct Outcome {
    /// The entry's results, in order.
    pub outputs: Vec<Output>,
    /// The most bytes that compiled code had allocated at once.
    pub peak_bytes: usize,
}

impl Program {
    /// Compiles a module from text or bytecode.
    pub fn compile(bytes: &[u8], entry: &str, options: Options) -> Result<Self, Error> {
        Self::compile_exposing(bytes, entry, options, &[]).map(|(program, _)| program)
    }

    /// The same with results of operations behind those of the entry, for looking at what happens between: of each range
    /// of ordinals, counted as the generic form prints operations, the module being 0, the ranked tensors that operations
    /// which are inside no other give and that something outside of the range uses. The counts say how many of each range.
    pub fn compile_exposing(
        bytes: &[u8],
        entry: &str,
        options: Options,
        ranges: &[RangeInclusive<usize>],
    ) -> Result<(Self, Vec<usize>), Error> {
        let context = ffi::context();
        let mut module = parse(&context, bytes)?;
        let exposed = if ranges.is_empty() { Vec::new() } else { ffi::expose(&module, entry, ranges) };
        let (arguments, results) = kind::signature(&module, entry)?;
        passes::lower(&context, &mut module, entry)?;
        let engine = Self::generate(&module, options)?;
        let function = engine.packed(entry).ok_or_else(|| {
            Error::Execute("compiled code calls a function that does not exist; its name is on stderr".to_owned())
        })?;
        Ok((Self { _engine: engine, function, arguments, results, options }, exposed))
    }

    fn generate(module: &Module<'_>, options: Options) -> Result<ffi::Engine, Error> {
        ffi::Engine::new(module, options.level.min(3)).ok_or_else(|| {
            Error::Execute("LLVM cannot translate the lowered module; its reason is on stderr".to_owned())
        })
    }

    /// What the entry takes.
    pub fn arguments(&self) -> &[Kind] {
        &self.arguments
    }

    /// What the entry returns.
    pub fn results(&self) -> &[Kind] {
        &self.results
    }

    /// Calls the entry.
    pub fn run(&self, arguments: &[Argument<'_>]) -> Result<Outcome, Error> {
        if arguments.len() != self.arguments.len() {
            return Err(Error::Execute(format!(
                "the entry takes {} arguments; got {}",
                self.arguments.len(),
                arguments.len()
            )));
        }
        let mut cells = Vec::with_capacity(arguments.len());
        for (index, (argument, kind)) in arguments.iter().zip(&self.arguments).enumerate() {
            let cell = kind.cell(argument).map_err(|reason| Error::Execute(format!("argument {index}: {reason}")))?;
            cells.push(cell);
        }
        let session = ffi::Session::new(self.options.memory_limit);
        let mut returned = vec![0_i64; self.results.iter().map(Kind::descriptor_words).sum()];
        // Packed calls take pointers to arguments, and the C interface takes memrefs as pointers to descriptors, the
        // results' first.
        let mut targets: Vec<*mut c_void> = Vec::with_capacity(cells.len() + 1);
        if !self.results.is_empty() {
            targets.push(returned.as_mut_ptr().cast());
        }
        let first = targets.len();
        targets.extend(cells.iter_mut().map(kind::Cell::address));
        let mut packed: Vec<*mut c_void> = Vec::with_capacity(targets.len());
        for index in 0..targets.len() {
            let by_value = index >= first && cells[index - first].is_scalar();
            packed.push(if by_value { targets[index] } else { (&raw mut targets[index]).cast() });
        }
        // SAFETY: cells were made to the kinds of the entry's own signature and are alive, as is `returned`, which has
        // the words of all result descriptors.
        unsafe { session.invoke(self.function, &mut packed) }?;
        let mut rest = returned.as_slice();
        let mut outputs = Vec::with_capacity(self.results.len());
        for kind in &self.results {
            let (descriptor, tail) = rest.split_at(kind.descriptor_words());
            // SAFETY: the descriptor was written by compiled code, and its buffer lives as long as the session or the
            // arguments do.
            outputs.push(unsafe { kind.read(descriptor) }?);
            rest = tail;
        }
        Ok(Outcome { outputs, peak_bytes: session.peak() })
    }
}
