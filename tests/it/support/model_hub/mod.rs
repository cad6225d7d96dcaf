//! A model hub on loopback that behaves as huggingface.co does: a description, a list of files, and contents that are redirected
//! to another host for files in large file storage.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{FakeServer, Reply, Request, binary};

/// Commit of the repository.
pub(crate) const COMMIT: &str = "c9745ed1d9f207416be6d2e6f8de32d1f16199bf";

/// Repository of the hub.
pub(crate) const REPOSITORY: &str = "sentence-transformers/all-MiniLM-L6-v2";

/// A token that only the hub itself may get.
pub(crate) const TOKEN: &str = "hf_aaaaaaaaaaaaaaaaaaaa";

/// Settings of the model, a file in git.
const CONFIG: &str = "{\"model_type\": \"bert\"}\n";

/// The way in which the hub answers.
#[derive(Debug, Clone)]
pub(crate) enum Mood {
    Healthy,
    /// Answers every request to the hub with a status, an error code and headers.
    Status(u16, &'static str, Vec<(&'static str, String)>),
    /// Answers with a web page, as a network that asks for a sign-in.
    WebPage,
    /// Redirects the network file to this URL.
    RedirectTo(&'static str),
    /// States another size in the list than in the redirect.
    OtherSize,
    /// States a size of terabytes.
    Huge,
    /// Sends other bytes of the same length.
    OtherBytes,
    /// Sends more bytes than stated.
    Longer,
    /// Answers a file with a web page.
    WebPageAsFile,
    /// Breaks off after so many bytes of the network file.
    BreaksOff(usize),
    /// Is silent after so many bytes of the network file.
    Silent(usize),
    /// Lists files without a tokenizer.
    NoTokenizer,
    /// Answers with JSON of another kind.
    OtherJson,
    /// Ignores `Range`, and breaks off after so many bytes once.
    NoRange(usize),
}

/// The hub, and the host of its large files.
pub(crate) struct ModelHub {
    pub(crate) hub: FakeServer,
    pub(crate) files: FakeServer,
    mood: Arc<Mutex<Mood>>,
}

/// Folder of the tiny model.
pub(crate) fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/embedding/tiny")
}

fn bytes_of(name: &str) -> Vec<u8> {
    match name {
        "config.json" => CONFIG.into(),
        "onnx/model.onnx" => std::fs::read(tiny().join("model.onnx")).unwrap(),
        name => std::fs::read(tiny().join(name)).unwrap(),
    }
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the id in git of a file that is not in large file storage, as `git hash-object` prints it.
fn git_id(name: &str) -> Option<&'static str> {
    match name {
        "config.json" => Some("dc1fb7b6703fe03317c1a080b523bf475f3d4818"),
        "sentence_bert_config.json" => Some("65ee32777497ffe8d2510708c7f106bd005e9829"),
        _ => None,
    }
}

fn entry(name: &str, mood: &Mood) -> Value {
    let size = match (name, mood) {
        ("onnx/model.onnx", Mood::Huge) => 1 << 42,
        (_, _) => bytes_of(name).len(),
    };
    let mut entry =
        json!({"type": "file", "path": name, "size": size, "oid": git_id(name).unwrap_or(COMMIT)});
    if git_id(name).is_none() {
        entry["lfs"] = json!({"oid": sha256(&bytes_of(name)), "size": size, "pointerSize": 133});
    }
    entry
}

impl ModelHub {
    pub(crate) fn start() -> Self {
        let mood = Arc::new(Mutex::new(Mood::Healthy));
        let now = Arc::clone(&mood);
        let files = FakeServer::start(move |request| {
            let mut mood = now.lock().unwrap();
            let reply = file(request, &mood);
            if let Mood::BreaksOff(_) | Mood::NoRange(_) = *mood
                && request.line.contains("model.onnx")
            {
                // The next attempt succeeds.
                *mood =
                    if matches!(*mood, Mood::NoRange(_)) { Mood::NoRange(usize::MAX) } else { Mood::Healthy };
            }
            reply
        });
        let (now, host) = (Arc::clone(&mood), files.url.clone());
        let hub = FakeServer::start(move |request| answer(request, &now.lock().unwrap(), &host));
        Self { hub, files, mood }
    }

    pub(crate) fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    /// Returns the command `fetchwell embeddings install` with these arguments.
    pub(crate) fn install(&self, home: &Path, arguments: &[&str]) -> Command {
        self.command(home, &[&["embeddings", "install"], arguments].concat())
    }

    /// Returns a command with a home folder and the token of the hub.
    pub(crate) fn command(&self, home: &Path, arguments: &[&str]) -> Command {
        let mut command = binary();
        command.args(arguments).current_dir(home).stdin(Stdio::null());
        command.env("XDG_DATA_HOME", home.join("data")).env("XDG_CONFIG_HOME", home.join("config"));
        command.env("XDG_STATE_HOME", home.join("state")).env("HF_HOME", home.join("hf"));
        command.env("HF_ENDPOINT", &self.hub.url).env("HF_TOKEN", TOKEN);
        command
    }

