//! The account that tokens are kept for: a source, its MCP server, and the caller if each has tokens of their own.

use fetchwell_callers::GrantId;
use fetchwell_core::handle::SourceName;
use fetchwell_core::hex::hexadecimal;
use fetchwell_outbound::{has_public_host, is_confidential};
use sha2::{Digest, Sha256};
use url::Url;

use super::fault::{OAuthError, OAuthFault};

/// Maximum number of characters of a source's name in a file name.
const MAX_NAME_CHARS: usize = 32;

/// Account at an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    source_name: SourceName,
    url: Url,
    caller: Option<CallerAccount>,
}

/// Caller with tokens of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerAccount {
    /// Id of the person, who is the same in all clients.
    pub person: GrantId,
    /// URL of the page on which the caller signs in.
    pub sign_in_page: String,
}

/// Reason why a URL that a server names is not requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ForbiddenUrl {
    /// It is not https, and not on this machine.
    Insecure,
    /// Its host is internal, and the MCP server is not.
    Internal,
}

impl ForbiddenUrl {
    /// Returns the fault of a URL with this origin.
    pub(super) fn fault(self, origin: String) -> OAuthFault {
        match self {
            Self::Insecure => OAuthFault::Insecure { origin },
            Self::Internal => OAuthFault::Internal { origin },
        }
    }
}

impl Account {
    /// Creates the account of a source at the MCP server with this URL. With a caller, the account is that caller's.
    ///
    /// # Errors
    ///
    /// The URL is not https and not on this machine, or contains a user name or a password.
    pub fn new(source_name: SourceName, url: Url, caller: Option<CallerAccount>) -> Result<Self, OAuthError> {
        let account = Self { source_name, url, caller };
        let has_user = !account.url.username().is_empty() || account.url.password().is_some();
        if has_user || !is_confidential(&account.url) {
            return Err(account.error(OAuthFault::Insecure { origin: origin(&account.url) }));
        }
        Ok(account)
    }

    /// Returns the name of the source.
    #[must_use]
    pub fn source_name(&self) -> &SourceName {
        &self.source_name
    }

    /// Returns the URL of the MCP server.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the id of the caller, if each has tokens of their own.
    #[must_use]
    pub fn person(&self) -> Option<GrantId> {
        self.caller.as_ref().map(|caller| caller.person)
    }

    /// Returns the account of the source itself, for what all of its callers share.
    pub(super) fn without_caller(&self) -> Self {
        Self { caller: None, ..self.clone() }
    }

    /// Returns the server that the tokens are bound to: scheme, host, port and path of its URL.
    #[must_use]
    pub fn server(&self) -> String {
        format!("{}{}", origin(&self.url), self.url.path())
    }

    /// Checks that requests of a sign-in may be sent to a URL. Plain http is for this machine, and only if the MCP server is
    /// there, too. A server of the internet must not choose URLs on this machine or in its network.
    pub(super) fn check_url(&self, url: &Url) -> Result<(), ForbiddenUrl> {
        let is_permitted = url.scheme() == "https" || self.url.scheme() == "http";
        if !is_permitted || !is_confidential(url) {
            return Err(ForbiddenUrl::Insecure);
        }
        if self.is_internal() || url.host() == self.url.host() || has_public_host(url) {
            Ok(())
        } else {
            Err(ForbiddenUrl::Internal)
        }
    }

    /// Returns true if the URL of the MCP server has an internal host.
    pub(super) fn is_internal(&self) -> bool {
        !has_public_host(&self.url)
    }

    /// Returns the name of the files of the account, without an extension: the source's name as far as a file name
    /// can have it, and a digest of the whole name and the caller.
    pub(super) fn file_stem(&self) -> String {
        let caller = self.person().map(|person| person.to_string()).unwrap_or_default();
        let mut digest = Sha256::new();
        digest.update(self.source_name.as_str());
        digest.update([0]);
        digest.update(caller);
        let letters = self.source_name.as_str().bytes().filter(u8::is_ascii_alphanumeric);
        let letters = letters.take(MAX_NAME_CHARS).map(|letter| char::from(letter.to_ascii_lowercase()));
        let name: String = letters.collect();
        format!("{name}-{}", hexadecimal(digest.finalize().iter().take(8)))
    }

