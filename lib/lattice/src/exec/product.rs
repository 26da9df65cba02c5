//! Sums of products over edges, which convolutions and linear layers are.
//!
//! Every element of the result is one f32 sum, taken over kernel positions in order, in each over edges in order and in
//! each of those over input channels in order; each product is rounded, then added. That order depends neither on threads
//! nor on how rows are put together, so results are the same everywhere. Channels out lie in panels of [`LANES`], which is
//! what lets a compiler compute several at a time without changing any sum.

use super::edges::{Edge, Edges};
use super::value::elements;
use rayon::prelude::*;

/// Channels out that are computed together.
const LANES: usize = 8;

/// Rows that are computed together where a panel is read.
const TOGETHER: usize = 4;

/// Ranks whose sums one thread holds at a time.
const BLOCK: usize = 64;

/// A weight in the order in which products read it: position, panel of channels out, channel in, channel of the panel.
pub(super) struct Kernel {
    pub channels_in: usize,
    pub channels_out: usize,
    positions: usize,
    values: Vec<f32>,
}

impl Kernel {
    /// Takes each element from `element(position, out, in)`.
    pub fn new(
        [positions, channels_out, channels_in]: [usize; 3],
        element: impl Fn(usize, usize, usize) -> f32 + Sync,
    ) -> Result<Kernel, String> {
        let width = channels_out.next_multiple_of(LANES);
        let mut values = vec![0.0f32; elements(&[positions, width, channels_in])?];
        let panel = (channels_in * LANES).max(1);
        let panels = width / LANES;
        values.par_chunks_mut(panel).enumerate().for_each(|(index, values)| {
            let (position, first) = (index / panels, index % panels * LANES);
            for (at, value) in values.iter_mut().enumerate() {
                let (channel, out) = (at / LANES, first + at % LANES);
                if out < channels_out {
                    *value = element(position, out, channel);
                }
            }
        });
        Ok(Kernel { channels_in, channels_out, positions, values })
    }

    /// The sum over channels in of the squares, for each position and channel out: what a row of ones gives of the
    /// squared weight.
    pub fn energy(&self) -> Result<Kernel, String> {
        let (panels, panel) = (self.width() / LANES, self.channels_in * LANES);
        Kernel::new([self.positions, self.channels_out, 1], |position, out, _| {
            let start = (position * panels + out / LANES) * panel + out % LANES;
            let values = self.values.get(start..).unwrap_or_default().iter().step_by(LANES);
            values.take(self.channels_in).fold(0.0, |sum, w| sum + w * w)
        })
    }

    /// Channels out with those that fill the last panel.
    fn width(&self) -> usize {
        self.channels_out.next_multiple_of(LANES)
    }

    fn panel(&self, position: usize, panel: usize) -> &[[f32; LANES]] {
        let size = self.channels_in * LANES;
        let start = (position * (self.width() / LANES) + panel) * size;
        self.values.get(start..start + size).unwrap_or_default().as_chunks().0
    }

    /// Adds what some rows give through a position: `edges` by their place in `sums`.
    fn add(&self, position: usize, edges: &[Edge], features: &[f32], first: usize, sums: &mut [f32]) {
        let row = |edge: &Edge| {
            let start = edge.1 as usize * self.channels_in;
            features.get(start..start + self.channels_in).unwrap_or_default()
        };
        let width = self.width();
        for panel in 0..width / LANES {
            let weights = self.panel(position, panel);
            let place = |edge: &Edge| (edge.0 as usize - first) * width + panel * LANES;
            let mut rest = edges;
            while let [a, b, c, d, tail @ ..] = rest {
                if a.0 == b.0 || b.0 == c.0 || c.0 == d.0 {
                    break;
                }
                let places = [place(a), place(b), place(c), place(d)];
                together(weights, [row(a), row(b), row(c), row(d)], places, sums);
                rest = tail;
            }
            for edge in rest {
                alone(weights, row(edge), place(edge), sums);
            }
        }
    }
}

