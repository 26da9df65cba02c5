//! The keywords of the dialect's attributes, each set an enum whose variants stand in the order of the published schema.

/// An enum of keywords with their spellings.
macro_rules! keywords {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal),* $(,)? })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "each variant is the keyword its name spells")]
        pub enum $name { $($variant),* }

        impl $name {
            /// Every keyword, in the order of the schema.
            pub const NAMES: &'static [&'static str] = &[$($text),*];

            /// Every variant, in the order of the schema.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// The keyword.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }

            /// The variant that a keyword spells.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|each| each.name() == text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    )* };
}

keywords! {
    /// The order of a coordinate row.
    Coord { BatchXyz = "batch_x_y_z" }
    /// The order of features.
    FeatureLayout { RowChannel = "row_channel" }
    /// The axes of a stored weight.
    WeightLayout {
        Conv3d = "conv3d_o_xyz_i",
        Linear = "linear_o_i",
        Embedding = "embedding_n_c",
        Channel = "channel_c",
        Bias = "bias_c",
    }
    /// How a weight's elements are stored.
    PackingKind { Dense = "dense", Int4 = "int4", Int8 = "int8" }
    /// The function of `activation`.
    Activation {
        Relu = "relu",
        Sigmoid = "sigmoid",
        Gelu = "gelu",
        Silu = "silu",
        LeakyRelu = "leaky_relu",
        Tanh = "tanh",
        Softplus = "softplus",
    }
    /// How `gelu` is computed: `none` and `precise` are its exact form.
    GeluApprox { None = "none", Precise = "precise", Tanh = "tanh", Fast = "fast" }
    /// Which rows two sparse values are joined on.
    Join { Inner = "inner", Left = "left", Right = "right", Outer = "outer" }
    /// The function of `sparse.binary`.
    BinaryOp { Add = "add", Sub = "sub", Mul = "mul", Maximum = "maximum", Minimum = "minimum" }
    /// The reduction of pooling.
    PoolMode { Sum = "sum", Max = "max", Avg = "avg" }
    /// The reduction of `voxelize`.
    VoxelReduction { Sum = "sum", Mean = "mean" }
    /// The interpolation of `devoxelize`.
    PointInterpolation { Nearest = "nearest", Linear = "linear" }
    /// What a weight is for; a parameter of its type.
    Family { Conv3d = "conv3d", Linear = "linear", Embedding = "embedding", Channel = "channel", Bias = "bias" }
    /// What an argument of `@forward` is to its caller.
    InputRole {
        Tensor = "tensor",
        SparseCoords = "sparse_coords",
        SparseFeatures = "sparse_features",
        SparseActive = "sparse_active",
    }
    /// What a result of `@forward` is to its caller.
    OutputRole { Tensor = "tensor", SparseTensor = "sparse_tensor" }
    /// The function of `elementwise`; `round` is to the nearest, halves to even.
    Elementwise { Exp = "exp", Round = "round" }
}

impl Family {
    /// The layout that goes with it.
    pub const fn layout(self) -> WeightLayout {
        match self {
            Family::Conv3d => WeightLayout::Conv3d,
            Family::Linear => WeightLayout::Linear,
            Family::Embedding => WeightLayout::Embedding,
            Family::Channel => WeightLayout::Channel,
            Family::Bias => WeightLayout::Bias,
        }
    }
}
