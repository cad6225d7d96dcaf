//! The SQL about items and their records that all databases share.

use crate::contract::{ImportId, Role};

/// Names of a database in the SQL about items.
#[derive(Debug, Clone, Copy)]
pub struct TableNames {
    /// Prefix of the tables, such as `fetchwell.`.
    pub schema: &'static str,
    /// Columns of `item_records` that name a record.
    pub record: &'static [&'static str],
    /// Columns of `records` that these refer to.
    pub row: &'static [&'static str],
    /// Comparison of a column with the ids of a statement, such as `= ?1`.
    pub listed: &'static str,
}

/// Queries about the items of one import.
#[derive(Debug, Clone, Copy)]
pub struct ItemSql {
    names: &'static TableNames,
    import: i64,
}

impl ItemSql {
    /// Creates the queries about an import. One to its end, which is `None`, has no items.
    #[must_use]
    pub fn new(names: &'static TableNames, import: Option<ImportId>) -> Self {
        Self { names, import: import.map_or(0, |import| import.0) }
    }

    /// Returns the query for the records that are stale or of a missing item, and that no present item gives.
    fn candidates(&self) -> String {
        let (x, import) = (self.names.schema, self.import);
        let columns = |names: &[&str], table: &str| {
            let columns: Vec<String> = names.iter().map(|name| format!("{table}.{name}")).collect();
            columns.join(", ")
        };
        let [m, s, g, o] = ["m", "s", "g", "o"].map(|table| columns(self.names.record, table));
        let r = columns(self.names.row, "r");
        let (stale, gives) = (Role::Stale.number(), Role::Gives.number());
        format!(
            "SELECT DISTINCT {m} FROM (
                 SELECT {s}, t.absence FROM {x}item_records s JOIN {x}import_items t ON t.id = s.item
                 WHERE s.role = {stale} AND t.import = {import}
                 UNION ALL
                 SELECT {g}, t.absence FROM {x}import_items t JOIN {x}item_records g ON g.item = t.id
                 WHERE t.import = {import} AND t.absence <> 0) m
             WHERE NOT EXISTS (SELECT 1 FROM {x}item_records o JOIN {x}import_items p ON p.id = o.item
                 WHERE ({o}) = ({m}) AND o.role = {gives} AND p.absence = 0)
               AND EXISTS (SELECT 1 FROM {x}records r WHERE ({r}) = ({m}) AND r.data IS NOT NULL)"
        )
    }

    /// Returns the condition of the present items that give records.
    fn gives_records(&self) -> String {
        let (x, import, gives) = (self.names.schema, self.import, Role::Gives.number());
        format!(
            "t.import = {import} AND t.absence = 0
             AND EXISTS (SELECT 1 FROM {x}item_records m WHERE m.item = t.id AND m.role = {gives})"
        )
    }

    /// Counts the items that have records, and that meet another condition.
    pub(super) fn items_with_records(&self, condition: &str) -> String {
        let (x, import) = (self.names.schema, self.import);
        format!(
            "SELECT count(*) FROM {x}import_items t WHERE t.import = {import} AND {condition}
             AND EXISTS (SELECT 1 FROM {x}item_records m WHERE m.item = t.id)"
        )
    }

    /// Counts the records that items give, or gave before they were read again.
    pub(super) fn given_records(&self) -> String {
        let (x, import) = (self.names.schema, self.import);
        let (stale, gives) = (Role::Stale.number(), Role::Gives.number());
        format!(
            "SELECT count(*) FROM {x}import_items t JOIN {x}item_records m ON m.item = t.id
             WHERE t.import = {import} AND m.role IN ({stale}, {gives})"
        )
    }

    /// Counts one stale record, if there is any.
    pub(super) fn any_stale(&self) -> String {
        let (x, import, stale) = (self.names.schema, self.import, Role::Stale.number());
        format!(
            "SELECT count(*) FROM (SELECT 1 FROM {x}item_records s JOIN {x}import_items t ON t.id = s.item
             WHERE s.role = {stale} AND t.import = {import} LIMIT 1) s"
        )
    }

    /// Counts one item that is marked as missing, if there is any.
    pub(super) fn any_marked(&self) -> String {
        let (x, import) = (self.names.schema, self.import);
        format!(
            "SELECT count(*) FROM (SELECT 1 FROM {x}import_items
             WHERE import = {import} AND absence <> 0 LIMIT 1) s"
        )
    }

    /// Counts the records that would be deleted, but for those of items with content that is at another path.
    pub(super) fn missing_records(&self) -> String {
        format!("SELECT count(*) FROM ({} AND m.absence <> 2) c", self.candidates())
    }

    /// Counts one present item that gives records, if there is any.
    pub(super) fn any_giving(&self) -> String {
        let (x, gives) = (self.names.schema, self.gives_records());
        format!("SELECT count(*) FROM (SELECT 1 FROM {x}import_items t WHERE {gives} LIMIT 1) s")
    }

    /// Returns the query for the fingerprints of the present items that were read without a problem and give records.
    pub(super) fn fingerprints(&self) -> String {
        let (x, gives) = (self.names.schema, self.gives_records());
        format!(
            "SELECT t.id, t.fingerprint FROM {x}import_items t
             WHERE t.fingerprint IS NOT NULL AND t.problem IS NULL AND {gives}"
        )
    }

    /// Returns the query for the next records to delete.
    pub(super) fn removals(&self, limit: usize) -> String {
        let TableNames { schema: x, record, row, .. } = self.names;
        let same: Vec<String> =
            row.iter().zip(*record).map(|(row, record)| format!("r.{row} = c.{record}")).collect();
        let (same, row_id) = (same.join(" AND "), row.first().unwrap_or(&"id"));
        format!(
            "SELECT s.name, r.key, r.version, r.{row_id} FROM ({} LIMIT {limit}) c
             JOIN {x}records r ON {same} JOIN {x}streams s ON s.id = r.stream",
            self.candidates()
        )
    }

    /// Returns the statement that forgets the marks of an earlier synchronization.
    pub(super) fn reset_marks(&self) -> String {
        let (x, import) = (self.names.schema, self.import);
        format!("UPDATE {x}import_items SET absence = 0 WHERE import = {import} AND absence <> 0")
    }

    /// Returns the statement that marks listed items: 1 if they are missing, 2 if their content is at another path.
    pub(super) fn mark(&self, absence: u8) -> String {
        let TableNames { schema: x, listed, .. } = self.names;
        format!(
            "UPDATE {x}import_items SET absence = {absence} WHERE id {listed} AND import = {}",
            self.import
        )
    }

    /// Returns the statement that keeps the stale records of listed items.
    pub(super) fn keep_stale(&self) -> String {
        let TableNames { schema: x, listed, .. } = self.names;
        let (stale, gives) = (Role::Stale.number(), Role::Gives.number());
        format!("UPDATE {x}item_records SET role = {gives} WHERE item {listed} AND role = {stale}")
    }

    /// Returns the statement that forgets the relations to stale records.
    pub(super) fn forget_stale(&self) -> String {
        let (x, import, stale) = (self.names.schema, self.import, Role::Stale.number());
        format!(
            "DELETE FROM {x}item_records WHERE role = {stale}
             AND item IN (SELECT id FROM {x}import_items WHERE import = {import})"
        )
    }

    /// Returns the statement that forgets the items that are marked as missing.
    pub(super) fn forget_missing(&self) -> String {
        let (x, import) = (self.names.schema, self.import);
        format!("DELETE FROM {x}import_items WHERE import = {import} AND absence <> 0")
    }
}
