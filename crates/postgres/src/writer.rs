//! Writes the records of a batch, in a transaction of an import or of a commit of documents.

use std::collections::HashMap;

use deadpool_postgres::Transaction;
use fetchwell_core::handle::StreamName;
use fetchwell_core::record::RecordData;
use fetchwell_source::contract::{Change, IncomingRecord, Tally};
use fetchwell_source::manifest::Manifest;
use fetchwell_source::manifest::kinds::Kinds;
use fetchwell_source::manifest::observed::ObservedFields;
use tokio_postgres::Error;

use super::batch::{Batch, RecordPlace, sort_value};
use super::bulk::rows::{existing, put_rows};
use super::document_rows::DocumentRows;
use super::preparation::Prepared;
use super::search::index::{index_in_large_steps, put_words};
use super::sort_key::SortKey;
use super::words::WORDS_VERSION;

/// Number of records that get new sort values at a time.
const UPDATED_RECORDS: i32 = 256;

/// Stream that is being written to.
#[derive(Debug)]
pub(crate) struct OpenStream {
    pub(crate) row: i64,
    cursor_field: Option<String>,
    fields: ObservedFields,
}

/// Batch that is being written.
pub(crate) struct OpenBatch<'a> {
    pub(crate) connection: i64,
    pub(crate) manifest: Option<&'a Manifest>,
    pub(crate) streams: &'a mut HashMap<StreamName, OpenStream>,
    /// Writer of the documents, if the connection is a project.
    pub(crate) documents: Option<&'a mut DocumentRows>,
}

impl OpenBatch<'_> {
    /// Writes records in a transaction that has the lock of the store's version. `prepared` has what was computed of the first
    /// ones. Returns the counts of the import.
    pub(crate) async fn apply(
        &mut self,
        transaction: &Transaction<'_>,
        version: i64,
        incoming: &[IncomingRecord],
        prepared: Vec<Prepared>,
        tally: Tally,
    ) -> Result<Tally, Error> {
        index_in_large_steps(transaction, incoming.len()).await?;
        for record in incoming {
            self.open_stream(transaction, &record.stream).await?;
        }
        let places: Vec<RecordPlace> = incoming.iter().filter_map(|record| self.place(record)).collect();
        let states = existing(transaction, &places).await?;
        let mut batch = Batch::new(self.connection, states, tally, version);
        let prepared = prepared.into_iter().chain(std::iter::repeat_with(Prepared::default));
        for ((record, place), prepared) in incoming.iter().zip(places).zip(prepared) {
            let Some(stream) = self.streams.get_mut(&record.stream) else { continue };
            // Done for unchanged records too: an older import may have known fewer types.
            if let Change::Put { data, .. } = &record.change {
                stream.fields.observe(data);
            }
            batch.apply(place, &record.change, prepared, stream.cursor_field.as_deref());
        }
        let rows = batch.take_rows();
        put_rows(transaction, &rows).await?;
        if let Some(documents) = &mut self.documents {
            let data = |data: &String| serde_json::from_str::<RecordData>(data).ok();
            let changed = rows.key.iter().zip(&rows.data);
            let changed = changed.map(|(key, text)| (key.clone(), text.as_ref().and_then(data)));
            documents.write(transaction, changed.collect()).await?;
            documents.commit(transaction).await?;
        }
        put_words(transaction, rows).await?;
        let (streams, counts): (Vec<i64>, Vec<i64>) = batch.counts.iter().unzip();
        let sql = "UPDATE fetchwell.streams s SET record_count = record_count + n.records
             FROM unnest($1::bigint[], $2::bigint[]) AS n (stream, records) WHERE s.id = n.stream";
        let statement = transaction.prepare_cached(sql).await?;
        transaction.execute(&statement, &[&streams, &counts]).await?;
        for stream in self.streams.values_mut() {
            stream.save_fields(transaction).await?;
        }
        transaction
            .execute("UPDATE fetchwell.store SET version = $1 WHERE id = 1", &[&batch.version])
            .await?;
        Ok(batch.tally)
    }

    fn place(&self, record: &IncomingRecord) -> Option<RecordPlace> {
        let stream = self.streams.get(&record.stream)?.row;
        Some(RecordPlace { stream, key: record.key.as_str().to_owned() })
    }

    /// Opens a stream, creating it if there is none. A changed cursor field updates the sort value of every record in it.
    async fn open_stream(&mut self, transaction: &Transaction<'_>, name: &StreamName) -> Result<(), Error> {
        if self.streams.contains_key(name) {
            return Ok(());
        }
        let declared = self.manifest.and_then(|manifest| manifest.stream(name.as_str()).ok());
        let cursor_field = declared.and_then(|declared| declared.cursor_field.clone());
        let insert =
            "INSERT INTO fetchwell.streams (connection, name, cursor_field, indexed) VALUES ($1, $2, $3, $4)
             ON CONFLICT (connection, name) DO NOTHING";
        transaction
            .execute(insert, &[&self.connection, &name.as_str(), &cursor_field, &WORDS_VERSION])
            .await?;
        let select = "SELECT id, cursor_field FROM fetchwell.streams WHERE connection = $1 AND name = $2";
        let found = transaction.query_one(select, &[&self.connection, &name.as_str()]).await?;
        let row: i64 = found.get(0);
        let before: Option<String> = found.get(1);
        let fields =
            transaction.query("SELECT name, kinds FROM fetchwell.fields WHERE stream = $1", &[&row]).await?;
        let fields = fields.iter().map(|field| (field.get(0), Kinds::from_bits(field.get(1)))).collect();
        if before != cursor_field {
            update_sort_values(transaction, row, cursor_field.as_deref()).await?;
        }
        let stream = OpenStream { row, cursor_field, fields: ObservedFields::new(fields) };
        self.streams.insert(name.clone(), stream);
        Ok(())
    }
}

