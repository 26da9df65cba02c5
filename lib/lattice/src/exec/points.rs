//! Points in space: into voxels, and out of them. All arithmetic on positions is f32.

use super::coords::{Coord, Support, bounds, order};
use super::value::{Floats, Ints, Sparse};
use super::{Machine, Operand};
use crate::plan::ValueId;
use crate::schema::{PointInterpolation, VoxelReduction};
use m2m_record::DType;
use rayon::prelude::*;
use std::sync::Arc;

/// Where voxels lie in space.
struct Grid {
    size: [f32; 3],
    origin: [f32; 3],
}

impl Grid {
    fn new(size: [f64; 3], origin: [f64; 3]) -> Result<Grid, String> {
        let grid = Grid { size: size.map(|x| x as f32), origin: origin.map(|x| x as f32) };
        if grid.size.iter().any(|x| !(x.is_finite() && *x > 0.0)) {
            return Err(format!("voxel_size is {size:?}; expected f32 numbers above 0"));
        }
        if grid.origin.iter().any(|x| !x.is_finite()) {
            return Err(format!("origin is {origin:?}; expected f32 numbers"));
        }
        Ok(grid)
    }

    /// The position of a point in voxels.
    fn position(&self, point: &[f32]) -> [f32; 3] {
        std::array::from_fn(|axis| (point.get(axis).copied().unwrap_or(f32::NAN) - self.origin[axis]) / self.size[axis])
    }
}

/// A voxel's coordinate, if the position is finite and in range.
fn voxel(batch: i32, position: [f32; 3]) -> Option<Coord> {
    let whole = position.map(|x| {
        let x = f64::from(x.floor());
        (x >= f64::from(i32::MIN) && x <= f64::from(i32::MAX)).then_some(x as i32)
    });
    Some([batch, whole[0]?, whole[1]?, whole[2]?])
}

/// Points with their batches, as many as count.
struct Points<'a> {
    points: Operand<'a, Floats>,
    batches: &'a [i32],
    active: usize,
}

impl<'a> Points<'a> {
    fn new(
        points: Operand<'a, Floats>,
        batches: Operand<'a, Ints>,
        active: Operand<'a, Ints>,
    ) -> Result<Points<'a>, String> {
        let (rows, axes) = points.say(points.value.matrix())?;
        if axes != 3 || points.value.dtype != DType::F32 {
            return points.say(Err(format!("is {} with {axes} columns; expected f32 with 3", points.value.dtype)));
        }
        if batches.value.shape != [rows] {
            return batches.say(Err(format!("has shape {:?}; expected [{rows}], one a point", batches.value.shape)));
        }
        let active = active.count(rows)?;
        Ok(Points { points, batches: &batches.value.values, active })
    }

    fn row(&self, row: usize) -> (i32, &[f32]) {
        (self.batches.get(row).copied().unwrap_or_default(), self.points.value.row(row, 3))
    }

    /// Refuses a point that `voxel` places nowhere.
    fn check(&self, voxel: impl Fn(usize) -> Option<Coord> + Sync) -> Result<(), String> {
        let Some(row) = (0..self.active).into_par_iter().find_first(|row| voxel(*row).is_none()) else { return Ok(()) };
        let point = self.row(row).1;
        self.points.say(Err(format!("row {row}: the point {point:?} lies in no voxel with 32-bit coordinates")))
    }
}

