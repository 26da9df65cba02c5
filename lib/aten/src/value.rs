//! Typed values of the graph being made, and the operands of its operators.

use crate::error::Error;
use crate::promote::Participant;
use m2m_record::{Arg, DType, Dim, TensorType, Type};
use m2m_tensor::Expr;

/// A tensor value: its name, its dtype, its shape over symbols. Strides do not matter to values.
#[derive(Clone, Debug, PartialEq)]
pub struct V {
    /// Its name in the new graph.
    pub name: String,
    /// Its element type.
    pub dtype: DType,
    /// Its shape.
    pub shape: Vec<Expr>,
}

impl V {
    /// The sizes as a message shows them: `2,s0`.
    pub fn sizes(&self) -> String {
        self.shape.iter().map(Expr::to_string).collect::<Vec<_>>().join(",")
    }

    /// How many dimensions it has.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// It as an argument.
    pub fn arg(&self) -> Arg {
        Arg::value(self.name.clone())
    }

    /// The size of a dimension; `Int(1)` beyond the last, as broadcasting sees it from the right.
    pub fn dim(&self, dim: usize) -> Expr {
        self.shape.get(dim).cloned().unwrap_or(Expr::Int(1))
    }

    /// The dimension that is the `k`-th from the end, the last being the first; fails where there is none.
    pub fn from_end(&self, k: usize) -> Result<usize, Error> {
        let wrong = || Error::shape(&self.name, format!("rank {}; expected at least {k}", self.rank()));
        self.rank().checked_sub(k).ok_or_else(wrong)
    }

    /// The shape as numbers, if it is static.
    pub fn static_shape(&self) -> Option<Vec<i64>> {
        self.shape.iter().map(Expr::as_int).collect()
    }

    /// Its type.
    pub fn ty(&self) -> Type {
        tensor_type(self.dtype, &self.shape)
    }
}

/// The type of a contiguous tensor.
pub fn tensor_type(dtype: DType, shape: &[Expr]) -> Type {
    TensorType::new(dtype, shape.iter().map(Dim::from).collect()).into()
}

/// The shape of a tensor type as expressions.
pub fn shape_of(ty: &TensorType) -> Result<Vec<Expr>, Error> {
    ty.shape.iter().map(|d| Expr::try_from(d).map_err(|e| Error::unsupported(e.to_string()))).collect()
}

/// A size as an argument: a number, or an expression.
pub fn size_arg(size: &Expr) -> Arg {
    match size {
        Expr::Int(n) => Arg::Int(*n),
        other => Arg::Sym(other.to_string()),
    }
}

/// Sizes as an argument.
pub fn sizes_arg(sizes: &[Expr]) -> Arg {
    Arg::List(sizes.iter().map(size_arg).collect())
}

/// An operand of an elementwise operator: a value or a Python number.
#[derive(Clone, Debug, PartialEq)]
pub enum O {
    /// A value.
    T(V),
    /// A number: `Int`, `Float`, `Bool`, `Complex` or `Sym`.
    N(Arg),
}

impl O {
    /// What it takes part in a promotion as.
    pub fn participant(&self) -> Result<Participant, Error> {
        match self {
            O::T(v) => Ok(Participant::tensor(v.dtype, v.rank())),
            O::N(n) => Participant::number(n)
                .ok_or_else(|| Error::unsupported(format!("{} is no number", crate::bind::describe(n)))),
        }
    }

    /// Its shape; a number has none.
    pub fn shape(&self) -> &[Expr] {
        match self {
            O::T(v) => &v.shape,
            O::N(_) => &[],
        }
    }

    /// It as an argument.
    pub fn arg(&self) -> Arg {
        match self {
            O::T(v) => v.arg(),
            O::N(n) => n.clone(),
        }
    }
}

impl From<&V> for O {
    fn from(v: &V) -> O {
        O::T(v.clone())
    }
}

impl From<&O> for O {
    fn from(o: &O) -> O {
        o.clone()
    }
}

impl From<f64> for O {
    fn from(x: f64) -> O {
        O::N(Arg::from(x))
    }
}

impl From<i64> for O {
    fn from(n: i64) -> O {
        O::N(Arg::Int(n))
    }
}

impl From<&Arg> for O {
    fn from(n: &Arg) -> O {
        O::N(n.clone())
    }
}
