//! A server that each caller signs in to: one session for each grant, with the tokens of its person.
//!
//! Sessions are opened by the first search or fetch, and end when they are idle, when the caller signs out, or when the
//! caller signs in again: they belong to one sign-in, so that no answer of an account is kept for another.
//!
//! **Invariant:** what a server answered is kept for the grant and the sign-in with which it was asked, and no other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_callers::{CallContext, GrantId};
use fetchwell_core::handle::{RecordAddress, SourceName};
use fetchwell_core::lru::{LruCache, LruLimits};
use fetchwell_core::record::{Record, Schema, Window};
use fetchwell_source::{
    AggregateAnswer, AggregateQuery, BackendStatus, RecordQuery, RecordsPage, RecordsQuery, SearchPage,
    SearchQuery, Source, SourceError, StreamAnswer, StreamQuery, WindowQuery,
};
use http::{HeaderName, HeaderValue};
use tokio::time::timeout;
use url::Url;

use crate::cache::CacheLimits;
use crate::credential::Credential;
use crate::mapping::Mapping;
use crate::oauth::{Account, Bearer, CallerAccount, OAuthError, OAuthFault, Tokens};
use crate::server::{InvalidSettings, McpServer, McpSettings};
use crate::session::McpPlace;

/// Maximum number of sessions of all callers; the least recently used ends.
const MAX_SESSIONS: u64 = 256;

/// Time after which an unused session ends.
const MAX_IDLE: Duration = Duration::from_secs(10 * 60);

/// Pause between two searches for idle sessions.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// Settings of a server that each caller signs in to.
#[derive(Debug, Clone)]
pub struct CallerServerSettings {
    /// Name of the source, which is the id of its connection.
    pub name: SourceName,
    /// Label for people.
    pub label: Option<String>,
    /// URL of the endpoint.
    pub url: Url,
    /// Further headers of each request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Tools that are named; the others are recognized.
    pub mapping: Mapping,
    /// Name by which this program introduces itself.
    pub client_name: String,
    /// Maximum time of a call.
    pub deadline: Duration,
}

impl CallerServerSettings {
    fn with(&self, credential: Credential) -> McpSettings {
        let Self { name, label, url, headers, mapping, client_name, deadline } = self.clone();
        let place = McpPlace::Http { url, credential, headers };
        McpSettings { name, label, place, mapping, client_name, deadline }
    }
}

/// Sessions of all callers with all servers. Clones share them.
#[derive(Debug, Clone)]
pub struct CallerSessions {
    servers: LruCache<SessionKey, SignedInServer>,
    /// True if a task waits to end idle sessions.
    is_sweeping: Arc<AtomicBool>,
    /// Number of servers that were created.
    created: Arc<AtomicU64>,
}

/// Holder of a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SessionKey {
    /// Number of the server: one with other settings is another server.
    server: u64,
    person: GrantId,
    grant: GrantId,
}

/// Server as one sign-in reads it.
#[derive(Debug, Clone)]
struct SignedInServer {
    /// Id of the sign-in.
    login: String,
    server: Arc<McpServer>,
}

impl Default for CallerSessions {
    fn default() -> Self {
        let servers = LruCache::new(LruLimits::new(MAX_SESSIONS).with_max_idle(MAX_IDLE));
        Self { servers, is_sweeping: Arc::default(), created: Arc::default() }
    }
}

impl CallerSessions {
    /// Ends idle sessions while there are any. Without this, they would stay until another one is used.
    fn sweep(&self) {
        if self.is_sweeping.swap(true, Ordering::AcqRel) {
            return;
        }
        let sessions = self.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(SWEEP_INTERVAL).await;
                sessions.servers.evict();
                if !sessions.servers.is_empty() {
                    continue;
                }
                sessions.is_sweeping.store(false, Ordering::Release);
                // A session may have begun after the search. Only an eviction counts it.
                sessions.servers.evict();
                if sessions.servers.is_empty() || sessions.is_sweeping.swap(true, Ordering::AcqRel) {
                    return;
                }
            }
        });
    }
}

/// Server that each caller signs in to. Clones share its sessions.
#[derive(Debug, Clone)]
pub struct CallerServers {
    settings: CallerServerSettings,
    number: u64,
    /// The server without a session, for what needs none.
    without_session: Arc<McpServer>,
    sessions: CallerSessions,
}

impl CallerServers {
    /// Creates a server. Sends nothing.
    ///
    /// # Errors
    ///
    /// The name of the source or of the stream is not that of a connection or a stream.
    pub fn new(settings: CallerServerSettings, sessions: CallerSessions) -> Result<Self, InvalidSettings> {
        let without_session =
            McpServer::with_limits(settings.with(Credential::None), CacheLimits::OF_CALLER)?;
        let number = sessions.created.fetch_add(1, Ordering::Relaxed);
        Ok(Self { settings, number, without_session: Arc::new(without_session), sessions })
    }

