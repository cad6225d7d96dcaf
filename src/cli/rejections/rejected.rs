//! Rejected records and files of an import: a few lines on standard error, and all of them in a report file.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fetchwell_connectors as connectors;
use fetchwell_connectors::{Report, SkipReason, UnreadAttachment};
use fetchwell_core::saturate::saturated;
use fetchwell_core::terminal::output::note;
use fetchwell_state::{not_a_file, private_options};
use serde_json::json;

use super::super::print::{counted, grouped};
use super::progress::Progress;
use crate::app::failure::Failure;

/// Number of rejections that are printed at once.
const MAX_IMMEDIATE: usize = 3;

/// Number of rejections that are printed one by one; of more, the most frequent reasons are.
const MAX_LISTED: usize = 7;

/// Number of reasons that are printed.
const MAX_REASONS: usize = 3;

/// Number of notes that are printed.
const MAX_NOTES: usize = 5;

/// Maximum number of distinct reasons that are counted. Others count as one.
const MAX_DISTINCT: usize = 1_000;

/// Start of the first line of a report.
const HEADER: &str = "{\"report\":\"fetchwell import\"";

/// Receiver of the rejections of one import.
pub(crate) struct Rejections<'r> {
    file: PathBuf,
    progress: Progress,
    listed: Vec<String>,
    rejected: u64,
    still_rejected: u64,
    /// First notes about how tables and files were understood, and their number.
    notes: Vec<String>,
    noted: u64,
    reasons: BTreeMap<String, Reason>,
    /// Reasons of attachments that could not be read.
    unread_attachments: BTreeMap<String, Reason>,
    report: Option<&'r mut ReportFile>,
}

/// Number of rejections for a reason, and the place of the first.
struct Reason {
    count: u64,
    first: String,
}

/// Reason that stands for all beyond [`MAX_DISTINCT`].
const OTHER_REASONS: &str = "other reasons";

/// Adds to the count of a reason, of which `place` is the first place if it is new.
fn count_reason(reasons: &mut BTreeMap<String, Reason>, reason: &str, count: u64, place: String) {
    let is_known = reasons.len() < MAX_DISTINCT || reasons.contains_key(reason);
    let reason = if is_known { reason } else { OTHER_REASONS };
    reasons.entry(reason.to_owned()).or_insert(Reason { count: 0, first: place }).count += count;
}

/// Returns the most frequent reasons, the first ones first.
fn most_frequent(reasons: &BTreeMap<String, Reason>) -> Vec<(&String, &Reason)> {
    let mut sorted: Vec<(&String, &Reason)> = reasons.iter().collect();
    sorted.sort_by_key(|(_, reason)| std::cmp::Reverse(reason.count));
    sorted.truncate(MAX_REASONS);
    sorted
}

impl<'r> Rejections<'r> {
    /// Creates the receiver for an import of `file`, which begins its part of the report file.
    pub(crate) fn new(file: &Path, progress: Progress, mut report: Option<&'r mut ReportFile>) -> Self {
        if let Some(report) = &mut report {
            report.write(&json!({ "report": "fetchwell import", "path": file }));
        }
        Self {
            file: file.to_owned(),
            progress,
            listed: Vec::new(),
            rejected: 0,
            still_rejected: 0,
            notes: Vec::new(),
            noted: 0,
            reasons: BTreeMap::new(),
            unread_attachments: BTreeMap::new(),
            report,
        }
    }

    /// Prints what was not printed at once, and removes the progress from the terminal.
    pub(crate) fn finish(self) {
        self.progress.finish();
        self.print_notes();
        self.print_attachments();
        if self.still_rejected > 0 && self.report.is_none() {
            let files = counted(self.still_rejected, "file");
            note(&format_args!(
                "{}: {files} rejected before and not changed since; add --report FILE to list them",
                self.file.display()
            ));
        }
        if self.has_listed_all() {
            self.listed.iter().skip(MAX_IMMEDIATE).for_each(note);
        } else {
            for (reason, Reason { count, first }) in most_frequent(&self.reasons) {
                note(&format_args!("{} rejected, first {first}: {reason}", grouped(*count)));
            }
            let rest = match self.reasons.len().saturating_sub(MAX_REASONS) {
                0 => String::new(),
                rest => format!("; there are {rest} more reasons"),
            };
            let all = grouped(self.rejected);
            match &self.report {
                Some(report) => {
                    note(&format_args!("all {all} rejections are in {}{rest}", report.path.display()));
                }
                None => note(&format_args!("add --report FILE to list all {all} rejections{rest}")),
            }
        }
    }

    /// Prints the first notes.
    fn print_notes(&self) {
        self.notes.iter().for_each(note);
        let more = self.noted.saturating_sub(saturated::<u64>(self.notes.len()));
        if more > 0 && self.report.is_none() {
            note(&format_args!("add --report FILE to list {} more notes", grouped(more)));
        }
    }

    /// Prints the most frequent reasons of attachments that could not be read.
    fn print_attachments(&self) {
        for (reason, Reason { count, first }) in most_frequent(&self.unread_attachments) {
            let attachments = counted(*count, "attachment");
            note(&format_args!(
                "{attachments} not read, first {first}: {reason}; the records have their names"
            ));
        }
        let more: u64 = self.unread_attachments.values().map(|reason| reason.count).sum();
        if self.unread_attachments.len() > MAX_REASONS && self.report.is_none() {
            note(&format_args!("add --report FILE to list all {} attachments", grouped(more)));
        }
    }

    fn has_listed_all(&self) -> bool {
        u64::try_from(self.listed.len()).is_ok_and(|listed| listed == self.rejected)
    }
}

