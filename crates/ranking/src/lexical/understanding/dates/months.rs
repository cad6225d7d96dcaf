//! Names of months in seven languages.

use std::collections::HashMap;
use std::sync::OnceLock;

/// Names that are words of their own. Beside a year alone they are no months.
const AMBIGUOUS_SHORT: [&str; 5] = ["set", "out", "mag", "gen", "ago"];

/// Name of a month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MonthName {
    /// Number of the month, 1 to 12.
    pub(super) number: i16,
    /// Languages that have the name, by their codes of two letters.
    languages: Vec<&'static str>,
    /// True for a short form.
    pub(super) is_short: bool,
}

impl MonthName {
    /// Returns true if one of some languages has the name.
    pub(super) fn is_of(&self, languages: &[&str]) -> bool {
        self.languages.iter().any(|language| languages.contains(language))
    }
}

/// Returns the month of a folded name.
pub(super) fn month(folded: &str) -> Option<&'static MonthName> {
    static NAMES: OnceLock<HashMap<&'static str, MonthName>> = OnceLock::new();
    NAMES.get_or_init(read_names).get(folded)
}

/// Returns the month of a name that is also a month beside a year alone.
pub(super) fn month_of_year(folded: &str) -> Option<&'static MonthName> {
    month(folded).filter(|_| !AMBIGUOUS_SHORT.contains(&folded))
}

fn read_names() -> HashMap<&'static str, MonthName> {
    let mut names: HashMap<&'static str, MonthName> = HashMap::new();
    for line in include_str!("months.txt").lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let Some(language) = words.next() else { continue };
        let (language, is_short) =
            language.strip_suffix('.').map_or((language, false), |language| (language, true));
        for (number, name) in (1..).zip(words).filter(|(_, name)| *name != "-") {
            let known = names.entry(name).or_insert(MonthName { number, languages: Vec::new(), is_short });
            known.is_short &= is_short;
            known.languages.push(language);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_twelve_months() {
        for line in include_str!("months.txt").lines().filter(|line| !line.starts_with('#')) {
            let names: Vec<&str> = line.split_whitespace().skip(1).collect();
            assert_eq!(names.len(), 12, "{line}");
            for (number, name) in (1..).zip(names).filter(|(_, name)| *name != "-") {
                assert_eq!(month(name).unwrap().number, number, "{name}");
            }
        }
        assert!(month("may").is_some_and(|may| !may.is_short && may.is_of(&["en"])));
        assert!(month("mar").is_some_and(|march| march.is_short));
        assert_eq!(month_of_year("set"), None);
    }
}
