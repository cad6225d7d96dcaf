//! Sign-ins with an authorization server over a real socket.

use std::collections::BTreeMap;
use std::time::Duration;

use fetchwell_callers::AuthorizationReply;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use url::Url;

use super::super::account::Account;
use super::super::fault::{OAuthError, OAuthFault};
use super::super::login::Login;
use super::super::pending_login::{CodeExchange, PendingLogin};
use super::super::registration::LoginSettings;
use super::super::storage::Tokens;
use super::server::{Behaviour, Servers};
use super::{LONG, account, bearer, get, sign_in, sign_in_with, store};

#[tokio::test]
async fn a_person_signs_in_and_calls_have_the_token() {
    let servers = Servers::start(Behaviour::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let bearer = bearer(&servers, folder.path());
    assert_eq!(bearer.token().await.unwrap_err().fault, OAuthFault::NotSignedIn);
    let login = Login::new(account(&servers.mcp), LoginSettings::default(), store(&servers, folder.path()));
    let mut page = None;
    let mut asked = BTreeMap::new();
    let stored = login
        .run(|url| {
            asked = url.query_pairs().into_owned().collect::<BTreeMap<String, String>>();
            let back = servers.consent(url);
            page = Some(tokio::spawn(async move { get(&back).await }));
        })
        .await
        .unwrap();
    for (name, value) in [
        ("response_type", "code"),
        ("client_id", "registered"),
        ("code_challenge_method", "S256"),
        ("resource", &servers.mcp),
        ("scope", "read write"),
        ("tenant", "a"),
    ] {
        assert_eq!(asked[name], value, "{asked:?}");
    }
    let redirect: Url = asked["redirect_uri"].parse().unwrap();
    assert_eq!((redirect.host_str(), redirect.path()), (Some("127.0.0.1"), "/callback"));
    let page = page.unwrap().await.unwrap();
    assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("Signed in"), "{page}");
    assert_eq!(bearer.token().await.unwrap().expose_secret(), stored.access_token.expose_secret());
    assert!(servers.is_latest(stored.access_token.expose_secret()) && servers.refreshes().is_empty());
    assert_eq!(stored.scopes, ["read", "write"]);
    let registration: Value =
        serde_json::from_str(&servers.requests("POST /tenant/register")[0].body).unwrap();
    assert_eq!(registration["redirect_uris"], json!([asked["redirect_uri"]]));
    assert_eq!(registration["application_type"], "native");
    let shown = format!("{stored:?} {login:?} {bearer:?}");
    assert!(!shown.contains("sekret"), "{shown}");
}

/// Signs in to servers with a behaviour.
async fn check_login(behaviour: Behaviour) {
    let servers = Servers::start(behaviour).await;
    let folder = tempfile::tempdir().unwrap();
    let login = sign_in(&servers, folder.path()).await.unwrap();
    assert!(servers.is_latest(login.access_token.expose_secret()));
    // A refresh discovers the authorization server again.
    let bearer = bearer(&servers, folder.path());
    let token = bearer.refused(&login.access_token).await.unwrap();
    assert!(servers.is_latest(token.expose_secret()));
}

#[tokio::test]
async fn awkward_servers_are_discovered() {
    let behaviour = Behaviour::default;
    // Only a POST is answered with a challenge.
    check_login(Behaviour { get_status: 405, ..behaviour() }).await;
    check_login(Behaviour { get_status: 200, ..behaviour() }).await;
    // The metadata is where RFC 9728 says, but no challenge names it.
    check_login(Behaviour { get_status: 200, names_metadata: false, ..behaviour() }).await;
    check_login(Behaviour { names_metadata: false, post_status: 400, ..behaviour() }).await;
    // Only the challenge says where the metadata is.
    check_login(Behaviour { resource_metadata: Some("/elsewhere"), get_status: 405, ..behaviour() }).await;
    check_login(Behaviour { metadata: json!({"code_challenge_methods_supported": null}), ..behaviour() })
        .await;
    // A server of the revision of March 2025, with and without metadata.
    let own = || Behaviour { resource_metadata: None, names_metadata: false, ..behaviour() };
    check_login(own()).await;
    check_login(Behaviour { has_metadata: false, ..own() }).await;
    check_login(Behaviour { expires_in: None, ..behaviour() }).await;
    check_login(Behaviour { client_secret: Some("s3cret"), ..behaviour() }).await;
}

