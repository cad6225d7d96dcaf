//! The PDPP read API at `/v1`: serves any `Source` as a record server.
//!
//! Paths are split as sent and decoded once per segment, so that a key may contain any character, including `/`.
//! Every response is JSON in the envelope of the contract, including errors and panics.
//!
//! * `routes`: a file for each route
//! * `table`, `parameters`: parameters of all routes, and parsing of query strings
//! * `cursor`: cursors of lists and searches
//! * `envelope`, `warning`, `error`: responses
//! * `operation`, `openapi`: descriptions of the routes in `/openapi.json`

mod cursor;
mod envelope;
mod error;
pub(crate) mod openapi;
mod operation;
mod parameters;
mod routes;
mod table;
mod warning;

use std::str::FromStr;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::Response;
use axum::routing::any;
use fetchwell_core::fit::Shaping;
use fetchwell_source::SearchMode;
use fetchwell_telemetry::{RequestId, Telemetry};
use fetchwell_tools::Toolbox;
use percent_encoding::percent_decode_str;

pub(crate) use self::cursor::Seal;
pub(crate) use self::envelope::VERSION;

use self::envelope::{Answer, Call, PDPP_VERSION};
use self::error::{ErrorEnvelope, error_response};
use self::operation::Operation;
use self::parameters::Parameters;
use self::routes::{aggregate, record, records, schema, search, streams, window};
use crate::answer::{answer_call, in_time};
use crate::error::RequestError;
use crate::middleware::authenticate::toolbox_of;
use crate::middleware::refusal::Refusal;

/// State of the API.
#[derive(Debug, Clone)]
pub(crate) struct RecordServer {
    telemetry: Telemetry,
    /// Function that returns the document at `/openapi.json`.
    openapi: fn() -> &'static str,
}

impl RecordServer {
    pub(crate) fn new(telemetry: Telemetry, openapi: fn() -> &'static str) -> Self {
        Self { telemetry, openapi }
    }

    /// Routes `/v1`, everything below it, and `/openapi.json`.
    pub(crate) fn routes(&self) -> Router {
        let all = any(answer).with_state(self.clone());
        ["/v1", "/v1/", "/v1/{*rest}", "/openapi.json"]
            .into_iter()
            .fold(Router::new(), |router, path| router.route(path, all.clone()))
    }
}

