//! `fetchwell import docs`: imports a folder of documents into a project, and remembers it for `fetchwell sync`.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use fetchwell_connectors::{CategoryFrom, ImportOptions, StoreFiles, guess_kind};
use fetchwell_source::contract::{NewConnection, NewImport, RememberedImport};
use fetchwell_source::documents::{DOCS_KIND, ProjectSlug};
use fetchwell_source::{SyncStore, is_database};

use super::super::embeddings::EmbedArgs;
use super::super::print::Printer;
use super::super::rejections::ReportFile;
use super::ocr::OcrArgs;
use super::report::ended;
use super::run::{run_stoppable, synchronize};
use crate::app::default_store::{default_store, store_or_database_to_fill};
use crate::app::failure::Failure;
use crate::app::imports::ImportStore;
use crate::app::open::runtime;
use crate::config::Environment;

/// Import a folder of text, Markdown, HTML, PDF, EPUB and office files into a project, a document per file.
#[derive(Debug, Args)]
pub(crate) struct ImportDocs {
    /// The folder; its subfolders are imported, too.
    path: PathBuf,
    /// The project; create it first with `fetchwell project create SLUG`.
    #[arg(long, value_name = "SLUG")]
    project: ProjectSlug,
    /// The store: a file, or the URL of a PostgreSQL database [default: `FETCHWELL_STORE`, or else the default store]
    #[arg(long, value_name = "DB")]
    store: Option<PathBuf>,
    /// The source of each document's category: the first folder of its path, the field `category` of its front matter, or
    /// `general` for all documents [default: that of the last import, at first `general`]
    #[arg(long, value_name = "folder|front-matter|general")]
    category_from: Option<CategoryFrom>,
    /// Delete the documents of missing files, even if more than half of the files are missing.
    #[arg(long)]
    prune: bool,
    /// Write every rejected and every skipped file to this file, a line of JSON each.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    ocr: OcrArgs,
    #[command(flatten)]
    embed: EmbedArgs,
}

impl ImportDocs {
    pub(crate) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let origin = fs::canonicalize(&self.path).map_err(|error| unreadable(&self.path, &error))?;
        if origin.to_str().is_none() {
            return Err(Failure::new(format!("the path {} is not UTF-8; rename it", origin.display())));
        }
        self.check_store(environment)?;
        self.ocr.check_program()?;
        let path = store_or_database_to_fill(self.store.as_deref(), environment)?;
        let place = ImportStore::from_place(&path)?;
        let store = place.open(environment)?;
        let import = self.remember(&*store, &origin)?;
        let prune = self.prune;
        let mut report_file = self.report.as_deref().map(ReportFile::create).transpose()?;
        runtime()?.block_on(async move {
            let run = move |stop: &Arc<AtomicBool>| {
                let report = synchronize(&*store, &import, prune, report_file.as_mut(), stop)?;
                report_file.map_or(Ok(()), ReportFile::finish)?;
                Ok(report)
            };
            let report = run_stoppable(run).await?;
            if printer.json {
                printer.value(&report);
            } else {
                report.print(printer);
            }
            self.embed.embed_imported(&place, environment).await.map_err(unembedded)?;
            ended([&report])
        })
    }

    /// Refuses a store that does not exist, which has no project.
    fn check_store(&self, environment: &Environment) -> Result<(), Failure> {
        let Some(store) = self.store.clone().or_else(|| default_store(environment)) else { return Ok(()) };
        let is_missing = || fs::metadata(&store).is_err_and(|error| error.kind() == ErrorKind::NotFound);
        if is_database(&store) || !is_missing() {
            return Ok(());
        }
        let (slug, place) = (&self.project, store.display());
        let option = if self.store.is_some() { format!(" --store {place}") } else { String::new() };
        Err(Failure::usage(&format_args!(
            "there is no project `{slug}`, because there is no store at {place} yet; create both with `fetchwell project \
             create {slug}{option}`"
        )))
    }

    /// Remembers the folder as the origin of the project. A project has one, and as long as it has no documents, it can be
    /// another one. The origin of the categories and text recognition stay unless the command names others. Documents that were removed are read
    /// again.
    fn remember(&self, store: &dyn SyncStore, origin: &Path) -> Result<RememberedImport, Failure> {
        let connection_id = self.project.connection().clone();
        let known = store.imports()?.into_iter().find(|known| known.connection_id == connection_id);
        let documents = store.known_documents(&connection_id)?;
        let has_no_documents = documents.as_ref().is_some_and(Vec::is_empty);
        let mut options = ImportOptions::default();
        if let Some(NewImport { origin: earlier, options: json, .. }) = known.map(|known| known.settings) {
            if earlier != origin && documents.is_some_and(|all| !all.is_empty()) {
                return Err(self.other_folder(&earlier));
            }
            options = ImportOptions::from_json(&json);
        }
        options.category_from = self.category_from.unwrap_or(options.category_from);
        self.ocr.apply(&mut options);
        if has_no_documents {
            let store_files = store.path().map(|path| StoreFiles::new(path, origin)).unwrap_or_default();
            guess_kind(origin, DOCS_KIND.parse().ok(), &store_files)?.check_readable(origin, &options)?;
        }
        let connection = NewConnection {
            connection_id,
            connector_key: DOCS_KIND.to_owned(),
            display_name: None,
            manifest: None,
        };
        let import =
            NewImport { origin: origin.to_owned(), kind: DOCS_KIND.to_owned(), options: options.to_json() };
        let import = store.remember(&connection, &import)?;
        store.restore_removed(import.id)?;
        Ok(import)
    }

    /// Returns the error for a project with the documents of another folder.
    fn other_folder(&self, origin: &Path) -> Failure {
        Failure::usage(&format_args!(
            "the project `{0}` has the documents of {1}, and a project has one folder; create another project for this one, \
             or remove the documents with `fetchwell project remove {0}`",
            self.project,
            origin.display()
        ))
    }
}

/// Returns the failure of the embedding after an import. Documents without vectors are found by their words.
fn unembedded(failure: Failure) -> Failure {
    let problem = failure.message;
    let message = format!(
        "the documents are imported, and not all of them are embedded: {problem}. The same command embeds the rest"
    );
    Failure { message, ..failure }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{} cannot be read ({error}); check the path and its permissions", path.display()))
}
