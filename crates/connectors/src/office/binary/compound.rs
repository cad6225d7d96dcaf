//! The streams of a compound file, within limits.

use std::io::{Cursor, Read};
use std::path::Path;

use super::super::super::skips::Problem;
use cfb::CompoundFile;

/// Start of a compound file.
const SIGNATURE: &[u8] = b"\xD0\xCF\x11\xE0";

/// Maximum size of a stream in bytes.
const MAX_STREAM_BYTES: u64 = 64 * 1024 * 1024;

/// Stream of a document in a newer format with a password.
const ENCRYPTED_PACKAGE: &str = "/EncryptedPackage";

/// Returns the problem of an encrypted document.
pub(super) fn encrypted() -> Problem {
    Problem::encrypted("it is encrypted; save it without a password")
}

/// Returns true if a file is a compound file.
pub(in super::super) fn is_compound_file(bytes: &[u8]) -> bool {
    bytes.starts_with(SIGNATURE)
}

/// An opened compound file. The crate checks that no chain of sectors and no storage is a cycle.
pub(super) struct Compound(CompoundFile<Cursor<Vec<u8>>>);

impl Compound {
    /// Opens a compound file.
    ///
    /// # Errors
    ///
    /// The file is damaged, or has an encrypted document.
    pub(super) fn open(bytes: Vec<u8>) -> Result<Self, Problem> {
        let file = open_compound(bytes)?;
        if file.is_stream(ENCRYPTED_PACKAGE) {
            return Err(encrypted());
        }
        Ok(Self(file))
    }

    /// Reads a stream of the root storage. Returns `None` if there is none.
    pub(super) fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, Problem> {
        let path = format!("/{name}");
        if !self.0.is_stream(&path) {
            return Ok(None);
        }
        read_stream(&mut self.0, Path::new(&path), MAX_STREAM_BYTES).map(Some)
    }
}

/// Opens a compound file in memory.
///
/// # Errors
///
/// It is damaged: among others, a chain of sectors or a storage leads back to itself.
pub(crate) fn open_compound<Bytes: AsRef<[u8]>>(
    bytes: Bytes,
) -> Result<CompoundFile<Cursor<Bytes>>, Problem> {
    CompoundFile::open(Cursor::new(bytes)).map_err(|error| broken(&error))
}

/// Reads a stream of at most this many bytes.
///
/// # Errors
///
/// The stream is missing, damaged or larger.
pub(crate) fn read_stream<Bytes: AsRef<[u8]>>(
    file: &mut CompoundFile<Cursor<Bytes>>,
    path: &Path,
    max_bytes: u64,
) -> Result<Vec<u8>, Problem> {
    let stream = file.open_stream(path).map_err(|error| broken(&error))?;
    if stream.len() > max_bytes {
        let name = path.file_name().unwrap_or_default().display();
        return Err(Problem::too_large(format!("its stream {name} is larger than {max_bytes} bytes")));
    }
    let mut bytes = Vec::new();
    stream.take(max_bytes).read_to_end(&mut bytes).map_err(|error| broken(&error))?;
    Ok(bytes)
}

fn broken(error: &std::io::Error) -> Problem {
    format!("its container is broken: {error}").into()
}
