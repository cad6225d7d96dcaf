//! Streams that are hidden by a `streams` allow-list: a source with hidden connections and streams answers every call
//! byte for byte as a source without them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use url::Url;

use crate::support::{
    CREDENTIAL, FakeServer, HttpServer, Model, Reply, Request, connect, encoded, fetchwell, get,
    import_records, text,
};

/// Words that occur only in the hidden part of a source.
const HIDDEN: [&str; 6] = ["secrets", "locks", "cin_vault", "Vault of Ann", "acme-vault", "unlocks"];

const CONNECTIONS: [Option<&str>; 5] =
    [None, Some("cin_work"), Some("cin_home"), Some("cin_vault"), Some("cin_none")];

const STREAMS: [&str; 5] = ["messages", "files", "secrets", "locks", "nothing"];

/// A record server. With `has_hidden` it has hidden connections and streams, and names them in its errors.
struct World {
    has_hidden: bool,
    errors: AtomicUsize,
}

impl World {
    fn server(has_hidden: bool) -> FakeServer {
        let world = Self { has_hidden, errors: AtomicUsize::new(0) };
        FakeServer::start(move |request| world.answer(request))
    }

    fn connections_of(&self, stream: &str) -> Vec<&'static str> {
        match stream {
            "messages" => vec!["cin_work", "cin_home"],
            "files" => vec!["cin_work"],
            "secrets" if self.has_hidden => vec!["cin_work", "cin_vault"],
            "locks" if self.has_hidden => vec!["cin_vault"],
            _ => Vec::new(),
        }
    }

    fn streams(&self) -> Vec<&'static str> {
        STREAMS.into_iter().filter(|stream| !self.connections_of(stream).is_empty()).collect()
    }

    fn choices(&self) -> Value {
        let known = ["cin_work", "cin_home", "cin_vault"].into_iter();
        let known = known.filter(|id| self.has_hidden || *id != "cin_vault");
        known.map(|id| json!({"connection_id": id, "display_name": label(id)})).collect()
    }

    fn refusal(&self, status: u16, code: &str, param: Option<&str>) -> Reply {
        let number = self.errors.fetch_add(1, Ordering::SeqCst) + if self.has_hidden { 5_000 } else { 0 };
        let streams = self.streams().join(", ");
        let error = json!({
            "type": "api_error", "code": code, "param": param, "request_id": format!("req_{number}"),
            "message": format!("Refused: the grant has the streams {streams} in {}", self.choices()),
            "hint": format!("Ask for one of {streams}."), "next_step": streams,
            "available_connections": self.choices(), "retry_with": "connection_id",
        });
        Reply::Json(status, json!({ "error": error }).to_string())
    }

    fn schema(&self, stream: Option<&str>, connection: Option<&str>, is_full: bool) -> Value {
        let described = |name: &str| {
            let connections = self.connections_of(name).into_iter();
            let connections = connections.filter(|id| connection.is_none_or(|asked| asked == *id));
            let granted: Vec<Value> =
                connections.map(|id| json!({"connection_id": id, "display_name": label(id)})).collect();
            let mut described = json!({
                "name": name, "primary_key": ["id"], "cursor_field": "at", "granted_connections": granted,
                "field_capabilities": {"id": "t=string", "at": "t=date-time,role=cursor", "subject": "t=string,lex"},
            });
            if is_full && name == "messages" {
                let (mut relations, mut expand) = (
                    vec![json!({"name": "attachments", "stream": "files", "foreign_key": "m"})],
                    vec![json!({"name": "attachments", "max_limit": 5})],
                );
                if self.has_hidden {
                    relations.push(json!({"name": "keys", "stream": "secrets", "foreign_key": "m"}));
                    expand.extend([
                        json!({"name": "unlocks"}),
                        json!({"name": "more", "target_stream": "locks"}),
                    ]);
                }
                described["object"] = json!("stream_metadata");
                described["relationships"] = relations.into();
                described["query"] = json!({ "expand": expand });
                described["instance_ids"] = self.choices();
            }
            described
        };
        let of = |key: &str, names: &[&str]| {
            let streams: Vec<Value> = names
                .iter()
                .filter(|name| stream.is_none_or(|asked| asked == **name))
                .map(|name| described(name))
                .filter(|described| described["granted_connections"] != json!([]))
                .collect();
            json!({"object": "connector", "connector_key": key, "stream_count": streams.len(), "streams": streams})
        };
        let mut connectors = vec![of("acme-mail", &["messages", "files"])];
        if self.has_hidden {
            connectors.push(of("acme-vault", &["secrets", "locks"]));
        }
        connectors.retain(|connector| connector["streams"] != json!([]));
        json!({"object": "schema", "connector_count": connectors.len(), "connectors": connectors})
    }

    #[expect(clippy::too_many_lines, reason = "an arm for each route of the server")]
    fn answer(&self, request: &Request) -> Reply {
        let target = request.line.trim_start_matches("GET ");
        let url = Url::parse(&format!("http://x{target}")).unwrap();
        let sent: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let param = |name: &str| sent.iter().find(|(sent, _)| sent == name).map(|(_, value)| value.as_str());
        let connection = param("connection_id");
        let path: Vec<&str> = url.path_segments().unwrap().collect();
        let is_unknown = |stream: &str| {
            let known = self.connections_of(stream);
            known.is_empty() || connection.is_some_and(|asked| !known.contains(&asked))
        };
        let unsupported = ["filter", "expand", "view"].into_iter().find(|name| {
            sent.iter().any(|(sent, _)| sent.split('[').next() == Some(*name) && !target.contains("/schema"))
        });
        if let Some(name) = unsupported {
            return self.refusal(400, "invalid_request", Some(name));
        }
        match path.as_slice() {
            ["v1", "schema"] => {
                let body = self.schema(param("stream"), connection, param("detail").is_some());
                Reply::Json(200, body.to_string())
            }
            ["v1", "streams"] => {
                let row = |stream: &'static str| {
                    let of = move |id: &str| json!({"name": stream, "connection_id": id, "record_count": 2});
                    self.connections_of(stream).into_iter().map(of).collect::<Vec<_>>()
                };
                let rows: Vec<Value> = self.streams().into_iter().flat_map(row).collect();
                Reply::Json(200, json!({"object": "list", "data": rows, "has_more": false}).to_string())
            }
            ["v1", "search", ..] if param("q") == Some("revoked") => self.refusal(403, "grant_revoked", None),
            ["v1", "search", ..] if param("q") == Some("broken") => {
                self.refusal(500, if self.has_hidden { "secrets_down" } else { "index_down" }, None)
            }
            ["v1", "search", ..] => {
                let asked: Vec<&str> = sent
                    .iter()
                    .filter(|(name, _)| name == "streams")
                    .map(|(_, value)| value.as_str())
                    .collect();
                if asked.iter().any(|stream| self.connections_of(stream).is_empty()) {
                    return self.refusal(403, "grant_stream_not_allowed", None);
                }
                if connection.is_some_and(|id| !self.choices().to_string().contains(&format!("\"{id}\""))) {
                    return self.refusal(404, "connection_not_found", Some("connection_id"));
                }
                let searched = self.streams().into_iter().filter(|s| asked.is_empty() || asked.contains(s));
                let hit = |stream: &'static str| {
                    let ids = self.connections_of(stream).into_iter();
                    let ids = ids.filter(|id| connection.is_none_or(|asked| asked == *id));
                    ids.map(move |id| json!({"stream": stream, "record_key": "m1", "connection_id": id, "snippet": {"text": stream}}))
                        .collect::<Vec<_>>()
                };
                let hits: Vec<Value> = searched.flat_map(hit).collect();
                let meta = json!({"count": hits.len(), "count_accuracy": "exact"});
                let body =
                    json!({"data": hits, "has_more": true, "next_cursor": "eyJvZmYiOjJ9", "meta": meta});
                Reply::Json(200, body.to_string())
            }
            ["v1", "streams", stream, ..] if is_unknown(stream) => {
                let is_stream = self.connections_of(stream).is_empty();
                let code = if is_stream { "context.stream_not_allowed" } else { "context.instance_mismatch" };
                self.refusal(401, code, None)
            }
            ["v1", "streams", _, "aggregate"] => match param("metric") {
                Some("count") => Reply::Json(200, r#"{"value":2,"filtered_record_count":2}"#.to_owned()),
                _ => self.refusal(400, "invalid_request", Some("field")),
            },
            ["v1", "streams", stream, "records"] => {
                if param("fields").is_some_and(|field| field != "subject") {
                    return self.refusal(400, "unknown_field", Some("fields[secrets]"));
                }
                let id = connection.unwrap_or("cin_work");
                let row = json!({"id": "m1", "stream": stream, "data": {"subject": "Hello", "at": "2026-04-01"}, "connection_id": id});
                let version = if self.has_hidden { "eyJ2IjoiOTkifQ" } else { "eyJ2IjoiMTIifQ" };
                let mut body = json!({"data": [row], "has_more": false, "next_changes_since": version});
                if param("cursor").is_none() {
                    (body["has_more"], body["next_cursor"]) = (true.into(), "eyJwIjoxfQ".into());
                }
                Reply::Json(200, body.to_string())
            }
            ["v1", "streams", stream, "records", key, ..] => match (*key, connection) {
                ("shared", None) => self.refusal(409, "ambiguous_connection", None),
                ("nope", _) => self.refusal(404, "not_found", None),
                ("denied", _) => self.refusal(403, "grant_stream_not_allowed", None),
                ("revoked", _) => self.refusal(403, "grant_revoked", None),
                ("odd", _) => {
                    self.refusal(418, if self.has_hidden { "secrets" } else { "odd" }, Some("secrets"))
                }
                _ if path.last() == Some(&"field-window") => match param("field") {
                    Some("subject") => Reply::Json(
                        200,
                        json!({"window": {"text": "Hello", "start_chars": 0, "total_chars": 5}}).to_string(),
                    ),
                    _ => self.refusal(403, "field_not_granted", Some("field")),
                },
                _ => {
                    let id = connection.unwrap_or("cin_work");
                    let body = json!({"object": "record", "id": key, "stream": stream, "data": {"subject": "Hello"}, "connection_id": id});
                    Reply::Json(200, body.to_string())
                }
            },
            _ => self.refusal(404, "not_found", None),
        }
    }
}

