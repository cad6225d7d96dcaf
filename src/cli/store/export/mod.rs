//! `fetchwell export`: writes the records of a connection or a stream to files.
//!
//! * `ndjson`, `csv_file`, `markdown`: the formats
//! * `output`: the file, the folder or standard output
//! * `file_name`: names of files from keys and streams, `distinct_name`: names of fields

mod csv_file;
mod distinct_name;
mod file_name;
mod markdown;
mod ndjson;
mod output;

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use fetchwell_core::handle::RecordScope;
use fetchwell_source::RecordExport;
use fetchwell_source::contract::ExportError;
use serde_json::json;

use self::output::{Folder, Output};
use crate::app::failure::Failure;
use crate::cli::backup::StoreArgs;
use crate::cli::print::{Printer, counted};
use crate::config::Environment;

/// Write the records of a connection or a stream to a file, a folder or standard output.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// CONNECTION or CONNECTION/STREAM.
    #[arg(value_name = "WHAT")]
    scope: RecordScope,

    /// The format of the export.
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Format,

    /// The file, or the folder for several files; `-` is standard output [default: standard output]
    #[arg(long, value_name = "PATH")]
    output: Option<PathBuf>,

    /// Replace an earlier export.
    #[arg(long, requires = "output")]
    force: bool,

    #[command(flatten)]
    store: StoreArgs,
}

/// Formats of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Record envelopes, which `fetchwell import records` reads, one JSON object per line.
    Ndjson,
    /// A table per stream, with a column per field.
    Csv,
    /// A Markdown file per record, in a folder.
    #[value(alias = "markdown")]
    Md,
}

impl Export {
    pub(crate) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        if let Some(record) = &self.scope.record {
            return Err(Failure::usage(&format_args!(
                "`{}` is one record; name its stream, or run `fetchwell fetch {0}`, for the record `{record}`",
                self.scope
            )));
        }
        let output = self.output.as_deref().filter(|path| *path != Path::new("-"));
        let export = self.store.store(environment)?.export(&self.scope)?;
        match self.write(&*export, output) {
            Ok(records) => {
                if let Some(path) = output {
                    if printer.json {
                        printer.value(&json!({ "output": path, "records": records }));
                    } else {
                        printer.line(format_args!("{}: {}", path.display(), counted(records, "record")));
                    }
                }
                Ok(())
            }
            // The program that reads the pipe has read enough.
            Err(ExportError::Sink(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            // An error of this command names the path and the remedy.
            Err(ExportError::Sink(error)) if is_own(&error) => Err(Failure::new(error.to_string())),
            Err(ExportError::Sink(error)) => {
                let place =
                    output.map_or_else(|| "standard output".to_owned(), |path| path.display().to_string());
                Err(Failure::new(format!("{place} cannot be written ({error})")))
            }
            Err(ExportError::Store(error)) => Err(error.into()),
        }
    }

    /// Writes all records and returns their number.
    fn write(&self, export: &dyn RecordExport, output: Option<&Path>) -> Result<u64, ExportError<io::Error>> {
        let streams = export.streams();
        let has_one_table = self.scope.stream.is_some() || streams.len() == 1;
        let folder = || match output {
            Some(path) => Folder::create(path, self.force).map_err(ExportError::Sink),
            None => Err(ExportError::Sink(io::Error::new(
                io::ErrorKind::InvalidInput,
                "this export has several files; name a folder for them with --output FOLDER",
            ))),
        };
        let mut records = 0;
        match self.format {
            Format::Ndjson => {
                let mut output = Output::open(output, self.force).map_err(ExportError::Sink)?;
                for stream in streams {
                    records += ndjson::write(export, stream, &mut output)?;
                }
                output.finish().map_err(ExportError::Sink)?;
            }
            Format::Csv if has_one_table => {
                let mut output = Output::open(output, self.force).map_err(ExportError::Sink)?;
                for stream in streams {
                    records += csv_file::write(export, stream, &mut output)?;
                }
                output.finish().map_err(ExportError::Sink)?;
            }
            Format::Csv => {
                let folder = folder()?;
                for stream in streams {
                    let mut output = folder.file(&stream.name, "csv").map_err(ExportError::Sink)?;
                    records += csv_file::write(export, stream, &mut output)?;
                    output.finish().map_err(ExportError::Sink)?;
                }
            }
            Format::Md => {
                let folder = folder()?;
                for stream in streams {
                    let place = if self.scope.stream.is_some() {
                        folder.clone()
                    } else {
                        folder.folder(&stream.name).map_err(ExportError::Sink)?
                    };
                    records += markdown::write(export, stream, &place)?;
                }
            }
        }
        Ok(records)
    }
}

/// Returns true for an error of a path that was checked by this command, and not by the system.
fn is_own(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, InvalidInput, IsADirectory, NotADirectory};
    error.get_ref().is_some()
        && matches!(error.kind(), AlreadyExists | InvalidInput | IsADirectory | NotADirectory)
}
