//! Sessions with a server: opened at the first call, kept, and opened again when they end.
//!
//! * `open`: opening of one session
//! * `tool_list`: the list of a server's tools
//! * `http`, `child`: servers behind a URL, and servers that are started
//! * `handler`, `limited`: requests of a server, which are refused, and their number

mod child;
mod handler;
mod http;
mod limited;
mod open;
mod tool_list;

use std::sync::Arc;
use std::time::Duration;

use fetchwell_callers::{HOPS, MAX_HOPS};
use fetchwell_source::SessionState;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, MetaObject, RequestMetaObject,
};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio::task::JoinError;
use tokio::time::{Instant, timeout_at};

pub use self::child::{ServerCommand, stop_servers};
pub(crate) use self::http::CurrentToken;
pub(crate) use self::open::{Endpoint, Session};
pub use self::open::{McpPlace, OPENING_TIMEOUT};
pub(crate) use self::tool_list::ToolList;

use crate::fault::{Problem, is_unknown_tool};

/// Maximum number of concurrent calls of a server.
const MAX_IN_FLIGHT: usize = 16;

/// Minimum and maximum time between two attempts to open a session.
const MIN_BACKOFF: Duration = Duration::from_millis(500);
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// Sessions with one server, one at a time.
#[derive(Debug)]
pub(crate) struct Sessions {
    endpoint: Arc<Endpoint>,
    state: Mutex<State>,
    in_flight: Semaphore,
}

/// Result of an attempt to open a session: the session, or the problem with the time of the failure.
type OpeningResult = Result<Arc<Session>, (Problem, Instant)>;

/// Attempt to open a session, shared by all calls that wait for it.
type Opening = Shared<BoxFuture<'static, OpeningResult>>;

#[derive(Debug, Default)]
struct State {
    opening: Option<Opening>,
    /// Failed attempts since the last answer.
    failures: Option<Failures>,
    /// Time of the last call that was answered.
    latency: Option<Duration>,
    /// Problem of the last call, unless it was answered.
    problem: Option<Problem>,
}

/// Attempts to open a session that failed in a row.
#[derive(Debug)]
struct Failures {
    count: u32,
    /// Problem of the last attempt.
    problem: Problem,
    /// Time of the next attempt.
    retry_at: Instant,
}

/// Limits of the calls of one read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadLimits {
    /// Number of servers of fetchwell that the read has passed.
    pub(crate) hops: u32,
    /// End of the deadline, within which a session is opened and all calls are answered.
    pub(crate) until: Instant,
}

/// Call of a tool.
#[derive(Debug, Clone)]
pub(crate) struct ToolCall {
    /// Name of the tool.
    pub(crate) tool: String,
    /// Arguments of the tool.
    pub(crate) arguments: Map<String, Value>,
}

/// State of the sessions with a server, for operators.
#[derive(Debug, Clone)]
pub(crate) struct SessionReport {
    /// State of the current session.
    pub(crate) state: SessionState,
    /// Name and version that the server gives itself.
    pub(crate) server: Option<String>,
    /// Time of the last call that was answered.
    pub(crate) latency: Option<Duration>,
    /// Problem of the last call or of the last attempt to open a session.
    pub(crate) problem: Option<Problem>,
}

