//! Key files in the state directory, readable by their owner only.
//!
//! A change is made under a lock, in a new file that then replaces the old one: two processes that start at the same
//! time end with the same key, and a reader always finds a complete file. Deleting the file invalidates everything
//! that was made with its keys; the next read creates a new one.

use std::fs::{self, File, Metadata};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fetchwell_core::saturate::saturated;
use serde::{Deserialize, Serialize};

use super::codec::{Key, KeyId};
use super::key_ring::{KEPT_FOR, KeyRing};
use crate::{StateError, StateLock};

/// Name of the file of the keys that sign cursors.
pub(super) const CURSOR_KEYS: &str = "cursor-keys.json";

/// Name of the file of the key that encrypts change tokens, which is not rotated.
pub(super) const CHANGE_KEY: &str = "change-key.json";

/// Maximum number of keys, and so of rotations during the lifetime of a cursor.
const MAX_KEYS: usize = 64;

/// Key file of a state directory.
#[derive(Debug, Clone)]
pub struct KeyFile {
    name: &'static str,
    directory: PathBuf,
    path: PathBuf,
}

/// Contents of a key file, with its stamp.
#[derive(Debug, Clone)]
pub struct LoadedKeys {
    /// Keys of the file.
    pub ring: KeyRing,
    /// Number of keys.
    pub count: usize,
    /// Stamp of the file, to detect a later change.
    pub stamp: Stamp,
}

/// Identity of a file's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
    inode: u64,
}

/// Serialized key file. Keys are in order of creation.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFileContent {
    version: u8,
    keys: Vec<SerializedKey>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SerializedKey {
    id: String,
    /// Milliseconds since 1970.
    created_ms: u64,
    secret: String,
}

impl KeyFile {
    /// Returns the file of cursor keys in a state directory, whether it exists or not.
    #[must_use]
    pub fn in_directory(directory: &Path) -> Self {
        Self::named(CURSOR_KEYS, directory)
    }

    /// Returns the file of the change-token key in a state directory, whether it exists or not.
    #[must_use]
    pub fn for_changes(directory: &Path) -> Self {
        Self::named(CHANGE_KEY, directory)
    }

    fn named(name: &'static str, directory: &Path) -> Self {
        Self { name, directory: directory.to_owned(), path: directory.join(name) }
    }

    /// Returns the name of the file.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the keys, or `None` if there is no file.
    ///
    /// # Errors
    ///
    /// It cannot be read, others can read it, or it is damaged.
    pub fn load(&self) -> Result<Option<LoadedKeys>, StateError> {
        Ok(self.read()?.map(|(_, loaded)| loaded))
    }

    /// Returns the keys. Creates the first one if there is none.
    ///
    /// # Errors
    ///
    /// As [`KeyFile::load`], or the file cannot be made.
    pub fn load_or_create(&self, now: Duration) -> Result<LoadedKeys, StateError> {
        if let Some(loaded) = self.load()? {
            return Ok(loaded);
        }
        let _lock = StateLock::acquire(&self.directory)?;
        // Another process may have created it meanwhile.
        if let Some(loaded) = self.load()? {
            return Ok(loaded);
        }
        self.write(&KeyFileContent { version: 1, keys: vec![SerializedKey::random(now)?] })
    }

    /// Adds a key that signs from now on, and removes those that can no longer verify a valid cursor.
    ///
    /// # Errors
    ///
    /// As [`KeyFile::load_or_create`].
    pub fn rotate(&self, now: Duration) -> Result<LoadedKeys, StateError> {
        let _lock = StateLock::acquire(&self.directory)?;
        let mut keys = self.read()?.map_or_else(Vec::new, |(written, _)| written.keys);
        let replaced_at: Vec<u64> = keys.iter().skip(1).map(|key| key.created_ms).collect();
        let dead = replaced_at.iter().filter(|at| now > Duration::from_millis(**at) + KEPT_FOR).count();
        keys.drain(..dead.max((keys.len() + 1).saturating_sub(MAX_KEYS)).min(keys.len()));
        let mut new = SerializedKey::random(now)?;
        while keys.iter().any(|key| key.id == new.id) {
            new = SerializedKey::random(now)?;
        }
        keys.push(new);
        self.write(&KeyFileContent { version: 1, keys })
    }