impl OpenStream {
    /// Saves the fields that are new since the last save. Another import may have seen other types.
    async fn save_fields(&mut self, transaction: &Transaction<'_>) -> Result<(), Error> {
        let unsaved = self.fields.take_unsaved();
        // A field name with a NUL character, which PostgreSQL does not store, is not listed.
        let unsaved: Vec<_> = unsaved.into_iter().filter(|field| !field.name.contains('\0')).collect();
        let kinds: HashMap<&str, i64> =
            unsaved.iter().map(|field| (field.name.as_str(), field.kinds.bits())).collect();
        if kinds.is_empty() {
            return Ok(());
        }
        let (names, kinds): (Vec<&str>, Vec<i64>) = kinds.into_iter().unzip();
        let sql = "INSERT INTO fetchwell.fields (stream, name, kinds)
             SELECT $1, name, kinds FROM unnest($2::text[], $3::bigint[]) AS new (name, kinds)
             ON CONFLICT (stream, name) DO UPDATE SET kinds = fields.kinds | excluded.kinds";
        transaction.execute(sql, &[&self.row, &names, &kinds]).await?;
        Ok(())
    }
}

/// Gives every record of a stream the sort value of another cursor field.
async fn update_sort_values(
    transaction: &Transaction<'_>,
    stream: i64,
    cursor_field: Option<&str>,
) -> Result<(), Error> {
    transaction
        .execute("UPDATE fetchwell.streams SET cursor_field = $2 WHERE id = $1", &[&stream, &cursor_field])
        .await?;
    let select = "SELECT key, data, emitted_at FROM fetchwell.records WHERE stream = $1 AND data IS NOT NULL";
    let statement = transaction.prepare_cached(select).await?;
    let portal = transaction.bind(&statement, &[&stream]).await?;
    loop {
        let rows = transaction.query_portal(&portal, UPDATED_RECORDS).await?;
        if rows.is_empty() {
            return Ok(());
        }
        let (mut keys, mut values): (Vec<&str>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
        for row in &rows {
            let data: RecordData = serde_json::from_str(row.get(1)).unwrap_or_default();
            let emitted_at: Option<&str> = row.get(2);
            keys.push(row.get(0));
            values.push(SortKey::new(&sort_value(cursor_field, &data, emitted_at)).bytes);
        }
        let update = "UPDATE fetchwell.records r SET sort_value = n.sort_value
             FROM unnest($2::text[], $3::bytea[]) AS n (key, sort_value) WHERE r.stream = $1 AND r.key = n.key";
        transaction.execute(update, &[&stream, &keys, &values]).await?;
    }
}
