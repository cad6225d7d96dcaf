//! The text of all pages of a PDF document.

use encoding_rs::{UTF_16BE, WINDOWS_1252};
use hayro_syntax::object::DateTime;
use hayro_syntax::{DecryptionError, LoadPdfError, Pdf};
use serde::{Deserialize, Serialize};

use super::super::recognition::PdfPage;
use super::super::skips::{Problem, SkipReason};
use super::layout::PageText;
use super::page::PageReader;
use super::words::join_divided_words;

/// Maximum number of pages.
const MAX_PAGES: usize = 20_000;

/// Maximum size of the text in bytes.
const MAX_TEXT_BYTES: usize = 32 * 1024 * 1024;

/// Number of bytes at the end of a file in which its end is searched for.
const END_BYTES: usize = 4 * 1024;

/// The properties and the text of a document.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PdfText {
    /// Title in the properties.
    pub title: String,
    /// Largest text of the first page, or an empty text.
    #[serde(default)]
    pub heading: String,
    /// Author in the properties.
    pub author: String,
    /// Subject in the properties.
    pub subject: String,
    /// Keywords in the properties.
    pub keywords: String,
    /// Time of creation in RFC 3339.
    pub created: String,
    /// Time of the last change in RFC 3339.
    pub modified: String,
    /// Number of pages.
    pub pages: usize,
    /// Texts of the pages, in their order. That of a page without text is empty.
    pub texts: Vec<String>,
    /// Reason why no page has a text, if none has.
    pub problem: Option<Problem>,
    /// Pages without a text that may show one: those with a picture or with characters that are not known, and all pages of a
    /// document in which none has a text.
    pub(crate) unread: Vec<PdfPage>,
}

impl PdfText {
    /// Returns the text of all pages, each after an empty line.
    #[must_use]
    pub fn text(&self) -> String {
        let texts: Vec<&str> =
            self.texts.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
        join_divided_words(&texts.join("\n\n"))
    }
}

/// Reads a document.
///
/// # Errors
///
/// The text says why it cannot be read: it is encrypted, broken or too long.
pub fn extract_pdf(bytes: Vec<u8>) -> Result<PdfText, Problem> {
    let has_end = has_end(&bytes);
    let pdf = Pdf::new(bytes).map_err(|error| match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => {
            Problem::encrypted("it is encrypted: it needs a password")
        }
        LoadPdfError::Decryption(_) => Problem::encrypted("it is encrypted in an unknown way"),
        LoadPdfError::Invalid => "it is no complete PDF document".into(),
    })?;
    let pages = pdf.pages();
    if pages.len() > MAX_PAGES {
        return Err(Problem::too_large(format!("it has more than {MAX_PAGES} pages")));
    }
    let metadata = pdf.metadata();
    let mut document = PdfText {
        title: text_string(metadata.title.as_deref()),
        heading: String::new(),
        author: text_string(metadata.author.as_deref()),
        subject: text_string(metadata.subject.as_deref()),
        keywords: text_string(metadata.keywords.as_deref()),
        created: metadata.creation_date.as_ref().map(rfc3339).unwrap_or_default(),
        modified: metadata.modification_date.as_ref().map(rfc3339).unwrap_or_default(),
        pages: pages.len(),
        texts: Vec::with_capacity(pages.len()),
        problem: None,
        unread: Vec::new(),
    };
    let mut reader = PageReader::default();
    let (mut bytes, mut pages_without) = (0, Vec::new());
    for (number, page) in (1..).zip(pages.iter()) {
        let PageText { text, heading } = reader.read(page)?;
        if text.is_empty() {
            let (width, height) = page.render_dimensions();
            let page = PdfPage { number, width: width.into(), height: height.into() };
            pages_without.push((page, reader.may_show_text));
        } else if bytes == 0 {
            document.heading = heading;
        }
        bytes += text.len();
        document.texts.push(text);
        if bytes > MAX_TEXT_BYTES {
            return Err(Problem::too_large(format!("its text is longer than {MAX_TEXT_BYTES} bytes")));
        }
    }
    let unread = pages_without.into_iter().filter(|(_, may_show_text)| *may_show_text || bytes == 0);
    document.unread = unread.map(|(page, _)| page).collect();
    document.problem = (bytes == 0).then(|| empty_document(document.pages, &reader, has_end));
    Ok(document)
}

/// Returns the reason why a document has no text.
fn empty_document(pages: usize, reader: &PageReader, has_end: bool) -> Problem {
    let pages = if pages == 1 { "1 page".to_owned() } else { format!("{pages} pages") };
    if reader.has_unmapped_text {
        let reason = match &reader.unknown_cmap {
            Some(name) => format!("its fonts need the CMap {name}, which is broken or not known"),
            None => "its fonts do not say which characters they show".to_owned(),
        };
        let text = format!(
            "the text on its {pages} cannot be read: {reason}; print it to a new PDF file, or export it from its program again"
        );
        return Problem::new(SkipReason::NoText, text);
    }
    let (class, reason) = if has_end {
        (SkipReason::NoText, "")
    } else {
        (SkipReason::Damaged, "; the end of the file is missing, so it is damaged or incomplete")
    };
    Problem::new(class, format!("it has no text layer on its {pages}{reason}"))
}