/// The sums of a panel at a place.
fn lanes(sums: &[f32], place: usize) -> [f32; LANES] {
    sums.get(place..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default()
}

fn set_lanes(sums: &mut [f32], place: usize, values: [f32; LANES]) {
    if let Some(slot) = sums.get_mut(place..).and_then(|rest| rest.first_chunk_mut()) {
        *slot = values;
    }
}

/// Adds the products of four rows, whose sums are in four places.
fn together(weights: &[[f32; LANES]], rows: [&[f32]; TOGETHER], places: [usize; TOGETHER], sums: &mut [f32]) {
    let mut held = places.map(|place| lanes(sums, place));
    let [a, b, c, d] = rows;
    for ((((w, a), b), c), d) in weights.iter().zip(a).zip(b).zip(c).zip(d) {
        let x = [*a, *b, *c, *d];
        for row in 0..TOGETHER {
            for lane in 0..LANES {
                held[row][lane] += x[row] * w[lane];
            }
        }
    }
    for (place, values) in places.into_iter().zip(held) {
        set_lanes(sums, place, values);
    }
}

fn alone(weights: &[[f32; LANES]], row: &[f32], place: usize, sums: &mut [f32]) {
    let mut held = lanes(sums, place);
    for (w, x) in weights.iter().zip(row) {
        for lane in 0..LANES {
            held[lane] += x * w[lane];
        }
    }
    set_lanes(sums, place, held);
}

/// The sums of every rank: `[ranks, channels out]`, for features `[rows, channels in]`.
pub(super) fn sums(features: &[f32], edges: &Edges, kernel: &Kernel) -> Result<Vec<f32>, String> {
    let (ranks, width) = (edges.rows.len(), kernel.width());
    let mut sums = vec![0.0f32; elements(&[ranks, width])?];
    if width > 0 {
        sums.par_chunks_mut(BLOCK * width).enumerate().for_each(|(block, sums)| {
            let (first, end) = (block * BLOCK, (block * BLOCK + BLOCK) as u32);
            for (position, edges) in &edges.positions {
                let start = edges.partition_point(|edge| (edge.0 as usize) < first);
                let edges = edges.get(start..).unwrap_or_default();
                let count = edges.partition_point(|edge| edge.0 < end);
                kernel.add(*position as usize, edges.get(..count).unwrap_or_default(), features, first, sums);
            }
        });
    }
    Ok(without_filling(sums, kernel))
}

/// The product of a matrix `[rows, channels in]` with a kernel of one position: `[rows, channels out]`.
pub(super) fn matrix(features: &[f32], rows: usize, kernel: &Kernel) -> Result<Vec<f32>, String> {
    let width = kernel.width();
    let mut sums = vec![0.0f32; elements(&[rows, width])?];
    if width > 0 {
        sums.par_chunks_mut(BLOCK * width).enumerate().for_each(|(block, sums)| {
            let first = block * BLOCK;
            let edges: Vec<Edge> = (first..first + sums.len() / width).map(|row| (row as u32, row as u32)).collect();
            kernel.add(0, &edges, features, first, sums);
        });
    }
    Ok(without_filling(sums, kernel))
}

/// Drops the channels that fill the last panel.
fn without_filling(sums: Vec<f32>, kernel: &Kernel) -> Vec<f32> {
    let (width, channels) = (kernel.width(), kernel.channels_out);
    if width == channels {
        return sums;
    }
    sums.par_chunks(width).flat_map_iter(|row| row.get(..channels).unwrap_or_default().iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small whole numbers, so that every order of summation gives the same and the test is exact.
    fn whole(seed: usize) -> f32 {
        (seed * 7919 % 13) as f32 - 6.0
    }

    #[test]
    fn panels_and_blocks_of_every_size_add_up() {
        for (channels_in, channels_out, ranks) in [(1, 1, 1), (3, 5, 70), (4, 8, 64), (2, 17, 131), (0, 3, 2)] {
            let kernel =
                Kernel::new([2, channels_out, channels_in], |k, o, i| whole(k * 101 + o * 31 + i)).expect("small");
            let features: Vec<f32> = (0..ranks * channels_in).map(whole).collect();
            // Every rank from the row of its mirror, and two edges into some ranks.
            let first = (0..ranks).map(|rank| (rank as u32, (ranks - 1 - rank) as u32)).collect();
            let second = (0..ranks).flat_map(|rank| vec![(rank as u32, rank as u32); rank % 3]).collect();
            let edges = Edges { positions: vec![(0, first), (1, second)], rows: (0..ranks as u32).collect() };
            let found = sums(&features, &edges, &kernel).expect("small");
            let mut expected = vec![0.0; ranks * channels_out];
            for (position, edges) in &edges.positions {
                for (rank, row) in edges {
                    for out in 0..channels_out {
                        for channel in 0..channels_in {
                            let w = whole(*position as usize * 101 + out * 31 + channel);
                            expected[*rank as usize * channels_out + out] +=
                                features[*row as usize * channels_in + channel] * w;
                        }
                    }
                }
            }
            assert_eq!(found, expected, "{channels_in} {channels_out} {ranks}");
        }
    }
}
