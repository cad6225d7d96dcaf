//! The configuration file.
//!
//! ```toml
//! listen = "127.0.0.1:7400"
//!
//! [[source]]
//! name = "notes"
//! store = "notes.db"
//!
//! [[source]]
//! name = "work"
//! url = "https://records.example.com"
//! credential = "env:WORK_TOKEN"
//! ```

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use toml::Spanned;

use super::values::{CredentialText, DurationText, Label, SourceTitle};
use super::{CredentialSettings, DEFAULT_CACHE_ROOT, SourcePlace, SourceSettings};
use crate::handle::StreamName;
use crate::source::pdpp::{DEFAULT_DEADLINE, ProviderUrl};
use crate::tools::DEFAULT_CALL_DEADLINE;

/// What a configuration file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSettings {
    /// Where to listen.
    pub listen: Option<SocketAddr>,
    /// The folder for what has to outlive the process, such as the positions of cursors.
    pub state_dir: Option<PathBuf>,
    /// How long a whole call may take.
    pub call_deadline: Duration,
    /// What to serve.
    pub sources: Vec<SourceSettings>,
}

impl FileSettings {
    /// One source, and nothing else said.
    #[must_use]
    pub fn of(source: SourceSettings) -> Self {
        Self { listen: None, state_dir: None, call_deadline: DEFAULT_CALL_DEADLINE, sources: vec![source] }
    }
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
    /// It names nothing to serve.
    #[error("the configuration {} has no [[source]]; add one with `fetchwell source add`", .0.display())]
    Empty(PathBuf),
    /// It cannot be written.
    #[error("the configuration {} cannot be written ({problem}); nothing was changed", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        problem: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    listen: Option<SocketAddr>,
    state_dir: Option<PathBuf>,
    call_deadline: Option<DurationText>,
    #[serde(default)]
    source: Vec<Source>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    name: Spanned<SourceTitle>,
    label: Option<Label>,
    store: Option<PathBuf>,
    #[serde(default, deserialize_with = "provider_url")]
    url: Option<ProviderUrl>,
    credential: Option<CredentialText>,
    cache_root: Option<PathBuf>,
    deadline: Option<DurationText>,
    #[serde(default, deserialize_with = "allowed_streams")]
    streams: Option<Vec<StreamName>>,
}

/// Reads a configuration file that has at least one source.
///
/// # Errors
///
/// It cannot be read, is not valid, or has no source.
pub fn read_file(path: &Path) -> Result<FileSettings, ConfigError> {
    let settings = check_text(&read_text(path)?, path)?;
    if settings.sources.is_empty() { Err(ConfigError::Empty(path.to_owned())) } else { Ok(settings) }
}

/// The text of a configuration file.
///
/// # Errors
///
/// It cannot be read.
pub fn read_text(path: &Path) -> Result<String, ConfigError> {
    fs::read_to_string(path)
        .map_err(|error| ConfigError::Unreadable { path: path.to_owned(), problem: error.to_string() })
}

/// What a text says as the configuration file at `path`. It may have no source.
///
/// # Errors
///
/// It is not valid.
pub fn check_text(text: &str, path: &Path) -> Result<FileSettings, ConfigError> {
    let folder = path.parent().unwrap_or(Path::new(""));
    parse(text, folder).map_err(|problem| ConfigError::Invalid { path: path.to_owned(), problem })
}

fn parse(text: &str, folder: &Path) -> Result<FileSettings, String> {
    let line = |offset: usize| 1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count();
    let file: File = toml::from_str(text).map_err(|error| {
        // The parser's own display quotes the line, which may hold a secret.
        let at = error.span().map_or_else(String::new, |span| format!("line {}: ", line(span.start)));
        format!("{at}{}", error.message().trim_end())
    })?;
    let mut lines = HashMap::new();
    let mut sources = Vec::with_capacity(file.source.len());
    for source in file.source {
        let at = line(source.name.span().start);
        if let Some(earlier) = lines.insert(source.name.get_ref().0.clone(), at) {
            let name = &source.name.get_ref().0;
            return Err(format!(
                "line {at}: there is a source `{name}` on line {earlier} already; give each a name of its own"
            ));
        }
        sources.push(source.settings(folder).map_err(|problem| format!("line {at}: {problem}"))?);
    }
    Ok(FileSettings {
        listen: file.listen,
        state_dir: file.state_dir.map(|path| folder.join(path)),
        call_deadline: file.call_deadline.map_or(DEFAULT_CALL_DEADLINE, |deadline| deadline.0),
        sources,
    })
}

