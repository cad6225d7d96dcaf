//! Answers of a server that are kept for a while.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_core::lru::{LruCache, LruLimits};
use fetchwell_core::record::RecordData;

use crate::reply::ResultsPage;

/// Time for which a page of results is kept, so that the pages of a search are cut from one list.
const PAGES_KEPT_FOR: Duration = Duration::from_secs(120);

/// Time for which a record is kept, so that the parts of a long text are of one text.
const RECORDS_KEPT_FOR: Duration = Duration::from_secs(60);

/// Maximum of what is kept of the answers of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptLimits {
    /// Maximum size of all pages, and of all records, in bytes.
    pub(crate) bytes: u64,
    /// Maximum number of digests.
    pub(crate) digests: u64,
}

impl KeptLimits {
    /// Limits of a server that all callers share.
    pub(crate) const SHARED: Self = Self { bytes: 32 * 1024 * 1024, digests: 10_000 };

    /// Limits of a server of one caller: 256 callers keep at most 512 MiB of pages and records.
    pub(crate) const OF_CALLER: Self = Self { bytes: 1024 * 1024, digests: 1_000 };
}

/// Pages of results, by the words and the position of the server.
pub(crate) type KeptPages = LruCache<PageKey, Arc<ResultsPage>>;

/// Words of a search, the position of the server, and the number of results that it is asked for.
pub(crate) type PageKey = (String, Option<String>, u64);

/// Records, by their ids.
pub(crate) type KeptRecords = LruCache<String, Arc<FetchedRecord>>;

/// Record of a server with the digest of its content.
#[derive(Debug)]
pub(crate) struct FetchedRecord {
    /// Fields of the record.
    pub(crate) data: RecordData,
    /// Digest by which a changed record is noticed.
    pub(crate) digest: String,
    /// True if the digest is another one than when the record was last read.
    pub(crate) has_changed: bool,
    /// Size of its text in bytes.
    pub(crate) bytes: usize,
}

/// Digests of the records that were read, by their ids.
pub(crate) type SeenDigests = LruCache<String, String>;

/// Time for which a digest is kept.
const DIGESTS_KEPT_FOR: Duration = Duration::from_secs(60 * 60);

/// Creates the store of digests.
pub(crate) fn seen_digests(limits: KeptLimits) -> SeenDigests {
    LruCache::new(LruLimits::new(limits.digests).with_lifetime(DIGESTS_KEPT_FOR))
}

/// Creates the store of pages.
pub(crate) fn kept_pages(limits: KeptLimits) -> KeptPages {
    let weight = |(words, cursor, _): &PageKey, page: &Arc<ResultsPage>| {
        let items =
            page.items.iter().flat_map(|item| [&item.id, &item.title, &item.text, &item.url, &item.date]);
        let texts: usize = items.map(|text| text.as_ref().map_or(0, String::len) + size_of::<String>()).sum();
        words.len() + cursor.as_ref().map_or(0, String::len) + texts
    };
    LruCache::with_weights(LruLimits::new(limits.bytes).with_lifetime(PAGES_KEPT_FOR), weight)
}

/// Creates the store of records.
pub(crate) fn kept_records(limits: KeptLimits) -> KeptRecords {
    let weight = |id: &String, record: &Arc<FetchedRecord>| id.len() + record.bytes;
    LruCache::with_weights(LruLimits::new(limits.bytes).with_lifetime(RECORDS_KEPT_FOR), weight)
}
