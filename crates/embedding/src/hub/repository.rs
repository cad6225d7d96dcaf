//! Names of repositories and revisions, and the models that have short names.

use std::fmt;
use std::str::FromStr;

use super::error::InstallError;

/// Maximum length of each part of a name.
const MAX_PART: usize = 96;

/// Maximum length of a revision.
const MAX_REVISION: usize = 200;

/// Length of a commit id in hexadecimal digits.
const COMMIT_DIGITS: usize = 40;

/// The organization of models with a short name.
const ORGANIZATION: &str = "sentence-transformers";

/// A model of English texts: 6 layers, 384 dimensions, 91 MB.
pub const ENGLISH: &str = "all-MiniLM-L6-v2";

/// A model of texts in more than 50 languages: 12 layers, 384 dimensions, 490 MB.
pub const MULTILINGUAL: &str = "paraphrase-multilingual-MiniLM-L12-v2";

/// The name of a repository: `ORGANIZATION/NAME`.
///
/// **Invariant:** both parts consist of ASCII letters, digits, `.`, `_` and `-`, do not begin or end with `.` or `-`, and
/// have no `..` and no `--`, as the hub requires. So a part is the name of a file, and two names never share a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    organization: String,
    name: String,
}

impl Repository {
    /// Returns the two parts of the name.
    pub(super) fn parts(&self) -> [&str; 2] {
        [&self.organization, &self.name]
    }

    /// Returns the name of the folder of an installed model.
    #[must_use]
    pub fn folder_name(&self) -> String {
        self.parts().join("--")
    }
}

impl FromStr for Repository {
    type Err = InstallError;

    /// Parses `ORGANIZATION/NAME`, or the short name of a known model.
    fn from_str(text: &str) -> Result<Self, InstallError> {
        let invalid = || InstallError::InvalidName(text.to_owned());
        let (organization, name) = match text.split_once('/') {
            Some(parts) => parts,
            None if [ENGLISH, MULTILINGUAL].contains(&text) => (ORGANIZATION, text),
            None => return Err(invalid()),
        };
        if !is_folder_name(organization) || !is_folder_name(name) {
            return Err(invalid());
        }
        Ok(Self { organization: organization.to_owned(), name: name.to_owned() })
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.organization, self.name)
    }
}

/// Returns true if a text is a part of a name of a repository.
pub(super) fn is_folder_name(text: &str) -> bool {
    let is_edge = |byte: Option<&u8>| byte.is_none_or(|byte| matches!(byte, b'.' | b'-'));
    let bytes = text.as_bytes();
    let has_only =
        bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'));
    let is_plain = has_only && !text.contains("..") && !text.contains("--");
    bytes.len() <= MAX_PART && is_plain && !is_edge(bytes.first()) && !is_edge(bytes.last())
}

/// A branch, tag or commit of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision(String);

impl Revision {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Revision {
    fn default() -> Self {
        Self("main".to_owned())
    }
}

impl FromStr for Revision {
    type Err = InstallError;

    fn from_str(text: &str) -> Result<Self, InstallError> {
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/');
        let is_plain = !text.is_empty() && text.len() <= MAX_REVISION && !text.starts_with(['.', '-', '/']);
        if !is_plain || !text.bytes().all(is_valid) || text.contains("..") {
            return Err(InstallError::InvalidRevision(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

/// The id of a commit: 40 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Commit(String);

impl Commit {
    /// Returns the commit of a text, or `None` if it is not an id.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == COMMIT_DIGITS && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_two_plain_parts_or_known() {
        for (text, expect) in [
            ("intfloat/e5-small-v2", Some("intfloat--e5-small-v2")),
            ("BAAI/bge_small.en", Some("BAAI--bge_small.en")),
            ("all-MiniLM-L6-v2", Some("sentence-transformers--all-MiniLM-L6-v2")),
            ("unknown", None),
            ("", None),
            ("/", None),
            ("a/", None),
            ("a/b/c", None),
            ("../b", None),
            ("a/..", None),
            ("a/.b", None),
            ("a/b--c", None),
            ("a/b c", None),
            ("a/b\u{0}", None),
            ("a\\b/c", None),
            ("a/ü", None),
        ] {
            let parsed = text.parse::<Repository>().ok().map(|name| name.folder_name());
            assert_eq!(parsed.as_deref(), expect, "{text}");
        }
        assert!(format!("a/{}", "b".repeat(97)).parse::<Repository>().is_err());
    }

    #[test]
    fn revisions_lead_nowhere_else() {
        for (text, expect) in [
            ("main", true),
            ("refs/pr/21", true),
            ("v1.0-rc_2", true),
            ("", false),
            ("a/../b", false),
            ("/main", false),
            ("main?x", false),
            ("ma in", false),
        ] {
            assert_eq!(text.parse::<Revision>().is_ok(), expect, "{text}");
        }
        assert!(Commit::parse(&"a1".repeat(20)).is_some());
        for text in ["main", &"A1".repeat(20), &"a1".repeat(21)] {
            assert_eq!(Commit::parse(text), None, "{text}");
        }
    }
}