impl Source {
    fn settings(self, folder: &Path) -> Result<SourceSettings, String> {
        let SourceTitle(name) = self.name.into_inner();
        let place = match (self.store, self.url) {
            (Some(path), None) if self.credential.is_none() && self.cache_root.is_none() => {
                SourcePlace::Store { path: folder.join(path) }
            }
            (Some(_), None) => {
                return Err(format!(
                    "source `{name}` is a store, and credential and cache_root are for a source with a url"
                ));
            }
            (None, Some(url)) => {
                let cache_root = self.cache_root.as_deref().unwrap_or(Path::new(DEFAULT_CACHE_ROOT));
                let credential = match &self.credential {
                    None => CredentialSettings::PdppCache(folder.join(cache_root)),
                    Some(credential) => credential.settings(folder, cache_root)?,
                };
                if self.cache_root.is_some() && !matches!(credential, CredentialSettings::PdppCache(_)) {
                    return Err(format!(
                        "source `{name}` has a cache_root, which is for the credential \"pdpp-cache\"; leave one of them out"
                    ));
                }
                SourcePlace::Provider { url, credential }
            }
            (Some(_), Some(_)) | (None, None) => {
                return Err(format!("source `{name}` needs either store or url"));
            }
        };
        Ok(SourceSettings {
            label: self.label.map(|label| label.0),
            deadline: self.deadline.map_or(DEFAULT_DEADLINE, |deadline| deadline.0),
            streams: self.streams,
            ..SourceSettings::new(name, place)
        })
    }
}

fn provider_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ProviderUrl>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(D::Error::custom)
}

/// The most streams that an allow-list names.
const STREAMS_MOST: usize = 200;

