//! Vectors of records in PostgreSQL, through the commands and a server. `tests/postgres/run` starts the servers. The tests of
//! `search::by_meaning` run on a database, too.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::stores::postgres::Database;
use crate::support::{
    EmbeddingService, FakeServer, HttpServer, Mood, Reply, binary, fetchwell, get, handbook, stderr, stdout,
    text,
};

/// Longest wait for an event in the background. A server starts to embed after 2 s.
const GUARD: Duration = Duration::from_secs(60);

/// A database with a service and a configuration of both.
struct Place {
    database: Database,
    folder: tempfile::TempDir,
    service: EmbeddingService,
}

impl Place {
    /// Creates a database, unless its server has no pgvector, as Debian's version 15.
    async fn new(more: &str) -> Option<Self> {
        let database = Database::create().await;
        let sql = "SELECT EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'vector')";
        if !database.client().await.query_one(sql, &[]).await.unwrap().get::<_, bool>(0) {
            return None;
        }
        let place =
            Self { database, folder: tempfile::tempdir().unwrap(), service: EmbeddingService::start() };
        place.configure("", &format!("background = false\n{more}"));
        Some(place)
    }

    /// Writes a configuration with keys of the source and of the model.
    fn configure(&self, source: &str, embedding: &str) {
        let store = format!("[[source]]\nname = \"team\"\nstore = \"{}\"\n{source}", self.database.url);
        let table = self.service.table(true) + "query_timeout = \"30s\"\n" + embedding;
        fs::write(self.config(), store + &table).unwrap();
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("fetchwell.toml")
    }

    #[track_caller]
    fn run(&self, command: &[&str]) -> Value {
        let output = binary().args(command).args(["--config", text(&self.config()), "--json"]).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{command:?}: {}", stderr(&output));
        serde_json::from_str(&stdout(&output)).unwrap()
    }

    #[track_caller]
    fn embeddings(&self, command: &str) -> Value {
        self.run(&["embeddings", command])
    }

    /// Returns the state of the vectors of records.
    #[track_caller]
    fn status(&self) -> Value {
        self.embeddings("status")["vectors"]["records"].take()
    }

