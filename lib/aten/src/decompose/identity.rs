//! Calls that compute nothing: aliases, copies, casts to the dtype that is already there, dropout in evaluation,
//! checks that the types already answer.

use super::random;
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use m2m_record::{Arg, Node};

/// `y = x`: values are immutable, so that an alias and a copy are the value itself.
pub(super) fn same(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let name = b.schema.args.first().map_or("self", |a| a.name);
    let x = e.tensor(b, name)?;
    e.prove("identity", format!("values are immutable, so that its result is {}", x.name));
    one(x)
}

/// `y = cast(x)`: the dtype is what the node's type says; devices and memory formats are no part of a value. From complex
/// to real the imaginary part is dropped, of which PyTorch warns when it runs.
pub(super) fn cast(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, _) = e.result(b, 0)?;
    if dtype == x.dtype {
        e.prove("identity", format!("{} is {dtype} already", x.name));
        return one(x);
    }
    if x.dtype.is_complex() && !dtype.is_complex() {
        return one(e.to_dtype(&x, dtype)?);
    }
    if !e.is_lowerable("aten._to_copy.default") {
        return Err(Error::unsupported(format!("the target has no cast from {} to {dtype}", x.dtype)));
    }
    let kwargs = [("dtype".to_owned(), Arg::DType(dtype))].into_iter().collect();
    e.emit(&Node {
        op: "aten._to_copy.default".into(),
        args: vec![x.arg()],
        kwargs,
        results: b.node.results.clone(),
        ..Node::default()
    })
}

/// `y = x`, in evaluation or with probability 0; else what [`random::dropout`] keeps, scaled.
pub(super) fn dropout(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "input")?;
    let p = b.float("p")?;
    if b.bool("train")? && p != 0.0 {
        return one(random::dropout(e, b, &x, p)?);
    }
    e.prove("identity", format!("dropout in evaluation is the identity, so that its result is {}", x.name));
    one(x)
}

/// `y, mask = x, true` in evaluation or with probability 0; else `x mask / (1 - p), mask`.
pub(super) fn native_dropout(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "input")?;
    let train = !matches!(b.arg("train")?, Arg::Bool(false));
    let p = b.float("p")?;
    let (dtype, shape) = e.result(b, 1)?;
    if train && p != 0.0 {
        let mask = random::kept(e, &shape, p)?;
        let y = random::scaled(e, &x, &mask, p)?;
        let mask = e.to_dtype(&mask, dtype)?;
        return Ok(vec![Some(y), Some(mask)]);
    }
    let mask = e.full(&shape, dtype, true)?;
    e.prove("identity", format!("dropout in evaluation is the identity, so that its result is {}", x.name));
    Ok(vec![Some(x), Some(mask)])
}

/// Checks dtype and sizes now: the types of the graph are the ones that the check is about.
pub(super) fn assert_metadata(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "a")?;
    if let Some(dtype) = b.dtype("dtype")?
        && dtype != x.dtype
    {
        return Err(Error::unsupported(format!("it asserts that {} is {dtype}, but it is {}", x.name, x.dtype)));
    }
    if !matches!(b.arg("size")?, Arg::Null) {
        let sizes = e.sizes(b, "size")?;
        let fits = sizes.len() == x.rank()
            && sizes.iter().zip(&x.shape).all(|(a, b)| a == b || a.as_int().is_none() || b.as_int().is_none());
        if !fits {
            return Err(Error::unsupported(format!("it asserts sizes that {} does not have", x.name)));
        }
        if sizes != x.shape {
            return Err(Error::unsupported(format!(
                "it asserts symbolic sizes of {} that are not known to hold",
                x.name
            )));
        }
    }
    e.prove("checked", format!("{} is {} as asserted; devices and strides are no part of a value", x.name, x.dtype));
    Ok(vec![])
}

/// A number that is given as a literal.
pub(super) fn number(b: &Bound<'_>, name: &str) -> Result<f64, Error> {
    match b.scalar(name)? {
        Arg::Float(x) => Ok(x.0),
        Arg::Int(n) => Ok(*n as f64),
        Arg::Bool(x) => Ok(f64::from(u8::from(*x))),
        other => Err(Error::unsupported(format!("{} with {name}={}", b.op(), crate::bind::describe(other)))),
    }
}
