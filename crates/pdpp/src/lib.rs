//! Client of remote record servers: the PDPP read API.
//!
//! One method per endpoint. Only `wire` knows how servers spell a field; everything that leaves this module is typed.
//! Bodies have a size limit, every call has a deadline, and the credential is sent to the provider's own origin only.
//!
//! * `transport`, `credentials`, `provider`: HTTP with deadlines and limits, credentials, URLs
//! * `client`: the client that reads within one call
//! * `params`, `record_path`: query parameters and paths
//! * `wire`: parsers of responses
//! * `describe`, `known`: schemas and their cache
//! * `records`, `changes`, `position`, `packed_text`: lists, changes and their positions
//! * `search`: searches in the modes of the server, `aggregate`: aggregates
//! * `refused`, `places`: errors with hints
//!
//! Uses `callers`, `core`, `outbound`, `ranking` and `source`.

mod aggregate;
mod changes;
mod client;
mod credentials;
mod describe;
mod known;
mod packed_text;
mod params;
mod places;
pub mod position;
pub mod provider;
pub mod record_path;
pub mod records;
mod refused;
mod search;
mod transport;
pub mod wire;

use std::slice;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_callers::CallContext;
use fetchwell_core::handle::{ConnectionId, RecordAddress, SourceName, StreamName};
use fetchwell_core::record::{Record, Schema, Window};
use fetchwell_source::query::share;
use fetchwell_source::{
    AggregateAnswer, AggregateQuery, BackendKind, BackendStatus, ChangesOrigin, QueryFault, RecordQuery,
    RecordsPage, RecordsQuery, SearchPage, SearchQuery, Source, SourceError, StreamAnswer, StreamQuery,
    WindowQuery, WindowStart,
};
use tokio::task::spawn_blocking;

pub use credentials::{CommandLine, CredentialError, CredentialFault, CredentialPlace, Credentials};
pub use provider::{InvalidProviderUrl, ProviderUrl};
pub use transport::{Connections, DEFAULT_DEADLINE, MAX_BODY_BYTES};

use self::client::Client;
use self::known::KnownSchemas;
use self::params::{Params, check_aggregate, check_filter, check_words};
use self::record_path::{encoded_twice, record_path};
use self::transport::{Reply, Transport, parsed};

/// Record server that is reached over HTTP.
#[derive(Debug)]
pub struct Pdpp {
    name: SourceName,
    transport: Transport,
    known: KnownSchemas,
}

impl Pdpp {
    /// Creates a client of `provider`. Sends nothing before the first call.
    #[must_use]
    pub fn new(
        name: SourceName,
        provider: ProviderUrl,
        credentials: Credentials,
        deadline: Duration,
    ) -> Self {
        let transport = Transport::new(provider, credentials, deadline);
        Self { name, transport, known: KnownSchemas::default() }
    }

    /// Uses connections that are shared with other clients of the provider.
    #[must_use]
    pub fn over(self, connections: Connections) -> Self {
        Self { transport: self.transport.over(connections), ..self }
    }

    /// Returns the identity of a client of this provider.
    #[must_use]
    pub fn identity_at(name: &SourceName, provider: &ProviderUrl) -> String {
        format!("{name} {provider}")
    }

    /// Returns the client for the calls of one context.
    fn client<'a>(&'a self, context: &'a CallContext) -> Client<'a> {
        Client { name: &self.name, requests: self.transport.requests(context), known: &self.known }
    }
}

#[async_trait]
impl Source for Pdpp {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn identity(&self) -> String {
        Self::identity_at(&self.name, self.transport.provider())
    }

    async fn backends(&self) -> Vec<BackendStatus> {
        vec![BackendStatus::without_pool(self.name(), BackendKind::RecordServer)]
    }

    async fn schema(&self, context: &CallContext) -> Result<Schema, SourceError> {
        self.client(context).schema().await
    }

    async fn stream(&self, context: &CallContext, query: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        self.client(context).stream(query).await
    }

