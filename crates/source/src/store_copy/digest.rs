//! The number and the hash of the records of a stream, by which two stores are compared.

use std::convert::Infallible;

use sha2::{Digest, Sha256};

use crate::contract::{ExportError, ExportedStream, StoreError};
use crate::record_export::RecordExport;

/// Number of the records of a stream, and the sum of their hashes, whatever their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct StreamDigest {
    pub(super) records: u64,
    hashes: u128,
}

impl StreamDigest {
    fn add(&mut self, key: &str, data: &str) {
        let mut hash = Sha256::new();
        hash.update(u64::try_from(key.len()).unwrap_or_default().to_le_bytes());
        hash.update(key);
        hash.update(data);
        let hash = hash.finalize();
        let first: [u8; 16] = hash.first_chunk().copied().unwrap_or_default();
        self.hashes = self.hashes.wrapping_add(u128::from_le_bytes(first));
        self.records += 1;
    }

    pub(super) fn of_stream(export: &dyn RecordExport, stream: &ExportedStream) -> Result<Self, StoreError> {
        let mut digest = Self::default();
        let read = export.each_record(stream, |record| {
            digest.add(record.key, record.data);
            Ok::<(), Infallible>(())
        });
        match read {
            Ok(()) => Ok(digest),
            Err(ExportError::Store(error)) => Err(error),
            Err(ExportError::Sink(never)) => match never {},
        }
    }
}
