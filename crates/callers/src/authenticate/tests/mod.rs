//! Tests of authentication with all kinds of tokens and authorization servers.
//!
//! * `signed_tokens`, `key_rotation`: JWTs and the keys of their issuer
//! * `introspected`, `checked_claims`, `hostile_headers`: introspection, claims, arbitrary headers
//! * `authority`, `signer`, `keys/`: a mock authorization server, and keys

mod authority;
mod checked_claims;
mod hostile_headers;
mod introspected;
mod key_rotation;
mod signed_tokens;
mod signer;

use std::net::{IpAddr, Ipv4Addr};

use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;
use serde_json::{Value, json};

use self::authority::Authority;
use self::signer::Signer;
use super::{
    Algorithm, AuthenticatedCaller, Authenticator, AuthenticatorSettings, Caller, Denial,
    IntrospectionSettings, IssuerSettings, Subject,
};

const RESOURCE: &str = "https://records.example.com/mcp";

/// The time at which every test starts.
fn now() -> Timestamp {
    "2026-11-22T12:00:00Z".parse().unwrap()
}

fn later(seconds: i64) -> Timestamp {
    now() + SignedDuration::from_secs(seconds)
}

/// Returns claims that are valid for an hour, with `others` replacing them; `null` removes a claim.
fn claims(issuer: &str, others: &Value) -> Value {
    let mut claims = json!({
        "iss": issuer,
        "sub": "alice",
        "aud": RESOURCE,
        "exp": later(3_600).as_second(),
        "iat": now().as_second(),
        "client_id": "claude",
        "scope": "records.read",
    });
    for (name, value) in others.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
    claims
}

fn key_set(keys: &[Value]) -> String {
    json!({ "keys": keys }).to_string()
}

fn settings() -> AuthenticatorSettings {
    AuthenticatorSettings {
        resources: vec![RESOURCE.to_owned()],
        scopes: vec!["records.read".to_owned()],
        ..AuthenticatorSettings::default()
    }
}

/// An authenticator for JWTs of a server that is its own issuer, with its keys at `/keys`.
fn jwt_authenticator(authority: &Authority) -> Authenticator {
    jwt_authenticator_for(authority, &Algorithm::ALL)
}

fn jwt_authenticator_for(authority: &Authority, algorithms: &[Algorithm]) -> Authenticator {
    let issuer = IssuerSettings {
        issuer: authority.at(""),
        jwks_url: Some(authority.at("/keys")),
        algorithms: algorithms.to_vec(),
    };
    Authenticator::new(AuthenticatorSettings { issuer: Some(issuer), ..settings() })
}

fn introspection_of(authority: &Authority) -> IntrospectionSettings {
    IntrospectionSettings {
        url: authority.at("/introspect"),
        client_id: "fetch:well".to_owned(),
        client_secret: SecretString::from("s3cret/+ ä"),
    }
}

/// An authenticator for introspected tokens.
fn introspection_authenticator(authority: &Authority) -> Authenticator {
    Authenticator::new(AuthenticatorSettings {
        introspection: Some(introspection_of(authority)),
        ..settings()
    })
}

/// A token that is signed with the key `k1` and valid for an hour.
fn good_token(authority: &Authority, signer: &Signer, algorithm: &str) -> String {
    signer.token(&json!({"alg": algorithm, "kid": "k1"}), &claims(&authority.url, &json!({})))
}

/// The address of a client.
const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

async fn authenticate(
    authenticator: &Authenticator,
    token: &str,
    now: Timestamp,
) -> Result<AuthenticatedCaller, Denial> {
    let admitted = authenticator.authenticate_at(Some(&format!("Bearer {token}")), LOCAL, now).await;
    if let Err(denial) = &admitted {
        let shown = format!("{denial} {denial:?} {authenticator:?}");
        // Shorter words may occur in our own text.
        assert!(token.len() < 10 || !shown.contains(token), "{shown}");
        assert!(!shown.contains("s3cret"), "{shown}");
    }
    assert!(token.len() < 10 || !format!("{admitted:?}").contains(token));
    admitted
}

#[track_caller]
fn subject_of(admitted: Result<AuthenticatedCaller, Denial>) -> Subject {
    match admitted.unwrap().caller {
        Caller::Subject(subject) => subject,
        Caller::Token { name } => panic!("it is the static token {name}"),
    }
}

#[tokio::test]
async fn a_static_token_is_found_by_its_hash() {
    let new = super::NewToken::generate().unwrap();
    let authority = Authority::start(|_| panic!("a static token was sent to others"));
    let text = secrecy::ExposeSecret::expose_secret(&new.token).to_owned();
    let token = super::StaticToken {
        name: "ci".to_owned(),
        sha256: super::static_token::sha256(&new.token),
        metrics: true,
        admin: false,
    };
    let authenticator = introspection_authenticator(&authority);
    let unknown = Denial::RenewToken(super::TokenFault::Unknown);
    assert_eq!(authenticate(&authenticator, &text, now()).await.unwrap_err(), unknown);
    // Adding a token keeps the caches.
    let authenticator = authenticator
        .with_settings(AuthenticatorSettings { tokens: vec![token], ..authenticator.settings().clone() });
    let admitted = authenticate(&authenticator, &text, now()).await.unwrap();
    assert_eq!(admitted.caller, Caller::Token { name: "ci".to_owned() });
    assert_eq!(admitted.expires_at, None);
    assert_eq!(authenticator.may_read_metrics(Some(&format!("Bearer {}", text))), Ok(true));
    assert_eq!(authenticator.may_read_metrics(Some("Bearer e.y.j")), Err(unknown.clone()));
    assert_eq!(authenticate(&authenticator, &format!("{text}x"), now()).await.unwrap_err(), unknown);
    assert!(authority.requests().is_empty());
}

#[tokio::test]
async fn without_any_check_configured_tokens_are_rejected() {
    let authenticator = Authenticator::new(settings());
    assert!(!authenticator.settings().can_authenticate());
    for token in ["abc", "fwt_abc", "eyJhbGciOiJub25lIn0.e30."] {
        let denial = authenticate(&authenticator, token, now()).await.unwrap_err();
        assert_eq!(denial, Denial::RenewToken(super::TokenFault::Unknown), "{token}");
    }
    assert_eq!(authenticator.authenticate(None, LOCAL).await.unwrap_err(), Denial::AskOperator);
}
