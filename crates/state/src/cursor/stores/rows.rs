//! Statements that change the file of positions, for one transaction.

use std::time::Duration;

use fetchwell_core::saturate::saturated;
use rusqlite::{Transaction, params};

use super::pending::Use;
use crate::cursor::codec::Reference;
use crate::cursor::positions::Position;

/// Maximum size of the used pages of the file in bytes. The oldest positions are deleted first.
const MAX_BYTES: i64 = 256 * 1024 * 1024;

/// Maximum number of positions that are deleted before the size is measured again.
const MAX_EVICTED: i64 = 1_024;

/// Expression for the expiry of a row, as in the index `positions_by_expiry`.
pub(super) const EXPIRES_MS: &str = "coalesce(expires_ms, issued_ms + 3600000)";

/// Stores that the time is at least `now`, and returns the latest time.
pub(super) fn raise(transaction: &Transaction<'_>, now: Duration) -> Result<Duration, rusqlite::Error> {
    let raised = "UPDATE clock SET seen_ms = max(seen_ms, ?1) RETURNING seen_ms";
    transaction.prepare_cached(raised)?.query_one([millis(now)], |row| row.get(0)).map(from_millis)
}

/// Adds a position.
pub(super) fn insert(
    transaction: &Transaction<'_>,
    reference: &Reference,
    position: &Position,
    expires: Duration,
) -> Result<(), rusqlite::Error> {
    // A commit that failed may have been complete, and is repeated.
    let insert = "INSERT OR IGNORE INTO positions (reference, kind, issued_ms, offset, binding, position, expires_ms) VALUES (?, ?, ?, ?, ?, ?, ?)";
    let Position { kind, issued, offset, binding, text } = position;
    let row = params![reference, kind.byte(), millis(*issued), offset, binding, text, millis(expires)];
    transaction.prepare_cached(insert)?.execute(row).map(|_one| ())
}

/// Marks a position as used, unless it is already.
pub(super) fn mark_used(transaction: &Transaction<'_>, first_use: Use) -> Result<(), rusqlite::Error> {
    let mark = "UPDATE positions SET used_ms = ?2 WHERE reference = ?1 AND used_ms IS NULL";
    transaction.prepare_cached(mark)?.execute(params![first_use.reference, millis(first_use.at)]).map(drop)
}

/// Deletes expired positions.
pub(super) fn sweep(transaction: &Transaction<'_>, now: Duration) -> Result<(), rusqlite::Error> {
    transaction.execute(&format!("DELETE FROM positions WHERE {EXPIRES_MS} < ?1"), [millis(now)]).map(drop)
}

/// Deletes the oldest positions until there is room for `bytes` more. The number of used pages is in the header of the file,
/// while a sum over all positions would take longer than the write. Freed pages are used again by the same transaction.
pub(super) fn make_room(transaction: &Transaction<'_>, bytes: usize) -> Result<(), rusqlite::Error> {
    let pragma = |name| transaction.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let added = saturated::<i64>(bytes);
    let mut count = 1;
    let page_bytes = pragma("page_size")?;
    while (pragma("page_count")? - pragma("freelist_count")?) * page_bytes > MAX_BYTES.saturating_sub(added) {
        let oldest = "DELETE FROM positions WHERE reference IN (SELECT reference FROM positions ORDER BY issued_ms LIMIT ?1)";
        if transaction.prepare_cached(oldest)?.execute([count])? == 0 {
            return Ok(());
        }
        count = (count * 2).min(MAX_EVICTED);
    }
    Ok(())
}

/// Deletes the older half.
pub(super) fn halve(transaction: &Transaction<'_>) -> Result<(), rusqlite::Error> {
    let half = "DELETE FROM positions WHERE reference IN (SELECT reference FROM positions ORDER BY issued_ms \
        LIMIT (SELECT (count(*) + 1) / 2 FROM positions))";
    transaction.execute(half, ()).map(|_rows| ())
}

pub(super) fn millis(time: Duration) -> i64 {
    saturated::<i64>(time.as_millis())
}

pub(super) fn from_millis(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}
