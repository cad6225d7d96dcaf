//! Servers over Streamable HTTP: the credential and the headers of each request.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use parking_lot::Mutex;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use secrecy::{ExposeSecret, SecretString};
use sse_stream::Sse;

/// Bearer token of the next requests. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct CurrentToken(Arc<Mutex<Option<SecretString>>>);

impl CurrentToken {
    pub(super) fn set(&self, token: Option<SecretString>) {
        *self.0.lock() = token;
    }

    fn get(&self) -> Option<String> {
        self.0.lock().as_ref().map(|token| token.expose_secret().to_owned())
    }
}

/// HTTP client that adds the token of the moment.
#[derive(Debug, Clone)]
pub(super) struct TokenClient {
    pub(super) client: reqwest::Client,
    pub(super) token: CurrentToken,
}

type Headers = HashMap<HeaderName, HeaderValue>;
type Fault = StreamableHttpError<reqwest::Error>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// Returns the id of a request.
fn request_id(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    if let ClientJsonRpcMessage::Request(request) = message { Some(request.id.clone()) } else { None }
}

/// Returns an answer with the id of the request, if it is an error without an id. The request would otherwise wait for another
/// answer.
fn answering(answer: StreamableHttpPostResponse, asked: Option<RequestId>) -> StreamableHttpPostResponse {
    match answer {
        StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(mut error), session) => {
            error.id = error.id.or(asked);
            StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), session)
        }
        other => other,
    }
}

impl StreamableHttpClient for TokenClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Fault> {
        let asked = request_id(&message);
        let answer = self.client.post_message(uri, message, session, self.token.get(), headers).await;
        answer.map(|answer| answering(answer, asked))
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _token: Option<String>,
        headers: Headers,
        max_bytes: usize,
    ) -> Result<StreamableHttpPostResponse, Fault> {
        let (asked, token) = (request_id(&message), self.token.get());
        let answer = self
            .client
            .post_message_with_max_sse_event_size(uri, message, session, token, headers, max_bytes);
        answer.await.map(|answer| answering(answer, asked))
    }

    fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _token: Option<String>,
        headers: Headers,
    ) -> impl Future<Output = Result<(), Fault>> + Send + '_ {
        self.client.delete_session(uri, session, self.token.get(), headers)
    }

    fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _token: Option<String>,
        headers: Headers,
    ) -> impl Future<Output = Result<Events, Fault>> + Send + '_ {
        self.client.get_stream(uri, session, last_event, self.token.get(), headers)
    }

    fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _token: Option<String>,
        headers: Headers,
        max_bytes: usize,
    ) -> impl Future<Output = Result<Events, Fault>> + Send + '_ {
        let token = self.token.get();
        self.client.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, max_bytes)
    }
}
