//! fetchwell: one binary that lets any MCP client search and read records across many connected accounts.
//!
//! The binary calls [`run`]. ARCHITECTURE.md describes this crate and those in `crates/`, which are not a stable API.
//!
//! * `config`: the configuration, public for tests and fuzz targets
//! * `app`: sources, callers and background work, put together from flags and files
//! * `cli`: the commands

mod app;
mod cli;
pub mod config;

pub use self::cli::run;
