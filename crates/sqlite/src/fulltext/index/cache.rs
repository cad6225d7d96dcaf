//! Bounded cache of ranges of index files, one for the whole process.
//!
//! Every query reads the field norms of its segments, the posting list of its stream and blocks of the term
//! dictionary; without this cache each would be copied from the system's page cache every time.

use std::io;
use std::ops::Range;
use std::sync::LazyLock;

use fetchwell_core::saturate::saturated;
use moka::sync::Cache;
use tantivy::directory::OwnedBytes;

/// Maximum bytes in the cache, over all stores.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Maximum length in bytes of a cached range. A longer one would evict everything else.
const MAX_RANGE: usize = 1024 * 1024 + 64 * 1024;

/// Estimated overhead of a cache entry in bytes.
const ENTRY_BYTES: usize = 200;

/// Key of a cached range: an open file and the range in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct RangeKey {
    file: u64,
    start: usize,
    end: usize,
}

impl RangeKey {
    pub(super) fn new(file: u64, range: &Range<usize>) -> Self {
        Self { file, start: range.start, end: range.end }
    }
}

static CACHE: LazyLock<Cache<RangeKey, OwnedBytes>> = LazyLock::new(|| {
    Cache::builder()
        .max_capacity(MAX_BYTES)
        .weigher(|_: &RangeKey, bytes: &OwnedBytes| saturated::<u32>(bytes.len() + ENTRY_BYTES))
        .build()
});

/// Returns a range from the cache, or reads and caches it.
pub(super) fn get_or_read(
    key: RangeKey,
    read: impl FnOnce() -> io::Result<OwnedBytes>,
) -> io::Result<OwnedBytes> {
    if key.end - key.start > MAX_RANGE {
        return read();
    }
    if let Some(bytes) = CACHE.get(&key) {
        return Ok(bytes);
    }
    let bytes = read()?;
    CACHE.insert(key, bytes.clone());
    Ok(bytes)
}
