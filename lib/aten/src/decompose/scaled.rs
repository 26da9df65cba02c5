//! Products of narrow types whose factors have scales.

use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::value::V;
use m2m_record::DType;
use m2m_tensor::Expr;

/// `_scaled_mm(a, b, scale_a, scale_b, bias, scale_result, out_dtype)`: `(a @ b)·scale_a·scale_b + bias`, in `f32`;
/// scales are of the whole, of rows or of columns.
pub(super) fn scaled_mm(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, _) = e.result(b, 0)?;
    let scales = [e.tensor(b, "scale_a")?, e.tensor(b, "scale_b")?];
    let mut z = product(e, b, &scales)?;
    if let Some(scale) = e.opt_tensor(b, "scale_result")?
        && dtype.bits() == 8
    {
        let scale = e.view(&scale, &[])?;
        z = e.mul(&z, &scale)?;
    }
    one(e.to_dtype(&z, dtype)?)
}

/// `_scaled_mm_v2(a, b, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias, out_dtype)`: the same, for the
/// recipes that the CPU has, `TensorWise` (0) and `RowWise` (1).
pub(super) fn scaled_mm_by_recipe(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, _) = e.result(b, 0)?;
    let mut scales = Vec::new();
    for side in ["a", "b"] {
        let (recipe, swizzle) = (b.ints(&format!("recipe_{side}"))?, b.ints(&format!("swizzle_{side}"))?);
        if !matches!(recipe.as_slice(), [0 | 1]) || swizzle.iter().any(|s| *s != 0) {
            let message = format!(
                "{} with recipe_{side}={recipe:?} and swizzle_{side}={swizzle:?}; expected [0], the whole, or [1], rows, and no swizzle",
                b.op()
            );
            return Err(Error::unsupported(message));
        }
        scales.extend(e.tensors(b, &format!("scale_{side}"))?);
    }
    let z = product(e, b, &scales)?;
    one(e.to_dtype(&z, dtype)?)
}

/// `(a @ b)·scales + bias` in `f32`.
fn product(e: &mut Expander<'_, '_>, b: &Bound<'_>, scales: &[V]) -> Result<V, Error> {
    let (x, y) = (e.tensor(b, "self")?, e.tensor(b, "mat2")?);
    let (x, y) = (e.to_dtype(&x, DType::F32)?, e.to_dtype(&y, DType::F32)?);
    let mut z = e.mm(&x, &y)?;
    for scale in scales {
        let is_whole = scale.shape.iter().all(|s| *s == Expr::Int(1));
        let scale = if is_whole { e.view(scale, &[])? } else { scale.clone() };
        z = e.mul(&z, &scale)?;
    }
    if let Some(bias) = e.opt_tensor(b, "bias")? {
        let bias = e.to_dtype(&bias, DType::F32)?;
        z = e.add(&z, &bias)?;
    }
    Ok(z)
}

/// `_weight_int8pack_mm(x, w, scales)`: `(x @ wᵀ)·scales` of `x [m,k]`, `w [n,k]` in `i8` and `scales [n]`, in `f32`.
pub(super) fn weight_int8pack_mm(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, w, scales) = (e.tensor(b, "self")?, e.tensor(b, "mat2")?, e.tensor(b, "scales")?);
    let (dtype, _) = e.result(b, 0)?;
    let (x, w, scales) = (e.widen(&x)?, e.to_dtype(&w, DType::F32)?, e.widen(&scales)?);
    let w = e.transpose(&w, 0, 1)?;
    let y = e.mm(&x, &w)?;
    let y = e.mul(&y, &scales)?;
    one(e.to_dtype(&y, dtype)?)
}
