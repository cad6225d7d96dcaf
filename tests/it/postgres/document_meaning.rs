//! Projects with equal documents and one model, in a file and in PostgreSQL. `tests/postgres/run` starts the servers.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::documents::has_pgvector;
use crate::support::stores::postgres::Database;
use crate::support::{FakeServer, HttpServer, Reply, binary, get, handbook, post, stderr, text};

/// Answers with vectors in which lanterns and lamps mean the same, and each length of other texts something else.
fn vectors(body: &str) -> Reply {
    let body: Value = serde_json::from_str(body).unwrap();
    let texts = body["input"].as_array().unwrap().iter().map(|text| text.as_str().unwrap());
    let vector = |(index, text): (usize, &str)| {
        let place = if text.contains("lantern") || text.contains("lamp") { 0 } else { 1 + text.len() % 31 };
        let numbers: Vec<u8> = (0..32).map(|at| u8::from(at == place)).collect();
        json!({"index": index, "embedding": numbers})
    };
    Reply::Json(200, json!({"data": texts.enumerate().map(vector).collect::<Vec<_>>()}).to_string())
}

/// A project in a store, behind a server.
struct Project {
    folder: tempfile::TempDir,
    server: HttpServer,
}

impl Project {
    /// Imports documents of one and of several chunks.
    fn new(service: &FakeServer, store: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("store.db");
        let store = store.unwrap_or_else(|| text(&file));
        let origin = folder.path().join("docs");
        let config = folder.path().join("fetchwell.toml");
        let part = |number: i64| {
            let sentence = format!("The harbour {number} opens at dawn for ships from island {number}. ");
            format!("## Harbour {number}\n\n{}\n\n", sentence.repeat(18))
        };
        fs::create_dir(&origin).unwrap();
        fs::write(origin.join("long.md"), format!("# Long\n\n{}", (0..12).map(part).collect::<String>()))
            .unwrap();
        // Its vector is far from those of others.
        fs::write(origin.join("solo.md"), "lantern ".repeat(60)).unwrap();
        handbook::import(&origin, Path::new(store));
        let table = handbook::embedding_table(service);
        fs::write(&config, format!("[[source]]\nname = \"own\"\nstore = \"{store}\"\n{table}")).unwrap();
        let built = ["embeddings", "build", "--yes", "--config", text(&config)];
        let built = binary().args(built).output().unwrap();
        assert!(built.status.success(), "{}", stderr(&built));
        let state = folder.path().join("state");
        let server = HttpServer::start(["--config", text(&config), "--state-dir", text(&state)]);
        Self { folder, server }
    }

    /// Returns path and number of each chunk that is found.
    fn found(&self, query: &str) -> Vec<(String, i64)> {
        let body = json!({"query": query, "project_id": "handbook", "top_k": 50});
        let answer = post(&self.server.address, "/api/v1/search", &[], &body.to_string());
        assert_eq!((answer.status, answer.header("search-warning")), (200, None), "{answer:?}");
        let found = answer.json();
        let chunk = |result: &Value| {
            let path = result["document_path"].as_str().unwrap().to_owned();
            (path, result["chunk_index"].as_i64().unwrap())
        };
        found["results"].as_array().unwrap().iter().map(chunk).collect()
    }

    fn settings(&self) -> Value {
        get(&self.server.address, "/api/v1/projects/handbook").json()["settings"].clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn equal_documents_are_found_by_meaning_in_both_stores() {
    let database = Database::create().await;
    if !has_pgvector(&database).await {
        return;
    }
    let service = FakeServer::start(|request| vectors(&request.body));
    let [file, database] = [None, Some(&*database.url)].map(|store| Project::new(&service, store));
    assert_eq!(file.settings(), database.settings());
    assert!(file.settings()["embedding_model"].is_string(), "{}", file.settings());
    // No document has a word of these queries, so all hits are by meaning; the last has none.
    for (query, paths) in [("lamp", vec!["solo.md"]), ("lamp glow", vec!["solo.md"]), ("zzqx", vec![])] {
        let (mut one, mut other) = (file.found(query), database.found(query));
        // Equal scores are in the order of ids, which are random.
        one.sort();
        other.sort();
        assert_eq!(one, other, "{query}");
        let mut found: Vec<&str> = one.iter().map(|(path, _)| path.as_str()).collect();
        found.dedup();
        assert_eq!(found, paths, "{query}");
    }
    for query in ["JWT tokens that expire", "authentication"] {
        assert_eq!(file.found(query).first(), database.found(query).first(), "{query}");
    }
    drop(file.folder);
}
