//! A link that a person can open.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use url::Url;

/// The longest link that is passed on, in bytes. A link is never cut, so a longer one is dropped.
const MAX_LINK_BYTES: usize = 1_024;

/// An absolute `http` or `https` URL without user name or password.
///
/// Clients make a citation only from such a link, and a model may repeat it to a person: hence no
/// credentials in it, and no other scheme.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WebLink(String);

impl WebLink {
    /// The link as the record holds it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The text is not a link that a person can open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an absolute http or https URL without credentials")]
pub struct NotAWebLink;

impl FromStr for WebLink {
    type Err = NotAWebLink;

    fn from_str(text: &str) -> Result<Self, NotAWebLink> {
        let trimmed = text.trim();
        // The prefix is checked before parsing because URL parsers accept `https:example.com`.
        let has_scheme = ["http://", "https://"].iter().any(|scheme| {
            trimmed.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        });
        if !has_scheme || trimmed.len() > MAX_LINK_BYTES || trimmed.contains(char::is_whitespace) {
            return Err(NotAWebLink);
        }
        let url = Url::parse(trimmed).map_err(|_not_a_url| NotAWebLink)?;
        if url.host_str().is_none_or(str::is_empty) || !url.username().is_empty() || url.password().is_some()
        {
            return Err(NotAWebLink);
        }
        Ok(Self(trimmed.to_owned()))
    }
}

impl TryFrom<String> for WebLink {
    type Error = NotAWebLink;

    fn try_from(text: String) -> Result<Self, NotAWebLink> {
        text.parse()
    }
}

impl From<WebLink> for String {
    fn from(link: WebLink) -> Self {
        link.0
    }
}

impl fmt::Display for WebLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_a_person_can_open_pass() {
        for good in
            ["https://example.com", "http://example.com/a?b=c#d", "HTTPS://Example.com/x", "https://[::1]:8/"]
        {
            assert_eq!(good.parse::<WebLink>().unwrap().as_str(), good);
        }
        let long = format!("https://example.com/{}", "a".repeat(MAX_LINK_BYTES));
        let bad = [
            "",
            "example.com",
            "/v1/streams/s/records/r",
            "javascript:alert(1)",
            "ftp://x.org/",
            "https:example.com",
            "https://user:secret@example.com/",
            "https://exa mple.com/",
            "https://",
            "mailto:a@b.c",
            &long,
        ];
        for text in bad {
            assert_eq!(text.parse::<WebLink>(), Err(NotAWebLink), "{text}");
        }
    }
}
