//! Sign-in at an authorization server before a record page is shown, as a browser does it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use url::Url;

use crate::support::hosted::{ANN, HEAD, PUBLIC, Place, STORES, call, introspected, start, token};
use crate::support::{Answer, FakeServer, HttpServer, Reply, Request, ask, fetchwell, post, stderr, text};

const RECORD: &str = "/records/cin_ann/letters:ann07";
const SECRET: &str = "only for ann";
const CALLBACK: &str = "/records/-/callback";

/// A fake authorization server for sign-in: metadata, token endpoint and introspection.
struct Authority {
    server: FakeServer,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Issued authorization codes with the person and the parameters of the request. Each can be used once.
    codes: HashMap<String, (String, BTreeMap<String, String>)>,
    /// Differences from the usual metadata.
    metadata: Value,
    /// Revoked tokens.
    revoked: HashSet<String>,
    /// True if the metadata never comes.
    is_slow: bool,
    /// A fixed reply of the token endpoint.
    token_reply: Option<Reply>,
}

impl Authority {
    fn start() -> Self {
        let state: Arc<Mutex<State>> = Arc::default();
        let shared = Arc::clone(&state);
        let server = FakeServer::start(move |request: &Request| shared.lock().unwrap().answer(request));
        let metadata = json!({
            "issuer": server.url,
            "authorization_endpoint": format!("{}/authorize?tenant=a", server.url),
            "token_endpoint": format!("{}/token", server.url),
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
        });
        state.lock().unwrap().metadata = metadata;
        Self { server, state }
    }

    /// Signs a person in as the authorization endpoint does, and returns the URL that the browser is redirected to.
    fn approve(&self, location: &str, person: &str) -> String {
        let asked = query(location);
        let mut state = self.state.lock().unwrap();
        let code = format!("code-{person}-{}", state.codes.len());
        let back = format!(
            "{}?code={code}&state={}&iss={}",
            asked["redirect_uri"],
            asked["state"],
            utf8_percent_encode(&self.server.url, NON_ALPHANUMERIC)
        );
        state.codes.insert(code, (person.to_owned(), asked));
        back.strip_prefix(PUBLIC).unwrap().to_owned()
    }

    /// Returns the URL that the browser is redirected to with an error.
    fn refuse(&self, location: &str, error: &str) -> String {
        let iss = utf8_percent_encode(&self.server.url, NON_ALPHANUMERIC);
        let description = utf8_percent_encode("<script>alert('described')</script>", NON_ALPHANUMERIC);
        let state = &query(location)["state"];
        format!("{CALLBACK}?error={error}&error_description={description}&state={state}&iss={iss}")
    }

    fn change_metadata(&self, change: &Value) {
        let changes = change.as_object().unwrap().clone();
        self.state.lock().unwrap().metadata.as_object_mut().unwrap().extend(changes);
    }

    fn revoke(&self, token: &str) {
        self.state.lock().unwrap().revoked.insert(token.to_owned());
    }

    /// Returns the requests to the token endpoint.
    fn exchanges(&self) -> Vec<Request> {
        let requests = self.server.requests().into_iter();
        requests.filter(|request| request.line == "POST /token").collect()
    }
}

impl State {
    fn answer(&mut self, request: &Request) -> Reply {
        match request.line.as_str() {
            line if self.is_slow && line.starts_with("GET /.well-known/") => Reply::Hang,
            "GET /.well-known/oauth-authorization-server" => Reply::Json(200, self.metadata.to_string()),
            "POST /introspect" if self.revoked.iter().any(|token| request.body.contains(token.as_str())) => {
                Reply::Json(200, r#"{"active": false}"#.to_owned())
            }
            "POST /introspect" => introspected(request),
            "POST /token" => self.exchange(request),
            _ => Reply::Json(404, "{}".to_owned()),
        }
    }

    fn exchange(&mut self, request: &Request) -> Reply {
        if let Some(reply) = &self.token_reply {
            return reply.clone();
        }
        let refused = |error: &str| Reply::Json(400, json!({"error": error}).to_string());
        // `fetchwell-pages` and `p4ges` in HTTP Basic authentication.
        if request.authorization.as_deref() != Some("Basic ZmV0Y2h3ZWxsLXBhZ2VzOnA0Z2Vz") {
            return refused("invalid_client");
        }
        let form = query(&format!("http://form/?{}", request.body));
        let Some((person, asked)) = form.get("code").and_then(|code| self.codes.remove(code)) else {
            return refused("invalid_grant");
        };
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&form["code_verifier"]));
        let is_bound = asked["code_challenge"] == challenge
            && asked["code_challenge_method"] == "S256"
            && form["grant_type"] == "authorization_code"
            && form["redirect_uri"] == asked["redirect_uri"]
            && form["resource"] == format!("{PUBLIC}/mcp");
        if !is_bound {
            return refused("invalid_grant");
        }
        let token = format!("{person}-browser");
        Reply::Json(200, json!({"access_token": token, "token_type": "Bearer", "expires_in": 60}).to_string())
    }
}

