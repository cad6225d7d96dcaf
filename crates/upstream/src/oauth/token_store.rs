//! Tokens of one account in a file of the state directory.
//!
//! The file has mode 0600, is encrypted if it is a caller's, and is replaced as a whole. A lock file beside it excludes other processes; it stays, because
//! a process could still wait for one that was deleted.

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
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use tokio::time::{Instant, sleep};

use super::account::Account;
use super::fault::{OAuthError, OAuthFault};
use super::stored_login::{LoginTextFault, StoredLogin};
use super::tokens::{TokenLock, Tokens};

/// Folder of the state directory.
const FOLDER: &str = "mcp-tokens";

/// Context of the encryption, beside source, server and caller.
const CONTEXT: &str = "tokens of a caller";

/// Maximum size of the file in bytes. Tokens have at most some thousands.
const MAX_FILE_BYTES: u64 = 512 * 1024;

/// Timeout of the lock. A holder sends at most a few requests of 10 seconds.
const LOCK_WITHIN: Duration = Duration::from_secs(60);

/// Pause before the next attempt to get the lock.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Tokens of one account in a file.
#[derive(Debug)]
pub struct TokenStore {
    account: Account,
    folder: PathBuf,
    path: PathBuf,
    lock_path: PathBuf,
    lock_within: Duration,
    /// Keys that encrypt the file; `None` for a file that only its mode protects.
    sealed_by: Option<Arc<Cursors>>,
    /// The latest content, which is read again when the file changes.
    known: Mutex<Option<(Stamp, StoredLogin)>>,
}

/// Content of the file.
enum FileContent {
    /// There is no file.
    None,
    /// The file has not changed since it was read.
    Known(Box<StoredLogin>),
    /// The text of a version of the file.
    New(Stamp, SecretString),
}

/// Identity of a file's version.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    identity: FileIdentity,
    modified: Option<SystemTime>,
    bytes: u64,
}

impl TokenStore {
    /// Creates the store of an account in a state directory. Does not access the disk.
    #[must_use]
    pub fn new(account: Account, state_directory: &Path) -> Self {
        let folder = state_directory.join(FOLDER);
        let stem = account.file_stem();
        let (path, lock_path) = (folder.join(format!("{stem}.json")), folder.join(format!("{stem}.lock")));
        let (lock_within, sealed_by) = (LOCK_WITHIN, None);
        Self { account, folder, path, lock_path, lock_within, sealed_by, known: Mutex::default() }
    }

    /// Encrypts the file with the keys of the state directory, bound to source, server and caller.
    #[must_use]
    pub fn sealed_by(self, cursors: Arc<Cursors>) -> Self {
        Self { sealed_by: Some(cursors), ..self }
    }

    /// Returns the path of the file, whether it exists or not.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file, unless its content is known.
    fn read(&self) -> Result<FileContent, OAuthError> {
        let metadata = match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(FileContent::None),
            found => found.map_err(|error| self.storage(&self.path, &error))?,
        };
        // Opening a pipe would wait for its other end.
        if let Some(problem) = not_a_file(&metadata) {
            return Err(self
                .account
                .error(OAuthFault::Storage { path: self.path.clone(), problem: problem.to_owned() }));
        }
        self.check_mode(&metadata)?;
        let stamp = Stamp::new(&metadata);
        let known = self.known.lock();
        if let Some((known, login)) = &*known
            && *known == stamp
        {
            return Ok(FileContent::Known(Box::new(login.clone())));
        }
        let text = self.text()?;
        Ok(text.map_or(FileContent::None, |text| FileContent::New(stamp, SecretString::from(text))))
    }

    /// Decrypts a text, if the file is encrypted. Returns `None` for one that was encrypted with other keys or for another
    /// account.
    async fn unsealed(&self, text: SecretString) -> Option<SecretString> {
        let Some(cursors) = &self.sealed_by else { return Some(text) };
        let parts = self.context();
        let context = parts.each_ref().map(String::as_str);
        cursors.open_lasting_text(&context, text.expose_secret()).await.ok().map(SecretString::from)
    }

    /// Encrypts a text, if the file is to be encrypted.
    async fn sealed(&self, text: SecretString) -> SecretString {
        let Some(cursors) = &self.sealed_by else { return text };
        let parts = self.context();
        let context = parts.each_ref().map(String::as_str);
        SecretString::from(cursors.seal_lasting_text(&context, text.expose_secret()).await)
    }

    /// Returns what the encryption is bound to.
    fn context(&self) -> [String; 4] {
        let person = self.account.person().map(|person| person.to_string()).unwrap_or_default();
        [CONTEXT.to_owned(), self.account.source_name().to_string(), self.account.server(), person]
    }

    /// Reads the file. Returns `None` if it was deleted meanwhile.
    fn text(&self) -> Result<Option<String>, OAuthError> {
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
        String::from_utf8(bytes).map(Some).map_err(|_bytes| self.damaged("it is not text".to_owned()))
    }

    fn write(&self, text: &SecretString) -> Result<(), OAuthError> {
        let storage = |error| self.storage(&self.path, &error);
        self.create_folder()?;
        // A temporary file has mode 0600 and a random name, which no file of the user has.
        let mut file = tempfile::NamedTempFile::new_in(&self.folder).map_err(storage)?;
        let written = file.write_all(text.expose_secret().as_bytes());
        written.and_then(|()| file.as_file().sync_all()).map_err(storage)?;
        file.persist(&self.path).map_err(|error| storage(error.error))?;
        *self.known.lock() = None;
        Ok(())
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

    fn damaged(&self, problem: String) -> OAuthError {
        self.account.error(OAuthFault::Damaged { path: self.path.clone(), problem })
    }

    fn storage(&self, path: &Path, error: &std::io::Error) -> OAuthError {
        self.account.error(OAuthFault::Storage { path: path.to_owned(), problem: error.to_string() })
    }
}

