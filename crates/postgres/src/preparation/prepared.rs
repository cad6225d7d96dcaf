//! Texts and words of records, which need no transaction.

use std::collections::HashMap;

use fetchwell_core::handle::StreamName;
use fetchwell_source::contract::{Change, IncomingRecord};

use super::parallel::compute;
use crate::words::{Place, RecordWords};

/// Text and words of a record, as far as they are computed.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    pub(crate) text: Option<String>,
    /// Words of the record with the time that its change says.
    pub(crate) words: Option<RecordWords>,
}

/// Computes the texts of records, and the words of those in known streams.
pub(crate) fn prepare(
    records: &[IncomingRecord],
    connection: i64,
    streams: &HashMap<StreamName, i64>,
) -> Vec<Prepared> {
    compute(records, |record| {
        let Change::Put { data, emitted_at } = &record.change else { return Prepared::default() };
        let words = streams.get(&record.stream).map(|stream| {
            let emitted_at = emitted_at.as_deref().map(without_nul);
            let place = Place { stream: *stream, connection };
            RecordWords::new(place, record.key.as_str(), data, emitted_at.as_deref())
        });
        Prepared { text: serde_json::to_string(data).ok(), words }
    })
}

/// Returns a text without NUL characters, which PostgreSQL does not store. In the text of a record they are escaped.
pub(crate) fn without_nul(text: &str) -> String {
    text.replace('\0', "")
}
