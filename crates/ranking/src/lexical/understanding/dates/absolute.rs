//! Dates with a day, month, quarter or year.

use jiff::ToSpan;
use jiff::civil::Date;

use super::calendar::{FoundDate, Span};
use super::clock::is_behind_time;
use super::months::{MonthName, month, month_of_year};
use super::relative::is_unit;
use super::tokens::{ARTICLES, Token, number};

/// First year of a year that stands alone, and the number of years after this one that can.
const MIN_LONE_YEAR: i16 = 1950;
const LONE_YEARS_AHEAD: i16 = 2;

/// Number of days within which a day of this year that is to come is meant, too.
const DAYS_AHEAD: i32 = 31;

/// Words before a number that is no year or month.
const BEFORE_NUMBERS: [&str; 30] = [
    "version",
    "v",
    "part",
    "chapter",
    "section",
    "release",
    "no",
    "nr",
    "number",
    "rfc",
    "issue",
    "ticket",
    "room",
    "page",
    "port",
    "build",
    "line",
    "id",
    "order",
    "invoice",
    "teil",
    "kapitel",
    "seite",
    "nummer",
    "zimmer",
    "partie",
    "capitulo",
    "capitolo",
    "hoofdstuk",
    "iso",
];

/// Words between the parts of a date.
const BETWEEN: [&str; 5] = ["of", "de", "del", "do", "van"];

/// Words between the first and last day of some.
const TO: [&str; 14] =
    ["to", "until", "till", "through", "and", "-", "–", "—", "bis", "au", "al", "a", "ate", "tot"];

/// Maximum number of tokens of a day in numbers, as in `5 / 3 / 2025`.
const MAX_NUMERIC_TOKENS: usize = 5;

