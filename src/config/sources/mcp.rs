//! MCP servers as sources: the keys of `[[source]]` that only they have.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use fetchwell_outbound::is_confidential;
use fetchwell_upstream::{FetchMapping, Mapping, SearchMapping};
use http::HeaderName;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::{Map, Value};
use url::Url;

use crate::config::credential::CredentialSettings;
use crate::config::values::{CredentialText, SecretPlace, is_variable, parsed, without_user_info};

/// Maximum length of the name by which the program introduces itself, in characters.
const MAX_CLIENT_NAME: usize = 64;

/// Headers that the protocol, the connection, a proxy or a browser sets, in lower case.
const PROTOCOL_HEADERS: [&str; 17] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "origin",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Beginnings of the names of such headers.
const PROTOCOL_PREFIXES: [&str; 2] = ["proxy-", "sec-"];

/// Returns true for a header that a configuration does not set. `Cookie` is none: some servers authenticate by one.
#[must_use]
pub fn is_protocol_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    PROTOCOL_HEADERS.contains(&name.as_str())
        || PROTOCOL_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// A mistake in the keys of an MCP server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeyMistake {
    /// Key below the table of the source, such as `["search", "cursor"]`; empty for the source as a whole.
    pub(super) key: Vec<String>,
    pub(super) problem: String,
}

impl From<String> for KeyMistake {
    fn from(problem: String) -> Self {
        Self { key: Vec::new(), problem }
    }
}

impl KeyMistake {
    /// Creates the mistake of a key, or of a key in a table of the source.
    pub(super) fn new(key: &[&str], problem: impl Into<String>) -> Self {
        Self { key: key.iter().map(|step| (*step).to_owned()).collect(), problem: problem.into() }
    }
}

/// Settings of an MCP server.
#[derive(Debug, Clone, PartialEq)]
pub struct McpSource {
    /// Location of the server.
    pub endpoint: McpEndpoint,
    /// Name by which the program introduces itself, if it is not its own.
    pub client_name: Option<String>,
    /// Name of the preset with the mapping of its tools.
    pub preset: Option<String>,
    /// Tools that are named.
    pub mapping: Mapping,
    /// State directory of the configuration, in which sign-ins are kept; that of the user if absent.
    pub state_dir: Option<PathBuf>,
}

// Mappings have JSON values, whose numbers are equal to themselves when they come from a file.
impl Eq for McpSource {}

/// Location of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpEndpoint {
    /// Behind a URL.
    Http {
        /// URL of the endpoint.
        url: Url,
        /// Location of the credential; that of `fetchwell source login` if absent. With that of callers, each signs in.
        credential: Option<CredentialSettings>,
        /// Further headers by name.
        headers: Vec<(String, ValuePlace)>,
        /// The client of a sign-in.
        oauth: Box<OAuthClient>,
    },
    /// A program, which is started.
    Command {
        /// The program and its arguments.
        line: Vec<String>,
        /// Variables of its environment.
        environment: Vec<(String, ValuePlace)>,
        /// Folder that it is started in.
        folder: PathBuf,
    },
}

/// The client with which a person signs in at the authorization server of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OAuthClient {
    /// Id of a client that the operator has registered; the program registers one if absent.
    pub client_id: Option<String>,
    /// Secret of that client.
    pub client_secret: Option<SecretPlace>,
    /// URL of a client id metadata document.
    #[serde(deserialize_with = "parsed")]
    pub client_metadata_url: Option<Url>,
    /// Scopes to request.
    pub scopes: Vec<String>,
    /// Port of the redirect URI of a client that is registered with one.
    #[serde(deserialize_with = "parsed_port")]
    pub redirect_port: Option<u16>,
}

fn parsed_port<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u16>, D::Error> {
    let port = u16::try_from(u64::deserialize(deserializer)?).ok().filter(|port| *port > 0);
    port.map(Some).ok_or_else(|| D::Error::custom("redirect_port is a port, 1 to 65535"))
}

