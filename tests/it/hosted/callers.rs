//! A server for many callers: authentication, and the separation of callers.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::hosted::{
    ANN, BOB, HEAD, PUBLIC, Place, STORES, authorization_server, bearer, call, record_server, start, token,
    with_authorization_server,
};
use crate::support::{Answer, FakeServer, HttpServer, Reply, Request, ask, fetchwell, post, stderr, text};

const WATCHER: &str = "fwt_watchwatchwatchwatchwatchwatchwatchwatchwat";

fn get_as(server: &HttpServer, token: &str, target: &str) -> Answer {
    ask(&server.address, "GET", target, &[&bearer(token)])
}

#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert!(answer.text.to_lowercase().contains(code), "{answer:?}");
}

#[test]
fn requests_without_a_token_are_refused() {
    let place = Place::new();
    fs::write(place.path("secret"), "s3cret").unwrap();
    let asked = authorization_server();
    let settings = with_authorization_server(&asked, &token("ann", ANN))
        .replace("[auth.introspection]", "[auth]\nscopes = [\"records\"]\n[auth.introspection]");
    let server = start(&place.configure(&format!("{settings}{STORES}")));
    let about = |path: &str| format!("{PUBLIC}/.well-known/oauth-protected-resource{path}");
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for (target, path) in [
        ("/mcp", "/mcp"),
        ("/mcp/", "/mcp/"),
        ("/mcp/openai", "/mcp/openai"),
        ("/v1/schema", ""),
        ("/api/v1", ""),
    ] {
        let bad = bearer("fwt_guessedguessedguessedguessedguessedguessedg");
        for headers in
            [&[][..], &[bad.as_str()], &["authorization: Basic YTpi"], &[&bearer(ANN), &bearer(BOB)]]
        {
            let answer = if path.starts_with("/mcp") {
                post(&server.address, target, headers, message)
            } else {
                ask(&server.address, "GET", target, headers)
            };
            refused(&answer, 401, "unauthorized");
            let challenge = answer.header("www-authenticate").unwrap();
            assert!(challenge.starts_with("Bearer "), "{challenge}");
            assert!(challenge.contains(&format!("resource_metadata=\"{}\"", about(path))), "{challenge}");
            assert_eq!(challenge.contains("error=\"invalid_token\""), !headers.is_empty(), "{challenge}");
            assert!(challenge.contains("scope=\"records\""), "{challenge}");
            assert!(answer.text.contains(&about(path)), "{}", answer.text);
            assert!(!answer.text.contains("guessed"), "{}", answer.text);
        }
    }
    for (path, resource) in [("", ""), ("/mcp", "/mcp"), ("/mcp/", "/mcp/"), ("/mcp/openai", "/mcp/openai")] {
        let document =
            ask(&server.address, "GET", &format!("/.well-known/oauth-protected-resource{path}"), &[]);
        let document = document.json();
        assert_eq!(document["resource"], format!("{PUBLIC}{resource}"));
        // No source of this server has embeddings.
        assert_eq!(document["capabilities"]["semantic_retrieval"], json!({"supported": false}));
    }
    for open in ["/health/live", "/health/ready"] {
        assert_eq!(ask(&server.address, "GET", open, &[]).text, "ok\n");
    }
    // Each accepted caller reaches all APIs.
    assert_eq!(get_as(&server, ANN, "/v1/schema").status, 200);
    assert_eq!(get_as(&server, ANN, "/api/v1").status, 200);
    let found = call(&server, ANN, "search", &json!({"query": "letter"}));
    assert!(!found["results"].as_array().unwrap().is_empty(), "{found}");
}

#[test]
fn a_server_with_static_tokens_names_no_authorization_server() {
    let place = Place::new();
    let server = start(&place.of_two());
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for target in ["/mcp", "/mcp/openai/", "/api/v1"] {
        let answer = if target.starts_with("/mcp") {
            post(&server.address, target, &[], message)
        } else {
            ask(&server.address, "GET", target, &[])
        };
        refused(&answer, 401, "fetchwell token new");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{target}");
        assert!(!answer.text.contains("resource_metadata"), "{}", answer.text);
    }
    for path in ["", "/mcp", "/mcp/openai"] {
        let document =
            ask(&server.address, "GET", &format!("/.well-known/oauth-protected-resource{path}"), &[]);
        assert_eq!(document.status, 404, "{path}");
    }
    assert_eq!(get_as(&server, ANN, "/v1/schema").status, 200);
}

