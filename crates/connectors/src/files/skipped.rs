//! Counts of the files that are of no kind that an import reads.

use std::collections::BTreeMap;
use std::fmt;

use super::super::item::FileKind;
use super::super::recognition::picture_hint;

/// Maximum number of extensions that a message lists.
const MAX_ENDINGS_LISTED: usize = 5;

/// Counts of skipped files by extension.
#[derive(Debug, Default)]
pub(crate) struct SkippedFiles {
    hidden: u64,
    ignored: u64,
    links: u64,
    others: BTreeMap<String, u64>,
}

impl SkippedFiles {
    pub(crate) fn count_hidden(&mut self) {
        self.hidden += 1;
    }

    /// Counts a file or folder that `.gitignore` names or a program generated.
    pub(crate) fn count_ignored(&mut self) {
        self.ignored += 1;
    }

    pub(crate) fn count_link(&mut self) {
        self.links += 1;
    }

    pub(crate) fn count(&mut self, extension: &str) {
        let ending =
            if extension.is_empty() { "without an ending".to_owned() } else { format!(".{extension}") };
        *self.others.entry(ending).or_default() += 1;
    }

    /// Returns the number of files of other kinds.
    pub(crate) fn others(&self) -> u64 {
        self.others.values().sum()
    }
}

/// Returns true for the extension of a picture, with its dot.
fn is_picture_ending(ending: &str) -> bool {
    ending.strip_prefix('.').and_then(FileKind::from_extension) == Some(FileKind::Image)
}

impl fmt::Display for SkippedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut others: Vec<(&String, &u64)> = self.others.iter().collect();
        others.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let listed =
            others.iter().take(MAX_ENDINGS_LISTED).map(|(ending, count)| format!("{count} {ending}"));
        let mut found: Vec<String> = listed.collect();
        let rest: u64 = others.iter().skip(MAX_ENDINGS_LISTED).map(|(_, count)| **count).sum();
        if rest > 0 {
            found.push(if rest == 1 { "1 other".to_owned() } else { format!("{rest} others") });
        }
        if self.hidden > 0 {
            found.push(format!("{} hidden, which are passed over", self.hidden));
        }
        if self.ignored > 0 {
            let ignored = self.ignored;
            found.push(format!("{ignored} generated or named by .gitignore, which are passed over"));
        }
        if self.links > 0 {
            found.push(format!("{} links, which are not followed", self.links));
        }
        if found.is_empty() {
            return f.write_str("it is empty");
        }
        write!(f, "found: {}", found.join(", "))?;
        if self.others.keys().any(|ending| is_picture_ending(ending)) {
            write!(f, "; {}", picture_hint())?;
        }
        Ok(())
    }
}
