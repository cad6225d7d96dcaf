//! The URL of a record server's provider, and the name of its credential file.

use std::fmt;
use std::str::FromStr;

use fetchwell_outbound::is_confidential;
use url::{Origin, Url};

/// Normalized provider URL: `http` or `https`, without user, query, fragment or trailing slash.
///
/// Parsed from a text it is `https`, or `http` for a loopback address; only [`ProviderUrl::parse_insecure`] returns others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderUrl(Url);

/// Reason why a text is not a provider URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidProviderUrl {
    /// The text cannot be parsed.
    #[error("`{text}` is not a provider URL: {problem}; write it as https://records.example.com")]
    Malformed {
        /// The text without user name and password.
        text: String,
        /// Reason of the parser.
        problem: String,
    },
    /// The URL is `http` and leads to another machine.
    #[error(
        "`{0}` is refused: over http the credential and every question are sent unencrypted; write https, or put the server \
         into a configuration file with `allow_insecure = true` beside its `url` and name that file with --config"
    )]
    Insecure(ProviderUrl),
}

impl FromStr for ProviderUrl {
    type Err = InvalidProviderUrl;

    fn from_str(text: &str) -> Result<Self, InvalidProviderUrl> {
        let url = Self::parse_insecure(text)?;
        if url.is_confidential() { Ok(url) } else { Err(InvalidProviderUrl::Insecure(url)) }
    }
}

impl ProviderUrl {
    /// Parses a URL that may be `http` to another machine. The caller checks [`ProviderUrl::is_confidential`], or
    /// that the user allowed it.
    ///
    /// # Errors
    ///
    /// It is not a URL of a server.
    pub fn parse_insecure(text: &str) -> Result<Self, InvalidProviderUrl> {
        let invalid = |problem: &str| InvalidProviderUrl::Malformed {
            // A URL with a password must not be part of an error.
            text: text.rsplit_once('@').map_or(text, |(_, host)| host).to_owned(),
            problem: problem.to_owned(),
        };
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Err(invalid("it is empty"));
        }
        let with_scheme =
            if trimmed.contains("://") { trimmed.to_owned() } else { format!("https://{trimmed}") };
        let mut url = Url::parse(&with_scheme).map_err(|error| invalid(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid("only http and https are supported"));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(invalid("it has no host"));
        }
        // Neither fails for a URL with a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        url.set_fragment(None);
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        Ok(Self(url))
    }

    /// Returns true if no other machine can read requests: the URL is `https`, or `http` for a loopback address.
    #[must_use]
    pub fn is_confidential(&self) -> bool {
        is_confidential(&self.0)
    }

    /// Returns true for `https`.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Returns scheme, host and port, to which a credential is bound.
    pub(crate) fn origin(&self) -> Origin {
        self.0.origin()
    }

    /// Returns the parsed URL.
    pub(crate) fn url(&self) -> &Url {
        &self.0
    }

    /// Returns the URL of an endpoint; `path` starts with `/` and is already encoded.
    pub(crate) fn endpoint(&self, path: &str) -> Result<Url, url::ParseError> {
        Url::parse(&format!("{self}{path}"))
    }

    /// Returns the name of the file in which `pdpp connect` keeps this provider's credential.
    #[must_use]
    pub fn cache_file_name(&self) -> String {
        let host = self.0.host_str().unwrap_or_default();
        let authority = self.0.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' };
        format!("{}.json", authority.chars().map(safe).collect::<String>())
    }
}

impl fmt::Display for ProviderUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_normalised_as_pdpp_connect_does() {
        for (text, expect, file) in [
            ("records.example.com", "https://records.example.com", "records.example.com.json"),
            (
                "https://user:pw@Records.example.com:443/?x=1#y",
                "https://records.example.com",
                "records.example.com.json",
            ),
            ("http://127.0.0.1:7663/", "http://127.0.0.1:7663", "127.0.0.1_7663.json"),
            ("localhost:7662", "https://localhost:7662", "localhost_7662.json"),
            ("https://a.example/base/", "https://a.example/base", "a.example.json"),
            ("http://[::1]:80/", "http://[::1]", "___1_.json"),
        ] {
            let provider: ProviderUrl = text.parse().unwrap();
            assert_eq!((provider.to_string().as_str(), provider.cache_file_name().as_str()), (expect, file));
        }
        let endpoint =
            "https://a.example/base/".parse::<ProviderUrl>().unwrap().endpoint("/v1/search").unwrap();
        assert_eq!(endpoint.as_str(), "https://a.example/base/v1/search");
    }

    #[test]
    fn plain_http_beyond_loopback_is_refused() {
        for (text, is_refused) in [
            ("http://records.example.com", true),
            ("HTTP://records.example.com:7663/base", true),
            ("http://10.0.0.1:7663", true),
            ("http://127.0.0.1.example.com", true),
            ("http://127.0.0.1:7663", false),
            ("http://[::1]:7663", false),
            ("http://localhost", false),
            ("https://records.example.com", false),
        ] {
            let parsed = text.parse::<ProviderUrl>();
            assert_eq!(parsed.is_err(), is_refused, "{text}: {parsed:?}");
            let refused = parsed.err().map(|error| error.to_string()).unwrap_or_default();
            assert_eq!(refused.contains("`allow_insecure = true`"), is_refused, "{refused}");
            assert!(ProviderUrl::parse_insecure(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_is_no_provider_is_refused_without_its_password() {
        for bad in ["", "  ", "ftp://x.example", "https://", "http://user:secret@"] {
            let refused = bad.parse::<ProviderUrl>().unwrap_err().to_string();
            assert!(refused.contains("is not a provider URL") && !refused.contains("secret"), "{refused}");
        }
    }
}
