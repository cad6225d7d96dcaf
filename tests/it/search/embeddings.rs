//! Vectors of stores through the built binary: builds by commands, after imports and in the background, with services
//! that fail in the ways of real ones.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_embedding::{
    EmbeddingModel, EmbeddingSettings, Endpoint, LocalModel, ModelPlace, Persistence, Purpose, QueryEmbedder,
    open_model,
};
use fetchwell_source::{BoundSource, SearchMode, SearchQuery};
use fetchwell_sqlite::SqliteStore;
use serde_json::{Value, json};

use crate::support::{
    EmbeddingService, HttpServer, Model, Mood, binary, fetchwell, get, starter, stderr, stdout, text,
    wait_until, with_clocks,
};

/// Longest wait for an event in the background. A server starts to embed after 2 s.
const GUARD: Duration = Duration::from_secs(60);

/// A folder with a store, a service and a configuration of both.
struct Place {
    folder: tempfile::TempDir,
    service: EmbeddingService,
}

impl Place {
    fn new(more: &str) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap(), service: EmbeddingService::start() };
        place.configure(&(place.service.table(true) + more));
        place
    }

    fn configure(&self, embedding: &str) {
        let source = "[[source]]\nname = \"notes\"\nstore = \"notes.db\"\n";
        std::fs::write(self.config(), format!("{source}{embedding}")).unwrap();
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("fetchwell.toml")
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("notes.db")
    }

    /// Imports lines without embedding them, or with these arguments.
    fn import(&self, lines: &str, arguments: &[&str]) -> Output {
        let file = self.folder.path().join("records.ndjson");
        std::fs::write(&file, lines).unwrap();
        let mut command = binary();
        command.args(["import", "records", text(&file), "--store", text(&self.store()), "--connection", "c"]);
        command.args(arguments).output().unwrap()
    }

    #[track_caller]
    fn put(&self, numbers: std::ops::Range<usize>) {
        stdout(&self.import(&records(numbers), &["--no-embed"]));
    }

    fn run(&self, command: &[&str]) -> Output {
        binary().args(command).args(["--config", text(&self.config()), "--json"]).output().unwrap()
    }

    fn build(&self) -> Output {
        self.run(&["embeddings", "build"])
    }

    #[track_caller]
    fn status(&self) -> Value {
        let status = stdout(&self.run(&["embeddings", "status"]));
        serde_json::from_str::<Value>(&status).unwrap()["vectors"].take()
    }

    fn serve(&self) -> HttpServer {
        HttpServer::start(["--config", text(&self.config())])
    }
}

fn record(number: usize, body: &str) -> String {
    let data = json!({"title": format!("Note {number}"), "body": body});
    json!({"stream": "notes", "key": format!("n{number}"), "data": data}).to_string() + "\n"
}

fn records(numbers: std::ops::Range<usize>) -> String {
    numbers.map(|number| record(number, &format!("text of the note with number {number}"))).collect()
}

fn health(server: &HttpServer) -> Value {
    get(&server.address, "/health").json().pointer("/embeddings/0").cloned().unwrap_or_default()
}

#[track_caller]
fn wait_for_state(server: &HttpServer, state: &str) -> Value {
    wait_until(state, || health(server)["state"] == state);
    health(server)
}

