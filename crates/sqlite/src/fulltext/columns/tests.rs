//! Figures from columns compared with those from the JSON of the records.

use std::path::PathBuf;

use fetchwell_conformance::column_comparison::{
    ComparedAnswers, ComparedStore, RecordChange, answer, check, write,
};
use fetchwell_conformance::random_queries::StoreQuery;
use fetchwell_ranking::relational::tables::Tables;
use fetchwell_source::{AggregateQuery, Metric};
use tempfile::TempDir;

use super::super::SqliteSearch;
use super::IndexColumns;
use crate::SqliteTarget;
use crate::database::Database;
use crate::read::tables::SqliteTables;
use crate::write_lock::IndexLock;

/// Store in a folder of its own.
struct TestedStore {
    _folder: TempDir,
    path: PathBuf,
    /// Lock that keeps imports from the index.
    lock: Option<IndexLock>,
    search: SqliteSearch,
}

impl ComparedStore for TestedStore {
    fn write(&mut self, connection: &str, records: Vec<RecordChange>) {
        write(&SqliteTarget::new(&self.path), connection, records);
    }

    fn keep_columns(&mut self) {
        self.lock = IndexLock::try_take(&self.path).unwrap();
        assert!(self.lock.is_some());
    }

    fn answers(&self, query: &StoreQuery) -> ComparedAnswers {
        let database = Database::open(&self.path).unwrap();
        let columns = IndexColumns::new(&database, &self.search.index).of_all_streams();
        let read = database.read(|sqlite| {
            let transaction = sqlite.unchecked_transaction()?;
            let plain = answer(&SqliteTables::new(&transaction), query);
            let tables = SqliteTables::with_columns(&transaction, &columns);
            let has_columns = tables.columns(1, &["a"], None).unwrap().is_some();
            Ok(ComparedAnswers { plain, from_columns: answer(&tables, query), has_columns })
        });
        read.unwrap()
    }
}

impl TestedStore {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("columns.db");
        Self { _folder: folder, path, lock: None, search: SqliteSearch::default() }
    }
}

#[test]
fn columns_give_the_answers_of_the_records() {
    check(TestedStore::new);
}

/// A server that has seen an index of later changes than those of the store does not use it when the store has as many.
#[test]
fn columns_of_another_history_are_not_used() {
    let mut store = TestedStore::new();
    let record = |key: &str, number: u64| {
        let data = serde_json::from_value(serde_json::json!({"a": number})).unwrap();
        (key.to_owned(), Some(data))
    };
    store.write("one", (0..100).map(|number| record(&format!("k{number}"), number)).collect());
    let copy = std::fs::read(&store.path).unwrap();
    store.write("one", vec![record("k0", 1_000)]);
    std::fs::write(&store.path, copy).unwrap();
    let sum = AggregateQuery {
        field: Some("a".to_owned()),
        ..AggregateQuery::new("s".parse().unwrap(), Metric::Sum)
    };
    for (change, expect) in [(None, "4950"), (Some(record("k7", 2_000)), "6943")] {
        if let Some(change) = change {
            store.write("one", vec![change]);
        }
        let ComparedAnswers { plain, from_columns, .. } = store.answers(&StoreQuery::Aggregate(sum.clone()));
        assert_eq!(plain, from_columns);
        assert!(plain.contains(expect), "{plain}");
    }
}
