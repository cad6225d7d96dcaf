//! `fetchwell serve`: MCP over standard input and output, or MCP and the records themselves over HTTP.

use std::net::SocketAddr;

use clap::{Args, ValueEnum};
use fetchwell_state::cursor::Skew;
use fetchwell_tools::Profile;

use crate::app::failure::Failure;
use crate::app::imports::create_import_stores;
use crate::app::server::{ServerState, Transport, run_server};
use crate::app::settings::SourceArgs;
use crate::app::state::{SharedStateArgs, StateArgs};
use crate::config::Environment;

/// Serve MCP and the APIs /v1 and /api/v1 over HTTP, or MCP over standard input and output.
#[derive(Debug, Args)]
pub(super) struct Serve {
    #[command(flatten)]
    source: SourceArgs,

    /// Serve over standard input and output.
    #[arg(long, conflicts_with = "listen")]
    stdio: bool,

    /// The address of this machine to serve HTTP at [default: 127.0.0.1:7400]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// The tools a stdio client sees; HTTP clients choose by path (/mcp, /mcp/openai, /mcp/docs).
    #[arg(long, value_enum, default_value_t = ProfileArg::Standard, requires = "stdio")]
    profile: ProfileArg,

    #[command(flatten)]
    state: StateArgs,

    #[command(flatten)]
    shared: SharedStateArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ProfileArg {
    /// All tools.
    Standard,
    /// Exactly search(query) and fetch(id).
    Openai,
    /// Document search: three tools for projects.
    Docs,
}

impl From<ProfileArg> for Profile {
    fn from(profile: ProfileArg) -> Self {
        match profile {
            ProfileArg::Standard => Self::Standard,
            ProfileArg::Openai => Self::OpenAi,
            ProfileArg::Docs => Self::Docs,
        }
    }
}

impl Serve {
    /// Returns true if a client starts the server and uses it over standard input and output.
    pub(super) fn is_stdio(&self) -> bool {
        self.stdio
    }

    pub(super) fn run(self, environment: &Environment, skew: Skew) -> Result<(), Failure> {
        let configured = self.source.configured(environment)?;
        create_import_stores(&configured.settings)?;
        let transport = if self.stdio {
            Transport::Stdio(self.profile.into())
        } else {
            Transport::Http { listen: self.listen }
        };
        let state = ServerState { directory: self.state, shared: self.shared };
        run_server(configured, environment, state, transport, skew)
    }
}
