//! Guesses the kind of a path: by its content first, and then by its name.

use std::fs;
use std::io::Read;
use std::path::Path;

use fetchwell_core::handle::ConnectionId;
use serde_json::Value;

use super::super::ImportError;
use super::super::files::{
    FileSelection, FolderEntry, detect_kind, detect_selected, other_kind, special_file, walk,
};
use super::super::item::{FileKind, Item};
use super::super::recognition::picture_hint;
use super::super::skips::SkipCounts;
use super::kind::{ImportKind, ImportOptions};
use super::store_files::StoreFiles;

/// Number of bytes in which the first line of a file is looked for.
const FIRST_LINE_BYTES: u64 = 1024 * 1024;

/// Remedy for a repository without other files that are read.
const REPOSITORY_HINT: &str = "; it is a repository, so `--kind git` imports its commits";

/// The kind of a path and its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guess {
    /// Kind of the import.
    pub kind: ImportKind,
    /// Number of files.
    pub files: u64,
    /// Size of the files in bytes.
    pub bytes: u64,
    /// True if the folder is also a repository.
    pub has_repository: bool,
    /// Description of the content, if no file is of a kind that the import reads.
    unread: Option<String>,
    /// True if such an import has pictures, which it reads with text recognition.
    has_pictures: bool,
}

impl Guess {
    /// Refuses a path of which no file would be read, with or without text recognition.
    ///
    /// # Errors
    ///
    /// The folder is empty, or none of its files is of a kind that the import reads.
    pub fn check_readable(&self, path: &Path, options: &ImportOptions) -> Result<(), ImportError> {
        let has_pictures = self.has_pictures && options.ocr;
        let Some(found) = self.unread.clone().filter(|_| !has_pictures) else { return Ok(()) };
        let expected = selection_of(self.kind).unwrap_or_default().description();
        Err(ImportError::Nothing { path: path.to_owned(), expected, found })
    }
}

/// Search for a file of a kind that an import reads. Files after the first one are not opened.
struct ReadableSearch<'a> {
    path: &'a Path,
    kind: ImportKind,
    selection: FileSelection,
    is_found: bool,
    has_pictures: bool,
    skipped: SkipCounts,
}

/// Returns the kind of a file or folder. With `kind`, only its size is determined. The files of the store are not counted.
///
/// # Errors
///
/// The path cannot be read, or is a file of an unknown kind.
pub fn guess_kind(path: &Path, kind: Option<ImportKind>, store: &StoreFiles) -> Result<Guess, ImportError> {
    let unsuitable = |problem| ImportError::Unsuitable { path: path.to_owned(), problem };
    let metadata = fs::metadata(path)
        .map_err(|error| ImportError::Unreadable { path: path.to_owned(), problem: error.to_string() })?;
    if let Some(problem) = special_file(&metadata) {
        return Err(unsuitable(problem));
    }
    let is_guessed = kind.is_none();
    let kind = match kind {
        Some(kind) if metadata.is_dir() && !kind.reads_folders() => {
            return Err(unsuitable("is a folder; name a file in it"));
        }
        Some(kind) => kind,
        None if metadata.is_dir() => folder_kind(path),
        None => file_kind(path)?.ok_or_else(|| ImportError::UnknownKind(path.to_owned()))?,
    };
    let (mut files, mut bytes) = (0, 0);
    let mut search = ReadableSearch::new(path, kind);
    if kind != ImportKind::Git {
        walk(path, &mut |found| {
            if let FolderEntry::File { file, .. } = &found {
                if store.contains(file) {
                    return Ok(());
                }
                files += 1;
                bytes += file.metadata().map_or(0, |metadata| metadata.len());
            }
            search.visit(found);
            Ok(())
        })?;
    }
    let has_repository = kind != ImportKind::Git && path.join(".git").exists();
    let unread = (!search.is_found).then(|| {
        let hint = if has_repository && is_guessed { REPOSITORY_HINT } else { "" };
        let picture = if search.has_pictures { format!("; {}", picture_hint()) } else { String::new() };
        format!("{}{picture}{hint}", search.skipped)
    });
    Ok(Guess { kind, files, bytes, has_repository, unread, has_pictures: search.has_pictures })
}