#[test]
fn handles_and_cursors_of_a_caller_are_refused_for_another() {
    let place = Place::new();
    let server = start(&place.of_two());
    let found = call(&server, ANN, "search", &json!({"query": "letter", "limit": 5}));
    assert!(found.to_string().contains("ann letter") && !found.to_string().contains("\"bob"), "{found}");
    let other = call(&server, BOB, "search", &json!({"query": "letter", "limit": 5}));
    assert!(other.to_string().contains("bob letter") && !other.to_string().contains("\"ann"), "{other}");
    let id = &found["results"][0]["id"];
    assert_eq!(call(&server, ANN, "fetch", &json!({"id": id}))["id"], *id);
    let refusal = call(&server, BOB, "fetch", &json!({"id": id}));
    assert_eq!(refusal["error"]["code"], "connection_not_found", "{refusal}");
    assert!(!refusal.to_string().contains("only for ann"), "{refusal}");

    let listed = call(&server, ANN, "query_records", &json!({"stream": "letters", "limit": 5}));
    for (tool, cursor) in [("search", &found["next_cursor"]), ("query_records", &listed["next_cursor"])] {
        let refusal = call(&server, BOB, tool, &json!({"cursor": cursor}));
        assert_eq!(refusal["error"]["code"], "invalid_cursor", "{refusal}");
        let next = call(&server, ANN, tool, &json!({"cursor": cursor}));
        assert!(next.get("error").is_none(), "{next}");
    }
    for (target, pointer) in [
        ("/v1/streams/letters/records?limit=5", "/next_cursor"),
        ("/v1/search?q=letter&limit=5", "/next_cursor"),
        ("/api/v1/letters?limit=5", "/nextCursor"),
    ] {
        let page = get_as(&server, ANN, target).json();
        let cursor = page.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("{page}"));
        let next = format!("{target}&cursor={cursor}");
        refused(&get_as(&server, BOB, &next), 400, "invalid_cursor");
        assert_eq!(get_as(&server, ANN, &next).status, 200, "{target}");
    }
    // Two tokens with the same store are two callers, too.
    let both = format!(
        "{HEAD}{}{}{STORES}",
        token("ann", ANN),
        token("ann2", BOB).replace("[\"ann2\"]", "[\"ann\"]")
    );
    let server = start(&place.configure(&both));
    let found = call(&server, ANN, "search", &json!({"query": "letter", "limit": 5}));
    let refusal = call(&server, BOB, "search", &json!({"cursor": found["next_cursor"]}));
    assert_eq!(refusal["error"]["reason"], "mismatched", "{refusal}");
}

#[test]
fn a_removed_token_is_refused_at_once() {
    let place = Place::new();
    let file = place.of_two();
    let server = start(&file);
    let found = call(&server, ANN, "search", &json!({"query": "letter", "limit": 5}));
    assert_eq!(get_as(&server, BOB, "/v1/schema").status, 200);
    place.configure(&format!("{HEAD}{}{STORES}", token("ann", ANN)));
    server.wait_until("the token is gone", || get_as(&server, BOB, "/v1/schema").status == 401);
    // The other caller notices no change.
    let next = call(&server, ANN, "search", &json!({"cursor": found["next_cursor"]}));
    assert!(next.get("error").is_none(), "{next}");
    // Without [auth] callers cannot be told apart, so that change is not applied.
    place.configure(STORES);
    server.wait_until("it is refused", || server.log().contains("[auth] was removed"));
    assert_eq!(get_as(&server, BOB, "/v1/schema").status, 401);
    assert_eq!(get_as(&server, ANN, "/v1/schema").status, 200);
}

#[test]
fn health_and_metrics_need_a_token_with_metrics() {
    let place = Place::new();
    let watcher = token("watch", WATCHER).replace("sources = [\"watch\"]", "sources = []\nmetrics = true");
    let file = place.configure(&format!("{HEAD}{}{watcher}{STORES}", token("ann", ANN)));
    let server = start(&file);
    for target in ["/health", "/metrics"] {
        // A loopback address does not authenticate: requests of a local proxy without headers have one, too.
        for from in ["host: localhost", "host: 127.0.0.1", "x-forwarded-for: 192.0.2.7"] {
            let answer = ask(&server.address, "GET", target, &[from]);
            refused(&answer, 401, "unauthorized");
            assert!(
                answer.text.contains("metrics = true") && answer.text.contains("ops_listen"),
                "{answer:?}"
            );
            refused(&ask(&server.address, "GET", target, &[from, &bearer(ANN)]), 403, "forbidden");
            assert_eq!(ask(&server.address, "GET", target, &[from, &bearer(WATCHER)]).status, 200);
        }
    }
    // A local proxy without headers about its client uses the public host name.
    let server = start(&place.configure(
        &fs::read_to_string(&file).unwrap().replace("http://localhost:7400", "https://records.example.com"),
    ));
    let proxied = ask(&server.address, "GET", "/health", &["host: records.example.com"]);
    refused(&proxied, 401, "unauthorized");
    // Health probes use an IP address.
    assert_eq!(ask(&server.address, "GET", "/health/live", &["host: 10.1.2.3"]).status, 200);
    refused(&ask(&server.address, "GET", "/health", &["host: 10.1.2.3"]), 403, "forbidden");
    // The token may read metrics, and no records.
    refused(&get_as(&server, WATCHER, "/v1/schema"), 403, "no_sources");
}

