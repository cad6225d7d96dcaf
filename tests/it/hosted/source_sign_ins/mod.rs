//! MCP servers that each caller signs in to on the sources page.
//!
//! * `vendor`: the MCP server with its authorization server; `browser`: a browser, which keeps cookies

pub(crate) mod browser;
pub(crate) mod vendor;

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::browser::Browser;
use self::vendor::{CALLBACK, NOTES, Vendor, query};
use crate::support::hosted::{ANN, BOB, CAROL, HEAD, PUBLIC, Place, STORES, call, token};
use crate::support::{HttpServer, post, stderr, text};

const HOUR: Duration = Duration::from_secs(3600);

/// Returns a configuration in which Ann and Bob read a store and the source `wiki`, and Carol only a store.
fn settings(vendor: &Vendor) -> String {
    let both = |name: &str, secret: &str| {
        token(name, secret).replace(&format!("[\"{name}\"]"), &format!("[\"{name}\", \"wiki\"]"))
    };
    let carol = token("carol", CAROL).replace("[\"carol\"]", "[\"bob\"]");
    let [ann, bob] = [both("ann", ANN), both("bob", BOB)];
    format!("{HEAD}{ann}{bob}{carol}{STORES}{}", vendor.source("wiki"))
}

fn started(lifetime: Duration) -> (Place, Vendor, HttpServer) {
    let (place, vendor) = (Place::new(), Vendor::start(lifetime));
    place.configure(&settings(&vendor));
    let server = start(&place);
    (place, vendor, server)
}

/// Starts a server with the state of an earlier one in the same place.
fn start(place: &Place) -> HttpServer {
    let [file, state] = ["fetchwell.toml", "state"].map(|name| place.path(name));
    HttpServer::start(["--config", text(&file), "--state-dir", text(&state)])
}

/// Returns the titles of the notes that a search finds, and the hint of the source if it is not available.
fn notes(server: &HttpServer, token: &str) -> (Vec<String>, Option<String>) {
    let found = call(server, token, "search", &json!({"query": "note letter", "limit": 50}));
    let hits = found["results"].as_array().unwrap_or_else(|| panic!("{found}"));
    assert!(hits.iter().any(|hit| hit["id"].as_str().unwrap().contains("/letters:")), "{found}");
    let is_note = |hit: &&Value| hit["id"].as_str().unwrap().starts_with("wiki/");
    let titles = hits.iter().filter(is_note).map(|hit| hit["title"].as_str().unwrap().to_owned());
    let missing = found["unavailable"].as_array().and_then(|missing| missing.first());
    let hint = missing.map(|missing| {
        assert_eq!(
            (&missing["source"], &missing["code"]),
            (&json!("wiki"), &json!("reauthorize")),
            "{found}"
        );
        missing["hint"].as_str().unwrap().to_owned()
    });
    (titles.collect(), hint)
}

#[track_caller]
fn check_not_signed_in(server: &HttpServer, token: &str) {
    let (titles, hint) = notes(server, token);
    assert!(titles.is_empty() && hint.as_ref().unwrap().contains(&format!("{PUBLIC}/sources")), "{hint:?}");
}

#[track_caller]
fn check_notes_of(server: &HttpServer, token: &str, person: &str) {
    let (titles, hint) = notes(server, token);
    assert!(hint.is_none() && titles.len() == NOTES, "{titles:?} {hint:?}");
    assert!(titles.iter().all(|title| title.ends_with(&format!(" of {person}"))), "{person}: {titles:?}");
}

/// Returns all bytes of the files below a folder.
fn bytes_below(folder: &Path) -> Vec<u8> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { bytes_below(&path) } else { std::fs::read(path).unwrap() })
        .collect()
}

