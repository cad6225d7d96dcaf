//! Envelope of every response: links, count, warnings and the version of the contract.

use axum::http::HeaderName;
use fetchwell_core::record::Unavailable;
use fetchwell_source::{Accuracy, BoundSource, Count};
use fetchwell_tools::Toolbox;
use percent_encoding::{percent_decode_str, utf8_percent_encode};
use schemars::JsonSchema;
use serde::Serialize;

pub(super) use crate::answer::Answer;

use super::cursor::Seal;
use super::parameters::Parameters;
use super::warning::Warning;
use crate::encoding::SEGMENT;

/// Version of the contract.
pub(crate) const VERSION: &str = "2026-04-06";

pub(super) const PDPP_VERSION: HeaderName = HeaderName::from_static("pdpp-version");

/// One request in the form that handlers use.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) toolbox: &'a Toolbox,
    pub(super) source: &'a BoundSource,
    pub(super) seal: &'a Seal,
    /// Path as sent, percent-encoded.
    pub(super) path: &'a str,
    /// Query string as sent.
    pub(super) query: Option<&'a str>,
    pub(super) parameters: Parameters,
}

/// Links of one object.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Links {
    /// URL of the request.
    #[serde(rename = "self")]
    itself: String,
}

/// Links of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ListLinks {
    /// URL of the request.
    #[serde(rename = "self")]
    itself: String,
    /// The next page; null at the end.
    next: Option<String>,
}

/// Metadata of a response.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Meta {
    count: CountMeta,
    warnings: Vec<Warning>,
}

/// Total number of records.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum CountMeta {
    /// The records were not counted.
    None,
    Exact {
        value: u64,
    },
    Estimated {
        value: u64,
    },
    /// The total is at least this number.
    LowerBound {
        value: u64,
    },
}

impl Call<'_> {
    /// Returns the links of a response that is not a list.
    pub(super) fn links(&self) -> Links {
        Links { itself: self.itself() }
    }

    /// Returns the links of a list. `next` is the parameter, with its value, that requests the next page.
    pub(super) fn list_links(&self, next: Option<(&str, &str)>) -> ListLinks {
        ListLinks { itself: self.itself(), next: next.map(|(name, value)| self.with(name, value)) }
    }

    fn itself(&self) -> String {
        match self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.to_owned(),
        }
    }

    fn with(&self, name: &str, value: &str) -> String {
        let is_other = |pair: &&str| {
            let sent = pair.split('=').next().unwrap_or_default();
            !pair.is_empty() && percent_decode_str(sent).decode_utf8_lossy() != name
        };
        let mut pairs: Vec<&str> = self.query.unwrap_or_default().split('&').filter(is_other).collect();
        let next = format!("{name}={}", utf8_percent_encode(value, SEGMENT));
        pairs.push(&next);
        format!("{}?{}", self.path, pairs.join("&"))
    }

    /// Adds a warning for each source that is missing from the response.
    pub(super) fn warn_unavailable(&mut self, unavailable: &[Unavailable]) {
        let warning = |missing: &Unavailable| {
            let message = format!("source `{}` did not answer ({})", missing.source, missing.code);
            Warning::new("source_unavailable", message)
        };
        self.parameters.warnings.extend(unavailable.iter().map(warning));
    }

    /// Returns the warnings of the request and the notes of the answer.
    pub(super) fn warnings(&mut self, notes: Vec<String>) -> Vec<Warning> {
        let mut warnings = std::mem::take(&mut self.parameters.warnings);
        warnings.extend(notes.into_iter().map(|note| Warning::new("source_note", note)));
        warnings
    }

    /// Returns the metadata of a response without a count.
    pub(super) fn meta(&mut self) -> Meta {
        self.counted(None, Vec::new())
    }

    /// Returns the metadata of a response.
    pub(super) fn counted(&mut self, count: Option<Count>, notes: Vec<String>) -> Meta {
        let count = match count {
            None => CountMeta::None,
            Some(Count { value, accuracy: Accuracy::Exact }) => CountMeta::Exact { value },
            Some(Count { value, accuracy: Accuracy::Estimated }) => CountMeta::Estimated { value },
            Some(Count { value, accuracy: Accuracy::LowerBound }) => CountMeta::LowerBound { value },
        };
        Meta { count, warnings: self.warnings(notes) }
    }
}
