//! An error as it goes out: JSON within its budget.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::unavailable::{ShownUnavailable, shown};
use crate::cursor::CursorFault;
use crate::fit::{budget, clip, json_len};
use crate::handle::{ConnectionId, Handle, RecordAddress};
use crate::source::{AMBIGUOUS_CONNECTION, ConnectionChoice, SourceError};

/// Maximum number of connections and of sources in an error. The other connections are counted.
pub(super) const MAX_CHOICES: usize = 8;

/// Maximum length of the label of a connection or source in an error, in bytes of JSON.
pub(super) const MAX_LABEL_BYTES: usize = 80;

/// What a message keeps when a hint is long, in bytes of JSON.
const MIN_MESSAGE: usize = 200;

/// An error as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ErrorBody {
    /// Stable code.
    pub code: String,
    /// What went wrong, quoting what was sent.
    pub message: String,
    /// The next call.
    pub hint: String,
    /// The argument it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
    /// A finer word than the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The source that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Seconds to wait.
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
    /// How many more there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more_connections: Option<usize>,
}

/// A connection to choose, in an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownConnection {
    connection_id: String,
    /// The record under this connection, when that is what is to be chosen.
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

/// An error as it goes out in both channels of a result.
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

    /// Returns the same as a value, with its keys in the same order.
    #[must_use]
    pub fn value(&self) -> Value {
        serde_json::to_value(Envelope { error: self }).unwrap_or_default()
    }

    pub(super) fn add_source_facts(&mut self, error: &SourceError, record: Option<&RecordAddress>) {
        match error {
            SourceError::Refused(refusal) if refusal.fault.is_none() => {
                self.param.clone_from(&refusal.param);
                let record = record.filter(|_| refusal.code == AMBIGUOUS_CONNECTION);
                self.choose_from(&refusal.choices, record);
            }
            SourceError::AmbiguousConnection { choices, .. } => self.choose_from(choices, record),
            SourceError::ConnectionNotFound { choices, .. } => self.choose_from(choices, None),
            SourceError::AllFailed { failed, .. } => {
                let (shown, more) = shown(failed);
                self.unavailable = shown;
                if let Some(more) = more {
                    self.message.push_str(&format!("; {more}"));
                }
            }
            SourceError::AmbiguousSource { sources, choices, .. } => {
                self.choose_from(choices, record);
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

    pub(super) fn choose_from(&mut self, choices: &[ConnectionChoice], record: Option<&RecordAddress>) {
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

    /// Connections go one by one, then the message is shortened, and a hint that is still too long gives way
    /// to a shorter one: an id that is cut is of no use.
    pub(super) fn fit(&mut self, shorter_hint: Option<&str>) {
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
