//! Keys that change, are late, or cannot be fetched.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;

use super::authority::{Authority, Reply};
use super::signer::{OTHER_RSA, P256, RSA, Signer};
use super::{admit, claims, good_token, jwt_door, key_set, later, now, settings};
use crate::access::{Access, AccessSettings, Algorithm, Denial, IssuerSettings, TokenFault};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;

fn keys_of(signer: &Signer, id: &str) -> impl Fn(&super::authority::Request) -> Reply + Send + use<> {
    let keys = key_set(&[signer.named(id)]);
    move |_| Reply::Json(keys.clone())
}

/// A token that is good for days.
fn long_token(authority: &Authority, id: &str) -> String {
    let claims = claims(&authority.url, &json!({"exp": later(72 * HOUR).as_second()}));
    RSA.token(&json!({"alg": "RS256", "kid": id}), &claims)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_fetched_before_a_token_comes_and_then_once_for_all() {
    let authority = Authority::start(keys_of(&RSA, "k1"));
    let door = Arc::new(jwt_door(&authority));
    assert!(authority.requests().is_empty());
    let token = Arc::new(good_token(&authority, &RSA, "RS256"));
    let mut calls = JoinSet::new();
    for _ in 0..100 {
        let (door, token) = (Arc::clone(&door), Arc::clone(&token));
        calls.spawn(async move { admit(&door, &token, now()).await.is_ok() });
    }
    assert!(calls.join_all().await.into_iter().all(|is_admitted| is_admitted));
    assert_eq!(authority.requests().len(), 1);
}

#[tokio::test]
async fn a_new_key_is_fetched_when_a_token_names_it() {
    let authority = Authority::start(keys_of(&RSA, "k1"));
    let door = jwt_door(&authority);
    assert!(admit(&door, &long_token(&authority, "k1"), now()).await.is_ok());
    authority.answer(keys_of(&RSA, "k2"));
    assert!(admit(&door, &long_token(&authority, "k2"), later(1)).await.is_ok());
    assert_eq!(authority.asked("/keys"), 2);
    // The old one is gone.
    let denial = admit(&door, &long_token(&authority, "k1"), later(2)).await.unwrap_err();
    assert_eq!(denial, TokenFault::UnknownKey.into());
    assert_eq!(authority.asked("/keys"), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn unknown_keys_make_one_fetch_in_30_seconds_however_many_are_named() {
    let authority = Authority::start(keys_of(&RSA, "k1"));
    let door = Arc::new(jwt_door(&authority));
    assert!(admit(&door, &long_token(&authority, "k1"), now()).await.is_ok());
    let named = async |from: i64, at: i64| {
        let mut calls = JoinSet::new();
        for id in from..from + 50 {
            let (door, token) = (Arc::clone(&door), long_token(&authority, &format!("x{id}")));
            calls.spawn(async move { admit(&door, &token, later(at)).await.unwrap_err() });
        }
        for denial in calls.join_all().await {
            assert_eq!(denial, TokenFault::UnknownKey.into());
        }
        authority.asked("/keys")
    };
    assert_eq!(named(0, 1).await, 2);
    assert_eq!(named(100, 30).await, 2);
    assert_eq!(named(200, 31).await, 3);
    // Who has a known key waits for none of it.
    assert!(admit(&door, &long_token(&authority, "k1"), later(31)).await.is_ok());
    assert_eq!(authority.asked("/keys"), 3);
}

#[tokio::test]
async fn a_first_token_of_an_unknown_key_makes_one_fetch() {
    let authority = Authority::start(keys_of(&RSA, "k1"));
    let door = jwt_door(&authority);
    for at in 0..3 {
        let denial = admit(&door, &long_token(&authority, "x"), later(at)).await.unwrap_err();
        assert_eq!(denial, TokenFault::UnknownKey.into());
    }
    assert_eq!(authority.asked("/keys"), 1);
}

#[tokio::test]
async fn keys_are_fetched_again_when_they_are_old_and_removed_ones_are_good_no_more() {
    let authority = Authority::start(keys_of(&RSA, "k1"));
    let door = jwt_door(&authority);
    let token = long_token(&authority, "k1");
    assert!(admit(&door, &token, now()).await.is_ok());
    assert!(admit(&door, &token, later(15 * MINUTE - 1)).await.is_ok());
    assert_eq!(authority.asked("/keys"), 1);
    authority.answer(keys_of(&OTHER_RSA, "k1"));
    let denial = admit(&door, &token, later(15 * MINUTE)).await.unwrap_err();
    assert_eq!((denial, authority.asked("/keys")), (TokenFault::Signature.into(), 2));
}

#[tokio::test]
async fn keys_stay_good_for_a_day_when_there_are_no_others() {
    let authority = Authority::start(keys_of(&RSA, "k1"));
    let door = jwt_door(&authority);
    let token = long_token(&authority, "k1");
    assert!(admit(&door, &token, now()).await.is_ok());
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
        assert!(admit(&door, &token, later(at)).await.is_ok());
        // It is tried once, and not again before 30 seconds.
        assert!(admit(&door, &token, later(at + 29)).await.is_ok());
        assert_eq!(authority.asked("/keys"), before + 1);
        assert!(admit(&door, &token, later(at + 30)).await.is_ok());
        assert_eq!(authority.asked("/keys"), before + 2);
        // A key that nobody has seen may be one of those that cannot be fetched.
        let denial = admit(&door, &long_token(&authority, "k2"), later(at + 31)).await.unwrap_err();
        assert_eq!(denial, Denial::TryLater { after: Duration::from_secs(30) });
    }
    assert!(admit(&door, &token, later(24 * HOUR - 1)).await.is_ok());
    let denial = admit(&door, &token, later(24 * HOUR + 30)).await.unwrap_err();
    assert_eq!(denial.status().as_u16(), 503);
    authority.answer(keys_of(&RSA, "k1"));
    assert!(admit(&door, &token, later(24 * HOUR + 40)).await.is_ok());
}

#[tokio::test]
async fn without_keys_nobody_is_admitted_and_all_are_told_when_to_come_again() {
    let authority = Authority::start(|_| Reply::Status(503));
    let door = jwt_door(&authority);
    let token = good_token(&authority, &RSA, "RS256");
    let denial = admit(&door, &token, now()).await.unwrap_err();
    assert_eq!(denial, Denial::TryLater { after: Duration::from_secs(5) });
    assert_eq!((denial.status().as_u16(), denial.error()), (503, Some("temporarily_unavailable")));
    assert_eq!(denial.retry_after(), Some(Duration::from_secs(5)));
    authority.answer(keys_of(&RSA, "k1"));
    let denial = admit(&door, &token, later(3)).await.unwrap_err();
    assert_eq!((denial.retry_after(), authority.requests().len()), (Some(Duration::from_secs(2)), 1));
    assert!(admit(&door, &token, later(5)).await.is_ok());
}

#[tokio::test]
async fn keys_that_never_come_are_not_waited_for() {
    let authority = Authority::start(|_| Reply::Hang);
    let door = Access::within(jwt_door(&authority).settings().clone(), Duration::from_millis(50));
    let denial = admit(&door, &good_token(&authority, &RSA, "RS256"), now()).await.unwrap_err();
    assert_eq!(denial.status().as_u16(), 503);
}

#[tokio::test]
async fn a_caller_who_goes_away_takes_no_keys_from_the_others() {
    let (open, gate) = std::sync::mpsc::channel();
    let keys = key_set(&[RSA.named("k1")]);
    let authority = Authority::start(move |_| {
        gate.recv().unwrap();
        Reply::Json(keys.clone())
    });
    let door = jwt_door(&authority);
    let token = good_token(&authority, &RSA, "RS256");
    let (leaving, token_of_leaving) = (door.clone(), token.clone());
    let call = tokio::spawn(async move { admit(&leaving, &token_of_leaving, now()).await });
    while authority.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    open.send(()).unwrap();
    assert!(admit(&door, &token, later(1)).await.is_ok());
    assert_eq!(authority.requests().len(), 1);
}

#[tokio::test]
async fn another_configuration_of_the_same_issuer_keeps_its_keys() {
    let authority = Authority::start(keys_of(&RSA, "k1"));
    let door = jwt_door(&authority);
    let token = good_token(&authority, &RSA, "RS256");
    assert!(admit(&door, &token, now()).await.is_ok());
    let mut same = door.settings().clone();
    same.scopes.push("more".to_owned());
    let next = door.succeeded_by(same);
    let denial = admit(&next, &token, later(1)).await.unwrap_err();
    assert_eq!((denial.status().as_u16(), authority.requests().len()), (403, 1));
    let mut other = door.settings().clone();
    other.issuer.as_mut().unwrap().jwks_url = Some(authority.at("/others"));
    assert!(admit(&door.succeeded_by(other), &token, later(1)).await.is_ok());
    assert_eq!(authority.asked("/others"), 1);
}

fn discovering_door(authority: &Authority, path: &str) -> Access {
    let algorithms = Algorithm::ALL.to_vec();
    let issuer = IssuerSettings { issuer: authority.at(path), jwks_url: None, algorithms };
    Access::new(AccessSettings { issuer: Some(issuer), ..settings() })
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
        assert!(admit(&discovering_door(&authority, "/realm"), &token, now()).await.is_ok(), "{known}");
        assert_eq!(authority.asked("/keys"), 1);
    }
}

#[tokio::test]
async fn documents_of_another_issuer_or_with_keys_elsewhere_are_not_believed() {
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
        let denial = admit(&discovering_door(&authority, ""), &token, now()).await.unwrap_err();
        assert_eq!((denial.status().as_u16(), authority.asked("/keys")), (503, 0), "{issuer} {keys}");
    }
}
