//! The remote source against recorded replies of the reference server, and against servers that misbehave, through the
//! built binary.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{
    CREDENTIAL, FakeServer, Model, Reply, Request, StdioServer, connect, fetchwell, fixture, memory_kib,
    recorded, stderr, stdout, text,
};

/// A model over a source with these replies.
struct Remote {
    model: Model,
    source: FakeServer,
    cache: tempfile::TempDir,
}

impl Remote {
    async fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let source = FakeServer::start(answer);
        let cache = tempfile::tempdir().unwrap();
        connect(cache.path(), &source.url, CREDENTIAL);
        let model =
            Model::over_stdio(["--provider-url", &source.url, "--cache-root", text(cache.path())]).await;
        Self { model, source, cache }
    }

    fn asked(&self) -> Vec<String> {
        self.source.requests().into_iter().map(|request| request.line).collect()
    }
}

/// Gives the recorded replies of the reference server, by request.
fn reference(request: &Request) -> Reply {
    let folder = format!("{}/fixtures/record-server", env!("CARGO_MANIFEST_DIR"));
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let reply: Value = serde_json::from_str(&fixture(&format!("record-server/{name}"))).unwrap();
        if same_request(reply["request"].as_str().unwrap(), &request.line) && !name.starts_with("err-") {
            return recorded(name.trim_end_matches(".json"));
        }
    }
    Reply::Json(404, r#"{"message":"Route not found","error":"Not Found","statusCode":404}"#.to_owned())
}

/// Compares the path and the parameters of two requests, in any order and encoding.
fn same_request(recorded: &str, asked: &str) -> bool {
    let parse = |line: &str| {
        let url = url::Url::parse(&format!("http://x{}", line.trim_start_matches("GET "))).unwrap();
        let mut params: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        params.sort();
        (url.path().to_owned(), params)
    };
    parse(recorded) == parse(asked)
}