    /// Creates the error of a fault of this account.
    #[must_use]
    pub fn error(&self, fault: OAuthFault) -> OAuthError {
        let sign_in_page = self.caller.as_ref().map(|caller| caller.sign_in_page.clone());
        OAuthError { source_name: self.source_name.clone(), sign_in_page, fault }
    }
}

/// Returns scheme, host and port of a URL, or the scheme alone if that has no hosts.
pub(super) fn origin(url: &Url) -> String {
    let origin = url.origin();
    if origin.is_tuple() { origin.ascii_serialization() } else { format!("{}:", url.scheme()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str, url: &str) -> Result<Account, OAuthError> {
        Account::new(name.parse().unwrap(), url.parse().unwrap(), None)
    }

    #[test]
    fn tokens_are_bound_to_scheme_host_port_and_path() {
        for (url, server) in [
            ("https://a.example/mcp", "https://a.example/mcp"),
            ("https://A.example:443/mcp?k=1#x", "https://a.example/mcp"),
            ("https://a.example:8443", "https://a.example:8443/"),
            ("http://127.0.0.1:80/mcp/", "http://127.0.0.1/mcp/"),
        ] {
            assert_eq!(account("wiki", url).unwrap().server(), server);
        }
        for url in ["http://a.example/mcp", "https://ann:sekret@a.example", "ftp://localhost/"] {
            let refused = account("wiki", url).unwrap_err();
            assert!(matches!(refused.fault, OAuthFault::Insecure { .. }), "{refused}");
            assert!(!format!("{refused} {refused:?}").contains("sekret"), "{refused}");
        }
    }

    #[test]
    fn a_remote_server_names_no_url_of_this_machine_or_network() {
        use ForbiddenUrl::{Insecure, Internal};
        for (server, url, expect) in [
            ("https://a.example/mcp", "https://login.example", Ok(())),
            ("https://a.example/mcp", "http://127.0.0.1:8080/token", Err(Insecure)),
            ("https://a.example/mcp", "http://login.example", Err(Insecure)),
            ("https://a.example/mcp", "file:///etc/passwd", Err(Insecure)),
            ("https://a.example/mcp", "https://127.0.0.1:8443/token", Err(Internal)),
            ("https://a.example/mcp", "https://169.254.169.254/token", Err(Internal)),
            ("https://a.example/mcp", "https://vault.internal/token", Err(Internal)),
            ("https://8.8.8.8/mcp", "https://localhost/token", Err(Internal)),
            // A server that people have configured in this network, and its own host.
            ("https://10.0.0.1/mcp", "https://10.0.0.2/token", Ok(())),
            ("https://wiki.internal/mcp", "https://login.internal/token", Ok(())),
            ("https://wiki.internal/mcp", "https://login.example/token", Ok(())),
            ("http://127.0.0.1:1/mcp", "http://localhost:2/token", Ok(())),
            ("http://127.0.0.1:1/mcp", "https://login.internal", Ok(())),
            ("http://127.0.0.1:1/mcp", "https://login.example", Ok(())),
            ("http://127.0.0.1:1/mcp", "http://login.example", Err(Insecure)),
        ] {
            let account = account("wiki", server).unwrap();
            assert_eq!(account.check_url(&url.parse().unwrap()), expect, "{server} {url}");
        }
    }

    #[test]
    fn file_names_are_short_and_differ() {
        let names = ["wiki", "Wiki", "wi/ki", "", "wiki.", &"w".repeat(2_000), "日本"];
        let names = names.into_iter().filter(|name| !name.is_empty());
        let stems: Vec<String> =
            names.map(|name| account(name, "https://a.example").unwrap().file_stem()).collect();
        for (number, stem) in stems.iter().enumerate() {
            assert!(stem.len() <= 49 && !stems[..number].contains(stem), "{stems:?}");
            assert!(stem.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'), "{stem}");
        }
    }
}
