//! A search over all sources that can have something.

use futures_util::future::join_all;
use tokio::time::Instant;

use super::failures::{Failures, is_elsewhere};
use super::fusion::Fusion;
use super::{Federation, of};
use crate::source::{Count, SearchPage, SearchQuery, Source, SourceError};

/// The fewest hits that are asked of a source at a time.
const HITS_LEAST: usize = 5;

pub(super) async fn search(federation: &Federation, query: &SearchQuery) -> Result<SearchPage, SourceError> {
    if let Some(connection) = &query.connection {
        let source = federation.source_of(connection).await?;
        return source.search(query).await.map_err(|error| of(source, error));
    }
    federation.routes.freshen();
    let mut fusion = match &query.position {
        Some(position) => Fusion::resume(position)?,
        None => Fusion::start(federation.with_any_stream(&query.streams).map(|source| source.name().clone())),
    };
    let limit = query.limit.max(1);
    // Of many sources few hits each are enough for a page, and what is not shown has to be kept.
    let each = (2 * limit).div_ceil(federation.sources.len().max(1)).clamp(HITS_LEAST.min(limit), limit);
    let (mut failed, mut notes, mut answered) = (Failures::default(), Vec::new(), query.position.is_some());
    let mut unavailable = Vec::new();
    fusion.take(limit);
    let until = Instant::now() + federation.patience;
    while !fusion.has(limit) && Instant::now() < until {
        let hungry = fusion.hungry();
        if hungry.is_empty() {
            break;
        }
        let reads = hungry.into_iter().map(|hungry| async move {
            let Some(source) = federation.named(&hungry.source) else {
                return (hungry.feed, hungry.source, Err(SourceError::RestartSearch));
            };
            let query = SearchQuery { limit: each, position: hungry.position, ..query.clone() };
            (hungry.feed, hungry.source, federation.before(until, source.search(&query)).await)
        });
        for (feed, source, read) in join_all(reads).await {
            match read {
                Ok(mut page) => {
                    answered = true;
                    notes.extend(page.notes.drain(..).map(|note| format!("source `{source}`: {note}")));
                    unavailable.append(&mut page.unavailable);
                    federation.saw_hits(&source, &page.hits);
                    fusion.feed(feed, page);
                }
                Err(error) => {
                    if is_elsewhere(&error) {
                        fusion.end(feed);
                    } else {
                        fusion.fail(feed);
                    }
                    failed.add(&source, error);
                }
            }
        }
        fusion.take(limit);
    }
    let page = fusion.page();
    if !failed.is_empty()
        && (!answered || (page.hits.is_empty() && page.next.is_none() && query.position.is_some()))
    {
        return Err(federation.nobody(failed, "no source answered the search", query.streams.first()));
    }
    unavailable.extend(failed.beside_an_answer());
    let is_doubtful = federation.routes.collision().is_some();
    let count = if is_doubtful { page.count.map(Count::about) } else { page.count };
    Ok(SearchPage { notes, unavailable, count, ..page })
}
