//! Queries that reads make of the tables.

use deadpool_postgres::Transaction;
use fetchwell_core::handle::{ConnectionId, RecordAddress, StreamName};
use fetchwell_core::record::{Record, Schema};
use fetchwell_ranking::relational::allowance::Allowance;
use fetchwell_ranking::relational::columns::ColumnarStream;
use fetchwell_ranking::relational::interrupt::ReadBounds;
use fetchwell_ranking::relational::stream_row::{SchemaRow, StreamColumns, StreamRow, add_row};
use fetchwell_ranking::relational::tables::{
    ChangeRow, EachRow, RecordKey, RecordRow, RowScan, Scan, ScanRow, SizedRecord, StoreIdentity, Tables,
};
use fetchwell_source::manifest::kinds::Kinds;
use fetchwell_source::{Direction, RangeOperator, SourceError};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::columns::{ColumnUse, open_columns};
use super::queries::{DatabaseWaiter, Queries, Values};
use super::sort_key::{SortKey, sort_column};

/// Maximum length in bytes of a text that is read together with others. A longer one is read by itself, after the read has
/// memory for it: a batch has at most a few hundred of them.
const MAX_INLINE_BYTES: i32 = 64 * 1024;

/// Maximum number of ids of a query.
const MAX_IDS: usize = 1_000;

/// Tables of a store, as one transaction sees them.
#[derive(Debug)]
pub(crate) struct PostgresTables<'a> {
    queries: Queries<'a>,
    columns: ColumnUse,
}

impl<'a> PostgresTables<'a> {
    pub(crate) fn new(transaction: &'a Transaction<'a>, waiting: &'a DatabaseWaiter) -> Self {
        Self { queries: Queries::new(transaction, waiting), columns: ColumnUse::Large }
    }

    /// Returns the same tables with columns that are used for other streams.
    #[cfg(test)]
    pub(crate) fn with_columns(&self, columns: ColumnUse) -> Self {
        Self { columns, ..*self }
    }

    pub(crate) fn query(&self, sql: &str, values: &Values<'_>) -> Result<Vec<Row>, SourceError> {
        self.queries.query(sql, values)
    }

    /// Runs statements that have no values.
    pub(crate) fn execute(&self, sql: &str) -> Result<(), SourceError> {
        self.queries.execute(sql)
    }

    /// Passes the rows of a query to `each` in batches, until it returns false.
    pub(crate) fn batches(
        &self,
        sql: &str,
        values: &Values<'_>,
        each: &mut dyn FnMut(&Row) -> Result<bool, SourceError>,
    ) -> Result<(), SourceError> {
        self.queries.batches(sql, values, each)
    }

    /// Passes the text of a record to `each`. `column` is that of the length, before that of the text.
    pub(crate) fn with_text<Answer>(
        &self,
        row: &Row,
        column: usize,
        key: RecordKey<'_>,
        each: impl FnOnce(&str) -> Answer,
    ) -> Result<Answer, SourceError> {
        if length(row, column) <= MAX_INLINE_BYTES {
            return Ok(each(text(row, column + 1)));
        }
        let sql = "SELECT data FROM fetchwell.records WHERE stream = $1 AND key = $2";
        let rows = self.query(sql, &[&key.stream, &key.key])?;
        Ok(each(rows.first().map(|row| text(row, 0)).unwrap_or_default()))
    }

