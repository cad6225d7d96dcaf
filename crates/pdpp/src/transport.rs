//! HTTP client of one provider. Requests have a deadline, bodies a size limit, and redirects stay within the origin.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use fetchwell_callers::{CallContext, HOPS_HEADER, MAX_HOPS};
use fetchwell_core::memory::MemoryPermit;
use fetchwell_outbound::{BodyFault, BodyReader, Redactor, bearer, build_client, innermost};
use fetchwell_source::{ProtocolFault, SourceError};
use jiff::Timestamp;
use parking_lot::Mutex;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout_at};
use url::Url;

use super::credentials::Credentials;
use super::params::Params;
use super::{ProviderUrl, wire};

/// Maximum size of a body in bytes.
pub const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// Default deadline of a call, including the retry.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(5);

/// Pause before the retry if the server states none.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Maximum pause that is accepted. A header can contain any number.
const MAX_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

/// Size in bytes above which a body is parsed on a blocking thread.
const PARSED_AT_ONCE: usize = 256 * 1024;

/// Bytes of a body that are read without a permit. Most bodies are shorter, and the number of concurrent requests is
/// limited.
const UNCOUNTED_BODY_BYTES: usize = 1024 * 1024;

/// Maximum time that a large body waits for memory. Shorter than the default deadline.
const MAX_MEMORY_WAIT: Duration = Duration::from_secs(4);

/// Maximum number of concurrent requests to one server. Further requests wait, within their deadlines.
pub(crate) const MAX_IN_FLIGHT: usize = 16;

/// A successful response of the server.
#[derive(Debug)]
pub(crate) struct Reply {
    /// Body: JSON according to its content type.
    pub(crate) body: Bytes,
    /// Requested URL. A URL never contains the credential.
    pub(crate) url: Url,
    /// Memory permit of the body, for the records that are parsed from it.
    pub(crate) memory: MemoryPermit,
}

/// Body with its memory permit.
#[derive(Debug, Default)]
struct Body {
    bytes: Bytes,
    memory: MemoryPermit,
}

/// Digest of a token, which identifies a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Grant([u8; 32]);

impl Grant {
    pub(crate) fn new(token: &SecretString) -> Self {
        Self(Sha256::digest(token.expose_secret()).into())
    }
}

/// HTTP client of one provider with its credential.
#[derive(Debug)]
pub(crate) struct Transport {
    provider: ProviderUrl,
    credentials: Credentials,
    deadline: Duration,
    in_flight: Semaphore,
    client: Connections,
    sent: SentTokens,
}

/// Last tokens that were sent. They are redacted in errors and descriptions of the server; records are not changed.
#[derive(Debug, Default)]
struct SentTokens(Mutex<(Vec<SecretString>, Arc<Redactor>)>);

/// Maximum number of redacted tokens: the one of a call and those that it replaced.
const MAX_SENT_TOKENS: usize = 4;

impl SentTokens {
    /// Returns a redactor of this token and the ones before it.
    fn redactor(&self, token: &SecretString) -> Arc<Redactor> {
        let mut state = self.0.lock();
        let (tokens, redactor) = &mut *state;
        if !tokens.iter().any(|known| known.expose_secret() == token.expose_secret()) {
            tokens.insert(0, token.clone());
            tokens.truncate(MAX_SENT_TOKENS);
            *redactor = Arc::new(Redactor::new(tokens.iter().map(ExposeSecret::expose_secret)));
        }
        Arc::clone(redactor)
    }
}

/// The requests of one call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Requests<'a> {
    transport: &'a Transport,
    context: &'a CallContext,
}

/// Pooled connections to servers. They contain nothing of a caller, so clients of one server can share them.
#[derive(Debug, Clone, Default)]
pub struct Connections {
    /// Built at the first call, because it takes milliseconds.
    client: Arc<OnceLock<Client>>,
}

impl Transport {
    pub(crate) fn new(provider: ProviderUrl, credentials: Credentials, deadline: Duration) -> Self {
        let in_flight = Semaphore::new(MAX_IN_FLIGHT);
        let (client, sent) = (Connections::default(), SentTokens::default());
        Self { provider, credentials, deadline, in_flight, client, sent }
    }

    pub(crate) fn over(self, client: Connections) -> Self {
        Self { client, ..self }
    }

    /// Returns the provider.
    pub(crate) fn provider(&self) -> &ProviderUrl {
        &self.provider
    }

    /// Returns the requests of a call, which are sent with its token.
    pub(crate) fn requests<'a>(&'a self, context: &'a CallContext) -> Requests<'a> {
        Requests { transport: self, context }
    }

