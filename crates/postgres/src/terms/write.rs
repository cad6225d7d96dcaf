//! Adds the numbers of a batch as a run.

use std::collections::HashMap;

use deadpool_postgres::Transaction;
use tokio_postgres::Error;

use super::blocks::RunWriter;

/// Changes of the number of records with each word, by stream.
pub(crate) type TermChanges<'w> = HashMap<i64, HashMap<&'w str, i32>>;

/// Change of one number. The first bytes of the word decide most comparisons.
struct Change<'w> {
    first_bytes: u64,
    word: &'w str,
    stream: i64,
    by: i32,
}

/// Adds changes as a run.
pub(crate) async fn write_terms(
    transaction: &Transaction<'_>,
    changes: TermChanges<'_>,
) -> Result<(), Error> {
    let change = |stream: i64, word, by| Change { first_bytes: first_bytes(word), word, stream, by };
    let changes = changes
        .into_iter()
        .flat_map(|(stream, terms)| terms.into_iter().map(move |(word, by)| change(stream, word, by)));
    let mut changes: Vec<Change<'_>> = changes.filter(|change| change.by != 0).collect();
    if changes.is_empty() {
        return Ok(());
    }
    changes
        .sort_unstable_by(|a, b| (a.first_bytes, a.word, a.stream).cmp(&(b.first_bytes, b.word, b.stream)));
    let mut run = RunWriter::create(transaction).await?;
    for same in changes.chunk_by(|a, b| a.word == b.word) {
        let Some(first) = same.first() else { continue };
        let numbers = same.iter().map(|change| (change.stream, i64::from(change.by)));
        run.add(first.word, numbers);
    }
    run.finish(transaction).await
}

/// Returns the first eight bytes of a word as a number in the same order.
fn first_bytes(word: &str) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(word.bytes()).for_each(|(to, byte)| *to = byte);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_are_in_the_order_of_words() {
        let mut words = ["", "a", "ab", "abcdefgh", "abcdefghi", "b", "é", "zz"];
        words.sort_unstable();
        assert!(words.is_sorted_by_key(|word| first_bytes(word)));
    }
}
