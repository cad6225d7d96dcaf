//! The configuration file.
//!
//! ```toml
//! listen = "127.0.0.1:7400"
//!
//! [[source]]
//! name = "notes"
//! store = "notes.db"
//! ```

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::{DEFAULT_CACHE_ROOT, SourcePlace, SourceSettings};
use crate::handle::SourceName;
use crate::source::pdpp::{DEFAULT_DEADLINE, ProviderUrl};

/// What a configuration file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSettings {
    /// Where to listen.
    pub listen: Option<SocketAddr>,
    /// What to serve.
    pub source: SourceSettings,
}

/// Why a configuration file is refused. The message names the file, and the line where it can.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("the configuration {} cannot be read ({problem}); check the path", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        problem: String,
    },
    /// It is not valid.
    #[error("the configuration {} is not valid: {problem}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong, with its line where it is known.
        problem: String,
    },
}

/// The longest deadline of a call, in seconds. No client waits for an hour.
const DEADLINE_SECONDS_MOST: u64 = 3_600;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    listen: Option<SocketAddr>,
    source: Vec<Source>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    name: SourceName,
    store: Option<PathBuf>,
    url: Option<String>,
    cache_root: Option<PathBuf>,
    deadline_seconds: Option<u64>,
}

/// Reads a configuration file.
///
/// # Errors
///
/// It cannot be read, or is not valid.
pub fn read_file(path: &Path) -> Result<FileSettings, ConfigError> {
    let text = fs::read_to_string(path)
        .map_err(|error| ConfigError::Unreadable { path: path.to_owned(), problem: error.to_string() })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    parse(&text, folder).map_err(|problem| ConfigError::Invalid { path: path.to_owned(), problem })
}

fn parse(text: &str, folder: &Path) -> Result<FileSettings, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    let [source] = <[Source; 1]>::try_from(file.source).map_err(|sources| {
        format!("it has {} [[source]] tables, and one is served at a time; keep one", sources.len())
    })?;
    let place = match (source.store, source.url) {
        (Some(path), None) if source.cache_root.is_none() && source.deadline_seconds.is_none() => {
            SourcePlace::Store { path: folder.join(path) }
        }
        (None, Some(url)) => SourcePlace::Provider {
            url: url.parse::<ProviderUrl>().map_err(|error| error.to_string())?,
            cache_root: folder.join(source.cache_root.unwrap_or_else(|| DEFAULT_CACHE_ROOT.into())),
            deadline: match source.deadline_seconds {
                None => DEFAULT_DEADLINE,
                Some(seconds) if !(1..=DEADLINE_SECONDS_MOST).contains(&seconds) => {
                    return Err(format!(
                        "deadline_seconds is {seconds}; give at least 1 and at most {DEADLINE_SECONDS_MOST}"
                    ));
                }
                Some(seconds) => Duration::from_secs(seconds),
            },
        },
        (Some(_), None) => {
            return Err("cache_root and deadline_seconds are for a source with a url".to_owned());
        }
        _ => return Err(format!("source `{}` needs either store or url", source.name)),
    };
    Ok(FileSettings { listen: file.listen, source: SourceSettings { name: source.name, place } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_file() {
        let settings =
            parse("[[source]]\nname = \"notes\"\nstore = \"notes.db\"\n", Path::new("/etc/fetchwell"))
                .unwrap();
        assert_eq!(settings.source.place, SourcePlace::Store { path: "/etc/fetchwell/notes.db".into() });
        let text = "listen = \"127.0.0.1:7401\"\n[[source]]\nname = \"work\"\nurl = \"records.example.com\"\ndeadline_seconds = 2\n";
        let settings = parse(text, Path::new("/etc/fetchwell")).unwrap();
        assert_eq!(settings.listen, Some("127.0.0.1:7401".parse().unwrap()));
        let SourcePlace::Provider { url, cache_root, deadline } = settings.source.place else { panic!() };
        assert_eq!(url.to_string(), "https://records.example.com");
        assert_eq!(cache_root, Path::new("/etc/fetchwell/.pdpp"));
        assert_eq!(deadline, Duration::from_secs(2));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, expect) in [
            ("", "source"),
            ("[[source]]\nname = \"a\"\n", "needs either store or url"),
            ("[[source]]\nname = \"a\"\nstore = \"x\"\nurl = \"y\"\n", "needs either store or url"),
            ("[[source]]\nname = \"a\"\nstor = \"x\"\n", "line 3"),
            ("[[source]]\nname = \"..\"\nstore = \"x\"\n", "line 2"),
            ("[[source]]\nname = \"a\"\nurl = \"ftp://x\"\n", "not a provider URL"),
            (
                "[[source]]\nname = \"a\"\nstore = \"x\"\n[[source]]\nname = \"b\"\nstore = \"y\"\n",
                "2 [[source]] tables",
            ),
            ("[[source]]\nname = \"a\"\nurl = \"x.example\"\ndeadline_seconds = 0\n", "at least 1"),
            (
                "[[source]]\nname = \"a\"\nurl = \"x.example\"\ndeadline_seconds = 9223372036854775807\n",
                "at most 3600",
            ),
        ] {
            let problem = parse(text, Path::new("")).unwrap_err();
            assert!(problem.contains(expect), "{problem}");
        }
    }
}
