//! The reader of RTF documents.
//!
//! A stack of groups on the heap replaces recursion, so deep nesting costs no stack. Bytes of text are collected and
//! decoded together in the code page of their font, because a character may be written as several `\'xx`.

use std::collections::{HashMap, HashSet};

use encoding_rs::{Encoding, WINDOWS_1252};

use super::super::item::{FileKind, FileRecord, Item};
use super::super::skips::Problem;
use super::super::text_input::encoding_of_code_page;
use super::document::Document;

/// Maximum nesting of groups.
const MAX_GROUPS: usize = 1_000;

/// Maximum number of fonts with a code page of their own.
const MAX_FONTS: usize = 10_000;

/// Destinations without text of the document. Those that begin with `\*` need no entry.
const WITHOUT_TEXT: [&str; 14] = [
    "colortbl",
    "stylesheet",
    "pict",
    "fldinst",
    "shprslt",
    "nonshppict",
    "nonesttables",
    "filetbl",
    "revtbl",
    "xe",
    "tc",
    "rxe",
    "txe",
    "objdata",
];

/// Destinations of notes, headers and footers, which follow the text.
const NOTES: [&str; 10] = [
    "footnote",
    "annotation",
    "header",
    "headerl",
    "headerr",
    "headerf",
    "footer",
    "footerl",
    "footerr",
    "footerf",
];

/// Reads an RTF document: its text with footnotes, comments, headers and footers, and its properties.
pub(crate) fn read_rtf(item: &mut Item<'_>) -> Result<FileRecord, Problem> {
    let bytes = item.read_all()?;
    Ok(rtf_document(&bytes)?.into_record(FileKind::Rtf, item))
}

/// Parses an RTF document.
///
/// # Errors
///
/// It does not begin as RTF does, or its groups are nested too deep.
pub(crate) fn rtf_document(bytes: &[u8]) -> Result<Document, String> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes).trim_ascii_start();
    if !bytes.starts_with(b"{\\rtf") {
        return Err("it is no RTF document".to_owned());
    }
    let mut parser = Parser {
        rest: bytes,
        group: Group::default(),
        outer: Vec::new(),
        fonts: HashMap::new(),
        code_page: WINDOWS_1252,
        pending: Vec::new(),
        has_code: false,
        units: Vec::new(),
        fallback: 0,
        texts: Texts::default(),
    };
    parser.run()?;
    let Texts { body, notes, title, author, subject, keywords, created, modified } = parser.texts;
    let notes = tidy(&notes, true);
    let separator = if notes.is_empty() { "" } else { "\n\n" };
    Ok(Document {
        title,
        authors: if author.is_empty() { Vec::new() } else { vec![author] },
        subject,
        keywords: keywords
            .split([',', ';'])
            .map(str::trim)
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect(),
        created: created.text(),
        modified: modified.text(),
        text: format!("{}{separator}{notes}", tidy(&body, false)),
        ..Document::default()
    })
}

/// The place to which the text of a group goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Target {
    #[default]
    Body,
    Notes,
    Fonts,
    /// The group of the properties, which has groups for each of them.
    Info,
    Title,
    Author,
    Subject,
    Keywords,
    Created,
    Modified,
    /// A text for readers that do not know Unicode, beside the same text in Unicode.
    Replaced,
    Nothing,
}

/// The properties of a group, which groups within it inherit.
#[derive(Debug, Clone, Copy)]
struct Group {
    target: Target,
    font: Option<i32>,
    /// Number of characters after `\u` that stand for it.
    fallbacks: usize,
    is_hidden: bool,
    /// True within RTF that HTML replaces.
    is_replaced: bool,
}

impl Default for Group {
    fn default() -> Self {
        Self { target: Target::Body, font: None, fallbacks: 1, is_hidden: false, is_replaced: false }
    }
}

/// The texts of a document.
#[derive(Debug, Default)]
struct Texts {
    body: String,
    notes: String,
    title: String,
    author: String,
    subject: String,
    keywords: String,
    created: Time,
    modified: Time,
}

/// A time in the properties.
#[derive(Debug, Default)]
struct Time {
    year: i32,
    month: i32,
    day: i32,
    hour: i32,
    minute: i32,
}

impl Time {
    fn text(&self) -> String {
        let Self { year, month, day, hour, minute } = self;
        if *year == 0 {
            String::new()
        } else {
            format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
        }
    }
}

struct Parser<'a> {
    rest: &'a [u8],
    group: Group,
    outer: Vec<Group>,
    /// Encodings of the fonts that have one of their own.
    fonts: HashMap<i32, &'static Encoding>,
    code_page: &'static Encoding,
    /// Text in the encoding of the font.
    pending: Vec<u8>,
    /// True if one of these bytes is written as a code (`\'xx`).
    has_code: bool,
    /// Text in UTF-16.
    units: Vec<u16>,
    /// Number of characters to skip, which stand for the one before them.
    fallback: usize,
    texts: Texts,
}

