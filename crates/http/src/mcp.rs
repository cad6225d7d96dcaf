//! Adapts the MCP service to HTTP requirements that it does not cover: invalid messages get a JSON-RPC error, any
//! `Accept` header is served, and other methods get 405.

use std::time::Duration;

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use fetchwell_core::saturate::saturated;
use fetchwell_mcp::{Form, MAX_REQUEST_BYTES, McpService, NoMessage, outline};
use http_body_util::BodyExt;
use serde_json::{Map, json};

use super::middleware::refusal::Refusal;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Maximum bytes that are read of an error message of the MCP service.
const MAX_SERVICE_ERROR_BYTES: usize = 4_096;

/// Maximum bytes of an oversized message that are read and dropped, so that most clients finish sending and read the
/// error.
const MAX_DROPPED_BYTES: usize = 16 * MAX_REQUEST_BYTES;

/// State of one MCP endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Mcp {
    pub(crate) service: McpService,
    /// Time limit for receiving a message.
    pub(crate) body: Duration,
}

/// Answers one message. Refused messages get a JSON-RPC error.
pub(crate) async fn answer_message(State(mcp): State<Mcp>, request: Request) -> Response {
    if *request.method() != Method::POST {
        let allow = [(header::ALLOW, HeaderValue::from_static("POST"))];
        return (
            StatusCode::METHOD_NOT_ALLOWED,
            allow,
            "This is an MCP endpoint: POST JSON-RPC messages to it.\n",
        )
            .into_response();
    }
    let Some(form) = form_of(request.headers()) else {
        let problem = "answers are application/json, or text/event-stream where nothing else is accepted";
        return json_rpc_error(StatusCode::NOT_ACCEPTABLE, -32600, problem);
    };
    if !is_json(request.headers()) {
        let problem = "the Content-Type of a message is application/json";
        return json_rpc_error(StatusCode::UNSUPPORTED_MEDIA_TYPE, -32600, problem);
    }
    if is_refused_before_sending(request.headers(), request.body()) {
        return too_long();
    }
    let (parts, body) = request.into_parts();
    let message = match tokio::time::timeout(mcp.body, read_message(body)).await {
        Ok(Ok(message)) => message,
        Ok(Err(refused)) => return refused,
        Err(_late) => {
            let problem = format!("the message did not come within {} seconds", mcp.body.as_secs_f64());
            return with_connection_close(json_rpc_error(StatusCode::REQUEST_TIMEOUT, -32600, &problem));
        }
    };
    let id = match outline(&message) {
        Ok(id) => id,
        Err(no_message) => return refused_message(&no_message),
    };
    let answer = mcp.service.answer(parts, message, form).await.map(Body::new);
    let is_error = answer.status().is_client_error() || answer.status().is_server_error();
    if !is_error || answer.headers().get(header::CONTENT_TYPE) == Some(&JSON) {
        return answer;
    }
    // The service refused the message with a plain-text error.
    let (parts, body) = answer.into_parts();
    let service_error = to_bytes(body, MAX_SERVICE_ERROR_BYTES).await.unwrap_or_default();
    let (status, problem) = match parts.status {
        // The service reports this status for every message that it cannot parse, such as JSON nested too deeply.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => (StatusCode::BAD_REQUEST, "the message cannot be read".into()),
        status => (status, String::from_utf8_lossy(&service_error)),
    };
    let refused = NoMessage::answered(status.is_server_error(), problem.into_owned(), id);
    (status, [(header::CONTENT_TYPE, JSON)], refused.to_json()).into_response()
}

/// Responds 404 to any other path.
pub(crate) async fn unknown_path() -> Response {
    (StatusCode::NOT_FOUND, "There is nothing here. The MCP endpoints are /mcp, /mcp/openai and /mcp/docs.\n")
        .into_response()
}

/// Reads a body, or returns the error response. An oversized body is read and dropped up to a limit, because a client
/// that is still sending when the connection closes does not read the response.
async fn read_message(mut body: Body) -> Result<Vec<u8>, Response> {
    let mut message = Vec::new();
    let mut length = 0;
    while length <= MAX_DROPPED_BYTES {
        match body.frame().await {
            None => break,
            Some(Err(_broken)) => {
                let problem = "the message broke off";
                return Err(with_connection_close(json_rpc_error(StatusCode::BAD_REQUEST, -32600, problem)));
            }
            Some(Ok(frame)) => {
                let Ok(bytes) = frame.into_data() else { continue };
                length += bytes.len();
                if length <= MAX_REQUEST_BYTES {
                    message.extend_from_slice(&bytes);
                }
            }
        }
    }
    if length > MAX_REQUEST_BYTES { Err(too_long()) } else { Ok(message) }
}

