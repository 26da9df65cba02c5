//! Whole modules: made empty, parsed, verified, written, and walked in the order in which they print.
//!
//! Generic form and bytecode version 4 are what later LLVMs still read: the pretty syntax drifts between releases.

#![allow(unsafe_code)]

use melior::Context;
use melior::ir::operation::{OperationLike, OperationPrintingFlags, OperationRef, WalkOrder, WalkResult};
use melior::ir::{BytecodeWriterConfig, Location, Module};
use mlir_sys::{MlirStringRef, mlirModuleCreateParse, mlirOperationRemoveDiscardableAttributeByName};

use crate::context::Diagnostics;
use crate::error::Error;

/// The newest bytecode version in which operations of LLVM 22 are read by later releases (properties as attributes).
const BYTECODE_VERSION: i64 = 4;

/// How a module is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// `"linalg.fill"(%0, %1) …`: accepted by every release.
    #[default]
    Generic,
    /// The dialects' own syntax: for people, and for tools of the same release.
    Pretty,
    /// MLIR bytecode, version 4.
    Bytecode,
}

/// Whether source locations are written in the text forms. Bytecode always holds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Locations {
    /// No `loc(…)`.
    #[default]
    Omit,
    /// A `loc(…)` behind every operation.
    Write,
}

/// An empty module.
pub fn new_module<'c>(context: &'c Context) -> Module<'c> {
    Module::new(Location::unknown(context))
}

/// Writes a module; the text forms end with a newline.
pub fn print(module: &Module<'_>, form: Form, locations: Locations) -> Result<Vec<u8>, Error> {
    forget_memoized_maps(module);
    let operation = module.as_operation();
    let flags = || OperationPrintingFlags::new().enable_debug_info(locations == Locations::Write, false);
    let text = match form {
        Form::Bytecode => {
            let config = BytecodeWriterConfig::new();
            config.set_desired_emit_version(BYTECODE_VERSION);
            return operation.write_bytecode_with_config(&config).map_err(|error| Error::Write(error.to_string()));
        }
        Form::Generic => operation.to_string_with_flags(flags().print_generic_operation_form()),
        Form::Pretty => operation.to_string_with_flags(flags()),
    };
    let mut text = text.map_err(|error| Error::Write(error.to_string()))?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text.into_bytes())
}

/// Convolutions cache their maps in an attribute as soon as something asks for them. Without this the bytes of a module
/// would depend on whether it had been verified.
fn forget_memoized_maps(module: &Module<'_>) {
    let name = "linalg.memoized_indexing_maps";
    let name = MlirStringRef { data: name.as_ptr().cast(), length: name.len() };
    operations(module, |_, operation| {
        // SAFETY: the operation is alive; the attribute is a cache that MLIR fills again when it needs it.
        unsafe { mlirOperationRemoveDiscardableAttributeByName(operation.to_raw(), name) };
    });
}

/// Reads text or bytecode, and verifies it.
pub fn parse<'c>(context: &'c Context, bytes: &[u8]) -> Result<Module<'c>, Error> {
    let diagnostics = Diagnostics::attach(context);
    let source = MlirStringRef { data: bytes.as_ptr().cast(), length: bytes.len() };
    // SAFETY: the source outlives the call, which copies what it keeps.
    let module = unsafe { Module::from_option_raw(mlirModuleCreateParse(context.to_raw(), source)) };
    module.ok_or_else(|| Error::Parse(diagnostics.take()))
}

/// Runs MLIR's verifier over the module, with everything it says.
pub fn verify<'c>(context: &'c Context, module: &Module<'c>) -> Result<(), Error> {
    let diagnostics = Diagnostics::attach(context);
    if module.as_operation().verify() { Ok(()) } else { Err(Error::Verify(diagnostics.take())) }
}

/// Calls `visit` with every operation and its ordinal: 0 is the module, then the order in which the generic form prints.
pub fn operations(module: &Module<'_>, mut visit: impl FnMut(usize, OperationRef<'_, '_>)) {
    let mut ordinal = 0;
    module.as_operation().walk(WalkOrder::PreOrder, |operation| {
        visit(ordinal, operation);
        ordinal += 1;
        WalkResult::Advance
    });
}
