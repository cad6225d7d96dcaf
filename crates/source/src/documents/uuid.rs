//! Random identifiers (RFC 9562, version 4).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An identifier of a project, a document, a chunk or a search.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Uuid(uuid::Uuid);

/// The error for a text that is no identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is not a UUID such as 550e8400-e29b-41d4-a716-446655440000")]
pub struct InvalidUuid;

impl Uuid {
    /// Creates an identifier of random bytes.
    ///
    /// # Errors
    ///
    /// The system has no random bytes.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self::from_random_bytes(bytes))
    }

    /// Returns the 16 bytes of the identifier, the most significant first.
    #[must_use]
    pub fn into_bytes(self) -> [u8; 16] {
        self.0.into_bytes()
    }

    /// Creates an identifier of given random bytes: all but those of the version and the variant are used.
    fn from_random_bytes(bytes: [u8; 16]) -> Self {
        Self(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.as_hyphenated(), f)
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uuid({self})")
    }
}

impl FromStr for Uuid {
    type Err = InvalidUuid;

    /// Parses the text form with hyphens, in any case. Without hyphens it would be the slug of a project.
    fn from_str(text: &str) -> Result<Self, InvalidUuid> {
        let parsed = text.parse::<uuid::fmt::Hyphenated>().map_err(|_invalid| InvalidUuid)?;
        Ok(Self(parsed.into_uuid()))
    }
}

impl TryFrom<String> for Uuid {
    type Error = InvalidUuid;

    fn try_from(text: String) -> Result<Self, InvalidUuid> {
        text.parse()
    }
}

impl From<Uuid> for String {
    fn from(uuid: Uuid) -> Self {
        uuid.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_agree() {
        for text in ["550e8400-e29b-41d4-a716-446655440000", "00000000-0000-0000-0000-000000000000"] {
            assert_eq!(text.parse::<Uuid>().unwrap().to_string(), text);
            assert_eq!(text.to_uppercase().parse::<Uuid>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "550e8400e29b41d4a716446655440000",
            "550e8400-e29b-41d4-a716-44665544000",
            "550e8400-e29b-41d4-a716-44665544000g",
            "550e8400-e29b-41d4-a716-4466554400--",
            "550e8400-e29b-41d4-a716-44665544é000",
        ] {
            assert_eq!(text.parse::<Uuid>(), Err(InvalidUuid), "{text}");
        }
    }

    #[test]
    fn random_identifiers_are_of_version_4() {
        let (one, other) = (Uuid::random().unwrap(), Uuid::random().unwrap());
        assert_ne!(one, other);
        let text = Uuid::from_random_bytes([0xFF; 16]).to_string();
        assert_eq!(text, "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }
}
