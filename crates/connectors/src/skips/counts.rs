//! The counts of what an import does not take, by reason.

use std::collections::BTreeMap;
use std::fmt;

use super::reason::SkipReason;

/// Maximum number of extensions that a message lists.
const MAX_ENDINGS_LISTED: usize = 5;

/// Maximum number of extensions that are counted apart.
const MAX_ENDINGS: usize = 1_000;

/// The counts of an import by reason, and those of files of other kinds by extension.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkipCounts {
    reasons: BTreeMap<SkipReason, u64>,
    /// Extensions of files of other kinds. Those beyond the maximum are only in the counts by reason.
    endings: BTreeMap<(SkipReason, String), u64>,
}

impl SkipCounts {
    /// Counts files, folders or records that are skipped for a reason.
    pub(crate) fn add(&mut self, reason: SkipReason, count: u64) {
        *self.reasons.entry(reason).or_default() += count;
    }

    /// Counts a file of a kind that is not read, with its extension in lower case.
    pub(crate) fn add_file(&mut self, reason: SkipReason, extension: &str) {
        self.add(reason, 1);
        let ending =
            if extension.is_empty() { "without an ending".to_owned() } else { format!(".{extension}") };
        self.add_ending((reason, ending), 1);
    }

    /// Adds the counts of another part of the import.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (reason, count) in &other.reasons {
            self.add(*reason, *count);
        }
        for (ending, count) in &other.endings {
            self.add_ending(ending.clone(), *count);
        }
    }

    fn add_ending(&mut self, ending: (SkipReason, String), count: u64) {
        if self.endings.len() < MAX_ENDINGS || self.endings.contains_key(&ending) {
            *self.endings.entry(ending).or_default() += count;
        }
    }

    /// Returns the counts without files of other kinds, which an import of one kind passes over.
    pub(crate) fn without_other_kinds(self) -> Self {
        self.filtered(|reason| !reason.is_other_kind())
    }

    /// Returns the counts of what could not be read.
    #[must_use]
    pub fn only_not_read(self) -> Self {
        self.filtered(|reason| !reason.is_by_design())
    }

    fn filtered(mut self, is_kept: impl Fn(SkipReason) -> bool) -> Self {
        self.reasons.retain(|reason, _| is_kept(*reason));
        self.endings.retain(|(reason, _), _| is_kept(*reason));
        self
    }

    /// Returns the number of files that were opened and are of no kind that is read.
    #[must_use]
    pub fn other_kinds(&self) -> u64 {
        self.total(SkipReason::is_other_kind)
    }

    /// Returns the number of files and records that could not be read.
    #[must_use]
    pub fn not_read(&self) -> u64 {
        self.total(|reason| !reason.is_by_design())
    }

    /// Returns the counts of what is left out by design, or of what could not be read.
    #[must_use]
    pub fn by_reason(&self, is_by_design: bool) -> BTreeMap<&'static str, u64> {
        let chosen = self.reasons.iter().filter(|(reason, _)| reason.is_by_design() == is_by_design);
        chosen.map(|(reason, count)| (reason.as_str(), *count)).collect()
    }

    /// Returns the reasons with their counts, those for which something could not be read first, then the most frequent.
    #[must_use]
    pub fn sorted(&self) -> Vec<(SkipReason, u64)> {
        let mut sorted: Vec<(SkipReason, u64)> =
            self.reasons.iter().map(|(reason, count)| (*reason, *count)).collect();
        sorted.sort_by_key(|(reason, count)| (reason.is_by_design(), std::cmp::Reverse(*count)));
        sorted
    }

    /// Returns the most frequent extensions of the files that are skipped for a reason with their counts, such as `2 .bin`.
    #[must_use]
    pub fn endings(&self, reason: SkipReason) -> Vec<String> {
        let of_reason = self.endings.iter().filter(|((other, _), _)| *other == reason);
        let mut sorted: Vec<(&String, u64)> =
            of_reason.map(|((_, ending), count)| (ending, *count)).collect();
        sorted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        if sorted.is_empty() {
            return Vec::new();
        }
        let listed: Vec<(&String, u64)> = sorted.into_iter().take(MAX_ENDINGS_LISTED).collect();
        let all = self.reasons.get(&reason).copied().unwrap_or_default();
        let rest = all.saturating_sub(listed.iter().map(|(_, count)| count).sum());
        let mut endings: Vec<String> =
            listed.into_iter().map(|(ending, count)| format!("{count} {ending}")).collect();
        match rest {
            0 => {}
            1 => endings.push("1 other".to_owned()),
            rest => endings.push(format!("{rest} others")),
        }
        endings
    }

    fn total(&self, is_counted: impl Fn(SkipReason) -> bool) -> u64 {
        self.reasons.iter().filter(|(reason, _)| is_counted(**reason)).map(|(_, count)| count).sum()
    }
}

impl fmt::Display for SkipCounts {
    /// Writes what a folder has in which no file is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = [SkipReason::Unsupported, SkipReason::Unrecognized, SkipReason::Empty];
        let files = files.into_iter().flat_map(|reason| self.endings(reason));
        let others = self.reasons.iter().filter(|(reason, _)| !reason.is_other_kind());
        let others = others.map(|(reason, count)| format!("{count} {}", reason.phrase(*count)));
        let found: Vec<String> = files.chain(others).collect();
        if found.is_empty() { f.write_str("it is empty") } else { write!(f, "found: {}", found.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_read_comes_first() {
        let mut counts = SkipCounts::default();
        counts.add(SkipReason::Gitignore, 900);
        counts.add(SkipReason::Hidden, 1_000);
        counts.add(SkipReason::Link, 1);
        counts.add(SkipReason::Encrypted, 1);
        counts.add(SkipReason::Damaged, 2);
        counts.add_file(SkipReason::Unsupported, "bin");
        let expect = [
            (SkipReason::Damaged, 2),
            (SkipReason::Encrypted, 1),
            (SkipReason::Hidden, 1_000),
            (SkipReason::Gitignore, 900),
            (SkipReason::Link, 1),
            (SkipReason::Unsupported, 1),
        ];
        assert_eq!(counts.sorted(), expect);
        assert_eq!((counts.not_read(), counts.other_kinds()), (3, 1));
        assert_eq!(
            counts.to_string(),
            "found: 1 .bin, 900 named by .gitignore, 1000 hidden, 1 link, 1 encrypted, 2 damaged or incomplete"
        );
        assert_eq!(SkipCounts::default().to_string(), "it is empty");
        let only_not_read = counts.only_not_read();
        assert_eq!((only_not_read.not_read(), only_not_read.sorted().len()), (3, 2));
    }

    #[test]
    fn extensions_are_bounded() {
        let mut counts = SkipCounts::default();
        for number in 0..3_000 {
            counts.add_file(SkipReason::Unsupported, &format!("x{number}"));
        }
        assert_eq!(counts.endings.len(), MAX_ENDINGS);
        let endings = counts.endings(SkipReason::Unsupported);
        assert_eq!(endings.last().map(String::as_str), Some("2995 others"), "{endings:?}");
        assert!(counts.endings(SkipReason::Hidden).is_empty());
    }
}
