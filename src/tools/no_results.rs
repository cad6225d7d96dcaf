//! What an answer without results says: the words without a match, and the values or streams there are.
//!
//! `hint` is in our own words; what records hold stands in `values`, as data. Finding out takes a few more questions to
//! the source, all at once and within [`patience`]: an answer never fails for them.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::fit::clip;
use crate::handle::{ConnectionId, StreamName};
use crate::record::{Hit, HitId, RecordData, Scalar};
use crate::source::{AggregateQuery, Filter, Grouping, Metric, Operator, SearchQuery, Source};

/// The longest that the questions may take.
const MAX_PATIENCE: Duration = Duration::from_secs(2);

/// Words of a query that are looked for one by one.
const MAX_WORDS: usize = 8;

/// Names that a hint lists.
const MAX_NAMES: usize = 8;

/// A word or name in a hint, in bytes of JSON.
const NAME: usize = 40;

/// Fields of a filter whose values are shown.
const MAX_FIELDS: usize = 3;

/// Values shown of a field.
const MAX_VALUES: usize = 5;

/// A value, in bytes of JSON.
const VALUE: usize = 60;

/// What stands in an answer without results.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct NoResults {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
    /// What the fields of the filter hold.
    #[serde(skip_serializing_if = "RecordData::is_empty")]
    pub(super) values: RecordData,
}

impl NoResults {
    fn hint(text: String) -> Self {
        Self { hint: Some(text), values: RecordData::new() }
    }
}

/// Returns how long the questions may take in a call that began at `started`: half of what is left of its deadline, so that
/// the answer goes out.
pub(super) fn patience(call_deadline: Duration, started: Instant) -> Duration {
    (call_deadline.saturating_sub(started.elapsed()) / 2).min(MAX_PATIENCE)
}

/// Says why a search found nothing.
pub(super) async fn of_search(source: &dyn Source, query: &SearchQuery, patience: Duration) -> NoResults {
    let looked = timeout(patience, look(source, query)).await;
    NoResults::hint(looked.unwrap_or_else(|_elapsed| NOTHING.to_owned()))
}

const NOTHING: &str = "Nothing matches. Search for fewer or other words.";

async fn look(source: &dyn Source, query: &SearchQuery) -> String {
    match matches_elsewhere(source, query).await {
        Some(hint) => hint,
        None => words_without_match(source, query).await,
    }
}

/// Searches without what narrows the search, and names the streams of what is found.
async fn matches_elsewhere(source: &dyn Source, query: &SearchQuery) -> Option<String> {
    let narrowing = [
        ("`streams`", !query.streams.is_empty()),
        ("`connection_id`", query.connection.is_some()),
        ("`filter`", !query.filter.is_empty()),
    ];
    let given: Vec<&str> = narrowing.into_iter().filter_map(|(name, given)| given.then_some(name)).collect();
    if given.is_empty() {
        return None;
    }
    let anywhere = SearchQuery { mode: query.mode, ..SearchQuery::of(&query.text, 25) };
    let page = source.search(&anywhere).await.ok()?;
    let stream = |hit: &Hit| match &hit.id {
        HitId::Record(address) => Some(address.stream.as_str().to_owned()),
        HitId::Opaque(_) | HitId::Nameless => None,
    };
    let streams: BTreeSet<String> = page.hits.iter().filter_map(stream).collect();
    let names = names(streams.iter().map(String::as_str));
    let hint = format!("Search again without {}: there are matches in {names}.", given.join(" and "));
    (!streams.is_empty()).then_some(hint)
}

/// Searches for each word of a query.
async fn words_without_match(source: &dyn Source, query: &SearchQuery) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in query.text.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    match words.as_slice() {
        [] => return "The query has no letters or digits to search for.".to_owned(),
        [word] => return format!("No record has {}. Search for another word.", names([*word])),
        [_, _, ..] if words.len() > MAX_WORDS => return NOTHING.to_owned(),
        _ => {}
    }
    let one = |word: &str| SearchQuery { text: word.to_owned(), limit: 1, ..query.clone() };
    let found = join_all(words.iter().map(async |word| source.search(&one(word)).await)).await;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for (word, page) in words.into_iter().zip(found) {
        match page {
            Ok(page) if !page.hits.is_empty() => with.push(word),
            Ok(page) if page.unavailable.is_empty() => without.push(word),
            // A source that did not answer may have the word.
            Ok(_incomplete) => return NOTHING.to_owned(),
            Err(_unknown) => return NOTHING.to_owned(),
        }
    }
    match (with.is_empty(), without.is_empty()) {
        (true, _) => format!("No record has any of {}. Search for other words.", names(without)),
        (false, false) => format!("No record has {}. Search for {} alone.", names(without), names(with)),
        (false, true) => "Each word has matches, no record has all. Search for fewer words.".to_owned(),
    }
}

