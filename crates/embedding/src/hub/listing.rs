//! The files of a repository that a model needs, from the list of the hub.

use serde::Deserialize;

use super::checksum::Checksum;
use super::error::InstallError;
use crate::model_files::{NETWORKS, SETTINGS, TOKENIZER, max_bytes};

/// An entry of the list of files, as the hub states it.
#[derive(Debug, Deserialize)]
pub(super) struct TreeEntry {
    #[serde(rename = "type")]
    kind: String,
    path: String,
    #[serde(default)]
    size: u64,
    #[serde(default)]
    oid: String,
    lfs: Option<LargeFile>,
}

/// The part of an entry about large file storage.
#[derive(Debug, Deserialize)]
struct LargeFile {
    oid: String,
    size: u64,
}

/// A file to download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RemoteFile {
    /// Name in the repository and in the folder. Never a text of the hub.
    pub(super) name: &'static str,
    /// Stated size in bytes.
    pub(super) size: u64,
    pub(super) checksum: Checksum,
}

/// Returns the files that a model needs, small ones first.
///
/// # Errors
///
/// A file is missing or too large, or its size or checksum is not stated.
pub(super) fn select(
    entries: &[TreeEntry],
    repository: &str,
    place: &str,
) -> Result<Vec<RemoteFile>, InstallError> {
    let find = |name: &'static str| {
        let found = entries.iter().find(|entry| entry.kind == "file" && entry.path == name);
        found.map(|entry| remote_file(name, entry, place)).transpose()
    };
    let missing = |file| InstallError::MissingFile { place: repository.to_owned(), file };
    let mut files = vec![find(TOKENIZER)?.ok_or_else(|| missing(TOKENIZER))?];
    for name in SETTINGS {
        files.extend(find(name)?);
    }
    let [root, folder] = NETWORKS;
    let network = match find(root)? {
        Some(network) => Some(network),
        None => find(folder)?,
    };
    files.push(network.ok_or_else(|| missing(root))?);
    Ok(files)
}

fn remote_file(name: &'static str, entry: &TreeEntry, place: &str) -> Result<RemoteFile, InstallError> {
    let (size, oid) = entry.lfs.as_ref().map_or((entry.size, &entry.oid), |large| (large.size, &large.oid));
    let limit = max_bytes(name);
    if size > limit {
        return Err(InstallError::TooLarge { file: name.to_owned(), bytes: size, limit });
    }
    let checksum =
        Checksum::parse(oid).filter(|sum| entry.lfs.is_none() || matches!(sum, Checksum::Sha256(_)));
    let checksum = checksum.ok_or_else(|| InstallError::InvalidAnswer {
        place: place.to_owned(),
        problem: format!("it states no checksum of {name}"),
    })?;
    if size == 0 || entry.size != size {
        let (file, expected, found) = (name.to_owned(), size, entry.size);
        return Err(InstallError::WrongSize { file, expected, found });
    }
    Ok(RemoteFile { name, size, checksum })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn git(path: &str, size: u64) -> Value {
        json!({"type": "file", "path": path, "size": size, "oid": "a".repeat(40)})
    }

    fn large(path: &str, size: u64) -> Value {
        json!({"type": "file", "path": path, "size": size, "oid": "a".repeat(40),
            "lfs": {"oid": "b".repeat(64), "size": size, "pointerSize": 133}})
    }

    fn selected(entries: Vec<Value>) -> Result<Vec<(&'static str, u64)>, String> {
        let entries: Vec<TreeEntry> =
            entries.into_iter().map(|entry| serde_json::from_value(entry).unwrap()).collect();
        let files = select(&entries, "o/n", "hub").map_err(|error| error.to_string())?;
        Ok(files.into_iter().map(|file| (file.name, file.size)).collect())
    }

    #[test]
    fn only_the_files_of_a_model_are_selected() {
        let other = ["../model.onnx", "/etc/passwd", "pytorch_model.bin", "onnx/model_O4.onnx", "vocab.txt"];
        let mut entries: Vec<Value> = other.into_iter().map(|path| git(path, 9)).collect();
        entries.push(json!({"type": "directory", "path": "model.onnx", "oid": "x"}));
        entries.extend([large("onnx/model.onnx", 90), git("config.json", 5), large("tokenizer.json", 40)]);
        let expect = vec![("tokenizer.json", 40), ("config.json", 5), ("onnx/model.onnx", 90)];
        assert_eq!(selected(entries), Ok(expect));
    }

    #[test]
    fn invalid_statements_are_rejected() {
        let tokenizer = || git("tokenizer.json", 9);
        let changed = |pointer: &str, value: Value| {
            let mut entry = large("model.onnx", 90);
            *entry.pointer_mut(pointer).unwrap() = value;
            entry
        };
        for (entries, expect) in [
            (vec![], "there is no tokenizer.json in o/n"),
            (vec![tokenizer()], "there is no model.onnx in o/n"),
            (vec![tokenizer(), changed("/lfs/oid", json!("../x"))], "states no checksum of model.onnx"),
            (vec![tokenizer(), changed("/lfs/oid", json!("a".repeat(40)))], "states no checksum"),
            (vec![tokenizer(), changed("/size", json!(91))], "has 91 bytes, and 90 are stated"),
            (vec![tokenizer(), large("model.onnx", 1 << 40)], "the limit is"),
            (vec![git("tokenizer.json", 0)], "has 0 bytes"),
        ] {
            let problem = selected(entries).unwrap_err();
            assert!(problem.contains(expect), "{problem}");
        }
    }
}
