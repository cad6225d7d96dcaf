//! `GET /api/v1/documents` over a real socket, and streams with reserved paths.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::support::handbook::{Site, refused};
use crate::support::{HttpServer, encoded, fetchwell, get, import_records, stderr, stdout, text};

fn list(site: &Site, query: &str) -> Value {
    let answer = get(&site.server.address, &format!("/api/v1/documents?project_id=handbook{query}"));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

fn paths(page: &Value) -> Vec<String> {
    let documents = page["documents"].as_array().unwrap();
    documents.iter().map(|document| document["path"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn documents_are_listed_by_pages_in_the_order_of_their_paths() {
    let site = Site::new();
    let whole = list(&site, "");
    let expect = paths(&whole);
    assert_eq!((expect.len(), &whole["next_cursor"]), (21, &Value::Null));
    assert!(expect.is_sorted());
    for limit in [1, 7, 20, 21, 22] {
        let (mut walked, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = list(&site, &format!("&limit={limit}{cursor}"));
            assert!(paths(&page).len() <= limit);
            walked.extend(paths(&page));
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(walked, expect, "{limit}");
    }
    let document = &whole["documents"][0];
    let keys: Vec<&String> = document.as_object().unwrap().keys().collect();
    let columns = [
        "id",
        "project_id",
        "path",
        "title",
        "content_hash",
        "category",
        "metadata",
        "created_at",
        "updated_at",
    ];
    assert_eq!(keys, columns);
    assert_eq!(
        (&document["path"], &document["title"], &document["category"]),
        (&json!("references/authentication.md"), &json!("Authentication Guide"), &json!("references"))
    );
    assert_eq!(paths(&list(&site, "&category=references")), ["references/authentication.md"]);
    assert_eq!(list(&site, "&category=intent"), json!({"documents": [], "next_cursor": null}));
    // One document by its path or id.
    let id = document["id"].as_str().unwrap();
    for named in
        ["path=references/authentication.md", "path=references%2Fauthentication.md", &format!("id={id}")]
    {
        assert_eq!(list(&site, &format!("&{named}")), *document, "{named}");
    }
}

#[test]
fn invalid_requests_for_documents_are_refused() {
    let site = Site::new();
    let cursor = list(&site, "&limit=1")["next_cursor"].as_str().unwrap().to_owned();
    for (query, status, code) in [
        ("project_id=none".to_owned(), 404, "PROJECT_NOT_FOUND"),
        ("project_id=".to_owned(), 400, "INVALID_ARGUMENT"),
        ("project_id=handbook&path=none.md".to_owned(), 404, "DOCUMENT_NOT_FOUND"),
        ("project_id=handbook&path=%00".to_owned(), 400, "INVALID_ARGUMENT"),
        ("project_id=handbook&path=".to_owned(), 400, "INVALID_ARGUMENT"),
        ("project_id=handbook&id=x".to_owned(), 400, "INVALID_ARGUMENT"),
        ("project_id=handbook&id=550e8400-e29b-41d4-a716-446655440000".to_owned(), 404, "DOCUMENT_NOT_FOUND"),
        ("project_id=handbook&path=a&limit=1".to_owned(), 400, "INVALID_ARGUMENT"),
        ("project_id=handbook&limit=0".to_owned(), 400, "INVALID_ARGUMENT"),
        ("project_id=handbook&limit=1001".to_owned(), 400, "INVALID_ARGUMENT"),
        ("project_id=handbook&category=other".to_owned(), 400, "INVALID_ARGUMENT"),
        ("project_id=handbook&cursor=x".to_owned(), 400, "INVALID_CURSOR"),
        (format!("project_id=handbook&category=general&cursor={cursor}"), 400, "INVALID_CURSOR"),
        ("project_id=handbook&project_id=handbook".to_owned(), 400, "INVALID_ARGUMENT"),
        ("project_id=handbook&order=path".to_owned(), 400, "INVALID_ARGUMENT"),
    ] {
        let answer = get(&site.server.address, &format!("/api/v1/documents?{query}"));
        assert_eq!((answer.status, &answer.json()["code"]), (status, &json!(code)), "{query}");
        refused(&answer, status, code);
    }
}

#[test]
fn a_page_has_at_most_one_mebibyte() {
    let folder = tempfile::tempdir().unwrap();
    let (store, origin) = (folder.path().join("store.db"), folder.path().join("docs"));
    fs::create_dir(&origin).unwrap();
    for number in 0..9 {
        let note = format!("---\nnote: {}\n---\nText {number}.\n", "word ".repeat(60_000));
        fs::write(origin.join(format!("{number}.md")), note).unwrap();
    }
    stdout(&fetchwell(["project", "create", "wide", "--store", text(&store)]));
    stdout(&fetchwell(["import", "docs", text(&origin), "--project", "wide", "--store", text(&store)]));
    let server = HttpServer::start(["--store", text(&store)]);
    let (mut walked, mut cursor) = (0, String::new());
    loop {
        let answer = get(&server.address, &format!("/api/v1/documents?project_id=wide{cursor}"));
        assert!(answer.status == 200 && answer.text.len() <= 1024 * 1024, "{}", answer.text.len());
        let page = answer.json();
        walked += paths(&page).len();
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={}", encoded(next));
    }
    assert_eq!(walked, 9);
}

#[test]
fn a_stream_named_documents_is_read_without_a_project() {
    let site = Site::new();
    let lines = json!({"stream": "documents", "key": "d1", "data": {"title": "A deed"}}).to_string() + "\n";
    import_records(&site.store(), "cin_notary", &lines);
    let address = &site.server.address;
    let page = get(address, "/api/v1/documents?connection_id=cin_notary");
    assert_eq!((page.status, &page.json()["items"][0]["title"]), (200, &json!("A deed")));
    // The documents of a project are records, too.
    let page = get(address, "/api/v1/documents?connection_id=handbook&limit=1").json();
    let id = page["items"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(list(&site, &format!("&id={id}"))["id"], id);
}

/// Imports a record of a stream with one route in its manifest.
fn import_routed(folder: &Path, stream: &str, route: &str) -> Output {
    let [store, manifest, records] = ["s.db", "m.json", "r.ndjson"].map(|name| folder.join(name));
    let record = json!({"stream": stream, "key": "p1", "data": {"title": "A house"}});
    fs::write(&records, record.to_string() + "\n").unwrap();
    let routes = json!([{"path": route, "stream": stream, "type": "Paper"}]);
    fs::write(&manifest, json!({"streams": [{"name": stream}], "routes": routes}).to_string()).unwrap();
    let [store, manifest, records] = [&store, &manifest, &records].map(|path| text(path));
    fetchwell(["import", "records", records, "--store", store, "--connection", "c", "--manifest", manifest])
}

#[test]
fn a_manifest_gives_the_path_of_documents_only_to_their_stream() {
    let folder = tempfile::tempdir().unwrap();
    for route in ["/api/v1/documents", "/api/v1/documents/old"] {
        let refused = import_routed(folder.path(), "files", route);
        let expect = "which only a stream named `documents` can have";
        assert!(!refused.status.success() && stderr(&refused).contains(expect), "{refused:?}");
    }
    stdout(&import_routed(folder.path(), "documents", "/api/v1/documents"));
    let server = HttpServer::start(["--store", text(&folder.path().join("s.db"))]);
    assert_eq!(get(&server.address, "/api/v1/documents").json()["items"][0]["title"], "A house");
    let index = get(&server.address, "/api/v1").json();
    assert_eq!(
        index["routes"],
        json!([{"path": "/api/v1/documents", "stream": "documents", "type": "Paper"}])
    );
    refused(&get(&server.address, "/api/v1/documents?project_id=c"), 404, "PROJECT_NOT_FOUND");
}

#[test]
fn a_manifest_cannot_have_a_reserved_path() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("s.db");
    let import = |path: &str| import_routed(folder.path(), "projects", path);
    for reserved in ["search", "search/stream", "projects", "projects/all", "admin", "admin/cache/clear"] {
        let refused = import(&format!("/api/v1/{reserved}"));
        assert!(!refused.status.success() && stderr(&refused).contains("taken"), "{refused:?}");
    }
    stdout(&import("/api/v1/houses"));
    // The stream has the path of its route, and none by its name.
    let server = HttpServer::start(["--store", text(&store)]);
    let index = get(&server.address, "/api/v1").json();
    let routes: Vec<&Value> = index["routes"].as_array().unwrap().iter().map(|row| &row["path"]).collect();
    assert_eq!(routes, ["/api/v1/houses"]);
    assert_eq!(get(&server.address, "/api/v1/houses").json()["items"][0]["title"], "A house");
    assert_eq!(get(&server.address, "/api/v1/projects").json(), json!({"projects": []}));
    refused(&get(&server.address, "/api/v1/projects/p1"), 404, "PROJECT_NOT_FOUND");
    assert_eq!(get(&server.address, "/v1/streams/projects/records").json()["data"][0]["id"], "p1");
}
