//! Bad input of the profile `docs`: values at and beyond each limit, and documents that are deleted between two calls.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{Model, fetchwell, stdout, text};

/// A store with the project `default`, imported from a folder.
struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    fn new() -> Self {
        let project = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(project.path("docs")).unwrap();
        // A sync deletes documents only if most files are still there.
        for number in 0..6 {
            project
                .write(&format!("n{number}.md"), &format!("# Note {number}\n\nThe zebra number {number}.\n"));
        }
        let (origin, store) = (project.path("docs"), project.path("store.db"));
        stdout(&fetchwell(["project", "create", "default", "--store", text(&store)]));
        let import = ["import", "docs", text(&origin), "--project", "default", "--store", text(&store)];
        stdout(&fetchwell(import));
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path("docs").join(name), content).unwrap();
    }

    fn delete(&self, name: &str) {
        fs::remove_file(self.path("docs").join(name)).unwrap();
        self.sync();
    }

    fn sync(&self) {
        stdout(&fetchwell(["sync", "default", "--store", text(&self.path("store.db"))]));
    }

    async fn model(&self, profile: &str) -> Model {
        Model::over_stdio(["--profile", profile, "--store", text(&self.path("store.db"))]).await
    }
}

/// Asserts that a call is refused with a code, a message about the input, and a hint.
async fn check(model: &Model, tool: &'static str, arguments: Value, code: &str, part: &str) {
    let shown: String = arguments.to_string().chars().take(80).collect();
    let refused = model.refusal(tool, arguments).await;
    assert_eq!(refused["code"], code, "{tool} {shown}: {refused}");
    assert!(refused["message"].as_str().unwrap().contains(part), "{tool} {shown}: {refused}");
    assert!(refused["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{tool} {shown}: {refused}");
}

#[tokio::test]
async fn queries_have_1_to_1000_characters() {
    let project = Project::new();
    let model = project.model("docs").await;
    for letter in ["x", "é", "😀"] {
        for count in [1, 1_000] {
            let found = model.call("search_docs", json!({"query": letter.repeat(count)})).await;
            assert!(found["results"].is_array(), "{count} times {letter}: {found}");
        }
        let long = json!({"query": letter.repeat(1_001)});
        check(&model, "search_docs", long, "invalid_argument", "longer than 1000 characters").await;
    }
    for query in ["", " ", "\r\n\t", "\u{2003}"] {
        check(&model, "search_docs", json!({"query": query}), "invalid_argument", "it is empty").await;
    }
    for (arguments, part) in [
        (json!({}), "it is missing"),
        (json!({"query": null}), "it is missing"),
        (json!({"query": 5}), "a number, not a string"),
        (json!({"query": true}), "a boolean, not a string"),
    ] {
        check(&model, "search_docs", arguments, "invalid_argument", part).await;
    }
}

#[tokio::test]
async fn unknown_projects_are_the_same_error_in_all_tools() {
    let project = Project::new();
    let model = project.model("docs").await;
    let long = "a".repeat(101);
    let names = ["none", "Default", "default ", "a:b", "*", "a/b", "../default", "handbook@store", &long];
    let unknown_id = "550e8400-e29b-41d4-a716-446655440000";
    for name in names.into_iter().chain([unknown_id]) {
        for (tool, mut arguments) in [
            ("search_docs", json!({"query": "zebra"})),
            ("get_document", json!({"path": "n1.md"})),
            ("list_categories", json!({})),
        ] {
            arguments["project_id"] = json!(name);
            check(&model, tool, arguments, "project_not_found", "no project").await;
        }
    }
}

#[tokio::test]
async fn unknown_categories_and_arguments_are_refused_by_name() {
    let project = Project::new();
    let model = project.model("docs").await;
    let known = "intent, research, references, process, workspace, general";
    for category in ["other", "General", "research ", "*"] {
        let arguments = json!({"query": "zebra", "category": category});
        check(&model, "search_docs", arguments, "invalid_argument", known).await;
    }
    for (tool, arguments, takes) in [
        ("search_docs", json!({"query": "zebra", "mode": "hybrid"}), "query, project_id, top_k, category"),
        ("get_document", json!({"path": "n1.md", "part": 1}), "path, project_id"),
        ("list_categories", json!({"category": "intent"}), "project_id"),
    ] {
        check(&model, tool, arguments, "invalid_argument", &format!("it takes {takes}")).await;
    }
}

#[tokio::test]
async fn paths_name_one_document_exactly() {
    let project = Project::new();
    let model = project.model("docs").await;
    let limits = ["x".repeat(1_000), "x".repeat(1_001), "é".repeat(1_001)];
    let paths =
        ["none.md", "N1.md", "/n1.md", "n1.md/", "./n1.md", "../docs/n1.md", "n1.md\0", "n%31.md", "*"];
    for path in paths.into_iter().chain(limits.iter().map(String::as_str)) {
        check(&model, "get_document", json!({"path": path}), "document_not_found", "has no document").await;
    }
    for (arguments, part) in [
        (json!({}), "it is missing"),
        (json!({"path": ""}), "it is empty"),
        (json!({"path": 5}), "a number, not a string"),
    ] {
        check(&model, "get_document", arguments, "invalid_argument", part).await;
    }
}

#[tokio::test]
async fn a_document_deleted_after_a_search_is_not_found() {
    let project = Project::new();
    let (docs, standard) = (project.model("docs").await, project.model("standard").await);
    let search = async || docs.call("search_docs", json!({"query": "zebra", "top_k": 20})).await;
    let found = search().await;
    let results = found["results"].as_array().unwrap();
    assert_eq!(results.len(), 6);
    let deleted = results.iter().find(|result| result["path"] == "n3.md").unwrap();
    project.delete("n3.md");
    for named in [&deleted["id"], &deleted["path"]] {
        check(&docs, "get_document", json!({"path": named}), "document_not_found", "has no document").await;
    }
    check(&standard, "fetch", json!({"id": deleted["id"]}), "not_found", "no record").await;
    // The same search is not answered from before, and the ids of the others can be read.
    let after = search().await;
    let paths: Vec<&Value> =
        after["results"].as_array().unwrap().iter().map(|result| &result["path"]).collect();
    assert!(paths.len() == 5 && !paths.contains(&&json!("n3.md")), "{after}");
    for result in results.iter().filter(|result| result["path"] != "n3.md") {
        let document = docs.call("get_document", json!({"path": result["id"]})).await;
        assert_eq!(document["document"]["path"], result["path"]);
    }
}

#[tokio::test]
async fn a_document_deleted_between_its_parts_is_not_found() {
    let project = Project::new();
    project.write("long.txt", &"A line of words.\n".repeat(8_000));
    project.sync();
    let model = project.model("docs").await;
    let first = model.call("get_document", json!({"path": "long.txt"})).await;
    let next = json!({"path": first["next"].as_str().unwrap()});
    assert!(model.call("get_document", next.clone()).await["text"].as_str().unwrap().contains("words"));
    project.delete("long.txt");
    check(&model, "get_document", next, "document_not_found", "has no document").await;
}

#[tokio::test]
async fn parts_of_a_changed_document_are_not_mixed() {
    let project = Project::new();
    project.write("long.txt", &"A line of words.\n".repeat(8_000));
    project.sync();
    let model = project.model("docs").await;
    let first = model.call("get_document", json!({"path": "long.txt"})).await;
    let next = json!({"path": first["next"].as_str().unwrap()});
    assert!(model.call("get_document", next.clone()).await["text"].as_str().unwrap().contains("words"));
    for changed in ["Other words of a line.\n".repeat(8_000), "Short.\n".to_owned()] {
        project.write("long.txt", &changed);
        project.sync();
        let refused = model.refusal("get_document", next.clone()).await;
        assert_eq!(refused["code"], "invalid_handle");
        assert_eq!(refused["message"], "the document has changed since its first part was read");
        assert!(refused["hint"].as_str().unwrap().contains("first part"), "{refused}");
    }
    let again = model.call("get_document", json!({"path": "long.txt"})).await;
    assert_eq!(again["text"], "Short.\n");
}

#[test]
fn a_project_has_documents_of_all_text_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let samples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/samples");
    stdout(&fetchwell(["project", "create", "default", "--store", text(&store)]));
    let import = ["import", "docs", text(&samples), "--project", "default", "--store", text(&store)];
    // Four files are encrypted.
    let imported = fetchwell(import);
    assert!(String::from_utf8_lossy(&imported.stdout).contains("12 added, 0 changed, 0 deleted, 4 rejected"));
    let exported = stdout(&fetchwell(["export", "default", "--format", "ndjson", "--store", text(&store)]));
    let documents = exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut formats: Vec<(String, bool)> = documents
        .map(|document| {
            let data = &document["data"];
            let format = data["format"].as_str().unwrap_or("md").to_owned();
            (format, data["text"].as_str().is_some_and(|text| text.len() > 20))
        })
        .collect();
    formats.sort();
    let expected = [
        "docx",
        "html",
        "html",
        "md",
        "md",
        "notebook",
        "pdf",
        "pptx",
        "rtf",
        "subtitles",
        "subtitles",
        "subtitles",
    ];
    let expected = expected.map(|format| (format.to_owned(), true));
    assert_eq!(formats, expected);
}
