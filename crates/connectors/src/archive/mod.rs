//! Archives: entries of ZIP, tar and gzip files are read as files without being unpacked to disk.
//!
//! * `limits`: limits of all archives in one file
//! * `zip`, `tar`, `gzip`: the entries of an archive of each kind
//!
//! **Invariant:** nothing is written to disk, no link is followed, and at most `limits` bytes are decompressed.

mod gzip;
mod limits;
mod tar;
mod zip;

pub(crate) use self::gzip::gzip_entry;
pub use self::gzip::unzip_input;
pub(crate) use self::limits::ArchiveLimits;
pub(crate) use self::tar::tar_entries;
pub(crate) use self::zip::zip_entries;

use super::ImportError;
use super::item::Item;
use super::skips::Problem;

/// An entry of an archive.
pub(crate) enum Entry<'a> {
    /// A file that can be read.
    File(Item<'a>),
    /// An entry that cannot be read, with its path and the reason.
    Rejected(String, Problem),
}

/// A receiver of the entries of an archive.
pub(crate) type Visitor<'a> = dyn FnMut(Entry<'_>) -> Result<(), ImportError> + 'a;

/// Returns the path of an entry, or the reason why its name is refused. No file is written under this name, but it
/// becomes a key.
fn entry_path(archive: &str, name: &str) -> Result<String, String> {
    let name = name.replace('\\', "/");
    let is_outside = name.starts_with('/')
        || name.split('/').any(|segment| segment == "..")
        || name.as_bytes().get(1) == Some(&b':');
    if is_outside {
        return Err("its name leads out of the archive".to_owned());
    }
    let segments: Vec<&str> = name.split('/').filter(|segment| !matches!(*segment, "" | ".")).collect();
    Ok(format!("{archive}/{}", segments.join("/")))
}

/// Returns true for a file that an operating system adds to archives.
fn is_system_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with('.') || path.contains("/__MACOSX/")
}

#[cfg(test)]
mod tests;
