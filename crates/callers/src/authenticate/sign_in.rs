//! Sign-in of people in a browser: the authorization code flow with PKCE, as a client of the issuer.
//!
//! RFC 6749 (4.1), RFC 7636 (S256), RFC 8707 (`resource`) and RFC 9207 (`iss`). The endpoints are those of the issuer's metadata.
//! The server keeps no state of an attempt: the browser returns the state and the verifier. The access token that an
//! attempt obtains is checked like every bearer token, by `Authenticator`.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, timeout};
use url::{Url, form_urlencoded};

use super::authority::{
    AuthorityClient, AuthorityFault, Endpoints, FailureLog, FairQueue, basic, discover_endpoints,
    is_error_code,
};
use super::reply::AuthorizationReply;
use super::{AuthorityUrl, SignInSettings};

/// Lifetime of the endpoints before the metadata is read again.
const FRESH_FOR: Duration = Duration::from_secs(15 * 60);

/// The pause after metadata that could not be read, while older endpoints are known.
const PAUSE: Duration = Duration::from_secs(30);

/// The pause after metadata that could not be read, while no endpoints are known and sign-in fails.
const PAUSE_WITHOUT_ENDPOINTS: Duration = Duration::from_secs(5);

/// The longest code that is sent on, in bytes.
const MAX_CODE_BYTES: usize = 4 * 1024;

/// Signs people in at the issuer.
pub struct SignIn {
    settings: SignInSettings,
    issuer: AuthorityUrl,
    client: AuthorityClient,
    deadline: Duration,
    known: Mutex<EndpointCache>,
    /// Lock of the task that reads the metadata.
    metadata_lock: Arc<tokio::sync::Mutex<()>>,
    queue: FairQueue,
    log: FailureLog,
}

/// The endpoints of the latest metadata that could be read.
#[derive(Debug, Default)]
struct EndpointCache {
    endpoints: Option<Arc<Endpoints>>,
    /// Time at which the metadata is read again.
    due: Option<Instant>,
}

/// One attempt to sign in: what the browser keeps until it comes back.
#[derive(Debug)]
pub struct Attempt {
    /// Binds the reply to the browser that began the attempt.
    pub state: String,
    /// Proves to the token endpoint that the code belongs to this attempt.
    pub verifier: SecretString,
}

/// The reason why a sign-in gave no token. It contains no text of a request or of a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignInFault {
    /// The person or the authorization server refused the sign-in.
    #[error("the sign-in was cancelled or refused at the authorization server")]
    AccessDenied,
    /// The reply comes from another authorization server (RFC 9207).
    #[error("the reply to the sign-in is not from the configured authorization server")]
    OtherIssuer,
    /// The reply has neither a code nor an error.
    #[error("the reply to the sign-in is incomplete")]
    Malformed,
    /// The authorization server refused the request, with this error code.
    #[error("the authorization server refused the sign-in ({0})")]
    Refused(String),
    /// The authorization server gives no usable response.
    #[error("the authorization server is unavailable; try again later")]
    Unavailable,
}

impl Attempt {
    /// Creates an attempt with a random state and verifier. Returns `None` if the system provides no random bytes.
    #[must_use]
    pub fn random() -> Option<Self> {
        let (mut state, mut verifier) = ([0; 16], [0; 32]);
        getrandom::fill(&mut state).ok()?;
        getrandom::fill(&mut verifier).ok()?;
        let verifier = SecretString::from(URL_SAFE_NO_PAD.encode(verifier));
        Some(Self { state: URL_SAFE_NO_PAD.encode(state), verifier })
    }

    /// Returns the challenge of the verifier, by S256.
    fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.expose_secret()))
    }
}

impl SignIn {
    pub(super) fn new(settings: SignInSettings, issuer: AuthorityUrl, deadline: Duration) -> Self {
        Self {
            settings,
            issuer,
            client: AuthorityClient::default(),
            deadline,
            known: Mutex::default(),
            metadata_lock: Arc::default(),
            queue: FairQueue::new(),
            log: FailureLog::default(),
        }
    }

    /// Returns true if it was created with these settings.
    pub(super) fn is_of(&self, settings: &SignInSettings, issuer: &AuthorityUrl) -> bool {
        self.settings == *settings && self.issuer == *issuer
    }

