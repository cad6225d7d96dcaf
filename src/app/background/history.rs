//! Deletes searches that are older than their project keeps them: at the start of a server, and once a day.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::config::{FileSettings, SourcePlace};
use crate::source::store::delete_expired_searches;

/// Time from the start of a server to the first deletion. Some clients start a server for each call.
const START_DELAY: Duration = Duration::from_secs(1);

/// Interval of deletions.
const INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// The retention of search histories in the stores of a server. It ends with the server's token.
pub(crate) struct HistoryRetention {
    server: CancellationToken,
    running: Mutex<Running>,
}

/// The stores that are looked at.
#[derive(Default)]
struct Running {
    stores: Vec<PathBuf>,
    stop: CancellationToken,
}

impl HistoryRetention {
    /// Creates the retention of no store.
    pub(crate) fn new(server: CancellationToken) -> Self {
        Self { server, running: Mutex::default() }
    }

    /// Follows the stores of a configuration.
    pub(crate) fn follow(&self, settings: &FileSettings) {
        let stores = settings.sources.iter().filter_map(|source| match &source.place {
            SourcePlace::Store { path } => Some(path.clone()),
            SourcePlace::Postgres { .. } | SourcePlace::Provider { .. } => None,
        });
        let stores: Vec<PathBuf> = stores.collect();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if stores == running.stores {
            return;
        }
        running.stop.cancel();
        *running = Running { stores: stores.clone(), stop: self.server.child_token() };
        if stores.is_empty() {
            return;
        }
        let stop = running.stop.clone();
        let spawned = thread::Builder::new().name("history".to_owned()).spawn(move || run(&stores, &stop));
        if let Err(error) = spawned {
            tracing::warn!(%error, "old searches are not deleted once a day: no thread can be started");
        }
    }
}

/// Deletes old searches until the token is cancelled.
fn run(stores: &[PathBuf], stop: &CancellationToken) {
    let runtime = match Builder::new_current_thread().enable_time().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::warn!(%error, "old searches are not deleted once a day");
            return;
        }
    };
    let daily = async {
        sleep(START_DELAY).await;
        loop {
            stores.iter().for_each(|store| delete_expired(store));
            sleep(INTERVAL).await;
        }
    };
    runtime.block_on(stop.run_until_cancelled(daily));
}

/// Deletes the old searches of one store.
fn delete_expired(store: &Path) {
    match delete_expired_searches(store) {
        Ok(0) => {}
        Ok(deleted) => tracing::info!(deleted, "old searches deleted from the history"),
        // No read shows them, and the next search or the next day deletes them.
        Err(error) => tracing::debug!(%error, "old searches are not deleted"),
    }
}