#[test]
fn a_server_embeds_new_changed_and_deleted_records() {
    let place = Place::new("");
    place.put(0..100);
    let server = place.serve();
    let state = wait_for_state(&server, "complete");
    assert_eq!((&state["missing_records"], &state["embedded_chunks"]), (&json!(0), &json!(100)), "{state}");
    // Another process imports while the server runs.
    let deleted = json!({"stream": "notes", "key": "n7", "op": "delete"}).to_string() + "\n";
    stdout(&place.import(&(records(100..103) + &record(8, "another text") + &deleted), &["--no-embed"]));
    wait_until("changes are embedded", || health(&server)["embedded_chunks"] == 104);
    wait_for_state(&server, "complete");
    let status = place.status();
    assert_eq!((&status["current"]["chunks"], &status["building"]), (&json!(102), &Value::Null), "{status}");
    assert!(place.service.counts().values().all(|count| *count == 1), "each text is sent once");
    let metrics = get(&server.address, "/metrics").text;
    for line in [
        "fetchwell_embedding_chunks_total{source=\"notes\"} 104\n",
        "fetchwell_embedding_missing_records{source=\"notes\"} 0\n",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
    // A command is not delayed by an idle server.
    let built: Value = serde_json::from_str(&stdout(&place.build())).unwrap();
    assert_eq!(built["embedded"], 0);
    let log = server.stop();
    assert!(!log.contains("text of the note"), "no text of a record is in the log: {log}");
}

#[test]
fn a_server_stops_while_a_service_does_not_answer() {
    let place = Place::new("");
    place.put(0..200);
    place.service.set(Mood::Silent);
    let server = place.serve();
    place.service.server.wait_for_request();
    // The service never answers; a server that waited for it would not stop.
    server.stop();
    place.service.server.wait_until_abandoned();
    place.service.set(Mood::Healthy { salt: 0 });
    stdout(&place.build());
    assert_eq!(place.status()["current"]["chunks"], 200);
}

#[test]
fn failures_in_the_background_are_shown_and_retried() {
    for (mood, problem) in [
        (Mood::Limited { retry_after: "3600" }, "provider_rate_limited"),
        (Mood::Vector(json!([1.0, 2.0])), "wrong_dimensions"),
        (Mood::Status(401, "{}"), "provider_unauthorized"),
    ] {
        let place = Place::new("");
        place.put(0..3);
        place.service.set(mood);
        let server = place.serve();
        let state = wait_for_state(&server, "failing");
        assert_eq!((&state["problem"], &state["failures"]), (&json!(problem), &json!(1)), "{state}");
        // Searches still work.
        assert_eq!(get(&server.address, "/v1/search?q=note").status, 200);
        assert_eq!(get(&server.address, "/health").status, 200);
        if problem == "wrong_dimensions" {
            place.service.set(Mood::Healthy { salt: 0 });
            let state = wait_for_state(&server, "complete");
            assert!(state["problem"].is_null() && state["embedded_chunks"] == 3, "{state}");
        }
    }
}

/// Checks consent for a service at an address other than the loopback one, which counts as another machine.
#[test]
fn nothing_is_sent_to_another_machine_without_consent() {
    let place = Place::new("");
    place.configure(&place.service.table(false));
    let imported = place.import(&records(0..10), &["--config", text(&place.config())]);
    let said = stderr(&imported);
    assert!(imported.status.success() && said.contains("leaves this machine"), "{said}");
    assert!(said.contains("nothing was sent: run `fetchwell embeddings build --yes`"), "{said}");
    let refused = place.build();
    assert!(!refused.status.success() && stderr(&refused).contains("nothing was sent"), "{refused:?}");
    let server = place.serve();
    wait_for_state(&server, "disabled");
    drop(server);
    assert!(place.service.server.requests().is_empty());
    // Consent is given for one import, and in the configuration.
    let imported = place.import(&records(0..11), &["--config", text(&place.config()), "--yes", "--json"]);
    let summary: Value = serde_json::from_str(&stdout(&imported)).unwrap();
    assert_eq!((&summary["added"], &summary["embedded_chunks"]), (&json!(1), &json!(11)), "{summary}");
    place.configure(&(place.service.table(false) + "background = true\n"));
    stdout(&place.import(&records(0..12), &["--config", text(&place.config())]));
    assert_eq!(place.service.texts().len(), 12);
    place.put(12..13);
    let server = place.serve();
    wait_for_state(&server, "complete");
    assert_eq!(place.service.texts().len(), 13);
}

#[test]
fn text_of_hidden_streams_is_not_sent() {
    let place = Place::new("");
    let shows = |list: &str| place.configure(&(list.to_owned() + &place.service.table(true)));
    let secrets = |numbers: std::ops::Range<usize>| records(numbers).replace("\"notes\"", "\"secrets\"");
    let sent = || place.service.texts().iter().filter(|text| text.contains("Note 9")).count();
    let doctor = || stdout(&binary().args(["doctor", "--config", text(&place.config())]).output().unwrap());
    shows("streams = [\"notes\"]\n");
    place.put(0..5);
    stdout(&place.import(&secrets(90..93), &["--no-embed"]));
    let server = place.serve();
    wait_for_state(&server, "complete");
    assert_eq!((place.service.texts().len(), sent()), (5, 0));
    assert!(!doctor().contains("have no vectors yet"), "{}", doctor());
    assert_eq!(place.status()["current"]["missing_records"], 0);
    // The other commands of the configuration embed the same streams.
    stdout(&place.import(&(records(5..6) + &secrets(93..94)), &["--config", text(&place.config())]));
    stdout(&place.build());
    stdout(&place.run(&["embeddings", "rebuild"]));
    assert_eq!(sent(), 0);
    // The running server embeds the stream when the configuration shows it. A second name of the store shows it, too.
    shows("streams = [\"notes\"]\n[[source]]\nname = \"again\"\nstore = \"./notes.db\"\n");
    wait_until("the stream is embedded", || sent() == 4 && !doctor().contains("have no vectors yet"));
    drop(server);
    stdout(&place.import(&secrets(94..96), &["--no-embed"]));
    assert!(doctor().contains("2 records of `notes` have no vectors yet"), "{}", doctor());
}

#[test]
fn an_import_embeds_what_it_imported() {
    let place = Place::new("");
    let config = place.config();
    let import = |lines: &str, more: &[&str]| {
        let named = ["--config", text(&config)];
        place.import(lines, &[&named[..], more].concat())
    };
    stdout(&import(&records(0..5), &["--no-embed"]));
    assert!(place.service.texts().is_empty());
    let output = import(&records(0..6), &[]);
    assert!(
        stdout(&output).contains("1 added") && stderr(&output).contains("6 chunks embedded"),
        "{output:?}"
    );
    assert_eq!(place.status()["current"]["missing_records"], 0);
    // The other records are embedded although some were rejected.
    let output = import(&(records(6..7) + "not json\n"), &[]);
    assert!(!output.status.success() && stderr(&output).contains("1 chunks embedded"), "{output:?}");
    // A failing service does not change the result of the import.
    place.service.set(Mood::TooFew);
    let output = import(&records(7..8), &[]);
    let said = stderr(&output);
    assert!(!output.status.success() && said.contains("imported but not embedded: "), "{said}");
    assert_eq!(place.status()["current"]["missing_records"], 1);
    // The configuration file found in a folder is read only if it is trusted.
    place.service.set(Mood::Healthy { salt: 0 });
    let file = place.folder.path().join("records.ndjson");
    std::fs::write(&file, records(8..9)).unwrap();
    let mut command = binary();
    command.args(["import", "records", text(&file), "--store", text(&place.store()), "--connection", "c"]);
    let output = command.current_dir(place.folder.path()).output().unwrap();
    let said = stderr(&output);
    assert!(output.status.success() && said.contains("nothing is embedded: "), "{said}");
    assert_eq!(place.status()["current"]["missing_records"], 2);
}

#[test]
fn faulty_answers_are_errors_that_name_the_remedy() {
    let place = Place::new("");
    place.put(0..2);
    for (mood, expect) in [
        (Mood::Vector(json!([1.0, 2.0])), "Expected 8 dimensions, got 2"),
        (Mood::Vector(json!([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])), "a vector that is zero"),
        (Mood::Vector(json!([1e39, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])), "not JSON with finite numbers"),
        (Mood::Status(200, "{\"data\": [{\"embedding\": [NaN]}]}"), "is not JSON with finite numbers"),
        (Mood::Status(200, "<html>login</html>"), "it is HTML"),
        (Mood::Status(404, "{\"error\": {\"message\": \"no model m\"}}"), "status 404: no model m"),
        (Mood::TooFew, "0 vectors for 1 texts"),
        (Mood::Limited { retry_after: "7200" }, "limits requests; try again in 7200 s"),
    ] {
        place.service.set(mood.clone());
        let output = place.build();
        let said = stderr(&output);
        assert!(!output.status.success() && said.contains(expect), "{mood:?}: {said}");
    }
    assert_eq!(place.status()["current"], Value::Null);
    // The command waits as long as the service asks for.
    place.service.set(Mood::Limited { retry_after: "1" });
    let service = &place.service;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let before = service.server.requests().len();
            wait_until("a request came", || service.server.requests().len() > before);
            service.set(Mood::Healthy { salt: 0 });
        });
        stdout(&place.build());
    });
    // Another model with the same name is noticed before a record is sent.
    place.put(2..3);
    place.service.set(Mood::Healthy { salt: 5 });
    let sent = place.service.texts().len();
    let refused = stderr(&place.build());
    assert!(
        refused.contains("returns other vectors than before; run `fetchwell embeddings rebuild`"),
        "{refused}"
    );
    assert_eq!(place.service.texts().len(), sent);
    stdout(&place.run(&["embeddings", "rebuild"]));
    assert_eq!(place.status()["current"]["chunks"], 3);
}

