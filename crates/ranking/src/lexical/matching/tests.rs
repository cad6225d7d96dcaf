//! Tests of passages.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::lexical::text_cache::TextForm;

fn terms(words: &[&str]) -> ExcerptTerms {
    let mut terms = ExcerptTerms::default();
    words.iter().enumerate().for_each(|(slot, word)| terms.add(word, slot, 1.0));
    terms
}

#[track_caller]
fn check(data: Value, words: &[&str], expect: &str) {
    let data = serde_json::from_value(data).unwrap();
    let found = locate_match(&data, None, &terms(words), &mut ScanAllowance::default()).excerpt;
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
    let of = |data: Value| {
        let data = serde_json::from_value(data).unwrap();
        locate_match(&data, None, &terms(&["invoice"]), &mut ScanAllowance::default())
    };
    let only_title = of(json!({"title": "Invoice", "body": "due at once"}));
    assert_eq!((only_title.excerpt.text(), only_title.field), ("due at once", None));
    assert_eq!(only_title.fields, ["title"]);
    let (field, found) = only_title.title_match.unwrap();
    assert_eq!((field.as_str(), found.text(), found.focus()), ("title", "Invoice", 0..7));
    let both =
        of(json!({"body": {"a": "the invoice", "b": "an invoice"}, "n": 5, "title": "Invoice", "x": "y"}));
    assert_eq!((both.fields, both.field.as_deref()), (vec!["body".into(), "title".into()], Some("body")));
    assert!(both.title_match.is_none());
}

#[test]
fn a_sentence_is_shown_rather_than_a_path_with_the_same_words() {
    let of = |path: &str, body: &str, word: &str| {
        let data = serde_json::from_value(json!({"title": "Boat log", "path": path, "body": body})).unwrap();
        locate_match(&data, None, &terms(&[word]), &mut ScanAllowance::default()).excerpt.text().to_owned()
    };
    assert_eq!(of("sub/boat.md", "# Boat repair", "boat"), "# Boat repair");
    assert_eq!(of("sub/My boat.md", "# Boat repair", "boat"), "# Boat repair");
    assert_eq!(of("sub/boat.md", "# Ship repair", "boat"), "sub/boat.md");
    assert_eq!(of("Boat log.md", "# Ship repair", "boat"), "# Ship repair");
    assert_eq!(of("Boat log.pdf", "# Ship repair", "pdf"), "Boat log.pdf");
    assert_eq!(of("sub/boat.md", "boat", "boat"), "sub/boat.md");
    assert_eq!(of("メモ/東京都.md", "今日は東京都へ行く。", "東京"), "今日は東京都へ行く。");
    // A text that ends with an address, a price or a file is no path.
    for end in ["www.hotel.com", "$3.50", "report.pdf", "https://example.com/a.b"] {
        assert_eq!(of(&format!("The boat costs {end}"), "a boat", "boat"), format!("The boat costs {end}"));
    }
}

#[test]
fn thousands_of_matches_beside_a_long_text_are_compared_in_linear_time() {
    let tags = vec!["boat"; 60_000];
    check(json!({"csv": format!("boat,{}", "a,".repeat(130_000)), "tags": tags}), &["boat"], "boat");
}

#[test]
fn a_part_with_more_of_the_words_has_a_greater_share() {
    let terms = terms(&["token", "expire"]);
    let share = |part: &str, headings: &str| terms.share_of(part, headings);
    assert!(share("nothing", "") == 0.0);
    assert!(share("a token", "") > 0.0);
    assert!(share("tokens and a token", "") < share("a token can expire", ""));
    assert!(share("a token, another token", "") > share("a token", ""));
    assert!(share("when they expire", "Token") > share("when they expire", ""));
    assert!(share("when they expire", "Token") < share("token expire", ""));
    assert!(share("token expire token expire token expire", "") <= 1.0);
}

#[test]
fn matches_behind_the_first_half_megabyte_are_found() {
    let filler = "needles and other words of a long text. ".repeat(25_000);
    check(json!({"body": format!("{filler}The Needle. {filler}")}), &["needle"], "Needle");
    check(json!({"body": filler, "notes": "a needle"}), &["needle"], "needle");
    let accents = "Äpfel und Öfen ".repeat(45_000);
    check(json!({"body": format!("{accents}das Café")}), &["cafe"], "Café");
    check(json!({"body": format!("{}needle", "x".repeat(700_000))}), &["needle"], "");
    // Nothing is read when the allowance is used up.
    let data = serde_json::from_value(json!({"body": format!("{filler}needle")})).unwrap();
    let found = locate_match(&data, None, &terms(&["needle"]), &mut ScanAllowance(1_000));
    assert!(found.fields.is_empty() && found.excerpt.text().starts_with("needles and"));
}

#[test]
fn pieces_end_between_words() {
    assert_eq!(end_of_piece("one two three", 0, 6), 3);
    assert_eq!(end_of_piece("one two three", 4, 5), 7);
    assert_eq!(end_of_piece("one two three", 4, 50), 13);
    assert_eq!(end_of_piece("éééé", 0, 3), 2);
    assert_eq!(end_of_piece("", 0, 0), 0);
}

#[test]
fn nested_text_is_looked_through() {
    check(json!({"a": {"b": ["x", "the Needle"]}}), &["needle"], "Needle");
    check(json!({"n": 1}), &["needle"], "");
}

#[test]
fn known_words_of_the_longest_texts_have_their_places() {
    let text = "x ".repeat(TextWords::MAX_RECORD_BYTES / 2 - 20) + "needle";
    let data = json!({"text": text});
    assert!(data.to_string().len() <= TextWords::MAX_RECORD_BYTES);
    let data = data.as_object().unwrap();
    let known = TextWords::from_record(data);
    let found = locate_match(data, Some(&known), &terms(&["needle"]), &mut ScanAllowance::default());
    assert!(found.excerpt.text().ends_with("needle"), "{:?}", found.excerpt);
}

proptest! {
    #[test]
    fn known_words_give_the_same_match(
        fields in prop::collection::vec("[abAB1_.+\\-éß東京 \\n]{0,60}", 1..5),
        words in prop::collection::vec("[ab1éß東]{1,3}", 1..6),
        number in any::<u16>(),
    ) {
        let data = json!({"title": "a b", "list": fields, "n": number, "inside": {"text": fields.concat()}});
        let data = data.as_object().unwrap();
        let mut terms = terms(&words.iter().map(String::as_str).collect::<Vec<_>>());
        terms.add(&number.to_string(), words.len(), 0.5);
        terms.add_sequence(&words, words.len() + 1, 2.0);
        let locate = |known: Option<&TextWords>| {
            format!("{:?}", locate_match(data, known, &terms, &mut ScanAllowance::default()))
        };
        prop_assert_eq!(locate(Some(&TextWords::from_record(data))), locate(None));
    }
}