    /// Returns the ranges of the network file that were requested from the host of files, with `-` for all of it.
    pub(crate) fn ranges(&self) -> Vec<String> {
        let requests = self.files.requests();
        let network = requests.into_iter().filter(|request| request.line.contains("model.onnx"));
        network.map(|request| request.range.unwrap_or_else(|| "-".to_owned())).collect()
    }
}

/// Answers a request to the hub.
fn answer(request: &Request, mood: &Mood, host: &str) -> Reply {
    let path = request.line.trim_start_matches("GET ");
    match mood {
        Mood::Status(status, code, headers) => {
            let mut headers = headers.clone();
            headers.push(("x-error-code", (*code).to_owned()));
            return Reply::Full(*status, headers, "{\"error\":\"x\"}".to_owned());
        }
        Mood::WebPage => {
            let headers = vec![("content-type", "text/html".to_owned())];
            return Reply::Full(200, headers, "<!doctype html><title>Sign in</title>".to_owned());
        }
        Mood::OtherJson => return Reply::Json(200, "[1]".to_owned()),
        _ => {}
    }
    if path == format!("/api/models/{REPOSITORY}/revision/main") {
        return Reply::Json(200, json!({"id": REPOSITORY, "sha": COMMIT, "siblings": []}).to_string());
    }
    if path == format!("/api/models/{REPOSITORY}/tree/{COMMIT}?recursive=1") {
        let mut entries = vec![json!({"type": "directory", "path": "onnx", "oid": COMMIT, "size": 0})];
        let names = ["config.json", "sentence_bert_config.json", "tokenizer.json", "onnx/model.onnx"];
        let has = |name: &&str| !matches!(mood, Mood::NoTokenizer) || *name != "tokenizer.json";
        entries.extend(names.into_iter().filter(has).map(|name| entry(name, mood)));
        return Reply::Json(200, Value::from(entries).to_string());
    }
    let Some(name) = path.strip_prefix(&format!("/{REPOSITORY}/resolve/{COMMIT}/")) else {
        let headers = vec![("x-error-code", "RepoNotFound".to_owned())];
        return Reply::Full(401, headers, "{\"error\":\"Invalid username or password.\"}".to_owned());
    };
    let mut headers = vec![("x-repo-commit", COMMIT.to_owned())];
    if let Some(id) = git_id(name) {
        headers.push(("etag", format!("\"{id}\"")));
        let body = bytes_of(name);
        return Reply::File { status: 200, headers, sent: body.len(), body, is_silent: false };
    }
    let bytes = bytes_of(name);
    let size = if matches!(mood, Mood::OtherSize) { bytes.len() + 1 } else { bytes.len() };
    let target = match mood {
        Mood::RedirectTo(target) => (*target).to_owned(),
        _ => format!("{host}/{name}?Signature=secret"),
    };
    headers.extend([
        ("x-linked-size", size.to_string()),
        ("x-linked-etag", format!("\"{}\"", sha256(&bytes))),
        ("location", target),
    ]);
    Reply::Full(302, headers, "Found. Redirecting".to_owned())
}

/// Answers a request to the host of large files.
fn file(request: &Request, mood: &Mood) -> Reply {
    let path = request.line.trim_start_matches("GET /");
    let name = path.split('?').next().unwrap();
    let mut bytes = bytes_of(name);
    let is_network = name == "onnx/model.onnx";
    match mood {
        Mood::OtherBytes if is_network => bytes.iter_mut().for_each(|byte| *byte ^= 1),
        Mood::Longer if is_network => bytes.push(0),
        Mood::WebPageAsFile => {
            let headers = vec![("content-type", "text/html; charset=utf-8".to_owned())];
            return Reply::Full(200, headers, "<html>quota</html>".to_owned());
        }
        _ => {}
    }
    let whole = bytes.len();
    let offset = request
        .range
        .as_deref()
        .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    let offset: usize = offset.filter(|_| !matches!(mood, Mood::NoRange(_))).unwrap_or(0);
    if offset >= whole {
        return Reply::Full(416, vec![], String::new());
    }
    let mut headers = vec![("content-type", "application/octet-stream".to_owned())];
    if offset > 0 {
        headers.push(("content-range", format!("bytes {offset}-{}/{whole}", whole - 1)));
    }
    let body = bytes.split_off(offset);
    let sent = match mood {
        Mood::BreaksOff(sent) | Mood::Silent(sent) | Mood::NoRange(sent) if is_network => {
            (*sent).min(body.len())
        }
        _ => body.len(),
    };
    let status = if offset > 0 { 206 } else { 200 };
    Reply::File { status, headers, body, sent, is_silent: matches!(mood, Mood::Silent(_)) }
}
