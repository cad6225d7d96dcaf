//! The results of a part of a set, as stores and simple servers have them.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use fetchwell_core::handle::RecordAddress;
use fetchwell_core::record::{Hit, HitId, RecordData};
use fetchwell_lab::evaluation::Question;
use fetchwell_ranking::lexical::foreign::{ForeignTerms, ListedText, order_by_words};
use fetchwell_source::{BoundSource, SearchQuery, SearchText};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::listed::Lists;
use crate::split::{Part, PartRecord};

/// Number of hits of a store that are read.
const STORE_HITS: usize = 50;

/// Number of results of a list of which hits are made: more than a search of a few sources reads.
const READ_RESULTS: usize = 50;

/// Number of results of a server that ranks a few.
const RESULTS: usize = 10;

/// Kind of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A store, or a record server in front of one.
    Store,
    /// The first results of a store with titles and passages.
    Ranked,
    /// All hits of a store that are read, with titles and passages.
    Long,
    /// The first results of a store with titles alone.
    Titles,
    /// All records with any word of the query, in the order of the file, with their whole text.
    Unranked,
    /// The same, those with more of the words first.
    Counted,
    /// As many records as of a long list, selected without regard to words, and the answers among the first five.
    Meaning,
}

/// A result as a server returns it.
struct ResultItem {
    address: RecordAddress,
    title: Option<String>,
    text: Option<String>,
}

/// The searches of a part.
pub(crate) struct Searches<'a> {
    part: &'a Part,
    questions: &'a [Question],
    /// Hits of the store for each question.
    hits: Vec<Vec<Hit>>,
}

impl<'a> Searches<'a> {
    /// Searches a store for all questions.
    pub(crate) fn run(runtime: &Runtime, part: &'a Part, questions: &'a [Question]) -> Self {
        let source = BoundSource::from(part.store.clone());
        let search = |question: &Question| {
            let query = SearchQuery::new(&question.query, STORE_HITS);
            runtime.block_on(source.search(&query)).unwrap().hits
        };
        Self { part, questions, hits: questions.iter().map(search).collect() }
    }

    /// Returns the hits of each question, in the order of the server or as an MCP source orders them, and whether the whole list
    /// has an answer.
    pub(crate) fn lists(&self, kind: Kind, is_ordered: bool) -> (Lists, Vec<bool>) {
        let (mut lists, mut has_answer) = (Lists::new(), Vec::new());
        for (question, hits) in self.questions.iter().zip(&self.hits) {
            let query = &question.query;
            let ranked = |count: usize, with_text: bool| {
                hits.iter().take(count).map(|hit| ranked(hit, with_text)).collect()
            };
            let mut items = match kind {
                Kind::Store | Kind::Long => ranked(STORE_HITS, true),
                Kind::Ranked => ranked(RESULTS, true),
                Kind::Titles => ranked(RESULTS, false),
                Kind::Unranked => self.selected(query, false),
                Kind::Counted => self.selected(query, true),
                Kind::Meaning => self.by_meaning(question),
            };
            has_answer.push(items.iter().any(|item| grade(question, &item.address) > 0));
            if is_ordered {
                items = order_by_words(query, items, listed_text);
            }
            items.truncate(READ_RESULTS);
            let made = if kind == Kind::Store { hits.clone() } else { listed(query, self.part, items) };
            lists.insert(query.clone(), made);
        }
        (lists, has_answer)
    }

    /// Returns the records with any of the query's words in their text, as parts of words, too.
    fn selected(&self, query: &str, is_counted: bool) -> Vec<ResultItem> {
        let query = query.to_lowercase();
        let words: HashSet<&str> = query.split_whitespace().collect();
        let count = |record: &PartRecord| words.iter().filter(|word| record.lower.contains(**word)).count();
        let counted = self.part.records.iter().map(|record| (count(record), record));
        let mut selected: Vec<(usize, &PartRecord)> = counted.filter(|(count, _)| *count > 0).collect();
        if is_counted {
            selected.sort_by_key(|(count, _)| Reverse(*count));
        }
        selected.into_iter().map(|(_, record)| whole(record)).collect()
    }

    fn by_meaning(&self, question: &Question) -> Vec<ResultItem> {
        let place = |record: &PartRecord| {
            let mut hasher = DefaultHasher::new();
            (&question.query, &record.key).hash(&mut hasher);
            let is_answer = grade(question, &address(record)) > 0;
            // Others are spread over all places.
            if is_answer { hasher.finish() % 5 } else { hasher.finish() % 1_000 }
        };
        let mut placed: Vec<(u64, &PartRecord)> =
            self.part.records.iter().map(|record| (place(record), record)).collect();
        placed.sort_by_key(|(place, _)| *place);
        placed.into_iter().take(STORE_HITS).map(|(_, record)| whole(record)).collect()
    }
}

fn ranked(hit: &Hit, with_text: bool) -> ResultItem {
    let HitId::Record(address) = &hit.id else { panic!("a store has addresses") };
    let text = with_text.then(|| hit.excerpt.text().to_owned());
    ResultItem { address: address.clone(), title: Some(hit.title.clone()), text }
}

fn whole(record: &PartRecord) -> ResultItem {
    ResultItem { address: address(record), title: record.title.clone(), text: Some(record.text.clone()) }
}

fn address(record: &PartRecord) -> RecordAddress {
    RecordAddress {
        connection: None,
        stream: record.stream.parse().unwrap(),
        record: record.key.parse().unwrap(),
    }
}

/// Returns the grade of a record, 0 if it does not answer the question. Records have the connection of their part.
pub(crate) fn grade(question: &Question, address: &RecordAddress) -> u8 {
    let relevant = question.relevant.iter().find(|relevant| {
        let answer = relevant.address.as_ref();
        answer.is_some_and(|answer| answer.stream == address.stream && answer.record == address.record)
    });
    relevant.map_or(0, |record| record.grade)
}

fn listed_text(item: &ResultItem) -> ListedText<'_> {
    ListedText { title: item.title.as_deref(), text: item.text.as_deref() }
}

/// Makes hits of results, as an MCP server's are made.
fn listed(query: &str, part: &Part, items: Vec<ResultItem>) -> Vec<Hit> {
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