#[test]
fn each_caller_reads_with_their_own_sign_in() {
    let (place, vendor, server) = started(HOUR);
    check_not_signed_in(&server, ANN);
    let [mut ann, mut bob] = [ANN, BOB].map(|token| Browser::signed_in(&server, token));
    let page = ann.get(&server, "/sources");
    assert!(page.text.contains("Not signed in") && page.text.contains("/sources/sign-in"), "{page:?}");
    // Sources that a caller may not read are not on the page.
    let carols = Browser::signed_in(&server, CAROL).get(&server, "/sources");
    assert!(carols.status == 200 && !carols.text.contains("wiki"), "{carols:?}");

    let location = ann.begin(&server);
    let asked = query(&location);
    for (name, value) in [
        ("client_id", "fetchwell-1"),
        ("redirect_uri", &format!("{PUBLIC}{CALLBACK}")),
        ("resource", &format!("{}/mcp", vendor.server.url)),
        ("code_challenge_method", "S256"),
    ] {
        assert_eq!(asked[name], value, "{location}");
    }
    let back = ann.get(&server, &vendor.approve(&location, "annie"));
    assert_eq!((back.status, back.header("location")), (303, Some("/sources")), "{back:?}");
    assert!(ann.get(&server, "/sources").text.contains("Signed in") && ann.cookies.len() == 1);
    check_notes_of(&server, ANN, "annie");
    check_not_signed_in(&server, BOB);
    bob.sign_in(&server, &vendor, "bobby");
    check_notes_of(&server, BOB, "bobby");
    check_notes_of(&server, ANN, "annie");
    assert_eq!(vendor.sessions(), 2, "each caller has one session");

    let own = call(&server, ANN, "fetch", &json!({"id": "wiki/items:annie-1"}));
    assert!(own.to_string().contains("Only for annie."), "{own}");
    let others = call(&server, BOB, "fetch", &json!({"id": "wiki/items:annie-1"}));
    assert!(others["error"].is_object() && !others.to_string().contains("Only for"), "{others}");

    // A sign-in as another person replaces the first, and nothing of that is kept.
    ann.sign_in(&server, &vendor, "anita");
    check_notes_of(&server, ANN, "anita");
    let left = ann.send(&server, "/sources/sign-out", &[("source", "wiki")]);
    assert_eq!((left.status, left.header("location")), (303, Some("/sources")), "{left:?}");
    check_not_signed_in(&server, ANN);
    check_notes_of(&server, BOB, "bobby");
    assert_eq!(vendor.requests("POST /register"), 1, "all sign-ins use one client");
    // Tokens are in no file and in no log as they are.
    let files = bytes_below(&place.path("state"));
    let shown = format!("{}{}", String::from_utf8_lossy(&files), server.log());
    assert!(!shown.contains("sekret") && !shown.contains("code-"), "{shown}");
}

#[test]
fn sign_ins_survive_a_restart_and_end_when_they_are_revoked() {
    let (place, vendor, server) = started(HOUR);
    Browser::signed_in(&server, ANN).sign_in(&server, &vendor, "annie");
    check_notes_of(&server, ANN, "annie");
    drop(server);
    let server = start(&place);
    check_notes_of(&server, ANN, "annie");
    vendor.revoke_all();
    check_not_signed_in(&server, ANN);
    let mut browser = Browser::signed_in(&server, ANN);
    assert!(!browser.get(&server, "/sources").text.contains(">Signed in<"));
    browser.sign_in(&server, &vendor, "annie");
    check_notes_of(&server, ANN, "annie");
    assert_eq!(vendor.requests("POST /register"), 1);
}

#[test]
fn a_reply_is_for_the_browser_and_the_caller_that_began() {
    let (_place, vendor, server) = started(HOUR);
    let [mut ann, mut bob] = [ANN, BOB].map(|token| Browser::signed_in(&server, token));
    let location = ann.begin(&server);
    let back = vendor.approve(&location, "mallory");
    // Another browser of the same caller, another caller, and another caller with the cookie of the attempt.
    let mut with_cookie = bob.clone();
    for (name, value) in ann.cookies.iter().filter(|(name, _)| name.contains("source_sign_in")) {
        with_cookie.cookies.insert(name.clone(), value.clone());
    }
    let mut fresh = Browser::signed_in(&server, ANN);
    for browser in [&mut fresh, &mut bob, &mut with_cookie] {
        let refused = browser.get(&server, &back);
        assert!(refused.status == 400 && refused.text.contains("did not begin"), "{refused:?}");
    }
    let unknown = Browser::default().get(&server, &back);
    assert!(unknown.status == 401 && !unknown.text.contains("mallory"), "{unknown:?}");
    let tokens = || vendor.requests("POST /token");
    assert_eq!(tokens(), 0);
    check_not_signed_in(&server, BOB);
    // The state is compared exactly.
    let state = &query(&location)["state"];
    let shorter: String = state.chars().skip(1).collect();
    for forged in ["", &shorter, &format!("{state}A"), &state.to_uppercase()] {
        let refused =
            ann.clone().get(&server, &back.replace(&format!("state={state}"), &format!("state={forged}")));
        assert_eq!(refused.status, 400, "{forged}: {refused:?}");
    }
    let before = ann.clone();
    assert_eq!(ann.get(&server, &back).status, 303);
    // It is used once, also by a browser that keeps the cookie.
    for mut browser in [ann, before] {
        let again = browser.get(&server, &back);
        assert!(again.status == 400, "{again:?}");
    }
    assert_eq!(tokens(), 1);
}

