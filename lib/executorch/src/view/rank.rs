//! The rank-sum test of Mann, Whitney and Wilcoxon: how likely two samples of one distribution differ in rank as much as
//! these do. It asks nothing of the distribution, so that a slow first run or a long tail does no harm.

/// Up to this many numbers in both samples the probability is counted out; above it, the normal distribution is near enough.
const EXACT: usize = 40;

/// The two-sided probability; 1 where a sample is empty.
pub(super) fn probability(a: &[f64], b: &[f64]) -> f64 {
    let (n, m) = (a.len(), b.len());
    if n == 0 || m == 0 {
        return 1.0;
    }
    let ranks = doubled_ranks(a, b);
    let sum: u64 = ranks[..n].iter().sum();
    if n + m <= EXACT { exact(&ranks, n, sum) } else { normal(&ranks, n, sum) }
}

/// The least probability that samples of these sizes can have.
pub(super) fn least(n: usize, m: usize) -> f64 {
    // Two of all ways to choose which ranks are the first sample's are the extreme ones.
    let ways = (1..=n.min(m)).fold(1.0, |ways, k| ways * ((n + m - k + 1) as f64) / k as f64);
    (2.0 / ways).min(1.0)
}

/// Twice the rank of each number, equal ones sharing theirs: integers, so that sums are exact.
fn doubled_ranks(a: &[f64], b: &[f64]) -> Vec<u64> {
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|i, j| all[*i].total_cmp(&all[*j]));
    let mut ranks = vec![0; all.len()];
    let mut first = 0;
    while first < order.len() {
        let same = order[first..].iter().take_while(|at| all[**at] == all[order[first]]).count().max(1);
        // Ranks count from 1: the mean of first + 1 up to first + same, doubled.
        order[first..first + same].iter().for_each(|at| ranks[*at] = (2 * first + same + 1) as u64);
        first += same;
    }
    ranks
}

/// Counts in how many of all choices of `n` ranks the sum is at least as far from its mean.
fn exact(ranks: &[u64], n: usize, sum: u64) -> f64 {
    let all: u64 = ranks.iter().sum();
    // ways[k][s]: choices of k ranks with the sum s.
    let mut ways = vec![vec![0.0_f64; all as usize + 1]; n + 1];
    ways[0][0] = 1.0;
    for rank in ranks.iter().map(|rank| *rank as usize) {
        for k in (1..=n).rev() {
            let (less, here) = ways.split_at_mut(k);
            for s in (rank..=all as usize).rev() {
                here[0][s] += less[k - 1][s - rank];
            }
        }
    }
    // Distances from the mean n/N of all, times N, in integers.
    let count = ranks.len() as i128;
    let distance = |s: u64| (i128::from(s) * count - n as i128 * i128::from(all)).abs();
    let found = distance(sum);
    let total: f64 = ways[n].iter().sum();
    let extreme: f64 = ways[n].iter().enumerate().filter(|(s, _)| distance(*s as u64) >= found).map(|(_, x)| x).sum();
    (extreme / total).min(1.0)
}

/// The normal distribution with the variance that ties leave, and half a step of correction.
fn normal(ranks: &[u64], n: usize, sum: u64) -> f64 {
    let (count, n) = (ranks.len() as f64, n as f64);
    let mean = n * (count + 1.0) / 2.0;
    let middle = (count + 1.0) / 2.0;
    let spread: f64 = ranks.iter().map(|rank| (*rank as f64 / 2.0 - middle).powi(2)).sum();
    let variance = n * (count - n) / (count * (count - 1.0)) * spread;
    if variance == 0.0 {
        return 1.0;
    }
    let distance = ((sum as f64 / 2.0 - mean).abs() - 0.5).max(0.0);
    erfc(distance / variance.sqrt() / std::f64::consts::SQRT_2).min(1.0)
}

/// The complementary error function for `x` of at least 0: the series of erf where it is short, else the continued fraction.
fn erfc(x: f64) -> f64 {
    if x < 2.0 {
        let (mut term, mut sum, mut k) = (x, x, 0.0);
        while term.abs() > 1e-17 * sum.abs() {
            k += 1.0;
            term *= -x * x / k;
            sum += term / (2.0 * k + 1.0);
        }
        return 1.0 - std::f64::consts::FRAC_2_SQRT_PI * sum;
    }
    let tail = (1..=60).rev().fold(x, |tail, k| x + f64::from(k) / 2.0 / tail);
    (-x * x).exp() / tail / std::f64::consts::PI.sqrt()
}

/// Holm's correction: what each probability is worth when so many are looked at.
pub(super) fn corrected(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|i, j| probabilities[*i].total_cmp(&probabilities[*j]));
    let mut out = vec![1.0; probabilities.len()];
    let mut most: f64 = 0.0;
    for (before, at) in order.iter().enumerate() {
        most = most.max((probabilities[*at] * (probabilities.len() - before) as f64).min(1.0));
        out[*at] = most;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-9 * expected.max(1e-3), "{found} is not {expected}");
    }

    #[test]
    fn small_samples_are_counted_out() {
        // All of 20 choices of three ranks of six: two are as extreme as {1,2,3}.
        near(probability(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), 0.1);
        near(least(3, 3), 0.1);
        // {1,2,4}: sums 6, 7, 14, 15 are as extreme, one choice each.
        near(probability(&[1.0, 2.0, 4.0], &[3.0, 5.0, 6.0]), 0.2);
        near(probability(&[1.0], &[2.0, 3.0]), 2.0 / 3.0);
        near(probability(&[5.0, 5.0], &[5.0, 5.0]), 1.0);
        // Ranks 1.5, 1.5 | 3, 4: of six choices of two, {1.5, 1.5} and {3, 4} are extreme.
        near(probability(&[1.0, 1.0], &[2.0, 3.0]), 1.0 / 3.0);
        near(probability(&[], &[1.0]), 1.0);
    }

    #[test]
    fn large_samples_are_nearly_normal() {
        // 0..30 against 10..40, twenty ranks tied in pairs: rank sum 715 of a mean 915, variance 30 * 30 / 12 *
        // (61 - 20 * 6 / (60 * 59)), by Python's math.erfc.
        let a: Vec<f64> = (0..30).map(f64::from).collect();
        let b: Vec<f64> = (10..40).map(f64::from).collect();
        near(probability(&a, &b), 0.00022448380595775665);
    }

    #[test]
    fn the_error_function_is_right() {
        // Abramowitz and Stegun, table 7.1, and erfc(3) from its asymptotic expansion.
        near(erfc(0.0), 1.0);
        near(erfc(0.5), 0.4795001221869535);
        near(erfc(1.0), 0.15729920705028513);
        near(erfc(3.0), 2.209_049_699_858_544e-5);
    }

    #[test]
    fn many_looks_cost_confidence() {
        assert_eq!(corrected(&[0.01, 0.04, 0.03]), [0.03, 0.06, 0.06]);
        assert_eq!(corrected(&[0.5, 0.9]), [1.0, 1.0]);
    }
}
