//! Watches an origin for changes.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{Config, Event, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

use crate::connectors::{StoreFiles, watched_folder};

/// The watch of an origin, which ends when it is dropped.
pub(super) struct OriginWatch {
    folder: PathBuf,
    identity: Option<FolderIdentity>,
    _watcher: RecommendedWatcher,
}

/// Identity of a folder. Another one at the same path is not watched.
type FolderIdentity = (u64, u64);

impl OriginWatch {
    /// Watches an origin. `changed` is notified of each change; if the system has lost events, too. Changes of the files
    /// of the store are none.
    pub(super) fn start(origin: &Path, store: &Path, changed: &Arc<Notify>) -> notify::Result<Self> {
        let (folder, is_whole) = watched_folder(origin);
        let name = if is_whole { None } else { origin.file_name().map(OsString::from) };
        let store_files = StoreFiles::new(store, origin);
        let changed = Arc::clone(changed);
        let handle = move |event: notify::Result<Event>| {
            if is_relevant(&event, name.as_ref(), &store_files) {
                changed.notify_one();
            }
        };
        // Links are not imported, so what they point to is not watched.
        let config = Config::default().with_follow_symlinks(false);
        let mut watcher = RecommendedWatcher::new(handle, config)?;
        let mode = if is_whole { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
        let identity = identity(&folder);
        watcher.watch(&folder, mode)?;
        Ok(Self { folder, identity, _watcher: watcher })
    }

    /// Returns true if the folder that is watched is still at its path.
    pub(super) fn is_current(&self) -> bool {
        self.identity.is_some() && identity(&self.folder) == self.identity
    }
}

/// Returns true if an event can be a change of an origin, or of the file `name` with the files beside it that have its
/// name as their start. Reading a file is none, and neither is a change of the store.
fn is_relevant(event: &notify::Result<Event>, name: Option<&OsString>, store: &StoreFiles) -> bool {
    let Ok(event) = event else { return true };
    if event.need_rescan() {
        return true;
    }
    match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => {}
        EventKind::Access(_) => return false,
        _ => {}
    }
    if !event.paths.is_empty() && event.paths.iter().all(|path| store.contains(path)) {
        return false;
    }
    let Some(name) = name.map(|name| name.as_encoded_bytes()) else { return true };
    let is_named =
        |path: &PathBuf| path.file_name().is_some_and(|file| file.as_encoded_bytes().starts_with(name));
    event.paths.iter().any(is_named)
}

fn identity(folder: &Path) -> Option<FolderIdentity> {
    let metadata = fs::metadata(folder).ok()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Some((metadata.dev(), metadata.ino()))
    }
    #[cfg(not(unix))]
    {
        let created = metadata.created().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some((created.as_secs(), u64::from(created.subsec_nanos())))
    }
}

#[cfg(test)]
mod tests {
    use notify::event::{CreateKind, Flag};

    use super::*;

    #[test]
    fn reading_is_no_change_and_lost_events_are_one() {
        let event = |kind, path: &str| Ok(Event::new(kind).add_path(PathBuf::from(path)));
        let created = EventKind::Create(CreateKind::File);
        let name = OsString::from("mail.mbox");
        let store = StoreFiles::new(Path::new("/x/notes.db"), Path::new("/x"));
        assert!(is_relevant(&event(created, "/x/a"), None, &store));
        assert!(!is_relevant(
            &event(EventKind::Access(AccessKind::Open(AccessMode::Read)), "/x/a"),
            None,
            &store
        ));
        assert!(is_relevant(
            &event(EventKind::Access(AccessKind::Close(AccessMode::Write)), "/x/a"),
            None,
            &store
        ));
        assert!(is_relevant(&event(created, "/x/mail.mbox"), Some(&name), &store));
        assert!(!is_relevant(&event(created, "/x/other"), Some(&name), &store));
        assert!(!is_relevant(&event(created, "/x/notes.db-wal"), None, &store));
        assert!(!is_relevant(&event(created, "/x/notes.db-index/1.store"), None, &store));
        assert!(is_relevant(&Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)), Some(&name), &store));
    }
}
