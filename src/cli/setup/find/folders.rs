//! The folders in which people keep files: documents, notes, desktop and downloads, by their names in the user's language.

use std::path::{Path, PathBuf};

use directories::UserDirs;

use super::home::Home;
use super::origin::{Group, Origin};

/// Names of folders of documents: of most systems, of `OneDrive` on Windows, and of iCloud Drive on macOS.
const DOCUMENTS: [&str; 3] =
    ["Documents", "OneDrive/Documents", "Library/Mobile Documents/com~apple~CloudDocs/Documents"];

/// Names of folders of notes, in the home folder and in that of documents.
const NOTES: [&str; 8] =
    ["Notes", "notes", "Notizen", "Notas", "Notities", "Appunti", "Notatki", "Anteckningar"];

/// Names of folders of the desktop.
const DESKTOP: [&str; 3] =
    ["Desktop", "OneDrive/Desktop", "Library/Mobile Documents/com~apple~CloudDocs/Desktop"];

/// Name of the download folder.
const DOWNLOADS: [&str; 1] = ["Downloads"];

/// Returns the folders that exist in the home folder. On Linux, `user-dirs.dirs` has their names, and on Windows the system.
pub(super) fn folders(home: &Home) -> Vec<Origin> {
    let user = UserDirs::new();
    let user = user.as_ref();
    let documents = existing(home, user.and_then(UserDirs::document_dir), &DOCUMENTS);
    let in_documents = documents.iter().flat_map(|folder| NOTES.map(|name| folder.join(name)));
    let notes: Vec<PathBuf> = NOTES.iter().map(PathBuf::from).chain(in_documents).collect();
    let notes: Vec<&Path> = notes.iter().map(PathBuf::as_path).collect();
    let named: [(&'static str, Vec<PathBuf>); 4] = [
        ("Documents", documents.clone()),
        ("Notes", existing(home, None, &notes)),
        ("Desktop", existing(home, user.and_then(UserDirs::desktop_dir), &DESKTOP)),
        ("Downloads", existing(home, user.and_then(UserDirs::download_dir), &DOWNLOADS)),
    ];
    let mut found: Vec<Origin> = Vec::new();
    for (name, paths) in named {
        for path in paths {
            if found.iter().all(|known| known.path != path) {
                found.push(Origin::new(Group::Folder, name, path).with_kind("files"));
            }
        }
    }
    found
}

/// Returns the folders that exist, without links: the one that the system names, and those of other names.
fn existing<Name: AsRef<Path>>(home: &Home, named: Option<&Path>, names: &[Name]) -> Vec<PathBuf> {
    let named = named.into_iter().chain(names.iter().map(AsRef::as_ref));
    named.filter_map(|path| home.inside(path)).filter(|path| path.is_dir()).collect()
}