/// Parsed path of the contract; its names are still percent-encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route<'a> {
    OpenApi,
    Schema,
    Search(SearchMode),
    Streams,
    Stream(&'a str),
    Records(&'a str),
    Aggregate(&'a str),
    Record(&'a str, &'a str),
    Window(&'a str, &'a str),
}

impl<'a> Route<'a> {
    fn parse(path: &'a str) -> Option<Self> {
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        Some(match *segments.as_slice() {
            ["openapi.json"] => Self::OpenApi,
            ["v1", "schema"] => Self::Schema,
            ["v1", "search"] => Self::Search(SearchMode::Lexical),
            ["v1", "search", "semantic"] => Self::Search(SearchMode::Semantic),
            ["v1", "search", "hybrid"] => Self::Search(SearchMode::Hybrid),
            ["v1", "streams"] => Self::Streams,
            ["v1", "streams", stream] => Self::Stream(stream),
            ["v1", "streams", stream, "records"] => Self::Records(stream),
            ["v1", "streams", stream, "aggregate"] => Self::Aggregate(stream),
            ["v1", "streams", stream, "records", record] => Self::Record(stream, record),
            ["v1", "streams", stream, "records", record, "field-window"] => Self::Window(stream, record),
            _ => return None,
        })
    }

    /// Returns the operation of a route, or `None` for `/openapi.json`.
    fn operation(self) -> Option<Operation> {
        Some(match self {
            Self::OpenApi => return None,
            Self::Schema => schema::OPERATION,
            Self::Search(SearchMode::Auto | SearchMode::Lexical) => search::OPERATION,
            Self::Search(SearchMode::Semantic) => search::SEMANTIC,
            Self::Search(SearchMode::Hybrid) => search::HYBRID,
            Self::Streams => streams::LIST,
            Self::Stream(_) => streams::ONE,
            Self::Records(_) => records::OPERATION,
            Self::Aggregate(_) => aggregate::OPERATION,
            Self::Record(..) => record::OPERATION,
            Self::Window(..) => window::OPERATION,
        })
    }

    /// Returns the name of the endpoint in telemetry.
    fn template(self) -> &'static str {
        self.operation().map_or("/openapi.json", |operation| operation.path)
    }
}

/// Answers one request and logs it in one line. Errors and panics become error responses.
async fn answer(State(server): State<RecordServer>, request: Request) -> Response {
    // The body is ignored, because no route takes one.
    let (request, _) = request.into_parts();
    let route = Route::parse(request.uri.path());
    let endpoint = route.map_or("/v1/{unknown}", Route::template);
    answer_call(&server.telemetry, endpoint, &request, async |call| {
        let toolbox = toolbox_of(&request.extensions).ok_or_else(RequestError::internal)?.audited(call);
        let answer = server.handle(&toolbox, route, &request).await?;
        Ok::<_, RequestError>(answer.with_header(PDPP_VERSION, HeaderValue::from_static(VERSION)))
    })
    .await
}

/// Returns true if a path belongs to the contract.
pub(crate) fn is_contract(path: &str) -> bool {
    path == "/v1" || path.starts_with("/v1/") || path == "/openapi.json"
}

/// Builds the response to a request that middleware refused, in the format of the contract.
pub(crate) fn refused(refused: &Refusal, id: &RequestId) -> Response {
    let error = RequestError::new(refused.status, refused.code, refused.problem.clone());
    let mut body = serde_json::to_value(ErrorEnvelope::new(&error, id.as_str())).unwrap_or_default();
    if let (Some(error), Some(url)) = (body.get_mut("error"), &refused.resource_metadata) {
        error["resource_metadata"] = url.as_str().into();
    }
    error_response(&error, body.to_string())
}

impl RecordServer {
    /// Answers a request of a caller.
    async fn handle(
        &self,
        toolbox: &Toolbox,
        route: Option<Route<'_>>,
        request: &Parts,
    ) -> Result<Answer, RequestError> {
        let Some(route) = route else {
            let problem = "there is no such route; /openapi.json lists all routes".to_owned();
            return Err(RequestError::not_found(problem));
        };
        if request.method != Method::GET {
            let problem = "this API is read-only; use GET".to_owned();
            return Err(RequestError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", problem));
        }
        let Some(operation) = route.operation() else {
            let shaping = Shaping { items: 1, ..Shaping::default() };
            return Ok(Answer::with_shaping((self.openapi)().to_owned(), shaping));
        };
        let (path, query) = (request.uri.path(), request.uri.query());
        let parameters = Parameters::read(query, operation.parameters)?;
        let source = toolbox.source();
        let seal = Seal::new(toolbox);
        let mut call = Call { toolbox, source, seal: &seal, path, query, parameters };
        in_time(toolbox, dispatch(&mut call, route)).await
    }
}

async fn dispatch(call: &mut Call<'_>, route: Route<'_>) -> Result<Answer, RequestError> {
    match route {
        Route::OpenApi => Err(RequestError::internal()),
        Route::Schema => schema::answer(call).await,
        Route::Search(mode) => search::answer(call, mode).await,
        Route::Streams => streams::list(call).await,
        Route::Stream(stream) => streams::one(call, name(stream)?).await,
        Route::Records(stream) => records::answer(call, name(stream)?).await,
        Route::Aggregate(stream) => aggregate::answer(call, name(stream)?).await,
        Route::Record(stream, record) => record::answer(call, name(stream)?, name(record)?).await,
        Route::Window(stream, record) => window::answer(call, name(stream)?, name(record)?).await,
    }
}

/// Decodes and parses a name in a path. An invalid name is reported as not found.
fn name<Name: FromStr<Err: std::fmt::Display>>(segment: &str) -> Result<Name, RequestError> {
    let decoded = percent_decode_str(segment).decode_utf8();
    let decoded =
        decoded.map_err(|_bytes| RequestError::not_found("a name in the path is not UTF-8".to_owned()))?;
    decoded
        .parse()
        .map_err(|problem| RequestError::not_found(format!("a name in the path cannot be one: {problem}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expect: Option<Route<'_>>) {
        assert_eq!(Route::parse(path), expect, "{path}");
    }

    #[test]
    fn a_slash_in_a_key_ends_no_segment_when_it_is_encoded() {
        check("/v1/streams/s/records/a%2Fb", Some(Route::Record("s", "a%2Fb")));
        check("/v1/streams/s/records/a/b", None);
        check("/v1/streams/s/records/field-window", Some(Route::Record("s", "field-window")));
        check("/v1/streams/s/records/r/field-window", Some(Route::Window("s", "r")));
        check("/v1/streams/", Some(Route::Stream("")));
        check("/v1", None);
        check("/v1/schema/", None);
        check("v1/schema", None);
    }
}
