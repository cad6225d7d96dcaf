//! News of a configuration file: its text whenever a new one is complete.
//!
//! Folders are watched and not the file: editors put another file in its place, and an orchestrator another link.
//! A file is read when a writer has closed it, and not while one has it open, so half a file is nobody's
//! configuration. What a text means is not known here.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};

use super::error::ConfigError;
use super::text::read_text;

/// How long nothing must happen to a file that was read, until what was read counts. Elsewhere than on Linux nobody
/// says that a writer is done.
const SETTLED: Duration = Duration::from_millis(if WRITERS_ARE_SEEN { 3 } else { 50 });

/// How long a file must be gone, until it is: editors move the old one away before they write the new one.
const GONE: Duration = Duration::from_millis(100);

/// How often a folder that cannot be watched is tried again, and the file looked at.
const AGAIN: Duration = Duration::from_secs(1);

/// How often a file that changes while it is read is read again at once.
const ROUNDS_MOST: usize = 50;

/// Links to links that are followed, as many as Linux does.
const LINKS_MOST: usize = 40;

/// Whether the system says when a writer closes a file.
const WRITERS_ARE_SEEN: bool = cfg!(target_os = "linux");

/// What there is to know.
#[derive(Debug)]
pub enum Noticed {
    /// There is another text.
    Text {
        /// All of it.
        text: String,
        /// When the system told of it.
        at: Instant,
    },
    /// There is no file any more.
    Removed,
    /// There is something that is no text.
    Unreadable(ConfigError),
}

/// A file that cannot be watched.
#[derive(Debug, thiserror::Error)]
#[error("changes of {} are not noticed ({problem}); start fetchwell again after one", .path.display())]
pub struct WatchError {
    path: PathBuf,
    problem: String,
}

/// A file that is watched until this is dropped.
#[derive(Debug)]
pub struct Watching {
    news: Sender<News>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.news.send(News::Stop);
    }
}

/// What the thread that reads is told.
enum News {
    Event(Instant, notify::Result<Event>),
    Stop,
}

/// What an event says of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Nothing,
    /// Somebody writes to it, and will close it.
    Writing,
    /// It may say something else now.
    Changed,
    /// Something beside it changed, which may be a link to it.
    Beside,
}

/// Calls `on_change` on a thread of its own whenever the file has another text than it had, at first than `known`.
///
/// # Errors
///
/// The system does not tell of changes.
pub fn watch(
    path: &Path,
    known: String,
    on_change: impl FnMut(Noticed) + Send + 'static,
) -> Result<Watching, WatchError> {
    let unwatched = |problem: String| WatchError { path: path.to_owned(), problem };
    let path = std::path::absolute(path).map_err(|error| unwatched(error.to_string()))?;
    let (news, coming) = channel();
    let told = news.clone();
    let watcher = notify::recommended_watcher(move |event| {
        // After the last reader nobody is told.
        let _ = told.send(News::Event(Instant::now(), event));
    });
    let watcher = watcher.map_err(|error| unwatched(error.to_string()))?;
    let places = Places::of(&path);
    let mut watch = Watch {
        path: path.clone(),
        watcher,
        coming,
        places,
        watched: BTreeSet::new(),
        known,
        problem: None,
        on_change: Box::new(on_change),
    };
    watch.follow().map_err(|error| unwatched(error.to_string()))?;
    let thread = std::thread::Builder::new().name("configuration".to_owned()).spawn(move || watch.run());
    thread.map_err(|error| unwatched(error.to_string()))?;
    Ok(Watching { news })
}

/// Where a file is, through all links to it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Places {
    /// The names that lead to it, and its own.
    files: Vec<PathBuf>,
    /// The folders of these.
    folders: BTreeSet<PathBuf>,
    /// Whether there is a folder for each.
    is_whole: bool,
}

impl Places {
    fn of(path: &Path) -> Self {
        let mut places = Self::default();
        let mut next = path.to_owned();
        for _ in 0..LINKS_MOST {
            let (Some(folder), Some(name)) = (next.parent(), next.file_name()) else { return places };
            let Ok(folder) = fs::canonicalize(folder) else { return places };
            let file = folder.join(name);
            let link = fs::read_link(&file);
            places.files.push(file);
            places.folders.insert(folder.clone());
            match link {
                Ok(to) => next = folder.join(to),
                Err(_no_link) => break,
            }
        }
        places.is_whole = true;
        places
    }
}

struct Watch {
    path: PathBuf,
    watcher: RecommendedWatcher,
    coming: Receiver<News>,
    places: Places,
    watched: BTreeSet<PathBuf>,
    /// The last text that was told.
    known: String,
    /// What was told last that was no text.
    problem: Option<String>,
    on_change: Box<dyn FnMut(Noticed) + Send>,
}

