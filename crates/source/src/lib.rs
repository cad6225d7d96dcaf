//! Record servers, remote or embedded, behind one trait.
//!
//! A `Source` has one method per kind of read: the schema (`Source::schema`, `Source::stream`), search
//! (`Source::search`), lists and aggregates of a stream (`Source::records`, `Source::aggregate`) and single
//! records (`Source::record`, `Source::window`). Tools depend on this trait only.
//!
//! * `contract`: what stores get from imports, synchronizations, removals and exports, and return
//! * `documents`: projects, their documents and chunks, and the trait of stores that have them
//! * `federation`, `merge`: several sources as one; the merge of ordered lists
//! * `allowed_streams`, `lazy_source`: decorators that restrict a source or open it lazily
//! * `sources`, `bound`: one source or a federation, and a source with the context of one call
//! * `manifest`: manifests of connectors, which stores keep
//! * `vectors`: the vectors of stores
//! * `reranking`: the first hits of a search in a better order
//! * `query`: typed queries and answers
//! * `backend`: what operators see of the place of a source
//! * `error`, `unknown_place`: errors
//! * `sync`: imports and synchronizations; `store_place`: names of databases
//! * `record_store`, `record_export`: stores as commands see them, and whole reads, `store_copy`: copies of stores
//! * `accumulator`: accumulators of aggregates
//!
//! Uses `callers`, `core`, `embedding`, `state` and `telemetry`.
//!
//! **Invariant:** nothing here knows MCP, and text from a source never becomes a header, a path, a log line or an
//! instruction.

pub mod accumulator;
mod allowed_streams;
pub mod backend;
mod bound;
pub mod contract;
pub mod documents;
mod error;
pub mod federation;
mod lazy_source;
pub mod manifest;
pub mod merge;
pub mod query;
mod record_export;
mod record_store;
mod reranking;
mod sources;
mod store_copy;
mod store_place;
pub mod sync;
pub mod unknown_place;
pub mod vectors;

use std::fmt;

use async_trait::async_trait;
use fetchwell_callers::CallContext;
use fetchwell_core::handle::{RecordAddress, SourceName};
use fetchwell_core::record::{Record, Schema, Unavailable, Window};

pub use allowed_streams::AllowedStreams;
pub use backend::{
    BackendKind, BackendStatus, ExtensionStatus, PoolUsage, ReplicaStatus, SessionState, SessionStatus,
};
pub use bound::{BoundSource, RecordReads};
pub use error::{AMBIGUOUS_CONNECTION, ConnectionChoice, ProtocolFault, QueryFault, Refusal, SourceError};
pub use lazy_source::LazySource;
pub use manifest::{Manifest, ManifestError, StreamDeclaration};
pub use query::{
    Accuracy, AggregateAnswer, AggregateQuery, Change, ChangesOrigin, ChangesToken, Condition, Count,
    CountMode, DatePrecision, Direction, Expansion, FieldText, Filter, Granularity, Group, Grouping, Mean,
    Metric, Purpose, RangeOperator, RecordQuery, RecordsPage, RecordsPosition, RecordsQuery, SearchDate,
    SearchField, SearchMode, SearchOperator, SearchPage, SearchPosition, SearchQuery, SearchText, Selection,
    StageClock, Start, StreamAnswer, StreamQuery, Test, TimeZoneName, TimedStage, WindowQuery, WindowStart,
};
pub use record_export::RecordExport;
pub use record_store::RecordStore;
pub use reranking::Reranking;
pub use sources::Sources;
pub use store_copy::{ConnectionCopy, CopyError, StoreCopy};
pub use store_place::{is_database, is_database_url};
pub use sync::{ImportLock, ImportTarget, ImportWriter, SyncStore};

use self::documents::DocumentStores;

/// Record server that can be read, each time with the context of the call. Dropping the future of a call cancels the
/// call.
#[async_trait]
pub trait Source: Send + Sync + fmt::Debug {
    /// Returns the name of the source in errors.
    fn name(&self) -> &SourceName;

    /// Returns a stable identity of the source and its configuration. Cursors are bound to it and rejected when it
    /// changes.
    fn identity(&self) -> String;

    /// Returns true if streams are hidden. Positions in lists are then encrypted before they are returned, since they
    /// may reveal hidden streams.
    fn hides_streams(&self) -> bool {
        false
    }

    /// Returns true if the source verifies unsealed change tokens itself, as a store does with those of earlier releases.
    fn verifies_changes(&self) -> bool {
        false
    }

    /// Checks health without network requests. Returns the sources in it that are unavailable, or an error if all of
    /// them are.
    async fn health(&self) -> Result<Vec<Unavailable>, SourceError> {
        Ok(Vec::new())
    }

    /// Returns what operators see of the places that are read from.
    async fn backends(&self) -> Vec<BackendStatus> {
        Vec::new()
    }

    /// Returns the stores of projects in this source that the caller may read.
    async fn document_stores(&self) -> Result<DocumentStores, SourceError> {
        Ok(DocumentStores::default())
    }

    /// Returns all connections with the names of their streams.
    async fn schema(&self, context: &CallContext) -> Result<Schema, SourceError>;

    /// Returns the schema and capabilities of a stream, for each connection that has it.
    async fn stream(&self, context: &CallContext, query: &StreamQuery) -> Result<StreamAnswer, SourceError>;

    /// Searches and returns a page of hits in rank order.
    async fn search(&self, context: &CallContext, query: &SearchQuery) -> Result<SearchPage, SourceError>;

    /// Returns the source and the connection that the changes of a stream belong to.
    async fn changes_origin(
        &self,
        context: &CallContext,
        query: &StreamQuery,
    ) -> Result<ChangesOrigin, SourceError> {
        let connection = match &query.connection {
            Some(connection) => Some(connection.clone()),
            None => match self.stream(context, query).await?.details.as_slice() {
                [only] => Some(only.connection_id.clone()),
                _ => None,
            },
        };
        Ok(ChangesOrigin { source: self.identity(), connection })
    }

    /// Returns a page of a stream's records or of its changes.
    async fn records(&self, context: &CallContext, query: &RecordsQuery) -> Result<RecordsPage, SourceError>;

    /// Returns one record.
    async fn record(&self, context: &CallContext, query: &RecordQuery) -> Result<Record, SourceError>;

    /// Returns an opaque version tag that changes when the record changes, or `None` if the source cannot tell
    /// without reading the record, or the record does not exist.
    async fn version(
        &self,
        _context: &CallContext,
        _address: &RecordAddress,
    ) -> Result<Option<String>, SourceError> {
        Ok(None)
    }

    /// Returns a window of one text field of a record.
    async fn window(&self, context: &CallContext, query: &WindowQuery) -> Result<Window, SourceError>;

    /// Returns an aggregate over the records of a stream.
    async fn aggregate(
        &self,
        context: &CallContext,
        query: &AggregateQuery,
    ) -> Result<AggregateAnswer, SourceError>;
}
