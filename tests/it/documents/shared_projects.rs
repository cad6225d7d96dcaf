//! Two sources with a project of one slug: every printed id works, and a name that several have is refused with choices.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{HttpServer, Model, fetchwell, post, stdout, text};

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
