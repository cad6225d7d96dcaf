//! Clients that this program has registered (RFC 7591), kept for the next sign-ins at the same authorization server.
//!
//! A client is kept for its issuer, its redirect URI and the scopes that it may request. It is replaced when the authorization
//! server refuses it, or when no browser returned from the last sign-ins: a server that has deleted a client shows an error to the
//! person, and no reply comes back.

use std::sync::Arc;

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use url::Url;

use super::super::account::Account;
use super::super::fault::{OAuthError, OAuthFault};
use super::super::stored_login::RegisteredClient;
use super::secret_text::SecretText;

/// Format version of the text.
const VERSION: u8 = 1;

/// Maximum number of clients; the earliest is forgotten.
const MAX_CLIENTS: usize = 16;

/// Number of sign-ins of callers, and seconds since the first of them, without the return of any browser, after which another
/// client is registered. For the person at this machine it is one sign-in.
const MAX_UNFINISHED: u32 = 3;
const MAX_UNFINISHED_SECONDS: i64 = 10 * 60;

/// Maximum number of registrations for a source within an hour, by all of its callers and all processes.
const MAX_REGISTRATIONS: usize = 10;
const PERIOD_SECONDS: i64 = 60 * 60;

/// Clients that are registered for a source. Clones share them.
#[derive(Debug, Clone)]
pub struct Registrations {
    account: Account,
    text: Arc<dyn SecretText>,
}

/// Purpose of the registration of a client.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct ClientKey<'a> {
    /// Issuer of the authorization server, if its metadata names one.
    pub(in super::super) issuer: Option<&'a str>,
    /// Redirect URI of the sign-in.
    pub(in super::super) redirect_uri: &'a str,
    /// Scopes that are requested.
    pub(in super::super) scopes: &'a [String],
}

/// Serialized form. Times are in seconds since 1970.
#[derive(Serialize, Deserialize)]
struct RegistrationsText {
    version: u8,
    server: String,
    clients: Vec<ClientText>,
    /// Times of the registrations of the last hour.
    registered_at: Vec<i64>,
}

#[derive(Serialize, Deserialize)]
struct ClientText {
    issuer: Option<String>,
    redirect_uri: String,
    scopes: Vec<String>,
    client_id: String,
    client_secret: Option<String>,
    /// Number of sign-ins that have begun since a browser last returned from one, and the time of the first.
    unfinished: u32,
    unfinished_since: i64,
}

impl Registrations {
    pub(super) fn new(account: Account, text: Arc<dyn SecretText>) -> Self {
        Self { account, text }
    }

    /// Returns the client for a sign-in that begins, or keeps the one that `register` returns. One at a time registers.
    ///
    /// # Errors
    ///
    /// The storage cannot be used, too many clients were registered within an hour, or `register` failed.
    pub(in super::super) async fn get_or_register(
        &self,
        key: ClientKey<'_>,
        register: impl Future<Output = Result<RegisteredClient, OAuthError>>,
    ) -> Result<RegisteredClient, OAuthError> {
        let _lock = self.text.lock().await?;
        let mut text = self.load().await?;
        let now = Timestamp::now().as_second();
        text.registered_at.retain(|at| (now - PERIOD_SECONDS..=now).contains(at));
        let is_exhausted = text.registered_at.len() >= MAX_REGISTRATIONS;
        let has_callers = self.account.person().is_some();
        let known = text.clients.iter_mut().find(|client| client.is_for(key));
        if let Some(known) = known.filter(|known| is_exhausted || !known.is_doubtful(now, has_callers)) {
            known.begin(now);
            let client = known.client();
            self.save(&text).await?;
            return Ok(client);
        }
        if is_exhausted {
            return Err(self.account.error(OAuthFault::TooManyRegistrations));
        }
        // A registration that fails counts, too.
        text.registered_at.push(now);
        self.save(&text).await?;
        let client = register.await?;
        text.clients.retain(|known| !known.is_for(key));
        text.clients.push(ClientText {
            issuer: client.issuer.clone(),
            redirect_uri: client.redirect_uri.clone(),
            scopes: key.scopes.to_vec(),
            client_id: client.client_id.clone(),
            client_secret: client.client_secret.as_ref().map(|secret| secret.expose_secret().to_owned()),
            unfinished: 1,
            unfinished_since: now,
        });
        let surplus = text.clients.len().saturating_sub(MAX_CLIENTS);
        text.clients.drain(..surplus);
        self.save(&text).await?;
        Ok(client)
    }

