//! Times of day behind a date, such as `at 10:30 PM` and `um 10 Uhr`. Their numbers are those of a date, not the topic.

use super::tokens::{Token, number};

/// Words before a time.
const BEFORE: [&str; 5] = ["at", "um", "om", "a", "alle"];

/// Words behind a time: half of the day, or a zone.
const BEHIND: [&str; 11] = ["am", "pm", "a.m", "p.m", "uhr", "h", "uur", "utc", "gmt", "cet", "cest"];

/// Returns the number of tokens of the time at the beginning of some; 0 without a time.
pub(super) fn time_length(tokens: &[Token<'_>]) -> usize {
    let is_before = tokens.first().is_some_and(|token| BEFORE.contains(&token.folded.as_str()));
    let mut rest = tokens.iter().skip(usize::from(is_before));
    let Some(time) = rest.next() else { return 0 };
    let behind = rest.take(2).take_while(|token| is_behind_time(token)).count();
    let is_hour = behind > 0 && time.number(1..=2).is_some_and(|hour| hour <= 24);
    if is_hour || is_time(&time.folded) { usize::from(is_before) + 1 + behind } else { 0 }
}

/// Returns true for a word that makes a time of the number before it.
pub(super) fn is_behind_time(token: &Token<'_>) -> bool {
    BEHIND.contains(&token.folded.as_str())
}

/// Returns true for `10:30`, `10:30:05`, `10:30pm` and `10pm`.
fn is_time(folded: &str) -> bool {
    let without = ["am", "pm", "h", "z"].iter().find_map(|suffix| folded.strip_suffix(suffix));
    let mut parts = without.unwrap_or(folded).split(':').map(|part| number(part, 1..=2));
    let is_hour = parts.next().flatten().is_some_and(|hour| hour <= 24);
    let sixtieths: Vec<Option<i16>> = parts.take(3).collect();
    let are_sixtieths = sixtieths.iter().all(|part| part.is_some_and(|part| part < 60));
    is_hour && are_sixtieths && sixtieths.len() < 3 && (without.is_some() || !sixtieths.is_empty())
}
