//! Times relative to today, such as `yesterday`, `last week`, `in March` and `3 days ago`.

use std::collections::HashMap;
use std::sync::OnceLock;

use jiff::civil::{Date, Weekday};
use jiff::{Span as Duration, ToSpan};

use super::calendar::{FoundDate, Span};
use super::months::month;
use super::tokens::{ARTICLES, Token};
use crate::lexical::understanding::word_lists::{Language, words_of_language};

/// French for yesterday, and German and Dutch for here.
const HIER: &str = "hier";

/// Greatest number of days, weeks, months or years.
const MAX_COUNT: i16 = 999;

/// Languages of the words before and behind the names of months.
const MONTH_MARKERS: [(&str, &[&str]); 16] = [
    ("in", &["en", "it", "nl"]),
    ("during", &["en"]),
    ("this", &["en"]),
    ("last", &["en"]),
    ("past", &["en"]),
    ("im", &["de"]),
    ("letzten", &["de"]),
    ("en", &["fr", "es"]),
    ("dernier", &["fr"]),
    ("pasado", &["es"]),
    ("a", &["it"]),
    ("nel", &["it"]),
    ("scorso", &["it"]),
    ("em", &["pt"]),
    ("passado", &["pt"]),
    ("vorige", &["nl"]),
];

/// Meaning of a phrase, by its name in `relative.txt`.
type Meaning = &'static str;

/// Phrase with its meaning.
type Phrase = (Vec<&'static str>, Meaning);

/// Unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Day,
    Week,
    Month,
    Year,
}

/// Values of the placeholders of a phrase.
#[derive(Debug, Clone, Copy, Default)]
struct Values {
    number: i16,
    unit: Option<Unit>,
    month: Option<i16>,
    weekday: Option<Weekday>,
}

/// Reads the time at the beginning of some tokens of a text.
pub(super) fn date_at(tokens: &[Token<'_>], text: &[Token<'_>], today: Date) -> Option<FoundDate> {
    let first = tokens.first()?.folded.as_str();
    let mut best: Option<(usize, Span)> = None;
    for (words, meaning) in phrases_with(first) {
        let longest = best.map_or(0, |(length, _)| length);
        if words.len() <= longest || (words[..] == [HIER] && !is_french(text)) {
            continue;
        }
        if let Some(values) = values(words, tokens)
            && let Some(span) = span(meaning, values, today)
        {
            best = Some((words.len(), span));
        }
    }
    best.map(|(length, span)| FoundDate { length, spans: vec![span] })
}

/// Returns the number of tokens of the weekday at the beginning of some, with its marker and the article behind it; 0 without
/// a weekday.
pub(super) fn weekday_length(tokens: &[Token<'_>]) -> usize {
    let Some(first) = tokens.first() else { return 0 };
    let is_there = |(words, meaning): &&Phrase| *meaning == "last-weekday" && values(words, tokens).is_some();
    let marked = phrases_with(&first.folded).find(is_there).map_or(0, |(words, _)| words.len());
    let length = marked.max(usize::from(weekday(&first.folded).is_some()));
    let has_article = tokens.get(length).is_some_and(|token| ARTICLES.contains(&token.folded.as_str()));
    if length == 0 { 0 } else { length + usize::from(has_article) }
}

/// Returns true for a unit of time.
pub(super) fn is_unit(token: &Token<'_>) -> bool {
    unit(&token.folded).is_some()
}

/// Returns true if a text has more words of requests in French than in languages with the same word.
fn is_french(text: &[Token<'_>]) -> bool {
    let words = || text.iter().map(|token| token.folded.as_str()).filter(|word| *word != HIER);
    let count = |language| words_of_language(words(), language);
    count(Language::French) > count(Language::German).max(count(Language::Dutch))
}

/// Returns the phrases that can begin with a word: those that do, and those that begin with a placeholder.
fn phrases_with(first: &str) -> impl Iterator<Item = &'static Phrase> {
    static PHRASES: OnceLock<HashMap<&'static str, Vec<Phrase>>> = OnceLock::new();
    let phrases = PHRASES.get_or_init(read_phrases);
    let placeholders = ["(number)", "(month)", "(weekday)"];
    let keys = std::iter::once(first).chain(placeholders);
    let found: Vec<&'static Phrase> = keys.filter_map(|key| phrases.get(key)).flatten().collect();
    found.into_iter()
}

fn read_phrases() -> HashMap<&'static str, Vec<Phrase>> {
    let mut phrases: HashMap<&'static str, Vec<Phrase>> = HashMap::new();
    for line in include_str!("relative.txt").lines().filter(|line| !line.starts_with('#')) {
        let Some((meaning, listed)) = line.split_once(": ") else { continue };
        for phrase in listed.split(" | ") {
            let words: Vec<&'static str> = phrase.split(' ').collect();
            if let Some(first) = words.first().copied() {
                phrases.entry(first).or_default().push((words, meaning));
            }
        }
    }
    phrases
}

