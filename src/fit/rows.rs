//! Fitting the rows of a page: all of them, the greatest the narrowest.

use super::budget;
use super::fields::{FIELD_WIDTHS, FieldWidth, widths_within};
use super::protection::Limits;
use super::tokens::{count_tokens, tokens_within};

/// Tokens by which a whole can exceed the sum of its text and the rest, at their two seams.
const SEAM_TOKENS: usize = 16;

/// What one page takes at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageBudget {
    /// Bytes of JSON.
    pub bytes: usize,
    /// Tokens of it.
    pub tokens: usize,
}

impl PageBudget {
    /// What an answer takes that was asked to be large.
    #[must_use]
    pub fn whole(limits: &Limits) -> Self {
        Self::of_tokens(limits.hard_cap)
    }

    /// What an answer takes when nobody said how large it should be.
    #[must_use]
    pub fn unasked(limits: &Limits) -> Self {
        Self::of_tokens(limits.threshold.min(limits.hard_cap))
    }

    /// What an answer takes at most: its cap, unless that is waived.
    #[must_use]
    pub fn most(limits: &Limits) -> Self {
        match limits.exempt {
            true => Self { bytes: usize::MAX, tokens: usize::MAX },
            false => Self::whole(limits),
        }
    }

    /// What it leaves for a text, of which the rest is given as JSON.
    #[must_use]
    pub fn beside_json(self, json: &str) -> Self {
        let tokens = self.tokens.saturating_sub(count_tokens(json) + SEAM_TOKENS);
        Self { tokens, ..self.beside(json.len()) }
    }

    /// Fewer bytes to try again with, after what was made in `room` bytes took so many bytes and too many tokens. Tokens are
    /// spread unevenly; each try takes at least a twentieth, so there is an end to them.
    #[must_use]
    pub fn less_room(self, room: usize, bytes: usize, tokens: usize) -> usize {
        room.min(bytes) * self.tokens / tokens.max(1) * 19 / 20
    }

    /// What is left of it for rows, when some bytes stand beside them.
    #[must_use]
    pub fn beside(self, bytes: usize) -> Self {
        Self { bytes: self.bytes.saturating_sub(bytes), ..self }
    }

    /// Twice as much, up to another.
    #[must_use]
    pub fn doubled(self, most: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_mul(2).min(most.bytes),
            tokens: self.tokens.saturating_mul(2).min(most.tokens),
        }
    }

    /// A token is about four bytes, so a text of few bytes need not be counted to be known as too long.
    fn of_tokens(tokens: usize) -> Self {
        Self { bytes: tokens.saturating_mul(budget::BYTES_PER_TOKEN), tokens }
    }
}

/// A page that fits, or how many of its rows would.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FittedRows {
    /// All rows are there.
    All {
        /// The page.
        json: String,
        /// How wide each row is.
        widths: Vec<FieldWidth>,
        /// Its tokens, if they had to be counted.
        tokens: Option<usize>,
        /// Bytes of its rows if all of them were whole, with their commas.
        whole: usize,
    },
    /// Only so many rows, from the first on, have room for the least of them.
    Only(usize),
}

/// A row that may be narrowed.
pub trait FitRow {
    /// Bytes of it whole, with its comma.
    fn whole(&self) -> usize;

    /// Bytes of it at every width, with its comma.
    fn widths(&self) -> [usize; FIELD_WIDTHS.len()];
}

