//! The words of the index: a dictionary of each segment, each word looked up once in a search.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use tantivy::postings::TermInfo;
use tantivy::schema::Field;
use tantivy::{InvertedIndexReader, Searcher, TantivyError, Term};

use super::index::{TermFilter, warm_up};
use super::known_terms::term_info;

/// Maximum number of dictionary entries of one segment that are examined for one word.
const MAX_SCANNED: usize = 20_000;

/// Number of lookups from which on filters of the words of all segments are made.
const MANY_LOOKUPS: usize = 50;

/// Places of the postings of a word, one for each segment; `None` for a segment without the word.
pub(super) type TermInfos = Rc<[Option<TermInfo>]>;

/// Dictionaries of all segments of an index, for one search.
pub(super) struct Dictionary<'a> {
    pub(super) searcher: &'a Searcher,
    /// Field of all text.
    text: Field,
    segments: Vec<SegmentWords>,
    known: RefCell<HashMap<Term, TermInfos>>,
}

/// Words of all text of a segment.
struct SegmentWords {
    index: Arc<InvertedIndexReader>,
    /// Filter of the words if there is one.
    filter: RefCell<Option<Arc<TermFilter>>>,
}

impl SegmentWords {
    fn may_contain(&self, term: &Term) -> bool {
        self.filter.borrow().as_ref().is_none_or(|filter| filter.may_contain(term.serialized_value_bytes()))
    }
}

impl<'a> Dictionary<'a> {
    pub(super) fn new(searcher: &'a Searcher, text: Field) -> Result<Self, TantivyError> {
        warm_up(searcher, text);
        let segments = searcher.segment_readers().iter().map(|segment| {
            let filter = RefCell::new(TermFilter::known(segment.segment_id(), text));
            Ok(SegmentWords { index: segment.inverted_index(text)?, filter })
        });
        let segments = segments.collect::<Result<_, TantivyError>>()?;
        Ok(Self { searcher, text, segments, known: RefCell::default() })
    }

    /// Returns where the postings of a word are.
    pub(super) fn infos(&self, term: &Term) -> Result<TermInfos, TantivyError> {
        if let Some(known) = self.known.borrow().get(term) {
            return Ok(Rc::clone(known));
        }
        let mut infos = Vec::with_capacity(self.segments.len());
        for (segment, words) in self.searcher.segment_readers().iter().zip(&self.segments) {
            infos.push(if term.field() != self.text {
                term_info(segment.segment_id(), term, &*segment.inverted_index(term.field())?)?
            } else if words.may_contain(term) {
                term_info(segment.segment_id(), term, &words.index)?
            } else {
                None
            });
        }
        let infos: TermInfos = infos.into();
        self.known.borrow_mut().insert(term.clone(), Rc::clone(&infos));
        Ok(infos)
    }

    /// Returns the number of records that have a word.
    pub(super) fn frequency(&self, term: &Term) -> Result<u64, TantivyError> {
        Ok(self.infos(term)?.iter().flatten().map(|info| u64::from(info.doc_freq)).sum())
    }

    /// Makes many lookups of words of the text fast of which few are in the index.
    pub(super) fn prepare_lookups(&self, count: usize) -> Result<(), TantivyError> {
        if count < MANY_LOOKUPS {
            return Ok(());
        }
        for (segment, words) in self.searcher.segment_readers().iter().zip(&self.segments) {
            if words.filter.borrow().is_none() {
                let made = TermFilter::get_or_make(segment.segment_id(), self.text, words.index.terms())?;
                *words.filter.borrow_mut() = made;
            }
        }
        Ok(())
    }

    /// Returns the words that begin with a text and are accepted, with the number of records of each.
    pub(super) fn beginning_with(
        &self,
        prefix: &str,
        accepts: impl Fn(&str) -> bool,
    ) -> Result<BTreeMap<String, u64>, TantivyError> {
        self.first_beginning_with(prefix, MAX_SCANNED, accepts)
    }

    /// Returns the same of the first `max` entries of each segment that begin with the text.
    pub(super) fn first_beginning_with(
        &self,
        prefix: &str,
        max: usize,
        accepts: impl Fn(&str) -> bool,
    ) -> Result<BTreeMap<String, u64>, TantivyError> {
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        // No byte of UTF-8 is as great as this one. Without an end, the rest of the dictionary would be read.
        let end = [prefix.as_bytes(), &[u8::MAX]].concat();
        for segment in &self.segments {
            let mut entries = segment.index.terms().range().ge(prefix).lt(&end).into_stream()?;
            let mut scanned = 0;
            while scanned < max && entries.advance() {
                scanned += 1;
                if let Ok(word) = std::str::from_utf8(entries.key())
                    && accepts(word)
                {
                    let frequency = u64::from(entries.value().doc_freq);
                    match found.get_mut(word) {
                        Some(known) => *known += frequency,
                        None => drop(found.insert(word.to_owned(), frequency)),
                    }
                }
            }
        }
        Ok(found)
    }
}
