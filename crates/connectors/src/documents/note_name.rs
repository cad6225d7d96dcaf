//! The titles and days that names of files have.

use jiff::civil::{Date, DateTime};

/// Digits of the ids that Notion appends to names.
const ID_DIGITS: usize = 32;

/// Years of days that are written without separators; other numbers are ids.
const YEARS: std::ops::RangeInclusive<i16> = 1970..=2099;

/// Returns the title in the name of a file or note without its extension: without the id that Notion appends, and with `/` for the
/// `___` that Logseq writes in its place.
pub(super) fn title_of_name(stem: &str) -> String {
    without_id(stem).replace("___", "/")
}

fn without_id(stem: &str) -> &str {
    let is_id = |id: &str| {
        let mut digits = id.bytes().filter(|byte| *byte != b'-');
        digits.clone().count() == ID_DIGITS && digits.all(|digit| digit.is_ascii_hexdigit())
    };
    let named = stem.rsplit_once([' ', '_']).filter(|(_, id)| is_id(id));
    named.map(|(name, _)| name.trim()).filter(|name| !name.is_empty()).unwrap_or(stem)
}

/// Returns the day or time at the start of a name: `2024-03-09 Trip`, `2024_03_09`, `20240309`, `202403091430 Trip`.
pub(super) fn time_of_name(stem: &str) -> Option<String> {
    let end = stem.find(|character: char| !character.is_ascii_digit()).unwrap_or(stem.len());
    let (digits, rest) = stem.split_at_checked(end)?;
    if digits.len() != 4 {
        let is_word = rest.starts_with(char::is_alphanumeric);
        return if is_word { None } else { time_of_digits(digits) };
    }
    let separator = rest.chars().next().filter(|separator| matches!(separator, '-' | '_' | '.'))?;
    let (day, after) = stem.split_at_checked(10)?;
    let is_longer = after.starts_with(|character: char| character.is_ascii_digit());
    let format = format!("%Y{separator}%m{separator}%d");
    let day = Date::strptime(&format, day).ok().filter(|_| !is_longer)?;
    Some(day.to_string())
}

fn time_of_digits(digits: &str) -> Option<String> {
    let (day, clock) = digits.split_at_checked(8)?;
    let day = Date::strptime("%Y%m%d", day).ok().filter(|day| YEARS.contains(&day.year()))?;
    let format = match clock.len() {
        0 => return Some(day.to_string()),
        4 => "%Y%m%d%H%M",
        6 => "%Y%m%d%H%M%S",
        _ => return None,
    };
    Some(format!("{}Z", DateTime::strptime(format, digits).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_have_no_ids() {
        for (stem, expect) in [
            ("Road map 0123456789abcdef0123456789ABCDEF", "Road map"),
            ("Road map 01234567-89ab-cdef-0123-456789abcdef", "Road map"),
            ("Road_map_0123456789abcdef0123456789abcdef", "Road_map"),
            ("0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdef"),
            ("Road map 0123456789abcdef", "Road map 0123456789abcdef"),
            ("Road map", "Road map"),
            ("team___plans", "team/plans"),
            ("", ""),
        ] {
            assert_eq!(title_of_name(stem), expect);
        }
    }

    #[test]
    fn names_begin_with_days() {
        for (stem, expect) in [
            ("2024-03-09", Some("2024-03-09")),
            ("2024-03-09 Trip", Some("2024-03-09")),
            ("2024_03_09", Some("2024-03-09")),
            ("2024.03.09-trip", Some("2024-03-09")),
            ("20240309", Some("2024-03-09")),
            ("202403091430 Trip", Some("2024-03-09T14:30:00Z")),
            ("20240309143015", Some("2024-03-09T14:30:15Z")),
            ("2024-03_09", None),
            ("2024-13-09", None),
            ("2024-03-091", None),
            ("12345678", None),
            ("20240309x", None),
            ("202403099999", None),
            ("2024", None),
            ("2024-03-é", None),
            ("Trip 2024-03-09", None),
            ("", None),
        ] {
            assert_eq!(time_of_name(stem).as_deref(), expect, "{stem}");
        }
    }
}
