//! Client of MCP servers that are read as sources: any server with a tool that searches and one that fetches.
//!
//! The connection is named after the source and has one stream, whose records are what the server finds; the key of a record
//! is the server's id. A server is not called before the first search or fetch.
//!
//! * `mapping`, `line_pattern`, `presets`: which tools are called, and where their answers have what
//! * `tools`: recognition of tools; `reply`: reading of their answers
//! * `session`: sessions over HTTP or with a child process; `credential`, `oauth`: credentials and sign-in
//! * `search`, `fetch`, `stream`: reads; `inspect`: what a server has, for a command
//! * `fault`: errors
//!
//! Uses `callers`, `core`, `outbound`, `pdpp`, `ranking`, `source` and `state`.
//!
//! **Invariant:** only tools are called that declare to read, that are `search` and `fetch` of the connectors' contract, or
//! that the configuration names. Text of a server is data: it never becomes an instruction, a path, a header or a log line.

mod credential;
mod fault;
mod fetch;
mod inspect;
mod line_pattern;
mod mapping;
pub mod oauth;
mod presets;
mod reply;
mod search;
mod session;
mod stream;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_callers::CallContext;
use fetchwell_core::handle::{ConnectionId, RecordAddress, SourceName, StreamName};
use fetchwell_core::record::{Record, Schema, Window};
use fetchwell_source::unknown_place::unknown_place;
use fetchwell_source::{
    AggregateAnswer, AggregateQuery, BackendKind, BackendStatus, QueryFault, RecordQuery, RecordsPage,
    RecordsQuery, SearchPage, SearchQuery, Source, SourceError, StreamAnswer, StreamQuery, WindowQuery,
};
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value;
use url::Url;

pub use credential::Credential;
pub use inspect::{InspectedTool, Inspection};
pub use line_pattern::{InvalidLinePattern, LinePattern};
pub use mapping::{FetchMapping, InvalidPointer, Mapping, Pointer, SearchMapping};
pub use presets::{Preset, preset, presets};
pub use session::ServerCommand;
pub use stream::DEFAULT_STREAM;

use crate::fault::Problem;
use crate::fetch::{KeptRecords, kept_records};
use crate::search::{KeptPages, kept_pages};
use crate::session::{Endpoint, Listed, Place, Sessions, SharedToken};
use crate::stream::Address;

/// Name by which this program introduces itself to servers.
pub const CLIENT_NAME: &str = "fetchwell";

/// Key that stands for an id which no handle can hold. It is never printed.
const NO_RECORD: &str = "-";

/// Settings of a server.
#[derive(Debug)]
pub struct McpSettings {
    /// Name of the source, which is the id of its connection.
    pub name: SourceName,
    /// Label for people.
    pub label: Option<String>,
    /// Location of the server.
    pub place: McpPlace,
    /// Tools that are named; the others are recognized.
    pub mapping: Mapping,
    /// Name by which this program introduces itself.
    pub client_name: String,
    /// Maximum time of a call.
    pub deadline: Duration,
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

/// MCP server that is read as a source.
#[derive(Debug)]
pub struct McpServer {
    name: SourceName,
    identity: String,
    address: Arc<Address>,
    sessions: Sessions,
    pages: KeptPages,
    records: KeptRecords,
}

/// Names in the settings that cannot be those of a connection or a stream.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSettings(String);

impl McpServer {
    /// Creates a source. Sends and starts nothing before the first call.
    ///
    /// # Errors
    ///
    /// The name of the source or of the stream is not that of a connection or a stream.
    pub fn new(settings: McpSettings) -> Result<Self, InvalidSettings> {
        let invalid = |error: fetchwell_core::handle::InvalidName| InvalidSettings(error.to_string());
        let McpSettings { name, label, place, mapping, client_name, deadline } = settings;
        let stream = mapping.stream.as_deref().unwrap_or(DEFAULT_STREAM);
        let address = Address {
            connection: name.as_str().parse::<ConnectionId>().map_err(invalid)?,
            stream: stream.parse::<StreamName>().map_err(invalid)?,
            label,
            no_record: NO_RECORD.parse().map_err(invalid)?,
        };
        let identity = Self::identity_at(&name, &place.to_string());
        let place = match place {
            McpPlace::Http { url, credential, headers } => {
                Place::Http { url, credential, headers, token: SharedToken::default() }
            }
            McpPlace::Command(command) => Place::Command(command),
        };
        let endpoint = Endpoint { source: name.to_string(), place, client_name, mapping, deadline };
        Ok(Self {
            name,
            identity,
            address: Arc::new(address),
            sessions: Sessions::new(endpoint),
            pages: kept_pages(),
            records: kept_records(),
        })
    }

