//! Remote record servers: a small typed client of the PDPP read API.
//!
//! One method per endpoint. `wire` is the only place that knows how servers spell things; what leaves
//! this module is typed. Bodies are bounded, every call has a deadline, and the credential goes to the
//! provider's own origin only.

mod credentials;
mod provider;
mod record_path;
mod recorded;
mod transport;
mod wire;

use std::time::Duration;

use async_trait::async_trait;

pub use credentials::{CredentialError, Credentials};
pub use provider::{InvalidProviderUrl, ProviderUrl};
pub use recorded::{Recorded, fat_search_reply, long_record_reply};
pub use transport::{DEFAULT_DEADLINE, MAX_BODY_BYTES};

use self::record_path::{encoded_twice, record_path};
use self::transport::{Transport, parsed};
use super::{
    AggregateAnswer, AggregateQuery, RecordQuery, RecordsPage, RecordsQuery, SearchPage, SearchQuery, Source,
    SourceError, StreamQuery, WindowQuery,
};
use crate::handle::{ConnectionId, SourceName};
use crate::record::{Record, Schema, StreamDetail, Window};

/// A record server behind HTTP.
#[derive(Debug)]
pub struct Pdpp {
    name: SourceName,
    transport: Transport,
}

impl Pdpp {
    /// A client of `provider` with a credential of `pdpp connect`. Nothing is sent before the first call.
    #[must_use]
    pub fn new(
        name: SourceName,
        provider: ProviderUrl,
        credentials: Credentials,
        deadline: Duration,
    ) -> Self {
        Self { name, transport: Transport::new(provider, credentials, deadline) }
    }
}

#[async_trait]
impl Source for Pdpp {
    fn name(&self) -> &SourceName {
        &self.name
    }

    async fn schema(&self) -> Result<Schema, SourceError> {
        let (schema, counts) = tokio::join!(
            self.transport.get("/v1/schema", &[("view", "compact")]),
            self.transport.get("/v1/streams", &[]),
        );
        // The counts are a courtesy: a server that does not list its streams still has a schema.
        wire::schema(&schema?.body, counts.ok().map(|reply| reply.body).as_deref())
    }

    async fn search(&self, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        let limit = query.limit.to_string();
        let mut params = vec![("q", query.text.as_str()), ("limit", &limit)];
        params.extend(query.connection.as_ref().map(|id| ("connection_id", id.as_str())));
        params.extend(query.streams.iter().map(|stream| ("streams", stream.as_str())));
        params.extend(query.position.as_ref().map(|position| ("cursor", position.0.as_str())));
        let reply = self.transport.get("/v1/search", &params).await.map_err(|error| match error {
            SourceError::Refused(refusal) if refusal.code == "invalid_cursor" => SourceError::RestartSearch,
            other => other,
        })?;
        let mut page = parsed(reply.body, wire::search_page).await?;
        // A cursor that leads back to itself would be read for ever.
        page.next = page.next.filter(|next| query.position.as_ref() != Some(next));
        Ok(page)
    }

    async fn record(&self, query: &RecordQuery) -> Result<Record, SourceError> {
        let path = record_path(&query.address);
        let connection = query.address.connection.as_ref().map(ConnectionId::as_str);
        let mut params: Vec<(&str, &str)> = connection.map(|id| ("connection_id", id)).into_iter().collect();
        params.extend(query.fields.iter().map(|field| ("fields", field.as_str())));
        let reply = match self.transport.get(&path, &params).await {
            Err(SourceError::Refused(refusal))
                if query.address.record.as_str().contains('%') && refusal.blames_path() =>
            {
                self.transport.get(&encoded_twice(&query.address), &params).await?
            }
            other => other?,
        };
        let address = query.address.clone();
        parsed(reply.body, move |body| wire::record(body, &address, reply.url)).await
    }

    async fn stream(&self, _query: &StreamQuery) -> Result<Vec<StreamDetail>, SourceError> {
        Err(not_supported())
    }

    async fn records(&self, _query: &RecordsQuery) -> Result<RecordsPage, SourceError> {
        Err(not_supported())
    }

    async fn window(&self, _query: &WindowQuery) -> Result<Window, SourceError> {
        Err(not_supported())
    }

    async fn aggregate(&self, _query: &AggregateQuery) -> Result<AggregateAnswer, SourceError> {
        Err(not_supported())
    }
}

fn not_supported() -> SourceError {
    SourceError::CorrectQuery {
        fault: super::QueryFault::NotSupported,
        problem: String::new(),
        hint: String::new(),
    }
}
