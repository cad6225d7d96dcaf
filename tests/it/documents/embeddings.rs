//! Projects with an embedding model: a service that fails in the middle of an import, and answers of a cache after changes.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};

use crate::support::{
    EmbeddingService, HttpServer, Model, Mood, binary, fetchwell, post, stderr, stdout, text,
};

/// Number of parts of a document. They are more than one batch of texts.
const PARTS: i64 = 90;

/// A project with the documents `a.md` to `e.md`, and an embedding service.
struct Place {
    folder: tempfile::TempDir,
    service: EmbeddingService,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap(), service: EmbeddingService::start() };
        fs::create_dir(place.origin()).unwrap();
        place.configure("m", "");
        stdout(
            &binary()
                .args(["project", "create", "default", "--store", text(&place.store())])
                .output()
                .unwrap(),
        );
        place
    }

    /// Writes a configuration with a model of the service and these tables.
    fn configure(&self, model: &str, more: &str) {
        let source = format!("[[source]]\nname = \"own\"\nstore = \"{}\"\n", text(&self.store()));
        let table = self.service.table(true).replace("\"m\"", &format!("\"{model}\""));
        let embedding = table + "pad_to = 1024\nbackground = false\nquery_timeout = \"30s\"\n";
        fs::write(self.config(), source + &embedding + more).unwrap();
    }

    fn write(&self, name: &str, word: &str) {
        let part = |number: i64| {
            let sentence = format!("{name} has words about item {number} in this part of the text. ");
            format!("## Part {number}\n\n{}\n\n", sentence.repeat(18))
        };
        let parts: String = (0..PARTS).map(part).collect();
        fs::write(
            self.origin().join(format!("{name}.md")),
            format!("{parts}The {word} is in the last part.\n"),
        )
        .unwrap();
    }

    fn origin(&self) -> PathBuf {
        self.folder.path().join("docs")
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("fetchwell.toml")
    }

    fn import(&self, arguments: &[&str]) -> Output {
        let (origin, store, config) = (self.origin(), self.store(), self.config());
        let command = [
            "import",
            "docs",
            text(&origin),
            "--project",
            "default",
            "--store",
            text(&store),
            "--config",
            text(&config),
        ];
        binary().args(command).args(arguments).output().unwrap()
    }

    /// Number of vectors by the path of the document.
    fn vectors(&self) -> BTreeMap<String, i64> {
        let sqlite = rusqlite::Connection::open(self.store()).unwrap();
        sqlite.execute("ATTACH ?1 AS v", [text(&self.folder.path().join("store.db-vectors"))]).unwrap();
        let sql =
            "SELECT d.path, count(*) FROM v.chunks c JOIN documents d ON d.record = c.record GROUP BY d.path";
        let mut statement = sqlite.prepare(sql).unwrap();
        let rows = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?)));
        rows.unwrap().map(Result::unwrap).collect()
    }

    async fn found(&self, query: &str) -> Value {
        let model = Model::over_stdio(["--profile", "docs", "--config", text(&self.config())]).await;
        model.call("search_docs", json!({"query": query})).await
    }
}

