//! fetchwell: one binary that lets any MCP client search and read records across many connected
//! accounts.
//!
//! The crate is a row of rooms along the way of one call; ARCHITECTURE.md has the map. Rooms to the
//! left know nothing of the rooms to their right:
//!
//! ```text
//! memory, handle, record, fit, state, cursor, outbound, callers  ->  source  ->  tools  ->  mcp  ->  http  ->  app  ->  cli
//! ```

mod app;
pub mod callers;
pub mod cli;
pub mod config;
pub mod connectors;
pub mod cursor;
mod eval;
pub mod fit;
pub mod handle;
pub mod http;
pub mod mcp;
mod memory;
mod outbound;
pub mod record;
pub mod source;
pub mod state;
pub mod telemetry;
mod terminal;
pub mod tools;