#[test]
fn a_callers_token_is_sent_to_the_intended_source_only() {
    let (place, asked, records) = (Place::new(), authorization_server(), record_server());
    fs::write(place.path("secret"), "s3cret\n").unwrap();
    let caller = format!("[[source]]\nname = \"mail\"\nurl = \"{}\"\ncredential = \"caller\"\n", records.url);
    let subject = "[[auth.subject]]\nsubject = \"bob\"\nsources = [\"bob\"]\n";
    let ci = token("ann", ANN);
    let file = place.configure(&with_authorization_server(&asked, &format!("{subject}{ci}{STORES}{caller}")));
    let server = start(&file);
    let titles = |token: &str| {
        let found = call(&server, token, "search", &json!({"query": "letter"}));
        let results = found["results"].as_array().unwrap_or_else(|| panic!("{found}")).clone();
        results.iter().map(|result| result["title"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(titles("ann-1"), ["Mail of ann-1"]);
    // The same grant with a newer token; then another grant of the same person.
    assert_eq!(titles("ann-2"), ["Mail of ann-2"]);
    assert_eq!(titles("ann-narrow"), ["Mail of ann-narrow"]);
    assert_eq!(titles("ann-package"), ["Mail of ann-package"]);
    for tenant in ["ann-north", "ann-south", "ann-north"] {
        assert_eq!(titles(tenant), [format!("Mail of {tenant}")]);
    }
    let bobs = titles("bob-1");
    assert!(
        bobs.contains(&"Mail of bob-1".to_owned()) && bobs.iter().any(|title| title.contains("bob letter"))
    );
    // A static token belongs to this server and is not sent to a record server.
    assert!(titles(ANN).iter().all(|title| title.contains("ann letter")));
    let sent: Vec<String> =
        records.requests().into_iter().filter_map(|request| request.authorization).collect();
    assert!(!sent.is_empty() && !sent.iter().any(|token| token.contains("fwt_")), "{sent:?}");
    let secret = asked.requests().iter().all(|request| {
        request.authorization.as_deref() == Some("Basic ZmV0Y2h3ZWxsOnMzY3JldA==")
            && !request.body.contains("fwt_")
    });
    assert!(secret, "the authorization server is asked by who we are there, and never of our own tokens");
    for (token, status, word) in [
        ("ann-owner", 403, "owner"),
        ("ann-elsewhere", 401, "audience"),
        ("ann-old", 401, "expired"),
        ("ann-bound", 401, "bound to a key"),
        ("ann-identity", 401, "not an access token"),
        ("stranger", 401, "not active"),
    ] {
        refused(&get_as(&server, token, "/v1/schema"), status, word);
    }
    // Tokens are refused while introspection fails.
    refused(&get_as(&server, "no-answer", "/v1/schema"), 503, "authorization_unavailable");
    let log = server.log();
    assert!(!log.contains("ann-") && !log.contains("s3cret") && !log.contains("fwt_"), "{log}");
}

#[test]
fn listening_for_other_machines_needs_authentication() {
    let place = Place::new();
    let open = place.configure(&format!("listen = \"0.0.0.0:0\"\n{STORES}"));
    let refused = fetchwell(["serve", "--config", text(&open)]);
    assert!(!refused.status.success() && stderr(&refused).contains("add [auth]"), "{refused:?}");
    let flag = fetchwell(["serve", "--listen", "0.0.0.0:0", "--store", text(&place.path("ann.db"))]);
    assert!(!flag.status.success() && stderr(&flag).contains("add [auth]"), "{flag:?}");
    let file = place.configure(&format!("listen = \"127.0.0.1:0\"\n{}{STORES}", token("ann", ANN)));
    let server = HttpServer::start_at("0.0.0.0:0", ["--config", text(&file)]);
    let port = server.address.rsplit(':').next().unwrap();
    let answer = ask(&format!("127.0.0.1:{port}"), "GET", "/v1/schema", &[&bearer(ANN)]);
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[test]
fn an_auth_table_that_accepts_no_caller_is_refused() {
    let place = Place::new();
    fs::write(place.path("secret"), "s").unwrap();
    let introspection = "[auth.introspection]\nurl = \"https://as.example/i\"\nclient_id = \"f\"\nclient_secret = \"file:secret\"\n";
    for (text_of_file, problem) in [
        ("[auth]\n".to_owned(), "accepts no caller"),
        ("[auth]\njwks_url = \"https://as.example/jwks\"\n".to_owned(), "set issuer"),
        ("[auth]\nissuer = \"http://as.example\"\n".to_owned(), "use https"),
        ("[auth]\nissuer = \"https://as.example\"\nalgorithms = [\"HS256\"]\n".to_owned(), "none of RS256"),
        ("[auth]\nissuer = \"https://as.example\"\n".to_owned(), "set public_url, or audience"),
        (introspection.replace("file:secret", "s3cret"), "must be \"env:NAME\" or \"file:PATH\""),
        (introspection.replace("file:secret", "file:nowhere") + HEAD, "cannot be read"),
        (token("ann", ANN) + &token("ann", BOB), "duplicate token name `ann`"),
        (token("ann", ANN) + &token("bob", ANN), "has the sha256 of another token"),
        (format!("[auth]\nscopes = [\"a b\"]\n{}", token("ann", ANN)), "`a b` is not a scope"),
        (format!("[auth]\naudience = [\"/\"]\n{}", token("ann", ANN)), "an audience is empty"),
        (token("ann", ANN).replace("[\"ann\"]", "[\"carol\"]"), "unknown source `carol`"),
        ("[[auth.token]]\nname = \"a\"\nsha256 = \"fwt_x\"\n".to_owned(), "64 hex digits"),
        (
            format!("{}[[auth.subject]]\nsubject = \"ann\"\nsources = [\"ann\"]\n", token("ann", ANN)),
            "subjects need an authorization server",
        ),
    ] {
        // Top-level keys come before tables.
        let text_of_file = match text_of_file.strip_suffix(HEAD) {
            Some(tables) => format!("{HEAD}{tables}"),
            None => text_of_file,
        };
        let file = place.configure(&format!("{text_of_file}{STORES}"));
        let output = fetchwell(["serve", "--config", text(&file)]);
        let said = stderr(&output);
        assert!(!output.status.success() && said.contains(problem), "{text_of_file}: {said}");
        assert!(!said.contains("s3cret") && !said.contains("fwt_x"), "{said}");
    }
}

#[test]
fn a_streamed_answer_keeps_its_permit_until_its_end() {
    let (place, asked) = (Place::new(), authorization_server());
    fs::write(place.path("secret"), "s3cret\n").unwrap();
    let (go, started) = (Arc::new(AtomicBool::new(false)), Instant::now());
    let is_held = Arc::clone(&go);
    let records = FakeServer::start(move |_: &Request| {
        while !is_held.load(Ordering::SeqCst) && started.elapsed() < Duration::from_secs(60) {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        Reply::Json(200, json!({"results": [], "has_more": false}).to_string())
    });
    // The deadline of the source is longer than the wait for a free slot.
    let caller = format!(
        "[[source]]\nname = \"mail\"\nurl = \"{}\"\ncredential = \"caller\"\ndeadline = \"18s\"\n",
        records.url
    );
    let one = format!("[http]\ncalls_per_caller = 1\n{caller}");
    let server = start(&place.configure(&with_authorization_server(&asked, &one)));
    let search = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "search", "arguments": {"query": "x"}}})
    .to_string();
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\nconnection: close\r\naccept: text/event-stream\r\ncontent-type: application/json\r\n\
         {}\r\ncontent-length: {}\r\n\r\n{search}",
        server.address,
        bearer("ann-1"),
        search.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    records.wait_for_request();
    // Another token of the same person.
    let second = post(&server.address, "/mcp", &[&bearer("ann-2")], &search);
    refused(&second, 429, "too many calls");
    assert_eq!(second.header("retry-after"), Some("1"));
    go.store(true, Ordering::SeqCst);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"isError\":false"), "{answer}");
    assert_eq!(post(&server.address, "/mcp", &[&bearer("ann-2")], &search).status, 200);
}
