//! A progress bar for long work: only on a terminal, only after a second, never with `--quiet`.

use crate::Messages;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// Counts bytes done; may be shared by threads.
#[derive(Debug)]
pub struct Progress {
    label: String,
    total: u64,
    done: AtomicU64,
    start: Instant,
    is_shown: bool,
    bar: OnceLock<ProgressBar>,
}

impl Progress {
    /// Work of `total` bytes, called `label`.
    pub fn new(messages: &Messages, label: impl Into<String>, total: u64) -> Self {
        let is_shown = !messages.is_quiet() && std::io::stderr().is_terminal();
        let (done, start) = (AtomicU64::new(0), Instant::now());
        Progress { label: label.into(), total, done, start, is_shown, bar: OnceLock::new() }
    }

    /// Says that `bytes` more are done.
    pub fn advance(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if self.is_shown && self.start.elapsed() >= PATIENCE {
            self.bar.get_or_init(|| self.draw()).set_position(done);
        }
    }

    fn draw(&self) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(Some(self.total), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(self.label.clone());
        bar
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}
