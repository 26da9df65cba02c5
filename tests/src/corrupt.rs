//! Damages bytes in the ways that files are damaged: bits flip, ends go missing, stretches are blanked, repeated or
//! exchanged. A seed says everything, so that a find can be made again.

use crate::weights::splitmix64;

/// A source of numbers for one corruption.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = splitmix64(self.0);
        (self.0 % limit.max(1) as u64) as usize
    }

    /// A stretch of at most 64 bytes inside `len`.
    fn stretch(&mut self, len: usize) -> std::ops::Range<usize> {
        let start = self.below(len);
        start..len.min(start + 1 + self.below(64))
    }
}

/// Damaged bytes, never equal to the given ones unless those are empty.
pub fn damage(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut numbers = Numbers(splitmix64(seed));
    loop {
        let mut bad = bytes.to_vec();
        match numbers.below(8) {
            0 => bad.truncate(numbers.below(bytes.len())),
            1 => bad[numbers.stretch(bytes.len())].fill(0),
            2 => {
                let range = numbers.stretch(bytes.len());
                let copy = bytes[range].to_vec();
                let at = numbers.below(bytes.len());
                bad.splice(at..at, copy);
            }
            3 => drop(bad.drain(numbers.stretch(bytes.len()))),
            4 => {
                let (left, right) = (numbers.below(bytes.len()), numbers.below(bytes.len()));
                bad.swap(left, right);
            }
            5 => {
                let at = numbers.below(bytes.len());
                bad[at] = [0, 1, 0x7F, 0x80, 0xFF][numbers.below(5)];
            }
            _ => {
                for _ in 0..=numbers.below(4) {
                    let at = numbers.below(bytes.len());
                    bad[at] ^= 1 << numbers.below(8);
                }
            }
        }
        if bad != bytes || bytes.is_empty() {
            return bad;
        }
        numbers.0 = numbers.0.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_damage_and_damage_is_one() {
        let bytes: Vec<u8> = (0..200).collect();
        for seed in 0..500 {
            let bad = damage(&bytes, seed);
            assert_ne!(bad, bytes, "seed {seed}");
            assert_eq!(bad, damage(&bytes, seed), "seed {seed}");
        }
    }
}
