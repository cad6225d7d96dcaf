//! Files and folders that only their owner may read.
//!
//! Everything that fetchwell creates and that may contain records, positions or keys is created here: files with mode
//! 0600, folders with mode 0700. On systems without Unix permissions the defaults of the system apply.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// Creates an empty file with mode 0600 and opens it for reading and writing.
///
/// # Errors
///
/// The file exists already ([`io::ErrorKind::AlreadyExists`]) or cannot be created.
pub fn create_private_file(path: &Path) -> io::Result<File> {
    private_options().read(true).write(true).create_new(true).open(path)
}

/// Returns options that create a file with mode 0600.
pub fn private_options() -> OpenOptions {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates a folder and its parents with mode 0700. An existing folder keeps its mode.
///
/// # Errors
///
/// A folder cannot be created.
pub fn create_private_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
