//! Small random scenes, the same on every run.

use std::collections::HashSet;

/// A generator of numbers (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From `least` to `most`, both included.
    pub fn int(&mut self, least: i32, most: i32) -> i32 {
        least + (self.next() % (most - least + 1) as u64) as i32
    }

    /// Whole numbers from -4 to 4.
    pub fn whole(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.int(-4, 4) as f32).collect()
    }

    /// Numbers from -range to range.
    pub fn reals(&mut self, count: usize, range: f32) -> Vec<f32> {
        (0..count).map(|_| ((self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0) * range).collect()
    }

    /// Distinct coordinates of two batches, in a random order; each axis from `-reach` to `reach`, times `stride`.
    pub fn coords(&mut self, count: usize, reach: i32, stride: [i64; 3]) -> Vec<[i32; 4]> {
        let mut seen = HashSet::new();
        let mut coords = Vec::new();
        while coords.len() < count {
            let coord = [self.int(0, 1), self.int(-reach, reach), self.int(-reach, reach), self.int(-reach, reach)];
            if seen.insert(coord) {
                let s = stride.map(|n| n as i32);
                coords.push([coord[0], coord[1] * s[0], coord[2] * s[1], coord[3] * s[2]]);
            }
        }
        coords
    }
}
