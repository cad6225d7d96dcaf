//! The download of one file: into a part that a later attempt continues, and verified when it is complete.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fetchwell_outbound::Download;
use fetchwell_state::{create_private_directory, private_options};
use http::header::CONTENT_RANGE;
use tokio::time::{Instant, sleep};

use super::checksum::Checksums;
use super::client::Hub;
use super::error::InstallError;
use super::listing::RemoteFile;
use super::repository::{Commit, Repository};
use super::staged_file::hash_file;

/// Maximum number of attempts that bring less than [`PROGRESS`].
const MAX_ATTEMPTS: u32 = 6;

/// Number of bytes after which an attempt counts as progress.
const PROGRESS: u64 = 1024 * 1024;

/// Pause before the second attempt. Each later pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// Time in which the rate of a download is measured.
const WINDOW: Duration = Duration::from_secs(60);

/// Minimum number of bytes in such a time.
const MIN_BYTES: u64 = 60 * 1024;

/// Progress of an installation in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstallProgress {
    /// Bytes that are on the disk.
    pub done: u64,
    /// Bytes of the model.
    pub total: u64,
}

/// Receiver of the progress.
pub type Report<'r> = &'r (dyn Fn(InstallProgress) + Sync);

/// The downloads of one commit into a folder.
pub(super) struct Transfer<'t> {
    pub(super) hub: &'t Hub,
    pub(super) repository: &'t Repository,
    pub(super) commit: &'t Commit,
    /// Folder of the files and parts.
    pub(super) staging: &'t Path,
    pub(super) report: Report<'t>,
    /// Bytes of the model.
    pub(super) total: u64,
}

impl Transfer<'_> {
    /// Downloads a file, unless it is in the folder, and returns its checksums. `before` are the bytes of earlier files.
    pub(super) async fn fetch(&self, file: &RemoteFile, before: u64) -> Result<Checksums, InstallError> {
        let complete = self.staging.join(file.name);
        if let Ok(sums) = self.verify(file, &complete) {
            self.say(before + file.size);
            return Ok(sums);
        }
        let part = self.part(file);
        let (mut attempts, mut pause) = (1, FIRST_PAUSE);
        // A part that was deleted and downloaded again is no progress.
        let mut reached = length(&part);
        loop {
            let Err(error) = self.attempt(file, &part, before).await else { break };
            if length(&part).saturating_sub(reached) >= PROGRESS {
                (attempts, pause) = (1, FIRST_PAUSE);
                reached = length(&part);
            }
            if !error.is_transient() || attempts == MAX_ATTEMPTS {
                return Err(error);
            }
            sleep(error.pause().unwrap_or(pause)).await;
            (attempts, pause) = (attempts + 1, pause * 2);
        }
        let sums = self.verify(file, &part).inspect_err(|_damaged| {
            // Continuing a damaged part would never succeed.
            let _ = fs::remove_file(&part);
        })?;
        let unwritable = |error| InstallError::io(&complete, &error, 0);
        create_private_directory(complete.parent().unwrap_or(self.staging)).map_err(unwritable)?;
        fs::rename(&part, &complete).map_err(unwritable)?;
        Ok(sums)
    }

    /// Returns the path of the part of a file. Its name has the checksum, so a part of another file is not continued.
    fn part(&self, file: &RemoteFile) -> PathBuf {
        self.staging.join(format!("{}.{}.part", file.name.replace('/', "-"), file.checksum.short()))
    }

    /// Requests what is missing of a file, and writes it.
    async fn attempt(&self, file: &RemoteFile, part: &Path, before: u64) -> Result<(), InstallError> {
        let mut offset = length(part);
        if offset > file.size {
            remove(part)?;
            offset = 0;
        }
        self.say(before + offset);
        if offset == file.size {
            return Ok(());
        }
        let download = self.hub.open(self.repository, self.commit, file, offset).await?;
        let Some(start) = start_of(&download, offset) else {
            remove(part)?;
            let problem = "it does not continue a download, which begins again".to_owned();
            return Err(InstallError::Unreachable { place: self.hub.place(), problem });
        };
        if let Some(found) = download.announced().map(|announced| announced.saturating_add(start))
            && found != file.size
        {
            return Err(wrong_size(file, found));
        }
        self.write(download, file, part, start, before).await
    }

    /// Writes the body of a response to a part, from a byte on.
    async fn write(
        &self,
        mut download: Download,
        file: &RemoteFile,
        part: &Path,
        start: u64,
        before: u64,
    ) -> Result<(), InstallError> {
        let mut written = start;
        let missing = |written: u64| self.total.saturating_sub(before + written);
        let unwritable = |error: std::io::Error, written| InstallError::io(part, &error, missing(written));
        let mut options = private_options();
        options.create(true).append(start > 0).write(true).truncate(start == 0);
        let mut open = options.open(part).map_err(|error| unwritable(error, written))?;
        let mut pace = Pace::new(Instant::now());
        while let Some(piece) = download.chunk().await.map_err(|fault| self.hub.fault(fault))? {
            let bytes = piece.len() as u64;
            if written + bytes > file.size {
                remove(part)?;
                return Err(wrong_size(file, written + bytes));
            }
            open.write_all(&piece).map_err(|error| unwritable(error, length(part)))?;
            written += bytes;
            self.say(before + written);
            if pace.is_slow(Instant::now(), bytes) {
                return Err(InstallError::Slow { place: self.hub.place(), per_minute: MIN_BYTES });
            }
        }
        open.sync_all().map_err(|error| unwritable(error, written))?;
        if written < file.size {
            let problem = format!("{} ended after {written} of {} bytes", file.name, file.size);
            return Err(InstallError::Unreachable { place: self.hub.place(), problem });
        }
        Ok(())
    }

    /// Checks size and checksum of a file on the disk.
    fn verify(&self, file: &RemoteFile, path: &Path) -> Result<Checksums, InstallError> {
        let found = length(path);
        if found != file.size {
            return Err(wrong_size(file, found));
        }
        let open = File::open(path).map_err(|error| InstallError::io(path, &error, 0))?;
        let sums = hash_file(open, file.size).map_err(|error| InstallError::io(path, &error, 0))?;
        if sums.matches(&file.checksum) {
            Ok(sums)
        } else {
            Err(InstallError::WrongChecksum { file: file.name.to_owned() })
        }
    }

    fn say(&self, done: u64) {
        (self.report)(InstallProgress { done, total: self.total });
    }
}

