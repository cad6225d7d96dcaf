//! The file, the folder or standard output of an export. Files have mode 0600 and appear when they are complete.

use std::fs;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use fetchwell_core::terminal::data_output;
use fetchwell_state::{create_private_directory, read_head};
use tempfile::NamedTempFile;

use super::file_name::{file_name, folder_name};

/// Destination of a table or of lines.
pub(super) enum Output {
    Stdout(Box<dyn Write>),
    File(StagedFile),
}

/// Beginnings of exported files: of lines, of a table, and of a document.
const BEGINNINGS: [&[u8]; 3] = [b"{\"stream\":", b"_key,", b"---\n_key:"];

/// File that has its name when it is complete.
pub(super) struct StagedFile {
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
    replaces: bool,
}

impl Output {
    /// Opens a file, or standard output if none is named.
    pub(super) fn open(path: Option<&Path>, replaces: bool) -> io::Result<Self> {
        let Some(path) = path else { return Ok(Self::Stdout(data_output())) };
        if !replaces && fs::symlink_metadata(path).is_ok() {
            return Err(exists(path));
        }
        if path.is_dir() {
            let problem = format!("{} is a folder; name a file", path.display());
            return Err(io::Error::new(ErrorKind::IsADirectory, problem));
        }
        if replaces && path.exists() && !is_export(path)? {
            let problem =
                format!("{} is no earlier export, and is not replaced; name another file", path.display());
            return Err(io::Error::new(ErrorKind::AlreadyExists, problem));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = BufWriter::new(
            tempfile::Builder::new().prefix(".fetchwell-").suffix(".tmp").tempfile_in(folder)?,
        );
        Ok(Self::File(StagedFile { file, path: path.to_owned(), replaces }))
    }

    /// Completes the file.
    pub(super) fn finish(self) -> io::Result<()> {
        match self {
            Self::Stdout(mut output) => output.flush(),
            Self::File(StagedFile { file, path, replaces }) => {
                let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
                let done = if replaces { file.persist(&path) } else { file.persist_noclobber(&path) };
                done.map(drop).map_err(|error| error.error)
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(output) => output.write(bytes),
            Self::File(staged) => staged.file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(output) => output.flush(),
            Self::File(staged) => staged.file.flush(),
        }
    }
}

/// Folder of an export.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    path: PathBuf,
    replaces: bool,
}

impl Folder {
    /// Creates a folder with mode 0700. It may exist if it is empty, or if an earlier export is replaced.
    pub(super) fn create(path: &Path, replaces: bool) -> io::Result<Self> {
        if path.exists() && !path.is_dir() {
            let problem = format!("{} is a file; name a folder for the files of this export", path.display());
            return Err(io::Error::new(ErrorKind::NotADirectory, problem));
        }
        create_private_directory(path)?;
        if !replaces && fs::read_dir(path)?.next().is_some() {
            return Err(exists(path));
        }
        Ok(Self { path: path.to_owned(), replaces })
    }

    /// Creates a folder in this one for an untrusted name.
    pub(super) fn folder(&self, name: &str) -> io::Result<Self> {
        let path = self.path.join(folder_name(name));
        match fs::symlink_metadata(&path) {
            Ok(metadata) if !metadata.is_dir() => {
                return Err(io::Error::new(
                    ErrorKind::NotADirectory,
                    format!("{} is no folder; name another folder for the export", path.display()),
                ));
            }
            _ => create_private_directory(&path)?,
        }
        Ok(Self { path, replaces: self.replaces })
    }

    /// Opens a file in the folder for an untrusted name.
    pub(super) fn file(&self, name: &str, extension: &str) -> io::Result<Output> {
        Output::open(Some(&self.path.join(file_name(name, extension))), self.replaces)
    }
}

/// Returns true for a file that begins as an export does, and for an empty one.
fn is_export(path: &Path) -> io::Result<bool> {
    let head = read_head(path, 16)?;
    Ok(head.is_empty() || BEGINNINGS.iter().any(|beginning| head.starts_with(beginning)))
}

fn exists(path: &Path) -> io::Error {
    let problem = format!("{} exists; add --force to replace an earlier export", path.display());
    io::Error::new(ErrorKind::AlreadyExists, problem)
}
