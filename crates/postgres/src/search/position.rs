//! The position of a page in a search.
//!
//! It has the ranked records themselves, so a walk has no gaps and no duplicates while records are imported, whichever
//! process reads the next page. The records behind them are in the order of their row ids or times.

use fetchwell_ranking::lexical::selection::Match;
use fetchwell_source::{Accuracy, Count, SearchPosition};

/// First piece of a position in this format.
const CURRENT: &str = "p1";

/// Units of a score in a position. The greatest score is less than 6.
const SCORE_UNITS: f32 = 10_000.0;

/// Units of the share of a query's rarity in a position.
const COVERAGE_UNITS: f32 = 10_000.0;

/// Place in the list of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Number of ranked records before it.
    pub(super) ranked: usize,
    pub(super) rest: Rest,
}

/// Records behind the ranked ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// There are none.
    Nothing,
    /// Records with any word, the newest row first, before a row id.
    Words { before: i64 },
    /// Records that were written last, before a second and a row id.
    Times { before: (i64, i64) },
}

/// Position of a page.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Position {
    pub(super) place: Place,
    pub(super) ranked: Vec<Match>,
    pub(super) count: Option<Count>,
    /// Ids of the only records, if few pass the filter of the search.
    pub(super) within: Option<Vec<i64>>,
}

impl Position {
    pub(super) fn write(&self) -> SearchPosition {
        let Self { place: Place { ranked, rest }, ranked: matches, count, within } = self;
        let rest = match rest {
            Rest::Nothing => "n".to_owned(),
            Rest::Words { before } => format!("w{before}"),
            Rest::Times { before: (time, row) } => format!("t{time}/{row}"),
        };
        let count = match count {
            None => "-".to_owned(),
            Some(Count { value, accuracy: Accuracy::Exact }) => format!("{value}"),
            Some(Count { value, .. }) => format!("+{value}"),
        };
        let matches = matches.iter().map(|found| {
            // A record without a score of words has 0.
            let score = in_units(found.score, SCORE_UNITS);
            let copies = if found.copies > 0 { format!("/{}", found.copies) } else { String::new() };
            let coverage = match in_units(found.coverage, COVERAGE_UNITS) {
                0 => String::new(),
                coverage => format!(":{coverage}"),
            };
            format!("{}:{score}{copies}{coverage}", found.row)
        });
        let matches: Vec<String> = matches.collect();
        let within = within.as_ref().map(|ids| {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            format!(".{}", ids.join(","))
        });
        let (matches, within) = (matches.join(","), within.unwrap_or_default());
        SearchPosition(format!("{CURRENT}.{ranked}.{rest}.{count}.{matches}{within}"))
    }

    pub(super) fn read(position: &SearchPosition) -> Option<Self> {
        let mut pieces = position.0.split('.');
        if pieces.next()? != CURRENT {
            return None;
        }
        let ranked = pieces.next()?.parse().ok()?;
        let rest = pieces.next()?;
        let rest = match (rest.get(..1)?, rest.get(1..)?) {
            ("n", "") => Rest::Nothing,
            ("w", before) => Rest::Words { before: before.parse().ok()? },
            ("t", before) => {
                let (time, row) = before.split_once('/')?;
                Rest::Times { before: (time.parse().ok()?, row.parse().ok()?) }
            }
            _ => return None,
        };
        let count = match pieces.next()? {
            "-" => None,
            count => Some(match count.strip_prefix('+') {
                Some(least) => Count::exact(least.parse().ok()?).at_least(),
                None => Count::exact(count.parse().ok()?),
            }),
        };
        let matches = pieces.next()?.split(',').filter(|found| !found.is_empty()).map(|found| {
            let (row, score) = found.split_once(':')?;
            // Positions of an earlier release have no coverage.
            let (score, coverage) = score.split_once(':').unwrap_or((score, "0"));
            let (score, copies) = score.split_once('/').unwrap_or((score, "0"));
            let units = |text: &str| text.parse::<u16>().ok().map(f32::from);
            let found = Match::new(row.parse().ok()?, units(score)? / SCORE_UNITS);
            let coverage = units(coverage)? / COVERAGE_UNITS;
            Some(Match { copies: copies.parse().ok()?, coverage, ..found })
        });
        let matches = matches.collect::<Option<Vec<Match>>>()?;
        let ids = |ids: &str| {
            let ids = ids.split(',').filter(|id| !id.is_empty());
            ids.map(|id| id.parse().ok()).collect::<Option<Vec<i64>>>()
        };
        let within = match pieces.next() {
            None => None,
            Some(written) => Some(ids(written)?),
        };
        let is_whole = pieces.next().is_none();
        is_whole.then_some(Self { place: Place { ranked, rest }, ranked: matches, count, within })
    }
}

/// Returns a number that is small and not negative in units. One that is not a number gives 0.
fn in_units(number: f32, units: f32) -> u16 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "scores and shares are small and not negative"
    )]
    let units = (number * units).round() as u16;
    units
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_rest() -> impl Strategy<Value = Rest> {
        prop_oneof![
            Just(Rest::Nothing),
            any::<i64>().prop_map(|before| Rest::Words { before }),
            any::<(i64, i64)>().prop_map(|before| Rest::Times { before }),
        ]
    }

    proptest! {
        #[test]
        fn positions_round_trip(
            ranked in 0_usize..500,
            rest in any_rest(),
            matches in prop::collection::vec((any::<i64>(), any::<u16>(), 0_u16..=10_000, 0_u32..9), 0..9),
            count in prop::option::of((any::<u64>(), any::<bool>())),
            within in prop::option::of(prop::collection::vec(any::<i64>(), 0..9)),
        ) {
            let ranked_match = |(row, score, coverage, copies)| {
                let coverage = f32::from(coverage) / COVERAGE_UNITS;
                Match { copies, coverage, ..Match::new(row, f32::from(score) / SCORE_UNITS) }
            };
            let count = count.map(|(value, is_exact)| {
                if is_exact { Count::exact(value) } else { Count::exact(value).at_least() }
            });
            let matches = matches.into_iter().map(ranked_match).collect();
            let position = Position { place: Place { ranked, rest }, ranked: matches, count, within };
            prop_assert_eq!(Position::read(&position.write()), Some(position));
        }

        #[test]
        fn other_texts_are_refused(text in ".{0,40}") {
            let position = Position::read(&SearchPosition(text.clone()));
            prop_assert!(position.is_none() || text.starts_with(CURRENT));
        }
    }
}
