//! The Streamable HTTP service of one profile: stateless, with JSON responses, or with an event stream of one message
//! for clients that accept nothing else.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use fetchwell_telemetry::Telemetry;
use fetchwell_tools::Profile;
use http::request::Parts;
use http::{HeaderValue, Request, Response, header};
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::Server;
use super::direct::DirectCall;

/// Maximum size of a request in bytes. Real requests are less than a hundredth of that.
pub const MAX_REQUEST_BYTES: usize = 1024 * 1024;

/// The service that answers MCP requests over HTTP.
#[derive(Clone)]
pub struct McpService {
    server: Server,
    json: Service,
    events: Service,
    stop: CancellationToken,
}

type Service = StreamableHttpService<Server, NeverSessionManager>;

/// The format of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One JSON object.
    Json,
    /// Server-sent events, the last of which is the response.
    Events,
}

impl McpService {
    /// Creates the service of `profile`. `Host` and `Origin` are checked before, for all paths alike. Cancelling
    /// `stop` drops the calls in flight.
    pub fn new(profile: Profile, telemetry: Telemetry, stop: &CancellationToken) -> Self {
        let server = Server::for_requests(profile, telemetry);
        let service = |form| {
            let config = StreamableHttpServerConfig::default()
                .with_legacy_session_mode(false)
                .with_json_response(form == Form::Json)
                .with_max_request_body_bytes(MAX_REQUEST_BYTES)
                .disable_allowed_hosts()
                .disable_allowed_origins()
                .with_cancellation_token(stop.child_token());
            let server = server.clone();
            StreamableHttpService::new(move || Ok(server.clone()), Arc::default(), config)
        };
        let (json, events) = (service(Form::Json), service(Form::Events));
        Self { server, json, events, stop: stop.clone() }
    }

    /// Handles a message that came with a request and returns the response.
    pub async fn answer(
        &self,
        mut request: Parts,
        message: Vec<u8>,
        form: Form,
    ) -> Response<BoxBody<Bytes, Infallible>> {
        if form == Form::Json
            && let Some(server) = self.server.without_session()
            && let Some(call) = DirectCall::parse(&request.headers, &message)
        {
            return call.answer(server, &request, &self.stop).await;
        }
        // The service requires both media types, whatever it responds with.
        let both = HeaderValue::from_static("application/json, text/event-stream");
        request.headers.insert(header::ACCEPT, both);
        let request = Request::from_parts(request, Full::new(Bytes::from(message)));
        match form {
            Form::Json => self.json.handle(request).await,
            Form::Events => self.events.handle(request).await,
        }
    }
}

impl fmt::Debug for McpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpService").finish_non_exhaustive()
    }
}