fn too_long() -> Response {
    let problem = format!("the message is longer than {MAX_REQUEST_BYTES} bytes");
    with_connection_close(json_rpc_error(StatusCode::PAYLOAD_TOO_LARGE, -32600, &problem))
}

/// Returns true if a client waits for `100 Continue` before sending an oversized body.
fn is_refused_before_sending(headers: &HeaderMap, body: &Body) -> bool {
    let max_bytes = saturated::<u64>(MAX_REQUEST_BYTES);
    headers.contains_key(header::EXPECT) && body.size_hint().lower() > max_bytes
}

/// Adds `Connection: close` to a response, so that the rest of the request is not read.
fn with_connection_close(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

fn refused_message(no_message: &NoMessage) -> Response {
    (StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, JSON)], no_message.to_json()).into_response()
}

/// Returns the response format that a client accepts. Without an `Accept` header it is JSON.
fn form_of(headers: &HeaderMap) -> Option<Form> {
    let mut accepted =
        headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).peekable();
    if accepted.peek().is_none() {
        return Some(Form::Json);
    }
    let ranges: Vec<&str> = accepted
        .flat_map(|value| value.split(','))
        .filter(|range| !is_excluded(range))
        .map(essence)
        .collect();
    let takes =
        |forms: &[&str]| ranges.iter().any(|range| forms.iter().any(|form| range.eq_ignore_ascii_case(form)));
    if takes(&["*/*", "application/*", "application/json"]) {
        Some(Form::Json)
    } else if takes(&["text/*", "text/event-stream"]) {
        Some(Form::Events)
    } else {
        None
    }
}

/// Returns a media type without its parameters.
fn essence(range: &str) -> &str {
    range.split(';').next().unwrap_or_default().trim()
}

/// Returns true if a media range has the weight `q=0`, which excludes it.
fn is_excluded(range: &str) -> bool {
    range.split(';').skip(1).filter_map(|parameter| parameter.split_once('=')).any(|(name, value)| {
        name.trim().eq_ignore_ascii_case("q") && value.trim().parse::<f32>().is_ok_and(|weight| weight == 0.0)
    })
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.is_some_and(|content_type| essence(content_type).eq_ignore_ascii_case("application/json"))
}

/// Builds the JSON-RPC error response to a request that middleware refused.
pub(crate) fn refused(refusal: &Refusal) -> Response {
    let mut data = Map::new();
    data.insert("code".to_owned(), refusal.code.into());
    if let Some(url) = &refusal.resource_metadata {
        data.insert("resource_metadata".to_owned(), url.as_str().into());
    }
    let error = json!({ "code": refusal.json_rpc, "message": refusal.problem, "data": data });
    let body = json!({ "jsonrpc": "2.0", "id": null, "error": error });
    (refusal.status, [(header::CONTENT_TYPE, JSON)], body.to_string()).into_response()
}

/// Builds a JSON-RPC error response without a request id.
pub(crate) fn json_rpc_error(status: StatusCode, code: i32, message: &str) -> Response {
    let body = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code, "message": message } });
    (status, [(header::CONTENT_TYPE, JSON)], body.to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_is_json_unless_the_client_excludes_it() {
        for (accept, expect) in [
            (None, Some(Form::Json)),
            (Some("*/*"), Some(Form::Json)),
            (Some("application/json"), Some(Form::Json)),
            (Some("text/event-stream, application/json;q=0.1"), Some(Form::Json)),
            (Some("text/event-stream"), Some(Form::Events)),
            (Some("Text/Event-Stream;q=0.5"), Some(Form::Events)),
            (Some("text/*"), Some(Form::Events)),
            (Some("application/json;q=0, text/event-stream"), Some(Form::Events)),
            (Some("text/event-stream;q=0.0"), None),
            (Some("text/html"), None),
            (Some(""), None),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            }
            assert_eq!(form_of(&headers), expect, "{accept:?}");
        }
    }
}
