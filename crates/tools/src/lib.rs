//! The tools that clients call.
//!
//! A tool takes arguments as JSON and returns a [`Payload`] within its budget, or a [`ToolError`]. It reads a source by its
//! trait and does not know MCP. Each tool has a folder with its schemas:
//!
//! * `search`, `fetch`, `schema`, `query_records`, `aggregate`, `read_record_field`: the tools.
//! * `search_docs`, `get_document`, `list_categories`: the tools of document search; `projects`: what they share.
//! * `tool`: the interface of a tool.
//! * `profile`, `registry`: the profiles, the tools of each, and calls by the name of a tool.
//! * `toolbox`: source, settings and caches of the calls of one grant.
//! * `arguments`: arguments as clients send them, and typed ones.
//! * `paging`: pages of a list and the cursors between them.
//! * `printed_ids`: hits with an id of the source's own, as they were printed.
//! * `answer`: building of answers.
//! * `cache`: caches of a toolbox.
//! * `error`: errors, their hints and their JSON.
//! * `resource`: tool calls in the form of URIs; `project_resource`: projects of documents.
//! * `change_tokens`: sealed tokens of `changes_since`.
//! * `toolboxes`: the toolbox of each grant.
//! * `documents`: the search of documents, its cache and stages.
//!
//! Uses `callers`, `core`, `ranking`, `source`, `state` and `telemetry`.

mod aggregate;
mod answer;
mod arguments;
mod cache;
mod change_tokens;
pub mod documents;
mod error;
mod fetch;
mod get_document;
mod list_categories;
mod paging;
mod printed_ids;
mod profile;
mod project_resource;
mod projects;
mod query_records;
mod read_record_field;
mod registry;
mod resource;
mod schema;
mod search;
mod search_docs;
mod tool;
mod toolbox;
mod toolboxes;

pub use answer::{Payload, continue_chunked, read_chunked, run_blocking};
pub use cache::{ChunkStart, ChunkedText, Previews, TextQuery};
pub use change_tokens::ChangeTokenSealer;
pub use error::{ErrorBody, ErrorContext, Overrun, ShownUnavailable, SourceHints, ToolError};
pub use paging::{Page, PageState, Paging, begin};
pub use profile::Profile;
pub use project_resource::ProjectResource;
pub use read_record_field::max_chunk_bytes;
pub use resource::{PROJECT_TEMPLATES, RESOURCE_TEMPLATES, ResourceCall, ResourceTemplate, resource_call};
pub use search::{
    ExplainedSearch, ExplanationLine, OperatorWarning, ParsedQuery, SearchExplanation, SearchReader,
    dated_position, explanation_lines, parse_dated, parse_query, parse_since, stage_lines,
};
pub use tool::{Example, ToolSpec};
pub use toolbox::{DEFAULT_CALL_DEADLINE, Toolbox};
pub use toolboxes::{
    CallerSettings, CallerSources, CallerToolboxes, GrantToolbox, Permit, SharedToolbox, SignInStart,
    SignInState, SourceSignIn, SourceSignIns,
};