#[async_trait]
impl Tokens for TokenStore {
    async fn load(&self) -> Result<Option<StoredLogin>, OAuthError> {
        let (stamp, text) = match self.read()? {
            FileContent::None => return Ok(None),
            FileContent::Known(login) => return Ok(Some(*login)),
            FileContent::New(stamp, text) => (stamp, text),
        };
        let Some(text) = self.unsealed(text).await else { return Ok(None) };
        let login = match StoredLogin::from_text(text.expose_secret(), &self.account) {
            Ok(login) => login,
            // An encrypted text of another release is no sign-in.
            Err(_fault) if self.sealed_by.is_some() => return Ok(None),
            Err(LoginTextFault::Damaged { problem }) => return Err(self.damaged(problem)),
            Err(LoginTextFault::OtherServer { url }) => {
                return Err(self.account.error(OAuthFault::OtherServer { url }));
            }
        };
        *self.known.lock() = Some((stamp, login.clone()));
        Ok(Some(login))
    }

    async fn save(&self, login: &StoredLogin) -> Result<(), OAuthError> {
        let text = self.sealed(login.to_text(&self.account)).await;
        self.write(&text)
    }

    async fn clear(&self) -> Result<(), OAuthError> {
        *self.known.lock() = None;
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.storage(&self.path, &error)),
            _ => Ok(()),
        }
    }

    async fn lock(&self) -> Result<TokenLock, OAuthError> {
        let deadline = Instant::now() + self.lock_within;
        loop {
            if let Some(lock) = self.try_lock()? {
                // A file that was replaced within one tick of the clock looks unchanged.
                *self.known.lock() = None;
                return Ok(TokenLock::new(lock));
            }
            if Instant::now() >= deadline {
                return Err(self.account.error(OAuthFault::Locked));
            }
            sleep(LOCK_PAUSE).await;
        }
    }
}

impl Stamp {
    fn new(metadata: &Metadata) -> Self {
        Self {
            identity: FileIdentity::from_metadata(metadata),
            modified: metadata.modified().ok(),
            bytes: metadata.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::account::CallerAccount;
    use super::super::stored_login::RegisteredClient;
    use super::*;

    fn store(folder: &Path, url: &str) -> TokenStore {
        let account = Account::new("wiki".parse().unwrap(), url.parse().unwrap(), None).unwrap();
        let mut store = TokenStore::new(account, folder);
        store.lock_within = Duration::from_millis(50);
        store
    }

    fn login(access: &str) -> StoredLogin {
        StoredLogin {
            id: String::new(),
            client: RegisteredClient {
                client_id: "client".to_owned(),
                client_secret: None,
                issuer: None,
                redirect_uri: "http://127.0.0.1:1/callback".to_owned(),
            },
            resource_metadata: None,
            scopes: Vec::new(),
            access_token: SecretString::from(access),
            refresh_token: None,
            received_at: jiff::Timestamp::UNIX_EPOCH,
            expires_at: None,
        }
    }

    async fn access(store: &TokenStore) -> Option<String> {
        let login = store.load().await.unwrap();
        login.map(|login| login.access_token.expose_secret().to_owned())
    }

    #[tokio::test]
    async fn tokens_of_another_process_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) =
            (store(folder.path(), "https://a.example"), store(folder.path(), "https://a.example"));
        assert_eq!(access(&one).await, None);
        for token in ["one", "two", "six"] {
            other.save(&login(token)).await.unwrap();
            drop(one.lock().await.unwrap());
            assert_eq!(access(&one).await.as_deref(), Some(token));
        }
        one.clear().await.unwrap();
        one.clear().await.unwrap();
        assert_eq!((access(&one).await, access(&other).await), (None, None));
    }

