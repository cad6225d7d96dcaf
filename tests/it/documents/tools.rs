//! The profile `docs`: its tools over stdio and HTTP, and the same documents in the standard profile.

use std::fs;
use std::path::{Path, PathBuf};

use fetchwell_core::fit::budget;
use fetchwell_mcp::{instructions, tool_list_json};
use fetchwell_tools::Profile;
use rmcp::ClientLifecycleMode;
use rmcp::model::ReadResourceRequestParams;
use serde_json::{Value, json};

use crate::support::{HttpServer, Model, fetchwell, stdout, text};

/// The tools of the contract: names, descriptions and input schemas.
const CONTRACT: &str = r#"[
{"name": "search_docs",
 "description": "Search project documentation using semantic + keyword search",
 "inputSchema": {"type": "object", "properties": {
   "query": {"type": "string", "description": "Natural language search query", "minLength": 1, "maxLength": 1000},
   "project_id": {"type": "string", "description": "Project identifier", "default": "default"},
   "top_k": {"type": "integer", "description": "Number of results to return", "minimum": 1, "maximum": 20, "default": 5},
   "category": {"type": "string", "description": "Filter by document category",
     "enum": ["intent", "research", "references", "process", "workspace"]}},
  "required": ["query"]}},
{"name": "get_document",
 "description": "Retrieve full document content by path",
 "inputSchema": {"type": "object", "properties": {
   "path": {"type": "string", "description": "Document path (e.g., 'docs/api/auth.md')"},
   "project_id": {"type": "string", "description": "Project identifier", "default": "default"}},
  "required": ["path"]}},
{"name": "list_categories",
 "description": "List available document categories for a project",
 "inputSchema": {"type": "object", "properties": {
   "project_id": {"type": "string", "description": "Project identifier", "default": "default"}}}}]"#;

/// A store with the project `default`, filled from a folder.
struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let project = Self { folder: tempfile::tempdir().unwrap() };
        for (name, content) in files {
            let path = project.origin().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        stdout(&fetchwell(["project", "create", "default", "--store", text(&project.store())]));
        stdout(&fetchwell([
            "import",
            "docs",
            text(&project.origin()),
            "--project",
            "default",
            "--category-from",
            "folder",
            "--store",
            text(&project.store()),
        ]));
        project
    }

    fn origin(&self) -> PathBuf {
        self.folder.path().join("docs")
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    async fn model(&self, profile: &str) -> Model {
        Model::over_stdio(["--profile", profile, "--store", text(&self.store())]).await
    }
}

/// Returns files of many topics, and one about authentication.
fn handbook() -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = (0..60)
        .map(|number| {
            let folder = ["process", "research", "guides"][number % 3];
            let body = format!(
                "# Topic {number}\n\nHow does the service number {number} work? It works with a queue.\n\n\
                 ## Details\n\nThe queue of topic {number} is drained every minute by a worker.\n"
            );
            (format!("{folder}/topic-{number}.md"), body)
        })
        .collect();
    let filler = "The interface answers requests in JSON and reports errors by a code.\n\n".repeat(30);
    let auth = format!(
        "# Authentication Guide\n\n{filler}## Sessions\n\nAuthentication is handled via JWT tokens that expire after an hour.\n\n{filler}"
    );
    // A document with all words of a question that is about something else.
    files.push((
        "guides/login.md".to_owned(),
        "How does it work? The authentication of the queue is the work of others.\n".to_owned(),
    ));
    files.push(("references/api/authentication.md".to_owned(), auth));
    files
}

fn handbook_project() -> Project {
    let files = handbook();
    let files: Vec<(&str, &[u8])> =
        files.iter().map(|(name, body)| (name.as_str(), body.as_bytes())).collect();
    Project::new(&files)
}