    /// Returns the issuer that people sign in at.
    #[must_use]
    pub fn issuer(&self) -> &str {
        self.issuer.as_str()
    }

    /// Returns the URL that a browser is sent to.
    ///
    /// # Errors
    ///
    /// The metadata of the issuer cannot be read.
    pub async fn authorization_url(
        self: &Arc<Self>,
        attempt: &Attempt,
        redirect_uri: &str,
    ) -> Result<Url, SignInFault> {
        let endpoints = self.endpoints().await.ok_or(SignInFault::Unavailable)?;
        let mut url = endpoints.authorization.url().clone();
        let SignInSettings { client_id, scopes, resource, .. } = &self.settings;
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", client_id)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("state", &attempt.state)
            .append_pair("code_challenge", &attempt.challenge())
            .append_pair("code_challenge_method", "S256");
        if !scopes.is_empty() {
            query.append_pair("scope", &scopes.join(" "));
        }
        if let Some(resource) = resource {
            query.append_pair("resource", resource);
        }
        drop(query);
        Ok(url)
    }

    /// Returns the access token that the code of a reply is exchanged for. `client` is the address of the browser.
    ///
    /// # Errors
    ///
    /// See [`SignInFault`].
    pub async fn access_token(
        self: &Arc<Self>,
        attempt: &Attempt,
        reply: AuthorizationReply,
        redirect_uri: &str,
        client: IpAddr,
    ) -> Result<SecretString, SignInFault> {
        let endpoints = self.endpoints().await.ok_or(SignInFault::Unavailable)?;
        match &reply.issuer {
            Some(issuer) if issuer != self.issuer.as_str() => return Err(SignInFault::OtherIssuer),
            None if endpoints.sends_issuer => return Err(SignInFault::OtherIssuer),
            Some(_) | None => {}
        }
        if let Some(error) = &reply.error {
            return Err(self.refused(error));
        }
        let code = reply
            .code
            .filter(|code| code.expose_secret().len() <= MAX_CODE_BYTES)
            .ok_or(SignInFault::Malformed)?;
        // Waiting in the queue is not a failure of the authorization server, so it is not logged.
        let Ok(Ok(_permit)) = timeout(self.deadline, self.queue.acquire(client)).await else {
            return Err(SignInFault::Unavailable);
        };
        let answer = timeout(self.deadline, self.post(&endpoints, attempt, &code, redirect_uri)).await;
        match answer.unwrap_or(Err(AuthorityFault::Timeout)).and_then(|body| read(&body)) {
            Ok(token) => Ok(token),
            Err(AuthorityFault::Refused { status, error }) => {
                // Any client can send an invalid code, so it is not logged for the operator.
                if error != "invalid_grant" {
                    self.log(&AuthorityFault::Refused { status, error: error.clone() });
                }
                Err(self.refused(&error))
            }
            Err(problem) => {
                self.log(&problem);
                Err(SignInFault::Unavailable)
            }
        }
    }

    /// Returns the fault of an error code of the authorization server.
    fn refused(&self, error: &str) -> SignInFault {
        match error {
            "access_denied" => SignInFault::AccessDenied,
            "server_error" | "temporarily_unavailable" => SignInFault::Unavailable,
            error => SignInFault::Refused(if is_error_code(error) {
                error.to_owned()
            } else {
                "unknown error".to_owned()
            }),
        }
    }

    async fn post(
        &self,
        endpoints: &Endpoints,
        attempt: &Attempt,
        code: &SecretString,
        redirect_uri: &str,
    ) -> Result<Bytes, AuthorityFault> {
        let SignInSettings { client_id, client_secret, resource, .. } = &self.settings;
        let by_header = client_secret.as_ref().filter(|_| endpoints.takes_basic);
        let by_form = client_secret.as_ref().filter(|_| !endpoints.takes_basic);
        let unusable =
            || AuthorityFault::Unusable("the client id and secret cannot be sent as a header".to_owned());
        let authorization = match by_header {
            Some(secret) => Some(basic(client_id, secret).ok_or_else(unusable)?),
            None => None,
        };
        let fields = [
            ("grant_type", Some("authorization_code")),
            ("code", Some(code.expose_secret())),
            ("redirect_uri", Some(redirect_uri)),
            ("code_verifier", Some(attempt.verifier.expose_secret())),
            ("resource", resource.as_deref()),
            ("client_id", authorization.is_none().then_some(client_id)),
            ("client_secret", by_form.map(SecretString::expose_secret)),
        ];
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        self.client.post(endpoints.token.url(), authorization, form).await
    }

