//! What an answer without results says: the words without a match, and the values or streams there are.
//!
//! `hint` is in our own words; what records hold stands in `values`, as data. Finding out takes a few more questions to
//! the source, `MAX_AT_ONCE` at a time and within `patience`. An answer never fails for them, and neither does another
//! call: they say so by `Purpose::Hint`.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::fit::clip;
use crate::handle::{ConnectionId, StreamName};
use crate::record::{ConnectionSchema, Hit, HitId, RecordData, Scalar};
use crate::source::{
    AggregateQuery, Filter, Grouping, Metric, Operator, Purpose, SearchPage, SearchQuery, Source, SourceError,
};

/// The longest that the questions may take.
const MAX_PATIENCE: Duration = Duration::from_secs(2);

/// Questions that are asked at a time.
const MAX_AT_ONCE: usize = 2;

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
        Elsewhere::Found(hint) => hint,
        Elsewhere::Unknown => NOTHING.to_owned(),
        Elsewhere::Nothing => words_without_match(source, query).await,
    }
}

/// Results of a search without its narrowing arguments.
enum Elsewhere {
    /// The hint that says where.
    Found(String),
    /// Nothing, or the search is not narrowed.
    Nothing,
    /// A source did not answer.
    Unknown,
}

/// Searches without what narrows the search, and names the streams of what is found.
async fn matches_elsewhere(source: &dyn Source, query: &SearchQuery) -> Elsewhere {
    let narrowing = [
        ("`streams`", !query.streams.is_empty()),
        ("`connection_id`", query.connection.is_some()),
        ("`filter`", !query.filter.is_empty()),
    ];
    let given: Vec<&str> = narrowing.into_iter().filter_map(|(name, given)| given.then_some(name)).collect();
    if given.is_empty() {
        return Elsewhere::Nothing;
    }
    let anywhere =
        SearchQuery { mode: query.mode, purpose: Purpose::Hint, ..SearchQuery::of(&query.text, 25) };
    let Ok(page) = source.search(&anywhere).await else { return Elsewhere::Unknown };
    let stream = |hit: &Hit| match &hit.id {
        HitId::Record(address) => Some(address.stream.as_str().to_owned()),
        HitId::Opaque(_) | HitId::Nameless => None,
    };
    let streams: BTreeSet<String> = page.hits.iter().filter_map(stream).collect();
    match (streams.is_empty(), page.unavailable.is_empty()) {
        (true, true) => Elsewhere::Nothing,
        (true, false) => Elsewhere::Unknown,
        (false, _) => {
            let names = names(streams.iter().map(String::as_str));
            let given = given.join(" and ");
            Elsewhere::Found(format!("Search again without {given}: there are matches in {names}."))
        }
    }
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
    let one =
        |word: &str| SearchQuery { text: word.to_owned(), limit: 1, purpose: Purpose::Hint, ..query.clone() };
    let searches: Vec<_> = words.iter().map(|word| ask(source, one(word))).collect();
    let found: Vec<_> = stream::iter(searches).buffered(MAX_AT_ONCE).collect().await;
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

async fn ask(source: &dyn Source, query: SearchQuery) -> Result<SearchPage, SourceError> {
    source.search(&query).await
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

    /// Says where there are records.
    async fn streams(&self, source: &dyn Source) -> String {
        let schema = source.schema().await.unwrap_or_default();
        let is_asked = |connection: &&ConnectionSchema| {
            self.connection.is_none_or(|asked| *asked == connection.connection_id)
        };
        let filled = |connections: &[&ConnectionSchema]| -> String {
            let streams = connections.iter().flat_map(|connection| &connection.streams);
            let filled = streams.filter(|stream| stream.record_count.is_some_and(|count| count > 0));
            names(filled.map(|stream| stream.name.as_str()).collect::<BTreeSet<_>>())
        };
        let (asked, others): (Vec<_>, Vec<_>) = schema.connections.iter().partition(is_asked);
        let stream = names([self.stream.as_str()]);
        let here = filled(&asked);
        if self.connection.is_none() {
            return match here.is_empty() {
                true => format!("Stream {stream} has no records."),
                false => format!("Stream {stream} has no records; there are some in {here}."),
            };
        }
        let mut streams_of_others = others.iter().flat_map(|connection| &connection.streams);
        let nothing = format!("This connection has no records in stream {stream}");
        if streams_of_others.any(|other| other.name == *self.stream && other.record_count != Some(0)) {
            return format!("{nothing}, another one has. Leave out `connection_id`.");
        }
        match here.is_empty() {
            true => format!("{nothing}."),
            false => format!("{nothing}; it has some in {here}."),
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
        let held: Vec<_> =
            fields.into_iter().map(|(field, is_range)| self.held(source, field, is_range)).collect();
        let held: Vec<_> = stream::iter(held).buffered(MAX_AT_ONCE).collect().await;
        held.into_iter().flatten().collect()
    }

    /// The value of one field.
    async fn held(&self, source: &dyn Source, field: &str, is_range: bool) -> Option<(String, Value)> {
        let held =
            if is_range { self.bounds(source, field).await } else { self.frequent(source, field).await };
        Some((clip(field, VALUE), held?))
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
        let least = figure(Metric::Min).await?;
        Some(json!({ "min": least, "max": figure(Metric::Max).await? }))
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
            purpose: Purpose::Hint,
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
