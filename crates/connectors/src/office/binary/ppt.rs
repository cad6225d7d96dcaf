//! The text of a presentation of PowerPoint 97 to 2003.
//!
//! The stream `PowerPoint Document` is a tree of records. A save appends what changed and a directory of its parts, so
//! only the newest place of a part counts. The document lists its slides with the texts of their placeholders; other
//! texts, and notes, are in parts of their own.

use std::collections::{HashMap, HashSet};

use super::super::super::documents::Document;
use super::super::super::item::{FileKind, FileRecord, Item};
use super::super::super::skips::Problem;
use super::bytes::{latin_text, u16_at, u32_at, usize_at, utf16_text};
use super::compound::{Compound, encrypted};
use super::properties::read_properties;
use super::{MAX_TEXT_BYTES, older_format, too_long};

/// Mark of an encrypted presentation in the stream `Current User`.
const ENCRYPTED_MARK: u32 = 0xF3D1_C4DF;

/// Maximum nesting of records.
const MAX_DEPTH: usize = 64;

/// Maximum number of slides.
const MAX_SLIDES: usize = 10_000;

/// Maximum number of records that are read. A part counts each time.
const MAX_RECORDS: usize = 5_000_000;

/// Bytes of the header of a record.
const HEADER_BYTES: usize = 8;

/// Types of records: a save, its directory, a list of slides, a slide in it, the slide of notes, and texts of two and of
/// one byte a character.
const EDIT: u16 = 0x0FF5;
const DIRECTORY: u16 = 0x1772;
const LIST: u16 = 0x0FF0;
const LISTED: u16 = 0x03F3;
const NOTES: u16 = 0x03F1;
const WIDE_TEXT: u16 = 0x0FA0;
const TEXT: u16 = 0x0FA8;

/// Lists of slides and of notes.
const SLIDES_LIST: u16 = 0;
const NOTES_LIST: u16 = 2;

/// Text of a placeholder of a number or date.
const PLACEHOLDER: &str = "*";

/// Reason why a presentation without its document is not read.
const BROKEN: &str = "its directory of slides is broken";

/// Reads a presentation.
pub(in super::super) fn read_ppt(item: &Item<'_>, bytes: Vec<u8>) -> Result<FileRecord, Problem> {
    let mut file = Compound::open(bytes)?;
    let mut document = Document::default();
    let user = file.read("Current User")?.unwrap_or_default();
    let Some(stream) = file.read("PowerPoint Document")? else {
        return Err(older_format("PowerPoint", "pptx"));
    };
    if u32_at(&user, 12) == Some(ENCRYPTED_MARK) {
        return Err(encrypted());
    }
    read_properties(&mut file, &mut document);
    let mut reader = Reader { stream: &stream, parts: HashMap::new(), records: 0, bytes: 0 };
    let slides = reader.slides(usize_at(&user, 16).ok_or(BROKEN)?)?;
    document.count = Some(("slides", slides.len()));
    let slides = slides.into_iter().map(|slide| slide.texts.join("\n")).filter(|text| !text.is_empty());
    document.text = slides.collect::<Vec<_>>().join("\n\n");
    let mut record = document.into_record(FileKind::Pptx, item);
    record.put_text("format", "ppt");
    Ok(record)
}

/// A record with its content.
#[derive(Debug, Clone, Copy)]
struct Record<'s> {
    kind: u16,
    instance: u16,
    /// True if the content is records.
    is_container: bool,
    content: &'s [u8],
}

/// Returns the record at the start of bytes. One that ends too early has the bytes that are there.
fn first_record(bytes: &[u8]) -> Option<Record<'_>> {
    let (version, kind, length) = (u16_at(bytes, 0)?, u16_at(bytes, 2)?, usize_at(bytes, 4)?);
    let content = bytes.get(HEADER_BYTES..)?;
    let content = content.get(..length).unwrap_or(content);
    Some(Record { kind, instance: version >> 4, is_container: version & 0xF == 0xF, content })
}

/// Returns the records that follow each other in bytes.
fn records(mut bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        let record = first_record(bytes)?;
        bytes = bytes.get(HEADER_BYTES + record.content.len()..).unwrap_or_default();
        Some(record)
    })
}

