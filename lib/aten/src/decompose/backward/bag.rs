//! The gradient of bags of embeddings by the table.

use super::finish;
use super::index::add_along;
use crate::bind::Bound;
use crate::decompose::segment::add_rows;
use crate::error::Error;
use crate::expand::{Expander, Results};
use crate::value::V;
use m2m_record::{Arg, DType};
use m2m_tensor::Expr;

/// The number of each index's bag: how many bags have begun, less one. A last offset that is the end of the last bag
/// begins none.
fn bags(e: &mut Expander<'_, '_>, b: &Bound<'_>, g: &V, index: &V) -> Result<V, Error> {
    if !b.has("offsets") {
        return e.tensor(b, "offset2bag");
    }
    let offsets = e.tensor(b, "offsets")?;
    let offsets = e.slice(&offsets, 0, &Expr::Int(0), &g.dim(0), 1)?;
    let place = e.iota(&index.dim(0), offsets.dtype)?;
    let place = e.unsqueeze(&place, 1)?;
    let begun = e.compare("le", &offsets, &place)?;
    let bag = e.sum(&begun, &[1], false)?;
    e.sub(&bag, 1i64)
}

/// `_embedding_bag_backward(g [B, D], indices [n], offsets [B], …, num_weights, mode, per_sample_weights, padding_idx)`:
/// the gradient of each bag is added to the rows of its indices: times their weights (sum), over the size of the bag
/// (mean); of a maximum each element to the row that it came from, as `maximum_indices` says. Padding takes no part.
/// `_embedding_bag_dense_backward` is told the bag of each index.
pub(crate) fn embedding_bag(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    if b.has("sparse") && b.bool("sparse")? {
        return Err(Error::unsupported(format!("{} with a sparse gradient", b.op())));
    }
    let (g, index) = (e.tensor(b, "grad")?, e.tensor(b, "indices")?);
    let (g, index) = (e.widen(&g)?, e.to_dtype(&index, DType::I64)?);
    let rows = e.size(b.arg("num_weights")?)?;
    let bag = bags(e, b, &g, &index)?;
    let bag = e.to_dtype(&bag, DType::I64)?;
    let padding = b.int("padding_idx")?;
    let is_kept = e.compare("ne", &index, padding)?;
    let counted = e.to_dtype(&is_kept, g.dtype)?;
    let sizes = add_rows(e, &counted, &bag, &g.dim(0))?;
    let zero = e.full(&[], g.dtype, Arg::Int(0))?;
    if b.int("mode")? == 2 {
        return maxima(e, b, &g, &sizes, &rows);
    }
    let mut y = e.index_select(&g, 0, &bag)?;
    if b.int("mode")? == 1 {
        let size = e.index_select(&sizes, 0, &bag)?;
        let size = e.unsqueeze(&size, 1)?;
        y = e.div(&y, &size)?;
    }
    if let Some(w) = e.opt_tensor(b, "per_sample_weights")? {
        let w = e.widen(&w)?;
        let w = e.unsqueeze(&w, 1)?;
        y = e.mul(&y, &w)?;
    }
    if b.bool("scale_grad_by_freq")? {
        let ones = e.full(&index.shape, g.dtype, Arg::Int(1))?;
        let often = add_rows(e, &ones, &index, &rows)?;
        let often = e.index_select(&often, 0, &index)?;
        let often = e.unsqueeze(&often, 1)?;
        y = e.div(&y, &often)?;
    }
    let is_kept = e.unsqueeze(&is_kept, 1)?;
    let y = e.select_where(&is_kept, &y, &zero)?;
    let y = add_along(e, &y, 0, &index, &rows)?;
    finish(e, b, &y)
}

/// Each element of the gradient at its row, except those of bags of nothing.
fn maxima(e: &mut Expander<'_, '_>, b: &Bound<'_>, g: &V, sizes: &V, rows: &Expr) -> Results {
    let places = e.tensor(b, "maximum_indices")?;
    let places = e.to_dtype(&places, DType::I64)?;
    let places = e.slice(&places, 0, &Expr::Int(0), &g.dim(0), 1)?;
    let is_filled = e.compare("gt", sizes, 0i64)?;
    let is_filled = e.unsqueeze(&is_filled, 1)?;
    let zero = e.full(&[], g.dtype, Arg::Int(0))?;
    let g = e.select_where(&is_filled, g, &zero)?;
    let shape = [rows.clone(), g.dim(1)];
    let zeros = e.full(&shape, g.dtype, Arg::Int(0))?;
    let args = vec![zeros.arg(), Arg::Int(0), places.arg(), g.arg()];
    let y = e.call1("aten.scatter_add.default", args, &[], g.dtype, &shape)?;
    finish(e, b, &y)
}

/// `_embedding_bag_per_sample_weights_backward(g [B, D], weight, indices [n], offsets, offset2bag, mode, padding_idx)`:
/// of each index the product of its row with the gradient of its bag; of padding 0.
pub(crate) fn sample_weights(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, weight, index) = (e.tensor(b, "grad")?, e.tensor(b, "weight")?, e.tensor(b, "indices")?);
    let (g, weight, index) = (e.widen(&g)?, e.widen(&weight)?, e.to_dtype(&index, DType::I64)?);
    let bag = bags(e, b, &g, &index)?;
    let rows = e.index_select(&weight, 0, &index)?;
    let own = e.index_select(&g, 0, &bag)?;
    let y = e.mul(&rows, &own)?;
    let y = e.sum(&y, &[1], false)?;
    let is_kept = e.compare("ne", &index, b.int("padding_idx")?)?;
    let zero = e.full(&[], y.dtype, Arg::Int(0))?;
    let y = e.select_where(&is_kept, &y, &zero)?;
    finish(e, b, &y)
}
