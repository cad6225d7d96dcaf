//! Problems of attachments: the reasons why texts are missing, and the number and first names of files beyond a list of them.

use fetchwell_core::fit::clip;
use fetchwell_core::saturate::saturated;
use fetchwell_core::terminal::escape_line;

/// Maximum size of a name in a problem, in bytes. A path in an archive can have 64 KiB.
const MAX_NAME_BYTES: usize = 500;

/// Maximum number of files beyond a list that are named.
const MAX_FURTHER_NAMES: usize = 3;

/// The reason why files, or pieces of one, are missing in the text of an attachment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadProblem {
    /// Name of the attachment, or the path of a file in it. The first names, if it stands for several files.
    pub(crate) name: String,
    pub(crate) reason: String,
    /// Number of files that it stands for.
    pub(crate) files: u64,
}

/// The files beyond a list of problems: their number, and the names of the first.
#[derive(Debug, Default)]
pub(crate) struct FurtherFiles {
    names: Vec<String>,
    files: u64,
}

impl FurtherFiles {
    /// Counts the files of a problem.
    pub(crate) fn add(&mut self, name: &str, files: u64) {
        if !self.has_all_names() && files == 1 && !name.is_empty() {
            self.names.push(name.to_owned());
        }
        self.files = self.files.saturating_add(files);
    }

    /// Returns true if no further name is kept.
    pub(crate) fn has_all_names(&self) -> bool {
        self.names.len() >= MAX_FURTHER_NAMES
    }

    /// Returns the problem that stands for all of these files, if there are any.
    pub(crate) fn into_problem(self) -> Option<ReadProblem> {
        let Self { names, files } = self;
        let unnamed = files.saturating_sub(saturated(names.len()));
        let name = match (names.join(", "), unnamed) {
            (names, 0) => names,
            (names, others) if names.is_empty() => format!("{others} files"),
            (names, others) => format!("{names} and {others} more"),
        };
        let reason = format!("{files} more attached files could not be read");
        (files > 0).then_some(ReadProblem { name, reason, files })
    }
}

/// Returns the path of a file in an archive as texts and problems have it: control characters and those that change the direction of
/// text are escaped, and a long path is cut.
pub(crate) fn shown_path(path: &str) -> String {
    clip(&escape_line(path), MAX_NAME_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_files_are_counted_and_the_first_are_named() {
        for (added, expect) in [
            (&[][..], None),
            (&[("a.pdf", 1)], Some(("a.pdf", "1 more", 1))),
            (&[("a", 1), ("b, c and 7 more", 9), ("d", 1)], Some(("a, d and 9 more", "11 more", 11))),
            (&[("a", 1), ("b", 1), ("c", 1), ("d", 1)], Some(("a, b, c and 1 more", "4 more", 4))),
            (&[("", 1), ("", 2)], Some(("3 files", "3 more", 3))),
        ] {
            let mut further = FurtherFiles::default();
            added.iter().for_each(|(name, files)| further.add(name, *files));
            let problem = further.into_problem();
            let found = problem.as_ref().map(|found| (found.name.as_str(), found.files));
            assert_eq!(found, expect.map(|(name, _, files)| (name, files)));
            assert!(
                problem
                    .zip(expect)
                    .is_none_or(|(problem, (_, reason, _))| problem.reason.starts_with(reason))
            );
        }
        assert_eq!(shown_path("a/\u{202e}fdp.exe\n"), "a/\\u{202e}fdp.exe\\n");
        assert!(shown_path(&"x".repeat(60_000)).len() <= MAX_NAME_BYTES);
    }
}
