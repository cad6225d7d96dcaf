//! Reads the file of a client, and writes it with a copy of the earlier one beside it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::super::find::Home;
use super::entry::{Format, ServerEntry};
use super::error::ClientFileError;
use super::excerpt::changed_lines;
use super::json_file::with_json_server;
use super::redact::redact;
use super::toml_file::with_toml_server;
use crate::cli::client_config::Client;
use crate::config::save;

/// Maximum size of a file in bytes. Claude Code keeps the history of projects in its file.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// End of the name of a copy.
const BACKUP: &str = ".fetchwell-backup";

/// Maximum number of copies beside a file.
const MAX_BACKUPS: usize = 1_000;

/// The state of a client's file before anything is written.
#[derive(Debug)]
pub(crate) enum FilePlan {
    /// The file has the command line.
    Current,
    /// The file is changed or created.
    Change(FileChange),
}

/// A change of a file that was not written yet.
#[derive(Debug)]
pub(crate) struct FileChange {
    /// The file, or the file that a link leads to.
    path: PathBuf,
    /// True if the client's path is a link to the file.
    is_link: bool,
    /// Text of the file, or `None` if there is none.
    before: Option<String>,
    after: String,
    format: Format,
}

impl FilePlan {
    /// Reads the file of a client, and prepares the change that makes the client use the server.
    pub(crate) fn read(
        home: &Home,
        client: Client,
        path: &Path,
        server: &ServerEntry,
    ) -> Result<Self, ClientFileError> {
        let target = target(home, path)?;
        let before = read_writable(&target)?;
        let text = before.as_deref().unwrap_or_default();
        let format = Format::for_client(client);
        let mut after = match format {
            Format::Json { servers, transport } => with_json_server(text, servers, transport, server)?,
            Format::Toml => with_toml_server(text, server)?,
        };
        if before.is_none() && !after.ends_with('\n') {
            after.push('\n');
        }
        if before.as_ref() == Some(&after) {
            return Ok(Self::Current);
        }
        let is_link = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
        Ok(Self::Change(FileChange { path: target, is_link, before, after, format }))
    }
}

impl FileChange {
    /// Returns the file, if the client's path is a link to it.
    pub(crate) fn link_target(&self) -> Option<&Path> {
        self.is_link.then_some(self.path.as_path())
    }

    /// Returns true if there is no file yet.
    pub(crate) fn is_new(&self) -> bool {
        self.before.is_none()
    }

    /// Returns the changes, as lines with `-` and `+`, without values of other servers.
    pub(crate) fn lines(&self) -> Vec<String> {
        let before = redact(self.before.as_deref().unwrap_or_default(), self.format);
        changed_lines(&before, &redact(&self.after, self.format))
    }

    /// Writes the file and returns the path of the copy of the earlier one.
    pub(crate) fn write(&self) -> Result<Option<PathBuf>, ClientFileError> {
        // Clients write their files while they run.
        if read_writable(&self.path)? != self.before {
            return Err(ClientFileError::ChangedMeanwhile);
        }
        let backup = match &self.before {
            Some(_) => Some(back_up(&self.path)?),
            None => None,
        };
        save(&self.path, &self.after)?;
        Ok(backup)
    }
}

/// Returns the file that a path or a link names.
pub(super) fn target(home: &Home, path: &Path) -> Result<PathBuf, ClientFileError> {
    let unreadable = |error: io::Error| ClientFileError::Unreadable { problem: error.to_string() };
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(path.to_owned()),
        Err(error) => return Err(unreadable(error)),
    };
    if !metadata.is_symlink() {
        return Ok(path.to_owned());
    }
    let target = fs::read_link(path).map_err(unreadable)?;
    let Ok(found) = fs::canonicalize(path) else { return Err(ClientFileError::DanglingLink { target }) };
    if home.inside(&found).is_none() {
        return Err(ClientFileError::OutsideHome { target: found });
    }
    Ok(found)
}

/// Reads a file that can be changed, or returns `None` if there is none.
fn read_writable(path: &Path) -> Result<Option<String>, ClientFileError> {
    let metadata = fs::metadata(path);
    if metadata.is_ok_and(|metadata| metadata.is_file() && metadata.permissions().readonly()) {
        return Err(ClientFileError::ReadOnly);
    }
    read(path)
}

/// Reads a file, or returns `None` if there is none.
pub(super) fn read(path: &Path) -> Result<Option<String>, ClientFileError> {
    let unreadable = |error: io::Error| ClientFileError::Unreadable { problem: error.to_string() };
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    if !metadata.is_file() {
        return Err(ClientFileError::NotAFile);
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(ClientFileError::TooLarge { limit: MAX_BYTES });
    }
    String::from_utf8(bytes).map(Some).map_err(|_invalid| ClientFileError::NotUtf8)
}

/// Copies a file with its permissions to the first free name beside it.
fn back_up(path: &Path) -> Result<PathBuf, ClientFileError> {
    let no_backup = |problem: String| ClientFileError::NoBackup { problem };
    let name = |number: usize| {
        let mut name = OsString::from(path);
        name.push(BACKUP);
        if number > 1 {
            name.push(format!("-{number}"));
        }
        PathBuf::from(name)
    };
    let is_free = |path: &PathBuf| fs::symlink_metadata(path).is_err();
    let backup = (1..=MAX_BACKUPS).map(name).find(is_free);
    let backup = backup.ok_or_else(|| no_backup(format!("there are {MAX_BACKUPS} copies")))?;
    fs::copy(path, &backup).map_err(|error| no_backup(error.to_string()))?;
    Ok(backup)
}
