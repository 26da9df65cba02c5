//! `prims` that decompositions leave in graphs: those that an `aten` operator is, by their names; others by definition.

use super::Given;
use super::math::Math;
use crate::engine::Engine;
use crate::error::Error;
use crate::value::Value;

/// `prims` whose arguments and meaning are those of an operator of `aten`.
const SAME: &[(&str, &str)] = &[
    ("abs", "abs.default"),
    ("acos", "acos.default"),
    ("acosh", "acosh.default"),
    ("add", "add.Tensor"),
    ("as_strided", "as_strided.default"),
    ("as_strided_scatter", "as_strided_scatter.default"),
    ("asin", "asin.default"),
    ("asinh", "asinh.default"),
    ("atan", "atan.default"),
    ("atan2", "atan2.default"),
    ("atanh", "atanh.default"),
    ("bessel_i0", "i0.default"),
    ("bessel_i0e", "special_i0e.default"),
    ("bessel_i1", "special_i1.default"),
    ("bessel_i1e", "special_i1e.default"),
    ("bessel_j0", "special_bessel_j0.default"),
    ("bessel_j1", "special_bessel_j1.default"),
    ("bitwise_and", "bitwise_and.Tensor"),
    ("bitwise_not", "bitwise_not.default"),
    ("bitwise_or", "bitwise_or.Tensor"),
    ("bitwise_xor", "bitwise_xor.Tensor"),
    ("cat", "cat.default"),
    ("ceil", "ceil.default"),
    ("conj", "conj.default"),
    ("conj_physical", "conj_physical.default"),
    ("cos", "cos.default"),
    ("cosh", "cosh.default"),
    ("digamma", "digamma.default"),
    ("eq", "eq.Tensor"),
    ("erf", "erf.default"),
    ("erf_inv", "erfinv.default"),
    ("erfc", "erfc.default"),
    ("erfcx", "special_erfcx.default"),
    ("exp", "exp.default"),
    ("exp2", "exp2.default"),
    ("expm1", "expm1.default"),
    ("fill", "fill.Scalar"),
    ("floor", "floor.default"),
    ("fmax", "fmax.default"),
    ("fmin", "fmin.default"),
    ("fmod", "fmod.Tensor"),
    ("frexp", "frexp.Tensor"),
    ("gcd", "gcd.default"),
    ("ge", "ge.Tensor"),
    ("gt", "gt.Tensor"),
    ("hypot", "hypot.default"),
    ("igamma", "igamma.default"),
    ("igammac", "igammac.default"),
    ("imag", "imag.default"),
    ("isfinite", "isfinite.default"),
    ("item", "item.default"),
    ("le", "le.Tensor"),
    ("lgamma", "lgamma.default"),
    ("log", "log.default"),
    ("log10", "log10.default"),
    ("log1p", "log1p.default"),
    ("log2", "log2.default"),
    ("lt", "lt.Tensor"),
    ("maximum", "maximum.default"),
    ("minimum", "minimum.default"),
    ("mul", "mul.Tensor"),
    ("ndtri", "special_ndtri.default"),
    ("ne", "ne.Tensor"),
    ("neg", "neg.default"),
    ("nextafter", "nextafter.default"),
    ("pow", "pow.Tensor_Tensor"),
    ("real", "real.default"),
    ("reciprocal", "reciprocal.default"),
    ("remainder", "remainder.Tensor"),
    ("reshape", "reshape.default"),
    ("rev", "flip.default"),
    ("round", "round.default"),
    ("rsqrt", "rsqrt.default"),
    ("shift_left", "bitwise_left_shift.Tensor"),
    ("shift_right_arithmetic", "bitwise_right_shift.Tensor"),
    ("sign", "sign.default"),
    ("signbit", "signbit.default"),
    ("sin", "sin.default"),
    ("sinh", "sinh.default"),
    ("spherical_bessel_j0", "special_spherical_bessel_j0.default"),
    ("sqrt", "sqrt.default"),
    ("squeeze", "squeeze.dims"),
    ("sub", "sub.Tensor"),
    ("tan", "tan.default"),
    ("tanh", "tanh.default"),
    ("transpose", "permute.default"),
    ("trunc", "trunc.default"),
    ("view_of_dtype", "view.dtype"),
    ("where", "where.self"),
    ("zeta", "special_zeta.default"),
];