impl Parser<'_> {
    fn run(&mut self) -> Result<(), String> {
        while let Some((byte, rest)) = self.rest.split_first() {
            self.rest = rest;
            match byte {
                b'{' => {
                    self.flush();
                    if self.outer.len() >= MAX_GROUPS {
                        return Err(format!("its groups are nested more than {MAX_GROUPS} levels deep"));
                    }
                    self.outer.push(self.group);
                }
                b'}' => {
                    self.flush();
                    let Some(group) = self.outer.pop() else { break };
                    self.group = group;
                    // Text behind the outermost group is no part of the document.
                    if self.outer.is_empty() {
                        break;
                    }
                }
                b'\\' => self.control(),
                b'\r' | b'\n' => {}
                byte => self.text_byte(*byte),
            }
        }
        self.flush();
        Ok(())
    }

    /// Reads a control word or symbol.
    fn control(&mut self) {
        let letters = self.rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        if letters == 0 {
            let Some((symbol, rest)) = self.rest.split_first() else { return };
            self.rest = rest;
            return self.symbol(*symbol);
        }
        let Some((word, rest)) = self.rest.split_at_checked(letters) else { return };
        let sign = usize::from(rest.starts_with(b"-"));
        let digits = rest.iter().skip(sign).take_while(|byte| byte.is_ascii_digit()).count();
        let length = if digits == 0 { 0 } else { sign + digits };
        let Some((number, rest)) = rest.split_at_checked(length) else { return };
        self.rest = rest.strip_prefix(b" ").unwrap_or(rest);
        let number = std::str::from_utf8(number).ok().and_then(|number| number.parse::<i32>().ok());
        let Ok(word) = std::str::from_utf8(word) else { return };
        self.word(word, number);
    }

    fn symbol(&mut self, symbol: u8) {
        match symbol {
            b'\'' => {
                let code = self.rest.get(..2).and_then(|code| std::str::from_utf8(code).ok());
                if let Some(byte) = code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
                    self.rest = self.rest.get(2..).unwrap_or_default();
                    self.text_byte(byte);
                    self.has_code = !self.pending.is_empty();
                }
            }
            b'\\' | b'{' | b'}' => self.text_byte(symbol),
            b'~' => self.push("\u{A0}"),
            b'_' => self.push("-"),
            b'\r' | b'\n' => self.push("\n"),
            b'*' => {
                self.flush();
                self.group.target = Target::Nothing;
            }
            _ => {}
        }
    }

    fn word(&mut self, word: &str, number: Option<i32>) {
        if word == "u" {
            return self.unicode(number.unwrap_or_default());
        }
        self.flush();
        let is_on = number != Some(0);
        match word {
            "par" | "line" | "sect" | "page" | "column" | "row" | "nestrow" => self.push("\n"),
            "tab" | "cell" | "nestcell" => self.push("\t"),
            "emdash" => self.push("\u{2014}"),
            "endash" => self.push("\u{2013}"),
            "bullet" => self.push("\u{2022}"),
            "lquote" => self.push("\u{2018}"),
            "rquote" => self.push("\u{2019}"),
            "ldblquote" => self.push("\u{201C}"),
            "rdblquote" => self.push("\u{201D}"),
            "emspace" | "enspace" | "qmspace" => self.push(" "),
            "uc" => self.group.fallbacks = number.and_then(|count| usize::try_from(count).ok()).unwrap_or(1),
            "bin" => {
                let length = number.and_then(|length| usize::try_from(length).ok()).unwrap_or_default();
                self.rest = self.rest.get(length..).unwrap_or_default();
            }
            "v" | "deleted" => self.group.is_hidden = is_on,
            "plain" => (self.group.is_hidden, self.group.font) = (false, None),
            "htmlrtf" => self.group.is_replaced = is_on,
            "f" => self.group.font = number,
            "mac" => self.code_page = encoding_rs::MACINTOSH,
            "ansicpg" => self.code_page = encoding_of(number).unwrap_or(self.code_page),
            "fcharset" if self.group.target == Target::Fonts => {
                self.set_font(number.and_then(page_of_charset));
            }
            "cpg" if self.group.target == Target::Fonts => self.set_font(number),
            _ if self.set_time(word, number.unwrap_or_default()) => {}
            _ => self.set_target(word),
        }
    }

    /// Changes the target of the group if the word is that of a destination.
    fn set_target(&mut self, word: &str) {
        let target = match (word, self.group.target) {
            ("fonttbl", _) => Target::Fonts,
            ("info", _) => Target::Info,
            ("title", Target::Info) => Target::Title,
            ("author", Target::Info) => Target::Author,
            ("subject", Target::Info) => Target::Subject,
            ("keywords", Target::Info) => Target::Keywords,
            ("creatim", Target::Info) => Target::Created,
            ("revtim", Target::Info) => Target::Modified,
            ("upr", _) => Target::Replaced,
            ("ud", _) => {
                let mut outer = self.outer.iter().rev().map(|group| group.target);
                outer.find(|target| *target != Target::Replaced).unwrap_or_default()
            }
            // The text of a drawing, which other readers ignore.
            ("shptxt", Target::Nothing) => Target::Body,
            (word, Target::Body | Target::Nothing) if NOTES.contains(&word) => Target::Notes,
            (word, _) if WITHOUT_TEXT.contains(&word) => Target::Nothing,
            _ => return,
        };
        // A new note is a new line.
        if target == Target::Notes && !self.texts.notes.is_empty() {
            self.texts.notes.push('\n');
        }
        self.group.target = target;
    }

    /// Sets a part of a time in the properties. Returns false for other words.
    fn set_time(&mut self, word: &str, number: i32) -> bool {
        let time = match self.group.target {
            Target::Created => &mut self.texts.created,
            Target::Modified => &mut self.texts.modified,
            _ => return false,
        };
        match word {
            "yr" => time.year = number,
            "mo" => time.month = number,
            "dy" => time.day = number,
            "hr" => time.hour = number,
            "min" => time.minute = number,
            _ => return false,
        }
        true
    }

    fn set_font(&mut self, page: Option<i32>) {
        let encoding = encoding_of(page);
        if let Some((font, encoding)) = self.group.font.zip(encoding).filter(|_| self.fonts.len() < MAX_FONTS)
        {
            self.fonts.insert(font, encoding);
        }
    }

    fn text_byte(&mut self, byte: u8) {
        if self.fallback > 0 {
            self.fallback -= 1;
            return;
        }
        self.end_units();
        self.pending.push(byte);
    }

    fn unicode(&mut self, number: i32) {
        self.end_bytes();
        // Numbers above 32,767 are written as negative ones.
        self.units.extend(u16::try_from(number.rem_euclid(1 << 16)));
        self.fallback = self.group.fallbacks;
    }

    fn flush(&mut self) {
        self.end_units();
        self.end_bytes();
        self.fallback = 0;
    }

    fn end_units(&mut self) {
        let units = std::mem::take(&mut self.units);
        if !units.is_empty() {
            self.write(&String::from_utf16_lossy(&units));
        }
    }

    fn end_bytes(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let bytes = std::mem::take(&mut self.pending);
        let own = self.group.font.and_then(|font| self.fonts.get(&font).copied());
        // Some libraries write UTF-8 and declare another code page.
        match std::str::from_utf8(&bytes) {
            Ok(text) if !self.has_code => self.write(text),
            _ => self.write(&own.unwrap_or(self.code_page).decode_without_bom_handling(&bytes).0),
        }
        self.has_code = false;
        self.pending = bytes;
        self.pending.clear();
    }

    fn push(&mut self, text: &str) {
        self.flush();
        self.write(text);
    }

    fn write(&mut self, text: &str) {
        if self.group.is_hidden || self.group.is_replaced {
            return;
        }
        let texts = &mut self.texts;
        let written = match self.group.target {
            Target::Body => &mut texts.body,
            Target::Notes => &mut texts.notes,
            Target::Title => &mut texts.title,
            Target::Author => &mut texts.author,
            Target::Subject => &mut texts.subject,
            Target::Keywords => &mut texts.keywords,
            Target::Fonts
            | Target::Info
            | Target::Created
            | Target::Modified
            | Target::Replaced
            | Target::Nothing => return,
        };
        written.push_str(text);
    }
}