    /// Notes that the authorization server knows a client: the browser has returned from it.
    ///
    /// # Errors
    ///
    /// The storage cannot be used.
    pub(in super::super) async fn returned(&self, client: &RegisteredClient) -> Result<(), OAuthError> {
        self.change(client, |clients, index| {
            if let Some(known) = clients.get_mut(index) {
                known.unfinished = 0;
            }
        })
        .await
    }

    /// Forgets a client that the authorization server refused.
    ///
    /// # Errors
    ///
    /// The storage cannot be used.
    pub(in super::super) async fn forget(&self, client: &RegisteredClient) -> Result<(), OAuthError> {
        self.change(client, |clients, index| drop(clients.remove(index))).await
    }

    /// Returns the port of this machine that the latest client returns to, if it is one of this machine.
    pub(in super::super) async fn latest_port(&self) -> Result<Option<u16>, OAuthError> {
        let text = self.load().await?;
        let ports = text.clients.iter().rev().filter_map(|client| Url::parse(&client.redirect_uri).ok());
        let mut ports = ports.filter(|url| url.scheme() == "http").filter_map(|url| url.port());
        Ok(ports.next())
    }

    async fn change(
        &self,
        client: &RegisteredClient,
        change: impl FnOnce(&mut Vec<ClientText>, usize) + Send,
    ) -> Result<(), OAuthError> {
        let _lock = self.text.lock().await?;
        let mut text = self.load().await?;
        let index = text.clients.iter().position(|known| known.client().is_same(client));
        let Some(index) = index else { return Ok(()) };
        change(&mut text.clients, index);
        self.save(&text).await
    }

    /// Reads the clients. A text that is damaged, of another release or of another server has none.
    async fn load(&self) -> Result<RegistrationsText, OAuthError> {
        let server = self.account.server();
        let text = self.text.read().await?;
        let parsed = text.and_then(|text| serde_json::from_str(text.expose_secret()).ok());
        let known =
            parsed.filter(|text: &RegistrationsText| text.version == VERSION && text.server == server);
        Ok(known.unwrap_or_else(|| RegistrationsText {
            version: VERSION,
            server: self.account.server(),
            clients: Vec::new(),
            registered_at: Vec::new(),
        }))
    }

    async fn save(&self, text: &RegistrationsText) -> Result<(), OAuthError> {
        let text = serde_json::to_string_pretty(text).unwrap_or_default();
        self.text.write(&SecretString::from(text)).await
    }
}

impl ClientText {
    fn is_for(&self, key: ClientKey<'_>) -> bool {
        self.issuer.as_deref() == key.issuer
            && self.redirect_uri == key.redirect_uri
            && key.scopes.iter().all(|scope| self.scopes.contains(scope))
    }

    /// Returns true if the authorization server may not know the client any more.
    fn is_doubtful(&self, now: i64, has_callers: bool) -> bool {
        if has_callers {
            self.unfinished >= MAX_UNFINISHED && now - self.unfinished_since >= MAX_UNFINISHED_SECONDS
        } else {
            self.unfinished > 0
        }
    }

    /// Counts a sign-in that begins.
    fn begin(&mut self, now: i64) {
        if self.unfinished == 0 {
            self.unfinished_since = now;
        }
        self.unfinished = self.unfinished.saturating_add(1);
    }

