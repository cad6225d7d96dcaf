//! Reads of all records of a scope of a store, for exports and copies.

use std::fmt;
use std::ops::ControlFlow;

use crate::contract::{ExportError, ExportedRecord, ExportedStream, RowVersion, StoreError, StreamFields};

/// Open export of a scope. Its reads block, so they must not be called on a thread of an async runtime.
pub trait RecordExport: fmt::Debug {
    /// Returns the streams.
    fn streams(&self) -> &[ExportedStream];

    /// Returns the fields that records of a stream have, at most
    /// [`MAX_EXPORTED_FIELDS`](crate::contract::MAX_EXPORTED_FIELDS).
    fn fields(&self, stream: &ExportedStream) -> Result<StreamFields, StoreError>;

    /// Reads the records of a stream and those that were deleted, as they are at one moment and in the order of their last
    /// changes or of their imports. Calls `visit` with each until it breaks.
    fn visit_rows(
        &self,
        stream: &ExportedStream,
        visit: &mut dyn FnMut(RowVersion<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;
}

impl dyn RecordExport + '_ {
    /// Reads the records of a stream as they are at one moment. Calls `visit` with each until it fails.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or `visit` failed.
    pub fn each_record<Sink: std::error::Error>(
        &self,
        stream: &ExportedStream,
        mut visit: impl FnMut(ExportedRecord<'_>) -> Result<(), Sink>,
    ) -> Result<(), ExportError<Sink>> {
        self.each_row(stream, |row| match row.data {
            Some(data) => visit(ExportedRecord { key: row.key, data, emitted_at: row.emitted_at }),
            None => Ok(()),
        })
    }

    /// Reads the records of a stream and those that were deleted, as they are at one moment. Calls `visit` with each until it
    /// fails.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or `visit` failed.
    pub fn each_row<Sink: std::error::Error>(
        &self,
        stream: &ExportedStream,
        mut visit: impl FnMut(RowVersion<'_>) -> Result<(), Sink>,
    ) -> Result<(), ExportError<Sink>> {
        let mut failed = None;
        self.visit_rows(stream, &mut |row| match visit(row) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        })?;
        failed.map_or(Ok(()), |error| Err(ExportError::Sink(error)))
    }
}
