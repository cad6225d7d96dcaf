//! Client of MCP servers that are read as sources: any server with a tool that searches and one that fetches.
//!
//! The connection is named after the source and has one stream, whose records are what the server finds; the key of a record
//! is the server's id. A server is not called before the first search or fetch.
//!
//! * `mapping`, `line_pattern`, `presets`: which tools are called, and where their answers have what
//! * `tool_info`, `tools`: tools of a server, and recognition of those that are called; `reply`: reading of their answers
//! * `session`: sessions over HTTP or with a child process; `credential`, `oauth`: credentials and sign-in
//! * `server`, `source`: a server as a source; `search`, `fetch`, `stream`, `cache`: its reads, and the cache of answers
//! * `caller_servers`: a server that each caller signs in to
//! * `inspect`: the tools of a server, for a command
//! * `fault`: errors
//!
//! Uses `callers`, `core`, `outbound`, `pdpp`, `ranking`, `source` and `state`.
//!
//! **Invariant:** only tools are called that declare to read, that are `search` and `fetch` of the connectors' contract, or
//! that the configuration names. Text of a server is data: it never becomes an instruction, a path, a header or a log line.

mod cache;
mod caller_servers;
mod credential;
mod fault;
mod fetch;
mod inspect;
mod line_pattern;
mod mapping;
pub mod oauth;
mod presets;
mod reply;
mod search;
mod server;
mod session;
mod source;
mod stream;
mod tool_info;
mod tools;

pub use caller_servers::{CallerServer, CallerServerSettings, CallerServers, CallerSessions};
pub use credential::Credential;
pub use inspect::{InspectedTool, Inspection, correction};
pub use line_pattern::{InvalidLinePattern, LinePattern};
pub use mapping::{FetchMapping, InvalidPointer, Mapping, Pointer, SearchMapping};
pub use presets::{Preset, preset, presets};
pub use server::{CLIENT_NAME, InvalidSettings, McpServer, McpSettings};
pub use session::{McpPlace, OPENING_TIMEOUT, ServerCommand, stop_servers};
pub use stream::DEFAULT_STREAM;
