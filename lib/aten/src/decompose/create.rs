//! Tensors from nothing: constants and ranges.

use super::{exact, pieces};
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::value::{O, V, size_arg};
use m2m_record::{Arg, DType};
use m2m_tensor::Expr;

/// `y[i] = value`, of the shape and dtype that the node says.
fn filled(e: &mut Expander<'_, '_>, b: &Bound<'_>, value: Arg) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    one(e.full(&shape, dtype, value)?)
}

/// `zeros`, and `empty`, whose elements are unspecified.
pub(super) fn zeros(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    filled(e, b, Arg::Int(0))
}

/// `ones`
pub(super) fn ones(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    filled(e, b, Arg::Int(1))
}

/// `full_like`, `new_full`, `fill`: the number is an argument.
pub(super) fn full(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let name = if b.has("fill_value") { "fill_value" } else { "value" };
    let value = b.scalar(name)?.clone();
    filled(e, b, value)
}

/// `scalar_tensor(s)`
pub(super) fn scalar(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let value = b.scalar("s")?.clone();
    filled(e, b, value)
}

/// `fill.Tensor(self, value)`: a tensor without dimensions, cast and stretched.
pub(super) fn fill_tensor(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    match e.operand(b, "value")? {
        O::N(n) => filled(e, b, n),
        O::T(v) => {
            let v = e.to_dtype(&v, dtype)?;
            one(e.expand_to(&v, &shape)?)
        }
    }
}

/// `arange(end)`, `arange(start, end)`: `start, start+1, …` in the dtype that the node says.
pub(super) fn arange(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let start = if b.has("start") { b.scalar("start")?.clone() } else { Arg::Int(0) };
    let args = vec![start, b.scalar("end")?.clone(), Arg::Int(1)];
    one(e.call1("aten.arange.start_step", args, &[("dtype", Arg::DType(dtype))], dtype, &shape)?)
}

/// `eye(n, m)`: 1 where row equals column.
pub(super) fn eye(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let (Some(n), Some(m)) = (shape.first(), shape.get(1)) else {
        return Err(Error::shape(b.op(), "a result of another rank than 2"));
    };
    let row = e.iota(n, DType::I64)?;
    let row = e.unsqueeze(&row, 1)?;
    let col = e.iota(m, DType::I64)?;
    let y = e.compare("eq", &row, &col)?;
    one(e.to_dtype(&y, dtype)?)
}

/// An end of a range of numbers: a number, or a tensor without dimensions, in double precision; a whole one of an
/// integer range.
fn range_end(e: &mut Expander<'_, '_>, b: &Bound<'_>, name: &str, dtype: DType) -> Result<O, Error> {
    Ok(match e.operand(b, name)? {
        O::N(Arg::Sym(size)) => O::T(e.full(&[], DType::F64, Arg::Sym(size))?),
        O::N(_) => {
            let end = b.float(name)?;
            O::from(if dtype.is_float() { end } else { end.trunc() })
        }
        O::T(end) => {
            let end = e.to_dtype(&end, dtype)?;
            O::T(e.to_dtype(&end, DType::F64)?)
        }
    })
}