/// Each server is a new one, because a failing model is left alone for a while.
#[tokio::test]
async fn searches_are_by_words_while_the_service_is_faulty() {
    let late = "does not answer within 1s";
    check_faulty("1s", &[(Mood::Silent, late), (Mood::Slow(Duration::from_secs(30)), late)]).await;
    let faulty = [
        (Mood::Limited { retry_after: "7200" }, "limits requests; try again in 7200 s"),
        (Mood::Status(503, "{}"), "status 503"),
        (Mood::Vector(json!([1.0, 2.0])), "Expected 8 dimensions, got 2"),
        (Mood::Vector(json!([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])), "a vector that is zero"),
        (Mood::Status(200, "{\"data\": [{\"embedding\": [NaN]}]}"), "is not JSON with finite numbers"),
        (Mood::Status(200, "<html>login</html>"), "it is HTML"),
        (Mood::TooFew, "1 vectors for 2 texts"),
    ];
    check_faulty("30s", &faulty).await;
}

/// Checks that searches are by words while the service is in each mood, and name the reason.
async fn check_faulty(query_timeout: &str, faulty: &[(Mood, &str)]) {
    let place = Place::new(&format!("query_timeout = \"{query_timeout}\"\nbackground = false\n"));
    place.put(0..20);
    stdout(&place.build());
    for (mood, expect) in faulty {
        place.service.set(mood.clone());
        let model = Model::over_stdio(["--config", text(&place.config())]).await;
        for mode in ["auto", "semantic", "hybrid"] {
            let found = model.call("search", json!({"query": "number 7", "mode": mode})).await;
            assert_eq!(found["results"][0]["title"], "Note 7", "{mood:?} {found}");
            let warnings = found["warnings"].as_array().cloned().unwrap_or_default();
            assert!(
                warnings.len() == 1 && warnings[0].as_str().unwrap().contains(expect),
                "{mood:?} {found}"
            );
        }
    }
}

