//! State of the builds of vectors that a server makes in the background.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::prometheus::exposition::{Exposition, Type};

/// State of the vectors of a store, as a server sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EmbeddingState {
    /// The store has not been looked at yet.
    #[default]
    Starting,
    /// Records are being embedded.
    Building,
    /// All records have vectors.
    Complete,
    /// Another process builds the vectors.
    Waiting,
    /// The last attempt failed, and another one follows.
    Failing,
    /// New records are embedded only by a command: the model is on another machine, and `background` is not set.
    Disabled,
}

/// Build of the vectors of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct EmbeddingBuild {
    /// Name of the source.
    pub source: String,
    /// State of the vectors.
    pub state: EmbeddingState,
    /// Number of new and changed records without vectors, as far as it is known.
    pub missing_records: u64,
    /// Number of chunks that this process has embedded.
    pub embedded_chunks: u64,
    /// Number of attempts that failed in this process.
    pub failures: u64,
    /// Code of the last failure, until an attempt succeeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<&'static str>,
}

/// Builds by the name of their source.
#[derive(Debug, Default)]
pub(crate) struct EmbeddingBuilds(BTreeMap<String, EmbeddingBuild>);

impl EmbeddingBuilds {
    /// Changes the build of a source.
    pub(crate) fn update(&mut self, source: &str, change: impl FnOnce(&mut EmbeddingBuild)) {
        let fresh = || EmbeddingBuild { source: source.to_owned(), ..EmbeddingBuild::default() };
        change(self.0.entry(source.to_owned()).or_insert_with(fresh));
    }

    /// Removes the builds of sources that are not in the list.
    pub(crate) fn retain(&mut self, sources: &[&str]) {
        self.0.retain(|source, _| sources.contains(&source.as_str()));
    }

    /// Returns all builds, by the names of their sources.
    pub(crate) fn list(&self) -> Vec<EmbeddingBuild> {
        self.0.values().cloned().collect()
    }

    /// Returns the metrics of all builds in Prometheus' text format. Without builds there are none.
    pub(crate) fn exposition(&self) -> String {
        let mut text = Exposition::default();
        if self.0.is_empty() {
            return text.into_text();
        }
        let name = "fetchwell_embedding_missing_records";
        text.metric(name, Type::Gauge, "New and changed records of a store without vectors.");
        for (source, build) in &self.0 {
            text.sample(name, &[("source", source)], build.missing_records);
        }
        let name = "fetchwell_embedding_chunks_total";
        text.metric(name, Type::Counter, "Chunks of a store that this process has embedded.");
        for (source, build) in &self.0 {
            text.sample(name, &[("source", source)], build.embedded_chunks);
        }
        let name = "fetchwell_embedding_failures_total";
        text.metric(name, Type::Counter, "Failed attempts to embed the records of a store.");
        for (source, build) in &self.0 {
            text.sample(name, &[("source", source)], build.failures);
        }
        text.into_text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_are_listed_and_exposed_by_source() {
        let mut builds = EmbeddingBuilds::default();
        assert_eq!(builds.exposition(), "");
        builds.update("notes", |build| build.missing_records = 3);
        builds.update("mail", |build| build.failures += 1);
        builds.update("notes", |build| build.embedded_chunks += 2);
        let text = builds.exposition();
        for line in [
            "fetchwell_embedding_missing_records{source=\"notes\"} 3\n",
            "fetchwell_embedding_chunks_total{source=\"notes\"} 2\n",
            "fetchwell_embedding_failures_total{source=\"mail\"} 1\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        builds.retain(&["notes"]);
        assert_eq!(builds.list().len(), 1);
    }
}
