//! Errors as JSON within their budget.
//!
//! [`ErrorBody::fit`] removes connections to choose from, replaces a hint that is too long, and truncates the message.
//! **Invariant:** a handle in a hint is never shortened.

use std::fmt;

use fetchwell_core::fit::{budget, clip, json_len};
use fetchwell_core::handle::{ConnectionId, Handle, RecordAddress};
use fetchwell_source::{AMBIGUOUS_CONNECTION, ConnectionChoice, SourceError};
use fetchwell_state::cursor::CursorFault;
use serde::Serialize;
use serde_json::Value;

use super::unavailable::{ShownUnavailable, list_unavailable};

/// Maximum number of connections and of sources in an error. The other connections are counted.
pub(crate) const MAX_CHOICES: usize = 8;

/// Maximum length of the label of a connection or source in an error, in bytes of JSON.
pub(crate) const MAX_LABEL_BYTES: usize = 80;

/// Minimum length of a message next to a long hint, in bytes of JSON.
const MIN_MESSAGE: usize = 200;

/// The fields of an error.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ErrorBody {
    /// Stable code, for programs.
    pub code: String,
    /// Description that quotes what was sent.
    pub message: String,
    /// Next call, for a model.
    pub hint: String,
    /// Argument that the error is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
    /// Reason that refines the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// Name of the source that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Time to wait, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// Sources that did not answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<ShownUnavailable>,
    /// Sources to choose from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub available_sources: Vec<String>,
    /// Connections to choose from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub available_connections: Vec<ShownConnection>,
    /// Number of connections that are not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more_connections: Option<usize>,
}

/// A connection to choose from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownConnection {
    connection_id: String,
    /// Handle of the record in this connection, if a record is to be chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    display_name: Option<String>,
}

impl fmt::Display for ShownConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id.as_deref().unwrap_or(&self.connection_id))?;
        self.display_name.as_ref().map_or(Ok(()), |label| write!(f, "  {label}"))
    }
}

/// The error object of a result.
#[derive(Serialize)]
struct Envelope<'a> {
    error: &'a ErrorBody,
}

impl ErrorBody {
    /// Returns `{"error": {...}}` as compact JSON.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string(&Envelope { error: self }).unwrap_or_default()
    }

    /// Returns the same JSON as a value.
    #[must_use]
    pub fn value(&self) -> Value {
        serde_json::to_value(Envelope { error: self }).unwrap_or_default()
    }

    /// Adds the fields that an error of a source has.
    pub(crate) fn add_source_fields(&mut self, error: &SourceError, record: Option<&RecordAddress>) {
        match error {
            SourceError::Refused(refusal) if refusal.fault.is_none() => {
                self.param.clone_from(&refusal.param);
                let record = record.filter(|_| refusal.code == AMBIGUOUS_CONNECTION);
                self.set_choices(&refusal.choices, record);
            }
            SourceError::AmbiguousConnection { choices, .. } => self.set_choices(choices, record),
            SourceError::ConnectionNotFound { choices, .. } => self.set_choices(choices, None),
            SourceError::AllFailed { failed, .. } => {
                let (shown, more) = list_unavailable(failed);
                self.unavailable = shown;
                if let Some(more) = more {
                    self.message.push_str(&format!("; {more}"));
                }
            }
            SourceError::AmbiguousSource { sources, choices, .. } => {
                self.set_choices(choices, record);
                let sources = sources.iter().take(MAX_CHOICES);
                self.available_sources =
                    sources.map(|source| clip(source.as_str(), MAX_LABEL_BYTES)).collect();
            }
            SourceError::InvalidCursor => self.reason = Some(CursorFault::Changed.reason()),
            SourceError::CircuitOpen { pause } => self.retry_after = Some(pause.as_secs().max(1)),
            SourceError::RateLimited { retry_after: Some(pause) } => {
                self.retry_after = Some(pause.as_secs().max(1));
            }
            _ => {}
        }
    }

    /// Sets the connections to choose from. With a record, each has the handle of the record in that connection.
    pub(crate) fn set_choices(&mut self, choices: &[ConnectionChoice], record: Option<&RecordAddress>) {
        let under = |connection: &ConnectionId| {
            let address = RecordAddress { connection: Some(connection.clone()), ..record?.clone() };
            Handle::mint(&address).map(|handle| handle.to_string())
        };
        let shown = choices.iter().take(MAX_CHOICES).map(|choice| ShownConnection {
            connection_id: choice.connection_id.to_string(),
            id: under(&choice.connection_id),
            display_name: choice.display_name.as_ref().map(|label| clip(label, MAX_LABEL_BYTES)),
        });
        self.available_connections = shown.collect();
        self.more_connections =
            Some(choices.len() - self.available_connections.len()).filter(|more| *more > 0);
    }

    /// Fits the error into its budget: removes connections one by one, replaces a hint that is too long by `shorter_hint`,
    /// and truncates the message.
    pub(crate) fn fit(&mut self, shorter_hint: Option<&str>) {
        while self.json().len() > budget::ERROR && self.available_connections.pop().is_some() {
            self.more_connections = Some(self.more_connections.unwrap_or(0) + 1);
        }
        let message = std::mem::take(&mut self.message);
        let hint_is_too_long = self.json().len() + json_len(&message).min(MIN_MESSAGE) > budget::ERROR;
        if let (true, Some(shorter)) = (hint_is_too_long, shorter_hint) {
            shorter.clone_into(&mut self.hint);
        }
        self.message = clip(&message, budget::ERROR.saturating_sub(self.json().len()));
    }
}
