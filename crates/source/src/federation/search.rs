//! Search over all sources that may have a hit.

use std::collections::BTreeSet;
use std::mem::take;

use fetchwell_callers::CallContext;
use fetchwell_core::handle::{ConnectionId, RecordAddress, SourceName};
use fetchwell_core::record::{Hit, HitId};
use futures_util::future::join_all;
use tokio::time::Instant;

use super::fusion::Fusion;
use super::members::{Members, from_source};
use super::source_outcomes::SourceOutcomes;
use crate::{Count, SearchOperator, SearchPage, SearchQuery, Source, SourceError, StageClock, TimedStage};

pub(super) async fn search(
    members: &Members,
    context: &CallContext,
    query: &SearchQuery,
) -> Result<SearchPage, SourceError> {
    if let Some(connection) = &query.connection {
        let source = members.source_of(context, connection).await?;
        return source.search(context, query).await.map_err(|error| from_source(source, error));
    }
    members.routes.refresh();
    let mut fusion = match &query.position {
        Some(position) => Fusion::resume(members.routes.names(), position)?,
        None => {
            let sources = members.with_any_stream(&query.streams).map(|source| source.name().clone());
            Fusion::start(members.routes.names(), sources)
        }
    };
    let limit = query.limit.max(1);
    fusion.explains = query.explains;
    let mut clock = StageClock::start(query.explains);
    let each = members.share_of(limit);
    let mut facts = SearchFacts::default();
    let mut outcomes = SourceOutcomes { answered: query.position.is_some(), ..SourceOutcomes::default() };
    fusion.take(limit);
    let until = Instant::now() + members.page_timeout;
    while !fusion.has(limit) && Instant::now() < until {
        let pending = fusion.pending_reads();
        if pending.is_empty() {
            break;
        }
        let reads = pending.into_iter().map(|pending| async move {
            let Some(source) = members.named(&pending.source) else {
                return (pending.input, pending.source, Err(SourceError::InvalidCursor));
            };
            let query = SearchQuery { limit: each, position: pending.position, ..query.clone() };
            (pending.input, pending.source, members.before(until, source.search(context, &query)).await)
        });
        let reads = join_all(reads).await;
        clock.end("all sources");
        for (input, source, read) in reads {
            match read {
                Ok(mut page) => {
                    facts.add(&source, &mut page);
                    outcomes.answer(&source, take(&mut page.notes), take(&mut page.unavailable));
                    members.routes.remember(&source, page.hits.iter().filter_map(connection_of));
                    fusion.push_page(input, page);
                }
                Err(error) => {
                    if outcomes.failure(&source, error) {
                        fusion.end(input);
                    } else {
                        fusion.fail(input);
                    }
                }
            }
        }
        fusion.take(limit);
        clock.end("fusion");
    }
    facts.stages.extend(clock.into_stages());
    let page = fusion.page();
    if !outcomes.failed.is_empty()
        && (!outcomes.answered || (page.hits.is_empty() && page.next.is_none() && query.position.is_some()))
    {
        return Err(members.no_answer_error(
            outcomes.failed,
            "no source answered the search",
            query.streams.first(),
        ));
    }
    let (notes, unavailable) = outcomes.into_unavailable();
    let count = if members.routes.collision().is_some() { page.count.map(Count::about) } else { page.count };
    Ok(facts.of_page(SearchPage { notes, unavailable, count, ..page }))
}

/// Facts about the searches of all sources, each true if one of them says so.
#[derive(Debug, Default)]
struct SearchFacts {
    lexical_instead: bool,
    has_raised_dates: bool,
    unapplied: BTreeSet<SearchOperator>,
    meaning_problems: BTreeSet<String>,
    stages: Vec<TimedStage>,
}

impl SearchFacts {
    /// Takes the facts of a page.
    fn add(&mut self, source: &SourceName, page: &mut SearchPage) {
        let stages = page.stages.drain(..);
        self.stages.extend(stages.map(|stage| TimedStage { source: Some(source.clone()), ..stage }));
        self.lexical_instead |= page.lexical_instead;
        self.has_raised_dates |= page.has_raised_dates;
        self.unapplied.append(&mut page.unapplied);
        self.meaning_problems.append(&mut page.meaning_problems);
    }

    /// Returns a page with these facts.
    fn of_page(self, page: SearchPage) -> SearchPage {
        let Self { lexical_instead, has_raised_dates, unapplied, meaning_problems, stages } = self;
        SearchPage { lexical_instead, has_raised_dates, unapplied, meaning_problems, stages, ..page }
    }
}

fn connection_of(hit: &Hit) -> Option<&ConnectionId> {
    match &hit.id {
        HitId::Record(RecordAddress { connection, .. }) => connection.as_ref(),
        HitId::Opaque(_) | HitId::Nameless => None,
    }
}
