//! The words of requests in seven languages.
//!
//! A file of `words/` has a section on each line, `name: words`. Words are folded as those of queries. A word can be in the
//! lists of several languages, with another class in each.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::record_kind::RecordKind;

/// Languages with their lists. The first one needs no further evidence in a query.
const LISTS: [(Language, &str); 7] = [
    (Language::English, include_str!("words/english.txt")),
    (Language::German, include_str!("words/german.txt")),
    (Language::French, include_str!("words/french.txt")),
    (Language::Spanish, include_str!("words/spanish.txt")),
    (Language::Italian, include_str!("words/italian.txt")),
    (Language::Portuguese, include_str!("words/portuguese.txt")),
    (Language::Dutch, include_str!("words/dutch.txt")),
];

/// Language of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Language {
    English,
    German,
    French,
    Spanish,
    Italian,
    Portuguese,
    Dutch,
}

/// Class of a word in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordClass {
    /// Article, pronoun, preposition, auxiliary.
    Function,
    /// Preposition or adverb that leads to the matter of a request, such as `about`.
    About,
    /// Question word, such as `which`.
    Question,
    /// Verb of asking, telling or remembering.
    Asking,
    /// Noun that stands for any record, such as `thing`.
    Thing,
    /// Noun for records of a kind.
    Noun(RecordKind),
}

/// Classes of a word, by language.
type Classes = Vec<(Language, WordClass)>;

/// Returns the classes of a folded word; none for a word that is in no list.
pub(crate) fn classes_of(word: &str) -> &'static [(Language, WordClass)] {
    static WORDS: OnceLock<HashMap<&'static str, Classes>> = OnceLock::new();
    WORDS.get_or_init(read_lists).get(word).map_or(&[], Vec::as_slice)
}

/// Returns the number of different words of a query that are in the lists of a language.
pub(crate) fn words_of_language<'a>(words: impl Iterator<Item = &'a str>, language: Language) -> usize {
    let mut found: Vec<&str> =
        words.filter(|word| classes_of(word).iter().any(|(known, _)| *known == language)).collect();
    found.sort_unstable();
    found.dedup();
    found.len()
}

fn read_lists() -> HashMap<&'static str, Classes> {
    let mut words: HashMap<&'static str, Classes> = HashMap::new();
    for (language, list) in LISTS {
        for line in list.lines() {
            let Some((section, listed)) = line.split_once(':') else { continue };
            let Some(class) = class_of_section(section) else { continue };
            for word in listed.split_whitespace() {
                let classes = words.entry(word).or_default();
                // The last section of a word is the most specific one.
                classes.retain(|(known, _)| *known != language);
                classes.push((language, class));
            }
        }
    }
    words
}

/// Returns the class of a section; `None` for a comment.
fn class_of_section(section: &str) -> Option<WordClass> {
    Some(match section {
        "function" => WordClass::Function,
        "question" => WordClass::Question,
        "about" => WordClass::About,
        "asking" => WordClass::Asking,
        "thing" => WordClass::Thing,
        kind => WordClass::Noun(RecordKind::parse(kind)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexical::words::words;

    #[test]
    fn listed_words_are_folded_words_of_known_sections() {
        for (language, list) in LISTS {
            let lines = list.lines().filter(|line| !line.starts_with('#'));
            for line in lines {
                let (section, listed) = line.split_once(": ").unwrap();
                assert!(class_of_section(section).is_some(), "{language:?} {section}");
                for word in listed.split(' ') {
                    let folded: Vec<String> = words(word).map(|each| each.folded(word)).collect();
                    assert_eq!(folded, [word], "{language:?} {section}");
                }
            }
            for kind in
                ["function", "question", "about", "asking", "thing", "mail", "note", "event", "contact"]
            {
                let has_section = list.lines().any(|line| line.starts_with(&format!("{kind}: ")));
                assert!(has_section, "{language:?} has no {kind}");
            }
        }
    }
}
