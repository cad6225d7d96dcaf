//! Validation of JSON-RPC messages before `rmcp` parses them. Both transports report the same errors.
//!
//! `rmcp` parses a text as the first kind of message that fits: a request with the id null becomes a notification,
//! which is never answered. A client that made this mistake would wait forever; with this validation it gets an
//! error.

use rmcp::model::{ErrorData, RequestId};
use serde::de::{Deserializer, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The error for a text that is not a JSON-RPC message, with the id of the request if it is known.
#[derive(Debug)]
pub struct NoMessage {
    pub(crate) error: Box<ErrorData>,
    pub(crate) id: Option<RequestId>,
    /// True if the text was meant as a notification, which is never answered, not even with an error.
    pub(crate) needs_no_answer: bool,
}

/// The fields that distinguish the kinds of messages.
#[derive(Deserialize)]
struct Outline {
    #[serde(default, deserialize_with = "present")]
    jsonrpc: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    method: Option<Value>,
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

/// Deserializes a field that is present, even if it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl NoMessage {
    /// Creates the error for text that is not JSON.
    fn not_json() -> Self {
        let error = Box::new(ErrorData::parse_error("the message is not JSON", None));
        Self { error, id: None, needs_no_answer: false }
    }

    /// Creates the error for JSON that is not a message.
    pub(crate) fn invalid(problem: &'static str, id: Option<RequestId>) -> Self {
        Self { error: Box::new(ErrorData::invalid_request(problem, None)), id, needs_no_answer: false }
    }

    /// Creates the error for a message that was rejected later, or that an internal error stopped.
    pub fn answered(is_defect: bool, problem: String, id: Option<RequestId>) -> Self {
        let error = if is_defect {
            ErrorData::internal_error(problem, None)
        } else {
            ErrorData::invalid_request(problem, None)
        };
        Self { error: Box::new(error), id, needs_no_answer: false }
    }

    /// Serializes it as a JSON-RPC error.
    pub fn to_json(&self) -> String {
        /// A response with the id null if the id is unknown; `rmcp` would omit it.
        #[derive(Serialize)]
        struct Answer<'a> {
            jsonrpc: &'static str,
            id: Option<&'a RequestId>,
            error: &'a ErrorData,
        }
        let answer = Answer { jsonrpc: "2.0", id: self.id.as_ref(), error: &self.error };
        serde_json::to_string(&answer).unwrap_or_default()
    }
}

/// Checks that a text is a JSON-RPC message. Returns the id if it is a request.
///
/// # Errors
///
/// The text is not a valid message, whatever its method.
pub fn outline(text: &[u8]) -> Result<Option<RequestId>, NoMessage> {
    // JSON is UTF-8, also in fields that are not parsed here.
    let Ok(text) = std::str::from_utf8(text) else { return Err(NoMessage::not_json()) };
    let outline = match serde_json::from_str::<Outline>(text) {
        Ok(outline) => outline,
        // Serde accepts an array for a struct, as its fields in order.
        Err(_) if serde_json::from_str::<IgnoredAny>(text).is_err() => return Err(NoMessage::not_json()),
        Err(_) => return Err(NoMessage::invalid(NOT_ONE, None)),
    };
    if !text.trim_ascii_start().starts_with('{') {
        return Err(NoMessage::invalid(NOT_ONE, None));
    }
    let id = outline.id.as_ref().and_then(|id| RequestId::deserialize(id).ok());
    let is_notification = outline.method.is_some() && outline.id.is_none();
    let invalid = |problem| {
        Err(NoMessage { needs_no_answer: is_notification, ..NoMessage::invalid(problem, id.clone()) })
    };
    if outline.jsonrpc.as_ref().and_then(Value::as_str) != Some("2.0") {
        return invalid("the message needs \"jsonrpc\": \"2.0\"");
    }
    match (&outline.method, outline.id.is_some()) {
        (Some(Value::String(_)), true) if id.is_some() => Ok(id),
        (Some(Value::String(_)), true) => invalid("the id of a request is a string or an integer"),
        (Some(Value::String(_)), false) => Ok(None),
        (Some(_), _) => invalid("the method of a message is a string"),
        (None, _) if outline.result.is_some() || outline.error.is_some() => Ok(None),
        (None, _) => invalid("the message has no method"),
    }
}

const NOT_ONE: &str = "the message is not one JSON-RPC message";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Result<Option<i64>, (i32, Option<i64>)>) {
        let number = |id: Option<RequestId>| id.map(|id| id.to_string().parse().unwrap());
        let outlined = outline(text.as_bytes()).map(number).map_err(|no| (no.error.code.0, number(no.id)));
        assert_eq!(outlined, expect, "{text}");
    }

    #[test]
    fn invalid_messages_have_distinct_errors() {
        const INVALID: i32 = -32600;
        check(r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#, Ok(Some(7)));
        check(r#" {"jsonrpc":"2.0","id":"7","method":"ping","x":1}"#, Ok(Some(7)));
        check(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, Ok(None));
        check(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, Ok(None));
        check(r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}"#, Ok(None));
        for text in ["", "{", "nonsense", r#"{"jsonrpc":"2.0"} {}"#, "{\"a\":\u{1}}", "\u{7f}"] {
            check(text, Err((-32700, None)));
        }
        for text in [
            "[]",
            "7",
            "\"x\"",
            "null",
            "true",
            "{}",
            r#"[{"jsonrpc":"2.0","id":7,"method":"ping"}]"#,
            r#"["2.0",7,"ping",{},{}]"#,
        ] {
            check(text, Err((INVALID, None)));
        }
        for id in ["null", "1.5", "{}", "[7]", "true", "99999999999999999999"] {
            check(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#), Err((INVALID, None)));
        }
        check(r#"{"id":7,"method":"ping"}"#, Err((INVALID, Some(7))));
        check(r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, Err((INVALID, Some(7))));
        check(r#"{"jsonrpc":2.0,"id":7,"method":"ping"}"#, Err((INVALID, Some(7))));
        check(r#"{"jsonrpc":"2.0","id":7,"method":3}"#, Err((INVALID, Some(7))));
        check(r#"{"jsonrpc":"2.0","id":7}"#, Err((INVALID, Some(7))));
        check(r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}"#, Err((INVALID, None)));
    }
}
