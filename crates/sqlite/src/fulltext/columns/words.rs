//! The records of a segment that have the words of a list.

use fetchwell_ranking::lexical::spelling::Spelling;
use fetchwell_ranking::lexical::word_filter::{FilterSpellings, WordFilter, WordList};
use tantivy::query::{BooleanQuery, EnableScoring, Occur, PhraseQuery, Query, TermQuery, Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet, SegmentReader, TERMINATED, TantivyError, Term};

use super::super::dictionary::Dictionary;
use super::super::index::Snapshot;

/// Selection of the records of a snapshot by the words of a list.
pub(super) struct WordSelection {
    /// Query of the index; `None` if no record has all words.
    weight: Option<Box<dyn Weight>>,
}

impl std::fmt::Debug for WordSelection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WordSelection").finish_non_exhaustive()
    }
}

impl WordSelection {
    /// Looks up the words in the dictionary of a snapshot.
    pub(super) fn new(snapshot: &Snapshot, words: &WordFilter) -> Result<Self, TantivyError> {
        let text = snapshot.fields.text;
        let dictionary = Dictionary::new(&snapshot.searcher, text)?;
        let FilterSpellings { required, excluded } =
            words.spellings_in(&DictionaryWords { dictionary: &dictionary, text })?;
        let mut clauses = Vec::new();
        for spellings in &required {
            let Some(query) = any(text, spellings) else { return Ok(Self { weight: None }) };
            clauses.push((Occur::Must, query));
        }
        let excluded = excluded.iter().filter_map(|spellings| any(text, spellings));
        clauses.extend(excluded.map(|query| (Occur::MustNot, query)));
        let scoring = EnableScoring::disabled_from_searcher(&snapshot.searcher);
        Ok(Self { weight: Some(BooleanQuery::new(clauses).weight(scoring)?) })
    }

    /// Returns the numbers of the records of a segment, ascending. Deleted ones may be among them.
    pub(super) fn docs(&self, segment: &SegmentReader) -> Result<Vec<u32>, TantivyError> {
        let Some(weight) = &self.weight else { return Ok(Vec::new()) };
        let (mut scorer, mut docs) = (weight.scorer(segment, 1.0)?, Vec::new());
        while scorer.doc() != TERMINATED {
            docs.push(scorer.doc());
            scorer.advance();
        }
        Ok(docs)
    }
}

/// Returns the query for records with any of some spellings; `None` without spellings.
fn any(text: Field, spellings: &[Spelling]) -> Option<Box<dyn Query>> {
    let query = |spelling: &Spelling| -> Option<Box<dyn Query>> {
        let terms = spelling.iter().map(|(at, word)| (*at, Term::from_field_text(text, word)));
        let terms: Vec<(usize, Term)> = terms.collect();
        match terms.as_slice() {
            [] => None,
            [(_, only)] => Some(Box::new(TermQuery::new(only.clone(), IndexRecordOption::Basic))),
            _ => Some(Box::new(PhraseQuery::new_with_offset(terms))),
        }
    };
    let queries: Vec<Box<dyn Query>> = spellings.iter().filter_map(query).collect();
    (!queries.is_empty()).then(|| Box::new(BooleanQuery::union(queries)) as Box<dyn Query>)
}

/// Words of a snapshot.
struct DictionaryWords<'a> {
    dictionary: &'a Dictionary<'a>,
    text: Field,
}

impl WordList for DictionaryWords<'_> {
    type Error = TantivyError;

    fn has_word(&self, word: &str) -> Result<bool, TantivyError> {
        Ok(self.dictionary.frequency(&Term::from_field_text(self.text, word))? > 0)
    }

    fn beginning_with(
        &self,
        prefix: &str,
        accepts: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<String>, TantivyError> {
        // Without one of the forms, records would be missing.
        let found = self.dictionary.first_beginning_with(prefix, usize::MAX, accepts)?;
        Ok(found.into_keys().collect())
    }
}
