//! The C++ part of this crate and the pieces of the C API that melior does not wrap, with safe faces.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};
use std::ops::RangeInclusive;
use std::sync::Once;

use melior::Context;
use melior::dialect::DialectRegistry;
use melior::ir::Module;
use mlir_sys::*;

use crate::error::Error;

/// A packed function: an array of pointers to arguments.
type Packed = unsafe extern "C" fn(*mut *mut c_void);

unsafe extern "C" {
    fn m2m_jit_register(registry: MlirDialectRegistry);
    fn m2m_jit_expose(
        module: MlirModule,
        entry: MlirStringRef,
        firsts: *const usize,
        lasts: *const usize,
        count: usize,
        exposed: *mut usize,
    );
    fn m2m_jit_prepare_entry(module: MlirModule, entry: MlirStringRef) -> bool;
    fn m2m_jit_prepare_bodies(module: MlirModule);
    fn m2m_jit_emit_kernels(module: MlirModule);
    fn m2m_jit_outline(module: MlirModule);
    fn m2m_jit_mark_nests(module: MlirModule);
    fn m2m_jit_symbol(index: usize, address: *mut *mut c_void) -> *const c_char;
    fn m2m_jit_open(limit: usize) -> *mut c_void;
    fn m2m_jit_invoke(session: *mut c_void, function: Packed, arguments: *mut *mut c_void) -> bool;
    fn m2m_jit_message(session: *mut c_void) -> *const c_char;
    fn m2m_jit_peak(session: *mut c_void) -> usize;
    fn m2m_jit_release(session: *mut c_void);
}

/// A context with every dialect that compilation passes through, and the passes registered.
pub(super) fn context() -> Context {
    static PASSES: Once = Once::new();
    PASSES.call_once(register_passes);
    let registry = DialectRegistry::new();
    // SAFETY: the registry is alive for the call.
    unsafe { m2m_jit_register(registry.to_raw()) };
    let context = Context::new_with_registry(&registry, false);
    context.load_all_available_dialects();
    context
}

fn register_passes() {
    // SAFETY: registrations write to a global table; `Once` keeps them from running twice or at the same time.
    unsafe {
        mlirRegisterTransformsCanonicalizer();
        mlirRegisterTransformsCSE();
        mlirRegisterLinalgConvertElementwiseToLinalgPass();
        mlirRegisterLinalgConvertLinalgToLoopsPass();
        mlirRegisterArithArithEmulateUnsupportedFloats();
        mlirRegisterArithArithExpandOpsPass();
        mlirRegisterMathMathExtendToSupportedTypes();
        mlirRegisterBufferizationOneShotBufferizePass();
        mlirRegisterBufferizationOwnershipBasedBufferDeallocationPass();
        mlirRegisterBufferizationBufferDeallocationSimplificationPass();
        mlirRegisterBufferizationLowerDeallocationsPass();
        mlirRegisterBufferizationOptimizeAllocationLivenessPass();
        mlirRegisterConversionConvertBufferizationToMemRefPass();
        mlirRegisterConversionSCFToControlFlowPass();
        mlirRegisterMemRefExpandStridedMetadataPass();
        mlirRegisterMemRefExpandOpsPass();
        mlirRegisterConversionLowerAffinePass();
        mlirRegisterConversionConvertMathToFuncs();
        mlirRegisterConversionConvertMathToLLVMPass();
        mlirRegisterConversionConvertMathToLibmPass();
        mlirRegisterConversionConvertComplexToStandardPass();
        mlirRegisterConversionConvertComplexToLLVMPass();
        mlirRegisterConversionConvertVectorToLLVMPass();
        mlirRegisterConversionUBToLLVMConversionPass();
        mlirRegisterConversionArithToLLVMConversionPass();
        mlirRegisterConversionConvertIndexToLLVMPass();
        mlirRegisterConversionFinalizeMemRefToLLVMConversionPass();
        mlirRegisterConversionConvertFuncToLLVMPass();
        mlirRegisterConversionConvertControlFlowToLLVMPass();
        mlirRegisterConversionReconcileUnrealizedCastsPass();
    }
}

fn string_ref(text: &str) -> MlirStringRef {
    MlirStringRef { data: text.as_ptr().cast(), length: text.len() }
}

/// Makes results of operations results of the entry too; says of how many in each range.
pub(super) fn expose(module: &Module<'_>, entry: &str, ranges: &[RangeInclusive<usize>]) -> Vec<usize> {
    let (firsts, lasts): (Vec<usize>, Vec<usize>) = ranges.iter().map(|range| (range.start(), range.end())).unzip();
    let mut exposed = vec![0; ranges.len()];
    // SAFETY: the module is alive, nothing else refers to its operations, and the arrays have so many elements.
    unsafe {
        let (name, counts) = (string_ref(entry), exposed.as_mut_ptr());
        m2m_jit_expose(module.to_raw(), name, firsts.as_ptr(), lasts.as_ptr(), ranges.len(), counts);
    }
    exposed
}

