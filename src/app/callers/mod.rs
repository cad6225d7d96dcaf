//! Callers of a server: the sources that each may read, and their sign-ins at the servers of sources.
//!
//! * `sources`: the sources of each caller, opened once for all callers or for each grant
//! * `sign_ins`: MCP servers that each caller signs in to; `open_servers`: what of them outlasts a reload

mod open_servers;
mod sign_ins;
mod sources;

pub(crate) use self::open_servers::OpenServers;
pub(crate) use self::sign_ins::SignInStorage;
pub(crate) use self::sources::ConfiguredSources;
