//! Tokens of one account in a file of the state directory, with the registered clients of its source beside it.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_state::cursor::Cursors;
use parking_lot::Mutex;
use secrecy::ExposeSecret;

use super::super::account::Account;
use super::super::fault::{OAuthError, OAuthFault};
use super::super::stored_login::{LoginTextFault, StoredLogin};
use super::lock::TokenLock;
use super::private_file::{PrivateFile, Stamp, TextKind};
use super::registrations::Registrations;
use super::secret_text::SecretText;
use super::tokens::Tokens;

/// File with tokens.
const TOKENS: TextKind = TextKind { suffix: "", context: "tokens of a caller" };

/// File with registered clients, which all callers share.
const CLIENTS: TextKind = TextKind { suffix: ".clients", context: "clients of callers" };

/// Tokens of one account in a file.
#[derive(Debug)]
pub struct TokenStore {
    account: Account,
    file: PrivateFile,
    clients: PrivateFile,
    registrations: Registrations,
    /// The latest content, which is read again when the file changes.
    known: Mutex<Option<(Stamp, StoredLogin)>>,
}

impl TokenStore {
    /// Creates the store of an account in a state directory. Does not access the disk.
    #[must_use]
    pub fn new(account: Account, state_directory: &Path) -> Self {
        let file = PrivateFile::new(account.clone(), TOKENS, state_directory);
        let clients = PrivateFile::new(account.without_caller(), CLIENTS, state_directory);
        Self::with_files(account, file, clients)
    }

    /// Encrypts the files with the keys of the state directory, bound to source, server and caller.
    #[must_use]
    pub fn sealed_by(self, cursors: Arc<Cursors>) -> Self {
        let Self { account, file, clients, .. } = self;
        Self::with_files(account, file.sealed_by(Arc::clone(&cursors)), clients.sealed_by(cursors))
    }

    fn with_files(account: Account, file: PrivateFile, clients: PrivateFile) -> Self {
        let registrations = Registrations::new(account.clone(), Arc::new(clients.clone()));
        Self { account, file, clients, registrations, known: Mutex::default() }
    }

    /// Returns the path of the file, whether it exists or not.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.file.path
    }
}

#[async_trait]
impl Tokens for TokenStore {
    async fn load(&self) -> Result<Option<StoredLogin>, OAuthError> {
        let Some(stamp) = self.file.stamp()? else { return Ok(None) };
        if let Some((known, login)) = &*self.known.lock()
            && *known == stamp
        {
            return Ok(Some(login.clone()));
        }
        let Some(text) = self.file.read().await? else { return Ok(None) };
        let login = match StoredLogin::from_text(text.expose_secret(), &self.account) {
            Ok(login) => login,
            // An encrypted text of another release is no sign-in.
            Err(_fault) if self.file.is_sealed() => return Ok(None),
            Err(LoginTextFault::Damaged { problem }) => return Err(self.file.damaged(problem)),
            Err(LoginTextFault::OtherServer { url }) => {
                return Err(self.account.error(OAuthFault::OtherServer { url }));
            }
        };
        *self.known.lock() = Some((stamp, login.clone()));
        Ok(Some(login))
    }

    async fn save(&self, login: &StoredLogin) -> Result<(), OAuthError> {
        self.file.write(&login.to_text(&self.account)).await?;
        *self.known.lock() = None;
        Ok(())
    }

    async fn clear(&self) -> Result<(), OAuthError> {
        *self.known.lock() = None;
        self.file.delete().await
    }

    async fn lock(&self) -> Result<TokenLock, OAuthError> {
        let lock = self.file.lock().await?;
        // A file that was replaced within one tick of the clock looks unchanged.
        *self.known.lock() = None;
        Ok(lock)
    }

    fn registrations(&self) -> Option<&Registrations> {
        Some(&self.registrations)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::time::Duration;

    use secrecy::SecretString;

    use super::super::super::account::CallerAccount;
    use super::super::super::stored_login::RegisteredClient;
    use super::*;

    fn store(folder: &Path, url: &str) -> TokenStore {
        let account = Account::new("wiki".parse().unwrap(), url.parse().unwrap(), None).unwrap();
        let mut store = TokenStore::new(account, folder);
        store.file.lock_within = Duration::from_millis(50);
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
        for (path, expect) in
            [(&own.file.path, 0o600), (&own.file.lock_path, 0o600), (&own.file.folder, 0o700)]
        {
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
