//! `fetchwell import`: imports files into an embedded store.

use std::fmt;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tokio::sync::oneshot;

use super::print::{Printer, grouped, note};
use crate::app::failure::Failure;
use crate::app::open::runtime;
use crate::app::stop;
use crate::callers::CallContext;
use crate::connectors::{
    FieldNames, ImportError, Input, Intake, Report, import_csv, import_json, import_markdown, import_mbox,
    import_records,
};
use crate::handle::ConnectionId;
use crate::source::Source;
use crate::source::store::{Imported, Manifest, NewConnection, Store, Tally};

/// Stack size in bytes of the import thread. All recursive parsers limit nesting to 128 levels.
const STACK_BYTES: usize = 16 * 1024 * 1024;

/// Import files into an embedded store. A repeated import changes nothing.
#[derive(Debug, Args)]
pub(super) struct Import {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, Subcommand)]
enum Kind {
    /// Import record envelopes, one JSON object per line: `{"stream","key","data","emitted_at","op"?}`
    Records {
        /// The file.
        file: PathBuf,
        #[command(flatten)]
        into: TargetArgs,
        /// The connector's manifest; only its streams are imported.
        #[arg(long, value_name = "FILE")]
        manifest: Option<PathBuf>,
    },
    /// Import a table with a header, a record per row
    Csv {
        /// The file.
        file: PathBuf,
        #[command(flatten)]
        into: TargetArgs,
        /// The stream for the records [default: the file's name]
        #[arg(long, value_name = "NAME")]
        stream: Option<String>,
        #[command(flatten)]
        names: FieldArgs,
    },
    /// Import JSON: an array of objects, concatenated objects, or an object of such arrays
    Json {
        /// The file.
        file: PathBuf,
        #[command(flatten)]
        into: TargetArgs,
        /// The stream for the records [default: the file's name]
        #[arg(long, value_name = "NAME")]
        stream: Option<String>,
        #[command(flatten)]
        names: FieldArgs,
    },
    /// Import a folder of Markdown files, or a single one, a record per file
    Markdown {
        /// The folder or file.
        path: PathBuf,
        #[command(flatten)]
        into: TargetArgs,
        /// The stream for the records.
        #[arg(long, value_name = "NAME", default_value = "documents")]
        stream: String,
    },
    /// Import a mailbox file, a record per message
    Mbox {
        /// The file.
        file: PathBuf,
        #[command(flatten)]
        into: TargetArgs,
        /// The stream for the records.
        #[arg(long, value_name = "NAME", default_value = "messages")]
        stream: String,
    },
}

/// The fields that mean something. A name is that of a column or field, in any case, or a path such as `snippet.title`.
#[derive(Debug, Clone, Args)]
struct FieldArgs {
    /// The key field; repeat it for a compound key [default: `id` or similar, or else the number of the record]
    #[arg(long, value_name = "FIELD")]
    key: Vec<String>,
    /// The title field [default: `title`, `subject`, `name` or similar]
    #[arg(long, value_name = "FIELD")]
    title: Option<String>,
    /// The time field [default: `created_at`, `date` or similar]
    #[arg(long, value_name = "FIELD")]
    time: Option<String>,
    /// The web address field [default: `url`, `link` or similar]
    #[arg(long, value_name = "FIELD")]
    url: Option<String>,
}

impl FieldArgs {
    fn field_names(&self) -> FieldNames {
        let Self { key, title, time, url } = self.clone();
        FieldNames { key, title, time, url }
    }
}

/// The store and connection of the records.
#[derive(Debug, Clone, Args)]
struct TargetArgs {
    /// The store; created if it does not exist.
    #[arg(long, value_name = "DB")]
    store: PathBuf,
    /// The account or folder that the records belong to, such as `work-mail`.
    #[arg(long, value_name = "ID")]
    connection: String,
    /// The kind of data [default: that of the manifest, or else the kind of the import]
    #[arg(long, value_name = "KEY")]
    connector: Option<String>,
    /// A label for people, such as `Work mail`.
    #[arg(long, value_name = "LABEL")]
    name: Option<String>,
}

