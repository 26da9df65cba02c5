//! Statistics of samples, as NumPy computes them, so that tables agree with ExecuTorch's own inspector to the last digit.

/// Above this many numbers a sum is split in two.
const PAIRWISE_BLOCK: usize = 128;

/// What a table says of an event's samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Tenth percentile.
    pub p10: f64,
    /// Median.
    pub p50: f64,
    /// Ninetieth percentile.
    pub p90: f64,
    /// Mean.
    pub avg: f64,
    /// Least.
    pub min: f64,
    /// Greatest.
    pub max: f64,
}

impl Summary {
    /// The summary of samples; none where there are none.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Summary {
            p10: percentile(&sorted, 0.1)?,
            p50: percentile(&sorted, 0.5)?,
            p90: percentile(&sorted, 0.9)?,
            avg: mean(samples)?,
            min: *sorted.first()?,
            max: *sorted.last()?,
        })
    }
}

/// The quantile `q` of sorted numbers, between neighbours by linear interpolation from the nearer end.
pub fn percentile(sorted: &[f64], q: f64) -> Option<f64> {
    let place = sorted.len().checked_sub(1)? as f64 * q;
    let (below, part) = (place.floor() as usize, place - place.floor());
    let low = *sorted.get(below)?;
    let high = *sorted.get(below + 1).unwrap_or(&low);
    Some(if part >= 0.5 { high - (high - low) * (1.0 - part) } else { low + (high - low) * part })
}

/// The median of numbers in any order.
pub fn median(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    percentile(&sorted, 0.5)
}

/// The median of distances from the median.
pub fn median_deviation(numbers: &[f64]) -> Option<f64> {
    let middle = median(numbers)?;
    median(&numbers.iter().map(|x| (x - middle).abs()).collect::<Vec<_>>())
}

/// The mean, from a pairwise sum.
pub fn mean(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| sum(numbers) / numbers.len() as f64)
}

/// The sum with eight running sums for each block, and halves above that: the order in which NumPy adds.
pub fn sum(numbers: &[f64]) -> f64 {
    if numbers.len() < 8 {
        return numbers.iter().fold(0.0, |sum, x| sum + x);
    }
    if numbers.len() > PAIRWISE_BLOCK {
        let half = numbers.len() / 2 / 8 * 8;
        let (left, right) = numbers.split_at(half);
        return sum(left) + sum(right);
    }
    let (whole, rest) = numbers.as_chunks::<8>();
    let mut lanes = [0.0; 8];
    for chunk in whole {
        lanes.iter_mut().zip(chunk).for_each(|(lane, x)| *lane += x);
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    rest.iter().fold(((a + b) + (c + d)) + ((e + f) + (g + h)), |sum, x| sum + x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_interpolate_from_the_nearer_end() {
        // NumPy 2.4: np.percentile([0.023545, 0.00033, 0.00018], [10, 50, 90])
        let summary = Summary::of(&[0.023545, 0.00033, 0.00018]).expect("three samples");
        assert_eq!((summary.p10, summary.p50, summary.p90), (0.00021, 0.00033, 0.018902000000000002));
        assert_eq!(summary.avg, 0.008018333333333334);
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(percentile(&[4.0], 0.9), Some(4.0));
    }

    #[test]
    fn deviations_are_from_the_median() {
        assert_eq!(median(&[5.0, 1.0, 3.0, 100.0]), Some(4.0));
        assert_eq!(median_deviation(&[1.0, 2.0, 3.0, 100.0]), Some(1.0));
    }

    #[test]
    fn sums_of_any_length_are_sums() {
        for len in [0usize, 1, 7, 8, 9, 127, 128, 129, 1000, 4097] {
            let numbers: Vec<f64> = (0..len).map(|x| x as f64).collect();
            assert_eq!(sum(&numbers), (len * len.saturating_sub(1) / 2) as f64, "{len} numbers");
        }
    }
}
