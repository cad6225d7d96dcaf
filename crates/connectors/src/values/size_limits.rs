//! Limits for the sizes of the rows that a file expands to.
//!
//! A spreadsheet repeats texts, rows and cells by reference, and a table of a database has names and default values
//! that its rows do not contain, so that a small file can have any number of bytes.

/// Maximum size of a row in bytes, with the names of its columns.
pub(crate) const MAX_ROW_BYTES: usize = 64 * 1024 * 1024;

/// Maximum size of all rows of a file in bytes, unless the file itself is large.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// Maximum ratio of the size of all rows to the size of the file.
const MAX_RATIO: u64 = 100;

/// Bytes that each row counts besides its names and values.
const ROW_BYTES: u64 = 64;

/// The limits of one file, with the bytes that are left.
#[derive(Debug)]
pub(crate) struct SizeLimits {
    max: u64,
    left: u64,
}

impl SizeLimits {
    /// Creates the limits of a file of this size.
    pub(crate) fn new(file_bytes: u64) -> Self {
        let max = file_bytes.saturating_mul(MAX_RATIO).max(MAX_FILE_BYTES);
        Self { max, left: max }
    }

    /// Counts a row before it is copied. Its size is that of its names and values.
    ///
    /// # Errors
    ///
    /// The row, or all rows of the file together, are too large.
    pub(crate) fn take_row(&mut self, bytes: usize) -> Result<(), String> {
        check_row(bytes)?;
        let left = self.left.checked_sub(ROW_BYTES.saturating_add(bytes as u64));
        self.left = left.unwrap_or(0);
        left.map(drop).ok_or_else(|| format!("its rows have more than {} bytes together", self.max))
    }
}

/// Checks the size of a row.
pub(crate) fn check_row(bytes: usize) -> Result<(), String> {
    if bytes > MAX_ROW_BYTES {
        return Err(format!("a row has more than {MAX_ROW_BYTES} bytes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_files_have_limits() {
        let mut limits = SizeLimits::new(1);
        assert!(
            limits.take_row(MAX_ROW_BYTES + 1).unwrap_err().contains("a row has more than 67108864 bytes")
        );
        for _ in 0..3 {
            limits.take_row(MAX_ROW_BYTES).unwrap();
        }
        let ended = limits.take_row(MAX_ROW_BYTES).unwrap_err();
        assert!(ended.contains("its rows have more than 268435456 bytes together"), "{ended}");
        assert!(limits.take_row(0).is_err());
    }

    #[test]
    fn empty_rows_count_and_large_files_have_more() {
        let mut limits = SizeLimits::new(0);
        let rows = (0..).take_while(|_row| limits.take_row(0).is_ok()).count();
        assert_eq!(rows as u64, MAX_FILE_BYTES / ROW_BYTES);
        assert_eq!(SizeLimits::new(1 << 30).left, 100 << 30);
        assert_eq!(SizeLimits::new(u64::MAX).left, u64::MAX);
    }
}
