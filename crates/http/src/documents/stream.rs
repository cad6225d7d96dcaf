//! `GET /api/v1/search/stream`: a search as server-sent events, each sent when its stage has ended.
//!
//! The search runs in a task of its own, which ends when the client disconnects: requests to an embedding service or a
//! reranker are then dropped. The call is recorded when the task ends.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{HeaderValue, header};
use axum::response::sse::{Event, KeepAlive};
use axum::response::{IntoResponse, Response, Sse};
use fetchwell_core::fit::{Shaping, Strategy};
use fetchwell_source::documents::{SearchStage, StageSender, whole_millis};
use fetchwell_telemetry::{Call, ErrorDetails};
use fetchwell_tools::Toolbox;
use fetchwell_tools::documents::{AnsweredSearch, FoundProject, remember};
use futures_util::FutureExt;
use futures_util::future::join;
use futures_util::stream::unfold;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_util::task::AbortOnDropHandle;

use super::deadline::CallDeadline;
use super::error::DocumentError;
use super::request::ValidSearch;
use super::response::ChunkResults;
use crate::answer::ErrorResponse;
use crate::headers::ACCEL_BUFFERING;

/// Time after which a comment is sent if there is no event.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Number of events that are sent ahead of the client. A search has at most six.
const MAX_EVENTS: usize = 8;

/// Id of the last event if the search is not remembered. A client that has an id and reconnects is told to stop.
const END: &str = "end";

/// A valid search of a project that exists, to be answered with events.
pub(super) struct StreamedSearch {
    pub(super) toolbox: Arc<Toolbox>,
    pub(super) found: FoundProject,
    pub(super) search: ValidSearch,
    /// Deadline of the call, which began before the search.
    pub(super) deadline: CallDeadline,
}

impl StreamedSearch {
    /// Starts the search, and returns the response with its events. `call` is recorded when the search ends.
    pub(super) fn start(self, call: Call) -> Response {
        let (sender, received) = channel(MAX_EVENTS);
        let task = tokio::spawn(self.run(EventSender { sender, bytes: 0 }, call));
        let stream = unfold(EventStream { received, _task: AbortOnDropHandle::new(task) }, next_event);
        let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("waiting");
        let mut response = Sse::new(stream).keep_alive(keep_alive).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }

    async fn run(self, mut events: EventSender, call: Call) {
        let searching = self.deadline.limit(self.search(&mut events));
        let searched = AssertUnwindSafe(searching).catch_unwind().await;
        match searched.unwrap_or_else(|_panic| Err(DocumentError::internal())) {
            Ok(items) => {
                let shaping = Shaping { items, strategy: Strategy::List, ..Shaping::default() };
                call.answered(&Shaping { bytes: events.bytes, ..shaping });
            }
            Err(error) => {
                events.send("error", Some(END.to_owned()), &error.body(call.request_id().as_str())).await;
                let (code, reason) = error.outcome();
                call.refused(&code, ErrorDetails { bytes: events.bytes, reason });
            }
        }
    }

    /// Runs the search and sends its events. Returns the number of results.
    async fn search(&self, events: &mut EventSender) -> Result<usize, DocumentError> {
        let started = Instant::now();
        let Self { toolbox, found, search, .. } = self;
        let ValidSearch { request, project_id, include_metadata } = search;
        let named = json!({"query": request.query, "project_id": project_id});
        events.send_json("search_started", &named).await;
        let (stages, mut ended) = StageSender::channel();
        // The channel of the stages ends with the search.
        let searching = async move { toolbox.searches().search_in_stages(found, request, &stages).await };
        let forwarding = async {
            while let Some(stage) = ended.recv().await {
                events.send_stage(&stage).await;
            }
        };
        let (cached, ()) = join(Box::pin(searching), forwarding).await;
        let cached = cached?;
        let results = ChunkResults::read(found, &cached.answer, *include_metadata).await?;
        let latency_ms = whole_millis(started.elapsed());
        let caller = toolbox.source().context().grant_id();
        let answered = AnsweredSearch { request, cached: &cached, latency_ms, caller };
        let id = remember(found, answered).await;
        let results = results.fitting();
        let mut complete = json!({"results": results, "total_latency_ms": latency_ms});
        let warnings = &cached.answer.warnings;
        if let Some(members) = complete.as_object_mut().filter(|_| !warnings.is_empty()) {
            members.insert("warnings".to_owned(), json!(warnings));
        }
        let id = id.map_or_else(|| END.to_owned(), |id| id.to_string());
        events.send("complete", Some(id), &complete.to_string()).await;
        Ok(results.len())
    }
}

/// The events of a search that were not sent yet. Dropping it ends the search.
struct EventStream {
    received: Receiver<Event>,
    _task: AbortOnDropHandle<()>,
}

async fn next_event(mut stream: EventStream) -> Option<(Result<Event, Infallible>, EventStream)> {
    let event = stream.received.recv().await?;
    Some((Ok(event), stream))
}

/// Sends events and counts their bytes.
struct EventSender {
    sender: Sender<Event>,
    bytes: usize,
}

impl EventSender {
    async fn send_stage(&mut self, stage: &SearchStage) {
        match stage {
            SearchStage::CacheCheck(stage) => self.send_json("cache_check", stage).await,
            SearchStage::Embedding(stage) => self.send_json("embedding", stage).await,
            SearchStage::Results(stage) => self.send_json("search_results", stage).await,
            SearchStage::Rerank(stage) => self.send_json("rerank", stage).await,
        }
    }

    async fn send_json(&mut self, name: &str, data: &impl Serialize) {
        let data = serde_json::to_value(data).unwrap_or(Value::Null);
        self.send(name, None, &data.to_string()).await;
    }

    /// Sends an event. The data is one line, as compact JSON is.
    async fn send(&mut self, name: &str, id: Option<String>, data: &str) {
        let mut event = Event::default().event(name);
        self.bytes += format!("event: {name}\ndata: {data}\n\n").len();
        if let Some(id) = id {
            self.bytes += format!("id: {id}\n").len();
            event = event.id(id);
        }
        // A client that has disconnected receives nothing.
        let _ = self.sender.send(event.data(data)).await;
    }
}
