//! `fetchwell add`: remembers an import, and synchronizes it for the first time.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use fetchwell_connectors::{Guess, ImportKind, ImportOptions, StoreFiles, connection_name, guess_kind};
use fetchwell_core::handle::ConnectionId;
use fetchwell_core::terminal::output::note;
use fetchwell_source::contract::{NewConnection, NewImport, RememberedImport, StoreError};
use fetchwell_source::{Manifest, SyncStore};

use super::super::embeddings::EmbedArgs;
use super::super::print::{Printer, grouped};
use super::super::rejections::{EXIT_CODES, ReportFile};
use super::dry_run::{DryRunTarget, dry_run};
use super::ocr::OcrArgs;
use super::report::{SyncReport, ended};
use super::run::{note_lock, run_stoppable, synchronize};
use crate::app::default_store::{planned_store, store_or_database_to_fill};
use crate::app::failure::Failure;
use crate::app::imports::ImportStore;
use crate::app::open::runtime;
use crate::config::Environment;

/// Import a file or folder of any kind, and remember it for `fetchwell sync`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Add {
    /// The file or folder.
    path: PathBuf,
    /// The store: a file, or the URL of a PostgreSQL database; created if it does not exist [default: `FETCHWELL_STORE`, or
    /// else the default store]
    #[arg(long, value_name = "DB")]
    store: Option<PathBuf>,
    /// The kind of the import, a subcommand of `fetchwell import` [default: guessed from the content and the name]
    #[arg(long, value_name = "KIND")]
    kind: Option<ImportKind>,
    /// The id of the connection, such as `work-mail` [default: made from the name of the file or folder]
    #[arg(long, value_name = "ID")]
    connection: Option<ConnectionId>,
    /// A label for people, such as `Work mail`.
    #[arg(long, value_name = "LABEL")]
    name: Option<String>,
    /// The stream for the records [default: that of `fetchwell import`]
    #[arg(long, value_name = "NAME")]
    stream: Option<String>,
    /// The key field of a table or of JSON; repeat it for a compound key.
    #[arg(long, value_name = "FIELD")]
    key: Vec<String>,
    /// The title field of a table or of JSON.
    #[arg(long, value_name = "FIELD")]
    title: Option<String>,
    /// The time field of a table or of JSON.
    #[arg(long, value_name = "FIELD")]
    time: Option<String>,
    /// The web address field of a table or of JSON.
    #[arg(long, value_name = "FIELD")]
    url: Option<String>,
    /// The connector's manifest of record envelopes; only its streams are imported.
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Write every rejected record and file and every skipped file to this file, a line of JSON each.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Read everything and print what would be imported and what could not be read, and import nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    ocr: OcrArgs,
    #[command(flatten)]
    embed: EmbedArgs,
}

/// Maximum number of imports with one name.
const MAX_NAMESAKES: u32 = 1_000;

/// Error of an address in place of a file or folder.
const URL_ORIGIN: &str = "only files and folders are imported, not URLs; download the file or clone the repository, and add that; \
                          a record server is added with `fetchwell source add NAME --url URL`";

/// An import to be added, or one that the store has.
enum Target {
    New { connection: Box<NewConnection>, import: NewImport, guess: Guess },
    Known(Box<RememberedImport>),
}

impl From<Target> for DryRunTarget {
    fn from(target: Target) -> Self {
        match target {
            Target::New { connection, import, guess } => {
                Self { connection: *connection, import, guess: Some(guess) }
            }
            Target::Known(known) => {
                let RememberedImport { connection_id, connector_key, manifest, settings, .. } = *known;
                let connection = NewConnection { connection_id, connector_key, display_name: None, manifest };
                Self { connection, import: settings, guess: None }
            }
        }
    }
}

impl Add {
    /// Creates the import of a path into a connection, without options.
    pub(crate) fn new(
        path: PathBuf,
        store: PathBuf,
        kind: Option<ImportKind>,
        connection: ConnectionId,
    ) -> Self {
        Self {
            path,
            store: Some(store),
            kind,
            connection: Some(connection),
            name: None,
            stream: None,
            key: Vec::new(),
            title: None,
            time: None,
            url: None,
            manifest: None,
            report: None,
            dry_run: false,
            ocr: OcrArgs::default(),
            embed: EmbedArgs::default(),
        }
    }

