//! The folder of an index: its owner, and the files in it that may be deleted.
//!
//! **Invariant:** only a vacant folder, or one that is proved to be this store's index, is written into or deleted from, only
//! files with names that an index has are deleted, and no symbolic link is followed. Proofs are the marker file with
//! the store's id, or with its path (the store was deleted and imported again), and the id in tantivy's commit, which
//! is all that folders of earlier releases have.
//!
//! A proof is on disk before the first file of an index and is deleted after the last one. So a process that is killed
//! leaves a folder with a proof, or one with nothing but unfinished files, which counts as vacant.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use fetchwell_state::{beside, create_private_directory};
use serde::{Deserialize, Serialize};

use super::checksum::unseal;
use super::payload::CommitPayload;

/// Name of the file that marks a folder as a search index of fetchwell.
const MARKER: &str = "fetchwell-index.json";

/// Files that prove the owner of a folder, in the order of their deletion.
const PROOFS: [&str; 2] = ["meta.json", MARKER];

/// Value of `format` in the marker.
const FORMAT: &str = "fetchwell search index";

/// Names of tantivy's lock files.
const LOCKS: [&str; 2] = [".tantivy-meta.lock", ".tantivy-writer.lock"];

/// Maximum length in bytes of a marker or a list of segments.
const MAX_JSON_BYTES: u64 = 16 * 1024 * 1024;

/// Extensions of segment files.
const EXTENSIONS: [&str; 8] = ["term", "idx", "pos", "fieldnorm", "fast", "store", "store.temp", "del"];

/// Prefix and suffix of temporary files, which are renamed when they are complete.
const TEMPORARY: (&str, &str) = (".fetchwell-", ".tmp");

#[derive(Debug, Serialize, Deserialize)]
struct Marker {
    format: String,
    /// Id of the store.
    store: String,
    /// Path of the store, which identifies the folder after the store was replaced.
    path: String,
}

/// Returns true if a folder is the index of any store: it has the marker of one, or the name of one beside a file.
pub(crate) fn is_index_folder(folder: &Path) -> bool {
    let store = folder.to_str().and_then(|path| path.strip_suffix("-index"));
    folder.join(MARKER).is_file() || store.is_some_and(|store| Path::new(store).is_file())
}

/// Suffixes of the folders of an index: in use, being built in the current layout beside one of the previous layout, and
/// replaced, until its files are deleted.
const SUFFIXES: [&str; 3] = ["-index", "-index-next", "-index-old"];

/// Returns the folder of a store's index. All links to a store share it.
pub(crate) fn folder_of(store: &Path) -> PathBuf {
    beside(&resolved(store), "-index")
}

/// Returns the folder in which an index of the current layout is built beside one of the previous layout.
pub(super) fn next_folder_of(store: &Path) -> PathBuf {
    beside(&resolved(store), "-index-next")
}

/// Returns the folder of a replaced index until its files are deleted.
fn replaced_folder_of(store: &Path) -> PathBuf {
    beside(&resolved(store), "-index-old")
}

/// Replaces the index of a store by the complete one in the folder beside it. The caller holds the store's write lock.
///
/// After a crash between the two renames there is no index but the complete one beside it, which the next editor puts
/// in place.
pub(super) fn replace_by_next(store: &Path, uuid: &str) -> io::Result<()> {
    let (current, replaced) = (folder_of(store), replaced_folder_of(store));
    IndexFolder::new(replaced.clone(), store, uuid).delete()?;
    match fs::rename(&current, &replaced) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        renamed => renamed?,
    }
    fs::rename(next_folder_of(store), current)?;
    // Files that readers have open stay readable. A folder that cannot be deleted is deleted by the next replacement.
    let _ = IndexFolder::new(replaced, store, uuid).delete();
    Ok(())
}

/// Deletes the index of a store, those that replace it or were replaced, and those that earlier releases kept beside links
/// to the store. The caller holds the store's write lock.
pub(crate) fn delete_index(store: &Path, uuid: &str) -> io::Result<()> {
    let place = resolved(store);
    links_to(&place, store).into_iter().chain([place]).try_for_each(|path| {
        SUFFIXES.iter().try_for_each(|suffix| {
            let store = path.to_string_lossy().into_owned();
            IndexFolder::with_store(beside(&path, suffix), store, uuid.to_owned()).delete()
        })
    })
}

