//! Cached declarations of streams: the fields of a preview and of a summary, and the groups of fields.
//!
//! A stream may declare a view called `preview`, with the fields that are shown first when a record does not fit, and one
//! called `summary`, with the few that a list of summaries shows.
//! [`Previews`] has the declarations of one stream by connection; [`KnownPreviews`] caches them for a minute.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_core::handle::{ConnectionId, RecordAddress, SourceName, StreamName};
use fetchwell_core::lru::{Lookups, LruCache, LruLimits};
use fetchwell_core::record::{FieldGroup, FieldPath, StreamDetail};
use fetchwell_source::{BoundSource, StreamQuery};

/// Name of the view that declares a preview.
const PREVIEW: &str = "preview";

/// Name of the view that declares the items of a list of summaries.
const SUMMARY: &str = "summary";

/// Maximum number of cached streams.
const MAX_STREAMS: u64 = 200;

/// Lifetime of a cache entry.
const LIFETIME: Duration = Duration::from_secs(60);

/// Previews and groups of one stream, by connection. Empty if the stream declares none.
#[derive(Debug, Clone, Default)]
pub struct Previews(HashMap<(ConnectionId, StreamName), DeclaredPreviews>);

/// Declarations of one stream of one connection.
#[derive(Debug, Clone, Default)]
struct DeclaredPreviews {
    preview: Vec<FieldPath>,
    summary: Vec<FieldPath>,
    groups: Vec<FieldGroup>,
}

/// Cache of the declarations of streams.
#[derive(Debug, Clone)]
pub(crate) struct KnownPreviews(LruCache<(SourceName, StreamQuery), Arc<Previews>>);

impl Default for KnownPreviews {
    fn default() -> Self {
        Self(LruCache::new(LruLimits::new(MAX_STREAMS).with_lifetime(LIFETIME)))
    }
}

impl Previews {
    /// Returns the fields that the stream of a record declares as its preview.
    pub fn fields(&self, address: &RecordAddress) -> &[FieldPath] {
        self.declared(address).map_or(&[], |declared| &declared.preview)
    }

    /// Returns the fields that the stream of a record declares for lists of summaries: those of its preview if there are
    /// no others.
    pub fn summary(&self, address: &RecordAddress) -> &[FieldPath] {
        match self.declared(address) {
            Some(declared) if !declared.summary.is_empty() => &declared.summary,
            _ => self.fields(address),
        }
    }

    /// Returns the groups of fields that the stream of a record declares.
    pub fn groups(&self, address: &RecordAddress) -> &[FieldGroup] {
        self.declared(address).map_or(&[], |declared| &declared.groups)
    }

    fn declared(&self, address: &RecordAddress) -> Option<&DeclaredPreviews> {
        self.0.get(&(address.connection.clone()?, address.stream.clone()))
    }

    /// Returns true if no preview is declared.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.values().all(|declared| declared.preview.is_empty())
    }

    fn from_details(details: &[StreamDetail]) -> Self {
        let preview = |detail: &StreamDetail| {
            // A name that cannot be parsed as a path is the name of a field.
            let path = |name: &String| name.parse().unwrap_or_else(|_no_path| FieldPath::field(name));
            let view = |name: &str| detail.view(name).map(|view| view.fields.as_slice()).unwrap_or_default();
            let paths = |name: &str| view(name).iter().map(path).collect();
            let declared = DeclaredPreviews {
                preview: paths(PREVIEW),
                summary: paths(SUMMARY),
                groups: detail.groups(),
            };
            ((detail.connection_id.clone(), detail.name.clone()), declared)
        };
        Self(details.iter().map(preview).collect())
    }
}

impl KnownPreviews {
    /// Returns the hits and misses of the cache.
    pub(crate) fn lookups(&self) -> Lookups {
        self.0.lookups()
    }

    /// Returns the cached declarations of a stream.
    pub(crate) fn known(&self, source: &BoundSource, query: &StreamQuery) -> Option<Arc<Previews>> {
        self.0.get(&(source.name().clone(), query.clone()))
    }

    /// Reads the declarations of a stream. Empty if the source fails, because an answer does not depend on them.
    pub(crate) async fn read(&self, source: &BoundSource, query: StreamQuery) -> Arc<Previews> {
        let key = (source.name().clone(), query);
        if let Some(known) = self.0.get(&key) {
            return known;
        }
        match source.stream(&key.1).await {
            Ok(answer) => {
                let previews = Arc::new(Previews::from_details(&answer.details));
                self.0.insert(key, Arc::clone(&previews));
                previews
            }
            Err(_unknown) => Arc::default(),
        }
    }
}
