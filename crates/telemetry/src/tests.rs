//! Tests of recording, storing, losing and reading calls, with real files.

use std::path::Path;
use std::time::Duration;

use fetchwell_callers::Caller;
use fetchwell_core::fit::{Shaping, Strategy};
use fetchwell_state::StateError;
use rusqlite::Connection;
use tempfile::TempDir;

use super::db::database::Database;
use super::{
    CallFilter, ContextProtection, Endpoint, EndpointAggregates, ErrorDetails, Origin, StorageState,
    StoredCall, StoredCalls, Telemetry,
};

/// Longer than any write takes.
const LONG: Duration = Duration::from_secs(60);

fn answered(telemetry: &Telemetry, shaping: &Shaping) {
    telemetry.call(Endpoint::tool("search"), Origin::default()).answered(shaping);
}

fn page() -> Shaping {
    Shaping { bytes: 1_000, items: 20, strategy: Strategy::Paginated, ..Shaping::default() }
}

fn open(folder: &TempDir) -> Telemetry {
    Telemetry::in_directory(folder.path(), 1_000)
}

fn stored(directory: &Path, wanted: &CallFilter) -> Vec<StoredCall> {
    StoredCalls::open(directory).unwrap().calls(wanted).unwrap()
}

fn total(telemetry: &Telemetry) -> u64 {
    telemetry.aggregates().context_protection.total_requests
}

fn state(telemetry: &Telemetry) -> StorageState {
    telemetry.aggregates().telemetry.state
}

#[test]
fn a_call_becomes_a_row_with_all_that_is_known_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let telemetry = open(&folder);
    let shaping = Shaping {
        bytes: 1_000,
        items: 4,
        strategy: Strategy::Paginated,
        summarized: true,
        oversized: true,
        tokens: Some(280),
        candidate_tokens: Some(5_600),
        fields: Some((20, 6)),
    };
    telemetry.call(Endpoint::route("/v1/search"), Origin::named("mine-1")).answered(&shaping);
    let piece = Shaping { bytes: 100, items: 0, strategy: Strategy::Chunked, ..Shaping::default() };
    telemetry.call(Endpoint::tool("fetch"), Origin::named("not an id")).answered(&piece);
    telemetry
        .call(Endpoint::tool("search"), Origin::default())
        .refused("invalid_cursor", ErrorDetails { bytes: 90, reason: Some("expired") });
    telemetry.call(Endpoint::tool("search"), Origin::default()).failed("grant revoked for bob@example.com");
    drop(telemetry.call(Endpoint::tool("aggregate"), Origin::default()));
    telemetry.flush(LONG);

    let calls = stored(folder.path(), &CallFilter::default());
    let shown: Vec<String> = calls
        .iter()
        .map(|call| {
            format!(
                "{} {} bytes={} tokens={} items={} each={} page={} preview={} piece={} over={} {}",
                call.endpoint,
                call.outcome,
                call.response_bytes,
                call.estimated_tokens,
                call.item_count,
                call.tokens_per_item,
                call.pagination_used,
                call.summarization_used,
                call.chunking_used,
                call.oversized,
                call.optimization_metadata,
            )
        })
        .collect();
    let saved = r#"{"original_tokens":5600,"final_tokens":280,"token_reduction_percent":95.0,"original_fields":20,"kept_fields":6}"#;
    let none = "page=false preview=false piece=false over=false {}";
    assert_eq!(
        shown,
        [
            format!(
                "/v1/search ok bytes=1000 tokens=280 items=4 each=70 page=true preview=true piece=false over=true {saved}"
            ),
            "tool:fetch ok bytes=100 tokens=30 items=0 each=30 page=false preview=false piece=true over=false {}"
                .to_owned(),
            format!("tool:search invalid_cursor bytes=90 tokens=27 items=0 each=27 {none}"),
            format!("tool:search source_error bytes=0 tokens=0 items=0 each=0 {none}"),
            format!("tool:aggregate cancelled bytes=0 tokens=0 items=0 each=0 {none}"),
        ]
    );
    assert_eq!((calls[0].request_id.as_str(), calls[0].original_tokens), ("mine-1", Some(5_600)));
    for call in &calls {
        assert_eq!(call.latency_ms, call.latency_us / 1_000);
        assert_eq!((call.timestamp.len(), call.timestamp.ends_with('Z')), (24, true), "{}", call.timestamp);
    }
    assert!(calls[1].request_id.starts_with("req_"), "{}", calls[1].request_id);
}

