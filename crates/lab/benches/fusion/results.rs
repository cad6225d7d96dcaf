//! The results of a part of a set, as stores and simple servers have them.

use fetchwell_core::handle::RecordAddress;
use fetchwell_core::record::{Hit, HitId, RecordData};
use fetchwell_lab::evaluation::Question;
use fetchwell_ranking::lexical::foreign::ForeignTerms;
use fetchwell_source::{BoundSource, SearchQuery, SearchText};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::listed::Lists;
use crate::split::{Part, PartRecord};

/// Number of hits of a store that are read.
const STORE_HITS: usize = 50;

/// Number of results of a server that ranks.
const RESULTS: usize = 10;

/// Kind of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A store, or a record server in front of one.
    Store,
    /// The first results of a store with titles and passages.
    Ranked,
    /// The first results of a store with titles alone.
    Titles,
    /// All records with any word of the query, in the order of the file, with their whole text.
    Unranked,
}

/// A result as a server returns it.
struct ResultItem {
    address: RecordAddress,
    title: Option<String>,
    text: Option<String>,
}

/// Returns the hits of each question.
pub(crate) fn lists_of(runtime: &Runtime, part: &Part, kind: Kind, questions: &[Question]) -> Lists {
    let source = BoundSource::from(part.store.clone());
    let search = |question: &Question, limit: usize| {
        runtime.block_on(source.search(&SearchQuery::new(&question.query, limit))).unwrap().hits
    };
    let list = |question: &Question| match kind {
        Kind::Store => search(question, STORE_HITS),
        Kind::Ranked => {
            listed(&question.query, part, search(question, RESULTS).into_iter().map(|hit| ranked(hit, true)))
        }
        Kind::Titles => {
            listed(&question.query, part, search(question, RESULTS).into_iter().map(|hit| ranked(hit, false)))
        }
        Kind::Unranked => listed(&question.query, part, unranked(part, &question.query)),
    };
    questions.iter().map(|question| (question.query.clone(), list(question))).collect()
}

fn ranked(hit: Hit, with_text: bool) -> ResultItem {
    let HitId::Record(address) = hit.id else { panic!("a store has addresses") };
    let text = with_text.then(|| hit.excerpt.text().to_owned());
    ResultItem { address, title: Some(hit.title), text }
}

/// Returns the records with any of the query's words in their text, as parts of words, too.
fn unranked<'a>(part: &'a Part, query: &str) -> impl Iterator<Item = ResultItem> + use<'a> {
    let query = query.to_lowercase();
    let words: Vec<String> = query.split_whitespace().map(str::to_owned).collect();
    let is_match = move |record: &&PartRecord| words.iter().any(|word| record.lower.contains(word));
    part.records.iter().filter(is_match).map(|record| ResultItem {
        address: RecordAddress {
            connection: None,
            stream: record.stream.parse().unwrap(),
            record: record.key.parse().unwrap(),
        },
        title: record.title.clone(),
        text: Some(record.text.clone()),
    })
}

/// Makes hits of results, as an MCP server's are made.
fn listed(query: &str, part: &Part, items: impl Iterator<Item = ResultItem>) -> Vec<Hit> {
    let items: Vec<ResultItem> = items.collect();
    let records: Vec<RecordData> = items.iter().map(data).collect();
    let terms = ForeignTerms::new(&SearchText::plain(query), records.iter());
    let hit = |(item, record): (ResultItem, &RecordData)| {
        let address = RecordAddress { connection: Some(part.name.parse().unwrap()), ..item.address };
        let title = item.title.unwrap_or_default();
        Hit { coverage: terms.coverage(record), ..Hit::new(HitId::Record(address), title) }
    };
    items.into_iter().zip(&records).map(hit).collect()
}

/// Returns the fields of a result.
fn data(item: &ResultItem) -> RecordData {
    let fields = [("title", &item.title), ("text", &item.text)];
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value.clone()?)))).collect()
}
