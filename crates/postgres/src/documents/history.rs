//! Writes and reads the history of searches.

use deadpool_postgres::Transaction;
use fetchwell_core::saturate::saturated;
use fetchwell_source::SourceError;
use fetchwell_source::documents::{
    Feedback, NewSearch, Project, ProjectRef, SearchGroup, SearchGrouping, SearchRecord, Uuid, search_groups,
};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error};

use super::read::{DIALECT, find, project, rows, rows_in, values};
use crate::extension::vector::SqlVector;
use crate::tables::PostgresTables;

/// Deletes the searches that are older than their projects keep them. Returns their number.
pub(crate) async fn delete_expired(client: &Client) -> Result<u64, Error> {
    let mut deleted = 0;
    for project in rows_in(client, &DIALECT.projects()).await? {
        deleted += delete_expired_of(client, &project).await?;
    }
    Ok(deleted)
}

/// Deletes the searches of a project that are older than it keeps them. Returns their number.
pub(super) async fn delete_expired_of(client: &Client, project: &Project) -> Result<u64, Error> {
    let query = DIALECT.expired("DELETE", project);
    client.execute(&query.sql, &values(&query)).await
}

/// Inserts a search, unless its project keeps none, and deletes those that are too old.
pub(super) async fn remember(
    transaction: &Transaction<'_>,
    project: Uuid,
    search: &NewSearch,
) -> Result<(), Error> {
    let named = ProjectRef::Id(project);
    let Some(found) = find(transaction, &named).await? else { return Ok(()) };
    delete_expired_of(transaction.client(), &found).await?;
    if found.settings.kept_days() == 0 { Ok(()) } else { add_search(transaction, project, search).await }
}

async fn add_search(transaction: &Transaction<'_>, project: Uuid, search: &NewSearch) -> Result<(), Error> {
    let NewSearch { id, query, result_ids, latency_ms, cache_hit, caller, .. } = search;
    let embedding = search.embedding().map(SqlVector);
    let results: Vec<String> = result_ids.iter().map(ToString::to_string).collect();
    let (id, project) = (id.to_string(), project.to_string());
    let query = query.replace('\0', "");
    let latency = saturated::<i32>(*latency_ms);
    let sql = "INSERT INTO fetchwell.search_history
             (id, project_id, query, query_embedding, result_ids, latency_ms, cache_hit, created_at)
         SELECT $1::text::uuid, id, $3, $4, $5::text[]::uuid[], $6, $7, clock_timestamp()
         FROM fetchwell.projects WHERE id = $2::text::uuid";
    let statement = transaction.prepare_cached(sql).await?;
    let values: [&(dyn ToSql + Sync); 7] = [&id, &project, &query, &embedding, &results, &latency, cache_hit];
    // A removed project has no searches.
    let inserted = transaction.execute(&statement, &values).await?;
    if let (Some(caller), 1) = (caller, inserted) {
        let sql = "INSERT INTO fetchwell.search_callers (search_id, caller) VALUES ($1::text::uuid, $2)";
        transaction.execute(sql, &[&id, caller]).await?;
    }
    Ok(())
}

/// Sets or withdraws the feedback on a search. Returns false if there is no such search, or if it is of another caller.
pub(super) async fn set_feedback(
    client: &Client,
    search: Uuid,
    caller: Option<&str>,
    feedback: Option<Feedback>,
) -> Result<bool, Error> {
    let sql = "UPDATE fetchwell.search_history SET feedback = $3 WHERE id = $1::text::uuid AND NOT EXISTS (
             SELECT 1 FROM fetchwell.search_callers c
             WHERE c.search_id = $1::text::uuid AND c.caller IS DISTINCT FROM $2::text)";
    let feedback = feedback.map(Feedback::as_str);
    Ok(client.execute(sql, &[&search.to_string(), &caller, &feedback]).await? > 0)
}

/// Returns the last searches of a project, the newest first, without those that are too old.
pub(super) fn searches(
    tables: &PostgresTables<'_>,
    id: Uuid,
    limit: usize,
) -> Result<Vec<SearchRecord>, SourceError> {
    let Some(found) = project(tables, &ProjectRef::Id(id))? else { return Ok(Vec::new()) };
    rows(tables, &DIALECT.searches(&found, limit))
}

/// Returns the searches of a project in groups, without those that are too old.
pub(super) fn grouped_searches(
    tables: &PostgresTables<'_>,
    id: Uuid,
    by: SearchGrouping,
) -> Result<Vec<SearchGroup>, SourceError> {
    let Some(found) = project(tables, &ProjectRef::Id(id))? else { return Ok(Vec::new()) };
    Ok(search_groups(by, rows(tables, &DIALECT.counted_searches(&found, by))?))
}
