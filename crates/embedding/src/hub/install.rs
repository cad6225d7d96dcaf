//! The installation of a model: from a hub, from its cache on this machine, or from a folder.

use std::path::{Path, PathBuf};

use super::cache::snapshot;
use super::client::{Hub, HubSettings};
use super::error::InstallError;
use super::folder_copy::ModelSource;
use super::repository::{Repository, Revision, is_folder_name};
use super::slot::{Manifest, ManifestFile, Slot};
use super::transfer::{Report, Transfer};
use crate::model_files::TOKENIZER;

/// A model that is in the user's folder of models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledModel {
    /// Folder of the model.
    pub folder: PathBuf,
    /// Size of its files in bytes.
    pub bytes: u64,
    /// The way in which it came.
    pub origin: ModelOrigin,
}

/// The way in which an installed model came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelOrigin {
    /// It was installed before and is undamaged.
    Present,
    /// It was downloaded from a hub.
    Hub,
    /// It was copied from the cache of the hub's programs.
    Cache,
    /// It was copied from a folder.
    Folder,
}

impl ModelOrigin {
    /// Returns the name of the origin in JSON output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Hub => "hub",
            Self::Cache => "cache",
            Self::Folder => "folder",
        }
    }
}

/// Installs a model of a hub into the folder of models. A model that is complete is not asked for again, and an interrupted
/// download continues.
///
/// # Errors
///
/// The hub cannot be reached or refuses, a file is not what it states, or the disk is full. What is verified stays.
pub async fn install_from_hub(
    models: &Path,
    repository: &Repository,
    revision: &Revision,
    settings: &HubSettings,
    report: Report<'_>,
) -> Result<InstalledModel, InstallError> {
    let slot = Slot::open(models, &repository.folder_name())?;
    let origin = repository.to_string();
    let is_it = |manifest: &Manifest| {
        let named = revision.as_str();
        manifest.origin == origin && (manifest.revision == named || manifest.commit == named)
    };
    if let Some(manifest) = slot.installed()?.filter(is_it) {
        return Ok(installed(&slot, &manifest, ModelOrigin::Present));
    }
    let cached = settings.cache.as_deref().and_then(|cache| snapshot(cache, repository, revision));
    if let Some((folder, commit)) = cached {
        match ModelSource::find(&folder).and_then(|source| source.copy_to(&slot.staging, report)) {
            Ok(files) => {
                let (revision, commit) = (revision.as_str().to_owned(), commit.as_str().to_owned());
                let manifest = Manifest { origin, revision, commit, files };
                slot.commit(&manifest)?;
                return Ok(installed(&slot, &manifest, ModelOrigin::Cache));
            }
            Err(error @ InstallError::DiskFull { .. }) => return Err(error),
            // The cache has a part of the model, or a damaged file. The hub has all of them.
            Err(_incomplete) => {}
        }
    }
    let hub = Hub::new(settings)?;
    let commit = hub.commit(repository, revision).await?;
    let remote = hub.files(repository, &commit).await?;
    let total = remote.iter().map(|file| file.size).sum();
    let transfer = Transfer { hub: &hub, repository, commit: &commit, staging: &slot.staging, report, total };
    let (mut files, mut before) = (Vec::new(), 0);
    for file in &remote {
        let sums = transfer.fetch(file, before).await?;
        before += file.size;
        files.push(ManifestFile { name: file.name.to_owned(), size: file.size, sha256: sums.sha256 });
        if file.name == TOKENIZER {
            // A model that cannot be used is not downloaded to its end.
            check_tokenizer(&slot.staging.join(TOKENIZER))?;
        }
    }
    let (revision, commit) = (revision.as_str().to_owned(), commit.as_str().to_owned());
    let manifest = Manifest { origin, revision, commit, files };
    slot.commit(&manifest)?;
    Ok(installed(&slot, &manifest, ModelOrigin::Hub))
}

/// Installs a model from a folder or a network file with its tokenizer beside it. Without a name, the model has that of the
/// folder.
///
/// # Errors
///
/// A file is missing or unusable, the name is not that of a file, or the disk is full.
pub fn install_from_folder(
    models: &Path,
    place: &Path,
    name: Option<&str>,
    report: Report<'_>,
) -> Result<InstalledModel, InstallError> {
    let source = ModelSource::find(place)?;
    let name = match name {
        Some(name) => name.to_owned(),
        None => name_of(place).ok_or_else(|| InstallError::NoName { place: place.to_owned() })?,
    };
    if !name.split("--").all(is_folder_name) {
        return Err(InstallError::InvalidName(name));
    }
    let slot = Slot::open(models, &name)?;
    if let Some(manifest) = slot.installed()?
        && source.is_same(&manifest.files)?
    {
        return Ok(installed(&slot, &manifest, ModelOrigin::Present));
    }
    let files = source.copy_to(&slot.staging, report)?;
    check_tokenizer(&slot.staging.join(TOKENIZER))?;
    let origin = place.display().to_string();
    let manifest = Manifest { origin, revision: String::new(), commit: String::new(), files };
    slot.commit(&manifest)?;
    Ok(installed(&slot, &manifest, ModelOrigin::Folder))
}

/// Returns the name of a model from the path of its folder or file: that of the repository in a cache of a hub, or else that of
/// the folder.
fn name_of(place: &Path) -> Option<String> {
    let place = std::fs::canonicalize(place).ok()?;
    let names = || place.ancestors().filter_map(|path| path.file_name()?.to_str());
    let cached = names().find_map(|name| name.strip_prefix("models--"));
    let folders = place.ancestors().filter(|path| path.is_dir());
    let mut folders = folders.filter_map(|path| path.file_name()?.to_str()).filter(|name| *name != "onnx");
    cached.or_else(|| folders.next()).map(str::to_owned)
}

fn installed(slot: &Slot, manifest: &Manifest, origin: ModelOrigin) -> InstalledModel {
    InstalledModel { folder: slot.target.clone(), bytes: manifest.bytes(), origin }
}

/// Checks that texts can be split by the tokenizer of a model.
#[cfg(feature = "local-embeddings")]
fn check_tokenizer(file: &Path) -> Result<(), InstallError> {
    Ok(crate::local::check_tokenizer(file)?)
}

/// Refuses models, which a binary without local models could not use.
#[cfg(not(feature = "local-embeddings"))]
fn check_tokenizer(_file: &Path) -> Result<(), InstallError> {
    Err(crate::EmbeddingError::LocalNotSupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_silent_hub_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        // The system accepts connections, and no answer comes.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Some(format!("http://{}", listener.local_addr().unwrap()));
        let settings = HubSettings { endpoint, ..HubSettings::default() };
        let (repository, revision) = ("a/b".parse().unwrap(), Revision::default());
        let installed = install_from_hub(folder.path(), &repository, &revision, &settings, &|_| {}).await;
        let error = installed.unwrap_err();
        assert!(matches!(error, InstallError::Unreachable { .. }), "{error}");
        assert!(error.to_string().contains("check the network and HF_ENDPOINT"), "{error}");
    }

    #[test]
    fn models_are_named_after_their_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(folder.path()).unwrap();
        for (place, expect) in [
            ("mini/model.onnx", "mini"),
            ("small/onnx/model.onnx", "small"),
            ("models--a--b/snapshots/0123/model.onnx", "a--b"),
        ] {
            let file = root.join(place);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "").unwrap();
            assert_eq!(name_of(&file).as_deref(), Some(expect), "{place}");
            assert_eq!(name_of(file.parent().unwrap()).as_deref(), Some(expect), "{place}");
        }
    }
}
