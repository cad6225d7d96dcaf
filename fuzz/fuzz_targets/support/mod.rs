//! An import whose records are made and then rejected, for the targets of readers. No store is written.

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use fetchwell_connectors::{ImportError, Intake, Report};
use fetchwell_source::Manifest;
use fetchwell_source::contract::NewConnection;
use fetchwell_sqlite::SqliteTarget;

/// A manifest without the streams that are imported, so that every record is rejected.
const OTHER_STREAM: &str = r#"{"streams": [{"name": "other", "primary_key": ["id"]}]}"#;

/// Runs an import. Panics if a reason of a rejection is empty or an internal error.
pub fn import(read: impl FnOnce(&mut Intake<'_>) -> Result<(), ImportError>) -> Result<(), ImportError> {
    let connection = NewConnection {
        connection_id: "c".parse().unwrap(),
        connector_key: String::new(),
        display_name: None,
        manifest: None,
    };
    let (mut reasons, stop) = (Reasons, AtomicBool::new(false));
    let manifest = Some(Manifest::parse(OTHER_STREAM).unwrap());
    let target = SqliteTarget::new(Path::new("/dev/null/store.db"));
    read(&mut Intake::new(&target, connection, manifest, &mut reasons, &stop))
}

/// Checks the reasons of rejections.
struct Reasons;

impl Report for Reasons {
    fn rejected(&mut self, _place: &dyn fmt::Display, reason: &str) {
        assert!(!reason.is_empty() && !reason.contains("internal error"), "{reason}");
    }
}
