//! Pooling over windows and over batches, and trilinear upsampling.
//!
//! All of it computes in f32, adds in the order of kernel positions (over batches: of rows), and rounds once. A NaN is the
//! greatest of whatever it is among.

use super::Machine;
use super::conv::by_rank;
use super::edges::Edges;
use super::value::{Floats, Sparse, elements};
use crate::plan::{Relation, ValueId, Window};
use crate::schema::PoolMode;
use rayon::prelude::*;
use std::sync::Arc;

/// Ranks that one thread reduces at a time.
const BLOCK: usize = 64;

fn greater(a: f32, b: f32) -> f32 {
    if b > a || b.is_nan() { b } else { a }
}

/// What the edges into each rank come to: `channels` numbers that begin as `start`, and one that begins as zero. `take`
/// is given the kernel position and the row in.
fn reduce(
    edges: &Edges,
    channels: usize,
    start: f32,
    take: impl Fn(&mut [f32], u32, usize) + Sync,
) -> Result<Vec<f32>, String> {
    let width = channels + 1;
    let mut held = vec![start; elements(&[edges.rows.len(), width])?];
    held.par_chunks_mut(BLOCK * width).enumerate().for_each(|(block, held)| {
        held.iter_mut().skip(channels).step_by(width).for_each(|x| *x = 0.0);
        let (first, end) = (block * BLOCK, block * BLOCK + BLOCK);
        for (position, edges) in &edges.positions {
            let from = edges.partition_point(|edge| (edge.0 as usize) < first);
            for (rank, row) in edges.iter().skip(from).take_while(|edge| (edge.0 as usize) < end) {
                let at = (*rank as usize - first) * width;
                if let Some(held) = held.get_mut(at..at + width) {
                    take(held, *position, *row as usize);
                }
            }
        }
    });
    Ok(held)
}

/// The sum of rows, with their number or their weight behind it.
fn add(held: &mut [f32], row: &[f32], weight: f32) {
    if let Some((total, sums)) = held.split_last_mut() {
        sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += weight * x);
        *total += weight;
    }
}