    /// Returns the account of a person, who signs in on a page.
    ///
    /// # Errors
    ///
    /// Tokens must not be sent to the URL of the server.
    pub fn account(&self, caller: CallerAccount) -> Result<Account, OAuthError> {
        Account::new(self.settings.name.clone(), self.settings.url.clone(), Some(caller))
    }

    /// Returns the server as one grant of a person reads it, with the tokens of an account of that person.
    #[must_use]
    pub fn read_by(&self, grant: GrantId, account: Account, tokens: Arc<dyn Tokens>) -> CallerServer {
        let key = SessionKey { server: self.number, person: account.person().unwrap_or(grant), grant };
        let bearer = Bearer::new(account.clone(), Arc::clone(&tokens));
        CallerServer { servers: self.clone(), key, account, tokens, bearer }
    }

    /// Ends the sessions of a person.
    pub fn end(&self, person: GrantId) {
        self.sessions.servers.remove_if(|key| key.server == self.number && key.person == person);
    }

    /// Ends all sessions of the server.
    pub fn end_all(&self) {
        self.sessions.servers.remove_if(|key| key.server == self.number);
    }
}

/// Server as one grant reads it.
#[derive(Debug)]
pub struct CallerServer {
    servers: CallerServers,
    key: SessionKey,
    account: Account,
    tokens: Arc<dyn Tokens>,
    bearer: Bearer,
}

impl CallerServer {
    /// Returns the server with the session of the current sign-in, which need not be open yet.
    async fn signed_in(&self) -> Result<Arc<McpServer>, SourceError> {
        let CallerServers { settings, sessions, .. } = &self.servers;
        let Some(login) = self.tokens.load().await? else {
            sessions.servers.remove(&self.key);
            return Err(self.account.error(OAuthFault::NotSignedIn).into());
        };
        match sessions.servers.get(&self.key) {
            Some(known) if known.login == login.id => return Ok(known.server),
            // The session of an earlier sign-in ends.
            Some(_earlier) => drop(sessions.servers.remove(&self.key)),
            None => {}
        }
        let settings = settings.with(Credential::SignIn(self.bearer.clone()));
        let server = McpServer::with_limits(settings, CacheLimits::OF_CALLER);
        let server = server.map_err(|error| SourceError::Unreachable { problem: error.to_string() })?;
        let new = SignedInServer { login: login.id.clone(), server: Arc::new(server) };
        // Concurrent first calls share one session, unless a sign-in came between them.
        let shared = sessions.servers.get_or_insert_with(self.key.clone(), || new.clone());
        sessions.sweep();
        Ok(if shared.login == login.id { shared.server } else { new.server })
    }

    fn without_session(&self) -> &McpServer {
        &self.servers.without_session
    }

    /// Returns the server with the latest session, if there is one, or else the server without a session.
    fn known(&self) -> Arc<McpServer> {
        let known = self.servers.sessions.servers.get(&self.key).map(|known| known.server);
        known.unwrap_or_else(|| Arc::clone(&self.servers.without_session))
    }

    /// Waits for an answer within the deadline of the source, which includes reading the tokens.
    async fn within_deadline<T: Send>(
        &self,
        answer: impl Future<Output = Result<T, SourceError>> + Send,
    ) -> Result<T, SourceError> {
        let after = self.servers.settings.deadline;
        timeout(after, answer).await.map_err(|_late| SourceError::Timeout { after })?
    }
}

#[async_trait]
impl Source for CallerServer {
    fn name(&self) -> &SourceName {
        self.without_session().name()
    }

    fn identity(&self) -> String {
        self.without_session().identity()
    }

    async fn backends(&self) -> Vec<BackendStatus> {
        self.known().backends().await
    }

    async fn schema(&self, context: &CallContext) -> Result<Schema, SourceError> {
        self.without_session().schema(context).await
    }

    async fn stream(&self, context: &CallContext, query: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        self.without_session().stream(context, query).await
    }

    async fn search(&self, context: &CallContext, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        self.within_deadline(async { self.signed_in().await?.search(context, query).await }).await
    }

    async fn records(&self, context: &CallContext, query: &RecordsQuery) -> Result<RecordsPage, SourceError> {
        self.without_session().records(context, query).await
    }

    async fn record(&self, context: &CallContext, query: &RecordQuery) -> Result<Record, SourceError> {
        self.within_deadline(async { self.signed_in().await?.record(context, query).await }).await
    }

