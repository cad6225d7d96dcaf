//! The checks and the writing of records, shared by all importers.
//!
//! * `ahead`: pieces of a file, parsed on several threads
//! * `report`: receivers of rejections and of the progress

mod ahead;
mod report;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fetchwell_core::handle::{Handle, RecordAddress, RecordId, StreamName};
use fetchwell_core::hex::hexadecimal;
use fetchwell_core::record::RecordData;
use fetchwell_source::contract::{
    Change, ImportResult, IncomingRecord, ItemId, NewConnection, StoreError, Tally,
};
use fetchwell_source::{ImportTarget, ImportWriter, Manifest};
use serde_json::Value;
use sha2::{Digest, Sha256};

pub(crate) use self::ahead::{Piece, PieceSink, parse_ahead};
pub(crate) use self::report::{ATTACHMENT_PROBLEMS, AttachmentProblem};
pub use self::report::{NoProgress, Progress, Report, UnreadAttachment};
use super::ImportError;
use super::key::canonical_key;
use super::lines::MAX_LINE_BYTES;
use super::skips::{Problem, SkipCounts, SkipReason};

/// The checks and the store of one import. The store and its connection are created with the first record, so an
/// import that fails earlier leaves nothing behind.
pub struct Intake<'a> {
    /// Connection of the records; `None` for those of an attachment.
    connection: Option<NewConnection>,
    writer: Writer<'a>,
    manifest: Option<Manifest>,
    report: &'a mut dyn Report,
    stop: &'a AtomicBool,
    /// Hashes of the keys of this import, each with the hash of its record.
    seen: HashMap<u64, u64>,
    taken: u64,
    skips: SkipCounts,
    /// Number of notes.
    noted: u64,
    unread_attachments: u64,
}

/// A receiver of records that are not stored.
pub(crate) trait RecordSink {
    /// Takes the fields of a record of a stream. An error ends the read.
    fn take(&mut self, stream: &str, data: RecordData) -> Result<(), ImportError>;
}

/// The writer of an import.
enum Writer<'a> {
    /// An import into this store, which is opened with the first record.
    Unopened(&'a dyn ImportTarget),
    /// An import to its end, or the synchronization of one.
    Open(ImportWriter),
    /// The records of an attachment, which become its text.
    Sink(&'a mut dyn RecordSink),
    /// Hashes of the keys of records that are checked and not written.
    DryRun(HashSet<u64>),
}

impl Writer<'_> {
    fn write(
        &mut self,
        connection: Option<&NewConnection>,
        record: IncomingRecord,
        bytes: usize,
        report: &dyn Report,
    ) -> Result<(), StoreError> {
        if let (Self::Unopened(store), Some(connection)) = (&self, connection) {
            let progress = report.progress();
            let index = |added, missing| progress.index(added, missing);
            *self = Self::Open(store.open(connection, None, &index)?);
        }
        match self {
            Self::Unopened(_) | Self::Sink(_) => Ok(()),
            Self::Open(writer) => writer.write(record, bytes),
            Self::DryRun(keys) => {
                let key = hash_of(&(&record.stream, &record.key));
                if matches!(record.change, Change::Put { .. }) {
                    keys.insert(key)
                } else {
                    keys.remove(&key)
                };
                Ok(())
            }
        }
    }
}

impl fmt::Debug for Intake<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intake").field("connection", &self.connection).finish_non_exhaustive()
    }
}

/// A parsed record, before the checks.
#[derive(Debug)]
pub struct Draft<'a> {
    /// Name of the stream.
    pub stream: &'a str,
    /// Key or parts of a key. If `None`, the manifest's primary key is read from the data.
    pub key: Option<Value>,
    /// Fields of the record. `None` deletes it.
    pub data: Option<RecordData>,
    /// Time of the record, if the origin has one.
    pub emitted_at: Option<String>,
    /// Size of the record in the file, in bytes.
    pub bytes: usize,
    /// Handling of a key that occurred before in this import.
    pub repeated: DuplicatePolicy,
}

/// The handling of a record with a key that occurred before in the same import.
#[derive(Debug)]
pub enum DuplicatePolicy {
    /// The record replaces the earlier one.
    Supersedes,
    /// The record is rejected, unless it is equal to the earlier one.
    Refused,
    /// The record gets a key with a hash of these fields, unless they are equal to those of the earlier one.
    KeptApart(RecordData),
}