fn label(id: &str) -> &'static str {
    match id {
        "cin_work" => "Work mail",
        "cin_home" => "Home mail",
        _ => "Vault of Ann",
    }
}

/// Returns calls of tools: every stream in every connection, and calls that a source may refuse.
fn calls() -> Vec<(&'static str, Value)> {
    let mut calls = vec![
        ("schema", json!({})),
        ("search", json!({"query": "revoked"})),
        ("search", json!({"query": "broken"})),
        ("search", json!({"query": "x", "streams": ["messages", "secrets"]})),
        ("search", json!({"query": "x", "streams": ["messages"], "filter": {"secrets": 1}})),
    ];
    for connection in CONNECTIONS {
        let with = |mut arguments: Value| {
            if let Some(connection) = connection {
                arguments["connection_id"] = connection.into();
            }
            arguments
        };
        calls.push(("schema", with(json!({}))));
        calls.push(("search", with(json!({"query": "hello"}))));
        for stream in STREAMS {
            calls.push(("schema", with(json!({"stream": stream}))));
            calls.push(("schema", with(json!({"stream": stream, "detail": "full"}))));
            calls.push(("search", with(json!({"query": "hello", "streams": [stream]}))));
            for beside in [
                json!({}),
                json!({"fields": ["secrets"]}),
                json!({"filter": {"secrets": "x"}}),
                json!({"sort": "secrets"}),
                json!({"expand": ["keys"]}),
                json!({"expand": ["attachments"]}),
                json!({"expand": ["unlocks"]}),
                json!({"changes_since": "beginning"}),
                json!({"changes_since": "eyJ2IjoiOTkifQ"}),
                json!({"count": "exact"}),
            ] {
                let mut arguments = json!({"stream": stream});
                arguments.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
                calls.push(("query_records", with(arguments)));
            }
            calls.push(("aggregate", with(json!({"stream": stream, "metric": "count"}))));
            calls.push(("aggregate", with(json!({"stream": stream, "metric": "sum", "field": "secrets"}))));
            let prefix = connection.map(|id| format!("{id}/")).unwrap_or_default();
            for key in ["m1", "shared", "nope", "denied", "revoked", "odd"] {
                calls.push(("fetch", json!({"id": format!("{prefix}{stream}:{key}")})));
            }
            calls.push(("fetch", json!({"id": format!("{prefix}{stream}:m1"), "expand": ["keys"]})));
            for field in ["subject", "secrets"] {
                let id = format!("{prefix}{stream}:m1");
                calls.push(("read_record_field", json!({"id": id, "field": field, "offset_chars": 0})));
            }
        }
    }
    calls
}

