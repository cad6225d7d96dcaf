//! A text file decoded to UTF-8, with its start buffered.
//!
//! UTF-16 and UTF-8 are detected by their byte order mark. Without one, a file with a start that is not UTF-8 is
//! decoded as Windows-1252, the superset of Latin-1 that programs write if they do not write Unicode.

use std::fmt;
use std::fs;
use std::io::{self, Cursor, Read};
use std::path::Path;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use encoding_rs_io::DecodeReaderBytesBuilder;

/// Maximum size of the start in bytes.
const MAX_HEAD_BYTES: usize = 256 * 1024;

/// A text file with its buffered start.
pub(crate) struct TextInput<'a> {
    head: Vec<u8>,
    /// True if the file may be longer than the start.
    pub(crate) is_longer: bool,
    reader: Box<dyn Read + 'a>,
}

impl fmt::Debug for TextInput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextInput").field("head", &self.head.len()).finish_non_exhaustive()
    }
}

impl<'a> TextInput<'a> {
    /// Reads the start of the file at a path. The start of a pipe, which may block, is the result of the first read.
    pub(crate) fn read(reader: impl Read + 'a, path: &Path) -> io::Result<Self> {
        let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
        Self::read_head(reader, is_file)
    }

    fn read_head(mut reader: impl Read + 'a, is_file: bool) -> io::Result<Self> {
        let mut raw = vec![0; MAX_HEAD_BYTES];
        let mut len = 0;
        let is_longer = loop {
            let room = raw.get_mut(len..).unwrap_or_default();
            let count = if room.is_empty() { break true } else { reader.read(room)? };
            len += count;
            if count == 0 || !is_file {
                break count > 0;
            }
        };
        raw.truncate(len);
        let encoding = detect_encoding(&raw, is_longer);
        if let Some((_, mark)) = Encoding::for_bom(&raw) {
            raw.drain(..mark);
        }
        let mut decoder = DecodeReaderBytesBuilder::new();
        decoder.encoding(encoding).bom_sniffing(false);
        let mut head = Vec::new();
        decoder.build(raw.as_slice()).read_to_end(&mut head)?;
        let reader = Box::new(decoder.build(Cursor::new(raw).chain(reader)));
        Ok(Self { head, is_longer, reader })
    }

    /// Returns the start of the file, which may end within a character.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Skips the first bytes of the file.
    pub(crate) fn skip(&mut self, bytes: usize) -> io::Result<()> {
        self.head.drain(..bytes.min(self.head.len()));
        io::copy(&mut self.reader.by_ref().take(bytes as u64), &mut io::sink())?;
        Ok(())
    }

    /// Returns a reader of the whole file.
    pub(crate) fn into_reader(self) -> impl Read + 'a {
        self.reader
    }
}

/// Detects the encoding of a file from its start. Returns `None` for UTF-8, which is not decoded, so that invalid
/// bytes are reported.
fn detect_encoding(head: &[u8], is_longer: bool) -> Option<&'static Encoding> {
    if let Some((encoding, _)) = Encoding::for_bom(head) {
        return (encoding != UTF_8).then_some(encoding);
    }
    match std::str::from_utf8(head) {
        Ok(_) => None,
        // A character is cut at the end of the start.
        Err(error) if error.error_len().is_none() && is_longer => None,
        Err(_not_utf8) => Some(WINDOWS_1252),
    }
}

/// Returns a field as text. A field that is not UTF-8 is decoded as Windows-1252 if the file is ASCII up to it.
pub(crate) fn field_text(field: &[u8], is_ascii: bool) -> Option<String> {
    match std::str::from_utf8(field) {
        Ok(text) => Some(text.to_owned()),
        Err(_not_utf8) => is_ascii.then(|| WINDOWS_1252.decode_without_bom_handling(field).0.into_owned()),
    }
}

/// Decodes a whole file. Returns `None` for one that is no text: it has a NUL character.
pub(crate) fn decode(bytes: Vec<u8>) -> Option<String> {
    let bom = Encoding::for_bom(&bytes);
    let text = match detect_encoding(&bytes, false) {
        None => {
            let mut text = String::from_utf8(bytes).ok()?;
            text.drain(..bom.map_or(0, |(_, mark)| mark));
            text
        }
        Some(encoding) => encoding.decode_with_bom_removal(&bytes).0.into_owned(),
    };
    (!text.contains('\0')).then_some(text)
}

/// Maximum bytes of a document in which the name of its encoding is looked for.
const MAX_DECLARATION_BYTES: usize = 1_024;

/// Decodes a whole document in the encoding that it declares: `<?xml encoding="...">` or `<meta charset="...">`. One
/// with a byte order mark, in UTF-8 or without a declaration is decoded by [`decode`].
pub(crate) fn decode_declared(bytes: Vec<u8>) -> Option<String> {
    let is_detected = Encoding::for_bom(&bytes).is_some() || std::str::from_utf8(&bytes).is_ok();
    match declared_encoding(&bytes).filter(|_| !is_detected) {
        Some(encoding) => {
            let text = encoding.decode_without_bom_handling(&bytes).0.into_owned();
            (!text.contains('\0')).then_some(text)
        }
        None => decode(bytes),
    }
}

