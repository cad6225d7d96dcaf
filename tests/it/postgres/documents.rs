//! Projects of documents in PostgreSQL, through the commands and a server. `tests/postgres/run` starts the servers.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::stores::postgres::Database;
use crate::support::{
    Answer, EmbeddingService, HttpServer, binary, fetchwell, get, handbook, post, stderr, stdout, text,
};

/// Returns true if the server has pgvector. Debian's version 15 has none.
pub(super) async fn has_pgvector(database: &Database) -> bool {
    let sql = "SELECT EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'vector')";
    database.client().await.query_one(sql, &[]).await.unwrap().get(0)
}

/// Runs a command on the store, and returns what it prints.
#[track_caller]
fn run(database: &Database, arguments: &[&str]) -> String {
    let output = binary().args(arguments).args(["--store", &database.url]).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    stdout(&output)
}

fn search(server: &HttpServer, query: &str) -> Answer {
    post(
        &server.address,
        "/api/v1/search",
        &[],
        &json!({"query": query, "project_id": "handbook"}).to_string(),
    )
}

/// Returns the paths of the documents of the results.
fn paths(found: &Value) -> Vec<&str> {
    let results = found["results"].as_array().unwrap_or_else(|| panic!("{found}"));
    results.iter().map(|result| result["document_path"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn documents_are_imported_searched_and_kept_current() {
    let database = Database::create().await;
    if !has_pgvector(&database).await {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let origin = folder.path().join("docs");
    handbook::import(&origin, Path::new(&database.url));
    let server =
        HttpServer::start(["--store", &database.url, "--state-dir", text(&folder.path().join("state"))]);
    let answer = search(&server, "how does authentication work");
    let found = answer.json();
    assert_eq!(paths(&found)[0], "references/authentication.md", "{found}");
    assert_eq!(found["results"][0]["category"], "references");
    let version = found["corpus_version"].as_i64().unwrap();
    assert_eq!(search(&server, "how does authentication work").json()["cache_hit"], true);
    // Feedback finds the search, which is in the history.
    let id = answer.header("search-id").unwrap();
    let feedback = format!("/api/v1/search/{id}/feedback");
    let given = post(&server.address, &feedback, &[], r#"{"feedback": "helpful"}"#);
    assert!((200..300).contains(&given.status), "{given:?}");
    // The document is a record, too.
    let record = search(&server, "queue 7 worker").json();
    let document = record["results"][0]["document_id"].as_str().unwrap().to_owned();
    let page =
        get(&server.address, &format!("/v1/streams/documents/records/{document}?connection_id=handbook"));
    assert_eq!(page.status, 200, "{}", page.text);
    assert!(page.text.contains("is drained by a worker"), "{}", page.text);
    // A changed, a new and a missing file.
    fs::write(origin.join("topic-3.md"), "# Topic 3\n\nThe zebra is new here.\n").unwrap();
    fs::write(origin.join("added.md"), "# Added\n\nA giraffe was added.\n").unwrap();
    fs::remove_file(origin.join("topic-4.md")).unwrap();
    let report: Value = serde_json::from_str(&run(&database, &["sync", "handbook", "--json"])).unwrap();
    assert_eq!(
        [&report[0]["added"], &report[0]["changed"], &report[0]["deleted"]],
        [&json!(1), &json!(1), &json!(1)],
        "{report}"
    );
    let again: Value = serde_json::from_str(&run(&database, &["sync", "handbook", "--json"])).unwrap();
    assert_eq!([&again[0]["added"], &again[0]["changed"]], [&json!(0), &json!(0)], "{again}");
    let zebra = search(&server, "zebra").json();
    assert_eq!(paths(&zebra), ["topic-3.md"], "{zebra}");
    assert!(zebra["corpus_version"].as_i64().unwrap() > version);
    assert_eq!(paths(&search(&server, "giraffe").json()), ["added.md"]);
    let shown: Value =
        serde_json::from_str(&run(&database, &["project", "show", "handbook", "--json"])).unwrap();
    assert_eq!(shown["categories"]["references"], 1, "{shown}");
    assert_eq!(shown["origin"], json!(text(&fs::canonicalize(&origin).unwrap())));
    run(&database, &["project", "set", "handbook", "--name", "Team handbook", "--history-days", "0"]);
    assert!(run(&database, &["project", "list"]).contains("Team handbook"));
    let kept: i64 = database
        .client()
        .await
        .query_one("SELECT count(*) FROM fetchwell.search_history", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(kept, 0, "a project without a history keeps no searches");
    run(&database, &["project", "remove", "handbook", "--yes"]);
    for table in ["projects", "documents", "chunks", "records", "texts", "imports"] {
        let sql = format!("SELECT count(*) FROM fetchwell.{table}");
        let left: i64 = database.client().await.query_one(&sql, &[]).await.unwrap().get(0);
        assert_eq!(left, 0, "{table}");
    }
    assert_eq!(search(&server, "zebra").status, 404);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn tables_of_documents_are_those_of_the_contract() {
    let database = Database::create().await;
    if !has_pgvector(&database).await {
        return;
    }
    run(&database, &["project", "create", "docs"]);
    let client = database.client().await;
    let columns = "SELECT string_agg(column_name || ' ' || udt_name, ', ' ORDER BY ordinal_position)
         FROM information_schema.columns WHERE table_schema = 'fetchwell' AND table_name = $1";
    for (table, expect) in [
        (
            "projects",
            "id uuid, slug varchar, name varchar, settings jsonb, corpus_version int4, created_at timestamptz, \
             updated_at timestamptz",
        ),
        (
            "documents",
            "id uuid, project_id uuid, path varchar, title varchar, content_hash varchar, category varchar, \
             metadata jsonb, created_at timestamptz, updated_at timestamptz",
        ),
        (
            "chunks",
            "id uuid, document_id uuid, project_id uuid, content text, embedding vector, content_tsv tsvector, \
             chunk_index int4, token_count int4, metadata jsonb, created_at timestamptz",
        ),
        (
            "search_history",
            "id uuid, project_id uuid, query text, query_embedding vector, result_ids _uuid, feedback varchar, \
             latency_ms int4, cache_hit bool, created_at timestamptz",
        ),
    ] {
        let found: String = client.query_one(columns, &[&table]).await.unwrap().get(0);
        assert_eq!(found, expect, "{table}");
    }
    let indexes = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'fetchwell' AND indexname = $1";
    for (index, expect) in [
        (
            "idx_chunks_embedding",
            "USING hnsw (embedding vector_cosine_ops) WITH (m='16', ef_construction='64')",
        ),
        ("idx_chunks_content_tsv", "USING gin (content_tsv)"),
        ("idx_chunks_project_id", "(project_id)"),
        ("idx_documents_project_category", "(project_id, category)"),
        ("idx_search_history_project", "(project_id, created_at DESC)"),
    ] {
        let found: String = client.query_one(indexes, &[&index]).await.unwrap().get(0);
        assert!(found.ends_with(expect), "{found}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn documents_are_found_by_their_vectors() {
    let database = Database::create().await;
    if !has_pgvector(&database).await {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let service = EmbeddingService::start();
    let config = folder.path().join("fetchwell.toml");
    let table = service.table(true) + "pad_to = 1024\nbackground = false\nquery_timeout = \"30s\"\n";
    let source = format!("[[source]]\nname = \"team\"\nstore = \"{}\"\n", database.url);
    fs::write(&config, source + &table).unwrap();
    handbook::import(&folder.path().join("docs"), Path::new(&database.url));
    let embeddings = |command: &[&str]| {
        let output =
            binary().arg("embeddings").args(command).args(["--config", text(&config)]).output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", stderr(&output));
        stdout(&output)
    };
    assert!(embeddings(&["status"]).contains("21 chunks have no vectors"));
    assert!(embeddings(&["build", "--yes"]).contains("21 embedded"));
    assert!(embeddings(&["status"]).contains("21 chunks of documents of 1024 dimensions"));
    assert_eq!(service.texts().len(), 21);
    assert!(embeddings(&["build", "--yes"]).contains("0 chunks"), "nothing is embedded twice");
    let server =
        HttpServer::start(["--config", text(&config), "--state-dir", text(&folder.path().join("state"))]);
    let stages =
        get(&server.address, "/api/v1/search/stream?query=authentication%20tokens&project_id=handbook");
    assert!(stages.text.contains("event: embedding"), "{}", stages.text);
    let found = search(&server, "JWT tokens that expire").json();
    assert_eq!(paths(&found)[0], "references/authentication.md", "{found}");
    let labels = "SELECT count(DISTINCT metadata ->> 'embedding') FROM fetchwell.chunks";
    let client = database.client().await;
    assert!(embeddings(&["rebuild", "--yes"]).contains("21 embedded"));
    assert_eq!(client.query_one(labels, &[]).await.unwrap().get::<_, i64>(0), 1, "two models never mix");
    embeddings(&["remove"]);
    assert!(embeddings(&["status"]).contains("no vectors are searched"));
    assert_eq!(paths(&search(&server, "JWT tokens").json())[0], "references/authentication.md");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn without_pgvector_records_work_and_projects_are_refused() {
    let database = Database::create().await;
    if has_pgvector(&database).await {
        return;
    }
    database.import("c", "{\"stream\":\"s\",\"key\":\"k\",\"data\":{\"title\":\"An invoice\"}}\n");
    let server = HttpServer::start(["--store", &database.url]);
    let hits = get(&server.address, "/v1/search?q=invoice");
    assert_eq!(hits.json()["data"].as_array().map(Vec::len), Some(1), "{}", hits.text);
    let refused = search(&server, "invoice");
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.text.contains("install pgvector 0.8.0"), "{refused:?}");
    for command in [
        vec!["project", "create", "docs"],
        vec!["import", "docs", env!("CARGO_MANIFEST_DIR"), "--project", "docs"],
        vec!["project", "show", "docs"],
    ] {
        let output = binary().args(&command).args(["--store", &database.url]).output().unwrap();
        assert!(!output.status.success(), "{command:?}");
        assert!(stderr(&output).contains("CREATE EXTENSION vector"), "{command:?}: {}", stderr(&output));
    }
    let doctor = fetchwell(["doctor", "--store", &database.url]);
    assert!(stdout(&doctor).contains("the server has no pgvector"), "{doctor:?}");
}
