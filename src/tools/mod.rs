//! The tools: one file each, with its arguments, its payload and its `run`.
//!
//! A tool takes the arguments a model sent, as JSON, and gives a `Payload` that fits its budget, or a
//! `ToolError` that is enough by itself. It knows sources by their trait, and nothing of MCP.

mod aggregate;
mod arguments;
mod blocking;
mod change_tokens;
mod chunked;
mod error;
mod error_body;
mod example;
mod fetch;
mod field_chunk;
mod no_results;
mod normalize;
mod paging;
mod parts;
mod payload;
mod previews;
mod query_records;
mod read_record_field;
mod record_page;
mod record_uri;
mod resource;
mod schema;
mod search;
mod seen_ids;
mod shown_record;
mod toolbox;
mod toolboxes;
mod unavailable;

use crate::callers::RecordPages;

pub use aggregate::AGGREGATE;
pub(crate) use blocking::beside_other_calls;
pub use change_tokens::{ChangeTokenSealer, MAX_CHANGES_TOKEN};
pub(crate) use chunked::{ChunkStart, ChunkedText, TextQuery, chunked, chunked_after};
pub use error::{Asked, Overrun, ToolError};
pub use error_body::ErrorBody;
pub use fetch::{FETCH, FETCH_OPENAI};
pub(crate) use field_chunk::chunk_most;
pub(crate) use paging::{Page, Paging, SoFar, begin};
pub use payload::Payload;
pub(crate) use previews::Previews;
pub use query_records::QUERY_RECORDS;
pub use read_record_field::READ_RECORD_FIELD;
pub use resource::{RESOURCE_TEMPLATES, ResourceCall, ResourceTemplate, resource_call};
pub use schema::SCHEMA;
pub use search::{SEARCH, SEARCH_OPENAI};
pub use toolbox::{DEFAULT_CALL_DEADLINE, Profile, Toolbox};
pub use toolboxes::{CallerSettings, CallerSources, CallerToolboxes, Permit, SharedToolbox};
pub use unavailable::ShownUnavailable;

/// What a client is told of a tool. All of it is constant: no record, stream or connection text ever
/// gets in.
#[derive(Debug, Clone, Copy)]
pub struct ToolSpec {
    /// The name it is called by.
    pub name: &'static str,
    /// A title for people.
    pub title: &'static str,
    /// What it does, for a model.
    pub description: &'static str,
    /// JSON Schema of its arguments.
    pub input_schema: &'static str,
    /// Other names that arguments are accepted by, each with the declared one.
    pub aliases: &'static [(&'static str, &'static str)],
    /// JSON Schema of its payload.
    pub output_schema: &'static str,
}