/// A text, or its location if it is a secret.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum ValuePlace {
    /// The text itself.
    Text(String),
    /// An environment variable of this program.
    Variable(String),
    /// A file with the text.
    File(PathBuf),
}

impl TryFrom<String> for ValuePlace {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("env", name)) if is_variable(name) => Ok(Self::Variable(name.to_owned())),
            Some(("env", _)) => {
                Err("`env:` needs the name of a variable, such as \"env:NOTES_KEY\"".to_owned())
            }
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(path.into())),
            _ if text.chars().any(char::is_control) => Err("the value has control characters".to_owned()),
            _ => Ok(Self::Text(text)),
        }
    }
}

/// Shows no text, which may be a secret.
impl fmt::Debug for ValuePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text"),
            Self::Variable(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

/// The keys of an MCP server as deserialized.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct McpKeys {
    pub(super) mcp: Option<String>,
    pub(super) command: Option<Vec<String>>,
    pub(super) env: Option<BTreeMap<String, ValuePlace>>,
    pub(super) headers: Option<BTreeMap<String, ValuePlace>>,
    pub(super) client_name: Option<String>,
    pub(super) preset: Option<String>,
    pub(super) search: Option<SearchMapping>,
    pub(super) fetch: Option<FetchMapping>,
    pub(super) oauth: Option<OAuthClient>,
}

impl McpKeys {
    /// Returns true if none of the keys is set.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if the location of a server is set.
    pub(super) fn has_place(&self) -> bool {
        self.mcp.is_some() || self.command.is_some()
    }

    /// Validates the keys. Paths are relative to `folder`.
    pub(super) fn settings(
        self,
        credential: Option<&CredentialText>,
        allow_insecure: Option<bool>,
        folder: &Path,
    ) -> Result<McpSource, KeyMistake> {
        self.check_names()?;
        let mapping = Mapping { search: self.search, fetch: self.fetch, stream: None };
        check_mapping(&mapping)?;
        let location = match (self.mcp, self.command) {
            (Some(url), None) if self.env.is_none() => {
                let settings =
                    HttpKeys { headers: self.headers, oauth: self.oauth, credential, allow_insecure };
                settings.endpoint(&url, folder)?
            }
            (Some(_), None) => {
                return Err(KeyMistake::new(&["env"], "env is for a server that is started with command"));
            }
            (None, Some(line)) if line.first().is_none_or(|program| program.trim().is_empty()) => {
                return Err(KeyMistake::new(
                    &["command"],
                    "command is empty; write the program and its arguments as a list, such as [\"npx\", \"-y\", \"server\"]",
                ));
            }
            (None, Some(line)) => {
                let keys = [
                    ("credential", credential.is_some()),
                    ("headers", self.headers.is_some()),
                    ("oauth", self.oauth.is_some()),
                    ("allow_insecure", allow_insecure.is_some()),
                ];
                if let Some((key, _)) = keys.into_iter().find(|(_, is_set)| *is_set) {
                    let problem =
                        format!("{key} is for a server behind a URL; a command gets its secrets in env");
                    return Err(KeyMistake::new(&[key], problem));
                }
                let environment = placed(self.env, folder);
                McpEndpoint::Command { line, environment, folder: folder.to_owned() }
            }
            (Some(_), Some(_)) => {
                return Err(KeyMistake::new(
                    &["command"],
                    "mcp and command are two servers; name one of them",
                ));
            }
            (None, None) => return Err(KeyMistake::new(&[], "mcp or command is missing")),
        };
        Ok(McpSource {
            endpoint: location,
            client_name: self.client_name,
            preset: self.preset,
            mapping,
            state_dir: None,
        })
    }

    /// Checks the name of the client and of the preset.
    fn check_names(&self) -> Result<(), KeyMistake> {
        let is_name = |name: &String| {
            !name.trim().is_empty()
                && name.chars().count() <= MAX_CLIENT_NAME
                && !name.chars().any(char::is_control)
        };
        if self.client_name.as_ref().is_some_and(|name| !is_name(name)) {
            let problem = format!("client_name is a name of at most {MAX_CLIENT_NAME} characters");
            return Err(KeyMistake::new(&["client_name"], problem));
        }
        if let Some(preset) = &self.preset
            && fetchwell_upstream::preset(preset).is_none()
        {
            let known = fetchwell_upstream::presets().join(", ");
            let problem = format!("there is no preset of this name; the presets are {known}");
            return Err(KeyMistake::new(&["preset"], problem));
        }
        Ok(())
    }
}

