//! Synchronizes imports again and again: at intervals, and after changes of their origins.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fetchwell_connectors::{
    ImportError, ImportKind, ImportOptions, Report, StoreFiles, SyncOutcome, Synchronization, guess_kind,
    without_links,
};
use fetchwell_core::handle::ConnectionId;
use fetchwell_source::SyncStore;
use fetchwell_source::contract::{NewConnection, NewImport, RememberedImport, StoreError};
use futures_util::future::join_all;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};

use super::store::ImportStore;
use super::watch::{OriginWatch, WatchedPlace};
use crate::config::{Environment, ImportSettings};

/// Time without changes after which an import is synchronized.
const SETTLE_TIME: Duration = Duration::from_millis(100);

/// Maximum time by which changes that go on delay a synchronization.
const MAX_SETTLE: Duration = Duration::from_secs(1);

/// Minimum and maximum pause between two synchronizations. The pause is as long as the last one took.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(60));

/// First pause after an error; it doubles with each one. Changes do not shorten it.
const FIRST_BACKOFF: Duration = Duration::from_secs(5);

/// Maximum pause after an error.
const MAX_BACKOFF: Duration = Duration::from_secs(300);

/// Pause after which an import that another process synchronizes is looked at again.
const BUSY_PAUSE: Duration = Duration::from_secs(5);

/// Interval at which a watched origin is compared with the one at its path. The system reports no event if a folder above
/// it is replaced, or if a missing origin appears on another disk.
const PLACE_CHECK: Duration = Duration::from_secs(2);

/// An import to keep current.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FollowedImport {
    pub(crate) store: ImportStore,
    pub(crate) settings: FollowedSettings,
    /// Interval of synchronizations.
    pub(crate) every: Duration,
    /// True to follow changes at once.
    pub(crate) watch: bool,
}

/// The settings of a followed import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FollowedSettings {
    /// An import of a configuration, which the store may not have yet.
    Configured(Box<ImportSettings>),
    /// An import that the store has.
    Remembered(ConnectionId, PathBuf),
}

/// A receiver of the results of synchronizations.
pub(crate) trait ImportObserver: Send + Sync {
    /// Called before each synchronization, and not while another process follows the import.
    fn started(&self, import: &FollowedImport);

    /// Called after each synchronization.
    fn ended(&self, import: &FollowedImport, outcome: &Result<SyncOutcome, ImportError>);

    /// Called if changes cannot be watched, so that only the interval counts.
    fn unwatched(&self, import: &FollowedImport, problem: &str);
}

impl FollowedImport {
    /// Returns the connection of the import.
    pub(crate) fn connection(&self) -> &ConnectionId {
        match &self.settings {
            FollowedSettings::Configured(settings) => &settings.connection,
            FollowedSettings::Remembered(connection, _) => connection,
        }
    }

    fn origin(&self) -> &PathBuf {
        match &self.settings {
            FollowedSettings::Configured(settings) => &settings.origin,
            FollowedSettings::Remembered(_, origin) => origin,
        }
    }
}

/// Keeps imports current.
#[derive(Clone)]
pub(crate) struct Follower {
    pub(crate) observer: Arc<dyn ImportObserver>,
    /// Environment with the passwords of databases.
    pub(crate) environment: Environment,
    /// Ends a synchronization in progress.
    pub(crate) stop: Arc<AtomicBool>,
}

impl Follower {
    /// Keeps imports current until the future is dropped.
    pub(crate) async fn follow(self, imports: Vec<FollowedImport>) {
        join_all(imports.into_iter().map(|import| follow(import, self.clone()))).await;
    }
}