#[test]
fn the_table_rejects_impossible_values() {
    let folder = tempfile::tempdir().unwrap();
    let telemetry = open(&folder);
    answered(&telemetry, &page());
    telemetry.flush(LONG);
    let connection = Connection::open(folder.path().join("telemetry.db")).unwrap();
    for wrong in [
        "response_bytes = -1",
        "latency_us = -1",
        "chunking_used = 1",
        "oversized = 2",
        "timestamp = 'today'",
        "request_id = ''",
    ] {
        let refused = connection.execute(&format!("UPDATE telemetry SET {wrong}"), ()).unwrap_err();
        assert!(refused.to_string().contains("CHECK"), "{wrong}: {refused}");
    }
}

#[test]
fn figures_survive_a_restart_and_the_rows_that_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let bounded = || {
        let mut database = Database::in_directory(folder.path());
        database.max_rows = 50;
        Telemetry::in_database(database, 1_000)
    };
    let before = {
        let telemetry = bounded();
        for number in 0..120 {
            answered(&telemetry, &Shaping { items: number, ..page() });
        }
        drop(telemetry.call(Endpoint::tool("search"), Origin::default()));
        telemetry.flush(LONG);
        assert_eq!(telemetry.aggregates().telemetry.stored, 50);
        telemetry.aggregates().context_protection
    };
    assert_eq!((before.total_requests, before.pagination_adoption), (121, 1.0));
    assert_eq!(before.avg_response_size_bytes, 991.7355);
    let calls = stored(folder.path(), &CallFilter::default());
    assert_eq!((calls.len(), calls[0].item_count, calls[49].outcome.as_str()), (50, 71, "cancelled"));
    // Percentiles are of the latest calls, of which fewer are left.
    let aggregates = |of: ContextProtection| ContextProtection {
        p50_latency_ms: 0.0,
        p95_latency_ms: 0.0,
        p99_latency_ms: 0.0,
        uptime_seconds: 0,
        ..of
    };
    assert_eq!(aggregates(bounded().aggregates().context_protection), aggregates(before));
}

#[test]
fn latencies_of_an_earlier_process_count() {
    let folder = tempfile::tempdir().unwrap();
    let telemetry = open(&folder);
    answered(&telemetry, &page());
    telemetry.flush(LONG);
    let connection = Connection::open(folder.path().join("telemetry.db")).unwrap();
    connection.execute("UPDATE telemetry SET latency_us = 7500", ()).unwrap();
    assert_eq!(open(&folder).aggregates().context_protection.p99_latency_ms, 7.5);
}

#[test]
fn two_processes_share_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    let start = std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                start.wait();
                let telemetry = open(&folder);
                for _ in 0..25 {
                    answered(&telemetry, &page());
                }
                telemetry.flush(LONG);
                assert_eq!(state(&telemetry), StorageState::Ok);
            });
        }
    });
    assert_eq!(total(&open(&folder)), 100);
    assert_eq!(stored(folder.path(), &CallFilter::default()).len(), 100);
}

#[test]
fn memory_keeps_the_newest() {
    let telemetry = Telemetry::in_memory(10);
    for number in 0..25 {
        answered(&telemetry, &Shaping { items: number, ..page() });
    }
    let kept: Vec<u64> = telemetry.latest(100).iter().map(|record| record.item_count).collect();
    assert_eq!(kept, (15..25).rev().collect::<Vec<u64>>());
    assert_eq!(telemetry.latest(1).len(), 1);
    let aggregates = telemetry.aggregates();
    assert_eq!((aggregates.telemetry.stored, aggregates.telemetry.state), (10, StorageState::Memory));
    assert_eq!(aggregates.context_protection.total_requests, 25);
}

#[test]
fn a_small_ring_loses_nothing_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let telemetry = Telemetry::in_directory(folder.path(), 1);
    for _ in 0..200 {
        answered(&telemetry, &page());
    }
    telemetry.flush(LONG);
    let aggregates = telemetry.aggregates();
    assert_eq!((aggregates.telemetry.stored, aggregates.telemetry.dropped), (200, 0));
    assert_eq!(telemetry.latest(10).len(), 1);
}

