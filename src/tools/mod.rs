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
mod fetch;
mod field_chunk;
mod no_results;
mod normalize;
mod paging;
mod parts;
mod payload;
mod previews;
mod profile;
mod query_records;
mod read_record_field;
mod record_page;
mod record_uri;
mod registry;
mod resource;
mod schema;
mod search;
mod seen_ids;
mod shown_record;
mod source_hints;
mod tool;
mod toolbox;
mod toolboxes;
mod unavailable;

pub(crate) use blocking::run_blocking;
pub use change_tokens::{ChangeTokenSealer, MAX_CHANGES_TOKEN};
pub(crate) use chunked::{ChunkStart, ChunkedText, TextQuery, continue_chunked, read_chunked};
pub use error::{Overrun, ToolError};
pub use error_body::ErrorBody;
pub(crate) use field_chunk::max_chunk_bytes;
pub(crate) use paging::{Page, PageState, Paging, begin};
pub use payload::Payload;
pub(crate) use previews::Previews;
pub use profile::Profile;
pub use resource::{RESOURCE_TEMPLATES, ResourceCall, ResourceTemplate, resource_call};
pub use source_hints::{ErrorContext, SourceHints};
pub use tool::{Example, ToolSpec};
pub use toolbox::{DEFAULT_CALL_DEADLINE, Toolbox};
pub use toolboxes::{CallerSettings, CallerSources, CallerToolboxes, Permit, SharedToolbox};
pub use unavailable::ShownUnavailable;
