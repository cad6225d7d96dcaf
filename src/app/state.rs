//! State directory of a server: cursor keys, positions of cursors, and telemetry.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use directories::ProjectDirs;

use super::failure::Failure;
use crate::config::{check_text, read_text};
use crate::cursor::VALID_FOR;

#[derive(Debug, Clone, Args)]
pub(crate) struct StateArgs {
    /// The folder for cursors, their keys and, over HTTP, records of calls; `none` for memory only [default: the
    /// user's state directory]
    #[arg(long, global = true, value_name = "DIR")]
    state_dir: Option<PathBuf>,
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
        let usual = || {
            let dirs = ProjectDirs::from("", "", "fetchwell")?;
            Some(dirs.state_dir().unwrap_or_else(|| dirs.data_local_dir()).to_owned())
        };
        self.state_dir
            .or(configured)
            .or_else(usual)
            .ok_or_else(|| Failure::new("the user's state directory is unknown; name one with --state-dir"))
    }
}
