//! Tests of introspected tokens and the cache of responses.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::authority::{Authority, Reply};
use super::{authenticate, claims, introspection_authenticator, later, now, subject_of};
use crate::{Authenticator, AuthenticatorSettings, Denial, TokenFault};

const TOKEN: &str = "opaque-t0ken.with+all/of~them==";

fn active(others: &Value) -> Reply {
    let mut answer = claims("https://login.example.com", others);
    answer["active"] = json!(true);
    Reply::Json(answer.to_string())
}

fn inactive() -> Reply {
    Reply::Json(r#"{"active":false}"#.to_owned())
}

#[tokio::test]
async fn the_introspection_request_follows_the_rfc() {
    let authority = Authority::start(|_| active(&json!({"grant_id": "g1"})));
    let authenticator = introspection_authenticator(&authority);
    let admitted = authenticate(&authenticator, TOKEN, now()).await.unwrap();
    assert_eq!(admitted.expires_at, Some(later(3_600)));
    let subject = subject_of(Ok(admitted));
    assert_eq!((subject.subject.as_str(), subject.client.as_deref()), ("alice", Some("claude")));
    let requests = authority.requests();
    let [request] = requests.as_slice() else { panic!("{requests:?}") };
    assert_eq!(request.line, "POST /introspect");
    assert_eq!(request.body, "token=opaque-t0ken.with%2Ball%2Fof%7Ethem%3D%3D&token_type_hint=access_token");
    // printf %s 'fetch%3Awell:s3cret%2F%2B+%C3%A4' | base64
    for header in [
        "authorization: Basic ZmV0Y2glM0F3ZWxsOnMzY3JldCUyRiUyQislQzMlQTQ=",
        "content-type: application/x-www-form-urlencoded",
        "accept: application/json",
    ] {
        assert!(request.headers.iter().any(|sent| sent == header), "{header}: {:?}", request.headers);
    }
}

#[tokio::test]
async fn an_active_token_is_cached_for_a_minute_and_rejected_once_revoked_after_it() {
    let authority = Authority::start(|_| active(&json!({})));
    let authenticator = introspection_authenticator(&authority);
    for (at, asked) in [(0, 1), (1, 1), (59, 1)] {
        assert!(authenticate(&authenticator, TOKEN, later(at)).await.is_ok());
        assert_eq!(authority.requests().len(), asked, "after {at} s");
    }
    authority.answer(|_| inactive());
    let inactive = Denial::RenewToken(TokenFault::Inactive);
    assert_eq!(authenticate(&authenticator, TOKEN, later(60)).await.unwrap_err(), inactive);
    // A negative response is not cached.
    assert_eq!(authenticate(&authenticator, TOKEN, later(60)).await.unwrap_err(), inactive);
    assert_eq!(authority.requests().len(), 3);
    // An entry is not used for a time before it was stored.
    authority.answer(|_| active(&json!({})));
    assert!(authenticate(&authenticator, TOKEN, later(61)).await.is_ok());
    assert!(authenticate(&authenticator, TOKEN, later(0)).await.is_ok());
    assert_eq!(authority.requests().len(), 5);
}

#[tokio::test]
async fn nothing_is_cached_beyond_the_expiry_of_a_token() {
    let end = later(20).as_second();
    let authority = Authority::start(move |_| active(&json!({ "exp": end })));
    let authenticator = introspection_authenticator(&authority);
    for (at, asked) in [(0, 1), (19, 1), (20, 2), (21, 3)] {
        assert!(authenticate(&authenticator, TOKEN, later(at)).await.is_ok());
        assert_eq!(authority.requests().len(), asked, "after {at} s");
    }
    // Beyond the tolerance an expired token is rejected although the server says that it is active.
    let denial = authenticate(&authenticator, TOKEN, later(80)).await.unwrap_err();
    assert_eq!(denial, Denial::RenewToken(TokenFault::Expired));
}

#[tokio::test]
async fn claims_of_an_active_token_are_checked() {
    let authority = Authority::start(|_| inactive());
    let authenticator = introspection_authenticator(&authority);
    for (nth, (others, denial)) in [
        (json!({"aud": "https://other.example"}), Denial::RenewToken(TokenFault::Audience)),
        (json!({"aud": null}), Denial::RenewToken(TokenFault::Audience)),
        (json!({"pdpp_token_kind": "owner"}), Denial::UseClientToken { is_owner: true }),
        (json!({"token_kind": "admin"}), Denial::UseClientToken { is_owner: false }),
        (json!({"scope": "x"}), Denial::AskForScopes { needed: vec!["records.read".to_owned()] }),
        (json!({"nbf": later(61).as_second()}), Denial::RenewToken(TokenFault::NotYet)),
    ]
    .into_iter()
    .enumerate()
    {
        authority.answer(move |_| active(&others));
        assert_eq!(authenticate(&authenticator, &format!("token{nth}"), now()).await.unwrap_err(), denial);
    }
}

#[tokio::test]
async fn an_unclear_response_rejects_the_token() {
    let elsewhere = Authority::start(|_| active(&json!({})));
    let authority = Authority::start(|_| inactive());
    let authenticator = introspection_authenticator(&authority);
    let text = |text: &str| Reply::Json(text.to_owned());
    for reply in [
        text(""),
        text("no JSON"),
        text("[]"),
        text("{}"),
        text(r#"{"active":"true"}"#),
        text(r#"{"active":1}"#),
        text(r#"{"active":true,"active":true}"#),
        text(r#"{"active":true,"exp":"never"}"#),
        Reply::Status(201),
        Reply::Status(400),
        Reply::Status(401),
        Reply::Status(500),
        Reply::Huge(300 * 1024),
        Reply::Redirect(elsewhere.at("/introspect").to_string()),
    ] {
        let shown = format!("{reply:.60?}");
        authority.answer(move |_| reply.clone());
        let denial = authenticate(&authenticator, TOKEN, now()).await.unwrap_err();
        assert_eq!(denial, Denial::TryLater { after: Duration::from_secs(5) }, "{shown}");
    }
    assert!(elsewhere.requests().is_empty());
    // A valid response is accepted at once.
    authority.answer(|_| active(&json!({})));
    assert!(authenticate(&authenticator, TOKEN, now()).await.is_ok());
    drop(authority);
}

#[tokio::test]
async fn an_unreachable_server_rejects_the_token() {
    let authority = Authority::start(|_| active(&json!({})));
    let authenticator = introspection_authenticator(&authority);
    let url = authority.url.clone();
    drop(authority);
    while std::net::TcpStream::connect(url.trim_start_matches("http://")).is_ok() {
        tokio::task::yield_now().await;
    }
    assert_eq!(authenticate(&authenticator, TOKEN, now()).await.unwrap_err().status().as_u16(), 503);
}

#[tokio::test]
async fn a_missing_response_times_out() {
    let authority = Authority::start(|_| Reply::Hang);
    let authenticator = Authenticator::with_deadline(
        introspection_authenticator(&authority).settings().clone(),
        Duration::from_millis(50),
    );
    assert_eq!(authenticate(&authenticator, TOKEN, now()).await.unwrap_err().status().as_u16(), 503);
}

// With one thread every call waits before the first request is sent: a later call would send another.
#[tokio::test]
async fn concurrent_calls_with_one_token_share_one_introspection() {
    for is_active in [true, false] {
        let (open, gate) = std::sync::mpsc::channel();
        let authority = Authority::start(move |_| {
            gate.recv().unwrap();
            if is_active { active(&json!({})) } else { inactive() }
        });
        let authenticator = Arc::new(introspection_authenticator(&authority));
        let mut calls = JoinSet::new();
        for _ in 0..100 {
            let authenticator = Arc::clone(&authenticator);
            calls.spawn(async move { authenticate(&authenticator, TOKEN, now()).await.is_ok() });
        }
        while authority.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        open.send(()).unwrap();
        assert!(calls.join_all().await.into_iter().all(|is_admitted| is_admitted == is_active));
        assert_eq!(authority.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_cancelled_call_does_not_cancel_the_introspection_for_others() {
    let (open, gate) = std::sync::mpsc::channel();
    let authority = Authority::start(move |_| {
        gate.recv().unwrap();
        active(&json!({}))
    });
    let authenticator = introspection_authenticator(&authority);
    let leaving = authenticator.clone();
    let call = tokio::spawn(async move { authenticate(&leaving, TOKEN, now()).await });
    while authority.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    open.send(()).unwrap();
    open.send(()).unwrap();
    assert!(authenticate(&authenticator, TOKEN, now()).await.is_ok());
}

#[tokio::test]
async fn new_settings_keep_the_cache_and_check_cached_claims_again() {
    let authority = Authority::start(|_| active(&json!({})));
    let authenticator = introspection_authenticator(&authority);
    assert!(authenticate(&authenticator, TOKEN, now()).await.is_ok());
    let resources = vec!["https://moved.example.com/mcp".to_owned()];
    let moved =
        authenticator.with_settings(AuthenticatorSettings { resources, ..authenticator.settings().clone() });
    let denial = authenticate(&moved, TOKEN, later(1)).await.unwrap_err();
    assert_eq!((denial, authority.requests().len()), (TokenFault::Audience.into(), 1));
    // Another client of the server starts with an empty cache.
    let mut other = authenticator.settings().clone();
    other.introspection.as_mut().unwrap().client_secret = secrecy::SecretString::from("new-s3cret");
    assert!(authenticate(&authenticator.with_settings(other), TOKEN, later(1)).await.is_ok());
    assert_eq!(authority.requests().len(), 2);
}
