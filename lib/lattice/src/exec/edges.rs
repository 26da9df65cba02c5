//! The relations of convolutions and pooling: which rows come out, and which rows in reach them through which position of
//! the kernel.
//!
//! Positions are numbered with z fastest, `(i * ky + j) * kz + k`. The offset of position p along an axis is
//! `(p - k / 2) * dilation` where gathering relations have an odd kernel, else `p * dilation`.

use super::coords::{Coord, MAX_ROWS, Sorted, Support, bounds, order};
use super::value::shown;
use crate::plan::Window;
use rayon::prelude::*;
use std::sync::Arc;

/// An edge: rank of the row out, row in.
pub(super) type Edge = (u32, u32);

/// The edges of a relation.
#[derive(Debug)]
pub(super) struct Edges {
    /// The kernel positions that have edges, in order, each with its edges in the order of ranks.
    pub positions: Vec<(u32, Vec<Edge>)>,
    /// The row out of each rank; every active row has one.
    pub rows: Vec<u32>,
}

/// What edges begin and end at, of relations whose rows out are known before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gather {
    /// An edge where the input has `out * stride + offset - padding`.
    Forward,
    /// An edge where `out + padding - offset` is a multiple of the stride and the input has the quotient.
    Transposed,
}

fn narrow(batch: i32, spatial: [i64; 3]) -> Option<Coord> {
    let [x, y, z] = spatial.map(i32::try_from);
    Some([batch, x.ok()?, y.ok()?, z.ok()?])
}

/// The stride of what a forward relation gives.
pub(super) fn coarser(stride: [i32; 3], by: [i64; 3]) -> Result<[i32; 3], String> {
    let mut result = [1; 3];
    for ((out, stride), by) in result.iter_mut().zip(stride).zip(by) {
        *out = i64::from(stride)
            .checked_mul(by)
            .and_then(|n| i32::try_from(n).ok())
            .ok_or_else(|| format!("the stride {stride} of the input times {by} does not fit 32 bits"))?;
    }
    Ok(result)
}

/// The stride of what a transposed relation gives.
pub(super) fn finer(stride: [i32; 3], by: [i64; 3]) -> Result<[i32; 3], String> {
    let mut result = [1; 3];
    for ((out, stride_in), by) in result.iter_mut().zip(stride).zip(by) {
        if by == 0 || i64::from(stride_in) % by != 0 {
            return Err(format!("the input has stride {stride:?}, which the stride of the operation does not divide"));
        }
        *out = i32::try_from(i64::from(stride_in) / by).unwrap_or(1);
    }
    Ok(result)
}

/// The rows that a forward relation gives: those of its input where it neither strides nor pads, else each coordinate
/// once, divided and rounded down, in the order in which it is first seen.
pub(super) fn forward_support(input: &Arc<Support>, window: &Window) -> Result<Arc<Support>, String> {
    let stride = coarser(input.stride, window.stride)?;
    if window.stride == [1; 3] && window.padding == [0; 3] {
        return Ok(input.clone());
    }
    let divide = |[batch, x, y, z]: Coord| {
        let [sx, sy, sz] = window.stride;
        // A quotient of 32-bit numbers by one above zero fits 32 bits.
        let by = |x: i32, s: i64| i64::from(x).div_euclid(s) as i32;
        [batch, by(x, sx), by(y, sy), by(z, sz)]
    };
    let divided: Vec<Coord> = input.active_coords().par_iter().map(|coord| divide(*coord)).collect();
    let sorted = order(divided.len(), &bounds(&divided), |at| divided[at]);
    let mut firsts: Vec<u32> = Vec::new();
    for (rank, at) in sorted.iter().enumerate() {
        if rank == 0 || divided[sorted[rank - 1] as usize] != divided[*at as usize] {
            firsts.push(*at);
        }
    }
    firsts.par_sort_unstable();
    let coords: Vec<Coord> = firsts.iter().map(|at| divided[*at as usize]).collect();
    let active = coords.len();
    Ok(Support::new(coords, active, stride))
}

