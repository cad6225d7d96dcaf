//! The URL of an embedding or rerank service.

use std::fmt;
use std::str::FromStr;

use fetchwell_outbound::is_confidential;
use url::{Host, Url};

/// The URL of a service: http or https, without user name, password, query and fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceUrl(Url);

/// Reason why a text is not the URL of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidServiceUrl {
    /// The text is not an http or https URL.
    #[error("it is not the http or https URL of a service, such as \"https://api.openai.com/v1\"")]
    NotAUrl,
    /// The URL has a user name or a password.
    #[error("the URL has a user name or a password; set api_key instead")]
    HasUserInfo,
    /// The URL has a query or a fragment.
    #[error("the URL has a query or a fragment; leave it out")]
    HasQuery,
}

impl FromStr for ServiceUrl {
    type Err = InvalidServiceUrl;

    fn from_str(text: &str) -> Result<Self, InvalidServiceUrl> {
        let url: Url = text.trim().parse().map_err(|_error| InvalidServiceUrl::NotAUrl)?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(InvalidServiceUrl::NotAUrl);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(InvalidServiceUrl::HasUserInfo);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(InvalidServiceUrl::HasQuery);
        }
        Ok(Self(url))
    }
}

impl ServiceUrl {
    /// Returns the URL with the path that `complete` makes of its path, which ends without a slash.
    pub(crate) fn with_path(mut self, complete: impl FnOnce(&str) -> String) -> Self {
        let path = complete(self.0.path().trim_end_matches('/'));
        self.0.set_path(&path);
        self
    }

    pub(crate) fn as_url(&self) -> &Url {
        &self.0
    }

    /// Returns host and port, for messages.
    pub(crate) fn place(&self) -> String {
        let host = self.0.host_str().unwrap_or_default();
        self.0.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Returns true if no other machine can read requests.
    #[must_use]
    pub fn is_confidential(&self) -> bool {
        is_confidential(&self.0)
    }

    /// Returns true if the service runs on this machine.
    #[must_use]
    pub fn is_this_machine(&self) -> bool {
        let mut plain = self.0.clone();
        // Plain http is confidential on this machine alone.
        plain.set_scheme("http").is_ok() && is_confidential(&plain)
    }

    /// Returns true if the host belongs to Voyage.
    pub(crate) fn is_voyage(&self) -> bool {
        matches!(self.0.host(), Some(Host::Domain(name)) if name == "voyageai.com" || name.ends_with(".voyageai.com"))
    }
}

impl fmt::Display for ServiceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_services_have_a_host_and_no_secret() {
        for text in ["", "api.openai.com", "ftp://x", "https://", "file:///etc"] {
            assert_eq!(text.parse::<ServiceUrl>(), Err(InvalidServiceUrl::NotAUrl), "{text}");
        }
        assert_eq!("https://a:b@x".parse::<ServiceUrl>(), Err(InvalidServiceUrl::HasUserInfo));
        assert_eq!("https://x/v1?key=1".parse::<ServiceUrl>(), Err(InvalidServiceUrl::HasQuery));
    }

    #[test]
    fn this_machine_is_recognized() {
        for (text, expect) in
            [("https://localhost", true), ("http://127.0.0.1:1", true), ("https://api.openai.com", false)]
        {
            assert_eq!(text.parse::<ServiceUrl>().unwrap().is_this_machine(), expect, "{text}");
        }
    }
}
