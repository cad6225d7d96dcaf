//! Bounded cache of what searches make of the texts of records.
//!
//! An entry has the JSON that it was made of, and is used only for a record that has the same JSON now. So a record that any
//! program changed is never read by its earlier text, and a caller gets nothing but a form of the text that it has just read.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fetchwell_core::lru::{Lookups, LruCache, LruLimits};
use fetchwell_core::record::RecordData;

/// Time after which the next search drops the form of a text that none has read, such as that of a removed record.
const MAX_IDLE: Duration = Duration::from_secs(600);

/// Estimated overhead of an entry in bytes: key, pointers and counters.
const ENTRY_BYTES: usize = 256;

/// Key of a text: the number of its store in this process, and the row of its record.
pub type TextKey = (u64, i64);

/// Form of a record's text that ranking needs.
pub trait TextForm: Send + Sync + 'static {
    /// Makes the form of a record's text.
    fn from_record(data: &RecordData) -> Self;

    /// Returns the bytes of the form on the heap.
    fn heap_bytes(&self) -> usize;
}

/// Text of a record with its form.
#[derive(Debug, PartialEq)]
pub struct CachedText<Form> {
    json: Box<str>,
    pub(crate) form: Form,
}

impl<Form: TextForm> CachedText<Form> {
    /// Returns the form of the text.
    pub fn form(&self) -> &Form {
        &self.form
    }

    fn bytes(&self) -> usize {
        ENTRY_BYTES + size_of::<Self>() + self.json.len() + self.form.heap_bytes()
    }
}

/// Cache of the forms of texts, with a maximum number of bytes.
pub struct TextCache<Form> {
    entries: LruCache<TextKey, Arc<CachedText<Form>>>,
    /// Maximum bytes of an entry, and of those that are added between two evictions.
    max_added: usize,
    /// Bytes that were added since the last eviction.
    added: AtomicUsize,
}

impl<Form> fmt::Debug for TextCache<Form> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextCache").finish_non_exhaustive()
    }
}

impl<Form: TextForm> TextCache<Form> {
    /// Creates an empty cache of at most `max_bytes` bytes.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        // Of sixteen parts, one is for entries that were added since the last eviction, and one for the last of these.
        let max_added = max_bytes / 16;
        let limits = LruLimits::new((max_bytes - 2 * max_added) as u64).with_max_idle(MAX_IDLE);
        let bytes = |_: &TextKey, text: &Arc<CachedText<Form>>| text.bytes();
        Self { entries: LruCache::with_weights(limits, bytes), max_added, added: AtomicUsize::new(0) }
    }

    /// Returns the form of a record's JSON, made of it before or now; `None` if it is no object.
    pub fn get_or_read(&self, key: TextKey, json: &str) -> Option<Arc<CachedText<Form>>> {
        let form = || Some(Form::from_record(&serde_json::from_str(json).ok()?));
        self.get_or_make(key, json, form)
    }

    /// Returns the form of a record's JSON, made of it before, or else that which `make` makes.
    pub fn get_or_make(
        &self,
        key: TextKey,
        json: &str,
        make: impl FnOnce() -> Option<Form>,
    ) -> Option<Arc<CachedText<Form>>> {
        if let Some(known) = self.entries.get(&key).filter(|known| *known.json == *json) {
            return Some(known);
        }
        let text = Arc::new(CachedText { json: json.into(), form: make()? });
        let bytes = text.bytes();
        if bytes <= self.max_added {
            self.entries.insert(key, Arc::clone(&text));
            if self.added.fetch_add(bytes, Ordering::Relaxed) + bytes > self.max_added {
                self.added.store(0, Ordering::Relaxed);
                self.entries.evict();
            }
        }
        Some(text)
    }

    /// Returns the bytes of all entries after the last eviction.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.entries.weight()
    }

    /// Returns the hits and misses so far.
    #[must_use]
    pub fn lookups(&self) -> Lookups {
        self.entries.lookups()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use serde_json::json;

    use super::*;

    const MAX_BYTES: usize = 64 * 1024;

    /// Length of the text of a record, with a heap of that size.
    #[derive(Debug, PartialEq)]
    struct Length(usize);

    impl TextForm for Length {
        fn from_record(data: &RecordData) -> Self {
            Self(data.get("text").and_then(|text| text.as_str()).map_or(0, str::len))
        }

        fn heap_bytes(&self) -> usize {
            self.0
        }
    }

    fn json(length: usize) -> String {
        json!({ "text": "x".repeat(length) }).to_string()
    }

    #[test]
    fn a_changed_record_is_read_again() {
        let cache: TextCache<Length> = TextCache::new(MAX_BYTES);
        let length = |key, json: &str| cache.get_or_read(key, json).map(|text| text.form.0);
        let mut before = None;
        // The last text is that of the same row of another store.
        for (key, text, is_known) in [
            ((1, 1), 10, false),
            ((1, 1), 10, true),
            ((1, 1), 11, false),
            ((1, 1), 11, true),
            ((1, 1), 10, false),
            ((2, 1), 10, false),
        ] {
            let made = cache.get_or_read(key, &json(text)).unwrap();
            assert_eq!((made.form.0, &*made.json), (text, &*json(text)));
            assert_eq!(before.is_some_and(|before| Arc::ptr_eq(&made, &before)), is_known, "{key:?} {text}");
            before = Some(made);
        }
        assert_eq!([length((1, 1), "[]"), length((1, 2), "{")], [None, None]);
    }

    #[test]
    fn bytes_are_bounded() {
        let cache: TextCache<Length> = TextCache::new(MAX_BYTES);
        let (mut live, mut most) = (Vec::new(), 0);
        for row in 0..5_000 {
            let length = usize::try_from(row % 1_500).unwrap();
            let text = cache.get_or_read((1, row), &json(length)).unwrap();
            assert_eq!(text.form.0, length);
            live.push(Arc::downgrade(&text));
            drop(text);
            live.retain(|text| text.strong_count() > 0);
            let held: usize = live.iter().filter_map(Weak::upgrade).map(|text| text.bytes()).sum();
            most = most.max(held);
        }
        assert!((MAX_BYTES / 2..=MAX_BYTES).contains(&most), "{most}");
        // One text with the room of many.
        cache.get_or_read((1, -1), &json(MAX_BYTES / 16)).unwrap();
        assert!(cache.entries.get(&(1, -1)).is_none());
    }
}
