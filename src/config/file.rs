//! The configuration file, which is TOML as here, or YAML depending on the extension of its name.
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
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::auth::{AuthSettings, AuthTable};
use super::context_protection::ProtectionTable;
use super::embedding::{ConfiguredEmbedding, EmbeddingTable};
use super::error::ConfigError;
use super::http::{HttpSettings, HttpTable, RateLimitTable, TlsTable};
use super::imports::{ImportSettings, ImportTable, imports};
use super::rerank::{ConfiguredRerank, RerankTable};
use super::telemetry::{AuditTable, TelemetryTable};
use super::text::read_text;
use super::tree::{Mistake, Node, key_of};
use super::values::{Count, CredentialText, DurationText, Label, SourceTitle, parsed, without_user_info};
use super::{CredentialSettings, DEFAULT_CACHE_ROOT, Environment, NO_DATABASE, SourcePlace, SourceSettings};
use crate::cursor::VALID_FOR;
use crate::fit::Protection;
use crate::handle::{SourceName, StreamName};
use crate::http::{CallerCheck, DEFAULT_LISTEN, ListenError, PublicUrl, RateLimit, may_listen};
use crate::source::pdpp::{DEFAULT_DEADLINE, ProviderUrl};
use crate::state::redis::RedisUrl;
use crate::telemetry::{OtlpEndpoint, RECORDS_IN_MEMORY};
use crate::tools::DEFAULT_CALL_DEADLINE;

/// The settings of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSettings {
    /// Address of the HTTP server.
    pub listen: Option<SocketAddr>,
    /// Separate address for `/health` and `/metrics`, which requires no token.
    pub ops_listen: Option<SocketAddr>,
    /// Folder for state that outlives the process, such as the positions of cursors.
    pub state_dir: Option<PathBuf>,
    /// Redis with the short-lived state that several servers share, or `None` if each has its own.
    pub state: Option<RedisUrl>,
    /// Lifetime of a cursor.
    pub cursor_ttl: Duration,
    /// Timeout of a whole call.
    pub call_deadline: Duration,
    /// Sources to serve.
    pub sources: Vec<SourceSettings>,
    /// Limits of responses.
    pub protection: Protection,
    /// Rate limit of a client over HTTP, or `None` for no limit.
    pub rate_limit: Option<RateLimit>,
    /// Number of calls with records in memory.
    pub ring: usize,
    /// Collector of spans, or `None` to export none.
    pub otlp_endpoint: Option<OtlpEndpoint>,
    /// True if spans may be sent over plain http to another machine.
    pub allow_insecure_spans: bool,
    /// File of the audit log, or `None` for none.
    pub audit: Option<PathBuf>,
    /// Authentication over HTTP, or `None` if none is required.
    pub auth: Option<AuthSettings>,
    /// Settings of the HTTP server.
    pub http: HttpSettings,
    /// Embedding model for search by meaning, or `None` for none.
    pub embedding: Option<ConfiguredEmbedding>,
    /// Model that reorders the first hits of a search, or `None` for none.
    pub rerank: Option<ConfiguredRerank>,
    /// Files and folders that a server keeps current.
    pub imports: Vec<ImportSettings>,
    /// False if a server remembers no searches of documents.
    pub search_history: bool,
}

