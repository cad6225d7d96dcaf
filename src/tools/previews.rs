//! What streams say that their records should be shown by when there is little room, and which fields go together.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::handle::{ConnectionId, RecordAddress, SourceName, StreamName};
use crate::record::{FieldGroup, FieldPath, StreamDetail};
use crate::source::{Source, StreamQuery};

/// The view of a stream that is its preview.
const VIEW: &str = "preview";

/// The previews and groups of one stream, by connection. None of it is there when the stream declares none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Previews(HashMap<(ConnectionId, StreamName), Declared>);

/// What one stream of one connection declares.
#[derive(Debug, Clone, Default)]
struct Declared {
    preview: Vec<FieldPath>,
    groups: Vec<FieldGroup>,
}

/// Those that were asked for lately.
#[derive(Debug, Clone)]
pub(crate) struct KnownPreviews(Cache<(SourceName, StreamQuery), Arc<Previews>>);

impl Default for KnownPreviews {
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        let streams = Cache::builder().max_capacity(200).time_to_live(minute);
        Self(streams.eviction_policy(EvictionPolicy::lru()).build())
    }
}

impl Previews {
    /// What the stream of a record declares.
    pub(crate) fn of(&self, address: &RecordAddress) -> &[FieldPath] {
        self.declared(address).map_or(&[], |declared| &declared.preview)
    }

    /// Returns the groups of fields that the stream of a record declares.
    pub(crate) fn groups(&self, address: &RecordAddress) -> &[FieldGroup] {
        self.declared(address).map_or(&[], |declared| &declared.groups)
    }

    fn declared(&self, address: &RecordAddress) -> Option<&Declared> {
        self.0.get(&(address.connection.clone()?, address.stream.clone()))
    }

    /// Whether no preview is declared.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.values().all(|declared| declared.preview.is_empty())
    }

    fn read(details: &[StreamDetail]) -> Self {
        let preview = |detail: &StreamDetail| {
            // A name that is no path is one of the record's fields all the same.
            let path = |name: &String| name.parse().unwrap_or_else(|_no_path| FieldPath::field(name));
            let fields = detail.view(VIEW).map(|view| view.fields.as_slice()).unwrap_or_default();
            let declared = Declared { preview: fields.iter().map(path).collect(), groups: detail.groups() };
            ((detail.connection_id.clone(), detail.name.clone()), declared)
        };
        Self(details.iter().map(preview).collect())
    }
}

impl KnownPreviews {
    /// Returns what a stream declares, if it was asked for lately.
    pub(crate) fn known(&self, source: &dyn Source, query: &StreamQuery) -> Option<Arc<Previews>> {
        self.0.get(&(source.name().clone(), query.clone()))
    }

    /// What a stream declares; nothing when its source does not say: an answer is not lost for that.
    pub(crate) async fn of(&self, source: &dyn Source, query: StreamQuery) -> Arc<Previews> {
        let key = (source.name().clone(), query);
        if let Some(known) = self.0.get(&key) {
            return known;
        }
        match source.stream(&key.1).await {
            Ok(answer) => {
                let previews = Arc::new(Previews::read(&answer.details));
                self.0.insert(key, Arc::clone(&previews));
                previews
            }
            Err(_unsaid) => Arc::default(),
        }
    }
}