fn allowed_streams<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<StreamName>>, D::Error> {
    let streams = Vec::<StreamName>::deserialize(deserializer)?;
    match streams.len() {
        0 => Err(D::Error::custom(
            "streams is empty, which would show nothing; name streams, or leave it out to show all",
        )),
        1..=STREAMS_MOST => Ok(Some(streams)),
        many => Err(D::Error::custom(format!("streams names {many}; name at most {STREAMS_MOST}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::pdpp::CommandLine;

    fn read(text: &str) -> FileSettings {
        parse(text, Path::new("/etc/fetchwell")).unwrap()
    }

    /// The credential of a source with this line.
    fn credential(line: &str) -> CredentialSettings {
        let text = format!("[[source]]\nname = \"work\"\nurl = \"records.example.com\"\n{line}\n");
        match read(&text).sources.remove(0).place {
            SourcePlace::Provider { credential, .. } => credential,
            SourcePlace::Store { .. } => panic!("{text}"),
        }
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let settings = read("state_dir = \"state\"\n[[source]]\nname = \"notes\"\nstore = \"notes.db\"\n");
        assert_eq!(settings.state_dir, Some("/etc/fetchwell/state".into()));
        assert_eq!(
            settings.sources,
            [SourceSettings::new(
                "notes".parse().unwrap(),
                SourcePlace::Store { path: "/etc/fetchwell/notes.db".into() }
            )]
        );
        for (line, expect) in [
            ("", CredentialSettings::PdppCache("/etc/fetchwell/.pdpp".into())),
            ("cache_root = \"c\"", CredentialSettings::PdppCache("/etc/fetchwell/c".into())),
            ("credential = \"file:token\"", CredentialSettings::File("/etc/fetchwell/token".into())),
            ("credential = \"env:T\"", CredentialSettings::Variable("T".to_owned())),
            (
                "credential = \"command:pass work\"",
                CredentialSettings::Command(CommandLine::new(
                    "pass work".to_owned(),
                    "/etc/fetchwell".into(),
                )),
            ),
        ] {
            assert_eq!(credential(line), expect, "{line}");
        }
    }

    #[test]
    fn many_sources_each_have_their_own() {
        let settings = read(
            "listen = \"127.0.0.1:7401\"\ncall_deadline = \"8s\"\n\
             [[source]]\nname = \"work\"\nlabel = \"Work\"\nurl = \"records.example.com\"\ndeadline = \"500ms\"\n\
             streams = [\"messages\", \"files\"]\n\
             [[source]]\nname = \"notes\"\nstore = \"notes.db\"\n",
        );
        assert_eq!(settings.listen, Some("127.0.0.1:7401".parse().unwrap()));
        assert_eq!(settings.call_deadline, Duration::from_secs(8));
        let [work, notes] = settings.sources.as_slice() else { panic!("{settings:?}") };
        assert_eq!((work.name.as_str(), work.label.as_deref()), ("work", Some("Work")));
        assert_eq!(work.deadline, Duration::from_millis(500));
        assert_eq!(work.streams, Some(vec!["messages".parse().unwrap(), "files".parse().unwrap()]));
        assert_eq!((notes.name.as_str(), notes.deadline, &notes.streams), ("notes", DEFAULT_DEADLINE, &None));
        assert!(read("").sources.is_empty());
    }

    #[test]
    fn mistakes_are_named_with_their_lines() {
        let url = "[[source]]\nname = \"a\"\nurl = \"x.example\"\n";
        let store = "[[source]]\nname = \"a\"\nstore = \"x\"\n";
        for (text, expect) in [
            ("[[source]]\nname = \"a\"\n".to_owned(), "line 2: source `a` needs either store or url"),
            (format!("{store}url = \"y\"\n"), "line 2: source `a` needs either store or url"),
            (format!("{store}credential = \"env:T\"\n"), "line 2: source `a` is a store"),
            (format!("{store}cache_root = \"c\"\n"), "line 2: source `a` is a store"),
            ("[[source]]\nname = \"a\"\nstor = \"x\"\n".to_owned(), "line 3: unknown field `stor`"),
            ("lisen = 1\n".to_owned(), "line 1: unknown field `lisen`"),
            ("[[source]]\nname = \"..\"\nstore = \"x\"\n".to_owned(), "line 2: `..` cannot be the name"),
            ("[[source]]\nstore = \"x\"\n".to_owned(), "line 1: missing field `name`"),
            (
                "[[source]]\nname = \"a\"\nurl = \"ftp://x\"\n".to_owned(),
                "line 3: `ftp://x` is not a provider URL",
            ),
            (
                format!("{store}\n[[source]]\nname = \"a\"\nstore = \"y\"\n"),
                "line 6: there is a source `a` on line 2 already",
            ),
            (format!("{url}deadline = \"0s\"\n"), "line 4: `0s` is not between"),
            (format!("{url}deadline = 2\n"), "line 4: invalid type: integer `2`, expected a duration"),
            (format!("{url}deadline_seconds = 2\n"), "line 4: unknown field `deadline_seconds`"),
            (format!("{url}credential = \"sekret\"\n"), "line 4: the credential is none of"),
            (
                format!("{url}credential = \"env:PDPP_OWNER_TOKEN\"\n"),
                "line 4: `PDPP_OWNER_TOKEN` is an owner",
            ),
            (
                format!("{url}credential = \"env:T\"\ncache_root = \"c\"\n"),
                "line 2: source `a` has a cache_root",
            ),
            (format!("{url}streams = []\n"), "line 4: streams is empty"),
            (format!("{url}streams = [\"a\", \"..\"]\n"), "line 4: it holds the path segment"),
            (format!("{url}label = \"\"\n"), "line 4: the label is empty"),
            (format!("{url}credential = \"command:sekret\n"), "line 4: "),
            ("call_deadline = \"2 hours\"\n".to_owned(), "line 1: `2 hours` is not between"),
            ("listen = \"7400\"\n".to_owned(), "line 1: "),
        ] {
            let problem = parse(&text, Path::new("")).unwrap_err();
            assert!(problem.starts_with(expect), "{text}{problem}");
            assert!(!problem.contains("sekret"), "{problem}");
        }
    }
}
