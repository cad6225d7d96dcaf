//! Texts in the character set that their bytes are in, where a part declares a wrong one or none.
//!
//! Programs often declare `us-ascii` or `iso-8859-1` for text in UTF-8. Text in another character set is almost never
//! valid UTF-8: in UTF-8 each byte above 127 belongs to a sequence of a leading byte and continuing bytes, in the others
//! any of them may follow any. `is_utf8` says from which number of sequences on this is no coincidence.

use std::borrow::Cow;

use encoding_rs::{Encoding, WINDOWS_1252};
use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use mail_parser::{Encoding as TransferEncoding, Message, MessagePart, MimeHeaders, PartType};

use super::super::text_input;

/// Number of sequences from which a text of a single-byte character set is not valid UTF-8 by coincidence. Fewer may be
/// a capital letter before a sign, as in `CAFÉ®`.
const MIN_SEQUENCES: usize = 4;

/// The same for East Asian character sets with two bytes a character: up to a fifth of their characters is also a valid
/// sequence.
const MIN_SEQUENCES_OF_PAIRS: usize = 8;

/// The bytes that the declared character set of a text can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Charset {
    /// UTF-8, an unknown character set, or none. The parser reads these as UTF-8.
    Utf8,
    /// ASCII, or one that encodes other characters in ASCII. It has no byte above 127.
    SevenBit,
    /// A byte for each character.
    SingleByte {
        /// True for ISO 8859: the bytes from 128 to 159 are control characters, which no text contains.
        is_iso: bool,
    },
    /// Mostly two bytes for each character beyond ASCII.
    MultiByte,
    /// UTF-16, in which each character of ASCII has a zero byte.
    Wide,
}

impl Charset {
    fn from_name(name: &str) -> Self {
        let name = name.trim().to_ascii_lowercase();
        if charset_decoder(name.as_bytes()).is_none() || name.is_empty() {
            return Self::Utf8;
        }
        let is_ascii = name.contains("ascii") || name.contains("x3.4");
        if is_ascii
            || ["iso-2022", "iso2022", "csiso2022", "utf-7", "csutf7", "hz-"]
                .iter()
                .any(|start| name.starts_with(start))
        {
            return Self::SevenBit;
        }
        if ["utf-16", "csutf16", "ucs", "unicode", "csunicode", "iso-10646"]
            .iter()
            .any(|start| name.starts_with(start))
        {
            return Self::Wide;
        }
        match Encoding::for_label(name.as_bytes()) {
            Some(encoding) if !encoding.is_single_byte() => Self::MultiByte,
            // Those that only the parser knows, such as `ibm850`, have a byte for each character.
            _ => Self::SingleByte { is_iso: name.contains("8859") || name.starts_with("latin") },
        }
    }
}

/// Returns the text of a part with text, or the markup of one with HTML.
pub(super) fn decoded<'a>(message: &'a Message<'_>, part: &'a MessagePart<'_>) -> Option<Cow<'a, str>> {
    let (PartType::Text(text) | PartType::Html(text)) = &part.body else { return None };
    // In every character set text is read as ASCII only if it is ASCII.
    if text.is_ascii() {
        return Some(Cow::Borrowed(&**text));
    }
    let declared = part.content_type().and_then(|content_type| content_type.attribute("charset"));
    let charset = Charset::from_name(declared.unwrap_or_default());
    if charset == Charset::Utf8 && !text.contains(char::REPLACEMENT_CHARACTER) {
        return Some(Cow::Borrowed(&**text));
    }
    let is_html = matches!(part.body, PartType::Html(_));
    let bytes = body_bytes(message, part);
    Some(
        bytes
            .and_then(|bytes| corrected(bytes, text, charset, is_html))
            .map_or(Cow::Borrowed(&**text), Cow::Owned),
    )
}

/// Returns the decoded bytes of a part.
pub(super) fn body_bytes<'a>(message: &'a Message<'_>, part: &MessagePart<'_>) -> Option<Cow<'a, [u8]>> {
    let (start, end) = (usize::try_from(part.offset_body).ok()?, usize::try_from(part.offset_end).ok()?);
    let raw = message.raw_message.get(start..end)?;
    match part.encoding {
        TransferEncoding::None => Some(Cow::Borrowed(raw)),
        TransferEncoding::QuotedPrintable => quoted_printable_decode(raw).map(Cow::Owned),
        TransferEncoding::Base64 => base64_decode(raw).map(Cow::Owned),
    }
}

