//! Writes the words of changed records, and the statistics of these words.

use std::collections::BTreeMap;

use deadpool_postgres::Transaction;
use tokio_postgres::Error;
use tokio_postgres::types::{ToSql, Type};

use super::super::batch::ChangedRows;
use super::super::bulk::copy::{CopyRow, copy_rows};
use super::super::words::{RecordWords, is_plain};
use crate::terms::{TermChanges, write_terms};

/// Number of records of a transaction from which on their words are added to the index in large steps.
const MANY_RECORDS: usize = 250;

/// Settings of such a transaction. New words wait in a list of the index. When it is full, the server adds them, as many at a
/// time as the memory holds. Each time changes most pages of a large index, so few times take half as long as many. A list of
/// more than this would slow down searches, which read all of it.
const LARGE_STEPS: &str = "SET LOCAL gin_pending_list_limit = '16MB'; SET LOCAL work_mem = '64MB'";

/// Adds words to indexes in large steps until the end of a transaction, if it writes many records.
pub(crate) async fn index_in_large_steps(transaction: &Transaction<'_>, records: usize) -> Result<(), Error> {
    if records < MANY_RECORDS { Ok(()) } else { transaction.batch_execute(LARGE_STEPS).await }
}

/// Changes of the statistics of streams.
#[derive(Debug, Default)]
struct Statistics<'w> {
    terms: TermChanges<'w>,
    /// Change of the number of words of each stream.
    words: BTreeMap<i64, i64>,
}

impl<'w> Statistics<'w> {
    /// Counts the words of a record that is removed.
    fn remove(&mut self, stream: i64, words: impl Iterator<Item = &'w str>, length: i32) {
        let terms = self.terms.entry(stream).or_default();
        words.for_each(|word| *terms.entry(word).or_default() -= 1);
        *self.words.entry(stream).or_default() -= i64::from(length);
    }

    /// Counts the words of a record that is added.
    fn add(&mut self, stream: i64, words: &'w RecordWords) {
        let terms = self.terms.entry(stream).or_default();
        words.words.for_each_plain(|word| *terms.entry(word).or_default() += 1);
        *self.words.entry(stream).or_default() += i64::from(words.length);
    }

    async fn write(self, transaction: &Transaction<'_>) -> Result<(), Error> {
        write_terms(transaction, self.terms).await?;
        let (streams, words): (Vec<i64>, Vec<i64>) = self.words.into_iter().unzip();
        let sql = "UPDATE fetchwell.streams s SET word_count = word_count + n.words
             FROM unnest($1::bigint[], $2::bigint[]) AS n (stream, words) WHERE s.id = n.stream";
        let statement = transaction.prepare_cached(sql).await?;
        transaction.execute(&statement, &[&streams, &words]).await.map(drop)
    }
}

/// Replaces the words of changed records. The caller holds the lock of the store's version.
pub(crate) async fn put_words(transaction: &Transaction<'_>, rows: ChangedRows) -> Result<(), Error> {
    write_statistics(transaction, &rows).await?;
    let ChangedRows { stream, key, words, is_known, .. } = rows;
    let (mut columns, mut new) = (Columns::default(), Columns::default());
    let mut deleted: (Vec<i64>, Vec<String>) = Default::default();
    for (((stream, key), words), is_known) in stream.into_iter().zip(key).zip(words).zip(is_known) {
        match words {
            Some(words) => {
                let columns = if is_known { &mut columns } else { &mut new };
                columns.push(stream, key, words);
            }
            None => {
                deleted.0.push(stream);
                deleted.1.push(key);
            }
        }
    }
    columns.write(transaction).await?;
    new.copy(transaction).await?;
    if !deleted.1.is_empty() {
        let sql = "DELETE FROM fetchwell.texts t USING unnest($1::bigint[], $2::text[]) AS p (stream, key)
             WHERE t.stream = p.stream AND t.key = p.key";
        transaction.execute(sql, &[&deleted.0, &deleted.1]).await?;
    }
    Ok(())
}

