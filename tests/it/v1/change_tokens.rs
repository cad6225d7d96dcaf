//! The tokens of `changes_since`, through the built binary: sealed, bound to stream, connection, source and grant, and
//! valid as long as their key exists.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::hosted::{ANN, BOB, HEAD, bearer, call, token};
use crate::support::{CREDENTIAL, FakeServer, HttpServer, Model, ask, binary, connect, import_records, text};
use crate::v1::change_feed::{CHANGES, expected, quirky};

/// Returns a configuration of one record server, and its state directory.
fn remote(server: &FakeServer, more: &str) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    connect(folder.path(), &server.url, CREDENTIAL);
    let config = folder.path().join("fetchwell.toml");
    let source =
        format!("[[source]]\nname = \"remote\"\nurl = \"{}\"\ncache_root = \".\"\n{more}", server.url);
    fs::write(&config, source).unwrap();
    let state = folder.path().join("state");
    (folder, config, state)
}

fn since(token: &str) -> Value {
    json!({"stream": "messages", "connection_id": "cin_work", "limit": 100, "changes_since": token})
}

#[track_caller]
fn token_of(page: &Value) -> String {
    let token = page["next_changes_since"].as_str().unwrap_or_else(|| panic!("no token: {page}")).to_owned();
    assert!(token.starts_with("fw1_") && token.len() <= 120, "{} {token}", token.len());
    assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)), "{token}");
    token
}

/// Checks that a token is refused with the advice to start again.
#[track_caller]
fn check_refused(refused: &Value, code: &str) {
    assert_eq!(refused["code"], code, "{refused}");
    assert!(refused["hint"].as_str().unwrap().contains("`changes_since` set to \"beginning\""), "{refused}");
}

fn rotate(state: &Path) {
    let rotated = binary().args(["cursor", "rotate", "--state-dir", text(state)]).output().unwrap();
    assert!(rotated.status.success(), "{rotated:?}");
}

#[tokio::test]
async fn feed_continues_in_other_processes_and_after_rotations() {
    let server = FakeServer::start(quirky);
    let (_folder, config, state) = remote(&server, "");
    let (mut token, mut names, mut pages) = ("beginning".to_owned(), Vec::new(), 0);
    loop {
        // Every page is long after the key that signed the cursors of the page before was deleted.
        let clock = format!("+{}h", pages * 1_000);
        let model =
            Model::over_stdio(["--config", text(&config), "--state-dir", text(&state), "--clock", &clock])
                .await;
        let page = model.call("query_records", since(&token)).await;
        names.extend(page["records"].as_array().unwrap().iter().map(|row| {
            let id = row["id"].as_str().unwrap().trim_start_matches("cin_work/messages:");
            if row["deleted"] == true { format!("-{id}") } else { id.to_owned() }
        }));
        token = token_of(&page);
        pages += 1;
        if page.get("has_more").is_none() {
            break;
        }
        assert!(pages < CHANGES, "the feed does not end");
        rotate(&state);
    }
    assert!(pages > 1);
    assert_eq!(names, expected());
    // A process without a state directory has a key of its own.
    let model = Model::over_stdio(["--config", text(&config), "--state-dir", "none"]).await;
    check_refused(&model.refusal("query_records", since(&token)).await, "cursor_expired");
    let own = token_of(&model.call("query_records", since("beginning")).await);
    assert!(model.call("query_records", since(&own)).await["records"].is_array());
}

#[tokio::test]
async fn tokens_without_a_seal_are_accepted_unless_streams_are_hidden() {
    let server = FakeServer::start(quirky);
    let (_folder, config, state) = remote(&server, "");
    let raw = format!("version-{}", CHANGES - 3);
    let former = json!({"since": "beginning", "cursor": (CHANGES - 5).to_string(), "taken": 1}).to_string();
    let model = Model::over_stdio(["--config", text(&config), "--state-dir", text(&state)]).await;
    for (token, rows) in [(&raw, 3), (&former, 4)] {
        let page = model.call("query_records", since(token)).await;
        assert_eq!(page["records"].as_array().unwrap().len(), rows, "{token}");
        token_of(&page);
    }
}

/// Two stores with the same connection id, and two callers that may both read the first store.
struct Place {
    folder: tempfile::TempDir,
}