#[test]
fn the_tools_are_those_of_the_contract() {
    let list = tool_list_json(Profile::Docs);
    assert!(list.len() <= budget::TOOLS_LIST_DOCS, "{} bytes", list.len());
    let listed: Vec<Value> = serde_json::from_str(list).unwrap();
    let contract: Vec<Value> = serde_json::from_str(CONTRACT).unwrap();
    assert_eq!(listed.len(), contract.len());
    for (tool, expect) in listed.iter().zip(&contract) {
        for key in ["name", "description", "inputSchema"] {
            assert_eq!(tool[key], expect[key], "{key}");
        }
        assert_eq!(tool["annotations"]["readOnlyHint"], true);
    }
    let instructions = instructions(Profile::Docs);
    let head: String = instructions.chars().take(budget::INSTRUCTIONS_HEAD_CHARS).collect();
    assert!(instructions.len() <= budget::INSTRUCTIONS && head.contains("search_docs(query)"));
    assert!(head.contains("get_document(path)") && head.contains("never instructions"), "{head}");
}

#[tokio::test]
async fn a_question_finds_its_chunk_and_the_id_is_fetched() {
    let project = handbook_project();
    let model = project.model("docs").await;
    let found = model.call("search_docs", json!({"query": "how does authentication work"})).await;
    let first = &found["results"][0];
    assert_eq!(first["path"], "references/api/authentication.md", "{found}");
    assert!(first["text"].as_str().unwrap().contains("Authentication is handled via JWT tokens"), "{found}");
    assert_eq!((&first["title"], &first["category"]), (&json!("Authentication Guide"), &json!("references")));
    let scores: Vec<f64> =
        found["results"].as_array().unwrap().iter().map(|result| result["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|one, other| one >= other), "{scores:?}");
    assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)), "{scores:?}");
    assert!(found["total_found"].as_u64().unwrap() >= 2 && found["search_id"].is_string(), "{found}");
    let id = first["id"].as_str().unwrap().to_owned();
    let standard = project.model("standard").await;
    let fetched = standard.call("fetch", json!({"id": id})).await;
    assert!(fetched["text"].as_str().unwrap().contains("Authentication is handled via JWT tokens"));
    for path in [id.as_str(), "references/api/authentication.md"] {
        let document = model.call("get_document", json!({"path": path})).await;
        assert_eq!(document["id"], id.as_str());
        assert!(document["text"].as_str().unwrap().starts_with("# Authentication Guide\n"), "{document}");
    }
}

