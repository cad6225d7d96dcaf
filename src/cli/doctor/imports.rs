//! The check of the imports that a store remembers.

use std::path::Path;

use jiff::Timestamp;

use super::super::print::counted;
use super::check::Check;
use crate::config::SourceSettings;
use crate::connectors::describe_held_records;
use crate::source::store::{RememberedImport, SyncStore};

/// Number of days after which an import is stale.
const STALE_DAYS: i64 = 7;

/// Seconds of a day.
const DAY: i64 = 24 * 60 * 60;

/// Checks the imports of a store. Returns `None` if it has none, or cannot be read, which has a check of its own.
pub(super) fn check_imports(settings: &SourceSettings, store: &Path) -> Option<Check> {
    let imports = SyncStore::open(store).ok()?.imports().ok()?;
    if imports.is_empty() {
        return None;
    }
    let now = Timestamp::now();
    let problems: Vec<String> = imports.iter().filter_map(|import| problem(import, now)).collect();
    let found = match imports.len() {
        1 => "1 import".to_owned(),
        more => format!("{more} imports"),
    };
    let warning = (!problems.is_empty()).then(|| problems.join("; "));
    Some(Check::for_source(settings, "imports", Ok(found)).warning(warning))
}

/// Returns what keeps an import from being up to date, with the remedy.
fn problem(import: &RememberedImport, now: Timestamp) -> Option<String> {
    let (connection, status) = (&import.connection_id, &import.status);
    if let Some(problem) = &status.problem {
        return Some(format!("`{connection}` is not up to date: {problem}"));
    }
    if status.held > 0 {
        return Some(describe_held_records(connection.as_str(), &status.held));
    }
    let Some(last) = status.last_sync else {
        return Some(format!("`{connection}` was never synchronized; run `fetchwell sync {connection}`"));
    };
    let days = (now.as_second() - last.as_second()) / DAY;
    if days >= STALE_DAYS {
        return Some(format!(
            "`{connection}` was last synchronized {days} days ago; run `fetchwell sync {connection}`"
        ));
    }
    let unreadable = status.unreadable;
    (unreadable > 0).then(|| {
        format!(
            "{} of `{connection}` cannot be read; `fetchwell sync {connection} --report FILE` lists them",
            counted(unreadable, "file")
        )
    })
}
