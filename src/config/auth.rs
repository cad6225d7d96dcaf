//! `[auth]`: who may ask over HTTP, and which sources each of them gets.

use std::collections::HashSet;
use std::path::Path;

use fetchwell_callers::{Algorithm, AuthorityUrl};
use fetchwell_core::handle::SourceName;
use fetchwell_http::PublicUrl;
use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::SourceSettings;
use super::tree::{Mistake, Node, key_of};
use super::values::{Parsed, SecretPlace, SourceTitle, shown};

/// The `[auth]` table: accepted tokens and the sources of each caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthSettings {
    /// Authorization server that signs tokens, if they are JWTs.
    pub issuer: Option<IssuerPlace>,
    /// Introspection endpoint for tokens that are not JWTs.
    pub introspection: Option<IntrospectionPlace>,
    /// Accepted audiences; empty if the audience follows from the public URL.
    pub audience: Vec<String>,
    /// Scopes that every token has to have.
    pub scopes: Vec<String>,
    /// Sign-in for record pages.
    pub pages: Option<PagesPlace>,
    /// Tokens of this server's own.
    pub tokens: Vec<TokenGrant>,
    /// Grants of subjects, in addition to the sources that are read with a caller's own token.
    pub subjects: Vec<SubjectGrant>,
}

impl AuthSettings {
    /// Returns the sources of each caller.
    #[must_use]
    pub fn grants(&self) -> (Vec<(&str, &[SourceName])>, &[SubjectGrant]) {
        let tokens = self.tokens.iter().map(|token| (token.name.as_str(), token.sources.as_slice()));
        (tokens.collect(), &self.subjects)
    }
}

/// An authorization server that issues JWTs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerPlace {
    /// The `iss` of its tokens.
    pub issuer: AuthorityUrl,
    /// URL of its keys; discovered from its metadata if absent.
    pub jwks_url: Option<AuthorityUrl>,
    /// The algorithms that may sign.
    pub algorithms: Vec<Algorithm>,
}

/// An authorization server that is asked about tokens.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntrospectionPlace {
    /// Its introspection endpoint.
    pub url: AuthorityUrl,
    /// Client id of this server.
    pub client_id: String,
    /// Reference to its secret.
    pub client_secret: SecretPlace,
}

/// A client of the issuer that people sign in with for record pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagesPlace {
    /// Client id of this server.
    pub client_id: String,
    /// Place of the client secret; none for a public client.
    pub client_secret: Option<SecretPlace>,
    /// The scopes that are asked for.
    pub scopes: Vec<String>,
}

/// A token of this server's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenGrant {
    /// Name in logs.
    pub name: String,
    /// SHA-256 of it.
    pub sha256: [u8; 32],
    /// Sources that a request with the token may read.
    pub sources: Vec<SourceName>,
    /// Its bearer may see how the server is doing.
    pub metrics: bool,
    /// Its bearer may clear caches and read the history of searches.
    pub admin: bool,
}