/// The `aten` operator that a prim is, if it is one.
pub fn same(op: &str) -> Option<String> {
    let name = op.strip_prefix("prims.")?.strip_suffix(".default")?;
    let at = SAME.binary_search_by_key(&name, |row| row.0).ok()?;
    SAME.get(at).map(|(_, operator)| format!("aten.{operator}"))
}

/// A dimension counted from the front.
fn front(dim: i64, rank: usize) -> Result<usize, Error> {
    let at = if dim < 0 { dim + rank as i64 } else { dim };
    usize::try_from(at).ok().filter(|at| *at < rank).ok_or_else(|| Error::value(format!("dimension {dim} of {rank}")))
}

/// Dimensions `start` to `end`, both included, as one; a copy.
pub fn collapse(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let shape = collapsed(given)?;
    let contiguous = engine.tensor("aten.clone.default", &[given.tensor("a")?.into(), Value::Int(0)])?;
    Ok(vec![engine.tensor("aten.view.default", &[contiguous.into(), shape.as_slice().into()])?.into()])
}

/// The same as a view, where strides allow it.
pub fn collapse_view(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let shape = collapsed(given)?;
    Ok(vec![engine.tensor("aten.view.default", &[given.tensor("a")?.into(), shape.as_slice().into()])?.into()])
}