impl<'a> ReadableSearch<'a> {
    fn new(path: &'a Path, kind: ImportKind) -> Self {
        let selection = selection_of(kind);
        // The other kinds read one named file, or a repository.
        let is_found = selection.is_none();
        let (selection, skipped) = (selection.unwrap_or_default(), SkipCounts::default());
        Self { path, kind, selection, is_found, has_pictures: false, skipped }
    }

    fn visit(&mut self, found: FolderEntry) {
        match found {
            FolderEntry::File { .. } if self.is_found => {}
            FolderEntry::File { file, path } => match Item::open(path, &file) {
                Ok(item) if self.reads(&item, &file) => self.is_found = true,
                Ok(item) => {
                    let is_any = self.selection.kinds.is_empty();
                    let is_selected = is_any || self.selection.kinds.contains(&FileKind::Image);
                    self.has_pictures |= is_selected && detect_kind(&item) == Some(FileKind::Image);
                    self.skipped.add_file(other_kind(&item), &item.extension());
                }
                // An import names it with the error.
                Err(_unreadable) => self.is_found = true,
            },
            FolderEntry::Unreadable { .. } => self.is_found = true,
            FolderEntry::Skipped { reason, .. } => self.skipped.add(reason, 1),
        }
    }

    fn reads(&self, item: &Item<'_>, file: &Path) -> bool {
        let by_name = || FileKind::from_extension(&item.extension());
        detect_selected(item, &self.selection, file == self.path).is_some()
            // A file of a project that has a wrong extension is rejected, and not skipped.
            || self.kind.is_docs() && by_name().is_some_and(|kind| self.selection.has(kind))
    }
}

/// Returns the files that an import of a kind selects, or `None` for a kind without a selection.
fn selection_of(kind: ImportKind) -> Option<FileSelection> {
    match kind {
        ImportKind::Files(set) => Some(FileSelection::new(set.kinds, None)),
        _ => None,
    }
}

/// Returns a connection id from the name of a file or folder: lower case, with hyphens.
#[must_use]
pub fn connection_name(origin: &Path) -> Option<ConnectionId> {
    let name = if origin.is_dir() { origin.file_name() } else { origin.file_stem() };
    let name = name?.to_string_lossy().to_lowercase();
    let words: Vec<&str> =
        name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.join("-").parse().ok()
}

fn folder_kind(path: &Path) -> ImportKind {
    let has = |names: &[&str]| names.iter().all(|name| path.join(name).exists());
    let name = if has(&["cur", "new"]) {
        "maildir"
    } else if has(&["HEAD", "objects", "refs"]) {
        "git"
    } else if has(&["channels.json", "users.json"]) {
        "slack"
    } else {
        "files"
    };
    name.parse().unwrap_or(ImportKind::Git)
}

fn file_kind(path: &Path) -> Result<Option<ImportKind>, ImportError> {
    let unreadable =
        |error: std::io::Error| ImportError::Unreadable { path: path.to_owned(), problem: error.to_string() };
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let item = Item::open(name, path).map_err(unreadable)?;
    let ending = item.extension();
    match detect_kind(&item) {
        // A mailbox or an archive.
        Some(FileKind::Gzip) => return Ok("files".parse().ok()),
        Some(FileKind::Json) | None => {}
        Some(kind) => return Ok(ImportKind::for_files(kind)),
    }
    let start = item.head().trim_ascii_start();
    if ["json", "ndjson", "jsonl"].contains(&ending.as_str())
        || start.starts_with(b"{")
        || start.starts_with(b"[")
    {
        let mut text = String::new();
        // A start that is no UTF-8 is not that of envelopes.
        let _ = item.into_reader().take(FIRST_LINE_BYTES).read_to_string(&mut text);
        let is_envelope = text.lines().next().is_some_and(is_envelope);
        return Ok(Some(if is_envelope { ImportKind::Records } else { ImportKind::Json }));
    }
    Ok(None)
}