impl Machine<'_> {
    /// `voxelize`: rows in the order in which their voxels are first seen.
    #[allow(clippy::too_many_arguments, reason = "they are the operation's operands and attributes")]
    pub(super) fn voxelize(
        &self,
        [points, features, batches, active]: [ValueId; 4],
        voxel_size: [f64; 3],
        origin: [f64; 3],
        reduction: VoxelReduction,
        stride: [i32; 3],
    ) -> Result<Sparse, String> {
        let grid = Grid::new(voxel_size, origin)?;
        let points = Points::new(self.floats_of(points)?, self.ints_of(batches)?, self.ints_of(active)?)?;
        let features = self.floats_of(features)?;
        let (rows, channels) = features.say(features.value.matrix())?;
        if points.points.value.shape.first() != Some(&rows) {
            let count = points.batches.len();
            return features.say(Err(format!("has {rows} rows; expected {count}, one a point")));
        }
        let place = |row: usize| {
            let (batch, point) = points.row(row);
            voxel(batch, grid.position(point))
        };
        points.check(place)?;
        let coords: Vec<Coord> = (0..points.active).into_par_iter().map(|row| place(row).unwrap_or_default()).collect();
        let sorted = order(coords.len(), &bounds(&coords), |row| coords[row]);
        // The points of each voxel, in order; voxels by their first point.
        let mut voxels: Vec<&[u32]> = sorted.chunk_by(|a, b| coords[*a as usize] == coords[*b as usize]).collect();
        voxels.par_sort_unstable_by_key(|points| points.first().copied());
        let places = voxels.iter().filter_map(|points| points.first()).map(|row| coords[*row as usize]).collect();
        let values = Floats::by_rows(features.value.dtype, voxels.len(), channels, |at, out| {
            let points = voxels.get(at).copied().unwrap_or_default();
            let weight = match reduction {
                VoxelReduction::Sum => 1.0,
                VoxelReduction::Mean => 1.0 / points.len() as f32,
            };
            for row in points {
                let row = features.value.row(*row as usize, channels);
                out.iter_mut().zip(row).for_each(|(out, x)| *out += x * weight);
            }
        })?;
        Ok(Sparse { support: Support::new(places, voxels.len(), stride), features: Arc::new(values) })
    }

    /// `devoxelize`: a row a point; a voxel that is not there counts as zeros, and its weight is not made up for.
    pub(super) fn devoxelize(
        &self,
        [points, voxels, batches, active]: [ValueId; 4],
        voxel_size: [f64; 3],
        origin: [f64; 3],
        interpolation: PointInterpolation,
    ) -> Result<Floats, String> {
        let grid = Grid::new(voxel_size, origin)?;
        let points = Points::new(self.floats_of(points)?, self.ints_of(batches)?, self.ints_of(active)?)?;
        let voxels = self.sparse(voxels)?;
        let shift = if interpolation == PointInterpolation::Nearest { 0.5 } else { 0.0 };
        let place = |row: usize| {
            let (batch, point) = points.row(row);
            voxel(batch, grid.position(point).map(|x| x + shift))
        };
        points.check(place)?;
        let index = voxels.support.sorted();
        let rows = points.points.value.shape.first().copied().unwrap_or(0);
        Floats::by_rows(voxels.features.dtype, rows, voxels.channels(), |row, out| {
            let Some(base) = place(row).filter(|_| row < points.active) else { return };
            if interpolation == PointInterpolation::Nearest {
                if let Some(found) = index.find(&base) {
                    out.copy_from_slice(voxels.row(found as usize));
                }
                return;
            }
            let position = grid.position(points.row(row).1);
            for corner in 0..8 {
                let Some((coord, weight)) = corner_of(base, position, corner) else { continue };
                if let Some(found) = index.find(&coord) {
                    out.iter_mut().zip(voxels.row(found as usize)).for_each(|(out, x)| *out += weight * x);
                }
            }
        })
    }
}

/// A corner of the cell that a position lies in, and its weight; bit 0 of its number is x, bit 1 is y, bit 2 is z.
fn corner_of(base: Coord, position: [f32; 3], corner: usize) -> Option<(Coord, f32)> {
    let mut coord = base;
    let mut weight = 1.0f32;
    for (axis, position) in position.iter().enumerate() {
        let fraction = position - position.floor();
        if corner >> axis & 1 == 1 {
            coord[axis + 1] = coord[axis + 1].checked_add(1)?;
            weight *= fraction;
        } else {
            weight *= 1.0 - fraction;
        }
    }
    Some((coord, weight))
}