#[tokio::test]
async fn the_reference_server_is_searched_and_read() {
    let remote = Remote::start(|request| {
        if request.line.contains("/v1/search") { recorded("search-lexical") } else { reference(request) }
    })
    .await;
    let found = remote.model.call("search", json!({"query": "invoice"})).await;
    let ids: Vec<&str> =
        found["results"].as_array().unwrap().iter().map(|hit| hit["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["cin_work/messages:shared-1", "cin_home/messages:shared-1", "cin_work/messages:m1"]);
    // The server sends no title: the whole snippet of a subject is used, without `<mark>`.
    assert_eq!(found["results"][0]["title"], "Work invoice 0 😀");
    // Its record URLs need a token, so they are no citations.
    assert!(found["results"].as_array().unwrap().iter().all(|hit| hit.get("url").is_none()));
    assert!(found["next_cursor"].as_str().unwrap().starts_with("fw1_"));
    let fetched = remote.model.call("fetch", json!({"id": "cin_work/messages:m2"})).await;
    assert_eq!(fetched["title"], "Work invoice 2 😀");
    assert_eq!(fetched["metadata"]["connector_key"], "acme-mail");
    assert_eq!(fetched["metadata"]["authored_at"], "2026-04-03T02:00:00.000Z");
    assert!(
        fetched["metadata"]["record_url"]
            .as_str()
            .unwrap()
            .ends_with("/v1/streams/messages/records/m2?connection_id=cin_work")
    );
    for (id, part_of_text) in [
        ("cin_work/daily_stats/%5B%22user_123%22%2C%222026-04-01%22%5D", "compound stat day 1"),
        ("cin_work/labels/Projects%2F2026%2FQ2", "Projects/2026/Q2"),
        ("cin_work/labels/my%20label", "my label"),
    ] {
        let fetched = remote.model.call("fetch", json!({"id": id})).await;
        assert_eq!(fetched["id"], id);
        assert!(fetched["text"].as_str().unwrap().contains(part_of_text), "{fetched}");
    }
    assert!(
        remote
            .source
            .requests()
            .iter()
            .all(|request| request.authorization.as_deref() == Some("Bearer tok_5ecret"))
    );
}

#[tokio::test]
async fn every_tool_asks_to_authorize_again_after_a_grant_has_ended() {
    for code in ["grant_revoked", "grant_expired", "grant_invalid", "grant_consumed", "insufficient_scope"] {
        let message = "Token introspection failed closed";
        let body = json!({"error": {"type": "permission_error", "code": code, "message": message}});
        let remote = Remote::start(move |_| Reply::Json(403, body.to_string())).await;
        for (tool, arguments) in [
            ("search", json!({"query": "x"})),
            ("fetch", json!({"id": "cin_work/messages:m1"})),
            ("query_records", json!({"stream": "messages", "connection_id": "cin_work"})),
            ("schema", json!({})),
        ] {
            let refused = remote.model.refusal(tool, arguments).await;
            assert_eq!(refused["code"], "reauthorize", "{code}, {tool}: {refused}");
            let shown = refused.to_string();
            assert!(shown.contains("pdpp connect") && !shown.contains("introspection"), "{shown}");
        }
    }
}

#[tokio::test]
async fn errors_of_the_server_pass_through_with_a_hint() {
    let remote = Remote::start(reference).await;
    let refused = remote.model.refusal("fetch", json!({"id": "messages:shared-1"})).await;
    assert_eq!(refused["code"], "ambiguous_connection");
    assert_eq!(
        refused["available_connections"],
        json!([
            {"connection_id": "cin_work", "id": "cin_work/messages:shared-1", "display_name": "Work mail"},
            {"connection_id": "cin_home", "id": "cin_home/messages:shared-1", "display_name": "Home mail"},
        ])
    );
    // The server also answers 401 for a connection outside the grant; connecting again would not help.
    let refused = remote.model.refusal("fetch", json!({"id": "nope/messages:m2"})).await;
    assert_eq!(refused["code"], "connection_not_found");
    assert_eq!(refused["available_connections"][1]["connection_id"], "cin_home");
    let refused = remote.model.refusal("fetch", json!({"id": "cin_work/messages:zzz"})).await;
    assert_eq!(
        (&refused["code"], &refused["message"]),
        (&json!("not_found"), &json!("source `provider`: Record not found"))
    );
    let refused = remote.model.refusal("fetch", json!({"id": "cin_work/unknown:route"})).await;
    assert_eq!(refused["code"], "http_404");
}

#[tokio::test]
async fn pages_of_the_server_are_walked_to_the_end() {
    let remote = Remote::start(|request| {
        if request.line.contains("cursor=") {
            recorded("search-lexical-page2")
        } else {
            recorded("search-lexical")
        }
    })
    .await;
    let first = remote.model.call("search", json!({"query": "invoice", "limit": 3})).await;
    let arguments = json!({"query": "invoice", "limit": 3, "cursor": first["next_cursor"]});
    let second = remote.model.call("search", arguments.clone()).await;
    assert_ne!(first["results"], second["results"]);
    assert!(
        remote
            .asked()
            .last()
            .unwrap()
            .contains("cursor=eyJvZmYiOjMsInNuYXAiOiJzbmFwX2MyMDIyZmM4NWE4NWU4MTYifQ")
    );
    // The same cursor gives the same page, so that clients can retry.
    assert_eq!(remote.model.call("search", arguments).await["results"], second["results"]);
    for (arguments, reason) in [
        (json!({"query": "other", "cursor": first["next_cursor"]}), "mismatched"),
        (
            json!({"query": "invoice", "connection_id": "cin_work", "cursor": first["next_cursor"]}),
            "mismatched",
        ),
        (json!({"query": "invoice", "cursor": "nonsense"}), "malformed"),
        (json!({"query": "invoice", "cursor": format!("fw1_{}", "A".repeat(86))}), "malformed"),
    ] {
        let refused = remote.model.refusal("search", arguments).await;
        assert_eq!((&refused["code"], &refused["reason"]), (&json!("invalid_cursor"), &json!(reason)));
        assert!(refused["hint"].as_str().unwrap().contains("without `cursor`"));
    }
}

#[tokio::test]
async fn hits_trimmed_from_a_page_come_on_the_next() {
    // Every upstream page has 200 large hits and no cursor, whatever the request.
    let remote = Remote::start(|_| Reply::Json(200, fetchwell_lab::recorded::fat_search_reply())).await;
    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let mut arguments = json!({"query": "x", "mode": "lexical"});
        if let Some(cursor) = cursor {
            arguments["cursor"] = cursor;
        }
        let page = remote.model.call("search", arguments).await;
        assert!(page.to_string().len() <= 1_800);
        assert!(page.get("omitted").is_none());
        seen.extend(
            page["results"].as_array().unwrap().iter().map(|hit| hit["id"].as_str().unwrap().to_owned()),
        );
        cursor = page.get("next_cursor").cloned();
        if cursor.is_none() {
            break;
        }
    }
    let expect: Vec<String> = (0..200).map(|number| format!("conn_1/mail:m{number}")).collect();
    assert_eq!(seen, expect);
    assert_eq!(remote.asked().len(), 1);
}

#[tokio::test]
async fn every_shape_of_a_hit_list_is_read() {
    let hit = json!({"recordKey": "m1", "streamName": "mail", "connectionId": "c1", "displayName": "Mail", "title": "T"});
    for body in [
        json!({"data": [hit]}),
        json!({"results": [hit], "nextCursor": ""}),
        json!({"hits": [hit], "hasMore": false, "next_cursor": "ignored"}),
        json!({"data": {"results": [hit]}}),
        json!({"data": {"data": [hit, 7, null, "x"]}}),
    ] {
        let text = body.to_string();
        let remote = Remote::start(move |_| Reply::Json(200, text.clone())).await;
        let found = remote.model.call("search", json!({"query": "x"})).await;
        assert_eq!(found["results"][0]["id"], "c1/mail:m1", "{body}");
        assert!(found.get("next_cursor").is_none(), "{found}");
        // Items that are not hits cannot be fetched, so they are counted and not shown.
        let strange = body.pointer("/data/data").map_or(0, |items| items.as_array().unwrap().len() - 1);
        assert_eq!(found.get("omitted").and_then(Value::as_u64).unwrap_or(0), strange as u64);
    }
}

#[tokio::test]
async fn hits_without_a_record_keep_their_own_id_or_are_counted() {
    let body = json!({"results": [
        {"id": "doc 17", "title": "Opaque", "snippet": "what it says"},
        {"url": "https://example.com/page", "title": "A page", "snippet": "on the web"},
        {"id": "messages:m1", "connection_id": "c1", "title": "A handle"},
        {"title": "Nothing to fetch by"},
        {"stream": "files", "record_key": "../../etc/passwd", "connection_id": "c1"},
        {"stream": "files", "record_key": "..", "connection_id": "c1"},
        {"stream": "files", "record_key": "a/b", "title": "No connection and no plain form"},
        {"stream": "files", "record_key": "a/b", "connection_id": "c1", "title": "Path"},
    ]});
    let remote = Remote::start(move |request| {
        let key = if request.line.contains("passwd") { "../../etc/passwd" } else { "x" };
        let record = json!({"object": "record", "id": key, "data": {"body": "full text"}}).to_string();
        Reply::Json(200, if request.line.contains("/v1/search") { body.to_string() } else { record })
    })
    .await;
    let found = remote.model.call("search", json!({"query": "x"})).await;
    let ids: Vec<&str> =
        found["results"].as_array().unwrap().iter().map(|hit| hit["id"].as_str().unwrap()).collect();
    assert_eq!(
        ids,
        [
            "doc 17",
            "https://example.com/page",
            "c1/messages:m1",
            "c1/files/%2E%2E%2F%2E%2E%2Fetc%2Fpasswd",
            "c1/files/a%2Fb"
        ]
    );
    assert_eq!(found["omitted"], 3);
    // Every printed id can be fetched.
    for id in ids {
        assert_eq!(remote.model.call("fetch", json!({"id": id})).await["id"], id);
    }
}

#[tokio::test]
async fn unknown_types_of_fields_are_explained() {
    let remote = Remote::start(reference).await;
    let detail = remote.model.call("schema", json!({"stream": "messages"})).await;
    assert_eq!(detail["variants"][0]["fields"]["amount"], "?");
    assert!(
        detail["legend"].as_str().unwrap().starts_with("? = the source does not tell the type; "),
        "{detail}"
    );
}

#[tokio::test]
async fn hits_without_titles_are_distinguished_and_counted() {
    for (accuracy, shown) in [("exact", Value::Null), ("lower_bound", json!("lower_bound"))] {
        let hit = |key: &str, text: &str| {
            json!({"stream": "messages", "record_key": key, "connection_id": "cin_work", "display_name": "Work office",
                "emitted_at": "2026-04-01T00:00:00Z", "snippet": {"field": "body", "text": text}})
        };
        let body = json!({"data": [
            hit("m1", "...please pay the <mark>invoice</mark> number 7 of our office within the next thirty days, thank you"),
            hit("m2", "The <mark>invoice</mark> is wrong"),
            hit("m3", ""),
        ], "has_more": true, "next_cursor": "c", "meta": {"count": 200, "count_accuracy": accuracy}});
        let remote = Remote::start(move |_| Reply::Json(200, body.to_string())).await;
        let found = remote.model.call("search", json!({"query": "invoice", "limit": 2})).await;
        let titles: Vec<&str> =
            found["results"].as_array().unwrap().iter().map(|hit| hit["title"].as_str().unwrap()).collect();
        assert_eq!(
            titles,
            ["please pay the invoice number 7 of our office within the next…", "The invoice is wrong"]
        );
        assert_eq!((&found["count"], &found["count_accuracy"]), (&json!(200), &shown));
        // The count is also on a page of hits that were read before.
        let next = remote.model.call("search", json!({"cursor": found["next_cursor"]})).await;
        assert_eq!(next["results"][0]["title"], "Work office / messages / 2026-04-01");
        assert_eq!((&next["count"], &next["count_accuracy"]), (&json!(200), &shown));
    }
}

#[tokio::test]
async fn a_key_with_a_percent_sign_is_read_from_servers_that_decode_twice() {
    let remote = Remote::start(|request| match request.line.as_str() {
        "GET /v1/streams/s/records/100%2525?connection_id=c" => {
            Reply::Json(200, json!({"id": "100%", "stream": "s", "data": {"t": "found"}}).to_string())
        }
        _ => Reply::Json(
            404,
            json!({"error": {"code": "not_found", "message": "Record not found"}}).to_string(),
        ),
    })
    .await;
    let fetched = remote.model.call("fetch", json!({"id": "c/s:100%"})).await;
    assert_eq!(fetched["text"], "found");
    // Without a percent sign there is no second spelling to try.
    let before = remote.asked().len();
    remote.model.refusal("fetch", json!({"id": "c/s:100"})).await;
    assert_eq!(remote.asked().len(), before + 1);
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "it is a table, one row per answer")]
async fn invalid_answers_are_typed_errors() {
    for (reply, code, part) in [
        (
            Reply::Full(200, vec![("content-type", "text/html".to_owned())], "<html>".to_owned()),
            "source_protocol",
            "text/html",
        ),
        (
            Reply::Full(503, vec![("content-type", "text/html".to_owned())], "<html>".to_owned()),
            "source_unavailable",
            "503",
        ),
        (Reply::Json(200, "{\"data\":[{".to_owned()), "source_protocol", "ends after 10 bytes"),
        (Reply::Json(200, "[1,2]".to_owned()), "source_protocol", "list of hits"),
        (Reply::Json(200, "7".to_owned()), "source_protocol", "list of hits"),
        (Reply::Json(200, "{}".to_owned()), "source_protocol", "list of hits"),
        (Reply::Json(200, "{\"data\":\"\u{0}\"}".to_owned()), "source_protocol", "broken JSON"),
        (Reply::Truncated("{\"data\":[".to_owned()), "source_unavailable", "broke"),
        (Reply::Reset, "source_unavailable", "broke"),
        (Reply::Endless(200 * 1024 * 1024), "source_protocol", "16777216"),
        (
            Reply::Full(302, vec![("location", "https://elsewhere.example/v1".to_owned())], String::new()),
            "source_protocol",
            "https://elsewhere.example",
        ),
        (
            Reply::Full(429, vec![("retry-after", "120".to_owned())], String::new()),
            "source_rate_limited",
            "pause",
        ),
        (
            Reply::Full(429, vec![("retry-after", u64::MAX.to_string())], String::new()),
            "source_rate_limited",
            "pause",
        ),
        (
            Reply::Full(503, vec![("retry-after", u64::MAX.to_string())], String::new()),
            "source_unavailable",
            "503",
        ),
        (recorded("err-bad-token"), "reauthorize", "no longer accepts"),
        (recorded("err-no-token"), "reauthorize", "no longer accepts"),
        (
            Reply::Json(401, json!({"error": "invalid_token", "error_description": "x"}).to_string()),
            "reauthorize",
            "no longer accepts",
        ),
        (recorded("search-unknown-param"), "invalid_request", "Unsupported query parameter"),
        (recorded("search-stream-not-granted"), "grant_stream_not_allowed", "not in grant"),
        (
            Reply::Json(500, json!({"error": {"code": "<script>", "message": 7}}).to_string()),
            "http_500",
            "HTTP 500",
        ),
        (
            Reply::Json(500, json!({"error": {"code": "internal", "message": "It broke"}}).to_string()),
            "internal",
            "It broke",
        ),
    ] {
        let shown = format!("{reply:?}").chars().take(200).collect::<String>();
        let remote = Remote::start(move |_| reply.clone()).await;
        let refused = remote.model.refusal("search", json!({"query": "x"})).await;
        assert_eq!(refused["code"], code, "{shown}: {refused}");
        assert!(refused["message"].as_str().unwrap().contains(part), "{shown}: {refused}");
        assert!(!refused["hint"].as_str().unwrap().is_empty());
        assert_eq!(refused["source"], "provider");
        if code == "http_500" || code == "internal" {
            assert!(refused["hint"].as_str().unwrap().starts_with("Call again in a moment"), "{refused}");
        }
        assert!(!refused.to_string().contains("tok_5ecret"));
        if code == "reauthorize" {
            assert!(
                refused["hint"].as_str().unwrap().contains(&format!("pdpp connect {}", remote.source.url)),
                "{refused}"
            );
        }
        if code == "source_rate_limited" {
            assert!([json!(120), json!(86_400)].contains(&refused["retry_after"]), "{refused}");
        }
        // The server continues to answer.
        assert_eq!(remote.model.refusal("fetch", json!({"id": "nonsense"})).await["code"], "invalid_handle");
    }
}

