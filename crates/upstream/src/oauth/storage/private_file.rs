//! One secret text of an account in a file of the state directory.
//!
//! The file has mode 0600, is encrypted if callers sign in, and is replaced as a whole. A lock file beside it excludes other
//! processes; it stays, because a process could still wait for one that was deleted.

use std::fs::{self, File, Metadata, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use fetchwell_state::cursor::Cursors;
use fetchwell_state::{
    FileIdentity, LockFileError, LockedFile, create_private_directory, not_a_file, open_lock_file,
};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::{Instant, sleep};

use super::super::account::Account;
use super::super::fault::{OAuthError, OAuthFault};
use super::lock::TokenLock;
use super::secret_text::SecretText;

/// Folder of the state directory.
const FOLDER: &str = "mcp-tokens";

/// Maximum size of a file in bytes. Tokens have at most some thousands.
const MAX_FILE_BYTES: u64 = 512 * 1024;

/// Timeout of the lock. A holder sends at most a few requests of 10 seconds.
const LOCK_WITHIN: Duration = Duration::from_secs(60);

/// Pause before the next attempt to get the lock.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Kind of a text: the end of the file's name, and the context of the encryption.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextKind {
    /// End of the name of the file, before its extension.
    pub(super) suffix: &'static str,
    /// Context of the encryption, beside source, server and caller.
    pub(super) context: &'static str,
}

/// One secret text of an account in a file.
#[derive(Debug, Clone)]
pub(super) struct PrivateFile {
    account: Account,
    kind: TextKind,
    pub(super) folder: PathBuf,
    pub(super) path: PathBuf,
    pub(super) lock_path: PathBuf,
    pub(super) lock_within: Duration,
    /// Keys that encrypt the file; `None` for a file that only its mode protects.
    sealed_by: Option<Arc<Cursors>>,
}

/// Identity of a file's version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    identity: FileIdentity,
    modified: Option<SystemTime>,
    bytes: u64,
}

impl PrivateFile {
    /// Creates the file of an account in a state directory. Does not access the disk.
    pub(super) fn new(account: Account, kind: TextKind, state_directory: &Path) -> Self {
        let folder = state_directory.join(FOLDER);
        let stem = format!("{}{}", account.file_stem(), kind.suffix);
        let (path, lock_path) = (folder.join(format!("{stem}.json")), folder.join(format!("{stem}.lock")));
        Self { account, kind, folder, path, lock_path, lock_within: LOCK_WITHIN, sealed_by: None }
    }

    /// Encrypts the file with the keys of the state directory, bound to source, server and caller.
    pub(super) fn sealed_by(self, cursors: Arc<Cursors>) -> Self {
        Self { sealed_by: Some(cursors), ..self }
    }

    /// Returns true if the file is encrypted.
    pub(super) fn is_sealed(&self) -> bool {
        self.sealed_by.is_some()
    }

