//! Two sources with a project of one slug: every printed id works, and a name that several have is refused with choices.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::handbook::refused;
use crate::support::{HttpServer, Model, fetchwell, get, post, stderr, stdout, text};

/// Two stores as the sources `home` and `work`.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    /// Creates the project `handbook` in both stores, and `notes` in the second one.
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        for (source, project) in [("home", "handbook"), ("work", "handbook"), ("work", "notes")] {
            place.import(source, project);
        }
        place.configure();
        place
    }

    fn store(&self, source: &str) -> PathBuf {
        self.folder.path().join(format!("{source}.db"))
    }

    fn import(&self, source: &str, project: &str) {
        let (store, origin) = (self.store(source), self.folder.path().join(format!("{source}-{project}")));
        fs::create_dir(&origin).unwrap();
        fs::write(origin.join("guide.md"), format!("# Guide\n\nThe zebra of {source} {project}.\n")).unwrap();
        stdout(&fetchwell(["project", "create", project, "--store", text(&store)]));
        let import = ["import", "docs", text(&origin), "--project", project, "--store", text(&store)];
        stdout(&fetchwell(import));
    }

    fn configure(&self) {
        let source = |name: &str| {
            format!("[[source]]\nname = \"{name}\"\nstore = \"{}\"\n\n", text(&self.store(name)))
        };
        fs::write(self.config(), source("home") + &source("work")).unwrap();
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("fetchwell.toml")
    }

    async fn model(&self, profile: &str) -> Model {
        Model::over_stdio(["--profile", profile, "--config", text(&self.config())]).await
    }
}

fn choices(refused: &Value) -> Vec<&str> {
    let choices = refused["available_connections"].as_array().unwrap();
    choices.iter().map(|choice| choice["connection_id"].as_str().unwrap()).collect()
}

