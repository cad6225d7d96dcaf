//! Configurations of many sources, through the built binary: `fetchwell source`, each kind of credential over a real
//! socket, and the allow-list of streams.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::support::{
    CREDENTIAL, FakeServer, Model, Reply, StdioServer, binary, connect, demo_store, fetchwell,
    import_records, recorded, stderr, stdout, text,
};

/// Runs `fetchwell source ...` with the `fetchwell.toml` of a folder.
fn source<const N: usize>(folder: &Path, arguments: [&str; N]) -> Output {
    let config = folder.join("fetchwell.toml");
    let end = ["--config", text(&config)];
    binary().arg("source").args(arguments).args(end).current_dir(folder).output().unwrap()
}

fn config(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("fetchwell.toml")).unwrap()
}

#[track_caller]
fn failed(output: &Output, code: i32, part: &str) {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert!(stderr(output).contains(part), "`{part}` is not in {}", stderr(output));
}

/// Starts a record server that accepts one token.
fn server(token: &'static str) -> FakeServer {
    FakeServer::start(move |request| {
        if request.authorization.as_deref() != Some(&format!("Bearer {token}")) {
            return recorded("err-bad-token");
        }
        if request.line.contains("/v1/schema") {
            recorded("schema-compact-global")
        } else {
            recorded("search-zero")
        }
    })
}

#[test]
fn sources_are_added_listed_tested_and_removed() {
    let (store_folder, _store) = demo_store();
    let folder = store_folder.path();
    let by_hand = "# Ours.\nlisten = \"127.0.0.1:7401\" # not the usual\n\n# The first one.\n[[source]]\nname   = 'first'\nstore = \"demo.db\"\n";
    std::fs::write(folder.join("fetchwell.toml"), by_hand).unwrap();
    let added = source(
        folder,
        [
            "add",
            "mail",
            "--store",
            "demo.db",
            "--stream",
            "messages",
            "--deadline",
            "500ms",
            "--label",
            "Mail: all",
        ],
    );
    assert!(stdout(&added).contains("fetchwell source test mail"), "{added:?}");
    assert_eq!(
        config(folder),
        format!(
            "{by_hand}\n[[source]]\nname = \"mail\"\nlabel = \"Mail: all\"\nstore = \"demo.db\"\ndeadline = \"500ms\"\nstreams = [\"messages\"]\n"
        )
    );
    let server = server("tok_1");
    let added = source(folder, ["add", "work", "--url", &server.url, "--credential", "file:secrets/token"]);
    stdout(&added);
    assert!(config(folder).contains("credential = \"file:secrets/token\""), "{}", config(folder));

    let listed = stdout(&source(folder, ["list"]));
    for part in ["first", "Mail: all", &server.url, "messages", "500ms", "all"] {
        assert!(listed.contains(part), "{part} is not in:\n{listed}");
    }
    let listed: Value = serde_json::from_str(&stdout(&source(folder, ["list", "--json"]))).unwrap();
    assert_eq!((&listed[1]["name"], &listed[1]["deadline_ms"]), (&json!("mail"), &json!(500)));

    // If one source fails, the others are still reported.
    let tested = source(folder, ["test"]);
    failed(&tested, 1, "1 source does not work");
    let shown = String::from_utf8_lossy(&tested.stdout);
    assert!(shown.contains("14 records") && shown.contains("put a client token into"), "{shown}");
    std::fs::create_dir(folder.join("secrets")).unwrap();
    std::fs::write(folder.join("secrets/token"), "tok_1\n").unwrap();
    let tested: Value = serde_json::from_str(&stdout(&source(folder, ["test", "--json"]))).unwrap();
    assert!(tested.as_array().unwrap().iter().all(|source| source["ok"] == true), "{tested}");
    let streams = |at: usize| tested[at]["streams"].as_u64().unwrap();
    assert!(streams(1) < streams(0), "{tested}");
    failed(&source(folder, ["test", "nobody"]), 1, "there are `first`, `mail`, `work`");

    stdout(&source(folder, ["remove", "work"]));
    stdout(&source(folder, ["remove", "mail"]));
    assert_eq!(config(folder), format!("{by_hand}\n"));
    failed(&source(folder, ["remove", "mail"]), 1, "there is no source `mail`; there are `first`");
    stdout(&source(folder, ["remove", "first"]));
    assert_eq!(config(folder), "# Ours.\nlisten = \"127.0.0.1:7401\" # not the usual\n\n");
    let listed = source(folder, ["list"]);
    assert!(listed.status.success() && stderr(&listed).contains("no sources yet"), "{listed:?}");
    let output =
        binary().args(["serve", "--stdio", "--config", "fetchwell.toml"]).current_dir(folder).output();
    failed(&output.unwrap(), 1, "fetchwell source add");
}

