//! Boundaries of chunks in texts of every kind.

use proptest::prelude::*;

use super::*;
use crate::fit::json_len;

fn pieces(text: &str, max_bytes: usize) -> (ContentChunks, Vec<&str>) {
    let chunks = ContentChunks::new(text, max_bytes);
    let pieces = chunks.chunks.iter().map(|chunk| text.get(chunk.start..chunk.end).unwrap()).collect();
    (chunks, pieces)
}

#[track_caller]
fn check(text: &str, max_bytes: usize, kind: ContentKind, expect: &[&str]) {
    let (chunks, pieces) = pieces(text, max_bytes);
    assert_eq!((chunks.kind, pieces.as_slice()), (kind, expect));
    assert!(chunks.chunks.iter().all(|chunk| !chunk.is_hard_split), "{chunks:?}");
}

#[test]
fn sections_stay_together() {
    check(
        "# One\n\nText of it.\n\nMore of it.\n## Two\n\nText of two.\n",
        40,
        ContentKind::Markdown,
        &["# One\n\nText of it.\n\nMore of it.\n", "## Two\n\nText of two.\n"],
    );
}

#[test]
fn an_entry_keeps_its_stack_trace() {
    let entry = "2025-11-01T10:00:00Z ERROR it broke\n  at one\n  at two\n";
    let log = format!(
        "2025-11-01T09:00:00Z INFO ok\n{entry}2025-11-01T10:00:01Z INFO ok\n2025-11-01T10:00:02Z INFO ok\n"
    );
    let (chunks, pieces) = pieces(&log, 100);
    assert_eq!(chunks.kind, ContentKind::Log);
    assert!(pieces[0].ends_with("at two\n"), "{pieces:?}");
}

#[test]
fn code_is_cut_between_functions_then_lines() {
    check(
        "fn one() {\n    a();\n}\n\nfn two() {\n    b();\n}\n",
        36,
        ContentKind::Code,
        &["fn one() {\n    a();\n}\n\n", "fn two() {\n    b();\n}\n"],
    );
}

#[test]
fn prose_is_cut_at_paragraphs_then_sentences() {
    check(
        "One is here. Two is here.\n\nThree is there. Four is there, and \"five!\" Six.",
        40,
        ContentKind::Prose,
        &["One is here. Two is here.\n\n", "Three is there. ", "Four is there, and \"five!\" Six."],
    );
    check(
        "これは一つ。これは二つ。これは三つ。",
        40,
        ContentKind::Prose,
        &["これは一つ。これは二つ。", "これは三つ。"],
    );
}

#[test]
fn a_hard_split_says_so() {
    let words = "word ".repeat(30);
    let (chunks, pieces) = pieces(&words, 52);
    assert_eq!(pieces[0], "word ".repeat(10));
    assert!(chunks.get(0).unwrap().is_hard_split && !chunks.get(chunks.len() - 1).unwrap().is_hard_split);
    assert_eq!(ContentChunks::new(&"x".repeat(100), 30).len(), 4);
}

#[test]
fn a_list_without_sentences_is_cut_between_its_lines() {
    let lines = |line: &dyn Fn(usize) -> String| (0..10_000).map(line).collect::<String>();
    for (text, kind) in [
        (lines(&|n| format!("log line {n} something happened here\n")), ContentKind::Prose),
        // A single sentence at the start does not attract the boundary.
        (format!("The list.\n{}", lines(&|n| format!("item {n} of it\n"))), ContentKind::Prose),
        (format!("# Fields\n\n{}", lines(&|n| format!("- field {n} of it\n"))), ContentKind::Markdown),
        (lines(&|n| format!("  \"field_{n}\": \"value {n} of it\",\n")), ContentKind::Code),
    ] {
        let (chunks, pieces) = pieces(&text, CHUNK_BYTES);
        assert_eq!((chunks.kind, chunks.len() < 60), (kind, true), "{}", chunks.len());
        for (piece, chunk) in pieces.iter().zip(&chunks.chunks) {
            assert!(piece.ends_with('\n') && !chunk.is_hard_split, "{kind:?} {chunk:?}");
        }
    }
}

#[test]
fn a_sentence_is_a_better_end_than_a_line_of_wrapped_prose() {
    let wrapped = "It began one\nmorning. Then it\nwent on and\non and on\n";
    let (_, pieces) = pieces(wrapped, 36);
    assert_eq!(pieces[0], "It began one\nmorning. ");
}

