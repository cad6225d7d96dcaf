//! MCP over stdio and HTTP, as clients use it.

mod bad_messages;
mod bundle;
mod http;
mod refused_methods;
mod rmcp_client;
mod stdio;
mod stdio_in_flight;
