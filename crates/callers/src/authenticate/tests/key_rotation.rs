//! Tests of keys that change, are late, or cannot be fetched.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;

use super::authority::{Authority, Reply};
use super::signer::{OTHER_RSA, P256, RSA, Signer};
use super::{authenticate, claims, good_token, jwt_authenticator, key_set, later, now, settings};
use crate::{Algorithm, Authenticator, AuthenticatorSettings, Denial, IssuerSettings, TokenFault};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;

fn keys_of(signer: &Signer, id: &str) -> impl Fn(&super::authority::Request) -> Reply + Send + use<> {
    let keys = key_set(&[signer.named(id)]);
    move |_| Reply::Json(keys.clone())
}

/// A token that is valid for three days.
fn long_token(authority: &Authority, id: &str) -> String {
    let claims = claims(&authority.url, &json!({"exp": later(72 * HOUR).as_second()}));
    RSA.token(&json!({"alg": "RS256", "kid": id}), &claims)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn keys_are_fetched_on_the_first_token_and_once_for_concurrent_calls() {
    let authority = Authority::start(keys_of(&RSA, "k1"));
    let authenticator = Arc::new(jwt_authenticator(&authority));
    assert!(authority.requests().is_empty());
    let token = Arc::new(good_token(&authority, &RSA, "RS256"));
    let mut calls = JoinSet::new();
    for _ in 0..100 {
        let (authenticator, token) = (Arc::clone(&authenticator), Arc::clone(&token));
        calls.spawn(async move { authenticate(&authenticator, &token, now()).await.is_ok() });
    }
    assert!(calls.join_all().await.into_iter().all(|is_admitted| is_admitted));
    assert_eq!(authority.requests().len(), 1);
}

#[tokio::test]
async fn a_new_key_is_fetched_when_a_token_names_it() {
    let authority = Authority::start(keys_of(&RSA, "k1"));
    let authenticator = jwt_authenticator(&authority);
    assert!(authenticate(&authenticator, &long_token(&authority, "k1"), now()).await.is_ok());
    authority.answer(keys_of(&RSA, "k2"));
    assert!(authenticate(&authenticator, &long_token(&authority, "k2"), later(1)).await.is_ok());
    assert_eq!(authority.asked("/keys"), 2);
    // The old key is gone.
    let denial = authenticate(&authenticator, &long_token(&authority, "k1"), later(2)).await.unwrap_err();
    assert_eq!(denial, TokenFault::UnknownKey.into());
    assert_eq!(authority.asked("/keys"), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn unknown_keys_cause_one_fetch_in_30_seconds() {
    let authority = Authority::start(keys_of(&RSA, "k1"));
    let authenticator = Arc::new(jwt_authenticator(&authority));
    assert!(authenticate(&authenticator, &long_token(&authority, "k1"), now()).await.is_ok());
    let named = async |from: i64, at: i64| {
        let mut calls = JoinSet::new();
        for id in from..from + 50 {
            let (authenticator, token) =
                (Arc::clone(&authenticator), long_token(&authority, &format!("x{id}")));
            calls.spawn(async move { authenticate(&authenticator, &token, later(at)).await.unwrap_err() });
        }
        for denial in calls.join_all().await {
            assert_eq!(denial, TokenFault::UnknownKey.into());
        }
        authority.asked("/keys")
    };
    assert_eq!(named(0, 1).await, 2);
    assert_eq!(named(100, 30).await, 2);
    assert_eq!(named(200, 31).await, 3);
    // A token with a known key does not wait for a fetch.
    assert!(authenticate(&authenticator, &long_token(&authority, "k1"), later(31)).await.is_ok());
    assert_eq!(authority.asked("/keys"), 3);
}

#[tokio::test]
async fn a_first_token_with_an_unknown_key_causes_one_fetch() {
    let authority = Authority::start(keys_of(&RSA, "k1"));
    let authenticator = jwt_authenticator(&authority);
    for at in 0..3 {
        let denial = authenticate(&authenticator, &long_token(&authority, "x"), later(at)).await.unwrap_err();
        assert_eq!(denial, TokenFault::UnknownKey.into());
    }
    assert_eq!(authority.asked("/keys"), 1);
}

#[tokio::test]
async fn old_keys_are_refreshed_and_removed_keys_rejected() {
    let authority = Authority::start(keys_of(&RSA, "k1"));
    let authenticator = jwt_authenticator(&authority);
    let token = long_token(&authority, "k1");
    assert!(authenticate(&authenticator, &token, now()).await.is_ok());
    assert!(authenticate(&authenticator, &token, later(15 * MINUTE - 1)).await.is_ok());
    assert_eq!(authority.asked("/keys"), 1);
    authority.answer(keys_of(&OTHER_RSA, "k1"));
    let denial = authenticate(&authenticator, &token, later(15 * MINUTE)).await.unwrap_err();
    assert_eq!((denial, authority.asked("/keys")), (TokenFault::Signature.into(), 2));
}

#[tokio::test]
async fn cached_keys_are_used_for_a_day_if_they_cannot_be_refreshed() {
    let authority = Authority::start(keys_of(&RSA, "k1"));
    let authenticator = jwt_authenticator(&authority);
    let token = long_token(&authority, "k1");
    assert!(authenticate(&authenticator, &token, now()).await.is_ok());
    let unusable = key_set(&[json!({"kty": "oct", "kid": "k1", "k": "AAAA"})]);
    let many = key_set(&vec![RSA.named("k1"); 65]);
    for (nth, reply) in [
        Reply::Status(500),
        Reply::Json("no JSON".to_owned()),
        Reply::Json(unusable),
        Reply::Json(many),
        Reply::Json(key_set(&[])),
        Reply::Huge(256 * 1024 + 1),
        Reply::Redirect("http://127.0.0.2:1/keys".to_owned()),
        Reply::Status(404),
    ]
    .into_iter()
    .enumerate()
    {
        authority.answer(move |_| reply.clone());
        let at = (i64::try_from(nth).unwrap() + 1) * HOUR;
        let before = authority.asked("/keys");
        assert!(authenticate(&authenticator, &token, later(at)).await.is_ok());
        // The fetch is tried once, and not again within 30 seconds.
        assert!(authenticate(&authenticator, &token, later(at + 29)).await.is_ok());
        assert_eq!(authority.asked("/keys"), before + 1);
        assert!(authenticate(&authenticator, &token, later(at + 30)).await.is_ok());
        assert_eq!(authority.asked("/keys"), before + 2);
        // An unknown key may be one of those that cannot be fetched.
        let denial =
            authenticate(&authenticator, &long_token(&authority, "k2"), later(at + 31)).await.unwrap_err();
        assert_eq!(denial, Denial::TryLater { after: Duration::from_secs(30) });
    }
    assert!(authenticate(&authenticator, &token, later(24 * HOUR - 1)).await.is_ok());
    let denial = authenticate(&authenticator, &token, later(24 * HOUR + 30)).await.unwrap_err();
    assert_eq!(denial.status().as_u16(), 503);
    authority.answer(keys_of(&RSA, "k1"));
    assert!(authenticate(&authenticator, &token, later(24 * HOUR + 40)).await.is_ok());
}

#[tokio::test]
async fn without_keys_calls_are_rejected_with_retry_after() {
    let authority = Authority::start(|_| Reply::Status(503));
    let authenticator = jwt_authenticator(&authority);
    let token = good_token(&authority, &RSA, "RS256");
    let denial = authenticate(&authenticator, &token, now()).await.unwrap_err();
    assert_eq!(denial, Denial::TryLater { after: Duration::from_secs(5) });
    assert_eq!((denial.status().as_u16(), denial.error()), (503, Some("temporarily_unavailable")));
    assert_eq!(denial.retry_after(), Some(Duration::from_secs(5)));
    authority.answer(keys_of(&RSA, "k1"));
    let denial = authenticate(&authenticator, &token, later(3)).await.unwrap_err();
    assert_eq!((denial.retry_after(), authority.requests().len()), (Some(Duration::from_secs(2)), 1));
    assert!(authenticate(&authenticator, &token, later(5)).await.is_ok());
}

#[tokio::test]
async fn a_hanging_key_fetch_times_out() {
    let authority = Authority::start(|_| Reply::Hang);
    let authenticator = Authenticator::with_deadline(
        jwt_authenticator(&authority).settings().clone(),
        Duration::from_millis(50),
    );
    let denial =
        authenticate(&authenticator, &good_token(&authority, &RSA, "RS256"), now()).await.unwrap_err();
    assert_eq!(denial.status().as_u16(), 503);
}

#[tokio::test]
async fn a_cancelled_call_does_not_cancel_the_fetch_for_others() {
    let (open, gate) = std::sync::mpsc::channel();
    let keys = key_set(&[RSA.named("k1")]);
    let authority = Authority::start(move |_| {
        gate.recv().unwrap();
        Reply::Json(keys.clone())
    });
    let authenticator = jwt_authenticator(&authority);
    let token = good_token(&authority, &RSA, "RS256");
    let (leaving, token_of_leaving) = (authenticator.clone(), token.clone());
    let call = tokio::spawn(async move { authenticate(&leaving, &token_of_leaving, now()).await });
    while authority.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    open.send(()).unwrap();
    assert!(authenticate(&authenticator, &token, later(1)).await.is_ok());
    assert_eq!(authority.requests().len(), 1);
}

#[tokio::test]
async fn new_settings_of_the_same_issuer_keep_the_key_cache() {
    let authority = Authority::start(keys_of(&RSA, "k1"));
    let authenticator = jwt_authenticator(&authority);
    let token = good_token(&authority, &RSA, "RS256");
    assert!(authenticate(&authenticator, &token, now()).await.is_ok());
    let mut same = authenticator.settings().clone();
    same.scopes.push("more".to_owned());
    let next = authenticator.with_settings(same);
    let denial = authenticate(&next, &token, later(1)).await.unwrap_err();
    assert_eq!((denial.status().as_u16(), authority.requests().len()), (403, 1));
    let mut other = authenticator.settings().clone();
    other.issuer.as_mut().unwrap().jwks_url = Some(authority.at("/others"));
    assert!(authenticate(&authenticator.with_settings(other), &token, later(1)).await.is_ok());
    assert_eq!(authority.asked("/others"), 1);
}

fn discovering_authenticator(authority: &Authority, path: &str) -> Authenticator {
    let algorithms = Algorithm::ALL.to_vec();
    let issuer = IssuerSettings { issuer: authority.at(path), jwks_url: None, algorithms };
    Authenticator::new(AuthenticatorSettings { issuer: Some(issuer), ..settings() })
}

#[tokio::test]
async fn keys_are_discovered_by_either_document() {
    for known in ["/.well-known/oauth-authorization-server/realm", "/realm/.well-known/openid-configuration"]
    {
        let authority = Authority::start(|_| Reply::Status(404));
        let issuer = format!("{}/realm", authority.url);
        let document = json!({"issuer": issuer, "jwks_uri": format!("{}/keys", authority.url)}).to_string();
        let keys = key_set(&[P256.named("k1")]);
        authority.answer(move |request| match request.line.strip_prefix("GET ") {
            Some(path) if path == known => Reply::Json(document.clone()),
            Some("/keys") => Reply::Json(keys.clone()),
            _ => Reply::Status(404),
        });
        let token = P256.token(&json!({"alg": "ES256", "kid": "k1"}), &claims(&issuer, &json!({})));
        assert!(
            authenticate(&discovering_authenticator(&authority, "/realm"), &token, now()).await.is_ok(),
            "{known}"
        );
        assert_eq!(authority.asked("/keys"), 1);
    }
}

#[tokio::test]
async fn metadata_of_another_issuer_or_with_insecure_keys_is_rejected() {
    for (issuer, keys) in [
        ("https://evil.example", "/keys"),
        ("/", "/keys"),
        ("", "http://records.example.com/keys"),
        ("", "file:///keys"),
    ] {
        let authority = Authority::start(|_| Reply::Status(404));
        let whole = |text: &str| {
            if text.contains(':') { text.to_owned() } else { format!("{}{text}", authority.url) }
        };
        let document = json!({"issuer": whole(issuer), "jwks_uri": whole(keys)}).to_string();
        authority.answer(move |_| Reply::Json(document.clone()));
        let token = good_token(&authority, &RSA, "RS256");
        let denial =
            authenticate(&discovering_authenticator(&authority, ""), &token, now()).await.unwrap_err();
        assert_eq!((denial.status().as_u16(), authority.asked("/keys")), (503, 0), "{issuer} {keys}");
    }
}