impl<'a> Intake<'a> {
    /// Creates an import into `connection` of the store `target`. With a manifest, only its streams are accepted.
    /// Setting `stop` ends the import at the next record.
    pub fn new(
        target: &'a dyn ImportTarget,
        connection: NewConnection,
        manifest: Option<Manifest>,
        report: &'a mut dyn Report,
        stop: &'a AtomicBool,
    ) -> Self {
        Self::with_writer(Writer::Unopened(target), Some(connection), manifest, report, stop)
    }

    /// Creates the synchronization of an import.
    pub(crate) fn synchronize(
        writer: ImportWriter,
        connection: NewConnection,
        manifest: Option<Manifest>,
        report: &'a mut dyn Report,
        stop: &'a AtomicBool,
    ) -> Self {
        Self::with_writer(Writer::Open(writer), Some(connection), manifest, report, stop)
    }

    /// Creates the intake of a file of which the records become one text. They are not checked.
    pub(crate) fn collect(
        sink: &'a mut dyn RecordSink,
        report: &'a mut dyn Report,
        stop: &'a AtomicBool,
    ) -> Self {
        Self::with_writer(Writer::Sink(sink), None, None, report, stop)
    }

    /// Creates an import that checks and counts records, and writes none.
    pub(crate) fn dry_run(
        connection: NewConnection,
        manifest: Option<Manifest>,
        report: &'a mut dyn Report,
        stop: &'a AtomicBool,
    ) -> Self {
        Self::with_writer(Writer::DryRun(HashSet::new()), Some(connection), manifest, report, stop)
    }

    /// Returns the number of records that a dry run would write.
    pub(crate) fn dry_records(&self) -> usize {
        if let Writer::DryRun(keys) = &self.writer { keys.len() } else { 0 }
    }

    fn with_writer(
        writer: Writer<'a>,
        connection: Option<NewConnection>,
        manifest: Option<Manifest>,
        report: &'a mut dyn Report,
        stop: &'a AtomicBool,
    ) -> Self {
        let (seen, taken, skips, unread_attachments) = (HashMap::new(), 0, SkipCounts::default(), 0);
        Self { connection, writer, manifest, report, stop, seen, taken, skips, noted: 0, unread_attachments }
    }

    /// Returns the writer, which a synchronization has from its start.
    pub(crate) fn writer(&mut self) -> Option<&mut ImportWriter> {
        match &mut self.writer {
            Writer::Open(writer) => Some(writer),
            Writer::Unopened(_) | Writer::Sink(_) | Writer::DryRun(_) => None,
        }
    }

    /// Begins a pass over items of a synchronization: their keys are compared with each other.
    pub(crate) fn begin_pass(&mut self, scheduled: BTreeSet<ItemId>, has_others: bool) {
        self.seen.clear();
        if let Some(writer) = self.writer() {
            writer.begin_pass(scheduled, has_others);
        }
    }

    /// Writes the accepted records that are still buffered.
    ///
    /// # Errors
    ///
    /// The store cannot be written. Records written before stay, and [`Intake::finish`] counts them.
    pub fn flush(&mut self) -> Result<(), ImportError> {
        Ok(self.writer().map_or(Ok(()), ImportWriter::flush)?)
    }

    /// Writes the buffered records. Returns the result and the number of rejected pieces.
    ///
    /// # Errors
    ///
    /// The store cannot be written.
    pub fn finish(self) -> Result<(ImportResult, u64), ImportError> {
        let progress = self.report.progress();
        let index = |added, missing| progress.index(added, missing);
        let imported = match self.writer {
            Writer::Unopened(_) | Writer::Sink(_) | Writer::DryRun(_) => {
                ImportResult { tally: Tally::default(), index_problem: None }
            }
            Writer::Open(writer) => writer.finish(&index)?,
        };
        Ok((imported, self.skips.not_read()))
    }

    /// Returns the receiver of the progress.
    #[must_use]
    pub fn progress(&self) -> Arc<dyn Progress> {
        self.report.progress()
    }

    /// Returns the number of accepted records, rejected pieces and notes so far. A file that changes it is not lost.
    pub(crate) fn accounted(&self) -> u64 {
        self.taken + self.skips.not_read() + self.noted
    }

    /// Returns the number of accepted records so far.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Counts and reports a record that is not valid.
    pub(crate) fn reject(&mut self, place: &dyn fmt::Display, reason: &str) {
        self.reject_many(1, place, reason);
    }

