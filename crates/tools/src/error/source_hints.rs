//! Hints for errors of a source: the call that a client should make next.
//!
//! Most hints depend on the error alone. Those that depend on the tool are its [`SourceHints`], which stand in the tool's
//! own file.

use std::collections::BTreeSet;

use fetchwell_core::fit::clip;
use fetchwell_core::handle::{RecordAddress, SourceName};
use fetchwell_core::record::Unavailable;
use fetchwell_source::contract::StoreError;
use fetchwell_source::{AMBIGUOUS_CONNECTION, ProtocolFault, Refusal, SourceError};

use super::body::MAX_CHOICES;

const AGAIN: &str = "Call again in a moment; if it stays, `fetchwell doctor` tells what is wrong.";

/// Maximum length in bytes of the remedies of several sources. Each source in `unavailable` has its own.
const MAX_REMEDIES: usize = 400;

/// Returns the remedies of failed sources if each of them needs a new credential, which no later call brings.
fn sign_in_hint(failed: &[Unavailable]) -> Option<String> {
    if failed.is_empty() || failed.iter().any(|one| one.code != "reauthorize") {
        return None;
    }
    let remedies: BTreeSet<&str> = failed.iter().filter_map(|one| one.hint.as_deref()).collect();
    let remedies = Vec::from_iter(remedies).join("; ");
    Some(if remedies.is_empty() || remedies.len() > MAX_REMEDIES {
        "Ask the user to sign in to each source as its `hint` in `unavailable` says, then call again."
            .to_owned()
    } else {
        format!("Ask the user to {remedies}, then call again.")
    })
}

/// Hints of a tool for errors of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceHints {
    /// For a call that has to name one of several connections.
    pub choose_connection: &'static str,
    /// For an id that several connections have.
    pub choose_record: &'static str,
    /// For a call that has to name one of several sources; `None` lists the sources.
    pub choose_source: Option<&'static str>,
    /// For a record or stream that does not exist.
    pub not_found: &'static str,
}

impl SourceHints {
    /// Hints of a tool that takes `connection_id` and `source`.
    pub(crate) const STANDARD: Self = Self {
        choose_connection: "Call again with `connection_id` set to one of available_connections.",
        choose_record: "Fetch the `id` of one of available_connections.",
        choose_source: None,
        not_found: "Search for the record and fetch the id of the result.",
    };

    /// Hints of a tool of the `docs` profile, which takes `project_id`.
    pub(crate) const DOCS: Self = Self {
        choose_connection: "Call again with `project_id` set to one of available_connections.",
        ..Self::STANDARD
    };

    /// Hints of a tool of the `openai` profile, which takes neither.
    pub(crate) const OPENAI: Self = Self {
        choose_connection: "The source wants one connection to be named, which this client cannot do; tell the user.",
        choose_source: Some(
            "Two sources are configured that have the same connection; tell the user to remove one of them.",
        ),
        ..Self::STANDARD
    };
}

/// The part of a call that the hint of a source's error depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorContext {
    /// Hints of the tool.
    pub hints: SourceHints,
    /// Address that the id of the call names.
    pub record: Option<RecordAddress>,
}

impl Default for ErrorContext {
    fn default() -> Self {
        Self { hints: SourceHints::STANDARD, record: None }
    }
}