fn project_id(store: &Path, slug: &str) -> String {
    let shown = stdout(&fetchwell(["project", "show", slug, "--store", text(store), "--json"]));
    let shown: Value = serde_json::from_str(&shown).unwrap();
    shown["project"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_slug_of_two_sources_is_ambiguous_in_every_tool() {
    let place = Place::new();
    let docs = place.model("docs").await;
    for (tool, arguments) in [
        ("search_docs", json!({"query": "zebra", "project_id": "handbook"})),
        ("get_document", json!({"path": "guide.md", "project_id": "handbook"})),
        ("list_categories", json!({"project_id": "handbook"})),
    ] {
        let refused = docs.refusal(tool, arguments).await;
        assert_eq!(refused["code"], "ambiguous_connection", "{refused}");
        assert_eq!(choices(&refused), ["handbook@home", "handbook@work"]);
        let hint = refused["hint"].as_str().unwrap();
        assert!(hint.contains("`project_id`") && hint.contains("available_connections"), "{hint}");
    }
    // A slug that only one source has works alone, and also with its source.
    for named in ["notes", "notes@work"] {
        let found = docs.call("search_docs", json!({"query": "zebra", "project_id": named})).await;
        assert!(found["results"][0]["text"].as_str().unwrap().contains("work notes"), "{found}");
        assert!(found["results"][0]["id"].as_str().unwrap().starts_with("notes/documents:"), "{found}");
    }
    let unknown = docs.refusal("search_docs", json!({"query": "x", "project_id": "notes@home"})).await;
    assert_eq!(unknown["code"], "project_not_found");
    let expect = "the projects are `handbook@home`, `handbook@work`, `notes`.";
    assert!(unknown["hint"].as_str().unwrap().ends_with(expect), "{unknown}");
}

#[tokio::test]
async fn printed_ids_of_shared_projects_are_fetched() {
    let place = Place::new();
    let (docs, standard) = (place.model("docs").await, place.model("standard").await);
    for (source, other) in [("home", "work"), ("work", "home")] {
        let named = format!("handbook@{source}");
        let by_id = project_id(&place.store(source), "handbook");
        for project in [&named, &by_id] {
            let found = docs.call("search_docs", json!({"query": "zebra", "project_id": project})).await;
            let id = found["results"][0]["id"].as_str().unwrap();
            assert!(id.starts_with(&format!("{named}/documents:")), "{found}");
            let content = format!("The zebra of {source} handbook.");
            // The id names its project.
            for arguments in [json!({"path": id}), json!({"path": id, "project_id": project})] {
                let document = docs.call("get_document", arguments).await;
                assert!(document["text"].as_str().unwrap().contains(&content), "{document}");
                assert_eq!(document["id"], id);
            }
            let fetched = standard.call("fetch", json!({"id": id})).await;
            assert!(fetched["text"].as_str().unwrap().contains(&content), "{fetched}");
            // An id of one project is no id of the other one, although their slugs are equal.
            let wrong = json!({"path": id, "project_id": format!("handbook@{other}")});
            assert_eq!(docs.refusal("get_document", wrong).await["code"], "document_not_found");
            // An id that was printed before there were two sources needs the project.
            let bare = id.replacen(&named, "handbook", 1);
            let refused = docs.refusal("get_document", json!({"path": bare})).await;
            assert_eq!(choices(&refused), ["handbook@home", "handbook@work"]);
            let document = docs.call("get_document", json!({"path": bare, "project_id": project})).await;
            assert_eq!(document["id"], id);
        }
        let listed = docs.call("list_categories", json!({"project_id": named})).await;
        assert_eq!(listed["project_id"], *named);
    }
}

#[tokio::test]
async fn a_copied_store_has_the_same_ids() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place { folder };
    place.import("home", "handbook");
    stdout(&fetchwell(["backup", text(&place.store("work")), "--store", text(&place.store("home"))]));
    place.configure();
    let docs = place.model("docs").await;
    let id = project_id(&place.store("home"), "handbook");
    let refused = docs.refusal("search_docs", json!({"query": "zebra", "project_id": id})).await;
    assert_eq!(choices(&refused), ["handbook@home", "handbook@work"]);
    for named in ["handbook@work".to_owned(), format!("{id}@work")] {
        let found = docs.call("search_docs", json!({"query": "zebra", "project_id": named})).await;
        assert!(found["results"][0]["id"].as_str().unwrap().starts_with("handbook@work/"), "{found}");
    }
}

#[test]
fn a_shared_slug_is_refused_over_http_with_choices() {
    let place = Place::new();
    let server = HttpServer::start(["--config", text(&place.config())]);
    let search = |project: &str| {
        let body = json!({"query": "zebra", "project_id": project});
        post(&server.address, "/api/v1/search", &[], &body.to_string())
    };
    let refused = search("handbook");
    let body = refused.json();
    assert_eq!((refused.status, &body["code"]), (400, &json!("INVALID_ARGUMENT")), "{refused:?}");
    let detail = body["detail"].as_str().unwrap();
    assert!(detail.contains("`handbook@home`") && detail.contains("`handbook@work`"), "{detail}");
    for (project, expect) in [
        ("handbook@home".to_owned(), "home handbook"),
        ("handbook@work".to_owned(), "work handbook"),
        (project_id(&place.store("work"), "handbook"), "work handbook"),
        ("notes".to_owned(), "work notes"),
    ] {
        let found = search(&project);
        assert_eq!(found.status, 200, "{found:?}");
        let found = found.json();
        assert!(found["results"][0]["content"].as_str().unwrap().contains(expect), "{found}");
        assert_eq!(found["project_id"], *project);
    }
    assert_eq!(search("handbook@none").status, 404);
}

#[test]
fn projects_of_several_sources_are_listed_with_their_source() {
    let place = Place::new();
    let server = HttpServer::start(["--config", text(&place.config())]);
    let list = get(&server.address, "/api/v1/projects").json();
    let listed = list["projects"].as_array().unwrap().iter();
    let listed: Vec<_> =
        listed.map(|project| [&project["slug"], &project["source"]].map(|name| name.as_str())).collect();
    let expect = [["handbook", "home"], ["handbook", "work"], ["notes", "work"]];
    assert_eq!(listed, expect.map(|row| row.map(Some)));
    // One project and the list of one source have the fields of the contract alone.
    assert_eq!(get(&server.address, "/api/v1/projects/notes").json().get("source"), None);
    let server = HttpServer::start(["--store", text(&place.store("work"))]);
    let list = get(&server.address, "/api/v1/projects").json();
    let projects = list["projects"].as_array().unwrap();
    assert!(projects.len() == 2 && projects.iter().all(|project| project.get("source").is_none()), "{list}");
}

#[test]
fn sync_needs_one_store_in_its_configuration() {
    let place = Place::new();
    let refused = fetchwell(["sync", "--config", text(&place.config())]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(stderr(&refused).contains("names several stores; name one with --store"), "{refused:?}");
}

#[test]
fn a_broken_source_hides_no_project_of_others() {
    let place = Place { folder: tempfile::tempdir().unwrap() };
    place.import("home", "handbook");
    fs::write(place.store("work"), "This is not a database. ".repeat(1_000)).unwrap();
    place.configure();
    let server = HttpServer::start(["--config", text(&place.config())]);
    let address = &server.address;
    let search = |project: &str| {
        let body = json!({"query": "zebra", "project_id": project});
        post(address, "/api/v1/search", &[], &body.to_string())
    };
    for named in ["handbook", "handbook@home"] {
        let found = search(named).json();
        assert!(found["results"][0]["content"].as_str().unwrap().contains("home handbook"), "{found}");
        let target = format!("/api/v1/search/stream?query=zebra&project_id={named}");
        assert!(get(address, &target).text.contains("event: complete"));
        assert_eq!(get(address, &format!("/api/v1/documents?project_id={named}")).status, 200);
    }
    let list = get(address, "/api/v1/projects").json();
    assert_eq!(
        (list["projects"].as_array().unwrap().len(), &list["projects"][0]["slug"]),
        (1, &json!("handbook"))
    );
    // The source that is named does not have the project.
    refused(&search("notes@home"), 404, "PROJECT_NOT_FOUND");
    // The broken source may have it.
    let id = "550e8400-e29b-41d4-a716-446655440000";
    let feedback = post(address, &format!("/api/v1/search/{id}/feedback"), &[], r#"{"feedback": null}"#);
    let mut answers = vec![feedback];
    for named in ["notes", "handbook@work", id] {
        answers.push(search(named));
        for target in [
            format!("/api/v1/search/stream?query=zebra&project_id={named}"),
            format!("/api/v1/documents?project_id={named}"),
            format!("/api/v1/projects/{named}"),
        ] {
            answers.push(get(address, &target));
        }
    }
    let expect = "it was not found, and a source that may have it is not available: `work`";
    for answer in answers {
        let detail = refused(&answer, 503, "SOURCE_UNAVAILABLE")["detail"].clone();
        assert!(detail.as_str().unwrap().starts_with(expect), "{detail}");
    }
}