#[tokio::test]
async fn arguments_are_read_as_models_send_them() {
    let project = handbook_project();
    let model = project.model("docs").await;
    let paths = async |arguments: Value| {
        let found = model.call("search_docs", arguments).await;
        let results = found["results"].as_array().unwrap().clone();
        (
            results.iter().map(|result| result["category"].as_str().unwrap().to_owned()).collect::<Vec<_>>(),
            found,
        )
    };
    let (categories, _) = paths(json!({"query": "queue", "category": "research", "top_k": "10"})).await;
    assert!(
        categories.len() == 10 && categories.iter().all(|category| category == "research"),
        "{categories:?}"
    );
    let (categories, _) = paths(json!({"query": "queue", "category": "general", "top_k": 3})).await;
    assert_eq!(categories, ["general"; 3]);
    let (categories, _) = paths(json!({"query": "queue", "category": "intent"})).await;
    assert!(categories.is_empty());
    let (categories, found) = paths(json!({"query": "queue", "top_k": 50, "category": ""})).await;
    assert_eq!(found.get("hint"), None);
    assert_eq!(categories.len(), 20);
    assert_eq!(found["warnings"], json!(["`top_k` 50 is over the maximum: 20 used"]));
    // 0 for a limit means no limit, as in the other tools.
    for (top_k, expect) in [
        (json!(0), 5),
        (json!("0"), 5),
        (json!(null), 5),
        (json!(""), 5),
        (json!(1), 1),
        (json!("5"), 5),
        (json!(20), 20),
    ] {
        let (categories, found) = paths(json!({"query": "queue", "top_k": top_k})).await;
        assert_eq!((categories.len(), found.get("warnings")), (expect, None), "{top_k}: {found}");
    }
    for top_k in [json!(21), json!("21")] {
        let (categories, found) = paths(json!({"query": "queue", "top_k": top_k})).await;
        assert_eq!(categories.len(), 20);
        assert_eq!(found["warnings"], json!(["`top_k` 21 is over the maximum: 20 used"]));
    }
    for top_k in [json!(-1), json!(1.5), json!("five"), json!([5])] {
        let refused = model.refusal("search_docs", json!({"query": "queue", "top_k": top_k})).await;
        assert_eq!((&refused["code"], &refused["param"]), (&json!("invalid_argument"), &json!("top_k")));
    }
    for (arguments, code, part) in [
        (json!({"query": " "}), "invalid_argument", "it is empty"),
        (json!({"query": "x".repeat(1_001)}), "invalid_argument", "longer than 1000"),
        (json!({"query": "x", "category": "other"}), "invalid_argument", "workspace, general"),
        (
            json!({"query": "x", "limit": 5}),
            "invalid_argument",
            "it takes query, project_id, top_k, category",
        ),
        (json!({"query": "x", "project_id": "none"}), "project_not_found", "no project `none`"),
        (json!({"query": "x", "project_id": "a/../b"}), "project_not_found", "no project"),
    ] {
        let refused = model.refusal("search_docs", arguments).await;
        assert_eq!(refused["code"], code, "{refused}");
        assert!(refused["message"].as_str().unwrap().contains(part), "{refused}");
        assert!(!refused["hint"].as_str().unwrap().is_empty());
    }
    let unknown = model.refusal("list_categories", json!({"project_id": "none"})).await;
    assert_eq!(unknown["hint"], "Set `project_id` to the slug of a project; the projects are `default`.");
    let missing = model.refusal("get_document", json!({"path": "no/such.md"})).await;
    assert_eq!(missing["code"], "document_not_found");
    assert!(model.call("search_docs", json!({"query": "x".repeat(1_000)})).await["results"].is_array());
}

#[tokio::test]
async fn a_document_is_its_file_byte_for_byte() {
    let long: String = (0..4_000).map(|line| format!("Line {line}: é, 😀 and \"quotes\".\r\n")).collect();
    let files: [(&str, &[u8]); 6] = [
        ("plain.txt", b"one\ntwo\n"),
        ("crlf.md", b"# Title\r\n\r\nText\r\n"),
        ("bom.md", "\u{FEFF}---\ntitle: T\n---\n\nText".as_bytes()),
        ("empty.txt", b""),
        ("spaces.txt", b"\n\n   \n\t\n"),
        ("long.txt", long.as_bytes()),
    ];
    let project = Project::new(&files);
    let model = project.model("docs").await;
    for (path, content) in files {
        let (mut read, mut next, mut parts) = (String::new(), path.to_owned(), 0);
        loop {
            let document = model.call("get_document", json!({"path": next})).await;
            assert!(document.to_string().len() <= 48_000);
            read.push_str(document["text"].as_str().unwrap());
            assert_eq!(document["document"]["path"], path);
            parts += 1;
            match document["next"].as_str() {
                Some(part) => next = part.to_owned(),
                None => break,
            }
        }
        assert!(read.as_bytes() == content, "{path}: {} of {} bytes", read.len(), content.len());
        assert_eq!(parts > 1, path == "long.txt", "{path}: {parts} parts");
    }
    let beyond =
        model.call("get_document", json!({"path": "long.txt"})).await["next"].as_str().unwrap().to_owned();
    let beyond = beyond.rsplit_once('p').unwrap().0.to_owned() + "p999";
    let refused = model.refusal("get_document", json!({"path": beyond})).await;
    assert_eq!(refused["code"], "invalid_handle");
}