    /// Returns the names of the tables of vectors.
    async fn tables(&self) -> Vec<String> {
        let sql = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'record_vectors_%' ORDER BY oid";
        let rows = self.database.client().await.query(sql, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Counts the rows of the only table of vectors.
    async fn rows(&self) -> i64 {
        let tables = self.tables().await;
        let [table] = tables.as_slice() else { panic!("{tables:?}") };
        let sql = format!("SELECT count(*) FROM fetchwell.{table}");
        self.database.client().await.query_one(&sql, &[]).await.unwrap().get(0)
    }

    /// Searches with the command.
    fn search(&self, query: &str, mode: &str) -> Value {
        self.run(&["search", query, "--mode", mode, "--limit", "10"])
    }
}

fn record(stream: &str, number: usize, body: &str) -> String {
    let data = json!({"title": format!("Note {number}"), "body": body});
    json!({"stream": stream, "key": format!("n{number}"), "data": data}).to_string() + "\n"
}

fn records(numbers: std::ops::Range<usize>) -> String {
    numbers.map(|number| record("notes", number, &format!("text of the note with number {number}"))).collect()
}

fn deletion(number: usize) -> String {
    json!({"stream": "notes", "key": format!("n{number}"), "op": "delete"}).to_string() + "\n"
}

/// Returns the keys of hits in their order.
fn keys(found: &Value) -> Vec<String> {
    let hits = found["results"].as_array().unwrap_or_else(|| panic!("{found}"));
    let id = |hit: &Value| hit["id"].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
    hits.iter().map(id).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn builds_follow_changes_and_vectors_follow_deletions() {
    let Some(place) = Place::new("").await else { return };
    place.database.import("c", &records(0..70));
    assert_eq!(place.status()["current"], Value::Null);
    assert_eq!(place.run(&["embeddings", "build", "--dry-run"])["estimate"]["to_embed"], 70);
    assert_eq!(place.embeddings("build")["embedded"], 70);
    let status = place.status();
    assert_eq!([&status["current"]["chunks"], &status["current"]["missing_records"]], [70, 0], "{status}");
    assert_eq!(status["scan"], "index", "{status}");
    // Vectors of a deleted record go with it, and those of a changed one are replaced by the next build.
    place.database.import("c", &(records(70..73) + &record("notes", 8, "another text") + &deletion(7)));
    assert_eq!(place.rows().await, 69);
    assert_eq!(place.status()["current"]["missing_records"], 4);
    assert_eq!(place.embeddings("build")["embedded"], 4);
    assert_eq!(place.rows().await, 72);
    // A text that another record had is not sent again.
    place.database.import("d", &record("letters", 8, "another text"));
    assert_eq!(place.embeddings("build")["embedded"], 0);
    assert!(place.service.counts().values().all(|count| *count == 1), "each text is sent once");
    assert_eq!(place.embeddings("build")["chunks"], 0, "nothing is left");
    // A removed connection leaves no vector.
    let removed = fetchwell(["remove", "d", "--yes", "--store", &place.database.url]);
    assert!(removed.status.success(), "{removed:?}");
    assert_eq!(place.rows().await, 72);
    assert_eq!(place.status()["current"]["missing_records"], 0);
    assert_eq!(place.embeddings("remove")["removed"], true);
    assert_eq!((place.tables().await, &place.status()["current"]), (Vec::new(), &Value::Null));
    assert_eq!(place.embeddings("remove")["removed"], false);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn imports_embed_their_records() {
    let Some(place) = Place::new("").await else { return };
    let file = place.folder.path().join("records.ndjson");
    let import = |more: &[&str]| {
        let into = ["import", "records", text(&file), "--connection", "c", "--store", &place.database.url];
        let output =
            binary().args(into).args(["--config", text(&place.config())]).args(more).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        place.status()["current"]["chunks"].take()
    };
    fs::write(&file, records(0..20)).unwrap();
    assert_eq!(import(&["--no-embed"]), Value::Null);
    fs::write(&file, records(20..30)).unwrap();
    assert_eq!(import(&[]), 30);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn a_rebuild_is_searched_after_it_is_complete() {
    let Some(place) = Place::new("").await else { return };
    place.database.import("c", &records(0..40));
    place.embeddings("build");
    let before = place.tables().await;
    // A model that was changed behind its name is not mixed with the earlier one.
    place.service.set(Mood::Healthy { salt: 1 });
    let mixed = binary().args(["embeddings", "build", "--config", text(&place.config())]).output().unwrap();
    assert!(stderr(&mixed).contains("fetchwell embeddings rebuild"), "{mixed:?}");
    let by_words = binary()
        .args(["search", "number 7", "--mode", "hybrid", "--config", text(&place.config())])
        .output()
        .unwrap();
    assert!(format!("{by_words:?}").contains("fetchwell embeddings rebuild"), "{by_words:?}");
    // A text that the model refuses is left out, and tried again by the next build.
    place.service.set(Mood::Refusing("number 7"));
    let refused = binary().args(["embeddings", "rebuild", "--config", text(&place.config())]).output();
    assert!(stderr(refused.as_ref().unwrap()).contains("refuses the text of 1 record"), "{refused:?}");
    let after = place.tables().await;
    assert!(after.len() == 1 && after != before, "the rebuild has a table of its own: {after:?}");
    let status = place.status();
    assert_eq!([&status["current"]["chunks"], &status["current"]["missing_records"]], [39, 1], "{status}");
    place.service.set(Mood::Healthy { salt: 0 });
    place.embeddings("build");
    let status = place.status();
    assert_eq!([&status["current"]["chunks"], &status["current"]["missing_records"]], [40, 0], "{status}");
    assert_eq!(place.tables().await, after);
}

/// The vectors that are searched stay until those of a rebuild, which goes on where it stopped, are complete.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn an_interrupted_rebuild_is_continued_and_searches_go_on_meanwhile() {
    let Some(place) = Place::new("pad_to = 1024\n").await else { return };
    place.database.import("c", &records(0..40));
    handbook::import(&place.folder.path().join("docs"), Path::new(&place.database.url));
    assert_eq!(place.embeddings("build")["embedded"], 40 + 21);
    let client = place.database.client().await;
    let labels = "SELECT string_agg(DISTINCT metadata ->> 'embedding', ',') FROM fetchwell.chunks";
    let label: String = client.query_one(labels, &[]).await.unwrap().get(0);
    let refuse = |table: &str| {
        format!(
            "CREATE TRIGGER refused BEFORE UPDATE ON fetchwell.{table} FOR EACH STATEMENT EXECUTE FUNCTION public.refuse()"
        )
    };
    let function = "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'refused by the test'; END $$";
    client.batch_execute(function).await.unwrap();
    let query = "Note 7 text of the note with number 7";
    // Texts of records and documents, without the query.
    let sent = || place.service.texts().iter().filter(|text| *text != query).count();
    // The first rebuild ends before the new vectors of records are searched, and the next one before those of documents are.
    for (table, expect) in [("vector_generations", 61 + 40), ("chunks", 61 + 40 + 61)] {
        client.batch_execute(&refuse(table)).await.unwrap();
        let ended =
            binary().args(["embeddings", "rebuild", "--config", text(&place.config())]).output().unwrap();
        assert!(!ended.status.success(), "{ended:?}");
        client.batch_execute(&format!("DROP TRIGGER refused ON fetchwell.{table}")).await.unwrap();
        assert_eq!(sent(), expect, "{table}");
        assert_eq!(keys(&place.search(query, "semantic")).len(), 10);
        let found: String = client.query_one(labels, &[]).await.unwrap().get(0);
        assert_eq!(found, label, "the vectors of documents are the earlier ones");
    }
    let status = place.embeddings("status");
    assert_eq!(status["vectors"]["building"]["chunks"], 21, "{status}");
    assert_eq!(place.embeddings("build")["embedded"], 0, "what was made is not sent again");
    assert_eq!(sent(), 61 + 40 + 61);
    let found: String = client.query_one(labels, &[]).await.unwrap().get(0);
    assert!(found != label && !found.contains(','), "two models never mix: {found}");
    let status = place.embeddings("status");
    assert_eq!(status["vectors"]["building"], Value::Null, "{status}");
    assert_eq!(status["vectors"]["models"][0]["chunks"], 21, "{status}");
    // Hashes of documents are removed with the vectors of models.
    place.embeddings("remove");
    let left = "SELECT count(*) FROM fetchwell.chunks WHERE public.vector_norm(embedding) > 0";
    assert_eq!(client.query_one(left, &[]).await.unwrap().get::<_, i64>(0), 0);
    assert_eq!(place.embeddings("build")["embedded"], 40 + 21);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn a_server_embeds_in_the_background_and_searches_meanwhile() {
    let Some(place) = Place::new("").await else { return };
    place.configure("", "");
    place.database.import("c", &records(0..100));
    let state = text(&place.folder.path().join("state")).to_owned();
    let server = HttpServer::start(["--config", text(&place.config()), "--state-dir", &state]);
    // Another replica takes turns with the first one.
    let other = HttpServer::start(["--config", text(&place.config()), "--state-dir", &(state + "2")]);
    let health = |server: &HttpServer| get(&server.address, "/health").json();
    let wait_until = |what: &str, is_so: &dyn Fn() -> bool| {
        let started = Instant::now();
        while !is_so() {
            assert!(started.elapsed() < GUARD, "waited in vain until {what}: {}", health(&server));
            std::thread::park_timeout(Duration::from_millis(50));
        }
    };
    let is_complete = || {
        [&server, &other].iter().all(|server| health(server)["embeddings"][0]["state"] == "complete")
            && place.status()["current"]["chunks"] == 100
    };
    wait_until("all records are embedded", &is_complete);
    assert!(place.service.counts().values().all(|count| *count == 1), "each text is sent once");
    let pgvector = health(&server)["backends"][0]["pgvector"].take();
    assert_eq!(pgvector["state"], "present", "{pgvector}");
    let found = get(&server.address, "/v1/search?q=number%207&mode=semantic");
    assert_eq!(found.json()["retrieval_mode"], "semantic", "{}", found.text);
    assert_eq!(found.json()["meta"]["warnings"], json!([]), "{}", found.text);
    place.database.import("c", &(records(100..103) + &record("notes", 8, "another text") + &deletion(7)));
    wait_until("changes are embedded", &|| place.status()["current"]["chunks"] == 102);
    let log = server.stop();
    assert!(log.contains("pgvector"), "the start names the extension: {log}");
    assert!(!log.contains("text of the note"), "no text of a record is in the log: {log}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn text_of_hidden_streams_is_not_sent() {
    let Some(place) = Place::new("").await else { return };
    place.configure("streams = [\"notes\"]\n", "background = false\n");
    place.database.import("c", &(records(0..5) + &record("secrets", 1, "the hidden one")));
    assert_eq!(place.embeddings("build")["embedded"], 5);
    assert!(place.service.texts().iter().all(|text| !text.contains("hidden")));
    assert_eq!(place.status()["current"]["missing_records"], 0);
    // A configuration that shows the stream embeds its records later.
    place.configure("", "background = false\n");
    assert_eq!(place.status()["current"]["missing_records"], 1);
    assert_eq!(place.embeddings("build")["embedded"], 1);
}

/// Returns random numbers between -1 and 1.
fn random(seed: usize) -> impl Iterator<Item = f32> {
    let next =
        |state: u64| state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let seed = u64::try_from(seed).unwrap().wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let states = std::iter::successors(Some(seed), move |state| Some(next(*state))).skip(3);
    states.map(|state| f32::from(u16::try_from(state >> 48).unwrap()) / 32_768.0 - 1.0)
}

/// Returns the vector of a text: a random one of its item, with 32 dimensions.
fn vector_of_item(text: &str) -> Vec<f32> {
    let item = text.split("item").nth(1).and_then(|rest| rest.split_whitespace().next());
    random(item.and_then(|number| number.parse().ok()).unwrap_or(1_000_000)).take(32).collect()
}

/// In a large scope the index is asked. It finds what a scan of all vectors finds, also in a part of the scope.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn large_scopes_are_searched_by_the_index() {
    let Some(place) = Place::new("").await else { return };
    let service = FakeServer::start(|request| {
        let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let texts = body["input"].as_array().cloned().unwrap_or_default();
        let vectors = texts.iter().enumerate().map(|(index, text)| {
            json!({"index": index, "embedding": vector_of_item(text.as_str().unwrap_or_default())})
        });
        Reply::Json(200, json!({"data": vectors.collect::<Vec<_>>(), "model": "items"}).to_string())
    });
    let settings = format!(
        "[[source]]\nname = \"team\"\nstore = \"{}\"\n[embedding]\nprovider = \"http\"\nurl = \"{}/v1\"\n\
         model = \"items\"\ndimensions = 32\nbackground = false\nquery_timeout = \"30s\"\n",
        place.database.url, service.url
    );
    fs::write(place.config(), settings).unwrap();
    let line = |number: usize| {
        let words: Vec<String> =
            random(number + 9_999).take(12).map(|word| format!("word{:.0}", word * 1e4)).collect();
        let stream = if number.is_multiple_of(2) { "letters" } else { "notes" };
        record(stream, number, &format!("item{number} {}", words.join(" ")))
    };
    place.database.import("c", &(0..11_000).map(line).collect::<String>());
    place.embeddings("build");
    assert_eq!(place.status()["scan"], "index");
    let table = place.tables().await.remove(0);
    let client = place.database.client().await;
    // The table is read as a whole.
    client.batch_execute("SET enable_indexscan = off; SET search_path = public").await.unwrap();
    let (mut found, mut expected) = (0, 0);
    for number in [16, 4_320, 7_777, 9_000, 10_998] {
        for (operator, streams) in [("", "'letters', 'notes'"), (" stream:letters", "'letters'")] {
            let query = format!("item{number}");
            let sql = format!(
                "SELECT t.key FROM fetchwell.{table} v JOIN fetchwell.texts t ON t.id = v.record
                 JOIN fetchwell.streams s ON s.id = t.stream WHERE s.name IN ({streams})
                 ORDER BY v.embedding <=> $1::text::vector LIMIT 10"
            );
            let vector = format!("{:?}", vector_of_item(&query));
            let expect = client.query(&sql, &[&vector]).await.unwrap();
            let expect: Vec<String> = expect.iter().map(|row| row.get(0)).collect();
            let nearest = keys(&place.search(&format!("{query}{operator}"), "semantic"));
            assert_eq!(nearest.first(), expect.first(), "{query}{operator}");
            assert_eq!(nearest.len(), 10, "{query}{operator}");
            found += expect.iter().filter(|key| nearest.contains(key)).count();
            expected += expect.len();
        }
    }
    assert!(found * 100 >= expected * 97, "{found} of the {expected} nearest records");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn many_dimensions_are_stored_in_half_precision_or_without_an_index() {
    for (dimensions, scan, said) in
        [(2_500, "half_precision_index", "half precision"), (4_100, "exact", "without an index")]
    {
        let Some(place) = Place::new(&format!("pad_to = {dimensions}\n")).await else { return };
        place.database.import("c", &records(0..30));
        assert_eq!(place.embeddings("build")["embedded"], 30);
        assert_eq!(place.status()["scan"], scan);
        place.database.import("c", &record("notes", 99, "amber amber amber basalt"));
        assert_eq!(place.embeddings("build")["chunks"], 1);
        assert_eq!(keys(&place.search("Note 99 amber amber amber basalt", "semantic"))[0], "n99");
        let doctor =
            binary().args(["doctor", "--config", text(&place.config())]).output().map(|out| stdout(&out));
        assert!(doctor.as_ref().unwrap().contains(said), "{doctor:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn without_pgvector_searches_are_by_words_and_name_the_remedy() {
    let database = Database::create().await;
    let client = database.client().await;
    let sql = "SELECT EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'vector')";
    let is_available: bool = client.query_one(sql, &[]).await.unwrap().get(0);
    let service = EmbeddingService::start();
    let folder = tempfile::tempdir().unwrap();
    // A server with the extension is used by a role that may not create it.
    let url = if is_available {
        client.batch_execute("CREATE SCHEMA fetchwell").await.unwrap();
        database.role(&format!("GRANT ALL ON SCHEMA fetchwell TO ROLE_NAME; GRANT CREATE ON DATABASE {} TO ROLE_NAME; ALTER SCHEMA fetchwell OWNER TO ROLE_NAME", database.name)).await
    } else {
        database.url.clone()
    };
    let file = folder.path().join("records.ndjson");
    fs::write(&file, records(0..5)).unwrap();
    let import = ["import", "records", text(&file), "--connection", "c", "--store", &url];
    assert!(fetchwell(import).status.success());
    let config = folder.path().join("fetchwell.toml");
    let source = format!("[[source]]\nname = \"team\"\nstore = \"{url}\"\n");
    fs::write(&config, source + &service.table(true) + "query_timeout = \"30s\"\n").unwrap();
    let (state, remedy) = if is_available {
        ("not_created", "CREATE EXTENSION vector")
    } else {
        ("absent", "install pgvector 0.8.0")
    };
    let server = HttpServer::start(["--config", text(&config), "--state-dir", text(folder.path())]);
    let found = get(&server.address, "/v1/search?q=number&mode=hybrid");
    assert_eq!(found.json()["data"].as_array().map(Vec::len), Some(5), "{}", found.text);
    assert!(found.text.contains(remedy), "{}", found.text);
    let plain = get(&server.address, "/v1/search?q=number");
    assert_eq!(plain.json()["data"].as_array().map(Vec::len), Some(5), "{}", plain.text);
    let health = get(&server.address, "/health").json();
    let pgvector = &health["backends"][0]["pgvector"];
    assert_eq!(pgvector["state"], state, "{health}");
    assert!(pgvector["remedy"].as_str().unwrap().contains(remedy), "{health}");
    let doctor = binary().args(["doctor", "--config", text(&config)]).output().unwrap();
    assert!(String::from_utf8_lossy(&doctor.stdout).contains(remedy), "{doctor:?}");
    for command in ["build", "status", "remove"] {
        let output = binary().args(["embeddings", command, "--config", text(&config)]).output().unwrap();
        assert!(!output.status.success() && stderr(&output).contains(remedy), "{command}: {output:?}");
    }
    let started = Instant::now();
    while get(&server.address, "/health").json()["embeddings"][0]["state"] != "failing" {
        assert!(started.elapsed() < GUARD, "the background build does not say that it fails");
        std::thread::park_timeout(Duration::from_millis(50));
    }
    let log = server.stop();
    assert!(log.contains(remedy), "the start names the remedy: {log}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn records_without_vectors_are_found_by_words_beside_documents() {
    let Some(place) = Place::new("pad_to = 1024\n").await else { return };
    place
        .database
        .import("notes", &json!({"stream": "s", "key": "k", "data": {"text": "an airship"}}).to_string());
    handbook::import(&place.folder.path().join("docs"), Path::new(&place.database.url));
    place.embeddings("build");
    place.database.client().await.execute("DELETE FROM fetchwell.vector_generations", &[]).await.unwrap();
    for mode in ["semantic", "hybrid"] {
        let mut search = binary();
        search.args(["search", "airship", "--mode", mode, "--config", text(&place.config())]);
        let output = search.output().unwrap();
        assert!(stdout(&output).contains("an airship"), "{output:?}");
        let shown = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
        assert!(shown.contains("records are found by words"), "{shown}");
    }
}
