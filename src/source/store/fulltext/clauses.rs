//! Builds index queries from phrases and a scope.
//!
//! Queries are flat lists of clauses, because the index can skip low-scoring documents only for those. A title
//! therefore weighs more by being indexed several times (`super::index`) and not by a clause of its own, which made
//! queries of common words five times slower.

use tantivy::Term;
use tantivy::query::{BooleanQuery, ConstScoreQuery, Occur, PhraseQuery, Query, TermQuery};
use tantivy::schema::IndexRecordOption;

use super::index::{Fields, row_term};
use super::scope::Scope;
use super::terms::Phrase;

/// Match requirement for the phrases of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Every phrase must match.
    All,
    /// At least one phrase must match; more matches rank higher.
    Any,
}

impl Fields {
    /// Returns a query for the records of a scope that contain the phrases, ranked by BM25.
    pub(super) fn query(self, phrases: &[Phrase], mode: Mode, scope: &Scope) -> Box<dyn Query> {
        let required = match mode {
            Mode::All => Occur::Must,
            Mode::Any => Occur::Should,
        };
        let words: Vec<_> = phrases.iter().map(|phrase| (required, self.phrase(phrase))).collect();
        match (self.place(scope), mode) {
            (None, _) => Box::new(BooleanQuery::new(words)),
            (Some(place), Mode::All) => {
                let mut clauses = words;
                clauses.push((Occur::Must, place));
                Box::new(BooleanQuery::new(clauses))
            }
            (Some(place), Mode::Any) => {
                let words: Box<dyn Query> = Box::new(BooleanQuery::new(words));
                Box::new(BooleanQuery::new(vec![(Occur::Must, words), (Occur::Must, place)]))
            }
        }
    }

    fn phrase(self, Phrase(terms): &Phrase) -> Box<dyn Query> {
        let term = |(at, text): &(usize, String)| (*at, Term::from_field_text(self.text, text));
        match terms.as_slice() {
            [only] => Box::new(TermQuery::new(term(only).1, IndexRecordOption::WithFreqs)),
            terms => Box::new(PhraseQuery::new_with_offset(terms.iter().map(term).collect())),
        }
    }

    /// Returns a query for the records of a scope. It does not affect the ranking: one term adds the same to every
    /// score, and a set of terms has the constant score 0.
    fn place(self, scope: &Scope) -> Option<Box<dyn Query>> {
        let (field, rows) = match scope {
            Scope::Everything => return None,
            Scope::Connection(row) => (self.connection, std::slice::from_ref(row)),
            Scope::Streams(rows) => (self.stream, rows.as_slice()),
        };
        let row = |row: &i64| -> Box<dyn Query> {
            Box::new(TermQuery::new(Term::from_field_u64(field, row_term(*row)), IndexRecordOption::Basic))
        };
        Some(match rows {
            [only] => row(only),
            several => {
                let rows = several.iter().map(|each| (Occur::Should, row(each))).collect();
                Box::new(ConstScoreQuery::new(Box::new(BooleanQuery::new(rows)), 0.0))
            }
        })
    }
}