/// Returns the values of the placeholders of a phrase at the beginning of some tokens; `None` if it is not there.
fn values(words: &[&str], tokens: &[Token<'_>]) -> Option<Values> {
    let mut values = Values::default();
    let tokens = tokens.get(..words.len())?;
    for (word, token) in words.iter().zip(tokens) {
        let folded = token.folded.as_str();
        match *word {
            "(number)" => values.number = token.number(1..=3).or_else(|| number_word(folded))?,
            "(unit)" => values.unit = Some(unit(folded)?),
            "(weekday)" => values.weekday = Some(weekday(folded)?),
            "(month)" => {
                let name = month(folded).filter(|name| !name.is_short)?;
                let has_marker =
                    |(marker, languages): &(&str, &[&str])| words.contains(marker) && name.is_of(languages);
                values.month = Some(name.number).filter(|_| MONTH_MARKERS.iter().any(has_marker));
                values.month?;
            }
            word if word == folded => {}
            _ => return None,
        }
    }
    Some(values)
}

/// Returns the days that a phrase means.
fn span(meaning: Meaning, values: Values, today: Date) -> Option<Span> {
    let back = |duration: Duration| today.checked_sub(duration).ok();
    match meaning {
        "today" => Some(Span::day(today)),
        "yesterday" => Some(Span::day(back(1.day())?)),
        "before-yesterday" => Some(Span::day(back(2.days())?)),
        "tomorrow" => Some(Span::day(today.tomorrow().ok()?)),
        "this-week" => Span::week(today),
        "last-week" => Span::week(back(1.week())?),
        "this-month" => month_of(today),
        "last-month" => month_of(today.first_of_month().yesterday().ok()?),
        "this-year" => Span::year(today.year()),
        "last-year" => Span::year(today.year() - 1),
        "this-quarter" => Span::quarter(today.year(), quarter_of(today)),
        "last-quarter" => match quarter_of(today) {
            1 => Span::quarter(today.year() - 1, 4),
            quarter => Span::quarter(today.year(), quarter - 1),
        },
        "in-month" | "last-month-of" => {
            let number = values.month?;
            // The last such month: this one counts for `in`.
            let is_past = number < i16::from(today.month())
                || (meaning == "in-month" && number == i16::from(today.month()));
            Span::month(today.year() - i16::from(!is_past), number)
        }
        "last-weekday" => {
            let weekday = values.weekday?;
            let days = match today.weekday().since(weekday) {
                0 => 7,
                days => days,
            };
            Some(Span::day(back(i64::from(days).days())?))
        }
        "ago" => ago(values, today),
        "last-units" => Span::days(back(values.duration()?)?, today),
        _ => None,
    }
}

/// Returns the day, week, month or year so long ago.
fn ago(values: Values, today: Date) -> Option<Span> {
    let then = today.checked_sub(values.duration()?).ok()?;
    match values.unit? {
        Unit::Day => Some(Span::day(then)),
        Unit::Week => Span::week(then),
        Unit::Month => month_of(then),
        Unit::Year => Span::year(then.year()),
    }
}

impl Values {
    fn duration(self) -> Option<Duration> {
        let count = i64::from(self.number);
        if !(1..=i64::from(MAX_COUNT)).contains(&count) {
            return None;
        }
        match self.unit? {
            Unit::Day => Duration::new().try_days(count).ok(),
            Unit::Week => Duration::new().try_weeks(count).ok(),
            Unit::Month => Duration::new().try_months(count).ok(),
            Unit::Year => Duration::new().try_years(count).ok(),
        }
    }
}

fn month_of(day: Date) -> Option<Span> {
    Span::month(day.year(), i16::from(day.month()))
}

fn quarter_of(day: Date) -> i16 {
    (i16::from(day.month()) - 1) / 3 + 1
}

/// Returns the name in `units.txt` that a folded word has.
fn named(folded: &str) -> Option<&'static str> {
    static NAMES: OnceLock<HashMap<&'static str, &'static str>> = OnceLock::new();
    let read = || {
        let lines = include_str!("units.txt").lines().filter_map(|line| line.split_once(": "));
        lines.flat_map(|(name, words)| words.split(' ').map(move |word| (word, name))).collect()
    };
    NAMES.get_or_init(read).get(folded).copied()
}

fn unit(folded: &str) -> Option<Unit> {
    // French has the same word for a year as English for one.
    if folded == "an" {
        return Some(Unit::Year);
    }
    Some(match named(folded)? {
        "day" => Unit::Day,
        "week" => Unit::Week,
        "month" => Unit::Month,
        "year" => Unit::Year,
        _ => return None,
    })
}

fn number_word(folded: &str) -> Option<i16> {
    Some(match named(folded)? {
        "one" => 1,
        "two" => 2,
        "three" => 3,
        "four" => 4,
        "five" => 5,
        _ => return None,
    })
}

fn weekday(folded: &str) -> Option<Weekday> {
    Some(match named(folded)? {
        "monday" => Weekday::Monday,
        "tuesday" => Weekday::Tuesday,
        "wednesday" => Weekday::Wednesday,
        "thursday" => Weekday::Thursday,
        "friday" => Weekday::Friday,
        "saturday" => Weekday::Saturday,
        "sunday" => Weekday::Sunday,
        _ => return None,
    })
}
