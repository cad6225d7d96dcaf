//! Questions of words: rare words, topics with a mistake, topics with a date or an author.

use super::corpus::Corpus;
use super::draft::Draft;
use super::words::{inflections, words};
use crate::evaluation::random::Random;

/// Maximum number of records with a rare word.
const RARE: usize = 2;

/// Minimum number of characters of a rare word, and of a word of an unanswerable question.
const MIN_WORD_CHARS: usize = 5;

/// Minimum number of characters of a word of which only the beginning is asked for.
const MIN_LONG_CHARS: usize = 9;

/// Minimum number of records of a topic that a date or an author narrows down.
const MIN_SHARED: usize = 4;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Asks for a rare word.
pub(super) fn exact_word(corpus: &Corpus, number: usize, random: &mut Random) -> Option<Draft> {
    let mut rare = corpus.distinct_words(number);
    rare.retain(|word| corpus.with(*word).len() <= RARE && is_plain(corpus.word(*word), MIN_WORD_CHARS));
    let word = *random.choose(&rare)?;
    Some(Draft { query: corpus.word(word).to_owned(), relevant: corpus.with(word).to_vec() })
}

/// Asks for two words of a topic, one of them misspelt.
pub(super) fn misspelt(corpus: &Corpus, number: usize, random: &mut Random) -> Option<Draft> {
    let topic = corpus.topic(number, 2, 2, random)?;
    let right = corpus.word(*random.choose(&topic)?);
    if !is_plain(right, MIN_WORD_CHARS) {
        return None;
    }
    let wrong = misspell(right, random)?;
    let query = corpus.text(&topic).replacen(right, &wrong, 1);
    corpus.number(&wrong).is_none().then(|| Draft { query, relevant: corpus.with_all(&topic) })
}

/// Returns a word with one mistake after its first letter: two letters swapped, or one lost, doubled or replaced.
fn misspell(word: &str, random: &mut Random) -> Option<String> {
    let at = 1 + random.below(word.len().checked_sub(2)?);
    let (before, rest) = word.split_at_checked(at)?;
    let mut letters = rest.chars();
    let (letter, kind) = (letters.next()?, random.below(4));
    let after = letters.as_str();
    Some(match kind {
        0 => {
            let next = letters.next()?;
            format!("{before}{next}{letter}{}", letters.as_str())
        }
        1 => format!("{before}{after}"),
        2 => format!("{before}{letter}{letter}{after}"),
        _ => format!("{before}{}{after}", random.choose(&['e', 't', 'a', 'o', 'i', 'n', 's', 'r'])?),
    })
}

/// Asks for two words of a topic, one of them in a form that the record does not have.
pub(super) fn inflected(corpus: &Corpus, number: usize, random: &mut Random) -> Option<Draft> {
    let topic = corpus.topic(number, 2, 2, random)?;
    let right = *random.choose(&topic)?;
    let mut forms: Vec<usize> =
        inflections(corpus.word(right)).iter().filter_map(|form| corpus.number(form)).collect();
    forms.retain(|form| corpus.with(*form).binary_search(&number).is_err());
    let form = *random.choose(&forms)?;
    let query: Vec<usize> = topic.iter().map(|word| if *word == right { form } else { *word }).collect();
    // Records that have the words as they are in the question would be better answers.
    corpus
        .with_all(&query)
        .is_empty()
        .then(|| Draft { query: corpus.text(&query), relevant: corpus.with_all(&topic) })
}

/// Asks for three words of a topic, and one that no record has with any of them.
pub(super) fn absent(corpus: &Corpus, number: usize, random: &mut Random) -> Option<Draft> {
    let mut query = corpus.topic(number, 3, 2, random)?;
    let relevant = corpus.with_all(&query);
    let other = corpus.random_word(random);
    let is_usual =
        is_plain(corpus.word(other), MIN_WORD_CHARS) && (2..=100).contains(&corpus.with(other).len());
    if !is_usual || query.iter().any(|word| !corpus.with_all(&[*word, other]).is_empty()) {
        return None;
    }
    query.insert(random.below(4), other);
    Some(Draft { query: corpus.text(&query), relevant })
}

