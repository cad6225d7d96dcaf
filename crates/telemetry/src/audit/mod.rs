//! The audit log: a line of JSON for each record that a call read. Off by default.
//!
//! A line has the time, the id of the request, the caller, the tool or route, and the address of the record. No text of a
//! record or a query is written. A call queues its lines and never waits for the file, nor fails with it.
//!
//! * `log`: the queue, the thread that writes the file, and the counts of lines

mod log;

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use super::{Endpoint, RequestId};

pub use self::log::{AuditLog, AuditLogError};

/// Way in which a record was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadKind {
    /// As a hit of a search, with an excerpt.
    Search,
    /// In a list.
    List,
    /// By its address.
    Record,
    /// A part of one of its fields.
    Field,
}

/// Address of a record that was read. A part that the source did not name is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ReadRecord<'a> {
    /// Name of the source.
    pub source: Option<&'a str>,
    /// Connection, as answers print it.
    pub connection: Option<&'a str>,
    /// Stream of the record; `None` for an id of the source's own.
    pub stream: Option<&'a str>,
    /// Key of the record in its stream.
    pub key: &'a str,
}

/// The audit of one call. Clones are cheap.
#[derive(Debug, Clone)]
pub struct CallAudit(Arc<AuditedCall>);

#[derive(Debug)]
struct AuditedCall {
    log: AuditLog,
    request_id: RequestId,
    endpoint: Endpoint,
}

/// A line of the log.
#[derive(Debug, Serialize)]
struct Line<'a> {
    time: &'a str,
    request_id: &'a str,
    /// Name of a token, or hash of a grant; `null` without authentication.
    caller: Option<&'a str>,
    endpoint: &'a str,
    read: ReadKind,
    #[serde(flatten)]
    record: ReadRecord<'a>,
}

impl CallAudit {
    /// Creates the audit of a call.
    pub(crate) fn new(log: AuditLog, request_id: RequestId, endpoint: Endpoint) -> Self {
        Self(Arc::new(AuditedCall { log, request_id, endpoint }))
    }

    /// Queues a line for each record.
    pub fn write<'a>(
        &self,
        caller: Option<&str>,
        read: ReadKind,
        records: impl IntoIterator<Item = ReadRecord<'a>>,
    ) {
        let AuditedCall { log, request_id, endpoint } = &*self.0;
        let time = format!("{:.3}", Timestamp::now());
        let (mut text, mut lines) = (String::new(), 0);
        for record in records {
            let (request_id, endpoint) = (request_id.as_str(), endpoint.as_str());
            let line = Line { time: &time, request_id, caller, endpoint, read, record };
            // Strings in a struct are always valid JSON.
            text.push_str(&serde_json::to_string(&line).unwrap_or_default());
            text.push('\n');
            lines += 1;
        }
        log.queue(text, lines);
    }
}