/// A list or a figure over no record of a stream.
pub(super) struct NoRecords<'a> {
    pub(super) stream: &'a StreamName,
    pub(super) connection: Option<&'a ConnectionId>,
    pub(super) filter: &'a Filter,
}

impl NoRecords<'_> {
    /// Says why there is no record.
    pub(super) async fn explain(&self, source: &dyn Source, patience: Duration) -> NoResults {
        if self.filter.is_empty() {
            let others = timeout(patience, self.streams(source)).await;
            return NoResults::hint(
                others.unwrap_or_else(|_elapsed| "The stream has no records.".to_owned()),
            );
        }
        let values = timeout(patience, self.values(source)).await.unwrap_or_default();
        let hint = if values.is_empty() {
            "No record passes `filter`. Leave it out, or a part of it, to see what its fields hold."
        } else {
            "No record passes `filter`. `values` has what its fields hold."
        };
        NoResults { values, ..NoResults::hint(hint.to_owned()) }
    }

    /// The streams that have records.
    async fn streams(&self, source: &dyn Source) -> String {
        let schema = source.schema().await.unwrap_or_default();
        let counted = schema.connections.iter().flat_map(|connection| &connection.streams);
        let others: BTreeSet<&str> = counted
            .filter(|stream| stream.record_count.is_some_and(|count| count > 0))
            .map(|stream| stream.name.as_str())
            .collect();
        let (stream, others) = (names([self.stream.as_str()]), names(others));
        match self.connection {
            _ if others.is_empty() => format!("Stream {stream} has no records."),
            None => format!("Stream {stream} has no records; there are some in {others}."),
            Some(_) => format!(
                "This connection has no records in stream {stream}. Leave out `connection_id`; there are records in {others}."
            ),
        }
    }

    /// What the fields of the filter hold: their most frequent values, or the least and the greatest.
    async fn values(&self, source: &dyn Source) -> RecordData {
        let mut fields: Vec<(&str, bool)> = Vec::new();
        for condition in &self.filter.0 {
            let is_range = condition.operator != Operator::Equal;
            if !fields.iter().any(|(field, _)| *field == condition.field) {
                fields.push((&condition.field, is_range));
            }
        }
        fields.truncate(MAX_FIELDS);
        let held = fields.into_iter().map(async |(field, is_range)| {
            let held =
                if is_range { self.bounds(source, field).await } else { self.frequent(source, field).await };
            Some((clip(field, VALUE), held?))
        });
        join_all(held).await.into_iter().flatten().collect()
    }

    async fn frequent(&self, source: &dyn Source, field: &str) -> Option<Value> {
        let query = AggregateQuery {
            grouping: Some(Grouping::Field(field.to_owned())),
            limit: MAX_VALUES,
            ..self.figure(Metric::Count, None)
        };
        let groups = source.aggregate(&query).await.ok()?.groups?;
        let keys: Vec<Value> = groups.into_iter().filter_map(|group| group.key).map(shown).collect();
        (!keys.is_empty()).then(|| Value::Array(keys.into_iter().take(MAX_VALUES).collect()))
    }

    async fn bounds(&self, source: &dyn Source, field: &str) -> Option<Value> {
        let figure = async |metric| {
            let query = self.figure(metric, Some(field.to_owned()));
            source.aggregate(&query).await.ok()?.value.map(shown)
        };
        let (least, greatest) = tokio::join!(figure(Metric::Min), figure(Metric::Max));
        Some(json!({ "min": least?, "max": greatest? }))
    }

    fn figure(&self, metric: Metric, field: Option<String>) -> AggregateQuery {
        AggregateQuery {
            stream: self.stream.clone(),
            connection: self.connection.cloned(),
            metric,
            field,
            grouping: None,
            limit: 1,
            filter: Filter::default(),
        }
    }
}

fn shown(value: Scalar) -> Value {
    match value {
        Scalar::Text(text) => clip(&text, VALUE).into(),
        other => other.into(),
    }
}

/// Names in backticks, as many as fit.
fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names = names.into_iter().take(MAX_NAMES).map(|name| format!("`{}`", clip(name, NAME)));
    names.collect::<Vec<_>>().join(", ")
}