#[test]
fn an_invalid_source_is_never_written() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // The first `source add` creates the file and its folder.
    let nested = folder.join("new/fetchwell.toml");
    stdout(&fetchwell([
        "source",
        "add",
        "a",
        "--store",
        text(&folder.join("a.db")),
        "--config",
        text(&nested),
    ]));
    let absolute = format!("store = \"{}\"", text(&folder.join("a.db")));
    assert!(std::fs::read_to_string(&nested).unwrap().contains(&absolute));

    stdout(&source(folder, ["add", "a", "--store", "a.db"]));
    let before = config(folder);
    for (arguments, code, part) in [
        (&["add", "a", "--store", "b.db"][..], 1, "has a source `a` already; choose another name"),
        (&["add", "b"], 2, "--store"),
        (&["add", "b", "--store", "b.db", "--url", "x.example"], 2, "cannot be used with"),
        (&["add", "b", "--store", "b.db", "--credential", "env:T"], 2, "cannot be used with"),
        (&["add", "..", "--store", "b.db"], 2, "cannot be the name of a source"),
        (&["add", "b", "--store", "b.db", "--deadline", "soon"], 2, "`soon` is not a duration"),
        (&["add", "b", "--store", "b.db", "--deadline", "2h"], 2, "`2h` is not between"),
        (&["add", "b", "--store", "b.db", "--stream", ".."], 2, "path segment"),
        (&["add", "b", "--store", "b.db", "--label", ""], 2, "the label is empty"),
        (&["add", "b", "--url", "ftp://x"], 64, "not a provider URL"),
        (&["add", "b", "--url", "x.example", "--credential", "sekret"], 2, "do not write a token here"),
        (&["add", "b", "--url", "x.example", "--credential", "env:PDPP_OWNER_TOKEN"], 2, "owner credential"),
    ] {
        let output = binary()
            .arg("source")
            .args(arguments)
            .args(["--config", "fetchwell.toml"])
            .current_dir(folder)
            .output()
            .unwrap();
        failed(&output, code, part);
        assert_eq!(config(folder), before, "{arguments:?}");
    }
    // A file with errors is not edited.
    for (wrong, part) in [
        ("[[source]]\nname = \"a\"\nstor = \"x\"\n", "fetchwell.toml:3: source[0].stor: unknown key `stor`"),
        (
            "[[source]]\nname = \"a\"\nstore = \"x\"\n\n[[source]]\nname = \"a\"\nstore = \"y\"\n",
            "fetchwell.toml:6: source[1].name: duplicate source name `a`, first on line 2",
        ),
        ("source = [{name = \"a\", store = \"x\"}]\n", "inline"),
    ] {
        std::fs::write(folder.join("fetchwell.toml"), wrong).unwrap();
        failed(&source(folder, ["add", "b", "--store", "b.db"]), 1, part);
        failed(&source(folder, ["remove", "a"]), 1, part);
        assert_eq!(config(folder), wrong);
    }
}