/// The texts of a slide or of notes.
#[derive(Debug, Default)]
struct Slide {
    /// Number by which notes refer to a slide.
    id: u32,
    /// Number of its part.
    part: u32,
    texts: Vec<String>,
    known: HashSet<String>,
}

impl Slide {
    /// Adds texts that it does not have. Those of placeholders may be in the list of slides and in the slide.
    fn add(&mut self, texts: Vec<String>) {
        for text in texts {
            if self.known.insert(text.clone()) {
                self.texts.push(text);
            }
        }
    }
}

struct Reader<'s> {
    stream: &'s [u8],
    /// Positions of parts by their numbers.
    parts: HashMap<u32, usize>,
    /// Number of records that were read.
    records: usize,
    /// Bytes of the texts that were read.
    bytes: usize,
}

impl<'s> Reader<'s> {
    /// Returns the slides with their notes. `edit` is the position of the last save.
    fn slides(&mut self, edit: usize) -> Result<Vec<Slide>, Problem> {
        let document = self.directories(edit)?;
        let document = self.part(document).ok_or(BROKEN)?;
        let mut slides = self.list(document, SLIDES_LIST)?;
        for slide in &mut slides {
            if let Some(part) = self.part(slide.part) {
                slide.add(self.texts(part)?);
            }
        }
        let by_id: HashMap<u32, usize> =
            slides.iter().enumerate().map(|(at, slide)| (slide.id, at)).collect();
        for notes in self.list(document, NOTES_LIST)? {
            let Some(part) = self.part(notes.part) else { continue };
            let slide = self.find(part, NOTES)?;
            let slide = slide.and_then(|record| u32_at(record.content, 0)).and_then(|id| by_id.get(&id));
            let texts = self.texts(part)?;
            if let Some(slide) = slide.and_then(|at| slides.get_mut(*at)) {
                slide.add(notes.texts);
                slide.add(texts);
            }
        }
        Ok(slides)
    }

    /// Reads the directories of all saves, the last one first. Returns the number of the document's part.
    fn directories(&mut self, mut edit: usize) -> Result<u32, Problem> {
        let (mut document, mut known) = (None, HashSet::new());
        while edit > 0 || document.is_none() {
            let record = self.stream.get(edit..).and_then(first_record).filter(|record| record.kind == EDIT);
            let Some(record) = record.filter(|_| known.insert(edit)) else { break };
            self.count_record()?;
            let directory = usize_at(record.content, 12).and_then(|at| self.stream.get(at..));
            let directory = directory.and_then(first_record).filter(|record| record.kind == DIRECTORY);
            self.directory(directory.map(|record| record.content).unwrap_or_default())?;
            document = document.or_else(|| u32_at(record.content, 16));
            edit = usize_at(record.content, 8).unwrap_or(0);
        }
        document.ok_or_else(|| BROKEN.into())
    }

    /// Reads a directory: runs of positions, each after the number of its first part.
    fn directory(&mut self, mut directory: &[u8]) -> Result<(), Problem> {
        while let Some(run) = u32_at(directory, 0) {
            let (first, count) = (run & 0xF_FFFF, run >> 20);
            directory = directory.get(4..).unwrap_or_default();
            // A run may be of no part.
            self.count_record()?;
            for part in first..first + count {
                let Some(position) = usize_at(directory, 0) else { break };
                self.count_record()?;
                self.parts.entry(part).or_insert(position);
                directory = directory.get(4..).unwrap_or_default();
            }
        }
        Ok(())
    }

