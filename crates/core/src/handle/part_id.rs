//! Ids of parts: a handle, and the version of the text that the part is of, such as `c/s/r/p1~0a1b2c3d`.
//!
//! A source that keeps no versions may return another text for each part. The version in the id of the next part tells the
//! reader of that part, and no other one, that the text has changed.
//!
//! Properties, tested by proptest and the fuzz target of parts: an id of a part parses back, and a text that parses is the only
//! spelling of its id.

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
    /// Creates the version of a text by its hash as hexadecimal digits, of which the first ones are used. A shorter hash is filled
    /// up with zeros, and other characters are left out.
    #[must_use]
    pub fn from_hash(hash: &str) -> Self {
        let digits = hash.chars().filter(char::is_ascii_hexdigit).map(|digit| digit.to_ascii_lowercase());
        Self(digits.chain(std::iter::repeat('0')).take(VERSION_DIGITS).collect())
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
    use proptest::prelude::*;
    use proptest::test_runner::Config;

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

    /// Texts close to the grammar, so that many of them parse.
    fn any_text() -> impl Strategy<Value = String> {
        const KEY: &str = "([a-z0-9._~-]|%[0-9A-F][0-9A-F]|:){1,6}";
        const VERSION: &str = "(~[0-9a-f]{8}|~[0-9a-fA-F~]{7,9}|~.{0,9}|)";
        prop_oneof![
            (KEY, KEY, KEY, "p[0-9]{1,3}", VERSION)
                .prop_map(|(a, b, c, part, version)| format!("{a}/{b}/{c}/{part}{version}")),
            (KEY, KEY, VERSION).prop_map(|(a, b, version)| format!("{a}/{b}{version}")),
            any::<String>(),
        ]
    }

    proptest! {
        #![proptest_config(Config { cases: 2_000, ..Config::default() })]

        #[test]
        fn law_an_id_of_a_part_parses_back(text in any_text(), number in any::<u32>(), hash in any::<String>()) {
            let part = text.parse::<Handle>().ok().and_then(|handle| handle.with_part(number));
            if let Some(handle) = part {
                for version in [None, Some(TextVersion::from_hash(&hash))] {
                    let id = PartId { handle: handle.clone(), version };
                    prop_assert_eq!(id.to_string().parse::<PartId>(), Ok(id));
                }
            }
        }

        #[test]
        fn law_a_text_is_the_only_spelling_of_its_id(text in any_text()) {
            match (text.parse::<PartId>(), text.parse::<Handle>()) {
                (Ok(id), handle) => {
                    prop_assert_eq!(id.to_string(), text);
                    prop_assert_eq!(id.version.is_none(), handle.is_ok());
                    prop_assert!(id.version.is_none() || id.handle.part().is_some());
                }
                (Err(_), handle) => prop_assert!(handle.is_err()),
            }
        }
    }
}
