//! Copies of stores between files and databases.
//!
//! A copy is an import of all records, with their keys, texts and times, so handles stay the same. Each stream is compared
//! first, by the number and a hash of its records: one that is the same is not written. So an interrupted copy continues when
//! it is run again, and a complete one writes nothing. After the last record each stream is compared again.
//!
//! A project keeps its id and those of its documents and chunks. Its vectors and its search history are not copied.
//!
//! * `digest`: the number and the hash of the records of a stream

mod digest;

use std::sync::atomic::{AtomicBool, Ordering};

use fetchwell_core::handle::{ConnectionId, RecordScope, StreamName};
use fetchwell_core::record::RecordData;

use self::digest::StreamDigest;
use super::documents::ProjectCopy;
use super::record_export::RecordExport;
use super::record_store::RecordStore;
use super::sync::{ImportTarget, ImportWriter};
use crate::contract::{
    Change, CopiedConnection, ExportError, ExportedStream, IncomingRecord, NewConnection, ScopeError,
    StoreError, Tally, no_progress,
};

/// Copy of a store.
#[derive(Debug)]
pub struct StoreCopy<'a> {
    /// Store that is read.
    pub from: &'a dyn RecordStore,
    /// Store that is written, as it is read.
    pub to: &'a dyn RecordStore,
    /// Store that is written.
    pub target: Box<dyn ImportTarget>,
}

/// Result of copying one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionCopy {
    /// Id of the connection.
    pub connection_id: ConnectionId,
    /// Number of records that both stores have now.
    pub records: u64,
    /// Records that were written, by effect.
    pub tally: Tally,
}

/// Reason why a store is not copied completely. What was written stays.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// A store cannot be read.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// A store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The copy has other records.
    #[error(
        "the stream `{stream}` of `{connection}` has {from} records and its copy {to}, or their texts differ; if no import writes to either store, remove `{connection}` from the copy with `fetchwell remove` and copy again"
    )]
    Different {
        /// Id of the connection.
        connection: String,
        /// Name of the stream.
        stream: String,
        /// Number of records.
        from: u64,
        /// Number of records of the copy.
        to: u64,
    },
    /// The copy of a project has other documents or chunks.
    #[error(
        "the project `{project}` has {from} chunks and its copy {to}, or their ids differ; if no import writes to either store, remove `{project}` from the copy with `fetchwell remove` and copy again"
    )]
    DifferentProject {
        /// Slug of the project.
        project: String,
        /// Number of chunks.
        from: usize,
        /// Number of chunks of the copy.
        to: usize,
    },
    /// The user stopped the copy.
    #[error("stopped; run the command again to copy the rest")]
    Stopped,
}

impl<Sink: std::error::Error + Into<Self>> From<ExportError<Sink>> for CopyError {
    fn from(error: ExportError<Sink>) -> Self {
        match error {
            ExportError::Store(error) => error.into(),
            ExportError::Sink(error) => error.into(),
        }
    }
}