    pub(crate) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        // A path that cannot be read creates no store.
        self.origin()?;
        self.ocr.check_program()?;
        if self.dry_run {
            let store = planned_store(self.store.as_deref(), environment)?;
            let target = self.target(&store, environment)?;
            return dry_run(target.into(), &store, self.report.as_deref(), printer);
        }
        let store = store_or_database_to_fill(self.store.as_deref(), environment)?;
        let report = self.import_into(&store, environment)?;
        report.print(printer);
        runtime()?.block_on(self.embed.embed_imported(&ImportStore::from_place(&store)?, environment))?;
        ended([&report])
    }

    /// Imports into a store and remembers the import. Nothing is embedded.
    pub(crate) fn import_into(&self, path: &Path, environment: &Environment) -> Result<SyncReport, Failure> {
        let target = self.target(path, environment)?;
        note_lock(path);
        let store = ImportStore::from_place(path)?.open_or_create(environment)?;
        let import = match target {
            Target::Known(import) => self.refresh(&*store, *import)?,
            Target::New { connection, import, .. } => store.remember(&connection, &import)?,
        };
        let mut report_file = self.report.as_deref().map(ReportFile::create).transpose()?;
        let run = move |stop: &Arc<AtomicBool>| {
            let report = synchronize(&*store, &import, false, report_file.as_mut(), stop)?;
            report_file.map_or(Ok(()), ReportFile::finish)?;
            Ok(report)
        };
        runtime()?.block_on(run_stoppable(run))
    }

    /// Returns the path of the file or folder without links.
    fn origin(&self) -> Result<PathBuf, Failure> {
        let origin = fs::canonicalize(&self.path).map_err(|error| {
            if is_url(&self.path) { Failure::usage(&URL_ORIGIN) } else { unreadable(&self.path, &error) }
        })?;
        if origin.to_str().is_none() {
            return Err(Failure::new(format!("the path {} is not UTF-8; rename it", origin.display())));
        }
        Ok(origin)
    }

    /// Returns the import that the store has of the path, or a new one.
    fn target(&self, store: &Path, environment: &Environment) -> Result<Target, Failure> {
        let origin = self.origin()?;
        let known = match ImportStore::from_place(store)?.open(environment) {
            Err(StoreError::Missing(_)) => Vec::new(),
            store => store?.imports()?,
        };
        match self.known(&origin, &known)? {
            Some(import) => {
                note(&format_args!("{} is already added as `{}`", origin.display(), import.connection_id));
                Ok(Target::Known(Box::new(import.clone())))
            }
            None => self.new_import(&origin, store, &known),
        }
    }

    /// Renames the connection of a known import if a label is named, turns text recognition on if it is asked for, and schedules
    /// the files of which records were removed to be read again.
    fn refresh(&self, store: &dyn SyncStore, import: RememberedImport) -> Result<RememberedImport, Failure> {
        store.restore_removed(import.id)?;
        let mut options = ImportOptions::from_json(&import.settings.options);
        self.ocr.apply(&mut options);
        let has_other_options = options != ImportOptions::from_json(&import.settings.options);
        if self.name.is_none() && !has_other_options {
            return Ok(import);
        }
        let connection = NewConnection {
            connection_id: import.connection_id.clone(),
            connector_key: import.connector_key.clone(),
            display_name: self.name.clone(),
            manifest: None,
        };
        let mut settings = import.settings;
        if has_other_options {
            settings.options = options.to_json();
        }
        Ok(store.remember(&connection, &settings)?)
    }

    /// Returns the import of this origin that the store has, unless another connection is named.
    fn known<'k>(
        &self,
        origin: &Path,
        known: &'k [RememberedImport],
    ) -> Result<Option<&'k RememberedImport>, Failure> {
        let is_this = |import: &&RememberedImport| {
            import.settings.origin == origin
                && self.connection.as_ref().is_none_or(|named| *named == import.connection_id)
        };
        let Some(import) = known.iter().find(is_this) else { return Ok(None) };
        // Text recognition can be turned on later.
        let options = self.options().without_ocr();
        let known_options = ImportOptions::from_json(&import.settings.options).without_ocr();
        let is_same_kind = self.kind.is_none_or(|kind| kind.as_str() == import.settings.kind);
        let has_options = options != ImportOptions::default();
        if !is_same_kind || has_options && options != known_options {
            return Err(Failure::usage(&format_args!(
                "{} is already added as `{}` with other options; name another --connection to add it a second time",
                origin.display(),
                import.connection_id
            )));
        }
        if let Ok(kind) = import.settings.kind.parse() {
            self.ocr.check_kind(kind)?;
        }
        Ok(Some(import))
    }

    fn new_import(&self, origin: &Path, store: &Path, known: &[RememberedImport]) -> Result<Target, Failure> {
        let guess = guess_kind(origin, self.kind, &StoreFiles::new(store, origin))?;
        let options = self.options();
        if let Some(option) = guess.kind.unused_option(&options) {
            return Err(Failure::usage(&format_args!(
                "--{option} does not apply to imports of kind {}",
                guess.kind
            )));
        }
        let manifest = self.manifest.as_deref().map(read_manifest).transpose()?;
        if manifest.is_some() && guess.kind != ImportKind::Records {
            return Err(Failure::usage(&"--manifest needs --kind records"));
        }
        guess.check_readable(origin, &options)?;
        let connection_id = self.connection_id(origin, known)?;
        note_overlaps(origin, guess.kind, known);
        describe(origin, &guess, &connection_id, self.dry_run);
        let key =
            manifest.as_ref().and_then(Manifest::connector_key).unwrap_or(guess.kind.as_str()).to_owned();
        let connection = NewConnection {
            connection_id,
            connector_key: key,
            display_name: self.name.clone(),
            manifest: manifest.map(|manifest| manifest.text().to_owned()),
        };
        let kind = guess.kind.as_str().to_owned();
        let import = NewImport { origin: origin.to_owned(), kind, options: options.to_json() };
        Ok(Target::New { connection: Box::new(connection), import, guess })
    }

    /// Returns the named connection, or one with the name of the origin that no other import has.
    fn connection_id(&self, origin: &Path, known: &[RememberedImport]) -> Result<ConnectionId, Failure> {
        let other = |id: &ConnectionId| known.iter().find(|import| import.connection_id == *id);
        if let Some(id) = &self.connection {
            return match other(id) {
                None => Ok(id.clone()),
                Some(other) => Err(Failure::usage(&format_args!(
                    "the connection `{id}` has the records of {}; name another with --connection",
                    other.settings.origin.display()
                ))),
            };
        }
        let no_name = "no connection id can be made from this name; name one with --connection";
        let id = connection_name(origin).ok_or_else(|| Failure::usage(&no_name))?;
        let Some(taken) = other(&id) else { return Ok(id) };
        let numbered = (2..=MAX_NAMESAKES).filter_map(|number| format!("{id}-{number}").parse().ok());
        let free =
            numbered.into_iter().find(|id| other(id).is_none()).ok_or_else(|| Failure::usage(&no_name))?;
        note(&format_args!(
            "the connection `{id}` has the records of {}, so this one is `{free}`; --connection chooses another name",
            taken.settings.origin.display()
        ));
        Ok(free)
    }

    fn options(&self) -> ImportOptions {
        let Self { stream, key, title, time, url, .. } = self;
        let mut options = ImportOptions {
            stream: stream.clone(),
            key: key.clone(),
            title: title.clone(),
            time: time.clone(),
            url: url.clone(),
            ..ImportOptions::default()
        };
        self.ocr.apply(&mut options);
        options
    }
}