/// Returns the links to a store in its folder and in the folder of the path by which it was opened.
fn links_to(place: &Path, opened: &Path) -> Vec<PathBuf> {
    let folder_of_link = opened.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder_of_link = fs::canonicalize(folder_of_link.unwrap_or(Path::new("."))).ok();
    let folders: BTreeSet<PathBuf> =
        place.parent().map(Path::to_path_buf).into_iter().chain(folder_of_link).collect();
    // A folder that cannot be listed has no index that can be deleted.
    let entries = folders.into_iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()))
        .map(|entry| entry.path())
        .filter(|link| fs::canonicalize(link).is_ok_and(|target| target == place))
        .collect()
}

/// Returns the path of a store without links. A store that does not exist yet is created at its path.
fn resolved(store: &Path) -> PathBuf {
    fs::canonicalize(store).unwrap_or_else(|_missing| store.to_owned())
}

/// Path where the index of a store is or would be.
#[derive(Debug, Clone)]
pub(super) struct IndexFolder {
    pub(super) path: PathBuf,
    marker: PathBuf,
    uuid: String,
    store: String,
}

/// Owner of a folder.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// None: the folder is missing, or has nothing but what a process leaves that ends before it writes the marker.
    Vacant,
    /// This store, as the marker or the last commit proves.
    ThisStore,
    /// Unknown, or another store; the reason is part of error messages.
    Other(&'static str),
}

impl IndexFolder {
    pub(super) fn new(path: PathBuf, store: &Path, uuid: &str) -> Self {
        Self::with_store(path, resolved(store).to_string_lossy().into_owned(), uuid.to_owned())
    }

    fn with_store(path: PathBuf, store: String, uuid: String) -> Self {
        let marker = path.join(MARKER);
        Self { path, marker, uuid, store }
    }

