//! Reads one record, or a window of it, from the source that has it.

use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;

use fetchwell_callers::CallContext;
use fetchwell_core::handle::{RecordAddress, SourceName};
use fetchwell_core::record::{Record, Window};
use futures_util::future::join_all;

use super::failures::{Failures, is_missing_stream};
use super::guarded::GuardedSource;
use super::members::{Members, from_source};
use crate::{ConnectionChoice, RecordQuery, Source, SourceError, WindowQuery};

pub(super) async fn record(
    members: &Members,
    context: &CallContext,
    query: &RecordQuery,
) -> Result<Record, SourceError> {
    find(members, context, &query.address, |source| async move { source.record(context, query).await }).await
}

pub(super) async fn window(
    members: &Members,
    context: &CallContext,
    query: &WindowQuery,
) -> Result<Window, SourceError> {
    find(members, context, &query.address, |source| async move { source.window(context, query).await }).await
}

/// Returns the version of a record with a connection, which determines the source.
pub(super) async fn version(
    members: &Members,
    context: &CallContext,
    address: &RecordAddress,
) -> Result<Option<String>, SourceError> {
    let Some(connection) = &address.connection else { return Ok(None) };
    let source = members.source_of(context, connection).await?;
    source.version(context, address).await.map_err(|error| from_source(source, error))
}

async fn find<'a, Answer, Attempt>(
    members: &'a Members,
    context: &CallContext,
    address: &RecordAddress,
    ask: impl Fn(&'a Arc<GuardedSource>) -> Attempt,
) -> Result<Answer, SourceError>
where
    Attempt: Future<Output = Result<Answer, SourceError>>,
{
    if let Some(connection) = &address.connection {
        let source = members.source_of(context, connection).await?;
        return ask(source).await.map_err(|error| from_source(source, error));
    }
    members.routes.refresh();
    let asked = members.with_stream(&address.stream);
    let answers = join_all(asked.map(|source| {
        let answer = ask(source);
        async move { (source, answer.await) }
    }));
    let (mut found, mut choices): (Vec<(SourceName, Answer)>, _) = (Vec::new(), Vec::new());
    let (mut failed, mut absent) = (Failures::default(), Failures::default());
    for (source, answer) in answers.await {
        let name = source.name();
        match answer {
            Ok(answer) => found.push((name.clone(), answer)),
            Err(SourceError::AmbiguousConnection { choices: own, .. }) => choices.push((name.clone(), own)),
            Err(error) if is_absent(&error) => absent.add(name, error),
            Err(error) => failed.add(name, error),
        }
    }
    let what = format!("record `{}` of stream `{}`", address.record, address.stream);
    if !choices.is_empty() {
        return Err(choose(what, choices));
    }
    if found.len() > 1 {
        let sources = found.into_iter().map(|(source, _)| source).collect();
        return Err(SourceError::AmbiguousSource { what, sources, choices: Vec::new() });
    }
    // A source that failed may have the record too.
    if !failed.is_empty() {
        return Err(failed.into_error("a source that can have the record did not answer"));
    }
    match found.pop() {
        Some((_, answer)) => Ok(answer),
        None => Err(members.no_answer_error(absent, "no source has the record", Some(&address.stream))),
    }
}

/// Returns the error that lists the connections to choose from, or the sources if several have the same connection.
fn choose(what: String, choices: Vec<(SourceName, Vec<ConnectionChoice>)>) -> SourceError {
    let mut known = HashSet::new();
    let ids = choices.iter().flat_map(|(_, own)| own).map(|choice| &choice.connection_id);
    if ids.into_iter().all(|id| known.insert(id)) {
        let choices = choices.into_iter().flat_map(|(_, own)| own).collect();
        return SourceError::AmbiguousConnection { what, choices };
    }
    SourceError::AmbiguousSource {
        what,
        sources: choices.into_iter().map(|(source, _)| source).collect(),
        choices: Vec::new(),
    }
}

/// Returns true if the source answered that it has no such record.
fn is_absent(error: &SourceError) -> bool {
    match error {
        SourceError::NotFound { .. } => true,
        SourceError::Refused(refusal) => refusal.code == "not_found" || is_missing_stream(error),
        _ => is_missing_stream(error),
    }
}
