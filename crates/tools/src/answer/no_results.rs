//! Explanations of empty answers: words without a match, streams with records, and values of filtered fields.
//!
//! An explanation takes a few more reads of the source, `MAX_AT_ONCE` at a time and within a timeout. The answer goes out
//! even if they fail. They have `Purpose::Hint`, so that they do not count for the circuit of a source.
//! **Invariant:** `hint` has names of streams and words of the query, never text of a record; values of records stand in
//! `values`, as data.

use std::collections::BTreeSet;
use std::time::Duration;

use fetchwell_core::fit::clip;
use fetchwell_core::handle::{ConnectionId, StreamName};
use fetchwell_core::record::{ConnectionSchema, Hit, HitId, RecordData, Scalar};
use fetchwell_ranking::lexical::word_filter::{RequiredPiece, required_pieces};
use fetchwell_source::{
    AggregateQuery, BoundSource, Filter, Grouping, Metric, Purpose, RecordsQuery, SearchPage, SearchQuery,
    SearchText, SourceError, Test,
};
use futures_util::StreamExt;
use futures_util::stream;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

/// Warning of a page of which every record is omitted.
pub(crate) const ONLY_OMITTED: &str = "all are omitted: none has an id that can be fetched, of at most 2048 bytes with its connection and stream";

/// Maximum time for the reads of an explanation.
const MAX_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum number of concurrent reads.
const MAX_AT_ONCE: usize = 2;

/// Maximum number of words of a query that are searched for one by one.
const MAX_WORDS: usize = 8;

/// Maximum number of names in a hint.
const MAX_NAMES: usize = 8;

/// Maximum length of a word or name in a hint, in bytes of JSON.
const MAX_NAME_BYTES: usize = 40;

/// Maximum number of fields of a filter that are explained.
const MAX_FIELDS: usize = 3;

/// Maximum number of values of a field.
const MAX_VALUES: usize = 5;

/// Maximum length of a value, in bytes of JSON.
const MAX_VALUE_BYTES: usize = 60;

/// Explanation of an answer without results. Empty in answers with results.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct NoResults {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    /// Values of the fields of the filter.
    #[serde(skip_serializing_if = "RecordData::is_empty")]
    pub(crate) values: RecordData,
}

impl NoResults {
    fn hint(text: String) -> Self {
        Self { hint: Some(text), values: RecordData::new() }
    }
}

/// Returns the timeout for the reads of an explanation: half of the time that the call has left.
pub(crate) fn explanation_timeout(call_deadline: Duration, started: Instant) -> Duration {
    (call_deadline.saturating_sub(started.elapsed()) / 2).min(MAX_TIMEOUT)
}

/// Explains why a search found nothing.
pub(crate) async fn explain_search(source: &BoundSource, query: &SearchQuery, within: Duration) -> NoResults {
    let hint = timeout(within, search_hint(source, query)).await;
    NoResults::hint(hint.unwrap_or_else(|_elapsed| NO_MATCH.to_owned()))
}

/// Hint without an explanation.
const NO_MATCH: &str = "Nothing matches. Search for fewer or other words.";

/// Hint for a query of operators alone.
const NO_RECORD_PASSES: &str = "No record passes the operators of the query. Leave some of them out.";

async fn search_hint(source: &BoundSource, query: &SearchQuery) -> String {
    match matches_elsewhere(source, query).await {
        WiderMatches::Found(hint) => hint,
        WiderMatches::Unknown => NO_MATCH.to_owned(),
        WiderMatches::Nothing => words_without_match(source, query).await,
    }
}

/// Results of a search without its narrowing arguments.
enum WiderMatches {
    /// There are matches; the hint names their streams.
    Found(String),
    /// There is no match, or the search is not narrowed.
    Nothing,
    /// A source did not answer.
    Unknown,
}

