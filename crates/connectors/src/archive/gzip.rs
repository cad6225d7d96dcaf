//! Files that are compressed with gzip.

use std::io::{self, BufRead, BufReader, Read};

use flate2::read::MultiGzDecoder;

use super::super::item::Item;
use super::limits::ArchiveLimits;

/// Returns the file in a gzip file. Its name is that of the gzip file without `.gz`.
pub(crate) fn gzip_entry<'a>(item: Item<'a>, limits: &ArchiveLimits) -> Result<Item<'a>, String> {
    let path = item.path.strip_suffix(".tgz").map(|stem| format!("{stem}.tar"));
    let path = path.or_else(|| item.path.strip_suffix(".gz").map(str::to_owned));
    let (path, changed_at) = (path.unwrap_or_else(|| item.path.clone()), item.changed_at.clone());
    let name = item.name().to_owned();
    let reader = limits.limit(NamedReader { name, reader: MultiGzDecoder::new(item.into_reader()) });
    Item::from_reader(path, changed_at, Box::new(reader)).map_err(|error| error.to_string())
}

/// A reader with errors that name the gzip file, since its content has another name.
struct NamedReader<R> {
    name: String,
    reader: R,
}

impl<R: Read> Read for NamedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let incomplete = |error| io::Error::other(format!("{} is incomplete or damaged: {error}", self.name));
        self.reader.read(buffer).map_err(incomplete)
    }
}

/// Returns a reader of a mailbox that may be compressed with gzip. `bytes` is the size of the file.
pub fn unzip_input<'a>(mut reader: impl BufRead + 'a, bytes: u64) -> io::Result<Box<dyn BufRead + 'a>> {
    if !reader.fill_buf()?.starts_with(b"\x1F\x8B") {
        return Ok(Box::new(reader));
    }
    let reader: Box<dyn Read + 'a> = Box::new(ArchiveLimits::new(bytes).limit(MultiGzDecoder::new(reader)));
    Ok(Box::new(BufReader::with_capacity(1 << 16, reader)))
}
