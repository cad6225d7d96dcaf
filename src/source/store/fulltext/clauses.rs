//! Builds the query of the index that selects candidates.
//!
//! The words are a flat list of clauses, because the index can skip low-scoring records only for those. Operators and
//! narrow scopes are required clauses beside that list.
//!
//! A word in camel case takes as many places of a record as it has parts. A phrase is therefore looked up in several
//! spellings: `github actions` and `GitHub Actions` find each other.

use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, Occur, PhraseQuery, Query, TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{Searcher, TantivyError, Term};

use super::expansion::Lookups;
use super::index::Fields;
use super::scope::Scope;
use super::terms::{Phrase, PhraseWord, QueryTerms};
use super::words::WordKind;

/// Weight of a word in the title beside its weight in the text.
const TITLE_BOOST: f32 = 0.6;

/// Maximum number of words of a query with a lookup of other forms in titles, too.
const MAX_WORDS_WITH_FORMS_IN_TITLES: usize = 4;

/// Maximum number of spellings of a phrase that are looked up.
const MAX_SPELLINGS: usize = 16;

/// Maximum length in bytes of a word that is looked up in camel case, too.
const MAX_SPLIT: usize = 32;

/// Minimum length in bytes of a part of a word in camel case.
const MIN_PART: usize = 2;

type Clause = (Occur, Box<dyn Query>);

/// Word of the index that a record can have, with the factor of its score.
#[derive(Debug, Clone)]
pub(super) struct WordClause {
    pub(super) term: Term,
    pub(super) boost: f32,
}

/// Selection of candidates.
#[derive(Debug)]
pub(super) enum CandidateQuery {
    /// Records with any of some words.
    AnyWord(Vec<WordClause>),
    /// Records that match a query of the index.
    Other(Box<dyn Query>),
}

/// Selection of records by everything except the words of the query.
#[derive(Debug)]
pub(super) struct Constraints<'a> {
    pub(super) searcher: &'a Searcher,
    pub(super) terms: &'a QueryTerms,
    /// Scope, if it is so narrow that it is a clause of the query.
    pub(super) scope: Option<&'a Scope>,
}

impl Fields {
    /// Returns the query for the records that have any of the words and pass the constraints. A query without words
    /// is for all records that pass them.
    pub(super) fn candidates(
        self,
        lookups: &Lookups,
        constraints: &Constraints<'_>,
    ) -> Result<CandidateQuery, TantivyError> {
        let words = self.word_clauses(lookups);
        let mut clauses = self.constraint_clauses(constraints)?;
        let any: Box<dyn Query> = match (constraints.terms.is_empty(), clauses.is_empty()) {
            (false, true) => return Ok(CandidateQuery::AnyWord(words)),
            (false, false) => any_word(words),
            (true, _) => Box::new(AllQuery),
        };
        clauses.insert(0, (Occur::Must, any));
        Ok(CandidateQuery::Other(Box::new(BooleanQuery::new(clauses))))
    }

    /// Returns the query for the records that pass the required parts of a query, whatever other words they have.
    pub(super) fn passing(
        self,
        searcher: &Searcher,
        terms: &QueryTerms,
    ) -> Result<Box<dyn Query>, TantivyError> {
        let clauses = self.constraint_clauses(&Constraints { searcher, terms, scope: None })?;
        Ok(if clauses.is_empty() { Box::new(AllQuery) } else { Box::new(BooleanQuery::new(clauses)) })
    }

    /// Returns the query for the records that have any of some phrases; `None` without phrases.
    pub(super) fn with_phrases(
        self,
        searcher: &Searcher,
        phrases: &[Phrase],
    ) -> Result<Option<Box<dyn Query>>, TantivyError> {
        let phrase = |phrase| phrase_query(searcher, self.text, phrase);
        let phrases: Vec<Box<dyn Query>> = phrases.iter().map(phrase).collect::<Result<_, _>>()?;
        Ok((!phrases.is_empty()).then(|| Box::new(BooleanQuery::union(phrases)) as Box<dyn Query>))
    }

