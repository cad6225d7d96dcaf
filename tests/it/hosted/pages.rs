//! Record pages of a server for many callers, as a browser requests them.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::support::hosted::{ANN, BOB, HEAD, PUBLIC, Place, STORES, bearer, call, start, token};
use crate::support::{Answer, HttpServer, ask, import_records, post};

/// Requests a page with the cookie of a browser.
fn page(server: &HttpServer, target: &str, cookie: &str) -> Answer {
    ask(&server.address, "GET", target, &[&format!("cookie: {cookie}")])
}

/// Sends a form of a page, and returns the cookie that comes with the redirect to the record.
#[track_caller]
fn send(server: &HttpServer, path: &str, cookie: &str, form: &[(&str, &str)]) -> String {
    let pair =
        |(name, value): &(&str, &str)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC));
    let form: Vec<String> = form.iter().map(pair).collect();
    let headers = [format!("origin: {PUBLIC}"), format!("cookie: {cookie}")];
    let answer = post(&server.address, path, &[&headers[0], &headers[1]], &form.join("&"));
    assert_eq!(answer.status, 303, "{answer:?}");
    answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

/// Returns the path of a record's page, and the key of a link that opens it.
fn linked(server: &HttpServer, token: &str, id: &str) -> (String, String) {
    let record = call(server, token, "fetch", &json!({"id": id}));
    let url = record["url"].as_str().unwrap_or_else(|| panic!("{record}"));
    let (path, key) = url.strip_prefix(PUBLIC).unwrap().split_once("?link=").unwrap();
    (path.to_owned(), key.to_owned())
}

#[test]
fn a_link_opens_its_record_after_a_session_has_ended() {
    let place = Place::new();
    let server = start(&place.of_two());
    let [one, other] = ["ann01", "ann02"].map(|key| format!("cin_ann/letters:{key}"));
    let (path, _) = linked(&server, ANN, &one);
    let (elsewhere, _) = linked(&server, ANN, &other);
    let cookie = send(&server, "/records/-/sign-in", "", &[("to", &path), ("token", ANN)]);
    for path in [&path, &elsewhere] {
        assert!(
            page(&server, path, &cookie).text.contains("only for ann"),
            "a token opens all of its records"
        );
    }
    // The same grant continues with another token.
    const NEWER: &str = "fwt_newernewernewernewernewernewernewernewernew";
    place.configure(&format!("{HEAD}{}{}{STORES}", token("ann", NEWER), token("bob", BOB)));
    server.wait_until("the token is gone", || page(&server, &path, &cookie).status == 401);
    let (path, key) = linked(&server, NEWER, &one);
    let opening = page(&server, &format!("{path}?link={key}"), &cookie);
    assert!(opening.status == 200 && !opening.text.contains("only for ann"), "{opening:?}");
    let cookie = send(&server, &path, &cookie, &[("link", &key)]);
    let shown = page(&server, &path, &cookie);
    assert!(shown.status == 200 && shown.text.contains("only for ann"), "{shown:?}");
    assert_eq!(page(&server, &elsewhere, &cookie).status, 401, "a link opens one record");
    // Following the link does not change the session of a signed-in person.
    let cookie = send(&server, "/records/-/sign-in", &cookie, &[("to", &path), ("token", NEWER)]);
    let (path, key) = linked(&server, NEWER, &one);
    let cookie = send(&server, &path, &cookie, &[("link", &key)]);
    assert_eq!(page(&server, &elsewhere, &cookie).status, 200);
    // The link opens the record again in another browser, and an invented link opens nothing.
    let second = send(&server, &path, "", &[("link", &key)]);
    assert!(second != cookie && page(&server, &path, &second).text.contains("only for ann"));
    let guessed = format!("link={}", "A".repeat(key.len()));
    let refused = post(&server.address, &path, &[&format!("origin: {PUBLIC}")], &guessed);
    assert!(refused.status == 401 && refused.text.contains("has expired"), "{refused:?}");
}

/// Calls a tool of the `openai` profile.
fn call_openai(server: &HttpServer, token: &str, tool: &str, arguments: &Value) -> Value {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}});
    let answer = post(&server.address, "/mcp/openai", &[&bearer(token)], &message.to_string());
    answer.json()["result"]["structuredContent"].clone()
}

#[test]
fn search_and_fetch_cite_a_record_by_one_url_for_each_person() {
    let place = Place::new();
    let both = token("ann2", BOB).replace("[\"ann2\"]", "[\"ann\"]");
    let server = start(&place.configure(&format!("{HEAD}{}{both}{STORES}", token("ann", ANN))));
    let asked = |token: &str, tool: &str, arguments: &Value| call_openai(&server, token, tool, arguments);
    let found = asked(ANN, "search", &json!({"query": "letter 7"}))["results"][0].clone();
    let url = found["url"].as_str().unwrap().to_owned();
    for _ in 0..2 {
        assert_eq!(asked(ANN, "fetch", &json!({"id": found["id"]}))["url"], url);
        assert_eq!(call(&server, ANN, "fetch", &json!({"id": found["id"]}))["url"], url);
    }
    let plain = call(&server, ANN, "search", &json!({"query": "letter 7"}))["results"][0].clone();
    assert!(plain["id"] == found["id"] && plain.get("url").is_none(), "{plain}");
    let other = asked(BOB, "fetch", &json!({"id": found["id"]}))["url"].clone();
    assert!(other != url && other.as_str().unwrap().split('?').next() == url.split('?').next(), "{other}");
    let (path, key) = url.strip_prefix(PUBLIC).unwrap().split_once("?link=").unwrap();
    for _ in 0..2 {
        let cookie = send(&server, path, "", &[("link", key)]);
        assert!(page(&server, path, &cookie).text.contains("only for ann"));
    }
}