/// Replaces the statistics of the words in the table by those of the new words.
async fn write_statistics(transaction: &Transaction<'_>, rows: &ChangedRows) -> Result<(), Error> {
    let ChangedRows { stream, key, words, is_known, .. } = rows;
    let known = stream.iter().zip(key).zip(is_known).filter(|(_, is_known)| **is_known);
    let (streams, keys): (Vec<i64>, Vec<&str>) =
        known.map(|((stream, key), _)| (*stream, key.as_str())).unzip();
    let mut before = Vec::new();
    if !keys.is_empty() {
        // The limit makes each row a lookup by its key: without statistics the server would read all rows.
        let sql = "SELECT p.stream, t.length, tsvector_to_array(t.words)
             FROM unnest($1::bigint[], $2::text[]) AS p (stream, key) CROSS JOIN LATERAL (
                 SELECT length, words FROM fetchwell.texts WHERE stream = p.stream AND key = p.key LIMIT 1
             ) t";
        let statement = transaction.prepare_cached(sql).await?;
        before = transaction.query(&statement, &[&streams, &keys]).await?;
    }
    let mut statistics = Statistics::default();
    for row in &before {
        let words: Vec<&str> = row.get(2);
        statistics.remove(row.get(0), words.into_iter().filter(|word| is_plain(word)), row.get(1));
    }
    for (stream, words) in stream.iter().zip(words) {
        if let Some(words) = words {
            statistics.add(*stream, words);
        }
    }
    statistics.write(transaction).await
}

/// Rows of the table of words in columns.
#[derive(Debug, Default)]
struct Columns {
    stream: Vec<i64>,
    key: Vec<String>,
    words: Vec<super::super::words::WordVector>,
    length: Vec<i32>,
    title_words: Vec<i32>,
    time: Vec<i64>,
    similarity: Vec<i64>,
}

impl Columns {
    fn push(&mut self, stream: i64, key: String, row: RecordWords) {
        self.stream.push(stream);
        self.key.push(key);
        self.words.push(row.words);
        self.length.push(row.length);
        self.title_words.push(row.title_words);
        self.time.push(row.time);
        self.similarity.push(row.similarity);
    }

    /// Returns the rows with the values of each column.
    fn rows(&self) -> Vec<CopyRow<'_, 7>> {
        let Self { stream, key, words, length, title_words, time, similarity } = self;
        let rows = stream.iter().zip(key).zip(words).zip(length).zip(title_words).zip(time).zip(similarity);
        rows.map(|((((((stream, key), words), length), title_words), time), similarity)| {
            [stream as &(dyn ToSql + Sync), key, words, length, title_words, time, similarity]
        })
        .collect()
    }

    /// Inserts rows that do not exist.
    async fn copy(&self, transaction: &Transaction<'_>) -> Result<(), Error> {
        let types = [Type::INT8, Type::TEXT, Type::TS_VECTOR, Type::INT4, Type::INT4, Type::INT8, Type::INT8];
        let table = "fetchwell.texts (stream, key, words, length, title_words, time, similarity)";
        copy_rows(transaction, table, &types, &self.rows()).await
    }

    async fn write(&self, transaction: &Transaction<'_>) -> Result<(), Error> {
        if self.key.is_empty() {
            return Ok(());
        }
        let sql = "INSERT INTO fetchwell.texts (stream, key, words, length, title_words, time, similarity)
             SELECT * FROM unnest($1::bigint[], $2::text[], $3::tsvector[], $4::integer[], $5::integer[], $6::bigint[], $7::bigint[])
             ON CONFLICT (stream, key) DO UPDATE SET words = excluded.words, length = excluded.length,
                 title_words = excluded.title_words, time = excluded.time, similarity = excluded.similarity";
        let statement = transaction.prepare_cached(sql).await?;
        let Self { stream, key, words, length, title_words, time, similarity } = self;
        transaction.execute(&statement, &[stream, key, words, length, title_words, time, similarity]).await?;
        Ok(())
    }
}
