//! A reader of an export without the content of attached files: the text of `data` elements, which can be longer than
//! memory should hold.

use std::io::{self, Read};

/// Start and end of the content of a file.
const START: &[u8] = b"<data";
const END: &[u8] = b"</data>";

/// Size of one read in bytes.
const CHUNK_BYTES: usize = 64 * 1024;

/// Reader that leaves out the text of `data` elements.
pub(super) struct WithoutResources<R> {
    reader: R,
    /// Bytes that were read and not examined.
    unread: Vec<u8>,
    /// Bytes to return.
    ready: Vec<u8>,
    /// Number of those that were returned.
    returned: usize,
    is_in_data: bool,
    is_at_end: bool,
}

impl<R: Read> WithoutResources<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            unread: Vec::new(),
            ready: Vec::new(),
            returned: 0,
            is_in_data: false,
            is_at_end: false,
        }
    }

    /// Reads a chunk and examines it.
    fn advance(&mut self) -> io::Result<()> {
        let mut chunk = std::mem::take(&mut self.unread);
        self.is_at_end = self.reader.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut chunk)? == 0;
        let mut rest = chunk.as_slice();
        // End of the bytes that were searched for the end of a tag in vain.
        let mut searched = 0;
        loop {
            let mark = if self.is_in_data { END } else { START };
            let found = rest.windows(mark.len()).position(|window| window == mark);
            // The start of the mark may be at the end of what was read.
            let open_end = if self.is_at_end { 0 } else { mark.len() - 1 };
            let end = found.unwrap_or_else(|| rest.len().saturating_sub(open_end));
            let passed = take(&mut rest, end);
            if !self.is_in_data {
                self.ready.extend_from_slice(passed);
            }
            if found.is_none() {
                break;
            }
            if self.is_in_data {
                // The tags are kept.
                self.ready.extend_from_slice(take(&mut rest, END.len()));
                self.is_in_data = false;
                continue;
            }
            let at = chunk.len() - rest.len();
            let (from, to) = (searched.max(at), chunk.len().min(at + CHUNK_BYTES));
            let close = chunk.get(from..to).unwrap_or_default().iter().position(|byte| *byte == b'>');
            let Some(close) = close.map(|close| close + from - at) else {
                searched = to;
                // The tag ends in the next chunk, or is none.
                if self.is_at_end || rest.len() >= CHUNK_BYTES {
                    self.ready.extend_from_slice(take(&mut rest, START.len()));
                    continue;
                }
                break;
            };
            let tag = take(&mut rest, close + 1);
            let next = tag.get(START.len());
            let is_data = next.is_some_and(|next| next.is_ascii_whitespace() || *next == b'>');
            self.is_in_data = is_data && !tag.ends_with(b"/>");
            self.ready.extend_from_slice(tag);
        }
        self.unread = rest.to_vec();
        Ok(())
    }
}

/// Returns the first bytes of a slice and moves it past them.
fn take<'a>(rest: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (first, others) = rest.split_at_checked(count).unwrap_or((*rest, &[]));
    *rest = others;
    first
}

impl<R: Read> Read for WithoutResources<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.returned >= self.ready.len() {
            self.ready.clear();
            self.returned = 0;
            if self.is_at_end {
                return Ok(0);
            }
            self.advance()?;
        }
        let count = self.ready.get(self.returned..).unwrap_or_default().read(buffer)?;
        self.returned += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader of a few bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(buffer.len()).min(self.0.len());
            self.0.read(&mut buffer[..length])
        }
    }

    #[test]
    fn the_content_of_files_is_left_out() {
        let long = format!("<a><data encoding=\"base64\">{}</data>b</a>", "QUJD".repeat(100_000));
        for (xml, expect) in [
            (long.as_str(), "<a><data encoding=\"base64\"></data>b</a>"),
            ("<data>x</data>y<data>z</data>", "<data></data>y<data></data>"),
            ("<data/>x<database>y</database>", "<data/>x<database>y</database>"),
            ("a<data>cut", "a<data>"),
            ("a<dat", "a<dat"),
            ("a<data", "a<data"),
            ("", ""),
        ] {
            for size in [1, 7, 100_000] {
                let mut read = String::new();
                WithoutResources::new(Slow(xml.as_bytes(), size)).read_to_string(&mut read).unwrap();
                assert_eq!(read, expect, "{size}");
            }
        }
        let open = format!("{}<data x>y</data>", "<data ".repeat(20_000));
        let mut read = String::new();
        WithoutResources::new(open.as_bytes()).read_to_string(&mut read).unwrap();
        assert_eq!(read, open.replace('y', ""));
    }

    #[test]
    fn tags_without_an_end_take_linear_time() {
        crate::measured::assert_linear(20_000, &|count| {
            let open = "<data".repeat(count);
            let mut read = String::new();
            WithoutResources::new(open.as_bytes()).read_to_string(&mut read).unwrap();
            assert_eq!(read, open);
        });
    }
}
