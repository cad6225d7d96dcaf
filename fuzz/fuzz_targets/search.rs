//! Any text of a search is answered with results that can be fetched, or with a typed error, never with an internal
//! error.
#![no_main]

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};

use fetchwell_connectors::{Intake, Report, import_records};
use fetchwell_core::record::RecordData;
use fetchwell_source::contract::NewConnection;
use fetchwell_sqlite::{SqliteStore, SqliteTarget};
use fetchwell_tools::{DEFAULT_CALL_DEADLINE, Profile, Toolbox};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// Maximum size of an answer without `limit` in bytes.
const MAX_BYTES: usize = 1_800;

const RECORDS: &str = r#"
{"stream":"messages","key":"m1","data":{"subject":"Invoice","from":"alice@x.test","sent_at":"2026-04-01T10:00:00Z","body":"Payment is net 30 days."}}
{"stream":"messages","key":"m2","data":{"subject":"Re: draft of an invoice","from":"Bob","sent_at":"2026-05-02T10:00:00Z","body":"東京都 café Straße שלום مرحبا"}}
{"stream":"notes","key":"a/b","data":{"title":"parseConfigFile","body":"see user_123 and 0.4.19 in /etc/x.conf"}}
"#;

/// Error codes of texts that name streams or connections.
const REFUSALS: [&str; 4] =
    ["invalid_argument", "connection_not_found", "stream_not_declared", "conflicting_connection_id"];

struct Search {
    toolbox: Toolbox,
    runtime: Runtime,
    _folder: TempDir,
}

static SEARCH: LazyLock<Search> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fuzz.db");
    for (id, label) in [("cin_mail", "Work mail"), ("cin_home", "Home")] {
        import(&path, id, label);
    }
    let source = Arc::new(SqliteStore::open("fuzz".parse().unwrap(), &path).unwrap());
    let toolbox = Toolbox::new(source, DEFAULT_CALL_DEADLINE).unwrap();
    Search { toolbox, runtime: Builder::new_current_thread().enable_time().build().unwrap(), _folder: folder }
});

fuzz_target!(|text: &str| {
    let found = match call("search", json!({"query": text})) {
        Ok(found) => found,
        Err(code) => return assert!(REFUSALS.contains(&code.as_str()), "{code}"),
    };
    for result in found["results"].as_array().unwrap() {
        let id = &result["id"];
        assert!(call("fetch", json!({"id": id})).is_ok(), "{id} cannot be fetched");
    }
});

/// Calls a tool and returns its answer, or the code of its error.
fn call(tool: &str, arguments: Value) -> Result<Value, String> {
    let arguments: RecordData = serde_json::from_value(arguments).unwrap();
    let call = SEARCH.toolbox.call(Profile::Standard, tool, arguments);
    match SEARCH.runtime.block_on(call).unwrap() {
        Ok(answer) => {
            assert!(tool != "search" || answer.json().len() <= MAX_BYTES, "{} bytes", answer.json().len());
            Ok(serde_json::from_str(answer.json()).unwrap())
        }
        Err(error) => Err(error.code().to_owned()),
    }
}

fn import(store: &Path, id: &str, label: &str) {
    let connection = NewConnection {
        connection_id: id.parse().unwrap(),
        connector_key: String::new(),
        display_name: Some(label.to_owned()),
        manifest: None,
    };
    let (mut report, stop) = (NothingRejected, AtomicBool::new(false));
    let target = SqliteTarget::new(store);
    let mut intake = Intake::new(&target, connection, None, &mut report, &stop);
    import_records(&mut RECORDS.as_bytes(), Path::new("fuzz.ndjson"), &mut intake).unwrap();
    intake.finish().unwrap();
}

struct NothingRejected;

impl Report for NothingRejected {
    fn rejected(&mut self, place: &dyn fmt::Display, reason: &str) {
        panic!("line {place}: {reason}");
    }
}