/// Returns requests of `/v1` for the same.
fn targets() -> Vec<String> {
    let mut targets = Vec::new();
    for connection in CONNECTIONS {
        let of = connection.map(|id| format!("connection_id={id}")).unwrap_or_default();
        targets.extend([
            format!("/v1/schema?{of}"),
            format!("/v1/schema?view=compact&{of}"),
            format!("/v1/streams?{of}"),
            format!("/v1/search?q=hello&{of}"),
            format!("/v1/search?q=revoked&{of}"),
        ]);
        for stream in STREAMS {
            let path = format!("/v1/streams/{stream}");
            targets.extend([
                format!("/v1/schema?stream={stream}&{of}"),
                format!("/v1/schema?detail=full&stream={stream}&{of}"),
                format!("/v1/search?q=hello&streams={stream}&{of}"),
                format!("{path}?{of}"),
                format!("{path}/aggregate?metric=count&{of}"),
                format!("{path}/aggregate?metric=sum&field=secrets&{of}"),
            ]);
            for beside in [
                "limit=1",
                "fields=secrets",
                "filter[secrets]=1",
                "expand=keys",
                "changes_since=beginning",
                "cursor=x",
            ] {
                targets.push(format!("{path}/records?{}&{of}", encoded_brackets(beside)));
            }
            for key in ["m1", "shared", "nope", "denied", "revoked", "odd"] {
                targets.push(format!("{path}/records/{}?{of}", encoded(key)));
            }
            targets.push(format!("{path}/records/m1/field-window?field=secrets&{of}"));
        }
    }
    targets
}

