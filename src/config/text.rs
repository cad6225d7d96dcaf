//! Reading a configuration file with bounded time and memory.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use fetchwell_core::saturate::saturated;

use super::error::ConfigError;

/// Maximum size of a configuration file in bytes. A source takes about a hundred.
const MAX_BYTES: u64 = 1024 * 1024;

/// Reads the text of a configuration file.
///
/// # Errors
///
/// The file cannot be read, is not a regular file, is too large, or is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, ConfigError> {
    let unreadable = |problem: String| ConfigError::Unreadable { path: path.to_owned(), problem };
    let refused = |error: std::io::Error| unreadable(error.to_string());
    let metadata = fs::metadata(path).map_err(refused)?;
    if metadata.is_dir() {
        return Err(unreadable("it is a directory, not a file".to_owned()));
    }
    // Reading a pipe could block forever, and a device never ends.
    if !metadata.is_file() {
        return Err(unreadable("it is not a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(refused)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(refused)?;
    if saturated::<u64>(bytes.len()) > MAX_BYTES {
        return Err(unreadable(format!("it is larger than {MAX_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes().iter().take(good).filter(|byte| **byte == b'\n').count();
        unreadable(format!("it is not UTF-8 on line {line}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_not_text_or_too_large_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.yaml");
        let refused = |path: &Path| read_text(path).unwrap_err().to_string();
        assert!(refused(folder.path()).contains("it is a directory"));
        assert!(refused(&file).contains("cannot be read"));
        fs::write(&file, b"a: b\nc: \xff\n").unwrap();
        assert!(refused(&file).contains("it is not UTF-8 on line 2"));
        fs::write(&file, vec![b' '; 1024 * 1024 + 1]).unwrap();
        assert!(refused(&file).contains("larger than 1048576 bytes"));
        fs::write(&file, vec![b' '; 1024 * 1024]).unwrap();
        assert_eq!(read_text(&file).unwrap().len(), 1024 * 1024);
        #[cfg(unix)]
        assert!(refused(Path::new("/dev/zero")).contains("not a regular file"));
    }
}
