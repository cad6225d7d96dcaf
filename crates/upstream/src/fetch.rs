//! Fetches of one record.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_core::handle::RecordAddress;
use fetchwell_core::hex::hexadecimal;
use fetchwell_core::record::{MemoryPermit, Record, document_text};
use fetchwell_source::unknown_place::unknown_place;
use fetchwell_source::{RecordQuery, SourceError};
use serde_json::{Number, Value};
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

use crate::cache::FetchedRecord;
use crate::fault::{Problem, refused, truncated};
use crate::reply::{ToolError, document, read};
use crate::server::McpServer;
use crate::session::{ReadLimits, ToolCall};
use crate::stream::CONNECTOR;
use crate::tools::Tools;

/// Maximum wait for memory of a long record.
const MAX_MEMORY_WAIT: Duration = Duration::from_secs(2);

/// Words of a server by which it says that a record does not exist.
const MISSING: &[&str] = &[
    "not found",
    "not_found",
    "no record",
    "no document",
    "no page",
    "no note",
    "no such",
    "does not exist",
    "doesn't exist",
    "unknown id",
    "unknown document",
];

/// Fetches a record.
pub(crate) async fn record(
    server: &McpServer,
    query: &RecordQuery,
    limits: ReadLimits,
) -> Result<Record, SourceError> {
    let fetched = fetched(server, &query.address, limits).await?;
    let mut data = fetched.data.clone();
    if !query.fields.is_empty() {
        let known: Vec<String> = data.keys().cloned().collect();
        if let Some(missing) = query.fields.iter().find(|field| !data.contains_key(*field)) {
            return Err(SourceError::UnknownField {
                stream: server.address.stream.to_string(),
                field: missing.clone(),
                known,
            });
        }
        data.retain(|name, _| query.fields.contains(name));
    }
    let address =
        RecordAddress { connection: Some(server.address.connection.clone()), ..query.address.clone() };
    let permit =
        MemoryPermit::acquire(fetched.bytes, MAX_MEMORY_WAIT).await.map_err(|_busy| SourceError::Busy)?;
    let mut record = Record::new(address, data);
    record.display_name.clone_from(&server.address.label);
    record.connector_key = Some(CONNECTOR.to_owned());
    record.has_versioned_parts = true;
    record.memory = permit;
    Ok(record)
}

/// Returns the digest of a record that is kept.
pub(crate) fn version(server: &McpServer, address: &RecordAddress) -> Option<String> {
    Some(server.records.get(address.record.as_str())?.digest.clone())
}

async fn fetched(
    server: &McpServer,
    address: &RecordAddress,
    limits: ReadLimits,
) -> Result<Arc<FetchedRecord>, SourceError> {
    let place = unknown_place(&server.address.schema(), address.connection.as_ref(), Some(&address.stream));
    if let Some(error) = place {
        return Err(error);
    }
    let id = address.record.as_str();
    if let Some(known) = server.records.get(id) {
        return Ok(known);
    }
    let failed = |problem| match problem {
        Problem::Refused(words) if says_missing(&words) => missing(server, id),
        problem => server.error(problem),
    };
    let mut tools = server.tools(limits).await.map_err(|problem| server.error(problem))?;
    let mut answer = server.sessions.call(&call(&tools, id), limits).await;
    // The tools are listed again once if the server has changed them without a notice.
    if let Err(Problem::UnknownTool(_)) = answer {
        tools = server.tools(limits).await.map_err(|problem| server.error(problem))?;
        answer = server.sessions.call(&call(&tools, id), limits).await;
    }
    let answer = answer.map_err(failed)?;
    let read = move || {
        let data = read(answer).and_then(|content| document(content, &tools.fetch))?;
        let text = document_text(&data);
        let digest = hexadecimal(Sha256::digest(text.as_bytes()).iter().take(8));
        Ok::<_, ToolError>(FetchedRecord { data, digest, bytes: text.len() })
    };
    let read = spawn_blocking(read).await.map_err(|error| server.error(Problem::of_task(&error)))?;
    let record =
        read.map_err(
            |ToolError(words)| {
                if says_missing(&words) { missing(server, id) } else { refused(truncated(&words)) }
            },
        )?;
    let record = Arc::new(record);
    server.records.insert(id.to_owned(), Arc::clone(&record));
    Ok(record)
}

/// Returns the call that fetches a record.
fn call(tools: &Tools, id: &str) -> ToolCall {
    let mut arguments = tools.fetch.arguments.clone();
    let number = id.parse::<Number>().ok().filter(|_| tools.has_number_ids);
    let id = number.map_or_else(|| Value::from(id), Value::Number);
    arguments.extend(tools.fetch.id.clone().map(|argument| (argument, id)));
    ToolCall { tool: tools.fetch.tool.clone(), arguments }
}

fn says_missing(words: &str) -> bool {
    let words = words.to_lowercase();
    MISSING.iter().any(|missing| words.contains(missing))
}

fn missing(server: &McpServer, id: &str) -> SourceError {
    SourceError::NotFound {
        what: format!("the server of `{}` has no record with the id `{id}`", server.address.connection),
    }
}
