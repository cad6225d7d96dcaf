//! The sources to serve: their settings, and the `[[source]]` tables.
//!
//! * `mcp`: the keys of MCP servers

mod mcp;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fetchwell_core::handle::{SourceName, StreamName};
use fetchwell_pdpp::{DEFAULT_DEADLINE, ProviderUrl};
use fetchwell_postgres::{DEFAULT_MAX_LAG, PostgresUrl};
use fetchwell_source::contract::PostgresError;
use fetchwell_upstream::{FetchMapping, SearchMapping};
use serde::Deserialize;
use serde::de::{Deserializer, Error};

use self::mcp::{KeyMistake, McpKeys};
pub use self::mcp::{McpEndpoint, McpSource, OAuthClient, ValuePlace, is_protocol_header};
use super::credential::{CredentialSettings, DEFAULT_CACHE_ROOT};
use super::tree::{Mistake, Node};
use super::values::{CredentialText, Label, SourceTitle, without_user_info};

/// The settings of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceSettings {
    /// Name of the source, as in errors.
    pub name: SourceName,
    /// Label for people.
    pub label: Option<String>,
    /// Location of the source.
    pub place: SourcePlace,
    /// Timeout of a request to the source.
    pub deadline: Duration,
    /// Allow-list of streams, or `None` to show all.
    pub streams: Option<Vec<StreamName>>,
}

impl SourceSettings {
    /// Creates settings with defaults.
    #[must_use]
    pub fn new(name: SourceName, place: SourcePlace) -> Self {
        Self { name, label: None, place, deadline: DEFAULT_DEADLINE, streams: None }
    }

    /// Returns true if requests to the source use the token of the caller's request.
    #[must_use]
    pub fn takes_callers_token(&self) -> bool {
        self.has_caller_credential() && !matches!(self.place, SourcePlace::Mcp(_))
    }

    /// Returns true if the source is an MCP server that each caller signs in to. Tokens of this server's own callers are not
    /// sent to it.
    #[must_use]
    pub fn signs_callers_in(&self) -> bool {
        self.has_caller_credential() && matches!(self.place, SourcePlace::Mcp(_))
    }

    /// Returns true if the source is read with the credential of each caller.
    #[must_use]
    pub fn has_caller_credential(&self) -> bool {
        self.place.credential() == Some(&CredentialSettings::Caller)
    }

    /// Returns the maximum time in which a search of a store can wait for the vector of its query. The rest of the deadline
    /// is for the search itself: a second, or half of a short deadline.
    #[must_use]
    pub fn max_query_timeout(&self) -> Duration {
        self.deadline.saturating_sub(SEARCH_RESERVE.min(self.deadline / 2))
    }
}

/// Time of a deadline that is left for the search after the vector of its query.
const SEARCH_RESERVE: Duration = Duration::from_secs(1);

/// The location of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourcePlace {
    /// An embedded store.
    Store {
        /// Path of the store's file.
        path: PathBuf,
    },
    /// A store in PostgreSQL.
    Postgres {
        /// Address of the database.
        url: PostgresUrl,
        /// Read replicas of it.
        replicas: ReplicaSettings,
    },
    /// A remote record server.
    Provider {
        /// URL of the server.
        url: ProviderUrl,
        /// Location of the credential.
        credential: CredentialSettings,
    },
    /// An MCP server.
    Mcp(Box<McpSource>),
}

/// Error of replicas of a place that is no database.
const NO_DATABASE: &str = "read_urls and max_lag need the store of a database";

/// Read replicas of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaSettings {
    /// Addresses of the replicas.
    pub urls: Vec<PostgresUrl>,
    /// Maximum lag of a replica that is read from.
    pub max_lag: Duration,
}

impl Default for ReplicaSettings {
    fn default() -> Self {
        Self { urls: Vec::new(), max_lag: DEFAULT_MAX_LAG }
    }
}

impl SourcePlace {
    /// Returns the place of a store as [`Self::from_store`] does, with read replicas, which only a database has.
    fn with_replicas(
        path: &Path,
        urls: Option<Vec<PathBuf>>,
        max_lag: Option<Duration>,
        folder: &Path,
    ) -> Result<Self, String> {
        let place = Self::from_store(path, folder).map_err(|problem| problem.to_string())?;
        let Self::Postgres { url, mut replicas } = place else {
            return match (urls, max_lag) {
                (None, None) => Ok(place),
                _ => Err(NO_DATABASE.to_owned()),
            };
        };
        for place in urls.unwrap_or_default() {
            let url = PostgresUrl::in_place_of(&place).ok_or("read_urls are not postgres://...")?;
            replicas.urls.push(url.map_err(|problem| problem.to_string())?.below(folder));
        }
        match max_lag {
            Some(_) if replicas.urls.is_empty() => return Err("max_lag needs read_urls".to_owned()),
            Some(max_lag) => replicas.max_lag = max_lag,
            None => {}
        }
        Ok(Self::Postgres { url, replicas })
    }

