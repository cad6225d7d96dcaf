//! Sessions with a server: opened at the first call, kept, and opened again when they end.
//!
//! * `open`: opening of one session, and the list of tools
//! * `http`, `child`: servers behind a URL, and servers that are started
//! * `handler`, `limited`: requests of a server, which are refused, and their number

mod child;
mod handler;
mod http;
mod limited;
mod open;

use std::sync::Arc;
use std::time::{Duration, Instant};

use fetchwell_callers::{HOPS, MAX_HOPS};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, MetaObject, RequestMetaObject};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio::time::timeout;

pub use self::child::{ServerCommand, stop_servers};
pub(crate) use self::http::CurrentToken;
pub use self::open::McpPlace;
pub(crate) use self::open::{Endpoint, Listed, Session};

use crate::fault::Problem;

/// Maximum number of concurrent calls of a server.
const MAX_IN_FLIGHT: usize = 16;

/// Shortest and longest time between two attempts to open a session.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Sessions with one server, one at a time.
#[derive(Debug)]
pub(crate) struct Sessions {
    endpoint: Arc<Endpoint>,
    state: Mutex<State>,
    in_flight: Semaphore,
}

/// A session, or the problem with the time at which it was met.
type Opened = Result<Arc<Session>, (Problem, Instant)>;

type Opening = Shared<BoxFuture<'static, Opened>>;

#[derive(Debug, Default)]
struct State {
    opening: Option<Opening>,
    /// Number of failed attempts in a row, the last problem, and the time of the next attempt.
    failed: Option<(u32, Problem, Instant)>,
    /// Time of the last call that was answered.
    latency: Option<Duration>,
    /// Problem of the last call, unless it was answered.
    problem: Option<Problem>,
}

/// State of the sessions with a server, for operators.
#[derive(Debug, Clone)]
pub(crate) struct SessionState {
    /// State, as in [`fetchwell_source::SessionStatus`].
    pub(crate) state: &'static str,
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
                    let next = self.note_failure(&opening, &Problem::Closed, Instant::now());
                    if next > Instant::now() {
                        return Err(Problem::Closed);
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
        if let Some((_, problem, next)) = &state.failed
            && Instant::now() < *next
        {
            return Err(problem.clone());
        }
        let endpoint = Arc::clone(&self.endpoint);
        let task = tokio::spawn(async move {
            let opened = open::open(&endpoint).await.map(Arc::new);
            opened.map_err(|problem| (problem, Instant::now()))
        });
        let ended =
            |joined: Result<Opened, _>| joined.unwrap_or_else(|_| Err((Problem::Closed, Instant::now())));
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
            // Another call has noted it.
            return state.failed.as_ref().map_or(at + FIRST_PAUSE, |(.., next)| *next);
        }
        state.opening = None;
        let count = state.failed.as_ref().map_or(1, |(count, ..)| count.saturating_add(1));
        let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(count - 1)).min(LONGEST_PAUSE);
        let next = at + pause;
        state.failed = Some((count, problem.clone(), next));
        next
    }

    /// Calls a tool. A session that has ended is opened again, once.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        hops: u32,
    ) -> Result<CallToolResult, Problem> {
        if hops >= MAX_HOPS {
            return Err(Problem::Circle);
        }
        let (deadline, hops) = (self.endpoint.deadline, hops + 1);
        let answered = async {
            let _turn = self.in_flight.acquire().await.map_err(|_closed| Problem::Closed)?;
            let session = self.session().await?;
            let used = self.endpoint.use_token().await?;
            match session.call(request(tool, arguments.clone(), hops)).await {
                Err(Problem::Closed) => self.session().await?.call(request(tool, arguments, hops)).await,
                Err(Problem::Unauthorized) if self.endpoint.renew_token(used).await? => {
                    self.session().await?.call(request(tool, arguments, hops)).await
                }
                answer => answer,
            }
        };
        let started = Instant::now();
        let answer = timeout(deadline, answered).await.unwrap_or(Err(Problem::Timeout(deadline)));
        let mut state = self.state.lock();
        match &answer {
            Ok(_) => {
                (state.latency, state.problem) = (Some(started.elapsed()), None);
                state.failed = None;
            }
            Err(problem) => state.problem = Some(problem.clone()),
        }
        answer
    }

    /// Returns the state without a request.
    pub(crate) fn status(&self) -> SessionState {
        let state = self.state.lock();
        let opened = state.opening.as_ref().map(Shared::peek);
        let (name, server) = match opened {
            Some(Some(Ok(session))) if !session.is_closed() => ("open", Some(session.server().to_owned())),
            Some(None) => ("opening", None),
            Some(Some(Err(_))) => ("failed", None),
            Some(Some(Ok(_))) | None if state.failed.is_some() => ("failed", None),
            Some(Some(Ok(_))) | None => ("not_opened", None),
        };
        let failed = state.failed.as_ref().map(|(_, problem, _)| problem.clone());
        let problem = state.problem.clone().or(failed);
        SessionState { state: name, server, latency: state.latency, problem }
    }
}

fn request(tool: &str, arguments: Map<String, Value>, hops: u32) -> CallToolRequestParams {
    let mut request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    let meta = Map::from_iter([(HOPS.to_owned(), Value::from(hops))]);
    request.meta = Some(RequestMetaObject(MetaObject(meta)));
    request
}

impl Session {
    async fn call(&self, request: CallToolRequestParams) -> Result<CallToolResult, Problem> {
        match self.peer().call_tool_once(request).await {
            Ok(CallToolResponse::Complete(result)) => {
                self.note_answer();
                Ok(result)
            }
            Ok(_) => Err(Problem::Refused(
                "the server asks for input or a later answer, which a search does not give".to_owned(),
            )),
            Err(_) if self.is_closed() => Err(Problem::Closed),
            Err(error) => Err(Problem::of_call(&error)),
        }
    }
}
