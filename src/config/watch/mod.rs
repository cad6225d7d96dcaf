//! Watches the configuration file and delivers its text after each complete write (debounced).
//!
//! The folders are watched, not the file, because editors replace the file and orchestrators replace links to it. A
//! file is read after a writer has closed it, and not while one has it open, so that a partial write is never
//! delivered. The text is not parsed here.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use fetchwell_core::saturate::saturated;
use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};

use super::error::ConfigError;
use super::text::read_text;

/// Time without events after which a text that was read is delivered. Only Linux reports that a writer has closed the
/// file.
const SETTLE_TIME: Duration = Duration::from_millis(if REPORTS_CLOSE { 3 } else { 50 });

/// Time for which a file must be missing before its removal is delivered, because editors move the old file away
/// before they write the new one.
const REMOVAL_DELAY: Duration = Duration::from_millis(100);

/// Interval at which a folder that cannot be watched is tried again, and the file read.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of consecutive reads of a file that changes while it is read.
const MAX_ROUNDS: usize = 50;

/// Maximum number of symbolic links to follow, as on Linux.
const MAX_LINKS: usize = 40;

/// True if the system reports that a writer has closed a file.
const REPORTS_CLOSE: bool = cfg!(target_os = "linux");

/// A change of the watched file.
#[derive(Debug)]
pub enum FileChange {
    /// The file has another text.
    Text {
        /// The whole text.
        text: String,
        /// Time at which the system reported the change.
        at: Instant,
    },
    /// The file does not exist any more.
    Removed,
    /// The file cannot be read as text.
    Unreadable(ConfigError),
}

/// The error for a file that cannot be watched.
#[derive(Debug, thiserror::Error)]
#[error("changes of {} cannot be watched ({problem}); restart fetchwell after a change", .path.display())]
pub struct WatchError {
    path: PathBuf,
    problem: String,
}

/// The handle of a watch, which ends when it is dropped.
#[derive(Debug)]
pub struct WatchHandle {
    sender: Sender<Message>,
}

impl Drop for WatchHandle {
    fn drop(&mut self) {
        // The thread may already have ended.
        let _ = self.sender.send(Message::Stop);
    }
}

/// A message to the watching thread.
enum Message {
    Event(Instant, notify::Result<Event>),
    Stop,
}

/// The relevance of an event for the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relevance {
    None,
    /// The file is open for writing, and a close event will follow.
    Writing,
    /// The file may have another content now.
    Changed,
    /// Another file in the folder changed, which may be a link to the file.
    Neighbour,
}

/// Calls `on_change` on a separate thread whenever the text of the file changes, at first if it differs from `known`.
///
/// # Errors
///
/// The system cannot report changes.
pub fn watch(
    path: &Path,
    known: String,
    on_change: impl FnMut(FileChange) + Send + 'static,
) -> Result<WatchHandle, WatchError> {
    let unwatched = |problem: String| WatchError { path: path.to_owned(), problem };
    let path = std::path::absolute(path).map_err(|error| unwatched(error.to_string()))?;
    let (sender, receiver) = channel();
    let event_sender = sender.clone();
    let watcher = notify::recommended_watcher(move |event| {
        // Sending fails after the thread has ended.
        let _ = event_sender.send(Message::Event(Instant::now(), event));
    });
    let watcher = watcher.map_err(|error| unwatched(error.to_string()))?;
    let paths = FilePaths::resolve(&path);
    let mut watch = Watch {
        path: path.clone(),
        watcher,
        receiver,
        paths,
        watched: BTreeSet::new(),
        known,
        problem: None,
        on_change: Box::new(on_change),
    };
    watch.follow().map_err(|error| unwatched(error.to_string()))?;
    let thread = std::thread::Builder::new().name("configuration".to_owned()).spawn(move || watch.run());
    thread.map_err(|error| unwatched(error.to_string()))?;
    Ok(WatchHandle { sender })
}

/// The paths of a file, through all symbolic links to it.
#[derive(Debug, Default, PartialEq, Eq)]
struct FilePaths {
    /// Paths of the links and of the file itself.
    files: Vec<PathBuf>,
    /// Folders of these paths.
    folders: BTreeSet<PathBuf>,
    /// True if all of the folders exist.
    is_whole: bool,
}

impl FilePaths {
    fn resolve(path: &Path) -> Self {
        let mut paths = Self::default();
        let mut next = path.to_owned();
        for _ in 0..MAX_LINKS {
            let (Some(folder), Some(name)) = (next.parent(), next.file_name()) else { return paths };
            let Ok(folder) = fs::canonicalize(folder) else { return paths };
            let file = folder.join(name);
            let link = fs::read_link(&file);
            paths.files.push(file);
            paths.folders.insert(folder.clone());
            match link {
                Ok(to) => next = folder.join(to),
                Err(_no_link) => break,
            }
        }
        paths.is_whole = true;
        paths
    }
}

struct Watch {
    path: PathBuf,
    watcher: RecommendedWatcher,
    receiver: Receiver<Message>,
    paths: FilePaths,
    watched: BTreeSet<PathBuf>,
    /// Text that was delivered last.
    known: String,
    /// Problem that was delivered last, since the last text.
    problem: Option<String>,
    on_change: Box<dyn FnMut(FileChange) + Send>,
}