    /// Returns the stamp of the file, or `None` if there is none.
    #[must_use]
    pub fn stamp(&self) -> Option<Stamp> {
        fs::metadata(&self.path).ok().map(|metadata| Stamp::new(&metadata))
    }

    fn read(&self) -> Result<Option<(KeyFileContent, LoadedKeys)>, StateError> {
        let unreadable = |error| StateError::unreadable(&self.path, &error);
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(unreadable)?,
        };
        let metadata = file.metadata().map_err(unreadable)?;
        self.check_mode(&metadata)?;
        let damaged = |problem: String| StateError::DamagedKeys { path: self.path.clone(), problem };
        // The parser's own message would quote the unexpected text, which may be a secret.
        let written: KeyFileContent = serde_json::from_reader(std::io::BufReader::new(file))
            .map_err(|error| damaged(format!("line {}, column {}", error.line(), error.column())))?;
        if written.version != 1 {
            return Err(damaged(format!("version {}, and 1 is known", written.version)));
        }
        let loaded = written.loaded(Stamp::new(&metadata));
        let loaded = loaded.ok_or_else(|| damaged("a key is not 32 bytes, or there is none".to_owned()))?;
        Ok(Some((written, loaded)))
    }

    #[cfg(unix)]
    fn check_mode(&self, metadata: &Metadata) -> Result<(), StateError> {
        use std::os::unix::fs::MetadataExt;
        let mode = metadata.mode() & 0o777;
        match mode & 0o077 {
            0 => Ok(()),
            _ => Err(StateError::OpenToOthers { path: self.path.clone(), mode }),
        }
    }

    #[cfg(not(unix))]
    fn check_mode(&self, _metadata: &Metadata) -> Result<(), StateError> {
        // The user's folder is closed to other users.
        Ok(())
    }

    fn write(&self, written: &KeyFileContent) -> Result<LoadedKeys, StateError> {
        let unwritable = |error| StateError::unwritable(&self.path, &error);
        // A temporary file has mode 0600 and a random name, which no file of the user has.
        let mut file = tempfile::NamedTempFile::new_in(&self.directory).map_err(unwritable)?;
        let text = serde_json::to_vec_pretty(written).unwrap_or_default();
        file.write_all(&text).and_then(|()| file.as_file().sync_all()).map_err(unwritable)?;
        let stamp = Stamp::new(&file.as_file().metadata().map_err(unwritable)?);
        file.persist(&self.path).map_err(|error| unwritable(error.error))?;
        let problem = "it was written wrongly".to_owned();
        written.loaded(stamp).ok_or(StateError::DamagedKeys { path: self.path.clone(), problem })
    }
}

impl Stamp {
    fn new(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(metadata);
        #[cfg(not(unix))]
        let inode = 0;
        Self { modified: metadata.modified().ok(), bytes: metadata.len(), inode }
    }
}

impl KeyFileContent {
    fn loaded(&self, stamp: Stamp) -> Option<LoadedKeys> {
        let (first, later) = self.keys.split_first()?;
        let ring = later.iter().try_fold(KeyRing::new(first.key()?), |ring, key| {
            Some(ring.replaced_by(key.key()?, Duration::from_millis(key.created_ms)))
        });
        Some(LoadedKeys { ring: ring?, count: self.keys.len(), stamp })
    }
}

impl SerializedKey {
    fn random(now: Duration) -> Result<Self, StateError> {
        let (mut id, mut secret) = ([0; 4], [0; 32]);
        getrandom::fill(&mut id)?;
        getrandom::fill(&mut secret)?;
        Ok(Self {
            id: KeyId(id).to_string(),
            created_ms: saturated::<u64>(now.as_millis()),
            secret: STANDARD.encode(secret),
        })
    }

