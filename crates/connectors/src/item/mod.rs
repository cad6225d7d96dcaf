//! A file to read, on disk or in an archive, with its start buffered.
//!
//! * `kind`: the kinds of files, with their names and extensions, `languages`: the languages of source code
//! * `record`: a record that a reader makes of a file, and the errors of readers

mod kind;
mod languages;
mod record;

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::Timestamp;

use super::skips::{Problem, SkipReason};

pub use self::kind::FileKind;
pub(crate) use self::languages::{language_of_name, language_of_script};
pub(crate) use self::record::{FileRecord, OCR_CONFIDENCE, ReadError, UNREAD_PAGES, text_bytes_of};

/// Maximum size in bytes of a file that is read as a whole.
pub(crate) const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Size of the start that is buffered to detect the kind, in bytes.
const HEAD_BYTES: u64 = 64 * 1024;

/// A file to read. Its path is the key of its record.
pub(crate) struct Item<'a> {
    /// Path in the imported folder, with `/`. The path of an entry begins with that of its archive.
    pub(crate) path: String,
    /// Modification time in RFC 3339.
    pub(crate) changed_at: Option<String>,
    /// The file on disk. `None` for an entry of an archive.
    pub(crate) on_disk: Option<PathBuf>,
    head: Vec<u8>,
    rest: Box<dyn Read + 'a>,
    opened: Option<(File, Version)>,
}

/// Returns the problem of a file that was written while it was read.
pub(crate) fn changed() -> Problem {
    Problem::new(SkipReason::Changed, "it was changed while it was read; import it again")
}

/// A file on disk with its version at the start of the read.
#[derive(Debug)]
pub(crate) struct ChangeCheck {
    file: File,
    before: Version,
}

impl ChangeCheck {
    /// Returns true if the file was written since the start of the read.
    pub(crate) fn is_changed(&self) -> bool {
        version_of(&self.file).ok() != Some(self.before)
    }
}

/// The properties of a file that change when it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    bytes: u64,
    changed_at: Option<SystemTime>,
}

impl<'a> Item<'a> {
    /// Opens a file on disk.
    pub(crate) fn open(path: String, file: &Path) -> io::Result<Self> {
        let reader = File::open(file)?;
        let version = version_of(&reader)?;
        let changed_at = version.changed_at.and_then(|time| Timestamp::try_from(time).ok()).map(written);
        let opened = Some((reader.try_clone()?, version));
        let item = Self::from_reader(path, changed_at, Box::new(reader))?;
        Ok(Item { on_disk: Some(file.to_owned()), opened, ..item })
    }

    /// Reads the start of an entry of an archive.
    pub(crate) fn from_reader(
        path: String,
        changed_at: Option<String>,
        mut rest: Box<dyn Read + 'a>,
    ) -> io::Result<Self> {
        let mut head = Vec::new();
        rest.by_ref().take(HEAD_BYTES).read_to_end(&mut head)?;
        Ok(Self { path, changed_at, on_disk: None, head, rest, opened: None })
    }

    /// Returns the start of the file, or all of a shorter one.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Returns the last segment of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Returns the name without its extension.
    pub(crate) fn stem(&self) -> &str {
        let name = self.name();
        name.rsplit_once('.').map(|(stem, _)| stem).filter(|stem| !stem.is_empty()).unwrap_or(name)
    }

    /// Returns the extension in lower case, or an empty string.
    pub(crate) fn extension(&self) -> String {
        let ending = self.name().rsplit_once('.').filter(|(stem, _)| !stem.is_empty());
        ending.map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default()
    }

    /// Reads the whole file.
    ///
    /// # Errors
    ///
    /// The file is too large, cannot be read, or was changed during the read.
    pub(crate) fn read_all(&mut self) -> Result<Vec<u8>, Problem> {
        let mut bytes = std::mem::take(&mut self.head);
        self.rest
            .by_ref()
            .take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| Problem::from(error.to_string()))?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(Problem::too_large(format!("it is larger than {MAX_FILE_BYTES} bytes")));
        }
        match self.change_check() {
            Some(check) if check.is_changed() => Err(changed()),
            _ => Ok(bytes),
        }
    }

    /// Returns a check for a file on disk that may be written while it is read.
    pub(crate) fn change_check(&self) -> Option<ChangeCheck> {
        let (file, before) = self.opened.as_ref()?;
        Some(ChangeCheck { file: file.try_clone().ok()?, before: *before })
    }

    /// Reads the whole file as text: UTF-8, UTF-16 with a byte order mark, or otherwise Windows-1252.
    pub(crate) fn read_text(&mut self) -> Result<String, Problem> {
        let bytes = self.read_all()?;
        super::text_input::decode(bytes).ok_or_else(|| "it is not text".into())
    }

    /// Reads the whole file as text like [`Self::read_text`], or in the encoding that a document declares.
    pub(crate) fn read_markup(&mut self) -> Result<String, Problem> {
        let bytes = self.read_all()?;
        super::text_input::decode_declared(bytes).ok_or_else(|| "it is not text".into())
    }

    /// Returns a reader of the whole file.
    pub(crate) fn into_reader(self) -> impl Read + 'a {
        Cursor::new(self.head).chain(self.rest)
    }
}

fn version_of(file: &File) -> io::Result<Version> {
    let metadata = file.metadata()?;
    Ok(Version { bytes: metadata.len(), changed_at: metadata.modified().ok() })
}

/// Formats a modification time in seconds, as records have it.
pub(crate) fn written(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_that_changes_while_it_is_read_is_rejected() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![b'a'; 100_000]).unwrap();
        let mut same = Item::open("a.txt".to_owned(), file.path()).unwrap();
        assert_eq!(same.read_all().unwrap().len(), 100_000);
        let mut changed = Item::open("a.txt".to_owned(), file.path()).unwrap();
        file.write_all(b"more").unwrap();
        assert!(changed.read_all().unwrap_err().text.contains("it was changed while it was read"));
    }

    #[test]
    fn names_have_a_stem_and_an_extension() {
        for (path, stem, extension) in [
            ("a/b.TXT", "b", "txt"),
            ("a.b/c", "c", ""),
            (".hidden", ".hidden", ""),
            ("a.tar.gz", "a.tar", "gz"),
        ] {
            let item = Item::from_reader(path.to_owned(), None, Box::new(io::empty())).unwrap();
            assert_eq!((item.stem(), item.extension().as_str()), (stem, extension), "{path}");
        }
    }
}