impl ErrorContext {
    /// Returns the next call after an error of the source.
    pub(crate) fn hint(&self, error: &SourceError) -> String {
        match error {
        SourceError::Refused(refusal) => match refusal.correction() {
            Some((_, hint)) => clip(&hint, 600),
            None => self.refusal_hint(refusal),
        },
        SourceError::AmbiguousConnection { .. } => self.choice_hint().to_owned(),
        SourceError::ConnectionNotFound { .. } => self.connection_hint().to_owned(),
        SourceError::NotFound { .. } => self.hints.not_found.to_owned(),
        SourceError::UnknownField { known, .. } => {
            let known: Vec<&str> = known.iter().map(String::as_str).take(20).collect();
            format!("Its fields are: {}.", clip(&known.join(", "), 500))
        }
        SourceError::InvalidQuery { hint, .. } => clip(hint, 600),
        SourceError::InvalidCursor => "Search again without `cursor`.".to_owned(),
        SourceError::AmbiguousSource { choices, .. } if !choices.is_empty() => self.choice_hint().to_owned(),
        SourceError::AmbiguousSource { sources, .. } => self.source_hint(sources),
        SourceError::CircuitOpen { pause } => {
            format!(
                "Call again after {} seconds; `fetchwell doctor` tells what is wrong.",
                pause.as_secs().max(1)
            )
        }
        SourceError::FromSource { error, .. } => self.hint(error),
        SourceError::StateUnavailable { .. } => AGAIN.to_owned(),
        SourceError::AllFailed { failed, .. } => sign_in_hint(failed).unwrap_or_else(|| AGAIN.to_owned()),
        SourceError::Busy => {
            "Call again in a moment, one call at a time, for one `connection_id`, and for fewer records or fields."
                .to_owned()
        }
        SourceError::Timeout { .. } => {
            "Call again; if it stays, run `fetchwell doctor`.".to_owned()
        }
        SourceError::NoPermit | SourceError::Unreachable { .. } => AGAIN.to_owned(),
        SourceError::Store(StoreError::Building(_)) => "Call again in a moment.".to_owned(),
        SourceError::Store(StoreError::IndexMissing { .. } | StoreError::IndexDamaged { .. }) => {
            "Wait for that process to end, then call again.".to_owned()
        }
        SourceError::Store(_) => "Do what the message says, then call again.".to_owned(),
        SourceError::RateLimited { retry_after: Some(pause) } => {
            format!("Call again after {} seconds.", pause.as_secs().max(1))
        }
        SourceError::RateLimited { retry_after: None } => "Call again in a minute.".to_owned(),
        SourceError::Protocol(ProtocolFault::UnknownTools { .. } | ProtocolFault::Cycle { .. }) => {
            "Ask the user to do what the message says, then call again.".to_owned()
        }
        SourceError::Protocol(ProtocolFault::InvalidMessage { .. }) => {
            "The server may not be an MCP server, or is broken; `fetchwell doctor` checks it.".to_owned()
        }
        SourceError::Protocol(_) => {
            "The configured URL may not be a record server; `fetchwell doctor` checks it.".to_owned()
        }
        SourceError::Reauthorize { remedy, .. } => {
            format!("Ask the user to {}, then call again.", clip(remedy, 300))
        }
    }
    }

    /// Returns the remedy for an error of a record server.
    fn refusal_hint(&self, refusal: &Refusal) -> String {
        let hint = match (refusal.code.as_str(), &refusal.param) {
            (AMBIGUOUS_CONNECTION, _) => self.choice_hint(),
            _ if !refusal.choices.is_empty() => self.connection_hint(),
            _ if refusal.status >= 500 => AGAIN,
            ("not_found" | "stream_not_declared", _) => self.hints.not_found,
            ("connection_not_found" | "context.instance_mismatch", _) => {
                return format!("{} `fetchwell connections` lists all there are.", self.connection_hint());
            }
            ("grant_stream_not_allowed" | "context.stream_not_allowed" | "field_not_granted", _) => {
                "The grant does not cover that; use streams and fields of search results, or connect with a wider grant."
            }
            (_, Some(param)) => return format!("The server refused `{param}`; leave it out or correct it."),
            (_, None) => "Correct the call as the message says, or search again.",
        };
        hint.to_owned()
    }

    /// Returns how to choose one of several connections.
    fn choice_hint(&self) -> &'static str {
        if self.record.is_some() { self.hints.choose_record } else { self.hints.choose_connection }
    }

    /// Returns how to choose one of several sources.
    fn source_hint(&self, sources: &[SourceName]) -> String {
        if let Some(hint) = self.hints.choose_source {
            return hint.to_owned();
        }
        let names: Vec<&str> = sources.iter().map(SourceName::as_str).take(MAX_CHOICES).collect();
        clip(&format!("Call again with `source` set to one of: {}.", names.join(", ")), 600)
    }

    /// Returns the remedy for a connection that does not exist, or not for this client.
    fn connection_hint(&self) -> &'static str {
        match &self.record {
            Some(RecordAddress { connection: Some(_), .. }) => {
                "The id names its connection before the first `/`; search for the record and fetch the id of the result."
            }
            _ => "Set `connection_id` to an existing one, or leave it out.",
        }
    }
}
