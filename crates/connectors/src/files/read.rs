//! The readers of all kinds of files, and of the files in archives.

use std::io::BufReader;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::super::ImportError;
use super::super::archive::{ArchiveLimits, Entry, gzip_entry, tar_entries, zip_entries};
use super::super::attached::{AttachmentBounds, AttachmentReader};
use super::super::calendar::{read_ics, read_vcard};
use super::super::exports::{
    SlackExports, is_name_list, read_bookmarks, read_chatgpt, read_claude, read_enex, read_github,
    read_kindle, read_slack, read_telegram, read_whatsapp,
};
use super::super::feed::read_feed;
use super::super::intake::Intake;
use super::super::item::{FileKind, FileRecord, Item, ReadError, UNREAD_PAGES, changed};
use super::super::json::read_json;
use super::super::mail::{MESSAGES, read_mailbox};
use super::super::office::{read_ods, read_xlsx};
use super::super::skips::{Problem, SkipCounts, SkipReason};
use super::super::sqlite::read_sqlite;
use super::super::tables::read_table;
use super::detect::detect_kind;
use super::project_documents::DocumentReader;
use super::record::read_record;
use super::selection::FileSelection;

/// Problem of a file with other content than its extension says.
const OTHER_CONTENT: &str = "its content is not of the kind that its extension names";

/// The reader of one import, with its counts.
pub(crate) struct FileReader<'r, 'i> {
    selection: &'r FileSelection,
    intake: &'r mut Intake<'i>,
    /// Reader of the attachments of messages.
    attachments: &'r dyn AttachmentReader,
    /// Bounds of the message that the files are attached to.
    bounds: Option<&'r AttachmentBounds>,
    /// Reader of the documents of a project, if that is imported.
    documents: Option<&'r mut DocumentReader>,
    /// Names and threads of the exports of Slack in the import.
    slack: SlackExports,
    /// Files and folders that are left out.
    skipped: SkipCounts,
    /// Number of files that were read or rejected.
    files: u64,
    /// First reason why a file or an entry of an archive was rejected, since it was taken.
    problem: Option<Problem>,
    /// True if a record has pages without text, since it was taken.
    has_unread_pages: bool,
    /// Number of attachments that could not be read before.
    unread_attachments: u64,
}

impl<'r, 'i> FileReader<'r, 'i> {
    pub(crate) fn new(
        selection: &'r FileSelection,
        intake: &'r mut Intake<'i>,
        attachments: &'r dyn AttachmentReader,
    ) -> Self {
        let (bounds, documents) = (None, None);
        let (slack, skipped) = (SlackExports::default(), SkipCounts::default());
        Self {
            selection,
            intake,
            attachments,
            bounds,
            documents,
            slack,
            skipped,
            files: 0,
            problem: None,
            has_unread_pages: false,
            unread_attachments: 0,
        }
    }

    /// Counts the files in archives within the bounds of a message.
    pub(super) fn within(self, bounds: &'r AttachmentBounds) -> Self {
        Self { bounds: Some(bounds), ..self }
    }

    /// Reads each file as a document of a project.
    pub(crate) fn with_documents(self, documents: Option<&'r mut DocumentReader>) -> Self {
        Self { documents, ..self }
    }

    /// Returns an error if the user stopped the import.
    pub(crate) fn check_stop(&self) -> Result<(), ImportError> {
        if self.intake.is_stopped() { Err(ImportError::Stopped) } else { Ok(()) }
    }

    pub(crate) fn reject(&mut self, path: &str, problem: &Problem) {
        self.files += 1;
        self.reject_content(path, problem);
    }

