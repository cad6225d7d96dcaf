//! Times of the newest records of connections.

use std::collections::HashMap;
use std::time::Duration;

use fetchwell_core::handle::ConnectionId;
use fetchwell_core::record::ConnectionSchema;
use fetchwell_source::{BoundSource, Purpose, SearchQuery};
use futures_util::{StreamExt, stream};
use tokio::time::timeout;

/// Maximum number of connections of which the newest record is read.
const MAX_CONNECTIONS: usize = 60;

/// Maximum number of concurrent reads.
const MAX_AT_ONCE: usize = 4;

/// Timeout for all reads. The page has no time for connections that take longer.
const WITHIN: Duration = Duration::from_secs(3);

/// Returns the time of the newest record of each connection, as far as sources tell it: a search without words lists the newest
/// records first.
pub(super) async fn newest_records(
    source: &BoundSource,
    connections: &[ConnectionSchema],
) -> HashMap<ConnectionId, String> {
    let mut newest = HashMap::new();
    let ids = connections.iter().take(MAX_CONNECTIONS).map(|connection| connection.connection_id.clone());
    let ids: Vec<ConnectionId> = ids.collect();
    let reads = stream::iter(ids).map(|id| async move {
        let newest = newest_record(source, &id).await;
        (id, newest)
    });
    let mut reads = std::pin::pin!(reads.buffer_unordered(MAX_AT_ONCE));
    let collect = async {
        while let Some((id, time)) = reads.next().await {
            newest.extend(time.map(|time| (id, time)));
        }
    };
    // Times that were read before the timeout are shown.
    let _ = timeout(WITHIN, collect).await;
    newest
}

async fn newest_record(source: &BoundSource, connection: &ConnectionId) -> Option<String> {
    let connection = Some(connection.clone());
    let query = SearchQuery { connection, purpose: Purpose::Hint, ..SearchQuery::new("", 1) };
    source.search(&query).await.ok()?.hits.into_iter().next()?.time
}