    fn key(&self) -> Option<Key> {
        let id = KeyId::parse(&self.id)?;
        let secret = STANDARD.decode(&self.secret).ok()?;
        Some(Key::new(id, &secret.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1_795_000_000);

    fn at(seconds: u64) -> Duration {
        NOW + Duration::from_secs(seconds)
    }

    #[test]
    fn many_that_start_at_once_have_one_key() {
        let folder = tempfile::tempdir().unwrap();
        let file = KeyFile::in_directory(folder.path());
        assert!(file.load().unwrap().is_none());
        let start = std::sync::Barrier::new(8);
        let ids: Vec<KeyId> = std::thread::scope(|scope| {
            let one = || {
                start.wait();
                file.load_or_create(NOW).unwrap().ring.newest().id()
            };
            let all: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        assert_eq!(file.load().unwrap().unwrap().stamp, file.stamp().unwrap());
    }

    #[test]
    fn a_rotation_keeps_the_keys_that_are_needed() {
        let folder = tempfile::tempdir().unwrap();
        let file = KeyFile::in_directory(folder.path());
        let first = file.load_or_create(NOW).unwrap();
        let second = file.rotate(at(1_000)).unwrap();
        assert_ne!(first.stamp, second.stamp);
        assert!(second.ring.key(first.ring.newest().id(), at(1_602)).is_some());
        assert!(second.ring.key(first.ring.newest().id(), at(1_603)).is_none());
        assert_eq!(file.rotate(at(1_300)).unwrap().count, 3);
        // The first key was replaced more than an hour ago and the second was not: cursors of another server may be
        // valid for so long.
        assert_eq!(file.rotate(at(1_603)).unwrap().count, 4);
        assert_eq!(file.rotate(at(4_603)).unwrap().count, 4);
        for _ in 0..100 {
            assert!(file.rotate(at(4_604)).unwrap().count <= MAX_KEYS);
        }
        let text = fs::read_to_string(&file.path).unwrap();
        assert_eq!(text.matches("\"secret\"").count(), MAX_KEYS);
        assert!(!format!("{:?}", file.load().unwrap()).contains("block"));
    }

    #[test]
    fn a_file_that_is_not_as_it_should_be_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let file = KeyFile::in_directory(folder.path());
        file.load_or_create(NOW).unwrap();
        let good = fs::read_to_string(&file.path).unwrap();
        let secret = good.split('"').rev().nth(1).unwrap().to_owned();
        for text in [
            String::new(),
            "{}".to_owned(),
            good.replace("\"version\": 1", "\"version\": 2"),
            good.replace(&secret, "c2hvcnQ="),
            good.replace(&secret, "?"),
            good.replace("\"secret\"", "\"extra\": 1, \"secret\""),
            good.replace("created_ms\": ", "created_ms\": \"x\", \"y\": "),
            r#"{"version": 1, "keys": []}"#.to_owned(),
        ] {
            fs::write(&file.path, &text).unwrap();
            let problem = file.load().unwrap_err().to_string();
            assert!(problem.contains("delete it") && problem.contains(CURSOR_KEYS), "{problem}");
            assert!(!problem.contains(&secret));
            assert!(file.load_or_create(NOW).is_err() && file.rotate(NOW).is_err());
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_its_owner_can_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = KeyFile::in_directory(folder.path());
        file.load_or_create(NOW).unwrap();
        file.rotate(NOW).unwrap();
        assert_eq!(fs::metadata(&file.path).unwrap().permissions().mode() & 0o777, 0o600);
        for mode in [0o640, 0o604, 0o660] {
            fs::set_permissions(&file.path, fs::Permissions::from_mode(mode)).unwrap();
            let problem = file.load().unwrap_err().to_string();
            assert!(problem.contains("chmod 600") && problem.contains(&format!("{mode:o}")), "{problem}");
        }
    }
}
