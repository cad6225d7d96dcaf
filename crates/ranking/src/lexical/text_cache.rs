//! Bounded cache of what searches make of the texts of records.
//!
//! An entry has the JSON that it was made of, and is used only for a record that has the same JSON now. So a record that any
//! program changed is never read by its earlier text, and a caller gets nothing but a form of the text that it has just read.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fetchwell_core::record::RecordData;

/// Time after which the form of a text that no search has read, such as that of a removed record, is dropped with the next text that
/// is added.
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
pub struct CachedText<Form> {
    json: Box<str>,
    pub(crate) form: Form,
}

/// Does not print the text.
impl<Form> fmt::Debug for CachedText<Form> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedText").finish_non_exhaustive()
    }
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

/// Cache of the forms of texts, with a maximum number of bytes. The text that was read least recently is evicted first, at once:
/// a cache that evicts later held eight times its maximum.
#[derive(Debug)]
pub struct TextCache<Form> {
    max_bytes: usize,
    entries: Mutex<Entries<Form>>,
}

#[derive(Debug)]
struct Entries<Form> {
    texts: HashMap<TextKey, Entry<Form>>,
    /// Keys in the order of their last reads.
    order: BTreeMap<u64, TextKey>,
    reads: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Entry<Form> {
    text: Arc<CachedText<Form>>,
    /// Number and time of the last read.
    read: u64,
    at: Instant,
}

impl<Form: TextForm> TextCache<Form> {
    /// Creates an empty cache of at most `max_bytes` bytes.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        let entries = Entries { texts: HashMap::new(), order: BTreeMap::new(), reads: 0, bytes: 0 };
        Self { max_bytes, entries: Mutex::new(entries) }
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
        if let Some(known) = self.lock().get(key, json, Instant::now()) {
            return Some(known);
        }
        let text = Arc::new(CachedText { json: json.into(), form: make()? });
        // A text that would evict many others is not worth its room.
        if text.bytes() <= self.max_bytes / 16 {
            self.lock().insert(key, Arc::clone(&text), self.max_bytes, Instant::now());
        }
        Some(text)
    }

    /// Returns the bytes of all entries.
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, Entries<Form>> {
        // No call panics while it changes the entries.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Form: TextForm> Entries<Form> {
    fn get(&mut self, key: TextKey, json: &str, now: Instant) -> Option<Arc<CachedText<Form>>> {
        let entry = self.texts.get_mut(&key).filter(|entry| *entry.text.json == *json)?;
        self.order.remove(&entry.read);
        self.reads += 1;
        (entry.read, entry.at) = (self.reads, now);
        self.order.insert(self.reads, key);
        Some(Arc::clone(&entry.text))
    }

    fn insert(&mut self, key: TextKey, text: Arc<CachedText<Form>>, max_bytes: usize, now: Instant) {
        self.remove(key);
        let bytes = text.bytes();
        while let Some(oldest) = self.order.values().next().copied()
            && (self.bytes + bytes > max_bytes || self.is_idle(oldest, now))
        {
            self.remove(oldest);
        }
        self.bytes += bytes;
        self.reads += 1;
        self.order.insert(self.reads, key);
        self.texts.insert(key, Entry { text, read: self.reads, at: now });
    }

    fn is_idle(&self, key: TextKey, now: Instant) -> bool {
        self.texts.get(&key).is_none_or(|entry| now.saturating_duration_since(entry.at) >= MAX_IDLE)
    }

    fn remove(&mut self, key: TextKey) {
        if let Some(entry) = self.texts.remove(&key) {
            self.order.remove(&entry.read);
            self.bytes -= entry.text.bytes();
        }
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
            assert_eq!(held, cache.bytes());
            assert_eq!(live.len(), cache.lock().order.len());
            most = most.max(held);
        }
        assert!((MAX_BYTES * 15 / 16..=MAX_BYTES).contains(&most), "{most}");
        // One text with the room of many.
        cache.get_or_read((1, -1), &json(MAX_BYTES / 16)).unwrap();
        assert!(!cache.lock().texts.contains_key(&(1, -1)));
    }

    #[test]
    fn the_text_that_was_read_least_recently_is_evicted() {
        let cache: TextCache<Length> = TextCache::new(MAX_BYTES);
        for row in 0..100 {
            cache.get_or_read((1, row), &json(1_000)).unwrap();
            cache.get_or_read((1, 0), &json(1_000)).unwrap();
        }
        let has = |row| cache.lock().texts.contains_key(&(1, row));
        assert!(has(0) && !has(1) && has(99));
        let text = cache.get_or_read((1, 99), &json(1_000)).unwrap();
        let later = Instant::now() + MAX_IDLE;
        cache.lock().insert((1, 200), text, MAX_BYTES, later);
        assert_eq!(cache.lock().texts.keys().collect::<Vec<_>>(), [&(1, 200)], "all others were idle");
    }
}
