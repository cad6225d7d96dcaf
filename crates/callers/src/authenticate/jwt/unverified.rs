//! Verification of JWTs. The header is parsed first and names the key; the payload is parsed only after the signature
//! has been verified with that key.
//!
//! Only `alg`, `typ`, `kid` and `crit` of a header are used. Key locations in the token (`jku`, `x5u`, `jwk`) are
//! ignored, because they are chosen by the sender.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::DecodingKey;
use serde::Deserialize;
use serde_json::Value;

use super::keys::KeyQuery;
use crate::authenticate::TokenFault;
use crate::authenticate::algorithm::Algorithm;
use crate::authenticate::claims::Claims;

/// Accepted values of `typ`, in any case and with or without `application/`. The header may also omit it.
const TYPES: [&str; 2] = ["jwt", "at+jwt"];

/// A JWT with a parsed header and an unverified signature.
#[derive(Debug)]
pub(crate) struct UnverifiedJwt<'a> {
    key_query: KeyQuery,
    /// Header and payload, which the signature covers.
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

/// Returns true if a token has three parts, the first of which encodes a JSON object.
pub(crate) fn looks_like_jwt(token: &str) -> bool {
    let header = (token.split('.').count() == 3).then(|| token.split('.').next()).flatten();
    let header = header.and_then(|header| URL_SAFE_NO_PAD.decode(header).ok());
    header.is_some_and(|json| matches!(serde_json::from_slice(&json), Ok(Value::Object(_))))
}

impl<'a> UnverifiedJwt<'a> {
    /// Parses the header, and rejects tokens that no key can verify.
    pub(crate) fn read(token: &'a str, accepted: &[Algorithm]) -> Result<Self, TokenFault> {
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
        let key_query = KeyQuery { key_id: header.kid, algorithm };
        Ok(Self { key_query, message, payload, signature })
    }

    /// Returns the id and the algorithm of the required key.
    pub(crate) fn key_query(&self) -> &KeyQuery {
        &self.key_query
    }

    /// Verifies the signature and parses the claims.
    pub(crate) fn verify(&self, key: &DecodingKey) -> Result<Claims, TokenFault> {
        let signature = URL_SAFE_NO_PAD.decode(self.signature).map_err(|_no_base64| TokenFault::Signature)?;
        if !self.key_query.algorithm.verify(key, self.message.as_bytes(), &signature) {
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
