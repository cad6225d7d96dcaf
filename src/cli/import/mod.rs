//! `fetchwell import`: imports files into a store.
//!
//! Documents are imported by `sync`, which keeps them current.
//!
//! * `kind`: the kinds of imports, `files_command`: those that read files of any number of kinds
//! * `target`: the arguments that name the store and the connection, `lease`: waiting for another import
//! * `report`: the counts of an import

mod files_command;
mod kind;
mod lease;
mod report;
mod target;

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use clap::{Args, Subcommand};
use fetchwell_connectors::{ImportError, Intake, PARSER_STACK_BYTES, special_file};
use fetchwell_core::handle::ConnectionId;
use fetchwell_core::terminal::output::note;
use fetchwell_source::contract::{ImportResult, NewConnection, Tally};
use fetchwell_source::{ImportTarget, Manifest};
use tokio::sync::oneshot;

use self::kind::Kind;
use self::lease::wait_for_others;
use self::report::{Counts, Summary};
use super::print::{Printer, counted};
use super::rejections::{EXIT_CODES, Progress, Rejections, ReportFile, note_skips};
use super::sync::ImportDocs;
use crate::app::failure::Failure;
use crate::app::open::runtime;
use crate::app::stop;
use crate::config::Environment;

/// Import files into a store. A repeated import changes nothing.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(super) struct Import {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Docs(ImportDocs),
    #[command(flatten)]
    Records(Kind),
}

/// An import of records.
struct RecordImport {
    kind: Kind,
}

/// The end of an import that has written all that could be read.
struct Outcome {
    summary: Summary,
    /// Failure with which the command ends although records were imported, such as rejected ones.
    failure: Option<Failure>,
}

impl Import {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        match self.command {
            Command::Docs(docs) => docs.run(printer, environment),
            Command::Records(kind) => RecordImport { kind }.run(printer, environment),
        }
    }
}

impl RecordImport {
    fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        // There is nothing to save yet, so a signal ends the program at once during this read.
        let manifest = self.kind.manifest()?;
        self.kind.check_ocr()?;
        let store = self.kind.place().0.store(environment)?;
        let stop = Arc::new(AtomicBool::new(false));
        runtime()?.block_on(async move {
            if let Some(stays) = self.kind.place().0.connector_mismatch_note(&store, environment).await {
                note(&stays);
            }
            let embed = self.kind.place().0.embed.clone();
            let target = store.import_target(environment)?;
            // Registered before there is something to save, so that a signal never loses records.
            let first_signal = stop::requested();
            let (sender, mut ended) = oneshot::channel();
            let requested = Arc::clone(&stop);
            let import = move || drop(sender.send(self.import(&*target, manifest, printer, &requested)));
            let thread = thread::Builder::new().name("import".to_owned()).stack_size(PARSER_STACK_BYTES);
            thread
                .spawn(import)
                .map_err(|error| Failure::new(format!("no thread can be started ({error})")))?;
            let signal = tokio::select! {
                result = &mut ended => {
                    let outcome = result.unwrap_or_else(|_panic| Err(panicked()))?;
                    return outcome.finish(embed.embed_imported(&store, environment).await, printer);
                }
                signal = first_signal => signal,
            };
            stop.store(true, Ordering::Relaxed);
            tokio::select! {
                result = &mut ended => {
                    let outcome = result.unwrap_or_else(|_panic| Err(panicked()));
                    outcome
                        .and_then(|outcome| outcome.finish(Ok(None), printer))
                        .map_err(|failure| failure.ended_by(signal))
                }
                again = stop::requested() => Err(stopped_at_once().ended_by(again)),
            }
        })
    }

    fn import(
        &self,
        target: &dyn ImportTarget,
        manifest: Option<Manifest>,
        printer: Printer,
        stop: &Arc<AtomicBool>,
    ) -> Result<Outcome, Failure> {
        let (into, path) = self.kind.place();
        let connection_id: ConnectionId = into.connection.parse().map_err(|problem| {
            Failure::new(format!("`{}` cannot be a connection id: {problem}", into.connection))
        })?;
        let metadata = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
        let unsuitable = |problem| Failure::from(ImportError::Unsuitable { path: path.to_owned(), problem });
        if metadata.is_dir() && !self.kind.reads_folders() {
            return Err(unsuitable("is a folder; name a file in it"));
        }
        if let Some(problem) = special_file(&metadata)
            && (self.kind.reads_folders() || !is_stream(path, &metadata))
        {
            return Err(unsuitable(problem));
        }
        let manifest_key = manifest.as_ref().and_then(Manifest::connector_key);
        let connection = NewConnection {
            connection_id,
            connector_key: into
                .connector
                .as_deref()
                .or(manifest_key)
                .unwrap_or(self.kind.connector())
                .to_owned(),
            display_name: into.name.clone(),
            manifest: manifest.as_ref().map(|manifest| manifest.text().to_owned()),
        };
        let progress = if metadata.is_dir() {
            Progress::for_folder(path, stop)
        } else {
            Progress::for_file(metadata.len())
        };
        let mut report_file = into.report.as_deref().map(ReportFile::create).transpose()?;
        let mut report = Rejections::new(path, progress.clone(), report_file.as_mut());
        wait_for_others(target, &connection.connection_id, stop)?;
        let mut intake = Intake::new(target, connection, manifest, &mut report, stop);
        let ended = self.kind.read_into(&mut intake, stop);
        // Stopping makes the input fail, which each importer reports in its own way.
        let ended =
            ended.map_err(|error| if stop.load(Ordering::Relaxed) { ImportError::Stopped } else { error });
        let stopped = matches!(ended, Err(ImportError::Stopped));
        // Records read before a stop or an error are kept. Records written before the disk was full are counted.
        let ended = ended.and_then(|()| intake.flush());
        let (skips, unread_attachments) = (intake.skips().clone(), intake.unread_attachments());
        let (ImportResult { tally, index_problem }, rejected) = intake.finish()?;
        progress.finish();
        report.finish();
        let reported = report_file.map_or(Ok(()), ReportFile::finish);
        let counts = Counts { tally, skips, unread_attachments, stopped };
        let summary = Summary::new(&into.connection, &counts);
        let has_summary = ended.is_ok() || stopped || tally != Tally::default() || rejected > 0;
        // With --json there is one value, after the records are embedded.
        if has_summary && (!printer.json || ended.is_err()) {
            summary.print(printer);
        }
        note_skips(&counts.skips);
        if let Some(problem) = &index_problem {
            note(&format!("the imported records cannot be searched: {problem}"));
        }
        ended?;
        let unsearchable =
            index_problem.map(|_| "the records are imported but cannot be searched; see above");
        let failure =
            unsearchable.map(Failure::new).or(reported.err()).or_else(|| incomplete(rejected, tally));
        Ok(Outcome { summary, failure })
    }
}

