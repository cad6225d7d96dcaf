//! Refreshes with an authorization server over a real socket.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_source::SourceError;
use futures_util::future::join_all;
use jiff::Timestamp;
use secrecy::ExposeSecret;
use serde_json::json;
use tempfile::TempDir;

use super::super::bearer::Bearer;
use super::super::fault::{OAuthError, OAuthFault};
use super::super::storage::TokenStore;
use super::super::storage::{LockGuard, TokenLock, Tokens};
use super::super::stored_login::StoredLogin;
use super::server::{Behaviour, Servers};
use super::{LONG, account, bearer, sign_in, store};

/// Servers, and the tokens of a sign-in to them.
async fn signed_in(behaviour: Behaviour) -> (Servers, TempDir) {
    let servers = Servers::start(behaviour).await;
    let folder = tempfile::tempdir().unwrap();
    sign_in(&servers, folder.path()).await.unwrap();
    (servers, folder)
}

async fn stored(servers: &Servers, folder: &Path) -> StoredLogin {
    store(servers, folder).load().await.unwrap().unwrap()
}

/// Lets the stored token expire in `seconds`.
async fn expire_in(servers: &Servers, folder: &Path, seconds: i64) {
    let expires_at = Timestamp::now() + jiff::SignedDuration::from_secs(seconds);
    let received_at = expires_at - jiff::SignedDuration::from_secs(3600);
    let login = StoredLogin { received_at, expires_at: Some(expires_at), ..stored(servers, folder).await };
    store(servers, folder).save(&login).await.unwrap();
}

#[tokio::test]
async fn two_processes_refresh_once() {
    let delay = Duration::from_millis(100);
    let (servers, folder) = signed_in(Behaviour { delay, ..Behaviour::default() }).await;
    expire_in(&servers, folder.path(), 30).await;
    let processes = [bearer(&servers, folder.path()), bearer(&servers, folder.path())];
    let calls = processes.iter().flat_map(|bearer| (0..10).map(|_call| bearer.token()));
    for token in join_all(calls).await {
        assert!(servers.is_latest(token.unwrap().expose_secret()));
    }
    assert_eq!(servers.refreshes().len(), 1);
    let form = &servers.refreshes()[0].form;
    assert_eq!((form["resource"].as_str(), form["scope"].as_str()), (servers.mcp.as_str(), "read write"));
    // The next refresh of either uses the refresh token of the last one.
    for bearer in &processes {
        for _refresh in 0..2 {
            expire_in(&servers, folder.path(), -5).await;
            assert!(servers.is_latest(bearer.token().await.unwrap().expose_secret()));
        }
    }
    assert_eq!(servers.refreshes().len(), 5);
}

#[tokio::test]
async fn a_refused_token_is_refreshed_once_by_all_calls() {
    let (servers, folder) = signed_in(Behaviour { expires_in: None, ..Behaviour::default() }).await;
    let processes = [bearer(&servers, folder.path()), bearer(&servers, folder.path())];
    let first = processes[0].token().await.unwrap();
    assert_eq!(servers.refreshes().len(), 0);
    let calls = processes.iter().flat_map(|bearer| (0..10).map(|_call| bearer.refused(&first)));
    for token in join_all(calls).await {
        assert!(servers.is_latest(token.unwrap().expose_secret()));
    }
    assert_eq!(servers.refreshes().len(), 1);
    // A call that was late with the old token gets the new one.
    assert!(servers.is_latest(processes[1].refused(&first).await.unwrap().expose_secret()));
    assert_eq!(servers.refreshes().len(), 1);
}

