//! Any mailbox is read to its end: a message that cannot be imported is rejected with its line, and the import
//! continues.
#![no_main]

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use fetchwell_connectors::{FileSelection, ImportError, Intake, Report, import_mbox};
use fetchwell_source::Manifest;
use fetchwell_source::contract::NewConnection;
use fetchwell_sqlite::SqliteTarget;
use libfuzzer_sys::fuzz_target;

/// The start of a message. Without it an input is not a mailbox, and is not parsed.
const START: &[u8] = b"From a@x.test Wed Apr  1 10:00:00 2026\n";

/// A manifest without the stream that is imported: each message is parsed and then rejected, and no store is
/// written, which takes a thousand times as long.
const OTHER_STREAM: &str = r#"{"streams": [{"name": "other", "primary_key": ["id"]}]}"#;

/// A path where no store can be made: the first record that is accepted ends the import.
const NO_STORE: &str = "/dev/null/store.db";

fuzz_target!(|text: &[u8]| {
    let mailbox = if text.starts_with(b"From ") { text.to_vec() } else { [START, text].concat() };
    let (outcome, rejected) = import(&mailbox, Some(Manifest::parse(OTHER_STREAM).unwrap()));
    match outcome {
        Ok(()) => assert!(!rejected.0.is_empty() && rejected.0.is_sorted()),
        Err(ImportError::WrongKind { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    // The same with the checks of keys and records, until a record is accepted.
    match import(&mailbox, None).0 {
        Ok(()) | Err(ImportError::WrongKind { .. } | ImportError::Store(_)) => {}
        Err(error) => panic!("{error}"),
    }
});

fn import(mut mailbox: &[u8], manifest: Option<Manifest>) -> (Result<(), ImportError>, RejectedLines) {
    let connection = NewConnection {
        connection_id: "c".parse().unwrap(),
        connector_key: String::new(),
        display_name: None,
        manifest: None,
    };
    let (mut rejected, stop) = (RejectedLines(Vec::new()), AtomicBool::new(false));
    let target = SqliteTarget::new(NO_STORE);
    let mut intake = Intake::new(&target, connection, manifest, &mut rejected, &stop);
    let outcome = import_mbox(&mut mailbox, Path::new("fuzz.mbox"), &FileSelection::default(), &mut intake);
    drop(intake);
    (outcome, rejected)
}

/// The lines of the messages that were rejected.
struct RejectedLines(Vec<u64>);

impl Report for RejectedLines {
    fn rejected(&mut self, place: &dyn fmt::Display, reason: &str) {
        assert!(!reason.is_empty());
        self.0.push(place.to_string().parse().unwrap());
    }
}