    fn client(&self) -> RegisteredClient {
        RegisteredClient {
            client_id: self.client_id.clone(),
            client_secret: self.client_secret.clone().map(SecretString::from),
            issuer: self.issuer.clone(),
            redirect_uri: self.redirect_uri.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use fetchwell_callers::Caller;
    use parking_lot::Mutex;

    use super::super::super::account::CallerAccount;
    use super::super::lock::TokenLock;
    use super::*;

    /// A text in memory.
    #[derive(Debug, Default)]
    struct Memory(Mutex<Option<SecretString>>);

    #[async_trait]
    impl SecretText for Memory {
        async fn read(&self) -> Result<Option<SecretString>, OAuthError> {
            Ok(self.0.lock().clone())
        }

        async fn write(&self, text: &SecretString) -> Result<(), OAuthError> {
            *self.0.lock() = Some(text.clone());
            Ok(())
        }

        async fn delete(&self) -> Result<(), OAuthError> {
            *self.0.lock() = None;
            Ok(())
        }

        async fn lock(&self) -> Result<TokenLock, OAuthError> {
            Ok(TokenLock::new(()))
        }
    }

    fn registrations(caller: Option<&str>, text: &Arc<Memory>) -> Registrations {
        let caller = caller.map(|name| CallerAccount {
            person: Caller::Token { name: name.to_owned() }.person_id(),
            sign_in_page: String::new(),
        });
        let account = Account::new("wiki".parse().unwrap(), "https://a.example".parse().unwrap(), caller);
        Registrations::new(account.unwrap(), Arc::<Memory>::clone(text))
    }

    /// Begins a sign-in. Returns the client, and whether it was registered for it.
    async fn begin(
        registrations: &Registrations,
        scopes: &[String],
        new: &str,
    ) -> Result<(RegisteredClient, bool), OAuthError> {
        let redirect_uri = "http://127.0.0.1:7000/callback";
        let client = RegisteredClient {
            client_id: new.to_owned(),
            client_secret: Some("sekret".into()),
            issuer: Some("https://login.example".to_owned()),
            redirect_uri: redirect_uri.to_owned(),
        };
        let key = ClientKey { issuer: client.issuer.as_deref(), redirect_uri, scopes };
        let found = registrations.get_or_register(key, async { Ok(client.clone()) }).await?;
        let is_new = found.client_id == new;
        Ok((found, is_new))
    }

    #[tokio::test]
    async fn a_client_is_kept_until_it_is_refused() {
        let text = Arc::<Memory>::default();
        let [ann, bob] = ["ann", "bob"].map(|name| registrations(Some(name), &text));
        let read = vec!["read".to_owned()];
        let (first, is_new) = begin(&ann, &read, "one").await.unwrap();
        assert!(is_new);
        // Other callers and sign-ins that no browser returns from share it.
        for _ in 0..20 {
            let (kept, is_new) = begin(&bob, &[], "two").await.unwrap();
            assert!(!is_new && kept.is_same(&first));
        }
        assert_eq!(ann.latest_port().await.unwrap(), Some(7000));
        let (_, is_new) = begin(&ann, &["write".to_owned()], "three").await.unwrap();
        assert!(is_new, "it may not request other scopes");
        ann.forget(&first).await.unwrap();
        let (_, is_new) = begin(&ann, &read, "four").await.unwrap();
        assert!(is_new);
        assert!(!format!("{ann:?}").contains("sekret"));
        *text.0.lock() = Some("sekret".into());
        assert!(begin(&ann, &read, "five").await.unwrap().1, "a damaged text has none");
    }

    #[tokio::test]
    async fn a_client_from_which_no_browser_returns_is_replaced() {
        let text = Arc::<Memory>::default();
        let own = registrations(None, &text);
        let (first, _) = begin(&own, &[], "one").await.unwrap();
        own.returned(&first).await.unwrap();
        assert!(!begin(&own, &[], "two").await.unwrap().1);
        assert!(begin(&own, &[], "three").await.unwrap().1, "the last sign-in was not finished");
        let client = |unfinished, unfinished_since| ClientText {
            issuer: None,
            redirect_uri: String::new(),
            scopes: Vec::new(),
            client_id: String::new(),
            client_secret: None,
            unfinished,
            unfinished_since,
        };
        for (unfinished, since, is_doubtful) in
            [(0, 0, false), (2, 0, false), (3, 0, true), (3, 500, false), (9, 400, true)]
        {
            assert_eq!(
                client(unfinished, since).is_doubtful(1_000, true),
                is_doubtful,
                "{unfinished} {since}"
            );
        }
    }

    #[tokio::test]
    async fn registrations_of_an_hour_are_bounded() {
        let text = Arc::<Memory>::default();
        let ann = registrations(Some("ann"), &text);
        let mut last = None;
        for number in 0..MAX_REGISTRATIONS {
            let (client, is_new) = begin(&ann, &[], &number.to_string()).await.unwrap();
            assert!(is_new);
            ann.forget(&client).await.unwrap();
            last = Some(client);
        }
        let refused = begin(&ann, &[], "more").await.unwrap_err();
        assert_eq!(refused.fault, OAuthFault::TooManyRegistrations);
        ann.returned(&last.unwrap()).await.unwrap();
        // An hour later.
        let mut later = ann.load().await.unwrap();
        later.registered_at.iter_mut().for_each(|at| *at -= PERIOD_SECONDS + 1);
        ann.save(&later).await.unwrap();
        assert!(begin(&ann, &[], "later").await.unwrap().1);
    }
}