    /// Passes a row of sort value, key and text to `each`.
    fn scan_row(
        &self,
        row: &Row,
        stream: i64,
        wants_data: bool,
        bounds: ReadBounds<'_>,
        each: impl FnOnce(ScanRow<'_>) -> Result<bool, SourceError>,
    ) -> Result<bool, SourceError> {
        bounds.interrupt.check()?;
        // The read exceeded its memory limit, so its result is discarded.
        if !bounds.allowance.has_room_for(usize::try_from(length(row, 2)).unwrap_or_default()) {
            return Ok(false);
        }
        let key = text(row, 1);
        let value = sort_column(row.try_get(0).unwrap_or_default());
        if !wants_data {
            return each(ScanRow { key, value, data: "" });
        }
        let place = RecordKey { stream, key };
        self.with_text(row, 2, place, |data| each(ScanRow { key, value, data }))?
    }

    /// Builds a record from the columns of [`record_columns`], of which the first is at `at`.
    pub(crate) fn record(
        &self,
        row: &Row,
        at: usize,
        allowance: &Allowance,
    ) -> Result<SizedRecord, SourceError> {
        let bytes = usize::try_from(length(row, at + 6)).unwrap_or_default();
        let is_deleted = row.try_get::<_, Option<i32>>(at + 6).ok().flatten().is_none();
        if !allowance.take(bytes) || is_deleted {
            return Ok(SizedRecord { record: None, bytes });
        }
        let key = RecordKey { stream: row.try_get(at + 5).unwrap_or_default(), key: text(row, at) };
        let record = self.with_text(row, at + 6, key, |data| {
            let columns = RecordRow {
                key: key.key,
                data,
                emitted_at: optional_text(row, at + 8),
                stream: text(row, at + 1),
                connection_id: text(row, at + 2),
                display_name: text(row, at + 3),
                connector_key: text(row, at + 4),
            };
            columns.record()
        })?;
        Ok(SizedRecord { record, bytes })
    }
}

impl Tables for PostgresTables<'_> {
    type Error = SourceError;

    fn schema(&self) -> Result<Schema, SourceError> {
        let sql = "SELECT c.connection_id, c.display_name, c.connector_key, s.name, s.record_count, c.manifest
             FROM fetchwell.connections c LEFT JOIN fetchwell.streams s ON s.connection = c.id ORDER BY c.id, s.id";
        let mut schema = Schema::default();
        for row in self.query(sql, &[])? {
            let columns = SchemaRow {
                connection_id: text(&row, 0),
                display_name: text(&row, 1),
                connector_key: text(&row, 2),
                stream: optional_text(&row, 3),
                record_count: row.try_get(4).unwrap_or_default(),
                manifest: optional_text(&row, 5),
            };
            add_row(&mut schema, columns);
        }
        Ok(schema)
    }

    fn identity(&self) -> Result<StoreIdentity, SourceError> {
        let rows = self.query("SELECT uuid, version FROM fetchwell.store", &[])?;
        let row = rows.first().ok_or_else(|| SourceError::Unreachable {
            problem: "the table fetchwell.store has no row; restore it from a backup".to_owned(),
        })?;
        Ok(StoreIdentity { uuid: text(row, 0).to_owned(), version: row.try_get(1).unwrap_or_default() })
    }

    fn streams(
        &self,
        stream: &StreamName,
        connection: Option<&ConnectionId>,
    ) -> Result<Vec<StreamRow>, SourceError> {
        let sql = "SELECT s.id, c.connection_id, c.display_name, c.connector_key, s.record_count, c.manifest, s.cursor_field
             FROM fetchwell.streams s JOIN fetchwell.connections c ON c.id = s.connection
             WHERE s.name = $1 AND ($2::text IS NULL OR c.connection_id = $2) ORDER BY s.id";
        let rows = self.query(sql, &[&stream.as_str(), &connection.map(ConnectionId::as_str)])?;
        let mut found = Vec::new();
        for row in rows {
            let id: i64 = row.try_get(0).unwrap_or_default();
            let observed = self
                .query("SELECT name, kinds FROM fetchwell.fields WHERE stream = $1 ORDER BY name", &[&id])?;
            let observed: Vec<(String, Kinds)> = observed
                .iter()
                .map(|row| (text(row, 0).to_owned(), Kinds::from_bits(row.try_get(1).unwrap_or_default())))
                .collect();
            let columns = StreamColumns {
                row: id,
                connection_id: text(&row, 1),
                display_name: text(&row, 2),
                connector_key: text(&row, 3),
                record_count: row.try_get(4).unwrap_or_default(),
                manifest: optional_text(&row, 5),
                cursor_field: optional_text(&row, 6),
                observed: &observed,
            };
            found.extend(StreamRow::new(stream, &columns));
        }
        Ok(found)
    }

