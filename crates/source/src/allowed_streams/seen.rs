//! Cache of the visible schema.
//!
//! A search that names no stream needs to know which of the allowed streams exist. Without the cache, that would cost
//! two more requests per search.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fetchwell_core::record::Schema;
use parking_lot::Mutex;

/// Time to live of the cached schema. A new stream is found by searches after this time; a removed one is noticed
/// when the source refuses it.
const TIME_TO_LIVE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct SchemaCache(Mutex<Option<(Instant, Arc<Schema>)>>);

impl SchemaCache {
    pub(super) fn get(&self) -> Option<Arc<Schema>> {
        let seen = self.0.lock();
        seen.as_ref().filter(|(at, _)| at.elapsed() < TIME_TO_LIVE).map(|(_, schema)| Arc::clone(schema))
    }

    pub(super) fn put(&self, schema: Schema) -> Arc<Schema> {
        let schema = Arc::new(schema);
        *self.0.lock() = Some((Instant::now(), Arc::clone(&schema)));
        schema
    }
}