impl Report for Rejections<'_> {
    fn rejected(&mut self, place: &dyn fmt::Display, reason: &str) {
        let place = place.to_string();
        if let Some(report) = &mut self.report {
            report.write(&json!({ "rejected": place, "reason": reason }));
        }
        if self.listed.len() < MAX_LISTED {
            let line = format!("{}: {reason}", located(&self.file, &place));
            if self.listed.len() < MAX_IMMEDIATE {
                self.progress.bar.suspend(|| note(&line));
            }
            self.listed.push(line);
        }
        self.rejected += 1;
        count_reason(&mut self.reasons, reason, 1, place);
    }

    fn unread_attachment(&mut self, unread: &UnreadAttachment<'_>) {
        let UnreadAttachment { place, name, reason, files } = *unread;
        if let Some(report) = &mut self.report {
            report.write(&json!({ "attachment": name, "of": place, "reason": reason }));
        }
        count_reason(&mut self.unread_attachments, reason, files, format!("{place} ({name})"));
    }

    fn noted(&mut self, place: &str, note: &str) {
        self.noted += 1;
        if self.notes.len() < MAX_NOTES {
            self.notes.push(format!("{place}: {note}"));
        }
        if let Some(report) = &mut self.report {
            report.write(&json!({ "noted": place, "note": note }));
        }
    }

    fn still_rejected(&mut self, path: &str, reason: &str) {
        self.still_rejected += 1;
        if let Some(report) = &mut self.report {
            report.write(&json!({ "rejected": path, "reason": reason }));
        }
    }

    fn skipped(&mut self, path: &str, reason: SkipReason) {
        if let Some(report) = &mut self.report {
            let (text, code) = (reason.phrase(1), reason.as_str());
            report.write(&json!({ "skipped": path, "reason": text, "code": code }));
        }
    }

    fn accepted(&mut self) {
        self.progress.count_record();
    }

    fn progress(&self) -> Arc<dyn connectors::Progress> {
        Arc::new(self.progress.clone())
    }
}

/// Returns the path of a place in an origin, with its line or item. Places of a folder are paths below it; those of a file are
/// numbers, or begin with the name of the file.
fn located(origin: &Path, place: &str) -> String {
    let first = place.split(['/', ':']).next().unwrap_or_default();
    // Commits of a repository are no paths below it.
    if !place.is_empty() && origin.is_dir() && origin.join(first).exists() {
        return origin.join(place).display().to_string();
    }
    let name = origin.file_name().and_then(OsStr::to_str);
    match name.and_then(|name| place.strip_prefix(name)) {
        Some(rest) if rest.is_empty() || rest.starts_with(['/', ':']) => {
            format!("{}{rest}", origin.display())
        }
        _ => format!("{}:{place}", origin.display()),
    }
}

/// File with a line of JSON for each rejected record and skipped file, and one for each import before them.
pub(crate) struct ReportFile {
    path: PathBuf,
    file: BufWriter<File>,
    /// First error of writing, which is reported at the end.
    problem: Option<io::Error>,
}

impl ReportFile {
    /// Creates the file, or replaces an earlier report. Other files are refused.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let unwritable = |problem: &dyn fmt::Display| {
            Failure::new(format!(
                "the report {} cannot be written ({problem}); name another file",
                path.display()
            ))
        };
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(unwritable(&error)),
            Ok(metadata) => {
                if let Some(problem) = not_a_file(&metadata) {
                    return Err(unwritable(&problem));
                }
                if !is_report(path).map_err(|error| unwritable(&error))? {
                    return Err(unwritable(&"it exists and is no report of fetchwell"));
                }
            }
        }
        let file = private_options().write(true).create(true).truncate(true).open(path);
        let file = BufWriter::new(file.map_err(|error| unwritable(&error))?);
        Ok(Self { path: path.to_owned(), file, problem: None })
    }

    fn write(&mut self, line: &serde_json::Value) {
        if self.problem.is_none() {
            self.problem = writeln!(self.file, "{line}").err();
        }
    }

    /// Completes the file.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        match self.problem.or(self.file.flush().err()) {
            None => Ok(()),
            Some(error) => Err(Failure::new(format!(
                "the report {} cannot be written ({error}); the records are imported",
                self.path.display()
            ))),
        }
    }
}

/// Returns true if a file is empty or begins like a report.
fn is_report(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    let limit = saturated::<u64>(HEADER.len());
    BufReader::new(File::open(path)?).take(limit).read_until(b'\n', &mut start)?;
    Ok(start.is_empty() || start == HEADER.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_folder_is_a_path() {
        let folder = tempfile::tempdir().unwrap();
        let notes = folder.path().join("notes");
        fs::create_dir_all(notes.join("team")).unwrap();
        fs::write(notes.join("orders.csv"), "").unwrap();
        fs::write(notes.join("a.zip"), "").unwrap();
        let check = |origin: &Path, place: &str, expect: &str| {
            assert_eq!(located(origin, place), format!("{}/{expect}", folder.path().display()));
        };
        for (place, expect) in [
            ("team/lets.db", "notes/team/lets.db"),
            ("orders.csv:7", "notes/orders.csv:7"),
            ("a.zip/b.md", "notes/a.zip/b.md"),
            ("commit 3", "notes:commit 3"),
        ] {
            check(&notes, place, expect);
        }
        for (name, place, expect) in [
            ("orders.csv", "7", "notes/orders.csv:7"),
            ("orders.csv", "orders.csv", "notes/orders.csv"),
            ("orders.csv", "orders.csv:7", "notes/orders.csv:7"),
            ("a.zip", "a.zip/b.md", "notes/a.zip/b.md"),
            ("a.zip", "item 2", "notes/a.zip:item 2"),
        ] {
            check(&notes.join(name), place, expect);
        }
    }
}
