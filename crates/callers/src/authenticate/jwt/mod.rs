//! Verification of JWTs (RFC 9068) with the keys of their issuer (RFC 7517).
//!
//! * `unverified`: parses a token and verifies its signature
//! * `keys`, `key_set`: an issuer's keys and their cache

mod key_set;
mod keys;
mod unverified;

pub(super) use self::key_set::KeySet;
pub(super) use self::unverified::{UnverifiedJwt, looks_like_jwt};