    fn find(&self, address: &RecordAddress, allowance: &Allowance) -> Result<Vec<Record>, SourceError> {
        let RecordAddress { connection, stream, record } = address;
        let sql = format!(
            "SELECT {} FROM fetchwell.streams s JOIN fetchwell.connections c ON c.id = s.connection
             JOIN fetchwell.records r ON r.stream = s.id
             WHERE s.name = $2 AND ($3::text IS NULL OR c.connection_id = $3) AND r.key = $1 ORDER BY s.id",
            record_columns()
        );
        let connection = connection.as_ref().map(ConnectionId::as_str);
        let rows = self.query(&sql, &[&record.as_str(), &stream.as_str(), &connection])?;
        let mut found = Vec::new();
        for row in &rows {
            found.extend(self.record(row, 0, allowance)?.record);
        }
        Ok(found)
    }

    fn record_versions(&self, address: &RecordAddress) -> Result<Vec<String>, SourceError> {
        let RecordAddress { connection, stream, record } = address;
        let sql = "SELECT o.uuid || '.' || r.version FROM fetchwell.streams s
             JOIN fetchwell.connections c ON c.id = s.connection JOIN fetchwell.records r ON r.stream = s.id
             CROSS JOIN fetchwell.store o
             WHERE s.name = $2 AND ($3::text IS NULL OR c.connection_id = $3) AND r.key = $1 AND r.data IS NOT NULL";
        let connection = connection.as_ref().map(ConnectionId::as_str);
        let rows = self.query(sql, &[&record.as_str(), &stream.as_str(), &connection])?;
        Ok(rows.iter().map(|row| text(row, 0).to_owned()).collect())
    }

    fn records_at(
        &self,
        keys: &[RecordKey<'_>],
        allowance: &Allowance,
        each: &mut dyn FnMut(Option<SizedRecord>) -> bool,
    ) -> Result<(), SourceError> {
        if keys.is_empty() {
            return Ok(());
        }
        let sql = format!(
            "SELECT r.key IS NOT NULL, {} FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS p(stream, key, place)
             LEFT JOIN LATERAL (
                 SELECT * FROM fetchwell.records WHERE stream = p.stream AND key = p.key LIMIT 1
             ) r ON true
             LEFT JOIN fetchwell.streams s ON s.id = r.stream
             LEFT JOIN fetchwell.connections c ON c.id = s.connection ORDER BY p.place",
            record_columns()
        );
        let streams: Vec<i64> = keys.iter().map(|key| key.stream).collect();
        let names: Vec<&str> = keys.iter().map(|key| key.key).collect();
        self.batches(&sql, &[&streams, &names], &mut |row| {
            let exists: bool = row.try_get(0).unwrap_or_default();
            let found = if exists { Some(self.record(row, 1, allowance)?) } else { None };
            Ok(each(found))
        })
    }

    fn scan(
        &self,
        scan: &Scan<'_>,
        bounds: ReadBounds<'_>,
        each: &mut dyn FnMut(ScanRow<'_>) -> Result<bool, SourceError>,
    ) -> Result<(), SourceError> {
        let after = scan.after.map(|start| (SortKey::new(start.value).bytes, start.key));
        let limits: Vec<(RangeOperator, SortKey)> =
            scan.limits.iter().map(|(operator, value)| (*operator, SortKey::new(value))).collect();
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&scan.stream];
        if let Some((value, key)) = &after {
            values.extend([value as &(dyn ToSql + Sync), key]);
        }
        values.extend(limits.iter().map(|(_, key)| &key.bytes as &(dyn ToSql + Sync)));
        if scan.order.is_some() {
            // Most scans end early. The server does not know that: it would sort all rows instead of reading an index.
            self.execute("SET LOCAL enable_sort = off")?;
        }
        self.batches(&scan_sql(scan, &limits), &values, &mut |row| {
            self.scan_row(row, scan.stream, scan.wants_data, bounds, &mut *each)
        })
    }

    fn columns(&self, stream: i64, fields: &[&str]) -> Result<Option<ColumnarStream<'_>>, SourceError> {
        open_columns(self.queries, self.columns, stream, fields)
    }

