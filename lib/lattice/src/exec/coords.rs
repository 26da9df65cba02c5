//! Coordinates of sparse rows, and how they are found.
//!
//! A support sorts its active rows by coordinate once. Whatever looks coordinates up walks two sorted lists side by side,
//! because moving or scaling every coordinate of a list keeps it sorted: no table is built, no order depends on chance or
//! on threads, and a list made to be slow is as fast as any other.

use rayon::prelude::*;
use std::sync::{Arc, OnceLock};

/// `batch, x, y, z`.
pub(super) type Coord = [i32; 4];

/// Most rows of a sparse value: their coordinates take 2 GiB.
pub(super) const MAX_ROWS: usize = 1 << 27;

/// Where the rows of a sparse value are.
#[derive(Debug)]
pub(super) struct Support {
    /// In units of the stride, of every row.
    pub coords: Vec<Coord>,
    /// Rows that count; the others are there and ignored.
    pub active: usize,
    /// What a unit is along x, y, z; above zero.
    pub stride: [i32; 3],
    sorted: OnceLock<Sorted>,
}

/// The active rows of a support in the order of their coordinates, equal ones in the order of the rows.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    /// Row of each rank.
    pub rows: Vec<u32>,
    /// Coordinate of each rank.
    pub coords: Vec<Coord>,
    /// Least and greatest along each axis.
    pub bounds: [(i32, i32); 4],
}

/// A number that is ordered as coordinates are.
pub(super) fn key(coord: &Coord) -> u128 {
    coord.iter().fold(0, |key, x| (key << 32) | u128::from((*x as u32) ^ 0x8000_0000))
}

/// A coordinate in units of 1.
pub(super) fn physical([batch, x, y, z]: Coord, stride: [i32; 3]) -> Option<Coord> {
    Some([batch, x.checked_mul(stride[0])?, y.checked_mul(stride[1])?, z.checked_mul(stride[2])?])
}

impl Support {
    /// A support of `active` rows and others behind them.
    pub fn new(coords: Vec<Coord>, active: usize, stride: [i32; 3]) -> Arc<Support> {
        Arc::new(Support { coords, active, stride, sorted: OnceLock::new() })
    }

    /// The active rows.
    pub fn active_coords(&self) -> &[Coord] {
        self.coords.get(..self.active).unwrap_or(&self.coords)
    }

    /// The active rows in order.
    pub fn sorted(&self) -> &Sorted {
        self.sorted.get_or_init(|| Sorted::new(self.active_coords()))
    }
}

/// The numbers below `count` by the coordinates that they stand for, equal ones by number.
pub(super) fn order(count: usize, bounds: &[(i32, i32); 4], coord: impl Fn(usize) -> Coord + Sync) -> Vec<u32> {
    let bits = |n: u64| u64::BITS - n.leading_zeros();
    let number = bits(count.saturating_sub(1) as u64);
    let widths = bounds.map(|(least, most)| bits(u64::from(most.abs_diff(least))));
    if widths.iter().sum::<u32>() + number <= u64::BITS {
        // Coordinate and number in one word, of which only the number is wanted afterwards.
        let word = |at: usize| {
            let c = coord(at);
            let axes = c.iter().zip(bounds).zip(widths);
            let packed = axes.fold(0u64, |word, ((x, (least, _)), width)| {
                word.checked_shl(width).unwrap_or(0) | u64::from(x.wrapping_sub(*least) as u32)
            });
            packed.checked_shl(number).unwrap_or(0) | at as u64
        };
        let mut words: Vec<u64> = (0..count).into_par_iter().map(word).collect();
        words.par_sort_unstable();
        let mask = 1u64.checked_shl(number).map_or(u64::MAX, |bit| bit - 1);
        return words.into_par_iter().map(|word| (word & mask) as u32).collect();
    }
    let split = |at: usize| {
        let key = key(&coord(at));
        ((key >> 64) as u64, key as u64, at as u32)
    };
    let mut entries: Vec<(u64, u64, u32)> = (0..count).into_par_iter().map(split).collect();
    entries.par_sort_unstable();
    entries.into_par_iter().map(|entry| entry.2).collect()
}

/// Least and greatest along each axis; zeros where there is nothing.
pub(super) fn bounds(coords: &[Coord]) -> [(i32, i32); 4] {
    let Some(first) = coords.first() else { return [(0, 0); 4] };
    let start = first.map(|x| (x, x));
    coords.iter().fold(start, |mut bounds, coord| {
        for ((least, most), x) in bounds.iter_mut().zip(coord) {
            *least = (*least).min(*x);
            *most = (*most).max(*x);
        }
        bounds
    })
}

