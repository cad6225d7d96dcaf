//! The record of trusted files, in the user's state folder.
//!
//! A file is identified by its path, with symbolic links of the folder resolved, and the SHA-256 of its content, so
//! neither a copy nor a changed file is trusted. The record is readable and writable by its owner only (0600), is
//! replaced atomically, and is rejected if others can read or write it.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use directories::ProjectDirs;
use fetchwell_core::hex::hexadecimal;
use fetchwell_state::{StateError, StateLock, create_private_directory};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// File name in the state folder.
const NAME: &str = "trusted-configurations.json";

/// Format version of the record.
const FORMAT: u32 = 1;

/// Maximum size of the record in bytes. A trusted file takes about 250.
const MAX_RECORD_BYTES: u64 = 1024 * 1024;

/// An error of reading or writing the record of trusted files.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The system has no folder for the user's state.
    #[error("the user's state folder is unknown; name the file with --config instead")]
    NoFolder,
    /// The path is not UTF-8.
    #[error("{} is not UTF-8 and cannot be recorded; name the file with --config instead", .0.display())]
    NotUtf8(PathBuf),
    /// The file does not exist.
    #[error("{} cannot be found ({problem}); check the path", .path.display())]
    NotFound {
        /// Path of the file that is to be trusted.
        path: PathBuf,
        /// Error of the system.
        problem: std::io::Error,
    },
    /// The record cannot be read or written.
    #[error("the record of trusted files {} cannot be used ({problem}); check its permissions", .path.display())]
    Unusable {
        /// Path of the record.
        path: PathBuf,
        /// Description of the problem.
        problem: String,
    },
    /// Other users can read or write the record.
    #[error("others can read or write the record of trusted files {} (mode {mode:o}); look at it with `fetchwell config trust --list` after `chmod 600 {}`", .path.display(), .path.display())]
    OpenToOthers {
        /// Path of the record.
        path: PathBuf,
        /// Unix permissions of the record.
        mode: u32,
    },
    /// The content of the record is invalid.
    #[error("the record of trusted files {} is damaged ({problem}); delete it and trust the files again", .path.display())]
    Damaged {
        /// Path of the record.
        path: PathBuf,
        /// Error of the JSON parser.
        problem: String,
    },
    /// The lock of the folder cannot be acquired.
    #[error(transparent)]
    Lock(#[from] StateError),
}

/// A file that the user trusts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedFile {
    /// Path of the file, with symbolic links of the folder resolved.
    pub path: String,
    /// SHA-256 of the content, in hexadecimal.
    pub sha256: String,
    /// Time at which the user trusted the file, in RFC 3339.
    pub trusted_at: String,
}

impl TrustedFile {
    /// Returns true if the file was trusted with this content.
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
    /// Returns the record of the user who runs the program.
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

    /// Returns true if the user trusts a file with this content.
    ///
    /// # Errors
    ///
    /// The record cannot be read.
    pub fn is_trusted(&self, file: &Path, text: &str) -> Result<bool, TrustError> {
        let files = self.list()?;
        if files.is_empty() {
            return Ok(false);
        }
        let file = canonical(file)?;
        Ok(files.iter().any(|trusted| trusted.path == file && trusted.has_content(text)))
    }

    /// Returns all trusted files, sorted by path.
    ///
    /// # Errors
    ///
    /// The record cannot be read.
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
            return Err(damaged(format!("its format is {}; only {FORMAT} is supported", record.format)));
        }
        Ok(record.files)
    }

    /// Records that the user trusts a file with exactly this content. Returns the file's entry.
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

    /// Removes a file from the record, whether it exists or not. Returns true if it was in the record.
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

    /// Replaces the record atomically, under the lock of the state folder.
    fn edit(&self, change: impl FnOnce(&mut Vec<TrustedFile>)) -> Result<(), TrustError> {
        let unusable = |problem: std::io::Error| TrustError::Unusable {
            path: self.path.clone(),
            problem: problem.to_string(),
        };
        create_private_directory(&self.folder).map_err(unusable)?;
        let _lock = StateLock::acquire(&self.folder)?;
        let mut files = self.list()?;
        change(&mut files);
        let record = Record { format: FORMAT, files };
        // A temporary file is readable by its owner only.
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

/// Returns the path of a file in the form of the record: with symbolic links of the folder resolved, but not of the
/// file itself. A link to a trusted file counts as another file, because commands and relative paths would refer to
/// another folder.
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
    hexadecimal(&Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_applies_to_one_file_with_one_content() {
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
        // Another path to the same folder.
        assert!(is_trusted(&folder.path().join("state/../one.toml"), "a"));
        // In the folder of a link, commands and relative paths have another meaning.
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
    fn a_record_that_is_open_to_others_or_damaged_is_rejected() {
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