/// The shape with dimensions `start` to `end` as one.
fn collapsed(given: &Given<'_>) -> Result<Vec<i64>, Error> {
    let a = given.tensor("a")?;
    let mut shape = a.shape()?;
    if !shape.is_empty() {
        let (start, end) = (front(given.int("start")?, shape.len())?, front(given.int("end")?, shape.len())?);
        let merged = shape.get(start..=end).ok_or_else(|| Error::value(format!("dimensions {start} to {end}")))?;
        let merged = merged.iter().product();
        shape.splice(start..=end, [merged]);
    }
    Ok(shape)
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

/// Where each dimension of `a` goes in `shape`; the other dimensions, and those of size one, repeat.
pub fn broadcast_in_dim(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let (mut a, shape, places) =
        (given.tensor("a")?.clone(), given.ints("shape")?, given.ints("broadcast_dimensions")?);
    for dim in (0..shape.len() as i64).filter(|dim| !places.contains(dim)) {
        a = engine.tensor("aten.unsqueeze.default", &[a.into(), dim.into()])?;
    }
    Ok(vec![engine.tensor("aten.expand.default", &[a.into(), shape.as_slice().into()])?.into()])
}

/// Division that rounds to zero among integers.
pub fn div(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let (a, b) = (given.tensor("a")?, given.tensor("b")?);
    if a.dtype()?.is_integer() {
        let mode = Value::Str("trunc".to_owned());
        return Ok(vec![engine.tensor("aten.div.Tensor_mode", &[a.into(), b.into(), mode])?.into()]);
    }
    Ok(vec![engine.tensor("aten.div.Tensor", &[a.into(), b.into()])?.into()])
}

fn extremum(engine: &Engine, given: &Given<'_>, op: &str) -> Result<Vec<Value>, Error> {
    let dims = match given.get("dims") {
        Value::None => Value::List(Vec::new()),
        dims => dims.clone(),
    };
    Ok(vec![engine.tensor(op, &[given.tensor("inp")?.into(), dims])?.into()])
}

/// The greatest over dimensions, all of them if none are given.
pub fn amax(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    extremum(engine, given, "aten.amax.default")
}

/// The least over dimensions, all of them if none are given.
pub fn amin(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    extremum(engine, given, "aten.amin.default")
}

/// The variance over dimensions; the divisor is the count less `correction`, which is 1 unless it is given.
pub fn var(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let correction = match given.get("correction") {
        Value::None => Value::Int(1),
        correction => correction.clone(),
    };
    let args = [given.get("inp").clone(), given.get("dims").clone(), correction, Value::Bool(false)];
    Ok(vec![engine.tensor("aten.var.correction", &args)?.into()])
}

/// `fill_value` everywhere.
pub fn full(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let args = ["shape", "fill_value", "dtype"].map(|name| given.get(name).clone());
    Ok(vec![engine.tensor("aten.full.default", &args)?.into()])
}

/// The same in the shape of `a`.
pub fn full_like(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let args = ["a", "fill_value", "dtype"].map(|name| given.get(name).clone());
    Ok(vec![engine.tensor("aten.full_like.default", &args)?.into()])
}

/// A number as a tensor.
pub fn scalar_tensor(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let args = ["s", "dtype"].map(|name| given.get(name).clone());
    Ok(vec![engine.tensor("aten.scalar_tensor.default", &args)?.into()])
}

/// A copy.
pub fn clone(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let args = ["a", "memory_format"].map(|name| given.get(name).clone());
    Ok(vec![engine.tensor("aten.clone.default", &args)?.into()])
}

/// The cube root, of the number's own sign.
pub fn cbrt(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let x = given.tensor("self")?;
    let size = engine.tensor("aten.abs.default", &[x.into()])?;
    let root = engine.tensor("aten.pow.Tensor_Scalar", &[size.into(), (1.0 / 3.0).into()])?;
    Ok(vec![engine.tensor("aten.copysign.Tensor", &[root.into(), x.into()])?.into()])
}

/// A copy in memory of other strides, which its values do not depend on.
pub fn copy_strided(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    Ok(vec![engine.tensor("aten.clone.default", &[given.get("a").clone(), Value::None])?.into()])
}

/// Elements that nobody has written: zeros.
pub fn empty(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let args = ["shape", "dtype"].map(|name| given.get(name).clone());
    Ok(vec![engine.tensor("aten.zeros.default", &args)?.into()])
}

/// Normal numbers of a mean and a deviation.
pub fn normal(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let args = ["mean", "std", "shape", "generator", "dtype"].map(|name| given.get(name).clone());
    Ok(vec![engine.tensor("aten.normal.float_float", &args)?.into()])
}

/// Numbers between two, as likely the one as the other.
pub fn uniform(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let start = engine.tensor("aten.zeros.default", &["shape", "dtype"].map(|name| given.get(name).clone()))?;
    let [low, high, generator] = ["low", "high", "generator"].map(|name| given.get(name).clone());
    Ok(vec![engine.tensor("aten.uniform.default", &[start.into(), low, high, generator])?.into()])
}

/// The transform of real numbers, not normalised.
pub fn fft_r2c(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    transform(engine, given, "aten._fft_r2c.default", "onesided")
}

/// The transform of complex numbers, not normalised.
pub fn fft_c2c(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    transform(engine, given, "aten._fft_c2c.default", "forward")
}

/// The transform to real numbers, not normalised.
pub fn fft_c2r(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    transform(engine, given, "aten._fft_c2r.default", "last_dim_size")
}

fn transform(engine: &Engine, given: &Given<'_>, op: &str, last: &str) -> Result<Vec<Value>, Error> {
    let args = [given.get("self").clone(), given.get("dim").clone(), Value::Int(0), given.get(last).clone()];
    Ok(vec![engine.tensor(op, &args)?.into()])
}

/// `U`, `S` and `Vh`.
pub fn svd(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    engine.call("aten.linalg_svd.default", &["A", "full_matrices"].map(|name| given.get(name).clone()))
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
    fn every_name_is_an_operator() {
        let Ok(engine) = Engine::start(Some(1)) else { return };
        let is_missing = |row: &&(&str, &str)| engine.operator(&format!("aten.{}", row.1)).is_none();
        let missing: Vec<_> = SAME.iter().filter(is_missing).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn dimensions_count_from_either_end() {
        assert_eq!((front(-1, 3).unwrap(), front(2, 3).unwrap()), (2, 2));
        assert!(front(3, 3).is_err() && front(-4, 3).is_err());
    }
}