    fn word_clauses(self, lookups: &Lookups) -> Vec<WordClause> {
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
                    clauses.push(WordClause { term, boost });
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

    fn constraint_clauses(self, constraints: &Constraints<'_>) -> Result<Vec<Clause>, TantivyError> {
        let Constraints { searcher, terms, scope } = constraints;
        let unscored = |query: Box<dyn Query>| Box::new(ConstScoreQuery::new(query, 0.0)) as Box<dyn Query>;
        let in_field = |field: Option<Field>| {
            let field = field.unwrap_or(self.text);
            move |word: &String| {
                let term = Term::from_field_text(field, word);
                (Occur::Must, unscored(Box::new(TermQuery::new(term, IndexRecordOption::Basic))))
            }
        };
        let mut clauses: Vec<Clause> = Vec::new();
        for phrase in &terms.required {
            clauses.push((Occur::Must, unscored(phrase_query(searcher, self.text, phrase)?)));
        }
        clauses.extend(terms.title.iter().map(in_field(self.title)));
        clauses.extend(terms.from.iter().map(in_field(self.from)));
        clauses.extend(scope.and_then(|scope| scope.query(self)).map(|place| (Occur::Must, place)));
        Ok(clauses)
    }
}

/// Returns the query for the records with any of some words.
fn any_word(words: Vec<WordClause>) -> Box<dyn Query> {
    let clause = |WordClause { term, boost }: WordClause| {
        let term = Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs));
        (Occur::Should, Box::new(BoostQuery::new(term, boost)) as Box<dyn Query>)
    };
    Box::new(BooleanQuery::new(words.into_iter().map(clause).collect()))
}

fn phrase_query(searcher: &Searcher, field: Field, phrase: &Phrase) -> Result<Box<dyn Query>, TantivyError> {
    let mut queries: Vec<Box<dyn Query>> = Vec::new();
    for spelling in spellings(searcher, field, phrase)? {
        let mut terms: Vec<(usize, Term)> =
            spelling.into_iter().map(|(at, text)| (at, Term::from_field_text(field, &text))).collect();
        queries.push(match (terms.pop(), terms.is_empty()) {
            (Some((_, only)), true) => Box::new(TermQuery::new(only, IndexRecordOption::Basic)),
            (last, _) => {
                terms.extend(last);
                Box::new(PhraseQuery::new_with_offset(terms))
            }
        });
    }
    Ok(match queries.pop() {
        Some(only) if queries.is_empty() => only,
        last => Box::new(BooleanQuery::union(queries.into_iter().chain(last).collect())),
    })
}

/// Words with the places that they take relative to the first word of a phrase.
type Spelling = Vec<(usize, String)>;

/// Returns the ways in which records can spell a phrase: each word plain or in camel case.
fn spellings(
    searcher: &Searcher,
    field: Field,
    Phrase(words): &Phrase,
) -> Result<Vec<Spelling>, TantivyError> {
    // Each spelling with the place of its next word.
    let mut spellings: Vec<(Spelling, usize)> = vec![(Vec::new(), 0)];
    for (number, word) in words.iter().enumerate() {
        let next = words.get(number + 1);
        let splits = match next {
            Some(_) if spellings.len() < MAX_SPELLINGS => camel_case_splits(searcher, field, word)?,
            _ => Vec::new(),
        };
        let plain_width = match next {
            Some(next) if word.parts.is_empty() => next.position - word.position,
            _ => 1,
        };
        let mut longer = Vec::new();
        for (spelling, at) in spellings {
            let with = |parts: &[String], width: usize| {
                let parts = parts.iter().enumerate().map(|(part, text)| (at + part, text.clone()));
                let whole = std::iter::once((at, word.text.clone()));
                (spelling.iter().cloned().chain(whole).chain(parts).collect(), at + width)
            };
            longer.push(with(&[], plain_width));
            longer.extend(splits.iter().map(|parts| with(parts, parts.len())));
        }
        longer.truncate(MAX_SPELLINGS);
        spellings = longer;
    }
    Ok(spellings.into_iter().map(|(spelling, _)| spelling).collect())
}

/// Returns the parts that a word may have in camel case: those that it has in the query, or else each two words of the
/// index that it consists of.
fn camel_case_splits(
    searcher: &Searcher,
    field: Field,
    word: &PhraseWord,
) -> Result<Vec<Vec<String>>, TantivyError> {
    if !word.parts.is_empty() {
        return Ok(vec![word.parts.clone()]);
    }
    let length = word.text.len();
    let is_word = word.kind == WordKind::Spaced && word.text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_word || !(2 * MIN_PART..=MAX_SPLIT).contains(&length) {
        return Ok(Vec::new());
    }
    let mut splits = Vec::new();
    for (first, second) in (MIN_PART..=length - MIN_PART).filter_map(|at| word.text.split_at_checked(at)) {
        let has = |part: &str| searcher.doc_freq(&Term::from_field_text(field, part));
        if has(first)? > 0 && has(second)? > 0 {
            splits.push(vec![first.to_owned(), second.to_owned()]);
        }
    }
    Ok(splits)
}
