//! Random identifiers (RFC 9562, version 4).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Positions of the hyphens in the text of an identifier.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// Length of the text of an identifier.
const TEXT_LEN: usize = 36;

/// An identifier of a project, a document, a chunk or a search.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Uuid([u8; 16]);

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

    /// Creates an identifier of given random bytes: all but those of the version and the variant are used.
    #[must_use]
    pub fn from_random_bytes(mut bytes: [u8; 16]) -> Self {
        let [.., version, _, variant, _, _, _, _, _, _, _] = &mut bytes;
        *version = *version & 0x0F | 0x40;
        *variant = *variant & 0x3F | 0x80;
        Self(bytes)
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let hyphen = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{hyphen}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uuid({self})")
    }
}

impl FromStr for Uuid {
    type Err = InvalidUuid;

    /// Parses the text form with hyphens, in any case.
    fn from_str(text: &str) -> Result<Self, InvalidUuid> {
        let has_hyphens = HYPHENS.iter().all(|at| text.as_bytes().get(*at) == Some(&b'-'));
        if text.len() != TEXT_LEN || !has_hyphens {
            return Err(InvalidUuid);
        }
        let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
        let mut bytes = [0; 16];
        if digits.len() != bytes.len() * 2 {
            return Err(InvalidUuid);
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit =
                |digit: &u8| char::from(*digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            let [high, low] = pair else { return Err(InvalidUuid) };
            *byte = digit(high).ok_or(InvalidUuid)? << 4 | digit(low).ok_or(InvalidUuid)?;
        }
        Ok(Self(bytes))
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
