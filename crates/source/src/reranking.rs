//! Reranking of the first hits of a search.
//!
//! The first page of a search reads the best 50 hits, reranks them once, and keeps those that it does not return in its
//! position. Later pages take them from there and go on behind them, so that no hit is repeated or lost, whatever the
//! reranker says the second time.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fetchwell_callers::CallContext;
use fetchwell_core::fit::first_characters;
use fetchwell_core::record::{Evidence, Hit, RankChange};
use fetchwell_embedding::{Reranker, blend};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::{
    Accuracy, Count, Purpose, SearchPage, SearchPosition, SearchQuery, Source, SourceError, StageClock,
};

/// Number of hits that are reranked. Rerankers get worse with more.
const CANDIDATES: usize = 50;

/// Maximum length of a query for a reranker in characters.
const MAX_QUERY_CHARS: usize = 1_000;

/// Prefix of the positions of reranked searches.
const PREFIX: &str = "reranked ";

/// Number of failures in a row after which the reranker is not called for a while.
const MAX_FAILURES: u32 = 3;

/// Pause after that many failures.
const PAUSE: Duration = Duration::from_secs(30);

/// A reranker for searches, with its timeout. Clones share the state.
#[derive(Clone)]
pub struct Reranking {
    /// Model, or the provider if the model has no name.
    name: Arc<str>,
    reranker: Arc<dyn Reranker>,
    timeout: Duration,
    failures: Arc<Mutex<Failures>>,
}

impl fmt::Debug for Reranking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reranking").field("reranker", &self.reranker).finish_non_exhaustive()
    }
}

/// Failures of the reranker since it last succeeded.
#[derive(Debug, Default)]
struct Failures {
    count: u32,
    paused_until: Option<Instant>,
}

/// The position of a reranked search.
#[derive(Debug, Serialize, Deserialize)]
struct RerankedPosition {
    /// Hits that were reranked and not returned yet, in their order.
    hits: VecDeque<KeptHit>,
    /// Position of the source behind them.
    next: Option<SearchPosition>,
    count: Option<(u64, Accuracy)>,
    windowed: bool,
    lexical_instead: bool,
}

/// A hit in a position, with the details that hits are otherwise stored without.
#[derive(Debug, Serialize, Deserialize)]
struct KeptHit {
    hit: Hit,
    evidence: Evidence,
}

impl KeptHit {
    fn new(mut hit: Hit) -> Self {
        let evidence = std::mem::take(&mut hit.evidence);
        Self { hit, evidence }
    }

    fn into_hit(self) -> Hit {
        Hit { evidence: self.evidence, ..self.hit }
    }
}

impl Reranking {
    /// Creates the reranking of searches. After the timeout a search has the order found.
    #[must_use]
    pub fn new(name: &str, reranker: Arc<dyn Reranker>, timeout: Duration) -> Self {
        Self { name: name.into(), reranker, timeout, failures: Arc::default() }
    }

    /// Returns the name of the model, or of the provider if the model has none.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Searches a source and reranks the first hits.
    pub(crate) async fn search(
        &self,
        source: &dyn Source,
        context: &CallContext,
        query: &SearchQuery,
    ) -> Result<SearchPage, SourceError> {
        match &query.position {
            None => self.first_page(source, context, query).await,
            Some(position) => match position.0.strip_prefix(PREFIX) {
                // The walk began without a reranker.
                None => source.search(context, query).await,
                Some(rest) => {
                    let rest = serde_json::from_str(rest).map_err(|_error| SourceError::InvalidCursor)?;
                    next_page(source, context, query, rest).await
                }
            },
        }
    }

