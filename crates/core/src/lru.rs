//! Caches with a maximum size that evict the entry that was used least recently.
//!
//! Every cache is one type of moka's, with keys and values behind pointers. moka is compiled anew for each pair of types,
//! and nineteen pairs were a fifth of the code of this crate.

use std::any::Any;
use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ops::Add;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use moka::Equivalent;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::saturate::saturated;

/// Limits of a cache.
#[derive(Debug, Clone, Copy)]
pub struct LruLimits {
    /// Maximum number of entries, or maximum sum of their weights.
    capacity: u64,
    lifetime: Option<Duration>,
    max_idle: Option<Duration>,
}

/// Cache of values by key. Clones share their entries.
pub struct LruCache<K, V> {
    entries: Cache<StoredKey, StoredValue>,
    lookups: LookupCounter,
    types: PhantomData<fn(K) -> V>,
}

/// Numbers of hits and misses of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lookups {
    /// Lookups that found a value.
    pub hits: u64,
    /// Lookups that found none.
    pub misses: u64,
}

impl Add for Lookups {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { hits: self.hits + other.hits, misses: self.misses + other.misses }
    }
}

/// Counter of hits and misses. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct LookupCounter(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    hits: AtomicU64,
    misses: AtomicU64,
}

impl LookupCounter {
    /// Counts a lookup.
    pub fn count(&self, is_hit: bool) {
        let count = if is_hit { &self.0.hits } else { &self.0.misses };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counts.
    pub fn get(&self) -> Lookups {
        Lookups { hits: self.0.hits.load(Ordering::Relaxed), misses: self.0.misses.load(Ordering::Relaxed) }
    }
}

impl LruLimits {
    /// Creates limits with a maximum number of entries, or a maximum sum of weights.
    pub fn new(capacity: u64) -> Self {
        Self { capacity, lifetime: None, max_idle: None }
    }

    /// Sets the time after which an entry is evicted.
    pub fn with_lifetime(self, lifetime: Duration) -> Self {
        Self { lifetime: Some(lifetime), ..self }
    }

    /// Sets the time after which an unused entry is evicted.
    pub fn with_max_idle(self, max_idle: Duration) -> Self {
        Self { max_idle: Some(max_idle), ..self }
    }
}

impl<K, V> LruCache<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Creates an empty cache.
    pub fn new(limits: LruLimits) -> Self {
        Self::build(limits, None)
    }

    /// Creates an empty cache with a weight of each entry.
    pub fn with_weights(limits: LruLimits, weight: impl Fn(&K, &V) -> usize + Send + Sync + 'static) -> Self {
        let weight = move |key: &StoredKey, value: &StoredValue| {
            let known = key.0.as_any().downcast_ref().zip(value.downcast_ref());
            let weight = known.map_or(0, |(key, value)| weight(key, value));
            saturated::<u32>(weight)
        };
        Self::build(limits, Some(Box::new(weight)))
    }

    fn build(limits: LruLimits, weight: Option<Weight>) -> Self {
        Self { entries: entries(limits, weight), lookups: LookupCounter::default(), types: PhantomData }
    }

    /// Returns the value of a key.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let stored = self.entries.get(&KeyRef(&Lookup::<K, Q>(key, PhantomData)));
        self.lookups.count(stored.is_some());
        value(&stored?)
    }

    /// Returns the hits and misses since the cache was created.
    pub fn lookups(&self) -> Lookups {
        self.lookups.get()
    }

    /// Returns the value of a key, or stores a new one. All concurrent calls return the same value.
    pub fn get_or_insert_with(&self, key: K, create: impl FnOnce() -> V) -> V {
        if let Some(known) = self.get(&key) {
            return known;
        }
        let new = create();
        let stored = get_or_insert(&self.entries, StoredKey(Box::new(key)), Arc::new(new.clone()));
        value(&stored).unwrap_or(new)
    }

    /// Stores a value.
    pub fn insert(&self, key: K, value: V) {
        self.entries.insert(StoredKey(Box::new(key)), Arc::new(value));
    }

    /// Removes a value and returns it.
    pub fn remove<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        value(&self.entries.remove(&KeyRef(&Lookup::<K, Q>(key, PhantomData)))?)
    }

    /// Removes the entries of some keys. Returns these keys.
    pub fn remove_if(&self, is_removed: impl Fn(&K) -> bool) -> Vec<K>
    where
        K: Clone,
    {
        let mut removed = Vec::new();
        for (key, _) in &self.entries {
            if let Some(own) = key.0.as_any().downcast_ref::<K>().filter(|own| is_removed(own)) {
                self.entries.invalidate(&*key);
                removed.push(own.clone());
            }
        }
        removed
    }

    /// Evicts what exceeds the limits now, which otherwise happens some time after an insertion.
    pub fn evict(&self) {
        self.entries.run_pending_tasks();
    }
}

impl<K, V> LruCache<K, V> {
    /// Returns true if there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of entries after the last eviction.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.entries.entry_count()
    }

    /// Returns the sum of all weights after the last eviction.
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.entries.weighted_size()
    }
}