/// Fits rows into a budget, whose bytes are for the rows alone and whose tokens for all of the page. `render` writes the
/// page with its rows at some widths. With `narrowest` at [`FieldWidth::Whole`] no row is narrowed, and fewer fit.
///
/// # Errors
///
/// Those of `render`.
pub fn fit_rows<Failed>(
    rows: &[impl FitRow],
    narrowest: FieldWidth,
    budget: PageBudget,
    mut render: impl FnMut(&[FieldWidth]) -> Result<String, Failed>,
) -> Result<FittedRows, Failed> {
    let mut room = budget.bytes;
    let whole: Vec<usize> = rows.iter().map(FitRow::whole).collect();
    let sizes_of = || -> Vec<[usize; FIELD_WIDTHS.len()]> { rows.iter().map(FitRow::widths).collect() };
    // Other widths are measured when they are needed: when bytes, or then tokens, do not fit.
    let all_whole = whole.iter().sum();
    let mut only_whole = narrowest == FieldWidth::Whole || all_whole <= room;
    let mut sizes: Vec<[usize; FIELD_WIDTHS.len()]> =
        if only_whole { whole.iter().map(|size| [*size; FIELD_WIDTHS.len()]).collect() } else { sizes_of() };
    loop {
        let Some(widths) = widths_within(&sizes, room) else {
            return Ok(FittedRows::Only(rows_within(&sizes, room)));
        };
        let json = render(&widths)?;
        match tokens_within(&json, budget.tokens) {
            Ok(tokens) => return Ok(FittedRows::All { json, widths, tokens, whole: all_whole }),
            Err(tokens) => {
                if only_whole && narrowest != FieldWidth::Whole {
                    sizes = sizes_of();
                    only_whole = false;
                }
                // What stands beside the rows is too much by itself.
                if room == 0 {
                    return Ok(FittedRows::Only(0));
                }
                room = budget.less_room(room, json.len(), tokens);
            }
        }
    }
}

/// How many rows from the first on fit at their narrowest.
fn rows_within(sizes: &[[usize; FIELD_WIDTHS.len()]], room: usize) -> usize {
    let mut taken = 0_usize;
    sizes
        .iter()
        .take_while(|own| {
            taken = taken.saturating_add(own.last().copied().unwrap_or(usize::MAX));
            taken <= room
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: [&str; 3] = ["a", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", "cc"];

    struct Text(&'static str);

    impl FitRow for Text {
        fn whole(&self) -> usize {
            self.0.len() + 1
        }

        fn widths(&self) -> [usize; FIELD_WIDTHS.len()] {
            let mut widths = [2; FIELD_WIDTHS.len()];
            widths[0] = self.whole();
            widths
        }
    }

    fn fitted(narrowest: FieldWidth, bytes: usize, tokens: usize) -> FittedRows {
        let render = |widths: &[FieldWidth]| -> Result<String, ()> {
            let shown = |(row, width): (&&'static str, &FieldWidth)| match width {
                FieldWidth::Whole => *row,
                _ => "-",
            };
            let rows: Vec<&str> = ROWS.iter().zip(widths).map(shown).collect();
            Ok(format!("[{}]", rows.join(",")))
        };
        fit_rows(&ROWS.map(Text), narrowest, PageBudget { bytes: bytes - 1, tokens }, render).unwrap()
    }

    fn json(fitted: &FittedRows) -> &str {
        match fitted {
            FittedRows::All { json, .. } => json,
            FittedRows::Only(_) => "",
        }
    }

    #[test]
    fn rows_are_narrowed_before_they_are_left_out() {
        let whole = format!("[{}]", ROWS.join(","));
        assert_eq!(json(&fitted(FieldWidth::None, 100, 100)), whole);
        assert_eq!(json(&fitted(FieldWidth::None, 40, 100)), "[a,-,cc]");
        assert_eq!(json(&fitted(FieldWidth::None, 100, 6)), "[a,-,cc]");
        assert_eq!(fitted(FieldWidth::None, 5, 100), FittedRows::Only(2));
    }

    #[test]
    fn a_page_that_is_too_much_without_any_row_ends() {
        let none = |_: &[FieldWidth]| -> Result<String, ()> { Ok("a page of no rows".to_owned()) };
        let budget = PageBudget { bytes: 100, tokens: 2 };
        let fitted = fit_rows(&[] as &[Text], FieldWidth::None, budget, none).unwrap();
        assert_eq!(fitted, FittedRows::Only(0));
    }

    #[test]
    fn rows_that_stay_whole_are_left_out() {
        assert_eq!(fitted(FieldWidth::Whole, 40, 100), FittedRows::Only(1));
        assert_eq!(fitted(FieldWidth::Whole, 2, 100), FittedRows::Only(0));
    }
}
