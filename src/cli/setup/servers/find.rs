//! The search for servers in the files of clients.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use serde::Serialize;
use url::Url;

use super::super::clients::{ListedServer, URL_KEYS, find_clients, read_servers};
use super::super::find::Home;
use super::offer::{NeededVariable, NotOffered, Offer, is_disabled, offer};
use crate::cli::client_config::shell_word;
use crate::config::{McpEndpoint, NewSource, SourcePlace, SourceSettings};

/// Name of this program and of its packages.
const PROGRAM: &str = "fetchwell";

/// Maximum number of servers.
const MAX_SERVERS: usize = 200;

/// Maximum length of a name in bytes.
const MAX_NAME_BYTES: usize = 48;

/// Name of a server whose own name has no letter or digit.
const UNNAMED: &str = "server";

/// The servers in the files of clients.
#[derive(Debug, Clone, Default)]
pub(crate) struct FoundServers {
    /// Servers that can be sources, or are.
    pub(crate) candidates: Vec<McpCandidate>,
    /// Servers that are not offered.
    pub(crate) others: Vec<OtherServer>,
    /// Files that cannot be read, each with the reason.
    pub(crate) unread: Vec<String>,
}

/// A server that can be a source, or is.
#[derive(Debug, Clone)]
pub(crate) struct McpCandidate {
    /// Clients that have it.
    pub(crate) clients: Vec<&'static str>,
    pub(crate) source: NewSource,
    /// Variables that the source needs.
    pub(crate) variables: Vec<NeededVariable>,
    /// True if the configuration has it.
    pub(crate) is_source: bool,
    /// Hash of its entry.
    digest: u64,
}

/// A server that is not offered.
#[derive(Debug, Clone)]
pub(crate) struct OtherServer {
    pub(crate) name: String,
    pub(crate) client: &'static str,
    pub(crate) reason: NotOffered,
}

/// A candidate in JSON output.
#[derive(Debug, Serialize)]
pub(crate) struct CandidateView<'a> {
    name: &'a str,
    clients: &'a [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    command: &'a [String],
    /// Names of its variables and headers.
    env: Vec<&'a str>,
    headers: Vec<&'a str>,
    variables: &'a [NeededVariable],
    is_source: bool,
}

impl McpCandidate {
    pub(crate) fn name(&self) -> &str {
        &self.source.name
    }

    /// Returns the URL, or the command line as a shell has it.
    pub(crate) fn place(&self) -> String {
        match &self.source.mcp {
            Some(url) => url.clone(),
            None => command_line(&self.source.command),
        }
    }

    /// Returns the command that adds the server without its variables and headers.
    pub(crate) fn add_command(&self) -> String {
        let name = self.name();
        match &self.source.mcp {
            Some(url) => format!("fetchwell source add {name} --mcp {}", shell_word(url)),
            None => format!("fetchwell source add {name} -- {}", self.place()),
        }
    }

    /// Returns the candidate for JSON output, without values.
    pub(crate) fn view(&self) -> CandidateView<'_> {
        fn names(values: &[(String, String)]) -> Vec<&str> {
            values.iter().map(|(name, _)| name.as_str()).collect()
        }
        CandidateView {
            name: self.name(),
            clients: &self.clients,
            url: self.source.mcp.as_deref(),
            command: &self.source.command,
            env: names(&self.source.env),
            headers: names(&self.source.headers),
            variables: &self.variables,
            is_source: self.is_source,
        }
    }
}

