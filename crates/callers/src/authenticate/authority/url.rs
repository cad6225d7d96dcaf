//! A URL of an authorization server: `https`, or `http` on this machine.
//!
//! It keeps the original text, because issuers are compared as text (RFC 8414, 3.3): `https://a.example` and
//! `https://a.example/` are two issuers, but parse to equal URLs.

use std::fmt;
use std::str::FromStr;

use fetchwell_outbound::is_confidential;
use serde::{Deserialize, Deserializer};
use url::Url;

/// A URL of an authorization server. Two are equal if their texts are equal.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthorityUrl {
    written: String,
    url: Url,
}

/// The reason to reject a text as a URL of an authorization server. It omits the text, which may contain a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is not a URL of an authorization server: {problem}; write it as https://login.example.com")]
pub struct InvalidAuthorityUrl {
    problem: String,
}

impl AuthorityUrl {
    /// Returns the original text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// Returns the parsed URL, for requests.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }
}

impl FromStr for AuthorityUrl {
    type Err = InvalidAuthorityUrl;

    fn from_str(text: &str) -> Result<Self, InvalidAuthorityUrl> {
        let invalid = |problem: &str| InvalidAuthorityUrl { problem: problem.to_owned() };
        let url = Url::parse(text).map_err(|error| invalid(&error.to_string()))?;
        match url.scheme() {
            _ if is_confidential(&url) => {}
            "http" => return Err(invalid("http is for this machine only, so use https")),
            _ => return Err(invalid("only https is supported")),
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(invalid("it has no host"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid("it has a user or a password"));
        }
        if url.fragment().is_some() {
            return Err(invalid("it has a fragment (#)"));
        }
        Ok(Self { written: text.to_owned(), url })
    }
}

impl fmt::Display for AuthorityUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl fmt::Debug for AuthorityUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.written, f)
    }
}

impl<'de> Deserialize<'de> for AuthorityUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_https_or_this_machine_and_keeps_its_spelling() {
        for good in [
            "https://login.example.com",
            "https://login.example.com/",
            "https://login.example.com/realms/a?p=1",
            "http://127.0.0.1:9000",
            "http://[::1]:9000/x",
            "http://localhost:9000",
        ] {
            assert_eq!(good.parse::<AuthorityUrl>().unwrap().to_string(), good);
        }
        let parsed = |text: &str| text.parse::<AuthorityUrl>().unwrap();
        assert_ne!(parsed("https://a.example"), parsed("https://a.example/"));
        for bad in [
            "",
            "login.example.com",
            "http://login.example.com",
            "http://127.0.0.1.example.com",
            "http://localhost.example.com",
            "http://10.0.0.1",
            "ftp://login.example.com",
            "file:///etc/passwd",
            "https://user:s3cret@login.example.com",
            "https://login.example.com#x",
        ] {
            let refused = bad.parse::<AuthorityUrl>().unwrap_err().to_string();
            assert!(
                refused.contains("write it as https://") && !refused.contains("s3cret"),
                "{bad}: {refused}"
            );
        }
    }
}
