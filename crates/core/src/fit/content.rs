//! Splits a text into chunks at natural boundaries: `ContentChunk` of the Context Protection API.
//!
//! The kind of the text decides which boundaries are natural: before a heading, at the end of a paragraph, before the
//! next entry of a log, at the end of a line of code or of a sentence, or of a line if no sentence ends. A text
//! without such a boundary within the size of a chunk is cut between lines of an entry, words or graphemes, and the
//! chunk is marked.
//!
//! Chunks depend only on the text and their size, and are the text when they are concatenated.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::cut::{boundary_at_or_before, prefix};

/// Maximum size of a chunk in bytes.
pub const CHUNK_BYTES: usize = 8_192;

/// Maximum number of lines of a chunk.
const CHUNK_LINES: usize = 200;

/// Number of lines from which the kind of a text is detected.
const TELLING_LINES: usize = 200;

/// Bytes at the end of a chunk that are searched for the end of a sentence: first few, then more.
const TAILS: [usize; 3] = [512, 2_048, CHUNK_BYTES];

/// Text with its chunk boundaries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentChunks {
    /// Detected kind of the text.
    pub kind: ContentKind,
    chunks: Vec<Chunk>,
    total_lines: usize,
}

/// Kind of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContentKind {
    /// Sections under headings.
    Markdown,
    /// Entries that begin with a time or a level.
    Log,
    /// Lines of a program, or of data.
    Code,
    /// Sentences and paragraphs.
    Prose,
}

impl ContentKind {
    /// Returns the name of the kind in answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::Log => "log",
            Self::Code => "code",
            Self::Prose => "prose",
        }
    }
}

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Index of its first byte in the text.
    pub start: usize,
    /// Index of the byte after its last.
    pub end: usize,
    /// Number of its first line, from 0.
    pub start_line: usize,
    /// Number of the line of its last character, from 0.
    pub end_line: usize,
    /// True if it does not end at a natural boundary.
    pub is_hard_split: bool,
}

/// Strength of a boundary. The strongest one in the second half of a chunk is chosen, otherwise the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Pause {
    Sentence,
    Line,
    Paragraph,
    Section,
}

impl ContentChunks {
    /// Splits a text into chunks of at most `max_bytes` bytes, or [`CHUNK_BYTES`] if that is less, that take no more as
    /// JSON.
    #[must_use]
    pub fn new(text: &str, max_bytes: usize) -> Self {
        let max_bytes = max_bytes.min(CHUNK_BYTES);
        let kind = kind_of(text);
        let (mut chunks, mut start, mut line) = (Vec::new(), 0, 0);
        while start < text.len() {
            let (end, is_hard_split) = end_of_chunk(text, start, kind, max_bytes);
            let piece = text.get(start..end).unwrap_or_default();
            let breaks = line_breaks(piece);
            let end_line = line + breaks - usize::from(piece.ends_with('\n'));
            chunks.push(Chunk { start, end, start_line: line, end_line, is_hard_split });
            line += breaks;
            start = end;
        }
        let total_lines = line + usize::from(!text.is_empty() && !text.ends_with('\n'));
        Self { kind, chunks, total_lines }
    }

    /// Returns the number of chunks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.chunks.len()
    }

    /// Returns true if the text is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Returns a chunk by its index, from 0.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Chunk> {
        self.chunks.get(index).copied()
    }

    /// Returns the index of the chunk with a byte of the text.
    #[must_use]
    pub fn at(&self, byte: usize) -> Option<usize> {
        let index = self.chunks.partition_point(|chunk| chunk.end <= byte);
        (index < self.chunks.len()).then_some(index)
    }

    /// Returns the number of lines. A line break at the very end begins no line.
    #[must_use]
    pub fn total_lines(&self) -> usize {
        self.total_lines
    }

    /// Returns the byte range of lines, both ends included, as far as they exist. Reads two chunks of the text and
    /// not all of it.
    #[must_use]
    pub fn lines(&self, text: &str, lines: Range<usize>) -> Range<usize> {
        self.line_start(text, lines.start)..self.line_start(text, lines.end)
    }

    /// Returns the byte at which a line starts, or the end of the text for a line beyond it.
    fn line_start(&self, text: &str, line: usize) -> usize {
        if line >= self.total_lines {
            return text.len();
        }
        // The first chunk with a part of the line. It starts there, or in the chunk before if that ends with a line
        // break.
        let index = self.chunks.partition_point(|chunk| chunk.end_line < line);
        let Some(chunk) = self.get(index) else { return text.len() };
        let piece = text.get(chunk.start..chunk.end).unwrap_or_default();
        match line.checked_sub(chunk.start_line) {
            None | Some(0) => chunk.start,
            Some(nth) => {
                let found = piece.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').nth(nth - 1);
                found.map_or(chunk.end, |(at, _)| chunk.start + at + 1)
            }
        }
    }
}

