//! Any content of a file is read to its end or rejected with a reason: calendars, contacts, feeds, office documents,
//! PDF documents, exports and archives of them. A panic of a reader becomes a rejection with a text that this target
//! detects.
#![no_main]

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use fetchwell_connectors::{ImportError, Intake, Report, extract_pdf, import_content};
use fetchwell_source::Manifest;
use fetchwell_source::contract::NewConnection;
use fetchwell_sqlite::SqliteTarget;
use libfuzzer_sys::fuzz_target;

/// Extensions by which an input is read. Its first byte chooses one.
const EXTENSIONS: [&str; 11] =
    ["txt", "md", "html", "eml", "ics", "vcf", "xml", "json", "docx", "xlsx", "zip"];

/// A manifest without the streams that are imported: each record is made and then rejected, and no store is written.
const OTHER_STREAM: &str = r#"{"streams": [{"name": "other", "primary_key": ["id"]}]}"#;

fuzz_target!(|input: &[u8]| {
    let Some((first, content)) = input.split_first() else { return };
    let extension = EXTENSIONS[usize::from(*first) % EXTENSIONS.len()];
    if content.starts_with(b"%PDF-") {
        let _ = extract_pdf(content.to_vec());
        return;
    }
    // SQLite has its own fuzzers, and needs a file.
    if content.starts_with(b"SQLite format 3") {
        return;
    }
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
    match import_content(&format!("folder/file.{extension}"), content, &mut intake) {
        Ok(()) | Err(ImportError::Nothing { .. }) => {}
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