/// Vectors of a model with another name, and of one that was replaced behind its name.
#[tokio::test]
async fn vectors_of_another_model_are_reported_and_not_searched() {
    let more = "query_timeout = \"30s\"\nbackground = false\n";
    let place = Place::new(more);
    place.put(0..20);
    stdout(&place.build());
    let status =
        || -> Value { serde_json::from_str(&stdout(&place.run(&["embeddings", "status"]))).unwrap() };
    let doctor = || stdout(&binary().args(["doctor", "--config", text(&place.config())]).output().unwrap());
    assert_eq!(status()["is_configured_model"], true);
    assert!(!doctor().contains("searched by words"), "{}", doctor());
    let check = async |model: &Model, remedy: &str| {
        for mode in ["auto", "semantic", "hybrid"] {
            let found = model.call("search", json!({"query": "number 7", "mode": mode})).await;
            assert_eq!(found["results"][0]["title"], "Note 7", "{found}");
            let warnings = found["warnings"].as_array().cloned().unwrap_or_default();
            assert_eq!(warnings.len(), 1, "{found}");
            assert!(warnings[0].as_str().unwrap().contains(remedy), "{found}");
        }
        assert!(doctor().contains(remedy), "{}", doctor());
    };
    let start = async || Model::over_stdio(["--config", text(&place.config())]).await;
    place.configure(&(place.service.table(true).replace("\"m\"", "\"other\"") + more));
    check(&start().await, "which is not the configured one; run `fetchwell embeddings build`").await;
    assert_eq!(status()["is_configured_model"], false);
    place.configure(&(place.service.table(true) + more));
    place.service.set(Mood::Healthy { salt: 5 });
    let model = start().await;
    check(&model, "returns other vectors than before; run `fetchwell embeddings rebuild`").await;
    // The running server searches the new vectors. Its first query after the rebuild recognizes the model again.
    stdout(&place.run(&["embeddings", "rebuild"]));
    model.call("search", json!({"query": "number 8", "mode": "semantic"})).await;
    let found = model.call("search", json!({"query": "number 9", "mode": "semantic"})).await;
    assert!(found["warnings"].is_null(), "{found}");
}