fn encoded_brackets(query: &str) -> String {
    query.replace('[', "%5B").replace(']', "%5D")
}

/// Removes random values: cursors, tokens and request ids.
fn without_random(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let is_random =
                    matches!(name.as_str(), "next_cursor" | "next_changes_since" | "request_id" | "next");
                if is_random && value.is_string() {
                    *value = json!("random");
                } else {
                    without_random(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_random),
        _ => {}
    }
}

fn shown(mut answer: Value, own: &[(&str, &str)]) -> String {
    without_random(&mut answer);
    own.iter().fold(answer.to_string(), |text, (from, to)| text.replace(from, to))
}

/// Writes a configuration of one source with an allow-list.
fn configuration(folder: &Path, place: &str) -> PathBuf {
    let path = folder.join("fetchwell.toml");
    let source = format!("[[source]]\nname = \"s\"\n{place}\nstreams = [\"messages\", \"files\"]\n");
    std::fs::write(&path, source).unwrap();
    path
}

async fn over_tools(config: &Path, own: &[(&str, &str)]) -> Vec<String> {
    let model = Model::over_stdio(["--config", text(config)]).await;
    let mut answers = Vec::new();
    for (tool, arguments) in calls() {
        let result = model.call_raw(tool, arguments.clone()).await;
        let answer = json!({ "error": result.is_error, "answer": result.structured_content });
        answers.push(format!("{tool} {arguments}: {}", shown(answer, own)));
    }
    answers
}

fn over_v1(config: &Path, own: &[(&str, &str)]) -> Vec<String> {
    let server = HttpServer::start(["--config", text(config)]);
    let answer = |target: String| {
        let answer = get(&server.address, &target);
        format!("{target}: {} {}", answer.status, shown(answer.json(), own))
    };
    targets().into_iter().map(answer).collect()
}

