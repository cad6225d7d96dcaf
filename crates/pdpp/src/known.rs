//! Cache of schemas, for each grant, and of how the server searches.
//!
//! A list over several connections needs their names and the order of their records. Both change seldom, so they are
//! cached for `KEPT_FOR`. Entries are dropped when the server refuses a call and when the whole schema is read.
//! Grants have separate entries.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fetchwell_core::handle::{ConnectionId, StreamName};
use fetchwell_core::lru::{LruCache, LruLimits};
use fetchwell_core::record::{Schema, StreamDetail};
use parking_lot::Mutex;

use super::transport::Grant;
use super::wire::DeclaredModes;

/// Time for which a schema is used without reading it again.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// Time for which what is known of the server's searches is used.
const MODES_KEPT_FOR: Duration = Duration::from_secs(600);

/// Maximum number of cached fields and streams of one server.
const MAX_ITEMS: u64 = 50_000;

/// Key of the descriptions of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct StreamKey {
    pub(crate) grant: Grant,
    pub(crate) stream: StreamName,
    /// Connection of a full description; `None` for the compact description of all connections.
    pub(crate) full_of: Option<ConnectionId>,
}

/// Cached schemas of one server.
#[derive(Debug)]
pub(crate) struct KnownSchemas {
    streams: LruCache<StreamKey, Arc<Vec<StreamDetail>>>,
    schemas: LruCache<Grant, Arc<Schema>>,
    /// Search methods with the time at which they were read. They are the same for all grants.
    modes: Mutex<Option<(Instant, DeclaredModes)>>,
    /// Time at which the server returned records that lack words of the query.
    matches_any_word: Mutex<Option<Instant>>,
}

impl Default for KnownSchemas {
    fn default() -> Self {
        let limits = LruLimits::new(MAX_ITEMS).with_lifetime(KEPT_FOR);
        let of_streams = |_: &StreamKey, details: &Arc<Vec<StreamDetail>>| {
            weight(details.iter().map(|detail| detail.fields.len()))
        };
        let of_schemas = |_: &Grant, schema: &Arc<Schema>| {
            weight(schema.connections.iter().map(|connection| connection.streams.len()))
        };
        Self {
            streams: LruCache::with_weights(limits, of_streams),
            schemas: LruCache::with_weights(limits, of_schemas),
            modes: Mutex::default(),
            matches_any_word: Mutex::default(),
        }
    }
}

impl KnownSchemas {
    /// Returns the descriptions of a stream.
    pub(crate) fn stream(&self, key: &StreamKey) -> Option<Arc<Vec<StreamDetail>>> {
        self.streams.get(key)
    }

    /// Caches descriptions of a stream, without the connector's declaration.
    pub(crate) fn keep_stream(
        &self,
        key: StreamKey,
        mut details: Vec<StreamDetail>,
    ) -> Arc<Vec<StreamDetail>> {
        details.iter_mut().for_each(|detail| detail.declaration = None);
        let details = Arc::new(details);
        self.streams.insert(key, Arc::clone(&details));
        details
    }

    /// Returns the search methods that the server declares, if they were read a short time ago.
    pub(crate) fn modes(&self) -> Option<DeclaredModes> {
        let modes = *self.modes.lock();
        modes.filter(|(read, _)| read.elapsed() < MODES_KEPT_FOR).map(|(_, modes)| modes)
    }

    /// Caches the search methods that the server declares.
    pub(crate) fn keep_modes(&self, modes: DeclaredModes) {
        *self.modes.lock() = Some((Instant::now(), modes));
    }

    /// Returns true if the server returned records that lack words of the query, a short time ago.
    pub(crate) fn matches_any_word(&self) -> bool {
        self.matches_any_word.lock().is_some_and(|seen| seen.elapsed() < MODES_KEPT_FOR)
    }

    /// Remembers that the server returns records that lack words of the query.
    pub(crate) fn keep_matches_any_word(&self) {
        *self.matches_any_word.lock() = Some(Instant::now());
    }

    /// Returns the whole schema of a grant.
    pub(crate) fn schema(&self, grant: Grant) -> Option<Arc<Schema>> {
        self.schemas.get(&grant)
    }

    /// Caches the whole schema of a grant and drops all cached streams of it.
    pub(crate) fn keep_schema(&self, grant: Grant, schema: &Schema) {
        self.forget_streams(grant);
        self.schemas.insert(grant, Arc::new(schema.clone()));
    }

    /// Drops the cached streams of a grant, which a refusal contradicts. Other grants keep theirs.
    pub(crate) fn forget_streams(&self, grant: Grant) {
        self.streams.remove_if(|key| key.grant == grant);
    }
}

/// Returns the number of items, plus one for each list.
fn weight(items: impl Iterator<Item = usize>) -> usize {
    items.map(|count| count + 1).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_one_grant_forgets_nothing_of_another() {
        let known = KnownSchemas::default();
        let key = |token: &str| StreamKey {
            grant: Grant::new(&token.to_owned().into()),
            stream: "messages".parse().unwrap(),
            full_of: None,
        };
        let (ann, bob) = (key("ann"), key("bob"));
        let keep = || {
            known.keep_stream(ann.clone(), Vec::new());
            known.keep_stream(bob.clone(), Vec::new());
        };
        keep();
        known.forget_streams(ann.grant);
        assert_eq!((known.stream(&ann).is_some(), known.stream(&bob).is_some()), (false, true));
        keep();
        known.keep_schema(bob.grant, &Schema::default());
        assert_eq!((known.stream(&ann).is_some(), known.stream(&bob).is_some()), (true, false));
    }
}
