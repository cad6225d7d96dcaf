//! Parser of error responses, in the format of the record server, of its web framework, or of OAuth.

use std::time::Duration;

use fetchwell_core::fit::first_characters;
use fetchwell_source::{ConnectionChoice, Refusal, SourceError};
use serde::Deserialize;
use serde_json::Value;

use super::schema::{WireConnection, choice};
use super::tolerant::{LenientList, lenient};

/// Maximum length of a server's own error message, in characters.
const MESSAGE_CHARS: usize = 400;

/// Maximum length of a server's own hint, in characters.
const HINT_CHARS: usize = 400;

/// Codes of a grant that has ended or covers too little, which only a new grant corrects.
const ENDED_GRANTS: [&str; 5] =
    ["grant_revoked", "grant_expired", "grant_invalid", "grant_consumed", "insufficient_scope"];

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireError {
    #[serde(deserialize_with = "lenient")]
    code: Option<String>,
    #[serde(deserialize_with = "lenient")]
    message: Option<String>,
    #[serde(deserialize_with = "lenient")]
    hint: Option<String>,
    #[serde(deserialize_with = "lenient")]
    param: Option<String>,
    available_connections: LenientList<WireConnection>,
}

/// Parses an error response in any of the formats. `unaccepted` is the error of a rejected credential.
pub(crate) fn refusal(
    status: u16,
    body: &[u8],
    retry_after: Option<Duration>,
    unaccepted: impl FnOnce() -> SourceError,
) -> SourceError {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Answer {
        error: Value,
        #[serde(deserialize_with = "lenient")]
        message: Option<String>,
        #[serde(deserialize_with = "lenient")]
        error_description: Option<String>,
    }
    let answer: Answer = serde_json::from_slice(body).unwrap_or_default();
    let error: WireError = match answer.error {
        Value::Object(_) => serde_json::from_value(answer.error).unwrap_or_default(),
        // `{"message","error":"Not Found","statusCode":404}` of an unknown route has no code;
        // `{"error":"invalid_token","error_description"}` has its code here.
        Value::String(code) if answer.message.is_none() => {
            WireError { code: Some(code), message: answer.error_description, ..WireError::default() }
        }
        _ => WireError { message: answer.message, ..WireError::default() },
    };
    let code = error.code.filter(|code| is_code(code));
    match (status, code.as_deref()) {
        (429, _) => return SourceError::RateLimited { retry_after },
        (502..=504, None) => {
            return SourceError::Unreachable { problem: format!("the server answers HTTP {status}") };
        }
        // The reference server responds 401 for a stream or connection outside the grant, too.
        (401, Some("context.instance_mismatch" | "context.stream_not_allowed")) => {}
        (401, _) => return unaccepted(),
        (403, Some(code)) if ENDED_GRANTS.contains(&code) => return unaccepted(),
        _ => {}
    }
    let message = error.message.unwrap_or_else(|| format!("the server answers HTTP {status}"));
    let choices: Vec<ConnectionChoice> = error.available_connections.0.iter().filter_map(choice).collect();
    SourceError::Refused(Box::new(Refusal {
        status,
        code: code.unwrap_or_else(|| format!("http_{status}")),
        message: first_characters(&message, MESSAGE_CHARS).to_owned(),
        hint: error
            .hint
            .filter(|hint| !hint.is_empty())
            .map(|hint| first_characters(&hint, HINT_CHARS).to_owned()),
        param: error.param.filter(|param| param.len() <= 100),
        choices,
        fault: None,
        advice: None,
    }))
}

/// Returns true for a word that programs can compare. Anything else in the place of a code is a message.
fn is_code(code: &str) -> bool {
    !code.is_empty()
        && code.len() <= 64
        && code.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

/// Returns true if the server may have failed to decode the path: it found nothing there, or reports that.
pub(crate) fn blames_path(refusal: &Refusal) -> bool {
    match refusal.status {
        // The record was found if something in it was not.
        404 => !matches!(&*refusal.code, "query_not_found" | "field_not_found" | "connection_not_found"),
        400 | 500 => refusal.message.to_ascii_lowercase().contains("malformed"),
        _ => false,
    }
}

/// Returns true if the error is about the position in a list: of another list, or expired.
pub(crate) fn is_of_a_position(refusal: &Refusal) -> bool {
    refusal.status == 410 || matches!(&*refusal.code, "invalid_cursor" | "cursor_expired")
}
