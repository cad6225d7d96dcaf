//! The public keys of an issuer's key set (RFC 7517), and the selection of the key for a token.
//!
//! A key is selected by its id and by the key type of the algorithm, so a token cannot choose how a key is used.

use std::sync::Arc;

use jsonwebtoken::DecodingKey;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use serde::Deserialize;
use serde_json::Value;

use crate::authenticate::algorithm::Algorithm;

/// Maximum number of keys in a set.
const MAX_KEYS: usize = 64;

/// The keys that can verify signatures. Never empty.
#[derive(Debug)]
pub(super) struct Keys(Vec<Key>);

#[derive(Debug)]
struct Key {
    id: Option<String>,
    key_type: KeyType,
    /// The only algorithm of the key, if the set restricts it.
    only: Option<Algorithm>,
    key: Arc<DecodingKey>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyType {
    Rsa,
    P256,
    P384,
    Ed25519,
}

/// The key that a token requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyQuery {
    /// Id of the key (`kid`), if the token has one.
    pub(crate) key_id: Option<String>,
    /// Algorithm of the signature (`alg`).
    pub(crate) algorithm: Algorithm,
}

/// The result of a key selection.
#[derive(Debug)]
pub(super) enum KeyMatch {
    Key(Arc<DecodingKey>),
    /// A key has that id, but is for other algorithms.
    OtherType,
    /// No key fits, or several do.
    Unknown,
}

impl Keys {
    /// Parses a key set. Skips keys that cannot verify signatures or are not supported.
    pub(super) fn read(json: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Value>,
        }
        // The parser's message may quote the body, so it is dropped.
        let set: Set = serde_json::from_slice(json).map_err(|_error| "it is not a key set".to_owned())?;
        if set.keys.len() > MAX_KEYS {
            return Err(format!("it has {} keys, {MAX_KEYS} are read", set.keys.len()));
        }
        let keys: Vec<Key> = set.keys.into_iter().filter_map(Key::read).collect();
        if keys.is_empty() { Err("it has no usable key".to_owned()) } else { Ok(Self(keys)) }
    }

    /// Selects the key that a token requires.
    pub(super) fn find(&self, query: &KeyQuery) -> KeyMatch {
        let named = |key: &&Key| query.key_id.is_none() || key.id == query.key_id;
        let mut fitting = self.0.iter().filter(named).filter(|key| key.fits(query.algorithm));
        match (fitting.next(), fitting.next()) {
            (Some(key), None) => KeyMatch::Key(Arc::clone(&key.key)),
            (None, _) if query.key_id.is_some() && self.0.iter().any(|key| named(&key)) => {
                KeyMatch::OtherType
            }
            (Some(_) | None, _) => KeyMatch::Unknown,
        }
    }
}

impl Key {
    fn read(jwk: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(jwk).ok()?;
        let key_type = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => KeyType::Rsa,
            AlgorithmParameters::EllipticCurve(curve) => match curve.curve {
                EllipticCurve::P256 => KeyType::P256,
                EllipticCurve::P384 => KeyType::P384,
                _ => return None,
            },
            AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => {
                KeyType::Ed25519
            }
            // Symmetric keys in particular: nothing signed with one is ever accepted.
            _ => return None,
        };
        let is_for_signatures =
            jwk.common.public_key_use.as_ref().is_none_or(|purpose| *purpose == PublicKeyUse::Signature)
                && jwk.common.key_operations.as_ref().is_none_or(|all| all.contains(&KeyOperations::Verify));
        if !is_for_signatures {
            return None;
        }
        let only = match jwk.common.key_algorithm {
            Some(algorithm) => Some(algorithm.to_string().parse().ok()?),
            None => None,
        };
        let key = Arc::new(DecodingKey::from_jwk(&jwk).ok()?);
        Some(Self { id: jwk.common.key_id, key_type, only, key })
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        self.only.is_none_or(|only| only == algorithm) && self.key_type == KeyType::from_algorithm(algorithm)
    }
}

impl KeyType {
    fn from_algorithm(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::RS256
            | Algorithm::RS384
            | Algorithm::RS512
            | Algorithm::PS256
            | Algorithm::PS384
            | Algorithm::PS512 => Self::Rsa,
            Algorithm::ES256 => Self::P256,
            Algorithm::ES384 => Self::P384,
            Algorithm::EdDSA => Self::Ed25519,
        }
    }
}
