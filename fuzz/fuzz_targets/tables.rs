//! Any table, JSON file, file of record envelopes, output of `git log` and day of Slack is imported, or rejected with a
//! reason: no import panics, and none ends with an error other than that the file is of another kind or lacks a named column.
#![no_main]

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use fetchwell_connectors::{
    FieldNames, ImportError, Intake, Report, import_content, import_csv, import_git_log, import_json,
    import_records,
};
use fetchwell_source::Manifest;
use fetchwell_source::contract::NewConnection;
use fetchwell_sqlite::SqliteTarget;
use libfuzzer_sys::fuzz_target;

/// A manifest without the streams that are imported: each record is made and then rejected, and no store is written.
const OTHER_STREAM: &str = r#"{"streams": [{"name": "other", "primary_key": ["id"]}]}"#;

fuzz_target!(|input: &[u8]| {
    let Some((first, content)) = input.split_first() else { return };
    let connection = NewConnection {
        connection_id: "c".parse().unwrap(),
        connector_key: String::new(),
        display_name: None,
        manifest: None,
    };
    let (mut reasons, stop) = (Reasons, AtomicBool::new(false));
    let manifest = Some(Manifest::parse(OTHER_STREAM).unwrap());
    let store = Path::new("/dev/null/store.db");
    let target = SqliteTarget::new(store);
    let mut intake = Intake::new(&target, connection, manifest, &mut reasons, &stop);
    let (path, mut reader) = (Path::new("fuzz"), content);
    let common = FieldNames::default();
    let named = FieldNames {
        key: vec!["a".to_owned(), "b.c".to_owned()],
        title: Some("b".to_owned()),
        time: Some("c".to_owned()),
        url: Some("d".to_owned()),
    };
    // Add new ones at the end, so that the corpus keeps its meaning.
    let outcome = match first % 7 {
        0 => import_csv(reader, path, "rows", &common, &mut intake),
        1 => import_csv(reader, path, "rows", &named, &mut intake),
        2 => import_json(reader, path, "items", &common, &mut intake),
        3 => import_json(reader, path, "items", &named, &mut intake),
        4 => import_records(&mut reader, path, &mut intake),
        5 => import_git_log(&mut reader, path, &mut intake),
        _ => import_content("general/2026-04-01.json", content, &mut intake),
    };
    match outcome {
        Ok(())
        | Err(ImportError::WrongKind { .. } | ImportError::Nothing { .. } | ImportError::NoColumn { .. }) => {
        }
        Err(error) => panic!("{error}"),
    }
});

/// Checks the reasons of rejections.
struct Reasons;

impl Report for Reasons {
    fn rejected(&mut self, _place: &dyn fmt::Display, reason: &str) {
        assert!(!reason.is_empty() && !reason.contains("internal error"), "{reason}");
    }
}
