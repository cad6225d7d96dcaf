//! Where a server keeps what outlives it: the keys and the positions of cursors, and what it recorded of calls.

use std::path::PathBuf;

use clap::Args;
use directories::ProjectDirs;

use super::failure::Failure;

#[derive(Debug, Clone, Args)]
pub(super) struct StateArgs {
    /// Where HTTP servers keep cursors, their keys and records of calls [default: the user's state directory]
    #[arg(long, global = true, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

impl StateArgs {
    /// The directory that the flag names, or else a configuration, or else the system.
    pub(super) fn directory(self, configured: Option<PathBuf>) -> Result<PathBuf, Failure> {
        let usual = || {
            let dirs = ProjectDirs::from("", "", "fetchwell")?;
            Some(dirs.state_dir().unwrap_or_else(|| dirs.data_local_dir()).to_owned())
        };
        self.state_dir
            .or(configured)
            .or_else(usual)
            .ok_or_else(|| Failure::new("the system names no directory for state; name one with --state-dir"))
    }
}