/// Returns the text in another character set than the declared one, or `None` if the declared one is as good.
fn corrected(bytes: Cow<'_, [u8]>, text: &str, charset: Charset, is_html: bool) -> Option<String> {
    // Only UTF-16 can be ASCII by mistake: UTF-7 and ISO 2022 write every character in ASCII.
    if bytes.is_ascii() && charset != Charset::Wide {
        return None;
    }
    if let Ok(utf8) = std::str::from_utf8(&bytes) {
        return is_utf8(utf8, text, charset).then(|| utf8.to_owned());
    }
    let beyond_ascii = text.chars().filter(|character| !character.is_ascii());
    let (mut wrong, mut right) = (0_usize, 0_usize);
    for character in beyond_ascii {
        *(if character == char::REPLACEMENT_CHARACTER { &mut wrong } else { &mut right }) += 1;
    }
    // A damaged text in UTF-8 has more characters than wrong bytes.
    let is_none = charset == Charset::Utf8 && wrong > right || charset == Charset::SevenBit && is_html;
    is_none.then_some(())?;
    if is_html {
        return text_input::decode_declared(bytes.into_owned());
    }
    match Encoding::for_bom(&bytes) {
        Some(_) => text_input::decode(bytes.into_owned()),
        None => Some(decode_mixed(&bytes)),
    }
}

/// Decodes a text with characters in UTF-8 and in Windows-1252: programs join quotations without decoding them.
fn decode_mixed(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.push_str(&WINDOWS_1252.decode_without_bom_handling(chunk.invalid()).0);
    }
    text
}

/// Returns true if bytes that are valid UTF-8 are not text in the declared character set. `declared` is that text.
fn is_utf8(utf8: &str, declared: &str, charset: Charset) -> bool {
    let beyond_ascii = || utf8.chars().filter(|character| !character.is_ascii());
    match charset {
        Charset::Utf8 | Charset::SevenBit => true,
        Charset::SingleByte { is_iso } => {
            is_iso && utf8.bytes().any(|byte| (0x80..0xA0).contains(&byte))
                || beyond_ascii().nth(MIN_SEQUENCES - 1).is_some()
                || beyond_ascii().all(is_common)
        }
        Charset::MultiByte => {
            declared.contains(char::REPLACEMENT_CHARACTER)
                || beyond_ascii().nth(MIN_SEQUENCES_OF_PAIRS - 1).is_some()
        }
        Charset::Wide => !utf8.contains('\0'),
    }
}

/// Returns true for a letter of Latin-1 and for the characters of three and four bytes, such as quotation marks. As a
/// text of another character set, their bytes have no meaning.
fn is_common(character: char) -> bool {
    matches!(character, '\u{A0}'..='\u{FF}' | '\u{800}'..)
}

/// Returns true if the bytes of an encoded word of a header are UTF-8 and not text in the declared character set.
pub(super) fn is_utf8_word(bytes: &[u8], name: &str) -> bool {
    let charset = Charset::from_name(name);
    let Ok(utf8) = std::str::from_utf8(bytes) else { return false };
    let declared = charset_decoder(name.to_ascii_lowercase().as_bytes()).map(|decode| decode(bytes));
    charset != Charset::Utf8 && !utf8.is_ascii() && is_utf8(utf8, &declared.unwrap_or_default(), charset)
}

#[cfg(test)]
mod tests {
    use mail_parser::MessageParser;

    use super::*;

    /// Checks the text of a message with these bytes and header.
    #[track_caller]
    fn check(content_type: &str, bytes: &[u8], expect: &str) {
        let head = format!("Subject: x\n{content_type}Content-Transfer-Encoding: 8bit\n\n");
        let raw = [head.as_bytes(), bytes].concat();
        let message = MessageParser::default().parse(&raw).unwrap();
        assert_eq!(decoded(&message, message.root_part()).unwrap(), expect, "{content_type}");
        let printable = bytes.iter().map(|byte| format!("={byte:02X}")).collect::<String>();
        let raw =
            format!("Subject: x\n{content_type}Content-Transfer-Encoding: quoted-printable\n\n{printable}");
        let message = MessageParser::default().parse(&raw).unwrap();
        assert_eq!(decoded(&message, message.root_part()).unwrap(), expect, "{content_type} {printable}");
    }