    #[tokio::test]
    async fn one_holder_has_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) =
            (store(folder.path(), "https://a.example"), store(folder.path(), "https://a.example"));
        let lock = one.lock().await.unwrap();
        assert_eq!(other.lock().await.unwrap_err().fault, OAuthFault::Locked);
        drop(lock);
        assert!(other.lock().await.is_ok());
    }

    #[tokio::test]
    async fn callers_have_encrypted_tokens_of_their_own() {
        use fetchwell_callers::Caller;
        use fetchwell_state::cursor::Skew;
        let folder = tempfile::tempdir().unwrap();
        let cursors = || Arc::new(Cursors::in_directory(folder.path(), Skew::default()).unwrap());
        let account = |name: Option<&str>, url: &str| {
            let of = |name: &str| CallerAccount {
                person: Caller::Token { name: name.to_owned() }.person_id(),
                sign_in_page: String::new(),
            };
            Account::new("wiki".parse().unwrap(), url.parse().unwrap(), name.map(of)).unwrap()
        };
        let sealed = |name: &str, url: &str| {
            TokenStore::new(account(Some(name), url), folder.path()).sealed_by(cursors())
        };
        let url = "https://a.example";
        let own = TokenStore::new(account(None, url), folder.path());
        let stores = [own, sealed("ann", url), sealed("bob", url)];
        for (store, token) in stores.iter().zip(["own", "of-ann", "of-bob"]) {
            store.save(&login(token)).await.unwrap();
        }
        for (store, token) in stores.iter().zip(["own", "of-ann", "of-bob"]) {
            assert_eq!(access(store).await.as_deref(), Some(token));
        }
        let [_, ann, bob] = &stores;
        assert!(!fs::read_to_string(ann.path()).unwrap().contains("of-ann"));
        // Another server with the same keys reads the file. The tokens of another caller or server are none.
        assert_eq!(access(&sealed("ann", url)).await.as_deref(), Some("of-ann"));
        assert_eq!(access(&sealed("ann", "https://b.example")).await, None);
        fs::copy(bob.path(), ann.path()).unwrap();
        assert_eq!(access(&sealed("ann", url)).await, None);
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_used_has_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let own = store(folder.path(), "https://a.example/mcp");
        own.save(&login("sekret")).await.unwrap();
        let check = async |fault: fn(&OAuthFault) -> bool, remedy: &str| {
            let error = own.load().await.unwrap_err();
            assert!(fault(&error.fault) && error.remedy().contains(remedy), "{error:?}: {}", error.remedy());
            assert!(!format!("{error} {error:?}").contains("sekret"), "{error}");
        };
        let write = |text: &[u8]| {
            fs::remove_file(own.path()).unwrap();
            let mut file = fetchwell_state::create_private_file(own.path()).unwrap();
            file.write_all(text).unwrap();
        };
        let is_damaged = |fault: &OAuthFault| matches!(fault, OAuthFault::Damaged { .. });
        write(b"{\"sekret\":");
        check(is_damaged, "fetchwell source login wiki").await;
        write(&[0xff; 9]);
        check(is_damaged, "fetchwell source login wiki").await;
        write(&vec![b' '; 600_000]);
        check(is_damaged, "fetchwell source login wiki").await;
        write(
            login("sekret")
                .to_text(&store(folder.path(), "https://b.example").account)
                .expose_secret()
                .as_bytes(),
        );
        check(|fault| matches!(fault, OAuthFault::OtherServer { .. }), "fetchwell source login wiki").await;
        fs::remove_file(own.path()).unwrap();
        fs::create_dir(own.path()).unwrap();
        check(|fault| matches!(fault, OAuthFault::Storage { .. }), "check the permissions of").await;
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn only_the_owner_can_read_the_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let own = store(folder.path(), "https://a.example");
        drop(own.lock().await.unwrap());
        own.save(&login("one")).await.unwrap();
        for (path, expect) in [(&own.path, 0o600), (&own.lock_path, 0o600), (&own.folder, 0o700)] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, expect, "{path:?}");
        }
        for mode in [0o640, 0o604] {
            fs::set_permissions(own.path(), fs::Permissions::from_mode(mode)).unwrap();
            let error = own.load().await.unwrap_err();
            assert!(error.remedy().contains("chmod 600"), "{error}");
        }
        // A new sign-in replaces the file.
        own.save(&login("two")).await.unwrap();
        assert_eq!(access(&own).await.as_deref(), Some("two"));
    }
}
