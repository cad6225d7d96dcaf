//! The schema of all sources, and a stream as all sources describe it.

use std::collections::HashMap;

use fetchwell_callers::CallContext;
use fetchwell_core::handle::ConnectionId;
use fetchwell_core::record::Schema;
use futures_util::future::join_all;

use super::failures::Failures;
use super::members::{Members, from_source};
use crate::{Source, SourceError, StreamAnswer, StreamQuery};

/// Returns the connections of all sources in their order. A connection that two sources have is marked with its
/// source.
pub(super) async fn schema(members: &Members, context: &CallContext) -> Result<Schema, SourceError> {
    let reads =
        members.sources.iter().map(|source| async move { (source, source.own_schema(context).await) });
    let (mut all, mut failed) = (Schema::default(), Failures::default());
    let mut read = Vec::new();
    for (number, (source, answer)) in join_all(reads).await.into_iter().enumerate() {
        match answer {
            Ok(schema) => {
                members.routes.learn(number, &schema);
                read.push((source, schema));
            }
            Err(error) => failed.add(source.name(), error),
        }
    }
    if read.is_empty() && !members.sources.is_empty() {
        return Err(failed.into_error("no source answered"));
    }
    let mut times: HashMap<ConnectionId, usize> = HashMap::new();
    for connection in read.iter().flat_map(|(_, schema)| &schema.connections) {
        *times.entry(connection.connection_id.clone()).or_default() += 1;
    }
    for (source, mut schema) in read {
        for connection in &mut schema.connections {
            let is_shared = times.get(&connection.connection_id).is_some_and(|times| *times > 1);
            connection.source = is_shared.then(|| source.name().clone());
        }
        source.print_schema(&mut schema);
        all.unavailable.extend(schema.unavailable);
        all.connections.extend(schema.connections);
    }
    all.unavailable.extend(failed.into_unavailable());
    Ok(all)
}

/// Returns the stream as each source that has it describes it.
pub(super) async fn stream(
    members: &Members,
    context: &CallContext,
    query: &StreamQuery,
) -> Result<StreamAnswer, SourceError> {
    if let Some(connection) = &query.connection {
        let source = members.source_of(context, connection).await?;
        return source.stream(context, query).await.map_err(|error| from_source(source, error));
    }
    members.routes.refresh();
    let asked = members.with_stream(&query.stream);
    let reads = asked.map(|source| async move { (source, source.stream(context, query).await) });
    let (mut all, mut failed) = (StreamAnswer::default(), Failures::default());
    for (source, read) in join_all(reads).await {
        match read {
            Ok(answer) => {
                all.details.extend(answer.details);
                all.unavailable.extend(answer.unavailable);
            }
            Err(error) => failed.add(source.name(), error),
        }
    }
    if all.details.is_empty() {
        return Err(members.no_answer_error(failed, "no source answered", Some(&query.stream)));
    }
    all.unavailable.extend(failed.into_unavailable());
    Ok(all)
}