#[test]
fn a_found_file_is_used_with_limited_settings() {
    let (folder, _store) = demo_store();
    let run = |arguments: &[&str]| {
        let mut command = binary();
        command
            .args(arguments)
            .current_dir(folder.path())
            .env("XDG_CONFIG_HOME", folder.path().join("of-user"));
        command.env("HOME", folder.path()).output().unwrap()
    };
    failed(&run(&["search", "invoice"]), 2, "fetchwell source add");
    // A source in the user's own file is available in every folder.
    stdout(&run(&["source", "add", "demo", "--store", "demo.db"]));
    assert!(stdout(&run(&["search", "invoice"])).contains("cin_home/messages:m1"));
    assert!(stdout(&run(&["client-config", "codex"])).contains("config.toml"));
    // The file of the folder takes precedence, and cannot send the user's tokens anywhere.
    let here = folder.path().join("fetchwell.toml");
    for credential in ["env:HOME", "file:demo.db", "command:touch was-run; echo tok"] {
        let toml = format!(
            "[[source]]\nname = \"evil\"\nurl = \"http://127.0.0.1:9\"\ncredential = \"{credential}\"\n"
        );
        std::fs::write(&here, toml).unwrap();
        for arguments in [&["serve", "--stdio"][..], &["search", "x"], &["source", "test"], &["doctor"]] {
            let output = run(arguments);
            let shown = format!("{}{}", stderr(&output), String::from_utf8_lossy(&output.stdout));
            assert!(!output.status.success() && shown.contains("--config fetchwell.toml"), "{output:?}");
        }
    }
    assert!(!folder.path().join("was-run").exists());
    std::fs::write(&here, "[[source]]\nname = \"here\"\nstore = \"demo.db\"\n").unwrap();
    assert!(stdout(&run(&["doctor"])).contains("here: the store"));
}

