//! A project of documents behind a server, for the tests of the document-search API.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Answer, FakeServer, HttpServer, Reply, binary, fetchwell, post, stdout, text};

/// A store with the project `handbook` and a server.
pub(crate) struct Site {
    folder: tempfile::TempDir,
    pub(crate) server: HttpServer,
}

impl Site {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store.db");
        import(&folder.path().join("docs"), &store);
        let server = HttpServer::start(["--store", text(&store), "--state-dir", text(&state(&folder))]);
        Self { folder, server }
    }

    /// Starts a server with further tables in its configuration.
    pub(crate) fn configured(tables: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("fetchwell.toml");
        import(&folder.path().join("docs"), &folder.path().join("store.db"));
        fs::write(&config, format!("[[source]]\nname = \"own\"\nstore = \"store.db\"\n{tables}")).unwrap();
        let server = HttpServer::start(["--config", text(&config), "--state-dir", text(&state(&folder))]);
        Self { folder, server }
    }

    /// Starts a server with queries and documents embedded by a service, with further settings.
    pub(crate) fn embedded(service: &FakeServer, settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("fetchwell.toml");
        import(&folder.path().join("docs"), &folder.path().join("store.db"));
        let source = "[[source]]\nname = \"own\"\nstore = \"store.db\"\n";
        fs::write(&config, format!("{settings}{source}{}", embedding_table(service))).unwrap();
        let built =
            binary().args(["embeddings", "build", "--yes", "--config", text(&config)]).output().unwrap();
        assert!(built.status.success(), "{built:?}");
        let server = HttpServer::start(["--config", text(&config), "--state-dir", text(&state(&folder))]);
        Self { folder, server }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path("store.db")
    }

    #[track_caller]
    pub(crate) fn search(&self, body: &Value) -> Answer {
        post(&self.server.address, "/api/v1/search", &[], &body.to_string())
    }

    #[track_caller]
    pub(crate) fn found(&self, body: &Value) -> Value {
        let answer = self.search(body);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }
}

/// Returns the state directory of a server.
fn state(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("state")
}

/// Imports documents into the project `handbook`.
pub(crate) fn import(origin: &Path, store: &Path) {
    fs::create_dir_all(origin.join("references")).unwrap();
    let auth =
        "# Authentication Guide\n\nAuthentication is handled via JWT tokens that expire after an hour.\n";
    fs::write(origin.join("references/authentication.md"), auth).unwrap();
    for number in 0..20 {
        let body =
            format!("# Topic {number}\n\nHow does it work? The queue {number} is drained by a worker.\n");
        fs::write(origin.join(format!("topic-{number}.md")), body).unwrap();
    }
    stdout(&fetchwell(["project", "create", "handbook", "--store", text(store)]));
    let arguments = [
        "import",
        "docs",
        text(origin),
        "--project",
        "handbook",
        "--category-from",
        "folder",
        "--store",
        text(store),
    ];
    stdout(&fetchwell(arguments));
}

/// Returns a configuration table of an embedding service with 32 dimensions.
pub(crate) fn embedding_table(service: &FakeServer) -> String {
    format!(
        "[embedding]\nprovider = \"http\"\nurl = \"{}/v1\"\nmodel = \"m\"\ndimensions = 32\npad_to = 1024\n\
         background = false\nquery_timeout = \"30s\"\n",
        service.url
    )
}

/// Returns the reply of an embedding service: the same vector for each text.
pub(crate) fn embedded(body: &str, numbers: &Value) -> Reply {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let count = body["input"].as_array().map_or(0, Vec::len);
    let vector = |index: usize| json!({"index": index, "embedding": numbers});
    Reply::Json(200, json!({"data": (0..count).map(vector).collect::<Vec<_>>()}).to_string())
}

/// Checks the status, code and request id of an error, and returns its body.
#[track_caller]
pub(crate) fn refused(answer: &Answer, status: u16, code: &str) -> Value {
    let body = answer.json();
    assert_eq!((answer.status, &body["code"]), (status, &json!(code)), "{answer:?}");
    assert_eq!(body["request_id"], answer.header("request-id").unwrap());
    assert!(body["error"].is_string() && body["detail"].is_string(), "{body}");
    body
}