#[tokio::test]
async fn the_configured_client_is_used_before_a_document_before_a_registration() {
    let document: Url = "https://client.example/metadata.json".parse().unwrap();
    let configured = LoginSettings {
        client_id: Some("registered".to_owned()),
        client_secret: Some("s3cret".into()),
        client_metadata_url: Some(document.clone()),
        scopes: vec!["one".to_owned()],
        redirect_port: None,
    };
    let described = LoginSettings { client_metadata_url: Some(document.clone()), ..LoginSettings::default() };
    let accepts = json!({"client_id_metadata_document_supported": true});
    for (settings, metadata, secret, client_id, registrations) in [
        (configured, accepts.clone(), Some("s3cret"), "registered", 0),
        (described.clone(), accepts, None, document.as_str(), 0),
        (described, json!({}), None, "registered", 1),
    ] {
        let servers =
            Servers::start(Behaviour { metadata, client_secret: secret, ..Behaviour::default() }).await;
        let folder = tempfile::tempdir().unwrap();
        let scopes = settings.scopes.clone();
        let login = sign_in_with(&servers, folder.path(), settings).await.unwrap();
        assert_eq!(login.client.client_id, client_id);
        assert_eq!(servers.requests("POST /tenant/register").len(), registrations, "{client_id}");
        assert!(scopes.is_empty() || login.scopes == scopes);
        let token = bearer(&servers, folder.path()).refused(&login.access_token).await.unwrap();
        assert!(servers.is_latest(token.expose_secret()));
    }
}

/// Checks that a sign-in fails, stores nothing, and quotes no text of the servers.
async fn check_failure(behaviour: Behaviour, is_expected: impl Fn(&OAuthFault) -> bool) {
    let servers = Servers::start(behaviour).await;
    let folder = tempfile::tempdir().unwrap();
    let error = sign_in(&servers, folder.path()).await.unwrap_err();
    assert!(is_expected(&error.fault), "{error:?}");
    assert!(!format!("{error} {error:?} {}", error.remedy()).contains("sekret"), "{error}");
    assert!(store(&servers, folder.path()).load().await.unwrap().is_none());
}

#[tokio::test]
async fn sign_ins_that_cannot_succeed_say_why() {
    use OAuthFault as Fault;
    let behaviour = Behaviour::default;
    let is_metadata = |fault: &Fault| matches!(fault, Fault::Metadata { .. });
    let is_insecure = |fault: &Fault| matches!(fault, Fault::Insecure { .. });
    let is_unregistered = |fault: &Fault| matches!(fault, Fault::NoRegistration { .. });
    let of_metadata = |metadata: Value| Behaviour { metadata, ..behaviour() };
    check_failure(of_metadata(json!({"code_challenge_methods_supported": ["plain"]})), is_metadata).await;
    check_failure(of_metadata(json!({"response_types_supported": ["token"]})), is_metadata).await;
    check_failure(of_metadata(json!({"issuer": "https://sekret.example"})), is_metadata).await;
    check_failure(of_metadata(json!({"issuer": null})), is_metadata).await;
    check_failure(of_metadata(json!({"authorization_endpoint": "file:///sekret"})), is_insecure).await;
    check_failure(of_metadata(json!({"token_endpoint": "http://192.0.2.1/"})), is_insecure).await;
    check_failure(of_metadata(json!({"token_endpoint": "sekret"})), is_metadata).await;
    check_failure(of_metadata(json!({"registration_endpoint": null})), is_unregistered).await;
    check_failure(Behaviour { registration: 400, ..behaviour() }, is_unregistered).await;
    check_failure(Behaviour { has_metadata: false, ..behaviour() }, is_metadata).await;
    // Nothing is published, and the server does not answer 401.
    let nothing = Behaviour { resource_metadata: None, has_metadata: false, post_status: 200, ..behaviour() };
    check_failure(nothing, |fault| *fault == Fault::NoSignIn).await;
    let is_unreachable = |fault: &Fault| matches!(fault, Fault::Unreachable { .. });
    check_failure(Behaviour { post_status: 503, ..behaviour() }, is_unreachable).await;
}