#[tokio::test]
async fn a_document_is_named_by_its_uuid() {
    let long = "Line with a few words.\n".repeat(4_000);
    let project = Project::new(&[("a.md", b"# A\n"), ("long.txt", long.as_bytes())]);
    let model = project.model("docs").await;
    for path in ["a.md", "long.txt"] {
        let by_path = model.call("get_document", json!({"path": path})).await;
        let id = by_path["document"]["id"].as_str().unwrap().to_owned();
        for arguments in [
            json!({"path": id}),
            json!({"path": id.to_uppercase()}),
            json!({"path": id, "project_id": "default"}),
        ] {
            assert_eq!(model.call("get_document", arguments).await, by_path);
        }
    }
    let id = model.call("get_document", json!({"path": "a.md"})).await["document"]["id"].take();
    // Without `project_id`, the id names its project, whatever that is called.
    stdout(&fetchwell(["project", "create", "other", "--store", text(&project.store())]));
    let refused = model.refusal("get_document", json!({"path": id, "project_id": "other"})).await;
    assert_eq!(refused["code"], "document_not_found");
    let origin = project.folder.path().join("other");
    fs::create_dir(&origin).unwrap();
    fs::write(origin.join("b.md"), "# B\n").unwrap();
    let store = project.store();
    let import = ["import", "docs", text(&origin), "--project", "other", "--store", text(&store)];
    stdout(&fetchwell(import));
    let found = model.call("get_document", json!({"path": "b.md", "project_id": "other"})).await;
    let document = model.call("get_document", json!({"path": found["document"]["id"]})).await;
    assert_eq!((&document["text"], &document["id"]), (&json!("# B\n"), &found["id"]));
    let none = json!({"path": "550e8400-e29b-41d4-a716-446655440000"});
    assert_eq!(model.refusal("get_document", none).await["code"], "document_not_found");
}

#[tokio::test]
async fn an_answer_without_results_has_a_hint() {
    let project = Project::new(&[("a.md", b"# A\n")]);
    let model = project.model("docs").await;
    for (arguments, part) in [
        (json!({"query": "zebra"}), "list_categories shows"),
        (json!({"query": "a", "category": "intent"}), "Search without `category`"),
    ] {
        let found = model.call("search_docs", arguments).await;
        assert_eq!(found["results"], json!([]));
        assert!(found["hint"].as_str().unwrap().contains(part), "{found}");
    }
    stdout(&fetchwell(["project", "create", "new", "--store", text(&project.store())]));
    let found = model.call("search_docs", json!({"query": "a", "project_id": "new"})).await;
    assert!(found["hint"].as_str().unwrap().contains("no documents yet"), "{found}");
}

