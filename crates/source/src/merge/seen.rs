//! Digests of rows that were returned, for deduplication.
//!
//! A digest has eight bytes. Among a million names, the probability of a collision is one in forty million.

use std::collections::{HashSet, VecDeque};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// Digest of a row name.
pub type Key = u64;

/// Set of digests of returned rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SeenRows(HashSet<Key>);

/// Returns the digest of a name in pieces. Each piece is hashed with its length, so that the boundaries count.
pub fn digest<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Key {
    let mut digest = Sha256::new();
    for piece in pieces {
        digest.update(piece.len().to_be_bytes());
        digest.update(piece);
    }
    digest.finalize().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl SeenRows {
    /// Inserts a digest. Returns true if it is new.
    pub fn insert(&mut self, key: Key) -> bool {
        self.0.insert(key)
    }

    /// Returns true if the key was seen.
    pub fn contains(&self, key: Key) -> bool {
        self.0.contains(&key)
    }
}

/// Digests of the last rows that an input returned, oldest first.
///
/// A server with overlapping or cyclic pages returns rows again. Such a row cannot be told from one that is merely
/// out of order, and no row may be lost, so recent rows are remembered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Recent(VecDeque<Key>);

/// Maximum number of digests of one input: a whole page, in less than two kilobytes of a position.
const MAX_RECENT: usize = 128;

impl Recent {
    /// Inserts a digest and drops the oldest one beyond the maximum. Returns true if it is new.
    pub(crate) fn insert(&mut self, key: Key) -> bool {
        if self.0.contains(&key) {
            return false;
        }
        self.0.push_back(key);
        if self.0.len() > MAX_RECENT {
            self.0.pop_front();
        }
        true
    }

    pub(crate) fn is_empty(&self) -> bool {
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

impl Serialize for SeenRows {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut keys: Vec<Key> = self.0.iter().copied().collect();
        keys.sort_unstable();
        serializer.serialize_str(&packed(keys.into_iter()))
    }
}

impl<'de> Deserialize<'de> for SeenRows {
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
        fn digests_round_trip(keys in any::<Vec<Key>>()) {
            let mut seen = SeenRows::default();
            for key in keys {
                seen.insert(key);
            }
            let text = serde_json::to_string(&seen).unwrap();
            prop_assert_eq!(serde_json::from_str::<SeenRows>(&text).unwrap(), seen);
        }
    }

    #[test]
    fn piece_boundaries_change_the_digest() {
        let of = |pieces: [&str; 2]| digest(pieces.map(str::as_bytes));
        assert_ne!(of(["ab", "c"]), of(["a", "bc"]));
    }
}
