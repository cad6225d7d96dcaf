//! Writes and reads the history of searches.

use rusqlite::{Connection, Row, params};

use super::create_tables;
use super::read::{project as found_project, projects};
use crate::saturate::saturated;
use crate::source::documents::{
    CountedSearches, Feedback, NewSearch, Project, ProjectRef, SearchGroup, SearchGrouping, SearchRecord,
    Uuid, search_groups, vector_bytes,
};
use crate::source::sqlite::read::rows::name;
use crate::source::sqlite::tables::{NOW, has_table};

/// Table of the callers of searches. Stores of earlier releases do not have it.
const CALLERS: &str = "search_callers";

/// SQL for the time before which searches are not kept, by an age in the second parameter. An age beyond the calendar keeps
/// all of them.
const KEPT_SINCE: &str = "ifnull(strftime('%Y-%m-%dT%H:%M:%fZ', 'now', ?2), '')";

/// Returns the age of the oldest search that a project keeps, for [`KEPT_SINCE`].
fn max_age(project: &Project) -> String {
    format!("-{} days", project.settings.kept_days())
}

/// Returns true if a store has searches that are older than their projects keep them.
pub(in crate::source::sqlite) fn has_expired(sqlite: &Connection) -> Result<bool, rusqlite::Error> {
    let sql = format!("SELECT 1 FROM search_history WHERE project_id = ?1 AND created_at < {KEPT_SINCE}");
    for project in projects(sqlite)? {
        if sqlite.prepare_cached(&sql)?.exists([project.id.to_string(), max_age(&project)])? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Deletes the searches that are older than their projects keep them. Returns their number.
pub(in crate::source::sqlite) fn delete_expired(sqlite: &Connection) -> Result<usize, rusqlite::Error> {
    projects(sqlite)?.iter().map(|project| delete_expired_of(sqlite, project)).sum()
}

/// Deletes the searches of a project that are older than it keeps them. Returns their number.
pub(in crate::source::sqlite) fn delete_expired_of(
    sqlite: &Connection,
    project: &Project,
) -> Result<usize, rusqlite::Error> {
    let sql = format!("DELETE FROM search_history WHERE project_id = ?1 AND created_at < {KEPT_SINCE}");
    sqlite.prepare_cached(&sql)?.execute([project.id.to_string(), max_age(project)])
}

/// Inserts a search, and deletes those that are too old.
pub(in crate::source::sqlite) fn add_search(
    sqlite: &Connection,
    project: Uuid,
    search: &NewSearch,
) -> Result<(), rusqlite::Error> {
    let NewSearch { id, query, result_ids, latency_ms, cache_hit, caller, .. } = search;
    let vector = search.embedding().map(vector_bytes);
    let sql = format!(
        "INSERT INTO search_history (id, project_id, query, query_embedding, result_ids, latency_ms, cache_hit, created_at)
         SELECT ?1, id, ?3, ?4, ?5, ?6, ?7, {NOW} FROM projects WHERE id = ?2"
    );
    let Some(found) = found_project(sqlite, &ProjectRef::Id(project))? else { return Ok(()) };
    delete_expired_of(sqlite, &found)?;
    if found.settings.kept_days() == 0 {
        return Ok(());
    }
    sqlite.prepare_cached(&sql)?.execute(params![
        id.to_string(),
        project.to_string(),
        query,
        vector,
        serde_json::to_string(result_ids).unwrap_or_default(),
        saturated::<i64>(*latency_ms),
        cache_hit
    ])?;
    if let Some(caller) = caller {
        if !has_table(sqlite, CALLERS)? {
            create_tables(sqlite)?;
        }
        // A removed project has no searches.
        let sql = "INSERT INTO search_callers SELECT id, ?2 FROM search_history WHERE id = ?1";
        sqlite.prepare_cached(sql)?.execute(params![id.to_string(), caller])?;
    }
    Ok(())
}

/// Sets or withdraws the feedback on a search. Returns false if there is no such search, or if it is of another caller.
pub(in crate::source::sqlite) fn set_feedback(
    sqlite: &Connection,
    search: Uuid,
    caller: Option<&str>,
    feedback: Option<Feedback>,
) -> Result<bool, rusqlite::Error> {
    if has_table(sqlite, CALLERS)? {
        let sql = "SELECT 1 FROM search_callers WHERE search_id = ?1 AND caller IS NOT ?2";
        if sqlite.prepare_cached(sql)?.exists(params![search.to_string(), caller])? {
            return Ok(false);
        }
    }
    let mut update = sqlite.prepare_cached("UPDATE search_history SET feedback = ?2 WHERE id = ?1")?;
    Ok(update.execute(params![search.to_string(), feedback.map(Feedback::as_str)])? > 0)
}

/// Returns the last searches of a project, the newest first, without those that are too old.
pub(in crate::source::sqlite) fn searches(
    sqlite: &Connection,
    project: Uuid,
    limit: usize,
) -> Result<Vec<SearchRecord>, rusqlite::Error> {
    let Some(found) = found_project(sqlite, &ProjectRef::Id(project))? else { return Ok(Vec::new()) };
    let mut statement = sqlite.prepare_cached(&format!(
        "SELECT id, project_id, query, result_ids, feedback, latency_ms, cache_hit, created_at
         FROM search_history WHERE project_id = ?1 AND created_at >= {KEPT_SINCE}
         ORDER BY created_at DESC, rowid DESC LIMIT ?3"
    ))?;
    let limit = saturated::<i64>(limit);
    let rows = statement.query_map(params![project.to_string(), max_age(&found), limit], search_of)?;
    rows.filter_map(Result::transpose).collect()
}

/// Returns the searches of a project in groups, without those that are too old.
pub(in crate::source::sqlite) fn grouped_searches(
    sqlite: &Connection,
    project: Uuid,
    by: SearchGrouping,
) -> Result<Vec<SearchGroup>, rusqlite::Error> {
    let Some(found) = found_project(sqlite, &ProjectRef::Id(project))? else { return Ok(Vec::new()) };
    let value = match by {
        SearchGrouping::CacheHit => "iif(cache_hit, 'true', 'false')",
        SearchGrouping::Feedback => "feedback",
        SearchGrouping::Day => "substr(created_at, 1, 10)",
    };
    let mut statement = sqlite.prepare_cached(&format!(
        "SELECT {value}, latency_ms, count(*) FROM search_history
         WHERE project_id = ?1 AND created_at >= {KEPT_SINCE} GROUP BY 1, 2"
    ))?;
    let counted = statement.query_map([project.to_string(), max_age(&found)], |row| {
        let (latency_ms, count) =
            (row.get::<_, i64>(1)?.unsigned_abs(), row.get::<_, i64>(2)?.unsigned_abs());
        Ok(CountedSearches { value: row.get(0)?, latency_ms, count })
    })?;
    Ok(search_groups(by, counted.collect::<Result<Vec<_>, _>>()?))
}

/// Reads a search. Returns `None` for a row of another program.
fn search_of(row: &Row<'_>) -> Result<Option<SearchRecord>, rusqlite::Error> {
    let (Some(id), Some(project_id)) = (name(row, 0)?, name(row, 1)?) else { return Ok(None) };
    Ok(Some(SearchRecord {
        id,
        project_id,
        query: row.get(2)?,
        result_ids: serde_json::from_str(row.get_ref(3)?.as_str()?).unwrap_or_default(),
        feedback: row.get_ref(4)?.as_str_or_null()?.and_then(|text| text.parse().ok()),
        latency_ms: row.get::<_, i64>(5)?.unsigned_abs(),
        cache_hit: row.get(6)?,
        created_at: row.get(7)?,
    }))
}
