//! Mailboxes: accounts of Thunderbird, Maildir folders and mbox files.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::home::{Entry, Home, Listing};
use super::origin::{Group, Origin};

/// Folders in which Thunderbird keeps its profiles: on Linux, from Flathub, as a snap, on macOS, and on Windows.
const THUNDERBIRD: [&str; 5] = [
    ".thunderbird",
    ".var/app/org.mozilla.Thunderbird/.thunderbird",
    "snap/thunderbird/common/.thunderbird",
    "Library/Thunderbird",
    "AppData/Roaming/Thunderbird",
];

/// Folders that are Maildir folders or contain them.
const MAILDIR: [&str; 5] = ["Maildir", "Mail", "mail", ".maildir", ".mail"];

/// Folders in which files with the extension `.mbox` are looked for.
const MBOX: [&str; 5] = ["", "Mail", "mail", "Documents", "Downloads"];

/// Maximum depth at which a mailbox is looked for in the folder of an account.
const MAX_DEPTH: usize = 4;

/// Returns the mailboxes in the home folder.
pub(super) fn mailboxes(home: &Home, listing: &mut Listing) -> Vec<Origin> {
    let mut origins = Vec::new();
    for root in THUNDERBIRD.iter().filter_map(|root| home.inside(root)) {
        let accounts = accounts(&root, listing).into_iter();
        let origin = |path| Origin::new(Group::Mail, "Thunderbird", path).with_kind("files");
        origins.extend(accounts.map(origin));
    }
    for root in MAILDIR.iter().filter_map(|root| home.inside(root)) {
        let folders = maildirs(&root, listing).into_iter();
        let origin = |path| Origin::new(Group::Mail, "Maildir", path).with_kind("maildir");
        origins.extend(folders.map(origin));
    }
    for folder in MBOX {
        let Some(folder) = home.inside(folder).or_else(|| folder.is_empty().then(|| home.root().to_owned()))
        else {
            continue;
        };
        let files = listing.entries(&folder).into_iter();
        let files = files.filter(|entry| entry.has_extension("mbox") && is_mbox(entry));
        origins.extend(files.map(|entry| Origin::new(Group::Mail, "mbox", entry.path).with_kind("mbox")));
    }
    origins
}

/// Returns the folders of the accounts that have a mailbox, in all profiles.
fn accounts(root: &Path, listing: &mut Listing) -> Vec<PathBuf> {
    let mut profiles = listing.folders(root);
    profiles.extend(listing.folders(&root.join("Profiles")));
    let mut accounts = Vec::new();
    for profile in profiles {
        for kind in ["ImapMail", "Mail"] {
            accounts.extend(listing.folders(&profile.path.join(kind)));
        }
    }
    let has_mailbox = |account: &Entry| has_mailbox(&account.path, MAX_DEPTH, listing);
    accounts.into_iter().filter(has_mailbox).map(|account| account.path).collect()
}

fn has_mailbox(folder: &Path, depth: usize, listing: &mut Listing) -> bool {
    let entries = listing.entries(folder);
    let (folders, files): (Vec<Entry>, Vec<Entry>) = entries.into_iter().partition(|entry| entry.is_folder);
    files.iter().any(is_mbox)
        || depth > 0 && folders.iter().any(|folder| has_mailbox(&folder.path, depth - 1, listing))
}

/// Returns true for a file that begins as a mailbox does.
fn is_mbox(entry: &Entry) -> bool {
    let mut start = [0; 5];
    let is_start = |mut file: File| file.read_exact(&mut start).is_ok() && &start == b"From ";
    !entry.is_folder && File::open(&entry.path).is_ok_and(is_start)
}

/// Returns a Maildir folder, or the folders in it that are or contain some.
fn maildirs(root: &Path, listing: &mut Listing) -> Vec<PathBuf> {
    if is_maildir(root) {
        return vec![root.to_owned()];
    }
    let folders = listing.folders(root).into_iter();
    let contains = |folder: &Entry| contains_maildir(&folder.path, 2, listing);
    folders.filter(contains).map(|folder| folder.path).collect()
}

fn contains_maildir(folder: &Path, depth: usize, listing: &mut Listing) -> bool {
    let mut is_below =
        || listing.folders(folder).iter().any(|below| contains_maildir(&below.path, depth - 1, listing));
    is_maildir(folder) || depth > 0 && is_below()
}

fn is_maildir(folder: &Path) -> bool {
    ["cur", "new"].iter().all(|name| folder.join(name).is_dir())
}
