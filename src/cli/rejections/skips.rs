//! The counts of what an import did not take, as lines with remedies and as fields of JSON.

use std::collections::BTreeMap;

use fetchwell_connectors::SkipCounts;
use fetchwell_core::terminal::output::note;
use serde::Serialize;

use super::super::print::grouped;

/// Exit codes of commands that import, for their help.
pub(crate) const EXIT_CODES: &str = "Exit codes: 0 if everything was read, 3 if some files or records could not be read and all others are imported, \
                                     1 if the import failed, 2 if the command line is wrong";

/// Number of reasons of which the remedies are printed.
const MAX_REMEDIES: usize = 3;

/// The counts by reason, as fields of a JSON object.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct SkipFields {
    /// Files and folders that were left out by design.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    left_out: BTreeMap<&'static str, u64>,
    /// Files and records that could not be read.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    not_read: BTreeMap<&'static str, u64>,
}

impl From<&SkipCounts> for SkipFields {
    fn from(counts: &SkipCounts) -> Self {
        Self { left_out: counts.by_reason(true), not_read: counts.by_reason(false) }
    }
}

/// Prints the three most frequent reasons with their remedies, and counts the others.
pub(crate) fn note_skips(counts: &SkipCounts) {
    skip_lines(counts).iter().for_each(note);
}

fn skip_lines(counts: &SkipCounts) -> Vec<String> {
    let reasons: Vec<_> = counts
        .sorted()
        .into_iter()
        .map(|(reason, count)| {
            let endings = counts.endings(reason);
            let endings =
                if endings.is_empty() { String::new() } else { format!(" ({})", endings.join(", ")) };
            (reason, format!("{} {}{endings}", grouped(count), reason.phrase(count)))
        })
        .collect();
    let mut lines: Vec<String> = reasons
        .iter()
        .take(MAX_REMEDIES)
        .map(|(reason, counted)| {
            let class = if reason.is_by_design() { "left out" } else { "not read" };
            format!("{class}: {counted}; {}", reason.remedy())
        })
        .collect();
    let others: Vec<&str> = reasons.iter().skip(MAX_REMEDIES).map(|(_, counted)| counted.as_str()).collect();
    if !others.is_empty() {
        lines.push(format!("also not imported: {}", others.join(", ")));
    }
    lines
}