    async fn attempt(
        &self,
        url: &Url,
        token: &SecretString,
        hops: u32,
    ) -> Result<(Body, Arc<Redactor>), Failure> {
        let _turn = self.in_flight.acquire().await.map_err(|_closed| unreachable("the program is ending"))?;
        let redactor = self.sent.redactor(token);
        let authorization = bearer(token).ok_or_else(|| unreachable("the token cannot be sent"))?;
        let request = self
            .client()?
            .get(url.clone())
            .header(AUTHORIZATION, authorization)
            .header(ACCEPT, "application/json");
        // A server of this kind may read this one, in a circle.
        let request = if hops > 0 { request.header(HOPS_HEADER, hops + 1) } else { request };
        let response = request.send().await.map_err(|error| Failure::of_connection(&error))?;
        let status = response.status();
        if status.is_success() {
            check_json(&response, &redactor)?;
            return Ok((body(response).await?, redactor));
        }
        if status.is_redirection() {
            let to = redactor.redact_text(&redirect_origin(url, response.headers()));
            let own = to == url.origin().ascii_serialization();
            let fault =
                if own { ProtocolFault::EndlessRedirect } else { ProtocolFault::ForeignRedirect { to } };
            return Err(SourceError::Protocol(fault).into());
        }
        let retry_after = retry_after(response.headers());
        // An error is parsed as far as its body permits; a body that cannot be read leaves the status alone.
        let body = if check_json(&response, &redactor).is_ok() {
            redacted(body(response).await.unwrap_or_default().bytes, redactor).await?
        } else {
            Bytes::new()
        };
        let error = wire::refusal(status.as_u16(), &body, retry_after, || self.credentials.unaccepted());
        Err(Failure::of_status(status, error, retry_after))
    }

    fn client(&self) -> Result<&Client, SourceError> {
        if let Some(client) = self.client.client.get() {
            return Ok(client);
        }
        let client = build_client(self.provider.url()).map_err(|problem| unreachable(&problem))?;
        Ok(self.client.client.get_or_init(|| client))
    }
}

impl Requests<'_> {
    /// Returns the record server's URL.
    pub(crate) fn provider(&self) -> &ProviderUrl {
        self.transport.provider()
    }

    /// Sends `GET path?params`. Retries once if the server cannot be reached, responds 502, 503 or 504, requests a
    /// pause that the deadline permits, or refuses a token that has been replaced since.
    pub(crate) async fn get(&self, path: &str, params: &Params) -> Result<Reply, SourceError> {
        self.request(path, params).await.map(|(reply, _)| reply)
    }

    /// Sends `GET` for descriptions of connections and streams, in which tokens are redacted because errors quote
    /// them.
    pub(crate) async fn get_metadata(&self, path: &str, params: &Params) -> Result<Reply, SourceError> {
        let (reply, redactor) = self.request(path, params).await?;
        Ok(Reply { body: redacted(reply.body, redactor).await?, ..reply })
    }

    /// Returns the deadline of a request.
    pub(crate) fn deadline(&self) -> Duration {
        self.transport.deadline
    }

    /// Returns the grant of the next request.
    pub(crate) async fn grant(&self) -> Result<Grant, SourceError> {
        Ok(Grant::new(&self.transport.credentials.token(self.context, Timestamp::now()).await?))
    }

    async fn request(&self, path: &str, params: &Params) -> Result<(Reply, Arc<Redactor>), SourceError> {
        let mut url =
            self.transport.provider.endpoint(path).map_err(|problem| unreachable(&problem.to_string()))?;
        if !params.is_empty() {
            url.query_pairs_mut().extend_pairs(params.pairs());
        }
        let until = Instant::now() + self.transport.deadline;
        let hops = self.context.hops();
        if hops >= MAX_HOPS {
            return Err(unreachable(
                "the call has passed too many servers of fetchwell, which name each other in a circle",
            ));
        }
        let timed = async {
            let token = self.transport.credentials.token(self.context, Timestamp::now()).await?;
            match self.transport.attempt(&url, &token, hops).await {
                Err(Failure { error, retry_after: Some(pause) }) => {
                    if Instant::now().checked_add(pause).is_none_or(|then| then >= until) {
                        return Err(error);
                    }
                    sleep(pause).await;
                    let token = self.transport.credentials.token(self.context, Timestamp::now()).await?;
                    self.transport.attempt(&url, &token, hops).await.map_err(|failure| failure.error)
                }
                Err(Failure { error: error @ SourceError::Reauthorize { .. }, .. }) => {
                    let newer = self
                        .transport
                        .credentials
                        .renew(self.context, &token, Timestamp::now())
                        .await
                        .ok_or(error)?;
                    self.transport.attempt(&url, &newer, hops).await.map_err(|failure| failure.error)
                }
                other => other.map_err(|failure| failure.error),
            }
        };
        match timeout_at(until, timed).await {
            Ok(answer) => {
                answer.map(|(Body { bytes: body, memory }, redactor)| (Reply { body, url, memory }, redactor))
            }
            Err(_elapsed) => Err(SourceError::Timeout { after: self.transport.deadline }),
        }
    }
}

