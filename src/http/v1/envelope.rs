//! What stands around every answer: links, the count, warnings, the request's id and the contract's version.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use schemars::JsonSchema;
use serde::Serialize;

use super::cursor::Seal;
use super::error::ApiError;
use super::parameters::Parameters;
use crate::record::Unavailable;
use crate::source::{Accuracy, Count, Source};

/// The contract's version.
pub(super) const VERSION: &str = "2026-04-06";

pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
pub(super) const PDPP_VERSION: HeaderName = HeaderName::from_static("pdpp-version");
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What stays as it is in a path segment or a value of a query string.
pub(super) const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// One request, as routes see it.
#[derive(Debug)]
pub(super) struct Call<'a> {
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

/// The body of an answer: compact JSON.
#[derive(Debug)]
pub(super) struct Answer(pub(super) Vec<u8>);

impl Answer {
    pub(super) fn of(body: &impl Serialize) -> Result<Self, ApiError> {
        serde_json::to_vec(body).map(Self).map_err(|_unwritable| ApiError::internal())
    }
}

/// The id of a request: the client's own when it is one that can be logged and echoed, else a new one.
pub(in crate::http) fn request_id(headers: &HeaderMap) -> String {
    let sent = headers.get(X_REQUEST_ID).or_else(|| headers.get(REQUEST_ID));
    match sent.and_then(|id| id.to_str().ok()).filter(|id| is_sane(id)) {
        Some(id) => id.to_owned(),
        None => {
            let mut random = [0; 8];
            // Without random bytes the id is all zeros, which is no reason to refuse the request.
            let _ = getrandom::fill(&mut random);
            format!("req_{:016x}", u64::from_be_bytes(random))
        }
    }
}

fn is_sane(id: &str) -> bool {
    let usual = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    (1..=128).contains(&id.len()) && id.bytes().all(usual)
}

/// An HTTP response with the contract's headers.
pub(super) fn response(status: StatusCode, request_id: &str, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
    headers.insert(PDPP_VERSION, HeaderValue::from_static(VERSION));
    if let Ok(id) = HeaderValue::from_str(request_id) {
        headers.insert(REQUEST_ID, id);
    }
    response
}