impl Outcome {
    /// Ends the command with the result of the embedding.
    fn finish(mut self, embedded: Result<Option<usize>, Failure>, printer: Printer) -> Result<(), Failure> {
        let (embedded_chunks, failed) = match embedded {
            Ok(chunks) => (chunks, None),
            Err(failure) => (None, Some(failure)),
        };
        if printer.json {
            self.summary.embedded_chunks = embedded_chunks;
            self.summary.print(printer);
        }
        let unembedded = |failure: Failure| {
            let message = format!("the records are imported but not embedded: {}", failure.message);
            Failure { message, ..failure }
        };
        let whole_failure = self.failure.take_if(|failure| !failure.is_partial());
        whole_failure.or(failed.map(unembedded)).or(self.failure).map_or(Ok(()), Err)
    }
}

/// Returns the failure of an import that rejected records or files.
fn incomplete(rejected: u64, tally: Tally) -> Option<Failure> {
    let (items, were) = (counted(rejected, "item"), if rejected == 1 { "was" } else { "were" });
    let rejection = format!("{items} {were} rejected, see above");
    let failure = || {
        if tally == Tally::default() {
            return Failure::new(format!("{rejection}; nothing is imported"));
        }
        Failure::partial(&format!("{rejection}; everything else is imported"))
    };
    (rejected > 0).then(failure)
}

/// Returns true for a pipe, which ends when its writer does, and for standard input.
fn is_stream(path: &Path, metadata: &fs::Metadata) -> bool {
    #[cfg(unix)]
    let is_fifo = std::os::unix::fs::FileTypeExt::is_fifo(&metadata.file_type());
    #[cfg(not(unix))]
    let is_fifo = !metadata.is_dir();
    is_fifo || path == Path::new("/dev/stdin") || path.starts_with("/dev/fd")
}

fn panicked() -> Failure {
    Failure::new(
        "an internal error stopped the import; the records imported so far are kept. Please report it",
    )
}

fn stopped_at_once() -> Failure {
    Failure::stopped(
        "stopped at once; records that were not saved yet are lost. Run the same command again to import them",
    )
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("{} cannot be read ({error}); check the path and its permissions", path.display()))
}
