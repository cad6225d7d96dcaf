//! MCP servers as sources: the keys of `[[source]]` that only they have.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use fetchwell_outbound::is_confidential;
use fetchwell_upstream::{FetchMapping, Mapping, SearchMapping};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use url::{Host, Url};

use crate::config::credential::CredentialSettings;
use crate::config::values::{CredentialText, is_variable, parsed, without_user_info};

/// Maximum length of the name by which the program introduces itself, in characters.
const MAX_CLIENT_NAME: usize = 64;

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
    pub client_secret: Option<ValuePlace>,
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
    ) -> Result<McpSource, String> {
        let endpoint = match (self.mcp, self.command) {
            (Some(url), None) if self.env.is_none() => {
                let credential =
                    credential.map(|credential| own_credential(credential, folder)).transpose()?;
                let url = endpoint(&url, allow_insecure == Some(true))?;
                let oauth = self.oauth.unwrap_or_default();
                check_sign_in(credential.as_ref(), &url, &oauth)?;
                let client_secret = oauth.client_secret.clone().map(|secret| secret.below(folder));
                let oauth = Box::new(OAuthClient { client_secret, ..oauth });
                Ok(McpEndpoint::Http { url, credential, headers: placed(self.headers, folder), oauth })
            }
            (Some(_), None) => Err("env is for a server that is started with command"),
            (None, Some(line)) if line.first().is_none_or(|program| program.trim().is_empty()) => Err(
                "command is empty; write the program and its arguments as a list, such as [\"npx\", \"-y\", \"server\"]",
            ),
            (None, Some(_))
                if credential.is_some()
                    || self.headers.is_some()
                    || self.oauth.is_some()
                    || allow_insecure.is_some() =>
            {
                Err(
                    "credential, headers, oauth and allow_insecure are for a server behind a URL; a command gets its secrets in env",
                )
            }
            (None, Some(line)) => Ok(McpEndpoint::Command {
                line,
                environment: placed(self.env, folder),
                folder: folder.to_owned(),
            }),
            (Some(_), Some(_)) => Err("mcp and command are two servers; name one of them"),
            (None, None) => Err("mcp or command is missing"),
        }?;
        let is_name = |name: &String| {
            !name.trim().is_empty()
                && name.chars().count() <= MAX_CLIENT_NAME
                && !name.chars().any(char::is_control)
        };
        if self.client_name.as_ref().is_some_and(|name| !is_name(name)) {
            return Err(format!("client_name is a name of at most {MAX_CLIENT_NAME} characters"));
        }
        let mapping = Mapping { search: self.search, fetch: self.fetch, stream: None };
        let unnamed = [
            mapping.search.as_ref().map(|search| &search.tool),
            mapping.fetch.as_ref().map(|fetch| &fetch.tool),
        ];
        if unnamed.into_iter().flatten().any(String::is_empty) {
            return Err("search and fetch need tool, the name of the tool".to_owned());
        }
        if let Some(preset) = &self.preset
            && fetchwell_upstream::preset(preset).is_none()
        {
            let known = fetchwell_upstream::presets().join(", ");
            return Err(format!("there is no preset of this name; the presets are {known}"));
        }
        Ok(McpSource { endpoint, client_name: self.client_name, preset: self.preset, mapping })
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
) -> Result<(), String> {
    match credential {
        None => Ok(()),
        Some(CredentialSettings::Caller) if !is_confidential(url) => Err(
            "callers sign in only over https; use an https URL, or a credential of the source's own".to_owned(),
        ),
        Some(CredentialSettings::Caller) if oauth.redirect_port.is_some() => Err(
            "redirect_port is for `fetchwell source login`; callers return to /sources/signed-in below public_url"
                .to_owned(),
        ),
        Some(CredentialSettings::Caller) => Ok(()),
        Some(_) if *oauth == OAuthClient::default() => Ok(()),
        Some(_) => Err(
            "oauth is for a sign-in with `fetchwell source login` or of each caller; remove it or the credential".to_owned(),
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
    let is_local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    if url.scheme() == "https" || is_local || allows_insecure {
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
