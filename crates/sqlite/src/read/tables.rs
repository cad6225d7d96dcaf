//! Queries that reads make of the tables of the store.

use fetchwell_core::handle::{ConnectionId, RecordAddress, StreamName};
use fetchwell_core::record::{Record, Schema};
use fetchwell_ranking::lexical::word_filter::WordFilter;
use fetchwell_ranking::relational::allowance::Allowance;
use fetchwell_ranking::relational::columns::{ColumnarStream, in_columns};
use fetchwell_ranking::relational::interrupt::ReadBounds;
use fetchwell_ranking::relational::stream_row::{SchemaRow, StreamColumns, StreamRow, add_row};
use fetchwell_ranking::relational::streams::stream_rows;
use fetchwell_ranking::relational::tables::{
    ChangeRow, EachRow, KeyScan, RecordKey, RowScan, Scan, ScanRow, SizedRecord, StoreIdentity, Tables,
    WordScan, after_operator, order_keyword, pass_with_words,
};
use fetchwell_source::manifest::kinds::Kinds;
use fetchwell_source::{Direction, RangeOperator, SourceError};
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use super::rows::{RECORD_COLUMNS, RECORD_TABLES, bytes_of_row, length_at, record_of};
use super::sort_value::{sort_column, stored_value};
use crate::database::{Database, ReadError, identity};

/// Tables of a store, read over one connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SqliteTables<'a> {
    sqlite: &'a Connection,
    columns: Option<&'a dyn OpenColumns>,
}

/// Columns of the fields of a store.
pub(crate) trait OpenColumns: std::fmt::Debug {
    /// Opens the columns of some fields of a stream, in the state that the transaction of the connection sees.
    fn open(
        &self,
        sqlite: &Connection,
        selection: ColumnSelection<'_>,
    ) -> Result<Option<ColumnarStream<'static>>, rusqlite::Error>;
}

/// Columns of the records of a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnSelection<'a> {
    /// Row id of the stream.
    pub(crate) stream: i64,
    /// Names of the fields.
    pub(crate) fields: &'a [&'a str],
    /// Words that a record must have.
    pub(crate) words: Option<&'a WordFilter>,
}

impl<'a> SqliteTables<'a> {
    /// Creates the tables without columns of fields.
    pub(crate) fn new(sqlite: &'a Connection) -> Self {
        Self { sqlite, columns: None }
    }

    /// Creates the tables with the columns of the search index. The connection must have begun a transaction, so that all
    /// statements of a read see one state of the store.
    pub(crate) fn with_columns(sqlite: &'a Connection, columns: &'a dyn OpenColumns) -> Self {
        Self { sqlite, columns: Some(columns) }
    }
}