    /// Determines the owner of the folder.
    pub(super) fn owner(&self) -> io::Result<Owner> {
        let metadata = match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Owner::Vacant),
            metadata => metadata?,
        };
        if metadata.is_symlink() {
            return Ok(Owner::Other("it is a symbolic link"));
        }
        if !metadata.is_dir() {
            return Ok(Owner::Other("it is a file"));
        }
        let names = self.names()?;
        if names.iter().all(|name| self.is_leftover(name)) {
            return Ok(Owner::Vacant);
        }
        if names.iter().any(|name| name == MARKER) {
            let marker =
                read_json(&self.marker).and_then(|text| serde_json::from_slice::<Marker>(&text).ok());
            match marker.filter(|marker| marker.format == FORMAT) {
                Some(marker) if marker.store == self.uuid || marker.path == self.store => {
                    return Ok(Owner::ThisStore);
                }
                Some(_) => return Ok(Owner::Other("it is the search index of another store")),
                // The marker is damaged, so only the file names are left as proof.
                None if names.iter().all(|name| is_known_name(name)) => return Ok(Owner::ThisStore),
                None => {}
            }
        }
        match self.committed_store() {
            Some(store) if store == self.uuid => Ok(Owner::ThisStore),
            Some(_) => Ok(Owner::Other("it is the search index of another store")),
            None => Ok(Owner::Other("it has files that are not of a search index of this store")),
        }
    }

    /// Returns the store id in tantivy's last commit, even if the checksum does not match, because folders of earlier
    /// releases have none. An index without commits and segments belongs to any store.
    fn committed_store(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Meta {
            segments: Vec<serde_json::Value>,
            schema: serde_json::Value,
            payload: Option<String>,
        }
        let text = read_json(&self.path.join("meta.json"))?;
        let text = unseal(&text).unwrap_or(&text);
        let meta: Meta = serde_json::from_slice(text).ok()?;
        match meta.payload {
            Some(payload) => Some(serde_json::from_str::<CommitPayload>(&payload).ok()?.store),
            None => {
                let is_ours = meta.schema.to_string().contains("\"tokenizer\":\"fetchwell\"");
                (is_ours && meta.segments.is_empty()).then(|| self.uuid.clone())
            }
        }
    }

    /// Returns true if the folder has a file of an index. One with a user's file keeps its marker when the index is deleted.
    pub(super) fn has_index(&self) -> io::Result<bool> {
        let is_of_index = |name: &String| {
            let is_other = name == MARKER || LOCKS.contains(&name.as_str()) || is_temporary(name);
            is_known_name(name) && !is_other
        };
        Ok(self.names()?.iter().any(is_of_index))
    }

    /// Returns true if this release wrote the list of segments, intact or damaged. Earlier releases wrote plain JSON.
    pub(super) fn is_sealed(&self) -> bool {
        let text = read_json(&self.path.join("meta.json"));
        text.is_none_or(|text| serde_json::from_slice::<serde::de::IgnoredAny>(&text).is_err())
    }

    /// Creates the folder if it is missing and marks it as this store's. The caller holds the store's write lock and
    /// knows that the folder is vacant or this store's.
    pub(super) fn claim(&self) -> io::Result<()> {
        create_private_directory(&self.path)?;
        LOCKS.iter().try_for_each(|lock| self.remove_unless_file(lock))?;
        let marker = Marker { format: FORMAT.to_owned(), store: self.uuid.clone(), path: self.store.clone() };
        let text = serde_json::to_vec(&marker).unwrap_or_default();
        if read_json(&self.marker).is_some_and(|before| before == text) {
            return Ok(());
        }
        // The new marker replaces a file, so the folder always has one. It cannot replace a folder of that name.
        if self.marker.is_dir() && !self.marker.is_symlink() {
            self.remove(MARKER)?;
        }
        write_atomically(&self.path, MARKER, &text)?;
        // After a power failure, no file of the index may be there without the marker.
        sync_folder(&self.path)
    }

    /// Removes the lists of an earlier index. A list of segments that is a regular file stays until it is replaced,
    /// so that readers always find one.
    pub(super) fn remove_lists(&self) -> io::Result<()> {
        self.remove_unless_file("meta.json")?;
        self.remove(".managed.json")
    }

    /// Deletes the folder with all files of an index. Does nothing if there is none.
    fn delete(&self) -> io::Result<()> {
        match self.owner()? {
            Owner::ThisStore => {}
            Owner::Vacant if self.path.is_dir() => {}
            Owner::Vacant => return Ok(()),
            Owner::Other(reason) => {
                return Err(io::Error::other(format!("{}: {reason}", self.path.display())));
            }
        }
        let (known, others): (Vec<String>, Vec<String>) =
            self.names()?.into_iter().partition(|name| is_known_name(name));
        // A user's file stays, and the marker with it: without one, the store could not use the folder again.
        if !others.is_empty() {
            self.claim()?;
        }
        for name in deletion_order(&known) {
            if PROOFS.contains(&name) {
                // The names before it are gone from the disk, too, so that a rest is recognized after a power failure.
                sync_folder(&self.path)?;
            }
            if name != MARKER || others.is_empty() {
                self.remove(name)?;
            }
        }
        if others.is_empty() { fs::remove_dir(&self.path) } else { Ok(()) }
    }

    /// Returns true for a file that a process leaves if it ends before the marker has its name, or that a reader leaves
    /// in a folder that is being deleted: a temporary file of ours, or a lock file without content.
    fn is_leftover(&self, name: &str) -> bool {
        fs::symlink_metadata(self.path.join(name)).is_ok_and(|metadata| {
            metadata.is_file() && (is_own_temporary(name) || LOCKS.contains(&name) && metadata.len() == 0)
        })
    }

    fn remove_unless_file(&self, name: &str) -> io::Result<()> {
        match fs::symlink_metadata(self.path.join(name)) {
            Ok(metadata) if !metadata.is_file() => self.remove(name),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Removes unfinished files and segment files that no list names. A file that cannot be removed stays.
    pub(super) fn remove_unlisted(&self, is_listed: impl Fn(&str) -> bool) {
        for name in self.names().unwrap_or_default() {
            if (is_segment_file(&name) && !is_listed(&name)) || is_temporary(&name) {
                let _ = self.remove(&name);
            }
        }
    }

    /// Removes a file, or an empty folder of that name.
    fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.path.join(name);
        let removed = match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_dir() => fs::remove_dir(&path),
            Ok(_) => fs::remove_file(&path),
            Err(error) => Err(error),
        };
        match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(io::Error::new(error.kind(), format!("{name} cannot be replaced: {error}"))),
            Ok(()) => Ok(()),
        }
    }

    fn names(&self) -> io::Result<Vec<String>> {
        fs::read_dir(&self.path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }
}

/// Creates a temporary file that [`IndexFolder::remove_unlisted`] recognizes if it is left behind.
fn temporary_file(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new().prefix(TEMPORARY.0).suffix(TEMPORARY.1).tempfile_in(folder)
}

/// Writes a file atomically: readers see either all of it or the earlier contents.
pub(super) fn write_atomically(folder: &Path, name: &str, data: &[u8]) -> io::Result<()> {
    let mut file = temporary_file(folder)?;
    file.write_all(data)?;
    file.as_file().sync_data()?;
    file.persist(folder.join(name))?;
    Ok(())
}