/// A browser, which keeps cookies.
#[derive(Default)]
struct Browser {
    cookies: BTreeMap<String, String>,
}

impl Browser {
    fn get(&mut self, server: &HttpServer, target: &str) -> Answer {
        let answer = ask(&server.address, "GET", target, &[&self.cookie_header()]);
        for line in answer.headers("set-cookie") {
            assert!(line.contains("; HttpOnly; SameSite=Lax"), "{line}");
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            match value {
                "" => self.cookies.remove(name),
                value => self.cookies.insert(name.to_owned(), value.to_owned()),
            };
        }
        answer
    }

    /// Opens a page without a session. Returns the URL of the sign-in that the browser is redirected to.
    #[track_caller]
    fn sent_to_sign_in(&mut self, server: &HttpServer, target: &str) -> String {
        let answer = self.get(server, target);
        assert_eq!(answer.status, 303, "{answer:?}");
        assert!(!answer.text.contains(SECRET) && answer.header("cache-control") == Some("no-store"));
        answer.header("location").unwrap().to_owned()
    }

    /// Signs in as a person before a page is shown. Returns the page.
    #[track_caller]
    fn signed_in(
        &mut self,
        server: &HttpServer,
        authority: &Authority,
        person: &str,
        target: &str,
    ) -> Answer {
        let location = self.sent_to_sign_in(server, target);
        let back = self.get(server, &authority.approve(&location, person));
        assert_eq!(back.status, 303, "{back:?}");
        let page = back.header("location").unwrap().to_owned();
        assert!(page.starts_with("/records/"), "{page}");
        self.get(server, &page)
    }

    fn cookie_header(&self) -> String {
        let pairs = self.cookies.iter().map(|(name, value)| format!("{name}={value}"));
        format!("cookie: {}", pairs.collect::<Vec<String>>().join("; "))
    }

    fn has_session(&self) -> bool {
        self.cookies.keys().any(|name| name.contains("session"))
    }
}

