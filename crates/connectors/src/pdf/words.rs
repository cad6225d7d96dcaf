//! Words that are divided at the end of a line.

use std::collections::HashSet;

/// First parts of compounds that are written with a hyphen.
const KEPT_PARTS: [&str; 3] = ["self", "well", "half"];

/// Joins words that a hyphen divides at the end of a line, so that a search finds them. Soft hyphens are left out.
///
/// A compound keeps its hyphen if the text has it within a line, too, or if its first part tells (`well-known`,
/// `COVID-related`, `state-of-the`) and the text does not have the joined word.
pub(super) fn join_divided_words(text: &str) -> String {
    let text = text.replace("\u{AD}\n", "-\n").replace('\u{AD}', "").replace("\u{2010}\n", "-\n");
    if !text.contains("-\n") {
        return text;
    }
    let is_separator = |character: char| !character.is_alphanumeric() && character != '-';
    let words: HashSet<&str> = text.split(is_separator).collect();
    let mut joined = String::with_capacity(text.len());
    let mut lines = text.split('\n').peekable();
    while let Some(line) = lines.next() {
        joined.push_str(line);
        let Some(next) = lines.peek() else { break };
        match divided_word(line, next).map(|(first, rest)| (first, keeps_hyphen(first, rest, &words))) {
            None => joined.push('\n'),
            Some((_, true)) => {}
            Some((_, false)) => {
                joined.pop();
            }
        }
    }
    joined
}

/// Returns the parts of a word that begins on a line and ends on the next one.
fn divided_word<'a>(line: &'a str, next: &'a str) -> Option<(&'a str, &'a str)> {
    let before = line.strip_suffix('-')?;
    let start = before.rfind(|character: char| !character.is_alphabetic() && character != '-').unwrap_or(0);
    let first = before.get(start..)?.trim_start_matches(|character: char| !character.is_alphabetic());
    let end = next.find(|character: char| !character.is_alphanumeric()).unwrap_or(next.len());
    let rest = next.get(..end)?;
    let is_word = first.ends_with(char::is_alphabetic) && rest.starts_with(char::is_lowercase);
    is_word.then_some((first, rest))
}

fn keeps_hyphen(first: &str, rest: &str, words: &HashSet<&str>) -> bool {
    let (compound, joined) = (format!("{first}-{rest}"), format!("{first}{rest}"));
    if words.contains(compound.as_str()) {
        return true;
    }
    let is_abbreviation = first.chars().count() > 1 && first.chars().all(char::is_uppercase);
    let is_kept =
        KEPT_PARTS.contains(&first.to_lowercase().as_str()) || first.contains('-') || is_abbreviation;
    is_kept && !words.contains(joined.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divided_words_are_joined() {
        for (text, expect) in [
            ("a divi-\nded word", "a divided word"),
            ("a divi\u{AD}\nded wo\u{AD}rd", "a divided word"),
            ("Donau\u{2010}\ndampf", "Donaudampf"),
            ("a well-\nknown word", "a well-known word"),
            ("an anti-\nhero. anti-hero", "an anti-hero. anti-hero"),
            ("a self-\nish selfish", "a selfish selfish"),
            ("COVID-\nrelated", "COVID-related"),
            ("state-of-\nthe-art", "state-of-the-art"),
            ("Jean-\nPierre", "Jean-\nPierre"),
            ("2019-\n2020 and a -\nb", "2019-\n2020 and a -\nb"),
            ("(in-\n\nter", "(in-\n\nter"),
            ("one-\ntwo-\nthree", "onetwothree"),
            ("no-\n", "no-\n"),
            ("-\n-\n", "-\n-\n"),
        ] {
            assert_eq!(join_divided_words(text), expect);
        }
    }

    #[test]
    fn long_texts_take_linear_time() {
        for shape in ["a-\n", "ab-", "-\n", "a\n"] {
            crate::measured::assert_linear(50_000, &|count| {
                assert!(!join_divided_words(&shape.repeat(count)).is_empty(), "{shape}");
            });
        }
    }
}
