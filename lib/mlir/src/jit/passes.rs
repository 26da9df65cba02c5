//! From linalg on tensors to the LLVM dialect, in stages that can be named when one fails.
//!
//! Functions keep memref results, so that shapes may depend on data; every buffer is freed after its last use.

use melior::ir::Module;
use melior::pass::PassManager;
use melior::utility::parse_pass_pipeline;

use super::ffi;
use crate::context::Diagnostics;
use crate::error::Error;

/// Float types that LLVM has no arithmetic for: their operations are done in f32 and rounded after each.
const NARROW: &str = "bf16,f8E4M3,f8E4M3FN,f8E4M3FNUZ,f8E3M4,f8E5M2,f8E5M2FNUZ";

/// After this, bodies are scalar and compute in types that LLVM and libm know.
fn scalars() -> String {
    format!(
        "builtin.module(func.func(convert-elementwise-to-linalg,\
         arith-emulate-unsupported-floats{{source-types={NARROW} target-type=f32}},\
         math-extend-to-supported-types{{target-type=f32}}),canonicalize)"
    )
}

/// Tensors to buffers. Without an alignment the allocations are plain calls of malloc, which LLVM knows to alias nothing;
/// ours aligns by itself.
const BUFFERS: &str = "builtin.module(\
    one-shot-bufferize{bufferize-function-boundaries=true function-boundary-type-conversion=identity-layout-map \
    buffer-alignment=0 allow-return-allocs-from-loops=true},canonicalize,\
    func.func(ownership-based-buffer-deallocation),canonicalize,buffer-deallocation-simplification,\
    bufferization-lower-deallocations,convert-bufferization-to-memref,cse,canonicalize,\
    func.func(optimize-allocation-liveness))";

/// Loops of scalars.
const LOOPS: &str = "builtin.module(func.func(convert-linalg-to-loops,memref-expand),canonicalize,cse)";

/// Loops to the LLVM dialect. log1p is left to libm: its approximation as log(1 + x) is wrong near zero.
const MACHINE: &str = "builtin.module(func.func(arith-expand{include-bf16=true}),\
    expand-strided-metadata,lower-affine,convert-scf-to-cf,convert-complex-to-standard,\
    convert-math-to-funcs{convert-ctlz=false},convert-math-to-llvm{approximate-log1p=false},convert-math-to-libm,\
    convert-vector-to-llvm{reassociate-fp-reductions},convert-complex-to-llvm,convert-ub-to-llvm,convert-arith-to-llvm,convert-index-to-llvm,\
    finalize-memref-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)";

/// Lowers a verified module in place.
pub(super) fn lower<'c>(context: &'c melior::Context, module: &mut Module<'c>, entry: &str) -> Result<(), Error> {
    if !ffi::prepare_entry(module, entry) {
        return Err(Error::Execute(format!("the module defines no function @{entry}")));
    }
    run(context, module, "preparation of bodies", &scalars())?;
    ffi::prepare_bodies(module);
    run(context, module, "bufferization", BUFFERS)?;
    ffi::emit_kernels(module);
    run(context, module, "conversion to loops", LOOPS)?;
    ffi::outline(module);
    run(context, module, "conversion to LLVM", MACHINE)?;
    ffi::mark_nests(module);
    Ok(())
}

fn run<'c>(
    context: &'c melior::Context,
    module: &mut Module<'c>,
    stage: &'static str,
    pipeline: &str,
) -> Result<(), Error> {
    let diagnostics = Diagnostics::attach(context);
    let manager = PassManager::new(context);
    let failed = |text: Option<String>| {
        let mut messages = diagnostics.take();
        messages.extend(text.map(|text| crate::Message { location: "unknown".to_owned(), text }));
        Error::Pass { stage, messages }
    };
    parse_pass_pipeline(manager.as_operation_pass_manager(), pipeline)
        .map_err(|error| failed(Some(error.to_string())))?;
    manager.run(module).map_err(|_| failed(None))
}
