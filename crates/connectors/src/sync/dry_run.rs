//! A dry run of an import: everything is read and checked, and nothing is written.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fetchwell_core::saturate::saturated;
use fetchwell_source::Manifest;
use fetchwell_source::contract::NewConnection;

use super::super::ImportError;
use super::super::files::{DocumentIds, DocumentReader};
use super::super::intake::{Intake, Report};
use super::super::skips::SkipCounts;
use super::kind::{ImportKind, ImportOptions};
use super::read::{OriginReader, ReadFiles};
use super::scan::Scan;
use super::store_files::StoreFiles;

/// A dry run of an import. No store is opened.
pub struct DryRun<'a> {
    /// File or folder of the import.
    pub origin: &'a Path,
    /// Kind of the import.
    pub kind: ImportKind,
    /// Options of the import.
    pub options: &'a ImportOptions,
    /// Files of the store, which are left out.
    pub store_files: &'a StoreFiles,
    /// Connection that the records would get.
    pub connection: NewConnection,
    /// Manifest of record envelopes.
    pub manifest: Option<Manifest>,
    /// Program that reads PDF documents in a process of its own.
    pub program: Option<PathBuf>,
    /// Receiver of rejections.
    pub report: &'a mut dyn Report,
    /// Flag that stops the dry run.
    pub stop: &'a Arc<AtomicBool>,
}

/// The result of a dry run.
#[derive(Debug)]
pub struct DryRunOutcome {
    /// Number of records that a first import would add.
    pub records: u64,
    /// Number of files that were read.
    pub files: u64,
    /// Counts of what was left out by design or could not be read.
    pub skips: SkipCounts,
    /// Number of attachments of messages, and of files in them, that could not be read.
    pub unread_attachments: u64,
}

impl fmt::Debug for DryRun<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DryRun").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl DryRun<'_> {
    /// Reads all files as a first import does.
    ///
    /// # Errors
    ///
    /// The origin cannot be read, or the user stopped the dry run.
    pub fn run(self) -> Result<DryRunOutcome, ImportError> {
        let Self { origin, kind, options, store_files, connection, manifest, program, report, stop } = self;
        let scan = Scan::read(origin, kind, store_files)?;
        let mut intake = Intake::dry_run(connection, manifest, report, stop);
        scan.report_into(&mut intake);
        intake.progress().expect(scan.files.iter().map(|file| file.bytes).sum());
        let documents =
            kind.is_docs().then(|| DocumentReader::new(DocumentIds::default(), options.category_from));
        let mut reader = OriginReader { kind, options, origin, program, documents, stop };
        let mut counts = ReadFiles::default();
        reader
            .read(scan.files.iter(), &mut intake, &mut counts)
            .map_err(|error| if stop.load(Ordering::Relaxed) { ImportError::Stopped } else { error })?;
        Ok(DryRunOutcome {
            records: saturated(intake.dry_records()),
            files: counts.read,
            skips: intake.skips().clone(),
            unread_attachments: intake.unread_attachments(),
        })
    }
}
