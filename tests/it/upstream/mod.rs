//! MCP servers as sources.

mod servers;
