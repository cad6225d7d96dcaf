//! Tests of JWT verification: only a signature by a key of the issuer counts, with an algorithm of that key.

use serde_json::{Value, json};

use super::authority::{Authority, Reply};
use super::signer::{ED25519, OTHER_RSA, P256, P384, RSA, Signer, base64, hmac_token, message};
use super::{
    Algorithm, Denial, authenticate, claims, jwt_authenticator, jwt_authenticator_for, key_set, now,
    settings, subject_of,
};
use crate::{Authenticator, IntrospectionSettings, TokenFault};

/// A server with a key of every type, and one that is not for signatures.
fn authority() -> Authority {
    let symmetric = json!({"kty": "oct", "kid": "secret", "k": base64("0123456789abcdef0123456789abcdef")});
    let mut for_encryption = RSA.named("encryption");
    for_encryption["use"] = json!("enc");
    let mut only_ps256 = RSA.named("ps256");
    only_ps256["alg"] = json!("PS256");
    let unknown = json!({"kty": "EC", "crv": "secp256k1", "kid": "odd", "x": "AA", "y": "AA"});
    let keys = key_set(&[
        RSA.named("rsa"),
        P256.named("p256"),
        P384.named("p384"),
        ED25519.named("ed"),
        symmetric,
        for_encryption,
        only_ps256,
        unknown,
        json!("no key"),
    ]);
    Authority::start(move |_| Reply::Json(keys.clone()))
}

