//! Tokens that a server is asked about, and what is remembered of its answers.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::authority::{Authority, Reply};
use super::{admit, claims, introspection_door, later, now, subject_of};
use crate::access::{Access, AccessSettings, Denial, TokenFault};

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
async fn the_server_is_asked_as_the_rfc_has_it() {
    let authority = Authority::start(|_| active(&json!({"grant_id": "g1"})));
    let door = introspection_door(&authority);
    let admitted = admit(&door, TOKEN, now()).await.unwrap();
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
async fn a_good_answer_is_remembered_for_a_minute_and_a_revoked_token_is_refused_after_it() {
    let authority = Authority::start(|_| active(&json!({})));
    let door = introspection_door(&authority);
    for (at, asked) in [(0, 1), (1, 1), (59, 1)] {
        assert!(admit(&door, TOKEN, later(at)).await.is_ok());
        assert_eq!(authority.requests().len(), asked, "after {at} s");
    }
    authority.answer(|_| inactive());
    let inactive = Denial::RenewToken(TokenFault::Inactive);
    assert_eq!(admit(&door, TOKEN, later(60)).await.unwrap_err(), inactive);
    // That it is inactive is not remembered.
    assert_eq!(admit(&door, TOKEN, later(60)).await.unwrap_err(), inactive);
    assert_eq!(authority.requests().len(), 3);
    // Nor is anything known of a time before it was learned.
    authority.answer(|_| active(&json!({})));
    assert!(admit(&door, TOKEN, later(61)).await.is_ok());
    assert!(admit(&door, TOKEN, later(0)).await.is_ok());
    assert_eq!(authority.requests().len(), 5);
}

#[tokio::test]
async fn nothing_is_remembered_beyond_the_end_of_a_token() {
    let end = later(20).as_second();
    let authority = Authority::start(move |_| active(&json!({ "exp": end })));
    let door = introspection_door(&authority);
    for (at, asked) in [(0, 1), (19, 1), (20, 2), (21, 3)] {
        assert!(admit(&door, TOKEN, later(at)).await.is_ok());
        assert_eq!(authority.requests().len(), asked, "after {at} s");
    }
    // Beyond the leeway what the server says is not believed.
    let denial = admit(&door, TOKEN, later(80)).await.unwrap_err();
    assert_eq!(denial, Denial::RenewToken(TokenFault::Expired));
}

#[tokio::test]
async fn what_the_token_says_counts_as_much_as_that_it_is_active() {
    let authority = Authority::start(|_| inactive());
    let door = introspection_door(&authority);
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
        assert_eq!(admit(&door, &format!("token{nth}"), now()).await.unwrap_err(), denial);
    }
}

#[tokio::test]
async fn without_a_clear_answer_nobody_is_admitted() {
    let elsewhere = Authority::start(|_| active(&json!({})));
    let authority = Authority::start(|_| inactive());
    let door = introspection_door(&authority);
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
        let denial = admit(&door, TOKEN, now()).await.unwrap_err();
        assert_eq!(denial, Denial::TryLater { after: Duration::from_secs(5) }, "{shown}");
    }
    assert!(elsewhere.requests().is_empty());
    // And with one, at once.
    authority.answer(|_| active(&json!({})));
    assert!(admit(&door, TOKEN, now()).await.is_ok());
    drop(authority);
}

#[tokio::test]
async fn a_server_that_is_down_admits_nobody() {
    let authority = Authority::start(|_| active(&json!({})));
    let door = introspection_door(&authority);
    let url = authority.url.clone();
    drop(authority);
    while std::net::TcpStream::connect(url.trim_start_matches("http://")).is_ok() {
        tokio::task::yield_now().await;
    }
    assert_eq!(admit(&door, TOKEN, now()).await.unwrap_err().status().as_u16(), 503);
}

#[tokio::test]
async fn an_answer_that_never_comes_is_not_waited_for() {
    let authority = Authority::start(|_| Reply::Hang);
    let door = Access::within(introspection_door(&authority).settings().clone(), Duration::from_millis(50));
    assert_eq!(admit(&door, TOKEN, now()).await.unwrap_err().status().as_u16(), 503);
}

// On one thread every call waits before the first question is sent: a call that came after its answer would ask anew.
#[tokio::test]
async fn all_who_bring_one_token_wait_for_one_answer() {
    for is_active in [true, false] {
        let (open, gate) = std::sync::mpsc::channel();
        let authority = Authority::start(move |_| {
            gate.recv().unwrap();
            if is_active { active(&json!({})) } else { inactive() }
        });
        let door = Arc::new(introspection_door(&authority));
        let mut calls = JoinSet::new();
        for _ in 0..100 {
            let door = Arc::clone(&door);
            calls.spawn(async move { admit(&door, TOKEN, now()).await.is_ok() });
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
async fn a_caller_who_goes_away_leaves_the_question_to_the_others() {
    let (open, gate) = std::sync::mpsc::channel();
    let authority = Authority::start(move |_| {
        gate.recv().unwrap();
        active(&json!({}))
    });
    let door = introspection_door(&authority);
    let leaving = door.clone();
    let call = tokio::spawn(async move { admit(&leaving, TOKEN, now()).await });
    while authority.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    open.send(()).unwrap();
    open.send(()).unwrap();
    assert!(admit(&door, TOKEN, now()).await.is_ok());
}

#[tokio::test]
async fn another_configuration_keeps_the_answers_and_checks_them_anew() {
    let authority = Authority::start(|_| active(&json!({})));
    let door = introspection_door(&authority);
    assert!(admit(&door, TOKEN, now()).await.is_ok());
    let resources = vec!["https://moved.example.com/mcp".to_owned()];
    let moved = door.succeeded_by(AccessSettings { resources, ..door.settings().clone() });
    let denial = admit(&moved, TOKEN, later(1)).await.unwrap_err();
    assert_eq!((denial, authority.requests().len()), (TokenFault::Audience.into(), 1));
    // Another client of the server knows nothing yet.
    let mut other = door.settings().clone();
    other.introspection.as_mut().unwrap().client_secret = secrecy::SecretString::from("new-s3cret");
    assert!(admit(&door.succeeded_by(other), TOKEN, later(1)).await.is_ok());
    assert_eq!(authority.requests().len(), 2);
}
