//! Projects with equal documents and one model, in a file and in PostgreSQL. `tests/postgres/run` starts the servers.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::documents::has_pgvector;
use crate::support::stores::postgres::Database;
use crate::support::{FakeServer, HttpServer, Reply, binary, get, handbook, post, stderr, text};

/// Answers with vectors of the words of texts. Lanterns and lamps mean the same, and `zzqx` has nothing in common with others.
fn vectors(body: &str) -> Reply {
    let body: Value = serde_json::from_str(body).unwrap();
    let texts = body["input"].as_array().unwrap().iter().map(|text| text.as_str().unwrap());
    let vector = |(index, text): (usize, &str)| {
        let mut numbers = [0_u32; 32];
        for word in text.split_whitespace() {
            let sum = word.bytes().fold(0, |sum, byte| sum * 31 % 1_009 + usize::from(byte));
            let place = match word {
                "lantern" | "lamp" => 0,
                "zzqx" => 31,
                _ => 1 + sum % 30,
            };
            numbers[place] += 1;
        }
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
        fs::create_dir(origin.join("research")).unwrap();
        fs::write(origin.join("research/beacon.md"), "lantern beacon ".repeat(30)).unwrap();
        fs::write(origin.join("research/dusk.md"), "evening ".repeat(60)).unwrap();
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

    /// Returns path and number of each chunk that is found in a category or in all. Equal scores are in the order of ids,
    /// which are random, so the chunks are sorted.
    fn found(&self, query: &str, category: Option<&str>) -> Vec<(String, i64)> {
        let body = json!({"query": query, "project_id": "handbook", "category": category, "top_k": 20});
        let answer = post(&self.server.address, "/api/v1/search", &[], &body.to_string());
        assert_eq!((answer.status, answer.header("search-warning")), (200, None), "{answer:?}");
        let found = answer.json();
        let chunk = |result: &Value| {
            let path = result["document_path"].as_str().unwrap().to_owned();
            (path, result["chunk_index"].as_i64().unwrap())
        };
        let mut found: Vec<_> = found["results"].as_array().unwrap().iter().map(chunk).collect();
        found.sort();
        found
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
    // (query, category, paths of the hits); no paths if only the equality of both stores is checked.
    let queries = [
        // No document has a word of these, so all hits are by meaning.
        ("lamp", None, Some(vec!["research/beacon.md", "solo.md"])),
        ("zzqx", None, Some(vec![])),
        // Among two documents none stands out, but among all of the project one does.
        ("lamp", Some("research"), Some(vec!["research/beacon.md"])),
        ("zzqx", Some("research"), Some(vec![])),
        ("lamp", Some("references"), Some(vec![])),
        ("lamp glow", None, None),
        // Words rank these documents, and nearness chooses their chunks.
        ("harbour dawn", None, None),
        ("harbour dawn", Some("general"), None),
        ("ships from island 7", None, None),
        ("how does the worker drain a queue", None, None),
        ("evening lamp", Some("research"), None),
        ("JWT tokens that expire", None, None),
        ("JWT tokens that expire", Some("references"), Some(vec!["references/authentication.md"])),
        ("authentication", None, None),
    ];
    let mut differences = Vec::new();
    for (query, category, paths) in queries {
        let [one, other] = [&file, &database].map(|project| project.found(query, category));
        let mut found: Vec<&str> = one.iter().map(|(path, _)| path.as_str()).collect();
        found.dedup();
        if one != other || paths.is_some_and(|paths| found != paths) {
            differences.push((query, category, one, other));
        }
    }
    assert!(differences.is_empty(), "{differences:#?}");
    drop(file.folder);
}