#[test]
fn a_locked_file_delays_no_call_and_is_written_when_it_can_be() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(&folder));
    let other = Connection::open(folder.path().join("telemetry.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let telemetry = Telemetry::in_directory(folder.path(), 10);
    // More than the queue holds, so that some are lost before it and some in it.
    for _ in 0..6_000 {
        answered(&telemetry, &page());
    }
    telemetry.flush(LONG);
    let aggregates = telemetry.aggregates();
    assert_eq!((aggregates.telemetry.state, aggregates.telemetry.dropped), (StorageState::Degraded, 5_990));
    assert_eq!(aggregates.context_protection.total_requests, 6_000);
    other.execute_batch("COMMIT").unwrap();
    telemetry.flush(LONG);
    let aggregates = telemetry.aggregates();
    assert_eq!((aggregates.telemetry.state, aggregates.telemetry.stored), (StorageState::Ok, 10));
    // Rows were lost, but the totals count them.
    assert_eq!(total(&open(&folder)), 6_000);
    assert!(telemetry.exposition().contains("\nfetchwell_telemetry_dropped_total 5990\n"));
}

#[test]
fn a_damaged_file_fails_no_call_and_is_made_anew_when_it_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("telemetry.db");
    std::fs::write(&path, "no database, and longer than the header of one: ".repeat(5)).unwrap();
    let telemetry = open(&folder);
    assert_eq!(state(&telemetry), StorageState::Degraded);
    answered(&telemetry, &page());
    telemetry.flush(LONG);
    assert_eq!((state(&telemetry), total(&telemetry)), (StorageState::Degraded, 1));
    assert!(matches!(StoredCalls::open(folder.path()), Err(StateError::Foreign { .. })));
    std::fs::remove_file(&path).unwrap();
    telemetry.flush(LONG);
    assert_eq!((state(&telemetry), total(&telemetry)), (StorageState::Ok, 1));
    // The file is deleted while the process runs.
    std::fs::remove_dir_all(folder.path()).unwrap();
    answered(&telemetry, &page());
    telemetry.flush(LONG);
    assert_eq!(stored(folder.path(), &CallFilter::default()).len(), 1);
}

#[test]
fn rule_no_figure_is_negative_and_no_call_is_a_page_and_a_chunk() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::in_directory(folder.path()).file.prepare().unwrap();
    let insert = |column: &str, value: i64, beside: i64| {
        let sql = format!(
            "INSERT INTO telemetry (request_id, endpoint, timestamp, outcome, estimated_tokens, response_bytes, item_count,
                 latency_us, pagination_used, summarization_used, chunking_used, oversized, optimization_metadata)
             VALUES ('r', 'tool:fetch', '2026-10-15T14:30:00.123Z', 'ok', 1, 1, 1, 1, ?1, 0, 0, 0, '{{}}')
             RETURNING {column}"
        );
        database.query_row(&sql, [beside], |row| row.get::<_, i64>(0)).unwrap();
        database.execute(&format!("UPDATE telemetry SET {column} = ?1"), [value])
    };
    for column in ["latency_us", "response_bytes", "item_count", "estimated_tokens"] {
        assert_eq!(insert(column, 0, 0).unwrap(), 1, "{column}");
        assert!(insert(column, -1, 0).unwrap_err().to_string().contains("CHECK"), "{column}");
        database.execute("DELETE FROM telemetry", ()).unwrap();
    }
    assert!(insert("chunking_used", 1, 1).unwrap_err().to_string().contains("CHECK"));
}

#[test]
fn a_full_file_fails_no_call() {
    let folder = tempfile::tempdir().unwrap();
    let mut database = Database::in_directory(folder.path());
    database.file.max_bytes = 20 * 4_096;
    let telemetry = Telemetry::in_database(database, 5_000);
    for number in 1..=4_u64 {
        for _ in 0..500 {
            answered(&telemetry, &page());
        }
        telemetry.flush(LONG);
        assert_eq!(total(&telemetry), number * 500);
    }
    assert_eq!(state(&telemetry), StorageState::Degraded);
}

#[cfg(target_os = "linux")]
#[test]
fn a_place_that_cannot_be_written_fails_no_call() {
    // Not even root can create a file there.
    let telemetry = Telemetry::in_directory(Path::new("/proc/fetchwell"), 10);
    answered(&telemetry, &page());
    telemetry.flush(LONG);
    assert_eq!((state(&telemetry), total(&telemetry)), (StorageState::Degraded, 1));
}

