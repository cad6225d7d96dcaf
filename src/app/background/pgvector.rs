//! Logs the state of pgvector, which documents and vectors need, at the start of a server.

use std::time::Duration;

use fetchwell_core::handle::SourceName;
use fetchwell_pdpp::DEFAULT_DEADLINE;
use fetchwell_postgres::{PostgresStore, PostgresUrl};
use tokio::time::sleep;

use super::super::secret::postgres_pool;
use crate::config::{Environment, FileSettings};

/// Time from the start of a server to the first connection. Some clients start a server for each call.
const START_DELAY: Duration = Duration::from_secs(1);

/// Logs the state of pgvector in each database of a configuration. The remedy follows if it cannot be used. A database that
/// cannot be reached is left out, since calls report that.
pub(crate) async fn log_pgvector(settings: FileSettings, environment: Environment) {
    let databases =
        settings.sources.iter().filter_map(|source| Some((&source.name, source.place.database()?)));
    let databases: Vec<(&SourceName, &PostgresUrl)> = databases.collect();
    if databases.is_empty() {
        return;
    }
    sleep(START_DELAY).await;
    for (name, url) in databases {
        let Ok(pool) = postgres_pool(url, &environment) else { continue };
        let store = PostgresStore::new(name.clone(), pool, DEFAULT_DEADLINE);
        let Some(pgvector) = store.pgvector().await else { continue };
        match pgvector.problem() {
            None => tracing::info!(source = %name, "{pgvector}"),
            Some(_) => tracing::warn!(source = %name, "{pgvector}"),
        }
    }
}
