//! MCP servers in the files of clients, which can be sources.
//!
//! * `find`: the servers, each once
//! * `offer`: an entry as a source, `bridge`: servers behind `mcp-remote`, `secret`: recognition of secrets
//! * `config`: the user's configuration, `add`: asks the chosen servers what they have, and adds them to it
//! * `report`: the results
//!
//! **Invariant:** finding starts and calls nothing. No secret of a client's file is written, printed or logged: `secret` decides
//! which values are copied, and a variable stands for each other one.

mod add;
mod bridge;
mod config;
mod find;
mod offer;
mod report;
mod secret;

pub(super) use self::add::add_servers;
pub(super) use self::config::UserConfig;
pub(super) use self::find::{FoundServers, McpCandidate, find_servers};
pub(super) use self::report::SourceReport;
