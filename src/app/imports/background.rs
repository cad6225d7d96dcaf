//! The imports of a server. They have a thread of their own, and follow the configuration.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use fetchwell_connectors::{ImportError, PARSER_STACK_BYTES, SyncOutcome, describe_held_records};
use fetchwell_core::handle::ConnectionId;
use fetchwell_source::SyncStore;
use fetchwell_sqlite::SqliteSyncStore;
use fetchwell_telemetry::{ImportState, Telemetry};
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::runtime::Builder;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::super::failure::Failure;
use super::follow::{FollowedImport, FollowedSettings, Follower, ImportObserver, known_connection};
use super::store::ImportStore;
use crate::config::{Environment, FileSettings, ImportSettings};

/// Time from the start of a server to the first synchronization. Some clients start a server for each call, and none of
/// those synchronizes.
const START_DELAY: Duration = Duration::from_secs(1);

/// The imports of a server. They end with the server's token.
pub(crate) struct BackgroundImports {
    environment: Environment,
    telemetry: Telemetry,
    server: CancellationToken,
    running: Mutex<RunningImports>,
}

/// The imports that run now.
#[derive(Default)]
struct RunningImports {
    imports: Vec<(String, FollowedImport)>,
    stop: CancellationToken,
}

impl BackgroundImports {
    /// Creates the imports of no configuration.
    pub(crate) fn new(environment: Environment, telemetry: Telemetry, server: CancellationToken) -> Self {
        Self { environment, telemetry, server, running: Mutex::default() }
    }

    /// Follows the imports of a configuration. Changed ones are stopped with all others and started again.
    pub(crate) fn follow(&self, settings: &FileSettings) {
        let imports = imports_of(settings);
        let mut running = self.running.lock();
        if imports == running.imports {
            return;
        }
        running.stop.cancel();
        *running = RunningImports { imports: imports.clone(), stop: self.server.child_token() };
        let connections: Vec<&str> = imports.iter().map(|(_, import)| import.connection().as_str()).collect();
        self.telemetry.retain_imports(&connections);
        for (source, import) in &imports {
            let connection = import.connection().as_str();
            self.telemetry.update_import(connection, |progress| progress.source.clone_from(source));
        }
        if imports.is_empty() {
            return;
        }
        let stop = running.stop.clone();
        let observer = TelemetryObserver { telemetry: self.telemetry.clone(), logged: Mutex::default() };
        let follower = Follower {
            observer: Arc::new(observer),
            environment: self.environment.clone(),
            stop: Arc::default(),
        };
        let imports = imports.into_iter().map(|(_, import)| import).collect();
        let run = move || run(imports, follower, &stop);
        if let Err(error) = thread::Builder::new().name("imports".to_owned()).spawn(run) {
            tracing::warn!(%error, "imports are not kept current: no thread can be started");
        }
    }
}

/// Creates the store files of imports that do not exist yet. A server opens its stores when it starts.
///
/// # Errors
///
/// A store cannot be created.
pub(crate) fn create_import_stores(settings: &FileSettings) -> Result<(), Failure> {
    let stores = settings.imports.iter().filter_map(|import| import.store(&settings.sources));
    for (_, store) in stores {
        if let Some(path) = store.file()
            && !path.exists()
        {
            SqliteSyncStore::open_or_create(path)?;
        }
    }
    Ok(())
}

/// Returns the imports of a configuration with the names of their sources.
fn imports_of(settings: &FileSettings) -> Vec<(String, FollowedImport)> {
    let imports = settings.imports.iter().filter_map(|import| {
        let (source, place) = import.store(&settings.sources)?;
        let store = ImportStore::from_source(place)?;
        let mut import = import.clone();
        if let Some(known) = connection_in_file(&import, &store) {
            import.connection = known;
        }
        let (every, watch) = (import.every, import.watch);
        let settings = FollowedSettings::Configured(Box::new(import));
        let followed = FollowedImport { store, settings, every, watch };
        Some((source.to_string(), followed))
    });
    imports.collect()
}

/// Returns the connection that a store file already has for an import. Returns `None` if the file cannot be read, and for a
/// database, in which each synchronization looks the connection up.
fn connection_in_file(import: &ImportSettings, store: &ImportStore) -> Option<ConnectionId> {
    let ImportStore::File(path) = store else { return None };
    let known = SqliteSyncStore::open(path).and_then(|store| store.imports()).ok()?;
    known_connection(import, &known)
}