/// Returns true if a line is a record envelope.
fn is_envelope(line: &str) -> bool {
    let Ok(Value::Object(envelope)) = serde_json::from_str(line.trim_start_matches('\u{FEFF}')) else {
        return false;
    };
    envelope.get("stream").is_some_and(Value::is_string)
        && (envelope.get("data").is_some_and(Value::is_object) || envelope.contains_key("op"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_named_after_files() {
        for (path, expect) in [
            ("/x/My Notes 2024.md", Some("my-notes-2024")),
            ("/x/mail.tar.gz", Some("mail-tar")),
            ("/", None),
            ("/x/\u{c4}pfel", Some("\u{e4}pfel")),
        ] {
            let name = connection_name(Path::new(path));
            assert_eq!(name.as_ref().map(ConnectionId::as_str), expect);
        }
    }

    #[test]
    fn a_folder_without_a_file_that_is_read_is_refused() {
        let (folder, none) = (tempfile::tempdir().unwrap(), StoreFiles::default());
        let check = |kind: Option<&str>| {
            let kind = kind.map(|kind| kind.parse().unwrap());
            let guess = guess_kind(folder.path(), kind, &none).unwrap();
            guess.check_readable(folder.path(), &ImportOptions::default()).map_err(|error| error.to_string())
        };
        let refused = check(None).unwrap_err();
        assert!(refused.contains("a kind that is read (text, markdown, html, eml,"), "{refused}");
        assert!(refused.ends_with("); it is empty"), "{refused}");
        fs::write(folder.path().join("x.bin"), "a thing").unwrap();
        assert!(check(None).unwrap_err().ends_with("found: 1 .bin"));
        fs::write(folder.path().join("a.md"), "# Note\n").unwrap();
        assert_eq!(check(None), Ok(()));
        assert!(
            check(Some("pdf")).unwrap_err().contains("it has no PDF document (.pdf); found: 1 .bin, 1 .md")
        );
        // A project names a file with a wrong extension.
        fs::write(folder.path().join("a.md"), "a\0b").unwrap();
        assert_eq!((check(None).is_err(), check(Some("docs"))), (true, Ok(())));
    }

    #[test]
    fn kinds_are_guessed_by_content_first() {
        let (folder, none) = (tempfile::tempdir().unwrap(), StoreFiles::default());
        for (name, content, expect) in [
            ("a.csv", "id,title\n1,x\n", "csv"),
            ("b.md", "# Note\n", "markdown"),
            ("c", "From a@x.test Wed Apr  1 10:00:00 2026\nSubject: x\n\n", "mbox"),
            ("d.ndjson", "{\"stream\":\"notes\",\"key\":\"1\",\"data\":{}}\n", "records"),
            ("e.ndjson", "{\"id\":1}\n{\"id\":2}\n", "json"),
            ("f.json", "[{\"id\":1}]", "json"),
            ("g.txt", "%PDF-1.7\n", "pdf"),
            ("h.json", "[{\"uuid\":\"x\",\"chat_messages\":[]}]", "claude"),
            ("i.gz", "\u{1f}\u{8b}\u{8}", "files"),
        ] {
            let file = folder.path().join(name);
            let content: Vec<u8> = content.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
            fs::write(&file, content).unwrap();
            assert_eq!(guess_kind(&file, None, &none).unwrap().kind.as_str(), expect, "{name}");
        }
        fs::write(folder.path().join("notes.db"), "x").unwrap();
        let store = StoreFiles::new(&folder.path().join("notes.db"), folder.path());
        let guess = guess_kind(folder.path(), None, &store).unwrap();
        assert_eq!((guess.kind.as_str(), guess.files, guess.has_repository), ("files", 9, false));
        fs::write(folder.path().join("x.bin"), "a thing").unwrap();
        let refused = guess_kind(&folder.path().join("x.bin"), None, &none).unwrap_err().to_string();
        assert!(refused.contains("is not known; if it is text, add `--kind text`"), "{refused}");
        let folder_of_tables = guess_kind(folder.path(), Some(ImportKind::Csv), &none).unwrap_err();
        assert!(
            folder_of_tables.to_string().ends_with("is a folder; name a file in it"),
            "{folder_of_tables}"
        );
    }
}
