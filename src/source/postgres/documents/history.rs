//! Writes and reads the history of searches.

use deadpool_postgres::Transaction;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row};

use super::read::{find, project, project_of, select_projects, time};
use crate::saturate::saturated;
use crate::source::SourceError;
use crate::source::documents::{
    CountedSearches, Feedback, NewSearch, Project, ProjectRef, SearchGroup, SearchGrouping, SearchRecord,
    Uuid, search_groups,
};
use crate::source::postgres::extension::vector::SqlVector;
use crate::source::postgres::tables::{PostgresTables, optional_text, text};

/// Condition of the searches of the project `$1` that are not kept for `$2` days. A number beyond the calendar keeps all.
const IS_EXPIRED: &str = "project_id = $1::text::uuid
     AND created_at < clock_timestamp() - make_interval(days => least($2::bigint, 1000000)::integer)";

fn kept_days(project: &Project) -> i64 {
    project.settings.kept_days().into()
}

/// Deletes the searches that are older than their projects keep them. Returns their number.
pub(in crate::source::postgres) async fn delete_expired(client: &Client) -> Result<u64, Error> {
    let mut deleted = 0;
    for row in client.query(&select_projects(), &[]).await? {
        let Some(project) = project_of(&row) else { continue };
        deleted += delete_expired_of(client, &project).await?;
    }
    Ok(deleted)
}

/// Deletes the searches of a project that are older than it keeps them. Returns their number.
pub(super) async fn delete_expired_of(client: &Client, project: &Project) -> Result<u64, Error> {
    let sql = format!("DELETE FROM fetchwell.search_history WHERE {IS_EXPIRED}");
    client.execute(&sql, &[&project.id.to_string(), &kept_days(project)]).await
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
    let sql = format!(
        "SELECT id::text, project_id::text, query, result_ids::text[], feedback, latency_ms, cache_hit, {}
         FROM fetchwell.search_history WHERE project_id = $1::text::uuid AND NOT ({IS_EXPIRED})
         ORDER BY created_at DESC LIMIT $3",
        time("created_at")
    );
    let limit = saturated::<i64>(limit);
    let rows = tables.query(&sql, &[&id.to_string(), &kept_days(&found), &limit])?;
    Ok(rows.iter().filter_map(search_of).collect())
}

/// Returns the searches of a project in groups, without those that are too old.
pub(super) fn grouped_searches(
    tables: &PostgresTables<'_>,
    id: Uuid,
    by: SearchGrouping,
) -> Result<Vec<SearchGroup>, SourceError> {
    let Some(found) = project(tables, &ProjectRef::Id(id))? else { return Ok(Vec::new()) };
    let value = match by {
        SearchGrouping::CacheHit => "cache_hit::text",
        SearchGrouping::Feedback => "feedback::text",
        SearchGrouping::Day => "to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
    };
    let sql = format!(
        "SELECT {value}, latency_ms, count(*) FROM fetchwell.search_history
         WHERE project_id = $1::text::uuid AND NOT ({IS_EXPIRED}) GROUP BY 1, 2"
    );
    let rows = tables.query(&sql, &[&id.to_string(), &kept_days(&found)])?;
    let counted = rows.iter().map(|row| CountedSearches {
        value: optional_text(row, 0).map(str::to_owned),
        latency_ms: latency(row, 1),
        count: row.try_get::<_, i64>(2).unwrap_or_default().unsigned_abs(),
    });
    Ok(search_groups(by, counted))
}

/// Returns a latency in milliseconds.
fn latency(row: &Row, column: usize) -> u64 {
    row.try_get::<_, Option<i32>>(column).ok().flatten().unwrap_or_default().unsigned_abs().into()
}

/// Reads a search. Returns `None` for a row of another program.
fn search_of(row: &Row) -> Option<SearchRecord> {
    let results: Vec<&str> = row.try_get(3).unwrap_or_default();
    Some(SearchRecord {
        id: text(row, 0).parse().ok()?,
        project_id: text(row, 1).parse().ok()?,
        query: text(row, 2).to_owned(),
        result_ids: results.iter().filter_map(|id| id.parse().ok()).collect(),
        feedback: optional_text(row, 4).and_then(|text| text.parse().ok()),
        latency_ms: latency(row, 5),
        cache_hit: row.try_get::<_, Option<bool>>(6).ok().flatten().unwrap_or_default(),
        created_at: text(row, 7).to_owned(),
    })
}
