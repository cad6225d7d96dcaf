//! Caches of a server's answers.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_core::lru::{LruCache, LruLimits};
use fetchwell_core::record::RecordData;

use crate::reply::ResultsPage;

/// Lifetime of a page of results, so that the pages of a search are cut from one list.
const PAGE_LIFETIME: Duration = Duration::from_secs(120);

/// Lifetime of a record, so that the parts of a long text are of one text.
const RECORD_LIFETIME: Duration = Duration::from_secs(60);

/// Maximum size of the cached answers of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CacheLimits {
    /// Maximum size of all pages, and of all records, in bytes.
    bytes: u64,
}

impl CacheLimits {
    /// Limits of a server that all callers share.
    pub(crate) const SHARED: Self = Self { bytes: 32 * 1024 * 1024 };

    /// Limits of a server of one caller: those of 256 callers take at most 512 MiB.
    pub(crate) const OF_CALLER: Self = Self { bytes: 1024 * 1024 };
}

/// Cache of pages of results.
pub(crate) type PageCache = LruCache<PageKey, Arc<ResultsPage>>;

/// Key of a page of results. It has the digest of the page, so that the answer to one caller does not replace the page that
/// the cursor of another one continues.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PageKey {
    /// Words of the search.
    pub(crate) words: String,
    /// Position of the server.
    pub(crate) cursor: Option<String>,
    /// Number of results that the server is asked for.
    pub(crate) limit: u64,
    /// Digest of the page.
    pub(crate) digest: String,
}

/// Cache of records, by their ids.
pub(crate) type RecordCache = LruCache<String, Arc<FetchedRecord>>;

/// Record of a server with the digest of its content.
#[derive(Debug)]
pub(crate) struct FetchedRecord {
    /// Fields of the record.
    pub(crate) data: RecordData,
    /// Digest by which a changed record is noticed.
    pub(crate) digest: String,
    /// Size of its text in bytes.
    pub(crate) bytes: usize,
}

/// Creates the cache of pages.
pub(crate) fn page_cache(limits: CacheLimits) -> PageCache {
    let weight = |key: &PageKey, page: &Arc<ResultsPage>| {
        let items =
            page.items.iter().flat_map(|item| [&item.id, &item.title, &item.text, &item.url, &item.date]);
        let texts: usize = items.map(|text| text.as_ref().map_or(0, String::len) + size_of::<String>()).sum();
        key.words.len() + key.cursor.as_ref().map_or(0, String::len) + key.digest.len() + texts
    };
    LruCache::with_weights(LruLimits::new(limits.bytes).with_lifetime(PAGE_LIFETIME), weight)
}

/// Creates the cache of records.
pub(crate) fn record_cache(limits: CacheLimits) -> RecordCache {
    let weight = |id: &String, record: &Arc<FetchedRecord>| id.len() + record.bytes;
    LruCache::with_weights(LruLimits::new(limits.bytes).with_lifetime(RECORD_LIFETIME), weight)
}