#[tokio::test]
async fn token_responses_that_are_no_tokens_say_why() {
    use OAuthFault as Fault;
    let respond = |status: u16, body: &str| Behaviour {
        token_response: Some((status, body.to_owned())),
        ..Behaviour::default()
    };
    let refused = r#"{"error":"invalid_grant","error_description":"sekret"}"#;
    let is_metadata = |fault: &Fault| matches!(fault, Fault::Metadata { .. });
    check_failure(respond(400, refused), |fault| {
        *fault == Fault::Refused { code: "invalid_grant".to_owned() }
    })
    .await;
    check_failure(respond(400, "<html>sekret"), |fault| matches!(fault, Fault::Malformed { .. })).await;
    check_failure(respond(503, "sekret"), |fault| matches!(fault, Fault::Unreachable { .. })).await;
    check_failure(respond(429, ""), |fault| matches!(fault, Fault::RateLimited { .. })).await;
    let large = format!("\"{}\"", "sekret".repeat(50_000));
    check_failure(respond(200, &large), |fault| matches!(fault, Fault::Malformed { .. })).await;
    for body in [
        "",
        "sekret",
        r#"{"access_token":"sekret"}"#,
        r#"{"access_token":"sekret","token_type":"DPoP"}"#,
        r#"{"access_token":"sek\nret","token_type":"Bearer"}"#,
        r#"{"access_token":"","token_type":"Bearer"}"#,
        r#"{"access_token":"sekret","token_type":"Bearer","refresh_token":"sek ret"}"#,
    ] {
        check_failure(respond(200, body), is_metadata).await;
    }
}

