//! Files of the folder in which a model is prepared: copies, and their checksums.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use fetchwell_state::{create_private_directory, private_options};

use super::checksum::{Checksums, Hasher};

/// Bytes that are read at once.
const BLOCK: usize = 1 << 20;

/// Returns the checksums of a file of this many bytes.
pub(super) fn hash_file(file: File, bytes: u64) -> io::Result<Checksums> {
    each_block(file, bytes, |_block| Ok(()))
}

/// Copies this many bytes of a file to a path, and returns their checksums.
pub(super) fn copy_file(from: File, bytes: u64, to: &Path) -> io::Result<Checksums> {
    if let Some(folder) = to.parent() {
        create_private_directory(folder)?;
    }
    let mut copy = private_options().write(true).create(true).truncate(true).open(to)?;
    let sums = each_block(from, bytes, |block| copy.write_all(block))?;
    copy.sync_all()?;
    Ok(sums)
}

fn each_block(
    file: File,
    bytes: u64,
    mut handle: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<Checksums> {
    // A file that grows meanwhile is read to its former end.
    let (mut reader, mut hasher, mut block) = (file.take(bytes), Hasher::new(bytes), vec![0; BLOCK]);
    loop {
        let read = reader.read(&mut block)?;
        if read == 0 {
            return Ok(hasher.finish());
        }
        let piece = block.get(..read).unwrap_or_default();
        hasher.update(piece);
        handle(piece)?;
    }
}