#[tokio::test]
async fn a_refused_refresh_asks_for_a_sign_in_and_is_not_repeated() {
    let (servers, folder) = signed_in(Behaviour::default()).await;
    let bearer = bearer(&servers, folder.path());
    let token = bearer.token().await.unwrap();
    let refusal = r#"{"error":"invalid_grant","error_description":"sekret"}"#.to_owned();
    servers.change(|behaviour| behaviour.token_response = Some((400, refusal)));
    let error = bearer.refused(&token).await.unwrap_err();
    assert_eq!(error.fault, OAuthFault::Rejected { code: "invalid_grant".to_owned() });
    assert!(!format!("{error} {error:?}").contains("sekret"), "{error}");
    let SourceError::Reauthorize { remedy, .. } = SourceError::from(error) else { panic!("no reauthorize") };
    assert_eq!(remedy, "run `fetchwell source login wiki`");
    for _call in 0..3 {
        assert_eq!(bearer.refused(&token).await.unwrap_err().fault, OAuthFault::Expired);
    }
    expire_in(&servers, folder.path(), -5).await;
    assert_eq!(bearer.token().await.unwrap_err().fault, OAuthFault::Expired);
    assert_eq!(servers.refreshes().len(), 1);
    // A new sign-in is noticed without a restart.
    servers.change(|behaviour| behaviour.token_response = None);
    sign_in(&servers, folder.path()).await.unwrap();
    assert!(servers.is_latest(bearer.token().await.unwrap().expose_secret()));
}

#[tokio::test]
async fn a_refresh_token_that_was_used_elsewhere_is_not_used_again() {
    let (servers, folder) = signed_in(Behaviour::default()).await;
    let before = stored(&servers, folder.path()).await;
    let bearer = bearer(&servers, folder.path());
    bearer.refused(&before.access_token).await.unwrap();
    // A backup of the file was restored.
    store(&servers, folder.path()).save(&before).await.unwrap();
    let error = bearer.refused(&before.access_token).await.unwrap_err();
    assert_eq!(error.fault, OAuthFault::Rejected { code: "invalid_grant".to_owned() });
}

#[tokio::test]
async fn a_failure_is_passing_and_a_valid_token_is_used_meanwhile() {
    let (servers, folder) = signed_in(Behaviour::default()).await;
    let bearer = bearer(&servers, folder.path());
    servers.change(|behaviour| behaviour.token_response = Some((503, "sekret".to_owned())));
    expire_in(&servers, folder.path(), 30).await;
    let token = bearer.token().await.unwrap();
    assert_eq!(servers.refreshes().len(), 1);
    let error = bearer.refused(&token).await.unwrap_err();
    assert_eq!(SourceError::from(error.clone()).code(), "source_unavailable");
    assert!(!format!("{error} {error:?}").contains("sekret"), "{error}");
    expire_in(&servers, folder.path(), -1).await;
    assert!(bearer.token().await.unwrap_err().is_transient());
    servers.change(|behaviour| behaviour.token_response = None);
    assert!(servers.is_latest(bearer.token().await.unwrap().expose_secret()));
}

#[tokio::test]
async fn calls_that_wait_for_a_failing_refresh_do_not_repeat_it() {
    let delay = Duration::from_millis(100);
    let (servers, folder) = signed_in(Behaviour::default()).await;
    servers.change(|behaviour| {
        behaviour.delay = delay;
        behaviour.token_response = Some((500, String::new()));
    });
    expire_in(&servers, folder.path(), -1).await;
    let bearer = bearer(&servers, folder.path());
    for outcome in join_all((0..10).map(|_call| bearer.token())).await {
        assert!(matches!(outcome.unwrap_err().fault, OAuthFault::Unreachable { .. }));
    }
    assert_eq!(servers.refreshes().len(), 1);
}

#[tokio::test]
async fn a_slow_server_ends_the_refresh() {
    let (servers, folder) = signed_in(Behaviour::default()).await;
    servers.change(|behaviour| behaviour.delay = LONG);
    let (account, store) = (account(&servers.mcp), store(&servers, folder.path()));
    let bearer = Bearer::with_timeout(account, store, Duration::from_millis(300));
    let token = bearer.token().await.unwrap();
    let error = bearer.refused(&token).await.unwrap_err();
    assert!(matches!(error.fault, OAuthFault::Unreachable { .. }), "{error:?}");
}

