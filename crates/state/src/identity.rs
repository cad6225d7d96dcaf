//! Identity of files, by which one that was replaced at its path is noticed.

use std::fs::Metadata;

/// Identity of a file, independent of its path. An open connection keeps reading the file it has opened, even if
/// another one replaced it at the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    #[cfg(unix)]
    device_and_inode: (u64, u64),
    #[cfg(not(unix))]
    created: Option<std::time::SystemTime>,
}

impl FileIdentity {
    /// Returns the identity of the file that has this metadata.
    pub fn from_metadata(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Self { device_and_inode: (metadata.dev(), metadata.ino()) }
        }
        #[cfg(not(unix))]
        Self { created: metadata.created().ok() }
    }
}
