//! The reasons for the places of hits: the rank that the server gave them, and the words in what it shows of them.

use fetchwell_core::record::{Coverage, Hit, ListedPlace, RecordData};
use fetchwell_ranking::lexical::foreign::ForeignTerms;
use fetchwell_source::SearchQuery;

use super::any_words::shown_text;

/// Name of the shown passage among the fields of an explanation.
const EXCERPT: &str = "excerpt";

/// Notes the ranks of hits in an answer of the server.
pub(super) fn note_ranks(hits: &mut [Hit]) {
    for (rank, hit) in (1..).zip(hits) {
        let list = ListedPlace { rank, ..ListedPlace::default() };
        hit.explanation.get_or_insert_default().list = Some(list);
    }
}

/// Adds the words of the query in the title and passage of each hit, and the coverage by which it is placed.
pub(super) fn explain_words(hits: &mut [Hit], query: &SearchQuery) {
    let shown: Vec<RecordData> = hits.iter().map(shown_text).collect();
    let terms = ForeignTerms::new(&query.text, shown.iter());
    for (hit, shown) in hits.iter_mut().zip(&shown) {
        let explanation = hit.explanation.get_or_insert_default();
        explanation.words = terms.explained_words(shown);
        let forms = explanation.words.iter_mut().flat_map(|word| &mut word.matches);
        for field in forms.flat_map(|form| &mut form.fields).filter(|field| field.as_str() == "text") {
            EXCERPT.clone_into(field);
        }
        if let Some(list) = &mut explanation.list {
            list.coverage_percent = hit.coverage.map(Coverage::percent);
        }
    }
}