/// Parses a body. A large body is parsed on a blocking thread.
pub(crate) async fn parsed<Answer: Send + 'static>(
    body: Bytes,
    parse: impl FnOnce(&[u8]) -> Result<Answer, SourceError> + Send + 'static,
) -> Result<Answer, SourceError> {
    if body.len() <= PARSED_AT_ONCE {
        return parse(&body);
    }
    spawn_blocking(move || parse(&body)).await.unwrap_or_else(|ended| match ended.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_cancelled) => Err(unreachable("the program is ending")),
    })
}

/// Redacts the tokens that were sent to the server from a body.
async fn redacted(body: Bytes, redactor: Arc<Redactor>) -> Result<Bytes, SourceError> {
    if body.len() <= PARSED_AT_ONCE {
        return Ok(redactor.redact_json(body));
    }
    let redacted = spawn_blocking(move || redactor.redact_json(body)).await;
    redacted.map_err(|_stopped| unreachable("the program is ending"))
}

/// Failed attempt, with the pause before a retry if one may succeed.
struct Failure {
    error: SourceError,
    retry_after: Option<Duration>,
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        Self { error, retry_after: None }
    }
}

impl Failure {
    fn of_connection(error: &reqwest::Error) -> Self {
        // The URL contains the query, which is private, so it is left out of the error.
        let problem = if error.is_connect() {
            "the server cannot be reached".to_owned()
        } else {
            "the connection broke before the answer was complete".to_owned()
        };
        let problem = innermost(error).map_or(problem.clone(), |cause| format!("{problem} ({cause})"));
        Self {
            error: SourceError::Unreachable { problem },
            retry_after: error.is_connect().then_some(RETRY_PAUSE),
        }
    }

    fn of_status(status: StatusCode, error: SourceError, asked: Option<Duration>) -> Self {
        let retry_after = match status {
            StatusCode::TOO_MANY_REQUESTS => asked,
            StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
                Some(asked.unwrap_or(RETRY_PAUSE))
            }
            _ => None,
        };
        Self { error, retry_after }
    }
}

fn unreachable(problem: &str) -> SourceError {
    SourceError::Unreachable { problem: problem.to_owned() }
}

fn check_json(response: &Response, redactor: &Redactor) -> Result<(), SourceError> {
    let Some(content_type) = response.headers().get(CONTENT_TYPE) else { return Ok(()) };
    let media_type = content_type.to_str().ok().and_then(|text| text.parse::<mime::Mime>().ok());
    if media_type
        .as_ref()
        .is_some_and(|mime| mime.subtype() == mime::JSON || mime.suffix() == Some(mime::JSON))
    {
        return Ok(());
    }
    let content_type = media_type
        .map_or_else(|| "of an unreadable type".to_owned(), |mime| redactor.redact_text(mime.essence_str()));
    Err(SourceError::Protocol(ProtocolFault::NotJson { status: response.status().as_u16(), content_type }))
}

/// Reads a body within the size limit, and a long one only with a memory permit.
async fn body(response: Response) -> Result<Body, SourceError> {
    let failed = |fault| match fault {
        BodyFault::TooLarge => SourceError::Protocol(ProtocolFault::TooLarge { limit: MAX_BODY_BYTES }),
        BodyFault::Broken(error) => Failure::of_connection(&error).error,
    };
    let mut body = BodyReader::new(response, MAX_BODY_BYTES).map_err(failed)?;
    if body.announced().is_none_or(|length| length <= UNCOUNTED_BODY_BYTES)
        && body.read_up_to(UNCOUNTED_BODY_BYTES).await.map_err(failed)?
    {
        return Ok(Body { bytes: body.into_bytes(), memory: MemoryPermit::default() });
    }
    // Compressed and chunked bodies announce no length.
    let expected = body.announced().unwrap_or(MAX_BODY_BYTES);
    let acquired = MemoryPermit::acquire(expected, MAX_MEMORY_WAIT).await;
    let mut memory = acquired.map_err(|_busy| SourceError::Busy)?;
    body.read_up_to(MAX_BODY_BYTES).await.map_err(failed)?;
    let bytes = body.into_bytes();
    memory.shrink_to(bytes.len());
    Ok(Body { bytes, memory })
}

/// Parses `Retry-After`, in seconds or as a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds).min(MAX_PAUSE));
    }
    let date = jiff::fmt::rfc2822::parse(text.trim()).ok()?;
    let pause = date.timestamp().duration_since(Timestamp::now()).try_into().unwrap_or(Duration::ZERO);
    Some(pause.min(MAX_PAUSE))
}

fn redirect_origin(from: &Url, headers: &HeaderMap) -> String {
    let to = headers.get(LOCATION).and_then(|to| to.to_str().ok()).and_then(|to| from.join(to).ok());
    to.map_or_else(|| "nowhere".to_owned(), |to| to.origin().ascii_serialization())
}
