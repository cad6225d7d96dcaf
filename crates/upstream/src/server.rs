//! A server as a source: its settings, its sessions, and what is kept of its answers.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_core::handle::{ConnectionId, SourceName, StreamName};
use fetchwell_source::{QueryFault, SourceError};
use tokio::time::timeout;

use crate::credential::sign_in;
use crate::fault::Problem;
use crate::kept::{KeptLimits, KeptPages, KeptRecords, SeenDigests, kept_pages, kept_records, seen_digests};
use crate::mapping::Mapping;
use crate::session::{CurrentToken, Endpoint, Listed, McpPlace, Sessions};
use crate::stream::{Address, DEFAULT_STREAM};
use crate::tools::Tools;

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

/// MCP server that is read as a source.
#[derive(Debug)]
pub struct McpServer {
    pub(crate) name: SourceName,
    pub(crate) identity: String,
    pub(crate) address: Arc<Address>,
    pub(crate) sessions: Sessions,
    pub(crate) pages: KeptPages,
    pub(crate) records: KeptRecords,
    pub(crate) digests: SeenDigests,
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
        Self::keeping(settings, KeptLimits::SHARED)
    }

    /// Creates a source that keeps answers within limits.
    pub(crate) fn keeping(settings: McpSettings, limits: KeptLimits) -> Result<Self, InvalidSettings> {
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
        let endpoint = Endpoint {
            source: name.to_string(),
            place,
            token: CurrentToken::default(),
            client_name,
            mapping,
            deadline,
        };
        Ok(Self {
            name,
            identity,
            address: Arc::new(address),
            sessions: Sessions::new(endpoint),
            pages: kept_pages(limits),
            records: kept_records(limits),
            digests: seen_digests(limits),
        })
    }

    /// Returns the identity of a server at a place.
    #[must_use]
    pub fn identity_at(name: &SourceName, place: &str) -> String {
        format!("{name} mcp {place}")
    }

    /// Returns the tools of the server, for which a session is opened.
    pub(crate) async fn listed(&self) -> Result<Arc<Listed>, SourceError> {
        let deadline = self.sessions.endpoint().deadline;
        let listed = async {
            let session = self.sessions.session().await?;
            session.tools(self.sessions.endpoint()).await
        };
        let listed = timeout(deadline, listed).await.unwrap_or(Err(Problem::Timeout(deadline)));
        listed.map_err(|problem| self.error(problem))
    }

    /// Returns the tools that are called.
    pub(crate) async fn tools(&self) -> Result<Tools, SourceError> {
        self.listed().await?.used.clone().map_err(|problem| self.error(problem))
    }

    /// Returns the name and version that the server gives itself.
    pub(crate) async fn server_name(&self) -> Result<String, SourceError> {
        let session = self.sessions.session().await.map_err(|problem| self.error(problem))?;
        Ok(session.server().to_owned())
    }

    pub(crate) fn error(&self, problem: Problem) -> SourceError {
        let endpoint = self.sessions.endpoint();
        let unaccepted = || match &endpoint.place {
            McpPlace::Http { credential, .. } => credential.unaccepted(&endpoint.source),
            McpPlace::Command(_) => sign_in(&endpoint.source),
        };
        problem.into_error(&endpoint.source, unaccepted)
    }

    /// Refuses a read that no server of this kind offers.
    pub(crate) fn not_supported(&self, read: &str) -> SourceError {
        let connection = &self.address.connection;
        SourceError::InvalidQuery {
            fault: QueryFault::NotSupported,
            problem: format!("`{connection}` is an MCP server, which cannot {read}"),
            hint: format!("Use `search` with `connection_id` \"{connection}\", and `fetch` for its hits."),
        }
    }
}
