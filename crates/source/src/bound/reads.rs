//! Records that a call read, for the audit log.

use fetchwell_core::handle::{ConnectionId, RecordAddress, SourceName};
use fetchwell_core::record::{Hit, HitId};
use fetchwell_telemetry::{CallAudit, ReadKind, ReadRecord};

use crate::documents::DOCUMENTS_STREAM;

/// Reports of a call about the records that it read. Without an audit log they have no effect.
#[derive(Debug, Clone, Default)]
pub struct RecordReads {
    audit: Option<CallAudit>,
    /// Name of the caller's token, or hash of its grant.
    caller: Option<String>,
}

impl RecordReads {
    /// Creates the reports of a call of a caller.
    pub(super) fn new(audit: Option<CallAudit>, caller: Option<String>) -> Self {
        Self { audit, caller }
    }

    /// Returns true if reports have an effect.
    pub(super) fn is_audited(&self) -> bool {
        self.audit.is_some()
    }

    /// Reports hits of a search, each with its source.
    pub(super) fn hits<'a>(&self, hits: impl Iterator<Item = (&'a Hit, Option<SourceName>)>) {
        let Some(audit) = &self.audit else { return };
        let hits: Vec<_> = hits.collect();
        let read = hits.iter().filter_map(|(hit, source)| {
            let source = source.as_ref().map(SourceName::as_str);
            match &hit.id {
                HitId::Record(address) => Some(read_record(source, address)),
                HitId::Opaque(id) => Some(ReadRecord { source, connection: None, stream: None, key: id }),
                HitId::Nameless => None,
            }
        });
        audit.write(self.caller.as_deref(), ReadKind::Search, read);
    }

    /// Reports records, each with its source.
    pub(super) fn records<'a>(
        &self,
        kind: ReadKind,
        records: impl Iterator<Item = (&'a RecordAddress, Option<SourceName>)>,
    ) {
        let Some(audit) = &self.audit else { return };
        let records: Vec<_> = records.collect();
        let read = records
            .iter()
            .map(|(address, source)| read_record(source.as_ref().map(SourceName::as_str), address));
        audit.write(self.caller.as_deref(), kind, read);
    }

    /// Reports documents of a project by their ids.
    pub fn documents(
        &self,
        kind: ReadKind,
        source: &SourceName,
        connection: &ConnectionId,
        ids: impl IntoIterator<Item = String>,
    ) {
        let Some(audit) = &self.audit else { return };
        let ids: Vec<String> = ids.into_iter().collect();
        let read = ids.iter().map(|id| ReadRecord {
            source: Some(source.as_str()),
            connection: Some(connection.as_str()),
            stream: Some(DOCUMENTS_STREAM),
            key: id,
        });
        audit.write(self.caller.as_deref(), kind, read);
    }
}

fn read_record<'a>(source: Option<&'a str>, address: &'a RecordAddress) -> ReadRecord<'a> {
    ReadRecord {
        source,
        connection: address.connection.as_ref().map(ConnectionId::as_str),
        stream: Some(address.stream.as_str()),
        key: address.record.as_str(),
    }
}