#[cfg(unix)]
#[test]
fn only_its_owner_reads_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let telemetry = open(&folder);
    answered(&telemetry, &page());
    telemetry.flush(LONG);
    for name in ["telemetry.db", "telemetry.db-wal"] {
        let mode = std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn calls_are_filtered_by_endpoint_outcome_and_time() {
    let folder = tempfile::tempdir().unwrap();
    let telemetry = open(&folder);
    answered(&telemetry, &page());
    answered(&telemetry, &page());
    telemetry.call(Endpoint::tool("fetch"), Origin::default()).failed("not_found");
    telemetry.call(Endpoint::tool("search"), Origin::default()).failed("invalid_cursor");
    telemetry.flush(LONG);
    let count = |endpoint: Option<&str>, outcome: Option<&str>, since: Option<&str>, max_calls| {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let wanted = CallFilter {
            endpoint: owned(endpoint),
            outcome: owned(outcome),
            since: owned(since),
            max_calls,
            caller: None,
        };
        stored(folder.path(), &wanted).len()
    };
    assert_eq!(count(None, None, None, None), 4);
    assert_eq!(count(Some("tool:search"), None, None, None), 3);
    assert_eq!(count(Some("tool:search"), Some("invalid_cursor"), None, None), 1);
    assert_eq!(count(None, Some("ok"), Some("2026-01-01T00:00:00.000Z"), None), 2);
    assert_eq!(count(None, None, Some("9999-01-01T00:00:00.000Z"), None), 0);
    assert_eq!(count(None, None, None, Some(2)), 2);

    let aggregates = EndpointAggregates::from_calls(&stored(folder.path(), &CallFilter::default()));
    let of: Vec<(&str, u64, u64, f64)> = aggregates
        .iter()
        .map(|of| (of.endpoint.as_str(), of.calls, of.errors, of.pagination_adoption))
        .collect();
    assert_eq!(of, [("tool:fetch", 1, 1, 0.0), ("tool:search", 3, 1, 1.0)]);
}

#[test]
fn counters_name_what_failed_and_nothing_else() {
    let telemetry = Telemetry::default();
    let refused = |reason| {
        let call = telemetry.call(Endpoint::tool("search"), Origin::default());
        call.refused("invalid_cursor", ErrorDetails { bytes: 10, reason });
    };
    refused(Some("expired"));
    refused(Some("expired"));
    refused(None);
    let call = telemetry.call(Endpoint::tool("fetch"), Origin::default());
    call.refused("invalid_handle", ErrorDetails { bytes: 10, reason: Some("empty") });
    answered(&telemetry, &Shaping { bytes: 1_000, tokens: Some(250), ..Shaping::default() });
    telemetry.reloaded(Duration::from_millis(30));
    telemetry.reload_refused();
    let text = telemetry.exposition();
    for line in [
        "fetchwell_invalid_cursors_total{reason=\"expired\"} 2",
        "fetchwell_invalid_cursors_total{reason=\"unknown\"} 1",
        "fetchwell_requests_total{endpoint=\"tool:fetch\",outcome=\"invalid_handle\"} 1",
        // 300 estimated where 250 were counted.
        "fetchwell_estimation_error_ratio 0.2",
        "fetchwell_config_reloads_total{outcome=\"applied\"} 1",
        "fetchwell_config_reloads_total{outcome=\"refused\"} 1",
        "fetchwell_config_reload_seconds_bucket{le=\"0.05\"} 1",
        "fetchwell_response_bytes_count 5",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}:\n{text}");
    }
    assert!(!text.contains("reason=\"empty\""), "{text}");
}

#[test]
fn a_missing_file_says_what_creates_one() {
    let folder = tempfile::tempdir().unwrap();
    let missing = StoredCalls::open(folder.path()).unwrap_err().to_string();
    assert!(missing.contains("telemetry.db") && missing.contains("fetchwell serve"), "{missing}");
}

#[test]
fn calls_are_filtered_by_caller_and_an_earlier_format_is_upgraded() {
    let folder = tempfile::tempdir().unwrap();
    let telemetry = open(&folder);
    answered(&telemetry, &page());
    telemetry.flush(LONG);
    drop(telemetry);
    let as_it_was = "ALTER TABLE telemetry DROP COLUMN caller; ALTER TABLE totals DROP COLUMN lists; PRAGMA user_version = 1";
    Connection::open(folder.path().join("telemetry.db")).unwrap().execute_batch(as_it_was).unwrap();
    assert_eq!(stored(folder.path(), &CallFilter::default())[0].caller, None);

    Connection::open(folder.path().join("telemetry.db")).unwrap().execute_batch(as_it_was).unwrap();
    let telemetry = open(&folder);
    assert_eq!(total(&telemetry), 1);
    assert_eq!(telemetry.aggregates().context_protection.pagination_adoption, 1.0);
    let grant = |name: &str| Caller::Token { name: name.to_owned() }.grant_id();
    for name in ["ann", "bob", "ann"] {
        telemetry.call(Endpoint::tool("search"), Origin::default().by(grant(name))).answered(&page());
    }
    telemetry.flush(LONG);
    assert_eq!(state(&telemetry), StorageState::Ok);
    let of = |caller: String| {
        let wanted = CallFilter { caller: Some(caller.clone()), ..CallFilter::default() };
        let calls = stored(folder.path(), &wanted);
        assert!(calls.iter().all(|call| call.caller.as_ref() == Some(&caller)), "{calls:?}");
        calls.len()
    };
    assert_eq!((of(grant("ann").short()), of(grant("bob").short()), of("0".repeat(8))), (2, 1, 0));
    assert_eq!(stored(folder.path(), &CallFilter::default()).len(), 4);
}
