//! Public URL of the server. Behind a proxy it can only be configured, because request headers are untrusted.

use std::fmt;
use std::str::FromStr;

use fetchwell_outbound::is_confidential;
use url::Url;

/// Origin of a server as clients see it: `https`, or `http` for this machine; without path or query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    /// Origin without a trailing slash and without the default port of its scheme.
    origin: String,
    host: String,
}

impl PublicUrl {
    /// Returns the origin, such as `https://records.example.com`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.origin
    }

    /// Returns the URL of a path that begins with `/`.
    #[must_use]
    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }

    /// Returns the host; IPv6 addresses are in brackets.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)
    }
}

/// Reason why a text is not a valid public URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PublicUrlError {
    /// The text is not a URL.
    #[error("it is no URL; write it as \"https://records.example.com\"")]
    NoUrl,
    /// The URL contains a user name or password, which would be public.
    #[error("it has a user name or a password in it; leave them out")]
    UserInfo,
    /// The URL has a path, a query or a fragment.
    #[error(
        "it has more than scheme, host and port; leave the rest out, as in \"https://records.example.com\""
    )]
    NotAnOrigin,
    /// The URL is not https, so tokens would be sent in plain text.
    #[error("it is not https, without which tokens travel in the open; only localhost may be http")]
    NotSecure,
}

impl FromStr for PublicUrl {
    type Err = PublicUrlError;

    fn from_str(text: &str) -> Result<Self, PublicUrlError> {
        let url = Url::parse(text.trim()).map_err(|_unreadable| PublicUrlError::NoUrl)?;
        let host = url.host().ok_or(PublicUrlError::NoUrl)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(PublicUrlError::UserInfo);
        }
        if !is_confidential(&url) {
            return Err(PublicUrlError::NotSecure);
        }
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(PublicUrlError::NotAnOrigin);
        }
        Ok(Self { origin: url.origin().ascii_serialization(), host: host.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_secure_origins_are_accepted() {
        for (text, expect) in [
            ("https://records.example.com", Ok("https://records.example.com")),
            ("https://Records.Example.com:443/", Ok("https://records.example.com")),
            ("https://records.example.com:8443", Ok("https://records.example.com:8443")),
            ("http://localhost:7400", Ok("http://localhost:7400")),
            ("http://[::1]:7400/", Ok("http://[::1]:7400")),
            ("http://127.0.0.2", Ok("http://127.0.0.2")),
            ("http://records.example.com", Err(PublicUrlError::NotSecure)),
            ("ftp://records.example.com", Err(PublicUrlError::NotSecure)),
            ("records.example.com", Err(PublicUrlError::NoUrl)),
            ("mailto:ann@example.com", Err(PublicUrlError::NoUrl)),
            ("", Err(PublicUrlError::NoUrl)),
            ("https://ann:sekret@example.com", Err(PublicUrlError::UserInfo)),
            ("https://example.com/records", Err(PublicUrlError::NotAnOrigin)),
            ("https://example.com/?a", Err(PublicUrlError::NotAnOrigin)),
            ("https://example.com/#a", Err(PublicUrlError::NotAnOrigin)),
        ] {
            let url = text.parse::<PublicUrl>();
            assert_eq!(url.as_ref().map(PublicUrl::as_str).map_err(|error| *error), expect, "{text}");
        }
        let url: PublicUrl = "https://[2001:db8::1]:8443".parse().unwrap();
        assert_eq!(url.host(), "[2001:db8::1]");
        assert_eq!(url.at("/mcp"), "https://[2001:db8::1]:8443/mcp");
    }
}