/// Grant of a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectGrant {
    /// The `sub` claim of the tokens; `*` matches every subject of the authorization server.
    pub subject: String,
    /// Sources that the subject may read.
    pub sources: Vec<SourceName>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AuthTable {
    issuer: Option<AuthorityUrl>,
    jwks_url: Option<AuthorityUrl>,
    #[serde(default)]
    algorithms: Vec<Parsed<Algorithm>>,
    #[serde(default)]
    audience: Vec<String>,
    #[serde(default)]
    scopes: Vec<String>,
    introspection: Option<IntrospectionPlace>,
    pages: Option<PagesTable>,
    #[serde(default)]
    token: Vec<TokenTable>,
    #[serde(default)]
    subject: Vec<SubjectTable>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct PagesTable {
    client_id: String,
    client_secret: Option<SecretPlace>,
    scopes: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenTable {
    name: SourceTitle,
    #[serde(deserialize_with = "sha256")]
    sha256: [u8; 32],
    sources: Option<Vec<SourceTitle>>,
    metrics: bool,
    admin: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct SubjectTable {
    subject: String,
    sources: Vec<SourceTitle>,
}

impl AuthTable {
    /// Resolves the settings against the configured sources.
    pub(super) fn settings(
        self,
        tree: &Node,
        sources: &[SourceSettings],
        folder: &Path,
        public_url: Option<&PublicUrl>,
    ) -> Result<AuthSettings, Mistake> {
        let wrong = |path: &[&str], problem: String| Mistake {
            line: tree.line_of(path),
            key: Some(key_of(path)),
            problem,
        };
        if self.issuer.is_none() && (self.jwks_url.is_some() || !self.algorithms.is_empty()) {
            let problem = "jwks_url and algorithms need an issuer; set issuer";
            return Err(wrong(&["auth"], problem.to_owned()));
        }
        self.check(sources).map_err(|(key, problem)| wrong(&["auth", key], problem))?;
        self.check_pages(public_url).map_err(|problem| wrong(&["auth", "pages"], problem))?;
        let pages = self.pages.map(|table| table.place(folder, &self.scopes));
        let introspection = self
            .introspection
            .map(|place| IntrospectionPlace { client_secret: place.client_secret.below(folder), ..place });
        if self.issuer.is_none() && introspection.is_none() && self.token.is_empty() {
            let problem = "[auth] accepts no caller; add an issuer, an introspection endpoint or a token (`fetchwell token new`)";
            return Err(wrong(&["auth"], problem.to_owned()));
        }
        let named = |place: [&str; 3], titles: Vec<SourceTitle>| {
            titles
                .into_iter()
                .map(|title| check_source(title.0, sources))
                .collect::<Result<Vec<_>, String>>()
                .map_err(|problem| wrong(&place, problem))
        };
        let mut names = HashSet::new();
        let mut tokens = Vec::new();
        for (number, token) in self.token.into_iter().enumerate() {
            let number = number.to_string();
            let name = token.name.0.to_string();
            if !names.insert(name.clone()) {
                let problem = format!("duplicate token name `{name}`; give each token its own name");
                return Err(wrong(&["auth", "token", &number, "name"], problem));
            }
            let TokenTable { sha256, metrics, admin, .. } = token;
            let granted = match token.sources {
                Some(titles) => named(["auth", "token", &number], titles)?,
                None => own_sources(sources),
            };
            tokens.push(TokenGrant { name, sha256, sources: granted, metrics, admin });
        }
        let mut subjects = Vec::new();
        for (number, table) in self.subject.into_iter().enumerate() {
            let number = number.to_string();
            let sources = named(["auth", "subject", &number], table.sources)?;
            subjects.push(SubjectGrant { subject: table.subject, sources });
        }
        if self.issuer.is_none() && introspection.is_none() && !subjects.is_empty() {
            let problem = "subjects need an authorization server; set issuer or introspection";
            return Err(wrong(&["auth", "subject"], problem.to_owned()));
        }
        let algorithms = if self.algorithms.is_empty() {
            Algorithm::ALL.to_vec()
        } else {
            self.algorithms.into_iter().map(|parsed| parsed.0).collect()
        };
        let jwks_url = self.jwks_url;
        let issuer = self.issuer.map(|issuer| IssuerPlace { issuer, jwks_url, algorithms });
        Ok(AuthSettings {
            issuer,
            introspection,
            audience: self.audience,
            scopes: self.scopes,
            pages,
            tokens,
            subjects,
        })
    }
}

impl AuthTable {
    /// Checks the table by itself. An error names the key that it concerns.
    fn check(&self, sources: &[SourceSettings]) -> Result<(), (&'static str, String)> {
        check_scopes(&self.scopes).map_err(|problem| ("scopes", problem))?;
        if self.audience.iter().any(|audience| audience.trim_matches('/').trim().is_empty()) {
            return Err((
                "audience",
                "an audience is empty; set the audience of the tokens, or remove it".to_owned(),
            ));
        }
        if self.subject.iter().any(|table| table.subject.is_empty()) {
            return Err((
                "subject",
                "a subject is empty; write the `sub` of the tokens, or \"*\"".to_owned(),
            ));
        }
        let mut digests = HashSet::new();
        if let Some(twice) = self.token.iter().find(|token| !digests.insert(token.sha256)) {
            let name = &twice.name.0;
            return Err((
                "token",
                format!("the token `{name}` has the sha256 of another token; create one for each"),
            ));
        }
        let asked = sources.iter().find(|source| source.takes_callers_token());
        match asked.filter(|_| self.issuer.is_none() && self.introspection.is_none()) {
            None => Ok(()),
            Some(source) => Err((
                "token",
                format!(
                    "source `{}` has the credential \"caller\", which needs an authorization server; set issuer or introspection",
                    source.name
                ),
            )),
        }
    }
}

impl AuthTable {
    /// Checks how people sign in for record pages.
    fn check_pages(&self, public_url: Option<&PublicUrl>) -> Result<(), String> {
        let Some(PagesTable { client_id, scopes, .. }) = &self.pages else { return Ok(()) };
        if client_id.is_empty() || client_id.chars().any(char::is_control) {
            return Err(
                "client_id is empty or has control characters; write the client id of this server at the issuer"
                    .to_owned(),
            );
        }
        if self.issuer.is_none() {
            return Err("[auth.pages] needs an issuer; set issuer in [auth]".to_owned());
        }
        if public_url.is_none() {
            return Err("[auth.pages] needs a public URL for its redirect; set public_url".to_owned());
        }
        scopes.as_deref().map_or(Ok(()), check_scopes)
    }
}

fn check_scopes(scopes: &[String]) -> Result<(), String> {
    let is_scope = |scope: &String| !scope.is_empty() && scope.bytes().all(is_of_scope);
    match scopes.iter().find(|scope| !is_scope(scope)) {
        Some(scope) => {
            Err(format!("`{}` is not a scope; write each scope as an item of its own", shown(scope)))
        }
        None => Ok(()),
    }
}

/// A letter of a scope (RFC 6749, 3.3).
fn is_of_scope(byte: u8) -> bool {
    matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e)
}

impl PagesTable {
    /// Returns what it means beside the scopes that every token has to have.
    fn place(self, folder: &Path, scopes: &[String]) -> PagesPlace {
        PagesPlace {
            client_id: self.client_id,
            client_secret: self.client_secret.map(|secret| secret.below(folder)),
            scopes: self.scopes.unwrap_or_else(|| scopes.to_vec()),
        }
    }
}

/// The hash of a token, as `fetchwell token new` writes it.
fn sha256<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 32], D::Error> {
    let text = String::deserialize(deserializer)?;
    let digits: Vec<u8> =
        text.bytes().filter_map(|byte| char::from(byte).to_digit(16)?.try_into().ok()).collect();
    let bytes: Vec<u8> =
        digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
    match <[u8; 32]>::try_from(bytes) {
        Ok(digest) if text.len() == 64 => Ok(digest),
        // A token put here by mistake must not stand in a message.
        _ => Err(D::Error::custom("it is not a SHA-256 of 64 hex digits; `fetchwell token new` prints one")),
    }
}

/// Sources that have a credential of their own. A token of this server's own goes to none of the others.
fn own_sources(sources: &[SourceSettings]) -> Vec<SourceName> {
    sources.iter().filter(|source| !source.takes_callers_token()).map(|source| source.name.clone()).collect()
}

fn check_source(name: SourceName, sources: &[SourceSettings]) -> Result<SourceName, String> {
    match sources.iter().find(|source| source.name == name) {
        Some(source) if source.takes_callers_token() => Err(format!(
            "source `{name}` has the credential \"caller\", so every caller with a token of the authorization server has it; remove it here"
        )),
        Some(_) => Ok(name),
        None => Err(format!("unknown source `{name}`; name one of those in [[source]]")),
    }
}