    fn plain(charset: &str) -> String {
        format!("Content-Type: text/plain; charset={charset}\n")
    }

    #[test]
    fn utf8_beats_a_charset_that_cannot_hold_it() {
        let german = "Die Größe der Tür beträgt zwölf.";
        for charset in [
            "us-ascii",
            "US-ASCII",
            "ansi_x3.4-1968",
            "iso-8859-1",
            "ISO-8859-15",
            "windows-1252",
            "latin1",
            "unknown-8bit",
            "utf-8",
            "iso-2022-jp",
            "utf-7",
            "utf-16",
            "gbk",
            "big5",
            "koi8-r",
            "ibm850",
        ] {
            check(&plain(charset), format!("{german} {german}").as_bytes(), &format!("{german} {german}"));
        }
        check("", german.as_bytes(), german);
        for (charset, text) in [
            ("iso-8859-1", "café"),
            ("iso-8859-1", "it’s"),
            ("iso-8859-2", "ł"),
            ("windows-1251", "Привет"),
            ("windows-1252", "5 €"),
            ("gb2312", "你好，世界，你好，世界"),
            ("euc-kr", "안녕하세요"),
        ] {
            check(&plain(charset), text.as_bytes(), text);
        }
    }

    #[test]
    fn text_of_other_charsets_stays() {
        for (charset, text) in [
            ("iso-8859-1", "Größe, ÀÉÎ, «CAFÉ», naïve"),
            ("windows-1252", "CAFÉ® costs 5 € – “quoted”"),
            ("windows-1252", "Gruß\u{A0}"),
            ("iso-8859-2", "Zażółć gęślą jaźń"),
            ("windows-1251", "Привет, мир"),
            ("windows-1251", "Їжа"),
            ("koi8-r", "Привет, ёж"),
            ("iso-8859-7", "Γειά σου Κόσμε"),
            ("windows-1253", "Ά"),
            ("iso-8859-8", "שלום"),
            ("windows-1256", "مرحبا بالعالم؟"),
            ("windows-874", "เกม"),
            ("gbk", "联通"),
            ("gb2312", "你好"),
            ("big5", "你好，世界"),
            ("shift_jis", "テスト、ﾃｽﾄ"),
            ("euc-jp", "ハロー・ワールド"),
            ("euc-kr", "안녕하세요 세계"),
        ] {
            let encoding = Encoding::for_label(charset.as_bytes()).unwrap();
            let (bytes, _, is_lossy) = encoding.encode(text);
            assert!(!is_lossy, "{charset}");
            check(&plain(charset), &bytes, text);
        }
        check(&plain("utf-7"), b"Gr+APYA3w-e", "Größe");
        check(&plain("iso-2022-jp"), b"\x1B$B%O%m!<\x1B(B", "ハロー");
        let wide: Vec<u8> = "Größe\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
        check(&plain("utf-16be"), &wide, "Größe\n");
        check(&plain("utf-16"), b"plain words\n", "plain words\n");
    }

    #[test]
    fn text_without_a_charset_that_is_not_utf8_is_windows_1252_or_what_html_declares() {
        check("", b"Ren\xE9 \x80", "René €");
        check(&plain("utf-8"), b"Ren\xE9 \x80", "René €");
        check(
            "",
            "Zoë, ".as_bytes().iter().chain(b"Ren\xE9, Zo\xEB").copied().collect::<Vec<_>>().as_slice(),
            "Zoë, René, Zoë",
        );
        // A text in UTF-8 with a damaged byte.
        let damaged = ["Größe für Zoë ".as_bytes(), b"\xFF"].concat();
        check(&plain("utf-8"), &damaged, "Größe für Zoë \u{FFFD}");
        let html = "<meta charset=windows-1251><p>Выхухоль";
        let bytes = encoding_rs::WINDOWS_1251.encode(html).0;
        for charset in ["", "; charset=us-ascii", "; charset=utf-8"] {
            check(&format!("Content-Type: text/html{charset}\n"), &bytes, html);
        }
    }
}
