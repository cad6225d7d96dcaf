//! Writes and reads the history of searches.

use rusqlite::{Connection, Row, params};

use super::has_tables;
use super::writer::NOW;
use crate::source::documents::{Feedback, NewSearch, SearchRecord, Uuid};
use crate::source::store::read::rows::name;

/// Number of days after which a search is deleted, unless the project has the setting `history_days`.
const HISTORY_DAYS: u32 = 90;

/// Inserts a search, and deletes those that are too old.
pub(in crate::source::store) fn add_search(
    sqlite: &Connection,
    project: Uuid,
    search: &NewSearch,
) -> Result<(), rusqlite::Error> {
    let NewSearch { id, query, query_embedding, result_ids, latency_ms, cache_hit } = search;
    let vector = query_embedding
        .as_ref()
        .map(|numbers| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>());
    let sql = format!(
        "INSERT INTO search_history (id, project_id, query, query_embedding, result_ids, latency_ms, cache_hit, created_at)
         SELECT ?1, id, ?3, ?4, ?5, ?6, ?7, {NOW} FROM projects WHERE id = ?2"
    );
    let expired = format!(
        "DELETE FROM search_history WHERE project_id = ?1 AND created_at < strftime('%Y-%m-%dT%H:%M:%fZ', 'now',
             (SELECT printf('-%d days', coalesce(settings ->> '$.history_days', {HISTORY_DAYS}))
              FROM projects WHERE id = ?1))"
    );
    sqlite.prepare_cached(&expired)?.execute([project.to_string()])?;
    sqlite.prepare_cached(&sql)?.execute(params![
        id.to_string(),
        project.to_string(),
        query,
        vector,
        serde_json::to_string(result_ids).unwrap_or_default(),
        i64::try_from(*latency_ms).unwrap_or(i64::MAX),
        cache_hit
    ])?;
    Ok(())
}

/// Sets or withdraws the feedback on a search. Returns false if there is no such search.
pub(in crate::source::store) fn set_feedback(
    sqlite: &Connection,
    search: Uuid,
    feedback: Option<Feedback>,
) -> Result<bool, rusqlite::Error> {
    let mut update = sqlite.prepare_cached("UPDATE search_history SET feedback = ?2 WHERE id = ?1")?;
    Ok(update.execute(params![search.to_string(), feedback.map(Feedback::as_str)])? > 0)
}

/// Returns the last searches of a project, the newest first.
pub(in crate::source::store) fn searches(
    sqlite: &Connection,
    project: Uuid,
    limit: usize,
) -> Result<Vec<SearchRecord>, rusqlite::Error> {
    if !has_tables(sqlite)? {
        return Ok(Vec::new());
    }
    let mut statement = sqlite.prepare_cached(
        "SELECT id, project_id, query, result_ids, feedback, latency_ms, cache_hit, created_at
         FROM search_history WHERE project_id = ?1 ORDER BY created_at DESC, rowid DESC LIMIT ?2",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![project.to_string(), limit], search_of)?;
    rows.filter_map(Result::transpose).collect()
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