fn encoding_of(page: Option<i32>) -> Option<&'static Encoding> {
    page.and_then(|page| u32::try_from(page).ok()).and_then(encoding_of_code_page)
}

/// Returns the code page of a character set of Windows. That of the document has none.
fn page_of_charset(charset: i32) -> Option<i32> {
    let pages = [
        (77, 10_000),
        (128, 932),
        (129, 949),
        (134, 936),
        (136, 950),
        (161, 1_253),
        (162, 1_254),
        (163, 1_258),
        (177, 1_255),
        (178, 1_256),
        (186, 1_257),
        (204, 1_251),
        (222, 874),
        (238, 1_250),
    ];
    pages.into_iter().find(|(known, _)| *known == charset).map(|(_, page)| page)
}

/// Returns a text without spaces at the ends of lines and with one empty line at most between paragraphs, and for
/// notes without repeated lines.
fn tidy(text: &str, is_notes: bool) -> String {
    let (mut lines, mut seen) = (Vec::<&str>::new(), HashSet::new());
    for line in text.lines().map(str::trim_end) {
        let is_repeated = if is_notes {
            line.is_empty() || !seen.insert(line)
        } else {
            line.is_empty() && lines.last().is_none_or(|last| last.is_empty())
        };
        if !is_repeated {
            lines.push(line);
        }
    }
    lines.join("\n").trim_end().to_owned()
}

#[cfg(test)]
mod tests;
