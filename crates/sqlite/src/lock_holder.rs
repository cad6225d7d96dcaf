//! Lookup of the processes that hold the locks of a store.

use std::path::Path;

use fetchwell_state::beside;

use super::database::Database;
use super::write_lock::{INDEX_LOCK, WriteLock};

/// Returns true if another process holds the write lock of an existing store, so that a write waits for it.
#[must_use]
pub fn is_store_locked(store: &Path) -> bool {
    // No lock file is created beside a file that is not a store.
    Database::open(store).is_ok() && WriteLock::try_take(store).is_ok_and(|lock| lock.is_none())
}

/// Returns the id of the process that writes the search index of the store at `store`, if the system reports it. Linux
/// lists locks by device and inode in `/proc/locks`.
pub(crate) fn lock_holder(store: &Path) -> Option<u32> {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::MetadataExt;
        let file = std::fs::metadata(beside(store, INDEX_LOCK)).ok()?;
        holder_in(&std::fs::read_to_string("/proc/locks").ok()?, file.dev(), file.ino())
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = beside(store, INDEX_LOCK);
        None
    }
}

/// Finds the holder of a file's lock in lines such as `1: FLOCK  ADVISORY  WRITE 4711 fe:00:131090 0 EOF`.
#[cfg(target_os = "linux")]
fn holder_in(locks: &str, device: u64, inode: u64) -> Option<u32> {
    let major = (device >> 32 & 0xffff_f000) | (device >> 8 & 0xfff);
    let minor = (device >> 12 & 0xffff_ff00) | (device & 0xff);
    let file = format!("{major:02x}:{minor:02x}:{inode}");
    locks.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        (words.next()? == "FLOCK").then_some(())?;
        let process = words.nth(2)?;
        (words.next()? == file).then(|| process.parse().ok())?
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_found_by_device_and_inode() {
        let locks = "1: POSIX  ADVISORY  READ 5 fe:01:77 128 128\n\
                     2: FLOCK  ADVISORY  WRITE 4711 fe:01:77 0 EOF\n2: -> FLOCK  ADVISORY  WRITE 4712 fe:01:77 0 EOF\n";
        assert_eq!(holder_in(locks, 0xfe01, 77), Some(4711));
        assert_eq!(holder_in(locks, 0xfe01, 78), None);
        assert_eq!(holder_in(locks, 0xfe00, 77), None);
        assert_eq!(holder_in("", 0xfe01, 77), None);
    }
}
