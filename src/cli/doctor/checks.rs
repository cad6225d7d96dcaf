//! Checks of one source, in order. A failed check skips the checks that depend on it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fetchwell_callers::CallContext;
use fetchwell_core::record::Schema;
use fetchwell_core::saturate::saturated;
use fetchwell_pdpp::{Pdpp, ProviderUrl};
use fetchwell_postgres::PostgresStore;
use fetchwell_source::contract::{EmbeddedStreams, StoreError, VectorScan};
use fetchwell_source::{QueryFault, ReplicaStatus, SearchQuery, Source, SourceError};
use fetchwell_sqlite::{IndexState, SqliteStore};
use jiff::Timestamp;
use tokio::task::spawn_blocking;

use super::check::Check;
use crate::app::mcp::mcp_server;
use crate::app::open::{allowed, open_postgres, refuse_owner};
use crate::app::secret::credentials;
use crate::cli::print::grouped;
use crate::cli::probe::{
    PROBE, absent_streams, callers_credential, error_with_remedy, probe, sign_in_of_callers, with_deadline,
};
use crate::config::{CredentialSettings, Environment, McpSource, SourcePlace, SourceSettings};

/// Results of checking one source.
pub(super) struct SourceChecks {
    pub(super) checks: Vec<Check>,
    /// Schema of the source, if it could be read.
    pub(super) schema: Option<Schema>,
}

/// Checks one source.
pub(super) async fn examine(settings: &SourceSettings, environment: &Environment) -> SourceChecks {
    let mut checks = vec![Check::for_source(settings, "settings", Ok(described(settings)))];
    if let Some(credential) = callers_credential(settings) {
        checks.push(Check::for_source(settings, "credential", Ok(credential.to_owned())));
        if let Some(found) = sign_in_of_callers(settings, environment).await {
            checks.push(Check::for_source(settings, "sign-in", found));
        }
        return SourceChecks { checks, schema: None };
    }
    let source = match &settings.place {
        SourcePlace::Store { path } => open_store(settings, path.clone(), &mut checks).await,
        SourcePlace::Postgres { url, replicas } => {
            let opened = open_postgres(settings, url, replicas, environment);
            check_postgres(settings, opened, &mut checks).await
        }
        SourcePlace::Provider { url, credential } => {
            open_remote(settings, url, credential, environment, &mut checks).await
        }
        SourcePlace::Mcp(server) => open_mcp(settings, server, environment, &mut checks).await,
    };
    let Some(source) = source else { return SourceChecks { checks, schema: None } };
    let schema = ask(settings, &*allowed(settings, source), &mut checks).await;
    SourceChecks { checks, schema }
}

async fn open_store(
    settings: &SourceSettings,
    path: std::path::PathBuf,
    checks: &mut Vec<Check>,
) -> Option<Arc<dyn Source>> {
    let name = settings.name.clone();
    let opened = spawn_blocking(move || {
        let store = SqliteStore::open(name, &path)?;
        let index = store.verify_index();
        Ok::<_, StoreError>((store, index))
    });
    match opened.await.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic())) {
        Ok((store, Ok(state))) => {
            checks.push(Check::for_source(settings, "index", Ok(described_index(state))));
            Some(Arc::new(store))
        }
        Ok((_, Err(error))) => {
            checks.push(Check::for_source(settings, "index", Err(error.to_string())));
            None
        }
        Err(error) => {
            checks.push(Check::for_source(settings, "open", Err(error.to_string())));
            None
        }
    }
}

/// Number of times that the lag of replicas is measured, until all are known, and the pause between two measurements.
const LAG_CHECKS: (usize, Duration) = (10, Duration::from_millis(300));

/// Returns the states of the replicas. One that is only just behind is measured again.
async fn replicas_with_lag(store: &PostgresStore) -> Vec<ReplicaStatus> {
    let (checks, pause) = LAG_CHECKS;
    let mut replicas = store.replicas().await;
    for _ in 1..checks {
        if replicas.iter().all(|replica| replica.lag_ms.is_some()) {
            break;
        }
        tokio::time::sleep(pause).await;
        replicas = store.replicas().await;
    }
    replicas
}

/// Returns the check of the vectors of records in a database, if there are any. Warns if they are searched without an
/// index or in half precision.
async fn check_vectors(settings: &SourceSettings, store: &PostgresStore) -> Option<Check> {
    let streams = settings.streams.clone().map(EmbeddedStreams::only).unwrap_or_default();
    let status = match store.vector_status(&streams).await {
        Ok(status) => status,
        Err(error) => return Some(Check::for_source(settings, "vectors", Err(error.to_string()))),
    };
    let current = status.current?;
    let found = format!(
        "{} chunks of {} dimensions by {}",
        grouped(current.chunks),
        grouped(saturated::<u64>(current.dimensions)),
        current.model
    );
    let scan = status.scan.and_then(VectorScan::describe).map(|scan| format!("they are {scan}"));
    Some(Check::for_source(settings, "vectors", Ok(found)).warning(scan))
}

/// Checks the connection to a database, its tables and its extension.
async fn check_postgres(
    settings: &SourceSettings,
    opened: Result<PostgresStore, StoreError>,
    checks: &mut Vec<Check>,
) -> Option<Arc<dyn Source>> {
    let opened = match opened {
        Ok(store) => store.state().await.map(|state| (store, state)).map_err(StoreError::from),
        Err(error) => Err(error),
    };
    match opened {
        Ok((store, state)) => {
            checks.push(Check::for_source(settings, "database", Ok(state.to_string())));
            for replica in replicas_with_lag(&store).await {
                let problem =
                    format!("{} does not answer, is no replica, or is too far behind", replica.database);
                let found =
                    replica.lag_ms.map(|lag| format!("{}, at most {lag} ms behind", replica.database));
                checks.push(Check::for_source(settings, "replica", found.ok_or(problem)));
            }
            if state.pgvector.is_usable() {
                checks.extend(check_vectors(settings, &store).await);
            }
            Some(Arc::new(store))
        }
        Err(error) => {
            checks.push(Check::for_source(settings, "database", Err(error.to_string())));
            None
        }
    }
}