    async fn first_page(
        &self,
        source: &dyn Source,
        context: &CallContext,
        query: &SearchQuery,
    ) -> Result<SearchPage, SourceError> {
        let words = query.text.plain_words();
        // A search without words has an order of its own, such as the newest first, and a hint shows no results.
        if words.trim().is_empty() || query.purpose == Purpose::Hint {
            return source.search(context, query).await;
        }
        let wide = SearchQuery { limit: query.limit.max(CANDIDATES), ..query.clone() };
        let mut page = source.search(context, &wide).await?;
        let mut clock = StageClock::start(query.explains);
        let scored = page.hits.len().min(CANDIDATES);
        if scored > 1 {
            let hits = page.hits.get(..scored).unwrap_or_default();
            let passages: Vec<String> = hits.iter().map(passage).collect();
            match self.order(&words, &passages).await {
                Ok(order) => page.hits = reordered(page.hits, &order),
                Err(reason) => page.notes.push(format!("the results are not reranked: {reason}")),
            }
        }
        clock.end("rerank");
        page.stages.extend(clock.into_stages());
        let rest = RerankedPosition {
            hits: page
                .hits
                .split_off(query.limit.min(page.hits.len()))
                .into_iter()
                .map(KeptHit::new)
                .collect(),
            next: page.next.take(),
            count: page.count.map(|count| (count.value, count.accuracy)),
            windowed: page.windowed,
            lexical_instead: page.lexical_instead,
        };
        page.next = rest.into_position();
        Ok(page)
    }

    /// Returns the new order of passages, or the reason why there is none.
    ///
    /// # Errors
    ///
    /// The reranker failed, did not answer in time, or is not called after failures.
    pub async fn order(&self, words: &str, passages: &[String]) -> Result<Vec<usize>, String> {
        if self.failures.lock().paused_until.is_some_and(|until| Instant::now() < until) {
            return Err("the rerank service failed several times, and is asked again in a while".to_owned());
        }
        let query = first_characters(words, MAX_QUERY_CHARS);
        let scored = timeout(self.timeout, self.reranker.scores(query, passages)).await;
        let problem = match scored {
            Ok(Ok(scores)) => {
                *self.failures.lock() = Failures::default();
                return Ok(blend(&scores));
            }
            Ok(Err(error)) => {
                tracing::warn!("{error}");
                error.reason().to_owned()
            }
            Err(_late) => format!("the reranker did not answer within {:?}", self.timeout),
        };
        let mut failures = self.failures.lock();
        failures.count += 1;
        if failures.count >= MAX_FAILURES {
            *failures = Failures { count: 0, paused_until: Some(Instant::now() + PAUSE) };
        }
        Err(problem)
    }
}

/// Returns the text of a hit for a reranker.
fn passage(hit: &Hit) -> String {
    let excerpt = hit.excerpt.text();
    if excerpt.is_empty() { hit.title.clone() } else { format!("{}\n{excerpt}", hit.title) }
}

/// Returns hits in a new order. Those behind the order stay where they are.
fn reordered(hits: Vec<Hit>, order: &[usize]) -> Vec<Hit> {
    let mut hits: Vec<Option<Hit>> = hits.into_iter().map(Some).collect();
    let mut sorted: Vec<Hit> = Vec::with_capacity(hits.len());
    for at in order {
        let Some(mut hit) = hits.get_mut(*at).and_then(Option::take) else { continue };
        if let Some(explanation) = &mut hit.explanation {
            explanation.reranked = Some(RankChange { before: at + 1, after: sorted.len() + 1 });
        }
        sorted.push(hit);
    }
    sorted.extend(hits.into_iter().flatten());
    sorted
}

impl RerankedPosition {
    /// Returns the position of the next page. Without hits it is that of the source.
    fn into_position(self) -> Option<SearchPosition> {
        if self.hits.is_empty() {
            return self.next;
        }
        let text = serde_json::to_string(&self).ok()?;
        Some(SearchPosition(format!("{PREFIX}{text}")))
    }
}