impl StoreCopy<'_> {
    /// Returns the connections of the store that is read.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn connections(&self) -> Result<Vec<CopiedConnection>, StoreError> {
        self.from.connections()
    }

    /// Copies a connection with all records and deletions. A project keeps the ids of its documents and chunks.
    ///
    /// # Errors
    ///
    /// A store cannot be used, the copy was stopped, or it differs after the last record.
    pub fn copy(&self, connection: &NewConnection, stop: &AtomicBool) -> Result<ConnectionCopy, CopyError> {
        let id = &connection.connection_id;
        let Some(project) = self.from.project(id)? else {
            return self.copy_records(connection, None, stop);
        };
        self.target.put_project(&project.project)?;
        let copied = self.copy_records(connection, Some(&project), stop)?;
        let to = self.to.project(id)?;
        // An import may have changed the project meanwhile, or removed it.
        let from = self.from.project(id)?;
        let is_same = from.as_ref().zip(to.as_ref()).is_some_and(|(from, to)| from.is_same(to));
        if is_same {
            return Ok(copied);
        }
        let count = |project: Option<ProjectCopy>| project.map_or(0, |project| project.chunks.count());
        Err(CopyError::DifferentProject { project: id.to_string(), from: count(from), to: count(to) })
    }

    fn copy_records(
        &self,
        connection: &NewConnection,
        project: Option<&ProjectCopy>,
        stop: &AtomicBool,
    ) -> Result<ConnectionCopy, CopyError> {
        let scope = RecordScope { connection: connection.connection_id.clone(), stream: None, record: None };
        let from = self.from.export(&scope)?;
        let mut missing = Vec::new();
        let mut records = 0;
        for stream in from.streams() {
            let digest = StreamDigest::of_stream(&*from, stream)?;
            records += digest.records;
            if self.copied(&scope, stream)? != digest {
                missing.push(stream.clone());
            }
            if stop.load(Ordering::Relaxed) {
                return Err(CopyError::Stopped);
            }
        }
        let mut tally = Tally::default();
        if !missing.is_empty() || !self.has_connection(connection)? {
            let chunks = project.map(|project| project.chunks.clone());
            let writer = self.target.open(connection, chunks, &no_progress)?;
            tally = write(writer, &*from, &missing, stop)?;
        }
        // An import may have changed the stream meanwhile, so both sides are read again.
        for stream in &missing {
            let (digest, copied) = (StreamDigest::of_stream(&*from, stream)?, self.copied(&scope, stream)?);
            if digest != copied {
                return Err(CopyError::Different {
                    connection: connection.connection_id.to_string(),
                    stream: stream.name.clone(),
                    from: digest.records,
                    to: copied.records,
                });
            }
        }
        Ok(ConnectionCopy { connection_id: connection.connection_id.clone(), records, tally })
    }

    /// Returns the digest of a stream of the copy, which may not exist yet.
    fn copied(&self, scope: &RecordScope, stream: &ExportedStream) -> Result<StreamDigest, CopyError> {
        let to = match self.to.export(scope) {
            Ok(to) => to,
            Err(ScopeError::ConnectionNotFound { .. } | ScopeError::Store(StoreError::Missing(_))) => {
                return Ok(StreamDigest::default());
            }
            Err(error) => return Err(error.into()),
        };
        let copied = to.streams().iter().find(|known| known.name == stream.name);
        Ok(copied.map(|copied| StreamDigest::of_stream(&*to, copied)).transpose()?.unwrap_or_default())
    }

    /// Returns true if the copy has a connection with the same names and manifest.
    fn has_connection(&self, wanted: &NewConnection) -> Result<bool, StoreError> {
        let known = match self.to.connections() {
            Err(StoreError::Missing(_)) => return Ok(false),
            known => known?,
        };
        let is_same = |known: &CopiedConnection| {
            let known = &known.connection;
            known.connection_id == wanted.connection_id
                && known.display_name == wanted.display_name
                && known.manifest == wanted.manifest
        };
        Ok(known.iter().any(is_same))
    }
}

/// Writes the records and deletions of some streams.
fn write(
    mut writer: ImportWriter,
    from: &dyn RecordExport,
    streams: &[ExportedStream],
    stop: &AtomicBool,
) -> Result<Tally, CopyError> {
    for stream in streams {
        let Ok(name) = stream.name.parse::<StreamName>() else { continue };
        from.each_row(stream, |row| {
            if stop.load(Ordering::Relaxed) {
                return Err(CopyError::Stopped);
            }
            let Ok(key) = row.key.parse() else { return Ok(()) };
            let emitted_at = row.emitted_at.map(str::to_owned);
            let change = match row.data {
                None => Change::Delete { deleted_at: emitted_at },
                Some(data) => {
                    let data: RecordData = serde_json::from_str(data).unwrap_or_default();
                    Change::Put { data, emitted_at }
                }
            };
            let bytes = row.data.map_or(0, str::len);
            let incoming = IncomingRecord { stream: name.clone(), key, change };
            writer.write(incoming, bytes).map_err(CopyError::from)
        })?;
    }
    let finished = writer.finish(&no_progress)?;
    match finished.index_problem {
        Some(problem) => Err(problem.into()),
        None => Ok(finished.tally),
    }
}