#[test]
fn the_documented_file_is_valid_and_shows_every_key() {
    let document =
        std::fs::read_to_string(format!("{}/docs/configuration.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let example = document.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("fetchwell.toml"), example).unwrap();
    let listed: Value = serde_json::from_str(&stdout(&source(folder.path(), ["list", "--json"]))).unwrap();
    let credentials: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|source| source["credential"].as_str().unwrap_or("-"))
        .collect();
    let kinds = ["-", "pdpp-cache", "env:", "file:", "command", "-", "-"];
    assert_eq!(credentials.len(), kinds.len());
    for (credential, kind) in credentials.iter().zip(kinds) {
        assert!(credential.starts_with(kind), "{credential} is not {kind}");
    }
}

/// Returns a model over one source of a configuration, and the folder.
async fn model(url: &str, lines: &str) -> (Model, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let model = model_in(folder.path(), url, lines).await;
    (model, folder)
}

async fn model_in(folder: &Path, url: &str, lines: &str) -> Model {
    let path = folder.join("fetchwell.toml");
    std::fs::write(&path, format!("[[source]]\nname = \"work\"\nurl = \"{url}\"\n{lines}\n")).unwrap();
    Model::over_stdio(["--config", text(&path)]).await
}

fn tokens(server: &FakeServer) -> Vec<String> {
    server.requests().into_iter().filter_map(|request| request.authorization).collect()
}

#[tokio::test]
async fn a_credential_in_a_file_is_read_again_after_a_change() {
    let server = server("tok_1");
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "tok_1\n").unwrap();
    let model = model_in(folder.path(), &server.url, "credential = \"file:token\"").await;
    model.call("search", json!({"query": "x", "mode": "lexical"})).await;
    std::fs::write(&token, r#"{"access_token":"tok_other","expires_in":3600}"#).unwrap();
    let refused = model.refusal("search", json!({"query": "x", "mode": "lexical"})).await;
    assert_eq!(refused["code"], "reauthorize");
    assert_eq!(
        refused["hint"],
        format!("Ask the user to put a client token into {}, then call again.", token.display())
    );
    std::fs::remove_file(&token).unwrap();
    assert_eq!(
        model.refusal("search", json!({"query": "x", "mode": "lexical"})).await["code"],
        "reauthorize"
    );
    std::fs::write(&token, r#"{"access_token":"tok_1","token_kind":"client"}"#).unwrap();
    model.call("search", json!({"query": "x", "mode": "lexical"})).await;
    assert_eq!(tokens(&server), ["Bearer tok_1", "Bearer tok_other", "Bearer tok_1"]);
}

#[test]
fn a_credential_is_read_from_a_variable() {
    let server = server("tok_1");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fetchwell.toml");
    let toml =
        format!("[[source]]\nname = \"work\"\nurl = \"{}\"\ncredential = \"env:WORK_TOKEN\"\n", server.url);
    std::fs::write(&path, toml).unwrap();
    let search = |value: Option<&str>| {
        let mut command = binary();
        command.args(["search", "x", "--config", text(&path)]).env_remove("WORK_TOKEN");
        command.envs(value.map(|value| ("WORK_TOKEN", value))).output().unwrap()
    };
    // The server is searched and finds nothing, which is exit code 1.
    failed(&search(Some("tok_1")), 1, "nothing found");
    failed(&search(None), 78, "`WORK_TOKEN`");
    let tested = binary().args(["source", "test", "--config", text(&path)]).env_remove("WORK_TOKEN").output();
    let shown = String::from_utf8(tested.unwrap().stdout).unwrap();
    assert!(shown.contains("to a client token, and run the command again"), "{shown}");
    failed(&search(Some("sekret token")), 78, "is malformed");
    failed(&search(Some(r#"{"access_token":"sekret","token_kind":"owner"}"#)), 77, "owner credential");
    assert!(!stderr(&search(Some("sekret token"))).contains("sekret"));
    // A refused token is not printed.
    let output = search(Some("sekret"));
    failed(&output, 78, "set the environment variable `WORK_TOKEN`");
    assert!(!stderr(&output).contains("sekret"), "{output:?}");
}

#[test]
fn a_server_starts_without_the_variable_of_its_credential() {
    let record_server = server("tok_1");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fetchwell.toml");
    let source = format!("url = \"{}\"\ncredential = \"env:FETCHWELL_TEST_TOKEN\"\n", record_server.url);
    std::fs::write(&path, format!("[[source]]\nname = \"work\"\n{source}")).unwrap();
    let mut server = StdioServer::start(["--config", text(&path)]);
    server.initialize("2025-06-18");
    server.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"x"}}}"#);
    let error = &server.receive()["result"]["structuredContent"]["error"];
    assert_eq!(error["code"], "reauthorize");
    assert!(error.to_string().contains("set the environment variable `FETCHWELL_TEST_TOKEN`"), "{error}");
    let (_, _, log) = server.end();
    assert!(log.contains("FETCHWELL_TEST_TOKEN"), "{log}");
    // The configuration for clients names the variable.
    let snippet = stdout(&fetchwell(["client-config", "claude", "--config", text(&path)]));
    assert!(
        snippet.contains(r#""FETCHWELL_TEST_TOKEN": "<the value of FETCHWELL_TEST_TOKEN>""#),
        "{snippet}"
    );
}

/// Returns the number of runs of the command.
#[cfg(unix)]
fn runs(folder: &Path) -> usize {
    std::fs::read_to_string(folder.join("runs")).map_or(0, |runs| runs.lines().count())
}

/// A command that prints the next number at each run.
#[cfg(unix)]
const NEXT: &str =
    "credential = \"command:sleep 0.1; echo run >> runs; echo tok_$(wc -l < runs | tr -d ' ')\"";

#[cfg(unix)]
#[tokio::test]
async fn a_command_is_run_once_for_ten_calls_and_again_when_its_token_is_refused() {
    let known = std::sync::Arc::new(std::sync::Mutex::new("Bearer tok_1"));
    let good = std::sync::Arc::clone(&known);
    let server = FakeServer::start(move |request| {
        if request.authorization.as_deref() == Some(*good.lock().unwrap()) {
            recorded("search-zero")
        } else {
            recorded("err-bad-token")
        }
    });
    let (model, folder) = model(&server.url, NEXT).await;
    // The command does not run before the first call.
    assert_eq!(runs(folder.path()), 0);
    let ten = || futures_util::future::join_all((0..10).map(|_| model.call("search", json!({"query": "x"}))));
    ten().await;
    assert_eq!(runs(folder.path()), 1);
    // The server rejects the token: ten calls run the command once.
    *known.lock().unwrap() = "Bearer tok_2";
    ten().await;
    assert_eq!(runs(folder.path()), 2);
    // A new token that is rejected as well is not replaced in a loop.
    *known.lock().unwrap() = "Bearer another";
    let refused = model.refusal("search", json!({"query": "x"})).await;
    assert_eq!(refused["code"], "reauthorize");
    assert!(refused["hint"].as_str().unwrap().contains("run the credential command"), "{refused}");
    assert_eq!(runs(folder.path()), 3);
}

#[cfg(unix)]
#[tokio::test]
async fn a_failing_command_is_named_without_its_output() {
    let server = server("tok_1");
    for (command, part) in [
        ("echo sekret; echo sekret >&2; exit 3", "exit status: 3"),
        ("echo two words sekret", "malformed"),
        ("true", "empty"),
    ] {
        let (model, _folder) = model(&server.url, &format!("credential = \"command:{command}\"")).await;
        let refused = model.refusal("search", json!({"query": "x"})).await.to_string();
        assert!(refused.contains(part) && refused.contains("reauthorize"), "{refused}");
        assert!(!refused.contains("sekret"), "{refused}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn only_allowed_streams_are_served() {
    let (folder, _store) = demo_store();
    let path = folder.path().join("fetchwell.toml");
    std::fs::write(&path, "[[source]]\nname = \"demo\"\nstore = \"demo.db\"\nstreams = [\"messages\"]\n")
        .unwrap();
    let model = Model::over_stdio(["--config", text(&path)]).await;
    let schema = model.call("schema", json!({})).await.to_string();
    assert!(schema.contains("messages") && !schema.contains("files"), "{schema}");
    let found = model.call("search", json!({"query": "invoice", "limit": 100})).await.to_string();
    assert!(found.contains("messages:") && !found.contains("files"), "{found}");
    for (tool, arguments) in [
        ("query_records", json!({"stream": "files"})),
        ("aggregate", json!({"stream": "files", "metric": "count"})),
        ("schema", json!({"stream": "files"})),
        ("search", json!({"query": "x", "streams": ["files"]})),
        ("fetch", json!({"id": "cin_work/files:f1"})),
        ("read_record_field", json!({"id": "cin_work/files:f1", "field": "name"})),
    ] {
        let refused = model.refusal(tool, arguments.clone()).await;
        assert_eq!(refused["code"], "stream_not_declared", "{tool}: {refused}");
        // The error is the same for a stream that does not exist.
        let nowhere = arguments.to_string().replace("files", "nowhere");
        let nowhere = model.refusal(tool, serde_json::from_str(&nowhere).unwrap()).await;
        assert_eq!(refused.to_string().replace("files", "nowhere"), nowhere.to_string());
    }
}

#[tokio::test]
async fn a_source_that_cannot_be_opened_is_retried_and_stops_no_other() {
    let (folder, _store) = demo_store();
    let server = server("tok_1");
    let path = folder.path().join("fetchwell.toml");
    let toml = format!(
        "[[source]]\nname = \"demo\"\nstore = \"demo.db\"\n\n[[source]]\nname = \"late\"\nstore = \"late.db\"\n\n\
         [[source]]\nname = \"work\"\nurl = \"{}\"\ncredential = \"file:token\"\n",
        server.url
    );
    std::fs::write(&path, toml).unwrap();
    let output = fetchwell(["search", "invoice", "--config", text(&path)]);
    assert!(stdout(&output).contains("cin_home/messages:m1"), "{output:?}");
    let notes = stderr(&output);
    assert!(
        notes.contains("source `late`: there is no store") && notes.contains("source `work`: "),
        "{notes}"
    );
    let model = Model::over_stdio(["--config", text(&path)]).await;
    let found = model.call("search", json!({"query": "invoice"})).await;
    let missing: Vec<(&Value, &Value)> = found["unavailable"]
        .as_array()
        .unwrap()
        .iter()
        .map(|source| (&source["source"], &source["code"]))
        .collect();
    assert_eq!(
        missing,
        [(&json!("late"), &json!("source_unavailable")), (&json!("work"), &json!("reauthorize"))],
        "{found}"
    );
    std::fs::write(folder.path().join("token"), "tok_1").unwrap();
    let line = r#"{"stream":"notes","key":"n1","data":{"title":"The late invoice"}}"#;
    import_records(&folder.path().join("late.db"), "late", line);
    let found = model.call("search", json!({"query": "invoice"})).await;
    assert!(found.get("unavailable").is_none(), "{found}");
    assert!(found.to_string().contains("late/notes:n1"), "{found}");
}

#[test]
fn doctor_reports_every_source() {
    let (folder, _store) = demo_store();
    let server = server("tok_5ecret");
    connect(&folder.path().join(".pdpp"), &server.url, CREDENTIAL);
    let path = folder.path().join("fetchwell.toml");
    let toml = format!(
        "[[source]]\nname = \"demo\"\nstore = \"demo.db\"\n\n\
         [[source]]\nname = \"again\"\nstore = \"demo.db\"\nstreams = [\"messages\", \"mesages\"]\n\n\
         [[source]]\nname = \"missing\"\nstore = \"missing.db\"\n\n\
         [[source]]\nname = \"down\"\nurl = \"http://127.0.0.1:9\"\ncredential = \"file:token\"\ndeadline = \"2s\"\n\n\
         [[source]]\nname = \"work\"\nurl = \"{}\"\n",
        server.url
    );
    std::fs::write(&path, toml).unwrap();
    std::fs::write(folder.path().join("token"), r#"{"access_token":"tok_5ecret","expires_in":600}"#).unwrap();
    let output = fetchwell(["doctor", "--config", text(&path), "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let checks: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let check = |source: &str, name: &str| {
        let mut of_it = checks.iter().filter(|check| check["source"] == source && check["name"] == name);
        of_it.next().unwrap_or_else(|| panic!("{source} {name}: {checks:?}")).clone()
    };
    assert!(check("demo", "connections")["found"].as_str().unwrap().contains("14 records"));
    assert_eq!(check("demo", "search")["ok"], true);
    assert!(check("again", "connections")["warning"].as_str().unwrap().contains("`mesages`"));
    assert!(check("missing", "open")["found"].as_str().unwrap().contains("fetchwell import"));
    assert!(check("down", "credential")["found"].as_str().unwrap().starts_with("valid for "));
    assert_eq!(check("down", "connections")["ok"], false);
    assert!(check("down", "connections")["found"].as_str().unwrap().contains("check the URL"));
    assert_eq!(check("work", "search")["ok"], true);
    let together: Vec<String> =
        checks.iter().filter(|check| check["name"] == "collision").map(Value::to_string).collect();
    assert!(together[0].contains("`demo` and `again` are the same place"), "{together:?}");
    assert!(together[1].contains("connection `cin_home` is in `demo` and `again`"), "{together:?}");
    assert!(!format!("{output:?}").contains("tok_5ecret"));
    let shown = fetchwell(["doctor", "--config", text(&path)]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("\nall sources\n") && shown.contains("note  collision"), "{shown}");
}

#[cfg(unix)]
#[test]
fn a_credential_that_others_can_read_causes_a_warning() {
    use std::os::unix::fs::PermissionsExt;
    let server = server("tok_1");
    let folder = tempfile::tempdir().unwrap();
    let (path, token) = (folder.path().join("fetchwell.toml"), folder.path().join("token"));
    let toml =
        format!("[[source]]\nname = \"work\"\nurl = \"{}\"\ncredential = \"file:token\"\n", server.url);
    std::fs::write(&path, toml).unwrap();
    std::fs::write(&token, "tok_1").unwrap();
    for (mode, warned) in [(0o644, true), (0o600, false)] {
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(mode)).unwrap();
        let remedy = format!("chmod 600 {}", token.display());
        let shown = stdout(&fetchwell(["doctor", "--config", text(&path)]));
        assert_eq!(shown.contains(&remedy), warned, "{shown}");
        // A server prints the warning when it starts.
        let (_, _, log) = StdioServer::start(["--config", text(&path)]).end();
        assert_eq!(log.contains(&remedy), warned, "{log}");
    }
}

#[test]
fn sources_that_hang_are_tested_concurrently() {
    // Ten sources that hang are tested concurrently; a sequential test would take ten times as long.
    let hanging = FakeServer::start(|_| Reply::Hang);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fetchwell.toml");
    std::fs::write(folder.path().join("token"), "tok").unwrap();
    let sources = (0..10).map(|number| {
        format!("[[source]]\nname = \"s{number}\"\nurl = \"{}\"\ncredential = \"file:token\"\ndeadline = \"2s\"\n", hanging.url)
    });
    std::fs::write(&path, sources.collect::<String>()).unwrap();
    let started = std::time::Instant::now();
    let output = fetchwell(["source", "test", "--config", text(&path), "--json"]);
    assert!(started.elapsed() < std::time::Duration::from_secs(15), "{:?}", started.elapsed());
    let tested: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert!(tested.iter().all(|source| source["problem"].as_str().unwrap().contains("longer deadline")));
}