/// Returns a page of the reranked hits that are left, and of what the source has behind them.
async fn next_page(
    source: &dyn Source,
    context: &CallContext,
    query: &SearchQuery,
    mut rest: RerankedPosition,
) -> Result<SearchPage, SourceError> {
    let taken = query.limit.min(rest.hits.len());
    let hits: Vec<Hit> = rest.hits.drain(..taken).map(KeptHit::into_hit).collect();
    let mut page = SearchPage {
        windowed: rest.windowed,
        lexical_instead: rest.lexical_instead,
        count: rest.count.map(|(value, accuracy)| Count { value, accuracy }),
        ..SearchPage::default()
    };
    if rest.hits.is_empty()
        && taken < query.limit
        && let Some(position) = rest.next.take()
    {
        let behind = SearchQuery { limit: query.limit - taken, position: Some(position), ..query.clone() };
        let found = source.search(context, &behind).await?;
        page = SearchPage { windowed: found.windowed || rest.windowed, ..found };
        rest.next = page.next.take();
    }
    page.hits.splice(..0, hits);
    page.next = rest.into_position();
    Ok(page)
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::{
        AggregateAnswer, AggregateQuery, RecordQuery, RecordsPage, RecordsQuery, StreamAnswer, StreamQuery,
        WindowQuery,
    };
    use fetchwell_core::handle::SourceName;
    use fetchwell_core::record::{Excerpt, HitId, Record, Schema, Window};
    use fetchwell_embedding::RerankError;

    /// A source of numbered hits. Its positions are offsets.
    #[derive(Debug)]
    struct Numbers {
        name: SourceName,
        count: usize,
    }

    fn numbers(count: usize) -> Numbers {
        Numbers { name: "numbers".parse().unwrap(), count }
    }

    #[async_trait]
    impl Source for Numbers {
        fn name(&self) -> &SourceName {
            &self.name
        }

        fn identity(&self) -> String {
            "numbers".to_owned()
        }

        async fn search(
            &self,
            _context: &CallContext,
            query: &SearchQuery,
        ) -> Result<SearchPage, SourceError> {
            let start = query.position.as_ref().map_or(0, |position| position.0.parse().unwrap());
            let end = self.count.min(start + query.limit);
            let hit = |at: usize| {
                let evidence = Evidence { matched_fields: vec!["body".to_owned()], ..Evidence::default() };
                let excerpt = Excerpt::new(&format!("text {at}"), 0..0);
                Hit { excerpt, evidence, ..Hit::new(HitId::Opaque(at.to_string()), at.to_string()) }
            };
            Ok(SearchPage {
                hits: (start..end).map(hit).collect(),
                next: (end < self.count).then(|| SearchPosition(end.to_string())),
                count: Some(Count::exact(self.count as u64)),
                ..SearchPage::default()
            })
        }

        async fn schema(&self, _context: &CallContext) -> Result<Schema, SourceError> {
            Err(SourceError::InvalidCursor)
        }

        async fn stream(&self, _: &CallContext, _: &StreamQuery) -> Result<StreamAnswer, SourceError> {
            Err(SourceError::InvalidCursor)
        }

        async fn records(&self, _: &CallContext, _: &RecordsQuery) -> Result<RecordsPage, SourceError> {
            Err(SourceError::InvalidCursor)
        }

        async fn record(&self, _: &CallContext, _: &RecordQuery) -> Result<Record, SourceError> {
            Err(SourceError::InvalidCursor)
        }

        async fn window(&self, _: &CallContext, _: &WindowQuery) -> Result<Window, SourceError> {
            Err(SourceError::InvalidCursor)
        }

        async fn aggregate(
            &self,
            _: &CallContext,
            _: &AggregateQuery,
        ) -> Result<AggregateAnswer, SourceError> {
            Err(SourceError::InvalidCursor)
        }
    }

    /// A reranker that prefers higher numbers, or fails.
    #[derive(Debug)]
    struct HighestFirst {
        fails: bool,
        calls: Mutex<Vec<usize>>,
    }

    #[async_trait]
    impl Reranker for HighestFirst {
        async fn scores(&self, _query: &str, passages: &[String]) -> Result<Vec<f32>, RerankError> {
            self.calls.lock().push(passages.len());
            if self.fails {
                tokio::time::sleep(Duration::from_secs(60)).await;
            }
            let number = |passage: &String| passage.split_whitespace().last().unwrap().parse().unwrap();
            Ok(passages.iter().map(number).collect())
        }
    }

    fn highest(fails: bool) -> (Arc<HighestFirst>, Reranking) {
        let reranker = Arc::new(HighestFirst { fails, calls: Mutex::default() });
        let shared: Arc<dyn Reranker> = Arc::clone(&reranker) as _;
        (reranker, Reranking::new("highest", shared, Duration::from_secs(2)))
    }

    /// Returns all titles of a walk, with the notes of its pages.
    async fn walk(reranking: &Reranking, source: &Numbers, limit: usize) -> (Vec<usize>, Vec<String>) {
        let (mut titles, mut notes, mut position) = (Vec::new(), Vec::new(), None);
        loop {
            let query = SearchQuery { position, ..SearchQuery::new("words", limit) };
            let page = reranking.search(source, &CallContext::default(), &query).await.unwrap();
            assert!(page.hits.len() <= limit && page.count == Some(Count::exact(source.count as u64)));
            assert!(page.hits.iter().all(|hit| hit.evidence.matched_fields == ["body"]));
            titles.extend(page.hits.iter().map(|hit| hit.title.parse::<usize>().unwrap()));
            notes.extend(page.notes);
            let Some(next) = page.next else { return (titles, notes) };
            position = Some(next);
        }
    }

    #[tokio::test]
    async fn walks_have_every_hit_once_and_rerank_once() {
        for count in [0, 1, 2, 49, 50, 51, 130] {
            for limit in [1, 7, 50, 60, 100] {
                let (reranker, reranking) = highest(false);
                let (titles, notes) = walk(&reranking, &numbers(count), limit).await;
                let mut sorted = titles.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..count).collect::<Vec<_>>(), "{count} {limit}");
                assert!(notes.is_empty());
                let scored = count.min(CANDIDATES);
                let expect = if scored > 1 { vec![scored] } else { Vec::new() };
                assert_eq!(*reranker.calls.lock(), expect, "{count} {limit}");
                // The hits behind the candidates keep their order, and the candidates are before them.
                assert_eq!(titles.get(scored..).unwrap(), (scored..count).collect::<Vec<_>>());
                if count == 130 {
                    assert_eq!(titles[..2], [0, 49]);
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_timeout_the_order_found_stays_with_one_note() {
        let (reranker, reranking) = highest(true);
        for attempt in 0..5 {
            let (titles, notes) = walk(&reranking, &numbers(60), 10).await;
            assert_eq!(titles, (0..60).collect::<Vec<_>>());
            assert_eq!(notes.len(), 1, "{notes:?}");
            assert!(notes[0].starts_with("the results are not reranked: "), "{notes:?}");
            assert_eq!(notes[0].contains("within 2s"), attempt < 3, "{notes:?}");
        }
        // A reranker that fails is not called by every search.
        assert_eq!(reranker.calls.lock().len(), 3);
    }

    #[tokio::test]
    async fn hints_and_searches_without_words_call_no_reranker() {
        let (reranker, reranking) = highest(false);
        for query in
            [SearchQuery { purpose: Purpose::Hint, ..SearchQuery::new("words", 5) }, SearchQuery::new(" ", 5)]
        {
            let page = reranking.search(&numbers(9), &CallContext::default(), &query).await.unwrap();
            assert_eq!(page.next, Some(SearchPosition("5".to_owned())), "{query:?}");
        }
        assert!(reranker.calls.lock().is_empty());
    }

    #[tokio::test]
    async fn positions_of_others_are_not_taken() {
        let (_, reranking) = highest(false);
        let position = Some(SearchPosition(format!("{PREFIX}{{}}")));
        let query = SearchQuery { position, ..SearchQuery::new("words", 5) };
        let refused = reranking.search(&numbers(9), &CallContext::default(), &query).await.unwrap_err();
        assert!(matches!(refused, SourceError::InvalidCursor));
        let query = SearchQuery { position: Some(SearchPosition("5".to_owned())), ..query };
        let page = reranking.search(&numbers(9), &CallContext::default(), &query).await.unwrap();
        assert_eq!(page.hits.len(), 4);
    }
}