#[tokio::test]
async fn a_cancelled_call_does_not_lose_the_refresh_token() {
    let (servers, folder) = signed_in(Behaviour::default()).await;
    servers.change(|behaviour| behaviour.delay = Duration::from_millis(200));
    let bearer = bearer(&servers, folder.path());
    let token = bearer.token().await.unwrap();
    let cancelled = tokio::time::timeout(Duration::from_millis(50), bearer.refused(&token)).await;
    assert!(cancelled.is_err());
    let token = bearer.refused(&token).await.unwrap();
    assert!(servers.is_latest(token.expose_secret()));
    assert_eq!(servers.refreshes().len(), 1);
}

#[tokio::test]
async fn a_refresh_token_goes_to_the_issuer_of_the_sign_in_only() {
    let (servers, folder) = signed_in(Behaviour::default()).await;
    let other = Servers::start(Behaviour::default()).await;
    let login = stored(&servers, folder.path()).await;
    let mut moved = login.clone();
    moved.client.issuer = Some(other.issuer.clone());
    store(&servers, folder.path()).save(&moved).await.unwrap();
    let bearer = bearer(&servers, folder.path());
    let error = bearer.refused(&login.access_token).await.unwrap_err();
    assert_eq!(error.fault, OAuthFault::OtherIssuer);
    // Metadata that has disappeared is no reason to guess an endpoint.
    servers.change(|behaviour| {
        behaviour.resource_metadata = None;
        behaviour.has_metadata = false;
    });
    let error = bearer.refused(&login.access_token).await.unwrap_err();
    assert!(matches!(error.fault, OAuthFault::Metadata { .. }), "{error:?}");
    assert!(servers.refreshes().is_empty() && other.refreshes().is_empty());
    assert!(servers.requests("POST /token").is_empty());
}

#[tokio::test]
async fn a_token_endpoint_that_moved_is_followed_within_the_issuer() {
    let (servers, folder) = signed_in(Behaviour::default()).await;
    let moved = format!("{}/token?version=2", servers.issuer);
    servers.change(|behaviour| behaviour.metadata = json!({"token_endpoint": moved}));
    let login = stored(&servers, folder.path()).await;
    let token = bearer(&servers, folder.path()).refused(&login.access_token).await.unwrap();
    assert!(servers.is_latest(token.expose_secret()));
}

/// Tokens with a lock that is lost after some checks.
#[derive(Debug)]
struct Expiring {
    store: Arc<TokenStore>,
    checks: Arc<AtomicUsize>,
}

struct ExpiringLock(Arc<AtomicUsize>);

#[async_trait]
impl LockGuard for ExpiringLock {
    async fn is_held_for(&self, _time: Duration) -> Result<bool, OAuthError> {
        Ok(self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok())
    }
}

#[async_trait]
impl Tokens for Expiring {
    async fn load(&self) -> Result<Option<StoredLogin>, OAuthError> {
        self.store.load().await
    }

    async fn save(&self, login: &StoredLogin) -> Result<(), OAuthError> {
        self.store.save(login).await
    }

    async fn clear(&self) -> Result<(), OAuthError> {
        self.store.clear().await
    }

    async fn lock(&self) -> Result<TokenLock, OAuthError> {
        Ok(TokenLock::expiring(ExpiringLock(Arc::clone(&self.checks))))
    }
}

#[tokio::test]
async fn a_lock_that_was_lost_neither_sends_nor_saves_a_token() {
    for (checks, refreshes) in [(0, 0), (1, 1)] {
        let (servers, folder) = signed_in(Behaviour::default()).await;
        let before = stored(&servers, folder.path()).await;
        let checks = Arc::new(AtomicUsize::new(checks));
        let tokens =
            Arc::new(Expiring { store: store(&servers, folder.path()), checks: Arc::clone(&checks) });
        let bearer = Bearer::with_timeout(account(&servers.mcp), tokens, LONG);
        let error = bearer.refused(&before.access_token).await.unwrap_err();
        assert_eq!((error.fault, servers.refreshes().len()), (OAuthFault::Locked, refreshes));
        let after = stored(&servers, folder.path()).await;
        assert!(after.has_access_token(&before.access_token), "{refreshes}");
    }
}
