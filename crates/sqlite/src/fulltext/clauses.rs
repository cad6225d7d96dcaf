//! Builds the query of the index that selects candidates.
//!
//! The words are a flat list of clauses, because the index can skip low-scoring records only for those. Operators and
//! narrow scopes are required clauses beside that list.

use fetchwell_ranking::lexical::expansion::{Lookup, Lookups};
use fetchwell_ranking::lexical::terms::{Phrase, PhraseWord, QueryTerms};
use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, Occur, PhraseQuery, Query, TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{Searcher, TantivyError, Term};

use super::dictionary::Dictionary;
use super::index::Fields;
use super::phrase::PhraseTerms;
use super::scope::Scope;

/// Weight of a word in the title beside its weight in the text.
const TITLE_BOOST: f32 = 0.6;

/// Maximum number of records with the rarest word of a unit that is looked up as a whole.
const MAX_UNIT_RECORDS: u64 = 20_000;

/// Maximum number of records with each word by which records of a time are selected, apart from the rarest word.
const MAX_RARE_RECORDS: u64 = 50_000;

/// Maximum number of words of a query with a lookup of other forms in titles, too.
const MAX_WORDS_WITH_FORMS_IN_TITLES: usize = 4;

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
    /// False if the required phrases are no clauses, because they are checked on candidates.
    pub(super) with_phrases: bool,
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
        let any: Box<dyn Query> = if constraints.terms.is_empty() {
            Box::new(AllQuery)
        } else if clauses.is_empty() && lookups.sequences.is_empty() {
            return Ok(CandidateQuery::AnyWord(words));
        } else {
            any_word(words, self.sequence_clauses(lookups))
        };
        clauses.insert(0, (Occur::Must, any));
        Ok(CandidateQuery::Other(Box::new(BooleanQuery::new(clauses))))
    }

    /// Returns the query for all records that pass the constraints.
    pub(super) fn all_passing(self, constraints: &Constraints<'_>) -> Result<Box<dyn Query>, TantivyError> {
        let clauses = self.constraint_clauses(constraints)?;
        Ok(if clauses.is_empty() { Box::new(AllQuery) } else { Box::new(BooleanQuery::new(clauses)) })
    }

    /// Returns the query for the records that have a word that the query is about and pass the constraints: the rarest words.
    pub(super) fn with_rare_words(
        self,
        lookups: &Lookups,
        constraints: &Constraints<'_>,
    ) -> Result<CandidateQuery, TantivyError> {
        let mut rare = lookups.clone();
        let frequency =
            |word: &Lookup| word.alternatives.iter().map(|each| each.frequency).max().unwrap_or(0);
        let matter = || lookups.words.iter().filter(|word| word.is_matter() && !word.alternatives.is_empty());
        let rarest = matter().map(frequency).min().unwrap_or(0);
        rare.words.retain(|word| word.is_matter() && frequency(word) <= rarest.max(MAX_RARE_RECORDS));
        // They belong to words by number.
        rare.sequences.clear();
        self.candidates(&rare, constraints)
    }

    /// Returns the query for the records that have a unit of the query as a whole and pass the constraints, or `None` if no
    /// unit has a word that is rare enough to look for it.
    pub(super) fn whole_units(
        self,
        dictionary: &Dictionary<'_>,
        constraints: &Constraints<'_>,
    ) -> Result<Option<Box<dyn Query>>, TantivyError> {
        let mut phrases: Vec<Box<dyn Query>> = Vec::new();
        for Phrase(words) in &constraints.terms.units {
            let term = |word: &PhraseWord| (word.position, Term::from_field_text(self.text, &word.text));
            let terms: Vec<(usize, Term)> = words.iter().map(term).collect();
            let mut rarest = u64::MAX;
            for (_, term) in &terms {
                rarest = rarest.min(dictionary.frequency(term)?);
            }
            if (1..=MAX_UNIT_RECORDS).contains(&rarest) {
                phrases.push(Box::new(PhraseQuery::new_with_offset(terms)));
            }
        }
        if phrases.is_empty() {
            return Ok(None);
        }
        let mut clauses = self.constraint_clauses(constraints)?;
        clauses.insert(0, (Occur::Must, Box::new(BooleanQuery::union(phrases))));
        Ok(Some(Box::new(BooleanQuery::new(clauses))))
    }

    /// Returns the query for the records that pass the required parts of a query, whatever other words they have.
    pub(super) fn passing(
        self,
        searcher: &Searcher,
        terms: &QueryTerms,
    ) -> Result<Box<dyn Query>, TantivyError> {
        self.all_passing(&Constraints { searcher, terms, scope: None, with_phrases: true })
    }

    fn word_clauses(self, lookups: &Lookups) -> Vec<WordClause> {
        let matter = lookups.words.iter().filter(|word| word.is_matter() && word.is_word()).count();
        let is_short = matter <= MAX_WORDS_WITH_FORMS_IN_TITLES;
        let mut clauses = Vec::new();
        for lookup in lookups.words.iter().filter(|lookup| lookup.selects()) {
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

    /// Returns the clauses for records that have a sequence which stands for a word.
    #[expect(clippy::cast_precision_loss, reason = "a few words")]
    fn sequence_clauses(self, lookups: &Lookups) -> Vec<Clause> {
        let clauses = lookups.sequences.iter().filter_map(|sequence| {
            let weight = lookups.words.get(sequence.slot)?.weight * sequence.quality;
            let terms = sequence.words.iter().map(|word| Term::from_field_text(self.text, word));
            let phrase = PhraseQuery::new_with_offset(terms.enumerate().collect());
            // The index adds up the rarities of the words.
            let rarity = lookups.rarity(sequence.frequency) * sequence.words.len() as f32;
            let boosted = BoostQuery::new(Box::new(phrase), weight / rarity.max(f32::MIN_POSITIVE));
            Some((Occur::Should, Box::new(boosted) as Box<dyn Query>))
        });
        clauses.collect()
    }

    fn constraint_clauses(self, constraints: &Constraints<'_>) -> Result<Vec<Clause>, TantivyError> {
        let Constraints { searcher, terms, scope, .. } = constraints;
        let unscored = |query: Box<dyn Query>| Box::new(ConstScoreQuery::new(query, 0.0)) as Box<dyn Query>;
        let in_field = |field: Option<Field>| {
            let field = field.unwrap_or(self.text);
            move |word: &String| {
                let term = Term::from_field_text(field, word);
                (Occur::Must, unscored(Box::new(TermQuery::new(term, IndexRecordOption::Basic))))
            }
        };
        let mut clauses: Vec<Clause> = Vec::new();
        if constraints.with_phrases {
            let phrases = PhraseTerms::of_all(searcher, self.text, &terms.required)?;
            clauses.extend(phrases.iter().map(|phrase| (Occur::Must, unscored(phrase.query()))));
        }
        clauses.extend(terms.title.iter().map(in_field(self.title)));
        clauses.extend(terms.from.iter().map(in_field(self.from)));
        clauses.extend(terms.filename.iter().map(in_field(Some(self.text))));
        clauses.extend(scope.and_then(|scope| scope.query(self)).map(|place| (Occur::Must, place)));
        Ok(clauses)
    }
}

/// Returns the query for the records with any of some words or sequences.
fn any_word(words: Vec<WordClause>, sequences: Vec<Clause>) -> Box<dyn Query> {
    let clause = |WordClause { term, boost }: WordClause| {
        let term = Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs));
        (Occur::Should, Box::new(BoostQuery::new(term, boost)) as Box<dyn Query>)
    };
    Box::new(BooleanQuery::new(words.into_iter().map(clause).chain(sequences).collect()))
}