/// Returns true if a document ends as it should: with the position of its table of references.
fn has_end(bytes: &[u8]) -> bool {
    const MARK: &[u8] = b"startxref";
    let end = bytes.get(bytes.len().saturating_sub(END_BYTES)..).unwrap_or_default();
    end.windows(MARK.len()).any(|window| window == MARK)
}

/// Decodes a text of the properties: UTF-16 or UTF-8 with a byte order mark, or an encoding close to Windows-1252.
fn text_string(bytes: Option<&[u8]>) -> String {
    let bytes = bytes.unwrap_or_default();
    let text = match bytes {
        [0xFE, 0xFF, rest @ ..] => UTF_16BE.decode_without_bom_handling(rest).0,
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8_lossy(rest),
        _ => WINDOWS_1252.decode_without_bom_handling(bytes).0,
    };
    text.chars().filter(|character| !character.is_control()).collect()
}

fn rfc3339(time: &DateTime) -> String {
    let DateTime { year, month, day, hour, minute, second, utc_offset_hour, utc_offset_minute } = *time;
    let sign = if utc_offset_hour < 0 { '-' } else { '+' };
    let hours = utc_offset_hour.unsigned_abs();
    let is_utc = hours == 0 && utc_offset_minute == 0;
    let zone = if is_utc { "Z".to_owned() } else { format!("{sign}{hours:02}:{utc_offset_minute:02}") };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{zone}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a document of one page with this content. Its table of references is missing, as in damaged files.
    fn pdf(content: &str, font: &str) -> Vec<u8> {
        format!(
            "%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n\
             2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n\
             3 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>\nendobj\n\
             4 0 obj\n<</Length {}>>\nstream\n{content}\nendstream\nendobj\n\
             5 0 obj\n{font}\nendobj\n\
             6 0 obj\n<</Title(A title)/CreationDate(D:20260401100000+02'00')>>\nendobj\n\
             trailer\n<</Root 1 0 R/Info 6 0 R>>\n",
            content.len()
        )
        .into_bytes()
    }

    const HELVETICA: &str = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>";

    #[track_caller]
    fn check(content: &str, font: &str, expect: &str) {
        assert_eq!(extract_pdf(pdf(content, font)).unwrap().text(), expect);
    }

    #[test]
    fn lines_and_spaces_follow_positions() {
        check("BT /F1 12 Tf 50 700 Td (Hello) Tj 0 -14 Td (World) Tj ET", HELVETICA, "Hello\nWorld");
        check("BT /F1 12 Tf 50 700 Td [(Hel)10(lo)-400(World)] TJ ET", HELVETICA, "Hello World");
        check("BT /F1 12 Tf 50 700 Td (A) Tj ET BT /F1 12 Tf 150 700 Td (B) Tj ET", HELVETICA, "A B");
        check(
            "BT /F1 1 Tf 12 0 0 12 50 700 Tm 1.2 TL (one) Tj T* (two) Tj (x) ' ET",
            HELVETICA,
            "one\ntwo\nx",
        );
        check(
            "q 2 0 0 2 0 0 cm BT /F1 6 Tf 25 350 Td (big) Tj ET Q BT /F1 12 Tf 50 600 Td (next) Tj ET",
            HELVETICA,
            "big\n\nnext",
        );
    }

    #[test]
    fn names_of_glyphs_are_characters() {
        let font = "<</Type/Font/Subtype/Type1/BaseFont/X/Encoding<</Differences[1/fi/eacute/uni20AC/A.sc 65/zero]>>>>";
        check("BT /F1 12 Tf 50 700 Td <0102030441> Tj ET", font, "fiéA0".replace('é', "é€").as_str());
        check("BT /F1 12 Tf 50 700 Td (Ren\\351) Tj ET", HELVETICA, "René");
    }

    /// Returns a font with this encoding and the glyphs of a collection, and what follows it.
    fn wide_font(encoding: &str, collection: &str, more: &str) -> String {
        format!(
            "<</Type/Font/Subtype/Type0/BaseFont/X/Encoding{encoding}/DescendantFonts[<</Type/Font/Subtype/CIDFontType0\
             /BaseFont/X/CIDSystemInfo<</Registry(Adobe)/Ordering({collection})/Supplement 2>>/DW 1000>>]>>{more}"
        )
    }

    /// Returns the object to which a font refers as its encoding.
    fn own_cmap(cmap: &str) -> String {
        format!(
            "\nendobj\n7 0 obj\n<</Type/CMap/CMapName/Own/Length {}>>\nstream\n{cmap}\nendstream",
            cmap.len()
        )
    }

    #[test]
    fn predefined_cmaps_have_characters() {
        for (encoding, collection, codes, expect) in [
            ("UniJIS-UCS2-H", "Japan1", "65E5672C", "日本"),
            ("UniJIS-UTF16-H", "Japan1", "0041D842DFB7", "A𠮷"),
            ("90ms-RKSJ-H", "Japan1", "4193FA967BB1", "A日本ｱ"),
            ("EUC-H", "Japan1", "C6FCCBDC", "日本"),
            ("H", "Japan1", "467C4B5C", "日本"),
            ("UniGB-UCS2-H", "GB1", "4E2D6587", "中文"),
            ("GBK-EUC-H", "GB1", "61B4F3D0DC", "a大熊"),
            ("GBK2K-H", "GB1", "B4F3D0DC", "大熊"),
            ("ETen-B5-H", "CNS1", "A4A4A4E5", "中文"),
            ("UniCNS-UTF16-H", "CNS1", "4E2D6587", "中文"),
            ("KSCms-UHC-H", "Korea1", "C7D1B1B9", "한국"),
            ("UniKS-UCS2-H", "Korea1", "D55CAD6D", "한국"),
            // Numbers of glyphs of a known collection.
            ("Identity-H", "Japan1", "00220023", "AB"),
            // Half a code, and one that no table has.
            ("90ms-RKSJ-H", "Japan1", "93FA93", "日"),
            ("GBK-EUC-H", "GB1", "B4F3FFFF61", "大a"),
        ] {
            let content = format!("BT /F1 12 Tf 50 700 Td <{codes}> Tj ET");
            let text = extract_pdf(pdf(&content, &wide_font(&format!("/{encoding}"), collection, "")));
            assert_eq!(text.map(|text| text.text()).as_deref(), Ok(expect), "{encoding}");
        }
        let columns = "BT /F1 10 Tf 500 700 Td <65E5> Tj <672C> Tj ET BT /F1 10 Tf 485 700 Td <8A9E> Tj ET";
        check(columns, &wide_font("/UniJIS-UCS2-V", "Japan1", ""), "日本\n語");
    }

    #[test]
    fn own_and_broken_cmaps_are_bounded() {
        let content = "BT /F1 12 Tf 50 700 Td <93FA967B01> Tj ET";
        let cmap = "/90ms-RKSJ-H usecmap 1 begincidchar <01> 34 endcidchar";
        check(content, &wide_font(" 7 0 R", "Japan1", &own_cmap(cmap)), "日本A");
        let long = "1 begincidrange <00000000> <FFFFFFFF> 0 endcidrange ".repeat(10_000);
        for broken in [
            "",
            "bcmap\u{1}\u{0}\u{0}\u{0}\u{10}\u{9}\u{0}\u{0}\u{0}\u{8}Own",
            "/Own usecmap",
            "/Identity-H usecmap 9 begincidrange <00> <FFFF",
            "1 beginbfrange <00000000> <FFFFFFFF> [ <0041>",
            "1 begincidrange <0000> <FFFF> 4294967295 endcidrange",
            long.as_str(),
        ] {
            let read = extract_pdf(pdf(content, &wide_font(" 7 0 R", "Japan1", &own_cmap(broken))));
            let said = read.map(|read| read.text()).unwrap_or_else(|error| error.text);
            assert!(said.len() < 300, "{said}");
        }
        for (encoding, reason) in
            [("/Some-Unknown-H", "its fonts need the CMap Some-Unknown-H,"), ("/A#1B#5B2J", "the CMap A2J,")]
        {
            let document = extract_pdf(pdf(content, &wide_font(encoding, "Japan1", ""))).unwrap();
            let error = document.problem.unwrap().text;
            assert!(error.contains(reason) && error.contains("print it to a new PDF"), "{error:?}");
            assert!(!error.contains('\u{1b}'), "{error:?}");
        }
    }

    #[test]
    fn documents_without_text_are_named() {
        let cut = pdf("q 10 0 0 10 0 0 cm /Im1 Do Q", HELVETICA);
        let whole = [cut.as_slice(), b"startxref\n0\n%%EOF\n"].concat();
        for (document, reason) in [(whole, ""), (cut, "; the end of the file is missing")] {
            let document = extract_pdf(document).unwrap();
            let error = document.problem.unwrap().text;
            assert!(error.starts_with(&format!("it has no text layer on its 1 page{reason}")), "{error}");
            assert_eq!(document.unread, [PdfPage { number: 1, width: 600.0, height: 800.0 }]);
        }
        for broken in [&b"%PDF-1.4"[..], b"", b"%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 1 0 R>>\nendobj"] {
            assert!(extract_pdf(broken.to_vec()).is_err());
        }
    }

    #[test]
    fn properties_are_read() {
        let document = extract_pdf(pdf("BT /F1 9 Tf (x) Tj ET", HELVETICA)).unwrap();
        assert_eq!((document.title.as_str(), document.pages), ("A title", 1));
        assert_eq!(document.created, "2026-04-01T10:00:00+02:00");
        assert_eq!(text_string(Some(b"\xFE\xFF\x00R\x00\xE9")), "Ré");
    }
}