    /// Returns the first record of a kind in a part.
    fn find(&mut self, part: Record<'s>, kind: u16) -> Result<Option<Record<'s>>, Problem> {
        for record in records(part.content) {
            self.count_record()?;
            if record.kind == kind {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    fn part(&self, number: u32) -> Option<Record<'s>> {
        self.stream.get(*self.parts.get(&number)?..).and_then(first_record)
    }

    /// Returns the slides or notes in the list of a document, with the texts of their placeholders.
    fn list(&mut self, document: Record<'s>, list: u16) -> Result<Vec<Slide>, Problem> {
        let mut slides: Vec<Slide> = Vec::new();
        let lists = records(document.content).filter(|record| record.kind == LIST && record.instance == list);
        for record in lists.flat_map(|list| records(list.content)) {
            self.count_record()?;
            if record.kind == LISTED && slides.len() < MAX_SLIDES {
                let [part, id] = [0, 12].map(|at| u32_at(record.content, at).unwrap_or(0));
                slides.push(Slide { id, part, ..Slide::default() });
            } else if let Some(text) = self.text(record)?
                && let Some(slide) = slides.last_mut()
            {
                slide.add(vec![text]);
            }
        }
        Ok(slides)
    }

    /// Returns the texts in a part.
    fn texts(&mut self, part: Record<'s>) -> Result<Vec<String>, Problem> {
        let (mut texts, mut pending) = (Vec::new(), vec![records(part.content)]);
        while let Some(level) = pending.last_mut() {
            let Some(record) = level.next() else {
                pending.pop();
                continue;
            };
            self.count_record()?;
            if record.is_container && pending.len() < MAX_DEPTH {
                pending.push(records(record.content));
            }
            texts.extend(self.text(record)?);
        }
        Ok(texts)
    }

    /// Returns the text of a record that is one.
    fn text(&mut self, record: Record<'_>) -> Result<Option<String>, Problem> {
        let text = match record.kind {
            WIDE_TEXT => utf16_text(record.content),
            TEXT => latin_text(record.content),
            _ => return Ok(None),
        };
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > MAX_TEXT_BYTES {
            return Err(too_long());
        }
        let lines = text.replace(['\r', '\u{B}'], "\n");
        let text: String =
            lines.chars().filter(|character| !character.is_control() || *character == '\n').collect();
        let text = text.trim();
        Ok((!text.is_empty() && text != PLACEHOLDER).then(|| text.to_owned()))
    }

    fn count_record(&mut self) -> Result<(), Problem> {
        self.records += 1;
        if self.records > MAX_RECORDS {
            return Err(Problem::too_large(format!("it has more than {MAX_RECORDS} records")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(stream: &[u8]) -> Reader<'_> {
        Reader { stream, parts: HashMap::new(), records: 0, bytes: 0 }
    }

    fn record(kind: u16, content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len()).unwrap().to_le_bytes();
        [&[0, 0][..], &kind.to_le_bytes(), &length, content].concat()
    }

    #[test]
    fn texts_of_a_slide_are_added_once_in_linear_time() {
        let mut slide = Slide::default();
        slide.add(["a", "b", "a"].map(str::to_owned).to_vec());
        assert_eq!(slide.texts, ["a", "b"]);
        crate::measured::assert_linear(2_000, &|count| {
            let mut slide = Slide::default();
            slide.add((0..count).map(|number| number.to_string()).collect());
            assert_eq!(slide.texts.len(), count);
        });
    }

    #[test]
    fn every_save_and_every_run_of_a_directory_counts() {
        // Saves that all have one directory of 1,000 runs without parts.
        let directory = record(DIRECTORY, &[0; 4_000]);
        let mut stream = directory.clone();
        let mut before = 0_u32;
        for _ in 0..50 {
            let at = u32::try_from(stream.len()).unwrap();
            stream.extend(record(EDIT, &[0, 0, before, 0, 1].map(u32::to_le_bytes).concat()));
            before = at;
        }
        let last = usize::try_from(before).unwrap();
        let mut reader = reader(&stream);
        assert_eq!(reader.directories(last), Ok(1));
        assert_eq!(reader.records, 50 * 1_001);
        reader.records = MAX_RECORDS - 100;
        assert!(reader.directories(last).is_err());
    }

    #[test]
    fn the_search_in_a_part_counts() {
        let content = [record(TEXT, b"x").repeat(9), record(NOTES, b"12345678")].concat();
        let part = Record { kind: 0, instance: 0, is_container: true, content: &content };
        let mut reader = reader(&[]);
        assert_eq!(reader.find(part, NOTES).unwrap().map(|found| found.content), Some(&b"12345678"[..]));
        assert_eq!(reader.records, 10);
    }
}
