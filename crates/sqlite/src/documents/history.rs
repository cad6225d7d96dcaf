//! Writes and reads the history of searches.

use fetchwell_core::saturate::saturated;
use fetchwell_source::documents::{
    Feedback, NewSearch, Project, ProjectRef, SearchGroup, SearchGrouping, SearchRecord, Uuid, search_groups,
    vector_bytes,
};
use rusqlite::{Connection, params};

use super::create_tables;
use super::read::{DIALECT, project, rows, values};
use crate::tables::{NOW, has_table};

/// Table of the callers of searches. Stores of earlier releases do not have it.
const CALLERS: &str = "search_callers";

/// Returns true if a store has searches that are older than their projects keep them.
pub(crate) fn has_expired(sqlite: &Connection) -> Result<bool, rusqlite::Error> {
    for project in rows(sqlite, &DIALECT.projects())? {
        let query = DIALECT.expired("SELECT 1", &project);
        if sqlite.prepare_cached(&query.sql)?.exists(values(&query))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Deletes the searches that are older than their projects keep them. Returns their number.
pub(crate) fn delete_expired(sqlite: &Connection) -> Result<usize, rusqlite::Error> {
    rows(sqlite, &DIALECT.projects())?.iter().map(|project| delete_expired_of(sqlite, project)).sum()
}

/// Deletes the searches of a project that are older than it keeps them. Returns their number.
pub(crate) fn delete_expired_of(sqlite: &Connection, project: &Project) -> Result<usize, rusqlite::Error> {
    let query = DIALECT.expired("DELETE", project);
    sqlite.prepare_cached(&query.sql)?.execute(values(&query))
}

/// Inserts a search, and deletes those that are too old.
pub(crate) fn add_search(sqlite: &Connection, of: Uuid, search: &NewSearch) -> Result<(), rusqlite::Error> {
    let NewSearch { id, query, result_ids, latency_ms, cache_hit, caller, .. } = search;
    let vector = search.embedding().map(vector_bytes);
    let sql = format!(
        "INSERT INTO search_history (id, project_id, query, query_embedding, result_ids, latency_ms, cache_hit, created_at)
         SELECT ?1, id, ?3, ?4, ?5, ?6, ?7, {NOW} FROM projects WHERE id = ?2"
    );
    let Some(found) = project(sqlite, &ProjectRef::Id(of))? else { return Ok(()) };
    delete_expired_of(sqlite, &found)?;
    if found.settings.kept_days() == 0 {
        return Ok(());
    }
    sqlite.prepare_cached(&sql)?.execute(params![
        id.to_string(),
        of.to_string(),
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
pub(crate) fn set_feedback(
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
pub(crate) fn searches(
    sqlite: &Connection,
    id: Uuid,
    limit: usize,
) -> Result<Vec<SearchRecord>, rusqlite::Error> {
    let Some(found) = project(sqlite, &ProjectRef::Id(id))? else { return Ok(Vec::new()) };
    rows(sqlite, &DIALECT.searches(&found, limit))
}

/// Returns the searches of a project in groups, without those that are too old.
pub(crate) fn grouped_searches(
    sqlite: &Connection,
    id: Uuid,
    by: SearchGrouping,
) -> Result<Vec<SearchGroup>, rusqlite::Error> {
    let Some(found) = project(sqlite, &ProjectRef::Id(id))? else { return Ok(Vec::new()) };
    Ok(search_groups(by, rows(sqlite, &DIALECT.counted_searches(&found, by))?))
}
