//! The progress of a download: a bar on a terminal, and a line for each tenth elsewhere.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fetchwell_core::terminal::output::note;
use fetchwell_embedding::InstallProgress;
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::print::grouped;

/// Interval between two updates of the bar's times.
const TICK: Duration = Duration::from_millis(250);

/// Progress of the download of a model.
pub(super) struct DownloadProgress {
    name: String,
    bar: ProgressBar,
    /// Tenths of the model that were printed, and one more once the download has begun.
    printed: AtomicU64,
}

impl DownloadProgress {
    /// Creates the progress of a model. Nothing is printed before its first report.
    pub(super) fn new(name: String) -> Self {
        let bar = ProgressBar::new(0);
        let template = "{bar:30} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left";
        let bar = match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style),
            Err(_template) => bar,
        };
        Self { name, bar, printed: AtomicU64::new(0) }
    }

    /// Reports what is on the disk.
    pub(super) fn report(&self, progress: InstallProgress) {
        let InstallProgress { done, total } = progress;
        let tenth = (done.saturating_mul(10) / total.max(1)).min(10);
        let printed = self.printed.fetch_max(tenth + 1, Ordering::Relaxed);
        if printed == 0 {
            note(&format_args!("downloading {}, {} bytes", self.name, grouped(total)));
            self.bar.set_length(total);
            // Bytes of an earlier attempt do not count for the rate.
            self.bar.set_position(done);
            self.bar.reset_eta();
            if !self.bar.is_hidden() {
                self.bar.enable_steady_tick(TICK);
            }
        } else if self.bar.is_hidden() && printed <= tenth {
            note(&format_args!("{} of {} bytes", grouped(done), grouped(total)));
        }
        self.bar.set_position(done);
    }

    /// Removes the bar.
    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
