//! The runtime plan: what a sparse model computes, resolved and typed, in the order in which it runs.
//!
//! A plan is made from the records that `m2m-lattice-verify` writes ([`Freezer`]), and making it checks everything that the
//! contract asks of a frozen plan: known operations with the right number of operands and results, all of their
//! attributes and no other, definition before use, distinct labels and names. Values are numbered: arguments first, then
//! every result in order, so a value's number is the number in its label.

mod attrs;
mod bind;
mod freeze;
mod ty;

pub use bind::{BindError, Bound, Component, Input};
pub use freeze::{Error, Freezer, read};
pub use ty::{ValueType, element, element_name};

use crate::schema::{
    Activation, BinaryOp, Elementwise, Family, GeluApprox, InputRole, Join, Op, OutputRole, PointInterpolation,
    PoolMode, VoxelReduction,
};
use m2m_record::{DType, Data, File};

/// A value of the plan: an index into [`Plan::values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub usize);

/// A frozen plan.
#[derive(Clone, Debug)]
pub struct Plan {
    /// In call order; argument `i` is value `i`.
    pub arguments: Vec<Argument>,
    /// The type of every value.
    pub values: Vec<ValueType>,
    /// In execution order.
    pub ops: Vec<Operation>,
    /// In the order of the results.
    pub outputs: Vec<Output>,
    /// The files that weights lie in.
    pub files: Vec<File>,
}

/// An argument of `@forward`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The name by which a caller binds it.
    pub abi_name: String,
    /// What it is to the caller.
    pub role: InputRole,
}

/// A result of `@forward`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// What is returned.
    pub value: ValueId,
    /// The name by which a caller finds it.
    pub abi_name: String,
    /// What it is to the caller.
    pub role: OutputRole,
}

/// One operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Which one.
    pub op: Op,
    /// What it takes and how it computes.
    pub kind: Kind,
    /// What it gives: one value, of `sparse.decompose` three (coordinates, features, active).
    pub results: Vec<ValueId>,
    /// `line:column` of the graph's text.
    pub loc: Option<String>,
}

impl Operation {
    /// The first result; every operation has one.
    pub fn result(&self) -> ValueId {
        self.results.first().copied().unwrap_or(ValueId(usize::MAX))
    }
}

/// Which rows a relation gives, and between which rows its edges run. Offsets of the first three are centred where the
/// kernel is odd; those of the last three count from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// `conv3d`: its own, down-sampled support.
    Forward,
    /// `subm_conv3d`: the support of its input.
    Submanifold,
    /// `target_conv3d`: the support of the target.
    Target,
    /// `conv_transpose3d`: spreads each row over the kernel, duplicates dropped.
    Transposed,
    /// `target_conv_transpose3d`: spreads onto the support of the target.
    TargetTransposed,
    /// `generative_conv_transpose3d`: every row times every kernel position, duplicates kept.
    Generative,
}

/// Kernel, stride, padding and dilation along x, y, z, in units of the input's (logical) coordinates. What an operation
/// does not have is 1, or 0 for padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// At least 1; the product of all three fits 31 bits.
    pub kernel_size: [i64; 3],
    /// At least 1.
    pub stride: [i64; 3],
    /// At least 0.
    pub padding: [i64; 3],
    /// At least 1.
    pub dilation: [i64; 3],
}

impl Window {
    /// Kernel positions: `kx * ky * kz`.
    pub fn volume(&self) -> u64 {
        self.kernel_size.iter().map(|k| k.unsigned_abs()).product()
    }

    /// Kernel 1, stride 1, padding 0, dilation 1: a matrix product on the same rows.
    pub fn is_pointwise(&self) -> bool {
        *self == Window { kernel_size: [1; 3], stride: [1; 3], padding: [0; 3], dilation: [1; 3] }
    }
}

/// The ten convolutions.
#[derive(Clone, Debug, PartialEq)]
pub struct Convolution {
    /// Rows and edges.
    pub relation: Relation,
    /// Features in.
    pub input: ValueId,
    /// Of the two target relations.
    pub target: Option<ValueId>,
    /// Of family `conv3d`.
    pub weight: ValueId,
    /// Of family `bias`.
    pub bias: Option<ValueId>,
    /// Where the kernel reaches.
    pub window: Window,
    /// Of the normalized ones: the result is divided by `sqrt(energy + eps)`.
    pub eps: Option<f32>,
}

