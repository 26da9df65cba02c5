//! `prims` that decompositions leave in graphs: those that an `aten` operator is, by their names; others by definition.

use super::Given;
use super::math::Math;
use crate::engine::Engine;
use crate::error::Error;
use crate::value::Value;

/// `prims` whose arguments and meaning are those of `aten.NAME.default`, or of the overload that is stated.
const SAME: &[(&str, &str)] = &[
    ("abs", "default"),
    ("acos", "default"),
    ("acosh", "default"),
    ("add", "Tensor"),
    ("asin", "default"),
    ("asinh", "default"),
    ("atan", "default"),
    ("atan2", "default"),
    ("atanh", "default"),
    ("bitwise_and", "Tensor"),
    ("bitwise_not", "default"),
    ("bitwise_or", "Tensor"),
    ("bitwise_xor", "Tensor"),
    ("cat", "default"),
    ("ceil", "default"),
    ("cos", "default"),
    ("cosh", "default"),
    ("digamma", "default"),
    ("eq", "Tensor"),
    ("erf", "default"),
    ("erfc", "default"),
    ("exp", "default"),
    ("exp2", "default"),
    ("expm1", "default"),
    ("floor", "default"),
    ("fmod", "Tensor"),
    ("ge", "Tensor"),
    ("gt", "Tensor"),
    ("isfinite", "default"),
    ("item", "default"),
    ("le", "Tensor"),
    ("lgamma", "default"),
    ("log", "default"),
    ("log10", "default"),
    ("log1p", "default"),
    ("log2", "default"),
    ("lt", "Tensor"),
    ("maximum", "default"),
    ("minimum", "default"),
    ("mul", "Tensor"),
    ("ne", "Tensor"),
    ("neg", "default"),
    ("pow", "Tensor_Tensor"),
    ("reciprocal", "default"),
    ("remainder", "Tensor"),
    ("reshape", "default"),
    ("round", "default"),
    ("rsqrt", "default"),
    ("sign", "default"),
    ("signbit", "default"),
    ("sin", "default"),
    ("sinh", "default"),
    ("sqrt", "default"),
    ("squeeze", "dims"),
    ("sub", "Tensor"),
    ("tan", "default"),
    ("tanh", "default"),
    ("trunc", "default"),
    ("where", "self"),
];

/// The `aten` operator that a prim is, if it is one.
pub fn same(op: &str) -> Option<String> {
    let name = op.strip_prefix("prims.")?.strip_suffix(".default")?;
    let at = SAME.binary_search_by_key(&name, |row| row.0).ok()?;
    SAME.get(at).map(|(name, overload)| format!("aten.{name}.{overload}"))
}

/// A dimension counted from the front.
fn front(dim: i64, rank: usize) -> Result<usize, Error> {
    let at = if dim < 0 { dim + rank as i64 } else { dim };
    usize::try_from(at).ok().filter(|at| *at < rank).ok_or_else(|| Error::value(format!("dimension {dim} of {rank}")))
}

/// Dimensions `start` to `end`, both included, as one; a copy.
pub fn collapse(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let a = given.tensor("a")?;
    let mut shape = a.shape()?;
    if !shape.is_empty() {
        let (start, end) = (front(given.int("start")?, shape.len())?, front(given.int("end")?, shape.len())?);
        let merged = shape.get(start..=end).ok_or_else(|| Error::value(format!("dimensions {start} to {end}")))?;
        let merged = merged.iter().product();
        shape.splice(start..=end, [merged]);
    }
    let contiguous = engine.tensor("aten.clone.default", &[a.into(), Value::Int(0)])?;
    Ok(vec![engine.tensor("aten.view.default", &[contiguous.into(), shape.as_slice().into()])?.into()])
}

/// Dimension `dim` as `outer_length` times the rest.
pub fn split_dim(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let a = given.tensor("a")?;
    let mut shape = a.shape()?;
    let (dim, outer) = (front(given.int("dim")?, shape.len())?, given.int("outer_length")?);
    if outer < 1 || shape[dim] % outer != 0 {
        return Err(Error::value(format!("{} elements as {outer} times others", shape[dim])));
    }
    let inner = shape[dim] / outer;
    shape.splice(dim..=dim, [outer, inner]);
    Ok(vec![engine.tensor("aten.view.default", &[a.into(), shape.as_slice().into()])?.into()])
}

/// The sum over dimensions, all of them if none are given.
pub fn sum(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let args = ["inp", "dims"].map(|name| given.get(name).clone());
    let [inp, dims] = args;
    let args = [inp, dims, Value::Bool(false), given.get("output_dtype").clone()];
    Ok(vec![engine.tensor("aten.sum.dim_IntList", &args)?.into()])
}

/// The product over dimensions, one after the other.
pub fn prod(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let mut result = given.tensor("inp")?.clone();
    let rank = result.shape()?.len();
    let dims = match given.get("dims") {
        Value::None => (0..rank).collect(),
        _ => given.ints("dims")?.into_iter().map(|dim| front(dim, rank)).collect::<Result<Vec<_>, _>>()?,
    };
    let mut dims = dims;
    dims.sort_unstable_by(|a, b| b.cmp(a));
    for dim in dims {
        let args = [result.into(), Value::Int(dim as i64), Value::Bool(false), given.get("output_dtype").clone()];
        result = engine.tensor("aten.prod.dim_int", &args)?;
    }
    Ok(vec![result.into()])
}

/// In another dtype.
pub fn convert_element_type(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    Ok(vec![Math(engine).to(given.tensor("a")?, given.int("dtype")?)?.into()])
}

/// `start + step * k` for `length` values of k.
pub fn iota(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let (length, start, step) = (given.int("length")?, given.int("start")?, given.int("step")?);
    let end = length.checked_mul(step).and_then(|span| span.checked_add(start));
    let end = end.ok_or_else(|| Error::value(format!("{length} steps of {step} from {start} leave 64 bits")))?;
    let args = [start.into(), end.into(), step.into(), given.int("dtype")?.into()];
    Ok(vec![engine.tensor("aten.arange.start_step", &args)?.into()])
}

/// The same elements under another handle.
pub fn view_of(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    Ok(vec![engine.tensor("aten.alias.default", &[given.get("a").clone()])?.into()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prims_that_are_aten_operators_are_found_by_name() {
        assert!(SAME.is_sorted());
        assert_eq!(same("prims.add.default").as_deref(), Some("aten.add.Tensor"));
        assert_eq!(same("prims.tanh.default").as_deref(), Some("aten.tanh.default"));
        assert_eq!(same("aten.tanh.default"), None);
        assert_eq!(same("prims.collapse.default"), None);
    }

    #[test]
    fn dimensions_count_from_either_end() {
        assert_eq!((front(-1, 3).unwrap(), front(2, 3).unwrap()), (2, 2));
        assert!(front(3, 3).is_err() && front(-4, 3).is_err());
    }
}
