//! Where in a record its match is, for the excerpt.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::Value;

use super::words::{fold_into, words};
use crate::fit::passage;
use crate::record::{Excerpt, RecordData, own_title};

/// How much text of one record is looked through, in bytes. A match further on is still found, but
/// shown by the start of the text.
const SCAN_BYTES: usize = 512 * 1024;

/// How much text around the match is passed on, in bytes on either side.
const RADIUS: usize = 400;

/// Matches this close together are shown together, in bytes.
const CLOSE: usize = 160;

/// Matches of one cluster that are looked at.
const CLUSTER: usize = 32;

/// The passage of the record with the most different terms close together. The title comes last,
/// since it is shown anyway; without any match it is the start of the longest text.
pub(super) fn excerpt(data: &RecordData, terms: &HashSet<&str>) -> Excerpt {
    let title = own_title(data);
    let mut texts = Vec::new();
    data.values().for_each(|value| collect_texts(value, &mut texts));
    let (titles, others): (Vec<&str>, Vec<&str>) = texts.into_iter().partition(|text| Some(*text) == title);
    let mut budget = SCAN_BYTES;
    let mut best: Option<(usize, &str, Range<usize>)> = None;
    for text in &others {
        if budget == 0 {
            break;
        }
        let scanned = text.get(..text.floor_char_boundary(budget)).unwrap_or_default();
        budget -= scanned.len().min(budget);
        let found = best_cluster(scanned, terms);
        if let Some((count, range)) = found
            && best.as_ref().is_none_or(|(most, ..)| count > *most)
        {
            best = Some((count, text, range));
        }
    }
    let longest = || others.iter().chain(&titles).max_by_key(|text| text.len());
    let (text, focus) = match best {
        Some((_, text, range)) => (text, range),
        None => (*longest().unwrap_or(&""), 0..0),
    };
    let (piece, focus) = passage(text, focus, RADIUS);
    Excerpt::new(piece, focus)
}

/// Every string inside a value, in order.
pub(super) fn collect_texts<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(fields) => fields.values().for_each(|field| collect_texts(field, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The first run of matches with the most different terms, and the bytes it spans.
fn best_cluster(text: &str, terms: &HashSet<&str>) -> Option<(usize, Range<usize>)> {
    let mut folded = String::new();
    let matches: Vec<(&str, Range<usize>)> = words(text)
        .filter_map(|word| {
            folded.clear();
            fold_into(text.get(word.range.clone()).unwrap_or_default(), &mut folded);
            terms.get(folded.as_str()).map(|term| (*term, word.range))
        })
        .collect();
    let mut best: Option<(usize, Range<usize>)> = None;
    for (at, (_, first)) in matches.iter().enumerate() {
        let close = matches.iter().skip(at).take_while(|(_, range)| range.end - first.start <= CLOSE);
        let mut different = HashSet::new();
        let mut end = first.end;
        for (term, range) in close.take(CLUSTER) {
            if different.insert(*term) {
                end = end.max(range.end);
            }
        }
        if best.as_ref().is_none_or(|(most, _)| different.len() > *most) {
            best = Some((different.len(), first.start..end));
        }
        if different.len() == terms.len() {
            break;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(data: Value, terms: &[&str], expect: &str) {
        let found = excerpt(&serde_json::from_value(data).unwrap(), &terms.iter().copied().collect());
        assert_eq!(found.text().get(found.focus()).unwrap(), expect);
    }

    #[test]
    fn the_closest_different_terms_win() {
        let body = format!("pay. {} please pay the invoice {}", "x ".repeat(200), "y ".repeat(200));
        check(json!({"body": body}), &["pay", "invoice"], "pay the invoice");
    }

    #[test]
    fn accents_and_scripts_are_found_as_they_are_indexed() {
        check(json!({"body": "Das Café schließt."}), &["cafe"], "Café");
        check(json!({"body": "今日は東京都へ行く"}), &["東京", "京都"], "東京都");
    }

    #[test]
    fn the_title_is_not_shown_twice() {
        check(json!({"title": "Invoice", "body": "the invoice is due"}), &["invoice"], "invoice");
        let only_title = excerpt(
            &serde_json::from_value(json!({"title": "Invoice", "body": "due at once"})).unwrap(),
            &HashSet::from(["invoice"]),
        );
        assert_eq!(only_title.text(), "due at once");
    }

    #[test]
    fn nested_text_is_looked_through() {
        check(json!({"a": {"b": ["x", "the Needle"]}}), &["needle"], "Needle");
        check(json!({"n": 1}), &["needle"], "");
    }
}
