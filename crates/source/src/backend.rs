//! Status of the places that sources read from, for operators. The numbers are those of this process.

use fetchwell_core::handle::SourceName;
use schemars::JsonSchema;
use serde::Serialize;

/// Kind of place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BackendKind {
    /// An embedded store.
    File,
    /// A store in PostgreSQL.
    Postgres,
    /// A remote record server.
    RecordServer,
    /// An MCP server.
    McpServer,
}

impl BackendKind {
    /// Returns the name of the kind.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Postgres => "postgres",
            Self::RecordServer => "record_server",
            Self::McpServer => "mcp_server",
        }
    }
}

/// Place that a source reads from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BackendStatus {
    /// Name of the source.
    pub source: String,
    /// Kind of place.
    pub kind: BackendKind,
    /// Host, port and name of the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// Use of the connections of this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolUsage>,
    /// Read replicas of the database.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replicas: Vec<ReplicaStatus>,
    /// State of the extension pgvector of the database; absent if the database does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pgvector: Option<ExtensionStatus>,
    /// State of the session with an MCP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionStatus>,
}

/// State of the session with an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// No call has needed one yet, or the last one ended.
    NotOpened,
    /// The server starts, or has not listed its tools yet.
    Opening,
    /// The server answers calls.
    Open,
    /// The last attempt to open a session failed.
    Failed,
}

/// State of the session with an MCP server, and its last call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SessionStatus {
    /// State of the session.
    pub state: SessionState,
    /// Name and version that the server gives itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Time of the last call that was answered, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// Description of the last failure since the last answer, in our words, with what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl BackendStatus {
    /// Returns the status of a place without connections of its own.
    pub fn without_pool(source: &SourceName, kind: BackendKind) -> Self {
        Self {
            source: source.to_string(),
            kind,
            database: None,
            pool: None,
            replicas: Vec::new(),
            pgvector: None,
            session: None,
        }
    }
}

/// State of an extension of a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExtensionStatus {
    /// State: `present`, `too_old`, `not_created`, or `absent` from the server.
    pub state: &'static str,
    /// Version, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Remedy, if the extension cannot be used or should be upgraded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// Use of the connections of one process to a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PoolUsage {
    /// Maximum number of connections.
    pub maximum: usize,
    /// Number of open connections.
    pub open: usize,
    /// Number of connections that calls use now.
    pub in_use: usize,
    /// Number of calls that wait for a connection.
    pub waiting: usize,
}

/// State of a replica.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReplicaStatus {
    /// Host, port and name of the database.
    pub database: String,
    /// Time by which it is behind the primary, at most; `None` if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_ms: Option<u64>,
    /// True if this process reads from it.
    pub is_used: bool,
}