    async fn version(
        &self,
        context: &CallContext,
        address: &RecordAddress,
    ) -> Result<Option<String>, SourceError> {
        // Versions are asked for often, and only of what a session has returned.
        self.known().version(context, address).await
    }

    async fn window(&self, context: &CallContext, query: &WindowQuery) -> Result<Window, SourceError> {
        self.within_deadline(async { self.signed_in().await?.window(context, query).await }).await
    }

    async fn aggregate(
        &self,
        context: &CallContext,
        query: &AggregateQuery,
    ) -> Result<AggregateAnswer, SourceError> {
        self.without_session().aggregate(context, query).await
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_callers::Caller;
    use jiff::Timestamp;
    use parking_lot::Mutex;

    use super::*;
    use crate::oauth::{RegisteredClient, StoredLogin, TokenLock};

    /// Tokens in memory.
    #[derive(Debug, Default)]
    struct Memory(Mutex<Option<StoredLogin>>);

    #[async_trait]
    impl Tokens for Memory {
        async fn load(&self) -> Result<Option<StoredLogin>, OAuthError> {
            Ok(self.0.lock().clone())
        }

        async fn save(&self, login: &StoredLogin) -> Result<(), OAuthError> {
            *self.0.lock() = Some(login.clone());
            Ok(())
        }

        async fn clear(&self) -> Result<(), OAuthError> {
            *self.0.lock() = None;
            Ok(())
        }

        async fn lock(&self) -> Result<TokenLock, OAuthError> {
            Ok(TokenLock::new(()))
        }
    }

    fn login(id: &str) -> StoredLogin {
        StoredLogin {
            id: id.to_owned(),
            client: RegisteredClient {
                client_id: "client".to_owned(),
                client_secret: None,
                issuer: None,
                redirect_uri: "https://r.example/sources/signed-in".to_owned(),
            },
            resource_metadata: None,
            scopes: Vec::new(),
            access_token: "sekret".into(),
            refresh_token: None,
            received_at: Timestamp::UNIX_EPOCH,
            expires_at: None,
        }
    }

    fn grant(name: &str) -> GrantId {
        Caller::Token { name: name.to_owned() }.grant_id()
    }

    fn servers() -> CallerServers {
        let settings = CallerServerSettings {
            name: "wiki".parse().unwrap(),
            label: None,
            url: "http://127.0.0.1:1/mcp".parse().unwrap(),
            headers: Vec::new(),
            mapping: Mapping::default(),
            client_name: "fetchwell".to_owned(),
            deadline: Duration::from_secs(1),
        };
        CallerServers::new(settings, CallerSessions::default()).unwrap()
    }

    fn read_by(servers: &CallerServers, person: &str, client: &str, tokens: &Arc<Memory>) -> CallerServer {
        let sign_in_page = "https://r.example/sources".to_owned();
        let account = servers.account(CallerAccount { person: grant(person), sign_in_page }).unwrap();
        servers.read_by(grant(client), account, Arc::<Memory>::clone(tokens))
    }

    #[tokio::test]
    async fn a_session_belongs_to_one_grant_and_one_sign_in() {
        let (servers, tokens) = (servers(), Arc::<Memory>::default());
        let [one, other] = ["one", "other"].map(|client| read_by(&servers, "ann", client, &tokens));
        let SourceError::Reauthorize { remedy, .. } = one.signed_in().await.unwrap_err() else {
            panic!("no reauthorize")
        };
        assert_eq!(remedy, "sign in to `wiki` at https://r.example/sources");
        tokens.save(&login("a")).await.unwrap();
        let first = one.signed_in().await.unwrap();
        assert!(Arc::ptr_eq(&first, &one.signed_in().await.unwrap()));
        assert!(!Arc::ptr_eq(&first, &other.signed_in().await.unwrap()), "each grant has its own");
        // A sign-in as another person, also in another process.
        tokens.save(&login("b")).await.unwrap();
        let second = one.signed_in().await.unwrap();
        assert!(!Arc::ptr_eq(&first, &second));
        servers.end(grant("ann"));
        assert!(!Arc::ptr_eq(&second, &one.signed_in().await.unwrap()), "the session was ended");
        tokens.clear().await.unwrap();
        assert!(one.signed_in().await.is_err() && servers.sessions.servers.get(&one.key).is_none());
    }

    #[tokio::test]
    async fn sessions_are_bounded() {
        let (servers, tokens) = (servers(), Arc::<Memory>::default());
        tokens.save(&login("a")).await.unwrap();
        for number in 0..MAX_SESSIONS + 50 {
            let caller = read_by(&servers, "ann", &number.to_string(), &tokens);
            caller.signed_in().await.unwrap();
        }
        servers.sessions.servers.evict();
        assert_eq!(servers.sessions.servers.len(), MAX_SESSIONS);
    }
}
