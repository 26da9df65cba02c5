//! Tensor metadata, symbolic numbers, and the config files that place weights and constants.

use super::{Pairs, Real, Text};

object! {
    /// An expression with the value that it had in the example inputs.
    SymExpr {
        /// Infix up to torch 2.5, sympy constructors later.
        need expr_str: Text<'a>,
        /// The example's value.
        may hint: Option<SymHint>,
    }
}

union! {
    /// The value of an expression in the example inputs.
    SymHint { as_int => Int(i64), as_float => Float(Real), as_bool => Bool(bool) }
}

union! {
    /// An integer or an expression.
    SymInt<'a> { as_int => Int(i64), as_expr => Expr(SymExpr<'a>) }
}

impl Default for SymInt<'_> {
    fn default() -> Self {
        SymInt::Int(0)
    }
}

union! {
    /// A float or an expression.
    SymFloat<'a> { as_float => Float(Real), as_expr => Expr(SymExpr<'a>) }
}

union! {
    /// A bool or an expression.
    SymBool<'a> { as_bool => Bool(bool), as_expr => Expr(SymExpr<'a>) }
}

object! {
    /// `cpu`, `cuda:0`.
    Device {
        /// `cpu`, `cuda`, `meta`.
        need kind as "type": Text<'a>,
        /// Which of them.
        may index: Option<i64>,
    }
}

object! {
    /// Shape, element type and placement of a tensor value.
    TensorMeta {
        /// ScalarType of the schema.
        need dtype: i64,
        /// One a dimension.
        need sizes: Vec<SymInt<'a>>,
        /// Whether autograd follows it.
        may requires_grad: bool,
        /// Where it lives.
        may device: Option<Device<'a>>,
        /// In elements, one a dimension.
        may strides: Vec<SymInt<'a>>,
        /// In elements, from the start of its storage.
        may storage_offset: SymInt<'a>,
        /// Layout of the schema.
        may layout: Option<i64>,
    }
}

object! {
    /// `MODEL_weights_config.json` and `MODEL_constants_config.json`.
    PayloadConfig {
        /// By qualified name.
        need config: Pairs<'a, Payload<'a>>,
    }
}

object! {
    /// Where a weight or a constant lies.
    Payload {
        /// An entry of `data/weights/` or `data/constants/`.
        need path_name: Text<'a>,
        /// Whether it is an `nn.Parameter`.
        may is_param: bool,
        /// Whether the entry is a file of torch.save, or a pickle.
        may use_pickle: bool,
        /// Null for objects.
        may tensor_meta: Option<TensorMeta<'a>>,
    }
}