impl Sessions {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        let (state, in_flight) = (Mutex::default(), Semaphore::new(MAX_IN_FLIGHT));
        Self { endpoint: Arc::new(endpoint), state, in_flight }
    }

    /// Returns the server.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns the open session, or waits for one. A session goes on opening after the call that waits for it has ended, so that
    /// a slow start delays only the first calls.
    pub(crate) async fn session(&self) -> Result<Arc<Session>, Problem> {
        loop {
            let opening = self.opening()?;
            let opened = opening.clone().await;
            match opened {
                Ok(session) if session.is_closed() && session.has_answered() => self.forget(&opening),
                // A server that starts and ends at once is not started again and again.
                Ok(session) if session.is_closed() => {
                    let problem = session.describe_end().await.unwrap_or(Problem::Closed);
                    if self.note_failure(&opening, &problem, Instant::now()) > Instant::now() {
                        return Err(problem);
                    }
                }
                Ok(session) => return Ok(session),
                Err((problem, at)) => {
                    // A problem that no call waited for is not that of a call which comes much later.
                    if self.note_failure(&opening, &problem, at) > Instant::now() {
                        return Err(problem);
                    }
                }
            }
        }
    }

    /// Returns the session that is open or being opened, or begins to open one.
    fn opening(&self) -> Result<Opening, Problem> {
        let mut state = self.state.lock();
        if let Some(opening) = &state.opening {
            return Ok(opening.clone());
        }
        if let Some(Failures { problem, retry_at, .. }) = &state.failures
            && Instant::now() < *retry_at
        {
            return Err(problem.clone());
        }
        let endpoint = Arc::clone(&self.endpoint);
        let task = tokio::spawn(async move {
            let opened = open::open(&endpoint).await.map(Arc::new);
            opened.map_err(|problem| (problem, Instant::now()))
        });
        let ended = |joined: Result<OpeningResult, JoinError>| {
            joined.unwrap_or_else(|error| Err((Problem::of_task(&error), Instant::now())))
        };
        let opening = task.map(ended).boxed().shared();
        state.opening = Some(opening.clone());
        Ok(opening)
    }

    fn forget(&self, closed: &Opening) {
        let mut state = self.state.lock();
        if state.opening.as_ref().is_some_and(|opening| opening.ptr_eq(closed)) {
            state.opening = None;
        }
    }

    /// Remembers a failed attempt. Returns the time of the next one.
    fn note_failure(&self, failed: &Opening, problem: &Problem, at: Instant) -> Instant {
        let mut state = self.state.lock();
        if !state.opening.as_ref().is_some_and(|opening| opening.ptr_eq(failed)) {
            // Another call has noted the failure.
            return state.failures.as_ref().map_or(at + MIN_BACKOFF, |failures| failures.retry_at);
        }
        state.opening = None;
        let count = state.failures.as_ref().map_or(1, |failures| failures.count.saturating_add(1));
        let retry_at = at + backoff(count);
        state.failures = Some(Failures { count, problem: problem.clone(), retry_at });
        retry_at
    }

    /// Calls a tool. A session that has ended is opened again, once.
    pub(crate) async fn call(&self, call: &ToolCall, limits: ReadLimits) -> Result<CallToolResult, Problem> {
        if limits.hops >= MAX_HOPS {
            return Err(Problem::Cycle);
        }
        let hops = limits.hops + 1;
        let answered = async {
            let _permit = self.in_flight.acquire().await.map_err(|_closed| Problem::Closed)?;
            let session = self.session().await?;
            let used = self.endpoint.use_token().await?;
            match session.call(call, hops).await {
                Err(Problem::Closed) => {
                    let session = self.session().await?;
                    match session.call(call, hops).await {
                        Err(Problem::Closed) => Err(session.describe_end().await.unwrap_or(Problem::Closed)),
                        answer => answer,
                    }
                }
                Err(Problem::Unauthorized) if self.endpoint.renew_token(used).await? => {
                    self.session().await?.call(call, hops).await
                }
                answer => answer,
            }
        };
        let started = Instant::now();
        let answer =
            timeout_at(limits.until, answered).await.unwrap_or_else(|_elapsed| Err(self.timed_out()));
        let mut state = self.state.lock();
        match &answer {
            Ok(_) => {
                (state.latency, state.problem) = (Some(started.elapsed()), None);
                state.failures = None;
            }
            Err(problem) => state.problem = Some(problem.clone()),
        }
        answer
    }

    /// Returns the problem of a read that was not answered within the deadline.
    pub(crate) fn timed_out(&self) -> Problem {
        Problem::Timeout(self.endpoint.deadline)
    }

    /// Returns the state without a request.
    pub(crate) fn status(&self) -> SessionReport {
        let state = self.state.lock();
        let opened = state.opening.as_ref().map(Shared::peek);
        let (phase, server) = match opened {
            Some(Some(Ok(session))) if !session.is_closed() => {
                (SessionState::Open, Some(session.server().to_owned()))
            }
            Some(None) => (SessionState::Opening, None),
            Some(Some(Err(_))) => (SessionState::Failed, None),
            Some(Some(Ok(_))) | None if state.failures.is_some() => (SessionState::Failed, None),
            Some(Some(Ok(_))) | None => (SessionState::NotOpened, None),
        };
        let failed = state.failures.as_ref().map(|failures| failures.problem.clone());
        let problem = state.problem.clone().or(failed);
        SessionReport { state: phase, server, latency: state.latency, problem }
    }
}

