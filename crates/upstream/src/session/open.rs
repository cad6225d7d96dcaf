//! Opening of a session.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fetchwell_core::fit::first_bytes;
use fetchwell_outbound::build_client;
use parking_lot::Mutex;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::ProtocolVersion;
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, RoleClient, RunningService,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use secrecy::{ExposeSecret, SecretString};
use tokio::time::timeout;
use url::Url;

use super::child::{ServerCommand, ServerProcess, log_errors, start};
use super::handler::Handler;
use super::http::{CurrentToken, TokenClient};
use super::limited::Limited;
use super::tool_list::ToolList;
use crate::credential::Credential;
use crate::fault::{MAX_ANSWER_BYTES, Problem};
use crate::mapping::Mapping;

/// Timeout of the start of a server with its answers to `initialize` and `tools/list`. A package runner may have to download
/// the server.
pub const OPENING_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum length of the name and version of a server, in bytes.
const MAX_NAME_BYTES: usize = 100;

/// Revision of the protocol for servers that do not know `initialize`.
const WITHOUT_INITIALIZE: ProtocolVersion = ProtocolVersion::STANDARD_HEADERS;

/// A server, and how it is spoken to.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// Name of the source.
    pub(crate) source: String,
    /// Location of the server.
    pub(crate) place: McpPlace,
    /// Token of the next requests over HTTP.
    pub(crate) token: CurrentToken,
    /// Name by which this program introduces itself.
    pub(crate) client_name: String,
    /// Mapping of the tools.
    pub(crate) mapping: Mapping,
    /// Maximum time of a call.
    pub(crate) deadline: Duration,
}

/// Location of a server.
#[derive(Debug)]
pub enum McpPlace {
    /// Behind a URL.
    Http {
        /// URL of the endpoint, such as `https://mcp.example.com/mcp`.
        url: Url,
        /// Credential of the requests.
        credential: Credential,
        /// Further headers of each request.
        headers: Vec<(HeaderName, HeaderValue)>,
    },
    /// A program, which is started.
    Command(ServerCommand),
}

/// Session with a server.
#[derive(Debug)]
pub(crate) struct Session {
    service: RunningService<RoleClient, Handler>,
    tools: Mutex<Arc<ToolList>>,
    changes: Arc<AtomicU64>,
    /// True after a call was answered.
    has_answered: AtomicBool,
    /// Name and version that the server gives itself.
    server: String,
    /// The program, which is kept running.
    process: Option<ServerProcess>,
}

impl fmt::Display for McpPlace {
    /// Writes the URL, or the program without its arguments, which may have secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http { url, .. } => write!(f, "{}{}", url.origin().ascii_serialization(), url.path()),
            Self::Command(command) => f.write_str(command.line.first().map_or("", String::as_str)),
        }
    }
}

impl Endpoint {
    /// Reads the credential for the next requests, and returns it.
    pub(super) async fn use_token(&self) -> Result<Option<SecretString>, Problem> {
        let McpPlace::Http { credential, .. } = &self.place else { return Ok(None) };
        let current = credential.token().await?;
        self.token.set(current.clone());
        Ok(current)
    }

    /// Reads the credential again after the server refused the token `used`. Returns true if there is another one.
    pub(super) async fn renew_token(&self, used: Option<SecretString>) -> Result<bool, Problem> {
        let McpPlace::Http { credential, .. } = &self.place else { return Ok(false) };
        // Another call may have renewed it.
        let current = credential.token().await?;
        let is_refused = current.as_ref().map(ExposeSecret::expose_secret)
            == used.as_ref().map(ExposeSecret::expose_secret);
        let newer = if is_refused { credential.renew(used.as_ref()).await? } else { current };
        let is_newer = newer.is_some();
        if is_newer {
            self.token.set(newer);
        }
        Ok(is_newer)
    }
}

/// Opens a session. A token that the server refuses is renewed once: it can be revoked before it expires.
pub(super) async fn open(endpoint: &Endpoint) -> Result<Session, Problem> {
    let opened = async {
        let used = endpoint.use_token().await?;
        match Box::pin(connect(endpoint)).await {
            Err(Problem::Unauthorized) if endpoint.renew_token(used).await? => {
                Box::pin(connect(endpoint)).await
            }
            opened => opened,
        }
    };
    timeout(OPENING_TIMEOUT, opened).await.unwrap_or_else(|_elapsed| {
        let seconds = OPENING_TIMEOUT.as_secs();
        Err(Problem::Unreachable(format!(
            "the server did not answer `initialize` and `tools/list` within {seconds} s, a limit that no setting changes"
        )))
    })
}

