//! The public keys of an authorization server, as its key set (RFC 7517) has them, and which of them a token needs.
//!
//! A key is found by its id and by the type that the algorithm needs, both: a token cannot choose how a key is used.

use std::sync::Arc;

use jsonwebtoken::DecodingKey;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use serde::Deserialize;
use serde_json::Value;

use super::Algorithm;

/// The most keys of a set.
const KEYS_MOST: usize = 64;

/// The keys that can check a signature; never none.
#[derive(Debug)]
pub(super) struct Keys(Vec<Key>);

#[derive(Debug)]
struct Key {
    id: Option<String>,
    kind: Kind,
    /// The only algorithm it is for, when the set says so.
    only: Option<Algorithm>,
    key: Arc<DecodingKey>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rsa,
    P256,
    P384,
    Ed25519,
}

/// The key that a token needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Its `kid`.
    pub(super) key_id: Option<String>,
    /// Its `alg`.
    pub(super) algorithm: Algorithm,
}

/// What there is of it.
#[derive(Debug)]
pub(super) enum Found {
    Key(Arc<DecodingKey>),
    /// A key of that id is for other algorithms.
    OtherType,
    /// There is none, or several of which nobody says which.
    Unknown,
}

impl Keys {
    /// Reads a key set. Keys that check no signatures, or that we cannot use, are left out.
    pub(super) fn read(json: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Value>,
        }
        // The parser's message may quote the body.
        let set: Set = serde_json::from_slice(json).map_err(|_error| "it is no key set".to_owned())?;
        if set.keys.len() > KEYS_MOST {
            return Err(format!("it has {} keys, {KEYS_MOST} are read", set.keys.len()));
        }
        let keys: Vec<Key> = set.keys.into_iter().filter_map(Key::read).collect();
        if keys.is_empty() { Err("it has no key that can be used".to_owned()) } else { Ok(Self(keys)) }
    }

    /// The key that a token needs.
    pub(super) fn find(&self, wanted: &Wanted) -> Found {
        let named = |key: &&Key| wanted.key_id.is_none() || key.id == wanted.key_id;
        let mut fitting = self.0.iter().filter(named).filter(|key| key.fits(wanted.algorithm));
        match (fitting.next(), fitting.next()) {
            (Some(key), None) => Found::Key(Arc::clone(&key.key)),
            (None, _) if wanted.key_id.is_some() && self.0.iter().any(|key| named(&key)) => Found::OtherType,
            (Some(_) | None, _) => Found::Unknown,
        }
    }
}

impl Key {
    fn read(jwk: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(jwk).ok()?;
        let kind = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => Kind::Rsa,
            AlgorithmParameters::EllipticCurve(curve) => match curve.curve {
                EllipticCurve::P256 => Kind::P256,
                EllipticCurve::P384 => Kind::P384,
                _ => return None,
            },
            AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => Kind::Ed25519,
            // A symmetric key above all: nothing signed with one is ever accepted.
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
        Some(Self { id: jwk.common.key_id, kind, only, key })
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        self.only.is_none_or(|only| only == algorithm) && self.kind == Kind::of(algorithm)
    }
}

impl Kind {
    fn of(algorithm: Algorithm) -> Self {
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