/// Warns of imports with files that a new import reads, too. Commits of a repository are not its files.
fn note_overlaps(origin: &Path, kind: ImportKind, known: &[RememberedImport]) {
    let git = ImportKind::Git.as_str();
    for RememberedImport { connection_id, settings, .. } in known {
        let other = settings.origin.as_path();
        let relation = match (origin.starts_with(other), other.starts_with(origin)) {
            (true, false) => "is inside",
            (false, true) => "contains",
            // Naming a connection adds a path a second time on purpose.
            (true, true) | (false, false) => continue,
        };
        if kind != ImportKind::Git && settings.kind != git {
            note(&format_args!(
                "warning: {} {relation} {}, which is added as `{connection_id}`; files of both are imported twice; \
                 `fetchwell remove` removes one of the two connections",
                origin.display(),
                other.display()
            ));
        }
    }
}

/// Prints what will be imported.
fn describe(origin: &Path, guess: &Guess, connection: &ConnectionId, is_dry: bool) {
    let Guess { kind, files, bytes, has_repository, .. } = guess;
    let size = match (kind, files) {
        (ImportKind::Git, _) => String::new(),
        (_, 1) => format!(" (1 file, {})", indicatif::HumanBytes(*bytes)),
        (_, files) => format!(" ({} files, {})", grouped(*files), indicatif::HumanBytes(*bytes)),
    };
    let action = if is_dry { "reading" } else { "importing" };
    note(&format_args!("{action} {}{size} as {kind} into the connection `{connection}`", origin.display()));
    if *has_repository {
        note(&"it is also a repository; add it with `--kind git --connection NAME` to import its commits");
    }
}

/// Returns true if a path begins with the scheme of a URL, such as `https://`.
fn is_url(path: &Path) -> bool {
    let scheme = path.to_str().and_then(|text| text.split_once("://")).map(|(scheme, _)| scheme);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    scheme.is_some_and(|scheme| !scheme.is_empty() && scheme.bytes().all(is_plain))
}

fn read_manifest(path: &Path) -> Result<Manifest, Failure> {
    let text = fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    Manifest::parse(&text).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{} cannot be read ({error}); check the path and its permissions", path.display()))
}
