//! Builds the query of the index that selects candidates.
//!
//! The words are a flat list of clauses, because the index can skip low-scoring records only for those. Operators and
//! narrow scopes are required clauses beside that list.

use tantivy::Term;
use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, Occur, PhraseQuery, Query, TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};

use super::expansion::Lookups;
use super::index::Fields;
use super::scope::Scope;
use super::terms::{Phrase, QueryTerms};

/// Weight of a word in the title beside its weight in the text.
const TITLE_BOOST: f32 = 0.6;

/// Maximum number of words of a query whose other forms are looked up in titles too.
const MAX_WORDS_WITH_FORMS_IN_TITLES: usize = 4;

type Clause = (Occur, Box<dyn Query>);

/// Selection of records by everything except the words of the query.
#[derive(Debug)]
pub(super) struct Constraints<'a> {
    pub(super) terms: &'a QueryTerms,
    /// Scope, if it is so narrow that it is a clause of the query.
    pub(super) scope: Option<&'a Scope>,
}

impl Fields {
    /// Returns the query for the records that have any of the words and pass the constraints. A query without words
    /// is for all records that pass them.
    pub(super) fn candidates(self, lookups: &Lookups, constraints: &Constraints<'_>) -> Box<dyn Query> {
        let words: Box<dyn Query> = match constraints.terms.is_empty() {
            true => Box::new(AllQuery),
            false => Box::new(BooleanQuery::new(self.word_clauses(lookups))),
        };
        let mut clauses = self.constraint_clauses(constraints);
        if clauses.is_empty() {
            return words;
        }
        clauses.insert(0, (Occur::Must, words));
        Box::new(BooleanQuery::new(clauses))
    }

    /// Returns the query for the records that pass the required parts of a query, whatever other words they have.
    pub(super) fn passing(self, terms: &QueryTerms) -> Box<dyn Query> {
        let clauses = self.constraint_clauses(&Constraints { terms, scope: None });
        if clauses.is_empty() { Box::new(AllQuery) } else { Box::new(BooleanQuery::new(clauses)) }
    }

    /// Returns the query for the records that have any of some phrases; `None` without phrases.
    pub(super) fn with_phrases(self, phrases: &[Phrase]) -> Option<Box<dyn Query>> {
        let phrases = phrases.iter().map(|phrase| (Occur::Should, phrase_query(self.text, phrase)));
        let phrases: Vec<Clause> = phrases.collect();
        (!phrases.is_empty()).then(|| Box::new(BooleanQuery::new(phrases)) as Box<dyn Query>)
    }

    fn word_clauses(self, lookups: &Lookups) -> Vec<Clause> {
        let is_short = lookups.words.len() <= MAX_WORDS_WITH_FORMS_IN_TITLES;
        let mut clauses = Vec::new();
        for lookup in &lookups.words {
            for alternative in &lookup.alternatives {
                let rarity = lookups.rarity(alternative.frequency);
                if rarity <= 0.0 {
                    continue;
                }
                // Another form counts at most as much as the word of the query, however rare it is.
                let boost = alternative.quality * lookup.weight.min(rarity) / rarity;
                let mut clause = |field: Field, boost: f32| {
                    let term = Term::from_field_text(field, &alternative.text);
                    let term = Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs));
                    clauses.push((Occur::Should, Box::new(BoostQuery::new(term, boost)) as Box<dyn Query>));
                };
                clause(self.text, boost);
                if let Some(title) = self.title
                    && (is_short || alternative.quality >= 1.0)
                {
                    clause(title, boost * TITLE_BOOST);
                }
            }
        }
        clauses
    }

    fn constraint_clauses(self, Constraints { terms, scope }: &Constraints<'_>) -> Vec<Clause> {
        let unscored = |query: Box<dyn Query>| Box::new(ConstScoreQuery::new(query, 0.0)) as Box<dyn Query>;
        let in_field = |field: Option<Field>| {
            let field = field.unwrap_or(self.text);
            move |word: &String| {
                let term = Term::from_field_text(field, word);
                (Occur::Must, unscored(Box::new(TermQuery::new(term, IndexRecordOption::Basic))))
            }
        };
        let required = terms.required.iter();
        let mut clauses: Vec<Clause> =
            required.map(|phrase| (Occur::Must, unscored(phrase_query(self.text, phrase)))).collect();
        clauses.extend(terms.title.iter().map(in_field(self.title)));
        clauses.extend(terms.from.iter().map(in_field(self.from)));
        clauses.extend(scope.and_then(|scope| scope.query(self)).map(|place| (Occur::Must, place)));
        clauses
    }
}

fn phrase_query(field: Field, Phrase(terms): &Phrase) -> Box<dyn Query> {
    let term = |(at, text): &(usize, String)| (*at, Term::from_field_text(field, text));
    match terms.as_slice() {
        [only] => Box::new(TermQuery::new(term(only).1, IndexRecordOption::Basic)),
        terms => Box::new(PhraseQuery::new_with_offset(terms.iter().map(term).collect())),
    }
}
