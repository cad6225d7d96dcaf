//! The check of the imports of a store. Covers those that the store remembers, and those of the configuration.

use fetchwell_connectors::describe_held_records;
use fetchwell_source::contract::RememberedImport;
use jiff::Timestamp;

use super::super::print::counted;
use super::check::Check;
use crate::app::imports::{ImportStore, known_connection};
use crate::config::{Environment, FileSettings, ImportSettings, SourceSettings};

/// Number of days after which an import is stale.
const STALE_DAYS: i64 = 7;

/// Seconds of a day.
const DAY: i64 = 24 * 60 * 60;

/// Checks the imports of a store. Returns `None` if it has none, or cannot be read, which has a check of its own.
pub(super) async fn check_imports(
    settings: &FileSettings,
    source: &SourceSettings,
    environment: &Environment,
) -> Option<Check> {
    let store = ImportStore::from_source(&source.place)?;
    let imports = store.imports(environment).await.ok()?;
    let new: Vec<String> = unknown_imports(settings, source, &imports).map(never_started).collect();
    let found = match imports.len() + new.len() {
        0 => return None,
        1 => "1 import".to_owned(),
        more => format!("{more} imports"),
    };
    let now = Timestamp::now();
    let problems = imports.iter().filter_map(|import| problem(import, now));
    let problems: Vec<String> = problems.chain(new).collect();
    let warning = (!problems.is_empty()).then(|| problems.join("; "));
    Some(Check::for_source(source, "imports", Ok(found)).warning(warning))
}

/// Returns the imports of the configuration that the store does not have.
fn unknown_imports<'s>(
    settings: &'s FileSettings,
    source: &SourceSettings,
    imports: &[RememberedImport],
) -> impl Iterator<Item = &'s ImportSettings> {
    settings.imports.iter().filter(|configured| {
        let is_here = configured.store(&settings.sources).is_some_and(|(name, _)| *name == source.name);
        let known = known_connection(configured, imports);
        let connection = known.as_ref().unwrap_or(&configured.connection);
        is_here && !imports.iter().any(|import| import.connection_id == *connection)
    })
}

fn never_started(import: &ImportSettings) -> String {
    format!(
        "`{}` of the configuration was never synchronized; run `fetchwell serve` with this configuration",
        import.connection
    )
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