#[tokio::test]
async fn unusual_queries_are_answered_with_vectors() {
    let place = Place::new("query_timeout = \"30s\"\nbackground = false\n");
    place.put(0..20);
    let hebrew =
        json!({"stream": "notes", "key": "rtl", "data": {"title": "שלום 7", "body": "مرحبا בית world"}});
    stdout(&place.import(&(hebrew.to_string() + "\n"), &["--no-embed"]));
    stdout(&place.build());
    let source = SqliteStore::open("notes".parse().unwrap(), &place.store()).unwrap();
    let settings = EmbeddingSettings {
        place: ModelPlace::Http {
            endpoint: format!("{}/v1", place.service.server.url).parse::<Endpoint>().unwrap(),
            model: "m".to_owned(),
            dimensions: 8,
        },
        pad_to: None,
    };
    let embedder = QueryEmbedder::new(move || open_model(&settings, None, Persistence::OneMinute));
    let source = BoundSource::from(source.with_embedder(Arc::new(embedder), usize::MAX, GUARD));
    let long = (0..10_000).map(|number| format!("zz{number}")).collect::<Vec<_>>().join(" ");
    for query in [
        "?!",
        "-",
        "« »",
        "\u{200F}\u{202E}",
        "שלום مرحبا",
        "\u{202B}בית\u{202C} world ،",
        "number 😀 東京",
        &long,
    ] {
        for mode in [SearchMode::Auto, SearchMode::Semantic, SearchMode::Hybrid] {
            let query = SearchQuery { mode, ..SearchQuery::new(query, 10) };
            let page = source.search(&query).await.unwrap();
            assert!(page.meaning_problems.is_empty(), "{query:?} {page:?}");
            let has_words = query.text.words.contains(char::is_alphanumeric);
            assert!(has_words || page.hits.is_empty(), "{query:?} {page:?}");
            assert!(
                !has_words || mode != SearchMode::Semantic || page.hits.len() == 10,
                "{query:?} {page:?}"
            );
        }
    }
}

#[test]
fn a_service_that_is_down_is_named() {
    let place = Place::new("");
    place.put(0..2);
    place.service.server.close();
    let output = place.build();
    let said = stderr(&output);
    assert!(
        !output.status.success() && said.contains("at 127.0.0.1:") && said.contains("does not answer"),
        "{said}"
    );
}