/// Synchronizes imports until the token is cancelled. A batch in progress is completed or not written at all.
fn run(imports: Vec<FollowedImport>, follower: Follower, stop: &CancellationToken) {
    let runtime =
        match Builder::new_current_thread().thread_stack_size(PARSER_STACK_BYTES).enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                tracing::warn!(%error, "imports are not kept current");
                return;
            }
        };
    let stopped = Arc::clone(&follower.stop);
    runtime.block_on(stop.run_until_cancelled(async {
        sleep(START_DELAY).await;
        follower.follow(imports).await;
    }));
    stopped.store(true, Ordering::Relaxed);
    // A read that stalls is not waited for.
    runtime.shutdown_background();
}

/// Records the results of synchronizations.
struct TelemetryObserver {
    telemetry: Telemetry,
    /// Last error of each connection that was logged. It is not repeated.
    logged: Mutex<Vec<(String, String)>>,
}

impl TelemetryObserver {
    /// Logs a problem, unless it is the last one of the connection.
    fn log(&self, connection: &str, problem: Option<&str>) {
        let mut logged = self.logged.lock();
        let is_known =
            |(known, message): &(String, String)| known == connection && Some(message.as_str()) == problem;
        if logged.iter().any(is_known) {
            return;
        }
        logged.retain(|(known, _)| known != connection);
        if let Some(problem) = problem {
            tracing::warn!(connection, "an import is not up to date: {problem}");
            logged.push((connection.to_owned(), problem.to_owned()));
        }
    }
}

impl ImportObserver for TelemetryObserver {
    fn started(&self, import: &FollowedImport) {
        self.telemetry.update_import(import.connection().as_str(), |progress| {
            progress.state = ImportState::Synchronizing;
        });
    }

    fn ended(&self, import: &FollowedImport, outcome: &Result<SyncOutcome, ImportError>) {
        let connection = import.connection().as_str();
        match outcome {
            Ok(outcome) => {
                let (tally, held) = (outcome.tally, outcome.held.map_or(0, |missing| missing.records));
                let changes = tally.added + tally.changed + tally.deleted;
                self.telemetry.update_import(connection, |progress| {
                    progress.state =
                        if outcome.held.is_some() { ImportState::Held } else { ImportState::Current };
                    (progress.held, progress.problem) = (held, None);
                    progress.changes += changes;
                    progress.synchronized_at(Timestamp::now());
                });
                if changes > 0 {
                    tracing::info!(
                        connection,
                        added = tally.added,
                        changed = tally.changed,
                        deleted = tally.deleted,
                        "import synchronized"
                    );
                }
                let problem = outcome.held.map(|missing| describe_held_records(connection, &missing.records));
                self.log(connection, problem.as_deref());
            }
            Err(ImportError::Synchronizing(_)) => {
                self.telemetry.update_import(connection, |progress| progress.state = ImportState::Waiting);
            }
            Err(ImportError::Stopped) => {}
            Err(error) => {
                self.telemetry.update_import(connection, |progress| {
                    progress.state = ImportState::Failing;
                    progress.problem = Some(error.code());
                    progress.failures += 1;
                });
                self.log(connection, Some(&error.to_string()));
            }
        }
    }

    fn unwatched(&self, import: &FollowedImport, problem: &str) {
        let connection = import.connection().as_str();
        tracing::warn!(connection, "changes of an import are seen only at its interval: {problem}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::check_text;
    use fetchwell_connectors::without_links;
    use fetchwell_source::contract::{NewConnection, NewImport};

    #[test]
    fn the_connection_of_a_known_import_does_not_depend_on_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let (origin, store) = (folder.path().join("My.Notes"), folder.path().join("a.db"));
        let text = "[[source]]\nname = \"a\"\nstore = \"a.db\"\n[[import]]\npath = \"My.Notes\"\n";
        let connection = || {
            let settings = check_text(text, &folder.path().join("fetchwell.toml")).unwrap();
            imports_of(&settings)[0].1.connection().to_string()
        };
        std::fs::create_dir(&origin).unwrap();
        assert_eq!(connection(), "my-notes");
        let known = NewConnection {
            connection_id: "my-notes".parse().unwrap(),
            connector_key: "files".to_owned(),
            display_name: None,
            manifest: None,
        };
        let import =
            NewImport { origin: without_links(&origin), kind: "files".to_owned(), options: "{}".to_owned() };
        SqliteSyncStore::open_or_create(&store).unwrap().remember(&known, &import).unwrap();
        std::fs::remove_dir(&origin).unwrap();
        assert_eq!(connection(), "my-notes");
    }
}
