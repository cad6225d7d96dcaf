//! The Model Context Protocol adapter.
//!
//! Only this module uses `rmcp`. It lists the tools of a profile, calls them, and converts their output into results:
//! one payload in two identical channels, or an error with a text that is sufficient by itself.
//!
//! * `handler`: the protocol's requests, the declared capabilities, and the refusal of prompts and completions
//! * `tool_list`, `resources`, `result`: conversion of tools, resources and results
//! * `stdio`, `end_of_input`, `in_flight`: the stdio transport and its backpressure
//! * `http_service`: the Streamable HTTP transport
//! * `direct`: its tool calls without a session
//! * `message`: validation of JSON-RPC messages before they are parsed
//! * `conformance`: fixtures of the official conformance suite, behind a feature
//!
//! Uses `callers`, `core`, `telemetry` and `tools`.

#[cfg(feature = "conformance")]
mod conformance;
mod direct;
mod end_of_input;
mod handler;
mod http_service;
mod in_flight;
mod message;
mod resources;
mod result;
mod stdio;
mod tool_list;

#[cfg(feature = "conformance")]
pub use conformance::Server;
#[cfg(not(feature = "conformance"))]
pub use handler::Server;
#[cfg(feature = "conformance")]
pub use handler::Server as ShippedServer;
pub use handler::instructions;
pub use http_service::{Form, MAX_REQUEST_BYTES, McpService};
pub use message::{NoMessage, outline};
pub use stdio::serve_stdio;
pub use tool_list::tool_list_json;
