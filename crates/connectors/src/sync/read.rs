//! Reads the files of an origin into a store.

use std::collections::HashSet;
use std::fs;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fetchwell_source::contract::{Fingerprint, ItemState};

use super::super::ImportError;
use super::super::archive::unzip_input;
use super::super::field_names::FieldNames;
use super::super::files::{
    Attachments, DocumentReader, FileReader, FileSelection, FolderEntry, ListEntry, ParseInput, import_mbox,
    parse_all,
};
use super::super::git::import_git;
use super::super::input::Input;
use super::super::intake::Intake;
use super::super::item::{FileKind, Item};
use super::super::json::import_json;
use super::super::records::import_records;
use super::super::skips::Problem;
use super::super::tables::import_csv;
use super::kind::{FileSet, ImportKind, ImportOptions};
use super::scan::ScannedFile;
use super::stamp::fingerprint;

/// Reader of the files of an import.
pub(super) struct OriginReader<'a> {
    pub(super) kind: ImportKind,
    pub(super) options: &'a ImportOptions,
    pub(super) origin: &'a Path,
    /// Program that reads PDF documents in a process of its own.
    pub(super) program: Option<PathBuf>,
    /// Reader of the documents of a project, if the import is of one.
    pub(super) documents: Option<DocumentReader>,
    pub(super) stop: &'a Arc<AtomicBool>,
}

/// Counts of the files that were read.
#[derive(Debug, Default)]
pub(super) struct ReadFiles {
    /// Files that were read.
    pub(super) read: u64,
    /// Paths of the files that could not be read completely.
    pub(super) unreadable: HashSet<String>,
}

impl OriginReader<'_> {
    /// Reads files in the given order, each as an item.
    pub(super) fn read<'f>(
        &mut self,
        files: impl Iterator<Item = &'f ScannedFile>,
        intake: &mut Intake<'_>,
        counts: &mut ReadFiles,
    ) -> Result<(), ImportError> {
        match self.kind {
            ImportKind::Files(set) => self.read_files(set, files, intake, counts),
            _ => files.into_iter().try_for_each(|file| self.read_single(file, intake, counts)),
        }
    }

    fn read_files<'f>(
        &mut self,
        set: &FileSet,
        files: impl Iterator<Item = &'f ScannedFile>,
        intake: &mut Intake<'_>,
        counts: &mut ReadFiles,
    ) -> Result<(), ImportError> {
        let files: Vec<&ScannedFile> = files.collect();
        let origin = self.origin;
        let selection = self.selection(set.kinds);
        let list = |visit: &mut dyn FnMut(FolderEntry) -> Result<(), ImportError>| {
            files.iter().try_for_each(|file| {
                visit(FolderEntry::File { file: file.file.clone(), path: file.path.clone() })
            })
        };
        let progress = intake.progress();
        let attachments = Attachments::new(&selection, intake.stop_flag());
        let input = ParseInput {
            root: origin,
            selection: &selection,
            attachments: &attachments,
            parses: self.documents.is_none(),
            list: &list,
            max_files: files.len(),
            read_state: &|file: &Path| fingerprint(file).ok().flatten(),
        };
        let documents = self.documents.as_mut();
        let mut reader = FileReader::new(&selection, intake, &attachments).with_documents(documents);
        // Results come in the order of the list, one for each file.
        let mut listed = files.iter();
        parse_all(&input, &mut |parsed, fingerprint| {
            reader.check_stop()?;
            match listed.next() {
                Some(file) => {
                    progress.read(file.bytes);
                    take(origin, file, parsed, fingerprint.flatten(), &mut reader, counts)
                }
                None => Ok(()),
            }
        })?;
        reader.add_skips(set.kinds.len() == 1);
        Ok(())
    }

    /// Reads a file that is the whole origin.
    fn read_single(
        &self,
        file: &ScannedFile,
        intake: &mut Intake<'_>,
        counts: &mut ReadFiles,
    ) -> Result<(), ImportError> {
        let mut state = state_of(file, fingerprint(&file.file).ok().flatten());
        begin(intake, file);
        let (selection, unread) = (self.selection(&[FileKind::Mbox]), intake.unread_attachments());
        match self.import(&file.file, &selection, intake) {
            // The next synchronization may recognize their text.
            Ok(()) if intake.unread_attachments() > unread && selection.lacks_ocr() => state.stamp = None,
            Ok(()) => {}
            Err(_stopped) if self.stop.load(Ordering::Relaxed) => return Err(ImportError::Stopped),
            Err(error @ (ImportError::Unreadable { .. } | ImportError::WrongKind { .. })) => {
                let problem = Problem::from(error.to_string());
                intake.reject_file(&file.path, &problem);
                (state.stamp, state.problem) = (None, Some(problem.to_stored()));
            }
            Err(error) => return Err(error),
        }
        end(intake, file, state, counts)
    }

    /// Returns the selection of files of these kinds.
    fn selection(&self, kinds: &[FileKind]) -> FileSelection {
        let mut selection = FileSelection::new(kinds, self.options.stream.clone());
        (selection.program, selection.ocr) = (self.program.clone(), self.options.recognizer(self.stop));
        selection
    }

    /// Imports a file of a kind with any number of records. `selection` says how attached files are read.
    fn import(
        &self,
        file: &Path,
        selection: &FileSelection,
        intake: &mut Intake<'_>,
    ) -> Result<(), ImportError> {
        let unreadable =
            |error: io::Error| ImportError::Unreadable { path: file.to_owned(), problem: error.to_string() };
        let open = || Input::open_text(file, self.stop, intake.progress()).map_err(unreadable);
        let ImportOptions { stream, key, title, time, url, .. } = self.options.clone();
        let names = FieldNames { key, title, time, url };
        let own_stream = || file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let stream_or = |default: Option<String>| stream.clone().or(default).unwrap_or_default();
        match self.kind {
            ImportKind::Records => import_records(&mut open()?, file, intake),
            ImportKind::Csv => import_csv(open()?, file, &stream_or(own_stream()), &names, intake),
            ImportKind::Json => import_json(open()?, file, &stream_or(own_stream()), &names, intake),
            ImportKind::Mbox => {
                let bytes = fs::metadata(file).map_or(0, |metadata| metadata.len());
                let mut reader: BufReader<_> =
                    unzip_input(open()?, bytes).map(BufReader::new).map_err(unreadable)?;
                import_mbox(&mut reader, file, selection, intake)
            }
            ImportKind::Git => import_git(file, intake),
            ImportKind::Files(_) => Ok(()),
        }
    }
}