    /// Returns the endpoints. Reads the metadata of the issuer first if they have expired.
    async fn endpoints(self: &Arc<Self>) -> Option<Arc<Endpoints>> {
        let known = self.known.lock().endpoints.clone();
        if !self.is_due() {
            return known;
        }
        let lock = Arc::clone(&self.metadata_lock);
        let guard = match known {
            // Cached endpoints are used while another request reads the metadata.
            Some(_) => lock.try_lock_owned().ok(),
            None => Some(lock.lock_owned().await),
        };
        if let Some(guard) = guard.filter(|_| self.is_due()) {
            // The task ends even if the browser that caused it disconnects.
            let _ = tokio::spawn(Arc::clone(self).read_metadata(guard)).await;
        }
        self.known.lock().endpoints.clone()
    }

    async fn read_metadata(self: Arc<Self>, guard: OwnedMutexGuard<()>) {
        let read = timeout(self.deadline, discover_endpoints(&self.client, &self.issuer)).await;
        let read = read.unwrap_or(Err(AuthorityFault::Timeout));
        if let Err(problem) = &read {
            self.log(problem);
        }
        let mut known = self.known.lock();
        let pause = match (&read, &known.endpoints) {
            (Ok(_), _) => FRESH_FOR,
            (Err(_), Some(_)) => PAUSE,
            (Err(_), None) => PAUSE_WITHOUT_ENDPOINTS,
        };
        known.due = Some(Instant::now() + pause);
        if let Ok(endpoints) = read {
            known.endpoints = Some(Arc::new(endpoints));
        }
        drop(known);
        drop(guard);
    }

    fn is_due(&self) -> bool {
        self.known.lock().due.is_none_or(|due| Instant::now() >= due)
    }

    fn log(&self, problem: &AuthorityFault) {
        if self.log.is_due(Timestamp::now()) {
            tracing::warn!(issuer = %self.issuer, %problem, "people cannot sign in for record pages");
        }
    }
}

impl fmt::Debug for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignIn").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Reads the access token of a token endpoint's answer.
fn read(body: &[u8]) -> Result<SecretString, AuthorityFault> {
    #[derive(Deserialize)]
    struct Answer {
        access_token: String,
        token_type: String,
    }
    let unusable = |problem: &str| AuthorityFault::Unusable(problem.to_owned());
    let answer: Answer = serde_json::from_slice(body)
        .map_err(|_error| unusable("its response is not JSON with an access_token and a token_type"))?;
    if !answer.token_type.eq_ignore_ascii_case("bearer") {
        return Err(unusable("its token is not a bearer token"));
    }
    Ok(SecretString::from(answer.access_token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_rfc_7636() {
        let attempt =
            Attempt { state: String::new(), verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".into() };
        assert_eq!(attempt.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        let (one, other) = (Attempt::random().unwrap(), Attempt::random().unwrap());
        assert!(one.state != other.state && one.state.len() == 22);
        assert!((43..=128).contains(&one.verifier.expose_secret().len()));
        assert!(!format!("{one:?}").contains(one.verifier.expose_secret()));
    }

    #[test]
    fn only_a_bearer_token_is_taken() {
        let token = |body: &str| read(body.as_bytes()).map(|token| token.expose_secret().to_owned());
        assert_eq!(token(r#"{"access_token":"a","token_type":"bearer","id_token":"i"}"#).unwrap(), "a");
        for body in [
            "",
            "[]",
            r#"{"access_token":"a"}"#,
            r#"{"token_type":"Bearer"}"#,
            r#"{"access_token":["a"],"token_type":"Bearer"}"#,
            r#"{"access_token":"a","token_type":"DPoP"}"#,
        ] {
            assert!(!token(body).unwrap_err().to_string().contains('['), "{body}");
        }
    }
}