    /// Counts and reports a file that cannot be read.
    pub(crate) fn reject_file(&mut self, path: &str, problem: &Problem) {
        self.skips.add(problem.reason, 1);
        self.report.rejected(&path, &problem.text);
    }

    /// Returns the flag that stops the import.
    pub(crate) fn stop_flag(&self) -> &'a AtomicBool {
        self.stop
    }

    /// Returns true if the user stopped the import.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Adds the counts of what is skipped. Each file and folder is reported by [`Intake::skip_file`].
    pub(crate) fn add_skips(&mut self, counts: &SkipCounts) {
        self.skips.merge(counts);
    }

    /// Returns the counts of what was not taken so far.
    pub fn skips(&self) -> &SkipCounts {
        &self.skips
    }

    /// Counts and reports the attachments of a message that could not be read completely.
    pub(crate) fn report_attachments(&mut self, place: &dyn fmt::Display, data: &RecordData) {
        let problems = data.get(ATTACHMENT_PROBLEMS).and_then(Value::as_array);
        for problem in problems.into_iter().flatten() {
            let text = |field: &str| problem.get(field).and_then(Value::as_str).unwrap_or_default();
            let files = problem.get("files").and_then(Value::as_u64).unwrap_or(1);
            self.unread_attachments += files;
            let (place, name, reason) = (&*place.to_string(), text("name"), text("reason"));
            self.report.unread_attachment(&UnreadAttachment { place, name, reason, files });
        }
    }

    /// Returns the number of attachments, and of files in them, that could not be read.
    pub fn unread_attachments(&self) -> u64 {
        self.unread_attachments
    }

    /// Reports a file or folder that is skipped by design. They are counted by [`Intake::add_skips`].
    pub(crate) fn skip_file(&mut self, path: &str, reason: SkipReason) {
        self.report.skipped(path, reason);
    }

    /// Reports how a table or file was understood, where that is not obvious.
    pub(crate) fn note(&mut self, place: &str, note: &str) {
        self.noted += 1;
        self.report.noted(place, note);
    }

    /// Counts several records that are not valid, and reports them once.
    pub(crate) fn reject_many(&mut self, count: u64, place: &dyn fmt::Display, reason: &str) {
        self.skips.add(SkipReason::Invalid, count);
        self.report.rejected(place, reason);
    }

    /// Checks and writes a record, or rejects it with a reason.
    pub fn take(&mut self, place: &dyn fmt::Display, draft: Draft<'_>) -> Result<(), ImportError> {
        if self.is_stopped() { Err(ImportError::Stopped) } else { self.take_ahead(place, draft) }
    }

    /// Checks and writes a record, or rejects it with a reason, also after a stop: it was read before.
    pub(crate) fn take_ahead(
        &mut self,
        place: &dyn fmt::Display,
        draft: Draft<'_>,
    ) -> Result<(), ImportError> {
        if let Writer::Sink(sink) = &mut self.writer {
            return draft.data.map_or(Ok(()), |data| sink.take(draft.stream, data));
        }
        let bytes = draft.bytes;
        match self.accept(draft).and_then(|(incoming, repeated)| self.resolve_duplicate(incoming, &repeated))
        {
            Ok(incoming) => {
                self.taken += 1;
                self.report.accepted();
                Ok(self.writer.write(self.connection.as_ref(), incoming, bytes, &*self.report)?)
            }
            Err(reason) => {
                self.reject(place, &reason);
                // The relation of the file to a repeated key waits in the batch.
                Ok(self.writer().map_or(Ok(()), ImportWriter::flush_full)?)
            }
        }
    }

    fn accept(&self, draft: Draft<'_>) -> Result<(IncomingRecord, DuplicatePolicy), String> {
        if draft.bytes > MAX_LINE_BYTES {
            return Err(format!("it is longer than {MAX_LINE_BYTES} bytes"));
        }
        let stream: StreamName =
            draft.stream.parse().map_err(|problem| format!("the stream name is no name: {problem}"))?;
        let definition = match &self.manifest {
            None => None,
            Some(manifest) => Some(manifest.stream(stream.as_str())?),
        };
        let primary_key = definition.map(|definition| definition.primary_key.as_slice()).unwrap_or_default();
        let key = match (draft.key, &draft.data) {
            (Some(key), _) => canonical_key(key)?,
            (None, Some(data)) => key_of(primary_key, data)?,
            (None, None) => return Err("there is no `key`".to_owned()),
        };
        let key = self.addressable(&stream, key)?;
        let change = match draft.data {
            Some(data) => Change::Put { data, emitted_at: draft.emitted_at },
            None => Change::Delete { deleted_at: draft.emitted_at },
        };
        Ok((IncomingRecord { stream, key, change }, draft.repeated))
    }

    /// Parses a key, and checks that the record and every part of it can have a handle.
    fn addressable(&self, stream: &StreamName, key: String) -> Result<RecordId, String> {
        let record =
            RecordId::try_from(key).map_err(|problem| format!("its key cannot be addressed: {problem}"))?;
        let Some(connection) = self.connection.as_ref().map(|connection| &connection.connection_id) else {
            return Ok(record);
        };
        if Handle::is_short(connection, stream, &record) {
            return Ok(record);
        }
        let connection = Some(connection.clone());
        let address = RecordAddress { connection, stream: stream.clone(), record: record.clone() };
        // A long record is read by the handles of its parts, which are longer than its own.
        let longest = Handle::mint(&address).and_then(|handle| handle.with_part(u32::MAX));
        longest.map(|_| record).ok_or_else(|| {
            "its connection, stream and key are too long together for the handle of a part".to_owned()
        })
    }

    /// Returns the record, with a key of its own if necessary, or rejects it, if another record of this import had
    /// its key.
    fn resolve_duplicate(
        &mut self,
        incoming: IncomingRecord,
        repeated: &DuplicatePolicy,
    ) -> Result<IncomingRecord, String> {
        let identity = match (&incoming.change, repeated) {
            (Change::Delete { .. }, _) | (_, DuplicatePolicy::Supersedes) => return Ok(incoming),
            (Change::Put { data, .. }, DuplicatePolicy::Refused) => data,
            (_, DuplicatePolicy::KeptApart(identity)) => identity,
        };
        let data = hash_of_data(identity);
        let first = *self.seen.entry(hash_of(&(&incoming.stream, &incoming.key))).or_insert(data);
        if first == data {
            return Ok(incoming);
        }
        if let Some(writer) = self.writer() {
            writer.depend(incoming.stream.clone(), incoming.key.clone());
        }
        if matches!(repeated, DuplicatePolicy::Refused) {
            return Err("its key was already used by an earlier record of this file".to_owned());
        }
        let json = serde_json::to_vec(identity).unwrap_or_default();
        let digest = hexadecimal(Sha256::digest(&json).iter().take(8));
        let key = self.addressable(&incoming.stream, format!("{}-{digest}", incoming.key))?;
        Ok(IncomingRecord { key, ..incoming })
    }
}

