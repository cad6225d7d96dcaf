//! Maintenance of the stores of a server, at its start and from time to time: searches that are older than their project keeps
//! them are deleted once a day, and columns of databases that another program has changed are built.

use std::collections::HashSet;
use std::path::Path;
use std::thread;
use std::time::Duration;

use fetchwell_pdpp::DEFAULT_DEADLINE;
use fetchwell_postgres::{Job, Lease, LeaseAttempt, PostgresStore, PostgresUrl};
use fetchwell_sqlite::delete_expired_searches;
use parking_lot::Mutex;
use tokio::runtime::Builder;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::super::imports::ImportStore;
use super::super::secret::postgres_pool;
use crate::config::{Environment, FileSettings};

/// Time from the start of a server to the first deletion. Some clients start a server for each call.
const START_DELAY: Duration = Duration::from_secs(1);

/// Interval of deletions.
const DELETE_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// Interval of looking for changes of databases. An import builds columns at its end by itself.
const BUILD_INTERVAL: Duration = Duration::from_secs(5 * 60);

/// The maintenance of the stores of a server. It ends with the server's token.
pub(crate) struct StoreMaintenance {
    environment: Environment,
    server: CancellationToken,
    running: Mutex<Running>,
}

/// The stores that are looked at.
#[derive(Default)]
struct Running {
    stores: Vec<ImportStore>,
    stop: CancellationToken,
}

impl StoreMaintenance {
    /// Creates the maintenance of no store.
    pub(crate) fn new(environment: Environment, server: CancellationToken) -> Self {
        Self { environment, server, running: Mutex::default() }
    }

    /// Follows the stores of a configuration.
    pub(crate) fn follow(&self, settings: &FileSettings) {
        let stores = settings.sources.iter().filter_map(|source| ImportStore::from_source(&source.place));
        let stores: Vec<ImportStore> = stores.collect();
        let mut running = self.running.lock();
        if stores == running.stores {
            return;
        }
        running.stop.cancel();
        *running = Running { stores: stores.clone(), stop: self.server.child_token() };
        if stores.is_empty() {
            return;
        }
        let (stop, environment) = (running.stop.clone(), self.environment.clone());
        let maintenance = move || run(&stores, &environment, &stop);
        let spawned = thread::Builder::new().name("maintenance".to_owned()).spawn(maintenance);
        if let Err(error) = spawned {
            tracing::warn!(%error, "stores are not maintained: no thread can be started");
        }
    }
}

/// Maintains stores until the token is cancelled.
fn run(stores: &[ImportStore], environment: &Environment, stop: &CancellationToken) {
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::warn!(%error, "stores are not maintained");
            return;
        }
    };
    let daily = async {
        sleep(START_DELAY).await;
        loop {
            for store in stores {
                match store {
                    ImportStore::File(path) => delete_expired(path),
                    ImportStore::Postgres(url) => delete_expired_in(url, environment).await,
                }
            }
            sleep(DELETE_INTERVAL).await;
        }
    };
    let building = async {
        sleep(START_DELAY).await;
        let mut failing = HashSet::new();
        loop {
            for (at, store) in stores.iter().enumerate() {
                let ImportStore::Postgres(url) = store else { continue };
                match build_columns_in(url, environment).await {
                    Ok(()) => {
                        failing.remove(&at);
                    }
                    Err(problem) if failing.insert(at) => {
                        tracing::info!(%problem, "this server does not build the columns of a database");
                    }
                    Err(problem) => tracing::debug!(%problem, "columns are still not built"),
                }
            }
            sleep(BUILD_INTERVAL).await;
        }
    };
    // Neither ends by itself.
    let all = async { tokio::join!(daily, building) };
    runtime.block_on(stop.run_until_cancelled(all));
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

/// Deletes the old searches of a database, unless another server is deleting them. A database without projects, or a
/// read-only one, has nothing to delete.
async fn delete_expired_in(url: &PostgresUrl, environment: &Environment) {
    let (Ok(pool), Ok(name)) = (postgres_pool(url, environment), "store".parse()) else { return };
    let _lease = match Lease::try_take(&pool, Job::ExpireHistory).await {
        Ok(LeaseAttempt::Taken(lease)) => lease,
        Ok(LeaseAttempt::Held(_other)) => return,
        Err(problem) => return tracing::debug!(%problem, "old searches are not deleted"),
    };
    match PostgresStore::new(name, pool, DEFAULT_DEADLINE).delete_expired_searches().await {
        Ok(0) => {}
        Ok(deleted) => tracing::info!(deleted, "old searches deleted from the history"),
        Err(error) => tracing::debug!(code = error.code(), "old searches are not deleted"),
    }
}

/// Builds the columns of a database that are missing. Reads use the records until then.
async fn build_columns_in(url: &PostgresUrl, environment: &Environment) -> Result<(), String> {
    let pool = postgres_pool(url, environment).map_err(|error| error.to_string())?;
    let Ok(name) = "store".parse() else { return Ok(()) };
    let built = PostgresStore::new(name, pool, DEFAULT_DEADLINE).build_columns().await;
    built.map_err(|error| error.to_string())
}