impl Machine<'_> {
    /// `pool3d`: over the forward relation. A row that no edge reaches is 0, of `max` minus infinity.
    pub(super) fn pool(&mut self, input: ValueId, mode: PoolMode, window: &Window) -> Result<Sparse, String> {
        let input = self.sparse(input)?.clone();
        let (support, edges) = self.relate(Relation::Forward, window, &input.support, None)?;
        let channels = input.channels();
        let held = match mode {
            PoolMode::Max => reduce(&edges, channels, f32::NEG_INFINITY, |held, _, row| {
                held.iter_mut().zip(input.row(row)).for_each(|(most, x)| *most = greater(*most, *x));
            }),
            PoolMode::Sum | PoolMode::Avg => {
                reduce(&edges, channels, 0.0, |held, _, row| add(held, input.row(row), 1.0))
            }
        }?;
        finish(&input, support, &edges, &held, mode == PoolMode::Avg)
    }

    /// `pool_transpose3d`: the mean over the edges of a transposed relation, 0 where there is none.
    pub(super) fn pool_transpose(
        &mut self,
        input: ValueId,
        target: Option<ValueId>,
        window: &Window,
    ) -> Result<Sparse, String> {
        self.transposed_mean(input, target, window, |_| 1.0)
    }

    /// `trilinear_upsample3d`: the mean over a kernel of `2 s - 1`, weighted along each axis by
    /// `1 - |p - (s - 1)| / s`.
    pub(super) fn upsample(
        &mut self,
        input: ValueId,
        target: Option<ValueId>,
        stride: [i64; 3],
    ) -> Result<Sparse, String> {
        let is_small = stride.iter().all(|s| (1..=1 << 30).contains(s));
        let kernel_size = stride.map(|s| s.saturating_mul(2).saturating_sub(1));
        let volume = kernel_size.iter().try_fold(1i64, |n, k| n.checked_mul(*k));
        if !is_small || volume.is_none_or(|n| n > i64::from(i32::MAX)) {
            return Err(format!("stride is {stride:?}; expected numbers above 0 with less than 2^31 kernel positions"));
        }
        let window = Window { kernel_size, stride, padding: stride.map(|s| s - 1), dilation: [1; 3] };
        let [_, ky, kz] = kernel_size;
        self.transposed_mean(input, target, &window, |position| {
            let position = i64::from(position);
            let p = [position / (ky * kz), position / kz % ky, position % kz];
            let axes = p.iter().zip(stride).map(|(p, s)| 1.0 - (p - (s - 1)).abs() as f32 / s as f32);
            axes.product()
        })
    }

    fn transposed_mean(
        &mut self,
        input: ValueId,
        target: Option<ValueId>,
        window: &Window,
        weight: impl Fn(u32) -> f32 + Sync,
    ) -> Result<Sparse, String> {
        let input = self.sparse(input)?.clone();
        let target = target.map(|target| self.sparse(target).cloned()).transpose()?;
        let relation = if target.is_some() { Relation::TargetTransposed } else { Relation::Transposed };
        let target = target.as_ref().map(|target| &target.support);
        let (support, edges) = self.relate(relation, window, &input.support, target)?;
        let held = reduce(&edges, input.channels(), 0.0, |held, position, row| {
            add(held, input.row(row), weight(position));
        })?;
        finish(&input, support, &edges, &held, true)
    }

    /// `global_pool`: rows of one batch together. Active rows whose batch is not among the first `batch_size` are passed
    /// over.
    pub(super) fn global_pool(
        &mut self,
        input: ValueId,
        mode: PoolMode,
        batch_size: Option<u64>,
    ) -> Result<Floats, String> {
        let input = self.sparse(input)?;
        let active = input.support.active_coords();
        let greatest = active.iter().map(|coord| coord[0]).max();
        let all = greatest.map_or(0, |batch| (i64::from(batch) + 1).max(0) as u64);
        let batches = usize::try_from(batch_size.unwrap_or(all)).unwrap_or(usize::MAX);
        let channels = input.channels();
        let start = if mode == PoolMode::Max { f32::NEG_INFINITY } else { 0.0 };
        let mut held = vec![start; elements(&[batches, channels])?];
        elements(&[batches, channels.max(1)])?;
        let mut counts = vec![0u32; batches];
        for (row, coord) in active.iter().enumerate() {
            let Some(batch) = usize::try_from(coord[0]).ok().filter(|batch| *batch < batches) else { continue };
            counts[batch] += 1;
            let held = held.get_mut(batch * channels..(batch + 1) * channels).unwrap_or_default();
            for (held, x) in held.iter_mut().zip(input.row(row)) {
                *held = if mode == PoolMode::Max { greater(*held, *x) } else { *held + x };
            }
        }
        if mode == PoolMode::Max {
            if batches == 0 {
                return Err("max over no batch at all; expected an active row or a batch_size above 0".to_owned());
            }
            if let Some(batch) = counts.iter().position(|count| *count == 0) {
                return Err(format!("max over batch {batch}, which has no active row"));
            }
        }
        let is_mean = mode == PoolMode::Avg;
        Floats::by_rows(input.features.dtype, batches, channels, |batch, out| {
            let count = counts.get(batch).copied().unwrap_or(0);
            let divisor = if is_mean && count > 0 { count as f32 } else { 1.0 };
            let held = held.get(batch * channels..).unwrap_or_default();
            out.iter_mut().zip(held).for_each(|(out, x)| *out = x / divisor);
        })
    }
}

/// Rows of what was reduced, divided by its last number where that is asked for and not zero.
fn finish(
    input: &Sparse,
    support: Arc<super::coords::Support>,
    edges: &Edges,
    held: &[f32],
    is_mean: bool,
) -> Result<Sparse, String> {
    let channels = input.channels();
    let features = by_rank(&support, edges, channels, input.features.dtype, |at, channel| {
        let rank = (at - channel) / channels;
        let held = held.get(rank * (channels + 1)..).unwrap_or_default();
        let value = held.get(channel).copied().unwrap_or_default();
        match held.get(channels) {
            Some(total) if is_mean && *total != 0.0 => value / total,
            _ => value,
        }
    })?;
    Ok(Sparse { support, features: Arc::new(features) })
}
