//! Reads of a search: pages of the source until an answer is full, and positions between answers.

use fetchwell_source::{BoundSource, SearchPage, SearchPosition, SearchQuery, SourceError};
use jiff::Timestamp;

/// Writes a position with the time of the first page, from which ages in the query are counted.
pub fn dated_position(first: Timestamp, position: &SearchPosition) -> String {
    format!("{} {}", first.as_second(), position.0)
}

/// Parses the text of [`dated_position`]. Any other is [`SourceError::InvalidCursor`].
pub fn parse_dated(text: &str) -> Result<(Timestamp, SearchPosition), SourceError> {
    let (first, position) = text.split_once(' ').ok_or(SourceError::InvalidCursor)?;
    let first = first.parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    Ok((first.ok_or(SourceError::InvalidCursor)?, SearchPosition(position.to_owned())))
}

/// Reads a search of one source.
#[derive(Debug)]
pub struct SearchReader<'a> {
    /// Source to be searched.
    pub source: &'a BoundSource,
    /// Query for the first hits.
    pub query: SearchQuery,
}

impl SearchReader<'_> {
    /// Reads pages from the position in `found` and appends them, until the answer is full or the source has no more. Returns
    /// the first error of the source.
    pub async fn read(
        &self,
        found: &mut SearchPage,
        max_reads: usize,
        mut is_full: impl FnMut(&mut SearchPage) -> bool,
    ) -> Result<(), SourceError> {
        for _ in 0..max_reads {
            let query = SearchQuery { position: found.next.take(), ..self.query.clone() };
            found.append(self.source.search(&query).await?);
            if is_full(found) || found.next.is_none() {
                break;
            }
        }
        Ok(())
    }
}
