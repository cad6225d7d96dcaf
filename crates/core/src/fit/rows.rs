//! Fitting of the rows of a page: all rows, with the largest narrowed most.

use super::budget;
use super::fields::{FIELD_WIDTHS, FieldWidth, widths_within};
use super::protection::Limits;
use super::tokens::{count_tokens, tokens_within};

/// Tokens by which a text can exceed the sum of its row part and the rest, at their two seams.
const SEAM_TOKENS: usize = 16;

/// Maximum size of one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageBudget {
    /// Bytes of JSON.
    pub bytes: usize,
    /// Tokens of that JSON.
    pub tokens: usize,
}

impl PageBudget {
    /// Returns the budget of an answer with a requested size.
    #[must_use]
    pub fn whole(limits: &Limits) -> Self {
        Self::of_tokens(limits.hard_cap)
    }

    /// Returns the budget of an answer without a requested size.
    #[must_use]
    pub fn unasked(limits: &Limits) -> Self {
        Self::of_tokens(limits.threshold.min(limits.hard_cap))
    }

    /// Returns the maximum of an answer: its hard cap, unless that is waived.
    #[must_use]
    pub fn cap(limits: &Limits) -> Self {
        if limits.exempt { Self { bytes: usize::MAX, tokens: usize::MAX } } else { Self::whole(limits) }
    }

    /// Returns the rest of the budget for a text beside other JSON.
    #[must_use]
    pub fn beside_json(self, json: &str) -> Self {
        let tokens = self.tokens.saturating_sub(count_tokens(json) + SEAM_TOKENS);
        Self { tokens, ..self.beside(json.len()) }
    }

    /// Returns the bytes for the next try, after a try with `room` bytes took `bytes` bytes and too many tokens.
    /// Tokens are spread unevenly; each try is at least a twentieth smaller, so the tries end.
    #[must_use]
    pub fn less_room(self, room: usize, bytes: usize, tokens: usize) -> usize {
        room.min(bytes) * self.tokens / tokens.max(1) * 19 / 20
    }

    /// Returns the rest of the budget for rows beside other bytes.
    #[must_use]
    pub fn beside(self, bytes: usize) -> Self {
        Self { bytes: self.bytes.saturating_sub(bytes), ..self }
    }

    /// Doubles the budget, up to another one.
    #[must_use]
    pub fn doubled(self, max: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_mul(2).min(max.bytes),
            tokens: self.tokens.saturating_mul(2).min(max.tokens),
        }
    }

    /// Creates the budget of a number of tokens, with four bytes for each, so that most texts that are too long are
    /// known by their bytes.
    fn of_tokens(tokens: usize) -> Self {
        Self { bytes: tokens.saturating_mul(budget::BYTES_PER_TOKEN), tokens }
    }
}

/// Page that fits, or the number of its rows that fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FittedRows {
    /// All rows are on the page.
    All {
        /// JSON of the page.
        json: String,
        /// Width of each row.
        widths: Vec<FieldWidth>,
        /// Tokens of the page, if they had to be counted.
        tokens: Option<usize>,
        /// Bytes of all complete rows with their commas.
        whole: usize,
    },
    /// Only this many rows, from the first on, fit at their narrowest.
    Only(usize),
}

/// Row that can be narrowed.
pub trait FitRow {
    /// Returns the bytes of the complete row with its comma.
    fn whole(&self) -> usize;

    /// Returns the bytes of the row at every width, with its comma.
    fn widths(&self) -> [usize; FIELD_WIDTHS.len()];
}

/// Fits rows into a budget. Its bytes are for the rows alone, and its tokens for all of the page. `render` serializes
/// the page with its rows at some widths. With `narrowest` at [`FieldWidth::Whole`] no row is narrowed, and fewer
/// fit.
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
    // Other widths are measured only if bytes, or then tokens, do not fit.
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
                // The JSON beside the rows exceeds the budget by itself.
                if room == 0 {
                    return Ok(FittedRows::Only(0));
                }
                room = budget.less_room(room, json.len(), tokens);
            }
        }
    }
}

/// Returns the number of rows, from the first on, that fit at their narrowest.
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