#[tokio::test]
async fn a_server_that_hangs_ends_at_the_deadline() {
    for hang in [Reply::Hang, Reply::HangInBody] {
        let folder = tempfile::tempdir().unwrap();
        let source = FakeServer::start(move |_| hang.clone());
        connect(folder.path(), &source.url, CREDENTIAL);
        let config = folder.path().join("fetchwell.toml");
        let toml = format!(
            "[[source]]\nname = \"slow\"\nurl = \"{}\"\ncache_root = \".\"\ndeadline = \"1s\"\n",
            source.url
        );
        std::fs::write(&config, toml).unwrap();
        let model = Model::over_stdio(["--config", text(&config)]).await;
        let started = Instant::now();
        let refused = model.refusal("search", json!({"query": "x"})).await;
        assert_eq!((&refused["code"], &refused["source"]), (&json!("source_timeout"), &json!("slow")));
        // Ten times the deadline distinguishes a deadline from none on any machine.
        assert!(started.elapsed() < Duration::from_secs(10));
        source.wait_until_abandoned();
    }
}

#[tokio::test]
async fn a_temporary_failure_is_retried_once() {
    for (first, headers) in
        [(502, vec![]), (503, vec![]), (504, vec![]), (429, vec![("retry-after", "0".to_owned())])]
    {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let remote = Remote::start(move |_| match counted.fetch_add(1, Ordering::SeqCst) {
            0 => Reply::Full(first, headers.clone(), String::new()),
            _ => recorded("search-zero"),
        })
        .await;
        assert_eq!(
            remote.model.call("search", json!({"query": "qqqqzzzz", "mode": "lexical"})).await["results"],
            json!([])
        );
        assert_eq!(count.load(Ordering::SeqCst), 2, "HTTP {first}");
    }
    // There is one retry, and none for lasting errors.
    for (status, times) in [(503, 2), (400, 1), (404, 1), (500, 1), (401, 1)] {
        let remote = Remote::start(move |_| Reply::Json(status, "{}".to_owned())).await;
        remote.model.refusal("search", json!({"query": "x"})).await;
        assert_eq!(remote.asked().len(), times, "HTTP {status}");
    }
}

