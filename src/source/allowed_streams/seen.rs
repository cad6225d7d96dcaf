//! The schema as it was seen last, for a short while.
//!
//! A search that names no stream has to know which of the allowed ones there are; asking for that each time would
//! be two requests more for each search.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::record::Schema;

/// How long a schema is believed. A stream that comes is found by searches after this; one that goes is noticed when
/// the source refuses it.
const BELIEVED_FOR: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<Option<(Instant, Arc<Schema>)>>);

impl Seen {
    pub(super) fn recent(&self) -> Option<Arc<Schema>> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.as_ref().filter(|(at, _)| at.elapsed() < BELIEVED_FOR).map(|(_, schema)| Arc::clone(schema))
    }

    pub(super) fn keep(&self, schema: Schema) -> Arc<Schema> {
        let schema = Arc::new(schema);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), Arc::clone(&schema)));
        schema
    }
}
