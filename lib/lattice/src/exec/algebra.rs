//! Sparse values made, taken apart and put together by their coordinates.
//!
//! A join of two values on the same rows takes those rows as they are. Else `left` and `right` give the rows of that side,
//! `inner` the left rows that the right side has too, and `outer` the left rows and behind them what only the right side
//! has. Rows that are not active are zeros, and only there where the rows are another value's.

use super::coords::{Coord, MAX_ROWS, Support, physical};
use super::value::{Floats, Sparse, round, shown};
use super::{Machine, Operand};
use crate::plan::ValueId;
use crate::schema::{BinaryOp, Join};
use std::sync::Arc;

/// The rows of a join: where they are, and for each the row of either side.
struct Joined {
    support: Arc<Support>,
    rows: Vec<(Option<u32>, Option<u32>)>,
}

impl Joined {
    fn new(lhs: &Sparse, rhs: &Sparse, join: Join) -> Result<Joined, String> {
        let (left, right) = (&lhs.support, &rhs.support);
        if left.stride != right.stride {
            return Err(format!("lhs has stride {:?}, rhs {:?}; expected the same", left.stride, right.stride));
        }
        if Arc::ptr_eq(left, right) {
            let rows = (0..left.coords.len() as u32).map(|row| (Some(row), Some(row))).collect();
            return Ok(Joined { support: left.clone(), rows });
        }
        let of_left = || right.sorted().matches(left.sorted());
        let of_right = || left.sorted().matches(right.sorted());
        let numbered = |found: Vec<Option<u32>>| (0u32..).zip(found);
        Ok(match join {
            Join::Left => {
                let rows = numbered(of_left()).map(|(row, other)| (Some(row), other)).collect();
                Joined { support: left.clone(), rows }
            }
            Join::Right => {
                let rows = numbered(of_right()).map(|(row, other)| (other, Some(row))).collect();
                Joined { support: right.clone(), rows }
            }
            Join::Inner => {
                let rows: Vec<_> = numbered(of_left()).filter(|(_, other)| other.is_some()).collect();
                let coords = rows.iter().map(|(row, _)| left.coords[*row as usize]).collect();
                let rows: Vec<_> = rows.into_iter().map(|(row, other)| (Some(row), other)).collect();
                Joined { support: Support::new(coords, rows.len(), left.stride), rows }
            }
            Join::Outer => {
                let mut rows: Vec<_> = numbered(of_left()).map(|(row, other)| (Some(row), other)).collect();
                let alone = numbered(of_right()).filter(|(_, other)| other.is_none());
                rows.extend(alone.map(|(row, _)| (None, Some(row))));
                if rows.len() > MAX_ROWS {
                    return Err(format!("{} rows; the engine joins to at most {MAX_ROWS}", rows.len()));
                }
                let coord = |(a, b): &(Option<u32>, Option<u32>)| match (a, b) {
                    (Some(row), _) => left.coords[*row as usize],
                    (None, row) => right.coords[row.unwrap_or_default() as usize],
                };
                let coords: Vec<Coord> = rows.iter().map(coord).collect();
                Joined { support: Support::new(coords, rows.len(), left.stride), rows }
            }
        })
    }
}

fn apply(op: BinaryOp, a: f32, b: f32) -> f32 {
    match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Maximum if a.is_nan() || b.is_nan() => f32::NAN,
        BinaryOp::Minimum if a.is_nan() || b.is_nan() => f32::NAN,
        BinaryOp::Maximum => a.max(b),
        BinaryOp::Minimum => a.min(b),
    }
}

