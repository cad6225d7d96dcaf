//! `GET /v1/streams/{stream}/records/{id}/field-window`: a window of one text field. Offsets count Unicode code
//! points.

use fetchwell_core::fit::Strategy;
use fetchwell_core::handle::{RecordAddress, RecordId, StreamName};
use fetchwell_core::record::Window;
use fetchwell_source::{WindowQuery, WindowStart};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::RequestError;
use crate::v1::envelope::{Answer, Call, Links, Meta};
use crate::v1::operation::Operation;
use crate::v1::parameters::Parameters;
use crate::v1::table::{CONNECTION, CONNECTION_ALIAS, Parameter, ParameterType};

/// Default length of a window in code points.
const DEFAULT_CHARS: usize = 4_096;

/// Maximum length of a window in code points.
const MAX_CHARS: usize = 16_384;

/// Maximum number of code points on either side of a match.
const MAX_AROUND: usize = 8_192;

/// Default number of code points on either side of a match: a paragraph or two.
const DEFAULT_AROUND: usize = 1_024;

pub(crate) const OPERATION: Operation = Operation {
    path: "/v1/streams/{stream}/records/{id}/field-window",
    id: "readFieldWindow",
    summary: "A window of one text field of a record; offsets count code points",
    parameters: &[
        Parameter { name: "field", takes: ParameterType::NeededText, about: "A top-level text field." },
        Parameter {
            name: "offset_chars",
            takes: ParameterType::Whole { min: 0, max: None, default: None },
            about: "The start of the window; an offset past the end gives an empty window. Not with `q`.",
        },
        Parameter {
            name: "limit_chars",
            takes: ParameterType::Whole { min: 1, max: None, default: Some(DEFAULT_CHARS) },
            about: "Maximum length. A value over 16,384 becomes 16,384, with a `limit_clamped` warning.",
        },
        Parameter {
            name: "q",
            takes: ParameterType::Text,
            about: "Centers the window on the first match of this text, ignoring case.",
        },
        Parameter {
            name: "before_chars",
            takes: ParameterType::Whole { min: 0, max: Some(MAX_AROUND), default: Some(DEFAULT_AROUND) },
            about: "Code points before the match; needs `q`.",
        },
        Parameter {
            name: "after_chars",
            takes: ParameterType::Whole { min: 0, max: Some(MAX_AROUND), default: Some(DEFAULT_AROUND) },
            about: "Code points after the match; needs `q`.",
        },
        CONNECTION,
        CONNECTION_ALIAS,
    ],
    statuses: &[400, 404, 409, 422],
    answer: |generator| generator.subschema_for::<FieldWindow>(),
};

/// A window of a text field.
#[derive(Debug, Serialize, JsonSchema)]
struct FieldWindow {
    #[schemars(extend("const" = "field_window"))]
    object: &'static str,
    stream: String,
    record_id: String,
    field: WindowField,
    window: Piece,
    url: String,
    links: Links,
    meta: Meta,
}

#[derive(Debug, Serialize, JsonSchema)]
struct WindowField {
    path: String,
    #[serde(rename = "type")]
    #[schemars(extend("const" = "string"))]
    kind: &'static str,
}

#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct Piece {
    text: String,
    start_chars: usize,
    end_chars: usize,
    total_chars: usize,
    limit_chars: usize,
    /// True if the window is the whole field.
    complete: bool,
    has_more: bool,
    match_start_chars: Option<usize>,
    match_end_chars: Option<usize>,
    next_offset_chars: Option<usize>,
    previous_offset_chars: Option<usize>,
}

pub(crate) async fn answer(
    call: &mut Call<'_>,
    stream: StreamName,
    record: RecordId,
) -> Result<Answer, RequestError> {
    let connection = call.parameters.connection()?;
    let query = parse_query(&mut call.parameters, RecordAddress { connection, stream, record })?;
    let window = call.source.window(&query).await?;
    let (stream, record) = (window.address.stream.to_string(), window.address.record.to_string());
    let piece = Piece::new(window, &query.start, query.limit_chars);
    let strategy = if piece.complete { Strategy::Whole } else { Strategy::Chunked };
    let answer = Answer::new(&FieldWindow {
        object: "field_window",
        stream,
        record_id: record,
        field: WindowField { path: query.field, kind: "string" },
        window: piece,
        url: call.path.to_owned(),
        links: call.links(),
        meta: call.meta(),
    })?;
    Ok(answer.with_strategy(strategy))
}

fn parse_query(sent: &mut Parameters, address: RecordAddress) -> Result<WindowQuery, RequestError> {
    let Some(field) = sent.text("field").filter(|field| !field.is_empty()).map(str::to_owned) else {
        let problem = "field is required and must be a non-empty string".to_owned();
        return Err(RequestError::bad("invalid_field_path", problem).about("field"));
    };
    let invalid = |param: &str, problem: String| RequestError::bad("invalid_window", problem).about(param);
    let whole = |name: &str, min, max| sent.whole(name, min, max).map_err(|problem| invalid(name, problem));
    let offset = whole("offset_chars", 0, usize::MAX)?;
    let limit = whole("limit_chars", 1, usize::MAX)?;
    let before = whole("before_chars", 0, MAX_AROUND)?;
    let after = whole("after_chars", 0, MAX_AROUND)?;
    let start = match (sent.text("q"), offset) {
        (Some(_), Some(_)) => {
            return Err(invalid("offset_chars", "q and offset_chars are mutually exclusive".to_owned()));
        }
        (Some(""), None) => return Err(invalid("q", "q is empty".to_owned())),
        (Some(text), None) => WindowStart::Around {
            text: text.to_owned(),
            before: before.unwrap_or(DEFAULT_AROUND),
            after: after.unwrap_or(DEFAULT_AROUND),
        },
        (None, offset) => {
            for (name, given) in [("before_chars", before), ("after_chars", after)] {
                if given.is_some() {
                    return Err(invalid(name, format!("{name} goes with q")));
                }
            }
            WindowStart::Offset(offset.unwrap_or(0))
        }
    };
    if limit.is_some_and(|limit| limit > MAX_CHARS) {
        sent.warn_clamped("limit_chars", MAX_CHARS);
    }
    // Around a match, `before_chars` and `after_chars` determine the length, unless `limit_chars` is given.
    let default = if matches!(start, WindowStart::Offset(_)) { DEFAULT_CHARS } else { MAX_CHARS };
    Ok(WindowQuery { address, field, start, limit_chars: limit.unwrap_or(default).min(MAX_CHARS) })
}

impl Piece {
    fn new(window: Window, start: &WindowStart, limit: usize) -> Self {
        let end = window.end_chars();
        let found = window.found_chars;
        let limit_chars = match (start, &found) {
            (WindowStart::Around { before, after, .. }, Some(found)) => {
                limit.min(before.saturating_add(found.len()).saturating_add(*after))
            }
            _ => limit,
        };
        let has_more = end < window.total_chars;
        let starts_later = window.start_chars > 0;
        Self {
            start_chars: window.start_chars,
            end_chars: end,
            total_chars: window.total_chars,
            limit_chars,
            complete: !starts_later && !has_more,
            has_more,
            match_start_chars: found.as_ref().map(|found| found.start),
            match_end_chars: found.as_ref().map(|found| found.end),
            next_offset_chars: has_more.then_some(end),
            previous_offset_chars: starts_later.then(|| window.start_chars.saturating_sub(limit_chars)),
            text: window.text,
        }
    }
}