    async fn search(&self, context: &CallContext, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        check_filter(&query.filter)?;
        self.client(context).search(query).await
    }

    async fn changes_origin(
        &self,
        context: &CallContext,
        query: &StreamQuery,
    ) -> Result<ChangesOrigin, SourceError> {
        self.client(context).changes_origin(query).await
    }

    async fn records(&self, context: &CallContext, query: &RecordsQuery) -> Result<RecordsPage, SourceError> {
        check_filter(&query.filter)?;
        check_words(query)?;
        self.client(context).records(query).await
    }

    async fn record(&self, context: &CallContext, query: &RecordQuery) -> Result<Record, SourceError> {
        self.client(context).record(query).await
    }

    async fn window(&self, context: &CallContext, query: &WindowQuery) -> Result<Window, SourceError> {
        self.client(context).window(query).await
    }

    async fn aggregate(
        &self,
        context: &CallContext,
        query: &AggregateQuery,
    ) -> Result<AggregateAnswer, SourceError> {
        check_filter(&query.filter)?;
        check_aggregate(query)?;
        self.client(context).aggregate(query).await
    }
}

impl Client<'_> {
    async fn schema(&self) -> Result<Schema, SourceError> {
        let (compact, everything) = (Params::default().and("view", "compact"), Params::default());
        let grant = self.requests.grant().await?;
        let (schema, counts) = tokio::join!(
            self.requests.get_metadata("/v1/schema", &compact),
            self.requests.get_metadata("/v1/streams", &everything),
        );
        // Counts are optional: a server that does not list its streams still has a schema.
        let counts = counts.ok().map(|reply| reply.body);
        let schema = parsed(schema?.body, move |schema| wire::schema(schema, counts.as_deref())).await?;
        self.known.keep_schema(grant, &schema);
        Ok(schema)
    }

    async fn stream(&self, query: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        let details = describe::stream(self, query).await;
        let details =
            self.explained(details, query.connection.as_ref(), slice::from_ref(&query.stream)).await?;
        Ok(StreamAnswer::from(details))
    }

    async fn changes_origin(&self, query: &StreamQuery) -> Result<ChangesOrigin, SourceError> {
        let connection = changes::connection_of(self, &query.stream, query.connection.as_ref()).await;
        let connection =
            self.explained(connection, query.connection.as_ref(), slice::from_ref(&query.stream));
        Ok(ChangesOrigin {
            source: Pdpp::identity_at(self.name, self.requests.provider()),
            connection: connection.await?,
        })
    }

    async fn records(&self, query: &RecordsQuery) -> Result<RecordsPage, SourceError> {
        let page = records::records(self, query).await;
        self.explained(page, query.connection.as_ref(), slice::from_ref(&query.stream)).await
    }

    async fn record(&self, query: &RecordQuery) -> Result<Record, SourceError> {
        let params = Params::default()
            .connection(query.address.connection.as_ref())
            .each("fields", &query.fields)
            .expand(&query.expand);
        let reply = self.get_record(&query.address, "", &params).await.map_err(refused::of_question);
        let reply = self.explained_record(reply, &query.address).await?;
        let address = query.address.clone();
        let mut record = parsed(reply.body, move |body| wire::record(body, &address, reply.url)).await?;
        record.memory = reply.memory;
        Ok(record)
    }

    async fn window(&self, query: &WindowQuery) -> Result<Window, SourceError> {
        let params =
            Params::default().and("field", &query.field).connection(query.address.connection.as_ref());
        let (params, offset) = match &query.start {
            WindowStart::Offset(offset) => {
                (params.and("offset_chars", offset).and("limit_chars", &query.limit_chars), *offset)
            }
            WindowStart::Around { text, before, after } => {
                // The server adds these three up for the length of such a window; they are limited here.
                let room = query.limit_chars.saturating_sub(text.chars().count());
                let bounded = |chars: &usize| (*chars).min(MAX_AROUND_CHARS);
                let (before, after) = share(bounded(before), bounded(after), room);
                (params.and("q", text).and("before_chars", &before).and("after_chars", &after), 0)
            }
        };
        let reply = self.get_record(&query.address, "/field-window", &params).await;
        let reply = match reply.map_err(refused::of_question) {
            Err(error) if is_not_found(&error) => return self.window_in_any_case(query).await.ok_or(error),
            reply => self.explained_record(reply, &query.address).await?,
        };
        let address = query.address.clone();
        parsed(reply.body, move |body| wire::window(body, &address, offset)).await
    }

    async fn aggregate(&self, query: &AggregateQuery) -> Result<AggregateAnswer, SourceError> {
        let answer = aggregate::aggregate(self, query).await;
        self.explained(answer, query.connection.as_ref(), slice::from_ref(&query.stream)).await
    }

    /// Sends `GET` for a record or a path below it. If a server that decodes paths twice does not find a key with a
    /// percent sign, the request is repeated with the key encoded twice.
    ///
    /// A proxy may resolve a key such as `../a` as part of the path, and answer with another record. Encoded twice such a
    /// key passes it. An answer that does not name the record is not taken.
    async fn get_record(
        &self,
        address: &RecordAddress,
        below: &str,
        params: &Params,
    ) -> Result<Reply, SourceError> {
        let has_dots = address.record.has_dot_segment();
        // A body is cloned by reference.
        let is_other = async |reply: &Reply| {
            let asked = address.clone();
            let names = parsed(reply.body.clone(), move |body| Ok(wire::names(body, &asked)));
            Ok::<bool, SourceError>(has_dots && !names.await?)
        };
        let once = self.requests.get(&format!("{}{below}", record_path(address)), params).await;
        let is_worth_another = match &once {
            Ok(reply) => is_other(reply).await?,
            Err(SourceError::Refused(refusal)) => {
                (has_dots || address.record.as_str().contains('%')) && wire::blames_path(refusal)
            }
            Err(_) => false,
        };
        if !is_worth_another {
            return once;
        }
        match self.requests.get(&format!("{}{below}", encoded_twice(address)), params).await {
            Ok(reply) if is_other(&reply).await? => Err(SourceError::NotFound {
                what: format!(
                    "the record server, or a proxy before it, gives another record for the key `{}`",
                    address.record
                ),
            }),
            twice => twice,
        }
    }

    /// Returns an answer. If it is an error about an unknown connection or stream, the error lists those that exist.
    async fn explained<Answer>(
        &self,
        answer: Result<Answer, SourceError>,
        connection: Option<&ConnectionId>,
        streams: &[StreamName],
    ) -> Result<Answer, SourceError> {
        match answer {
            Ok(answer) => Ok(answer),
            Err(error) => Err(places::explain(self, error, connection, streams).await),
        }
    }

    async fn explained_record(
        &self,
        reply: Result<Reply, SourceError>,
        address: &RecordAddress,
    ) -> Result<Reply, SourceError> {
        self.explained(reply, address.connection.as_ref(), slice::from_ref(&address.stream)).await
    }

    /// Searches a field without regard to case, for servers that distinguish case and found nothing. Returns `None`
    /// if the text is not there or the field cannot be read completely.
    async fn window_in_any_case(&self, query: &WindowQuery) -> Option<Window> {
        let field =
            RecordQuery { fields: vec![query.field.clone()], ..RecordQuery::new(query.address.clone()) };
        let record = self.record(&field).await.ok()?;
        let query = query.clone();
        // Searching a long text takes some time.
        let read = move || query.window_of(record.address, record.data.get(&query.field)?.as_str()?);
        spawn_blocking(read).await.ok()?
    }
}

/// Returns true if the server reports that the field does not contain the text.
fn is_not_found(error: &SourceError) -> bool {
    matches!(error, SourceError::Refused(refusal) if refusal.code == QueryFault::QueryNotFound.code())
}

/// Maximum number of code points that a server returns before or after a match.
const MAX_AROUND_CHARS: usize = 8_192;