/// Searches without the narrowing arguments and names the streams of the matches.
async fn matches_elsewhere(source: &BoundSource, query: &SearchQuery) -> WiderMatches {
    let narrowing = [
        ("`streams`", !query.streams.is_empty()),
        ("`connection_id`", query.connection.is_some()),
        ("`filter`", !query.filter.is_empty()),
        ("the operators of the query", !query.text.is_plain()),
    ];
    let given: Vec<&str> = narrowing.into_iter().filter_map(|(name, given)| given.then_some(name)).collect();
    let words = query.text.plain_words();
    if given.is_empty() || words.is_empty() {
        return WiderMatches::Nothing;
    }
    let anywhere = SearchQuery { mode: query.mode, purpose: Purpose::Hint, ..SearchQuery::new(&words, 25) };
    let Ok(page) = source.search(&anywhere).await else { return WiderMatches::Unknown };
    let stream = |hit: &Hit| match &hit.id {
        HitId::Record(address) => Some(address.stream.as_str().to_owned()),
        HitId::Opaque(_) | HitId::Nameless => None,
    };
    let streams: BTreeSet<String> = page.hits.iter().filter_map(stream).collect();
    match (streams.is_empty(), page.unavailable.is_empty()) {
        (true, true) => WiderMatches::Nothing,
        (true, false) => WiderMatches::Unknown,
        (false, _) => {
            let names = names(streams.iter().map(String::as_str));
            let given = given.join(" and ");
            WiderMatches::Found(format!("Search again without {given}: there are matches in {names}."))
        }
    }
}

/// Searches for each word of a query by itself.
async fn words_without_match(source: &BoundSource, query: &SearchQuery) -> String {
    let mut words: Vec<&str> = Vec::new();
    let text = query.text.plain_words();
    for word in text.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    match words.as_slice() {
        [] if !query.text.is_plain() => return NO_RECORD_PASSES.to_owned(),
        [] => return "Search for words or numbers, or use an operator such as `since:30d`.".to_owned(),
        [word] => return format!("No record has {}. Search for another word.", names([*word])),
        [_, _, ..] if words.len() > MAX_WORDS => return NO_MATCH.to_owned(),
        _ => {}
    }
    let one = |word: &str| SearchQuery {
        text: SearchText::plain(word),
        limit: 1,
        purpose: Purpose::Hint,
        ..query.clone()
    };
    let searches: Vec<_> = words.iter().map(|word| search(source, one(word))).collect();
    let found: Vec<_> = stream::iter(searches).buffered(MAX_AT_ONCE).collect().await;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for (word, page) in words.into_iter().zip(found) {
        match page {
            Ok(page) if !page.hits.is_empty() => with.push(word),
            Ok(page) if page.unavailable.is_empty() => without.push(word),
            // A source that did not answer may have the word.
            Ok(_incomplete) => return NO_MATCH.to_owned(),
            Err(_unknown) => return NO_MATCH.to_owned(),
        }
    }
    match (with.is_empty(), without.is_empty()) {
        (true, _) => format!("No record has any of {}. Search for other words.", names(without)),
        (false, false) => format!("No record has {}. Search for {} alone.", names(without), names(with)),
        (false, true) => "Each word has matches, no record has all. Search for fewer words.".to_owned(),
    }
}

async fn search(source: &BoundSource, query: SearchQuery) -> Result<SearchPage, SourceError> {
    source.search(&query).await
}

/// A list or an aggregate without any record.
pub(crate) struct NoRecords<'a> {
    pub(crate) stream: &'a StreamName,
    pub(crate) connection: Option<&'a ConnectionId>,
    pub(crate) filter: &'a Filter,
    /// Words that each record of a list must have.
    pub(crate) words: Option<&'a SearchText>,
}

/// Reason why a list by words has no record.
enum WordsReason {
    /// There are no records at all.
    NoRecords,
    /// Records have the words, and none of them passes the filter.
    Filter,
    /// No record has the words, as the hint says.
    Words(String),
}

