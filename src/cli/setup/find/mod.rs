//! The search for records in the home folder: mail, notes, exports, and folders of files.
//!
//! Only names are listed, and the first bytes of files that can be mailboxes or exports are read.
//!
//! * `home`: the home folder and its listings, `origin`: what was found
//! * `mail`: mailboxes of Thunderbird, Maildir and mbox, `notes`: Obsidian vaults and folders of Markdown
//! * `exports`: exports in the download folder, `folders`: documents, notes, desktop and downloads
//! * `count`: the files of folders by kind

mod count;
mod exports;
mod folders;
mod home;
mod mail;
mod notes;
mod origin;

use std::path::{Path, PathBuf};

pub(super) use self::count::{FileCounts, count_files};
pub(super) use self::home::Home;
use self::home::Listing;
pub(super) use self::origin::{Group, Origin};

/// Returns the records in the home folder: mail, notes, and exports in the download folder. Folders of files are the last.
pub(super) fn find_origins(home: &Home) -> Vec<Origin> {
    let mut listing = Listing::default();
    let mut origins = mail::mailboxes(home, &mut listing);
    origins.extend(exports::exports(home, &mut listing));
    origins.extend(notes::notes(home, &mut listing));
    origins.sort_by_key(|origin| origin.group as u8);
    let mut origins = without_nested(origins);
    let mut folders = folders::folders(home);
    folders.retain(|folder| !origins.iter().any(|origin| folder.path.starts_with(&origin.path)));
    origins.extend(folders);
    origins
}

/// Removes origins that are in a folder that is an origin itself, and repeated ones.
fn without_nested(origins: Vec<Origin>) -> Vec<Origin> {
    let paths: Vec<PathBuf> = origins.iter().map(|origin| origin.path.clone()).collect();
    let is_in_other = |path: &Path| paths.iter().any(|other| path != other && path.starts_with(other));
    let mut kept: Vec<Origin> = Vec::new();
    for origin in origins {
        let is_known = kept.iter().any(|known| known.path == origin.path);
        if !is_known && !is_in_other(&origin.path) {
            kept.push(origin);
        }
    }
    kept
}
