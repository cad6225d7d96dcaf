//! Reads the files of an origin into a store.

use std::fs;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::ImportError;
use super::super::archive::unzip_input;
use super::super::csv::import_csv;
use super::super::field_names::FieldNames;
use super::super::files::{DocumentReader, FileReader, FileSelection};
use super::super::git::import_git;
use super::super::input::Input;
use super::super::intake::Intake;
use super::super::item::Item;
use super::super::json::import_json;
use super::super::mail::import_mbox;
use super::super::records::import_records;
use super::kind::{FileSet, ImportKind, ImportOptions};
use super::scan::ScannedFile;
use super::stamp::fingerprint;
use crate::source::store::ItemState;

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
    /// Files that could not be read.
    pub(super) unreadable: u64,
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
        let stream = self.options.stream.clone();
        let selection = FileSelection { kinds: set.kinds.to_vec(), stream, program: self.program.clone() };
        let mut reader = FileReader::new(&selection, intake).with_documents(self.documents.as_mut());
        for file in files {
            reader.check_stop()?;
            let mut state = state_of(file);
            let item = match Item::open(file.path.clone(), &file.file) {
                // It was deleted since the scan. The next synchronization finds it missing.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                item => item,
            };
            begin(reader.intake(), file);
            match item {
                Ok(item) => reader.read_file(item, file.file == self.origin)?,
                Err(error) => {
                    state.stamp = None;
                    reader.reject(&file.path, &error.to_string());
                }
            }
            state.problem = reader.take_problem();
            end(reader.intake(), state, counts)?;
        }
        let (others, description) = (reader.skipped.others(), reader.skipped.to_string());
        if set.kinds.is_empty() && others > 0 {
            reader.intake().skip(others, &description);
        }
        Ok(())
    }

    /// Reads a file that is the whole origin.
    fn read_single(
        &self,
        file: &ScannedFile,
        intake: &mut Intake<'_>,
        counts: &mut ReadFiles,
    ) -> Result<(), ImportError> {
        let mut state = state_of(file);
        begin(intake, file);
        match self.import(&file.file, intake) {
            Ok(()) => {}
            Err(_stopped) if self.stop.load(Ordering::Relaxed) => return Err(ImportError::Stopped),
            Err(error @ (ImportError::Unreadable { .. } | ImportError::WrongKind { .. })) => {
                let problem = error.to_string();
                intake.reject(&file.path, &problem);
                (state.stamp, state.problem) = (None, Some(problem));
            }
            Err(error) => return Err(error),
        }
        end(intake, state, counts)
    }

    fn import(&self, file: &Path, intake: &mut Intake<'_>) -> Result<(), ImportError> {
        let unreadable =
            |error: io::Error| ImportError::Unreadable { path: file.to_owned(), problem: error.to_string() };
        let open = || Input::open_text(file, self.stop).map_err(unreadable);
        let ImportOptions { stream, key, title, time, url, category_from: _ } = self.options.clone();
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
                import_mbox(&mut reader, file, &stream_or(Some("messages".to_owned())), intake)
            }
            ImportKind::Git => import_git(file, intake),
            ImportKind::Files(_) => Ok(()),
        }
    }
}

/// Returns the state of a file before it is read.
fn state_of(file: &ScannedFile) -> ItemState {
    let fingerprint = fingerprint(&file.file).ok().flatten();
    let stamp = Some(file.stamp.text.clone());
    ItemState { stamp, fingerprint, is_recent: file.stamp.is_recent, problem: None }
}

fn begin(intake: &mut Intake<'_>, file: &ScannedFile) {
    if let Some(writer) = intake.sync_writer() {
        writer.begin_item(&file.path);
    }
}

fn end(intake: &mut Intake<'_>, state: ItemState, counts: &mut ReadFiles) -> Result<(), ImportError> {
    counts.read += 1;
    counts.unreadable += u64::from(state.problem.is_some());
    match intake.sync_writer() {
        Some(writer) => Ok(writer.end_item(state)?),
        None => Ok(()),
    }
}
