//! Names of projects.

use std::fmt;
use std::str::FromStr;

use fetchwell_core::handle::ConnectionId;
use serde::{Serialize, Serializer};

use super::uuid::Uuid;

/// Maximum length of a slug.
const MAX_SLUG_BYTES: usize = 100;

/// The name of a project: `[a-z0-9][a-z0-9_-]{0,99}`, and no UUID. It is also the id of the project's connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProjectSlug(ConnectionId);

/// The error for a text that is no slug.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a project slug has 1 to 100 of the characters a-z, 0-9, _ and -, begins with a letter or digit, and is no UUID"
)]
pub struct InvalidSlug;

/// A project as a request names it: by its slug or by its id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ProjectRef {
    /// Slug of the project.
    Slug(ProjectSlug),
    /// Id of the project.
    Id(Uuid),
}

impl ProjectSlug {
    /// Returns the slug as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the id of the connection that has the documents of the project.
    #[must_use]
    pub fn connection(&self) -> &ConnectionId {
        &self.0
    }
}

impl FromStr for ProjectSlug {
    type Err = InvalidSlug;

    fn from_str(text: &str) -> Result<Self, InvalidSlug> {
        let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let has_letters = text.bytes().all(|byte| is_letter(byte) || byte == b'_' || byte == b'-');
        let is_slug = has_letters
            && text.len() <= MAX_SLUG_BYTES
            && text.bytes().next().is_some_and(is_letter)
            && text.parse::<Uuid>().is_err();
        if !is_slug {
            return Err(InvalidSlug);
        }
        text.parse().map(Self).map_err(|_invalid| InvalidSlug)
    }
}

impl fmt::Display for ProjectSlug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ProjectSlug {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl FromStr for ProjectRef {
    type Err = InvalidSlug;

    fn from_str(text: &str) -> Result<Self, InvalidSlug> {
        match text.parse() {
            Ok(id) => Ok(Self::Id(id)),
            Err(_no_uuid) => text.parse().map(Self::Slug),
        }
    }
}

impl fmt::Display for ProjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slug(slug) => slug.fmt(f),
            Self::Id(id) => id.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_follow_their_grammar() {
        for slug in ["a", "0", "my-project", "a_b-c", &"x".repeat(100)] {
            assert_eq!(slug.parse::<ProjectSlug>().unwrap().as_str(), slug);
        }
        for bad in ["", "-a", "_a", "A", "a:b", "a*", "a/b", "a b", "é", &"x".repeat(101)] {
            assert_eq!(bad.parse::<ProjectSlug>(), Err(InvalidSlug), "{bad}");
        }
    }

    #[test]
    fn a_uuid_names_a_project_by_its_id() {
        let id = "550e8400-e29b-41d4-a716-446655440000";
        assert_eq!(id.parse::<ProjectSlug>(), Err(InvalidSlug));
        assert_eq!(id.parse::<ProjectRef>(), Ok(ProjectRef::Id(id.parse().unwrap())));
        assert_eq!("docs".parse::<ProjectRef>().unwrap().to_string(), "docs");
    }
}