/// Checks that all answers are the same, and have no hidden word that their request does not have.
#[track_caller]
fn check_same(hidden: &[String], plain: &[String]) {
    assert_eq!(hidden.len(), plain.len());
    for (hidden, plain) in hidden.iter().zip(plain) {
        assert_eq!(hidden, plain);
        let (question, answer) = hidden.split_once(": ").unwrap();
        for word in HIDDEN {
            assert!(!answer.contains(word) || question.contains(word), "`{word}` in {hidden}");
        }
    }
}

fn remote(has_hidden: bool) -> (FakeServer, tempfile::TempDir, PathBuf) {
    let server = World::server(has_hidden);
    let folder = tempfile::tempdir().unwrap();
    connect(folder.path(), &server.url, CREDENTIAL);
    let place = format!("url = \"{}\"\ncache_root = \".\"", server.url);
    let config = configuration(folder.path(), &place);
    (server, folder, config)
}

#[tokio::test]
async fn hidden_streams_of_a_record_server_change_no_answer_of_a_tool() {
    let (hidden, _folder, config) = remote(true);
    let with = over_tools(&config, &[(hidden.url.as_str(), "URL")]).await;
    let (plain, _folder, config) = remote(false);
    let without = over_tools(&config, &[(plain.url.as_str(), "URL")]).await;
    check_same(&with, &without);
    // Some calls succeed, and some errors of the server name hidden things.
    assert!(with.iter().filter(|answer| answer.contains("\"error\":false")).count() > 20);
    let Reply::Json(_, refusal) =
        (World { has_hidden: true, errors: AtomicUsize::new(0) }).refusal(400, "x", None)
    else {
        panic!("no JSON")
    };
    assert!(HIDDEN[..3].iter().all(|word| refusal.contains(word)), "{refusal}");
}

#[test]
fn hidden_streams_of_a_record_server_change_no_answer_of_v1() {
    let (hidden, _folder, config) = remote(true);
    let with = over_v1(&config, &[(hidden.url.as_str(), "URL")]);
    let (plain, _folder, config) = remote(false);
    let without = over_v1(&config, &[(plain.url.as_str(), "URL")]);
    check_same(&with, &without);
}

#[tokio::test]
async fn tokens_of_a_record_server_are_sealed_behind_a_list() {
    let (_server, _folder, config) = remote(true);
    let model = Model::over_stdio(["--config", text(&config)]).await;
    let from =
        |since: Value| json!({"stream": "messages", "connection_id": "cin_work", "changes_since": since});
    // A token within the changes, and the server's own token after the last page.
    let mut token = Value::from("beginning");
    for has_more in [true, false] {
        let page = model.call("query_records", from(token)).await;
        assert_eq!(page["has_more"].as_bool().unwrap_or_default(), has_more, "{page}");
        token = page["next_changes_since"].clone();
        let text = token.as_str().unwrap();
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text.strip_prefix("fw1_").unwrap()).unwrap();
        let hides = |part: &str| !bytes.windows(part.len()).any(|piece| piece == part.as_bytes());
        assert!(!text.contains("eyJ2") && hides("\"99\"") && hides("eyJ2"), "{text}");
    }
    assert!(model.call("query_records", from(token)).await["next_changes_since"].is_string());
    let foreign = model.refusal("query_records", from("eyJ2IjoiOTkifQ".into())).await;
    assert_eq!(foreign["code"], "cursor_expired");
}