#[tokio::test]
async fn redirects_stay_within_the_origin() {
    let remote = Remote::start(|request| {
        if request.line.starts_with("GET /moved") {
            recorded("search-zero")
        } else {
            Reply::Full(307, vec![("location", "/moved".to_owned())], String::new())
        }
    })
    .await;
    assert_eq!(remote.model.call("search", json!({"query": "x"})).await["results"], json!([]));
    let elsewhere = FakeServer::start(|_| recorded("search-zero"));
    let target = elsewhere.url.clone();
    let remote =
        Remote::start(move |_| Reply::Full(307, vec![("location", target.clone())], String::new())).await;
    let refused = remote.model.refusal("search", json!({"query": "x"})).await;
    assert_eq!(refused["code"], "source_protocol");
    assert!(elsewhere.requests().is_empty());
    let remote = Remote::start(|request| {
        let again = request.line.trim_start_matches("GET ").to_owned();
        Reply::Full(307, vec![("location", again)], String::new())
    })
    .await;
    let refused = remote.model.refusal("search", json!({"query": "x"})).await;
    assert_eq!(refused["message"], "source `provider`: the server redirects again and again");
}

#[tokio::test]
async fn a_token_that_expires_mid_call_is_replaced_by_the_one_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let place = Arc::new(Mutex::new(None::<(std::path::PathBuf, String)>));
    let known = Arc::clone(&place);
    let source = FakeServer::start(move |request| match request.authorization.as_deref() {
        Some("Bearer tok_new") => recorded("search-zero"),
        _ => {
            // `pdpp connect` writes a new credential during the call.
            if let Some((folder, url)) = &*known.lock().unwrap() {
                connect(folder, url, r#"{"access_token":"tok_new"}"#);
            }
            recorded("err-bad-token")
        }
    });
    connect(folder.path(), &source.url, CREDENTIAL);
    let model = Model::over_stdio(["--provider-url", &source.url, "--cache-root", text(folder.path())]).await;
    // Without a newer token there is one request, and the error names the command to run.
    assert_eq!(
        model.refusal("search", json!({"query": "x", "mode": "lexical"})).await["code"],
        "reauthorize"
    );
    assert_eq!(source.requests().len(), 1);
    *place.lock().unwrap() = Some((folder.path().to_owned(), source.url.clone()));
    assert_eq!(model.call("search", json!({"query": "x", "mode": "lexical"})).await["results"], json!([]));
    assert_eq!(source.requests().len(), 3);
}

