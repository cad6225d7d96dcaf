//! The parts of words in camel case.

use std::ops::Range;

/// Maximum length in bytes of a word that has parts.
const MAX_BYTES: usize = 64;

/// Minimum length of the other parts of a word in camel case that has a part of one letter.
const MIN_BESIDE: usize = 3;

/// Maximum number of parts of a word in camel case. Text with more is random rather than an identifier.
const MAX_PARTS: usize = 8;

/// Returns the ranges of the parts of a word in camel case, or none for other words.
///
/// A part begins at an upper-case letter after a lower-case letter or digit, and at the last letter of an acronym
/// before a lower-case letter (`HTTPServer`). Words with parts too short to mean something (`iPhone`, `PDFs`, most
/// random text) have none. One letter alone belongs to a longer part beside it (`OAuthClient`).
pub(super) fn camel_case_parts(text: &str, word: &Range<usize>) -> Vec<Range<usize>> {
    let bytes = text.as_bytes().get(word.clone()).unwrap_or_default();
    let has_later_capital = bytes.iter().skip(1).any(u8::is_ascii_uppercase);
    if bytes.len() > MAX_BYTES || !bytes.is_ascii() || !has_later_capital {
        return Vec::new();
    }
    let mut starts = vec![0];
    for (at, window) in bytes.windows(2).enumerate() {
        let [before, letter] = window else { continue };
        let is_acronym_end = || {
            bytes.get(at + 2..).is_some_and(|rest| {
                rest.len() >= 2 && rest.iter().take(2).all(|byte| byte.is_ascii_lowercase())
            })
        };
        if letter.is_ascii_uppercase() && (!before.is_ascii_uppercase() || is_acronym_end()) {
            starts.push(at + 1);
        }
    }
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    let parts: Vec<_> = starts.iter().copied().zip(ends).collect();
    let parts = without_lone_letter(parts);
    if !(2..=MAX_PARTS).contains(&parts.len()) || !parts.iter().all(|(start, end)| end - start >= 2) {
        return Vec::new();
    }
    parts.into_iter().map(|(start, end)| word.start + start..word.start + end).collect()
}

/// Joins the only part of one letter with the part behind it, or before it at the end, if all others are longer.
fn without_lone_letter(mut parts: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    let mut lone = parts.iter().enumerate().filter(|(_, (start, end))| end - start == 1).map(|(at, _)| at);
    let (Some(at), None) = (lone.next(), lone.next()) else { return parts };
    let are_long =
        parts.iter().enumerate().all(|(other, (start, end))| other == at || end - start >= MIN_BESIDE);
    if !are_long || parts.len() < 3 {
        return parts;
    }
    let (start, end) = parts.remove(at);
    let beside = if at < parts.len() { parts.get_mut(at) } else { parts.last_mut() };
    if let Some(beside) = beside {
        *beside = (beside.0.min(start), beside.1.max(end));
    }
    parts
}