impl TargetArgs {
    /// Returns a note if `--connector` differs from the connector of the existing connection, which is kept.
    async fn connector_mismatch_note(&self) -> Option<String> {
        let asked = self.connector.as_deref()?;
        let store = Store::open("store".parse().ok()?, &self.store).ok()?;
        let connections = store.schema(&CallContext::default()).await.ok()?.connections;
        let known = connections.into_iter().find(|known| known.connection_id.as_str() == self.connection)?;
        let stays = known.connector_key.filter(|stays| stays != asked)?;
        Some(format!(
            "{} has the connector {stays}, which cannot change; --connector is for new connections",
            self.connection
        ))
    }
}

#[derive(Serialize)]
struct Summary {
    connection_id: String,
    added: u64,
    changed: u64,
    unchanged: u64,
    deleted: u64,
    rejected: u64,
    stopped: bool,
}

impl Import {
    pub(super) fn run(self, printer: Printer) -> Result<(), Failure> {
        // There is nothing to save yet, so a signal ends the program at once during this read.
        let manifest = self.kind.manifest()?;
        let stop = Arc::new(AtomicBool::new(false));
        runtime()?.block_on(async move {
            if let Some(stays) = self.kind.place().0.connector_mismatch_note().await {
                note(&stays);
            }
            let (sender, mut ended) = oneshot::channel();
            let requested = Arc::clone(&stop);
            let import = move || drop(sender.send(self.import(manifest, printer, &requested)));
            let thread = thread::Builder::new().name("import".to_owned()).stack_size(STACK_BYTES);
            thread.spawn(import).map_err(|error| Failure::new(format!("no thread can be started ({error})")))?;
            let signal = tokio::select! {
                result = &mut ended => return result.unwrap_or_else(|_panic| Err(panicked())),
                signal = stop::requested() => signal,
            };
            stop.store(true, Ordering::Relaxed);
            tokio::select! {
                result = &mut ended => {
                    result.unwrap_or_else(|_panic| Err(panicked())).map_err(|failure| failure.ended_by(signal))
                }
                again = stop::requested() => Err(stopped_at_once().ended_by(again)),
            }
        })
    }

    fn import(
        &self,
        manifest: Option<Manifest>,
        printer: Printer,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), Failure> {
        let (into, path) = self.kind.place();
        let connection_id: ConnectionId = into.connection.parse().map_err(|problem| {
            Failure::new(format!("`{}` cannot be a connection id: {problem}", into.connection))
        })?;
        let metadata = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
        if metadata.is_dir() && !matches!(self.kind, Kind::Markdown { .. }) {
            return Err(Failure::new(format!("{} is a folder; name a file in it", path.display())));
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
        let bar = progress_bar(&self.kind, metadata.len());
        let mut report = Rejections { file: path.to_owned(), bar: bar.clone() };
        let mut intake = Intake::new(&into.store, connection, manifest, &mut report, stop);
        let ended = self.kind.read_into(&mut intake, &bar, stop);
        // Stopping makes the input fail, which each importer reports in its own way.
        let ended =
            ended.map_err(|error| if stop.load(Ordering::Relaxed) { ImportError::Stopped } else { error });
        let stopped = matches!(ended, Err(ImportError::Stopped));
        // Records read before a stop or an error are kept. Records written before the disk was full are counted.
        let ended = ended.and_then(|()| intake.flush());
        let (Imported { tally, index_problem }, rejected) = intake.finish()?;
        bar.finish_and_clear();
        if ended.is_ok() || stopped || tally != Tally::default() || rejected > 0 {
            print_summary(printer, &into.connection, tally, rejected, stopped);
        }
        if let Some(problem) = &index_problem {
            note(&format!("the imported records cannot be searched: {problem}"));
        }
        ended?;
        match rejected {
            0 if index_problem.is_some() => {
                Err(Failure::new("the records are imported but cannot be searched; see above"))
            }
            0 => Ok(()),
            1 => Err(Failure::new("1 item was rejected, see above; everything else is imported")),
            more => Err(Failure::new(format!(
                "{more} items were rejected, see above; everything else is imported"
            ))),
        }
    }
}

impl Kind {
    fn place(&self) -> (&TargetArgs, &Path) {
        match self {
            Self::Records { file, into, .. }
            | Self::Csv { file, into, .. }
            | Self::Json { file, into, .. }
            | Self::Mbox { file, into, .. }
            | Self::Markdown { path: file, into, .. } => (into, file),
        }
    }