/// Numbers from `start` to `end` at equal steps, in double precision: the first half counts up from `start`, the second
/// down from `end`, as PyTorch's CPU kernel does, so that both ends are exact.
fn line(e: &mut Expander<'_, '_>, b: &Bound<'_>, dtype: DType) -> Result<V, Error> {
    if dtype.is_complex() {
        return Err(Error::unsupported(format!("{} of {dtype}; expected a real dtype", b.op())));
    }
    let (start, end) = (range_end(e, b, "start", dtype)?, range_end(e, b, "end", dtype)?);
    let steps = b.int("steps")?;
    if steps <= 1 {
        let start = e.lift(&start, DType::F64)?;
        return e.expand_to(&start, &[Expr::Int(steps)]);
    }
    let last = steps as f64 - 1.0;
    let (step, minus) = match (&start, &end) {
        (O::N(Arg::Float(start)), O::N(Arg::Float(end))) => {
            let step = (end.0 - start.0) / last;
            (O::from(step), O::from(-step))
        }
        _ => {
            let (start, end) = (e.lift(&start, DType::F64)?, e.lift(&end, DType::F64)?);
            let span = e.sub(&end, &start)?;
            let step = e.div(&span, last)?;
            let minus = e.unary("neg", &step)?;
            (O::T(step), O::T(minus))
        }
    };
    let i = e.iota(&Expr::Int(steps), DType::F64)?;
    let up = e.mul(&i, &step)?;
    let up = e.add(&up, &start)?;
    let back = e.mul(&i, -1.0)?;
    let back = e.add(&back, last)?;
    let back = e.mul(&back, &minus)?;
    let down = e.add(&back, &end)?;
    let is_first = e.compare("lt", &i, (steps / 2) as f64)?;
    e.select_where(&is_first, &up, &down)
}

/// `linspace(start, end, steps)`; whole numbers are cut, not rounded.
pub(super) fn linspace(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, _) = e.result(b, 0)?;
    let y = line(e, b, dtype)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `one_hot(x, n)`: `y[…, c] = (x[…] == c)`, i64. The number of classes must be given: found from data, it would make
/// a shape depend on values.
pub(super) fn one_hot(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, shape) = e.result(b, 0)?;
    let classes = b.int("num_classes")?;
    if classes < 0 {
        return Err(Error::unsupported("one_hot without num_classes has a shape that depends on data"));
    }
    let c = e.iota(shape.last().unwrap_or(&Expr::Int(0)), DType::I64)?;
    let x = e.unsqueeze(&x, x.rank())?;
    let y = e.compare("eq", &x, &c)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `tril_indices`, `triu_indices`: rows and columns of a triangle, known now.
pub(super) fn triangle_indices(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let (rows, cols, offset) = (b.int("row")?, b.int("col")?, b.int("offset")?);
    let is_lower = b.op().contains("tril");
    let Some(count) = shape.get(1).and_then(Expr::as_int) else {
        return Err(Error::unsupported(format!("{} of symbolic sizes", b.op())));
    };
    let mut runs = Vec::new();
    let cols = cols.max(0);
    for row in 0..pieces(b.op(), rows)? {
        let diagonal = row.checked_add(offset);
        let (first, last) = if is_lower {
            (0, exact(b.op(), diagonal.and_then(|d| d.checked_add(1)))?.clamp(0, cols))
        } else {
            (exact(b.op(), diagonal)?.clamp(0, cols), cols)
        };
        if last > first {
            runs.push((row, first, last));
        }
    }
    if runs.is_empty() || count == 0 {
        return filled(e, b, Arg::Int(0));
    }
    let (mut row_parts, mut col_parts) = (Vec::new(), Vec::new());
    for (row, first, last) in runs {
        row_parts.push(e.full(&[Expr::Int(last - first)], dtype, row)?);
        let args = vec![size_arg(&Expr::Int(first)), Arg::Int(last), Arg::Int(1)];
        let kwargs = [("dtype", Arg::DType(dtype))];
        col_parts.push(e.call1("aten.arange.start_step", args, &kwargs, dtype, &[Expr::Int(last - first)])?);
    }
    let (r, c) = (e.cat(&row_parts, 0)?, e.cat(&col_parts, 0)?);
    let (r, c) = (e.unsqueeze(&r, 0)?, e.unsqueeze(&c, 0)?);
    one(e.cat(&[r, c], 0)?)
}

/// `logspace(start, end, steps, base)`: `base` to the power of `linspace`.
pub(super) fn logspace(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let base = b.float("base")?;
    let line = line(e, b, dtype)?;
    let y = e.call1("aten.pow.Scalar", vec![Arg::from(base), line.arg()], &[], DType::F64, &shape)?;
    one(e.to_dtype(&y, dtype)?)
}