/// Writes the records of a parsed file, or reads a file of a kind that has any number of records.
fn take(
    origin: &Path,
    file: &ScannedFile,
    parsed: ListEntry,
    fingerprint: Option<Fingerprint>,
    reader: &mut FileReader<'_, '_>,
    counts: &mut ReadFiles,
) -> Result<(), ImportError> {
    let mut state = state_of(file, fingerprint);
    let opened = match &parsed {
        ListEntry::Other(_) => Some(Item::open(file.path.clone(), &file.file)),
        ListEntry::Record { .. } | ListEntry::Rejected { .. } | ListEntry::Unopened { .. } => None,
    };
    let unopened = match (&parsed, &opened) {
        (ListEntry::Unopened { error, .. }, _) | (_, Some(Err(error))) => Some(error),
        _ => None,
    };
    // It was deleted since the scan. The next synchronization finds it missing.
    if unopened.is_some_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(());
    }
    begin(reader.intake(), file);
    match (parsed, opened) {
        (ListEntry::Record { record, .. }, _) => reader.take_parsed(*record)?,
        (ListEntry::Rejected { path, problem, .. }, _) => reader.reject(&path, &problem),
        (ListEntry::Unopened { error, .. }, _) | (_, Some(Err(error))) => {
            state.stamp = None;
            reader.reject(&file.path, &Problem::unreadable(&error));
        }
        (ListEntry::Other(_), Some(Ok(item))) => reader.read_file(item, file.file == origin)?,
        (ListEntry::Other(_), None) => {}
    }
    // The next synchronization may recognize its text.
    if reader.lacks_ocr() {
        state.stamp = None;
    }
    state.problem = reader.take_problem().as_ref().map(Problem::to_stored);
    end(reader.intake(), file, state, counts)
}

/// Returns the state of a file before it is read.
fn state_of(file: &ScannedFile, fingerprint: Option<Fingerprint>) -> ItemState {
    let stamp = Some(file.stamp.text.clone());
    ItemState { stamp, fingerprint, is_recent: file.stamp.is_recent, problem: None }
}

fn begin(intake: &mut Intake<'_>, file: &ScannedFile) {
    if let Some(writer) = intake.writer() {
        writer.begin_item(&file.path);
    }
}

fn end(
    intake: &mut Intake<'_>,
    file: &ScannedFile,
    state: ItemState,
    counts: &mut ReadFiles,
) -> Result<(), ImportError> {
    counts.read += 1;
    if state.problem.is_some() {
        counts.unreadable.insert(file.path.clone());
    }
    match intake.writer() {
        Some(writer) => Ok(writer.end_item(state)?),
        None => Ok(()),
    }
}
