//! Where records of every importer go through before they reach the store.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::ImportError;
use super::key::canonical_key;
use crate::handle::{ConnectionId, Handle, RecordAddress, RecordId, StreamName};
use crate::record::RecordData;
use crate::source::store::{Change, Incoming, Manifest, StoreWriter, Tally};

/// Who is told of an import's refusals.
pub trait Report {
    /// A piece of the file was not imported. `place` is a line number, an item number or a file name.
    fn rejected(&mut self, place: &dyn fmt::Display, reason: &str);
}

/// The way into the store for one import.
pub struct Intake<'a> {
    writer: StoreWriter,
    connection: ConnectionId,
    manifest: Option<Manifest>,
    report: &'a mut dyn Report,
    stop: &'a AtomicBool,
    rejected: u64,
}

impl fmt::Debug for Intake<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intake").field("connection", &self.connection).finish_non_exhaustive()
    }
}

/// A record as an importer read it.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    pub(super) stream: &'a str,
    /// The key, or its parts; the manifest's primary key is read from the data when `None`.
    pub(super) key: Option<Value>,
    /// The fields; `None` deletes the record.
    pub(super) data: Option<RecordData>,
    pub(super) emitted_at: Option<String>,
    /// How much text it took in the file.
    pub(super) bytes: usize,
}

impl<'a> Intake<'a> {
    /// An import into `connection` through `writer`. With a manifest, only its streams are taken.
    /// Setting `stop` ends the import at the next record.
    pub fn new(
        writer: StoreWriter,
        connection: ConnectionId,
        manifest: Option<Manifest>,
        report: &'a mut dyn Report,
        stop: &'a AtomicBool,
    ) -> Self {
        Self { writer, connection, manifest, report, stop, rejected: 0 }
    }

    /// Writes what is left. Gives what was done, and how many pieces were refused.
    ///
    /// # Errors
    ///
    /// The store cannot be written.
    pub fn finish(self) -> Result<(Tally, u64), ImportError> {
        Ok((self.writer.finish()?, self.rejected))
    }

    pub(super) fn reject(&mut self, place: &dyn fmt::Display, reason: &str) {
        self.rejected += 1;
        self.report.rejected(place, reason);
    }

    /// Writes a record, or refuses it with a reason.
    pub(super) fn take(&mut self, place: &dyn fmt::Display, draft: Draft<'_>) -> Result<(), ImportError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(ImportError::Stopped);
        }
        let bytes = draft.bytes;
        match self.accept(draft) {
            Ok(incoming) => Ok(self.writer.write(incoming, bytes)?),
            Err(reason) => {
                self.reject(place, &reason);
                Ok(())
            }
        }
    }

    fn accept(&self, draft: Draft<'_>) -> Result<Incoming, String> {
        let stream: StreamName =
            draft.stream.parse().map_err(|problem| format!("the stream name is no name: {problem}"))?;
        let definition = match &self.manifest {
            None => None,
            Some(manifest) => Some(manifest.stream(stream.as_str())?),
        };
        let primary_key = definition.map(|definition| definition.primary_key.as_slice()).unwrap_or_default();
        let key = match (draft.key, &draft.data) {
            (Some(key), _) => canonical_key(&key)?,
            (None, Some(data)) => key_of(primary_key, data)?,
            (None, None) => return Err("there is no `key`".to_owned()),
        };
        let key: RecordId =
            key.parse().map_err(|problem| format!("its key cannot be addressed: {problem}"))?;
        let address = RecordAddress {
            connection: Some(self.connection.clone()),
            stream: stream.clone(),
            record: key.clone(),
        };
        // A long record is read by the handles of its parts, which are longer than its own.
        if Handle::mint(&address).and_then(|handle| handle.with_part(u32::MAX)).is_none() {
            return Err("its key is too long: no handle of a part could carry it".to_owned());
        }
        let change = match draft.data {
            Some(data) => Change::Put { data, emitted_at: draft.emitted_at },
            None => Change::Delete { deleted_at: draft.emitted_at },
        };
        Ok(Incoming { stream, key, change })
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
    canonical_key(&Value::Array(parts))
}