impl Watch {
    fn run(mut self) {
        // It may have changed before it was watched.
        let mut changed = Some(Instant::now());
        loop {
            if let Some(at) = changed.take()
                && !self.read(at)
            {
                return;
            }
            let is_watched = self.places.is_whole && self.places.folders == self.watched;
            let news = match is_watched {
                true => self.coming.recv().map_err(|_nobody| RecvTimeoutError::Disconnected),
                false => self.coming.recv_timeout(AGAIN),
            };
            changed = match news {
                Ok(News::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(News::Event(at, event)) => (self.meaning(&event) == Meaning::Changed).then_some(at),
                Err(RecvTimeoutError::Timeout) => {
                    self.places = Places::of(&self.path);
                    Some(Instant::now())
                }
            };
            if changed.is_some() {
                // A folder that is not there yet is tried again.
                let _ = self.follow();
            }
        }
    }

    /// Watches the folders that the file is in now, and no others.
    fn follow(&mut self) -> notify::Result<()> {
        for folder in self.watched.difference(&self.places.folders) {
            // One that is gone is not watched any more.
            let _ = self.watcher.unwatch(folder);
        }
        self.watched.retain(|folder| self.places.folders.contains(folder));
        for folder in &self.places.folders {
            if !self.watched.contains(folder) {
                self.watcher.watch(folder, RecursiveMode::NonRecursive)?;
                self.watched.insert(folder.clone());
            }
        }
        Ok(())
    }

    fn meaning(&mut self, event: &notify::Result<Event>) -> Meaning {
        let Ok(event) = event else { return Meaning::Changed };
        if event.paths.iter().any(|path| self.watched.contains(path)) && event.kind.is_remove() {
            // The folder itself is gone; another of its name is not watched.
            self.watched.retain(|folder| !event.paths.contains(folder));
            self.places = Places::of(&self.path);
            return Meaning::Changed;
        }
        let is_it = |path: &&PathBuf| self.places.files.contains(path);
        let it = event.paths.iter().find(is_it);
        let meaning = meaning(event, it.map(PathBuf::as_path));
        if meaning == Meaning::Nothing || meaning == Meaning::Writing {
            return meaning;
        }
        let places = Places::of(&self.path);
        let is_elsewhere = places != self.places;
        self.places = places;
        match meaning {
            Meaning::Beside if !is_elsewhere => Meaning::Nothing,
            _ => Meaning::Changed,
        }
    }

    /// Reads the file, once nothing happens to it, and tells what is new. False when it is time to end.
    fn read(&mut self, mut at: Instant) -> bool {
        for _ in 0..ROUNDS_MOST {
            let text = read_text(&self.path);
            let is_missing = text.is_err() && !self.path.exists();
            let (mut is_written, mut is_changed) = (false, false);
            let until = Instant::now() + if is_missing { GONE } else { SETTLED };
            loop {
                match self.coming.recv_timeout(until.saturating_duration_since(Instant::now())) {
                    Ok(News::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
                    Err(RecvTimeoutError::Timeout) => break,
                    Ok(News::Event(then, event)) => match self.meaning(&event) {
                        Meaning::Nothing | Meaning::Beside => {}
                        Meaning::Writing => is_written = true,
                        Meaning::Changed => {
                            (is_written, is_changed, at) = (false, true, then);
                            // What was gone is there again.
                            if is_missing {
                                break;
                            }
                        }
                    },
                }
            }
            if is_written {
                // Its writer will close it, which is news.
                return true;
            }
            // A writer of whom no news came yet has made it shorter, or longer.
            let bytes = |text: &String| u64::try_from(text.len()).unwrap_or(u64::MAX);
            let is_as_read =
                |text: &String| fs::metadata(&self.path).is_ok_and(|metadata| metadata.len() == bytes(text));
            if !is_changed && text.as_ref().map_or(true, is_as_read) {
                self.tell(text, is_missing, at);
                return true;
            }
            let _ = self.follow();
        }
        true
    }

    fn tell(&mut self, text: Result<String, ConfigError>, is_missing: bool, at: Instant) {
        let (problem, noticed) = match text {
            Ok(text) => {
                self.problem = None;
                if text != self.known {
                    self.known.clone_from(&text);
                    (self.on_change)(Noticed::Text { text, at });
                }
                return;
            }
            Err(_) if is_missing => ("gone".to_owned(), Noticed::Removed),
            Err(error) => (error.to_string(), Noticed::Unreadable(error)),
        };
        // A folder that is looked at again and again is no news every time.
        if self.problem.as_ref() != Some(&problem) {
            self.problem = Some(problem);
            (self.on_change)(noticed);
        }
    }
}

/// What an event says, of the file `it` or of others.
fn meaning(event: &Event, it: Option<&Path>) -> Meaning {
    if event.need_rescan() {
        return Meaning::Changed;
    }
    match (event.kind, it) {
        (EventKind::Access(AccessKind::Close(AccessMode::Write)), Some(_)) => Meaning::Changed,
        (EventKind::Access(_), _) => Meaning::Nothing,
        (EventKind::Create(_), Some(it)) => {
            if WRITERS_ARE_SEEN && is_to_be_written(it) {
                Meaning::Writing
            } else {
                Meaning::Changed
            }
        }
        (EventKind::Modify(ModifyKind::Data(_)), Some(_)) => {
            if WRITERS_ARE_SEEN {
                Meaning::Writing
            } else {
                Meaning::Changed
            }
        }
        (EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Metadata(_)), None) => Meaning::Nothing,
        (_, Some(_)) => Meaning::Changed,
        (_, None) => Meaning::Beside,
    }
}

/// Whether a file that was just made will be closed by whoever made it: a link is there at once.
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