const STORES: &str =
    "[[source]]\nname = \"a\"\nstore = \"a.db\"\n[[source]]\nname = \"b\"\nstore = \"b.db\"\n";

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        for (store, connections) in [("a.db", &["cin_x", "cin_y"][..]), ("b.db", &["cin_x"])] {
            for connection in connections {
                let line = |stream: &str| json!({"stream": stream, "key": "1", "data": {"n": 1}}).to_string();
                let lines = [line("letters"), line("notes")].join("\n");
                import_records(&place.path(store), connection, &lines);
            }
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn serve(&self, sources: &str) -> HttpServer {
        let of = |name: &str, secret: &str| token(name, secret).replace(&format!("[\"{name}\"]"), sources);
        let config = self.path("fetchwell.toml");
        let stores = if sources.contains("\"b\"") {
            STORES
        } else {
            STORES.split("[[source]]\nname = \"b\"").next().unwrap()
        };
        fs::write(&config, format!("{HEAD}{}{}{stores}", of("ann", ANN), of("bob", BOB))).unwrap();
        HttpServer::start(["--config", text(&config), "--state-dir", text(&self.path("state"))])
    }
}

fn changes(server: &HttpServer, who: &str, stream: &str, connection: &str, token: &str) -> Value {
    let asked = json!({"stream": stream, "connection_id": connection, "changes_since": token});
    let answer = call(server, who, "query_records", &asked);
    if answer["error"].is_object() { answer["error"].clone() } else { answer }
}

#[test]
fn token_is_bound_to_stream_connection_source_and_grant() {
    let place = Place::new();
    let server = place.serve("[\"a\", \"b\"]");
    let token = token_of(&changes(&server, ANN, "letters", "cin_x@a", "beginning"));
    for (who, stream, connection) in [
        (ANN, "notes", "cin_x@a"),
        (ANN, "letters", "cin_y"),
        (ANN, "letters", "cin_x@b"),
        (BOB, "letters", "cin_x@a"),
    ] {
        check_refused(&changes(&server, who, stream, connection, &token), "invalid_cursor");
        token_of(&changes(&server, who, stream, connection, "beginning"));
    }
    let tampered = format!("{}AAAA", token.get(..token.len() - 4).unwrap());
    for wrong in [tampered.as_str(), "fw1_AAAA", token.get(..60).unwrap()] {
        check_refused(&changes(&server, ANN, "letters", "cin_x@a", wrong), "invalid_cursor");
    }
    // `/v1` prints and accepts the same tokens.
    let v1 = |who: &str, token: &str| {
        let path = format!("/v1/streams/letters/records?connection_id=cin_x%40a&changes_since={token}");
        ask(&server.address, "GET", &path, &[&bearer(who)])
    };
    let page = v1(ANN, &token);
    assert_eq!((page.status, &page.json()["data"]), (200, &json!([])));
    let later = page.json()["next_changes_since"].as_str().unwrap().to_owned();
    assert_eq!(changes(&server, ANN, "letters", "cin_x@a", &later)["records"], json!([]));
    let refused = v1(BOB, &token);
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!("invalid_cursor")));
    drop(server);
    // The token stays valid after one source is removed; the connection id is then unique and printed without the
    // source.
    let line = json!({"stream": "letters", "key": "2", "data": {"n": 2}}).to_string();
    import_records(&place.path("a.db"), "cin_x", &line);
    let server = place.serve("[\"a\"]");
    let page = changes(&server, ANN, "letters", "cin_x", &token);
    assert_eq!(page["records"].as_array().map(Vec::len), Some(1), "{page}");
    drop(server);
    fs::remove_file(place.path("state/change-key.json")).unwrap();
    let server = place.serve("[\"a\"]");
    check_refused(&changes(&server, ANN, "letters", "cin_x", &token), "cursor_expired");
    let refused = ask(
        &server.address,
        "GET",
        &format!("/v1/streams/letters/records?connection_id=cin_x&changes_since={token}"),
        &[&bearer(ANN)],
    );
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (410, &json!("cursor_expired")));
}

#[tokio::test]
async fn cursors_are_not_tokens_and_a_connection_may_be_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let (store, state) = (folder.path().join("s.db"), folder.path().join("state"));
    let line = |key: usize| json!({"stream": "letters", "key": key, "data": {"n": key}}).to_string();
    import_records(&store, "cin_x", &[line(1), line(2)].join("\n"));
    let model = Model::over_stdio(["--store", text(&store), "--state-dir", text(&state)]).await;
    let page = model.call("query_records", json!({"stream": "letters", "changes_since": "beginning"})).await;
    // The only connection can be named or left out; both are the same stream.
    let named = json!({"stream": "letters", "connection_id": "cin_x", "changes_since": token_of(&page)});
    let later = model.call("query_records", named).await;
    let unnamed = json!({"stream": "letters", "changes_since": token_of(&later)});
    assert_eq!(model.call("query_records", unnamed).await["records"], json!([]));
    let list = model.call("query_records", json!({"stream": "letters", "limit": 1})).await;
    let refused = model
        .refusal("query_records", json!({"stream": "letters", "changes_since": list["next_cursor"]}))
        .await;
    assert_eq!(refused["code"], "invalid_cursor");
    assert!(refused["hint"].as_str().unwrap().contains("as `cursor`"), "{refused}");
}