impl Machine<'_> {
    /// `sparse.make`: physical coordinates, every row of which the stride must divide, and no active two of which may be
    /// equal.
    pub(super) fn make(
        &self,
        coords: ValueId,
        features: ValueId,
        active: ValueId,
        stride: [i32; 3],
    ) -> Result<Sparse, String> {
        let (coords, features, active) = (self.ints_of(coords)?, self.floats_of(features)?, self.ints_of(active)?);
        let [rows, 4] = coords.value.shape[..] else {
            return coords.say(Err(format!("has shape {:?}; expected rows and 4", coords.value.shape)));
        };
        let (feature_rows, _) = features.say(features.value.matrix())?;
        if feature_rows != rows || rows > MAX_ROWS {
            return features.say(Err(format!(
                "has {feature_rows} rows; expected those of the coordinates, {rows}, and at most {MAX_ROWS}"
            )));
        }
        let active = active.count(rows)?;
        let mut logical = Vec::with_capacity(rows);
        for (row, coord) in coords.value.values.as_chunks::<4>().0.iter().enumerate() {
            let mut divided = *coord;
            for (x, by) in divided.iter_mut().skip(1).zip(stride) {
                if *x % by != 0 {
                    let shown = shown(coord);
                    return coords.say(Err(format!("row {row}: {shown} is no multiple of the stride {stride:?}")));
                }
                *x /= by;
            }
            logical.push(divided);
        }
        let support = Support::new(logical, active, stride);
        if let Some((first, second)) = support.sorted().duplicate() {
            let coord = physical(support.coords[first as usize], stride).unwrap_or_default();
            let shown = shown(&coord);
            return coords.say(Err(format!("row {second}: {shown} is that of row {first}; expected each once")));
        }
        Ok(Sparse { support, features: features.value.clone() })
    }

    /// `sparse.with_features`: as many rows, on the same coordinates.
    pub(super) fn with_features(&self, input: ValueId, features: ValueId) -> Result<Sparse, String> {
        let (input, features) = (self.sparse(input)?, self.floats_of(features)?);
        let (rows, _) = features.say(features.value.matrix())?;
        if rows != input.rows() {
            return features.say(Err(format!("has {rows} rows; expected {}, those of the input", input.rows())));
        }
        Ok(Sparse { support: input.support.clone(), features: features.value.clone() })
    }

    /// `sparse.reindex`: the input's features on the target's rows.
    pub(super) fn reindex(&self, input: ValueId, target: ValueId, fill: f32) -> Result<Sparse, String> {
        let (input, target) = (self.sparse(input)?, self.sparse(target)?);
        let joined = Joined::new(target, input, Join::Left)?;
        let dtype = input.features.dtype;
        let fill = round(fill, dtype);
        let features =
            Floats::by_rows(dtype, target.rows(), input.channels(), |row, out| match joined.rows.get(row) {
                Some((_, Some(found))) => out.copy_from_slice(input.row(*found as usize)),
                Some(_) => out.fill(fill),
                None => {}
            })?;
        Ok(Sparse { support: joined.support, features: Arc::new(features) })
    }

    /// `sparse.binary`: a side that has no row there is its fill.
    pub(super) fn binary(
        &self,
        lhs: ValueId,
        rhs: ValueId,
        op: BinaryOp,
        join: Join,
        [lhs_fill, rhs_fill]: [f32; 2],
    ) -> Result<Sparse, String> {
        let (lhs, rhs) = (self.sparse(lhs)?, self.sparse(rhs)?);
        let (dtype, channels) = (lhs.features.dtype, lhs.channels());
        if (rhs.features.dtype, rhs.channels()) != (dtype, channels) {
            let (other, count) = (rhs.features.dtype, rhs.channels());
            return Err(format!(
                "lhs is {dtype} with {channels} channels, rhs {other} with {count}; expected the same"
            ));
        }
        let joined = Joined::new(lhs, rhs, join)?;
        let (lhs_fill, rhs_fill) = (round(lhs_fill, dtype), round(rhs_fill, dtype));
        let features = Floats::by_rows(dtype, joined.support.coords.len(), channels, |row, out| {
            let Some((left, right)) = joined.rows.get(row) else { return };
            let left = left.map(|row| lhs.row(row as usize));
            let right = right.map(|row| rhs.row(row as usize));
            for (at, out) in out.iter_mut().enumerate() {
                let of = |row: Option<&[f32]>, fill: f32| row.and_then(|row| row.get(at).copied()).unwrap_or(fill);
                *out = apply(op, of(left, lhs_fill), of(right, rhs_fill));
            }
        })?;
        Ok(Sparse { support: joined.support, features: Arc::new(features) })
    }

    /// `sparse.cat`: the channels of both sides; a side that has no row there is zeros.
    pub(super) fn cat(&self, lhs: ValueId, rhs: ValueId, join: Join) -> Result<Sparse, String> {
        let (lhs, rhs) = (self.sparse(lhs)?, self.sparse(rhs)?);
        let dtype = lhs.features.dtype;
        if rhs.features.dtype != dtype {
            return Err(format!("lhs is {dtype}, rhs {}; expected the same", rhs.features.dtype));
        }
        let joined = Joined::new(lhs, rhs, join)?;
        let (left, right) = (lhs.channels(), rhs.channels());
        let features = Floats::by_rows(dtype, joined.support.coords.len(), left + right, |row, out| {
            let Some((a, b)) = joined.rows.get(row) else { return };
            let (out_left, out_right) = out.split_at_mut(left);
            if let Some(row) = a {
                out_left.copy_from_slice(lhs.row(*row as usize));
            }
            if let Some(row) = b {
                out_right.copy_from_slice(rhs.row(*row as usize));
            }
        })?;
        Ok(Sparse { support: joined.support, features: Arc::new(features) })
    }
}

impl Operand<'_, super::value::Ints> {
    /// A row count of one element, from none to all of `rows`.
    pub(super) fn count(&self, rows: usize) -> Result<usize, String> {
        let count = self.say(self.value.only())?;
        let is_right = usize::try_from(count).ok().filter(|count| *count <= rows);
        is_right.map_or_else(|| self.say(Err(format!("is {count}; expected 0 to {rows} active rows"))), Ok)
    }
}
