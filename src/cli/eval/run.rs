//! The searches of one run, one after another, as `search` makes them but without a budget.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use fetchwell_core::handle::{Handle, RecordAddress};
use fetchwell_core::record::{Hit, HitId, Schema};
use fetchwell_lab::evaluation::{MAX_RANK, Measures, Question};
use fetchwell_source::{BoundSource, RecordQuery, SearchMode, SearchQuery, SourceError};
use fetchwell_tools::parse_query;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use crate::app::failure::Failure;

/// Number of searches before those that are measured, which fill the caches.
const WARM_UP_SEARCHES: usize = 5;

/// Maximum number of notes of a run.
const MAX_NOTES: usize = 10;

/// Answers to the questions of a run.
#[derive(Debug)]
pub(super) struct Run {
    /// An answer for each question, in order.
    pub(super) answers: Vec<Answer>,
    /// Relevant ids that no record has.
    pub(super) unknown: BTreeSet<String>,
    /// True if the source does not support the mode and searched by words.
    pub(super) lexical_instead: bool,
    /// Notes of the source and reasons why meaning was not searched, each once.
    pub(super) notes: BTreeSet<String>,
}

/// The measured answer to a question.
#[derive(Debug)]
pub(super) struct Answer {
    /// Measures of the hits; `None` if no record is relevant.
    pub(super) measures: Option<Measures>,
    pub(super) hits: usize,
    pub(super) taken: Duration,
}

/// Searches for every question.
pub(super) async fn run(
    source: &BoundSource,
    questions: &[Question],
    mode: SearchMode,
) -> Result<Run, Failure> {
    // Ages in queries are counted back from one time.
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    let schema = source.schema().await?;
    for question in questions.iter().take(WARM_UP_SEARCHES) {
        let query = query(question, mode, &schema, &now)?;
        source.search(&query).await.map_err(with_name(question))?;
    }
    let mut done =
        Run { answers: Vec::new(), unknown: BTreeSet::new(), lexical_instead: false, notes: BTreeSet::new() };
    for question in questions {
        let query = query(question, mode, &schema, &now)?;
        let started = Instant::now();
        let page = source.search(&query).await.map_err(with_name(question))?;
        let taken = started.elapsed();
        done.lexical_instead |= page.lexical_instead;
        let problems =
            page.meaning_problems.iter().map(|problem| format!("searched by words only: {problem}"));
        done.notes.extend(problems.chain(page.notes).take(MAX_NOTES.saturating_sub(done.notes.len())));
        let (gains, is_found) = gains(question, &page.hits);
        let grades: Vec<u8> = question.relevant.iter().map(|record| record.grade).collect();
        let measures = Measures::new(&gains, &grades);
        done.answers.push(Answer { measures, hits: page.hits.len(), taken });
        for (record, _) in question.relevant.iter().zip(is_found).filter(|(_, is_found)| !is_found) {
            if !exists(source, record.address.as_ref()).await.map_err(with_name(question))? {
                done.unknown.insert(record.id.clone());
            }
        }
    }
    Ok(done)
}

/// Reads the operators of a question as a search does.
fn query(
    question: &Question,
    mode: SearchMode,
    schema: &Schema,
    now: &Zoned,
) -> Result<SearchQuery, Failure> {
    let mut parsed = parse_query(&question.query, now);
    parsed.resolve_labels_in(schema).map_err(with_name(question))?;
    let query = SearchQuery {
        connection: question.connection.clone(),
        streams: question.streams.clone(),
        mode,
        ..SearchQuery::new("", MAX_RANK)
    };
    parsed.apply(query).map_err(|conflict| Failure::new(format!("question {}: {conflict}", question.id)))
}

/// Returns a conversion of errors that names the question.
fn with_name(question: &Question) -> impl Fn(SourceError) -> Failure {
    |error| {
        let failure = Failure::from(error);
        Failure { message: format!("question {}: {failure}", question.id), ..failure }
    }
}

/// Returns the grade of each hit, and for each relevant record whether it is among them. A record that is a hit twice
/// counts once.
fn gains(question: &Question, hits: &[Hit]) -> (Vec<u8>, Vec<bool>) {
    let mut is_found = vec![false; question.relevant.len()];
    let gains = hits.iter().map(|hit| {
        let (id, address) = match &hit.id {
            HitId::Record(address) => (Handle::mint(address).map(|handle| handle.to_string()), Some(address)),
            HitId::Opaque(id) => (Some(id.clone()), None),
            HitId::Nameless => (None, None),
        };
        let id = id.unwrap_or_default();
        let mut relevant = question.relevant.iter().zip(&mut is_found);
        match relevant.find(|(record, is_found)| !**is_found && record.is_at(&id, address)) {
            Some((record, is_found)) => {
                *is_found = true;
                record.grade
            }
            None => 0,
        }
    });
    (gains.collect(), is_found)
}

/// Returns true if there is a record at the address.
async fn exists(source: &BoundSource, address: Option<&RecordAddress>) -> Result<bool, SourceError> {
    let Some(address) = address else { return Ok(false) };
    match source.record(&RecordQuery::new(address.clone())).await {
        Ok(_) => Ok(true),
        Err(error)
            if ["not_found", "connection_not_found", "stream_not_declared"].contains(&error.code()) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
