//! State of the imports that a server keeps current.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::prometheus::exposition::{Exposition, Type};

/// State of an import, as a server sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportState {
    /// The import has not been synchronized yet.
    #[default]
    Starting,
    /// The import is being synchronized.
    Synchronizing,
    /// The last synchronization succeeded.
    Current,
    /// So much is missing at the origin that nothing was deleted.
    Held,
    /// Another process synchronizes the import.
    Waiting,
    /// The last attempt failed, and another one follows.
    Failing,
}

/// An import that a server keeps current.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct ImportProgress {
    /// Name of the source with the store that gets the records.
    pub source: String,
    /// Connection of the records.
    pub connection: String,
    /// State of the import.
    pub state: ImportState,
    /// Time of the last synchronization that read the origin, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sync: Option<String>,
    /// Number of records that this process added, changed and deleted.
    pub changes: u64,
    /// Number of records that are missing at the origin and were not deleted.
    pub held: u64,
    /// Number of attempts that failed in this process.
    pub failures: u64,
    /// Code of the last failure, until an attempt succeeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<&'static str>,
    /// Time of the last synchronization in seconds.
    #[serde(skip)]
    pub last_sync_seconds: Option<u64>,
}

impl ImportProgress {
    /// Sets the time of the last synchronization.
    pub fn synchronized_at(&mut self, time: Timestamp) {
        self.last_sync = Some(time.strftime("%FT%TZ").to_string());
        self.last_sync_seconds = u64::try_from(time.as_second()).ok();
    }
}

/// A number of an import.
type Measure = fn(&ImportProgress) -> u64;

/// Imports by the names of their connections.
#[derive(Debug, Default)]
pub(crate) struct ImportsProgress(BTreeMap<String, ImportProgress>);

impl ImportsProgress {
    /// Changes an import.
    pub(crate) fn update(&mut self, connection: &str, change: impl FnOnce(&mut ImportProgress)) {
        let fresh = || ImportProgress { connection: connection.to_owned(), ..ImportProgress::default() };
        change(self.0.entry(connection.to_owned()).or_insert_with(fresh));
    }

    /// Removes the imports of connections that are not in the list.
    pub(crate) fn retain(&mut self, connections: &[&str]) {
        self.0.retain(|connection, _| connections.contains(&connection.as_str()));
    }

    /// Returns all imports, by connection.
    pub(crate) fn list(&self) -> Vec<ImportProgress> {
        self.0.values().cloned().collect()
    }

    /// Returns the metrics of all imports in Prometheus' text format. Without imports there are none.
    pub(crate) fn exposition(&self) -> String {
        let mut text = Exposition::default();
        if self.0.is_empty() {
            return text.into_text();
        }
        let metrics: [(&str, Type, &str, Measure); 4] = [
            (
                "fetchwell_import_last_sync_timestamp_seconds",
                Type::Gauge,
                "Time of the last synchronization of an import that read its origin, or 0.",
                |import| import.last_sync_seconds.unwrap_or(0),
            ),
            (
                "fetchwell_import_changes_total",
                Type::Counter,
                "Records of an import that this process added, changed and deleted.",
                |import| import.changes,
            ),
            (
                "fetchwell_import_held_records",
                Type::Gauge,
                "Records that are missing at the origin of an import and were not deleted.",
                |import| import.held,
            ),
            (
                "fetchwell_import_failures_total",
                Type::Counter,
                "Failed attempts to synchronize an import.",
                |import| import.failures,
            ),
        ];
        for (name, kind, help, value) in metrics {
            text.metric(name, kind, help);
            for (connection, import) in &self.0 {
                text.sample(name, &[("source", &import.source), ("connection", connection)], value(import));
            }
        }
        text.into_text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_listed_and_exposed_by_connection() {
        let mut imports = ImportsProgress::default();
        assert_eq!(imports.exposition(), "");
        imports.update("notes", |import| {
            import.source = "store".to_owned();
            import.synchronized_at("2026-04-01T10:00:00Z".parse().unwrap());
        });
        imports.update("mail", |import| import.failures += 1);
        let text = imports.exposition();
        for line in [
            "fetchwell_import_last_sync_timestamp_seconds{source=\"store\",connection=\"notes\"} 1775037600\n",
            "fetchwell_import_failures_total{source=\"\",connection=\"mail\"} 1\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        imports.retain(&["notes"]);
        assert_eq!(imports.list()[0].last_sync.as_deref(), Some("2026-04-01T10:00:00Z"));
        assert_eq!(imports.list().len(), 1);
    }
}