    /// Returns the path of a store in a file.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        if let Self::Store { path } = self { Some(path) } else { None }
    }

    /// Returns the address of a store in a database.
    #[must_use]
    pub fn database(&self) -> Option<&PostgresUrl> {
        if let Self::Postgres { url, .. } = self { Some(url) } else { None }
    }

    /// Returns true for a store, which commands can read and write as a whole.
    #[must_use]
    pub fn is_store(&self) -> bool {
        matches!(self, Self::Store { .. } | Self::Postgres { .. })
    }

    /// Returns the location of the credential of a record server or an MCP server.
    #[must_use]
    pub fn credential(&self) -> Option<&CredentialSettings> {
        match self {
            Self::Provider { credential, .. } => Some(credential),
            Self::Mcp(server) => match &server.endpoint {
                McpEndpoint::Http { credential, .. } => credential.as_ref(),
                McpEndpoint::Command { .. } => None,
            },
            Self::Store { .. } | Self::Postgres { .. } => None,
        }
    }

    /// Returns the place of a store: a path below `folder`, or the URL of a database.
    ///
    /// # Errors
    ///
    /// The URL is not valid.
    pub fn from_store(place: &Path, folder: &Path) -> Result<Self, PostgresError> {
        Ok(match PostgresUrl::in_place_of(place) {
            None => Self::Store { path: folder.join(place) },
            Some(url) => Self::Postgres { url: url?.below(folder), replicas: ReplicaSettings::default() },
        })
    }
}

impl fmt::Display for SourcePlace {
    /// Writes the path or the URL, without a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store { path } => path.display().fmt(f),
            Self::Postgres { url, .. } => url.fmt(f),
            Self::Provider { url, .. } => url.fmt(f),
            Self::Mcp(server) => server.fmt(f),
        }
    }
}

/// A `[[source]]` table as deserialized.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SourceTable {
    name: SourceTitle,
    label: Option<Label>,
    store: Option<PathBuf>,
    read_urls: Option<Vec<PathBuf>>,
    max_lag: Option<Duration>,
    #[serde(default, deserialize_with = "provider_url")]
    url: Option<ProviderUrl>,
    credential: Option<CredentialText>,
    cache_root: Option<PathBuf>,
    allow_insecure: Option<bool>,
    mcp: Option<String>,
    command: Option<Vec<String>>,
    env: Option<BTreeMap<String, ValuePlace>>,
    headers: Option<BTreeMap<String, ValuePlace>>,
    client_name: Option<String>,
    preset: Option<String>,
    search: Option<SearchMapping>,
    fetch: Option<FetchMapping>,
    oauth: Option<OAuthClient>,
    deadline: Duration,
    #[serde(default, deserialize_with = "allowed_streams")]
    streams: Option<Vec<StreamName>>,
}

/// Validates the sources and the uniqueness of their names.
pub(super) fn sources(
    tree: &Node,
    listed: Vec<SourceTable>,
    folder: &Path,
) -> Result<Vec<SourceSettings>, Mistake> {
    let mut places: HashMap<SourceName, usize> = HashMap::new();
    let mut sources = Vec::with_capacity(listed.len());
    for (number, source) in listed.into_iter().enumerate() {
        let number = number.to_string();
        let path = ["source", &number, "name"];
        let wrong = |problem: String| tree.mistake(&path, problem);
        let name = source.name.0.clone();
        if let Some(earlier) = places.insert(name.clone(), tree.line_of(&path).unwrap_or_default()) {
            return Err(wrong(format!(
                "duplicate source name `{name}`, first on line {earlier}; give each source its own name"
            )));
        }
        if let Some(url) = source.url.as_ref().filter(|url| !url.is_confidential())
            && source.allow_insecure != Some(true)
        {
            let problem = format!(
                "over `{url}` the credential and every query are sent unencrypted; use https, or set allow_insecure = true beside it if no one else can read that network"
            );
            return Err(tree.mistake(&["source", &number, "url"], problem));
        }
        sources.push(source.settings(folder).map_err(|KeyMistake { key, problem }| {
            let key = if key.is_empty() { vec!["name".to_owned()] } else { key };
            let path = ["source", &number].into_iter().chain(key.iter().map(String::as_str));
            tree.mistake(&path.collect::<Vec<_>>(), problem)
        })?);
    }
    Ok(sources)
}

