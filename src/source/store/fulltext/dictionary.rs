//! The words of the index: a dictionary of each segment, each word looked up once in a search.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use tantivy::postings::TermInfo;
use tantivy::schema::Field;
use tantivy::{InvertedIndexReader, Searcher, TantivyError, Term};

/// Maximum number of dictionary entries of one segment that are examined for one word.
const MAX_SCANNED: usize = 20_000;

/// Where the postings of a word are, for each segment; `None` for a segment without the word.
pub(super) type TermInfos = Rc<[Option<TermInfo>]>;

/// Dictionaries of all segments of an index, for one search.
pub(super) struct Dictionary<'a> {
    pub(super) searcher: &'a Searcher,
    /// Field of all text.
    text: Field,
    segments: Vec<Arc<InvertedIndexReader>>,
    known: RefCell<HashMap<Term, TermInfos>>,
}

impl<'a> Dictionary<'a> {
    pub(super) fn new(searcher: &'a Searcher, text: Field) -> Result<Self, TantivyError> {
        let segments = searcher.segment_readers().iter().map(|segment| segment.inverted_index(text));
        let segments = segments.collect::<Result<_, _>>()?;
        Ok(Self { searcher, text, segments, known: RefCell::default() })
    }

    /// Returns where the postings of a word are.
    pub(super) fn infos(&self, term: &Term) -> Result<TermInfos, TantivyError> {
        if let Some(known) = self.known.borrow().get(term) {
            return Ok(Rc::clone(known));
        }
        let mut infos = Vec::with_capacity(self.segments.len());
        for (segment, text) in self.searcher.segment_readers().iter().zip(&self.segments) {
            infos.push(match term.field() == self.text {
                true => text.get_term_info(term)?,
                false => segment.inverted_index(term.field())?.get_term_info(term)?,
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

    /// Returns the words that begin with a text and are accepted, with the number of records of each.
    pub(super) fn beginning_with(
        &self,
        prefix: &str,
        accepts: impl Fn(&str) -> bool,
    ) -> Result<BTreeMap<String, u64>, TantivyError> {
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        // No byte of UTF-8 is as great as this one. Without an end, the rest of the dictionary would be read.
        let end = [prefix.as_bytes(), &[u8::MAX]].concat();
        for segment in &self.segments {
            let mut entries = segment.terms().range().ge(prefix).lt(&end).into_stream()?;
            let mut scanned = 0;
            while scanned < MAX_SCANNED && entries.advance() {
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
