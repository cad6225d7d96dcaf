//! A server as a source: its settings, its sessions, and what is kept of its answers.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_core::handle::{ConnectionId, SourceName, StreamName};
use fetchwell_core::hex::hexadecimal;
use fetchwell_source::{QueryFault, SourceError};
use sha2::{Digest, Sha256};
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::cache::{CacheLimits, PageCache, RecordCache, page_cache, record_cache};
use crate::credential::sign_in;
use crate::fault::Problem;
use crate::mapping::Mapping;
use crate::session::{CurrentToken, Endpoint, McpPlace, ReadLimits, Sessions, ToolList};
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
    pub(crate) pages: PageCache,
    pub(crate) records: RecordCache,
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
        Self::with_limits(settings, CacheLimits::SHARED)
    }

    /// Creates a source that caches answers within limits.
    pub(crate) fn with_limits(settings: McpSettings, limits: CacheLimits) -> Result<Self, InvalidSettings> {
        let invalid = |error: fetchwell_core::handle::InvalidName| InvalidSettings(error.to_string());
        let McpSettings { name, label, place, mapping, client_name, deadline } = settings;
        let stream = mapping.stream.as_deref().unwrap_or(DEFAULT_STREAM);
        let address = Address {
            connection: name.as_str().parse::<ConnectionId>().map_err(invalid)?,
            stream: stream.parse::<StreamName>().map_err(invalid)?,
            label,
            no_record: NO_RECORD.parse().map_err(invalid)?,
        };
        let identity = match &place {
            McpPlace::Http { url, .. } => Self::identity_at(&name, url),
            McpPlace::Command(command) => Self::identity_of_command(&name, &command.line),
        };
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
            pages: page_cache(limits),
            records: record_cache(limits),
        })
    }

    /// Returns the identity of a server behind a URL. Its query, which may have a secret, is part of a digest.
    #[must_use]
    pub fn identity_at(name: &SourceName, url: &Url) -> String {
        let place = format!("{}{}", url.origin().ascii_serialization(), url.path());
        identity(name, &place, std::iter::once(url.as_str()))
    }

    /// Returns the identity of a server that is started with a command line. Its arguments, which may have secrets, are part of
    /// a digest.
    #[must_use]
    pub fn identity_of_command(name: &SourceName, line: &[String]) -> String {
        let program = line.first().map_or("", String::as_str);
        identity(name, program, line.iter().map(String::as_str))
    }

    /// Returns the limits of a read that has passed `hops` servers of fetchwell, and begins now.
    pub(crate) fn limits(&self, hops: u32) -> ReadLimits {
        ReadLimits { hops, until: Instant::now() + self.sessions.endpoint().deadline }
    }

    /// Returns the list of tools, for which a session is opened.
    pub(crate) async fn tool_list(&self) -> Result<Arc<ToolList>, Problem> {
        let session = self.sessions.session().await?;
        session.tools(self.sessions.endpoint()).await
    }

    /// Returns the tools that are called, within the limits of a read.
    pub(crate) async fn tools(&self, limits: ReadLimits) -> Result<Tools, Problem> {
        let list = timeout_at(limits.until, self.tool_list()).await;
        list.unwrap_or_else(|_elapsed| Err(self.sessions.timed_out()))?.used.clone()
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

/// Returns the identity of a server: the name of its source, its place as it is shown, and a digest of all parts of its place.
fn identity<'a>(name: &SourceName, shown: &str, parts: impl Iterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    format!("{name} mcp {shown} {}", hexadecimal(hash.finalize().iter().take(8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_differ_by_queries_and_arguments_and_show_neither() {
        let name: SourceName = "notes".parse().unwrap();
        let at = |url: &str| McpServer::identity_at(&name, &url.parse().unwrap());
        let of = |line: &[&str]| {
            McpServer::identity_of_command(
                &name,
                &line.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(),
            )
        };
        let identities = [
            at("https://a.example/mcp"),
            at("https://a.example/mcp?key=s3cret"),
            of(&["npx", "a", "s3cret"]),
            of(&["npx", "as3cret"]),
            of(&["npx"]),
        ];
        for (number, identity) in identities.iter().enumerate() {
            assert!(!identity.contains("s3cret"), "{identity}");
            assert!(identities.iter().skip(number + 1).all(|other| other != identity), "{identity}");
        }
        assert_eq!(at("https://a.example/mcp"), identities[0]);
    }
}
