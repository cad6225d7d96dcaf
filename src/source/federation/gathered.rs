//! What the sources said for one answer beside its rows, and who said nothing.

use super::failures::{Failures, is_elsewhere};
use crate::handle::SourceName;
use crate::record::Unavailable;
use crate::source::SourceError;

/// What was said so far.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// Some source answered.
    pub(super) answered: bool,
    pub(super) notes: Vec<String>,
    pub(super) unavailable: Vec<Unavailable>,
    pub(super) failed: Failures,
}

impl Gathered {
    /// A source answered.
    pub(super) fn answer(&mut self, source: &SourceName, notes: Vec<String>, unavailable: Vec<Unavailable>) {
        self.answered = true;
        self.notes.extend(notes.into_iter().map(|note| format!("source `{source}`: {note}")));
        self.unavailable.extend(unavailable);
    }

    /// A source did not; says whether that is because it has nothing of the kind.
    pub(super) fn failure(&mut self, source: &SourceName, error: SourceError) -> bool {
        let has_nothing = is_elsewhere(&error);
        self.failed.add(source, error);
        has_nothing
    }

    /// The notes, and the sources that are missing.
    pub(super) fn beside_an_answer(self) -> (Vec<String>, Vec<Unavailable>) {
        let mut unavailable = self.unavailable;
        unavailable.extend(self.failed.beside_an_answer());
        (self.notes, unavailable)
    }
}
