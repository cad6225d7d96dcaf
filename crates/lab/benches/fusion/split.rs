//! A labelled set whose records are divided between stores by the hash of their key.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use fetchwell_connectors::{Intake, Report, import_records};
use fetchwell_core::record::RecordData;
use fetchwell_lab::evaluation::{Question, parse_questions};
use fetchwell_source::contract::NewConnection;
use fetchwell_sqlite::{SqliteStore, SqliteTarget};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Number of stores.
pub(crate) const PARTS: usize = 3;

/// A labelled set in several stores.
pub(crate) struct SplitSet {
    pub(crate) questions: Vec<Question>,
    pub(crate) parts: Vec<Part>,
    /// Folder of the stores, which is deleted with the set.
    _folder: tempfile::TempDir,
}

/// One store with the records in it.
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) store: SqliteStore,
    /// Records in the order of the file.
    pub(crate) records: Vec<PartRecord>,
}

/// A record as a simple server has it.
pub(crate) struct PartRecord {
    pub(crate) stream: String,
    pub(crate) key: String,
    pub(crate) title: Option<String>,
    /// All other texts.
    pub(crate) text: String,
    /// All texts in lower case.
    pub(crate) lower: String,
}

impl SplitSet {
    /// Reads a set and imports each part of it into a store.
    pub(crate) fn open(folder: &Path) -> Self {
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        let (records, questions) = (read("records.ndjson"), read("questions.jsonl"));
        let questions = parse_questions(&questions).unwrap();
        let mut lines: HashMap<usize, String> = HashMap::new();
        for line in records.lines() {
            let part = lines.entry(part_of(&envelope(line).key)).or_default();
            part.push_str(line);
            part.push('\n');
        }
        let folder = tempfile::tempdir().unwrap();
        let part = |number: usize| Part::import(folder.path(), number, &lines[&number]);
        Self { questions, parts: (0..PARTS).map(part).collect(), _folder: folder }
    }
}

impl Part {
    fn import(folder: &Path, number: usize, lines: &str) -> Self {
        let name = format!("part-{number}");
        let path = folder.join(format!("{name}.db"));
        let target = SqliteTarget::new(&path);
        let connection = NewConnection {
            connection_id: name.parse().unwrap(),
            connector_key: "records".to_owned(),
            display_name: None,
            manifest: None,
        };
        let (mut report, never) = (NoRejections, AtomicBool::new(false));
        let mut intake = Intake::new(&target, connection, None, &mut report, &never);
        import_records(&mut lines.as_bytes(), Path::new("records.ndjson"), &mut intake).unwrap();
        intake.finish().unwrap();
        let store = SqliteStore::open(name.parse().unwrap(), &path).unwrap();
        store.complete_index().unwrap();
        Self { name, store, records: lines.lines().map(envelope).collect() }
    }
}

/// The report of an import in which a rejection is a bug.
struct NoRejections;

impl Report for NoRejections {
    fn rejected(&mut self, place: &dyn fmt::Display, reason: &str) {
        panic!("{place}: {reason}");
    }
}

/// Reads a line of `records.ndjson`.
fn envelope(line: &str) -> PartRecord {
    let envelope: RecordData = serde_json::from_str(line).unwrap();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let data = envelope["data"].as_object().unwrap();
    let others = data.iter().filter(|(name, _)| *name != "title").filter_map(|(_, value)| text(value));
    let title = data.get("title").and_then(text);
    let body = others.collect::<Vec<_>>().join("\n");
    PartRecord {
        stream: text(&envelope["stream"]).unwrap(),
        key: text(&envelope["key"]).unwrap(),
        lower: format!("{}\n{body}", title.as_deref().unwrap_or_default()).to_lowercase(),
        title,
        text: body,
    }
}

/// Returns the part of a record.
fn part_of(key: &str) -> usize {
    usize::from(Sha256::digest(key)[0]) % PARTS
}
