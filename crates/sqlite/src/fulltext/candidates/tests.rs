//! Candidates beside those of complete searches.

use std::collections::HashSet;

use fetchwell_ranking::lexical::terms::{QueryTerms, Slot};
use fetchwell_source::SearchText;
use proptest::prelude::*;
use tantivy::collector::DocSetCollector;
use tantivy::query::{AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, Occur, TermQuery};
use tantivy::schema::{STRING, Schema, TEXT};
use tantivy::{Index, TantivyDocument, doc};

use super::*;

/// Makes an index of two segments. Word `n` is in about one record of two to the power of `n`.
fn index(seed: u64, records: u64) -> (Searcher, Field) {
    let mut schema = Schema::builder();
    let text = schema.add_text_field("text", TEXT);
    schema.add_text_field("other", STRING);
    let index = Index::create_in_ram(schema.build());
    let mut writer = index.writer_with_num_threads(1, 20_000_000).unwrap();
    let random = |record: u64, word: u64| {
        let mixed = (seed ^ (record << 8) ^ word).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (mixed ^ (mixed >> 29)).wrapping_mul(0x94D0_49BB_1331_11EB) >> 20
    };
    for record in 0..records {
        let mut document = TantivyDocument::new();
        for word in (0..12).filter(|word| random(record, *word) % (1 << word) == 0) {
            for _ in 0..=random(record, word + 100) % 3 {
                document.add_text(text, format!("w{word}"));
            }
        }
        // Records of the first segment are longer, so the averages of segments and index differ.
        let longest = if record <= records / 3 { 200 } else { 4 };
        document.add_text(text, "x ".repeat(usize::try_from(random(record, 99) % longest).unwrap()));
        writer.add_document(document).unwrap();
        if record == records / 3 {
            writer.commit().unwrap();
        }
    }
    writer.commit().unwrap();
    (index.reader().unwrap().searcher(), text)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn the_best_records_of_words_are_those_of_a_complete_search(
        seed in any::<u64>(),
        records in 1_u64..9_000,
        words in prop::collection::vec((0_u64..13, 0.1_f32..2.0), 1..9),
        count in 1_usize..300,
    ) {
        let (searcher, text) = index(seed, records);
        let clause = |(word, boost): &(u64, f32)| {
            WordClause { term: Term::from_field_text(text, &format!("w{word}")), boost: *boost }
        };
        let clauses: Vec<WordClause> = words.iter().map(clause).collect();
        let dictionary = Dictionary::new(&searcher, text).unwrap();
        let filter = CandidateFilter::default();
        let best = best_of_words(&dictionary, &clauses, &filter, count).unwrap();
        let query = |WordClause { term, boost }: &WordClause| {
            let term = Box::new(TermQuery::new(term.clone(), IndexRecordOption::WithFreqs));
            (Occur::Should, Box::new(BoostQuery::new(term, *boost)) as Box<dyn Query>)
        };
        let query = BooleanQuery::new(clauses.iter().map(query).collect());
        let weight = query.weight(EnableScoring::enabled_from_searcher(&searcher)).unwrap();
        let mut all = Vec::new();
        for (ordinal, segment) in (0..).zip(searcher.segment_readers()) {
            let mut add = |document, score| {
                all.push(Candidate { score, address: DocAddress::new(ordinal, document) });
            };
            weight.for_each(segment, &mut add).unwrap();
        }
        all.sort();
        prop_assert_eq!(best.len(), all.len().min(count));
        for (found, expected) in best.iter().zip(&all) {
            prop_assert!((found.score - expected.score).abs() < 1e-4, "{found:?} {expected:?}");
            let known = all.iter().find(|other| other.address == found.address);
            prop_assert!(known.is_some_and(|known| (known.score - found.score).abs() < 1e-4));
        }
        let more = best_of_words(&dictionary, &clauses, &filter, count * 2).unwrap();
        prop_assert_eq!(&best[..], &more[..best.len()]);
    }
}

