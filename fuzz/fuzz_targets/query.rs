//! Any query string of `/v1` and `/api/v1` is answered with JSON, and none with an internal error.
#![no_main]

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};

use fetchwell_connectors::{Intake, Report, import_records};
use fetchwell_http::InProcess;
use fetchwell_lab::hostaway;
use fetchwell_source::Manifest;
use fetchwell_source::contract::NewConnection;
use fetchwell_sqlite::{SqliteStore, SqliteTarget};
use fetchwell_telemetry::Telemetry;
use fetchwell_tools::{DEFAULT_CALL_DEADLINE, SharedToolbox, Toolbox};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// The paths, by the first byte of an input. Add new ones at the end, so that the corpus keeps its meaning.
const PATHS: [&str; 16] = [
    "/v1/search",
    "/v1/streams/messages/records",
    "/v1/streams/messages/aggregate",
    "/v1/streams/messages/records/m1",
    "/v1/streams/messages/records/m1/field-window",
    "/v1/schema",
    "/v1/streams",
    "/v1/streams/reservations",
    "/v1/streams/reservations/records",
    "/api/v1",
    "/api/v1/bookings",
    "/api/v1/bookings/BK1",
    "/api/v1/messages",
    "/api/v1/messages/m1",
    "/api/v1/content/cin_mail/messages:m1",
    "/api/v1/content/cin_lets/reservations:BK1",
];

const MAIL_MANIFEST: &str = include_str!("../../fixtures/conformance/manifest.json");

const MAIL: &str = r#"
{"stream":"messages","key":"m1","data":{"id":"m1","subject":"Invoice","from_email":"a@x.test","received_at":"2026-04-01T10:00:00Z","amount":420.5,"labels":["work"],"body":"Dear team,\n\nthe invoice is attached.\n"}}
{"stream":"messages","key":"m2","data":{"id":"m2","subject":"Re: Invoice","from_email":"b@x.test","received_at":"2026-05-02T10:00:00Z","amount":-1,"labels":[],"body":"東京 👩‍👩‍👧 \u0000 e\u0301"}}
{"stream":"messages","key":"m3","data":{"id":"m3","subject":null,"received_at":"2026-05-02T10:00:00Z"}}
{"stream":"attachments","key":"a1","data":{"id":"a1","message_id":"m1","filename":"invoice.pdf","received_at":"2026-04-01T10:00:00Z"}}
{"stream":"daily_stats","key":["u1","2026-04-01"],"data":{"user_id":"u1","day":"2026-04-01","steps":9}}
"#;

const LETS: &str = r#"
{"stream":"listings","key":"L1","data":{"id":"L1","name":"Boat house","price":120,"status":"active"}}
{"stream":"reservations","key":"BK1","data":{"id":"BK1","status":"confirmed","guestName":"Ann","checkInDate":"2026-06-01","totalPrice":900.5,"messages":[{"text":"Hello"},{"text":"Thanks"}],"calendar":[1,2,3],"createdAt":"2026-01-01T00:00:00Z"}}
{"stream":"reservations","key":"BK2","data":{"id":"BK2","status":"cancelled","guestName":"Bob","checkInDate":"2026-07-01","totalPrice":90,"messages":[],"createdAt":"2026-01-02T00:00:00Z"}}
{"stream":"reservations","key":"BK3","data":{"id":"BK3","status":"confirmed","totalPrice":"90"}}
"#;

struct Server {
    routes: InProcess,
    runtime: Runtime,
    _folder: TempDir,
}

static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fuzz.db");
    import(&path, "cin_mail", MAIL_MANIFEST, MAIL);
    import(&path, "cin_lets", hostaway::MANIFEST, LETS);
    let source = Arc::new(SqliteStore::open("fuzz".parse().unwrap(), &path).unwrap());
    let toolbox = Toolbox::new(source, DEFAULT_CALL_DEADLINE).unwrap();
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    Server {
        routes: InProcess::new(SharedToolbox::new(toolbox), Telemetry::default()),
        runtime,
        _folder: folder,
    }
});

fuzz_target!(|input: &[u8]| {
    let Some((first, query)) = input.split_first() else { return };
    let Some(path) = PATHS.get(usize::from(*first) % PATHS.len()) else { return };
    let target = format!("{path}?{}", encode(query));
    // A target is too long for a URI at 64 KiB.
    let Some((status, body)) = SERVER.runtime.block_on(SERVER.routes.get(&target)) else { return };
    assert!(status < 500, "{target} was answered with {status}: {}", String::from_utf8_lossy(&body));
    assert!(serde_json::from_slice::<Value>(&body).is_ok(), "{target} was not answered with JSON");
});

/// Writes bytes that a URI cannot hold as `%XX`.
fn encode(query: &[u8]) -> String {
    let mut encoded = String::new();
    for byte in query {
        match byte {
            b'"' | b'#' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => {
                encoded += &format!("%{byte:02X}")
            }
            byte if byte.is_ascii_graphic() => encoded.push(char::from(*byte)),
            byte => encoded += &format!("%{byte:02X}"),
        }
    }
    encoded
}

fn import(store: &Path, connection: &str, manifest: &str, records: &str) {
    let connection = NewConnection {
        connection_id: connection.parse().unwrap(),
        connector_key: String::new(),
        display_name: None,
        manifest: Some(manifest.to_owned()),
    };
    let (mut report, stop, manifest) =
        (NothingRejected, AtomicBool::new(false), Manifest::parse(manifest).unwrap());
    let target = SqliteTarget::new(store);
    let mut intake = Intake::new(&target, connection, Some(manifest), &mut report, &stop);
    import_records(&mut records.as_bytes(), Path::new("fuzz.ndjson"), &mut intake).unwrap();
    intake.finish().unwrap();
}

struct NothingRejected;

impl Report for NothingRejected {
    fn rejected(&mut self, place: &dyn fmt::Display, reason: &str) {
        panic!("line {place}: {reason}");
    }
}