#[test]
fn the_first_link_of_a_long_research_still_opens() {
    let place = Place::new();
    let lines: String = (0..100)
        .flat_map(|batch| (0..50).map(move |number| (batch, number)))
        .map(|(batch, number)| {
            let data = json!({"subject": format!("parcel of batch{batch}"), "secret": "kept for ann"});
            json!({"stream": "parcels", "key": format!("{batch}-{number}"), "data": data}).to_string() + "\n"
        })
        .collect();
    import_records(&place.path("parcels.db"), "cin_parcels", &lines);
    let ann = token("ann", ANN).replace("[\"ann\"]", "[\"parcels\"]");
    let store = "[[source]]\nname = \"parcels\"\nstore = \"parcels.db\"\n";
    let server = start(&place.configure(&format!("{HEAD}{ann}{store}")));
    let first_url = |batch: usize| {
        let found = call_openai(&server, ANN, "search", &json!({"query": format!("batch{batch}")}));
        found["results"][0]["url"].as_str().unwrap_or_else(|| panic!("{found}")).to_owned()
    };
    let urls: Vec<String> = (0..100).map(first_url).collect();
    for url in [&urls[0], &urls[99]] {
        let (path, key) = url.strip_prefix(PUBLIC).unwrap().split_once("?link=").unwrap();
        let cookie = send(&server, path, "", &[("link", key)]);
        assert!(page(&server, path, &cookie).text.contains("kept for ann"), "{url}");
    }
}

/// Requests a page as a browser does.
fn browse(server: &HttpServer, target: &str, cookie: &str) -> Answer {
    ask(&server.address, "GET", target, &["accept: text/html", &format!("cookie: {cookie}")])
}

#[test]
fn each_person_searches_only_their_own_records() {
    let place = Place::new();
    let server = start(&place.of_two());
    let about = browse(&server, "/", "");
    assert!(about.status == 200 && about.text.contains("Sign in"), "{about:?}");
    for secret in ["cin_ann", "cin_bob", "letters"] {
        assert!(!about.text.contains(secret), "{secret}: {about:?}");
    }
    let closed = browse(&server, "/?q=letter", "");
    assert!(closed.status == 401 && !closed.text.contains("cin_"), "{closed:?}");
    let to = "/?q=letter";
    let [ann, bob] =
        [ANN, BOB].map(|token| send(&server, "/records/-/sign-in", "", &[("to", to), ("token", token)]));
    for (cookie, own, other) in [(&ann, "ann", "bob"), (&bob, "bob", "ann")] {
        for target in [to, "/", "/?account=cin_ann", "/?account=cin_bob", "/?stream=letters"] {
            let page = browse(&server, target, cookie);
            let shows = |who: &str| {
                page.text.contains(&format!("{who} letter")) || page.text.contains(&format!("cin_{who}/"))
            };
            assert!(!shows(other), "{own} at {target}: {page:?}");
            assert!(target.contains("cin_") || target == "/" || shows(own), "{own} at {target}: {page:?}");
        }
    }
    // A session of a link opens one record, and searches nothing.
    let (path, key) = linked(&server, ANN, "cin_ann/letters:ann01");
    let cookie = send(&server, &path, "", &[("link", &key)]);
    assert_eq!(browse(&server, to, &cookie).status, 401);
    // A session ends with its token.
    place.configure(&format!("{HEAD}{}{STORES}", token("bob", BOB)));
    server.wait_until("the token is gone", || browse(&server, to, &ann).status == 401);
    assert_eq!(browse(&server, to, &bob).status, 200);
}

#[test]
fn a_sign_in_returns_only_to_pages_of_this_server() {
    let place = Place::new();
    let server = start(&place.of_two());
    let form = |to: &str| format!("to={}&token={ANN}", utf8_percent_encode(to, NON_ALPHANUMERIC));
    let origin = format!("origin: {PUBLIC}");
    for to in
        ["//evil.example", "https://evil.example/", "/\\evil.example", "/mcp", "javascript:alert(1)", ""]
    {
        let answer = post(&server.address, "/records/-/sign-in", &[&origin], &form(to));
        assert!(answer.status == 400 && answer.header("set-cookie").is_none(), "{to}: {answer:?}");
    }
    let answer = post(&server.address, "/records/-/sign-in", &[&origin], &form("/?q=a+b"));
    assert_eq!((answer.status, answer.header("location")), (303, Some("/?q=a+b")));
    // A form of another site is refused, with and without a session.
    for headers in [vec!["origin: https://evil.example"], vec![]] {
        let answer = post(&server.address, "/records/-/sign-in", &headers, &form("/"));
        assert!(answer.status == 403 && answer.header("set-cookie").is_none(), "{answer:?}");
        assert_eq!(post(&server.address, "/records/-/sign-out", &headers, "").status, 403);
    }
}