/// Returns the time between a failed attempt and the next one: doubled with each of `failures` in a row.
fn backoff(failures: u32) -> Duration {
    MIN_BACKOFF.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(MAX_BACKOFF)
}

fn request(ToolCall { tool, arguments }: &ToolCall, hops: u32) -> CallToolRequestParams {
    let mut request = CallToolRequestParams::new(tool.clone()).with_arguments(arguments.clone());
    let meta = Map::from_iter([(HOPS.to_owned(), Value::from(hops))]);
    request.meta = Some(RequestMetaObject(MetaObject(meta)));
    request
}

impl Session {
    async fn call(&self, call: &ToolCall, hops: u32) -> Result<CallToolResult, Problem> {
        let answer = match self.peer().call_tool_once(request(call, hops)).await {
            Ok(CallToolResponse::Complete(result)) => {
                self.note_answer();
                Ok(result)
            }
            Ok(_) => Err(Problem::Refused(
                "the server asks for input or a later answer, which a search does not give".to_owned(),
            )),
            Err(_) if self.is_closed() => Err(Problem::Closed),
            Err(error) => Err(Problem::of_call(&error)),
        };
        if !denies_tool(&answer, &call.tool) {
            return answer;
        }
        self.forget_tools();
        Err(Problem::UnknownTool(call.tool.clone()))
    }
}

/// Returns true if a server says that it has no tool of this name, as an error of the protocol or of the tool.
fn denies_tool(answer: &Result<CallToolResult, Problem>, tool: &str) -> bool {
    match answer {
        Err(Problem::Refused(words)) => is_unknown_tool(words, tool),
        Ok(result) if result.is_error == Some(true) => result
            .content
            .iter()
            .any(|block| matches!(block, ContentBlock::Text(text) if is_unknown_tool(&text.text, tool))),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::Mapping;

    #[test]
    fn backoff_doubles_up_to_its_maximum() {
        for (failures, expect) in
            [(0, 500), (1, 500), (2, 1_000), (3, 2_000), (7, 32_000), (8, 60_000), (u32::MAX, 60_000)]
        {
            assert_eq!(backoff(failures), Duration::from_millis(expect), "{failures}");
        }
    }

    fn sessions(program: &str) -> Sessions {
        let command = ServerCommand { line: vec![program.to_owned()], environment: Vec::new(), folder: None };
        Sessions::new(Endpoint {
            source: "notes".to_owned(),
            place: McpPlace::Command(command),
            token: CurrentToken::default(),
            client_name: "test".to_owned(),
            mapping: Mapping::default(),
            deadline: Duration::from_secs(5),
        })
    }

    #[tokio::test]
    async fn concurrent_calls_share_one_attempt_to_open_a_session() {
        let sessions = sessions("/no/such/program");
        assert_eq!(sessions.status().state, SessionState::NotOpened);
        let (one, other) = tokio::join!(sessions.session(), sessions.session());
        for failed in [one, other] {
            assert!(matches!(failed, Err(Problem::Unreachable(_))), "{failed:?}");
        }
        let count = || sessions.state.lock().failures.as_ref().map(|failures| failures.count);
        assert_eq!((count(), sessions.status().state), (Some(1), SessionState::Failed));
        // Before the time of the next attempt, the problem is returned without one.
        assert!(sessions.session().await.is_err());
        assert_eq!(count(), Some(1));
        sessions.state.lock().failures.as_mut().unwrap().retry_at = Instant::now();
        assert!(sessions.session().await.is_err());
        assert_eq!(count(), Some(2));
    }
}