/// Positions along one axis whose offset lies between two numbers.
fn positions(kernel: i64, dilation: i64, centre: i64, least: i64, most: i64) -> std::ops::Range<i64> {
    // The quotient rounded up is the negated quotient of the negated number, rounded down.
    let first = centre - (-least).div_euclid(dilation);
    let last = centre + most.div_euclid(dilation);
    first.clamp(0, kernel)..(last.saturating_add(1)).clamp(0, kernel)
}

/// The edges onto rows that are known before.
pub(super) fn gather(input: &Support, output: &Support, window: &Window, how: Gather) -> Edges {
    let (inputs, outputs) = (input.sorted(), output.sorted());
    let rows = outputs.rows.clone();
    if inputs.rows.is_empty() || outputs.rows.is_empty() {
        return Edges { positions: Vec::new(), rows };
    }
    let centre = match how {
        Gather::Forward => window.kernel_size.map(|k| if k % 2 == 1 { k / 2 } else { 0 }),
        Gather::Transposed => [0; 3],
    };
    // Positions that nothing can reach are left out, however large the kernel is.
    let axis = |axis: usize| {
        let (first, last) = bounds_of(inputs, axis);
        let (low, high) = bounds_of(outputs, axis);
        let (stride, padding) = (window.stride[axis], window.padding[axis]);
        let (least, most) = match how {
            Gather::Forward => (first - (high * stride - padding), last - (low * stride - padding)),
            Gather::Transposed => (low + padding - last * stride, high + padding - first * stride),
        };
        positions(window.kernel_size[axis], window.dilation[axis], centre[axis], least, most)
    };
    let [xs, ys, zs] = [axis(0), axis(1), axis(2)];
    let count = |range: &std::ops::Range<i64>| (range.end - range.start).max(0) as u64;
    let (ny, nz) = (count(&ys), count(&zs));
    let total = count(&xs).saturating_mul(ny).saturating_mul(nz);
    let of = |index: u64| {
        let p = [
            xs.start + (index / (ny * nz)) as i64,
            ys.start + (index / nz % ny) as i64,
            zs.start + (index % nz) as i64,
        ];
        let [_, ky, kz] = window.kernel_size;
        let offset: [i64; 3] = std::array::from_fn(|axis| (p[axis] - centre[axis]) * window.dilation[axis]);
        let edges = match how {
            Gather::Forward => inputs.join(outputs, |coord| ahead(coord, window, offset)),
            Gather::Transposed => inputs.join(outputs, |coord| behind(coord, window, offset)),
        };
        // The volume of a kernel fits 31 bits.
        let position = ((p[0] * ky + p[1]) * kz + p[2]) as u32;
        (!edges.is_empty()).then_some((position, edges))
    };
    let positions = (0..total).into_par_iter().filter_map(of).collect();
    Edges { positions, rows }
}

fn bounds_of(sorted: &Sorted, axis: usize) -> (i64, i64) {
    let (least, most) = sorted.bounds[axis + 1];
    (least.into(), most.into())
}

fn ahead([batch, x, y, z]: &Coord, window: &Window, offset: [i64; 3]) -> Option<Coord> {
    let at = [*x, *y, *z];
    let moved = std::array::from_fn(|axis| {
        let scaled = i64::from(at[axis]) * window.stride[axis];
        scaled.saturating_add(offset[axis] - window.padding[axis])
    });
    narrow(*batch, moved)
}

fn behind([batch, x, y, z]: &Coord, window: &Window, offset: [i64; 3]) -> Option<Coord> {
    let at = [*x, *y, *z];
    let back: [i64; 3] = std::array::from_fn(|axis| i64::from(at[axis]) + window.padding[axis] - offset[axis]);
    let is_multiple = back.iter().zip(window.stride).all(|(v, stride)| v % stride == 0);
    is_multiple.then(|| narrow(*batch, std::array::from_fn(|axis| back[axis] / window.stride[axis]))).flatten()
}

/// Rows times kernel positions, if that many can be numbered.
fn spread_count(input: &Support, window: &Window) -> Result<(usize, usize), String> {
    let kernel = usize::try_from(window.volume()).unwrap_or(usize::MAX);
    match input.active.checked_mul(kernel) {
        Some(count) if count <= MAX_ROWS => Ok((kernel, count)),
        _ => Err(format!(
            "{} active rows times {kernel} kernel positions; the engine spreads to at most {MAX_ROWS}",
            input.active
        )),
    }
}