async fn follow(import: FollowedImport, follower: Follower) {
    let observer = &follower.observer;
    let changed = Arc::new(Notify::new());
    let mut watching = ActiveWatch::default();
    let (mut store, mut attempt, mut watch_problem) = (None, 0_u32, None);
    loop {
        // Watched first, so that a change during the synchronization is seen.
        if import.watch {
            let (origin, store, changed) =
                (import.origin().clone(), import.store.path(), Arc::clone(&changed));
            // An origin on a disk that does not answer delays no other import.
            let renewed = spawn_blocking(move || watching.renew(&origin, &store, &changed)).await;
            let (kept, problem) = renewed.unwrap_or_default();
            watching = kept;
            if problem.is_some() && problem != watch_problem {
                observer.unwatched(&import, problem.as_deref().unwrap_or_default());
                watch_problem = problem;
            }
        }
        let started = Instant::now();
        let (job, job_store, job_follower) = (import.clone(), store.take(), follower.clone());
        let synchronized = spawn_blocking(move || synchronize(&job, job_store, &job_follower)).await;
        let outcome = match synchronized {
            Ok((kept, outcome)) => {
                store = kept;
                outcome
            }
            Err(_panic) => Err(ImportError::Panicked),
        };
        observer.ended(&import, &outcome);
        sleep(started.elapsed().clamp(PAUSE.0, PAUSE.1)).await;
        let replaced = watching.replaced(import.origin());
        tokio::select! {
            next = wait(outcome.as_ref().err(), attempt, import.every, &changed) => attempt = next,
            () = replaced => {}
        }
    }
}

/// The watch of an origin, and the place where it is watched. Without a place, the origin is not watched.
#[derive(Default)]
struct ActiveWatch {
    watch: Option<OriginWatch>,
    place: Option<WatchedPlace>,
}

impl ActiveWatch {
    /// Watches an origin, or its folder again if it was replaced. Returns the reason why an origin that exists cannot be
    /// watched.
    fn renew(self, origin: &Path, store: &Path, changed: &Arc<Notify>) -> (Self, Option<String>) {
        let place = WatchedPlace::read(origin);
        if self.watch.as_ref().is_some_and(|watch| watch.is_current(&place)) {
            return (self, None);
        }
        let (watch, problem) = match OriginWatch::start(origin, &place, store, changed) {
            Ok(watch) => (Some(watch), None),
            Err(error) => (None, origin.exists().then(|| error.to_string())),
        };
        (Self { watch, place: Some(place) }, problem)
    }

    /// Waits until the folder in which changes of the origin are seen is another one. Ends never if it is not watched.
    async fn replaced(&self, origin: &Path) {
        let Some(place) = &self.place else { return std::future::pending().await };
        loop {
            sleep(PLACE_CHECK).await;
            let origin = origin.to_owned();
            // A check that fails is repeated.
            let now = spawn_blocking(move || WatchedPlace::read(&origin)).await;
            if now.is_ok_and(|now| now != *place) {
                return;
            }
        }
    }
}

/// Waits for a change or for the end of the interval; after an error, for the end of a pause. Returns the number of
/// errors since the last success.
async fn wait(error: Option<&ImportError>, attempt: u32, every: Duration, changed: &Notify) -> u32 {
    match error {
        None => {
            if timeout(every, changed.notified()).await.is_ok() {
                settle(changed).await;
            }
            0
        }
        Some(ImportError::Synchronizing(_)) => {
            sleep(BUSY_PAUSE).await;
            attempt
        }
        Some(_) => {
            sleep(backoff(attempt)).await;
            attempt.saturating_add(1)
        }
    }
}

/// Waits until there are no more changes, for a limited time.
async fn settle(changed: &Notify) {
    let until = Instant::now() + MAX_SETTLE;
    while Instant::now() < until && timeout(SETTLE_TIME, changed.notified()).await.is_ok() {}
}

/// Returns the pause before the next attempt.
fn backoff(attempt: u32) -> Duration {
    FIRST_BACKOFF.saturating_mul(1 << attempt.min(10)).min(MAX_BACKOFF)
}