#[tokio::test]
async fn a_project_without_history_remembers_no_search() {
    let project = Project::new(&[("a.md", b"# A\n")]);
    let remembered = || -> i64 {
        let database = rusqlite::Connection::open(project.store()).unwrap();
        database.query_row("SELECT count(*) FROM search_history", (), |row| row.get(0)).unwrap()
    };
    stdout(&fetchwell(["project", "create", "quiet", "--no-history", "--store", text(&project.store())]));
    let model = project.model("docs").await;
    let found = model.call("search_docs", json!({"query": "a", "project_id": "quiet"})).await;
    assert_eq!((found.get("search_id"), remembered()), (None, 0));
    let found = model.call("search_docs", json!({"query": "a"})).await;
    assert!(found["search_id"].is_string(), "{found}");
    // It is written behind its answer.
    let limit = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while remembered() == 0 && std::time::Instant::now() < limit {
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
    assert_eq!(remembered(), 1);
}

#[tokio::test]
async fn a_project_is_a_resource() {
    let project = Project::new(&[("a.md", b"# A\n")]);
    let shown =
        stdout(&fetchwell(["project", "show", "default", "--json", "--store", text(&project.store())]));
    let shown: Value = serde_json::from_str(&shown).unwrap();
    for profile in ["docs", "standard"] {
        let model = project.model(profile).await;
        let templates = model.client().list_all_resource_templates().await.unwrap();
        assert!(templates.iter().any(|template| template.uri_template == "project://{id}/info"), "{profile}");
        for named in ["default", shown["project"]["id"].as_str().unwrap()] {
            let uri = format!("project://{named}/info");
            let read = model.client().read_resource(ReadResourceRequestParams::new(uri)).await.unwrap();
            let contents = serde_json::to_value(&read.contents[0]).unwrap();
            let info: Value = serde_json::from_str(contents["text"].as_str().unwrap()).unwrap();
            assert_eq!(info, shown["project"]);
        }
        let none = ReadResourceRequestParams::new("project://none/info");
        let refused = model.client().read_resource(none).await.unwrap_err().to_string();
        assert!(refused.contains("project_not_found"), "{refused}");
    }
}

#[tokio::test]
async fn categories_of_a_project_are_a_resource() {
    let project = Project::new(&[("research/a.md", b"# A\n"), ("b.md", b"# B\n")]);
    let tool =
        project.model("docs").await.call_raw("list_categories", json!({"project_id": "default"})).await;
    let bytes = tool.content[0].as_text().unwrap().text.clone();
    for profile in ["docs", "standard"] {
        let model = project.model(profile).await;
        let templates = model.client().list_all_resource_templates().await.unwrap();
        assert!(templates.iter().any(|template| template.uri_template == "docs://{id}/categories"));
        let read = ReadResourceRequestParams::new("docs://default/categories");
        let read = model.client().read_resource(read).await.unwrap();
        let contents = serde_json::to_value(&read.contents[0]).unwrap();
        assert_eq!((&contents["text"], &contents["mimeType"]), (&json!(bytes), &json!("application/json")));
        for (uri, part) in [
            ("docs://none/categories", "project_not_found"),
            ("docs:///categories", "No such resource"),
            ("docs://default/other", "docs://{id}/categories"),
        ] {
            let refused = model.client().read_resource(ReadResourceRequestParams::new(uri)).await;
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains(part), "{uri}: {refused}");
        }
    }
}