impl Watch {
    fn run(mut self) {
        // The file may have changed before it was watched.
        let mut changed = Some(Instant::now());
        loop {
            if let Some(at) = changed.take()
                && !self.read(at)
            {
                return;
            }
            let is_watched = self.paths.is_whole && self.paths.folders == self.watched;
            let message = if is_watched {
                self.receiver.recv().map_err(|_closed| RecvTimeoutError::Disconnected)
            } else {
                self.receiver.recv_timeout(RETRY_INTERVAL)
            };
            changed = match message {
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(Message::Event(at, event)) => (self.relevance(&event) == Relevance::Changed).then_some(at),
                Err(RecvTimeoutError::Timeout) => {
                    self.paths = FilePaths::resolve(&self.path);
                    Some(Instant::now())
                }
            };
            if changed.is_some() {
                // A folder that does not exist yet is tried again later.
                let _ = self.follow();
            }
        }
    }

    /// Watches the folders that the file is in now, and no others.
    fn follow(&mut self) -> notify::Result<()> {
        for folder in self.watched.difference(&self.paths.folders) {
            // The watch of a removed folder has already ended.
            let _ = self.watcher.unwatch(folder);
        }
        self.watched.retain(|folder| self.paths.folders.contains(folder));
        for folder in &self.paths.folders {
            if !self.watched.contains(folder) {
                self.watcher.watch(folder, RecursiveMode::NonRecursive)?;
                self.watched.insert(folder.clone());
            }
        }
        Ok(())
    }

    fn relevance(&mut self, event: &notify::Result<Event>) -> Relevance {
        let Ok(event) = event else { return Relevance::Changed };
        if event.paths.iter().any(|path| self.watched.contains(path)) && event.kind.is_remove() {
            // The folder itself was removed. Another one of the same name is not watched.
            self.watched.retain(|folder| !event.paths.contains(folder));
            self.paths = FilePaths::resolve(&self.path);
            return Relevance::Changed;
        }
        let it = event.paths.iter().find(|path| self.paths.files.contains(path));
        let relevance = relevance(event, it.map(PathBuf::as_path));
        if relevance == Relevance::None || relevance == Relevance::Writing {
            return relevance;
        }
        let paths = FilePaths::resolve(&self.path);
        let is_elsewhere = paths != self.paths;
        self.paths = paths;
        match relevance {
            Relevance::Neighbour if !is_elsewhere => Relevance::None,
            _ => Relevance::Changed,
        }
    }

    /// Reads the file once there are no more events, and delivers a change. Returns false if the watch has ended.
    fn read(&mut self, mut at: Instant) -> bool {
        for _ in 0..MAX_ROUNDS {
            let text = read_text(&self.path);
            let is_missing = text.is_err() && !self.path.exists();
            let (mut is_written, mut is_changed) = (false, false);
            let until = Instant::now() + if is_missing { REMOVAL_DELAY } else { SETTLE_TIME };
            loop {
                match self.receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
                    Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
                    Err(RecvTimeoutError::Timeout) => break,
                    Ok(Message::Event(then, event)) => match self.relevance(&event) {
                        Relevance::None | Relevance::Neighbour => {}
                        Relevance::Writing => is_written = true,
                        Relevance::Changed => {
                            (is_written, is_changed, at) = (false, true, then);
                            // The missing file exists again.
                            if is_missing {
                                break;
                            }
                        }
                    },
                }
            }
            if is_written {
                // The writer will close the file, which is an event.
                return true;
            }
            // A writer without an event so far has changed the length.
            let bytes = |text: &String| saturated::<u64>(text.len());
            let is_as_read =
                |text: &String| fs::metadata(&self.path).is_ok_and(|metadata| metadata.len() == bytes(text));
            if !is_changed && text.as_ref().map_or(true, is_as_read) {
                self.deliver(text, is_missing, at);
                return true;
            }
            let _ = self.follow();
        }
        true
    }

    fn deliver(&mut self, text: Result<String, ConfigError>, is_missing: bool, at: Instant) {
        let (problem, noticed) = match text {
            Ok(text) => {
                self.problem = None;
                if text != self.known {
                    self.known.clone_from(&text);
                    (self.on_change)(FileChange::Text { text, at });
                }
                return;
            }
            Err(_) if is_missing => ("gone".to_owned(), FileChange::Removed),
            Err(error) => (error.to_string(), FileChange::Unreadable(error)),
        };
        // A problem that is found again and again is delivered once.
        if self.problem.as_ref() != Some(&problem) {
            self.problem = Some(problem);
            (self.on_change)(noticed);
        }
    }
}

/// Returns the relevance of an event. `it` is the watched file, if the event is about it.
fn relevance(event: &Event, it: Option<&Path>) -> Relevance {
    if event.need_rescan() {
        return Relevance::Changed;
    }
    match (event.kind, it) {
        (EventKind::Access(AccessKind::Close(AccessMode::Write)), Some(_)) => Relevance::Changed,
        (EventKind::Access(_), _) => Relevance::None,
        (EventKind::Create(_), Some(it)) => {
            if REPORTS_CLOSE && is_to_be_written(it) {
                Relevance::Writing
            } else {
                Relevance::Changed
            }
        }
        (EventKind::Modify(ModifyKind::Data(_)), Some(_)) => {
            if REPORTS_CLOSE {
                Relevance::Writing
            } else {
                Relevance::Changed
            }
        }
        (EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Metadata(_)), None) => Relevance::None,
        (_, Some(_)) => Relevance::Changed,
        (_, None) => Relevance::Neighbour,
    }
}

/// Returns true if a new file is still open for writing. A link is complete at once.
fn is_to_be_written(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file() && names(&metadata) < 2)
}

#[cfg(unix)]
fn names(metadata: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(metadata)
}

#[cfg(not(unix))]
fn names(_metadata: &fs::Metadata) -> u64 {
    1
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
