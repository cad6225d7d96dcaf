//! Exports of ChatGPT, Claude, Slack and Google Takeout in the download folder, as archives, folders or files.

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;

use fetchwell_connectors::{StoreFiles, guess_kind};
use zip::ZipArchive;

use super::home::{Entry, Home, Listing};
use super::origin::{Group, Origin};

/// Maximum number of names of an archive that are read.
const MAX_NAMES: usize = 200_000;

/// Program that makes an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    ChatGpt,
    Claude,
    Slack,
    Takeout,
}

impl Program {
    fn origin(self, path: &Path) -> Origin {
        // The names of these files are long identifiers.
        let (program, kind, name) = match self {
            Self::ChatGpt => ("ChatGPT", "chatgpt", Some("chatgpt")),
            Self::Claude => ("Claude", "claude", Some("claude")),
            Self::Slack => ("Slack", "slack", None),
            Self::Takeout => ("Google Takeout", "takeout", Some("takeout")),
        };
        Origin { name, ..Origin::new(Group::Export, program, path.to_owned()).with_kind(kind) }
    }

    /// Returns the program by the names in the root of its archive or folder.
    fn of_names(has: impl Fn(&str) -> bool) -> Option<Self> {
        if has("channels.json") && has("users.json") {
            Some(Self::Slack)
        } else if has("conversations.json") && (has("chat.html") || has("user.json")) {
            Some(Self::ChatGpt)
        } else if has("conversations.json") && has("users.json") {
            Some(Self::Claude)
        } else if has("Takeout") {
            Some(Self::Takeout)
        } else {
            None
        }
    }
}

/// Returns the exports in the download folder.
pub(super) fn exports(home: &Home, listing: &mut Listing) -> Vec<Origin> {
    let Some(downloads) = home.downloads() else { return Vec::new() };
    let entries = listing.entries(&downloads);
    let found = entries.iter().filter_map(|entry| {
        let program = if entry.is_folder {
            of_folder(entry, listing)
        } else if entry.has_extension("zip") {
            of_archive(&entry.path)
        } else {
            of_file(entry)
        };
        program.map(|program| program.origin(&entry.path))
    });
    found.collect()
}

fn of_folder(folder: &Entry, listing: &mut Listing) -> Option<Program> {
    if folder.name == "Takeout" {
        return Some(Program::Takeout);
    }
    let entries = listing.entries(&folder.path);
    Program::of_names(|name| entries.iter().any(|entry| entry.name == name))
}

/// Reads the directory of an archive, and unpacks nothing.
fn of_archive(path: &Path) -> Option<Program> {
    let archive = ZipArchive::new(File::open(path).ok()?).ok()?;
    let mut roots = HashSet::new();
    for name in archive.file_names().take(MAX_NAMES) {
        let name = name.ok()?;
        roots.insert(name.split('/').next().unwrap_or_default().to_owned());
    }
    Program::of_names(|name| roots.contains(name))
}

/// Returns the program of a list of conversations, or of a compressed Takeout.
fn of_file(file: &Entry) -> Option<Program> {
    let name = file.name.to_string_lossy();
    if name.starts_with("takeout-") && (name.ends_with(".tgz") || name.ends_with(".tar.gz")) {
        return Some(Program::Takeout);
    }
    if !name.starts_with("conversations") || !file.has_extension("json") {
        return None;
    }
    let guess = guess_kind(&file.path, None, &StoreFiles::default()).ok()?;
    match guess.kind.as_str() {
        "chatgpt" => Some(Program::ChatGpt),
        "claude" => Some(Program::Claude),
        _ => None,
    }
}
