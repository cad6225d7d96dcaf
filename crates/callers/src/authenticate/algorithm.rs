//! The signature algorithms of accepted tokens, verified by ring, which TLS uses too.
//!
//! All of them are asymmetric. `none` and the HMAC family have no variant, so they can neither be configured nor
//! accepted, and a public key can never be used as a shared secret.

use std::fmt;
use std::str::FromStr;

use jsonwebtoken::{DecodingKey, DecodingKeyKind};
use ring::signature::{
    self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};

/// A signature algorithm, named as in RFC 7518 and RFC 8037.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "their names are all there is to say")]
pub enum Algorithm {
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    EdDSA,
}

/// The error for the name of an algorithm that is not supported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is none of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 and EdDSA")]
pub struct UnknownAlgorithm;

impl Algorithm {
    /// All algorithms, which are accepted by default.
    pub const ALL: [Self; 9] = [
        Self::RS256,
        Self::RS384,
        Self::RS512,
        Self::PS256,
        Self::PS384,
        Self::PS512,
        Self::ES256,
        Self::ES384,
        Self::EdDSA,
    ];

    /// Returns the name of the algorithm, as in `alg`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RS256 => "RS256",
            Self::RS384 => "RS384",
            Self::RS512 => "RS512",
            Self::PS256 => "PS256",
            Self::PS384 => "PS384",
            Self::PS512 => "PS512",
            Self::ES256 => "ES256",
            Self::ES384 => "ES384",
            Self::EdDSA => "EdDSA",
        }
    }

    /// Returns true if `signature` is one of `message` under this algorithm and the public key `key`.
    ///
    /// Returns false for a key of another type, too. RSA keys have 2,048 to 8,192 bits.
    pub(super) fn verify(self, key: &DecodingKey, message: &[u8], signature: &[u8]) -> bool {
        match self {
            Self::RS256 => verify_rsa(&signature::RSA_PKCS1_2048_8192_SHA256, key, message, signature),
            Self::RS384 => verify_rsa(&signature::RSA_PKCS1_2048_8192_SHA384, key, message, signature),
            Self::RS512 => verify_rsa(&signature::RSA_PKCS1_2048_8192_SHA512, key, message, signature),
            Self::PS256 => verify_rsa(&signature::RSA_PSS_2048_8192_SHA256, key, message, signature),
            Self::PS384 => verify_rsa(&signature::RSA_PSS_2048_8192_SHA384, key, message, signature),
            Self::PS512 => verify_rsa(&signature::RSA_PSS_2048_8192_SHA512, key, message, signature),
            Self::ES256 => verify_point(&signature::ECDSA_P256_SHA256_FIXED, key, message, signature),
            Self::ES384 => verify_point(&signature::ECDSA_P384_SHA384_FIXED, key, message, signature),
            Self::EdDSA => verify_point(&signature::ED25519, key, message, signature),
        }
    }
}

/// Verifies a signature by a key that is a modulus and an exponent, as a JWK has them.
fn verify_rsa(
    parameters: &'static RsaParameters,
    key: &DecodingKey,
    message: &[u8],
    signature: &[u8],
) -> bool {
    match key.kind() {
        DecodingKeyKind::RsaModulusExponent { n, e } => {
            RsaPublicKeyComponents { n, e }.verify(parameters, message, signature).is_ok()
        }
        DecodingKeyKind::SecretOrDer(_) => false,
    }
}

/// Verifies a signature by a key that is a point of a curve.
fn verify_point(
    algorithm: &'static dyn VerificationAlgorithm,
    key: &DecodingKey,
    message: &[u8],
    signature: &[u8],
) -> bool {
    match key.kind() {
        DecodingKeyKind::SecretOrDer(point) => {
            UnparsedPublicKey::new(algorithm, point).verify(message, signature).is_ok()
        }
        DecodingKeyKind::RsaModulusExponent { .. } => false,
    }
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        Self::ALL.into_iter().find(|algorithm| algorithm.as_str() == name).ok_or(UnknownAlgorithm)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_exact_and_only_asymmetric() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
        }
        for name in ["none", "None", "HS256", "HS384", "HS512", "rs256", "RS256 ", "", "ES512"] {
            assert_eq!(name.parse::<Algorithm>(), Err(UnknownAlgorithm), "{name}");
        }
    }
}
