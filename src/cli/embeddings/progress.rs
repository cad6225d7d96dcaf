//! The progress of a build of vectors: chunks, rate and remaining time, as a bar on a terminal and as a line a minute elsewhere.

use std::convert::Infallible;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fetchwell_core::saturate::saturated;
use fetchwell_core::terminal::output::note;
use fetchwell_embedding::EmbeddingModel;
use fetchwell_source::contract::BuildProgress;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::cli::print::grouped;

/// Interval of the lines that are printed where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(60);

/// Interval between two updates of the bar's times.
const TICK: Duration = Duration::from_millis(250);

/// Time without a batch after which the user is told that a service does not answer.
const SILENCE: Duration = Duration::from_secs(10);

/// Number of chunks of a build, and of those that are done.
pub(super) struct Progress {
    bar: ProgressBar,
    chunks: u64,
    done: AtomicU64,
    started: Instant,
    /// True if the model is a service, which may not answer. A model in a folder is at work, however slow it is.
    is_service: bool,
}

/// One line about the progress.
struct ProgressLine {
    done: u64,
    chunks: u64,
    elapsed: Duration,
}

impl Progress {
    /// Begins a build of `chunks`. The bar is visible only if standard error is a terminal.
    pub(super) fn begin(chunks: usize, model: &dyn EmbeddingModel) -> Self {
        let chunks = count(chunks);
        let bar = ProgressBar::new(chunks);
        let template = "{bar:30} {pos}/{len} chunks, {per_sec}, {elapsed} elapsed, {eta} left";
        let bar = match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style),
            Err(_template) => bar,
        };
        if !bar.is_hidden() {
            bar.enable_steady_tick(TICK);
        }
        let (done, started) = (AtomicU64::new(0), Instant::now());
        Self { bar, chunks, done, started, is_service: model.is_service() }
    }

    /// Reports what is done.
    pub(super) fn report(&self, done: BuildProgress) {
        let done = count(done.chunks);
        self.done.store(done, Ordering::Relaxed);
        self.bar.set_position(done);
    }

    /// Prints the lines of a build until it ends.
    pub(super) async fn print_lines(&self) -> Infallible {
        self.write_lines(|line| self.bar.suspend(|| note(&line))).await
    }

    /// Removes the bar.
    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }

    async fn write_lines(&self, write: impl Fn(String)) -> Infallible {
        let mut seconds = interval(Duration::from_secs(1));
        seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut line_at, mut last_batch, mut is_told) = (self.started, (0, self.started), false);
        loop {
            let now = seconds.tick().await;
            let done = self.done.load(Ordering::Relaxed);
            if done != last_batch.0 {
                (last_batch, is_told) = ((done, now), false);
            }
            if self.is_service && !is_told && now - last_batch.1 >= SILENCE {
                is_told = true;
                write(format!(
                    "the embedding service has answered nothing for {} seconds; it is asked for up to 5 minutes (Ctrl-C stops, \
                     and what is embedded is kept)",
                    SILENCE.as_secs()
                ));
            }
            if self.bar.is_hidden() && now - line_at >= LINE_EVERY {
                line_at = now;
                let (chunks, elapsed) = (self.chunks, now - self.started);
                write(ProgressLine { done, chunks, elapsed }.to_string());
            }
        }
    }
}

/// Formats `1,280 of 9,000 chunks embedded, 21 a second, 6 minutes left`.
impl fmt::Display for ProgressLine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { done, chunks, elapsed } = *self;
        write!(formatter, "{} of {} chunks embedded", grouped(done), grouped(chunks))?;
        if done == 0 {
            return write!(formatter, " in {}", HumanDuration(elapsed));
        }
        let millis = saturated::<u64>(elapsed.as_millis()).max(1);
        let tenths = scaled(done, 10_000, millis);
        match (tenths / 10, tenths % 10) {
            (0, 0) => write!(formatter, ", less than 0.1 a second")?,
            (whole @ 0..10, tenth) => write!(formatter, ", {whole}.{tenth} a second")?,
            (whole, _) => write!(formatter, ", {} a second", grouped(whole))?,
        }
        let left = Duration::from_millis(scaled(chunks.saturating_sub(done), millis, done));
        write!(formatter, ", {} left", HumanDuration(left))
    }
}

/// Returns `number * factor / divisor`, or the largest number if that is too large.
fn scaled(number: u64, factor: u64, divisor: u64) -> u64 {
    let product = u128::from(number) * u128::from(factor);
    saturated::<u64>(product / u128::from(divisor.max(1)))
}

pub(super) fn count(number: usize) -> u64 {
    saturated::<u64>(number)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tokio::time::sleep;

    use super::*;

    #[test]
    fn lines_have_chunks_rate_and_remaining_time() {
        for (done, chunks, seconds, expect) in [
            (0, 9_000, 60, "0 of 9,000 chunks embedded in 60 seconds"),
            (1_280, 9_000, 60, "1,280 of 9,000 chunks embedded, 21 a second, 6 minutes left"),
            (90, 100_000, 60, "90 of 100,000 chunks embedded, 1.5 a second, 19 hours left"),
            (1, 2, 60, "1 of 2 chunks embedded, less than 0.1 a second, 60 seconds left"),
            (7, 7, 0, "7 of 7 chunks embedded, 7,000 a second, 0 seconds left"),
            (u64::MAX, u64::MAX, 1, ""),
            (1, u64::MAX, u64::MAX / 1_000, ""),
        ] {
            let line = ProgressLine { done, chunks, elapsed: Duration::from_secs(seconds) }.to_string();
            assert!(line == expect || expect.is_empty(), "{line}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slow_models_in_folders_are_not_called_silent() {
        let first = "0 of 100 chunks embedded in 60 seconds";
        let second = "50 of 100 chunks embedded, 0.4 a second, 2 minutes left";
        for (is_service, expect) in [
            (false, vec![first, second]),
            (
                true,
                vec!["the embedding service has answered nothing", first, "the embedding service", second],
            ),
        ] {
            let progress = Progress {
                bar: ProgressBar::hidden(),
                chunks: 100,
                done: AtomicU64::new(0),
                started: Instant::now(),
                is_service,
            };
            let lines = RefCell::new(Vec::new());
            let work = async {
                sleep(Duration::from_secs(90)).await;
                progress.report(BuildProgress { chunks: 50, ..BuildProgress::default() });
                sleep(Duration::from_secs(35)).await;
            };
            tokio::select! {
                () = work => {}
                never = progress.write_lines(|line| lines.borrow_mut().push(line)) => match never {},
            }
            let lines = lines.into_inner();
            assert_eq!(lines.len(), expect.len(), "{lines:?}");
            for (line, start) in lines.iter().zip(expect) {
                assert!(line.starts_with(start), "{lines:?}");
            }
        }
    }
}