/// Synchronizes an import once, unless another process follows it. Returns the open store for the next time.
fn synchronize(
    import: &FollowedImport,
    store: Option<Box<dyn SyncStore>>,
    follower: &Follower,
) -> (Option<Box<dyn SyncStore>>, Result<SyncOutcome, ImportError>) {
    let Follower { observer, environment, stop } = follower;
    let store = match store.map_or_else(|| import.store.open_or_create(environment), Ok) {
        Ok(store) => store,
        Err(error) => return (None, Err(error.into())),
    };
    match store.follow(import.connection()) {
        Ok(true) => {}
        Ok(false) => {
            return (Some(store), Err(ImportError::Synchronizing(import.connection().to_string())));
        }
        Err(error) => return (None, Err(error.into())),
    }
    observer.started(import);
    let outcome = remembered(import, &*store).and_then(|remembered| {
        let mut report = CountedReport;
        let program = std::env::current_exe().ok();
        let (store, import) = (&*store, &remembered);
        Synchronization { store, import, prune: false, program, report: &mut report, stop }.run()
    });
    (Some(store), outcome)
}

/// Returns the import as the store has it. One of a configuration is added or changed.
fn remembered(import: &FollowedImport, store: &dyn SyncStore) -> Result<RememberedImport, ImportError> {
    let imports = store.imports()?;
    let connection = match &import.settings {
        // The start of the server looks connections up in files only; those of a database are looked up here.
        FollowedSettings::Configured(settings) => known_connection(settings, &imports),
        FollowedSettings::Remembered(..) => None,
    };
    let connection = connection.unwrap_or_else(|| import.connection().clone());
    let known = imports.into_iter().find(|known| known.connection_id == connection);
    let FollowedSettings::Configured(settings) = &import.settings else {
        return known.ok_or_else(|| StoreError::ImportRemoved(import.store.path()).into());
    };
    let origin = match std::fs::canonicalize(&settings.origin) {
        Ok(origin) => origin,
        Err(error) => missing_origin(settings, known.as_ref(), &error)?,
    };
    if let Some(known) = &known
        && known.settings.origin != origin
    {
        let (connection, origin) = (connection.to_string(), known.settings.origin.clone());
        return Err(ImportError::OtherOrigin { connection, origin });
    }
    let kind = match (settings.kind, &known) {
        (Some(kind), _) => kind.as_str().to_owned(),
        (None, Some(known)) => known.settings.kind.clone(),
        (None, None) => {
            let store_files = StoreFiles::new(&import.store.path(), &origin);
            guess_kind(&origin, None, &store_files)?.kind.as_str().to_owned()
        }
    };
    let mut options = settings.options.clone();
    if let Some(known) = &known {
        // Set by `fetchwell import docs`.
        options.category_from = ImportOptions::from_json(&known.settings.options).category_from;
    }
    let options = options.to_json();
    let new = NewImport { origin, kind, options };
    match known {
        Some(known) if known.settings == new => Ok(known),
        known => {
            let kind: Option<ImportKind> = new.kind.parse().ok();
            if let Some((kind, option)) =
                kind.and_then(|kind| Some((kind, kind.unused_option(&settings.options)?)))
            {
                return Err(ImportError::UnusedOption { option, kind });
            }
            let connection = NewConnection {
                connection_id: connection,
                connector_key: known.map_or_else(|| new.kind.clone(), |known| known.connector_key),
                display_name: settings.name.clone(),
                manifest: None,
            };
            Ok(store.remember(&connection, &new)?)
        }
    }
}

/// Returns the connection that the store has for a path, if the configuration only guesses another one.
pub(crate) fn known_connection(
    settings: &ImportSettings,
    imports: &[RememberedImport],
) -> Option<ConnectionId> {
    if !settings.has_guessed_connection {
        return None;
    }
    let origin = without_links(&settings.origin);
    let mut same =
        imports.iter().filter(|known| known.settings.origin == origin).map(|known| &known.connection_id);
    let first = same.next()?;
    let is_guessed = *first == settings.connection || same.any(|known| *known == settings.connection);
    (!is_guessed).then(|| first.clone())
}

/// Returns the origin that the store has for a configured one that cannot be found, so that its state is saved.
///
/// # Errors
///
/// The store has no import of it, or one of another file or folder.
fn missing_origin(
    settings: &ImportSettings,
    known: Option<&RememberedImport>,
    error: &std::io::Error,
) -> Result<PathBuf, ImportError> {
    let same = known.map(|known| &known.settings.origin);
    // A link that is missing led to the origin that the store has.
    match same.filter(|known| **known == without_links(&settings.origin) || !known.exists()) {
        Some(origin) => Ok(origin.clone()),
        None => Err(ImportError::Unreadable { path: settings.origin.clone(), problem: error.to_string() }),
    }
}

