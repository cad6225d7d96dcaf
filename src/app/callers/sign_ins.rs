//! MCP servers that each caller signs in to: the tokens of each person, and the sign-ins of the sources page.
//!
//! Tokens belong to a person, who may use several clients: a sign-in on the page, which is one client, counts for all. With
//! a static token, its holder is the person. Sessions and what is kept of answers belong to a grant.
//!
//! **Invariant:** every method gets the caller of the request, and uses the tokens of no one else.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_callers::{AuthorizationPolicy, AuthorizationReply, Caller, SourceCredential};
use fetchwell_core::handle::SourceName;
use fetchwell_http::{PublicUrl, SIGNED_IN, SOURCES};
use fetchwell_source::{Source, SourceError};
use fetchwell_state::cursor::Cursors;
use fetchwell_tools::{SignInStart, SignInState, SourceSignIn, SourceSignIns};
use fetchwell_upstream::oauth::{
    Account, CallerAccount, CodeExchange, LoginSettings, OAuthError, OAuthFault, PendingLogin, SharedTokens,
    TokenStore, Tokens,
};
use jiff::Timestamp;
use secrecy::SecretString;

use super::open_servers::{OpenServer, OpenServers};
use crate::app::failure::Failure;
use crate::app::mcp::{caller_servers, login_settings};
use crate::config::{Environment, FileSettings, McpEndpoint, SourcePlace, SourceSettings};

/// Storage of the tokens of callers: the state that servers share, or else a state directory.
#[derive(Debug, Clone)]
pub(crate) struct SignInStorage {
    pub(crate) cursors: Arc<Cursors>,
    /// State directory of the server; `None` for a server that keeps its state in memory.
    pub(crate) directory: Option<PathBuf>,
    /// Servers that stay open when the configuration is reloaded.
    pub(crate) open: OpenServers,
}

/// MCP servers that each caller signs in to.
#[derive(Debug)]
pub(crate) struct CallerSignIns {
    servers: Vec<SignInServer>,
    policy: AuthorizationPolicy,
    storage: SignInStorage,
    public_url: PublicUrl,
}

/// One of these servers.
#[derive(Debug)]
struct SignInServer {
    settings: SourceSettings,
    client: LoginSettings,
    open: Arc<OpenServer>,
}

impl CallerSignIns {
    /// Creates the servers of a configuration. Returns `None` if callers sign in to none.
    ///
    /// # Errors
    ///
    /// A secret cannot be read, or the tokens cannot be stored.
    pub(crate) fn new(
        settings: &FileSettings,
        environment: &Environment,
        policy: AuthorizationPolicy,
        storage: SignInStorage,
    ) -> Result<Option<Self>, Failure> {
        let mut servers = Vec::new();
        for source in settings.sources.iter().filter(|source| source.signs_callers_in()) {
            let SourcePlace::Mcp(server) = &source.place else { continue };
            let McpEndpoint::Http { oauth, .. } = &server.endpoint else { continue };
            servers.push(SignInServer {
                settings: source.clone(),
                client: login_settings(source, oauth, environment)?,
                open: storage
                    .open
                    .open(source, |sessions| caller_servers(source, server, environment, sessions))?,
            });
        }
        let Some(first) = servers.first() else { return Ok(None) };
        if storage.directory.is_none() && storage.cursors.redis().is_none() {
            return Err(Failure::usage(&format!(
                "callers sign in to the source `{}`, and a server with `--state-dir none` stores nothing; name a directory",
                first.settings.name
            )));
        }
        let public_url = settings.public_url.clone().ok_or_else(|| {
            Failure::usage(&format!(
                "callers sign in to the source `{}` on a page of this server; set public_url",
                first.settings.name
            ))
        })?;
        Ok(Some(Self { servers, policy, storage, public_url }))
    }

    /// Returns a server as a caller reads it, whether the caller has signed in or not. Returns `None` for another source.
    pub(crate) fn read_by(&self, caller: &Caller, settings: &SourceSettings) -> Option<Arc<dyn Source>> {
        let server = self.servers.iter().find(|server| server.settings == *settings)?;
        let account = self.account(server, caller).ok()?;
        let tokens = self.tokens(account.clone());
        Some(Arc::new(server.open.servers.read_by(caller.grant_id(), account, tokens)))
    }