/// Asks for the beginning of a word and a word of the topic.
pub(super) fn beginning(corpus: &Corpus, number: usize, random: &mut Random) -> Option<Draft> {
    let topic = *corpus.topic(number, 1, 2, random)?.first()?;
    let mut long = corpus.distinct_words(number);
    long.retain(|word| *word != topic && is_plain(corpus.word(*word), MIN_LONG_CHARS));
    let word = corpus.word(*random.choose(&long)?);
    let start = word.get(..MIN_WORD_CHARS + random.below(word.len().checked_sub(MIN_WORD_CHARS + 2)?))?;
    if corpus.number(start).is_some() {
        return None;
    }
    let mut relevant = corpus.with_beginning(start);
    relevant.retain(|each| corpus.with(topic).binary_search(each).is_ok());
    Some(Draft { query: format!("{start} {}", corpus.word(topic)), relevant })
}

/// Asks for a topic with a day or month, if the topic alone does not suffice.
pub(super) fn topic_and_date(corpus: &Corpus, number: usize, random: &mut Random) -> Option<Draft> {
    let day = corpus.records.get(number)?.record.day.as_deref()?;
    let topic = corpus.topic(number, 1 + random.below(2), MIN_SHARED, random)?;
    let (month, length) = (day.get(..7)?, if random.below(3) == 0 { 10 } else { 7 });
    let name = MONTHS.get(month.get(5..)?.parse::<usize>().ok()?.checked_sub(1)?)?;
    let date = match (length, random.below(2)) {
        (10, _) => day.to_owned(),
        (_, 0) => month.to_owned(),
        _ => format!("{name} {}", month.get(..4)?),
    };
    let start = day.get(..length)?;
    let is_then = |each: &usize| {
        let record = corpus.records.get(*each);
        record.and_then(|record| record.record.day.as_ref()).is_some_and(|day| day.starts_with(start))
    };
    narrowed(corpus, &topic, &date, is_then)
}

/// Asks for a topic with its author, if the topic alone does not suffice.
pub(super) fn author_and_topic(corpus: &Corpus, number: usize, random: &mut Random) -> Option<Draft> {
    let author = corpus.records.get(number)?.record.author.as_ref()?;
    let topic = corpus.topic(number, 1 + random.below(2), MIN_SHARED, random)?;
    let names: Vec<&str> = words(author).collect();
    let last = names.last().filter(|name| name.chars().count() >= MIN_WORD_CHARS);
    let asked = match last {
        Some(last) if random.below(2) == 0 => (*last).to_owned(),
        _ => names.join(" "),
    };
    let is_by = |each: &usize| {
        corpus.records.get(*each).is_some_and(|record| record.record.author.as_ref() == Some(author))
    };
    (!asked.is_empty()).then(|| narrowed(corpus, &topic, &asked, is_by)).flatten()
}

/// Asks for a topic with a text that narrows it down to some of its records.
fn narrowed(
    corpus: &Corpus,
    topic: &[usize],
    text: &str,
    is_meant: impl Fn(&usize) -> bool,
) -> Option<Draft> {
    let about = corpus.with_all(topic);
    let relevant: Vec<usize> = about.iter().copied().filter(is_meant).collect();
    let query = format!("{} {text}", corpus.text(topic));
    (relevant.len() < about.len()).then_some(Draft { query, relevant })
}

/// Asks for three words of which no record has two.
pub(super) fn unanswerable(corpus: &Corpus, _number: usize, random: &mut Random) -> Option<Draft> {
    let chosen = [(); 3].map(|()| corpus.random_word(random));
    let is_usual = |word: &usize| {
        is_plain(corpus.word(*word), MIN_WORD_CHARS) && (1..=50).contains(&corpus.with(*word).len())
    };
    let [one, two, three] = chosen;
    let is_apart =
        [[one, two], [two, three], [one, three]].iter().all(|pair| corpus.with_all(pair).is_empty());
    (chosen.iter().all(is_usual) && is_apart)
        .then(|| Draft { query: corpus.text(&chosen), relevant: Vec::new() })
}

/// Returns true for a word of at least so many letters, all ASCII.
fn is_plain(word: &str, min_len: usize) -> bool {
    word.len() >= min_len && word.bytes().all(|byte| byte.is_ascii_lowercase())
}
