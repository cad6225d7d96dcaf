//! `fetchwell sync --watch`: follows imports until the command is stopped.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fetchwell_connectors::{ImportError, PARSER_STACK_BYTES, SyncOutcome};
use fetchwell_core::handle::ConnectionId;
use fetchwell_core::terminal::output::note;
use fetchwell_source::contract::RememberedImport;
use parking_lot::Mutex;
use tokio::runtime::Builder;

use super::super::print::Printer;
use super::report::{ImportHealth, SyncReport};
use crate::app::failure::Failure;
use crate::app::imports::{FollowedImport, FollowedSettings, Follower, ImportObserver, ImportStore};
use crate::app::stop;
use crate::config::Environment;

/// Interval of synchronizations, for changes that the system does not report.
const EVERY: Duration = Duration::from_secs(15 * 60);

/// Maximum time for the end of a batch after a signal.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// Follows imports until a signal. In a database another process may follow some of them; this one takes its place when it ends.
pub(super) fn watch(
    store: &ImportStore,
    imports: Vec<RememberedImport>,
    printer: Printer,
    environment: &Environment,
) -> Result<(), Failure> {
    let followed = imports.iter().map(|import| FollowedImport {
        store: store.clone(),
        settings: FollowedSettings::Remembered(import.connection_id.clone(), import.settings.origin.clone()),
        every: EVERY,
        watch: true,
    });
    let followed: Vec<FollowedImport> = followed.collect();
    let runtime = Builder::new_current_thread().thread_stack_size(PARSER_STACK_BYTES).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("threads cannot be started ({error})")))?;
    let stopped = Arc::new(AtomicBool::new(false));
    let observer = Arc::new(PrintingObserver { imports, printer, printed: Mutex::default() });
    let follower = Follower { observer, environment: environment.clone(), stop: Arc::clone(&stopped) };
    note(&"watching; stop it with Ctrl-C");
    runtime.block_on(async {
        tokio::select! {
            () = follower.follow(followed) => {}
            _signal = stop::requested() => {}
        }
    });
    stopped.store(true, Ordering::Relaxed);
    runtime.shutdown_timeout(LAST_WAIT);
    Ok(())
}

/// Prints each synchronization that changed records, and each state of an import once.
struct PrintingObserver {
    imports: Vec<RememberedImport>,
    printer: Printer,
    /// Last state of each import, by its connection.
    printed: Mutex<HashMap<ConnectionId, ImportHealth>>,
}

impl PrintingObserver {
    /// Returns true if a report is to be printed: its state is another one than the last, or records changed. Remembers the
    /// state.
    fn is_news(&self, connection: &ConnectionId, health: ImportHealth, has_changes: bool) -> bool {
        let mut printed = self.printed.lock();
        let earlier = printed.get(connection).cloned().unwrap_or_default();
        let is_news = has_changes || health != earlier;
        printed.insert(connection.clone(), health);
        is_news
    }
}

impl ImportObserver for PrintingObserver {
    fn started(&self, _import: &FollowedImport) {}

    fn ended(&self, import: &FollowedImport, outcome: &Result<SyncOutcome, ImportError>) {
        let Some(known) = self.imports.iter().find(|known| known.connection_id == *import.connection())
        else {
            return;
        };
        if matches!(outcome, Err(ImportError::Stopped)) {
            return;
        }
        let report = SyncReport::new(known, outcome);
        if self.is_news(import.connection(), report.health(), report.has_changes()) {
            report.print(self.printer);
        }
    }

    fn unwatched(&self, import: &FollowedImport, problem: &str) {
        note(&format_args!("{}: changes are seen every 15 minutes only: {problem}", import.connection()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_printed_once() {
        let printer = Printer { json: false };
        let observer = PrintingObserver { imports: Vec::new(), printer, printed: Mutex::default() };
        let failing = |problem: &str| ImportHealth { error: Some(problem.to_owned()), ..Default::default() };
        let rejected = ImportHealth { rejected: 2, ..ImportHealth::default() };
        for (connection, health, has_changes, expect) in [
            ("notes", ImportHealth::default(), false, false),
            ("notes", failing("gone"), false, true),
            ("notes", failing("gone"), false, false),
            ("mail", failing("gone"), false, true),
            ("notes", failing("no permission"), false, true),
            ("notes", ImportHealth::default(), false, true),
            ("notes", ImportHealth::default(), true, true),
            ("notes", rejected.clone(), true, true),
            ("notes", rejected, false, false),
        ] {
            let connection = connection.parse().unwrap();
            assert_eq!(observer.is_news(&connection, health.clone(), has_changes), expect, "{health:?}");
        }
    }
}