async fn denied(authenticator: &Authenticator, token: &str) -> TokenFault {
    match authenticate(authenticator, token, now()).await.unwrap_err() {
        Denial::RenewToken(fault) => fault,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn all_supported_algorithms_are_verified() {
    let authority = authority();
    let authenticator = jwt_authenticator(&authority);
    for algorithm in Algorithm::ALL {
        let (signer, id): (&Signer, _) = match algorithm {
            Algorithm::ES256 => (&P256, "p256"),
            Algorithm::ES384 => (&P384, "p384"),
            Algorithm::EdDSA => (&ED25519, "ed"),
            _ => (&RSA, "rsa"),
        };
        let header = json!({"alg": algorithm.as_str(), "kid": id, "typ": "at+jwt"});
        let token = signer.token(&header, &claims(&authority.url, &json!({})));
        let subject = subject_of(authenticate(&authenticator, &token, now()).await);
        assert_eq!((subject.issuer, subject.subject), (authority.url.clone(), "alice".to_owned()));
        assert_eq!(subject.client.as_deref(), Some("claude"));
        // A changed payload invalidates the signature.
        let mut parts: Vec<&str> = token.split('.').collect();
        let forged = base64(claims(&authority.url, &json!({"sub": "mallory"})).to_string());
        parts[1] = &forged;
        assert_eq!(denied(&authenticator, &parts.join(".")).await, TokenFault::Signature, "{algorithm}");
    }
    assert_eq!(authority.asked("/keys"), 1);
}

#[tokio::test]
async fn the_token_header_cannot_choose_an_unfit_key() {
    let authority = authority();
    let authenticator = jwt_authenticator(&authority);
    let good = claims(&authority.url, &json!({}));
    let signed = |signer: &Signer, header: Value| signer.token(&header, &good);
    let check = async |token: String, fault: TokenFault| {
        assert_eq!(denied(&authenticator, &token).await, fault, "{token}");
    };
    check(signed(&RSA, json!({"alg": "RS256", "kid": "p256"})), TokenFault::OtherKeyType).await;
    check(signed(&P256, json!({"alg": "ES256", "kid": "p384"})), TokenFault::OtherKeyType).await;
    check(signed(&P256, json!({"alg": "RS256", "kid": "p256"})), TokenFault::OtherKeyType).await;
    check(signed(&RSA, json!({"alg": "RS256", "kid": "ps256"})), TokenFault::OtherKeyType).await;
    check(signed(&OTHER_RSA, json!({"alg": "RS256", "kid": "rsa"})), TokenFault::Signature).await;
    check(signed(&RSA, json!({"alg": "PS384", "kid": "p256"})), TokenFault::OtherKeyType).await;
    // The key in the header was chosen by the sender.
    let own =
        json!({"alg": "RS256", "kid": "rsa", "jwk": OTHER_RSA.jwk(), "jku": "https://evil.example/keys"});
    check(signed(&OTHER_RSA, own), TokenFault::Signature).await;
    check(signed(&RSA, json!({"alg": "RS256", "kid": "rsa", "crit": ["b64"]})), TokenFault::Critical).await;
    for typ in ["logout+jwt", "dpop+jwt", "application/x", ""] {
        check(signed(&RSA, json!({"alg": "RS256", "kid": "rsa", "typ": typ})), TokenFault::Type).await;
    }
    for typ in ["JWT", "jwt", "AT+JWT", "application/at+jwt"] {
        let token = signed(&RSA, json!({"alg": "RS256", "kid": "rsa", "typ": typ}));
        assert!(authenticate(&authenticator, &token, now()).await.is_ok(), "{typ}");
    }
}

#[tokio::test]
async fn none_and_shared_secrets_are_never_accepted() {
    let authority = authority();
    let authenticator = jwt_authenticator(&authority);
    let good = claims(&authority.url, &json!({}));
    for none in ["none", "None", "NONE", "nOnE", ""] {
        let token = format!("{}.", message(&json!({"alg": none, "kid": "rsa"}), &good));
        assert_eq!(denied(&authenticator, &token).await, TokenFault::Algorithm, "{none}");
    }
    // Signed with public data: the key in every spelling that a careless server could use as a secret.
    let jwk = RSA.named("rsa").to_string();
    let modulus = RSA.jwk()["n"].as_str().unwrap().to_owned();
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{modulus}\n-----END PUBLIC KEY-----\n");
    for secret in [jwk, modulus, pem, "0123456789abcdef0123456789abcdef".to_owned()] {
        for id in ["rsa", "secret"] {
            let token = hmac_token(secret.as_bytes(), &json!({"alg": "HS256", "kid": id}), &good);
            assert_eq!(denied(&authenticator, &token).await, TokenFault::Algorithm);
            // The same signature with another algorithm name is invalid.
            let token = hmac_token(secret.as_bytes(), &json!({"alg": "RS256", "kid": "rsa"}), &good);
            assert_eq!(denied(&authenticator, &token).await, TokenFault::Signature);
        }
    }
}

#[tokio::test]
async fn only_listed_algorithms_are_accepted() {
    let authority = authority();
    let authenticator = jwt_authenticator_for(&authority, &[Algorithm::ES256]);
    let token = RSA.token(&json!({"alg": "RS256", "kid": "rsa"}), &claims(&authority.url, &json!({})));
    assert_eq!(denied(&authenticator, &token).await, TokenFault::Algorithm);
    // No authorization server was asked.
    assert!(authority.requests().is_empty());
}

#[tokio::test]
async fn without_a_key_id_exactly_one_key_must_fit() {
    let authority = authority();
    let authenticator = jwt_authenticator(&authority);
    let good = claims(&authority.url, &json!({}));
    let token = P256.token(&json!({"alg": "ES256"}), &good);
    assert!(authenticate(&authenticator, &token, now()).await.is_ok());
    // Both `rsa` and `ps256` would fit.
    let token = RSA.token(&json!({"alg": "PS256"}), &good);
    assert_eq!(denied(&authenticator, &token).await, TokenFault::UnknownKey);
}

#[tokio::test]
async fn malformed_tokens_are_rejected_without_any_request() {
    let authority = authority();
    let authenticator = jwt_authenticator(&authority);
    let header = base64(r#"{"alg":"RS256","kid":"rsa"}"#);
    for token in [
        format!("{}.e30.AAAA", base64(r#"{"typ":"JWT"}"#)),
        format!("{}.e30.AAAA", base64(r#"{"alg":5}"#)),
        format!("{}.e30.AAAA", base64(r#"{"alg":"RS256","alg":"RS256"}"#)),
    ] {
        assert_eq!(denied(&authenticator, &token).await, TokenFault::Malformed, "{token}");
    }
    for token in ["a.b.c".to_owned(), "..".to_owned(), format!("{header}.e30"), format!("{header}.a.b.c")] {
        assert_eq!(denied(&authenticator, &token).await, TokenFault::Unknown, "{token}");
    }
    assert!(authority.requests().is_empty());
    // The header is valid, but the signature is not base64url or the payload has no claims.
    assert_eq!(denied(&authenticator, &format!("{header}.e30.A+A=")).await, TokenFault::Signature);
    for payload in [json!([]), json!({"exp": "tomorrow"}), json!({"aud": 5}), json!("x")] {
        let token = RSA.token(&json!({"alg": "RS256", "kid": "rsa"}), &payload);
        assert_eq!(denied(&authenticator, &token).await, TokenFault::Malformed, "{payload}");
    }
}

#[tokio::test]
async fn a_jwt_is_verified_here_and_not_introspected() {
    let authority = authority();
    let other = Authority::start(|_| Reply::Json(r#"{"active":true}"#.to_owned()));
    let introspection = IntrospectionSettings { ..super::introspection_of(&other) };
    let mut both = jwt_authenticator(&authority).settings().clone();
    both.introspection = Some(introspection);
    let authenticator = Authenticator::new(both);
    let token =
        RSA.token(&json!({"alg": "RS256", "kid": "rsa"}), &claims("https://other.example", &json!({})));
    assert_eq!(denied(&authenticator, &token).await, TokenFault::Issuer);
    assert!(other.requests().is_empty());
    // Without an issuer the token is introspected.
    let mut asked = settings();
    asked.introspection = Some(super::introspection_of(&other));
    assert_eq!(denied(&Authenticator::new(asked), &token).await, TokenFault::Audience);
    assert_eq!(other.asked("/introspect"), 1);
}
