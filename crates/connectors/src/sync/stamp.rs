//! The states of files, by which changes are found without reading them.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fetchwell_source::contract::Fingerprint;
use sha2::{Digest, Sha256};

use super::super::exports::listed_names;
use super::super::item::FileKind;

/// Maximum size in bytes of a file that has a fingerprint. Larger ones are read again if only their times changed.
const MAX_FINGERPRINT_BYTES: u64 = 8 * 1024 * 1024;

/// Time after a change within which another one may have the same times, on a file system with coarse times.
const COARSE_TIME: Duration = Duration::from_secs(2);

/// The state of a file as the file system reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Size, times and id of the file.
    pub(super) text: String,
    /// True if the file was changed so shortly before that the stamp can miss another change.
    pub(super) is_recent: bool,
}

impl Stamp {
    /// Reads the state of a file. That of a database includes its write-ahead log, and that of a day of Slack the lists of
    /// names in its export.
    pub(super) fn read(file: &Path, metadata: &Metadata) -> Self {
        let (mut text, mut newest) = describe(metadata);
        for metadata in log_of(file).into_iter().chain(listed_names(file)).flat_map(fs::metadata) {
            let (log, changed_at) = describe(&metadata);
            text = format!("{text}+{log}");
            newest = newest.max(changed_at);
        }
        let limit = SystemTime::now().checked_sub(COARSE_TIME).unwrap_or(UNIX_EPOCH);
        Self { text, is_recent: newest > limit }
    }
}

/// Returns the path that the write-ahead log of a file has if it is a database. Files of other kinds by their extension
/// have none.
fn log_of(file: &Path) -> Option<PathBuf> {
    let extension = file.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    let kind = FileKind::from_extension(&extension.unwrap_or_default());
    kind.is_none_or(|kind| kind == FileKind::Sqlite).then(|| {
        let mut log = file.as_os_str().to_owned();
        log.push("-wal");
        log.into()
    })
}

/// Returns size, times and id of a file, and the newer one of its times.
fn describe(metadata: &Metadata) -> (String, SystemTime) {
    let modified = metadata.modified().unwrap_or_else(|_unknown| SystemTime::now());
    let nanoseconds = modified.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let (seconds, rest) = (metadata.ctime(), metadata.ctime_nsec());
        let changed = Duration::new(u64::try_from(seconds).unwrap_or(0), u32::try_from(rest).unwrap_or(0));
        let text = format!("{}-{nanoseconds}-{seconds}.{rest:09}-{}", metadata.len(), metadata.ino());
        (text, modified.max(UNIX_EPOCH + changed))
    }
    #[cfg(not(unix))]
    (format!("{}-{nanoseconds}", metadata.len()), modified)
}

/// Returns the fingerprint of a file, or `None` for a large one. That of a database includes its write-ahead log, and that
/// of a day of Slack sizes and times of the lists of names.
pub(super) fn fingerprint(file: &Path) -> io::Result<Option<Fingerprint>> {
    let mut hash = Sha256::new();
    if !add_content(&mut hash, file)? {
        return Ok(None);
    }
    if let Some(log) = log_of(file) {
        match add_content(&mut hash, &log) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    for metadata in listed_names(file).into_iter().flat_map(fs::metadata) {
        hash.update(describe(&metadata).0);
    }
    Ok(hash.finalize().first_chunk().copied())
}

/// Adds the content of a file to a hash. Returns false if it is too large.
fn add_content(hash: &mut Sha256, file: &Path) -> io::Result<bool> {
    let mut file = File::open(file)?;
    if file.metadata()?.len() > MAX_FINGERPRINT_BYTES {
        return Ok(false);
    }
    let (mut buffer, mut bytes) = (vec![0; 64 * 1024], 0_u64);
    loop {
        let count = match file.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        bytes += count as u64;
        if count == 0 {
            break;
        }
        if bytes > MAX_FINGERPRINT_BYTES {
            return Ok(false);
        }
        hash.update(buffer.get(..count).unwrap_or_default());
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(file: &Path) -> Stamp {
        Stamp::read(file, &fs::metadata(file).unwrap())
    }

    #[test]
    fn a_changed_file_has_another_stamp_or_is_recent() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.txt");
        fs::write(&file, "one").unwrap();
        let (before, first) = (stamp(&file), fingerprint(&file).unwrap());
        assert!(before.is_recent);
        fs::write(&file, "two").unwrap();
        assert!(stamp(&file) != before || stamp(&file).is_recent);
        assert_ne!(fingerprint(&file).unwrap(), first);
        File::options().write(true).open(&file).unwrap().set_modified(UNIX_EPOCH).unwrap();
        assert_ne!(stamp(&file).text, before.text);
    }

    #[test]
    fn a_database_has_the_stamp_of_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.db");
        fs::write(&file, "data").unwrap();
        let (before, content) = (stamp(&file), fingerprint(&file).unwrap());
        fs::write(folder.path().join("a.db-wal"), "log").unwrap();
        assert_ne!(stamp(&file).text, before.text);
        assert_ne!(fingerprint(&file).unwrap(), content);
    }

    #[test]
    fn a_large_file_has_no_fingerprint() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(MAX_FINGERPRINT_BYTES).unwrap();
        assert!(fingerprint(file.path()).unwrap().is_some());
        file.as_file().set_len(MAX_FINGERPRINT_BYTES + 1).unwrap();
        assert!(fingerprint(file.path()).unwrap().is_none());
    }
}
