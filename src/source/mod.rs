//! Record servers, remote or embedded, behind one trait.
//!
//! A [`Source`] has one method per read: what there is ([`Source::schema`], [`Source::stream`]), what matches
//! ([`Source::search`]), what a stream holds ([`Source::records`], [`Source::aggregate`]) and what a record
//! says ([`Source::record`], [`Source::window`]). The embedded store ([`store`]) and the remote client
//! ([`pdpp`]) implement it; tools know nothing else of them.
//!
//! Nothing here knows MCP. What a source sends is data: it never becomes a header, a path, a log line
//! or an instruction.

mod allowed_streams;
mod error;
pub mod federation;
mod figure;
mod merge;
pub mod pdpp;
mod query;
pub mod store;
mod unknown_place;
mod unopened;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

pub use allowed_streams::AllowedStreams;
pub use error::{AMBIGUOUS_CONNECTION, ConnectionChoice, ProtocolFault, QueryFault, Refusal, SourceError};
pub use query::{
    Accuracy, AggregateAnswer, AggregateQuery, Change, ChangesOrigin, ChangesToken, Condition, Count,
    CountMode, Direction, Expansion, Filter, Granularity, Group, Grouping, Metric, Operator, Purpose,
    RecordQuery, RecordsPage, RecordsPosition, RecordsQuery, SearchMode, SearchPage, SearchPosition,
    SearchQuery, Selection, Start, StreamAnswer, StreamQuery, TimeZoneName, WindowQuery, WindowStart,
};

pub use unopened::Unopened;

use self::federation::CircuitReport;
use crate::handle::{RecordAddress, SourceName};
use crate::record::{Record, Schema, Unavailable, Window};

/// One record server. Dropping the future of a call abandons the call.
#[async_trait]
pub trait Source: Send + Sync + fmt::Debug {
    /// How errors name it.
    fn name(&self) -> &SourceName;

    /// What it is, and where: a cursor of one set of sources is of no use to another.
    fn identity(&self) -> String;

    /// Whether there are several sources behind it; its errors that are of none of them name none.
    fn is_several(&self) -> bool {
        false
    }

    /// Returns whether it hides streams. Positions of its lists are then sealed before they leave, since they may tell
    /// of what is hidden.
    fn is_narrowed(&self) -> bool {
        false
    }

    /// Returns whether it verifies tokens of changes that came without a seal, as a store does with those of earlier versions.
    fn verifies_changes(&self) -> bool {
        false
    }

    /// How each source behind this one is doing; nothing when there is none.
    fn circuits(&self) -> Vec<CircuitReport> {
        Vec::new()
    }

    /// The source of a name behind this one, for questions about a connection that several of them have.
    fn member(&self, _name: &SourceName) -> Option<Arc<dyn Source>> {
        None
    }

    /// Whether it can be asked, without asking over a network: an error when nothing behind it can be, else the sources
    /// behind it that cannot.
    async fn health(&self) -> Result<Vec<Unavailable>, SourceError> {
        Ok(Vec::new())
    }

    /// Its connections and the names of their streams.
    async fn schema(&self) -> Result<Schema, SourceError>;

    /// What a stream can be asked, by each connection that has it.
    async fn stream(&self, query: &StreamQuery) -> Result<StreamAnswer, SourceError>;

    /// The best matches of a query, in the source's order, from a position on.
    async fn search(&self, query: &SearchQuery) -> Result<SearchPage, SourceError>;

    /// Returns the source and the connection that tell the changes of a stream.
    async fn changes_origin(&self, query: &StreamQuery) -> Result<ChangesOrigin, SourceError> {
        let connection = match &query.connection {
            Some(connection) => Some(connection.clone()),
            None => match self.stream(query).await?.details.as_slice() {
                [only] => Some(only.connection_id.clone()),
                _ => None,
            },
        };
        Ok(ChangesOrigin { source: self.identity(), connection })
    }

    /// A page of the records of a stream, or of what changed in it.
    async fn records(&self, query: &RecordsQuery) -> Result<RecordsPage, SourceError>;

    /// One record.
    async fn record(&self, query: &RecordQuery) -> Result<Record, SourceError>;

    /// A word that is another when the record was changed, where that can be told without reading the record; nothing
    /// where it cannot, and for a record that is not there.
    async fn version(&self, _address: &RecordAddress) -> Result<Option<String>, SourceError> {
        Ok(None)
    }

    /// A piece of one text field of a record.
    async fn window(&self, query: &WindowQuery) -> Result<Window, SourceError>;

    /// A figure over the records of a stream.
    async fn aggregate(&self, query: &AggregateQuery) -> Result<AggregateAnswer, SourceError>;
}
