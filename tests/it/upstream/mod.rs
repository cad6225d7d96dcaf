//! MCP servers as sources.
//!
//! * `own_binary`: this program as the server, over stdio and HTTP; servers that do not answer

mod own_binary;