/// Reads the date at the beginning of some tokens. `before` is the token before them.
pub(super) fn date_at(tokens: &[Token<'_>], before: Option<&Token<'_>>, today: Date) -> Option<FoundDate> {
    let first = tokens.first()?;
    if let Some(spans) = numeric_day(&first.folded) {
        return Some(FoundDate { length: 1, spans });
    }
    if let Some(found) = with_month(tokens, today) {
        return Some(found);
    }
    if before.is_some_and(|before| BEFORE_NUMBERS.contains(&before.folded.as_str())) {
        return None;
    }
    if let Some(found) = spaced_day(tokens) {
        return Some(found);
    }
    let one = |span: Option<Span>, length| span.map(|span| FoundDate { length, spans: vec![span] });
    one(iso_month(&first.folded), 1)
        .or_else(|| one(quarter(&first.folded), 1))
        .or_else(|| one(quarter_of_year(tokens), 2))
        .or_else(|| one(lone_year(first, today), 1))
}

/// Reads a day in numbers with spaces, such as `5. 3. 2025` and `5/ 3/2025`.
fn spaced_day(tokens: &[Token<'_>]) -> Option<FoundDate> {
    let mut last =
        tokens.first().filter(|first| first.folded.starts_with(|letter: char| letter.is_ascii_digit()))?;
    let mut date = last.folded.clone();
    for (length, token) in (2..=MAX_NUMERIC_TOKENS).zip(tokens.iter().skip(1)) {
        date.push_str(last.separator_before(token)?);
        date.push_str(&token.folded);
        if let Some(spans) = numeric_day(&date) {
            return Some(FoundDate { length, spans });
        }
        last = token;
    }
    None
}

/// Returns the readings of a day in numbers; `None` for other texts and for days that no calendar has.
fn numeric_day(text: &str) -> Option<Vec<Span>> {
    let (date, time) = text.split_once('t').map_or((text, None), |(date, time)| (date, Some(time)));
    let separator = date.chars().find(|letter| matches!(letter, '-' | '.' | '/'))?;
    let parts: Vec<&str> = date.split(separator).collect();
    let [one, two, three] = parts[..] else { return None };
    // `2024.1.2` is a version.
    let min_digits = if separator == '.' { 2 } else { 1 };
    if let (Some(year), Some(month), Some(day)) =
        (number(one, 4..=4), number(two, min_digits..=2), number(three, min_digits..=2))
    {
        return Some(vec![Span::of_day(year, month, day)?]);
    }
    let (one, two, year) = (number(one, 1..=2)?, number(two, 1..=2)?, number(three, 4..=4)?);
    if time.is_some() {
        return None;
    }
    let day_first = Span::of_day(year, two, one);
    if separator == '.' {
        return day_first.map(|span| vec![span]);
    }
    // The month is first in America.
    let mut spans: Vec<Span> = Span::of_day(year, one, two).into_iter().collect();
    spans.extend(day_first.filter(|span| !spans.contains(span)));
    (!spans.is_empty()).then_some(spans)
}

/// Returns the month of `2025-03`.
fn iso_month(text: &str) -> Option<Span> {
    let (year, month) = text.split_once('-')?;
    Span::month(number(year, 4..=4)?, number(month, 2..=2)?)
}

/// Returns the quarter of `q1/2025` or `2025-q1`.
fn quarter(folded: &str) -> Option<Span> {
    let (one, other) = folded.split_once(['/', '-'])?;
    let of = |quarter: &str, year: &str| Span::quarter(number(year, 4..=4)?, quarter_number(quarter)?);
    of(one, other).or_else(|| of(other, one))
}

/// Returns the quarter of `q1 2025` or `2025 q1`.
fn quarter_of_year(tokens: &[Token<'_>]) -> Option<Span> {
    let [one, other, ..] = tokens else { return None };
    let of = |quarter: &Token<'_>, year: &Token<'_>| {
        Span::quarter(year.number(4..=4)?, quarter_number(&quarter.folded)?)
    };
    of(one, other).or_else(|| of(other, one))
}

fn quarter_number(folded: &str) -> Option<i16> {
    number(folded.strip_prefix('q')?, 1..=1)
}

/// Returns the year that a token is.
fn lone_year(token: &Token<'_>, today: Date) -> Option<Span> {
    let years = MIN_LONE_YEAR..=today.year().saturating_add(LONE_YEARS_AHEAD);
    Span::year(token.number(4..=4).filter(|year| years.contains(year))?)
}

/// Reads a date with the name of a month.
fn with_month(tokens: &[Token<'_>], today: Date) -> Option<FoundDate> {
    if let Some((month_day, length)) = MonthDay::read(tokens) {
        let found = day_of_month(tokens, length, month_day, today);
        if found.is_some() {
            return found;
        }
    }
    let name = month_of_year(&tokens.first()?.folded)?;
    let year_at = 1 + between(tokens, 1);
    let span = Span::month(tokens.get(year_at)?.number(4..=4)?, name.number)?;
    Some(FoundDate { length: year_at + 1, spans: vec![span] })
}

/// Returns the number of words between the parts of a date at a place: 0 or 1.
fn between(tokens: &[Token<'_>], at: usize) -> usize {
    usize::from(tokens.get(at).is_some_and(|token| BETWEEN.contains(&token.folded.as_str())))
}

/// Day of a month without its year.
#[derive(Debug, Clone, Copy)]
struct MonthDay<'a> {
    day: i16,
    name: &'a MonthName,
    /// True if the name begins with a capital letter.
    is_capital: bool,
    /// True if the name is a word of its own, such as `out`.
    is_word: bool,
}

impl MonthDay<'_> {
    /// Reads `5 March`, `5th of March` or `March 5` at the beginning of some tokens. Returns it with the number of its tokens.
    fn read(tokens: &[Token<'_>]) -> Option<(Self, usize)> {
        let first = tokens.first()?;
        let (day, name_at, length) = if let Some(day) = day_number(&first.folded) {
            let name_at = 1 + between(tokens, 1);
            (day, name_at, name_at + 1)
        } else {
            (day_number(&tokens.get(1)?.folded)?, 0, 2)
        };
        let token = tokens.get(name_at)?;
        let (name, is_word) = (month(&token.folded)?, month_of_year(&token.folded).is_none());
        Some((Self { day, name, is_capital: token.is_capital(), is_word }, length))
    }

    /// Returns the day in a year. If the month has no such day, this is the month.
    fn in_year(self, year: i16) -> Option<Span> {
        Span::of_day(year, self.name.number, self.day).or_else(|| Span::month(year, self.name.number))
    }
}

/// Returns the day of a month with its year, which follows from token `at` on. Without a year it is the last such day, and one
/// that is soon to come; the name has to be whole then, and begin with a capital letter.
fn day_of_month(tokens: &[Token<'_>], at: usize, month_day: MonthDay<'_>, today: Date) -> Option<FoundDate> {
    if let Some((year, length)) = year_of_day(tokens, at, month_day, today) {
        return Some(FoundDate { length, spans: vec![month_day.in_year(year)?] });
    }
    if let Some(found) = first_of_range(tokens, at, month_day, today) {
        return Some(found);
    }
    let MonthDay { day, name, is_capital, .. } = month_day;
    if name.is_short || (name.is_of(&["en", "de"]) && !is_capital) {
        return None;
    }
    let this = Span::of_day(today.year(), name.number, day)?;
    let last = Span::of_day(today.year() - 1, name.number, day);
    let soon = today.checked_add(DAYS_AHEAD.days()).unwrap_or(today);
    let spans: Vec<Span> = if this.first() <= today {
        vec![this]
    } else {
        last.into_iter().chain((this.first() <= soon).then_some(this)).collect()
    };
    (!spans.is_empty()).then_some(FoundDate { length: at, spans })
}

/// Returns the year at token `at`, behind a day and month, with the number of the first token behind it. Two digits are a year
/// of this century, unless they begin a time or another date.
fn year_of_day(
    tokens: &[Token<'_>],
    at: usize,
    month_day: MonthDay<'_>,
    today: Date,
) -> Option<(i16, usize)> {
    let year_at = at + between(tokens, at);
    let token = tokens.get(year_at)?;
    if let Some(year) = token.number(4..=4) {
        return Some((year, year_at + 1));
    }
    let year = today.year() / 100 * 100 + token.number(2..=2)?;
    let is_other = tokens
        .get(year_at + 1)
        .is_some_and(|next| is_behind_time(next) || is_unit(next) || month(&next.folded).is_some());
    let is_year = year <= today.year().saturating_add(LONE_YEARS_AHEAD) && !month_day.is_word && !is_other;
    is_year.then_some((year, year_at + 1))
}

/// Returns the first day of `5 March to 7 March 2025`, or all days of `March 5 to 7, 2025`. Token `at` is behind the first day.
fn first_of_range(tokens: &[Token<'_>], at: usize, first: MonthDay<'_>, today: Date) -> Option<FoundDate> {
    tokens.get(at).filter(|token| TO.contains(&token.folded.as_str()))?;
    let has_article = tokens.get(at + 1).is_some_and(|token| ARTICLES.contains(&token.folded.as_str()));
    let second_at = at + 1 + usize::from(has_article);
    let rest = tokens.get(second_at..)?;
    let Some((second, length)) = MonthDay::read(rest) else {
        let day = day_number(&rest.first()?.folded)?;
        let (year, length) = year_of_day(rest, 1, first, today)?;
        let last = Span::of_day(year, first.name.number, day)?;
        let days = Span::days(first.in_year(year)?.first(), last.first())?;
        return Some(FoundDate { length: second_at + length, spans: vec![days] });
    };
    let (year, _) = year_of_day(rest, length, second, today)?;
    let is_before = (second.name.number, second.day) < (first.name.number, first.day);
    Some(FoundDate { length: at, spans: vec![first.in_year(year - i16::from(is_before))?] })
}

/// Returns the number of a day: `5`, `5th`, `1er`, `5º`.
fn day_number(folded: &str) -> Option<i16> {
    let digits = folded.bytes().take_while(u8::is_ascii_digit).count();
    let (day, suffix) = folded.split_at_checked(digits)?;
    let is_ordinal = matches!(suffix, "" | "st" | "nd" | "rd" | "th" | "er" | "o" | "e" | "ten");
    number(day, 1..=2).filter(|day| is_ordinal && *day <= 31)
}