/// Returns the names of an index's files in the order of their deletion: what proves the owner is last, so that the rest is
/// recognized if the deletion is interrupted.
fn deletion_order(names: &[String]) -> Vec<&str> {
    let mut order: Vec<&str> = names.iter().map(String::as_str).collect();
    order.sort_by_key(|name| PROOFS.iter().position(|proof| proof == name).map_or(0, |at| at + 1));
    order
}

/// Makes the names of a folder durable. Windows has no such operation; its directory entries are durable without it.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(windows) { Ok(()) } else { fs::File::open(folder)?.sync_data() }
}

/// Returns true if an index can have a file of this name.
pub(super) fn is_known_name(name: &str) -> bool {
    let fixed = [MARKER, "meta.json", ".managed.json"];
    fixed.contains(&name) || LOCKS.contains(&name) || is_segment_file(name) || is_temporary(name)
}

/// Returns true for names of segment files (`SEGMENT.EXTENSION`) and of deletions (`SEGMENT.NUMBER.del`).
fn is_segment_file(name: &str) -> bool {
    let Some((segment, extension)) = name.split_once('.') else { return false };
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let extension = match extension.split_once('.') {
        Some((number, "del")) if is_digits(number) => "del",
        _ => extension,
    };
    segment.len() == 32
        && segment.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && EXTENSIONS.contains(&extension)
}

fn is_own_temporary(name: &str) -> bool {
    name.starts_with(TEMPORARY.0) && name.ends_with(TEMPORARY.1)
}

/// Returns true for files that were being written when a process ended: ours, and those of earlier releases (`.tmp`
/// and six characters).
fn is_temporary(name: &str) -> bool {
    is_own_temporary(name)
        || name
            .strip_prefix(".tmp")
            .is_some_and(|rest| rest.len() == 6 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Reads a regular file up to the maximum length.
fn read_json(path: &Path) -> Option<Vec<u8>> {
    let metadata = fs::symlink_metadata(path).ok()?;
    if !metadata.is_file() {
        return None;
    }
    let mut text = Vec::new();
    fs::File::open(path).ok()?.take(MAX_JSON_BYTES).read_to_end(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_an_index_gives_are_known() {
        let segment = "0123456789abcdef0123456789abcdef";
        for known in ["meta.json", ".managed.json", ".tmpAb12Cd", ".fetchwell-x.tmp", MARKER] {
            assert!(is_known_name(known), "{known}");
        }
        for extension in ["term", "idx", "pos", "fieldnorm", "fast", "store", "12.del"] {
            assert!(is_segment_file(&format!("{segment}.{extension}")), "{extension}");
        }
        for unknown in
            ["notes.txt", "0123.term", "../meta.json", "a/meta.json", ".tmp", ".tmpx/y", "", ".", ".."]
        {
            assert!(!is_known_name(unknown), "{unknown}");
        }
        for extension in ["txt", "x.del", "1.term", "", "term.bak"] {
            assert!(!is_known_name(&format!("{segment}.{extension}")), "{extension}");
        }
    }

    #[test]
    fn a_deletion_that_is_killed_after_any_file_is_recognized_and_completed() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("notes.db-index");
        let folder = IndexFolder::new(path.clone(), &parent.path().join("notes.db"), "id");
        let payload = serde_json::to_string(&CommitPayload::new("id", 1, Vec::new())).unwrap();
        let commit = serde_json::json!({"segments": ["one"], "schema": [], "payload": payload}).to_string();
        let segment = "0123456789abcdef0123456789abcdef";
        // Folders of earlier releases have no marker.
        for is_marked in [true, false] {
            let fill = || {
                fs::create_dir(&path).unwrap();
                let files = ["term", "idx", "7.del"].map(|extension| format!("{segment}.{extension}"));
                for name in
                    files.iter().map(String::as_str).chain(LOCKS).chain([".managed.json", ".tmpAb12Cd"])
                {
                    fs::write(path.join(name), "words").unwrap();
                }
                fs::write(path.join("meta.json"), &commit).unwrap();
                if is_marked {
                    folder.claim().unwrap();
                }
                folder.names().unwrap()
            };
            let count = fill().len();
            folder.delete().unwrap();
            for stop in 0..=count {
                let names = fill();
                deletion_order(&names).iter().take(stop).for_each(|name| folder.remove(name).unwrap());
                let expect = if stop < count { Owner::ThisStore } else { Owner::Vacant };
                assert_eq!(folder.owner().unwrap(), expect, "{is_marked}, after {stop} files of {names:?}");
                folder.delete().unwrap();
                assert!(!path.exists(), "{is_marked}, after {stop} files");
            }
        }
    }
}
