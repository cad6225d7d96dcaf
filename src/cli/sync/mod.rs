//! `fetchwell add` and `fetchwell sync`: imports that the store remembers and keeps current.
//!
//! * `add`: remembers an import, and synchronizes it for the first time, `docs`: one of documents
//! * `dry_run`: what `add --dry-run` prints
//! * `ocr`: the flags of text recognition
//! * `run`: synchronizes imports on a thread that signals stop, `watch`: follows them
//! * `report`: what a synchronization prints

mod add;
mod docs;
mod dry_run;
mod ocr;
mod report;
mod run;
mod watch;

use std::path::PathBuf;

use clap::Args;
use fetchwell_source::contract::RememberedImport;

pub(super) use self::add::Add;
pub(super) use self::docs::ImportDocs;
pub(super) use self::ocr::OcrArgs;
pub(super) use self::report::SyncReport;
use self::report::{ended, print_total};
pub(super) use self::run::note_lock;
use self::run::{run_stoppable, synchronize};
use self::watch::watch;
use super::embeddings::EmbedArgs;
use super::print::Printer;
use super::rejections::{EXIT_CODES, ReportFile};
use crate::app::default_store::store_of_imports;
use crate::app::failure::Failure;
use crate::app::imports::ImportStore;
use crate::app::open::runtime;
use crate::config::Environment;

/// Bring imports up to date with their files and folders: new, changed, moved and deleted records.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(super) struct Sync {
    /// The import, by the id of its connection [default: all imports]
    name: Option<String>,
    /// The store of the imports [default: the store of --config, or else `FETCHWELL_STORE`, or else the default store]
    #[arg(long, value_name = "DB")]
    store: Option<PathBuf>,
    /// Delete what is missing, even if more than half of it is, or the file or folder is gone.
    #[arg(long, requires = "name")]
    prune: bool,
    /// Follow changes until the command is stopped.
    #[arg(long, conflicts_with = "prune")]
    watch: bool,
    /// Write every rejected record and file and every skipped file to this file, a line of JSON each.
    #[arg(long, value_name = "FILE", conflicts_with = "watch")]
    report: Option<PathBuf>,
    #[command(flatten)]
    embed: EmbedArgs,
}

impl Sync {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let place = match &self.store {
            Some(path) => ImportStore::from_place(path)?,
            None => store_of_imports(self.embed.config(), environment)?,
        };
        let store = place.open(environment)?;
        let imports = chosen(store.imports()?, self.name.as_deref())?;
        if self.watch {
            drop(store);
            return watch(&place, imports, printer, environment);
        }
        let prune = self.prune;
        let mut report_file = self.report.as_deref().map(ReportFile::create).transpose()?;
        runtime()?.block_on(async move {
            let is_named = self.name.is_some();
            let reports = run_stoppable(move |stop| {
                let run = |import: &RememberedImport| {
                    let report = synchronize(&*store, import, prune, report_file.as_mut(), stop)?;
                    if !printer.json {
                        report.print(printer);
                    }
                    Ok(report)
                };
                let reports = imports.iter().map(run).collect::<Result<Vec<SyncReport>, Failure>>()?;
                report_file.map_or(Ok(()), ReportFile::finish)?;
                Ok(reports)
            })
            .await?;
            if printer.json {
                printer.value(&reports);
            } else if !is_named {
                print_total(printer, &reports);
            }
            self.embed.embed_imported(&place, environment).await?;
            ended(&reports)
        })
    }
}

/// Returns the import of a name, or all.
fn chosen(imports: Vec<RememberedImport>, name: Option<&str>) -> Result<Vec<RememberedImport>, Failure> {
    if imports.is_empty() {
        return Err(Failure::new("the store remembers no import; add one with `fetchwell add PATH`"));
    }
    let Some(name) = name else { return Ok(imports) };
    let names: Vec<String> = imports.iter().map(|import| import.connection_id.to_string()).collect();
    match imports.into_iter().find(|import| import.connection_id.as_str() == name) {
        Some(import) => Ok(vec![import]),
        None => Err(Failure::usage(&format_args!(
            "`{name}` is not an import of this store; it has {}",
            names.join(", ")
        ))),
    }
}