    /// Returns the checks and the store of the import.
    pub(crate) fn intake(&mut self) -> &mut Intake<'i> {
        self.intake
    }

    /// Returns and clears the first reason why a file, or a file in it, could not be read.
    pub(crate) fn take_problem(&mut self) -> Option<Problem> {
        self.has_unread_pages = false;
        self.unread_attachments = self.intake.unread_attachments();
        self.problem.take()
    }

    /// Returns true if text of the last file, or the whole file, is missing because no text can be recognized now.
    pub(crate) fn lacks_ocr(&self) -> bool {
        let has_unread_attachments = self.intake.unread_attachments() > self.unread_attachments;
        let is_incomplete = self.has_unread_pages || has_unread_attachments || self.problem.is_some();
        is_incomplete && self.selection.lacks_ocr()
    }

    /// Rejects a file that was counted.
    fn reject_content(&mut self, path: &str, problem: &Problem) {
        self.problem.get_or_insert_with(|| problem.clone());
        self.intake.reject_file(path, problem);
    }

    /// Reads a file of the folder, if it is of a selected kind. A file that the user named is read as the selected
    /// kind, even if its content is not recognized.
    pub(crate) fn read_file(&mut self, item: Item<'_>, is_named: bool) -> Result<(), ImportError> {
        match detect_selected(&item, self.selection, is_named) {
            Some(kind) => {
                let bytes = item.on_disk.as_deref().and_then(|file| file.metadata().ok());
                let limits = ArchiveLimits::new(bytes.map_or(0, |metadata| metadata.len()));
                // A database is read in one of its own transactions.
                let check = item.change_check().filter(|_| kind != FileKind::Sqlite);
                let (path, rejected) = (item.path.clone(), self.problem.is_some());
                self.read_kind(kind, item, &limits)?;
                if check.is_some_and(|check| check.is_changed()) && rejected == self.problem.is_some() {
                    self.reject_content(&path, &changed());
                }
                Ok(())
            }
            // Skipping it would delete the document that it was.
            None if self.documents.is_some() && is_selected_by_name(&item, self.selection) => {
                let path = item.path.clone();
                self.reject(&path, &OTHER_CONTENT.into());
                Ok(())
            }
            None => {
                self.skip_file(&item);
                Ok(())
            }
        }
    }

    /// Reports files of other kinds, and fails if no file was of a selected kind.
    pub(super) fn finish(self, path: &Path) -> Result<(), ImportError> {
        if self.files == 0 {
            let (expected, found) = (self.selection.description(), self.skipped.to_string());
            return Err(ImportError::Nothing { path: path.to_owned(), expected, found });
        }
        let is_of_one_kind = !self.selection.kinds.is_empty();
        self.add_skips(is_of_one_kind);
        Ok(())
    }

    /// Counts what was left out. An import of one kind passes over files of others.
    pub(crate) fn add_skips(self, is_of_one_kind: bool) {
        let skipped = if is_of_one_kind { self.skipped.without_other_kinds() } else { self.skipped };
        self.intake.add_skips(&skipped);
    }

    /// Reads a file that is the whole input.
    pub(super) fn read_whole(
        mut self,
        kind: FileKind,
        item: Item<'_>,
        limits: &ArchiveLimits,
    ) -> Result<(), ImportError> {
        self.read_kind(kind, item, limits)
    }

    /// Reads a file of this kind. A panic of a reader is reported, so that the import continues.
    fn read_kind(
        &mut self,
        kind: FileKind,
        item: Item<'_>,
        limits: &ArchiveLimits,
    ) -> Result<(), ImportError> {
        let path = item.path.clone();
        self.files += 1;
        let accounted = self.intake.accounted();
        let read = catch_unwind(AssertUnwindSafe(|| self.dispatch(kind, item, limits)));
        match read {
            Ok(Ok(())) => {
                // A day of a channel in which people only joined is complete.
                if accounted == self.intake.accounted() && !kind.is_archive() && kind != FileKind::Slack {
                    self.intake.note(&path, "it has no records");
                }
                Ok(())
            }
            Ok(Err(ReadError::Ended(ImportError::Unreadable { problem, .. }))) => {
                self.reject_content(&path, &problem.into());
                Ok(())
            }
            Ok(Err(ReadError::Ended(ImportError::WrongKind { expected, problem, .. }))) => {
                self.reject_content(&path, &format!("it is not {expected}: {problem}").into());
                Ok(())
            }
            Ok(Err(ReadError::Ended(error))) => Err(error),
            Ok(Err(ReadError::Rejected(problem))) => {
                self.reject_content(&path, &problem);
                Ok(())
            }
            Err(_panic) => {
                self.reject_content(&path, &Problem::internal());
                Ok(())
            }
        }
    }

    fn dispatch(
        &mut self,
        kind: FileKind,
        mut item: Item<'_>,
        limits: &ArchiveLimits,
    ) -> Result<(), ReadError> {
        if let Some(documents) = &mut self.documents {
            let record = documents.read(kind, &mut item, self.selection)?;
            return self.take(record);
        }
        if let Some(record) = read_record(kind, &mut item, self.selection, self.attachments) {
            return self.take(record?);
        }
        match kind {
            FileKind::Mbox => {
                let path = item.path.clone();
                let stream = self.selection.stream.as_deref().unwrap_or(MESSAGES);
                let mut reader = BufReader::with_capacity(1 << 16, item.into_reader());
                Ok(read_mailbox(&mut reader, &path, stream, self.attachments, self.intake)?)
            }
            FileKind::Csv => {
                let path = item.path.clone();
                Ok(read_table(item.into_reader(), &path, self.intake)?)
            }
            FileKind::Gzip => {
                let limits = limits.nested()?;
                let item = gzip_entry(item, &limits)?;
                self.read_entry(Entry::File(item), &limits)?;
                Ok(())
            }
            FileKind::Zip => {
                let limits = limits.nested()?;
                zip_entries(item, &limits, &mut |entry| self.read_entry(entry, &limits))
            }
            FileKind::Tar => {
                let limits = limits.nested()?;
                tar_entries(item, &limits, &mut |entry| self.read_entry(entry, &limits))
            }
            FileKind::Xlsx => read_xlsx(&mut item, self.intake),
            FileKind::Ods => read_ods(&mut item, self.intake),
            FileKind::Ics => read_ics(&mut item, self.intake),
            FileKind::Vcard => read_vcard(&mut item, self.intake),
            FileKind::Feed => read_feed(&mut item, self.intake),
            FileKind::Sqlite => read_sqlite(&mut item, self.intake),
            FileKind::ChatGpt => read_chatgpt(item, self.intake),
            FileKind::Claude => read_claude(item, self.intake),
            FileKind::Slack => read_slack(item, &mut self.slack, self.intake),
            FileKind::Github => read_github(item, self.intake),
            FileKind::Json => {
                let path = item.path.clone();
                Ok(read_json(item.into_reader(), &path, self.intake)?)
            }
            FileKind::Enex => read_enex(item, self.intake),
            FileKind::WhatsApp => read_whatsapp(item, self.intake),
            FileKind::Telegram => read_telegram(item, self.intake),
            FileKind::Kindle => read_kindle(item, self.intake),
            FileKind::Bookmarks => read_bookmarks(item, self.intake),
            // Files of one record, which are read above.
            FileKind::Text
            | FileKind::Markdown
            | FileKind::Html
            | FileKind::Eml
            | FileKind::Docx
            | FileKind::Pptx
            | FileKind::Odt
            | FileKind::Epub
            | FileKind::Rtf
            | FileKind::Notebook
            | FileKind::Subtitles
            | FileKind::Code
            | FileKind::Emlx
            | FileKind::Msg
            | FileKind::Keep
            | FileKind::Pdf
            | FileKind::Image => Ok(()),
        }
    }

    /// Writes a record that was parsed on another thread.
    pub(crate) fn take_parsed(&mut self, record: FileRecord) -> Result<(), ImportError> {
        self.files += 1;
        let path = record.path().to_owned();
        match self.take(record) {
            Err(ReadError::Rejected(problem)) => self.intake.reject_file(&path, &problem),
            Err(ReadError::Ended(error)) => return Err(error),
            Ok(()) => {}
        }
        Ok(())
    }

    /// Reads an entry of an archive.
    fn read_entry(&mut self, entry: Entry<'_>, limits: &ArchiveLimits) -> Result<(), ImportError> {
        self.check_stop()?;
        match entry {
            Entry::Rejected(path, problem) => self.reject(&path, &problem),
            Entry::File(item) => match detect_kind(&item) {
                Some(kind) if self.selection.has_entry(kind) => {
                    if let Some(Err(reason)) = self.bounds.map(AttachmentBounds::count_file) {
                        self.reject(&item.path, &Problem::too_large(reason));
                        return Err(ImportError::AttachmentBounds);
                    }
                    self.read_kind(kind, item, limits)?;
                }
                _ => {
                    let contradiction = self.bounds.and_then(|_bounds| contradiction(&item, self.selection));
                    match contradiction {
                        Some(reason) => self.reject(&item.path, &reason.into()),
                        None => self.skip_file(&item),
                    }
                    if is_name_list(&item.path) {
                        self.slack.read_names(item);
                    }
                }
            },
        }
        Ok(())
    }

    /// Counts a file or folder that is left out by design.
    pub(crate) fn skip(&mut self, path: &str, reason: SkipReason) {
        self.skipped.add(reason, 1);
        self.intake.skip_file(path, reason);
    }

    /// Counts a file of a kind that is not read.
    fn skip_file(&mut self, item: &Item<'_>) {
        let (extension, reason) = (item.extension(), other_kind(item));
        self.skipped.add_file(reason, &extension);
        self.intake.skip_file(&item.path, reason);
    }

    /// Passes a record to the store. Its place in a report is the path of the file.
    fn take(&mut self, record: FileRecord) -> Result<(), ReadError> {
        let stream = self.selection.stream.clone();
        let place = record.path().to_owned();
        self.has_unread_pages |= record.data.contains_key(UNREAD_PAGES);
        let record = FileRecord { stream: stream.unwrap_or_else(|| record.stream.clone()), ..record };
        Ok(record.take_into(&place, self.intake)?)
    }
}