fn line_breaks(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// Returns the end of the chunk that starts at a byte, and true if that is not a natural boundary.
fn end_of_chunk(text: &str, start: usize, kind: ContentKind, max_bytes: usize) -> (usize, bool) {
    let rest = text.get(start..).unwrap_or_default();
    let room = room(rest, max_bytes);
    if room == rest.len() {
        return (text.len(), false);
    }
    let piece = rest.get(..room).unwrap_or_default();
    let is_late = |end: &usize| *end > room / 2;
    let by_line = by_lines(rest, room, kind);
    let paused = by_line.filter(is_late).or_else(|| {
        let by_sentence = by_sentences(rest, room);
        let after_line = piece.rfind('\n').map(|at| at + 1).filter(is_late);
        // A text without sentences, such as a list, is split at the end of a line. A log entry continues there.
        let plain = after_line.filter(|_| matches!(kind, ContentKind::Markdown | ContentKind::Prose));
        by_sentence.filter(is_late).or(plain).or(by_line).or(by_sentence)
    });
    if let Some(end) = paused {
        return (start + end, false);
    }
    let ends = |end: &usize| is_late(end) && boundary_at_or_before(rest, *end) == *end;
    let after_line = piece.rfind('\n').map(|at| at + 1).filter(ends);
    let after_word = || piece.rfind(char::is_whitespace).map(|at| piece.ceil_char_boundary(at + 1));
    let end = after_line.or_else(|| after_word().filter(ends));
    (start + end.unwrap_or(room), true)
}

/// Returns the maximum length of a chunk by its bytes, its bytes as JSON and its lines, at a grapheme boundary if
/// possible.
fn room(rest: &str, max_bytes: usize) -> usize {
    let window = rest.get(..rest.floor_char_boundary(max_bytes.saturating_add(64))).unwrap_or(rest);
    let lines = window.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').nth(CHUNK_LINES - 1);
    let by_lines = lines.map_or(rest.len(), |(at, _)| at + 1);
    if rest.len() <= max_bytes && by_lines >= rest.len() && prefix(rest, max_bytes).len() == rest.len() {
        return rest.len();
    }
    let fitting = prefix(window, max_bytes).len();
    let fitting = if fitting <= max_bytes { fitting } else { boundary_at_or_before(window, max_bytes) };
    let fitting = fitting.min(by_lines);
    if fitting > 0 {
        return fitting;
    }
    // A single grapheme that is larger than a chunk is cut between its characters.
    rest.floor_char_boundary(max_bytes).max(rest.chars().next().map_or(0, char::len_utf8))
}

/// Returns the strongest end of a line in the second half of the room, otherwise the last one.
fn by_lines(rest: &str, room: usize, kind: ContentKind) -> Option<usize> {
    let piece = rest.get(..room)?;
    let (mut best, mut last): (Option<(Pause, usize)>, Option<usize>) = (None, None);
    for (at, _) in piece.bytes().enumerate().filter(|(_, byte)| *byte == b'\n') {
        let end = at + 1;
        let Some(pause) = pause_at(rest, end, kind) else { continue };
        last = Some(end);
        if end > room / 2 && best.is_none_or(|(strongest, _)| pause >= strongest) {
            best = Some((pause, end));
        }
    }
    best.map(|(_, end)| end).or(last)
}

/// Returns the strength of a line's end, or `None` if the text continues there.
fn pause_at(rest: &str, end: usize, kind: ContentKind) -> Option<Pause> {
    let next = first_line(rest.get(end..)?);
    let before = rest.get(..end)?.trim_end_matches([' ', '\t']);
    let after_blank = before.ends_with("\n\n") || before.ends_with("\n\r\n");
    let is_blank = next.trim().is_empty();
    match kind {
        ContentKind::Markdown if is_heading(next) => Some(Pause::Section),
        // A blank line belongs to the text before it.
        ContentKind::Markdown | ContentKind::Prose if after_blank && !is_blank => Some(Pause::Paragraph),
        ContentKind::Markdown | ContentKind::Prose => ends_sentence(before).then_some(Pause::Sentence),
        ContentKind::Log => begins_entry(next).then_some(Pause::Line),
        ContentKind::Code if after_blank && !is_blank && !next.starts_with([' ', '\t', '}', ')', ']']) => {
            Some(Pause::Paragraph)
        }
        ContentKind::Code => Some(Pause::Line),
    }
}

/// Returns the end of the last sentence within the room.
fn by_sentences(rest: &str, room: usize) -> Option<usize> {
    let piece = rest.get(..room)?;
    TAILS.into_iter().find_map(|tail| {
        let from = piece.floor_char_boundary(piece.len().saturating_sub(tail));
        // The character behind the room decides if a sentence ends at its edge.
        let window = rest.get(from..rest.ceil_char_boundary((room + 64).min(rest.len())))?;
        let ends = window.split_sentence_bound_indices().map(|(at, sentence)| from + at + sentence.len());
        ends.filter(|end| *end <= room && piece.get(..*end).is_some_and(ends_sentence)).last()
    })
}

/// Returns true if a text ends with the end of a sentence: a mark, closing quotes or parentheses, and white space.
fn ends_sentence(text: &str) -> bool {
    let text =
        text.trim_end().trim_end_matches(['"', '\'', ')', ']', '”', '’', '»', '」', '』', '）', '*', '_']);
    text.ends_with(['.', '!', '?', '…', '。', '！', '？', '｡', '؟', '۔', '।', '॥', '։', ':'])
}

fn first_line(text: &str) -> &str {
    text.split('\n').next().unwrap_or_default()
}

fn is_heading(line: &str) -> bool {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    (1..=6).contains(&level)
        && line.as_bytes().get(level).is_none_or(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

/// First words of log entries, in any case.
const LEVELS: [&str; 14] = [
    "TRACE",
    "DEBUG",
    "INFO",
    "NOTICE",
    "WARN",
    "WARNING",
    "ERROR",
    "ERR",
    "CRITICAL",
    "FATAL",
    "TIME",
    "TS",
    "LEVEL",
    "TIMESTAMP",
];

/// Returns true if a line begins an entry of a log: with a time, a level, or either in brackets. Any other line
/// continues the entry before it, as the lines of a stack trace do.
fn begins_entry(line: &str) -> bool {
    let line = line.trim_start_matches(['[', '(', '<', '{', '"']);
    let word = line.split([' ', '\t', ']', ')', '>', ':', '=', '"', ',']).next().unwrap_or_default();
    let is_level = LEVELS.iter().any(|level| word.eq_ignore_ascii_case(level));
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let is_month =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"].contains(&word);
    // Formats such as `2025-11-01T10`, `1697452800`, `10.0.0.1`, `12/Mar/2025`.
    is_level
        || is_month
        || (digits >= 2 && digits * 2 >= word.len() && line.starts_with(|c: char| c.is_ascii_digit()))
}

fn kind_of(text: &str) -> ContentKind {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).take(TELLING_LINES).collect();
    let share_of = |lines: &[&str], tells: fn(&str) -> bool| {
        // One line is too little to decide by, and it can be long.
        if lines.len() < 2 {
            return 0;
        }
        lines.iter().filter(|line| tells(line)).count() * 100 / lines.len()
    };
    let share = |tells| share_of(&lines, tells);
    // An indented line continues an entry, as the lines of a stack trace do.
    let begun: Vec<&str> = lines.iter().copied().filter(|line| !line.starts_with([' ', '\t'])).collect();
    let headings = lines.iter().filter(|line| is_heading(line) || line.starts_with("```")).count();
    match () {
        () if share_of(&begun, begins_entry) >= 50 => ContentKind::Log,
        () if headings > 0 && share(is_code) < 60 => ContentKind::Markdown,
        () if share(is_code) >= 50 => ContentKind::Code,
        () => ContentKind::Prose,
    }
}

/// Returns true if a line looks like code or data: indented, ending with its punctuation, or short and without any.
fn is_code(line: &str) -> bool {
    let trimmed = line.trim();
    line.starts_with(['\t'])
        || line.starts_with("    ")
        || trimmed.ends_with(['{', '}', ';', '(', ')', '[', ']', ',', '\\', '>', '='])
        || trimmed.starts_with("//")
        || !trimmed.contains(' ')
}

#[cfg(test)]
mod tests;