impl SourceTable {
    fn settings(mut self, folder: &Path) -> Result<SourceSettings, KeyMistake> {
        let SourceTitle(name) = self.name.clone();
        let server = self.mcp_keys();
        if server.has_place() {
            let server = self
                .check_mcp_server()
                .and_then(|()| server.settings(self.credential.as_ref(), self.allow_insecure, folder));
            let server = server.map_err(|KeyMistake { key, problem }| {
                let problem = format!("source `{name}`: {problem}");
                KeyMistake { key, problem }
            })?;
            return Ok(self.settings_at(SourcePlace::Mcp(Box::new(server))));
        }
        if !server.is_empty() {
            return Err(format!(
                "source `{name}`: env, headers, oauth, client_name, preset, search and fetch need mcp or command, an MCP server"
            )
            .into());
        }
        let place = self.other_place(&name, folder)?;
        Ok(self.settings_at(place))
    }

    /// Refuses keys that mean nothing for an MCP server.
    fn check_mcp_server(&self) -> Result<(), KeyMistake> {
        let another = "this is another source; write it into a [[source]] table of its own";
        let of_store = "this is for a store in a database; remove it";
        let keys = [
            ("store", self.store.is_some(), another),
            ("url", self.url.is_some(), another),
            ("read_urls", self.read_urls.is_some(), of_store),
            ("max_lag", self.max_lag.is_some(), of_store),
            (
                "cache_root",
                self.cache_root.is_some(),
                "this is for the credential \"pdpp-cache\" of a record server; remove it",
            ),
            (
                "streams",
                self.streams.is_some(),
                "an MCP server has one stream, so there is none to choose; remove streams. The callers that may read the \
                 source are those with its name in their `sources`",
            ),
        ];
        match keys.into_iter().find(|(_, is_set, _)| *is_set) {
            Some((key, _, problem)) => Err(KeyMistake::new(&[key], problem)),
            None => Ok(()),
        }
    }

    /// Takes the place of a store or a record server.
    fn other_place(&mut self, name: &SourceName, folder: &Path) -> Result<SourcePlace, String> {
        let place = match (self.store.take(), self.url.take()) {
            (Some(path), None)
                if self.credential.is_none()
                    && self.cache_root.is_none()
                    && self.allow_insecure.is_none() =>
            {
                SourcePlace::with_replicas(&path, self.read_urls.take(), self.max_lag, folder)
                    .map_err(|problem| format!("source `{name}`: {problem}"))?
            }
            (Some(_), None) => {
                return Err(format!(
                    "source `{name}` is a store; credential, cache_root and allow_insecure need a url"
                ));
            }
            (None, Some(url)) => {
                if self.read_urls.is_some() || self.max_lag.is_some() {
                    return Err(format!("source `{name}`: {NO_DATABASE}"));
                }
                let cache_root = self.cache_root.as_deref().unwrap_or(Path::new(DEFAULT_CACHE_ROOT));
                let credential = match &self.credential {
                    None => CredentialSettings::PdppCache(folder.join(cache_root)),
                    Some(credential) => credential.settings(folder, cache_root)?,
                };
                if self.cache_root.is_some() && !matches!(credential, CredentialSettings::PdppCache(_)) {
                    return Err(format!(
                        "source `{name}` has a cache_root, which needs the credential \"pdpp-cache\"; remove one of them"
                    ));
                }
                SourcePlace::Provider { url, credential }
            }
            (Some(_), Some(_)) | (None, None) => {
                return Err(format!("source `{name}` needs either store, url, mcp or command"));
            }
        };
        Ok(place)
    }

    /// Takes the keys that only an MCP server has.
    fn mcp_keys(&mut self) -> McpKeys {
        McpKeys {
            mcp: self.mcp.take(),
            command: self.command.take(),
            env: self.env.take(),
            headers: self.headers.take(),
            client_name: self.client_name.take(),
            preset: self.preset.take(),
            search: self.search.take(),
            fetch: self.fetch.take(),
            oauth: self.oauth.take(),
        }
    }

    fn settings_at(self, place: SourcePlace) -> SourceSettings {
        SourceSettings {
            label: self.label.map(|label| label.0),
            deadline: self.deadline,
            streams: self.streams,
            ..SourceSettings::new(self.name.0, place)
        }
    }
}

fn provider_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ProviderUrl>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let text = without_user_info(&text).map_err(D::Error::custom)?;
    // The key `allow_insecure` decides about http and is checked later.
    ProviderUrl::parse_insecure(text).map(Some).map_err(D::Error::custom)
}

/// Maximum number of streams in an allow-list.
const MAX_STREAMS: usize = 200;

fn allowed_streams<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<StreamName>>, D::Error> {
    let streams = Vec::<StreamName>::deserialize(deserializer)?;
    match streams.len() {
        0 => Err(D::Error::custom(
            "streams is empty, which hides all streams; name some, or remove the key to show all",
        )),
        1..=MAX_STREAMS => Ok(Some(streams)),
        many => Err(D::Error::custom(format!("streams has {many} names; the limit is {MAX_STREAMS}"))),
    }
}
