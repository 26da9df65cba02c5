//! The flags of m2m-lower.

use clap::ValueEnum;
use m2m_cli::{InputArgs, OutputArgs};
use std::path::PathBuf;

const ABOUT: &str = "Lower a program to MLIR";

const LONG_ABOUT: &str = "\
Lower a program to MLIR.

Takes the current graph of a record stream, makes it functional, decomposes what has no rule of its own, and writes one \
function in linalg on tensors. The stream gets the prepared graph, an elimination for everything that vanished, the module, \
and for each prepared node the operations that it became. MLIR's verifier has accepted the module before it is written.

With --to lattice, a sparse model that is expressed through custom operators of namespace lattice becomes a module of the \
sparse dialect, which has passed the rules of m2m-lattice-verify: lattice::NAME(operands, attributes) is operation NAME (. is \
_), by position or name, and gives one tensor [rows, channels] for a sparse value. Parameters are its weights, stored under \
their names; lattice::weight_packed(weight, scales, biases, packing, group_size) is a packed one, of three tensors K.weight, \
K.scales and K.biases. Row-wise operators of ATen apply to tensors and to features of sparse values. m2m-bundle makes a model \
folder of the stream. The module is always text in the dialect's own syntax.

Graphs that the program calls (cond, while_loop, map, scan) become structured control flow, and functions where several \
calls share one. Random operators draw from Philox 4x32-10: the seed is the function's last argument.

Weights that are packed two a byte are unpacked as the definitions say. The layout that PyTorch gives them for its CPU kernels \
depends on the machine and is not written anywhere in a program; --packed-for states it.

An operator without a rule is an error that names node and operator. One run reports all of them; then there is no module, \
the stream ends with status failed, and the exit status is 1.";

const EXAMPLES: &str = "\
Examples:
  m2m-capture model.pt2 | m2m-lower | m2m-bundle -o out/
  m2m-capture model.pt2 | m2m-lower --emit mlir > model.mlir
  m2m-capture model.pt2 | m2m-lower --emit mlir --form bytecode -o model.mlirbc
  m2m-capture model.pt2 | m2m-lower --emit mlir --bind-weights iree | iree-compile - --iree-hal-target-device=local -o m.vmfb
  m2m-capture model.pt2 | m2m-lower --to torch --emit mlir | iree-compile - --iree-input-type=torch --iree-hal-target-device=local -o m.vmfb
  m2m-capture sparse.pt2 | m2m-lower --to lattice | m2m-bundle -o model.lattice/ && m2m-lattice-verify model.lattice/
  m2m-capture model.pt2 | m2m-lower | jq -c 'select(.record==\"lowered\")'
  m2m-capture int4.pt2 | m2m-lower --packed-for avx2 | m2m-bundle -o out/
  m2m-lower --list-ops | grep conv";

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Emit {
    /// The record stream with the module in it
    Records,
    /// The module alone
    Mlir,
}

/// The target dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Target {
    /// linalg on tensors, with tensor, arith, math, scf, cf and func
    Linalg,
    /// The torch dialect of torch-mlir, as iree-compile --iree-input-type=torch takes it
    Torch,
    /// The sparse dialect lattice, IR version 2
    Lattice,
}

/// How the module is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Text that every LLVM release reads
    Generic,
    /// Text in the dialects' own syntax, for people and for LLVM 22
    Pretty,
    /// MLIR bytecode, version 4
    Bytecode,
}

/// How weights reach the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Binding {
    /// As its first arguments
    Args,
    /// As globals that iree-run-module binds with --parameters=model=FILE
    Iree,
}

/// The machine whose PyTorch packed matrices of 4-bit weights, as torch.backends.cpu.get_cpu_capability() says there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Machine {
    /// x86 with AVX-512
    Avx512,
    /// x86 with AVX2
    Avx2,
    /// Arm with SVE of 256 bits
    Sve256,
    /// Arm without
    Neon,
    /// x86 without either, or ATEN_CPU_CAPABILITY=default
    Default,
}

/// Where operations say they come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Place {
    /// Module path, file and line
    Source,
    /// Nowhere
    None,
}

/// One stream in, one stream or module out.
#[derive(Debug, clap::Parser)]
#[command(name = "m2m-lower", about = ABOUT, long_about = LONG_ABOUT, after_long_help = EXAMPLES)]
pub struct Args {
    /// The stream.
    #[command(flatten)]
    pub input: InputArgs,

    /// Target dialect
    #[arg(long, value_name = "DIALECT", value_enum, default_value = "linalg")]
    pub to: Target,

    /// What to write
    #[arg(long, value_name = "WHAT", value_enum, default_value = "records")]
    pub emit: Emit,

    /// How to write the module
    #[arg(long, value_name = "FORM", value_enum, default_value = "generic")]
    pub form: Form,

    /// How weights reach the function
    #[arg(long, value_name = "HOW", value_enum, default_value = "args")]
    pub bind_weights: Binding,

    /// Where operations say they come from
    #[arg(long, value_name = "PLACE", value_enum, default_value = "source")]
    pub locations: Place,

    /// Call functions that are only declared for what no rule covers; the module's record lists them
    #[arg(long)]
    pub opaque: bool,

    /// The machine that packed the program's matrices of 4-bit weights (aten._weight_int4pack_mm_for_cpu), whose layout it
    /// decides [default: avx512, with a warning]
    #[arg(long, value_name = "MACHINE", value_enum)]
    pub packed_for: Option<Machine>,

    /// Name the prepared node on every operation, as the attribute m2m.node
    #[arg(long)]
    pub trace: bool,

    /// File for a module that is bytecode or over 1 MiB [default: MODEL.m2m-lower.mlir or .mlirbc]
    #[arg(long, value_name = "FILE")]
    pub module: Option<PathBuf>,

    /// Replace that file if it holds something else
    #[arg(long)]
    pub force: bool,

    /// List the operators that are lowered directly or by decomposition, and stop
    #[arg(long)]
    pub list_ops: bool,

    /// Where to write.
    #[command(flatten)]
    pub output: OutputArgs,
}
