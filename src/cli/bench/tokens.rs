//! `fetchwell bench tokens`: token estimates compared with exact counts, for fifteen kinds of text.

use std::hint::black_box;
use std::time::{Duration, Instant};

use fetchwell_core::fit::{Estimator, budget, count_tokens};
use fetchwell_core::saturate::saturated;
use serde::Serialize;

use super::texts::KINDS;
use super::times::percentile;
use crate::app::failure::Failure;
use crate::cli::print::{Printer, grouped};

/// Sizes in bytes: one that is counted completely, one above the cap, and a much larger one.
const SIZES: [usize; 3] = [2_000, 100_000, 1_000_000];

/// Number of timed estimates per text.
const TIMES: usize = 9;

/// Counts and estimates of one text.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    kind: &'static str,
    bytes: usize,
    exact: usize,
    o200k: usize,
    o200k_error_percent: f64,
    /// Median time of the `o200k` estimate in microseconds.
    micros: u64,
    chars4: usize,
    chars4_error_percent: f64,
}

pub(super) fn run(printer: Printer) -> Result<(), Failure> {
    let rows = measure();
    if printer.json {
        printer.value(&rows);
    } else {
        print(printer, &rows);
    }
    Ok(())
}

pub(super) fn print(printer: Printer, rows: &[Row]) {
    let heading = ["kind", "bytes", "exact", "o200k", "error %", "us", "chars4", "error %"];
    let size = |size: usize| grouped(saturated::<u64>(size));
    let cells = rows.iter().map(|row| {
        vec![
            row.kind.to_owned(),
            size(row.bytes),
            size(row.exact),
            size(row.o200k),
            format!("{:+.1}", row.o200k_error_percent),
            grouped(row.micros),
            size(row.chars4),
            format!("{:+.1}", row.chars4_error_percent),
        ]
    });
    let heading = heading.map(str::to_owned).to_vec();
    printer.table(&std::iter::once(heading).chain(cells).collect::<Vec<_>>());
}

pub(super) fn measure() -> Vec<Row> {
    // Loads the vocabulary before the first measurement.
    let _ = count_tokens("a text");
    let texts = SIZES.iter().flat_map(|bytes| KINDS.map(|kind| (kind.name, kind.text(*bytes))));
    texts.map(|(kind, text)| row(kind, &text, TIMES)).collect()
}

fn row(kind: &'static str, text: &str, times: usize) -> Row {
    let (exact, max_tokens) = (count_tokens(text), budget::DOCUMENT_TOKENS);
    let chars4 = Estimator::Chars4.tokens(text, max_tokens);
    let (mut o200k, mut taken) = (0, Vec::with_capacity(times));
    for _ in 0..times {
        let started = Instant::now();
        o200k = Estimator::O200k.tokens(black_box(text), max_tokens);
        taken.push(started.elapsed());
    }
    taken.sort_unstable();
    let micros = |taken: Duration| saturated::<u64>(taken.as_micros());
    Row {
        kind,
        bytes: text.len(),
        exact,
        o200k,
        o200k_error_percent: error_percent(o200k, exact),
        micros: micros(percentile(&taken, 50)),
        chars4,
        chars4_error_percent: error_percent(chars4, exact),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share of counts far below 2^53")]
fn error_percent(estimate: usize, exact: usize) -> f64 {
    let share = (estimate as f64 / exact.max(1) as f64 - 1.0) * 100.0;
    (share * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::super::texts::Kind;
    use super::*;

    #[test]
    fn estimates_are_within_a_fifth_and_never_under() {
        let mut offenders = Vec::new();
        for (bytes, kind) in SIZES.iter().flat_map(|bytes| KINDS.map(|kind| (*bytes, kind))) {
            let row = row(kind.name, &kind.text(bytes), 1);
            assert!(row.bytes > bytes - 4, "{row:?}");
            let is_off = row.o200k < row.exact || row.o200k * 5 > row.exact * 6;
            if is_off || (row.exact <= budget::DOCUMENT_TOKENS && row.o200k != row.exact) {
                offenders.push(row);
            }
        }
        assert!(offenders.is_empty(), "{offenders:#?}");
    }

    /// Combines a sparse and a dense half in both orders; the second half is only sampled.
    #[test]
    fn a_text_of_two_kinds_is_not_estimated_too_low() {
        let mut offenders = Vec::new();
        for bytes in [50_000, 500_000] {
            let half = |kind: Kind| {
                let text = kind.text(bytes);
                (kind.name, count_tokens(&text), text)
            };
            let halves = KINDS.map(half);
            for (first, of_start, start) in &halves {
                for (second, of_end, end) in &halves {
                    let estimate = Estimator::O200k.tokens(&format!("{start}{end}"), budget::DOCUMENT_TOKENS);
                    let exact = of_start + of_end;
                    // At the place between the halves, the count may be one token less than the sum.
                    if estimate + 1 < exact {
                        offenders.push(format!("{first}, {second}: {estimate} of {exact}"));
                    }
                }
            }
        }
        assert!(offenders.is_empty(), "{}", offenders.join("\n"));
    }

    /// `fixtures/chars4.csv` has Python's result of `int(length / 4 * 1.2)` for texts of a thousand lengths.
    #[test]
    fn chars4_equals_the_contract_for_a_thousand_texts() {
        let vectors = include_str!("../../../fixtures/chars4.csv");
        let mut seen = 0;
        for (line, kind) in vectors.lines().skip(1).zip(KINDS.iter().cycle()) {
            let (length, expect) = line.split_once(',').unwrap();
            let (length, expect): (usize, usize) = (length.parse().unwrap(), expect.parse().unwrap());
            let text: String = kind.text(length * 4 + 4).chars().take(length).collect();
            assert_eq!(text.chars().count(), length);
            assert_eq!(Estimator::Chars4.tokens(&text, 10), expect, "{length} characters of {}", kind.name);
            seen += 1;
        }
        assert_eq!(seen, 1_000);
    }
}
