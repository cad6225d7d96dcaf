//! The properties of a message, a recipient or an attachment: a storage of the compound file.
//!
//! Texts and bytes are streams with the tag of the property in their name (`__substg1.0_0037001F`); numbers and times
//! are in one stream of 16 bytes for each.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use cfb::{CompoundFile, Entry};
use encoding_rs::{UTF_16LE, WINDOWS_1252};
use jiff::Timestamp;

use super::super::super::office::{open_compound, read_stream};
use super::super::super::skips::Problem;
use super::super::super::text_input::encoding_of_code_page;
use super::super::super::values::time_since_1601;

/// Maximum bytes of a text or body.
const MAX_TEXT_BYTES: u64 = 16 * 1024 * 1024;

/// Maximum bytes of the numbers and times of a storage.
const MAX_NUMBERS_BYTES: u64 = 1024 * 1024;

/// Maximum number of recipients or attachments of a message that are listed.
const MAX_CHILDREN: usize = 10_000;

/// Types of properties.
const UNICODE: u16 = 0x001F;
const ANSI: u16 = 0x001E;
const BINARY: u16 = 0x0102;

/// A compound file in memory, with the bytes that may still be read: many streams can be one chain of sectors.
pub(super) struct Compound<'b> {
    file: CompoundFile<Cursor<&'b [u8]>>,
    left: u64,
    /// Bytes of the first stream that was not read, because it is too long or too many bytes were read before it.
    left_out: Option<u64>,
}

impl<'b> Compound<'b> {
    /// Opens a compound file of which this many bytes of streams are read.
    ///
    /// # Errors
    ///
    /// It is damaged: among others, a chain of sectors or a storage leads back to itself.
    pub(super) fn open(bytes: &'b [u8], max_read: u64) -> Result<Self, Problem> {
        let file = open_compound(bytes)?;
        Ok(Self { file, left: max_read, left_out: None })
    }

    /// Returns and clears the bytes of the first stream that was left out since the last call.
    pub(super) fn take_left_out(&mut self) -> Option<u64> {
        self.left_out.take()
    }

    /// Reads a stream of at most this many bytes. Returns `None` for a missing, longer or damaged one.
    fn stream(&mut self, path: &Path, max: u64) -> Option<Vec<u8>> {
        let entry = self.file.entry(path).ok().filter(Entry::is_stream)?;
        let length = entry.len();
        let Some(left) = self.left.checked_sub(length).filter(|_| length <= max) else {
            self.left_out.get_or_insert(length);
            return None;
        };
        self.left = left;
        read_stream(&mut self.file, path, max).ok()
    }
}

/// Adds empty sectors to a container whose table of sectors is longer than the file, as some programs write it.
pub(super) fn pad(bytes: &mut Vec<u8>) {
    // A table sector has a number of four bytes for each sector.
    const SECTOR_BYTES: usize = 512;
    const ENTRIES: usize = SECTOR_BYTES / 4;
    let tables =
        bytes.get(44..48).and_then(|count| count.first_chunk::<4>().copied()).map(u32::from_le_bytes);
    let covered =
        tables.and_then(|tables| usize::try_from(tables).ok()?.checked_mul(ENTRIES)?.checked_add(1));
    let length = covered.and_then(|sectors| sectors.checked_mul(SECTOR_BYTES)).unwrap_or_default();
    // Only the last table sector may be partly empty. Version 4 has larger sectors.
    let is_version_3 = bytes.get(26) == Some(&3);
    if is_version_3 && length > bytes.len() && length - bytes.len() <= ENTRIES * SECTOR_BYTES {
        bytes.resize(length, 0);
    }
}

/// A storage with the numbers and times of its properties.
pub(super) struct Storage {
    path: PathBuf,
    numbers: Vec<u8>,
    /// Code page of texts that are not in Unicode.
    code_page: u32,
}

impl Storage {
    /// Reads the properties of a storage. `header` is the size in bytes of what precedes the numbers: 32 in the outermost
    /// message, 24 in an attached one, and 8 elsewhere.
    pub(super) fn read(file: &mut Compound<'_>, path: &Path, header: usize, code_page: Option<u32>) -> Self {
        let numbers = file.stream(&path.join("__properties_version1.0"), MAX_NUMBERS_BYTES);
        let numbers = numbers.unwrap_or_default();
        let numbers = numbers.get(header..).unwrap_or_default().to_vec();
        let mut storage = Self { path: path.to_owned(), numbers, code_page: 0 };
        let own =
            [0x3FFD, 0x3FDE].into_iter().find_map(|tag| storage.number(tag)).filter(|page| *page != 1_200);
        storage.code_page = own.or(code_page).unwrap_or(1_252);
        storage
    }

    /// Returns the path of the storage.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the code page of its texts.
    pub(super) fn code_page(&self) -> u32 {
        self.code_page
    }

    /// Returns a property that is a text, or an empty text.
    pub(super) fn text(&self, file: &mut Compound<'_>, tag: u16) -> String {
        let unicode = self.bytes(file, tag, UNICODE, MAX_TEXT_BYTES);
        let text = unicode.map(|bytes| UTF_16LE.decode_without_bom_handling(&bytes).0.into_owned());
        let text = text.or_else(|| {
            let bytes = self.bytes(file, tag, ANSI, MAX_TEXT_BYTES)?;
            let encoding = encoding_of_code_page(self.code_page).unwrap_or(WINDOWS_1252);
            Some(encoding.decode_without_bom_handling(&bytes).0.into_owned())
        });
        text.unwrap_or_default().trim_end_matches('\0').to_owned()
    }

    /// Returns a property that is bytes of at most this length.
    pub(super) fn binary(&self, file: &mut Compound<'_>, tag: u16, max: u64) -> Option<Vec<u8>> {
        self.bytes(file, tag, BINARY, max)
    }

    fn bytes(&self, file: &mut Compound<'_>, tag: u16, kind: u16, max: u64) -> Option<Vec<u8>> {
        file.stream(&self.path.join(format!("__substg1.0_{tag:04X}{kind:04X}")), max)
    }

    /// Returns a property that is a number.
    pub(super) fn number(&self, tag: u16) -> Option<u32> {
        self.value(tag, 0x0003).and_then(|value| value.first_chunk::<4>().copied()).map(u32::from_le_bytes)
    }

    /// Returns a property that is a time.
    pub(super) fn time(&self, tag: u16) -> Option<Timestamp> {
        let ticks = i64::from_le_bytes(self.value(tag, 0x0040)?);
        time_since_1601(ticks / 10_000_000).filter(|_| ticks > 0)
    }

    fn value(&self, tag: u16, kind: u16) -> Option<[u8; 8]> {
        let [low, high] = tag.to_le_bytes();
        let [kind, _] = kind.to_le_bytes();
        let mut entries = self.numbers.chunks_exact(16);
        let entry = entries.find(|entry| entry.starts_with(&[kind, 0, low, high]))?;
        entry.last_chunk::<8>().copied()
    }

    /// Returns the paths of the storages in this one with names that begin so, in the order of their numbers.
    pub(super) fn children(&self, file: &Compound<'_>, prefix: &str) -> Vec<PathBuf> {
        let entries = file.file.read_storage(&self.path).into_iter().flatten();
        let storages = entries.filter(|entry| entry.is_storage() && entry.name().starts_with(prefix));
        let mut paths: Vec<PathBuf> =
            storages.take(MAX_CHILDREN).map(|entry| self.path.join(entry.name())).collect();
        paths.sort();
        paths
    }
}