impl FileSettings {
    /// Creates the settings of one source without a file, with the overrides of the environment.
    ///
    /// # Errors
    ///
    /// A variable has an invalid value.
    pub fn new(source: SourceSettings, environment: &Environment) -> Result<Self, ConfigError> {
        Ok(Self {
            listen: None,
            ops_listen: None,
            state_dir: None,
            state: None,
            cursor_ttl: VALID_FOR,
            call_deadline: DEFAULT_CALL_DEADLINE,
            sources: vec![source],
            protection: ProtectionTable::default().with(environment)?.check_without_file()?,
            rate_limit: None,
            ring: RECORDS_IN_MEMORY,
            otlp_endpoint: None,
            allow_insecure_spans: false,
            audit: None,
            auth: None,
            http: HttpSettings::default(),
            embedding: None,
            rerank: None,
            imports: Vec::new(),
            search_history: true,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    listen: Option<SocketAddr>,
    ops_listen: Option<SocketAddr>,
    #[serde(default, deserialize_with = "parsed")]
    public_url: Option<PublicUrl>,
    state_dir: Option<PathBuf>,
    #[serde(default, deserialize_with = "parsed")]
    state: Option<RedisUrl>,
    cursor_ttl: Option<DurationText>,
    call_deadline: Option<DurationText>,
    #[serde(default)]
    source: Vec<Source>,
    #[serde(default)]
    context_protection: ProtectionTable,
    rate_limit: Option<RateLimitTable>,
    #[serde(default)]
    telemetry: TelemetryTable,
    audit: Option<AuditTable>,
    #[serde(default)]
    http: HttpTable,
    tls: Option<TlsTable>,
    auth: Option<AuthTable>,
    embedding: Option<EmbeddingTable>,
    rerank: Option<RerankTable>,
    #[serde(default)]
    import: Vec<ImportTable>,
    search_history: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    name: SourceTitle,
    label: Option<Label>,
    store: Option<PathBuf>,
    read_urls: Option<Vec<PathBuf>>,
    max_lag: Option<DurationText>,
    #[serde(default, deserialize_with = "provider_url")]
    url: Option<ProviderUrl>,
    credential: Option<CredentialText>,
    cache_root: Option<PathBuf>,
    allow_insecure: Option<bool>,
    deadline: Option<DurationText>,
    #[serde(default, deserialize_with = "allowed_streams")]
    streams: Option<Vec<StreamName>>,
}

/// Reads a configuration file that has at least one source.
///
/// # Errors
///
/// The file cannot be read, is not valid, or has no source.
pub fn read_file(path: &Path, environment: &Environment) -> Result<FileSettings, ConfigError> {
    let settings = settings_of(&read_text(path)?, path, environment)?;
    if settings.sources.is_empty() { Err(ConfigError::Empty(path.to_owned())) } else { Ok(settings) }
}

/// Parses a text as the configuration file at `path`, without the environment. It may have no source.
///
/// # Errors
///
/// The text is not valid.
pub fn check_text(text: &str, path: &Path) -> Result<FileSettings, ConfigError> {
    settings_of(text, path, &Environment::default())
}

/// Parses a text as the configuration file at `path`, with the overrides of the environment. It may have no source.
///
/// # Errors
///
/// The text is not valid, by itself or together with the environment.
pub fn settings_of(text: &str, path: &Path, environment: &Environment) -> Result<FileSettings, ConfigError> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mistaken = |mistake| ConfigError::Invalid { path: path.to_owned(), mistake };
    let tree = Node::parse(text, path).map_err(mistaken)?;
    let file: File = tree.read().map_err(mistaken)?;
    let guarded = if file.auth.is_some() { CallerCheck::ByAuthentication } else { CallerCheck::ByNobody };
    listen(&tree, file.listen, guarded).map_err(mistaken)?;
    check_ops_listen(&tree, &file).map_err(mistaken)?;
    file.http.check(&tree, file.auth.is_some()).map_err(mistaken)?;
    let sources = sources(&tree, file.source, folder).map_err(mistaken)?;
    let imports = imports(&tree, file.import, &sources, folder).map_err(mistaken)?;
    let auth = file.auth.map(|table| table.settings(&tree, &sources, folder, file.public_url.as_ref()));
    let auth = auth.transpose().map_err(mistaken)?;
    file.telemetry.check(&tree).map_err(mistaken)?;
    let embedding =
        file.embedding.map(|table| table.settings(&tree, folder)).transpose().map_err(mistaken)?;
    let rerank = file.rerank.map(|table| table.settings(&tree, folder)).transpose().map_err(mistaken)?;
    let protection = file.context_protection.with(environment)?;
    Ok(FileSettings {
        listen: file.listen,
        ops_listen: file.ops_listen,
        state_dir: file.state_dir.map(|path| folder.join(path)),
        state: file.state.map(|url| url.below(folder)),
        cursor_ttl: file.cursor_ttl.map_or(VALID_FOR, |lifetime| lifetime.0),
        call_deadline: file.call_deadline.map_or(DEFAULT_CALL_DEADLINE, |deadline| deadline.0),
        sources,
        protection: protection.check(&tree, path)?,
        rate_limit: file.rate_limit.map(RateLimitTable::settings),
        ring: file.telemetry.ring.map_or(RECORDS_IN_MEMORY, Count::size),
        otlp_endpoint: file.telemetry.otlp_endpoint,
        allow_insecure_spans: file.telemetry.allow_insecure,
        audit: file.audit.map(|audit| folder.join(audit.path)),
        auth,
        http: file.http.settings(file.public_url, file.tls, folder),
        embedding,
        rerank,
        imports,
        search_history: file.search_history.unwrap_or(true),
    })
}

/// Rejects an empty text, which a failed save leaves on a full disk: used as settings, it would remove every limit. A
/// text of comments is accepted, because it was written on purpose.
///
/// # Errors
///
/// The text is empty or white space.
pub fn refuse_blank(text: &str, path: &Path) -> Result<(), ConfigError> {
    if is_blank(text) {
        return Err(ConfigError::Invalid { path: path.to_owned(), mistake: Mistake::empty_file() });
    }
    Ok(())
}

/// Returns true if a text is empty or white space.
#[must_use]
pub fn is_blank(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim().is_empty()
}

/// Validates the sources and the uniqueness of their names.
fn sources(tree: &Node, listed: Vec<Source>, folder: &Path) -> Result<Vec<SourceSettings>, Mistake> {
    let mut places: HashMap<SourceName, usize> = HashMap::new();
    let mut sources = Vec::with_capacity(listed.len());
    for (number, source) in listed.into_iter().enumerate() {
        let number = number.to_string();
        let path = ["source", &number, "name"];
        let line = tree.line_of(&path);
        let wrong = |problem: String| Mistake { line, key: Some(key_of(&path)), problem };
        let name = source.name.0.clone();
        if let Some(earlier) = places.insert(name.clone(), line.unwrap_or_default()) {
            return Err(wrong(format!(
                "duplicate source name `{name}`, first on line {earlier}; give each source its own name"
            )));
        }
        if let Some(url) = source.url.as_ref().filter(|url| !url.is_confidential())
            && source.allow_insecure != Some(true)
        {
            let path = ["source", &number, "url"];
            let problem = format!(
                "over `{url}` the credential and every query are sent unencrypted; use https, or set allow_insecure = true beside it if no one else can read that network"
            );
            return Err(Mistake { line: tree.line_of(&path), key: Some(key_of(&path)), problem });
        }
        sources.push(source.settings(folder).map_err(wrong)?);
    }
    Ok(sources)
}

impl Source {
    fn settings(self, folder: &Path) -> Result<SourceSettings, String> {
        let SourceTitle(name) = self.name;
        let place = match (self.store, self.url) {
            (Some(path), None)
                if self.credential.is_none()
                    && self.cache_root.is_none()
                    && self.allow_insecure.is_none() =>
            {
                SourcePlace::with_replicas(&path, self.read_urls, self.max_lag, folder)
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

/// Rejects an address that `serve` would not listen at.
fn listen(tree: &Node, address: Option<SocketAddr>, guarded: CallerCheck) -> Result<(), Mistake> {
    let refused = |problem: ListenError| Mistake {
        line: tree.line_of(&["listen"]),
        key: Some("listen".to_owned()),
        problem: problem.to_string(),
    };
    address.map_or(Ok(()), |address| may_listen(address, guarded).map(drop).map_err(refused))
}

/// Rejects an operations listener at the address of the main one.
fn check_ops_listen(tree: &Node, file: &File) -> Result<(), Mistake> {
    match (file.ops_listen, file.listen.unwrap_or(DEFAULT_LISTEN)) {
        (Some(address), main) if address == main && address.port() != 0 => Err(Mistake {
            line: tree.line_of(&["ops_listen"]),
            key: Some("ops_listen".to_owned()),
            problem: format!("{address} is also the address of listen; choose another port"),
        }),
        _ => Ok(()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::pdpp::CommandLine;

    fn read(text: &str) -> FileSettings {
        check_text(text, Path::new("/etc/fetchwell/fetchwell.toml")).unwrap()
    }

    /// Returns the credential of a source with this line.
    fn credential(line: &str) -> CredentialSettings {
        let text = format!("[[source]]\nname = \"work\"\nurl = \"records.example.com\"\n{line}\n");
        match read(&text).sources.remove(0).place {
            SourcePlace::Provider { credential, .. } => credential,
            SourcePlace::Store { .. } | SourcePlace::Postgres { .. } => panic!("{text}"),
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
    fn mistakes_have_their_lines() {
        let url = "[[source]]\nname = \"a\"\nurl = \"x.example\"\n";
        let store = "[[source]]\nname = \"a\"\nstore = \"x\"\n";
        for (text, expect) in [
            (
                "[[source]]\nname = \"a\"\n".to_owned(),
                "2: source[0].name: source `a` needs either store or url",
            ),
            (format!("{store}url = \"y\"\n"), "2: source[0].name: source `a` needs either store or url"),
            (format!("{store}credential = \"env:T\"\n"), "2: source[0].name: source `a` is a store"),
            (format!("{store}cache_root = \"c\"\n"), "2: source[0].name: source `a` is a store"),
            ("[[source]]\nname = \"a\"\nstor = \"x\"\n".to_owned(), "3: source[0].stor: unknown key `stor`"),
            ("lisen = 1\n".to_owned(), "1: lisen: unknown key `lisen`"),
            (
                "[[source]]\nname = \"..\"\nstore = \"x\"\n".to_owned(),
                "2: source[0].name: `..` cannot be the name",
            ),
            ("[[source]]\nstore = \"x\"\n".to_owned(), "1: source[0]: the key `name` is missing"),
            (
                "[[source]]\nname = \"a\"\nurl = \"ftp://x\"\n".to_owned(),
                "3: source[0].url: `ftp://x` is not a provider URL",
            ),
            (
                format!("{store}\n[[source]]\nname = \"a\"\nstore = \"y\"\n"),
                "6: source[1].name: duplicate source name `a`, first on line 2",
            ),
            (format!("{url}deadline = \"0s\"\n"), "4: source[0].deadline: `0s` is not between"),
            (
                format!("{url}deadline = 2\n"),
                "4: source[0].deadline: expected a duration with its unit, such as \"2s\" or \"500ms\", found the number `2`",
            ),
            (
                format!("{url}deadline_seconds = 2\n"),
                "4: source[0].deadline_seconds: unknown key `deadline_seconds`",
            ),
            (format!("{url}credential = \"sekret\"\n"), "4: source[0].credential: the credential must be"),
            (
                format!("{url}credential = \"env:PDPP_OWNER_TOKEN\"\n"),
                "4: source[0].credential: `PDPP_OWNER_TOKEN` is an owner",
            ),
            (
                format!("{url}credential = \"env:T\"\ncache_root = \"c\"\n"),
                "2: source[0].name: source `a` has a cache_root",
            ),
            (format!("{url}streams = []\n"), "4: source[0].streams: streams is empty"),
            (
                format!("{url}streams = [\"a\", \"..\"]\n"),
                "4: source[0].streams[1]: it holds the path segment",
            ),
            (format!("{url}label = \"\"\n"), "4: source[0].label: the label is empty"),
            (format!("{url}credential = \"command:sekret\n"), "4: "),
            ("call_deadline = \"2 hours\"\n".to_owned(), "1: call_deadline: `2 hours` is not between"),
            ("listen = \"7400\"\n".to_owned(), "1: listen: "),
            ("ops_listen = \"7401\"\n".to_owned(), "1: ops_listen: "),
            (
                "ops_listen = \"127.0.0.1:7400\"\n".to_owned(),
                "1: ops_listen: 127.0.0.1:7400 is also the address of listen",
            ),
        ] {
            let problem = check_text(&text, Path::new("c.toml")).unwrap_err().to_string();
            assert!(problem.starts_with(&format!("c.toml:{expect}")), "{text}{problem}");
            assert!(!problem.contains("sekret"), "{problem}");
        }
    }
}