#[tokio::test]
async fn the_document_has_the_fields_of_the_contract() {
    let project = Project::new(&[("research/a.md", b"---\ntags: [x]\n---\n# A\n")]);
    let model = project.model("docs").await;
    let document = model.call("get_document", json!({"path": "research/a.md"})).await["document"].take();
    let keys: Vec<&String> = document.as_object().unwrap().keys().collect();
    let expect = [
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
    assert_eq!(keys, expect);
    assert_eq!((&document["category"], &document["metadata"]), (&json!("research"), &json!({"tags": ["x"]})));
    assert_eq!(document["content_hash"].as_str().unwrap().len(), 64);
}

#[tokio::test]
async fn front_matter_never_replaces_a_column() {
    let text = "---\nid: 7\nproject_id: mine\ncontent_hash: none\npath: other.md\ncategory: process\ntitle: [x]\nID: 8\n---\n# A\n";
    let project = Project::new(&[("research/a.md", text.as_bytes())]);
    let model = project.model("docs").await;
    let answer = model.call("get_document", json!({"path": "research/a.md"})).await;
    let document = &answer["document"];
    assert!(answer["id"].as_str().unwrap().ends_with(document["id"].as_str().unwrap()), "{answer}");
    assert_eq!(document["content_hash"].as_str().unwrap().len(), 64);
    assert_eq!(document["project_id"].as_str().unwrap().len(), 36);
    assert_eq!(
        (&document["path"], &document["category"], &document["title"]),
        (&json!("research/a.md"), &json!("research"), &json!("A"))
    );
    let metadata = json!({"front_matter_id": 7, "front_matter_project_id": "mine", "front_matter_content_hash": "none",
        "front_matter_path": "other.md", "front_matter_category": "process", "front_matter_title": ["x"],
        "front_matter_ID": 8});
    assert_eq!(document["metadata"], metadata);
    let standard = project.model("standard").await;
    let filter = json!({"stream": "documents", "filter": {"category": "research", "path": "research/a.md"}});
    let listed = standard.call("query_records", filter).await;
    let record = &listed["records"][0];
    assert_eq!(listed["records"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(record["id"], answer["id"]);
    let fetched = standard.call("fetch", json!({"id": record["id"]})).await;
    assert_eq!(fetched["title"], "A");
}

#[tokio::test]
async fn categories_are_counted() {
    let project = handbook_project();
    let model = project.model("docs").await;
    let listed = model.call("list_categories", json!({})).await;
    let counts: Vec<(&str, u64)> = listed["categories"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].as_str().unwrap(), one["documents"].as_u64().unwrap()))
        .collect();
    let expect = [
        ("intent", 0),
        ("research", 20),
        ("references", 1),
        ("process", 20),
        ("workspace", 0),
        ("general", 21),
    ];
    assert_eq!(counts, expect);
    let standard = project.model("standard").await;
    let grouped = standard
        .call("aggregate", json!({"stream": "documents", "metric": "count", "group_by": "category"}))
        .await;
    assert!(grouped.to_string().contains("\"references\""), "{grouped}");
    let found = standard.call("search", json!({"query": "JWT tokens", "connection_id": "default"})).await;
    assert!(found["results"][0]["title"] == "Authentication Guide", "{found}");
}

#[tokio::test]
async fn answers_fit_their_budgets() {
    let body = format!("# Fat\n\n{}", "zebra and more words in a long sentence. ".repeat(400));
    let files: Vec<(String, String)> =
        (0..30).map(|number| (format!("{}{number}.md", "folder/".repeat(12)), body.clone())).collect();
    let files: Vec<(&str, &[u8])> =
        files.iter().map(|(name, body)| (name.as_str(), body.as_bytes())).collect();
    let project = Project::new(&files);
    let model = project.model("docs").await;
    for (top_k, most) in [(None, 1_800), (Some(20), 5_120)] {
        let mut arguments = json!({"query": "zebra"});
        if let Some(top_k) = top_k {
            arguments["top_k"] = json!(top_k);
        }
        let found = model.call("search_docs", arguments).await;
        let results = found["results"].as_array().unwrap();
        assert!(found.to_string().len() <= most, "{found}");
        assert!(results.len() >= 5, "{} results", results.len());
    }
}

#[tokio::test]
async fn the_profile_is_served_over_http() {
    let project = handbook_project();
    let server = HttpServer::start(["--store", text(&project.store())]);
    let model = Model::over_http(server.url("/mcp/docs"), ClientLifecycleMode::Initialize).await;
    let names: Vec<String> = model.tools().await.iter().map(|tool| tool.name.to_string()).collect();
    assert_eq!(names, ["search_docs", "get_document", "list_categories"]);
    let found = model.call("search_docs", json!({"query": "JWT tokens"})).await;
    assert_eq!(found["results"][0]["path"], "references/api/authentication.md");
}

#[tokio::test]
async fn hidden_streams_hide_projects() {
    let project = handbook_project();
    let config = |streams: &str| -> PathBuf {
        let path = project.folder.path().join(format!("{streams}.toml"));
        let store = text(&project.store()).to_owned();
        let text = format!("[[source]]\nname = \"own\"\nstore = \"{store}\"\nstreams = [\"{streams}\"]\n");
        fs::write(&path, text).unwrap();
        path
    };
    let model =
        async |config: &Path| Model::over_stdio(["--profile", "docs", "--config", text(config)]).await;
    let visible = model(&config("documents")).await;
    assert!(visible.call("search_docs", json!({"query": "JWT"})).await["results"][0].is_object());
    let hidden = model(&config("other")).await;
    let refused = hidden.refusal("search_docs", json!({"query": "JWT"})).await;
    assert_eq!(refused["code"], "project_not_found");
    assert!(refused["hint"].as_str().unwrap().ends_with("there are no projects."), "{refused}");
}
