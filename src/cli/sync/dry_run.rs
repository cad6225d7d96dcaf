//! `fetchwell add --dry-run`: reads what an import would, and prints its counts. Nothing is written.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fetchwell_connectors::{DryRun, DryRunOutcome, Guess, ImportKind, ImportOptions, StoreFiles};
use fetchwell_source::Manifest;
use fetchwell_source::contract::{NewConnection, NewImport};
use serde::Serialize;

use super::super::print::{Printer, counted, grouped};
use super::super::rejections::{Progress, Rejections, ReportFile, SkipFields, note_skips};
use super::run::run_stoppable;
use crate::app::failure::Failure;
use crate::app::open::runtime;

/// An import to be added, or one that the store has.
pub(super) struct DryRunTarget {
    /// Connection that the records would get.
    pub(super) connection: NewConnection,
    /// Origin, kind and options.
    pub(super) import: NewImport,
    /// Kind and size of the origin; `None` for an import that the store has.
    pub(super) guess: Option<Guess>,
}

/// The result of a dry run as JSON.
#[derive(Serialize)]
struct DryRunReport {
    connection_id: String,
    origin: PathBuf,
    kind: String,
    /// True if the store has the import already.
    is_known: bool,
    /// Number of files, and their size in bytes. Those of a known import or of a repository are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// Number of records that a first import would add.
    records: u64,
    /// Number of files and records that could not be read.
    rejected: u64,
    #[serde(flatten)]
    by_reason: SkipFields,
    /// Number of attachments, and of files in them, that could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    unread_attachments: Option<u64>,
}

/// Reads everything that an import would, and prints the result.
pub(super) fn dry_run(
    target: DryRunTarget,
    store: &Path,
    report_file: Option<&Path>,
    printer: Printer,
) -> Result<(), Failure> {
    let DryRunTarget { connection, import, guess } = target;
    let counted_files = guess.as_ref().filter(|guess| guess.kind != ImportKind::Git);
    let mut report = DryRunReport {
        connection_id: connection.connection_id.to_string(),
        origin: import.origin.clone(),
        kind: import.kind.clone(),
        is_known: guess.is_none(),
        files: counted_files.map(|guess| guess.files),
        bytes: counted_files.map(|guess| guess.bytes),
        records: 0,
        rejected: 0,
        by_reason: SkipFields::default(),
        unread_attachments: None,
    };
    let outcome = read_all(connection, import, store, report_file)?;
    report.records = outcome.records;
    report.rejected = outcome.skips.not_read();
    report.by_reason = (&outcome.skips).into();
    report.unread_attachments = Some(outcome.unread_attachments).filter(|count| *count > 0);
    if printer.json {
        printer.value(&report);
    } else {
        printer.line(report.summary());
        note_skips(&outcome.skips);
    }
    match (report.rejected, report.records) {
        (0, _) => Ok(()),
        (_, 0) => Err(Failure::without_message()),
        _ => Err(Failure::partial("")),
    }
}

impl DryRunReport {
    /// Returns the counts as a line.
    fn summary(&self) -> String {
        let known = if self.is_known { ", which are those of an import that the store has" } else { "" };
        let mut parts = vec![format!("{} to import{known}", counted(self.records, "record"))];
        if self.rejected > 0 {
            parts.push(format!("{} rejected", grouped(self.rejected)));
        }
        parts.extend(
            self.unread_attachments.map(|count| format!("{} not read", counted(count, "attachment"))),
        );
        format!("{}: {}; nothing was imported", self.connection_id, parts.join(", "))
    }
}

fn read_all(
    connection: NewConnection,
    import: NewImport,
    store: &Path,
    report_file: Option<&Path>,
) -> Result<DryRunOutcome, Failure> {
    let kind: ImportKind = import
        .kind
        .parse()
        .map_err(|error: fetchwell_connectors::UnknownKind| Failure::new(error.to_string()))?;
    let store_files = StoreFiles::new(store, &import.origin);
    let options = ImportOptions::from_json(&import.options);
    let manifest = connection.manifest.as_deref().filter(|_| kind == ImportKind::Records);
    let manifest = manifest.and_then(Manifest::from_stored);
    let mut report_file = report_file.map(ReportFile::create).transpose()?;
    let run = move |stop: &Arc<AtomicBool>| {
        let mut report = Rejections::new(&import.origin, Progress::for_unknown(), report_file.as_mut());
        let dry_run = DryRun {
            origin: &import.origin,
            kind,
            options: &options,
            store_files: &store_files,
            connection,
            manifest,
            program: std::env::current_exe().ok(),
            report: &mut report,
            stop,
        };
        let outcome = dry_run.run();
        report.finish();
        let reported = report_file.map_or(Ok(()), ReportFile::finish);
        let outcome = outcome?;
        reported.map(|()| outcome)
    };
    runtime()?.block_on(run_stoppable(run))
}
