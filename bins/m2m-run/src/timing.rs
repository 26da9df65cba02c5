//! How long compiling and executing take, in seconds of this process's processor time, all threads together.

use rustix::time::{ClockId, clock_gettime};
use std::fmt;

/// Processor seconds of this process until now.
fn now() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// What `work` returns, and what it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let begin = now();
    let result = work();
    (result, now() - begin)
}

/// Times of a run that is repeated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// What comes before the first execution.
    pub prepare: f64,
    /// Each execution.
    pub runs: Vec<f64>,
    /// Each execution by the clock, of an engine with threads of its own: what more threads make less.
    pub by_clock: Vec<f64>,
    /// Nodes of the graph that is executed; none for a module.
    pub nodes: Option<usize>,
}

/// The least of some seconds, in milliseconds.
fn least_ms(seconds: &[f64]) -> f64 {
    seconds.iter().copied().fold(f64::INFINITY, f64::min) * 1e3
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (prepare, least, runs) = (self.prepare * 1e3, least_ms(&self.runs), self.runs.len());
        write!(f, "prepared in {prepare:.3} ms, executed {runs} times in {least:.3} ms at least")?;
        match self.nodes {
            Some(nodes) if nodes > 0 => write!(f, ", {:.3} us a node, of processor time", least * 1e3 / nodes as f64)?,
            _ => f.write_str(", of processor time")?,
        }
        match self.by_clock.is_empty() {
            true => Ok(()),
            false => write!(f, "; {:.3} ms at least by the clock", least_ms(&self.by_clock)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_the_runs_counts() {
        let times = Times { prepare: 0.5, runs: vec![0.004, 0.002, 0.003], by_clock: vec![], nodes: Some(4) };
        let shown =
            "prepared in 500.000 ms, executed 3 times in 2.000 ms at least, 500.000 us a node, of processor time";
        assert_eq!(times.to_string(), shown);
        let times = Times { by_clock: vec![0.003, 0.001, 0.002], nodes: None, ..times };
        let shown = "prepared in 500.000 ms, executed 3 times in 2.000 ms at least, of processor time; 1.000 ms at least by the clock";
        assert_eq!(times.to_string(), shown);
    }

    #[test]
    fn work_takes_time() {
        let (sum, seconds) = timed(|| (0..1_000_000u64).fold(0, |sum, n| std::hint::black_box(sum ^ n)));
        assert!(std::hint::black_box(sum) < 1 << 20);
        assert!(seconds > 0.0);
    }
}