async fn open_remote(
    settings: &SourceSettings,
    url: &ProviderUrl,
    credential: &CredentialSettings,
    environment: &Environment,
    checks: &mut Vec<Check>,
) -> Option<Arc<dyn Source>> {
    if let Err(failure) = refuse_owner(url, environment) {
        checks.push(Check::for_source(settings, "credential", Err(failure.message)));
        return None;
    }
    let credentials = credentials(url, credential, environment);
    let now = Timestamp::now();
    let found = match credentials.check(now).await {
        Ok(None) => Ok("valid, does not expire".to_owned()),
        Ok(Some(until)) => Ok(format!("valid for {} s", until.as_second() - now.as_second())),
        Err(error) => Err(format!("{error}; {}", error.remedy())),
    };
    let is_valid = found.is_ok();
    let warning = credentials
        .exposed_file()
        .map(|file| format!("other users can read {file}: run `chmod 600 {file}`", file = file.display()));
    checks.push(Check::for_source(settings, "credential", found).warning(warning));
    if !is_valid {
        return None;
    }
    Some(Arc::new(Pdpp::new(settings.name.clone(), url.clone(), credentials, settings.deadline)))
}

/// Opens a session with an MCP server and checks its tools.
async fn open_mcp(
    settings: &SourceSettings,
    server: &McpSource,
    environment: &Environment,
    checks: &mut Vec<Check>,
) -> Option<Arc<dyn Source>> {
    let server = match mcp_server(settings, server, environment) {
        Ok(server) => server,
        Err(failure) => {
            checks.push(Check::for_source(settings, "settings", Err(failure.message)));
            return None;
        }
    };
    let tools =
        server.inspect().await.map_err(|error| error_with_remedy(error, settings)).and_then(|found| {
            match (found.problem, found.used) {
                (Some(problem), _) => Err(problem),
                (None, used) => {
                    let search = used.as_ref().and_then(|used| Some(used.search.as_ref()?.tool.as_str()));
                    let fetch = used.as_ref().and_then(|used| Some(used.fetch.as_ref()?.tool.as_str()));
                    let (search, fetch) = (search.unwrap_or_default(), fetch.unwrap_or_default());
                    Ok(format!("{}: searched with `{search}`, read with `{fetch}`", found.server))
                }
            }
        });
    let is_usable = tools.is_ok();
    checks.push(Check::for_source(settings, "tools", tools));
    is_usable.then(|| Arc::new(server) as Arc<dyn Source>)
}

async fn ask(settings: &SourceSettings, source: &dyn Source, checks: &mut Vec<Check>) -> Option<Schema> {
    let schema = match probe(source, settings).await {
        Ok((schema, extent)) => {
            let absent = absent_streams(settings, &schema);
            checks.push(Check::for_source(settings, "connections", Ok(extent.to_string())).warning(absent));
            schema
        }
        Err(error) => {
            checks.push(Check::for_source(settings, "connections", Err(error_with_remedy(error, settings))));
            return None;
        }
    };
    checks.push(Check::for_source(
        settings,
        "search",
        searched(settings, source).await.map_err(|error| error_with_remedy(error, settings)),
    ));
    Some(schema)
}

async fn searched(settings: &SourceSettings, source: &dyn Source) -> Result<String, SourceError> {
    let query = SearchQuery::new(PROBE, 1);
    let started = Instant::now();
    let page = match with_deadline(settings.deadline, source.search(&CallContext::default(), &query)).await {
        // The source works, and has no search.
        Err(SourceError::InvalidQuery { fault: QueryFault::NotSupported, problem, .. }) => {
            return Ok(problem);
        }
        answer => answer?,
    };
    let answered = format!("answers in {} ms", started.elapsed().as_millis());
    // Notes say, for example, how many records are not searchable yet.
    Ok([answered].into_iter().chain(page.notes).collect::<Vec<_>>().join("; "))
}

fn described_index(state: IndexState) -> String {
    let records = |count: i64| grouped(count.unsigned_abs());
    match state {
        IndexState::Complete => "complete".to_owned(),
        IndexState::Rebuilt { problem, records: count } => {
            format!("rebuilt for {} records; it was damaged ({problem})", records(count))
        }
        IndexState::Unwritable(behind) => {
            format!("it cannot be written; {} records are not searchable yet", records(behind))
        }
        IndexState::Completed(lacked) => format!("complete now; it lacked {} records", records(lacked)),
        IndexState::BeingWritten(behind) => {
            format!(
                "another process is writing to the store; {} records are not searchable yet",
                records(behind)
            )
        }
    }
}

fn described(settings: &SourceSettings) -> String {
    let SourceSettings { name, place, deadline, streams, .. } = settings;
    let kind = if place.is_store() { "the store " } else { "" };
    let credential = place.credential().map(|credential| format!(", credential {}", credential.shown()));
    let deadline = place.file().is_none().then(|| format!(", deadline {deadline:?}"));
    let rest = [credential, deadline].into_iter().flatten().collect::<String>();
    let place = format!("{name}: {kind}{place}{rest}");
    match streams {
        None => place,
        Some(streams) => format!("{place}, {} streams allowed", streams.len()),
    }
}
