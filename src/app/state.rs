//! State of a server: its directory with cursor keys, positions of cursors and telemetry, and a shared Redis.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use fetchwell_state::StateError;
use fetchwell_state::cursor::VALID_FOR;
use fetchwell_state::redis::{PasswordSource, RedisState, RedisUrl};

use super::failure::Failure;
use super::secret::secret;
use crate::config::{Environment, SecretPlace, check_text, read_text, users_state_dir};

#[derive(Debug, Clone, Args)]
pub(crate) struct StateArgs {
    /// The folder for cursors, their keys and, over HTTP, records of calls; `none` for memory only [default: the
    /// user's state directory]
    #[arg(long, global = true, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

/// The Redis that several servers share.
#[derive(Debug, Clone, Args)]
pub(crate) struct SharedStateArgs {
    /// A Redis with the cursors and other short-lived state that several servers share: `redis://HOST:PORT/NUMBER`
    // Text, because clap would show a password in an invalid URL.
    #[arg(long = "state", value_name = "URL")]
    url: Option<String>,
}

impl SharedStateArgs {
    /// Prepares the connection to the Redis of the flag or else of the configuration, if there is one. Nothing is sent.
    pub(crate) fn open(
        self,
        configured: Option<&RedisUrl>,
        environment: &Environment,
    ) -> Result<Option<RedisState>, Failure> {
        let named = self.url.map(|text| text.parse::<RedisUrl>()).transpose();
        let named = named.map_err(|error| Failure::usage(&error))?;
        let Some(url) = named.or_else(|| configured.cloned()) else { return Ok(None) };
        let password = match url.password() {
            None => None,
            Some(PasswordSource::Variable(name)) => Some(SecretPlace::Variable(name.clone())),
            Some(PasswordSource::File(path)) => Some(SecretPlace::File(path.clone())),
        };
        let password =
            password.map(|place| secret(&place, environment, "the password of `state`")).transpose()?;
        Ok(Some(RedisState::new(url, password.as_ref()).map_err(StateError::from)?))
    }
}

/// The state directory of a server, for commands that look at it.
#[derive(Debug, Args)]
pub(crate) struct ServerStateArgs {
    #[command(flatten)]
    state: StateArgs,

    /// The configuration file of the server, which may set its state directory.
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "state_dir")]
    config: Option<PathBuf>,
}

impl ServerStateArgs {
    /// Returns the directory from the flag, the configuration file or the system's default.
    pub(crate) fn directory(self) -> Result<PathBuf, Failure> {
        self.directory_and_ttl().map(|(directory, _)| directory)
    }

    /// Returns the directory with the lifetime of cursors, which only a configuration file can change.
    pub(crate) fn directory_and_ttl(self) -> Result<(PathBuf, Duration), Failure> {
        let (configured, valid_for) = match &self.config {
            None => (None, VALID_FOR),
            Some(path) => {
                let settings = check_text(&read_text(path)?, path)?;
                (settings.state_dir, settings.cursor_ttl)
            }
        };
        let directory = self.state.server_directory(configured)?.ok_or_else(|| {
            Failure::usage(&"a server with `--state-dir none` stores nothing; name a directory")
        })?;
        Ok((directory, valid_for))
    }
}

/// Value of `--state-dir` for a server that keeps its state in memory.
const NONE: &str = "none";

impl StateArgs {
    /// Returns the directory of a server, or `None` if it keeps its state in memory.
    pub(crate) fn server_directory(self, configured: Option<PathBuf>) -> Result<Option<PathBuf>, Failure> {
        if self.state_dir.as_ref().is_some_and(|directory| directory.as_os_str() == NONE) {
            return Ok(None);
        }
        self.directory(configured).map(Some)
    }

    /// Returns the directory from the flag, the configuration or the system's default.
    fn directory(self, configured: Option<PathBuf>) -> Result<PathBuf, Failure> {
        self.state_dir
            .or(configured)
            .or_else(users_state_dir)
            .ok_or_else(|| Failure::new("the user's state directory is unknown; name one with --state-dir"))
    }
}
