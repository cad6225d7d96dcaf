//! Records with a text that the model refuses. They have no vectors; searches find them by words, and the next command that
//! embeds tries them again.

use std::collections::BTreeSet;

use rusqlite::Connection;

use super::plan::Plan;
use crate::tables::has_table;

/// Rows of the store of which the model refused a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct RefusedRecords(BTreeSet<i64>);

impl RefusedRecords {
    /// Reads the refused records of a generation.
    pub(super) fn read(sqlite: &Connection, generation: i64) -> Result<Self, rusqlite::Error> {
        if !has_table(sqlite, "refused_records")? {
            return Ok(Self::default());
        }
        let mut statement =
            sqlite.prepare_cached("SELECT record FROM refused_records WHERE generation = ?1")?;
        let rows = statement.query_map([generation], |row| row.get(0))?;
        rows.collect::<Result<_, _>>().map(Self)
    }

    /// Replaces the refused records of a generation. The table is created by the first of them.
    pub(super) fn write(&self, sqlite: &Connection, generation: i64) -> Result<(), rusqlite::Error> {
        sqlite.execute_batch(include_str!("refused_records.sql"))?;
        sqlite.execute(
            "DELETE FROM refused_records
             WHERE generation = ?1 OR generation NOT IN (SELECT id FROM generations)",
            [generation],
        )?;
        let mut insert =
            sqlite.prepare_cached("INSERT INTO refused_records (generation, record) VALUES (?1, ?2)")?;
        for record in &self.0 {
            insert.execute((generation, record))?;
        }
        Ok(())
    }

    /// Adds the records of a plan that lack a vector, and removes the others.
    pub(super) fn update(&mut self, plan: &Plan) {
        for record in &plan.records {
            if plan.has_vectors(record) {
                self.0.remove(&record.row);
            } else {
                self.0.insert(record.row);
            }
        }
    }

    /// Returns the rows of the records.
    pub(super) fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        self.0.iter().copied()
    }

    /// Returns the number of records.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}
