//! Attention as one operator.

use super::FLOATS;
use crate::dice::Range;
use crate::draw::{Draw, Drawn};
use m2m_record::{Arg, DType};

/// Scaled dot products, with masks, causal, and with fewer heads of keys than of queries.
pub fn attention(draw: &mut Draw<'_>) -> Drawn {
    let dtype = draw.dice.one(FLOATS);
    let [batch, heads, queries, keys] = [(1, 3), (1, 4), (1, 6), (1, 6)].map(|(a, b)| draw.dice.between(a, b));
    let [width, depth] = [draw.dice.between(1, 6), draw.dice.between(1, 6)];
    let is_grouped = draw.dice.once_in(4);
    let shared = if is_grouped { 2 } else { 1 };
    let lead = |heads: i64, rows: i64, columns: i64| match (is_grouped, heads) {
        (false, 1) => vec![batch, rows, columns],
        _ => vec![batch, heads, rows, columns],
    };
    let q = draw.input(dtype, &lead(heads * shared, queries, width), Range::Plain);
    let k = draw.input(dtype, &lead(heads, keys, width), Range::Plain);
    let v = draw.input(dtype, &lead(heads, keys, depth), Range::Plain);
    let mask = match draw.dice.between(0, 4) {
        0 => {
            let shape = lead(draw.dice.one(&[1, heads * shared]), queries, keys);
            draw.input(DType::Bool, &shape, Range::Plain).arg()
        }
        1 => draw.input(dtype, &[queries, keys], Range::Plain).arg(),
        _ => Arg::Null,
    };
    let is_causal = Arg::Bool(mask == Arg::Null && draw.dice.once_in(2));
    let scale = if draw.dice.once_in(3) { Arg::from(0.25 + draw.dice.unit()) } else { Arg::Null };
    let args = vec![q.arg(), k.arg(), v.arg(), mask, Arg::from(0.0), is_causal, scale, Arg::Bool(is_grouped)];
    draw.call("aten.scaled_dot_product_attention.default", args).map(drop)
}