/// Starts or connects to the server, and lists its tools.
async fn connect(endpoint: &Endpoint) -> Result<Session, Problem> {
    let session = match &endpoint.place {
        McpPlace::Http { url, headers, .. } => {
            let client = build_client(url).map_err(Problem::Unreachable)?;
            let client = TokenClient { client, token: endpoint.token.clone() };
            over_http(endpoint, url, headers, client).await?
        }
        McpPlace::Command(command) => over_pipes(endpoint, command).await?,
    };
    match session.list_tools(endpoint).await {
        Ok(()) => Ok(session),
        Err(problem) if problem == Problem::Closed || session.is_closed() => {
            Err(session.describe_end().await.unwrap_or(problem))
        }
        Err(problem) => Err(problem),
    }
}

async fn over_http(
    endpoint: &Endpoint,
    url: &Url,
    headers: &[(HeaderName, HeaderValue)],
    client: TokenClient,
) -> Result<Session, Problem> {
    let headers: HashMap<HeaderName, HeaderValue> = headers.iter().cloned().collect();
    let config = || {
        let config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
        config.custom_headers(headers.clone()).max_sse_event_size(MAX_ANSWER_BYTES)
    };
    let transport = || Limited::new(StreamableHttpClientTransport::with_client(client.clone(), config()));
    let handler = Handler::new(endpoint.client_name.clone());
    let known = handler.clone().serve_with_lifecycle(transport(), ClientLifecycleMode::Initialize).await;
    let service = match known {
        // Servers of later revisions need not know `initialize`.
        Err(
            ClientInitializeError::JsonRpcError(_)
            | ClientInitializeError::NoCompatibleProtocolVersion { .. },
        ) => {
            let later = ClientLifecycleMode::Discover { preferred_versions: vec![WITHOUT_INITIALIZE] };
            handler.serve_with_lifecycle(transport(), later).await
        }
        known => known,
    };
    service.map(|service| Session::new(service, None)).map_err(|error| Problem::of_start(&error))
}

async fn over_pipes(endpoint: &Endpoint, command: &ServerCommand) -> Result<Session, Problem> {
    let (process, pipes) = start(command).map_err(Problem::Unreachable)?;
    tokio::spawn(log_errors(endpoint.source.clone(), pipes.errors));
    let transport =
        AsyncRwTransport::new_client(pipes.output, pipes.input).with_max_line_length(MAX_ANSWER_BYTES);
    let transport = Limited::new(transport);
    let handler = Handler::new(endpoint.client_name.clone());
    let service = handler.serve_with_lifecycle(transport, ClientLifecycleMode::Initialize).await;
    match service {
        Ok(service) => Ok(Session::new(service, Some(process))),
        // A program that has ended before the first message was written breaks the pipe.
        Err(ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. }) => {
            Err(Problem::Unreachable(format!(
                "before it answered `initialize`, {}",
                process.describe_end().await
            )))
        }
        Err(error) => Err(Problem::of_start(&error)),
    }
}

impl Session {
    fn new(service: RunningService<RoleClient, Handler>, process: Option<ServerProcess>) -> Self {
        let changes = Arc::clone(&service.service().changes);
        let info = service.peer_info();
        let server = info.and_then(|info| {
            info.server_info.as_ref().map(|it| plain(&format!("{} {}", it.name, it.version)))
        });
        let tools = Mutex::new(Arc::new(ToolList::new()));
        Self {
            service,
            tools,
            changes,
            has_answered: AtomicBool::new(false),
            server: server.unwrap_or_default(),
            process,
        }
    }

    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.service.is_closed() || self.peer().is_transport_closed()
    }

    /// Returns how the program of a closed session ended; `None` for a server behind a URL.
    pub(super) async fn describe_end(&self) -> Option<Problem> {
        Some(Problem::Unreachable(self.process.as_ref()?.describe_end().await))
    }

    /// Returns true after a call was answered.
    pub(super) fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    /// Notes that a call was answered.
    pub(super) fn note_answer(&self) {
        self.has_answered.store(true, Ordering::Relaxed);
    }

    /// Returns the name and version that the server gives itself.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Returns the tools. They are listed again after the server said that they have changed.
    pub(crate) async fn tools(&self, endpoint: &Endpoint) -> Result<Arc<ToolList>, Problem> {
        let known = self.tools.lock().changes;
        if known != self.changes.load(Ordering::Relaxed) {
            self.list_tools(endpoint).await?;
        }
        Ok(Arc::clone(&self.tools.lock()))
    }

    async fn list_tools(&self, endpoint: &Endpoint) -> Result<(), Problem> {
        let changes = self.changes.load(Ordering::Relaxed);
        let list = ToolList::read(self.peer(), &endpoint.mapping, changes).await?;
        *self.tools.lock() = Arc::new(list);
        Ok(())
    }

    /// Has the tools listed again before the next call, after the server refused one of them as unknown.
    pub(super) fn forget_tools(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns a text of a server for people: short, and without control characters.
fn plain(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    first_bytes(&text, MAX_NAME_BYTES).to_owned()
}