#[test]
fn replies_that_refuse_or_are_forged_give_no_sign_in() {
    let (_place, vendor, server) = started(HOUR);
    let mut ann = Browser::signed_in(&server, ANN);
    let mut check = |change: &dyn Fn(&str) -> String, words: &str| {
        let location = ann.begin(&server);
        let back = change(&vendor.approve(&location, "annie"));
        let refused = ann.get(&server, &back);
        assert!(refused.status == 400 && refused.text.contains(words), "{words}: {refused:?}");
        check_not_signed_in(&server, ANN);
    };
    check(&|back| back.replace("code=", "error=access_denied&x="), "cancelled or refused");
    check(&|back| back.replace("code=", "error=%3Cscript%3E&x="), "unknown_error");
    check(&|back| back.replace("code=", "code=other&code="), "refused the sign-in");
    check(&|back| back.replace("iss=", "x="), "another authorization server");
    check(&|back| back.replace("iss=", "iss=https%3A%2F%2Fevil.example&x="), "another authorization server");
    // Forms come from pages of this server, and name a source that the caller may read.
    let cookie =
        ann.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ");
    for path in ["/sources/sign-in", "/sources/sign-out"] {
        let elsewhere = ["origin: https://evil.example".to_owned(), format!("cookie: {cookie}")];
        let refused = post(&server.address, path, &[&elsewhere[0], &elsewhere[1]], "source=wiki");
        assert_eq!(refused.status, 403, "{refused:?}");
        for form in [&[("source", "bob")][..], &[("source", "none")], &[("source", "a\nb")], &[]] {
            let refused = ann.send(&server, path, form);
            assert_eq!(refused.status, 400, "{form:?} {refused:?}");
        }
        let refused = Browser::signed_in(&server, CAROL).send(&server, path, &[("source", "wiki")]);
        assert_eq!(refused.status, 400, "{refused:?}");
    }
}

