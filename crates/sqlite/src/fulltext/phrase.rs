//! Finds the records of a segment that have a phrase.
//!
//! A record is first looked up in the lists of its words, and its positions are read only if it has all of them. The records
//! that a search asks for are few, because most are too far behind the best ones, so most positions are never read.

use fetchwell_ranking::lexical::spelling::spellings;
use fetchwell_ranking::lexical::terms::Phrase;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::query::{BooleanQuery, PhraseQuery, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet, Searcher, SegmentReader, TERMINATED, TantivyError, Term};

/// Words of a phrase, in each spelling that a record can have of it.
#[derive(Debug, Clone)]
pub(super) struct PhraseTerms {
    field: Field,
    /// Words with their positions relative to the first one.
    spellings: Vec<Vec<(usize, Term)>>,
}

impl PhraseTerms {
    /// Looks up the spellings of a phrase in an index.
    pub(super) fn new(searcher: &Searcher, field: Field, phrase: &Phrase) -> Result<Self, TantivyError> {
        let has_word =
            |word: &str| Ok::<_, TantivyError>(searcher.doc_freq(&Term::from_field_text(field, word))? > 0);
        let term = |(at, text): (usize, String)| (at, Term::from_field_text(field, &text));
        let spellings = spellings(phrase, &has_word)?;
        let spellings = spellings.into_iter().map(|spelling| spelling.into_iter().map(term).collect());
        Ok(Self { field, spellings: spellings.collect() })
    }

    /// Looks up the spellings of some phrases.
    pub(super) fn of_all(
        searcher: &Searcher,
        field: Field,
        phrases: &[Phrase],
    ) -> Result<Vec<Self>, TantivyError> {
        phrases.iter().map(|phrase| Self::new(searcher, field, phrase)).collect()
    }

    /// Returns the query for the records that have the phrase.
    pub(super) fn query(&self) -> Box<dyn Query> {
        let query = |terms: &Vec<(usize, Term)>| match terms.as_slice() {
            [(_, only)] => Box::new(TermQuery::new(only.clone(), IndexRecordOption::Basic)) as Box<dyn Query>,
            _ => Box::new(PhraseQuery::new_with_offset(terms.clone())),
        };
        let mut queries: Vec<Box<dyn Query>> = self.spellings.iter().map(query).collect();
        match queries.pop() {
            Some(only) if queries.is_empty() => only,
            last => Box::new(BooleanQuery::union(queries.into_iter().chain(last).collect())),
        }
    }

    /// Opens the lists of the words in a segment.
    pub(super) fn open(&self, segment: &SegmentReader) -> Result<PhraseReader, TantivyError> {
        let index = segment.inverted_index(self.field)?;
        let mut readers = Vec::with_capacity(self.spellings.len());
        for spelling in &self.spellings {
            let last = spelling.iter().map(|(at, _)| *at).max().unwrap_or_default();
            let option = if spelling.len() == 1 {
                IndexRecordOption::Basic
            } else {
                IndexRecordOption::WithFreqsAndPositions
            };
            let mut words = Vec::with_capacity(spelling.len());
            for (at, term) in spelling {
                // Positions are compared after they are moved to that of the last word.
                let offset = u32::try_from(last - at).unwrap_or(u32::MAX);
                words.extend(
                    index.read_postings(term, option)?.map(|postings| WordReader { postings, offset }),
                );
            }
            if words.len() == spelling.len() {
                words.sort_by_key(|word| word.postings.size_hint());
                readers.push(SpellingReader { words });
            }
        }
        Ok(PhraseReader { spellings: readers, positions: Vec::new(), others: Vec::new() })
    }
}

/// Records of a segment that have a phrase. Records are asked for in ascending order.
pub(super) struct PhraseReader {
    spellings: Vec<SpellingReader>,
    /// Positions at which the phrase can end in a record, and those of one more word.
    positions: Vec<u32>,
    others: Vec<u32>,
}

struct SpellingReader {
    /// Words, the rarest first.
    words: Vec<WordReader>,
}

struct WordReader {
    postings: SegmentPostings,
    offset: u32,
}

impl PhraseReader {
    /// Returns the maximum number of records that can have the phrase.
    pub(super) fn max_count(&self) -> u64 {
        let rarest = |spelling: &SpellingReader| spelling.words.first().map(|word| word.postings.size_hint());
        self.spellings.iter().filter_map(rarest).map(u64::from).sum()
    }

    /// Returns the first record from `document` on that has all words of a spelling, or [`TERMINATED`].
    pub(super) fn seek(&mut self, document: DocId) -> DocId {
        let found = self.spellings.iter_mut().map(|spelling| spelling.seek(document));
        found.min().unwrap_or(TERMINATED)
    }

    /// Returns true if a record has the phrase.
    pub(super) fn has(&mut self, document: DocId) -> bool {
        let Self { spellings, positions, others } = self;
        spellings
            .iter_mut()
            .any(|spelling| spelling.seek(document) == document && spelling.is_in_order(positions, others))
    }
}

impl SpellingReader {
    /// Moves all words to the first record from `document` on that has all of them.
    fn seek(&mut self, document: DocId) -> DocId {
        let Some((rarest, others)) = self.words.split_first_mut() else { return TERMINATED };
        let mut found = rarest.seek(document);
        while found != TERMINATED {
            let beyond = others.iter_mut().map(|word| word.seek(found)).find(|next| *next != found);
            match beyond {
                None => break,
                Some(next) => found = rarest.seek(next),
            }
        }
        found
    }

    /// Returns true if the words follow each other in the record that all are at.
    fn is_in_order(&mut self, positions: &mut Vec<u32>, others: &mut Vec<u32>) -> bool {
        let Some((rarest, rest)) = self.words.split_first_mut() else { return false };
        if rest.is_empty() {
            return true;
        }
        rarest.postings.positions_with_offset(rarest.offset, positions);
        for word in rest {
            word.postings.positions_with_offset(word.offset, others);
            let mut next = others.iter().copied().peekable();
            positions.retain(|position| {
                while next.next_if(|other| other < position).is_some() {}
                next.peek() == Some(position)
            });
            if positions.is_empty() {
                return false;
            }
        }
        true
    }
}

impl WordReader {
    /// Moves to the first record from `document` on. It may be there already.
    fn seek(&mut self, document: DocId) -> DocId {
        let at = self.postings.doc();
        if at >= document { at } else { self.postings.seek(document) }
    }
}
