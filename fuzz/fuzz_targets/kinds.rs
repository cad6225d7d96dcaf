//! Any RTF document, notebook, subtitles, code, JSON, message of Apple Mail or Outlook, and export of notes, chats,
//! highlights or bookmarks is read to its end or rejected with a reason. A panic of a reader becomes a rejection with a
//! text that this target detects.
#![no_main]

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use fetchwell_connectors::{ImportError, Intake, Report, import_content};
use fetchwell_source::Manifest;
use fetchwell_source::contract::NewConnection;
use fetchwell_sqlite::SqliteTarget;
use libfuzzer_sys::fuzz_target;

/// Names by which an input is read. Its first byte chooses one; add new ones at the end, so that the corpus keeps its
/// meaning.
const NAMES: [&str; 15] = [
    "a.rtf",
    "a.ipynb",
    "a.srt",
    "a.vtt",
    "main.py",
    "a.json",
    "a.emlx",
    "a.msg",
    "a.enex",
    "_chat.txt",
    "result.json",
    "Keep/a.json",
    "My Clippings.txt",
    "bookmarks.html",
    "Bookmarks",
];

/// A manifest without the streams that are imported: each record is made and then rejected, and no store is written.
const OTHER_STREAM: &str = r#"{"streams": [{"name": "other", "primary_key": ["id"]}]}"#;

fuzz_target!(|input: &[u8]| {
    let Some((first, content)) = input.split_first() else { return };
    let Some(name) = NAMES.get(usize::from(*first)) else { return };
    // The readers of these kinds have a target of their own.
    if [&b"%PDF-"[..], b"SQLite format 3", b"PK", b"\x1F\x8B"].iter().any(|start| content.starts_with(start))
    {
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
    match import_content(&format!("folder/{name}"), content, &mut intake) {
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
