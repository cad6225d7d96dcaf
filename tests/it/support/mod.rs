//! Fixtures and clients that the tests share.

mod api;
mod clients;
pub(crate) mod documents;
mod embedding_service;
mod fake_server;
mod faulty_server;
mod federation_client;
pub(crate) mod handbook;
pub(crate) mod hosted;
#[cfg(unix)]
pub(crate) mod mcp_servers;
pub(crate) mod model_hub;
mod own_server;
mod plain_http;
mod processes;
mod prometheus;
pub(crate) mod remote;
pub(crate) mod stores;
mod waiting;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

pub(crate) use api::{Api, call_of, encoded, error_of, hostaway_store, import};
pub(crate) use clients::{HttpServer, Model, StdioServer};
pub(crate) use embedding_service::{EmbeddingService, Mood};
pub(crate) use fake_server::{FakeServer, Reply, Request, mcp_reply, mcp_tool};
pub(crate) use faulty_server::{Account, Fault, RecordServer};
pub(crate) use federation_client::{CallResult, FederationClient, ProcessUsage, configured, rows_of, walk};
pub(crate) use own_server::OwnServer;
pub(crate) use plain_http::{Answer, ask, get, post, post_bytes};
#[cfg(target_os = "linux")]
pub(crate) use processes::with_disk;
pub(crate) use processes::{memory_kib, starter};
pub(crate) use prometheus::Scrape;
pub(crate) use waiting::{wait_until, wait_until_or};

/// Environment variables that would change the limits of answers.
const PROTECTION_VARIABLES: [&str; 6] = [
    "MCP_OUTPUT_TOKEN_THRESHOLD",
    "MCP_HARD_OUTPUT_TOKEN_CAP",
    "MCP_DEFAULT_PAGE_SIZE",
    "MCP_MAX_PAGE_SIZE",
    "MCP_FEATURE_PAGINATION",
    "MCP_FEATURE_SUMMARY_PREVIEW",
];

/// Returns a command of the built binary.
pub(crate) fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fetchwell"));
    for variable in ["RUST_LOG", "PDPP_OWNER_TOKEN", "PDPP_OWNER_SESSION_COOKIE", "NO_COLOR"]
        .into_iter()
        .chain(["FETCHWELL_LOG_FORMAT", "FETCHWELL_STORE", "OTEL_EXPORTER_OTLP_ENDPOINT"])
    {
        command.env_remove(variable);
    }
    for variable in PROTECTION_VARIABLES {
        command.env_remove(variable);
    }
    // No test downloads a model, or reads the models and the token of the user who runs it.
    for variable in
        ["HF_TOKEN", "HF_TOKEN_PATH", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_HUB_DISABLE_IMPLICIT_TOKEN"]
    {
        command.env_remove(variable);
    }
    command.env("HF_ENDPOINT", "http://127.0.0.1:9").env("HF_HOME", "/no/such/folder");
    // The tests must not read the configuration of the user who runs them.
    command.env("XDG_CONFIG_HOME", "/no/such/folder");
    // The tests must not write into a real home directory.
    command.env("XDG_DATA_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/data"));
    command.env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"));
    command
}

/// Returns a command of the binary with another system clock. `+600s` is ahead, `-600s` behind, and `@2031-01-01 23:55:00`
/// (UTC) starts at a time. The monotonic clock stays. `tests/redis/run` and `tests/postgres/run` provide libfaketime.
pub(crate) fn with_clock(clock: &str) -> Command {
    let mut command = with_clocks(clock);
    // The name of the second variable is that of earlier versions.
    command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("DONT_FAKE_MONOTONIC", "1");
    command
}

/// Returns a command of the binary with other clocks, the monotonic one among them. `+0 x100` is a hundred times as fast.
pub(crate) fn with_clocks(clocks: &str) -> Command {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests/redis/run and tests/postgres/run set it for the tests"
    )]
    let library = std::env::var("FETCHWELL_TEST_FAKETIME");
    let library =
        library.unwrap_or_else(|_| panic!("FETCHWELL_TEST_FAKETIME is not set: tests/redis/run sets it"));
    let mut command = binary();
    command.env("LD_PRELOAD", library).env("FAKETIME", clocks).env("TZ", "UTC");
    command
}

/// Runs the binary to its end.
pub(crate) fn fetchwell<const N: usize>(arguments: [&str; N]) -> Output {
    binary().args(arguments).output().unwrap()
}

/// Returns the standard output of a successful run.
#[track_caller]
pub(crate) fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Returns the standard error of a run.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns a path as text.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Imports record envelopes into a connection of a store.
#[track_caller]
pub(crate) fn import_records(store: &Path, connection: &str, lines: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("records.ndjson");
    std::fs::write(&file, lines).unwrap();
    let arguments = ["import", "records", text(&file), "--store", text(store), "--connection", connection];
    let output = fetchwell(arguments);
    assert!(output.status.success(), "{output:?}");
}

/// Returns a store of two accounts with colliding record ids, that of the demo.
pub(crate) fn demo_store() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("demo.db");
    stdout(&fetchwell(["demo", "--store", text(&store)]));
    (folder, store)
}

/// Returns a fixture of the repository.
pub(crate) fn fixture(name: &str) -> String {
    std::fs::read_to_string(format!("{}/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Returns a reply of a reference server, recorded in `fixtures/record-server`.
pub(crate) fn recorded(name: &str) -> Reply {
    let recorded: Value = serde_json::from_str(&fixture(&format!("record-server/{name}.json"))).unwrap();
    let status = u16::try_from(recorded["status"].as_u64().unwrap()).unwrap();
    Reply::Json(status, recorded["response"].to_string())
}

/// Writes a client credential for a server to the file that `pdpp connect` would write.
pub(crate) fn connect(cache_root: &Path, url: &str, credential: &str) {
    let authority = url.split("://").nth(1).unwrap().replace(':', "_");
    let folder = cache_root.join("clients");
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!(r#"{{"provider_url":"{url}","credential":{credential}}}"#);
    let path = folder.join(format!("{authority}.json"));
    std::fs::write(&path, text).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

/// The credential that fake servers accept.
pub(crate) const CREDENTIAL: &str =
    r#"{"access_token":"tok_5ecret","token_type":"Bearer","token_kind":"client"}"#;