/// Returns the byte that a response begins with, or `None` if it does not continue at the offset.
fn start_of(download: &Download, offset: u64) -> Option<u64> {
    match download.status().as_u16() {
        200 => Some(0),
        206 => {
            let range = download.header(&CONTENT_RANGE)?.strip_prefix("bytes ")?;
            let start: u64 = range.split_once('-')?.0.parse().ok()?;
            (start == offset).then_some(start)
        }
        _ => None,
    }
}

fn wrong_size(file: &RemoteFile, found: u64) -> InstallError {
    InstallError::WrongSize { file: file.name.to_owned(), expected: file.size, found }
}

fn remove(part: &Path) -> Result<(), InstallError> {
    fs::remove_file(part).map_err(|error| InstallError::io(part, &error, 0))
}

/// Returns the size of a file in bytes, 0 if there is none.
fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// The rate of a download, measured over times of a minute.
struct Pace {
    since: Instant,
    bytes: u64,
}

impl Pace {
    fn new(now: Instant) -> Self {
        Self { since: now, bytes: 0 }
    }

    /// Counts bytes. Returns true if fewer came in the last minute than a download needs to end.
    fn is_slow(&mut self, now: Instant, bytes: u64) -> bool {
        self.bytes += bytes;
        if now - self.since < WINDOW {
            return false;
        }
        let is_slow = self.bytes < MIN_BYTES;
        *self = Self::new(now);
        is_slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_below_a_kilobyte_a_second_is_slow() {
        let start = Instant::now();
        for (bytes_a_second, expect) in [(1, true), (900, true), (1_100, false), (1_000_000, false)] {
            let mut pace = Pace::new(start);
            let is_slow =
                (1..=120).any(|second| pace.is_slow(start + Duration::from_secs(second), bytes_a_second));
            assert_eq!(is_slow, expect, "{bytes_a_second}");
        }
        // A minute of rest after a fast one is slow, too.
        let mut pace = Pace::new(start);
        assert!(!pace.is_slow(start + WINDOW, 1_000_000));
        assert!(pace.is_slow(start + WINDOW * 2, 1));
    }
}