/// The coordinate that a row is spread to through a position.
fn spread_to(coord: Coord, window: &Window, position: usize) -> Option<Coord> {
    let [_, ky, kz] = window.kernel_size;
    let position = position as i64;
    let p = [position / (ky * kz), position / kz % ky, position % kz];
    let at = [coord[1], coord[2], coord[3]];
    let moved = std::array::from_fn(|axis| {
        let scaled = i64::from(at[axis]) * window.stride[axis];
        scaled.saturating_add(p[axis] * window.dilation[axis] - window.padding[axis])
    });
    narrow(coord[0], moved)
}

/// Every coordinate that the active rows are spread to: row by row, for each row position by position.
fn spread_coords(input: &Support, window: &Window) -> Result<(usize, Vec<Coord>), String> {
    let (kernel, count) = spread_count(input, window)?;
    let coords = input.active_coords();
    let each = |at: usize| {
        let (row, position) = (at / kernel, at % kernel);
        spread_to(coords[row], window, position).ok_or_else(|| {
            format!("input: row {row}: {} spreads to one that does not fit 32 bits", shown(&coords[row]))
        })
    };
    if let Some(at) = (0..count).into_par_iter().find_first(|at| each(*at).is_err()) {
        return Err(each(at).err().unwrap_or_default());
    }
    Ok((kernel, (0..count).into_par_iter().map(|at| each(at).unwrap_or_default()).collect()))
}

/// The transposed relation: each coordinate once, in the order in which it is first spread to.
pub(super) fn spread(input: &Support, window: &Window) -> Result<(Arc<Support>, Edges), String> {
    let stride = finer(input.stride, window.stride)?;
    let (kernel, spread) = spread_coords(input, window)?;
    let sorted = order(spread.len(), &bounds(&spread), |at| spread[at]);
    // The number of each distinct coordinate's first place, by rank.
    let mut firsts: Vec<u32> = Vec::new();
    let mut positions: Vec<Vec<Edge>> = vec![Vec::new(); if spread.is_empty() { 0 } else { kernel }];
    let mut last = None;
    for at in sorted {
        let coord = spread[at as usize];
        if last != Some(coord) {
            firsts.push(at);
            last = Some(coord);
        }
        let (row, position) = (at as usize / kernel, at as usize % kernel);
        positions[position].push(((firsts.len() - 1) as u32, row as u32));
    }
    let mut by_place: Vec<u32> = (0..firsts.len() as u32).collect();
    by_place.par_sort_unstable_by_key(|rank| firsts[*rank as usize]);
    let coords: Vec<Coord> = by_place.iter().map(|rank| spread[firsts[*rank as usize] as usize]).collect();
    let mut rows = vec![0; firsts.len()];
    for (row, rank) in by_place.iter().enumerate() {
        rows[*rank as usize] = row as u32;
    }
    let active = coords.len();
    Ok((Support::new(coords, active, stride), Edges { positions: numbered(positions), rows }))
}

fn numbered(positions: Vec<Vec<Edge>>) -> Vec<(u32, Vec<Edge>)> {
    let numbered = positions.into_iter().enumerate().map(|(position, edges)| (position as u32, edges));
    numbered.filter(|(_, edges)| !edges.is_empty()).collect()
}

/// The generative relation: every row times every position, nothing dropped.
pub(super) fn generate(input: &Support, window: &Window) -> Result<(Arc<Support>, Edges), String> {
    let stride = finer(input.stride, window.stride)?;
    let (kernel, coords) = spread_coords(input, window)?;
    let count = coords.len();
    let of = |position: usize| (0..input.active).map(|row| ((row * kernel + position) as u32, row as u32)).collect();
    let positions = (0..if count == 0 { 0 } else { kernel }).map(of).collect();
    let rows = (0..count as u32).collect();
    Ok((Support::new(coords, count, stride), Edges { positions: numbered(positions), rows }))
}
