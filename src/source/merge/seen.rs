//! What was given before, as digests.
//!
//! Eight bytes each, packed when a position is written. Of a million names the chance that two agree is one in
//! forty million.

use std::collections::{HashSet, VecDeque};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// The digest of a name.
pub(in crate::source) type Key = u64;

/// Names that were given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::source) struct Seen(HashSet<Key>);

/// The digest of a name in pieces, each of which ends where it ends.
pub(in crate::source) fn digest<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Key {
    let mut digest = Sha256::new();
    for piece in pieces {
        digest.update(piece.len().to_be_bytes());
        digest.update(piece);
    }
    digest.finalize().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl Seen {
    /// Adds a name, and says whether it is new.
    pub(in crate::source) fn insert(&mut self, key: Key) -> bool {
        self.0.insert(key)
    }

    pub(in crate::source) fn contains(&self, key: Key) -> bool {
        self.0.contains(&key)
    }
}

/// The last names that were given of a lane, oldest first.
///
/// A server whose pages overlap, or lead in a circle, gives rows again. Nothing else tells such a row from one
/// that only stands where it is not expected, and a row must not be lost; so this many are remembered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::source) struct Recent(VecDeque<Key>);

/// The most names of one lane: a whole page, in less than two kilobytes of a position.
const RECENT_MOST: usize = 128;

impl Recent {
    /// Adds a name, and says whether it is new.
    pub(in crate::source) fn insert(&mut self, key: Key) -> bool {
        if self.0.contains(&key) {
            return false;
        }
        self.0.push_back(key);
        if self.0.len() > RECENT_MOST {
            self.0.pop_front();
        }
        true
    }

    pub(in crate::source) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Recent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&packed(self.0.iter().copied()))
    }
}

impl<'de> Deserialize<'de> for Recent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        unpacked(deserializer).map(Self)
    }
}

fn packed(keys: impl Iterator<Item = Key>) -> String {
    let bytes: Vec<u8> = keys.flat_map(Key::to_be_bytes).collect();
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn unpacked<'de, D: Deserializer<'de>, Keys: FromIterator<Key>>(deserializer: D) -> Result<Keys, D::Error> {
    let text = String::deserialize(deserializer)?;
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(serde::de::Error::custom)?;
    let (keys, _rest) = bytes.as_chunks::<8>();
    Ok(keys.iter().map(|key| Key::from_be_bytes(*key)).collect())
}

impl Serialize for Seen {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut keys: Vec<Key> = self.0.iter().copied().collect();
        keys.sort_unstable();
        serializer.serialize_str(&packed(keys.into_iter()))
    }
}

impl<'de> Deserialize<'de> for Seen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        unpacked(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(keys in any::<Vec<Key>>()) {
            let mut seen = Seen::default();
            for key in keys {
                seen.insert(key);
            }
            let text = serde_json::to_string(&seen).unwrap();
            prop_assert_eq!(serde_json::from_str::<Seen>(&text).unwrap(), seen);
        }
    }

    #[test]
    fn pieces_end_where_they_end() {
        let of = |pieces: [&str; 2]| digest(pieces.map(str::as_bytes));
        assert_ne!(of(["ab", "c"]), of(["a", "bc"]));
    }
}
