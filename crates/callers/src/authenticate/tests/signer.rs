//! Keys that are generated for a test, and tokens signed with them.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
    Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256,
    RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding, RsaKeyPair,
};
use serde_json::{Value, json};

/// A private key.
pub(super) enum Signer {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair, &'static str),
    Ed(Ed25519KeyPair),
}

pub(super) static RSA: LazyLock<Signer> = LazyLock::new(|| rsa(include_bytes!("keys/rsa.pk8")));
pub(super) static OTHER_RSA: LazyLock<Signer> = LazyLock::new(|| rsa(include_bytes!("keys/other_rsa.pk8")));
pub(super) static P256: LazyLock<Signer> = LazyLock::new(|| ec(&ECDSA_P256_SHA256_FIXED_SIGNING, "P-256"));
pub(super) static P384: LazyLock<Signer> = LazyLock::new(|| ec(&ECDSA_P384_SHA384_FIXED_SIGNING, "P-384"));
pub(super) static ED25519: LazyLock<Signer> = LazyLock::new(|| {
    let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    Signer::Ed(Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap())
});

/// Reads a PKCS #8 key of `keys/`, which only these tests use: ring does not generate RSA keys.
fn rsa(pkcs8: &[u8]) -> Signer {
    Signer::Rsa(RsaKeyPair::from_pkcs8(pkcs8).unwrap())
}

/// Generates a key of a curve.
fn ec(algorithm: &'static EcdsaSigningAlgorithm, curve: &'static str) -> Signer {
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    Signer::Ec(EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random).unwrap(), curve)
}

pub(super) fn base64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Signer {
    /// Returns the public key as in a key set, without an id.
    pub(super) fn jwk(&self) -> Value {
        match self {
            Self::Rsa(pair) => {
                let key = PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({"kty": "RSA", "n": base64(key.n), "e": base64(key.e)})
            }
            Self::Ec(pair, curve) => {
                let point = pair.public_key().as_ref();
                let (x, y) = point[1..].split_at(point.len() / 2);
                json!({"kty": "EC", "crv": curve, "x": base64(x), "y": base64(y)})
            }
            Self::Ed(pair) => json!({"kty": "OKP", "crv": "Ed25519", "x": base64(pair.public_key())}),
        }
    }

    /// Returns the public key as in a key set, with an id.
    pub(super) fn named(&self, id: &str) -> Value {
        let mut jwk = self.jwk();
        jwk["kid"] = json!(id);
        jwk
    }

    /// Returns a token with this header and these claims, signed as `alg` says, as far as the key can.
    pub(super) fn token(&self, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        let random = SystemRandom::new();
        let signature = match self {
            Self::Rsa(pair) => {
                let encoding: &'static dyn RsaEncoding = match header["alg"].as_str() {
                    Some("RS384") => &RSA_PKCS1_SHA384,
                    Some("RS512") => &RSA_PKCS1_SHA512,
                    Some("PS256") => &RSA_PSS_SHA256,
                    Some("PS384") => &RSA_PSS_SHA384,
                    Some("PS512") => &RSA_PSS_SHA512,
                    _ => &RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(encoding, &random, message.as_bytes(), &mut signature).unwrap();
                signature
            }
            Self::Ec(pair, _) => pair.sign(&random, message.as_bytes()).unwrap().as_ref().to_vec(),
            Self::Ed(pair) => pair.sign(message.as_bytes()).as_ref().to_vec(),
        };
        format!("{message}.{}", base64(signature))
    }
}

/// Returns the signed part of a token.
pub(super) fn message(header: &Value, claims: &Value) -> String {
    format!("{}.{}", base64(header.to_string()), base64(claims.to_string()))
}

/// Returns a token that is signed with a shared secret.
pub(super) fn hmac_token(secret: &[u8], header: &Value, claims: &Value) -> String {
    let message = message(header, claims);
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
    format!("{message}.{}", base64(ring::hmac::sign(&key, message.as_bytes())))
}
