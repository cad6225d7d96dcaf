//! Configuration: which source to serve, from flags or a TOML file.
//!
//! Relative paths in a file are relative to the file, so that it works wherever a client starts the
//! program. Unknown keys are refused with their line.

mod env;
mod file;

use std::path::PathBuf;
use std::time::Duration;

pub use env::{Environment, environment};
pub use file::{ConfigError, FileSettings, read_file};

use crate::handle::SourceName;
use crate::source::pdpp::ProviderUrl;

/// One source, as it was configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceSettings {
    /// How errors name it.
    pub name: SourceName,
    /// Where it is.
    pub place: SourcePlace,
}

/// Where a source is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourcePlace {
    /// An embedded store.
    Store {
        /// Its file.
        path: PathBuf,
    },
    /// A remote record server.
    Provider {
        /// Its URL.
        url: ProviderUrl,
        /// The folder that `pdpp connect` keeps credentials in.
        cache_root: PathBuf,
        /// How long a call may take.
        deadline: Duration,
    },
}

/// Where `pdpp connect` keeps credentials when nothing else is said.
pub const DEFAULT_CACHE_ROOT: &str = ".pdpp";