    /// Returns the identity of the file's version, or `None` if there is no file.
    pub(super) fn stamp(&self) -> Result<Option<Stamp>, OAuthError> {
        let metadata = match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            found => found.map_err(|error| self.storage(&self.path, &error))?,
        };
        // Opening a pipe would wait for its other end.
        if let Some(problem) = not_a_file(&metadata) {
            return Err(self
                .account
                .error(OAuthFault::Storage { path: self.path.clone(), problem: problem.to_owned() }));
        }
        self.check_mode(&metadata)?;
        Ok(Some(Stamp {
            identity: FileIdentity::from_metadata(&metadata),
            modified: metadata.modified().ok(),
            bytes: metadata.len(),
        }))
    }

    /// Returns the error of a text that cannot be parsed.
    pub(super) fn damaged(&self, problem: String) -> OAuthError {
        self.account.error(OAuthFault::Damaged { path: self.path.clone(), problem })
    }

    /// Returns what the encryption is bound to.
    fn context(&self) -> [String; 4] {
        let person = self.account.person().map(|person| person.to_string()).unwrap_or_default();
        [self.kind.context.to_owned(), self.account.source_name().to_string(), self.account.server(), person]
    }

    /// Reads the bytes of the file. Returns `None` if there is none.
    fn bytes(&self) -> Result<Option<Vec<u8>>, OAuthError> {
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|error| self.storage(&self.path, &error))?,
        };
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| self.storage(&self.path, &error))?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(self.damaged(format!("more than {MAX_FILE_BYTES} bytes")));
        }
        Ok(Some(bytes))
    }

    /// Tries to acquire the lock. Returns `None` if another holder has it.
    fn try_lock(&self) -> Result<Option<LockedFile>, OAuthError> {
        self.create_folder()?;
        let file = open_lock_file(&self.lock_path).map_err(|error| match error {
            LockFileError::Io(error) => self.storage(&self.lock_path, &error),
            LockFileError::Foreign(foreign) => self
                .account
                .error(OAuthFault::Storage { path: foreign.path, problem: foreign.problem.to_owned() }),
        })?;
        match LockedFile::try_lock(file) {
            Ok(lock) => Ok(Some(lock)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(self.storage(&self.lock_path, &error)),
        }
    }

    fn create_folder(&self) -> Result<(), OAuthError> {
        create_private_directory(&self.folder).map_err(|error| self.storage(&self.folder, &error))
    }

    #[cfg(unix)]
    fn check_mode(&self, metadata: &Metadata) -> Result<(), OAuthError> {
        use std::os::unix::fs::MetadataExt;
        let mode = metadata.mode() & 0o777;
        match mode & 0o077 {
            0 => Ok(()),
            _ => Err(self.account.error(OAuthFault::OpenToOthers { path: self.path.clone(), mode })),
        }
    }

    #[cfg(not(unix))]
    fn check_mode(&self, _metadata: &Metadata) -> Result<(), OAuthError> {
        // The user's folder is closed to other users.
        Ok(())
    }

    fn storage(&self, path: &Path, error: &std::io::Error) -> OAuthError {
        self.account.error(OAuthFault::Storage { path: path.to_owned(), problem: error.to_string() })
    }
}

#[async_trait]
impl SecretText for PrivateFile {
    async fn read(&self) -> Result<Option<SecretString>, OAuthError> {
        if self.stamp()?.is_none() {
            return Ok(None);
        }
        let Some(bytes) = self.bytes()? else { return Ok(None) };
        let text = String::from_utf8(bytes).map_err(|_bytes| self.damaged("it is not text".to_owned()))?;
        let text = SecretString::from(text);
        let Some(cursors) = &self.sealed_by else { return Ok(Some(text)) };
        let parts = self.context();
        let context = parts.each_ref().map(String::as_str);
        Ok(cursors.open_lasting_text(&context, text.expose_secret()).await.ok().map(SecretString::from))
    }

    async fn write(&self, text: &SecretString) -> Result<(), OAuthError> {
        let text = match &self.sealed_by {
            None => text.clone(),
            Some(cursors) => {
                let parts = self.context();
                let context = parts.each_ref().map(String::as_str);
                SecretString::from(cursors.seal_lasting_text(&context, text.expose_secret()).await)
            }
        };
        let storage = |error| self.storage(&self.path, &error);
        self.create_folder()?;
        // A temporary file has mode 0600 and a random name, which no file of the user has.
        let mut file = tempfile::NamedTempFile::new_in(&self.folder).map_err(storage)?;
        let written = file.write_all(text.expose_secret().as_bytes());
        written.and_then(|()| file.as_file().sync_all()).map_err(storage)?;
        file.persist(&self.path).map(drop).map_err(|error| storage(error.error))
    }

    async fn delete(&self) -> Result<(), OAuthError> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.storage(&self.path, &error)),
            _ => Ok(()),
        }
    }

    async fn lock(&self) -> Result<TokenLock, OAuthError> {
        let deadline = Instant::now() + self.lock_within;
        loop {
            if let Some(lock) = self.try_lock()? {
                return Ok(TokenLock::new(lock));
            }
            if Instant::now() >= deadline {
                return Err(self.account.error(OAuthFault::Locked));
            }
            sleep(LOCK_PAUSE).await;
        }
    }
}
