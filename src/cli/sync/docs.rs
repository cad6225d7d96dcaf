//! `fetchwell import docs`: imports a folder of documents into a project, and remembers it for `fetchwell sync`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::super::embeddings::EmbedArgs;
use super::super::print::Printer;
use super::run::{run_stoppable, synchronize};
use crate::app::default_store::store_to_fill;
use crate::app::failure::Failure;
use crate::app::open::runtime;
use crate::config::Environment;
use crate::connectors::{CategoryFrom, ImportError, ImportOptions};
use crate::source::documents::{DOCS_KIND, ProjectSlug};
use crate::source::store::{NewConnection, NewImport, RememberedImport, SyncStore};

/// Import a folder of text, Markdown, HTML, PDF and office files into a project, a document per file.
#[derive(Debug, Args)]
pub(in crate::cli) struct ImportDocs {
    /// The folder with the documents.
    path: PathBuf,
    /// The project, made by `fetchwell project create`.
    #[arg(long, value_name = "SLUG")]
    project: ProjectSlug,
    /// The store [default: `FETCHWELL_STORE`, or else the user's own]
    #[arg(long, value_name = "DB")]
    store: Option<PathBuf>,
    /// Take the category of a document from its first folder, or from its front matter [default: general]
    #[arg(long, value_name = "folder|front-matter")]
    category_from: Option<CategoryFrom>,
    /// Delete the documents that are missing, even if more than half of them are.
    #[arg(long)]
    prune: bool,
    #[command(flatten)]
    embed: EmbedArgs,
}

impl ImportDocs {
    pub(in crate::cli) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let origin = fs::canonicalize(&self.path).map_err(|error| unreadable(&self.path, &error))?;
        if origin.to_str().is_none() {
            return Err(Failure::new(format!("the path {} is not UTF-8; rename it", origin.display())));
        }
        let path = store_to_fill(self.store.as_deref(), environment)?;
        let store = Arc::new(SyncStore::open(&path)?);
        let import = self.remember(&store, &origin)?;
        let prune = self.prune;
        runtime()?.block_on(async move {
            let report = run_stoppable(move |stop| synchronize(&store, &import, prune, None, stop)).await?;
            if printer.json {
                printer.value(&report);
            } else {
                report.print(printer);
            }
            self.embed.embed_imported(&path, environment).await?;
            if report.is_complete() { Ok(()) } else { Err(Failure::without_message()) }
        })
    }

    /// Remembers the folder as the origin of the project. A project has one.
    fn remember(&self, store: &SyncStore, origin: &Path) -> Result<RememberedImport, Failure> {
        let connection_id = self.project.connection().clone();
        let known = store.imports()?.into_iter().find(|known| known.connection_id == connection_id);
        if let Some(known) = known.filter(|known| known.settings.origin != origin) {
            let (connection, origin) = (connection_id.to_string(), known.settings.origin);
            return Err(ImportError::OtherOrigin { connection, origin }.into());
        }
        let options = ImportOptions { category_from: self.category_from, ..ImportOptions::default() };
        let connection = NewConnection {
            connection_id,
            connector_key: DOCS_KIND.to_owned(),
            display_name: None,
            manifest: None,
        };
        let import =
            NewImport { origin: origin.to_owned(), kind: DOCS_KIND.to_owned(), options: options.to_json() };
        Ok(store.remember(&connection, &import)?)
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{} cannot be read ({error}); check the path and its permissions", path.display()))
}
