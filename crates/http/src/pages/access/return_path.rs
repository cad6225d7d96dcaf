//! The page that a browser returns to after a sign-in.
//!
//! **Invariant:** a return path is the path of a page of this server, so no form and no link can send a browser elsewhere.

use std::fmt;
use std::str::FromStr;

use fetchwell_callers::RecordPages;
use fetchwell_core::handle::{Handle, PartId};
use percent_encoding::percent_decode_str;

/// Prefix of the paths of records.
pub(crate) const RECORDS: &str = "/records/";

/// Paths of pages that need a session for all records of a grant, each with the paths below it.
const PAGES: [&str; 5] = ["/", "/sources", "/projects", "/model", "/operator"];

/// Maximum length of the path of a page with its query, in bytes. A session begins with a cookie that contains it.
const MAX_PATH_BYTES: usize = 1_500;

/// Path of a page of this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReturnPath {
    /// Page of a record, or of a part of it.
    Record(Box<PartId>),
    /// Another page, with its query.
    Page(Box<str>),
}

/// Reason to refuse a return path: it is no page of this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotAPage;

impl ReturnPath {
    /// Creates the return path of a record.
    pub(crate) fn record(id: &PartId) -> Self {
        Self::Record(Box::new(id.clone()))
    }

    /// Creates the return path of a page. A query that is too long is left out.
    pub(crate) fn page(path: &str, query: Option<&str>) -> Self {
        let whole = query.map(|query| format!("{path}?{query}"));
        let whole = whole.and_then(|whole| whole.parse().ok()).filter(|to| matches!(to, Self::Page(_)));
        whole.or_else(|| path.parse().ok()).unwrap_or_else(|| Self::Page("/".into()))
    }

    /// Returns the path in its short form: the id of a record, or the path of another page. No id begins with `/`.
    pub(super) fn to_short(&self) -> String {
        match self {
            Self::Record(id) => id.to_string(),
            Self::Page(path) => path.to_string(),
        }
    }

    /// Parses the short form.
    pub(super) fn from_short(text: &str) -> Option<Self> {
        match text.parse::<PartId>() {
            Ok(id) => Some(Self::record(&id)),
            Err(_no_id) => text.parse().ok(),
        }
    }

    /// Returns the handle of a record's page.
    pub(crate) fn handle(&self) -> Option<&Handle> {
        match self {
            Self::Record(id) => Some(&id.handle),
            Self::Page(_) => None,
        }
    }
}

impl FromStr for ReturnPath {
    type Err = NotAPage;

    fn from_str(text: &str) -> Result<Self, NotAPage> {
        if let Some(id) = record_id(text) {
            return Ok(Self::Record(Box::new(id)));
        }
        let path = text.split(['?', '#']).next().unwrap_or_default();
        let is_below = |page: &&str| {
            path.strip_prefix(*page).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let is_page = path == "/" || PAGES.iter().filter(|page| **page != "/").any(is_below);
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\' && byte != b'#');
        let is_valid = is_page && is_plain && text.len() <= MAX_PATH_BYTES;
        if is_valid { Ok(Self::Page(text.into())) } else { Err(NotAPage) }
    }
}

impl fmt::Display for ReturnPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(id) => f.write_str(&record_path(id)),
            Self::Page(path) => f.write_str(path),
        }
    }
}

/// Returns the path of the page of a record, or of a part with the version of its text.
pub(crate) fn record_path(id: &PartId) -> String {
    let text = id.to_string();
    let version = text.strip_prefix(id.handle.as_str()).unwrap_or_default();
    format!("{}{version}", RecordPages::path(&id.handle))
}

/// Parses the id in the path of a record's page.
pub(crate) fn record_id(path: &str) -> Option<PartId> {
    let encoded = path.strip_prefix(RECORDS)?;
    percent_decode_str(encoded).decode_utf8().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_this_server_are_return_paths() {
        let parse = |text: &str| text.parse::<ReturnPath>().map(|to| to.to_string());
        for page in [
            "/",
            "/?q=a+b&stream=x",
            "/sources",
            "/projects/handbook",
            "/records/cin_a/s:1",
            "/operator/calls",
        ] {
            assert_eq!(parse(page), Ok(page.to_owned()));
        }
        for other in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/mcp",
            "/sourcesx",
            "/records/",
            "/records/x",
            "/?q=é",
            "/?a\r\nb",
            "javascript:alert(1)",
            "/sources#x",
            "/records/-/sign-out",
        ] {
            assert_eq!(parse(other), Err(NotAPage), "{other}");
        }
        let long = ReturnPath::page("/", Some(&"q".repeat(2_000)));
        assert_eq!(long.to_string(), "/");
        assert_eq!(ReturnPath::page("/sources", Some("a=1")).to_string(), "/sources?a=1");
        for page in [
            "/?q=a",
            "/records/cin_a/s:1",
            "/records/cin_a/s/1/p2~0a1b2c3d",
            "/records/cin/documents/%252E%252E%252Fescape",
        ] {
            let to: ReturnPath = page.parse().unwrap();
            assert_eq!(to.to_string(), page);
            assert_eq!(ReturnPath::from_short(&to.to_short()), Some(to));
        }
    }
}