fn query(url: &str) -> BTreeMap<String, String> {
    let url: Url = url.parse().unwrap_or_else(|error| panic!("{url}: {error}"));
    url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

fn settings(authority: &Authority) -> String {
    let url = &authority.server.url;
    let subject = |name: &str, source: &str| {
        format!("[[auth.subject]]\nsubject = \"{name}\"\nsources = [\"{source}\"]\n")
    };
    format!(
        "{HEAD}[auth]\nissuer = \"{url}\"\nscopes = [\"records\"]\n[auth.pages]\nclient_id = \"fetchwell-pages\"\n\
         client_secret = \"file:pages-secret\"\n[auth.introspection]\nurl = \"{url}/introspect\"\nclient_id = \"fetchwell\"\n\
         client_secret = \"file:secret\"\n{}{}{}{STORES}",
        subject("ann", "ann"),
        subject("bob", "bob"),
        token("ci", ANN).replace("[\"ci\"]", "[\"ann\"]")
    )
}

fn place() -> Place {
    let place = Place::new();
    fs::write(place.path("secret"), "s3cret\n").unwrap();
    fs::write(place.path("pages-secret"), "p4ges\n").unwrap();
    place
}

fn started() -> (Place, Authority, HttpServer) {
    let (place, authority) = (place(), Authority::start());
    let server = start(&place.configure(&settings(&authority)));
    (place, authority, server)
}

#[test]
fn a_person_signs_in_on_the_way_to_a_record() {
    let (_place, authority, server) = started();
    // The link that a model cites contains no key to the record.
    let url = call(&server, "ann-1", "fetch", &json!({"id": "cin_ann/letters:ann07"}))["url"].clone();
    assert_eq!(url, format!("{PUBLIC}{RECORD}"));
    let mut browser = Browser::default();
    let location = browser.sent_to_sign_in(&server, RECORD);
    assert!(location.starts_with(&format!("{}/authorize?tenant=a&", authority.server.url)), "{location}");
    let asked = query(&location);
    for (name, expect) in [
        ("response_type", "code"),
        ("client_id", "fetchwell-pages"),
        ("redirect_uri", &format!("{PUBLIC}{CALLBACK}")),
        ("scope", "records"),
        ("resource", &format!("{PUBLIC}/mcp")),
        ("code_challenge_method", "S256"),
    ] {
        assert_eq!(asked[name], expect, "{location}");
    }
    assert!(asked["state"].len() >= 22 && asked["code_challenge"].len() == 43, "{location}");
    let sealed: String = browser.cookies.values().cloned().collect();
    assert!(browser.cookies.len() == 1 && !sealed.contains("ann07"), "{sealed}");

    let callback = authority.approve(&location, "ann");
    let back = browser.get(&server, &callback);
    assert_eq!(back.status, 303, "{back:?}");
    let page = browser.get(&server, back.header("location").unwrap());
    assert!(page.status == 200 && page.text.contains(SECRET), "{page:?}");
    // The cookie of the sign-in is deleted, and the session shows the records that the person may read.
    assert!(browser.cookies.len() == 1 && browser.has_session(), "{:?}", browser.cookies);
    assert_eq!(browser.get(&server, "/records/cin_ann/letters:ann08").status, 200);
    assert_eq!(browser.get(&server, "/records/cin_bob/letters:bob07").status, 404);

    // A response is accepted once, and only from the browser that sent the request.
    for mut other in [browser, Browser::default()] {
        let replayed = other.get(&server, &callback);
        assert!(replayed.status == 400 && replayed.text.contains("did not begin"), "{replayed:?}");
    }
    assert_eq!(authority.exchanges().len(), 1);
    let log = server.log();
    for secret in ["ann-browser", "p4ges", "code-ann", &asked["state"], SECRET] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}

#[test]
fn each_person_sees_their_own_records() {
    let (_place, authority, server) = started();
    let mut browser = Browser::default();
    // The link was given to Ann; Bob has no access to the record.
    let page = browser.signed_in(&server, &authority, "bob", RECORD);
    assert!(page.status == 404 && !page.text.contains(SECRET), "{page:?}");
    assert!(page.text.contains("It cannot be shown") && page.text.contains("Sign out"), "{page:?}");
    assert_eq!(browser.get(&server, "/records/cin_bob/letters:bob07").status, 200);
    // Carol has no records, and a token for another audience is refused.
    for (person, status, word) in [("carol", 403, "no records for you"), ("dave", 401, "another audience")] {
        let mut browser = Browser::default();
        let location = browser.sent_to_sign_in(&server, RECORD);
        let page = browser.get(&server, &authority.approve(&location, person));
        assert!(page.status == status && page.text.contains(word), "{page:?}");
        assert!(browser.cookies.is_empty() && !page.text.contains(SECRET), "{page:?}");
    }
}

#[test]
fn a_session_ends_with_its_token() {
    let (place, authority, server) = started();
    let mut browser = Browser::default();
    assert_eq!(browser.signed_in(&server, &authority, "ann", RECORD).status, 200);
    assert_eq!(browser.get(&server, RECORD).status, 200);
    authority.revoke("ann-browser");
    // With another client id, cached introspection responses are not used.
    let asked_again =
        settings(&authority).replace("client_id = \"fetchwell\"", "client_id = \"fetchwell-2\"");
    place.configure(&asked_again);
    server.wait_until("the session has ended", || {
        let answer = ask(&server.address, "GET", RECORD, &[&browser.cookie_header()]);
        assert!(answer.status == 303 || answer.text.contains(SECRET), "{answer:?}");
        answer.status == 303
    });
    let location = browser.sent_to_sign_in(&server, RECORD);
    let refused = browser.get(&server, &authority.approve(&location, "ann"));
    assert!(refused.status == 401 && refused.text.contains("not active"), "{refused:?}");
    // A browser that drops its cookies is not redirected in a loop.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let stopped = Browser::default().get(&server, &format!("{RECORD}?signed-in={now}"));
    assert!(stopped.status == 401 && stopped.text.contains("allow cookies"), "{stopped:?}");
    // The parameter stays in the URL; an old one does not prevent a new sign-in.
    let again = Browser::default().get(&server, &format!("{RECORD}?signed-in={}", now - 60));
    assert_eq!(again.status, 303, "{again:?}");
}

#[test]
fn several_tabs_sign_in_at_a_time() {
    let (_place, authority, server) = started();
    let mut browser = Browser::default();
    let records = [RECORD, "/records/cin_ann/letters:ann08"];
    let locations = records.map(|record| browser.sent_to_sign_in(&server, record));
    let callbacks = locations.each_ref().map(|location| authority.approve(location, "ann"));
    for (callback, record) in callbacks.iter().zip(records).rev() {
        let back = browser.get(&server, callback);
        let to = back.header("location").unwrap_or_default();
        assert!(to.starts_with(&format!("{record}?signed-in=")), "{back:?}");
    }
    assert!(browser.get(&server, RECORD).text.contains(SECRET));
    // The number of unfinished sign-ins of a browser is limited.
    let mut browser = Browser::default();
    for _ in 0..40 {
        browser.sent_to_sign_in(&server, RECORD);
        assert!(browser.cookies.len() <= 9, "{}", browser.cookies.len());
    }
    // Cookies of long handles stay within the header limits of proxies.
    let long = format!("/records/cin_ann/letters:{}", "x".repeat(1_900));
    for _ in 0..10 {
        browser.sent_to_sign_in(&server, &long);
        assert!(browser.cookie_header().len() < 8_000, "{}", browser.cookie_header().len());
    }
}

#[test]
fn a_forged_response_signs_no_one_in() {
    let (_place, authority, server) = started();
    let mut browser = Browser::default();
    let location = browser.sent_to_sign_in(&server, RECORD);
    let state = query(&location)["state"].clone();
    // The attacker's own code and state, sent to the browser of a victim (login CSRF).
    let mut attacker = Browser::default();
    let theirs = attacker.sent_to_sign_in(&server, "/records/cin_bob/letters:bob07");
    let attack = authority.approve(&theirs, "bob");
    assert_eq!(browser.get(&server, &attack).status, 400);
    // The attacker's code with the state of the victim: the PKCE verifier does not match.
    let code = query(&format!("{PUBLIC}{attack}"))["code"].clone();
    let iss = utf8_percent_encode(&authority.server.url, NON_ALPHANUMERIC).to_string();
    let before = authority.exchanges().len();
    for (answer, status, word) in [
        (format!("code=x&state={}&iss={iss}", "A".repeat(22)), 400, "did not begin"),
        (format!("code=x&iss={iss}"), 400, "did not begin"),
        (format!("code=x&state={state}x&iss={iss}"), 400, "did not begin"),
        (format!("code=x&state={state}&state={state}&iss={iss}"), 400, "did not begin"),
        (format!("code=x&state=%C3%A4{state}&iss={iss}"), 400, "did not begin"),
    ] {
        let page = browser.get(&server, &format!("{CALLBACK}?{answer}"));
        assert!(page.status == status && page.text.contains(word), "{answer}: {page:?}");
    }
    assert!(browser.cookies.len() == 1 && authority.exchanges().len() == before);
    // A response of another authorization server or of none, with two codes, or without a code: no request is sent to
    // the token endpoint.
    for (answer, word) in [
        ("code=x&iss=https%3A%2F%2Fevil.example".to_owned(), "not from the configured authorization server"),
        ("code=x".to_owned(), "not from the configured authorization server"),
        (format!("iss={iss}"), "incomplete"),
        (format!("code=x&code=y&iss={iss}"), "incomplete"),
        (format!("code={}&iss={iss}", "x".repeat(5_000)), "incomplete"),
    ] {
        let location = browser.sent_to_sign_in(&server, RECORD);
        let state = query(&location)["state"].clone();
        let page = browser.get(&server, &format!("{CALLBACK}?state={state}&{answer}"));
        assert!(page.status == 403 && page.text.contains(word), "{answer}: {page:?}");
        assert!(page.text.contains(&format!("href=\"{RECORD}\"")) && !browser.has_session(), "{page:?}");
    }
    assert_eq!(authority.exchanges().len(), before);
    let stolen = browser.get(&server, &format!("{CALLBACK}?code={code}&state={state}&iss={iss}"));
    assert!(stolen.status == 403 && stolen.text.contains("invalid_grant"), "{stolen:?}");
    assert!(!browser.has_session() && authority.exchanges().len() == before + 1);
}

#[test]
fn a_refused_sign_in_says_what_to_do() {
    let (_place, authority, server) = started();
    for (error, status, word) in [
        ("access_denied", 403, "cancelled or refused"),
        ("temporarily_unavailable", 503, "try again later"),
        ("invalid_scope", 502, "(invalid_scope)"),
        ("%3Cscript%3Ealert(1)%3C%2Fscript%3E", 502, "(unknown error)"),
    ] {
        let mut browser = Browser::default();
        let location = browser.sent_to_sign_in(&server, RECORD);
        let page = browser.get(&server, &authority.refuse(&location, error));
        assert!(page.status == status && page.text.contains(word), "{page:?}");
        assert!(page.text.contains("Sign in again") && !page.text.contains("described"), "{page:?}");
        assert!(!page.text.contains("<script>alert") && browser.cookies.is_empty(), "{page:?}");
    }
    for (reply, status) in [
        (Reply::Json(200, r#"{"access_token": "ann-browser", "token_type": "DPoP"}"#.to_owned()), 503),
        (Reply::Json(200, r#"{"access_token": "", "token_type": "Bearer"}"#.to_owned()), 401),
        (Reply::Json(200, json!({"access_token": "a b", "token_type": "Bearer"}).to_string()), 401),
        (Reply::Endless(1024 * 1024), 503),
        (
            Reply::Json(401, r#"{"error": "invalid_client", "error_description": "ann-browser"}"#.to_owned()),
            502,
        ),
        (Reply::Full(307, vec![("location", "https://evil.example/".to_owned())], String::new()), 503),
        (Reply::Reset, 503),
        (Reply::Hang, 503),
    ] {
        authority.state.lock().unwrap().token_reply = Some(reply.clone());
        let mut browser = Browser::default();
        let location = browser.sent_to_sign_in(&server, RECORD);
        let page = browser.get(&server, &authority.approve(&location, "ann"));
        assert_eq!(page.status, status, "{reply:?}: {page:?}");
        assert!(!browser.has_session() && !page.text.contains("ann-browser"), "{page:?}");
    }
    assert!(!server.log().contains("ann-browser"));
}

#[test]
fn metadata_that_cannot_be_trusted_is_not_used() {
    for change in [
        json!({"issuer": "https://evil.example"}),
        json!({"authorization_endpoint": "http://evil.example/authorize"}),
        json!({"token_endpoint": "http://10.0.0.1/token"}),
        json!({"token_endpoint": "file:///etc/passwd"}),
        json!({"code_challenge_methods_supported": ["plain"]}),
        json!({"authorization_endpoint": null}),
    ] {
        let (place, authority) = (place(), Authority::start());
        authority.change_metadata(&change);
        let server = start(&place.configure(&settings(&authority)));
        let page = Browser::default().get(&server, RECORD);
        assert!(
            page.status == 503 && page.text.contains("is unavailable; try again later"),
            "{change}: {page:?}"
        );
        assert!(page.header("set-cookie").is_none(), "{change}: {page:?}");
        // Bearer tokens still work.
        assert!(call(&server, "ann-1", "search", &json!({"query": "letter"}))["results"].is_array());
    }
    let (place, authority) = (place(), Authority::start());
    let server = start(&place.configure(&settings(&authority)));
    authority.server.close();
    assert_eq!(Browser::default().get(&server, RECORD).status, 503);
}

#[test]
fn slow_metadata_times_out_and_is_read_again() {
    let (_place, authority, server) = started();
    authority.state.lock().unwrap().is_slow = true;
    let page = Browser::default().get(&server, RECORD);
    assert!(page.status == 503 && page.text.contains("Sign in again"), "{page:?}");
    authority.state.lock().unwrap().is_slow = false;
    server.wait_until("people can sign in again", || Browser::default().get(&server, RECORD).status == 303);
}

#[test]
fn links_of_static_tokens_open_without_a_sign_in() {
    let (place, authority, server) = started();
    let url = call(&server, ANN, "fetch", &json!({"id": "cin_ann/letters:ann07"}))["url"].clone();
    let (path, key) = url.as_str().unwrap().strip_prefix(PUBLIC).unwrap().split_once("?link=").unwrap();
    let opening = Browser::default().get(&server, &format!("{path}?link={key}"));
    assert!(opening.status == 200 && opening.text.contains("Open the record"), "{opening:?}");
    // A link of a person is refused while sign-in is configured, and valid again without it.
    let lines = settings(&authority);
    let (head, rest) = lines.split_once("[auth.pages]").unwrap();
    let (_, rest) = rest.split_once("[auth.introspection]").unwrap();
    place.configure(&format!("{head}[auth.introspection]{rest}"));
    server.wait_until("sign-in is off", || Browser::default().get(&server, RECORD).status == 401);
    let url = call(&server, "ann-1", "fetch", &json!({"id": "cin_ann/letters:ann07"}))["url"].clone();
    let link = url.as_str().unwrap().strip_prefix(PUBLIC).unwrap();
    assert_eq!(Browser::default().get(&server, link).status, 200);
    place.configure(&lines);
    server.wait_until("people sign in", || Browser::default().get(&server, RECORD).status == 303);
    assert_eq!(Browser::default().get(&server, link).status, 303);
    let (path, key) = link.split_once("?link=").unwrap();
    let origin = format!("origin: {PUBLIC}");
    assert_eq!(post(&server.address, path, &[&origin], &format!("link={key}")).status, 401);
}

#[test]
fn cookies_over_https_are_bound_to_the_host() {
    let (place, authority) = (place(), Authority::start());
    let secure = settings(&authority).replace(PUBLIC, "https://records.example.com");
    let server = start(&place.configure(&secure));
    let answer = ask(&server.address, "GET", RECORD, &["host: records.example.com"]);
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.starts_with("__Host-fetchwell_sign_in_"), "{cookie}");
    assert!(cookie.ends_with("; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure"), "{cookie}");
}

#[test]
fn a_configuration_without_a_working_sign_in_is_refused() {
    let (place, authority) = (place(), Authority::start());
    let good = settings(&authority);
    let issuer = format!("issuer = \"{}\"\n", authority.server.url);
    for (text_of_file, problem) in [
        (good.replace(&issuer, ""), "set issuer"),
        (
            good.replace(HEAD, "").replace("[auth]\n", "[auth]\naudience = [\"https://a.example\"]\n"),
            "set public_url",
        ),
        (good.replace("\"fetchwell-pages\"", "\"\""), "client_id is empty"),
        (good.replace("file:pages-secret", "p4ges"), "must be \"env:NAME\" or \"file:PATH\""),
        (good.replace("file:pages-secret", "env:FETCHWELL_NOT_SET"), "for [auth.pages], is not set"),
        (good.replace("[auth.pages]\n", "[auth.pages]\nscopes = [\"a b\"]\n"), "`a b` is not a scope"),
        (good.replace("[auth.pages]\n", "[auth.pages]\nnonce = true\n"), "unknown key `nonce`"),
    ] {
        let output = fetchwell(["serve", "--config", text(&place.configure(&text_of_file))]);
        let said = stderr(&output);
        assert!(!output.status.success() && said.contains(problem), "{problem}: {said}");
        assert!(!said.contains("p4ges"), "{said}");
    }
    let checked = fetchwell(["config", "check", text(&place.configure(&good))]);
    assert!(checked.status.success(), "{checked:?}");
}
