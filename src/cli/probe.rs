//! Probes a source for its schema and explains errors.

use std::fmt;
use std::time::{Duration, Instant};

use fetchwell_callers::CallContext;
use fetchwell_core::handle::StreamName;
use fetchwell_core::record::{Schema, StreamSchema};
use fetchwell_core::saturate::saturated;
use fetchwell_source::{ProtocolFault, SearchPage, SearchQuery, SessionState, Source, SourceError};
use serde::Serialize;
use tokio::time::timeout;

use super::print::counted;
use crate::app::failure::Failure;
use crate::app::mcp::check_sign_in;
use crate::config::{Environment, McpEndpoint, SourcePlace, SourceSettings};

/// Words of a search that only shows whether a source answers.
pub(super) const PROBE: &str = "fetchwell doctor";

/// Size of a source, and the time of the probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Extent {
    pub(super) connections: u64,
    pub(super) streams: u64,
    /// Number of records, if the source says it of every stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) records: Option<u64>,
    #[serde(rename = "ms")]
    pub(super) milliseconds: u128,
}

/// Returns the description of the credential of a source that is read with that of each caller; `None` for one that can be
/// called here.
pub(super) fn callers_credential(settings: &SourceSettings) -> Option<&'static str> {
    if settings.takes_callers_token() {
        Some("that of each caller, so it can only be called through `fetchwell serve`")
    } else if settings.signs_callers_in() {
        Some(
            "the sign-in of each caller on the page /sources, so its tools can only be called through `fetchwell serve`",
        )
    } else {
        None
    }
}

/// Tests the sign-in of a source that each caller signs in to. Returns what was found, or the problem with its remedy; `None` for
/// other sources.
pub(super) async fn sign_in_of_callers(
    settings: &SourceSettings,
    environment: &Environment,
) -> Option<Result<String, String>> {
    let SourcePlace::Mcp(server) = &settings.place else { return None };
    if !settings.signs_callers_in() {
        return None;
    }
    Some(check_sign_in(settings, server, environment).await.map_err(|failure| failure.message))
}

/// Reads the schema of a source within its deadline. The schema of an MCP server is known, so it is searched.
pub(super) async fn probe(
    source: &dyn Source,
    settings: &SourceSettings,
) -> Result<(Schema, Extent), SourceError> {
    let started = Instant::now();
    let context = CallContext::default();
    let schema = with_deadline(settings.deadline, source.schema(&context)).await?;
    if matches!(settings.place, SourcePlace::Mcp(_)) {
        search_opened(source, settings, &context).await?;
    }
    let streams = schema.connections.iter().flat_map(|connection| &connection.streams);
    let extent = Extent {
        connections: saturated::<u64>(schema.connections.len()),
        streams: saturated::<u64>(streams.clone().count()),
        records: streams.map(|stream| stream.record_count).sum(),
        milliseconds: started.elapsed().as_millis(),
    };
    Ok((schema, extent))
}

/// Searches an MCP server. One that is still starting is waited for as long as its start may take, which is bounded: later
/// calls of a server find it open.
async fn search_opened(
    source: &dyn Source,
    settings: &SourceSettings,
    context: &CallContext,
) -> Result<SearchPage, SourceError> {
    let query = SearchQuery::new(PROBE, 1);
    loop {
        match with_deadline(settings.deadline, source.search(context, &query)).await {
            Err(SourceError::Timeout { .. }) if is_not_open(source).await => {}
            outcome => return outcome,
        }
    }
}

/// Returns true while a server is starting, and after its start has failed: the next search then returns the reason.
async fn is_not_open(source: &dyn Source) -> bool {
    let backends = source.backends().await;
    let mut sessions = backends.iter().filter_map(|backend| backend.session.as_ref());
    sessions.any(|session| matches!(session.state, SessionState::Opening | SessionState::Failed))
}

/// Limits the time of a read to a deadline.
pub(super) async fn with_deadline<Answer>(
    deadline: Duration,
    answer: impl Future<Output = Result<Answer, SourceError>>,
) -> Result<Answer, SourceError> {
    timeout(deadline, answer).await.unwrap_or(Err(SourceError::Timeout { after: deadline }))
}

/// Returns the message of an error of a source with its remedy.
pub(super) fn error_with_remedy(error: SourceError, settings: &SourceSettings) -> String {
    let is_program = match &settings.place {
        SourcePlace::Mcp(server) => matches!(server.endpoint, McpEndpoint::Command { .. }),
        _ => false,
    };
    let remedy = match &error {
        // Their messages say what to do.
        SourceError::Protocol(ProtocolFault::UnknownTools { .. } | ProtocolFault::Cycle { .. }) => "",
        SourceError::Unreachable { .. } | SourceError::Protocol(_) if is_program => {
            "; check that `command` is an MCP server over stdio, and the variables of `env`"
        }
        SourceError::Unreachable { .. } | SourceError::Protocol(_) => {
            "; check the URL and whether the server runs"
        }
        SourceError::Timeout { .. } => "; check whether the server runs, or give it a longer deadline",
        SourceError::RateLimited { .. } => "; try again later",
        _ => "",
    };
    format!("{}{remedy}", Failure::from(error).message)
}

/// Returns a warning about allowed streams that the source does not have, because their names may be misspelled.
pub(super) fn absent_streams(settings: &SourceSettings, schema: &Schema) -> Option<String> {
    let is_there = |name: &StreamName| {
        let mut streams = schema.connections.iter().flat_map(|connection| &connection.streams);
        streams.any(|stream: &StreamSchema| stream.name == *name)
    };
    let absent = settings.streams.iter().flatten().filter(|name| !is_there(name));
    let absent: Vec<String> = absent.map(|name| format!("`{name}`")).collect();
    (!absent.is_empty()).then(|| format!("`streams` allows {}, which it does not have", absent.join(", ")))
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { connections, streams, records, milliseconds } = self;
        write!(f, "{}, {}", counted(*connections, "connection"), counted(*streams, "stream"))?;
        if let Some(records) = records {
            write!(f, ", {}", counted(*records, "record"))?;
        }
        write!(f, ", answered in {milliseconds} ms")
    }
}
