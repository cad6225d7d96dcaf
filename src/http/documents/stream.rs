//! `GET /api/v1/search/stream`: a search as server-sent events, one for each stage.
//!
//! The stages of a search are measured as it runs, and sent when it ends; the first two events come at once. A client that
//! disconnects cancels the search. A comment is sent every 15 seconds while nothing else is.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::unfold;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::error::DocumentError;
use super::request::ValidSearch;
use super::response::chunk_results;
use crate::docs::{FoundProject, remember};
use crate::source::documents::whole_millis;
use crate::tools::Toolbox;

/// Time after which a comment is sent if there is no event.
const SILENCE: Duration = Duration::from_secs(15);

/// Number of events that are sent ahead of the client.
const EVENTS_AHEAD: usize = 8;

/// Reads the parameters of a query string as those of the body of a search.
pub(super) fn parameters(query: Option<&str>) -> Value {
    let pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let parameters = pairs.map(|(name, value)| {
        let value = match (&*name, &*value) {
            ("use_reranker" | "include_metadata", "true") => Value::Bool(true),
            ("use_reranker" | "include_metadata", "false") => Value::Bool(false),
            ("category", "") => Value::Null,
            (_, text) => Value::from(text),
        };
        (name.into_owned(), value)
    });
    Value::Object(parameters.collect::<Map<String, Value>>())
}

/// Returns the response of a search. The search runs while its body is read.
pub(super) fn response(
    toolbox: Arc<Toolbox>,
    found: FoundProject,
    search: ValidSearch,
    request_id: String,
) -> Response {
    let (events, received) = channel(EVENTS_AHEAD);
    let task = tokio::spawn(async move {
        let deadline = toolbox.call_deadline();
        let ran = timeout(deadline, run(&toolbox, &found, &search, &events)).await;
        if let Err(error) = ran.unwrap_or_else(|_late| Err(DocumentError::timeout(deadline))) {
            let body = String::from_utf8_lossy(&error.body(&request_id)).into_owned();
            send(&events, "error", None, &body).await;
        }
    });
    let stream = unfold(EventStream { received, _task: AbortOnDropHandle::new(task) }, next_event);
    let mut response = Response::new(Body::from_stream(stream));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The events of a search that were not sent yet. Dropping it ends the search.
struct EventStream {
    received: Receiver<Bytes>,
    _task: AbortOnDropHandle<()>,
}

async fn next_event(mut stream: EventStream) -> Option<(Result<Bytes, Infallible>, EventStream)> {
    let event = match timeout(SILENCE, stream.received.recv()).await {
        Ok(event) => event?,
        Err(_silence) => Bytes::from_static(b": waiting\n\n"),
    };
    Some((Ok(event), stream))
}

async fn run(
    toolbox: &Toolbox,
    found: &FoundProject,
    search: &ValidSearch,
    events: &Sender<Bytes>,
) -> Result<(), DocumentError> {
    let started = Instant::now();
    let ValidSearch { request, project_id, include_metadata } = search;
    let named = json!({"query": request.query, "project_id": project_id});
    send_json(events, "search_started", None, &named).await;
    let known = toolbox.searches().get(found, request);
    send_json(events, "cache_check", None, &json!({"hit": known.is_hit, "key": known.key})).await;
    let cached = toolbox.searches().search(found, request).await?;
    if !known.is_hit {
        let stages = &cached.answer.stages;
        if let Some(embedding) = &stages.embedding {
            send_json(events, "embedding", None, embedding).await;
        }
        let results = json!({"count": cached.answer.total_found, "latency_ms": stages.search_ms});
        send_json(events, "search_results", None, &results).await;
        if let Some(rerank) = &stages.rerank {
            send_json(events, "rerank", None, rerank).await;
        }
    }
    let total_latency_ms = whole_millis(started.elapsed());
    let id = remember(found, request, &cached, total_latency_ms).await;
    let results = chunk_results(&cached, *include_metadata);
    let complete = json!({"results": results, "total_latency_ms": total_latency_ms});
    send_json(events, "complete", id.map(|id| id.to_string()), &complete).await;
    Ok(())
}

async fn send_json(events: &Sender<Bytes>, name: &str, id: Option<String>, data: &impl Serialize) {
    let data = serde_json::to_string(data).unwrap_or_default();
    send(events, name, id, &data).await;
}

/// Sends an event. Compact JSON has no line ends.
async fn send(events: &Sender<Bytes>, name: &str, id: Option<String>, data: &str) {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    // A client that has disconnected receives nothing.
    let _ = events.send(Bytes::from(format!("event: {name}\n{id}data: {data}\n\n"))).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_a_query_string_are_those_of_a_body() {
        let read = parameters(Some("query=a+b%3F&project_id=p&top_k=7&category=&use_reranker=false"));
        let expect = json!({"query": "a b?", "project_id": "p", "top_k": "7", "category": null, "use_reranker": false});
        assert_eq!(read, expect);
        let valid = ValidSearch::parse(read).unwrap();
        assert_eq!((valid.request.top_k, valid.request.use_reranker), (7, false));
        assert_eq!(parameters(None), json!({}));
    }
}