#[cfg(unix)]
#[test]
fn a_killed_build_continues_without_loss_or_duplicates() {
    let place = Place::new("");
    place.put(0..600);
    place.service.set(Mood::Slow(Duration::from_millis(150)));
    for _ in 0..2 {
        let before = place.service.texts().len();
        let mut command = binary();
        command.args(["embeddings", "build", "--config", text(&place.config())]);
        let mut process = command.spawn().unwrap();
        wait_until("batches were embedded", || place.service.texts().len() >= before + 128);
        // The process cannot react to SIGKILL.
        process.kill().unwrap();
        process.wait().unwrap();
    }
    let status = place.status();
    assert!(status["current"].is_null() && status["building"]["chunks"].as_u64().unwrap() > 0, "{status}");
    place.service.set(Mood::Healthy { salt: 0 });
    stdout(&place.build());
    let status = place.status();
    assert_eq!((&status["current"]["chunks"], &status["building"]), (&json!(600), &Value::Null), "{status}");
    let counts = place.service.counts();
    assert_eq!(counts.len(), 600, "no record is lost");
    // Only the batches in progress at the two kills are sent again.
    let again: usize = counts.values().map(|count| count - 1).sum();
    assert!(again <= 2 * 64, "{again} texts were sent again");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_named_and_the_build_continues_after_it() {
    let place = Place::new("");
    place.put(0..300);
    let disk = place.folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let can_mount = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs"])
        .arg(&disk)
        .output();
    if !can_mount.is_ok_and(|output| output.status.success()) {
        return;
    }
    let script = "mount -t tmpfs -o size=1500k tmpfs \"$0\" && cp \"$1\"/notes.db \"$1\"/fetchwell.toml \"$0\" && \
        { dd if=/dev/zero of=\"$0\"/filler bs=4k 2>/dev/null; truncate -s -90000 \"$0\"/filler; \
        \"$2\" embeddings build --config \"$0\"/fetchwell.toml; echo \"code $?\"; rm \"$0\"/filler; \
        \"$2\" embeddings build --config \"$0\"/fetchwell.toml --json; \
        \"$2\" embeddings status --config \"$0\"/fetchwell.toml --json; }";
    let mut command = starter("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).arg(&disk);
    command.arg(place.folder.path()).arg(binary().get_program());
    let output = command.output().unwrap();
    let (said, printed) = (stderr(&output), String::from_utf8_lossy(&output.stdout).into_owned());
    assert!(said.contains("the disk of") && said.contains("is full"), "{said}{printed}");
    assert!(said.contains("run the command again: it continues"), "{said}");
    assert!(printed.contains("code 1"), "{printed}");
    let (_, after) = printed.split_once("code 1\n").unwrap();
    let values = serde_json::Deserializer::from_str(after).into_iter::<Value>();
    let status = values.last().unwrap().unwrap();
    assert_eq!(status["vectors"]["current"]["chunks"], 300, "{printed}");
}

#[test]
fn damaged_vectors_are_named_with_the_remedy() {
    let place = Place::new("");
    place.put(0..300);
    stdout(&place.build());
    let vectors = place.folder.path().join("notes.db-vectors");
    let healthy = std::fs::read(&vectors).unwrap();
    let middle = healthy.len() / 2;
    for damage in [0..4_096, 100..4_096, middle..healthy.len()] {
        let mut damaged = healthy.clone();
        damaged[damage.clone()].fill(0xA5);
        std::fs::write(&vectors, &damaged).unwrap();
        let doctor = binary().args(["doctor", "--config", text(&place.config())]).output().unwrap();
        for output in [place.run(&["embeddings", "status"]), place.build(), doctor] {
            let said = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
            assert!(!output.status.success() && said.contains(text(&vectors)), "{damage:?} {said}");
            let remedy =
                if damage.start == 0 { "rename or move it" } else { "run `fetchwell embeddings remove`" };
            assert!(said.contains(remedy), "{damage:?} {said}");
        }
        if damage.start == 0 {
            std::fs::remove_file(&vectors).unwrap();
        } else {
            stdout(&place.run(&["embeddings", "remove"]));
        }
        stdout(&place.build());
        assert_eq!(place.status()["current"]["chunks"], 300, "{damage:?}");
    }
}

#[test]
fn huge_and_empty_texts_are_embedded_within_bounds() {
    let place = Place::new("");
    let huge = "every word of this text counts. ".repeat(330_000);
    let blank = json!({"stream": "notes", "key": "n2", "data": {"body": " \n\t"}}).to_string() + "\n";
    let empty = json!({"stream": "notes", "key": "n3", "data": {}}).to_string() + "\n";
    stdout(&place.import(&(record(1, &huge) + &blank + &empty + &record(4, "")), &["--no-embed"]));
    stdout(&place.build());
    let status = place.status();
    let current = &status["current"];
    let chunks = current["chunks"].as_u64().unwrap();
    assert!((1_001..=1_005).contains(&chunks), "{status}");
    assert!(
        current["omitted_bytes"].as_u64().unwrap() > 5_000_000 && current["missing_records"] == 0,
        "{status}"
    );
    assert!(place.service.texts().iter().all(|text| !text.trim().is_empty() && text.len() < 8_000));
}

#[test]
fn folders_without_a_model_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("fetchwell.toml");
    let table = "[embedding]\nprovider = \"local\"\npath = \"model\"\n[rerank]\nprovider = \"local\"\npath = \"model\"\n";
    std::fs::write(&config, format!("[[source]]\nname = \"a\"\nstore = \"a.db\"\n{table}")).unwrap();
    crate::support::import_records(&folder.path().join("a.db"), "c", &records(0..2));
    let model = folder.path().join("model");
    let fixture =
        |file: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/embedding/tiny").join(file);
    let check = |expect: &str| {
        let output = fetchwell(["embeddings", "build", "--config", text(&config)]);
        let said = stderr(&output);
        assert!(!output.status.success() && said.contains(expect), "{said}");
        // `doctor` reports both models, and searches work without them.
        let checked = fetchwell(["doctor", "--config", text(&config)]);
        let checked = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert_eq!(checked.matches(expect).count(), 2, "{checked}");
        let found = fetchwell(["search", "note", "--config", text(&config)]);
        assert!(stdout(&found).contains("Note 1"), "{found:?}");
    };
    check("no model.onnx");
    std::fs::create_dir(&model).unwrap();
    std::fs::copy(fixture("model.onnx"), model.join("model.onnx")).unwrap();
    check("no tokenizer.json");
    std::fs::copy(fixture("tokenizer.json"), model.join("tokenizer.json")).unwrap();
    std::fs::write(model.join("model.onnx"), "\u{8}\u{8}not a model").unwrap();
    check("model.onnx cannot be used");
}

#[test]
#[ignore = "needs libfaketime: tests/redis/run provides it"]
fn faketime_shows_the_progress_of_a_slow_model_in_a_folder() {
    let place = Place::new("");
    place.put(0..3_000);
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/embedding/tiny");
    place.configure(&format!("[embedding]\nprovider = \"local\"\npath = \"{model}\"\n"));
    // Hours pass for the command, whose standard error is no terminal.
    let mut command = with_clocks("+0 x2000");
    let output = command.args(["embeddings", "build", "--config", text(&place.config())]).output().unwrap();
    let (said, summary) = (stderr(&output), stdout(&output));
    assert!(summary.contains("3,000 embedded; the vectors are complete"), "{summary}");
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines.len() >= 2, "{said}");
    for line in lines {
        assert!(line.contains(" of 3,000 chunks embedded"), "{said}");
        assert!(
            line.contains(" a second, ") && line.ends_with(" left")
                || line.contains("0 of 3,000 chunks embedded in "),
            "{said}"
        );
    }
}

/// Runs with a real model, which `tests/embedding/run` prepares. The expected cosine is that of ONNX Runtime for the
/// same files.
#[tokio::test]
#[ignore = "needs target/embedding/minilm, which tests/embedding/run makes"]
async fn minilm_gives_the_cosine_of_the_reference() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/embedding/minilm");
    let model = LocalModel::open(&folder, None).unwrap();
    assert_eq!((model.dimensions(), model.pieces().limit()), (384, 256));
    let texts = [
        "how does authentication work",
        "Authentication is handled via JWT tokens...",
        "The weather was cold and rainy.",
    ];
    let vectors = model.embed(&texts.map(str::to_owned), Purpose::Query).await.unwrap();
    let cosine = |at: usize| vectors[0].iter().zip(&vectors[at]).map(|(one, other)| one * other).sum::<f32>();
    assert!((cosine(1) - 0.6895).abs() < 0.0005, "{}", cosine(1));
    assert!(cosine(2) < 0.2, "{}", cosine(2));
}
