//! Ids of parts: a handle, and the version of the text that the part is of, such as `c/s/r/p1~0a1b2c3d`.
//!
//! A source that keeps no versions may return another text for each part. The version in the id of the next part tells the
//! reader of that part, and no other one, that the text has changed.

use std::fmt;
use std::str::FromStr;

use super::fault::InvalidHandle;
use super::grammar::Handle;

/// Character between the handle of a part and the version of its text. The number of a part does not have it.
const VERSION_MARK: char = '~';

/// Number of hexadecimal digits of a version.
const VERSION_DIGITS: usize = 8;

/// The start of the hash of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextVersion(String);

/// A handle, and the version of the text if the handle is that of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartId {
    /// Handle of the record or of the part.
    pub handle: Handle,
    /// Version of the text that the part is of, if the id has one.
    pub version: Option<TextVersion>,
}

impl TextVersion {
    /// Creates the version of a text by its hash as hexadecimal digits, of which the first ones are used.
    #[must_use]
    pub fn from_hash(hash: &str) -> Self {
        Self(hash.get(..VERSION_DIGITS).unwrap_or(hash).to_ascii_lowercase())
    }
}

impl FromStr for PartId {
    type Err = InvalidHandle;

    fn from_str(text: &str) -> Result<Self, InvalidHandle> {
        let versioned = text.rsplit_once(VERSION_MARK).and_then(|(part, version)| {
            let is_digit = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
            let is_version = version.len() == VERSION_DIGITS && version.bytes().all(is_digit);
            // The key of a record may end in the same characters.
            let handle =
                part.parse::<Handle>().ok().filter(|handle| is_version && handle.part().is_some())?;
            Some(Self { handle, version: Some(TextVersion(version.to_owned())) })
        });
        versioned.map_or_else(|| Ok(Self { handle: text.parse()?, version: None }), Ok)
    }
}

impl fmt::Display for PartId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.fmt(f)?;
        match &self.version {
            Some(TextVersion(version)) if self.handle.part().is_some() => {
                write!(f, "{VERSION_MARK}{version}")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_parts_have_the_version_of_the_text() {
        let version = || Some(TextVersion::from_hash("0A1b2c3d4e5f"));
        for (text, part, expect) in [
            ("c/s/r/p1~0a1b2c3d", Some(1), version()),
            ("c/s/r/p1", Some(1), None),
            ("c/s:r", None, None),
            // These are keys of records.
            ("c/s:r~0a1b2c3d", None, None),
            ("c/s/r%20~0a1b2c3d", None, None),
        ] {
            let id: PartId = text.parse().unwrap();
            assert_eq!((id.handle.part(), &id.version), (part, &expect), "{text}");
            assert_eq!(id.to_string(), text);
        }
        for text in ["c/s/r/p1~0a1b2c3", "c/s/r/p1~0A1b2c3d", "c/s/r/p1~~0a1b2c3d", "c/s/r/q1~0a1b2c3d"] {
            assert!(text.parse::<PartId>().is_err(), "{text}");
        }
    }
}