/// Returns the encoding that a document names. UTF-8 and UTF-16 are none: its bytes are neither.
fn declared_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = bytes.get(..MAX_DECLARATION_BYTES).unwrap_or(bytes).to_ascii_lowercase();
    let start = String::from_utf8_lossy(&start);
    let mark = if start.trim_start().starts_with("<?xml") { "encoding=" } else { "charset=" };
    let (_, after) = start.split_once(mark)?;
    let name = after.trim_start_matches(['"', '\'']);
    let name = name.split(['"', '\'', ' ', ';', '>', '/', '?']).next()?;
    let encoding = Encoding::for_label(name.as_bytes())?;
    (encoding.is_ascii_compatible() && encoding != UTF_8).then_some(encoding)
}

/// Returns the encoding of a code page of Windows, or `None` for one that is not known.
pub(crate) fn encoding_of_code_page(page: u32) -> Option<&'static Encoding> {
    let label = match page {
        866 => "ibm866",
        932 => "shift_jis",
        936 | 54_936 => "gb18030",
        949 | 51_949 => "euc-kr",
        950 => "big5",
        10_000 => "macintosh",
        10_007 => "x-mac-cyrillic",
        20_127 | 28_591 => "windows-1252",
        20_866 => "koi8-r",
        21_866 => "koi8-u",
        20_932 | 51_932 => "euc-jp",
        50_220..=50_222 => "iso-2022-jp",
        65_001 => "utf-8",
        28_592..=28_606 => return Encoding::for_label(format!("iso-8859-{}", page - 28_590).as_bytes()),
        874 | 1_250..=1_258 => return Encoding::for_label(format!("windows-{page}").as_bytes()),
        _ => return None,
    };
    Encoding::for_label(label.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expect: &str) {
        let mut read = String::new();
        TextInput::read_head(bytes, true).unwrap().into_reader().read_to_string(&mut read).unwrap();
        assert!(read == expect, "{:?}", read.chars().take(40).collect::<String>());
    }

    #[test]
    fn files_are_read_in_their_encoding() {
        check("id,René €\n".as_bytes(), "id,René €\n");
        check("\u{FEFF}id,René\n".as_bytes(), "id,René\n");
        check(b"id,Ren\xE9 \x80\n", "id,René €\n");
        let utf16: Vec<u8> = "\u{FEFF}id,René\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        check(&utf16, "id,René\n");
        let utf16: Vec<u8> = "\u{FEFF}id,René\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
        check(&utf16, "id,René\n");
        check(b"", "");
    }

    #[test]
    fn documents_are_read_in_the_encoding_they_declare() {
        for (start, name, text) in [
            ("<?xml version='1.0' encoding='NAME'?>", "Shift_JIS", "日本"),
            ("<?xml version=\"1.0\" encoding=\"NAME\"?>", "EUC-KR", "년"),
            ("<!doctype html><meta charset=NAME>", "windows-1251", "Привет"),
            ("<html><meta http-equiv=Content-Type content='text/html; charset=NAME'>", "gb2312", "漫画"),
            ("<?xml version='1.0' encoding='NAME'?>", "utf-8", "é"),
            ("<meta charset='NAME'>", "no-such-encoding", "é"),
        ] {
            let encoding = Encoding::for_label(name.as_bytes()).unwrap_or(WINDOWS_1252);
            let encoding = if encoding == UTF_8 { WINDOWS_1252 } else { encoding };
            let (start, body) = (start.replace("NAME", name), encoding.encode(text).0);
            let read = decode_declared([start.as_bytes(), &body].concat());
            assert_eq!(read, Some(format!("{start}{text}")), "{name}");
        }
        let utf8 = "<?xml encoding='Shift_JIS'?>年".as_bytes().to_vec();
        assert_eq!(decode_declared(utf8).unwrap(), "<?xml encoding='Shift_JIS'?>年");
    }

    #[test]
    fn a_long_file_is_read_whole() {
        for word in ["é", "xé", "€"] {
            let long = word.repeat(200_000);
            check(long.as_bytes(), &long);
            let latin: Vec<u8> = long
                .chars()
                .map(|c| {
                    if c == 'é' {
                        0xE9
                    } else if c == '€' {
                        0x80
                    } else {
                        b'x'
                    }
                })
                .collect();
            check(&latin, &long);
        }
    }

    #[test]
    fn the_start_of_a_pipe_is_its_first_read() {
        let pipe = (&b"id\n1\n"[..]).chain(&b"2\n"[..]);
        let mut input = TextInput::read_head(pipe, false).unwrap();
        assert_eq!((input.head(), input.is_longer), (&b"id\n1\n"[..], true));
        input.skip(3).unwrap();
        let mut read = String::new();
        input.into_reader().read_to_string(&mut read).unwrap();
        assert_eq!(read, "1\n2\n");
    }

    #[test]
    fn a_field_after_ascii_may_be_latin_1() {
        assert_eq!(field_text(b"Ren\xE9", true).as_deref(), Some("René"));
        assert_eq!(field_text(b"Ren\xE9", false), None);
    }

    #[test]
    fn code_pages_have_encodings() {
        for (page, expect) in [
            (1_252, "windows-1252"),
            (28_605, "ISO-8859-15"),
            (932, "Shift_JIS"),
            (874, "windows-874"),
            (65_001, "UTF-8"),
        ] {
            assert_eq!(encoding_of_code_page(page).map(Encoding::name), Some(expect));
        }
        assert_eq!(encoding_of_code_page(437), None);
    }
}