#[test]
fn commands_and_configurations_say_where_callers_sign_in() {
    let (place, vendor) = (Place::new(), Vendor::start(HOUR));
    let file = place.configure(&settings(&vendor));
    let failed = |arguments: &[&str], words: &str| {
        let mut command = crate::support::binary();
        let output = command.args(arguments).args(["--config", text(&file)]).output().unwrap();
        assert!(!output.status.success() && stderr(&output).contains(words), "{arguments:?}: {output:?}");
    };
    failed(&["source", "login", "wiki"], "on the page /sources of `fetchwell serve`");
    failed(&["source", "inspect", "wiki"], "on the page /sources of `fetchwell serve`");
    // Without a caller, the server and its authorization server can be tested.
    let said = |arguments: &[&str]| {
        let mut command = crate::support::binary();
        let output = command.args(arguments).args(["--config", text(&file)]).output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    let found = format!("asks for a sign-in at {}, where fetchwell registers a client", vendor.server.url);
    for command in [&["source", "test", "wiki"][..], &["doctor"]] {
        let (_, shown) = said(command);
        assert!(
            shown.contains("the sign-in of each caller") && shown.contains(&found),
            "{command:?}: {shown}"
        );
    }
    assert_eq!(vendor.requests("POST /register"), 0);
    vendor.server.close();
    for command in [&["source", "test", "wiki"][..], &["doctor"]] {
        let (is_ok, shown) = said(command);
        assert!(
            !is_ok && shown.contains(&vendor.server.url) && !shown.contains(&found),
            "{command:?}: {shown}"
        );
    }
    let insecure =
        vendor.source("wiki").replace(&vendor.server.url, "http://wiki.example") + "allow_insecure = true\n";
    let port = vendor.source("wiki") + "oauth = { redirect_port = 7000 }\n";
    let (source, ann) = (vendor.source("wiki"), token("ann", ANN).replace("[\"ann\"]", "[\"wiki\"]"));
    for (configuration, words) in [
        (source.clone(), "needs callers: set public_url, and [auth]"),
        (format!("{HEAD}{source}"), "needs callers"),
        (format!("{ann}{source}"), "set public_url"),
        (format!("{HEAD}{ann}{insecure}"), "only over https"),
        (format!("{HEAD}{ann}{port}"), "redirect_port is for `fetchwell source login`"),
    ] {
        place.configure(&configuration);
        failed(&["source", "list"], words);
    }
    place.configure(&format!("{HEAD}{ann}{source}"));
    failed(&["serve", "--listen", "127.0.0.1:0", "--state-dir", "none"], "name a directory");
}

#[test]
fn a_browser_that_leaves_during_the_exchange_is_signed_in() {
    let (_place, vendor, server) = started(HOUR);
    let mut ann = Browser::signed_in(&server, ANN);
    let location = ann.begin(&server);
    let back = vendor.approve(&location, "annie");
    vendor.holds_tokens.store(true, Ordering::SeqCst);
    let mut left = TcpStream::connect(&server.address).unwrap();
    write!(left, "GET {back} HTTP/1.1\r\nhost: localhost:7400\r\n{}\r\n\r\n", ann.cookie_header()).unwrap();
    server.wait_until("the code is exchanged", || vendor.requests("POST /token") == 1);
    drop(left);
    // The server can notice meanwhile that the browser has left.
    std::thread::park_timeout(Duration::from_millis(200));
    vendor.holds_tokens.store(false, Ordering::SeqCst);
    server.wait_until("the tokens are stored", || notes(&server, ANN).1.is_none());
    check_notes_of(&server, ANN, "annie");
}

#[test]
fn a_reload_ends_the_sessions_of_changed_sources_only() {
    let (place, vendor, server) = started(HOUR);
    Browser::signed_in(&server, ANN).sign_in(&server, &vendor, "annie");
    check_notes_of(&server, ANN, "annie");
    let text = settings(&vendor);
    let labelled = text.replace("name = \"wiki\"\nmcp", "name = \"wiki\"\nlabel = \"Notes\"\nmcp");
    assert_ne!(text, labelled);
    for (number, (text, sessions)) in
        [(format!("{text}{}", vendor.source("other")), 1), (labelled, 2)].into_iter().enumerate()
    {
        place.configure(&text);
        let reloads = || server.log().matches("configuration reloaded").count();
        server.wait_until("the configuration is reloaded", || reloads() == number + 1);
        // Other words are another search, which no page that is kept answers.
        let query = format!("note {number}");
        let found = call(&server, ANN, "search", &json!({"query": query, "connection_id": "wiki"}));
        assert_eq!(found["results"].as_array().map(Vec::len), Some(NOTES), "{found}");
        assert_eq!(vendor.sessions(), sessions, "{text}");
    }
}

/// Default duration of the concurrent calls in seconds. `FETCHWELL_HAMMER_SECONDS` sets another one.
const SECONDS: u64 = 3;

#[test]
fn concurrent_callers_never_read_with_the_sign_in_of_another() {
    // Tokens expire while calls are made.
    let (_place, vendor, server) = started(Duration::from_secs(1));
    for (token, person) in [(ANN, "annie"), (BOB, "bobby")] {
        Browser::signed_in(&server, token).sign_in(&server, &vendor, person);
    }
    #[expect(clippy::disallowed_methods, reason = "it is said to the test, and not to the program")]
    let seconds = std::env::var("FETCHWELL_HAMMER_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    let until = Instant::now() + Duration::from_secs(seconds.unwrap_or(SECONDS));
    let [searches, fetches] = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let once = |token: &str, person: &str, round: usize| {
        // Other words are another search, which no page that is kept answers.
        let query = if round.is_multiple_of(2) { "note".to_owned() } else { format!("note {round}") };
        let found = call(&server, token, "search", &json!({"query": query, "connection_id": "wiki"}));
        let hits = found["results"].as_array().unwrap_or_else(|| panic!("{person}: {found}"));
        assert_eq!(hits.len(), NOTES, "{person}: {found}");
        for hit in hits {
            assert!(hit["title"].as_str().unwrap().ends_with(&format!(" of {person}")), "{person}: {found}");
        }
        searches.fetch_add(1, Ordering::Relaxed);
        let id = hits[round % NOTES]["id"].as_str().unwrap();
        let record = call(&server, token, "fetch", &json!({"id": id}));
        assert!(record.to_string().contains(&format!("Only for {person}.")), "{person}: {record}");
        fetches.fetch_add(1, Ordering::Relaxed);
        let other = if person == "annie" { "bobby" } else { "annie" };
        let refused = call(&server, token, "fetch", &json!({"id": format!("wiki/items:{other}-1")}));
        assert!(refused["error"].is_object(), "{person}: {refused}");
    };
    std::thread::scope(|threads| {
        for hand in 0..4 {
            for (token, person) in [(ANN, "annie"), (BOB, "bobby")] {
                let once = &once;
                threads.spawn(move || {
                    let mut round = hand;
                    while Instant::now() < until {
                        once(token, person, round);
                        round += 1;
                    }
                });
            }
        }
    });
    let [searches, fetches] = [&searches, &fetches].map(|count| count.load(Ordering::Relaxed));
    let (refreshes, sessions) = (vendor.refreshes(), vendor.sessions());
    assert!(searches > 0 && fetches > 0 && refreshes > 0, "{searches} {fetches} {refreshes}");
    println!(
        "{searches} searches, {fetches} fetches, {refreshes} refreshes, {sessions} sessions of 2 callers: 0 crossings"
    );
}
