//! The entries of ZIP archives.

use std::fs::File;
use std::io::{Cursor, Read, Seek};

use zip::ZipArchive;
use zip::result::ZipError;

use super::super::exports::is_name_list;
use super::super::item::{Item, ReadError};
use super::super::skips::Problem;
use super::limits::{ArchiveLimits, expands_too_much};
use super::{Entry, Visitor, entry_path, is_system_file};

/// A file that can be read at any position.
trait ReadSeek: Read + Seek {}

impl<R: Read + Seek> ReadSeek for R {}

/// Visits every file of a ZIP archive.
pub(crate) fn zip_entries(
    mut item: Item<'_>,
    limits: &ArchiveLimits,
    visit: &mut Visitor<'_>,
) -> Result<(), ReadError> {
    let path = item.path.clone();
    let reader: Box<dyn ReadSeek> = match &item.on_disk {
        Some(file) => Box::new(File::open(file).map_err(|error| error.to_string())?),
        None => Box::new(Cursor::new(item.read_all()?)),
    };
    let mut archive = ZipArchive::new(reader).map_err(|error| format!("it is no ZIP archive: {error}"))?;
    // Names come before the messages that have only ids.
    let mut order: Vec<usize> = (0..archive.len()).collect();
    order.sort_by_cached_key(|index| !is_name_list(&entry_name(&archive, *index)));
    for index in order {
        limits.count_entry()?;
        match entry(&mut archive, index, &path, limits) {
            Ok(Some(item)) => visit(Entry::File(item))?,
            Ok(None) => {}
            Err((path, reason)) => visit(Entry::Rejected(path, reason))?,
        }
        if limits.is_exhausted() {
            return Err(expands_too_much().into());
        }
    }
    Ok(())
}

/// Returns the name of an entry, or an empty text if it is no text.
fn entry_name(archive: &ZipArchive<Box<dyn ReadSeek>>, index: usize) -> String {
    archive.name_for_index(index).and_then(Result::ok).unwrap_or_default().into_owned()
}

type RejectedEntry = (String, Problem);

/// Opens an entry. Returns `None` for folders, links and files of operating systems.
fn entry<'a>(
    archive: &'a mut ZipArchive<Box<dyn ReadSeek>>,
    index: usize,
    path: &str,
    limits: &ArchiveLimits,
) -> Result<Option<Item<'a>>, RejectedEntry> {
    let name = entry_name(archive, index);
    let path = entry_path(path, &name).map_err(|reason| (format!("{path}/{name}"), reason.into()))?;
    let rejected = |error: ZipError| {
        let reason = match error {
            ZipError::UnsupportedArchive(problem) if problem.contains("assword") => {
                Problem::encrypted("it is encrypted")
            }
            other => other.to_string().into(),
        };
        (path.clone(), reason)
    };
    let file = archive.by_index(index).map_err(rejected)?;
    if file.is_dir() || file.is_symlink() || is_system_file(&path) {
        return Ok(None);
    }
    let changed_at = file.last_modified().filter(|time| time.year() > 1980).map(|time| {
        let (year, month, day) = (time.year(), time.month(), time.day());
        let (hour, minute, second) = (time.hour(), time.minute(), time.second());
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    });
    let item = Item::from_reader(path.clone(), changed_at, Box::new(limits.limit(file)));
    item.map(Some).map_err(|error| (path, error.to_string().into()))
}
