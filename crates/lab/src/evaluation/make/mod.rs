//! Makes labelled questions from records: words, phrases and names of a record are asked for as people do, with
//! mistakes, other forms of a word, its beginning, or a date.
//!
//! The same records and seed give the same questions. A question that several records answer equally has all of them as
//! relevant; it is dropped if they are more than `MAX_RELEVANT`.
//!
//! * `corpus`: the records with an inverted index
//! * `draft`: a question with the records that answer it
//! * `words`: words of a text, and which of them carry meaning
//! * `topics`, `phrases`, `names`, `scripts`: the kinds of questions

mod corpus;
mod draft;
mod names;
mod phrases;
mod scripts;
mod topics;
mod words;

use std::collections::BTreeSet;

use serde::Serialize;

use self::corpus::Corpus;
pub use self::corpus::TextRecord;
use self::draft::Draft;
use super::random::Random;

/// Maximum number of records that answer a question.
const MAX_RELEVANT: usize = 3;

/// Maximum number of times that questions of a kind are made from each record.
const MAX_PASSES: usize = 3;

/// Maximum number of tries for a kind.
const MAX_TRIES: usize = 12_000;

/// A labelled question, as a line of a file has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LabelledQuestion {
    id: String,
    /// Kind of the question.
    pub kind: &'static str,
    pub(crate) query: String,
    pub(crate) relevant: Vec<String>,
}

/// A kind of questions with the function that makes one from a record, or none.
type Kind = (&'static str, fn(&Corpus, usize, &mut Random) -> Option<Draft>);

/// Kinds of questions in the order in which they are made.
const KINDS: [Kind; 14] = [
    ("exact_word", topics::exact_word),
    ("phrase", phrases::phrase),
    ("quoted", phrases::quoted),
    ("misspelt", topics::misspelt),
    ("inflected", topics::inflected),
    ("absent", topics::absent),
    ("identifier", names::identifier),
    ("camel_part", names::camel_part),
    ("beginning", topics::beginning),
    ("topic_and_date", topics::topic_and_date),
    ("author_and_topic", topics::author_and_topic),
    ("title", phrases::title),
    ("accents_left_out", scripts::accents_left_out),
    ("cjk", scripts::cjk),
];

/// The kind of questions that no record answers.
const UNANSWERABLE: Kind = ("unanswerable", topics::unanswerable);

/// Makes at most `per_kind` questions of each kind.
pub fn make_questions(records: Vec<TextRecord>, per_kind: usize, seed: u64) -> Vec<LabelledQuestion> {
    let corpus = Corpus::new(records);
    let (mut questions, mut queries) = (Vec::new(), BTreeSet::new());
    for (kind, make) in KINDS.into_iter().chain([UNANSWERABLE]) {
        let mut random =
            Random::new(kind.bytes().fold(seed, |seed, byte| seed.wrapping_mul(257) ^ u64::from(byte)));
        let mut count = 0;
        for number in corpus.shuffled(MAX_PASSES, MAX_TRIES, &mut random) {
            if count == per_kind {
                break;
            }
            let Some(Draft { query, relevant }) = make(&corpus, number, &mut random) else { continue };
            let is_answerable = (1..=MAX_RELEVANT).contains(&relevant.len());
            if is_answerable == (kind == UNANSWERABLE.0) || !queries.insert(query.clone()) {
                continue;
            }
            count += 1;
            let mut relevant: Vec<String> = relevant.into_iter().filter_map(|each| corpus.id(each)).collect();
            relevant.sort_unstable();
            questions.push(LabelledQuestion { id: format!("{kind}-{count:03}"), kind, query, relevant });
        }
    }
    questions
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records with a topic, a verb and a date each; no two have the same topic and verb.
    fn records() -> Vec<TextRecord> {
        let topics = [
            "migration",
            "invoice",
            "kitchen",
            "orchestra",
            "telescope",
            "warehouse",
            "harbour",
            "library",
            "vineyard",
            "glacier",
        ];
        let verbs = [
            "repaired",
            "delivered",
            "measured",
            "painted",
            "returned",
            "inspected",
            "abandoned",
            "photographed",
            "described",
            "surrounded",
            "decorated",
            "protected",
        ];
        let record = |at: usize| {
            let (topic, verb) = (topics[at % 10], verbs[at / 10]);
            let letters: String =
                format!("{at:03}").bytes().map(|digit| char::from(digit - b'0' + b'a')).collect();
            let character = char::from_u32(0x4E00 + u32::try_from(at).unwrap()).unwrap();
            let body = format!(
                "The {topic} was {verb} near Montréal and 東京{character}庁舎 before the end of parseConfigFile in \
                 src/part_{at}/main.rs, and the committee wrote zebra{letters} into its book afterwards.",
            );
            let title = format!("Notes {at} on the {topic} that was {verb}");
            TextRecord {
                id: format!("c/notes:n{at:03}"),
                title: Some(title.clone()),
                texts: vec![title, body],
                author: Some(format!("{} Example", ["Ann", "Bob", "Cyd"][at % 3])),
                day: Some(format!("2026-{:02}-{:02}", 1 + at % 12, 1 + at % 28)),
            }
        };
        (0..120).map(record).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_questions() {
        let mut reversed = records();
        reversed.reverse();
        assert_eq!(make_questions(records(), 5, 1), make_questions(reversed, 5, 1));
        assert_ne!(make_questions(records(), 5, 1), make_questions(records(), 5, 2));
    }

    #[test]
    fn questions_of_most_kinds_are_made() {
        let questions = make_questions(records(), 5, 1);
        let kinds: BTreeSet<&str> = questions.iter().map(|question| question.kind).collect();
        for kind in ["exact_word", "phrase", "identifier", "beginning", "topic_and_date", "title", "cjk"] {
            assert!(kinds.contains(kind), "{kind} is not among {kinds:?}");
        }
        let queries: BTreeSet<&String> = questions.iter().map(|question| &question.query).collect();
        assert_eq!(queries.len(), questions.len());
        for question in &questions {
            let expected = if question.kind == "unanswerable" { 0..=0 } else { 1..=MAX_RELEVANT };
            assert!(expected.contains(&question.relevant.len()), "{question:?}");
        }
    }

    #[test]
    fn no_records_give_no_questions() {
        assert_eq!(make_questions(Vec::new(), 5, 1), Vec::new());
    }
}