fn command_line(words: &[String]) -> String {
    words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

/// Returns the servers in the files of the clients of this machine, each once. Reads files and starts nothing.
///
/// Names are distinct from those of `sources` and from `names`.
pub(crate) fn find_servers(
    home: &Home,
    sources: &[SourceSettings],
    names: impl IntoIterator<Item = String>,
) -> FoundServers {
    let mut found = FoundServers::default();
    let names = names.into_iter().chain(sources.iter().map(|source| source.name.to_string()));
    let mut known =
        Known { sources: sources.iter().collect(), names: names.collect(), variables: HashSet::new() };
    for client in find_clients(home) {
        let Some(file) = client.file() else { continue };
        let path = file.resolve(home.folders());
        let servers = match read_servers(home, client, &path) {
            Ok(servers) => servers,
            Err(error) => {
                let path = path.display();
                found.unread.push(format!("the MCP servers in {path} are not read: {error}"));
                continue;
            }
        };
        for server in servers {
            if found.candidates.len() + found.others.len() == MAX_SERVERS {
                found.unread.push(format!("only the first {MAX_SERVERS} MCP servers are shown"));
                return found;
            }
            if is_this_program(&server) || is_disabled(&server.fields) {
                continue;
            }
            found.add(&server, client.title(), &mut known);
        }
    }
    found
}

impl FoundServers {
    fn add(&mut self, server: &ListedServer, client: &'static str, known: &mut Known<'_>) {
        let name = plain_name(&server.name);
        let mut variables = known.variables.clone();
        let mut offered = match offer(&name, server, &mut variables) {
            Ok(offer) => offer,
            Err(reason) => return self.others.push(OtherServer { name, client, reason }),
        };
        let digest = digest(server);
        if let Some(candidate) = self.candidates.iter_mut().find(|candidate| candidate.digest == digest) {
            if !candidate.clients.contains(&client) {
                candidate.clients.push(client);
            }
            return;
        }
        let existing = known.claim(&offered.source);
        let is_source = existing.is_some();
        let free = existing.unwrap_or_else(|| free_name(&name, &known.names));
        if free != name {
            variables.clone_from(&known.variables);
            let Ok(renamed) = offer(&free, server, &mut variables) else { return };
            offered = renamed;
        }
        known.variables = variables;
        known.names.insert(free);
        let Offer { source, variables } = offered;
        self.candidates.push(McpCandidate { clients: vec![client], source, variables, is_source, digest });
    }

    /// Returns the servers that are not sources yet.
    pub(crate) fn open(&self) -> Vec<McpCandidate> {
        self.candidates.iter().filter(|candidate| !candidate.is_source).cloned().collect()
    }
}

/// Names that are in use, and the sources that no candidate is yet.
struct Known<'a> {
    sources: Vec<&'a SourceSettings>,
    names: HashSet<String>,
    variables: HashSet<String>,
}

impl Known<'_> {
    /// Returns the name of the source of the configuration that is this server: the one of the same name, or else the first
    /// one. Two accounts of one server are two sources, and each is returned once.
    fn claim(&mut self, source: &NewSource) -> Option<String> {
        let is_same = |existing: &&&SourceSettings| is_source_of(existing, source);
        let is_named = |existing: &&&SourceSettings| existing.name.as_str() == source.name;
        let same = self.sources.iter().filter(is_same);
        let name = same.clone().find(is_named).or_else(|| same.clone().next())?.name.clone();
        self.sources.retain(|existing| existing.name != name);
        Some(name.to_string())
    }
}

/// Returns a hash of the keys that make an entry the same server, also in the file of another client.
fn digest(server: &ListedServer) -> u64 {
    let mut hasher = DefaultHasher::new();
    for key in URL_KEYS.iter().chain(&["command", "args", "env", "headers", "http_headers"]) {
        let value = server.fields.get(*key).filter(|value| {
            let is_empty = value.as_array().is_some_and(Vec::is_empty)
                || value.as_object().is_some_and(serde_json::Map::is_empty);
            !value.is_null() && !is_empty
        });
        value.map(ToString::to_string).hash(&mut hasher);
    }
    hasher.finish()
}

/// Returns true if a source of the configuration is the same server.
fn is_source_of(existing: &SourceSettings, source: &NewSource) -> bool {
    let SourcePlace::Mcp(server) = &existing.place else { return false };
    match &server.endpoint {
        McpEndpoint::Http { url, .. } => {
            source.mcp.as_deref().and_then(|mcp| Url::parse(mcp).ok()).as_ref() == Some(url)
        }
        McpEndpoint::Command { line, .. } => *line == source.command,
    }
}

/// Returns true for an entry that starts this program, directly or by a package runner.
fn is_this_program(server: &ListedServer) -> bool {
    let Some(command) = server.fields.get("command").and_then(|command| command.as_str()) else {
        return false;
    };
    let is_named = Path::new(command).file_stem().is_some_and(|stem| stem.eq_ignore_ascii_case(PROGRAM));
    let words = server.fields.get("args").and_then(|words| words.as_array()).into_iter().flatten();
    is_named
        || words.filter_map(|word| word.as_str()).any(|word| {
            let rest = word.strip_prefix(PROGRAM);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['@', '=']))
        })
}

/// Returns a name in the characters of names of sources and their connections.
fn plain_name(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut name = words.collect::<Vec<_>>().join("-");
    name.truncate(MAX_NAME_BYTES);
    if name.is_empty() { UNNAMED.to_owned() } else { name }
}

/// Returns a name that no other one has.
fn free_name(name: &str, names: &HashSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut free = std::iter::once(name.to_owned()).chain(numbered).filter(|name| !names.contains(name));
    free.next().unwrap_or_default()
}