/// Gives the entry its calling convention; false when the module has no such function with a body.
pub(super) fn prepare_entry(module: &Module<'_>, entry: &str) -> bool {
    // SAFETY: the module is alive, and nothing else refers to its operations.
    unsafe { m2m_jit_prepare_entry(module.to_raw(), string_ref(entry)) }
}

/// Rewrites what the stock conversions cannot do.
pub(super) fn prepare_bodies(module: &Module<'_>) {
    // SAFETY: as above.
    unsafe { m2m_jit_prepare_bodies(module.to_raw()) };
}

/// Writes reductions over buffers as loops around kernels, where that profits.
pub(super) fn emit_kernels(module: &Module<'_>) {
    // SAFETY: as above.
    unsafe { m2m_jit_emit_kernels(module.to_raw()) };
}

/// Moves loop nests into functions of their own.
pub(super) fn outline(module: &Module<'_>) {
    // SAFETY: as above.
    unsafe { m2m_jit_outline(module.to_raw()) };
}

/// Marks the functions of loop nests, once they are in the LLVM dialect.
pub(super) fn mark_nests(module: &Module<'_>) {
    // SAFETY: as above.
    unsafe { m2m_jit_mark_nests(module.to_raw()) };
}

/// Compiled code.
pub(super) struct Engine {
    raw: MlirExecutionEngine,
}

impl Engine {
    /// Compiles a module in the LLVM dialect. MLIR reports causes on stderr only.
    pub(super) fn new(module: &Module<'_>, level: u8) -> Option<Self> {
        // SAFETY: the module is alive; the engine keeps no part of it.
        let raw =
            unsafe { mlirExecutionEngineCreate(module.to_raw(), level.into(), 0, std::ptr::null(), false, false) };
        if raw.ptr.is_null() {
            return None;
        }
        let engine = Self { raw };
        let mut address = std::ptr::null_mut();
        for index in 0.. {
            // SAFETY: `address` is written when the name is not null; names are static.
            let name = unsafe { m2m_jit_symbol(index, &raw mut address) };
            if name.is_null() {
                break;
            }
            // SAFETY: the name is a static C string.
            let name = unsafe { CStr::from_ptr(name) }.to_str().expect("symbol names are ASCII");
            // SAFETY: the address is a function of this program.
            unsafe { mlirExecutionEngineRegisterSymbol(engine.raw, string_ref(name), address) };
        }
        Some(engine)
    }

    /// The packed form of a function, compiled at this moment; none when a symbol is missing.
    pub(super) fn packed(&self, name: &str) -> Option<Function> {
        let name = format!("_mlir__mlir_ciface_{name}");
        // SAFETY: the engine is alive.
        let address = unsafe { mlirExecutionEngineLookup(self.raw, string_ref(&name)) };
        // SAFETY: MLIR gives every function it compiles a packed form of this type under this name.
        (!address.is_null()).then(|| Function(unsafe { std::mem::transmute::<*mut c_void, Packed>(address) }))
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // SAFETY: made by `new`, destroyed once.
        unsafe { mlirExecutionEngineDestroy(self.raw) };
    }
}

/// A compiled function; valid as long as its engine.
#[derive(Clone, Copy)]
pub(super) struct Function(Packed);

/// One call, with the memory that compiled code takes in it. Results live until it is dropped.
pub(super) struct Session(*mut c_void);

impl Session {
    /// A session in which at most `limit` bytes are allocated at a time.
    pub(super) fn new(limit: usize) -> Self {
        // SAFETY: no precondition.
        Self(unsafe { m2m_jit_open(limit) })
    }

    /// Calls a function.
    ///
    /// # Safety
    ///
    /// The arguments must be what the function takes, pointers to live memory included.
    pub(super) unsafe fn invoke(&self, function: Function, arguments: &mut [*mut c_void]) -> Result<(), Error> {
        // SAFETY: as the caller promises.
        if unsafe { m2m_jit_invoke(self.0, function.0, arguments.as_mut_ptr()) } {
            return Ok(());
        }
        // SAFETY: the message is a C string in the session.
        let message = unsafe { CStr::from_ptr(m2m_jit_message(self.0)) };
        Err(Error::Execute(message.to_string_lossy().into_owned()))
    }

    /// The most bytes that were allocated at once.
    pub(super) fn peak(&self) -> usize {
        // SAFETY: the session is alive.
        unsafe { m2m_jit_peak(self.0) }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: made by `new`, released once.
        unsafe { m2m_jit_release(self.0) };
    }
}
