//! Notes and failures that are collected while the sources answer one call.

use fetchwell_core::handle::SourceName;
use fetchwell_core::record::Unavailable;

use super::failures::{Failures, is_missing_stream};
use crate::SourceError;

/// Notes, unavailable sources and failures so far.
#[derive(Debug, Default)]
pub(super) struct SourceOutcomes {
    /// True if at least one source answered.
    pub(super) answered: bool,
    pub(super) notes: Vec<String>,
    pub(super) unavailable: Vec<Unavailable>,
    pub(super) failed: Failures,
}

impl SourceOutcomes {
    /// Adds the notes of a source that answered.
    pub(super) fn answer(&mut self, source: &SourceName, notes: Vec<String>, unavailable: Vec<Unavailable>) {
        self.answered = true;
        self.notes.extend(notes.into_iter().map(|note| format!("source `{source}`: {note}")));
        self.unavailable.extend(unavailable);
    }

    /// Adds a failure. Returns true if the source only lacks the stream.
    pub(super) fn failure(&mut self, source: &SourceName, error: SourceError) -> bool {
        let has_nothing = is_missing_stream(&error);
        self.failed.add(source, error);
        has_nothing
    }

    /// Returns the notes and the sources that are missing from the answer.
    pub(super) fn into_unavailable(self) -> (Vec<String>, Vec<Unavailable>) {
        let mut unavailable = self.unavailable;
        unavailable.extend(self.failed.into_unavailable());
        (self.notes, unavailable)
    }
}