impl<K, V> Clone for LruCache<K, V> {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), lookups: self.lookups.clone(), types: PhantomData }
    }
}

impl<K, V> fmt::Debug for LruCache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LruCache").finish_non_exhaustive()
    }
}

type StoredValue = Arc<dyn Any + Send + Sync>;

type Weight = Box<dyn Fn(&StoredKey, &StoredValue) -> u32 + Send + Sync>;

/// Key of any type, as a cache has it.
struct StoredKey(Box<dyn Key>);

/// Borrowed form of a key.
struct KeyRef<'a>(&'a dyn Probe);

/// Operations of a borrowed key.
trait Probe {
    fn hash_into(&self, hasher: &mut dyn Hasher);

    /// Returns true if a stored key is equal.
    fn equals(&self, stored: &dyn Any) -> bool;
}

/// Operations of a stored key.
trait Key: Probe + Send + Sync {
    fn as_any(&self) -> &dyn Any;
}

/// Borrowed form of a key of type `K`.
struct Lookup<'a, K, Q: ?Sized>(&'a Q, PhantomData<fn() -> K>);

impl<K: Borrow<Q> + 'static, Q: Hash + Eq + ?Sized> Probe for Lookup<'_, K, Q> {
    fn hash_into(&self, mut hasher: &mut dyn Hasher) {
        self.0.hash(&mut hasher);
    }

    fn equals(&self, stored: &dyn Any) -> bool {
        stored.downcast_ref::<K>().is_some_and(|stored| stored.borrow() == self.0)
    }
}

impl<K: Hash + Eq + 'static> Probe for K {
    fn hash_into(&self, mut hasher: &mut dyn Hasher) {
        self.hash(&mut hasher);
    }

    fn equals(&self, stored: &dyn Any) -> bool {
        stored.downcast_ref::<K>() == Some(self)
    }
}

impl<K: Hash + Eq + Send + Sync + 'static> Key for K {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Hash for StoredKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash_into(state);
    }
}

impl PartialEq for StoredKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(other.0.as_any())
    }
}

impl Eq for StoredKey {}

impl Hash for KeyRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash_into(state);
    }
}

impl Equivalent<StoredKey> for KeyRef<'_> {
    fn equivalent(&self, key: &StoredKey) -> bool {
        self.0.equals(key.0.as_any())
    }
}

fn entries(limits: LruLimits, weight: Option<Weight>) -> Cache<StoredKey, StoredValue> {
    // The default policy rejects new entries of a full cache, and the newest entry is the one that is needed next.
    let mut builder = Cache::builder().max_capacity(limits.capacity).eviction_policy(EvictionPolicy::lru());
    if let Some(lifetime) = limits.lifetime {
        builder = builder.time_to_live(lifetime);
    }
    if let Some(max_idle) = limits.max_idle {
        builder = builder.time_to_idle(max_idle);
    }
    if let Some(weight) = weight {
        builder = builder.weigher(weight);
    }
    builder.build()
}

fn get_or_insert(entries: &Cache<StoredKey, StoredValue>, key: StoredKey, value: StoredValue) -> StoredValue {
    entries.get_with(key, || value)
}

fn value<V: Clone + 'static>(stored: &StoredValue) -> Option<V> {
    stored.downcast_ref::<V>().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_borrowed_keys() {
        let cache: LruCache<String, u32> = LruCache::new(LruLimits::new(10));
        cache.insert("one".to_owned(), 1);
        assert_eq!((cache.get("one"), cache.get("two")), (Some(1), None));
        assert_eq!(cache.clone().lookups() + cache.lookups(), Lookups { hits: 2, misses: 2 });
        assert_eq!(cache.get_or_insert_with("one".to_owned(), || 2), 1);
        assert_eq!(cache.get_or_insert_with("two".to_owned(), || 2), 2);
        assert_eq!((cache.remove("one"), cache.remove("one")), (Some(1), None));
        cache.clone().remove_if(|key| key == "two");
        assert_eq!(cache.get("two"), None);
    }

    #[test]
    fn the_least_recently_used_entries_are_evicted() {
        let cache: LruCache<u32, String> =
            LruCache::with_weights(LruLimits::new(10), |_, text: &String| text.len());
        for number in 0..5 {
            cache.insert(number, "xxx".to_owned());
            cache.evict();
            assert_eq!(cache.get(&0).as_deref(), Some("xxx"), "{number}");
        }
        assert_eq!((cache.len(), cache.weight()), (3, 9));
        assert_eq!((cache.get(&1), cache.get(&4)), (None, Some("xxx".to_owned())));
    }

    #[test]
    fn concurrent_calls_get_one_value() {
        let cache: LruCache<u8, Arc<u32>> = LruCache::new(LruLimits::new(10));
        let values: Vec<Arc<u32>> = std::thread::scope(|scope| {
            let get = |number| {
                let cache = &cache;
                scope.spawn(move || cache.get_or_insert_with(7, || Arc::new(number)))
            };
            let threads: Vec<_> = (0..8).map(get).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(values.iter().all(|value| Arc::ptr_eq(value, &values[0])));
    }
}
