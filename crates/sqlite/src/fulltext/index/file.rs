//! Index files, read with positioned reads instead of a memory map.
//!
//! A mapped file that another process truncates would end this process with SIGBUS. **Invariant:** the bytes that
//! `IndexFile` returns are those of the file as it was opened; a file that changed since returns an error.

use std::fs::{self, File, Metadata};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use tantivy::HasLen;
use tantivy::directory::{FileHandle, OwnedBytes};

use super::cache::{self, RangeKey};
use super::checksum::Checksum;

/// Maximum size in bytes of a file that is read completely when it is opened, so that small indexes keep no files
/// open. A segment has six files, which is at most 96 KiB of memory.
const MAX_WHOLE_FILE: usize = 16 * 1024;

/// Unit of small reads in bytes: two blocks of the term dictionary, so that adjacent terms and short posting lists
/// are read together.
const BLOCK: usize = 8 * 1024;

/// Bytes read at a time while a checksum is computed.
const CHECKSUM_CHUNK: usize = 256 * 1024;

/// Length and modification time of a file, to detect writes by other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    /// Returns the length of the file in bytes.
    pub(super) fn len(self) -> u64 {
        self.len
    }
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Self {
        Self { len: metadata.len(), modified: metadata.modified().ok() }
    }
}

/// Open file of the index.
#[derive(Debug)]
pub(super) struct IndexFile {
    name: String,
    len: usize,
    stamp: Stamp,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Whole(OwnedBytes),
    OnDisk {
        file: File,
        /// Unique id of the open file in the cache, different from that of later files of the same name.
        id: u64,
    },
}

impl IndexFile {
    /// Opens the file `name` at `path`.
    pub(super) fn open(path: &Path, name: &str) -> io::Result<Self> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let (file, metadata) = open_regular(path)?;
        let stamp = Stamp::from(&metadata);
        let len = usize::try_from(metadata.len()).map_err(io::Error::other)?;
        let content = if len <= MAX_WHOLE_FILE {
            Content::Whole(OwnedBytes::new(read_unchanged(&file, name, stamp, 0..len)?))
        } else {
            Content::OnDisk { file, id: NEXT_ID.fetch_add(1, Ordering::Relaxed) }
        };
        Ok(Self { name: name.to_owned(), len, stamp, content })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Compares the content with the checksum at its end. Reads the whole file and bypasses the cache.
    pub(super) fn verify(&self) -> io::Result<()> {
        let read = |range: Range<usize>| match &self.content {
            Content::Whole(bytes) => bytes
                .get(range)
                .map(<[u8]>::to_vec)
                .ok_or_else(|| invalid("the file is too short".to_owned())),
            Content::OnDisk { file, .. } => read_unchanged(file, &self.name, self.stamp, range),
        };
        let tail = read(self.len.saturating_sub(Checksum::MAX_FOOTER)..self.len)?;
        let (mut checksum, body) = Checksum::from_footer(&tail, self.len).map_err(invalid)?;
        let mut at = 0;
        while at < body {
            let end = (at + CHECKSUM_CHUNK).min(body);
            checksum.update(&read(at..end)?);
            at = end;
        }
        if checksum.matches() { Ok(()) } else { Err(invalid("its checksum does not match".to_owned())) }
    }
}

impl HasLen for IndexFile {
    fn len(&self) -> usize {
        self.len
    }
}

impl FileHandle for IndexFile {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        if range.start > range.end || range.end > self.len {
            return Err(invalid(format!("bytes {} to {} of {} are asked", range.start, range.end, self.len)));
        }
        if range.is_empty() {
            return Ok(OwnedBytes::empty());
        }
        let (file, id) = match &self.content {
            Content::Whole(bytes) => return Ok(bytes.slice(range)),
            Content::OnDisk { file, id } => (file, *id),
        };
        let block = range.start / BLOCK;
        let block = block * BLOCK..((block + 1) * BLOCK).min(self.len);
        let read =
            |range: Range<usize>| read_unchanged(file, &self.name, self.stamp, range).map(OwnedBytes::new);
        if range.len() <= BLOCK / 4 && range.end <= block.end {
            let within = range.start - block.start..range.end - block.start;
            let bytes = cache::get_or_read(RangeKey::new(id, &block), || read(block))?;
            return Ok(bytes.slice(within));
        }
        cache::get_or_read(RangeKey::new(id, &range), || read(range))
    }
}

/// Opens a regular file. Opening a pipe would block.
pub(super) fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    let refuse_others = |metadata: &Metadata| {
        if metadata.is_file() { Ok(()) } else { Err(invalid(format!("{} is not a file", path.display()))) }
    };
    refuse_others(&fs::metadata(path)?)?;
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    refuse_others(&metadata)?;
    Ok((file, metadata))
}

/// Reads a range. Returns an error if the file changed since it was opened.
fn read_unchanged(file: &File, name: &str, stamp: Stamp, range: Range<usize>) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; range.len()];
    read_exact_at(file, &mut bytes, range.start as u64)?;
    if Stamp::from(&file.metadata()?) == stamp {
        Ok(bytes)
    } else {
        Err(invalid(format!("{name} was changed by another process")))
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                bytes = bytes.get_mut(count..).unwrap_or_default();
                offset += count as u64;
            }
        }
    }
    Ok(())
}

fn invalid(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file_of(bytes: &[u8]) -> (tempfile::NamedTempFile, IndexFile) {
        let mut on_disk = tempfile::NamedTempFile::new().unwrap();
        on_disk.write_all(bytes).unwrap();
        let file = IndexFile::open(on_disk.path(), "x").unwrap();
        (on_disk, file)
    }

    #[test]
    fn every_range_is_read_as_it_is_on_disk() {
        for len in [0, 1, MAX_WHOLE_FILE, MAX_WHOLE_FILE + 1, BLOCK * 3 + 7] {
            let bytes: Vec<u8> = (0..=250).cycle().take(len).collect();
            let (_on_disk, file) = file_of(&bytes);
            for (start, end) in
                [(0, 0), (0, 1), (0, len), (len, len), (BLOCK - 1, BLOCK + 1), (BLOCK, BLOCK + 9)]
            {
                for _cached in 0..2 {
                    let read = file.read_bytes(start..end).ok().map(|bytes| bytes.to_vec());
                    assert_eq!(read.as_deref(), bytes.get(start..end), "{start}..{end} of {len}");
                }
            }
        }
    }

    #[test]
    fn reading_a_changed_file_is_an_error() {
        let (on_disk, file) = file_of(&vec![1; BLOCK * 4]);
        assert_eq!(file.read_bytes(0..9).unwrap().as_slice(), [1; 9]);
        on_disk.as_file().set_len(100).unwrap();
        file.read_bytes(BLOCK * 2..BLOCK * 2 + 9).unwrap_err();
        on_disk.as_file().set_len(BLOCK as u64 * 4).unwrap();
        let changed = file.read_bytes(BLOCK * 2..BLOCK * 3).unwrap_err();
        assert!(changed.to_string().contains("changed by another process"), "{changed}");
        // The cached range still has the contents of the file as it was opened.
        assert_eq!(file.read_bytes(0..9).unwrap().as_slice(), [1; 9]);
    }
}