    fn rows(
        &self,
        scan: &RowScan<'_>,
        bounds: ReadBounds<'_>,
        each: EachRow<'_, SourceError>,
    ) -> Result<(), SourceError> {
        let data = if scan.wants_data { text_columns() } else { "0, NULL".to_owned() };
        // The limit makes each record a lookup by its version.
        let sql = format!(
            "SELECT r.sort_value, r.key, {data}, r.version FROM unnest($2::bigint[]) WITH ORDINALITY AS p (version, place)
             CROSS JOIN LATERAL (
                 SELECT * FROM fetchwell.records WHERE stream = $1 AND version = p.version AND data IS NOT NULL LIMIT 1
             ) r ORDER BY p.place"
        );
        let mut is_open = true;
        for versions in scan.rows.chunks(MAX_IDS) {
            self.batches(&sql, &[&scan.stream, &versions], &mut |row| {
                let version = row.try_get(4).unwrap_or_default();
                is_open =
                    self.scan_row(row, scan.stream, scan.wants_data, bounds, |row| each(version, row))?;
                Ok(is_open)
            })?;
            if !is_open {
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
        each: &mut dyn FnMut(ChangeRow<'_>) -> Result<bool, SourceError>,
    ) -> Result<(), SourceError> {
        let sql = format!(
            "SELECT r.key, r.version, r.emitted_at, {} FROM fetchwell.records r
             WHERE r.stream = $1 AND r.version > $2 ORDER BY r.version",
            text_columns()
        );
        self.batches(&sql, &[&stream, &since], &mut |row| {
            bounds.interrupt.check()?;
            // The read exceeded its memory limit, so its result is discarded.
            if !bounds.allowance.has_room_for(usize::try_from(length(row, 3)).unwrap_or_default()) {
                return Ok(false);
            }
            let (key, version) = (text(row, 0), row.try_get(1).unwrap_or_default());
            let change = ChangeRow { key, data: None, emitted_at: optional_text(row, 2), version };
            if row.try_get::<_, Option<i32>>(3).ok().flatten().is_none() {
                return each(change);
            }
            let place = RecordKey { stream, key };
            self.with_text(row, 3, place, |data| each(ChangeRow { data: Some(data), ..change }))?
        })
    }
}

/// Returns the columns for the length of a record's text and for the text, if it is short.
pub(crate) fn text_columns() -> String {
    format!("octet_length(r.data), CASE WHEN octet_length(r.data) <= {MAX_INLINE_BYTES} THEN r.data END")
}

/// Columns of a record with the names of its stream and connection.
pub(crate) fn record_columns() -> String {
    format!(
        "r.key, s.name, c.connection_id, c.display_name, c.connector_key, r.stream, {}, r.emitted_at",
        text_columns()
    )
}

fn scan_sql(scan: &Scan<'_>, limits: &[(RangeOperator, SortKey)]) -> String {
    let data = if scan.wants_data { text_columns() } else { "0, NULL".to_owned() };
    let mut sql = format!(
        "SELECT r.sort_value, r.key, {data} FROM fetchwell.records r WHERE r.stream = $1 AND r.data IS NOT NULL"
    );
    let mut next = 2;
    let is_descending = scan.order == Some(Direction::Descending);
    if let Some(start) = &scan.after {
        let operator = match (is_descending, start.is_inclusive) {
            (true, true) => "<=",
            (true, false) => "<",
            (false, true) => ">=",
            (false, false) => ">",
        };
        sql.push_str(&format!(" AND (r.sort_value, r.key) {operator} ($2, $3)"));
        next = 4;
    }
    for (operator, key) in limits {
        let operator = match operator {
            RangeOperator::GreaterOrEqual => ">=",
            RangeOperator::LessOrEqual => "<=",
            // Texts with the same first bytes have the same key.
            RangeOperator::Greater if key.is_truncated => ">=",
            RangeOperator::Less if key.is_truncated => "<=",
            RangeOperator::Greater => ">",
            RangeOperator::Less => "<",
        };
        sql.push_str(&format!(" AND r.sort_value {operator} ${next}"));
        next += 1;
    }
    if scan.order.is_some() {
        let order = if is_descending { "DESC" } else { "ASC" };
        sql.push_str(&format!(" ORDER BY r.sort_value {order}, r.key {order}"));
    }
    sql
}

/// Returns the length in a column, or 0 for a deleted record.
pub(crate) fn length(row: &Row, column: usize) -> i32 {
    row.try_get::<_, Option<i32>>(column).ok().flatten().unwrap_or_default()
}

pub(crate) fn optional_text(row: &Row, column: usize) -> Option<&str> {
    row.try_get::<_, Option<&str>>(column).ok().flatten()
}

pub(crate) fn text(row: &Row, column: usize) -> &str {
    optional_text(row, column).unwrap_or_default()
}
