//! Payload of a commit: the state of the store that an index contains.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

/// Layout version. Increased when the fields, the word segmentation or the file format change, so that older indexes
/// are rebuilt.
pub(super) const LAYOUT: u32 = 6;

/// Layouts before the current one. Their indexes answer searches until one of the current layout is complete. Columns of layout 5
/// have timestamps with an offset or with microseconds as texts. Layout 4 has no columns of the fields of records, layout 3 no joined forms of words either; layout 2 has other fields.
pub(super) const PREVIOUS_LAYOUTS: RangeInclusive<u32> = 2..=5;

/// Payload of a commit: the store and the version that the index contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CommitPayload {
    pub(super) layout: u32,
    pub(super) store: String,
    pub(super) version: i64,
    /// Names of the columns of fields that the index may have.
    #[serde(default)]
    pub(super) columns: Vec<String>,
}

impl CommitPayload {
    pub(super) fn new(store: &str, version: i64, columns: Vec<String>) -> Self {
        Self { layout: LAYOUT, store: store.to_owned(), version, columns }
    }
}