    fn account(&self, server: &SignInServer, caller: &Caller) -> Result<Account, OAuthError> {
        let sign_in_page = self.public_url.at(SOURCES);
        server.open.servers.account(CallerAccount { person: caller.person_id(), sign_in_page })
    }

    fn tokens(&self, account: Account) -> Arc<dyn Tokens> {
        let cursors = Arc::clone(&self.storage.cursors);
        match &self.storage.directory {
            Some(directory) if cursors.redis().is_none() => {
                Arc::new(TokenStore::new(account, directory).sealed_by(cursors))
            }
            _ => Arc::new(SharedTokens::new(account, cursors)),
        }
    }

    fn may_read(&self, caller: &Caller, server: &SignInServer) -> bool {
        self.policy.may_read(caller, &server.settings.name, SourceCredential::Configured)
    }

    /// Returns a server that a caller may read, with the caller's account.
    fn granted(&self, caller: &Caller, source: &SourceName) -> Result<(&SignInServer, Account), SourceError> {
        let server = self.servers.iter().find(|server| server.settings.name == *source);
        let server = server.filter(|server| self.may_read(caller, server));
        // A source that the caller may not read is not told from one that does not exist.
        let unknown = || SourceError::Reauthorize {
            problem: format!("you have no source `{source}` to sign in to"),
            remedy: "open the page with your sources again".to_owned(),
        };
        let server = server.ok_or_else(unknown)?;
        Ok((server, self.account(server, caller)?))
    }

    async fn state(&self, caller: &Caller, server: &SignInServer) -> SignInState {
        let loaded = match self.account(server, caller) {
            Ok(account) => self.tokens(account).load().await,
            Err(error) => Err(error),
        };
        match loaded {
            Ok(None) => SignInState::NotSignedIn,
            Ok(Some(login)) if login.refresh_token.is_none() && !login.is_valid(Timestamp::now()) => {
                SignInState::Expired
            }
            Ok(Some(_)) => SignInState::SignedIn,
            Err(error) => SignInState::Unknown(SourceError::from(error).to_string()),
        }
    }
}

#[async_trait]
impl SourceSignIns for CallerSignIns {
    async fn states(&self, caller: &Caller) -> Vec<SourceSignIn> {
        let mut states = Vec::new();
        for server in self.servers.iter().filter(|server| self.may_read(caller, server)) {
            let SourceSettings { name, label, .. } = server.settings.clone();
            let state = self.state(caller, server).await;
            states.push(SourceSignIn { source: name, label, state });
        }
        states
    }

    async fn begin(&self, caller: &Caller, source: &SourceName) -> Result<SignInStart, SourceError> {
        let (server, account) = self.granted(caller, source)?;
        let _permit = server.open.permit(caller.person_id()).await?;
        // A person who has signed in must not learn then that nothing can be stored.
        let tokens = self.tokens(account.clone());
        tokens.load().await?;
        let redirect_uri = self.public_url.at(SIGNED_IN);
        let begun = PendingLogin::begin(account, &server.client, redirect_uri, tokens.as_ref());
        let pending = Box::pin(begun).await?;
        let (url, state) = (pending.url().to_string(), pending.state().to_owned());
        Ok(SignInStart { url, state, pending: pending.into_exchange().to_text() })
    }

    async fn finish(
        &self,
        caller: &Caller,
        source: &SourceName,
        pending: SecretString,
        reply: AuthorizationReply,
    ) -> Result<(), SourceError> {
        let (server, account) = self.granted(caller, source)?;
        let tokens = self.tokens(account.clone());
        let (open, person, signed_in) = (Arc::clone(&server.open), caller.person_id(), account.clone());
        // A browser that leaves meanwhile cancels the request: the code can be exchanged once, and its tokens must be stored.
        let task = tokio::spawn(async move {
            let _permit = open.permit(person).await?;
            let exchange = Box::pin(CodeExchange::resume(account, &pending)).await?;
            Box::pin(exchange.finish(reply, tokens.as_ref())).await?;
            open.servers.end(person);
            Ok(())
        });
        task.await.unwrap_or_else(|_stopped| Err(signed_in.error(OAuthFault::Stopped).into()))
    }

    async fn sign_out(&self, caller: &Caller, source: &SourceName) -> Result<(), SourceError> {
        let (server, account) = self.granted(caller, source)?;
        let tokens = self.tokens(account);
        {
            let _lock = tokens.lock().await?;
            tokens.clear().await?;
        }
        server.open.servers.end(caller.person_id());
        Ok(())
    }
}
