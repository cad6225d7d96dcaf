//! The folder of one installed model, with the folder in which the next one is prepared.
//!
//! A model is prepared beside its folder and moved there when all of its files are verified, so the folder always has a whole
//! model. `fetchwell-model.json` says what was installed.

use std::fs::{self, File, TryLockError};
use std::io::Read;
use std::path::{Path, PathBuf};

use fetchwell_state::{LockFileError, LockedFile, create_private_directory, open_lock_file, private_options};
use serde::{Deserialize, Serialize};

use super::error::InstallError;
use super::staged_file::hash_file;
use crate::model_files::{NETWORKS, SETTINGS, TOKENIZER};

/// Name of the file that says what was installed.
const MANIFEST: &str = "fetchwell-model.json";

/// Maximum size of that file in bytes.
const MAX_MANIFEST: u64 = 64 * 1024;

/// Description of an installed model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// Name of the repository, or path of the folder it was copied from.
    pub(super) origin: String,
    /// Revision that was asked for; empty for a folder.
    pub(super) revision: String,
    /// Commit of the revision; empty for a folder.
    pub(super) commit: String,
    pub(super) files: Vec<ManifestFile>,
}

/// A file of an installed model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ManifestFile {
    pub(super) name: String,
    pub(super) size: u64,
    pub(super) sha256: String,
}

impl Manifest {
    /// Returns the bytes of the model.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }
}

/// The folder of a model, locked between processes.
#[derive(Debug)]
pub(super) struct Slot {
    /// Folder of the installed model.
    pub(super) target: PathBuf,
    /// Folder in which it is prepared.
    pub(super) staging: PathBuf,
    models: PathBuf,
    name: String,
    _lock: LockedFile,
}

impl Slot {
    /// Opens the folder of a model with this name in the folder of all models. The name is that of a file.
    ///
    /// # Errors
    ///
    /// The folder cannot be created, or another process installs the model.
    pub(super) fn open(models: &Path, name: &str) -> Result<Self, InstallError> {
        let (target, staging) = (models.join(name), models.join(format!(".{name}.part")));
        let lock = models.join(format!(".{name}.lock"));
        create_private_directory(models).map_err(|error| InstallError::io(models, &error, 0))?;
        let file = open_lock_file(&lock).map_err(|error| match error {
            LockFileError::Foreign(file) => {
                InstallError::File { path: file.path, problem: file.problem.to_string() }
            }
            LockFileError::Io(error) => InstallError::io(&lock, &error, 0),
        })?;
        let lock = LockedFile::try_lock(file).map_err(|error| match error {
            TryLockError::WouldBlock => InstallError::Busy { folder: target.clone() },
            TryLockError::Error(error) => InstallError::io(&lock, &error, 0),
        })?;
        create_private_directory(&staging).map_err(|error| InstallError::io(&staging, &error, 0))?;
        Ok(Self { target, staging, models: models.to_owned(), name: name.to_owned(), _lock: lock })
    }

    /// Returns the description of the installed model, or `None` if there is none or a file of it is damaged.
    ///
    /// # Errors
    ///
    /// The folder was not installed.
    pub(super) fn installed(&self) -> Result<Option<Manifest>, InstallError> {
        if fs::symlink_metadata(&self.target).is_err() {
            return Ok(None);
        }
        let foreign = || InstallError::ForeignFolder { folder: self.target.clone() };
        let manifest = read_manifest(&self.target).ok_or_else(foreign)?;
        let is_whole = manifest.files.iter().all(|file| is_unchanged(&self.target, file));
        Ok(Some(manifest).filter(|_| is_whole))
    }

    /// Moves the prepared model to its folder, in place of an earlier one.
    pub(super) fn commit(&self, manifest: &Manifest) -> Result<(), InstallError> {
        let unusable = |path: &Path| {
            let path = path.to_owned();
            move |error: std::io::Error| InstallError::io(&path, &error, 0)
        };
        self.remove_other_files(manifest)?;
        let place = self.staging.join(MANIFEST);
        let text = serde_json::to_string_pretty(manifest).unwrap_or_default() + "\n";
        let mut file = private_options()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&place)
            .map_err(unusable(&place))?;
        std::io::Write::write_all(&mut file, text.as_bytes()).map_err(unusable(&place))?;
        file.sync_all().map_err(unusable(&place))?;
        let old = self.models.join(format!(".{}.old", self.name));
        if fs::symlink_metadata(&old).is_ok() {
            fs::remove_dir_all(&old).map_err(unusable(&old))?;
        }
        let had_one = fs::symlink_metadata(&self.target).is_ok();
        if had_one {
            fs::rename(&self.target, &old).map_err(unusable(&self.target))?;
        }
        fs::rename(&self.staging, &self.target).map_err(unusable(&self.target))?;
        if had_one {
            // The model is installed, whatever becomes of the earlier one.
            let _ = fs::remove_dir_all(&old);
        }
        Ok(())
    }

    /// Removes parts of other revisions, and files of an earlier attempt that the model does not have.
    fn remove_other_files(&self, manifest: &Manifest) -> Result<(), InstallError> {
        let unusable = |error: std::io::Error| InstallError::io(&self.staging, &error, 0);
        for name in NETWORKS.iter().chain(&SETTINGS).chain([&TOKENIZER]) {
            if !manifest.files.iter().any(|file| file.name == *name) {
                let _ = fs::remove_file(self.staging.join(name));
            }
        }
        for entry in fs::read_dir(&self.staging).map_err(unusable)? {
            let path = entry.map_err(unusable)?.path();
            if path.extension().is_some_and(|extension| extension == "part") {
                fs::remove_file(&path).map_err(unusable)?;
            }
        }
        Ok(())
    }
}

impl Drop for Slot {
    /// Removes the folder of preparations if nothing is in it.
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.staging);
    }
}

fn read_manifest(folder: &Path) -> Option<Manifest> {
    let mut text = String::new();
    File::open(folder.join(MANIFEST)).ok()?.take(MAX_MANIFEST).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// Returns true if a file has the size and the checksum of its description.
fn is_unchanged(folder: &Path, file: &ManifestFile) -> bool {
    let is_known = NETWORKS.iter().chain(&SETTINGS).chain([&TOKENIZER]).any(|name| *name == file.name);
    let path = folder.join(&file.name);
    let has_size = || fs::metadata(&path).is_ok_and(|metadata| metadata.len() == file.size);
    let hashed = || hash_file(File::open(&path).ok()?, file.size).ok();
    is_known && has_size() && hashed().is_some_and(|sums| sums.sha256 == file.sha256)
}