#[cfg(target_os = "linux")]
#[test]
fn a_huge_answer_takes_little_memory_and_delays_no_call() {
    let search = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"x"}}}"#;
    let hit = json!({"stream": "s", "id": "r", "connection_id": "c", "title": "T"}).to_string();
    let many = format!("{{\"data\":[{hit}{}]}}", ",0".repeat(16 * 512 * 1024 - 100));
    for (reply, expect) in [
        (Reply::Endless(200 * 1024 * 1024), json!("source_protocol")),
        (Reply::Json(200, many), json!("window")),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let source = FakeServer::start(move |_| reply.clone());
        connect(folder.path(), &source.url, CREDENTIAL);
        let place = ["--provider-url", &source.url, "--cache-root", text(folder.path())];
        let mut server = StdioServer::start(place);
        server.initialize("2025-06-18");
        server.send(search);
        let answer = &server.receive()["result"]["structuredContent"];
        let said = answer.pointer("/error/code").or_else(|| answer.get("recall"));
        assert_eq!(said, Some(&expect), "{answer}");
        let peak = memory_kib(server.process.id(), "VmHWM") / 1024;
        assert!(peak <= 40, "{peak} MB");
    }
}

#[tokio::test]
async fn an_expired_credential_names_the_command_and_a_new_one_is_used() {
    let remote = Remote::start(|_| recorded("search-zero")).await;
    remote.model.call("search", json!({"query": "x"})).await;
    let expired = r#"{"access_token":"tok_old","expires_at":"2020-01-01T00:00:00Z"}"#;
    connect(remote.cache.path(), &remote.source.url, expired);
    let refused = remote.model.refusal("search", json!({"query": "x"})).await;
    assert_eq!(refused["code"], "reauthorize");
    assert!(refused["hint"].as_str().unwrap().contains("pdpp connect"));
    connect(remote.cache.path(), &remote.source.url, r#"{"access_token":"tok_new"}"#);
    remote.model.call("search", json!({"query": "x"})).await;
    assert_eq!(remote.source.requests().last().unwrap().authorization.as_deref(), Some("Bearer tok_new"));
}

#[test]
fn an_unreachable_server_is_an_error_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    // A port that was free a moment ago.
    let url = FakeServer::start(|_| Reply::Reset).url.clone();
    connect(folder.path(), &url, CREDENTIAL);
    let output = fetchwell(["search", "x", "--provider-url", &url, "--cache-root", text(folder.path())]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("cannot be reached") && said.contains("fetchwell doctor"), "{said}");
    let output = fetchwell(["doctor", "--provider-url", &url, "--cache-root", text(folder.path())]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("cannot be reached"), "{output:?}");
}

#[test]
fn connections_and_doctor_read_a_remote_schema() {
    let folder = tempfile::tempdir().unwrap();
    let source = FakeServer::start(|request| match request.line.as_str() {
        "GET /v1/schema?view=compact" => recorded("schema-compact-global"),
        "GET /v1/streams" => recorded("streams"),
        _ => recorded("search-zero"),
    });
    connect(folder.path(), &source.url, CREDENTIAL);
    let place = ["--provider-url", &source.url, "--cache-root", text(folder.path())];
    let output = fetchwell(["connections", "--json", place[0], place[1], place[2], place[3]]);
    let connections: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(connections[1]["connection_id"], "cin_home");
    assert_eq!(connections[1]["display_name"], "Home mail");
    assert_eq!(connections[1]["streams"][0], json!({"name": "messages", "record_count": 40}));
    let output = fetchwell(["doctor", place[0], place[1], place[2], place[3]]);
    assert!(stdout(&output).contains("2 connections, 8 streams, 116 records"), "{output:?}");
}
