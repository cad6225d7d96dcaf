//! Record servers, remote or embedded, behind one trait.
//!
//! A [`Source`] answers three questions: what is there ([`Source::schema`]), what matches
//! ([`Source::search`]) and what does this record say ([`Source::record`]). The embedded store
//! ([`store`]) and the remote client ([`pdpp`]) implement it; tools know nothing else of them.
//!
//! Nothing here knows MCP. What a source sends is data: it never becomes a header, a path, a log line
//! or an instruction.

mod error;
pub mod pdpp;
mod query;
pub mod store;

use std::fmt;

use async_trait::async_trait;

pub use error::{ConnectionChoice, ProtocolFault, Refusal, SourceError};
pub use query::{RecordQuery, SearchPage, SearchPosition, SearchQuery};

use crate::handle::SourceName;
use crate::record::{Record, Schema};

/// One record server. Dropping the future of a call abandons the call.
#[async_trait]
pub trait Source: Send + Sync + fmt::Debug {
    /// How errors name it.
    fn name(&self) -> &SourceName;

    /// Its connections and their streams.
    async fn schema(&self) -> Result<Schema, SourceError>;

    /// The best matches of a query, in the source's order, from a position on.
    async fn search(&self, query: &SearchQuery) -> Result<SearchPage, SourceError>;

    /// One record.
    async fn record(&self, query: &RecordQuery) -> Result<Record, SourceError>;
}
