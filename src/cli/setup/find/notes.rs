//! Notes: vaults of Obsidian, and folders that consist of Markdown.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use fetchwell_connectors::is_hidden;
use serde_json::Value;

use super::home::{Entry, Home, Listing};
use super::origin::{Group, Origin};

/// Maximum depth below the home folder at which notes are looked for.
const MAX_DEPTH: usize = 3;

/// Maximum depth of files that decide if a folder consists of Markdown.
const MARKDOWN_DEPTH: usize = 2;

/// Minimum number of Markdown files in a folder of notes. They are at least half of its files.
const MIN_MARKDOWN_FILES: usize = 2;

/// Maximum size in bytes of Obsidian's list of vaults.
const MAX_LIST_BYTES: u64 = 1024 * 1024;

/// Folders that have no notes of the user: downloads, media, and those of programs.
const SKIPPED: [&str; 18] = [
    "Applications",
    "AppData",
    "Downloads",
    "Library",
    "Movies",
    "Music",
    "Pictures",
    "Public",
    "Templates",
    "Videos",
    "__pycache__",
    "go",
    "node_modules",
    "site-packages",
    "snap",
    "target",
    "vendor",
    "venv",
];

/// Files of the root of source code, in which Markdown describes the code.
const SOURCE_CODE: [&str; 5] = ["Cargo.toml", "package.json", "pyproject.toml", "go.mod", "Makefile"];

/// Returns the notes in the home folder.
pub(super) fn notes(home: &Home, listing: &mut Listing) -> Vec<Origin> {
    let vault = |path| Origin::new(Group::Notes, "Obsidian", path).with_kind("files");
    let listed = listed_vaults(home).into_iter().filter_map(|path| home.inside(path));
    let mut origins: Vec<Origin> = listed.filter(|path| path.is_dir()).map(vault).collect();
    visit(home.root(), 0, listing, &mut origins);
    origins
}

/// Returns the vaults that Obsidian knows.
fn listed_vaults(home: &Home) -> Vec<PathBuf> {
    let list = home.folders().config_dir().join("obsidian/obsidian.json");
    let read = || {
        let mut text = String::new();
        File::open(home.inside(list)?).ok()?.take(MAX_LIST_BYTES).read_to_string(&mut text).ok()?;
        let list: Value = serde_json::from_str(&text).ok()?;
        let vaults = list.get("vaults")?.as_object()?.values();
        Some(vaults.filter_map(|vault| vault.get("path")?.as_str().map(PathBuf::from)).collect())
    };
    read().unwrap_or_default()
}

fn visit(folder: &Path, depth: usize, listing: &mut Listing, origins: &mut Vec<Origin>) {
    let entries = listing.entries(folder);
    let has = |name: &str| entries.iter().any(|entry| entry.name == name);
    if depth > 0 {
        if has(".obsidian") {
            origins.push(Origin::new(Group::Notes, "Obsidian", folder.to_owned()).with_kind("files"));
            return;
        }
        if SOURCE_CODE.iter().any(|name| has(name)) {
            return;
        }
        if is_markdown_folder(&entries, listing) {
            origins.push(Origin::new(Group::Notes, "Markdown", folder.to_owned()).with_kind("files"));
            return;
        }
    }
    if depth == MAX_DEPTH {
        return;
    }
    let is_skipped = |entry: &Entry| SKIPPED.iter().any(|name| entry.name == *name);
    for entry in
        entries.iter().filter(|entry| entry.is_folder && !is_hidden(&entry.path) && !is_skipped(entry))
    {
        visit(&entry.path, depth + 1, listing, origins);
    }
}

/// Returns true if a folder has Markdown files, and at least half of the files in it and below it are some.
fn is_markdown_folder(entries: &[Entry], listing: &mut Listing) -> bool {
    if !entries.iter().any(is_markdown) {
        return false;
    }
    let (mut markdown, mut files) = (0, 0);
    count(entries, MARKDOWN_DEPTH, listing, &mut |is_markdown| {
        files += 1;
        markdown += usize::from(is_markdown);
    });
    markdown >= MIN_MARKDOWN_FILES && markdown * 2 >= files
}

fn count(entries: &[Entry], depth: usize, listing: &mut Listing, count_file: &mut impl FnMut(bool)) {
    for entry in entries.iter().filter(|entry| !is_hidden(&entry.path)) {
        if !entry.is_folder {
            count_file(is_markdown(entry));
        } else if depth > 0 {
            let below = listing.entries(&entry.path);
            count(&below, depth - 1, listing, count_file);
        }
    }
}

fn is_markdown(entry: &Entry) -> bool {
    !entry.is_folder && (entry.has_extension("md") || entry.has_extension("markdown"))
}
