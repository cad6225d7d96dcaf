//! The sources that did not answer a question, and what that means for the answer.

use crate::handle::SourceName;
use crate::record::Unavailable;
use crate::source::{QueryFault, SourceError};

/// Who failed, and why, in the order of the failures.
#[derive(Debug, Default)]
pub(super) struct Failures(Vec<(SourceName, SourceError)>);

impl Failures {
    pub(super) fn add(&mut self, source: &SourceName, error: SourceError) {
        self.0.push((source.clone(), error));
    }

    /// Whether this is so of every failure; also when there is none.
    pub(super) fn are_all(&self, is_so: impl Fn(&SourceError) -> bool) -> bool {
        self.0.iter().all(|(_, error)| is_so(error))
    }

    /// The only source that failed, if it answers and only does not answer this.
    pub(super) fn only_one_that_refuses(&self) -> Option<&SourceName> {
        match self.0.as_slice() {
            [(source, SourceError::Refused(_) | SourceError::Protocol(_))] => Some(source),
            _ => None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As they stand beside an answer. A source without the stream that was asked for is not missing from it.
    pub(super) fn beside_an_answer(self) -> Vec<Unavailable> {
        let mut unavailable: Vec<Unavailable> = Vec::new();
        for (source, error) in self.0 {
            if !is_elsewhere(&error) && unavailable.iter().all(|before| before.source != source) {
                unavailable.push(error.unavailable(source));
            }
        }
        // Sources fail in the order of their deadlines, and answers do not depend on that.
        unavailable.sort_by(|one, other| one.source.cmp(&other.source));
        unavailable
    }

    /// The error when nobody answered: that of the only source, or what is wrong with the question, or else the
    /// list of them.
    pub(super) fn instead_of_an_answer(mut self, what: &str) -> SourceError {
        self.0.sort_by(|one, other| one.0.cmp(&other.0));
        if self.0.iter().any(|(_, error)| !is_elsewhere(error)) {
            self.0.retain(|(_, error)| !is_elsewhere(error));
        }
        if self.0.len() == 1 || self.0.iter().all(|(_, error)| !error.is_transient()) {
            return match self.0.into_iter().next() {
                Some((source_name, error)) => SourceError::FromSource { source_name, error: Box::new(error) },
                None => SourceError::NotFound { what: "no source is configured that has it".to_owned() },
            };
        }
        self.none_answered(what.to_owned())
    }

    pub(super) fn none_answered(self, what: String) -> SourceError {
        SourceError::AllFailed { what, failed: self.beside_an_answer() }
    }
}

/// Whether the source only says that it has no such stream.
pub(super) fn is_elsewhere(error: &SourceError) -> bool {
    match error {
        SourceError::InvalidQuery { fault: QueryFault::UnknownStream, .. } => true,
        SourceError::Refused(refusal) => {
            matches!(refusal.code.as_str(), "stream_not_declared" | "grant_stream_not_allowed")
        }
        SourceError::FromSource { error, .. } => is_elsewhere(error),
        _ => false,
    }
}
