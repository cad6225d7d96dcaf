//! A JWT: its header is read first, says which key is needed, and nothing else of it is read before that key's
//! signature is found to be right.
//!
//! Only `alg`, `typ`, `kid` and `crit` of a header are looked at. What a token says of where its key is (`jku`,
//! `x5u`, `jwk`) is nobody's word but its sender's.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::DecodingKey;
use serde::Deserialize;
use serde_json::Value;

use super::claims::Claims;
use super::keys::Wanted;
use super::{Algorithm, TokenFault};

/// What `typ` may be when it is there, in any case and with or without `application/`.
const TYPES: [&str; 2] = ["jwt", "at+jwt"];

/// A JWT of which only the header is read.
#[derive(Debug)]
pub(super) struct Unverified<'a> {
    wanted: Wanted,
    /// Header and payload, which are signed.
    message: &'a str,
    payload: &'a str,
    signature: &'a str,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    typ: Option<String>,
    kid: Option<String>,
    crit: Option<Value>,
}

/// Whether it is made of three parts, the first of which is a JSON object.
pub(super) fn looks_like_jwt(token: &str) -> bool {
    let header = (token.split('.').count() == 3).then(|| token.split('.').next()).flatten();
    let header = header.and_then(|header| URL_SAFE_NO_PAD.decode(header).ok());
    header.is_some_and(|json| matches!(serde_json::from_slice(&json), Ok(Value::Object(_))))
}

impl<'a> Unverified<'a> {
    /// Reads the header, and refuses what no key can make good.
    pub(super) fn read(token: &'a str, accepted: &[Algorithm]) -> Result<Self, TokenFault> {
        let malformed = TokenFault::Malformed;
        let (message, signature) = token.rsplit_once('.').ok_or(malformed)?;
        let (header, payload) = message.split_once('.').ok_or(malformed)?;
        let header = URL_SAFE_NO_PAD.decode(header).map_err(|_no_base64| malformed)?;
        let header: Header = serde_json::from_slice(&header).map_err(|_no_header| malformed)?;
        let algorithm: Algorithm = header.alg.parse().map_err(|_unknown| TokenFault::Algorithm)?;
        if !accepted.contains(&algorithm) {
            return Err(TokenFault::Algorithm);
        }
        if header.crit.is_some() {
            return Err(TokenFault::Critical);
        }
        if header.typ.is_some_and(|typ| !is_access_token(&typ)) {
            return Err(TokenFault::Type);
        }
        let wanted = Wanted { key_id: header.kid, algorithm };
        Ok(Self { wanted, message, payload, signature })
    }

    /// The key that it needs.
    pub(super) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// What it says, when it is signed by `key`, whose type is that of the algorithm.
    pub(super) fn verified_by(&self, key: &DecodingKey) -> Result<Claims, TokenFault> {
        let signature =
            URL_SAFE_NO_PAD.decode(self.signature).map_err(|_no_base64| TokenFault::Signature)?;
        if !self.wanted.algorithm.verify(key, self.message.as_bytes(), &signature) {
            return Err(TokenFault::Signature);
        }
        let payload = URL_SAFE_NO_PAD.decode(self.payload).map_err(|_no_base64| TokenFault::Malformed)?;
        Claims::read(&payload).ok_or(TokenFault::Malformed)
    }
}

fn is_access_token(typ: &str) -> bool {
    let typ = typ.to_ascii_lowercase();
    TYPES.contains(&typ.strip_prefix("application/").unwrap_or(&typ))
}
