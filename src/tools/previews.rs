//! What streams say that their records should be shown by when there is little room.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::handle::{ConnectionId, RecordAddress, SourceName, StreamName};
use crate::record::{FieldPath, StreamDetail};
use crate::source::{Source, StreamQuery};

/// The view of a stream that is its preview.
const VIEW: &str = "preview";

/// The previews of one stream, by connection. None of it is there when the stream declares none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Previews(HashMap<(ConnectionId, StreamName), Vec<FieldPath>>);

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
        let Some(connection) = address.connection.clone() else { return &[] };
        self.0.get(&(connection, address.stream.clone())).map_or(&[], Vec::as_slice)
    }

    /// Whether nothing is declared.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn read(details: &[StreamDetail]) -> Self {
        let preview = |detail: &StreamDetail| {
            // A name that is no path is one of the record's fields all the same.
            let path = |name: &String| name.parse().unwrap_or_else(|_no_path| FieldPath::field(name));
            let paths = detail.view(VIEW)?.fields.iter().map(path).collect();
            Some(((detail.connection_id.clone(), detail.name.clone()), paths))
        };
        Self(details.iter().filter_map(preview).collect())
    }
}

impl KnownPreviews {
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
