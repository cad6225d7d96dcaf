//! The words of a run in ascending order, read in pieces.

use std::collections::VecDeque;
use std::ops::Range;

use deadpool_postgres::Transaction;
use tokio_postgres::{Error, Portal};

use super::lines::numbers;

/// Number of blocks that are read at a time.
const BLOCKS: i32 = 64;

/// Reader of a run.
pub(super) struct RunReader {
    portal: Portal,
    /// Blocks that were read. The first one has the current word.
    blocks: VecDeque<String>,
    word: Range<usize>,
    numbers: Range<usize>,
    is_at_end: bool,
}

impl RunReader {
    /// Opens a run in a transaction.
    pub(super) async fn open(transaction: &Transaction<'_>, run: i64) -> Result<Self, Error> {
        let sql = "SELECT terms FROM fetchwell.term_blocks WHERE run = $1 ORDER BY first_word";
        let statement = transaction.prepare_cached(sql).await?;
        let portal = transaction.bind(&statement, &[&run]).await?;
        let mut reader =
            Self { portal, blocks: VecDeque::new(), word: 0..0, numbers: 0..0, is_at_end: false };
        reader.prepare(transaction).await?;
        Ok(reader)
    }

    /// Reads the next blocks if there is no current word and the run has more.
    pub(super) async fn prepare(&mut self, transaction: &Transaction<'_>) -> Result<(), Error> {
        while self.blocks.is_empty() && !self.is_at_end {
            let rows = transaction.query_portal(&self.portal, BLOCKS).await?;
            self.is_at_end = rows.len() < usize::try_from(BLOCKS).unwrap_or_default();
            self.blocks.extend(rows.iter().map(|row| row.get::<_, String>(0)));
            self.find_line(0);
        }
        Ok(())
    }

    /// Returns the current word, or `None` if blocks have to be read or there are no more.
    pub(super) fn word(&self) -> Option<&str> {
        self.blocks.front()?.get(self.word.clone())
    }

    /// Returns the numbers of the current word.
    pub(super) fn numbers(&self) -> impl Iterator<Item = (i64, i64)> {
        let block = self.blocks.front().map(String::as_str).unwrap_or_default();
        numbers(block.get(self.numbers.clone()).unwrap_or_default())
    }

    /// Goes to the next word.
    pub(super) fn advance(&mut self) {
        self.find_line(self.numbers.end + 1);
    }

    /// Makes the next line at or after a place of the first block the current one, or the first line of the next block.
    fn find_line(&mut self, mut start: usize) {
        while let Some(block) = self.blocks.front() {
            let rest = block.get(start..).unwrap_or_default();
            if let (Some(tab), Some(end)) = (rest.find('\t'), rest.find('\n')) {
                self.word = start..start + tab;
                self.numbers = start + tab + 1..start + end;
                return;
            }
            self.blocks.pop_front();
            start = 0;
        }
    }
}
