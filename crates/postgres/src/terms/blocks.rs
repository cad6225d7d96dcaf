//! The blocks of a run that is written.

use std::mem::take;

use deadpool_postgres::Transaction;
use tokio_postgres::Error;

use super::lines::push_line;

/// Maximum bytes of a block, unless it has one word alone. The server keeps a row of this size in its table, and not elsewhere.
const BLOCK_BYTES: usize = 1_900;

/// Bytes of blocks that are written by one statement while runs are merged.
const STATEMENT_BYTES: usize = 1_000_000;

/// Writer of a run. Words are added in ascending order.
#[derive(Debug)]
pub(super) struct RunWriter {
    run: i64,
    first_word: String,
    terms: String,
    /// Blocks that are complete and not written.
    pending: (Vec<String>, Vec<String>),
    pending_bytes: usize,
    bytes: usize,
}

impl RunWriter {
    /// Creates a run without words.
    pub(super) async fn create(transaction: &Transaction<'_>) -> Result<Self, Error> {
        let sql = "INSERT INTO fetchwell.term_runs (bytes) VALUES (0) RETURNING id";
        let statement = transaction.prepare_cached(sql).await?;
        Ok(Self {
            run: transaction.query_one(&statement, &[]).await?.get(0),
            first_word: String::new(),
            terms: String::new(),
            pending: Default::default(),
            pending_bytes: 0,
            bytes: 0,
        })
    }

    /// Adds a word that is greater than all words before.
    pub(super) fn add(&mut self, word: &str, numbers: impl IntoIterator<Item = (i64, i64)>) {
        let start = self.terms.len();
        if !push_line(&mut self.terms, word, numbers) {
            return;
        }
        if self.terms.len() > BLOCK_BYTES && start > 0 {
            let line = self.terms.split_off(start);
            self.end_block();
            self.terms.push_str(&line);
        }
        if self.first_word.is_empty() {
            self.first_word.push_str(word);
        }
    }

    /// Returns true if there is enough for [`Self::write`].
    pub(super) fn is_full(&self) -> bool {
        self.pending_bytes >= STATEMENT_BYTES
    }

    /// Writes what was added. A run without words is removed.
    pub(super) async fn finish(mut self, transaction: &Transaction<'_>) -> Result<(), Error> {
        self.end_block();
        self.write(transaction).await?;
        let sql = if self.bytes == 0 {
            "DELETE FROM fetchwell.term_runs WHERE id = $1 AND $2::bigint = 0"
        } else {
            "UPDATE fetchwell.term_runs SET bytes = $2 WHERE id = $1"
        };
        let statement = transaction.prepare_cached(sql).await?;
        let bytes = i64::try_from(self.bytes).unwrap_or(i64::MAX);
        transaction.execute(&statement, &[&self.run, &bytes]).await.map(drop)
    }

    fn end_block(&mut self) {
        if self.terms.is_empty() {
            return;
        }
        self.pending_bytes += self.terms.len();
        self.bytes += self.terms.len();
        self.pending.0.push(take(&mut self.first_word));
        self.pending.1.push(take(&mut self.terms));
    }

    /// Writes the blocks that are complete.
    pub(super) async fn write(&mut self, transaction: &Transaction<'_>) -> Result<(), Error> {
        let (words, terms) = take(&mut self.pending);
        self.pending_bytes = 0;
        if words.is_empty() {
            return Ok(());
        }
        let sql = "INSERT INTO fetchwell.term_blocks (run, first_word, terms)
             SELECT $1, b.first_word, b.terms FROM unnest($2::text[], $3::text[]) AS b (first_word, terms)";
        let statement = transaction.prepare_cached(sql).await?;
        transaction.execute(&statement, &[&self.run, &words, &terms]).await.map(drop)
    }
}
