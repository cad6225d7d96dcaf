//! The start of a CSV file: its delimiter, its header and its first rows.

use csv::{ByteRecord, ReaderBuilder};

use super::super::text_input::TextInput;
use super::header::{MAX_COMPARED_ROWS, RowShape, find_header};

/// Maximum number of rows from which the column types are detected.
const SAMPLE_ROWS: usize = 1_000;

/// Maximum number of rows from which the delimiter is detected.
const DELIMITER_ROWS: usize = 50;

/// Supported delimiters, the most common first.
const DELIMITERS: [u8; 4] = *b",;\t|";

/// The first rows of a table.
#[derive(Debug, Default)]
pub(super) struct Sample {
    /// Number of rows above the header.
    pub(super) rows_above: usize,
    /// Rows below the header.
    pub(super) rows: Vec<ByteRecord>,
    /// True if the table goes on behind these rows.
    pub(super) is_longer: bool,
}

impl Sample {
    /// Finds the header, and reads the rows below it that are complete in the start of a table.
    pub(super) fn read(text: &TextInput<'_>, delimiter: u8) -> Self {
        let mut rows: Vec<ByteRecord> = rows_of(text.head(), delimiter).take(SAMPLE_ROWS + 1).collect();
        // The last row may be cut, but a header is read from the file.
        if text.is_longer && (2..=SAMPLE_ROWS).contains(&rows.len()) && !text.head().ends_with(b"\n") {
            rows.pop();
        }
        let shape = |row: &ByteRecord| {
            let fields: Vec<_> = row.iter().map(String::from_utf8_lossy).collect();
            RowShape::from_fields(fields.iter().map(AsRef::as_ref))
        };
        let shapes: Vec<RowShape> = rows.iter().take(MAX_COMPARED_ROWS).map(shape).collect();
        let rows_above = find_header(&shapes);
        rows.drain(..rows.len().min(rows_above + 1));
        Self { rows_above, rows, is_longer: text.is_longer }
    }
}

/// Detects the delimiter. Also returns the number of bytes before the header that declare it: Excel reads `sep=;`
/// there.
pub(super) fn detect_delimiter(head: &[u8]) -> (u8, usize) {
    let first = head.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    if let [b's', b'e', b'p', b'=', delimiter] = first.trim_ascii_end()
        && DELIMITERS.contains(delimiter)
    {
        return (*delimiter, first.len());
    }
    if let b"sep=" = first.trim_ascii_end() {
        return (b'\t', first.len());
    }
    let lengths = DELIMITERS.map(|delimiter| (delimiter, lengths_of(head, delimiter)));
    // Score: the rows with as many fields as the first, then the number of fields. On a tie the most common delimiter wins.
    let score = |lengths: &[usize]| lengths.first().map_or((0, 0), |first| agreement(lengths, *first));
    let best = lengths.iter().rev().max_by_key(|(_, lengths)| score(lengths));
    if let Some((delimiter, lengths)) = best
        && score(lengths).0 * 2 >= lengths.len()
        && score(lengths).0 > 0
    {
        return (*delimiter, 0);
    }
    // Notes stand above the header, so that the rows below decide.
    let widest = |lengths: &[usize]| lengths.iter().map(|length| agreement(lengths, *length)).max();
    let best = lengths.iter().rev().max_by_key(|(_, lengths)| widest(lengths));
    (best.map_or(b',', |(delimiter, _)| *delimiter), 0)
}

/// Returns the number of rows with this number of fields, and that number; zeros for rows of one field.
fn agreement(lengths: &[usize], columns: usize) -> (usize, usize) {
    let agreeing = lengths.iter().filter(|length| **length == columns).count();
    if columns < 2 { (0, 0) } else { (agreeing, columns) }
}

fn lengths_of(head: &[u8], delimiter: u8) -> Vec<usize> {
    rows_of(head, delimiter).take(DELIMITER_ROWS).map(|row| row.len()).collect()
}

/// Parses the rows at the start of a table.
fn rows_of(head: &[u8], delimiter: u8) -> impl Iterator<Item = ByteRecord> {
    let table = ReaderBuilder::new().has_headers(false).flexible(true).delimiter(delimiter).from_reader(head);
    table.into_byte_records().map_while(Result::ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delimiter_gives_rows_of_equal_length() {
        for (head, expect) in [
            ("id,name\n1,Ann\n", b','),
            ("id;name\n1;Ann, B\n2;Bob\n", b';'),
            ("id;price\n1;2,50\n2;3,75\n", b';'),
            ("id\tname\n1\tAnn, B; C\n", b'\t'),
            ("a|b\n1|2\n", b'|'),
            ("name\nAnn\n", b','),
            ("id,note\n1,\"a;b\n;c;d\"\n2,x\n", b','),
            ("Notes\nMade by us\n\nid;name\n1;Ann\n", b';'),
            ("Some, if not all, are old\nid\tname\n1\tAnn\n2\tBob\n", b'\t'),
            ("", b','),
        ] {
            assert_eq!(char::from(detect_delimiter(head.as_bytes()).0), char::from(expect), "{head}");
        }
        assert_eq!(detect_delimiter(b"sep=;\r\nid;name\r\n"), (b';', 7));
    }

    #[test]
    fn rows_below_the_header_are_a_sample() {
        let read = |text: &str| {
            let text = TextInput::read(text.as_bytes(), std::path::Path::new("no/file")).unwrap();
            let sample = Sample::read(&text, b',');
            (sample.rows_above, sample.rows.len())
        };
        assert_eq!(read(""), (0, 0));
        assert_eq!(read("a,b"), (0, 0));
        assert_eq!(read("a,b\n1,2\n3,4\n"), (0, 2));
        assert_eq!(read("Title\n\na,b\n1,2\n3,4\n"), (1, 2));
        // The last row may be longer.
        assert_eq!(read("a,b\n1,2\n3,4"), (0, 1));
    }
}