impl Tables for SqliteTables<'_> {
    type Error = ReadError;

    fn schema(&self) -> Result<Schema, ReadError> {
        let mut statement = self.sqlite.prepare_cached(
            "SELECT c.connection_id, c.display_name, c.connector_key, s.name, s.record_count, c.manifest
             FROM connections c LEFT JOIN streams s ON s.connection = c.id ORDER BY c.id, s.id",
        )?;
        let mut rows = statement.query(())?;
        let mut schema = Schema::default();
        while let Some(row) = rows.next()? {
            let columns = SchemaRow {
                connection_id: row.get_ref(0)?.as_str()?,
                display_name: row.get_ref(1)?.as_str()?,
                connector_key: row.get_ref(2)?.as_str()?,
                stream: row.get_ref(3)?.as_str_or_null()?,
                record_count: row.get(4)?,
                manifest: row.get_ref(5)?.as_str_or_null()?,
            };
            add_row(&mut schema, columns);
        }
        Ok(schema)
    }

    fn identity(&self) -> Result<StoreIdentity, ReadError> {
        let (uuid, version) = identity(self.sqlite)?;
        Ok(StoreIdentity { uuid, version })
    }

    fn streams(
        &self,
        stream: &StreamName,
        connection: Option<&ConnectionId>,
    ) -> Result<Vec<StreamRow>, ReadError> {
        let mut statement = self.sqlite.prepare_cached(
            "SELECT s.id, c.connection_id, c.display_name, c.connector_key, s.record_count, c.manifest, s.cursor_field
             FROM streams s JOIN connections c ON c.id = s.connection
             WHERE s.name = ?1 AND (?2 IS NULL OR c.connection_id = ?2) ORDER BY s.id",
        )?;
        let mut rows = statement.query(params![stream.as_str(), connection.map(ConnectionId::as_str)])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let id = row.get(0)?;
            let columns = StreamColumns {
                row: id,
                connection_id: row.get_ref(1)?.as_str().unwrap_or_default(),
                display_name: row.get_ref(2)?.as_str()?,
                connector_key: row.get_ref(3)?.as_str()?,
                record_count: row.get(4)?,
                manifest: row.get_ref(5)?.as_str().ok(),
                cursor_field: row.get_ref(6)?.as_str_or_null()?,
                observed: &observed(self.sqlite, id)?,
            };
            found.extend(StreamRow::new(stream, &columns));
        }
        Ok(found)
    }

    fn find(&self, address: &RecordAddress, allowance: &Allowance) -> Result<Vec<Record>, ReadError> {
        let RecordAddress { connection, stream, record } = address;
        let asked = params![record.as_str(), stream.as_str(), connection.as_ref().map(ConnectionId::as_str)];
        let mut statement = self.sqlite.prepare_cached(&find_sql())?;
        let rows = statement.query_map(asked, |row| record_of(row, allowance))?;
        Ok(rows.filter_map(Result::transpose).collect::<Result<_, _>>()?)
    }

    fn record_versions(&self, address: &RecordAddress) -> Result<Vec<String>, ReadError> {
        let RecordAddress { connection, stream, record } = address;
        let mut statement = self.sqlite.prepare_cached(
            "SELECT o.uuid || '.' || r.version FROM store o CROSS JOIN streams s CROSS JOIN connections c CROSS JOIN records r
             WHERE s.name = ?2 AND c.id = s.connection AND (?3 IS NULL OR c.connection_id = ?3)
               AND r.stream = s.id AND r.key = ?1 AND r.data IS NOT NULL",
        )?;
        let asked = params![record.as_str(), stream.as_str(), connection.as_ref().map(ConnectionId::as_str)];
        let rows = statement.query_map(asked, |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn records_at(
        &self,
        keys: &[RecordKey<'_>],
        allowance: &Allowance,
        each: &mut dyn FnMut(Option<SizedRecord>) -> bool,
    ) -> Result<(), ReadError> {
        let mut statement = self.sqlite.prepare_cached(&by_key_sql())?;
        for RecordKey { stream, key } in keys {
            let mut rows = statement.query((stream, key))?;
            let found = match rows.next()? {
                Some(row) => {
                    Some(SizedRecord { bytes: bytes_of_row(row)?, record: record_of(row, allowance)? })
                }
                None => None,
            };
            if !each(found) {
                break;
            }
        }
        Ok(())
    }

    fn scan(
        &self,
        scan: &Scan<'_>,
        bounds: ReadBounds<'_>,
        each: EachRow<'_, ReadError>,
    ) -> Result<(), ReadError> {
        let (sql, values) = scan_sql(scan);
        let mut statement = self.sqlite.prepare_cached(&sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            bounds.interrupt.check()?;
            // The read exceeded its memory limit, so its result is discarded.
            if !bounds.allowance.has_room_for(length_at(row, 3)?) {
                break;
            }
            if !each(scan_row(row)?)? {
                break;
            }
        }
        Ok(())
    }

    fn columns(
        &self,
        stream: i64,
        fields: &[&str],
        words: Option<&WordFilter>,
    ) -> Result<Option<ColumnarStream<'_>>, ReadError> {
        let Some(columns) = &self.columns else { return Ok(None) };
        Ok(columns.open(self.sqlite, ColumnSelection { stream, fields, words })?)
    }

    fn scan_with_words(
        &self,
        scan: &WordScan<'_>,
        bounds: ReadBounds<'_>,
        each: EachRow<'_, ReadError>,
    ) -> Result<(), ReadError> {
        let WordScan { stream, words, wants_data } = *scan;
        let columns = self.columns(stream, &[], Some(words))?;
        let rows = columns.as_ref().map(|columns| in_columns::<_, ReadError>(columns.rows())).transpose()?;
        let (Some(columns), Some(rows)) = (columns, rows.flatten()) else {
            let all = Scan::all_texts(stream, None);
            return self.scan(&all, bounds, &mut |row| pass_with_words(words, row, each));
        };
        let mut is_open = true;
        self.rows(&RowScan { stream, rows: &columns.rest, wants_data: true }, bounds, &mut |row| {
            is_open = pass_with_words(words, row, each)?;
            Ok(is_open)
        })?;
        if !is_open {
            return Ok(());
        }
        self.rows(&RowScan { stream, rows: &rows, wants_data }, bounds, each)
    }

    fn rows(
        &self,
        scan: &RowScan<'_>,
        bounds: ReadBounds<'_>,
        each: EachRow<'_, ReadError>,
    ) -> Result<(), ReadError> {
        let data = if scan.wants_data { "data, octet_length(data)" } else { "NULL, 0" };
        let mut statement = self.sqlite.prepare_cached(&format!(
            "SELECT sort_value, key, {data}, id FROM records WHERE id = ?1 AND stream = ?2 AND data IS NOT NULL"
        ))?;
        for id in scan.rows {
            bounds.interrupt.check()?;
            let mut rows = statement.query((id, scan.stream))?;
            let Some(row) = rows.next()? else { continue };
            // The read exceeded its memory limit, so its result is discarded.
            if !bounds.allowance.has_room_for(length_at(row, 3)?) {
                break;
            }
            if !each(scan_row(row)?)? {
                break;
            }
        }
        Ok(())
    }

    fn keys(
        &self,
        scan: &KeyScan<'_>,
        bounds: ReadBounds<'_>,
        each: EachRow<'_, ReadError>,
    ) -> Result<(), ReadError> {
        let mut statement = self.sqlite.prepare_cached(&keys_sql(scan))?;
        let after = scan.after.map(|start| start.key);
        let mut rows = statement.query((scan.stream, after))?;
        while let Some(row) = rows.next()? {
            bounds.interrupt.check()?;
            if !each(scan_row(row)?)? {
                break;
            }
        }
        Ok(())
    }

    fn changes(
        &self,
        stream: i64,
        since: i64,
        bounds: ReadBounds<'_>,
        each: &mut dyn FnMut(ChangeRow<'_>) -> Result<bool, ReadError>,
    ) -> Result<(), ReadError> {
        let mut statement = self.sqlite.prepare_cached(CHANGES_SQL)?;
        let mut rows = statement.query((since, stream))?;
        while let Some(row) = rows.next()? {
            bounds.interrupt.check()?;
            // The read exceeded its memory limit, so its result is discarded.
            if !bounds.allowance.has_room_for(length_at(row, 4)?) {
                break;
            }
            let change = ChangeRow {
                key: row.get_ref(0)?.as_str()?,
                data: row.get_ref(1)?.as_str_or_null()?,
                emitted_at: row.get_ref(2)?.as_str_or_null()?,
                version: row.get(3)?,
            };
            if !each(change)? {
                break;
            }
        }
        Ok(())
    }
}

/// Reads the sort value, the key, the data and the row id of a record.
fn scan_row<'a>(row: &'a Row<'_>) -> Result<ScanRow<'a>, ReadError> {
    Ok(ScanRow {
        id: row.get(4)?,
        value: sort_column(row.get_ref(0)?),
        key: row.get_ref(1)?.as_str()?,
        data: row.get_ref(2)?.as_str().unwrap_or_default(),
    })
}

/// Returns all connections with the names of their streams.
pub(crate) fn schema(database: &Database) -> Result<Schema, SourceError> {
    database.ask(|sqlite| SqliteTables::new(sqlite).schema())
}

/// Returns the streams of a name, or an error that lists the known ones.
pub(crate) fn streams_of(
    database: &Database,
    stream: &StreamName,
    connection: Option<&ConnectionId>,
) -> Result<Vec<StreamRow>, SourceError> {
    database.ask(|sqlite| stream_rows(&SqliteTables::new(sqlite), stream, connection))
}

/// Returns the row id of a connection.
pub(crate) fn connection_row(sqlite: &Connection, id: &ConnectionId) -> Result<Option<i64>, rusqlite::Error> {
    let mut statement = sqlite.prepare_cached("SELECT id FROM connections WHERE connection_id = ?1")?;
    statement.query_row([id.as_str()], |row| row.get(0)).optional()
}

fn observed(sqlite: &Connection, stream: i64) -> Result<Vec<(String, Kinds)>, rusqlite::Error> {
    let mut statement =
        sqlite.prepare_cached("SELECT name, kinds FROM fields WHERE stream = ?1 ORDER BY name")?;
    let rows = statement.query_map([stream], |row| Ok((row.get(0)?, Kinds::from_bits(row.get(1)?))))?;
    rows.collect()
}

/// Returns the SQL for a record by key (?1), stream (?2) and connection (?3, NULL for any). CROSS JOIN fixes the
/// order of the join: first the few streams of that name, then the record in each by its key. SQLite has no
/// statistics on these tables and would otherwise scan all records.
fn find_sql() -> String {
    format!(
        "SELECT {RECORD_COLUMNS} FROM streams s CROSS JOIN connections c CROSS JOIN records r
         WHERE s.name = ?2 AND c.id = s.connection AND (?3 IS NULL OR c.connection_id = ?3)
           AND r.stream = s.id AND r.key = ?1"
    )
}

/// Returns the SQL for a record by the row id of its stream (?1) and its key (?2).
fn by_key_sql() -> String {
    format!("SELECT {RECORD_COLUMNS} FROM {RECORD_TABLES} WHERE r.stream = ?1 AND r.key = ?2")
}

/// SQL for the records of a stream (?2) that changed after a version (?1). `+r.stream` makes SQLite use the index on
/// versions.
const CHANGES_SQL: &str = "SELECT r.key, r.data, r.emitted_at, r.version, octet_length(r.data) FROM records r
     WHERE r.version > ?1 AND +r.stream = ?2 ORDER BY r.version";

/// Returns the SQL for the keys of a stream (?1) after a key (?2). The index on keys has all that it reads.
fn keys_sql(scan: &KeyScan<'_>) -> String {
    let after = match &scan.after {
        None => "?2 IS NULL".to_owned(),
        Some(start) => format!("key {} ?2", after_operator(scan.direction, start.is_inclusive)),
    };
    let order = order_keyword(scan.direction);
    format!("SELECT NULL, key, NULL, 0, id FROM records WHERE stream = ?1 AND {after} ORDER BY key {order}")
}

/// Returns the SQL of a scan with its values.
fn scan_sql<'a>(scan: &'a Scan<'_>) -> (String, Vec<ToSqlOutput<'a>>) {
    let data = if scan.wants_data { "data, octet_length(data)" } else { "NULL, 0" };
    let mut sql =
        format!("SELECT sort_value, key, {data}, id FROM records WHERE stream = ?1 AND data IS NOT NULL");
    let mut values: Vec<ToSqlOutput<'_>> = vec![scan.stream.into()];
    if let Some(start) = &scan.after {
        let operator = after_operator(scan.order.unwrap_or(Direction::Ascending), start.is_inclusive);
        sql.push_str(&format!(" AND (sort_value, key) {operator} (?2, ?3)"));
        values.push(stored_value(start.value));
        values.push(start.key.into());
    }
    for (operator, value) in &scan.limits {
        values.push(stored_value(value));
        let operator = match operator {
            RangeOperator::GreaterOrEqual => ">=",
            RangeOperator::Greater => ">",
            RangeOperator::LessOrEqual => "<=",
            RangeOperator::Less => "<",
        };
        sql.push_str(&format!(" AND sort_value {operator} ?{}", values.len()));
    }
    if let Some(order) = scan.order.map(order_keyword) {
        sql.push_str(&format!(" ORDER BY sort_value {order}, key {order}"));
    }
    (sql, values)
}

#[cfg(test)]
mod tests {
    use fetchwell_ranking::relational::tables::KeyStart;

    use super::*;

    /// Keys are read from their index, without the records.
    #[test]
    fn keys_are_read_in_their_order() {
        let sqlite = Connection::open_in_memory().unwrap();
        sqlite.execute_batch(include_str!("../schema.sql")).unwrap();
        let starts = [true, false].map(|is_inclusive| Some(KeyStart { key: "k", is_inclusive }));
        for direction in [Direction::Ascending, Direction::Descending] {
            for after in starts.into_iter().chain([None]) {
                let sql = keys_sql(&KeyScan { stream: 1, direction, after });
                let sql = format!("EXPLAIN QUERY PLAN {sql}");
                let mut statement = sqlite.prepare(&sql).unwrap();
                let plan: Vec<String> =
                    statement.query_map((1, "k"), |row| row.get(3)).unwrap().map(Result::unwrap).collect();
                assert_eq!(plan.len(), 1, "{sql}: {plan:?}");
                assert!(
                    plan[0].starts_with("SEARCH records USING COVERING INDEX sqlite_autoindex"),
                    "{plan:?}"
                );
            }
        }
    }

    /// Checks the query plans, because a store of a million records is too large for a test: no plan may scan all
    /// records.
    #[test]
    fn single_record_reads_do_not_scan() {
        let sqlite = Connection::open_in_memory().unwrap();
        sqlite.execute_batch(include_str!("../schema.sql")).unwrap();
        for sql in [find_sql(), by_key_sql(), CHANGES_SQL.to_owned()] {
            let mut statement = sqlite.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let (mut rows, mut plan) = (statement.raw_query(), Vec::new());
            while let Some(row) = rows.next().unwrap() {
                plan.push(row.get::<_, String>(3).unwrap());
            }
            assert!(plan.iter().any(|step| step.starts_with("SEARCH r USING")), "{sql}: {plan:?}");
        }
    }
}