/// The keys of a server behind a URL.
struct HttpKeys<'a> {
    headers: Option<BTreeMap<String, ValuePlace>>,
    oauth: Option<OAuthClient>,
    credential: Option<&'a CredentialText>,
    allow_insecure: Option<bool>,
}

impl HttpKeys<'_> {
    fn endpoint(self, url: &str, folder: &Path) -> Result<McpEndpoint, KeyMistake> {
        self.check_headers()?;
        let credential = self.credential.map(|credential| own_credential(credential, folder)).transpose();
        let credential = credential.map_err(|problem| KeyMistake::new(&["credential"], problem))?;
        let url = endpoint(url, self.allow_insecure == Some(true));
        let url = url.map_err(|problem| KeyMistake::new(&["mcp"], problem))?;
        let oauth = self.oauth.unwrap_or_default();
        check_sign_in(credential.as_ref(), &url, &oauth)?;
        let client_secret = oauth.client_secret.clone().map(|secret| secret.below(folder));
        let oauth = Box::new(OAuthClient { client_secret, ..oauth });
        Ok(McpEndpoint::Http { url, credential, headers: placed(self.headers, folder), oauth })
    }

    /// Refuses headers that are not valid, or that a request has already.
    fn check_headers(&self) -> Result<(), KeyMistake> {
        for name in self.headers.iter().flat_map(BTreeMap::keys) {
            let mistake = |problem: &str| KeyMistake::new(&["headers", name.as_str()], problem);
            if name.parse::<HeaderName>().is_err() {
                return Err(mistake("this is not the name of a header, such as X-Api-Key"));
            }
            if is_protocol_header(name) {
                return Err(mistake(
                    "the protocol or the connection sets this header itself; remove it. A secret goes into \
                     credential, or a header such as X-Api-Key",
                ));
            }
            if name.eq_ignore_ascii_case("authorization")
                && (self.credential.is_some() || self.oauth.is_some())
            {
                return Err(mistake(
                    "a credential and a sign-in send this header; remove it, or credential and oauth. \
                     A bearer token is written as credential = \"env:NAME\"",
                ));
            }
        }
        Ok(())
    }
}

/// Refuses a mapping whose keys contradict each other.
fn check_mapping(mapping: &Mapping) -> Result<(), KeyMistake> {
    if let Some(search) = &mapping.search {
        if search.page.is_some() && (search.cursor.is_some() || search.next.is_some()) {
            let key = if search.cursor.is_some() { "cursor" } else { "next" };
            let problem =
                format!("{key} is for a tool with positions, and page for one with numbered pages; name one");
            return Err(KeyMistake::new(&["search", key], problem));
        }
        let names = [
            ("query", &search.query),
            ("limit", &search.limit),
            ("cursor", &search.cursor),
            ("page", &search.page),
        ];
        ToolKeys { table: "search", tool: &search.tool, names: &names, arguments: &search.arguments }
            .check()?;
    }
    if let Some(fetch) = &mapping.fetch {
        let names = [("id", &fetch.id)];
        ToolKeys { table: "fetch", tool: &fetch.tool, names: &names, arguments: &fetch.arguments }.check()?;
    }
    Ok(())
}

/// The keys of a tool with names of its arguments.
struct ToolKeys<'a> {
    table: &'static str,
    tool: &'a str,
    /// Keys, with the argument that each names.
    names: &'a [(&'static str, &'a Option<String>)],
    arguments: &'a Map<String, Value>,
}

