//! fetchwell: one binary that lets any MCP client search and read records across many connected accounts.
//!
//! The binary calls [`run`]. The public modules are used by tests, benches and fuzz targets, and are not a stable API.
//! ARCHITECTURE.md describes them. A module imports only modules to its left:
//!
//! ```text
//! memory, lru, hex, saturate, handle, record, fit, state, cursor, outbound, callers, embedding  ->  source  ->  docs  ->  tools  ->  mcp  ->  http  ->  app  ->  cli
//! ```

mod app;
pub mod callers;
mod cli;
pub mod config;
pub mod connectors;
pub mod cursor;
pub mod docs;
pub mod embedding;
mod eval;
pub mod fit;
pub mod handle;
mod hex;
pub mod http;
mod lru;
pub mod mcp;
mod memory;
mod outbound;
pub mod record;
mod saturate;
pub mod source;
pub mod state;
pub mod telemetry;
mod terminal;
pub mod tools;

pub use self::cli::run;