/// A report without output: the numbers are in the result, and names of files are not logged.
struct CountedReport;

impl Report for CountedReport {
    fn rejected(&mut self, _place: &dyn std::fmt::Display, _reason: &str) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use fetchwell_sqlite::SqliteSyncStore;

    #[test]
    fn pauses_grow_with_each_error() {
        for (attempt, seconds) in [(0, 5), (1, 10), (3, 40), (6, 300), (u32::MAX, 300)] {
            assert_eq!(backoff(attempt).as_secs(), seconds, "{attempt}");
        }
    }

    struct SilentObserver;

    impl ImportObserver for SilentObserver {
        fn started(&self, _import: &FollowedImport) {}

        fn ended(&self, _import: &FollowedImport, _outcome: &Result<SyncOutcome, ImportError>) {}

        fn unwatched(&self, _import: &FollowedImport, _problem: &str) {}
    }

    /// Returns the import of `path` as a configuration in `folder` has it.
    fn configured(folder: &Path, path: &str, kind: Option<ImportKind>) -> FollowedImport {
        let text = format!("[[import]]\npath = {path:?}\nconnection = \"notes\"\n");
        let settings = crate::config::check_text(&text, &folder.join("fetchwell.toml")).unwrap();
        let settings = ImportSettings { kind, ..settings.imports.into_iter().next().unwrap() };
        let settings = FollowedSettings::Configured(Box::new(settings));
        let store = ImportStore::File(folder.join("store.db"));
        FollowedImport { store, settings, every: Duration::from_secs(1), watch: false }
    }

    #[test]
    fn a_missing_origin_is_unreadable_and_not_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let origin = folder.path().join("notes");
        let store = SqliteSyncStore::open_or_create(&folder.path().join("store.db")).unwrap();
        let files = "files".parse().ok();
        let follower = Follower {
            observer: Arc::new(SilentObserver),
            environment: Environment::default(),
            stop: Arc::default(),
        };
        let code = |import: &FollowedImport| match synchronize(import, None, &follower).1 {
            Ok(_) => "current",
            Err(error) => error.code(),
        };
        // An origin that was never there is not remembered, because it is not known what it is.
        let import = configured(folder.path(), "x/../notes", files);
        assert_eq!(code(&import), "origin_unreadable");
        assert!(store.imports().unwrap().is_empty());
        std::fs::create_dir(folder.path().join("x")).unwrap();
        std::fs::create_dir(&origin).unwrap();
        std::fs::write(origin.join("a.md"), "# A\n").unwrap();
        assert_eq!(code(&import), "current");
        std::fs::remove_dir_all(&origin).unwrap();
        std::fs::remove_dir(folder.path().join("x")).unwrap();
        assert_eq!(code(&import), "origin_unreadable");
        assert!(store.imports().unwrap()[0].status.problem.is_some());
        // A path of something else is not synchronized with the origin that the store has.
        std::fs::create_dir(&origin).unwrap();
        assert_eq!(code(&configured(folder.path(), "other", files)), "origin_unreadable");
        std::fs::create_dir(folder.path().join("other")).unwrap();
        assert_eq!(code(&configured(folder.path(), "other", files)), "other_origin");
    }

    #[tokio::test(start_paused = true)]
    async fn changes_do_not_shorten_the_pause_after_an_error() {
        let (every, changed) = (Duration::from_secs(3_600), Notify::new());
        let busy = ImportError::Synchronizing("notes".to_owned());
        for (error, attempt, expect, seconds) in [
            (None, 3, 0, 0),
            (Some(&ImportError::Panicked), 0, 1, 5),
            (Some(&ImportError::Panicked), 2, 3, 20),
            (Some(&busy), 2, 2, 5),
        ] {
            changed.notify_one();
            let begin = Instant::now();
            assert_eq!(wait(error, attempt, every, &changed).await, expect, "{error:?}");
            assert_eq!(begin.elapsed().as_secs(), seconds, "{error:?}");
        }
    }
}