impl Sorted {
    fn new(active: &[Coord]) -> Sorted {
        let bounds = bounds(active);
        let rows = order(active.len(), &bounds, |row| active[row]);
        let coords = rows.iter().map(|row| active[*row as usize]).collect();
        Sorted { rows, coords, bounds }
    }

    /// Two rows of one coordinate, if there are any: the first two of the least such coordinate.
    pub fn duplicate(&self) -> Option<(u32, u32)> {
        let at = self.coords.windows(2).position(|pair| pair[0] == pair[1])?;
        Some((self.rows[at], self.rows[at + 1]))
    }

    /// The first row that has a coordinate.
    pub fn find(&self, coord: &Coord) -> Option<u32> {
        let wanted = key(coord);
        let at = self.coords.partition_point(|each| key(each) < wanted);
        (self.coords.get(at)? == coord).then(|| self.rows[at])
    }

    /// For each rank of `queries`, in order, whose coordinate becomes one that is here: the rank, and the first row that
    /// has it. `change` keeps the order of those coordinates for which it gives one.
    pub fn join(&self, queries: &Sorted, change: impl Fn(&Coord) -> Option<Coord>) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        let mut at = 0;
        for (rank, query) in queries.coords.iter().enumerate() {
            let Some(wanted) = change(query) else { continue };
            let wanted = key(&wanted);
            while self.coords.get(at).is_some_and(|coord| key(coord) < wanted) {
                at += 1;
            }
            match self.coords.get(at) {
                None => break,
                Some(coord) if key(coord) == wanted => found.push((rank as u32, self.rows[at])),
                Some(_) => {}
            }
        }
        found
    }

    /// For each row of `queries`, the first row here of the same coordinate.
    pub fn matches(&self, queries: &Sorted) -> Vec<Option<u32>> {
        let mut matches = vec![None; queries.rows.len()];
        for (rank, row) in self.join(queries, |coord| Some(*coord)) {
            matches[queries.rows[rank as usize] as usize] = Some(row);
        }
        matches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_as_coordinates() {
        let edge = [i32::MIN, -1, 0, 1, i32::MAX];
        let coords: Vec<Coord> =
            edge.iter().flat_map(|b| edge.iter().flat_map(|x| edge.map(|z| [*b, *x, -*x.max(&-7), z]))).collect();
        for a in &coords {
            for b in &coords {
                assert_eq!(a.cmp(b), key(a).cmp(&key(b)), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn both_ways_of_sorting_give_first_rows_first() {
        let near: Vec<Coord> = vec![[0, 2, 0, 0], [0, -1, 5, 0], [0, 2, 0, 0], [0, -1, 4, 9], [1, 0, 0, 0]];
        assert_eq!(order(5, &bounds(&near), |at| near[at]), [3, 1, 0, 2, 4]);
        let mut far = near.clone();
        far.push([i32::MAX, i32::MIN, i32::MAX, i32::MIN]);
        far.push([i32::MIN, i32::MAX, i32::MIN, i32::MAX]);
        assert_eq!(order(7, &bounds(&far), |at| far[at]), [6, 3, 1, 0, 2, 4, 5]);
        let same = vec![[7; 4]; 3];
        assert_eq!(order(3, &bounds(&same), |at| same[at]), [0, 1, 2]);
        assert_eq!(order(0, &bounds(&[]), |_| [0; 4]), [0u32; 0]);
    }

    #[test]
    fn the_first_row_of_a_coordinate_is_found() {
        let support = Support::new(vec![[0, 5, 0, 0], [0, 1, 0, 0], [0, 5, 0, 0], [0, 9, 9, 9]], 3, [1; 3]);
        let sorted = support.sorted();
        assert_eq!(sorted.duplicate(), Some((0, 2)));
        assert_eq!((sorted.find(&[0, 5, 0, 0]), sorted.find(&[0, 9, 9, 9])), (Some(0), None));
        let moved = sorted.join(sorted, |c| Some([c[0], c[1] + 4, c[2], c[3]]));
        assert_eq!(moved, [(0, 0)]);
        assert_eq!(sorted.matches(sorted), [Some(0), Some(1), Some(0)]);
    }
}
