//! Runs synchronizations on a thread that a signal stops.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fetchwell_connectors::{ImportError, PARSER_STACK_BYTES, Synchronization};
use fetchwell_core::terminal::output::note;
use fetchwell_source::SyncStore;
use fetchwell_source::contract::RememberedImport;
use fetchwell_sqlite::is_store_locked;
use tokio::sync::oneshot;

use super::super::rejections::{Progress, Rejections, ReportFile};
use super::report::SyncReport;
use crate::app::failure::Failure;
use crate::app::stop;

/// Interval at which a command looks whether another process still holds the lock of the store.
const LOCK_POLL: Duration = Duration::from_millis(50);

/// Number of times after which the command says so.
const LOCK_POLLS: usize = 20;

/// Runs a job on a thread of its own. The first signal asks it to stop, which keeps what was read; the second one ends the
/// program.
pub(super) async fn run_stoppable<Answer: Send + 'static>(
    job: impl FnOnce(&Arc<AtomicBool>) -> Result<Answer, Failure> + Send + 'static,
) -> Result<Answer, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    // Registered before there is something to save, so that a signal never loses records.
    let first_signal = stop::requested();
    let (sender, mut ended) = oneshot::channel();
    let requested = Arc::clone(&stop);
    let run = move || drop(sender.send(job(&requested)));
    let thread = thread::Builder::new().name("sync".to_owned()).stack_size(PARSER_STACK_BYTES);
    thread.spawn(run).map_err(|error| Failure::new(format!("no thread can be started ({error})")))?;
    let panicked = || Failure::new("an internal error stopped the synchronization; please report it");
    let signal = tokio::select! {
        result = &mut ended => return result.unwrap_or_else(|_panic| Err(panicked())),
        signal = first_signal => signal,
    };
    stop.store(true, Ordering::Relaxed);
    tokio::select! {
        result = &mut ended => {
            let result = result.unwrap_or_else(|_panic| Err(panicked()));
            result.map_err(|failure| failure.ended_by(signal))
        }
        again = stop::requested() => Err(Failure::stopped("stopped at once").ended_by(again)),
    }
}

/// Says that a command waits while another process writes to the store for longer than a batch takes.
pub(crate) fn note_lock(store: &Path) {
    let is_locked = |_attempt: &usize| {
        let is_locked = is_store_locked(store);
        if is_locked {
            thread::park_timeout(LOCK_POLL);
        }
        is_locked
    };
    if (0..LOCK_POLLS).take_while(is_locked).count() == LOCK_POLLS {
        note(&format_args!(
            "another process writes to {}; waiting for it for up to a minute",
            store.display()
        ));
    }
}

/// Synchronizes an import. Only a stop is a failure; others are part of the report.
pub(super) fn synchronize(
    store: &dyn SyncStore,
    import: &RememberedImport,
    prune: bool,
    report: Option<&mut ReportFile>,
    stop: &Arc<AtomicBool>,
) -> Result<SyncReport, Failure> {
    let mut rejections = Rejections::new(&import.settings.origin, Progress::for_unknown(), report);
    let program = std::env::current_exe().ok();
    let synchronization = Synchronization { store, import, prune, program, report: &mut rejections, stop };
    match synchronization.run() {
        Err(error @ ImportError::Stopped) => Err(error.into()),
        outcome => {
            rejections.finish();
            Ok(SyncReport::new(import, &outcome))
        }
    }
}
