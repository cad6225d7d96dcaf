//! What stands around every answer: links, the count, warnings and the contract's version.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use schemars::JsonSchema;
use serde::Serialize;

use super::cursor::Seal;
use super::error::ApiError;
use super::parameters::Parameters;
use crate::fit::{Shaping, Strategy};
use crate::record::Unavailable;
use crate::source::{Accuracy, Count, Source};
use crate::tools::Toolbox;

/// The contract's version.
pub(super) const VERSION: &str = "2026-04-06";

pub(super) const PDPP_VERSION: HeaderName = HeaderName::from_static("pdpp-version");

/// What stays as it is in a path segment or a value of a query string.
pub(in crate::http) const SEGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// One request, as routes see it.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) toolbox: &'a Toolbox,
    pub(super) source: &'a dyn Source,
    pub(super) seal: &'a Seal,
    /// The path as it was sent, still encoded.
    pub(super) path: &'a str,
    /// The query string as it was sent.
    pub(super) query: Option<&'a str>,
    pub(super) parameters: Parameters,
}

/// Links of one object.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Links {
    /// The request.
    #[serde(rename = "self")]
    itself: String,
}

/// Links of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ListLinks {
    /// The request.
    #[serde(rename = "self")]
    itself: String,
    /// The next page; null at the end.
    next: Option<String>,
}

/// What there is to know of an answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Meta {
    count: CountMeta,
    warnings: Vec<Warning>,
}

/// How many there are in all.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum CountMeta {
    /// It was not counted.
    None,
    Exact {
        value: u64,
    },
    Estimated {
        value: u64,
    },
    /// There are at least so many.
    LowerBound {
        value: u64,
    },
}

/// Something that is no error and worth knowing.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Warning {
    code: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    param: Option<String>,
}

impl Warning {
    pub(super) fn of(code: &'static str, message: String) -> Self {
        Self { code, message, param: None }
    }

    pub(super) fn about(mut self, param: &str) -> Self {
        self.param = Some(param.to_owned());
        self
    }
}

impl Call<'_> {
    /// Links of an answer that is no list.
    pub(super) fn links(&self) -> Links {
        Links { itself: self.itself() }
    }

    /// Links of a list that goes on with `parameter` set to a value, or ends.
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

    /// Sources whose part of the answer is missing.
    pub(super) fn missing(&mut self, unavailable: &[Unavailable]) {
        let warning = |missing: &Unavailable| {
            let message = format!("source `{}` did not answer ({})", missing.source, missing.code);
            Warning::of("source_unavailable", message)
        };
        self.parameters.warnings.extend(unavailable.iter().map(warning));
    }

    /// The warnings of the request and the notes of the answer.
    pub(super) fn warnings(&mut self, notes: Vec<String>) -> Vec<Warning> {
        let mut warnings = std::mem::take(&mut self.parameters.warnings);
        warnings.extend(notes.into_iter().map(|note| Warning::of("source_note", note)));
        warnings
    }

    /// What there is to know of an answer that counts nothing.
    pub(super) fn meta(&mut self) -> Meta {
        self.counted(None, Vec::new())
    }

    /// What there is to know of an answer.
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

/// The body of an answer, compact JSON, and what it is for whoever counts answers.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) body: Vec<u8>,
    pub(super) shaping: Shaping,
}

impl Answer {
    /// An answer that is no list.
    pub(super) fn of(body: &impl Serialize) -> Result<Self, ApiError> {
        serde_json::to_vec(body).map(Self::of_json).map_err(|_unwritable| ApiError::internal())
    }

    /// One that is JSON already.
    pub(super) fn of_json(body: Vec<u8>) -> Self {
        let shaping = Shaping { bytes: body.len(), items: 1, ..Shaping::default() };
        Self { body, shaping }
    }

    /// Says how many rows it has.
    pub(super) fn with_items(mut self, items: usize) -> Self {
        self.shaping.items = items;
        self
    }

    /// Says that it is one of several, or not.
    pub(super) fn one_of(mut self, strategy: Strategy) -> Self {
        self.shaping.strategy = strategy;
        self
    }
}

/// An HTTP response with the contract's headers.
pub(super) fn response(status: StatusCode, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
    headers.insert(PDPP_VERSION, HeaderValue::from_static(VERSION));
    response
}