/// Returns the reason why a file of no known kind is left out.
pub(crate) fn other_kind(item: &Item<'_>) -> SkipReason {
    // Source code that a program generated is of no kind, whatever its extension.
    let named = FileKind::from_extension(&item.extension()).filter(|kind| *kind != FileKind::Code);
    if item.head().is_empty() {
        SkipReason::Empty
    } else if named.is_some() && detect_kind(item).is_none() {
        SkipReason::Unrecognized
    } else {
        SkipReason::Unsupported
    }
}

/// Returns true if the extension of a file names a selected kind.
fn is_selected_by_name(item: &Item<'_>, selection: &FileSelection) -> bool {
    FileKind::from_extension(&item.extension()).is_some_and(|kind| selection.has(kind))
}

/// Returns the problem of an attachment that is of no selected kind, although its extension names one. Source code that a program
/// generated has none.
pub(super) fn contradiction(item: &Item<'_>, selection: &FileSelection) -> Option<&'static str> {
    let is_code = FileKind::from_extension(&item.extension()) == Some(FileKind::Code);
    let is_named = !is_code && is_selected_by_name(item, selection);
    is_named.then_some(if item.head().is_empty() { "it is empty" } else { OTHER_CONTENT })
}

/// Returns the kind of a file, if it is selected. A file that the user named is read as the selected kind, even if its
/// content is not recognized.
pub(crate) fn detect_selected(
    item: &Item<'_>,
    selection: &FileSelection,
    is_named: bool,
) -> Option<FileKind> {
    let detected = detect_kind(item);
    let general = detected.and_then(FileKind::general);
    let read = [detected, general].into_iter().flatten().find(|kind| selection.has(*kind));
    read.or(selection.kinds.first().copied().filter(|kind| is_named && selection.has(*kind)))
}
