//! The record of trusted files, in the user's own state folder.
//!
//! A file is trusted by its path, through all links to its folder, and the SHA-256 of its content, so that neither a copy nor a changed file is. The
//! record is readable and writable by its owner alone (0600), is replaced as a whole, and is refused when others can write it.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use directories::ProjectDirs;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::state::{StateError, StateLock, create_private_directory};

/// The file in the state folder.
const NAME: &str = "trusted-configurations.json";

/// The version of its format.
const FORMAT: u32 = 1;

/// The largest record that is read, in bytes. A trusted file takes about 250.
const MAX_RECORD_BYTES: u64 = 1024 * 1024;

/// An error of looking up or recording trust.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The system names no folder for the user's state.
    #[error("the system names no folder for the user's state; name the file with --config instead")]
    NoFolder,
    /// The path is not UTF-8.
    #[error("{} is not UTF-8 and cannot be recorded; name the file with --config instead", .0.display())]
    NotUtf8(PathBuf),
    /// The file cannot be found.
    #[error("{} cannot be found ({problem}); check the path", .path.display())]
    NotFound {
        /// The file that is to be trusted.
        path: PathBuf,
        /// The error of the system.
        problem: std::io::Error,
    },
    /// The record cannot be read or written.
    #[error("the record of trusted files {} cannot be used ({problem}); check its permissions", .path.display())]
    Unusable {
        /// The record.
        path: PathBuf,
        /// The reason.
        problem: String,
    },
    /// Other users can change the record.
    #[error("others can read or write the record of trusted files {} (mode {mode:o}); look at it with `fetchwell config trust --list` after `chmod 600 {}`", .path.display(), .path.display())]
    OpenToOthers {
        /// The record.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The record is not one.
    #[error("the record of trusted files {} is damaged ({problem}); delete it and trust the files again", .path.display())]
    Damaged {
        /// The record.
        path: PathBuf,
        /// The error of the JSON parser.
        problem: String,
    },
    /// The lock of the folder cannot be had.
    #[error(transparent)]
    Lock(#[from] StateError),
}

/// A file that the user trusts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedFile {
    /// Its path, with the folder through all links.
    pub path: String,
    /// The SHA-256 of its content, in hexadecimal.
    pub sha256: String,
    /// The time at which the user trusted it, in RFC 3339.
    pub trusted_at: String,
}

impl TrustedFile {
    /// Returns whether this is its content.
    #[must_use]
    pub fn has_content(&self, text: &str) -> bool {
        self.sha256 == sha256(text)
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    format: u32,
    files: Vec<TrustedFile>,
}

/// The files that the user trusts.
#[derive(Debug, Clone)]
pub struct TrustedFiles {
    folder: PathBuf,
    path: PathBuf,
}

impl TrustedFiles {
    /// Returns those of the user who runs the program.
    ///
    /// # Errors
    ///
    /// The system names no folder for the user's state.
    pub fn of_user() -> Result<Self, TrustError> {
        let dirs = ProjectDirs::from("", "", "fetchwell").ok_or(TrustError::NoFolder)?;
        Ok(Self::in_folder(dirs.state_dir().unwrap_or_else(|| dirs.data_local_dir())))
    }

    fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), path: folder.join(NAME) }
    }

    /// Returns whether the user trusts a file with this content.
    ///
    /// # Errors
    ///
    /// The record cannot be used.
    pub fn is_trusted(&self, file: &Path, text: &str) -> Result<bool, TrustError> {
        let files = self.list()?;
        if files.is_empty() {
            return Ok(false);
        }
        let file = canonical(file)?;
        Ok(files.iter().any(|trusted| trusted.path == file && trusted.has_content(text)))
    }

    /// Returns all trusted files, by path.
    ///
    /// # Errors
    ///
    /// The record cannot be used.
    pub fn list(&self) -> Result<Vec<TrustedFile>, TrustError> {
        let unusable = |problem: std::io::Error| TrustError::Unusable {
            path: self.path.clone(),
            problem: problem.to_string(),
        };
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unusable(error)),
        };
        self.check_mode(&file.metadata().map_err(unusable)?)?;
        let mut text = String::new();
        file.take(MAX_RECORD_BYTES).read_to_string(&mut text).map_err(unusable)?;
        let damaged = |problem: String| TrustError::Damaged { path: self.path.clone(), problem };
        let record: Record = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if record.format != FORMAT {
            return Err(damaged(format!("its format is {}, and {FORMAT} is known", record.format)));
        }
        Ok(record.files)
    }

    /// Records that the user trusts a file with this content, and with no other. Returns the file.
    ///
    /// # Errors
    ///
    /// The file cannot be found, or the record cannot be written.
    pub fn trust(&self, file: &Path, text: &str) -> Result<TrustedFile, TrustError> {
        let trusted_at = Timestamp::now().strftime("%FT%TZ").to_string();
        let trusted = TrustedFile { path: canonical(file)?, sha256: sha256(text), trusted_at };
        self.edit(|files| {
            files.retain(|known| known.path != trusted.path);
            files.push(trusted.clone());
            files.sort_by(|one, other| one.path.cmp(&other.path));
        })?;
        Ok(trusted)
    }

    /// Takes a file out of the record, whether it exists or not. Returns whether it was in it.
    ///
    /// # Errors
    ///
    /// The record cannot be read or written.
    pub fn remove(&self, file: &Path) -> Result<bool, TrustError> {
        let absolute = std::path::absolute(file)
            .map_err(|problem| TrustError::NotFound { path: file.to_owned(), problem })?;
        let names = [canonical(file).ok(), absolute.to_str().map(str::to_owned)];
        let mut is_removed = false;
        self.edit(|files| {
            let before = files.len();
            files.retain(|known| !names.iter().flatten().any(|name| *name == known.path));
            is_removed = files.len() < before;
        })?;
        Ok(is_removed)
    }

    /// Replaces the record as a whole, while no other process does.
    fn edit(&self, change: impl FnOnce(&mut Vec<TrustedFile>)) -> Result<(), TrustError> {
        let unusable = |problem: std::io::Error| TrustError::Unusable {
            path: self.path.clone(),
            problem: problem.to_string(),
        };
        create_private_directory(&self.folder).map_err(unusable)?;
        let _lock = StateLock::of(&self.folder)?;
        let mut files = self.list()?;
        change(&mut files);
        let record = Record { format: FORMAT, files };
        // A temporary file is its owner's alone.
        let mut fresh = tempfile::NamedTempFile::new_in(&self.folder).map_err(unusable)?;
        let text = serde_json::to_string_pretty(&record).map_err(|error| unusable(error.into()))?;
        fresh.write_all(text.as_bytes()).map_err(unusable)?;
        fresh.as_file().sync_all().map_err(unusable)?;
        fresh.persist(&self.path).map_err(|error| unusable(error.error))?;
        Ok(())
    }

    #[cfg(unix)]
    fn check_mode(&self, record: &fs::Metadata) -> Result<(), TrustError> {
        use std::os::unix::fs::PermissionsExt;
        match record.permissions().mode() & 0o777 {
            mode if mode & 0o077 == 0 => Ok(()),
            mode => Err(TrustError::OpenToOthers { path: self.path.clone(), mode }),
        }
    }

    #[cfg(not(unix))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "only Unix has such modes")]
    fn check_mode(&self, _record: &fs::Metadata) -> Result<(), TrustError> {
        Ok(())
    }
}

/// Returns the path of a file as the record has it: its folder through all links, and its own name. A link to a trusted file is
/// another file, since commands and relative paths would mean another folder.
fn canonical(file: &Path) -> Result<String, TrustError> {
    let not_found = |problem: std::io::Error| TrustError::NotFound { path: file.to_owned(), problem };
    let name = file.file_name().ok_or_else(|| not_found(ErrorKind::InvalidInput.into()))?;
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let path = fs::canonicalize(folder).map_err(not_found)?.join(name);
    path.to_str().map(str::to_owned).ok_or_else(|| TrustError::NotUtf8(path.clone()))
}

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string does not fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_is_of_one_file_with_one_content() {
        let folder = tempfile::tempdir().unwrap();
        let files = TrustedFiles::in_folder(&folder.path().join("state"));
        let (one, other) = (folder.path().join("one.toml"), folder.path().join("other.toml"));
        for file in [&one, &other] {
            fs::write(file, "a").unwrap();
        }
        let is_trusted = |file: &Path, text: &str| files.is_trusted(file, text).unwrap();
        assert!(!is_trusted(&one, "a"));
        files.trust(&one, "a").unwrap();
        assert!(is_trusted(&one, "a") && !is_trusted(&one, "b") && !is_trusted(&other, "a"));
        // Another way to the same folder.
        assert!(is_trusted(&folder.path().join("state/../one.toml"), "a"));
        // In the folder of a link, commands and relative paths mean something else.
        #[cfg(unix)]
        {
            let link = folder.path().join("link.toml");
            std::os::unix::fs::symlink(&one, &link).unwrap();
            assert!(!is_trusted(&link, "a"));
        }
        files.trust(&one, "b").unwrap();
        assert!(is_trusted(&one, "b") && !is_trusted(&one, "a"));
        files.trust(&other, "a").unwrap();
        assert_eq!(files.list().unwrap().len(), 2);
        fs::remove_file(&one).unwrap();
        assert!(files.remove(&one).unwrap() && !files.remove(&one).unwrap());
        assert_eq!(files.list().unwrap().len(), 1);
    }

    #[test]
    #[cfg(unix)]
    fn a_record_that_others_can_change_or_that_is_damaged_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let files = TrustedFiles::in_folder(folder.path());
        let file = folder.path().join("f.toml");
        fs::write(&file, "a").unwrap();
        files.trust(&file, "a").unwrap();
        let mode = || fs::metadata(&files.path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&files.path, fs::Permissions::from_mode(0o622)).unwrap();
        let refused = files.is_trusted(&file, "a").unwrap_err().to_string();
        assert!(refused.contains("mode 622") && refused.contains("chmod 600"), "{refused}");
        fs::set_permissions(&files.path, fs::Permissions::from_mode(0o600)).unwrap();
        for damaged in ["", "[]", "{\"format\":2,\"files\":[]}"] {
            fs::write(&files.path, damaged).unwrap();
            let refused = files.is_trusted(&file, "a").unwrap_err().to_string();
            assert!(refused.contains("is damaged"), "{refused}");
        }
    }
}
