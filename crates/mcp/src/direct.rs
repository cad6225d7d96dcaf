//! Tool calls over HTTP without a session of `rmcp`.
//!
//! `rmcp` serves each request as a session of its own: it tries every kind of message on the text, starts three tasks and passes the
//! answer through two channels, which takes longer than a short call. A `tools/call` that needs none of that is parsed and called
//! here, in the task of its connection. All other messages, and calls with protocol metadata, are left to `rmcp`.
//!
//! **Invariant:** an answer has the bytes of that of `rmcp`.

use std::convert::Infallible;

use bytes::Bytes;
use fetchwell_core::record::RecordData;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use rmcp::model::{ErrorData, JsonRpcError, JsonRpcResponse, JsonRpcVersion2_0, ProtocolVersion, RequestId};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::handler::{Server, hops};

/// Header with the protocol revision of a client.
const PROTOCOL_VERSION: &str = "mcp-protocol-version";

/// Prefix of the keys of `_meta` that change how a request is served.
const PROTOCOL_KEYS: &str = "io.modelcontextprotocol/";

/// A response with one JSON object.
type JsonResponse = Response<BoxBody<Bytes, Infallible>>;

/// A tool call with everything that it needs.
#[derive(Debug)]
pub(crate) struct DirectCall {
    id: RequestId,
    name: String,
    arguments: RecordData,
    /// Number of servers of this kind that the call has passed.
    hops: u32,
}

/// A `tools/call` without fields that only `rmcp` knows.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    #[serde(rename = "jsonrpc")]
    _version: JsonRpcVersion2_0,
    id: RequestId,
    method: Method,
    params: Params,
}

#[derive(Deserialize)]
enum Method {
    #[serde(rename = "tools/call")]
    CallTool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    name: String,
    #[serde(default)]
    arguments: Option<RecordData>,
    #[serde(default, rename = "_meta")]
    metadata: RecordData,
}

impl DirectCall {
    /// Parses a message. Returns `None` if `rmcp` has to serve it.
    pub(crate) fn parse(headers: &HeaderMap, message: &[u8]) -> Option<Self> {
        if !is_served_without_metadata(headers) {
            return None;
        }
        let Message { id, method: Method::CallTool, params, .. } = serde_json::from_slice(message).ok()?;
        let is_plain = params.metadata.keys().all(|key| !key.starts_with(PROTOCOL_KEYS));
        let (hops, arguments) = (hops(&params.metadata), params.arguments.unwrap_or_default());
        is_plain.then_some(Self { id, name: params.name, arguments, hops })
    }

    /// Calls the tool and returns the response. Cancelling `stop` drops the call.
    pub(crate) async fn answer(
        self,
        server: &Server,
        request: &Parts,
        stop: &CancellationToken,
    ) -> JsonResponse {
        let Self { id, name, arguments, hops } = self;
        let call = server.call_tool_for(&name, arguments, hops, Some(request));
        let result = tokio::select! {
            () = stop.cancelled() => {
                let error = ErrorData::internal_error("the server stops; call again", None);
                return response(StatusCode::INTERNAL_SERVER_ERROR, &error_message(id, error));
            }
            result = call => result,
        };
        match result {
            Ok(mut result) => {
                // Of later revisions only.
                result.result_type = None;
                response(StatusCode::OK, &JsonRpcResponse { jsonrpc: JsonRpcVersion2_0, id, result })
            }
            Err(error) => response(StatusCode::OK, &error_message(id, error)),
        }
    }
}

fn error_message(id: RequestId, error: ErrorData) -> JsonRpcError {
    JsonRpcError { jsonrpc: JsonRpcVersion2_0, id: Some(id), error }
}

fn response(status: StatusCode, message: &impl Serialize) -> JsonResponse {
    let json = serde_json::to_vec(message).unwrap_or_default();
    let mut response = Response::new(Full::new(Bytes::from(json)).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Returns true if the client's revision is supported and needs no metadata in headers.
fn is_served_without_metadata(headers: &HeaderMap) -> bool {
    let mut versions = headers.get_all(PROTOCOL_VERSION).iter();
    let Some(version) = versions.next() else { return true };
    let known = ProtocolVersion::KNOWN_VERSIONS
        .iter()
        .take_while(|known| **known < ProtocolVersion::STANDARD_HEADERS);
    versions.next().is_none() && known.into_iter().any(|known| version == known.as_str())
}
