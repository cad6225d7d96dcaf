//! Client of MCP servers that are read as sources.
//!
//! * `oauth`: sign-in at a server's authorization server, and the tokens that are kept
//!
//! Uses `callers`, `core`, `outbound`, `pdpp`, `source` and `state`.

pub mod oauth;
