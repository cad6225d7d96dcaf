//! Categories of documents.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// Maximum length of a category in characters.
const MAX_CATEGORY_CHARS: usize = 50;

/// Category of a document.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Category(Box<str>);

/// The error for a text that is no category.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a category has 1 to 50 characters, none of which is a control character")]
pub struct InvalidCategory;

impl Category {
    /// The categories that imports assign, in the order in which they are listed.
    pub const KNOWN: [&'static str; 6] =
        ["intent", "research", "references", "process", "workspace", Self::GENERAL];

    /// Category of a document without another one.
    pub const GENERAL: &'static str = "general";

    /// Returns the category `general`.
    #[must_use]
    pub fn general() -> Self {
        Self(Self::GENERAL.into())
    }

    /// Returns the known category of a name in any case.
    #[must_use]
    pub fn known(name: &str) -> Option<Self> {
        let name = name.trim();
        Self::KNOWN.iter().find(|known| known.eq_ignore_ascii_case(name)).map(|known| Self((*known).into()))
    }

    /// Returns the category as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Category {
    type Err = InvalidCategory;

    fn from_str(text: &str) -> Result<Self, InvalidCategory> {
        let length = text.chars().count();
        let is_valid = (1..=MAX_CATEGORY_CHARS).contains(&length) && !text.contains(char::is_control);
        if is_valid { Ok(Self(text.into())) } else { Err(InvalidCategory) }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Category {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_are_short() {
        assert_eq!("é".repeat(50).parse::<Category>().unwrap().as_str(), "é".repeat(50));
        for bad in ["", "a\nb", &"é".repeat(51)] {
            assert_eq!(bad.parse::<Category>(), Err(InvalidCategory));
        }
        assert_eq!(Category::known(" Research").unwrap().as_str(), "research");
        assert_eq!(Category::known("other"), None);
    }
}
