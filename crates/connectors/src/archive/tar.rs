//! The entries of tar archives.
//!
//! The crate `tar` parses headers. It would keep long names and extended headers in memory whatever their size, so
//! these are read here with a limit.

use std::io::Read;

use jiff::Timestamp;
use tar::{Archive, EntryType};

use super::super::item::{Item, ReadError, written};
use super::super::skips::Problem;
use super::limits::{ArchiveLimits, expands_too_much};
use super::{Entry, Visitor, entry_path, is_system_file};

/// Maximum size of a long name or an extended header in bytes.
const MAX_EXTENSION_BYTES: u64 = 64 * 1024;

/// Visits every file of a tar archive.
pub(crate) fn tar_entries(
    item: Item<'_>,
    limits: &ArchiveLimits,
    visit: &mut Visitor<'_>,
) -> Result<(), ReadError> {
    let path = item.path.clone();
    let mut archive = Archive::new(limits.limit(item.into_reader()));
    let mut long_name = None;
    for entry in archive.entries().map_err(|error| error.to_string())?.raw(true) {
        let mut entry = entry.map_err(|error| format!("it is no complete tar archive: {error}"))?;
        limits.count_entry()?;
        match entry.header().entry_type() {
            EntryType::GNULongName => long_name = Some(read_extension(&mut entry)?),
            EntryType::XHeader => long_name = path_of(&read_extension(&mut entry)?),
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                let name = long_name.take().unwrap_or_else(|| entry.path_bytes().into_owned());
                let name = String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned();
                let seconds = entry.header().mtime().ok().and_then(|seconds| i64::try_from(seconds).ok());
                let time = seconds.filter(|seconds| *seconds > 0);
                let changed_at = time.and_then(|time| Timestamp::from_second(time).ok()).map(written);
                match entry_path(&path, &name) {
                    Ok(path) if is_system_file(&path) => {}
                    Ok(path) => {
                        let file = Item::from_reader(path, changed_at, Box::new(entry));
                        visit(Entry::File(file.map_err(|error| error.to_string())?))?;
                    }
                    Err(reason) => visit(Entry::Rejected(format!("{path}/{name}"), reason.into()))?,
                }
            }
            _folder_or_link => long_name = None,
        }
        if limits.is_exhausted() {
            return Err(expands_too_much().into());
        }
    }
    Ok(())
}

fn read_extension(entry: &mut impl Read) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    entry.take(MAX_EXTENSION_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_EXTENSION_BYTES {
        return Err(Problem::too_large(format!("a name in it is longer than {MAX_EXTENSION_BYTES} bytes")));
    }
    Ok(bytes)
}

/// Returns the path in an extended header: lines of a length, a key, `=` and a value.
fn path_of(header: &[u8]) -> Option<Vec<u8>> {
    let lines = header.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| {
            let space = line.iter().position(|byte| *byte == b' ')?;
            line.get(space + 1..)?.strip_prefix(b"path=").map(<[u8]>::to_vec)
        })
        .next()
}
