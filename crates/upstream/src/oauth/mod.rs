//! Sign-in at the authorization server of an MCP server, and the tokens that are kept.