/// A log of 50 KB and 10,000 lines.
#[test]
fn ten_thousand_short_lines_come_two_hundred_at_a_time() {
    let log: String = (0..10_000).map(|number| format!("{number:04}\n")).collect();
    let chunks = ContentChunks::new(&log, CHUNK_BYTES);
    assert_eq!((chunks.len(), chunks.total_lines()), (50, 10_000));
    let first = chunks.get(0).unwrap();
    assert_eq!((first.start_line, first.end_line, first.end), (0, 199, 1_000));
    let lines = chunks.lines(&log, 100..201);
    assert_eq!(log.get(lines).unwrap().lines().count(), 101);
    assert_eq!(log.get(chunks.lines(&log, 9_999..20_000)), Some("9999\n"));
    assert_eq!(log.get(chunks.lines(&log, 10_000..10_001)), Some(""));
}

#[test]
fn six_corpora_end_where_a_reader_pauses() {
    let repeated = |piece: &dyn Fn(usize) -> String| (0..400).map(piece).collect::<String>();
    let corpora = [
        repeated(&|n| {
            format!("## Section {n}\n\nSome words about {n}. And *more*:\n\n- a point\n- another\n\n")
        }),
        repeated(&|n| format!("2025-11-01 10:00:{:02},{n} INFO service - request {n} took 12 ms\n", n % 60)),
        repeated(&|n| format!("fn function_{n}() -> u32 {{\n    let value = {n};\n    value + 1\n}}\n\n")),
        repeated(&|n| format!("This is sentence {n} of a long letter, which says \"nothing much.\" ")),
        repeated(&|n| format!("これは{n}番目の文です。そして次の文が続きます！")),
        repeated(&|n| format!("{{\"id\": {n}, \"name\": \"row {n}\"}},\n")),
    ];
    for corpus in &corpora {
        let (chunks, pieces) = pieces(corpus, CHUNK_BYTES);
        assert!(chunks.len() > 1, "{:?}", chunks.kind);
        for (piece, chunk) in pieces.iter().zip(&chunks.chunks) {
            let pauses = piece.ends_with('\n') || ends_sentence(piece);
            assert!(
                pauses && !chunk.is_hard_split,
                "{:?} {:?}",
                chunks.kind,
                piece.get(piece.floor_char_boundary(piece.len() - 40)..)
            );
            assert!(
                piece.len() > CHUNK_BYTES / 4
                    || chunk.end == corpus.len()
                    || line_breaks(piece) * 2 >= CHUNK_LINES
            );
        }
    }
}

proptest! {
    #[test]
    fn rule_chunks_put_together_are_the_text(
        parts in proptest::collection::vec("[a-z .!?]{0,40}\n|\n\n|# [a-z]{3}\n|\\PC{0,9}|    x;\n|\u{1}{1,9}|👩‍👩‍👧|2025-01-01 [a-z]{5}\n|e\u{301}{1,80}", 0..60),
        max_bytes in 16_usize..400,
    ) {
        let text = parts.concat();
        let (chunks, pieces) = pieces(&text, max_bytes);
        prop_assert_eq!(pieces.concat(), text.clone());
        let (mut line, mut at) = (0, 0);
        for (index, (piece, chunk)) in pieces.iter().zip(&chunks.chunks).enumerate() {
            prop_assert!(!piece.is_empty() && piece.len() <= max_bytes);
            prop_assert!(json_len(piece) <= max_bytes || piece.chars().count() * 6 <= max_bytes * 6);
            prop_assert_eq!((chunk.start, chunk.start_line), (at, line));
            prop_assert!(chunk.start_line <= chunk.end_line && chunk.end_line < chunks.total_lines());
            prop_assert_eq!(chunks.at(at), Some(index));
            let last = index + 1 == chunks.len();
            prop_assert!(last || chunk.is_hard_split || piece.ends_with('\n') || ends_sentence(piece), "{:?}", piece);
            line += line_breaks(piece);
            at = chunk.end;
        }
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        prop_assert_eq!(chunks.total_lines(), lines.len());
        for (number, expect) in lines.iter().enumerate() {
            prop_assert_eq!(text.get(chunks.lines(&text, number..number + 1)), Some(*expect));
        }
    }
}
