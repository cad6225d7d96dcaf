//! Sources that failed during one call, and the errors that follow from it.

use fetchwell_core::handle::SourceName;
use fetchwell_core::record::Unavailable;

use crate::{QueryFault, SourceError};

/// Failed sources with their errors, in the order in which they failed.
#[derive(Debug, Default)]
pub(super) struct Failures(Vec<(SourceName, SourceError)>);

impl Failures {
    pub(super) fn add(&mut self, source: &SourceName, error: SourceError) {
        self.0.push((source.clone(), error));
    }

    /// Returns true if the condition holds for every failure, or if there is none.
    pub(super) fn are_all(&self, is_so: impl Fn(&SourceError) -> bool) -> bool {
        self.0.iter().all(|(_, error)| is_so(error))
    }

    /// Returns the only source that failed, if it did answer and refused only this call.
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

    /// Converts the failures to entries beside an answer. A source that lacks the stream is not an entry.
    pub(super) fn into_unavailable(self) -> Vec<Unavailable> {
        let mut unavailable: Vec<Unavailable> = Vec::new();
        for (source, error) in self.0 {
            if !is_missing_stream(&error) && unavailable.iter().all(|before| before.source != source) {
                unavailable.push(error.unavailable(source));
            }
        }
        // Sources fail in the order of their deadlines, and answers must not depend on that.
        unavailable.sort_by(|one, other| one.source.cmp(&other.source));
        unavailable
    }

    /// Returns the error of a call without any answer: that of the only source, or the error in the query, or a list
    /// of all failures.
    pub(super) fn into_error(mut self, what: &str) -> SourceError {
        self.0.sort_by(|one, other| one.0.cmp(&other.0));
        if self.0.iter().any(|(_, error)| !is_missing_stream(error)) {
            self.0.retain(|(_, error)| !is_missing_stream(error));
        }
        if self.0.len() == 1 || self.0.iter().all(|(_, error)| !error.is_transient()) {
            return match self.0.into_iter().next() {
                Some((source_name, error)) => SourceError::FromSource { source_name, error: Box::new(error) },
                None => SourceError::NotFound { what: "no source is configured that has it".to_owned() },
            };
        }
        self.all_failed(what.to_owned())
    }

    pub(super) fn all_failed(self, what: String) -> SourceError {
        SourceError::AllFailed { what, failed: self.into_unavailable() }
    }
}

/// Returns true if the source only reports that it lacks the stream.
pub(super) fn is_missing_stream(error: &SourceError) -> bool {
    match error {
        SourceError::InvalidQuery { fault: QueryFault::UnknownStream, .. } => true,
        SourceError::Refused(refusal) => {
            matches!(refusal.code.as_str(), "stream_not_declared" | "grant_stream_not_allowed")
        }
        SourceError::FromSource { error, .. } => is_missing_stream(error),
        _ => false,
    }
}