    fn connector(&self) -> &'static str {
        match self {
            Self::Records { .. } => "records",
            Self::Csv { .. } => "csv",
            Self::Json { .. } => "json",
            Self::Markdown { .. } => "markdown",
            Self::Mbox { .. } => "mbox",
        }
    }

    fn manifest(&self) -> Result<Option<Manifest>, Failure> {
        let Self::Records { manifest: Some(path), .. } = self else { return Ok(None) };
        let text = fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
        let manifest = Manifest::parse(&text);
        manifest.map(Some).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
    }

    fn read_into(
        &self,
        intake: &mut Intake<'_>,
        bar: &ProgressBar,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), ImportError> {
        let open = |path: &Path| {
            let file = Input::open(path, stop);
            let file = file.map(|file| BufReader::with_capacity(1 << 16, bar.wrap_read(file)));
            file.and_then(skip_byte_order_mark).map_err(|error| ImportError::Unreadable {
                path: path.to_owned(),
                problem: error.to_string(),
            })
        };
        match self {
            Self::Records { file, .. } => import_records(&mut open(file)?, file, intake),
            Self::Csv { file, stream, names, .. } => {
                let stream = stream_of(file, stream.as_deref());
                import_csv(open(file)?, file, &stream, &names.field_names(), intake)
            }
            Self::Json { file, stream, names, .. } => {
                let stream = stream_of(file, stream.as_deref());
                import_json(open(file)?, file, &stream, &names.field_names(), intake)
            }
            Self::Mbox { file, stream, .. } => import_mbox(&mut open(file)?, file, stream, intake),
            Self::Markdown { path, stream, .. } => {
                import_markdown(path, stream, intake, &|bytes| bar.inc(bytes))
            }
        }
    }
}

/// Returns the stream of a file's records: the given name, otherwise the name of the file.
fn stream_of(file: &Path, named: Option<&str>) -> String {
    let stem = || file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    named.map(str::to_owned).or_else(stem).unwrap_or_default()
}

/// Skips the byte order mark that some programs write before UTF-8.
fn skip_byte_order_mark<R: BufRead>(mut file: R) -> io::Result<R> {
    const MARK: &[u8] = b"\xEF\xBB\xBF";
    if file.fill_buf()?.starts_with(MARK) {
        file.consume(MARK.len());
    }
    Ok(file)
}

/// Prints each rejected record immediately, above the progress bar.
struct Rejections {
    file: PathBuf,
    bar: ProgressBar,
}

impl Report for Rejections {
    fn rejected(&mut self, place: &dyn fmt::Display, reason: &str) {
        self.bar.suspend(|| note(&format_args!("{}:{place}: {reason}", self.file.display())));
    }
}

/// Creates a progress bar on standard error, visible only on a terminal.
fn progress_bar(kind: &Kind, size: u64) -> ProgressBar {
    let (bar, template) = match kind {
        // The size of a folder is unknown before it is read.
        Kind::Markdown { .. } => (ProgressBar::no_length(), "{spinner} {bytes} {bytes_per_sec}"),
        _ => (ProgressBar::new(size), "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}"),
    };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_template) => bar,
    }
}

fn print_summary(printer: Printer, connection: &str, tally: Tally, rejected: u64, stopped: bool) {
    let Tally { added, changed, unchanged, deleted } = tally;
    if printer.json {
        let connection_id = connection.to_owned();
        return printer.value(&Summary {
            connection_id,
            added,
            changed,
            unchanged,
            deleted,
            rejected,
            stopped,
        });
    }
    let counts = [
        (added, "added"),
        (changed, "changed"),
        (unchanged, "unchanged"),
        (deleted, "deleted"),
        (rejected, "rejected"),
    ];
    let counts: Vec<String> =
        counts.iter().map(|(count, what)| format!("{} {what}", grouped(*count))).collect();
    printer.line(format_args!("{connection}: {}", counts.join(", ")));
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
