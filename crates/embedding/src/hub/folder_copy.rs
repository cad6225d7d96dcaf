//! Copies of the files of a model from another folder.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::cache::blob_checksum;
use super::error::InstallError;
use super::slot::ManifestFile;
use super::staged_file::{copy_file, hash_file};
use super::transfer::{InstallProgress, Report};
use crate::model_files::{NETWORKS, SETTINGS, TOKENIZER, max_bytes};

/// First bytes of a file that stands for one in large file storage.
const POINTER: &[u8] = b"version https://git-lfs";

/// The files of a model in a folder that someone else filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModelSource {
    files: Vec<SourceFile>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct SourceFile {
    /// Name in the folder of the copy.
    name: &'static str,
    path: PathBuf,
    size: u64,
}

impl ModelSource {
    /// Finds the files of a model in a folder, or beside its network file.
    ///
    /// # Errors
    ///
    /// A file is missing, too large, or only a pointer to large file storage.
    pub(super) fn find(place: &Path) -> Result<Self, InstallError> {
        let metadata = fs::metadata(place).map_err(|error| InstallError::io(place, &error, 0))?;
        if metadata.is_dir() {
            return Self::in_folder(place, None);
        }
        let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Repositories have `onnx/model.onnx`, and the tokenizer above.
        let above = folder.parent().filter(|above| above.join(TOKENIZER).is_file());
        let has_tokenizer = folder.join(TOKENIZER).is_file();
        Self::in_folder(if has_tokenizer { folder } else { above.unwrap_or(folder) }, Some(place))
    }

    fn in_folder(folder: &Path, network: Option<&Path>) -> Result<Self, InstallError> {
        let missing = |file| InstallError::MissingFile { place: folder.display().to_string(), file };
        let [root, _] = NETWORKS;
        let found = NETWORKS.map(|name| folder.join(name)).into_iter().find(|path| path.is_file());
        let network = network.map(Path::to_owned).or(found).ok_or_else(|| missing(root))?;
        let tokenizer = folder.join(TOKENIZER);
        if !tokenizer.is_file() {
            return Err(missing(TOKENIZER));
        }
        let settings = SETTINGS.map(|name| (name, folder.join(name)));
        let settings = settings.into_iter().filter(|(_, path)| path.is_file());
        let files = [(TOKENIZER, tokenizer)].into_iter().chain(settings).chain([(root, network)]);
        let files = files.map(|(name, path)| SourceFile::check(name, path));
        Ok(Self { files: files.collect::<Result<_, _>>()? })
    }

    /// Returns the bytes of the model.
    fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    /// Returns true if an installed model has the same files.
    pub(super) fn is_same(&self, installed: &[ManifestFile]) -> Result<bool, InstallError> {
        if self.files.len() != installed.len() {
            return Ok(false);
        }
        for file in &self.files {
            let same = installed.iter().find(|other| other.name == file.name && other.size == file.size);
            let Some(same) = same else { return Ok(false) };
            let sums = File::open(&file.path).and_then(|open| hash_file(open, file.size));
            if sums.map_err(|error| InstallError::io(&file.path, &error, 0))?.sha256 != same.sha256 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Copies the files to a folder. A file that links to a blob of a cache must have the checksum in its name.
    pub(super) fn copy_to(
        &self,
        staging: &Path,
        report: Report<'_>,
    ) -> Result<Vec<ManifestFile>, InstallError> {
        let (mut done, total) = (0, self.bytes());
        let mut copied = Vec::new();
        for SourceFile { name, path, size } in &self.files {
            let to = staging.join(name);
            let open = File::open(path).map_err(|error| InstallError::io(path, &error, 0))?;
            let sums = copy_file(open, *size, &to).map_err(|error| {
                // The next attempt overwrites the part of this file.
                InstallError::io(&to, &error, total - done)
            })?;
            if blob_checksum(path).is_some_and(|stated| !sums.matches(&stated)) {
                return Err(InstallError::WrongChecksum { file: path.display().to_string() });
            }
            done += size;
            report(InstallProgress { done, total });
            copied.push(ManifestFile { name: (*name).to_owned(), size: *size, sha256: sums.sha256 });
        }
        Ok(copied)
    }
}

impl SourceFile {
    fn check(name: &'static str, path: PathBuf) -> Result<Self, InstallError> {
        let unreadable = |error: std::io::Error| InstallError::io(&path, &error, 0);
        let metadata = fs::metadata(&path).map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(InstallError::File { path, problem: "it is not a file".to_owned() });
        }
        let (size, limit) = (metadata.len(), max_bytes(name));
        if size > limit {
            return Err(InstallError::TooLarge { file: path.display().to_string(), bytes: size, limit });
        }
        let mut head = Vec::new();
        let open = File::open(&path).map_err(unreadable)?;
        open.take(POINTER.len() as u64).read_to_end(&mut head).map_err(unreadable)?;
        if head == POINTER {
            return Err(InstallError::OnlyPointer { file: path });
        }
        Ok(Self { name, path, size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_model_are_found_and_checked() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let put = |name: &str, text: &str| {
            fs::create_dir_all(path(name).parent().unwrap()).unwrap();
            fs::write(path(name), text).unwrap();
        };
        let problem = |place: &Path| ModelSource::find(place).unwrap_err().to_string();
        assert!(problem(&path("missing")).contains("cannot be used"));
        assert!(problem(folder.path()).starts_with("there is no model.onnx in "));
        put("onnx/model.onnx", "network");
        assert!(problem(folder.path()).starts_with("there is no tokenizer.json in "));
        put("tokenizer.json", "{}");
        put("onnx/small.onnx", "small");
        put("README.md", "not copied");
        for (place, network) in
            [("", "network"), ("onnx/model.onnx", "network"), ("onnx/small.onnx", "small")]
        {
            let staging = tempfile::tempdir().unwrap();
            let source = ModelSource::find(&path(place)).unwrap();
            let copied = source.copy_to(staging.path(), &|_| {}).unwrap();
            let names: Vec<&str> = copied.iter().map(|file| file.name.as_str()).collect();
            assert_eq!(names, ["tokenizer.json", "model.onnx"], "{place}");
            assert_eq!(fs::read_to_string(staging.path().join("model.onnx")).unwrap(), network);
            assert!(source.is_same(&copied).unwrap() && !source.is_same(&copied[..1]).unwrap());
        }
        put("onnx/model.onnx", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
        assert!(problem(folder.path()).contains("git lfs pull"));
    }
}