/// Signs in with a reply in place of that of the authorization server.
async fn check_reply(change: impl Fn(AuthorizationReply) -> AuthorizationReply, expect: &OAuthFault) {
    let servers = Servers::start(Behaviour::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let redirect_uri = "http://127.0.0.1:1/callback".to_owned();
    let settings = LoginSettings::default();
    let store = store(&servers, folder.path());
    let pending = PendingLogin::begin(account(&servers.mcp), &settings, redirect_uri, store.as_ref());
    let pending = Box::pin(pending).await.unwrap();
    assert!(!format!("{pending:?}").contains(pending.state()));
    let back: Url = servers.consent(pending.url()).parse().unwrap();
    let reply = change(AuthorizationReply::from_query(back.query().unwrap()));
    let error: OAuthError =
        Box::pin(pending.into_exchange().finish(reply, store.as_ref())).await.unwrap_err();
    assert_eq!(error.fault, *expect);
    assert!(store.load().await.unwrap().is_none());
    assert!(servers.requests("POST /tenant/token").is_empty());
}

#[tokio::test]
async fn replies_that_refuse_or_are_forged_give_no_token() {
    let with_error = |error: &str| {
        let error = error.to_owned();
        move |reply: AuthorizationReply| AuthorizationReply { error: Some(error.clone()), ..reply }
    };
    check_reply(with_error("access_denied"), &OAuthFault::AccessDenied).await;
    let refused = |code: &str| OAuthFault::Refused { code: code.to_owned() };
    check_reply(with_error("invalid_scope"), &refused("invalid_scope")).await;
    check_reply(with_error("<script>"), &refused("unknown_error")).await;
    check_reply(|reply| AuthorizationReply { code: None, ..reply }, &refused("no_code")).await;
    let long = "c".repeat(5_000);
    check_reply(
        |reply| AuthorizationReply { code: Some(long.as_str().into()), ..reply },
        &refused("no_code"),
    )
    .await;
    check_reply(|reply| AuthorizationReply { issuer: None, ..reply }, &OAuthFault::OtherIssuer).await;
    let forged = || Some("https://evil.example".to_owned());
    check_reply(|reply| AuthorizationReply { issuer: forged(), ..reply }, &OAuthFault::OtherIssuer).await;
    // An error ends the attempt as well, so it must be that of the authorization server.
    for issuer in [None, forged()] {
        let reply = |reply: AuthorizationReply| AuthorizationReply {
            issuer: issuer.clone(),
            error: Some("access_denied".to_owned()),
            ..reply
        };
        check_reply(reply, &OAuthFault::OtherIssuer).await;
    }
}

#[tokio::test]
async fn another_process_finishes_a_sign_in_with_the_same_authorization_server() {
    let behaviour = Behaviour { client_secret: Some("s3cret"), ..Behaviour::default() };
    let servers = Servers::start(behaviour).await;
    let folder = tempfile::tempdir().unwrap();
    let store = store(&servers, folder.path());
    let begin = async || {
        let redirect_uri = "https://r.example/sources/signed-in".to_owned();
        let settings = LoginSettings::default();
        let begun = PendingLogin::begin(account(&servers.mcp), &settings, redirect_uri, store.as_ref());
        let pending = Box::pin(begun).await.unwrap();
        let back: Url = servers.consent(pending.url()).parse().unwrap();
        let reply = AuthorizationReply::from_query(back.query().unwrap());
        (pending.into_exchange().to_text(), reply)
    };
    let resume =
        async |text: &SecretString| Box::pin(CodeExchange::resume(account(&servers.mcp), text)).await;
    let (text, reply) = begin().await;
    let exchange = resume(&text).await.unwrap();
    assert!(!format!("{exchange:?} {text:?}").contains("s3cret"));
    let first = Box::pin(exchange.finish(reply, store.as_ref())).await.unwrap();
    assert!(servers.is_latest(first.access_token.expose_secret()));
    let registration = servers.requests("POST /tenant/register")[0].body.clone();
    assert!(registration.contains(r#""application_type":"web""#), "{registration}");
    // Each sign-in has an id, which refreshes keep.
    let (text, reply) = begin().await;
    let second = Box::pin(resume(&text).await.unwrap().finish(reply, store.as_ref())).await.unwrap();
    assert!(!first.id.is_empty() && first.id != second.id);
    bearer(&servers, folder.path()).refused(&second.access_token).await.unwrap();
    assert_eq!(store.load().await.unwrap().unwrap().id, second.id);
    // A code goes to the server that it was asked of.
    let (text, _reply) = begin().await;
    let elsewhere = Account::new("wiki".parse().unwrap(), "http://127.0.0.1:1/mcp".parse().unwrap(), None);
    let refused = CodeExchange::resume(elsewhere.unwrap(), &text).await.unwrap_err();
    assert!(matches!(refused.fault, OAuthFault::Refused { .. }), "{refused:?}");
    for damaged in ["", "null", "{}", "sekret"] {
        let refused = resume(&SecretString::from(damaged)).await.unwrap_err();
        assert!(matches!(refused.fault, OAuthFault::Refused { .. }), "{refused:?}");
    }
    let changed = text.expose_secret().replace(&servers.issuer, "https://evil.example");
    let refused = resume(&SecretString::from(changed)).await.unwrap_err();
    assert_eq!(refused.fault, OAuthFault::OtherIssuer);
}

#[tokio::test]
async fn a_registered_client_is_used_again_until_it_is_refused() {
    let servers = Servers::start(Behaviour { client_secret: Some("s3cret"), ..Behaviour::default() }).await;
    let folder = tempfile::tempdir().unwrap();
    let registrations = || servers.requests("POST /tenant/register").len();
    let first = sign_in(&servers, folder.path()).await.unwrap();
    let second = sign_in(&servers, folder.path()).await.unwrap();
    assert_eq!(registrations(), 1);
    assert_eq!(first.client.redirect_uri, second.client.redirect_uri, "the port is part of the registration");
    // The authorization server has forgotten the client: at a refresh, and at the exchange of a code.
    let unknown = (401, r#"{"error":"invalid_client"}"#.to_owned());
    servers.change(|behaviour| behaviour.token_response = Some(unknown));
    let bearer = bearer(&servers, folder.path());
    assert!(bearer.refused(&second.access_token).await.is_err());
    assert!(sign_in(&servers, folder.path()).await.is_err());
    assert_eq!(registrations(), 2);
    servers.change(|behaviour| behaviour.token_response = None);
    sign_in(&servers, folder.path()).await.unwrap();
    assert_eq!(registrations(), 3);
}

#[tokio::test]
async fn a_browser_that_does_not_return_ends_the_sign_in() {
    let servers = Servers::start(Behaviour::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let login = Login::new(account(&servers.mcp), LoginSettings::default(), store(&servers, folder.path()));
    let login = login.with_timeouts(Duration::from_millis(20), LONG);
    let error = login.run(|_url| {}).await.unwrap_err();
    assert_eq!(error.fault, OAuthFault::NoReply { minutes: 0 });
}

#[tokio::test]
async fn a_port_that_is_in_use_and_a_server_that_is_not_there_are_named() {
    let mut servers = Servers::start(Behaviour::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let used: Url = servers.mcp.parse().unwrap();
    let settings = LoginSettings { redirect_port: used.port(), ..LoginSettings::default() };
    let error = sign_in_with(&servers, folder.path(), settings).await.unwrap_err();
    assert!(matches!(error.fault, OAuthFault::Listener { .. }), "{error:?}");
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    servers.mcp = format!("http://{free}/mcp");
    let error = sign_in(&servers, folder.path()).await.unwrap_err();
    assert!(matches!(error.fault, OAuthFault::Unreachable { .. }), "{error:?}");
}
