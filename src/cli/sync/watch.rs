//! `fetchwell sync --watch`: follows imports until the command is stopped.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Builder;

use super::super::print::{Printer, note};
use super::report::SyncReport;
use crate::app::failure::Failure;
use crate::app::imports::{FollowedImport, ImportObserver, ImportTarget, follow_imports};
use crate::app::stop;
use crate::connectors::{ImportError, PARSER_STACK_BYTES, SyncOutcome};
use crate::source::store::RememberedImport;

/// Interval of synchronizations, for changes that the system does not report.
const EVERY: Duration = Duration::from_secs(15 * 60);

/// Maximum time for the end of a batch after a signal.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// Follows imports until a signal.
pub(super) fn watch(store: &Path, imports: Vec<RememberedImport>, printer: Printer) -> Result<(), Failure> {
    let followed = imports.iter().map(|import| FollowedImport {
        store: store.to_owned(),
        target: ImportTarget::Remembered(import.connection_id.clone(), import.settings.origin.clone()),
        every: EVERY,
        watch: true,
    });
    let followed: Vec<FollowedImport> = followed.collect();
    let runtime = Builder::new_current_thread().thread_stack_size(PARSER_STACK_BYTES).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("threads cannot be started ({error})")))?;
    let stopped = Arc::new(AtomicBool::new(false));
    let observer = Arc::new(PrintingObserver { imports, printer });
    let requested = Arc::clone(&stopped);
    note(&"watching; stop it with Ctrl-C");
    runtime.block_on(async {
        tokio::select! {
            () = follow_imports(followed, observer, requested) => {}
            _signal = stop::requested() => {}
        }
    });
    stopped.store(true, Ordering::Relaxed);
    runtime.shutdown_timeout(LAST_WAIT);
    Ok(())
}

/// Prints each synchronization that changed something or failed.
struct PrintingObserver {
    imports: Vec<RememberedImport>,
    printer: Printer,
}

impl ImportObserver for PrintingObserver {
    fn started(&self, _import: &FollowedImport) {}

    fn ended(&self, import: &FollowedImport, outcome: &Result<SyncOutcome, ImportError>) {
        let is_this = |known: &&RememberedImport| known.connection_id == *import.connection();
        let Some(known) = self.imports.iter().find(is_this) else { return };
        if matches!(outcome, Err(ImportError::Stopped)) {
            return;
        }
        let report = SyncReport::new(known, outcome);
        if self.printer.json {
            self.printer.value(&report);
        } else if report.has_news() {
            report.print(self.printer);
        }
    }

    fn unwatched(&self, import: &FollowedImport, problem: &str) {
        note(&format_args!("{}: changes are seen every 15 minutes only: {problem}", import.connection()));
    }
}