impl ToolKeys<'_> {
    fn check(&self) -> Result<(), KeyMistake> {
        let Self { table, tool, names, arguments } = *self;
        if tool.is_empty() {
            return Err(KeyMistake::new(
                &[table, "tool"],
                format!("{table} needs tool, the name of the tool"),
            ));
        }
        let named = || names.iter().filter_map(|(key, argument)| Some((*key, argument.as_deref()?)));
        for (number, (key, argument)) in named().enumerate() {
            if let Some((other, _)) = named().take(number).find(|(_, earlier)| *earlier == argument) {
                let problem = format!("{other} and {key} are the same argument `{argument}`");
                return Err(KeyMistake::new(&[table, key], problem));
            }
            // A number in `arguments` replaces the limit.
            if key != "limit" && arguments.contains_key(argument) {
                let problem = format!(
                    "`{argument}` is the argument of {key}, whose value is another for each call; remove it"
                );
                return Err(KeyMistake::new(&[table, "arguments", argument], problem));
            }
        }
        Ok(())
    }
}

/// Returns the location of a credential of the source's own, or that each caller signs in.
fn own_credential(credential: &CredentialText, folder: &Path) -> Result<CredentialSettings, String> {
    match credential.settings(folder, Path::new(""))? {
        CredentialSettings::PdppCache(_) => {
            Err("the credential \"pdpp-cache\" is for record servers; use \"env:NAME\", \"file:PATH\" or \"command:LINE\", or leave it out and run `fetchwell source login`".to_owned())
        }
        own => Ok(own),
    }
}

/// Checks the client of a sign-in against the credential that it is for.
fn check_sign_in(
    credential: Option<&CredentialSettings>,
    url: &Url,
    oauth: &OAuthClient,
) -> Result<(), KeyMistake> {
    let mistake = |key: &[&str], problem: &str| Err(KeyMistake::new(key, problem));
    match credential {
        None => Ok(()),
        Some(CredentialSettings::Caller) if !is_confidential(url) => mistake(
            &["mcp"],
            "callers sign in only over https; use an https URL, or a credential of the source's own",
        ),
        Some(CredentialSettings::Caller) if oauth.redirect_port.is_some() => mistake(
            &["oauth"],
            "redirect_port is for `fetchwell source login`; callers return to /sources/signed-in below public_url",
        ),
        Some(CredentialSettings::Caller) => Ok(()),
        Some(_) if *oauth == OAuthClient::default() => Ok(()),
        Some(_) => mistake(
            &["oauth"],
            "oauth is for a sign-in with `fetchwell source login` or of each caller; remove it or the credential",
        ),
    }
}

/// Parses the URL of an endpoint. It must be `https`, or on this machine, or explicitly allowed.
fn endpoint(text: &str, allows_insecure: bool) -> Result<Url, String> {
    let text = without_user_info(text.trim())?;
    let url = Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.fragment().is_none() && url.has_host());
    let url =
        url.ok_or("mcp is the https URL of the server's endpoint, such as \"https://mcp.example.com/mcp\"")?;
    if is_confidential(&url) || allows_insecure {
        Ok(url)
    } else {
        Err("over http the credential and every query are sent unencrypted; use https, or set allow_insecure = true beside it if no one else can read that network".to_owned())
    }
}

impl ValuePlace {
    /// Returns the place with a path that is relative to `folder`.
    fn below(self, folder: &Path) -> Self {
        match self {
            Self::File(path) => Self::File(folder.join(path)),
            other => other,
        }
    }
}

/// Returns values with paths that are relative to `folder`.
fn placed(values: Option<BTreeMap<String, ValuePlace>>, folder: &Path) -> Vec<(String, ValuePlace)> {
    values.unwrap_or_default().into_iter().map(|(name, value)| (name, value.below(folder))).collect()
}

impl fmt::Display for McpSource {
    /// Writes the URL, or the program without its arguments, which may have secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.endpoint {
            // A query may have a secret.
            McpEndpoint::Http { url, .. } => {
                write!(f, "{}{}", url.origin().ascii_serialization(), url.path())
            }
            McpEndpoint::Command { line, .. } => f.write_str(line.first().map_or("", String::as_str)),
        }
    }
}
