//! `prims` that decompositions leave in graphs.

use super::Given;
use super::math::Math;
use crate::engine::Engine;
use crate::error::Error;
use crate::value::Value;

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
