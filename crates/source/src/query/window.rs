//! Query for a window of one text field, and its computation. Offsets are code points.

use std::ops::Range;

use fetchwell_core::fit::characters;
use fetchwell_core::handle::RecordAddress;
use fetchwell_core::record::Window;

/// Query for a window of a text field of one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowQuery {
    /// Address of the record.
    pub address: RecordAddress,
    /// Name of the top-level field.
    pub field: String,
    /// Start of the window.
    pub start: WindowStart,
    /// Maximum number of code points, 1 to 16,384.
    pub limit_chars: usize,
}

/// Start of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WindowStart {
    /// At this code point. A start beyond the end returns an empty window.
    Offset(usize),
    /// Around the first match of this text.
    Around {
        /// The text, in any case.
        text: String,
        /// Number of code points before it.
        before: usize,
        /// Number of code points after it.
        after: usize,
    },
}

impl WindowQuery {
    /// Returns the window of a whole text, or `None` if the text has no match.
    pub fn window_of(&self, address: RecordAddress, text: &str) -> Option<Window> {
        let total_chars = text.chars().count();
        let (start_chars, count, found_chars) = match &self.start {
            WindowStart::Offset(offset) => ((*offset).min(total_chars), self.limit_chars, None),
            WindowStart::Around { text: wanted, before, after } => {
                let found = find(text, wanted)?;
                let room = self.limit_chars.saturating_sub(found.len());
                let (before, after) =
                    share((*before).min(found.start), (*after).min(total_chars - found.end), room);
                (found.start - before, before + found.len() + after, Some(found))
            }
        };
        let text = characters(text, start_chars, count).to_owned();
        Some(Window { address, text, start_chars, total_chars, found_chars })
    }
}

/// Shares `room` between the text before and after a match: half for each side, and what one side does not need goes
/// to the other.
pub fn share(before: usize, after: usize, room: usize) -> (usize, usize) {
    let before = before.min((room / 2).max(room.saturating_sub(after)));
    (before, after.min(room - before))
}

/// Returns the first match of a text in another, in any case, in code points.
fn find(text: &str, wanted: &str) -> Option<Range<usize>> {
    // One character each, so that positions do not change.
    let lower = |c: char| c.to_lowercase().next().unwrap_or(c);
    let text: String = text.chars().map(lower).collect();
    let wanted: String = wanted.chars().map(lower).collect();
    // Linear in both texts, even if the text nearly matches everywhere.
    let (before, _) = text.split_once(&wanted)?;
    let start = before.chars().count();
    Some(start..start + wanted.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_by_code_points_in_any_case() {
        assert_eq!(find("a😀b invoice", "invoice"), Some(4..11));
        assert_eq!(find("ÄRGER über", "ärger"), Some(0..5));
        assert_eq!(find("Äb äb", "äb"), Some(0..2));
        assert_eq!(find("abc", "x"), None);
        assert_eq!(find("abc", "abcd"), None);
        assert_eq!(find("", "x"), None);
    }

    /// A comparison at each position would take two billion steps.
    #[test]
    fn a_text_that_nearly_matches_everywhere_is_searched() {
        let wanted = format!("{}b", "a".repeat(1_000));
        let text = "A".repeat(2_000_000);
        assert_eq!(find(&text, &wanted), None);
        assert_eq!(find(&format!("{text}{wanted}"), &wanted), Some(2_000_000..2_001_001));
    }

    #[test]
    fn a_match_is_in_the_middle_of_its_room() {
        for (before, after, room, expect) in [
            (500, 500, 2_000, (500, 500)),
            (500, 500, 375, (187, 188)),
            (500, 10, 375, (365, 10)),
            (10, 500, 375, (10, 365)),
            (500, 500, 0, (0, 0)),
            (0, 0, 100, (0, 0)),
        ] {
            assert_eq!(share(before, after, room), expect, "{before} {after} {room}");
        }
    }

    #[test]
    fn a_window_holds_its_match_and_ends_with_the_text() {
        let text = format!("{}NEEDLE{}", "a".repeat(300), "b".repeat(40));
        let window = |before, after, limit_chars| {
            let start = WindowStart::Around { text: "needle".to_owned(), before, after };
            let address = RecordAddress {
                connection: None,
                stream: "s".parse().unwrap(),
                record: "r".parse().unwrap(),
            };
            let query = WindowQuery { address: address.clone(), field: "f".to_owned(), start, limit_chars };
            let window = query.window_of(address, &text).unwrap();
            let found = window.found_chars.clone().unwrap();
            assert_eq!(found, 300..306);
            (found.start - window.start_chars, window.end_chars() - found.end)
        };
        assert_eq!(window(500, 500, 46), (20, 20));
        // Room that is not needed after the match goes to the text before it.
        assert_eq!(window(500, 500, 106), (60, 40));
        assert_eq!(window(5, 7, 4_096), (5, 7));
        assert_eq!(window(500, 500, 3), (0, 0));
    }
}
