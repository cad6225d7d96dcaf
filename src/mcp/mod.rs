//! The rim: where tools meet the Model Context Protocol.
//!
//! Only this room names `rmcp`. It lists the tools of a profile, calls them, and turns what they answer
//! into results: one payload in two identical channels, or an error whose text is enough by itself.

#[cfg(feature = "conformance")]
mod conformance;
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
pub(crate) use http_service::{Form, MAX_REQUEST_BYTES, McpService};
pub(crate) use message::{NoMessage, outline};
pub use stdio::serve_stdio;
pub use tool_list::tool_list_json;