/// Hashes a value for comparison within one process. The hash function may change with every version of Rust.
fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Hashes the fields of a record in their order, as [`hash_of`] does.
fn hash_of_data(data: &RecordData) -> u64 {
    let mut hasher = DefaultHasher::new();
    hash_fields(data, &mut hasher);
    hasher.finish()
}

fn hash_fields(fields: &RecordData, hasher: &mut impl Hasher) {
    fields.len().hash(hasher);
    for (name, value) in fields {
        name.hash(hasher);
        hash_value(value, hasher);
    }
}

fn hash_value(value: &Value, hasher: &mut impl Hasher) {
    std::mem::discriminant(value).hash(hasher);
    match value {
        Value::Null => {}
        Value::Bool(value) => value.hash(hasher),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(positive), _) => (0_u8, positive).hash(hasher),
            (None, Some(negative)) => (1_u8, negative).hash(hasher),
            (None, None) => (2_u8, number.as_f64().map(f64::to_bits)).hash(hasher),
        },
        Value::String(text) => text.hash(hasher),
        Value::Array(items) => {
            items.len().hash(hasher);
            items.iter().for_each(|item| hash_value(item, hasher));
        }
        Value::Object(fields) => hash_fields(fields, hasher),
    }
}

fn key_of(primary_key: &[String], data: &RecordData) -> Result<String, String> {
    if primary_key.is_empty() {
        return Err("there is no `key`".to_owned());
    }
    let part = |field: &String| {
        data.get(field)
            .cloned()
            .ok_or_else(|| format!("there is no `key` and the primary key field `{field}` is missing"))
    };
    let parts: Vec<Value> = primary_key.iter().map(part).collect::<Result<_, _>>()?;
    canonical_key(Value::Array(parts))
}