/// Makes an index of two segments with short texts of few words.
fn index_of_texts(seed: u64, records: u64) -> (Searcher, Field) {
    let mut schema = Schema::builder();
    let text = schema.add_text_field("text", TEXT);
    let index = Index::create_in_ram(schema.build());
    let mut writer = index.writer_with_num_threads(1, 20_000_000).unwrap();
    for record in 0..records {
        let random = |place: u64| {
            let mixed = (seed ^ (record << 8) ^ place).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            (mixed ^ (mixed >> 29)).wrapping_mul(0x94D0_49BB_1331_11EB) >> 33
        };
        // Word `n` is twice as frequent as word `n + 1`.
        let word = |place| format!("w{}", (random(place) % 256 + 1).leading_zeros().min(62) - 55);
        let words: Vec<String> = (0..random(99) % 12).map(word).collect();
        writer.add_document(doc!(text => words.join(" "))).unwrap();
        if record == records / 3 {
            writer.commit().unwrap();
        }
    }
    writer.commit().unwrap();
    (index.reader().unwrap().searcher(), text)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_best_records_with_phrases_are_those_of_a_complete_search(
        seed in any::<u64>(),
        records in 1_u64..3_000,
        required in prop::collection::vec(prop::collection::vec(0_u8..8, 1..4), 0..3),
        excluded in prop::collection::vec(prop::collection::vec(0_u8..8, 1..3), 0..2),
        count in 1_usize..60,
    ) {
        let (searcher, text) = index_of_texts(seed, records);
        let texts = |phrases: &[Vec<u8>]| -> Vec<String> {
            let text = |words: &Vec<u8>| words.iter().map(|word| format!("w{word} ")).collect();
            phrases.iter().map(text).collect()
        };
        let search = SearchText {
            words: "w1 w5".to_owned(),
            phrases: texts(&required),
            excluded: texts(&excluded),
            ..SearchText::default()
        };
        let terms = QueryTerms::new(&search);
        let (required, excluded) = (
            PhraseTerms::of_all(&searcher, text, &terms.required).unwrap(),
            PhraseTerms::of_all(&searcher, text, &terms.excluded).unwrap(),
        );
        let clause = |slot: &Slot| {
            WordClause { term: Term::from_field_text(text, &slot.text), boost: 1.0 }
        };
        let clauses: Vec<WordClause> = terms.slots.iter().map(clause).collect();
        let any = clauses.iter().map(|word| {
            let term = TermQuery::new(word.term.clone(), IndexRecordOption::WithFreqs);
            (Occur::Should, Box::new(term) as Box<dyn Query>)
        });
        let any = Box::new(BooleanQuery::new(any.collect())) as Box<dyn Query>;
        let of_phrase = |phrase: &PhraseTerms| Box::new(ConstScoreQuery::new(phrase.query(), 0.0));
        let must = required.iter().map(|phrase| (Occur::Must, of_phrase(phrase) as Box<dyn Query>));
        let complete = BooleanQuery::new(std::iter::once((Occur::Must, any)).chain(must).collect());
        let without: HashSet<DocAddress> = excluded
            .iter()
            .flat_map(|phrase| searcher.search(&*phrase.query(), &DocSetCollector).unwrap())
            .collect();
        let weight = complete.weight(EnableScoring::enabled_from_searcher(&searcher)).unwrap();
        let mut expected = Vec::new();
        for (ordinal, segment) in (0..).zip(searcher.segment_readers()) {
            let mut add = |document, score| {
                let address = DocAddress::new(ordinal, document);
                expected.extend((!without.contains(&address)).then_some(Candidate { score, address }));
            };
            weight.for_each(segment, &mut add).unwrap();
        }
        expected.sort();
        let dictionary = Dictionary::new(&searcher, text).unwrap();
        let filter = CandidateFilter { required, excluded, ..CandidateFilter::default() };
        let best = best_of_words(&dictionary, &clauses, &filter, count).unwrap();
        prop_assert_eq!(best.len(), expected.len().min(count));
        for (found, expected) in best.iter().zip(&expected) {
            prop_assert!((found.score - expected.score).abs() < 1e-4, "{found:?} {expected:?}");
        }
        // The newest ones are read in another order, from a query without scores.
        let newest = newest_candidates(&searcher, &AllQuery, &filter, 10_000).unwrap();
        let expected: HashSet<DocAddress> = expected.iter().map(|found| found.address).collect();
        let with_phrases = newest.iter().filter(|found| expected.contains(&found.address)).count();
        prop_assert_eq!(with_phrases, expected.len());
        prop_assert!(newest.iter().all(|found| !without.contains(&found.address)));
    }
}
