//! Search hits with an id of the source's own, which is not a handle.
//!
//! No source can be asked for such an id later, so hits of answers are kept for ten minutes and `fetch` returns them from
//! memory. Limited to [`MAX_CACHE_BYTES`]; the least recently used ids are evicted first.

use std::time::Duration;

use fetchwell_core::fit::{clip, clip_line};
use fetchwell_core::handle::RecordAddress;
use fetchwell_core::lru::{Lookups, LruCache, LruLimits};
use fetchwell_core::record::{Hit, HitId};

/// Maximum length of a source's own id in an answer, in bytes.
pub(crate) const MAX_OPAQUE_ID_BYTES: usize = 1_024;

/// Maximum memory of the cache, in bytes.
const MAX_CACHE_BYTES: u64 = 8 * 1024 * 1024;

/// Size of a cache entry without its texts, in bytes.
const ENTRY_BYTES: usize = 512;

/// Maximum length of a cached title, in bytes of JSON. Equal to that of a title in `fetch`.
const MAX_TITLE_BYTES: usize = 300;

/// Maximum length of a cached label, in bytes of JSON.
const MAX_LABEL_BYTES: usize = 100;

/// Cache of the hits with an id of the source's own.
#[derive(Debug, Clone)]
pub(crate) struct SeenIds(LruCache<String, Hit>);

impl Default for SeenIds {
    fn default() -> Self {
        let minutes = Duration::from_secs(600);
        let limits = LruLimits::new(MAX_CACHE_BYTES).with_lifetime(minutes);
        Self(LruCache::with_weights(limits, |id: &String, hit: &Hit| {
            id.len() + text_bytes(hit) + ENTRY_BYTES
        }))
    }
}

impl SeenIds {
    /// Returns the hits and misses of the cache.
    pub(crate) fn lookups(&self) -> Lookups {
        self.0.lookups()
    }

    pub(crate) fn remember(&self, id: &str, hit: Hit) {
        self.0.insert(id.to_owned(), shortened(hit));
    }

    pub(crate) fn get(&self, id: &str) -> Option<Hit> {
        self.0.get(id)
    }
}

/// Returns the hit with its title and id shortened to what an answer would show.
pub(crate) fn shortened(mut hit: Hit) -> Hit {
    hit.title = clip_line(&hit.title, MAX_TITLE_BYTES);
    hit.account = hit.account.map(|label| clip(&label, MAX_LABEL_BYTES));
    if matches!(&hit.id, HitId::Opaque(id) if id.len() > MAX_OPAQUE_ID_BYTES) {
        hit.id = HitId::Nameless;
    }
    hit
}

/// Returns the size of the texts in bytes.
fn text_bytes(hit: &Hit) -> usize {
    let id = match &hit.id {
        HitId::Record(RecordAddress { connection, stream, record }) => {
            let connection = connection.as_ref().map_or(0, |connection| connection.as_str().len());
            connection + stream.as_str().len() + record.as_str().len()
        }
        HitId::Opaque(id) => id.len(),
        HitId::Nameless => 0,
    };
    let link = hit.link.as_ref().map_or(0, |link| link.as_str().len());
    let account = hit.account.as_ref().map_or(0, String::len);
    id + link + account + hit.title.len() + hit.excerpt.text().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(id: HitId, title: &str) -> Hit {
        Hit::new(id, title.to_owned())
    }

    #[test]
    fn recent_ids_are_cached_within_the_memory_limit() {
        let seen = SeenIds::default();
        for number in 0..3_000 {
            let id = format!("doc {number}");
            seen.remember(&id, hit(HitId::Opaque(id.clone()), &"x".repeat(5_000)));
            seen.0.evict();
            assert!(seen.get(&id).is_some(), "{id}");
        }
        // Long titles are shortened, so they do not evict older ids.
        assert!(seen.get("doc 0").is_some());
        for number in 0..30_000 {
            seen.remember(&format!("other {number}"), hit(HitId::Nameless, ""));
        }
        seen.0.evict();
        assert!(seen.0.weight() <= MAX_CACHE_BYTES);
        assert!(seen.get("other 29999").is_some());
    }
}
