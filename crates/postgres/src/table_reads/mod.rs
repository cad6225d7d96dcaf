//! Queries that reads make of the tables.
//!
//! * `word_scan`: the records of a stream that have some words

mod word_scan;

use fetchwell_core::handle::{ConnectionId, RecordAddress, StreamName};
use fetchwell_core::record::{Record, Schema};
use fetchwell_ranking::lexical::word_filter::WordFilter;
use fetchwell_ranking::relational::allowance::Allowance;
use fetchwell_ranking::relational::columns::ColumnarStream;
use fetchwell_ranking::relational::interrupt::ReadBounds;
use fetchwell_ranking::relational::stream_row::{SchemaRow, StreamColumns, StreamRow, add_row};
use fetchwell_ranking::relational::tables::{
    ChangeRow, EachRow, KeyScan, RecordKey, RowScan, Scan, SizedRecord, StoreIdentity, Tables, WordScan,
    after_operator, order_keyword,
};
use fetchwell_source::manifest::kinds::Kinds;
use fetchwell_source::{Direction, RangeOperator, SourceError};
use tokio_postgres::types::ToSql;

use self::word_scan::scan_with_words;
use super::columns::open_columns;
use super::sort_key::SortKey;
use super::tables::{
    PostgresTables, RowsOfStream, length, optional_text, record_columns, scan_columns, text, text_columns,
};

/// Maximum number of ids of a query.
const MAX_IDS: usize = 1_000;

impl Tables for PostgresTables<'_> {
    type Error = SourceError;

    fn schema(&self) -> Result<Schema, SourceError> {
        let sql = "SELECT c.connection_id, c.display_name, c.connector_key, s.name, s.record_count, c.manifest
             FROM fetchwell.connections c LEFT JOIN fetchwell.streams s ON s.connection = c.id ORDER BY c.id, s.id";
        let mut schema = Schema::default();
        for row in self.queries.query(sql, &[])? {
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
        let rows = self.queries.query("SELECT uuid, version FROM fetchwell.store", &[])?;
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
        let rows = self.queries.query(sql, &[&stream.as_str(), &connection.map(ConnectionId::as_str)])?;
        let mut found = Vec::new();
        for row in rows {
            let id: i64 = row.try_get(0).unwrap_or_default();
            let observed = self
                .queries
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
        let rows = self.queries.query(&sql, &[&record.as_str(), &stream.as_str(), &connection])?;
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
        let rows = self.queries.query(sql, &[&record.as_str(), &stream.as_str(), &connection])?;
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
        self.queries.batches(&sql, &[&streams, &names], &mut |row| {
            let exists: bool = row.try_get(0).unwrap_or_default();
            let found = if exists { Some(self.record(row, 1, allowance)?) } else { None };
            Ok(each(found))
        })
    }

    fn scan(
        &self,
        scan: &Scan<'_>,
        bounds: ReadBounds<'_>,
        each: EachRow<'_, SourceError>,
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
            self.queries.execute("SET LOCAL enable_sort = off")?;
        }
        let (sql, values) = (&scan_sql(scan, &limits), &values);
        let rows = RowsOfStream { stream: scan.stream, sql, values, wants_data: scan.wants_data };
        self.scan_rows(&rows, bounds, each)
    }

    fn columns(
        &self,
        stream: i64,
        fields: &[&str],
        words: Option<&WordFilter>,
    ) -> Result<Option<ColumnarStream<'_>>, SourceError> {
        // The index of words has no numbers of rows.
        if words.is_some() {
            return Ok(None);
        }
        open_columns(self.queries, self.columns, stream, fields)
    }

    fn rows(
        &self,
        scan: &RowScan<'_>,
        bounds: ReadBounds<'_>,
        each: EachRow<'_, SourceError>,
    ) -> Result<(), SourceError> {
        // The limit makes each record a lookup by its version.
        let sql = format!(
            "SELECT {} FROM unnest($2::bigint[]) WITH ORDINALITY AS p (version, place)
             CROSS JOIN LATERAL (
                 SELECT * FROM fetchwell.records WHERE stream = $1 AND version = p.version AND data IS NOT NULL LIMIT 1
             ) r ORDER BY p.place",
            scan_columns(scan.wants_data)
        );
        let mut is_open = true;
        for versions in scan.rows.chunks(MAX_IDS) {
            let values: [&(dyn ToSql + Sync); 2] = [&scan.stream, &versions];
            let rows =
                RowsOfStream { stream: scan.stream, sql: &sql, values: &values, wants_data: scan.wants_data };
            self.scan_rows(&rows, bounds, &mut |row| {
                is_open = each(row)?;
                Ok(is_open)
            })?;
            if !is_open {
                break;
            }
        }
        Ok(())
    }

    fn keys(
        &self,
        scan: &KeyScan<'_>,
        bounds: ReadBounds<'_>,
        each: EachRow<'_, SourceError>,
    ) -> Result<(), SourceError> {
        // The index on keys is read until there are enough. The server does not know that.
        self.queries.execute("SET LOCAL enable_sort = off")?;
        let order = order_keyword(scan.direction);
        let (mut after, mut values) = (String::new(), vec![&scan.stream as &(dyn ToSql + Sync)]);
        if let Some(start) = &scan.after {
            after = format!("AND r.key {} $2", after_operator(scan.direction, start.is_inclusive));
            values.push(&start.key);
        }
        let sql = format!(
            "SELECT {} FROM fetchwell.records r WHERE r.stream = $1 {after} ORDER BY r.key {order}",
            scan_columns(false)
        );
        let rows = RowsOfStream { stream: scan.stream, sql: &sql, values: &values, wants_data: false };
        self.scan_rows(&rows, bounds, each)
    }

    fn scan_with_words(
        &self,
        scan: &WordScan<'_>,
        bounds: ReadBounds<'_>,
        each: EachRow<'_, SourceError>,
    ) -> Result<(), SourceError> {
        scan_with_words(self, scan, bounds, each)
    }

    fn changes(
        &self,
        stream: i64,
        since: i64,
        bounds: ReadBounds<'_>,
        each: &mut dyn FnMut(ChangeRow<'_>) -> Result<bool, SourceError>,
    ) -> Result<(), SourceError> {
        // The server expects changes in a stream if only others have some, and would read all records.
        self.queries.execute("SET LOCAL enable_sort = off")?;
        let sql = format!(
            "SELECT r.key, r.version, r.emitted_at, {} FROM fetchwell.records r
             WHERE r.stream = $1 AND r.version > $2 ORDER BY r.version",
            text_columns()
        );
        self.queries.batches(&sql, &[&stream, &since], &mut |row| {
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

fn scan_sql(scan: &Scan<'_>, limits: &[(RangeOperator, SortKey)]) -> String {
    let mut sql = format!(
        "SELECT {} FROM fetchwell.records r WHERE r.stream = $1 AND r.data IS NOT NULL",
        scan_columns(scan.wants_data)
    );
    let mut next = 2;
    if let Some(start) = &scan.after {
        let operator = after_operator(scan.order.unwrap_or(Direction::Ascending), start.is_inclusive);
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
    if let Some(order) = scan.order.map(order_keyword) {
        sql.push_str(&format!(" ORDER BY r.sort_value {order}, r.key {order}"));
    }
    sql
}
