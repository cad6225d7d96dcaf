//! A link that a person can open.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::terminal::is_bidi_control;

/// Maximum length of a link in bytes. A link is never truncated, so a longer one is dropped.
const MAX_LINK_BYTES: usize = 1_024;

/// An absolute `http` or `https` URL without user name or password.
///
/// Clients use only such a link as a citation, and a model may repeat it to a person: hence no credentials and no
/// other scheme. Programs that parse a URL differently must not reach another host: backslashes and control
/// characters are rejected, and a host that is not in its parsed form (an international name, an IPv4 address in
/// another notation) is replaced by its parsed form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WebLink(String);

impl WebLink {
    /// Returns the link. It is the record's text unless its host had to be rewritten to the parsed form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The error for a text that is not a link that a person can open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an absolute http or https URL without credentials")]
pub struct InvalidLink;

impl FromStr for WebLink {
    type Err = InvalidLink;

    fn from_str(text: &str) -> Result<Self, InvalidLink> {
        let trimmed = text.trim();
        // The prefix is checked before parsing because URL parsers accept `https:example.com`.
        let has_scheme = ["http://", "https://"].iter().any(|scheme| {
            trimmed.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        });
        if !has_scheme
            || trimmed.len() > MAX_LINK_BYTES
            || trimmed.contains(|c: char| c == '\\' || c.is_whitespace() || c.is_control())
        {
            return Err(InvalidLink);
        }
        let url = Url::parse(trimmed).map_err(|_not_a_url| InvalidLink)?;
        if url.host_str().is_none_or(str::is_empty) || !url.username().is_empty() || url.password().is_some()
        {
            return Err(InvalidLink);
        }
        if is_written_as_read(trimmed, &url) {
            return Ok(Self(trimmed.to_owned()));
        }
        let url = String::from(url);
        if url.len() > MAX_LINK_BYTES { Err(InvalidLink) } else { Ok(Self(url)) }
    }
}

/// Returns true if the authority in `text` is that of the parsed URL, and no bidirectional control character changes
/// the order in which a person sees the rest.
fn is_written_as_read(text: &str, url: &Url) -> bool {
    let authority = text.split_once("://").map_or("", |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let read = format!("{}{port}", url.host_str().unwrap_or_default());
    authority.eq_ignore_ascii_case(&read) && !text.contains(is_bidi_control)
}

impl TryFrom<String> for WebLink {
    type Error = InvalidLink;

    fn try_from(text: String) -> Result<Self, InvalidLink> {
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
            // Browsers read `\` as `/`, other programs read the part before `@` as a user name.
            "https://evil.example\\@good.example/",
            "https:\\\\evil.example/",
            "https://good.example/\\..\\x",
            "https://good.example\u{1b}[31m/",
            "https://good.example/\u{9b}2J",
            "https://evil.example\u{0}.good.example/",
            &long,
        ];
        for text in bad {
            assert_eq!(text.parse::<WebLink>(), Err(InvalidLink), "{text}");
        }
    }

    #[test]
    fn a_link_shows_the_host_that_it_leads_to() {
        for (text, expect) in [
            // The first letter is Cyrillic.
            ("https://\u{430}pple.example/a", "https://xn--pple-43d.example/a"),
            ("https://good.example%2f.evil.example/", ""),
            ("https://ev%69l.example/x", "https://evil.example/x"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("https://good.example:443/a?b#c", "https://good.example/a?b#c"),
            ("https://good.example/\u{202e}gpj.exe", "https://good.example/%E2%80%AEgpj.exe"),
            ("https://good.example/K\u{e4}se", "https://good.example/K\u{e4}se"),
            ("https://good.example:8443?@evil.example", "https://good.example:8443?@evil.example"),
        ] {
            let link = text.parse::<WebLink>();
            assert_eq!(link.as_ref().map_or("", WebLink::as_str), expect, "{text}");
            // A parsed link parses to itself.
            if let Ok(link) = link {
                assert_eq!(link.as_str().parse(), Ok(link), "{text}");
            }
        }
    }
}