/// Hint for a list with words without an explanation.
const NO_RECORD_HAS_WORDS: &str = "No record has all words of `q`. Give fewer, or use `search`.";

impl NoRecords<'_> {
    /// Explains why there is no record.
    pub(crate) async fn explain(&self, source: &BoundSource, within: Duration) -> NoResults {
        if let Some(words) = self.words {
            match timeout(within, self.words_reason(source, words)).await {
                Ok(WordsReason::NoRecords) => {}
                Ok(WordsReason::Filter) => return self.explain_filter(source, within, true).await,
                Ok(WordsReason::Words(hint)) => return NoResults::hint(hint),
                Err(_elapsed) => return NoResults::hint(NO_RECORD_HAS_WORDS.to_owned()),
            }
        }
        if self.filter.is_empty() {
            let others = timeout(within, self.streams(source)).await;
            return NoResults::hint(
                others.unwrap_or_else(|_elapsed| "The stream has no records.".to_owned()),
            );
        }
        self.explain_filter(source, within, false).await
    }

    /// Explains that no record passes the filter, or none of those with the words.
    async fn explain_filter(&self, source: &BoundSource, within: Duration, has_words: bool) -> NoResults {
        let values = timeout(within, self.values(source)).await.unwrap_or_default();
        let none = if has_words {
            "Records have the words of `q`, none of these passes `filter`."
        } else {
            "No record passes `filter`."
        };
        let next = if values.is_empty() {
            "Leave it out, or a part of it, to see what its fields hold."
        } else {
            "`values` has what its fields hold."
        };
        NoResults { values, ..NoResults::hint(format!("{none} {next}")) }
    }

    /// Finds out why no record has the words and passes the filter.
    async fn words_reason(&self, source: &BoundSource, words: &SearchText) -> WordsReason {
        let list = |words: Option<SearchText>| RecordsQuery {
            connection: self.connection.cloned(),
            words,
            purpose: Purpose::Hint,
            ..RecordsQuery::new(self.stream.clone(), 1)
        };
        let has = async |words: Option<SearchText>| match source.records(&list(words)).await {
            Ok(page) if !page.rows.is_empty() => Some(true),
            Ok(page) if page.unavailable.is_empty() => Some(false),
            Ok(_) | Err(_) => None,
        };
        if has(None).await == Some(false) {
            return WordsReason::NoRecords;
        }
        if !self.filter.is_empty() && has(Some(words.clone())).await == Some(true) {
            return WordsReason::Filter;
        }
        let stream = names([self.stream.as_str()]);
        let required = SearchText { excluded: Vec::new(), ..words.clone() };
        if required != *words && has(Some(required)).await == Some(true) {
            let excluded = names(words.excluded.iter().map(String::as_str));
            return WordsReason::Words(format!(
                "All records of {stream} with the words of `q` have {excluded}, which it excludes."
            ));
        }
        let unknown = || WordsReason::Words(NO_RECORD_HAS_WORDS.to_owned());
        let each: Vec<(&str, SearchText)> = required_pieces(words)
            .map(|piece| match piece {
                RequiredPiece::Word(word) => (word, SearchText::plain(word)),
                RequiredPiece::Phrase(phrase) => {
                    (phrase, SearchText { phrases: vec![phrase.to_owned()], ..SearchText::default() })
                }
            })
            .filter(|(word, _)| word.chars().any(char::is_alphanumeric))
            .take(MAX_WORDS + 1)
            .collect();
        if each.len() > MAX_WORDS {
            return unknown();
        }
        let (words, texts): (Vec<&str>, Vec<SearchText>) = each.into_iter().unzip();
        let reads = texts.into_iter().map(|text| has(Some(text)));
        let found: Vec<Option<bool>> = stream::iter(reads).buffered(MAX_AT_ONCE).collect().await;
        let mut without = Vec::new();
        for (word, found) in words.into_iter().zip(found) {
            match found {
                Some(true) => {}
                Some(false) => without.push(word),
                None => return unknown(),
            }
        }
        WordsReason::Words(if without.is_empty() {
            format!("Each word of `q` is in records of {stream}, no record has all. Give fewer words.")
        } else {
            let without = names(without);
            format!(
                "No record of {stream} has {without}. Leave it out, or use `search`, which finds similar words."
            )
        })
    }

    /// Names the streams that have records.
    async fn streams(&self, source: &BoundSource) -> String {
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
            let elsewhere =
                if here.is_empty() { String::new() } else { format!("; there are some in {here}") };
            return format!("Stream {stream} has no records{elsewhere}.");
        }
        let mut streams_of_others = others.iter().flat_map(|connection| &connection.streams);
        let no_records = format!("This connection has no records in stream {stream}");
        if streams_of_others.any(|other| other.name == *self.stream && other.record_count != Some(0)) {
            return format!("{no_records}, another one has. Leave out `connection_id`.");
        }
        if here.is_empty() {
            format!("{no_records}.")
        } else {
            format!("{no_records}; it has some in {here}.")
        }
    }

    /// Returns values of the filtered fields: the most frequent ones, or the minimum and maximum of a range.
    async fn values(&self, source: &BoundSource) -> RecordData {
        let mut fields: Vec<(&str, bool)> = Vec::new();
        for condition in &self.filter.0 {
            let is_range = matches!(condition.test, Test::Range(..));
            if !fields.iter().any(|(field, _)| *field == condition.field) {
                fields.push((&condition.field, is_range));
            }
        }
        fields.truncate(MAX_FIELDS);
        let reads: Vec<_> =
            fields.into_iter().map(|(field, is_range)| self.field_values(source, field, is_range)).collect();
        let values: Vec<_> = stream::iter(reads).buffered(MAX_AT_ONCE).collect().await;
        values.into_iter().flatten().collect()
    }

    /// Returns the values of one field with its name.
    async fn field_values(
        &self,
        source: &BoundSource,
        field: &str,
        is_range: bool,
    ) -> Option<(String, Value)> {
        let values =
            if is_range { self.bounds(source, field).await } else { self.frequent(source, field).await };
        Some((clip(field, MAX_VALUE_BYTES), values?))
    }

    async fn frequent(&self, source: &BoundSource, field: &str) -> Option<Value> {
        let query = AggregateQuery {
            grouping: Some(Grouping::Field(field.to_owned())),
            limit: MAX_VALUES,
            ..self.query(Metric::Count, None)
        };
        let groups = source.aggregate(&query).await.ok()?.groups?;
        let keys: Vec<Value> = groups.into_iter().filter_map(|group| group.key).map(shown).collect();
        (!keys.is_empty()).then(|| Value::Array(keys.into_iter().take(MAX_VALUES).collect()))
    }

    async fn bounds(&self, source: &BoundSource, field: &str) -> Option<Value> {
        let value = async |metric| {
            let query = self.query(metric, Some(field.to_owned()));
            source.aggregate(&query).await.ok()?.value.map(shown)
        };
        let smallest = value(Metric::Min).await?;
        Some(json!({ "min": smallest, "max": value(Metric::Max).await? }))
    }

    fn query(&self, metric: Metric, field: Option<String>) -> AggregateQuery {
        AggregateQuery {
            connection: self.connection.cloned(),
            field,
            limit: 1,
            purpose: Purpose::Hint,
            ..AggregateQuery::new(self.stream.clone(), metric)
        }
    }
}

fn shown(value: Scalar) -> Value {
    match value {
        Scalar::Text(text) => clip(&text, MAX_VALUE_BYTES).into(),
        other => other.into(),
    }
}

/// Joins names in backticks, at most [`MAX_NAMES`] of them.
fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names = names.into_iter().take(MAX_NAMES).map(|name| format!("`{}`", clip(name, MAX_NAME_BYTES)));
    names.collect::<Vec<_>>().join(", ")
}