/// What an operation takes and how it computes. Sizes are along x, y, z.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "fields carry the names that the contract gives operands and attributes")]
pub enum Kind {
    Weight(Box<Weight>),
    Make {
        coords: ValueId,
        features: ValueId,
        active: ValueId,
        stride: [i64; 3],
    },
    Decompose {
        input: ValueId,
    },
    WithFeatures {
        input: ValueId,
        features: ValueId,
    },
    Reindex {
        input: ValueId,
        target: ValueId,
        fill: f32,
    },
    Convolution(Convolution),
    Pool {
        input: ValueId,
        mode: PoolMode,
        window: Window,
    },
    PoolTranspose {
        input: ValueId,
        target: Option<ValueId>,
        window: Window,
    },
    Upsample {
        input: ValueId,
        target: Option<ValueId>,
        stride: [i64; 3],
    },
    /// `batch_size` is `None` where the IR says -1: the greatest batch among active rows, and one.
    GlobalPool {
        input: ValueId,
        mode: PoolMode,
        batch_size: Option<u64>,
    },
    Voxelize {
        points: ValueId,
        features: ValueId,
        batch_indices: ValueId,
        active_rows: ValueId,
        voxel_size: [f64; 3],
        origin: [f64; 3],
        reduction: VoxelReduction,
        stride: [i64; 3],
    },
    Devoxelize {
        points: ValueId,
        voxels: ValueId,
        batch_indices: ValueId,
        point_active_rows: ValueId,
        voxel_size: [f64; 3],
        origin: [f64; 3],
        interpolation: PointInterpolation,
    },
    Linear {
        input: ValueId,
        weight: ValueId,
        bias: Option<ValueId>,
    },
    EmbeddingLookup {
        input: ValueId,
        weight: ValueId,
    },
    Elementwise {
        input: ValueId,
        function: Elementwise,
    },
    /// Over the last axis of two.
    Softmax {
        input: ValueId,
    },
    Activation {
        input: ValueId,
        function: Activation,
        approximate: GeluApprox,
        alpha: f32,
        beta: f32,
        threshold: f32,
    },
    BatchNorm {
        input: ValueId,
        scale: ValueId,
        bias: ValueId,
        mean: ValueId,
        var: ValueId,
        eps: f32,
    },
    LayerNorm {
        input: ValueId,
        scale: ValueId,
        bias: ValueId,
        eps: f32,
    },
    RmsNorm {
        input: ValueId,
        scale: ValueId,
        eps: f32,
    },
    Binary {
        lhs: ValueId,
        rhs: ValueId,
        op: BinaryOp,
        join: Join,
        lhs_fill: f32,
        rhs_fill: f32,
    },
    Cat {
        lhs: ValueId,
        rhs: ValueId,
        join: Join,
    },
}

/// A bound weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Weight {
    /// The label `@symbol`.
    pub symbol: String,
    /// The key in the weights file; of a packed one, what its three keys begin with.
    pub storage_key: String,
    /// What it is for.
    pub family: Family,
    /// Element that it stands for.
    pub dtype: DType,
    /// Its tensors.
    pub stored: Stored,
}

/// The stored tensors of a weight.
#[derive(Clone, Debug, PartialEq)]
pub enum Stored {
    /// Shapes: conv3d `[out, kx, ky, kz, in]`, or `[out, in]` for one kernel position, or `[k, in, out]`; linear
    /// `[out, in]`; embedding `[entries, channels]`; channel and bias `[channels]`.
    Dense(Part),
    /// Groups of unsigned codes that share a scale and a bias.
    Packed(Box<Packed>),
}

/// A packed weight: codes of `bits` bits, least significant first in little-endian words, mean `scale * code + bias`.
/// Codes run along the input channels, those past the last channel being padding.
#[derive(Clone, Debug, PartialEq)]
pub struct Packed {
    /// 4 or 8.
    pub bits: u32,
    /// Codes that share a scale and a bias: 32, 64 or 128.
    pub group_size: u32,
    /// U32 words `[1, out, words]`, or `[k, words, out]` for more than one kernel position.
    pub weight: Part,
    /// F16 or F32, `[1, out, groups]` or `[k, groups, out]`.
    pub scales: Part,
    /// As the scales.
    pub biases: Part,
}

/// A tensor of the weights file.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Its key.
    pub name: String,
    /// Its element.
    pub dtype: DType,
    /// Its shape.
    pub shape: Vec<i64>,
    /// Where its bytes are.
    pub data: Data,
}