/// Returns a store. With `has_hidden` it has a hidden connection, hidden streams and relations.
fn store(has_hidden: bool) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let mut relations = vec![json!({"name": "attachments", "stream": "files", "foreign_key": "m"})];
    let mut expand = vec![json!({"name": "attachments", "max_limit": 5})];
    let mut files = json!({"name": "files", "primary_key": ["id"]});
    let mut streams = Vec::new();
    if has_hidden {
        // A relation without `foreign_key`, and one in `query.expand` alone.
        relations.push(json!({"name": "keys", "stream": "secrets"}));
        files["relationships"] = json!([{"name": "more", "stream": "locks", "foreign_key": "m"}]);
        expand.extend([json!({"name": "unlocks"}), json!({"name": "open", "stream": "secrets"})]);
        streams.extend([json!({"name": "secrets"}), json!({"name": "locks"})]);
    }
    let messages = json!({
        "name": "messages", "primary_key": ["id"], "cursor_field": "at",
        "schema": {"properties": {"at": {"type": "string", "format": "date-time"}, "subject": {"type": "string"}}},
        "relationships": relations, "query": {"expand": expand},
    });
    streams.extend([messages, files]);
    let manifest = folder.path().join("manifest.json");
    std::fs::write(&manifest, json!({"connector_key": "acme-mail", "streams": streams}).to_string()).unwrap();
    let line = |stream: &str, key: &str| {
        let data =
            json!({"id": key, "subject": format!("hello {key}"), "at": "2026-04-01T00:00:00Z", "m": "m1"});
        json!({"stream": stream, "key": key, "data": data, "emitted_at": "2026-04-01T00:00:00Z"}).to_string()
    };
    let mut connections =
        vec![("cin_work", vec![("messages", "m1"), ("messages", "shared"), ("files", "f1")])];
    connections.push(("cin_home", vec![("messages", "shared")]));
    if has_hidden {
        connections[0].1.splice(1..1, [("secrets", "s1"), ("secrets", "s2")]);
        connections.insert(1, ("cin_vault", vec![("secrets", "m1"), ("locks", "m1")]));
    }
    for (connection, records) in connections {
        let lines: Vec<String> = records.into_iter().map(|(stream, key)| line(stream, key)).collect();
        let file = folder.path().join("records.ndjson");
        std::fs::write(&file, lines.join("\n")).unwrap();
        let label = label(connection);
        let place = ["import", "records", text(&file), "--store", text(&store), "--connection", connection];
        let described = ["--name", label, "--manifest", text(&manifest)];
        let arguments: [&str; 11] =
            std::array::from_fn(|at| if at < 7 { place[at] } else { described[at - 7] });
        let output = fetchwell(arguments);
        assert!(output.status.success(), "{output:?}");
    }
    let config = configuration(folder.path(), "store = \"store.db\"");
    (folder, config)
}

#[tokio::test]
async fn hidden_streams_of_a_store_change_no_answer() {
    let (hidden, hidden_config) = store(true);
    let (plain, plain_config) = store(false);
    let own = [(text(hidden.path()), "FOLDER"), (text(plain.path()), "FOLDER")];
    check_same(&over_tools(&hidden_config, &own).await, &over_tools(&plain_config, &own).await);
    check_same(&over_v1(&hidden_config, &own), &over_v1(&plain_config, &own));
}

#[tokio::test]
async fn tokens_of_changes_do_not_tell_the_version_of_a_store() {
    let (folder, config) = store(true);
    let from =
        |since: &str| json!({"stream": "messages", "connection_id": "cin_work", "changes_since": since});
    let model = Model::over_stdio(["--config", text(&config)]).await;
    let token = async |since: &str| {
        let page = model.call("query_records", from(since)).await;
        (page["records"].as_array().unwrap().len(), page["next_changes_since"].as_str().unwrap().to_owned())
    };
    let (records, first) = token("beginning").await;
    assert_eq!(records, 2);
    // Tokens are unique, so that they do not show whether there were changes.
    let (_, again) = token("beginning").await;
    assert_ne!(first, again);
    let hidden = json!({"stream": "secrets", "key": "s9", "data": {"x": 1}}).to_string();
    import_records(&folder.path().join("store.db"), "cin_work", &hidden);
    let (records, later) = token(&first).await;
    assert_eq!((records, later.len()), (0, first.len()));
    for token in [&first, &again, &later] {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(token.strip_prefix("fw1_").unwrap()).unwrap();
        // Header and nonce; then the binding, the store and the version, encrypted; then the tag.
        assert_eq!(bytes.len(), 5 + 12 + (8 + 8 + 8) + 16, "{token}");
    }
    // A token of an earlier release shows the version, and is refused.
    let former = BASE64_URL_SAFE_NO_PAD.encode(r#"{"store":"00112233445566778899AABBCCDDEEFF","version":3}"#);
    assert_eq!(model.refusal("query_records", from(&former)).await["code"], "cursor_expired");
    let forged = format!("{}AAAA", first.get(..first.len() - 4).unwrap());
    assert_eq!(model.refusal("query_records", from(&forged)).await["code"], "invalid_cursor");
}
