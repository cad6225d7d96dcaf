//! Watches an origin for changes.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use fetchwell_connectors::{StoreFiles, watched_folder};
use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{Config, Event, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

/// The watch of an origin, which ends when it is dropped.
pub(super) struct OriginWatch {
    place: WatchedPlace,
    /// True if the system reported that the folder was deleted or moved.
    is_lost: Arc<AtomicBool>,
    _watcher: RecommendedWatcher,
}

/// The folder in which changes of an origin are seen. Differs when the origin is deleted, created again, or replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WatchedPlace {
    folder: PathBuf,
    /// True if the folder is the origin, false if the origin is a file in it or missing.
    is_whole: bool,
    /// True if there is a file or folder at the path of the origin.
    is_present: bool,
    /// Identity of the folder, or `None` if it cannot be read.
    identity: Option<FolderIdentity>,
}

/// Identity of a folder: device, number and time of creation, of which a system may not have all. A folder that is
/// created after another one was deleted can have the same number.
type FolderIdentity = (u64, u64, Option<SystemTime>);

impl WatchedPlace {
    /// Reads the folder in which changes of an origin are seen.
    pub(super) fn read(origin: &Path) -> Self {
        let (folder, is_whole) = watched_folder(origin);
        let identity = identity(&folder);
        Self { folder, is_whole, is_present: origin.exists(), identity }
    }
}

impl OriginWatch {
    /// Watches an origin. `changed` is notified of each change; if the system has lost events, too. Changes of the files
    /// of the store are none.
    pub(super) fn start(
        origin: &Path,
        place: &WatchedPlace,
        store: &Path,
        changed: &Arc<Notify>,
    ) -> notify::Result<Self> {
        let name = if place.is_whole { None } else { origin.file_name().map(OsString::from) };
        let store_files = StoreFiles::new(store, origin);
        let (changed, is_lost) = (Arc::clone(changed), Arc::new(AtomicBool::new(false)));
        let (folder, loses) = (place.folder.clone(), Arc::clone(&is_lost));
        let handle = move |event: notify::Result<Event>| {
            let loses_folder = event.as_ref().is_ok_and(|event| is_loss(event, &folder));
            if loses_folder {
                loses.store(true, Ordering::Relaxed);
            }
            if loses_folder || is_relevant(&event, name.as_ref(), &store_files) {
                changed.notify_one();
            }
        };
        // Links are not imported, so what they point to is not watched.
        let config = Config::default().with_follow_symlinks(false);
        let mut watcher = RecommendedWatcher::new(handle, config)?;
        let mode = if place.is_whole { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
        watcher.watch(&place.folder, mode)?;
        Ok(Self { place: place.clone(), is_lost, _watcher: watcher })
    }

    /// Returns true if the folder that is watched is still the one in which changes of the origin are seen.
    pub(super) fn is_current(&self, place: &WatchedPlace) -> bool {
        self.place.identity.is_some() && self.place == *place && !self.is_lost.load(Ordering::Relaxed)
    }
}

/// Returns true if an event says that the watched folder itself was deleted or moved.
fn is_loss(event: &Event, folder: &Path) -> bool {
    let is_removal = matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
    is_removal && event.paths.iter().any(|path| path == folder)
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
    let created = metadata.created().ok();
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Some((metadata.dev(), metadata.ino(), created))
    }
    #[cfg(not(unix))]
    Some((0, 0, Some(created?)))
}

#[cfg(test)]
mod tests {
    use notify::event::{CreateKind, Flag, RemoveKind, RenameMode};

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

    #[test]
    fn an_origin_that_is_missing_or_replaced_is_another_place() {
        let folder = tempfile::tempdir().unwrap();
        let origin = folder.path().join("notes");
        fs::create_dir(&origin).unwrap();
        let (changed, store) = (Arc::new(Notify::new()), folder.path().join("notes.db"));
        let before = WatchedPlace::read(&origin);
        let watch = OriginWatch::start(&origin, &before, &store, &changed).unwrap();
        assert!(watch.is_current(&WatchedPlace::read(&origin)));
        fs::rename(&origin, folder.path().join("away")).unwrap();
        let missing = WatchedPlace::read(&origin);
        assert!(!watch.is_current(&missing));
        // A watch of the parent folder sees the origin appear, and nothing in it.
        let watch = OriginWatch::start(&origin, &missing, &store, &changed).unwrap();
        fs::create_dir(&origin).unwrap();
        let again = WatchedPlace::read(&origin);
        assert!(!watch.is_current(&again) && again != before);
    }

    #[test]
    fn a_folder_that_is_deleted_or_moved_is_lost() {
        let event = |kind, path: &str| Event::new(kind).add_path(PathBuf::from(path));
        let removed = EventKind::Remove(RemoveKind::Folder);
        let moved = EventKind::Modify(ModifyKind::Name(RenameMode::From));
        let folder = Path::new("/x/notes");
        assert!(is_loss(&event(removed, "/x/notes"), folder) && is_loss(&event(moved, "/x/notes"), folder));
        assert!(!is_loss(&event(removed, "/x/notes/a"), folder));
        assert!(!is_loss(&event(EventKind::Create(CreateKind::Folder), "/x/notes"), folder));
    }
}
