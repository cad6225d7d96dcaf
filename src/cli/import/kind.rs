//! The kinds of imports with their arguments, and the calls of the importers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Args, Subcommand};
use fetchwell_connectors::{
    FieldNames, FileKind, FileSelection, ImportError, Input, Intake, import_csv, import_files, import_json,
    import_mbox, import_records, unzip_input,
};
use fetchwell_source::Manifest;

use super::super::sync::OcrArgs;
use super::files_command::FilesCommand;
use super::target::TargetArgs;
use crate::app::failure::Failure;

#[derive(Debug, Subcommand)]
pub(super) enum Kind {
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
    /// Import a mailbox file, also compressed with gzip, a record per message
    Mbox {
        /// The file.
        file: PathBuf,
        #[command(flatten)]
        into: TargetArgs,
        /// The stream for the records.
        #[arg(long, value_name = "NAME", default_value = "messages")]
        stream: String,
        #[command(flatten)]
        ocr: OcrArgs,
    },
    #[command(flatten)]
    Files(FilesCommand),
}

/// The fields that mean something. A name is that of a column or field, in any case, or a path such as `snippet.title`.
#[derive(Debug, Clone, Args)]
pub(super) struct FieldArgs {
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

impl Kind {
    pub(super) fn place(&self) -> (&TargetArgs, &Path) {
        match self {
            Self::Records { file, into, .. }
            | Self::Csv { file, into, .. }
            | Self::Json { file, into, .. }
            | Self::Mbox { file, into, .. }
            | Self::Markdown { path: file, into, .. } => (into, file),
            Self::Files(command) => command.place(),
        }
    }

    pub(super) fn connector(&self) -> &'static str {
        match self {
            Self::Records { .. } => "records",
            Self::Csv { .. } => "csv",
            Self::Json { .. } => "json",
            Self::Markdown { .. } => "markdown",
            Self::Mbox { .. } => "mbox",
            Self::Files(command) => command.connector(),
        }
    }

    /// Returns true if the import reads folders.
    pub(super) fn reads_folders(&self) -> bool {
        matches!(self, Self::Markdown { .. } | Self::Files(_))
    }

    /// Checks the flags of text recognition.
    pub(super) fn check_ocr(&self) -> Result<(), Failure> {
        match self {
            Self::Files(command) => command.check_ocr(),
            Self::Mbox { ocr, .. } => ocr.check_program(),
            _ => Ok(()),
        }
    }

    pub(super) fn manifest(&self) -> Result<Option<Manifest>, Failure> {
        let Self::Records { manifest: Some(path), .. } = self else { return Ok(None) };
        let text =
            fs::read_to_string(path).map_err(|error| Failure::new(unreadable(path, &error).to_string()))?;
        let manifest = Manifest::parse(&text);
        manifest.map(Some).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
    }

    pub(super) fn read_into(
        &self,
        intake: &mut Intake<'_>,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), ImportError> {
        let progress = intake.progress();
        let open = |path: &Path| {
            Input::open_text(path, stop, Arc::clone(&progress)).map_err(|error| unreadable(path, &error))
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
            Self::Mbox { file, stream, ocr, .. } => {
                let bytes = file.metadata().map_or(0, |metadata| metadata.len());
                let mut reader = unzip_input(open(file)?, bytes).map_err(|error| unreadable(file, &error))?;
                let mut selection = FileSelection::new(&[FileKind::Mbox], Some(stream.clone()));
                (selection.program, selection.ocr) = (std::env::current_exe().ok(), ocr.recognizer(stop));
                import_mbox(&mut reader, file, &selection, intake)
            }
            Self::Markdown { path, stream, .. } => {
                if path.is_file() && !FileKind::Markdown.is_name(path) {
                    let problem = "it is neither a folder nor a .md, .markdown or .mdx file".to_owned();
                    return Err(ImportError::Unreadable { path: path.clone(), problem });
                }
                let selection = FileSelection::new(&[FileKind::Markdown], Some(stream.clone()));
                import_files(path, &selection, intake)
            }
            Self::Files(command) => command.read_into(intake, stop),
        }
    }
}

/// Returns the stream of a file's records: the given name, otherwise the name of the file.
fn stream_of(file: &Path, named: Option<&str>) -> String {
    let stem = || file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    named.map(str::to_owned).or_else(stem).unwrap_or_default()
}

fn unreadable(path: &Path, error: &io::Error) -> ImportError {
    ImportError::Unreadable { path: path.to_owned(), problem: error.to_string() }
}