#[tokio::test]
async fn a_document_has_all_of_its_vectors_or_none() {
    let place = Place::new();
    for name in ["a", "b", "c", "d", "e"] {
        place.write(name, if name == "c" { "zebra" } else { "horse" });
    }
    // The service refuses one text of the third document, after it has embedded others.
    place.service.set(Mood::Refusing("zebra"));
    let output = place.import(&["--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["added"], output.status.code()), (&json!(5), Some(1)), "{output:?}");
    assert!(
        stderr(&output).contains("the documents are imported, and not all of them are embedded"),
        "{output:?}"
    );
    let before = place.vectors();
    assert_eq!(before.keys().collect::<Vec<_>>(), ["a.md", "b.md", "d.md", "e.md"]);
    assert!(before.values().all(|vectors| *vectors >= PARTS), "{before:?}");
    // A document without vectors is found by its words.
    place.service.set(Mood::Healthy { salt: 0 });
    let found = place.found("zebra").await;
    assert_eq!(found["results"][0]["path"], "c.md", "{found}");
    // The same command embeds the rest. Only the refused document is sent again.
    let again = place.import(&["--json"]);
    let report: Value = serde_json::from_str(&stdout(&again)).unwrap();
    assert_eq!((&report["added"], &report["files_read"]), (&json!(0), &json!(0)), "{report}");
    let after = place.vectors();
    assert_eq!(after.keys().collect::<Vec<_>>(), ["a.md", "b.md", "c.md", "d.md", "e.md"]);
    assert!(before.iter().all(|(path, vectors)| after[path] == *vectors), "{before:?} {after:?}");
    let counts = place.service.counts();
    let of_others =
        |text: &&String| ["a", "b", "d", "e"].iter().any(|name| text.contains(&format!("{name} has words")));
    let sent: Vec<_> = counts.keys().filter(of_others).map(|text| counts[text]).collect();
    assert!(sent.len() >= 300 && sent.iter().all(|count| *count == 1), "{sent:?}");
}

#[test]
fn sync_reads_its_store_and_model_from_a_configuration() {
    let place = Place::new();
    place.write("a", "zebra");
    stdout(&place.import(&[]));
    assert_eq!(place.vectors().keys().collect::<Vec<_>>(), ["a.md"]);
    place.write("b", "horse");
    fs::remove_file(place.origin().join("a.md")).unwrap();
    let config = place.config();
    let synced = stdout(&fetchwell(["sync", "default", "--prune", "--config", text(&config), "--json"]));
    let report: Value = serde_json::from_str(&synced).unwrap();
    assert_eq!((&report[0]["added"], &report[0]["deleted"]), (&json!(1), &json!(1)), "{report}");
    let vectors = place.vectors();
    assert!(vectors.keys().eq(["b.md"]) && vectors["b.md"] >= PARTS, "{vectors:?}");
}

#[test]
fn a_changed_configuration_ends_cached_answers() {
    let place = Place::new();
    place.write("a", "zebra");
    stdout(&place.import(&["--no-embed"]));
    let server = HttpServer::start(["--config", text(&place.config())]);
    let search = || {
        let body = json!({"query": "zebra", "project_id": "default"});
        let answer = post(&server.address, "/api/v1/search", &[], &body.to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["cache_hit"].as_bool().unwrap()
    };
    let reloads = || server.log().matches("configuration reloaded").count();
    assert_eq!([search(), search()], [false, true]);
    let rerank = "[rerank]\nprovider = \"http\"\nurl = \"http://127.0.0.1:9/v1\"\nmodel = \"r\"\n";
    for (number, model, more) in [(1, "other", ""), (2, "other", rerank), (3, "m", "")] {
        place.configure(model, more);
        server.wait_until("the file is reloaded", || reloads() == number);
        assert_eq!([search(), search()], [false, true], "{model} {more}");
    }
}

#[test]
fn the_view_of_chunks_has_the_columns_of_the_contract() {
    let place = Place::new();
    place.write("a", "zebra");
    stdout(&place.import(&["--no-embed"]));
    let sqlite = rusqlite::Connection::open(place.store()).unwrap();
    // The view of an earlier release is replaced by the next import.
    let old = "DROP VIEW chunks; CREATE VIEW chunks AS SELECT id, document_id FROM chunk_ranges";
    sqlite.execute_batch(old).unwrap();
    stdout(&place.import(&[]));
    let mut view = sqlite.prepare("SELECT * FROM chunks ORDER BY chunk_index").unwrap();
    assert_eq!(
        view.column_names().collect::<Vec<_>>(),
        [
            "id",
            "document_id",
            "project_id",
            "content",
            "embedding",
            "content_tsv",
            "chunk_index",
            "token_count",
            "metadata",
            "created_at"
        ]
    );
    let words: Vec<String> =
        view.query_map((), |row| row.get("content_tsv")).unwrap().map(Result::unwrap).collect();
    assert!(words[0].contains("## part 0\n\na has words about item 0"), "{}", words[0]);
    let settings = "SELECT settings FROM projects";
    let settings: String = sqlite.query_row(settings, (), |row| row.get(0)).unwrap();
    assert!(settings.starts_with(r#"{"embedding_model":""#), "{settings}");
    // The statement of the documentation finds one vector for each chunk.
    let documentation = include_str!("../../../docs/document-search.md");
    let (_, statement) = documentation.split_once("```sql\n").unwrap();
    let (statement, _) = statement.split_once("```").unwrap();
    let (attach, select) = statement.split_once('\n').unwrap();
    let vectors = place.folder.path().join("store.db-vectors");
    sqlite.execute_batch(&attach.replace("notes.db-vectors", text(&vectors))).unwrap();
    let mut select = sqlite.prepare(select.trim().trim_end_matches(';')).unwrap();
    let sizes = select.query_map((), |row| Ok(row.get::<_, Vec<u8>>("codes")?.len())).unwrap();
    let sizes: Vec<usize> = sizes.map(Result::unwrap).collect();
    assert!(sizes.iter().all(|size| *size == 2 * 1_024), "{sizes:?}");
    assert_eq!(sizes.len(), words.len());
}

#[test]
fn removing_vectors_removes_the_model_of_projects_also_without_their_file() {
    let place = Place::new();
    place.write("a", "zebra");
    let project = || -> (i64, Option<String>) {
        let sqlite = rusqlite::Connection::open(place.store()).unwrap();
        let sql = "SELECT corpus_version, settings ->> '$.embedding_model' FROM projects";
        sqlite.query_row(sql, (), |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
    };
    stdout(&place.import(&["--no-embed"]));
    let (store, config) = (place.store(), place.config());
    let build = || stdout(&fetchwell(["embeddings", "build", "--yes", "--config", text(&config)]));
    let remove = || stdout(&fetchwell(["embeddings", "remove", "--store", text(&store)]));
    for is_lost in [false, true] {
        build();
        let (version, model) = project();
        assert!(model.is_some());
        if is_lost {
            fs::remove_file(place.folder.path().join("store.db-vectors")).unwrap();
        }
        for _ in 0..2 {
            remove();
            assert_eq!(project(), (version + 1, None), "{is_lost}");
        }
    }
}