    /// Returns the identity of a server at a place.
    #[must_use]
    pub fn identity_at(name: &SourceName, place: &str) -> String {
        format!("{name} mcp {place}")
    }

    /// Returns the tools of the server, for which a session is opened.
    async fn listed(&self) -> Result<Arc<Listed>, SourceError> {
        let deadline = self.sessions.endpoint().deadline;
        let listed = async {
            let session = self.sessions.session().await?;
            session.tools(self.sessions.endpoint()).await
        };
        let listed = tokio::time::timeout(deadline, listed).await.unwrap_or(Err(Problem::Timeout(deadline)));
        listed.map_err(|problem| self.error(problem))
    }

    /// Returns the name and version that the server gives itself.
    async fn server_name(&self) -> Result<String, SourceError> {
        let session = self.sessions.session().await.map_err(|problem| self.error(problem))?;
        Ok(session.server().to_owned())
    }

    fn error(&self, problem: Problem) -> SourceError {
        let endpoint = self.sessions.endpoint();
        let unaccepted = || match &endpoint.place {
            Place::Http { credential, .. } => credential.unaccepted(&endpoint.source),
            Place::Command(_) => Credential::None.unaccepted(&endpoint.source),
        };
        problem.into_error(&endpoint.source, unaccepted)
    }

    /// Refuses a read that no server of this kind offers.
    fn not_supported(&self, read: &str) -> SourceError {
        let connection = &self.address.connection;
        SourceError::InvalidQuery {
            fault: QueryFault::NotSupported,
            problem: format!("`{connection}` is an MCP server, which cannot {read}"),
            hint: format!("Use `search` with `connection_id` \"{connection}\", and `fetch` for its hits."),
        }
    }
}

impl std::fmt::Display for McpPlace {
    /// Writes the URL, or the program without its arguments, which may have secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Http { url, .. } => url.fmt(f),
            Self::Command(command) => f.write_str(command.line.first().map_or("", String::as_str)),
        }
    }
}

#[async_trait]
impl Source for McpServer {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    async fn backends(&self) -> Vec<BackendStatus> {
        vec![BackendStatus::without_pool(&self.name, BackendKind::McpServer)]
    }

    async fn schema(&self, _context: &CallContext) -> Result<Schema, SourceError> {
        Ok(self.address.schema())
    }

    async fn stream(&self, _context: &CallContext, query: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        match unknown_place(&self.address.schema(), query.connection.as_ref(), Some(&query.stream)) {
            Some(error) => Err(error),
            None => Ok(StreamAnswer::from(vec![self.address.detail()])),
        }
    }

    async fn search(&self, context: &CallContext, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        search::search(self, query, context.hops()).await
    }

    async fn records(
        &self,
        _context: &CallContext,
        _query: &RecordsQuery,
    ) -> Result<RecordsPage, SourceError> {
        Err(self.not_supported("list records"))
    }

    async fn record(&self, context: &CallContext, query: &RecordQuery) -> Result<Record, SourceError> {
        fetch::record(self, query, context.hops()).await
    }

    async fn version(
        &self,
        _context: &CallContext,
        address: &RecordAddress,
    ) -> Result<Option<String>, SourceError> {
        Ok(fetch::version(self, address))
    }

    async fn window(&self, context: &CallContext, query: &WindowQuery) -> Result<Window, SourceError> {
        let record = self.record(context, &RecordQuery::new(query.address.clone())).await?;
        let fault = |fault, problem: String, hint: &str| SourceError::InvalidQuery {
            fault,
            problem,
            hint: hint.to_owned(),
        };
        let known = || record.data.keys().cloned().collect::<Vec<_>>().join(", ");
        let text = match record.data.get(&query.field) {
            Some(Value::String(text)) => text.clone(),
            Some(_) => {
                let problem = format!("the field `{}` is no text", query.field);
                return Err(fault(QueryFault::FieldNotText, problem, "Read it with `fetch`."));
            }
            None => {
                let problem = format!("the record has no field `{}`; it has {}", query.field, known());
                return Err(fault(QueryFault::FieldNotFound, problem, "Choose one of these fields."));
            }
        };
        let (query, address) = (query.clone(), record.address);
        let window = tokio::task::spawn_blocking(move || query.window_of(address, &text)).await;
        window.ok().flatten().ok_or_else(|| {
            let problem = "the field does not contain the text".to_owned();
            fault(QueryFault::QueryNotFound, problem, "Read the field from its beginning with `offset`.")
        })
    }

    async fn aggregate(
        &self,
        _context: &CallContext,
        _query: &AggregateQuery,
    ) -> Result<AggregateAnswer, SourceError> {
        Err(self.not_supported("count or add up records"))
    }
}
