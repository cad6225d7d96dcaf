//! The query language: words and operators in one text.
//!
//! Operators are `"exact phrase"`, `-word`, `-"phrase"`, `title:x`, `from:x` (`author:x`), `has:attachment`, `filename:x`,
//! `stream:x`, `connection:x` (`account:x`), `after:DATE`, `before:DATE` and `since:AGE`. The parser never fails: text that is not exactly an operator is
//! plain text. Dates within plain text are read, too, and stay in it. The parser has no clock: ages are counted back from a time
//! that the caller passes, which also gives the time zone of days. `docs/search.md` has the table.

use fetchwell_core::handle::{ConnectionId, StreamName};
use fetchwell_ranking::lexical::understanding::dates::{ReadDates, read_dates};
use fetchwell_source::{FieldText, SearchField, SearchQuery, SearchText};
use jiff::{Timestamp, Zoned};

use super::operator_times::{parse_date, parse_since};
use super::operator_warning::OperatorWarning;

/// Maximum number of warnings about operators.
const MAX_WARNINGS: usize = 2;

/// Punctuation that may follow a closing quote.
const AFTER_QUOTE: [char; 5] = ['.', ',', ';', '!', '?'];

/// A parsed query: its text, and the streams and connections that it names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParsedQuery {
    text: SearchText,
    streams: Vec<StreamName>,
    pub(super) connections: Vec<ConnectionId>,
    warnings: Vec<OperatorWarning>,
    dates: String,
}

/// A conflict between operators and the other arguments of a search.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryConflict {
    /// Two connections are named.
    #[error("the search names connection `{one}` and connection `{other}`")]
    Connections {
        /// Connection that is named first.
        one: ConnectionId,
        /// Connection that differs from it.
        other: ConnectionId,
    },
    /// The streams of the query and those of the argument have none in common.
    #[error("the query names stream `{stream}`, which is not in `streams`")]
    Streams {
        /// First stream of the query.
        stream: StreamName,
    },
}

/// Parses the text of a query.
pub fn parse_query(text: &str, now: &Zoned) -> ParsedQuery {
    let mut parser = Parser { now: now.timestamp(), parsed: ParsedQuery::default(), words: Vec::new() };
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (piece, after) = next_piece(rest);
        parser.add(piece);
        rest = after.trim_start();
    }
    let mut parsed = parser.finish(text);
    let ReadDates { dates, explanation } = read_dates(&parsed.text.words, now);
    (parsed.text.dates, parsed.dates) = (dates, explanation);
    parsed
}

/// Name of a field operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldName {
    Text(SearchField),
    Has,
    Stream,
    Connection,
    After,
    Before,
    Since,
}

impl FieldName {
    fn parse(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "title" => Self::Text(SearchField::Title),
            "from" | "author" => Self::Text(SearchField::From),
            "filename" => Self::Text(SearchField::Filename),
            "has" => Self::Has,
            "stream" => Self::Stream,
            "connection" | "account" => Self::Connection,
            "after" => Self::After,
            "before" => Self::Before,
            "since" => Self::Since,
            _ => return None,
        })
    }
}

/// Piece of a query, up to white space outside of quotes.
#[derive(Debug, Clone, Copy)]
struct Piece<'a> {
    /// The piece as it was written.
    whole: &'a str,
    kind: PieceKind<'a>,
}

#[derive(Debug, Clone, Copy)]
enum PieceKind<'a> {
    Word,
    Phrase(&'a str),
    Exclusion(&'a str),
    /// A field operator that begins with a minus.
    ExcludedField,
    Field(FieldName, &'a str),
}

/// Splits off the first piece of a text that does not begin with white space. Returns the piece and the text after it.
fn next_piece(text: &str) -> (Piece<'_>, &str) {
    let word_len = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, after_word) = text.split_at_checked(word_len).unwrap_or((text, ""));
    let (positive, is_negative) = text.strip_prefix('-').map_or((text, false), |rest| (rest, true));
    if let Some(QuotedText { inner, after }) = QuotedText::parse(positive) {
        let kind = if is_negative { PieceKind::Exclusion(inner) } else { PieceKind::Phrase(inner) };
        return (Piece { whole: word, kind }, after);
    }
    let plain = (Piece { whole: word, kind: PieceKind::Word }, after_word);
    let positive_word = word.strip_prefix('-').unwrap_or(word);
    if let Some((name, value)) = positive_word.split_once(':')
        && let Some(field) = FieldName::parse(name)
    {
        let quoted = positive.get(name.len() + 1..).and_then(QuotedText::parse);
        let (value, after) = quoted.map_or((value, after_word), |quoted| (quoted.inner, quoted.after));
        return match (is_value(value), is_negative) {
            (false, _) => plain,
            (true, true) => (Piece { whole: word, kind: PieceKind::ExcludedField }, after_word),
            (true, false) => {
                let whole = text.strip_suffix(after).unwrap_or(word);
                (Piece { whole, kind: PieceKind::Field(field, value) }, after)
            }
        };
    }
    let excluded = word.strip_prefix('-').filter(|excluded| is_excludable(excluded));
    excluded
        .map_or(plain, |excluded| (Piece { whole: word, kind: PieceKind::Exclusion(excluded) }, after_word))
}

/// Text between quotes, straight or curly.
#[derive(Debug, Clone, Copy)]
struct QuotedText<'a> {
    inner: &'a str,
    /// Text after the closing quote and its punctuation.
    after: &'a str,
}

impl<'a> QuotedText<'a> {
    /// Parses a quoted text at the start. The closing quote has to end a word, so that lone quotes stay plain text.
    fn parse(text: &'a str) -> Option<Self> {
        let inside = text.strip_prefix(is_quote)?;
        let (inner, after) = inside.split_once(is_quote)?;
        let after = after.trim_start_matches(AFTER_QUOTE);
        let is_closed = after.is_empty() || after.starts_with(char::is_whitespace);
        (is_closed && inner.contains(char::is_alphanumeric)).then_some(Self { inner: inner.trim(), after })
    }
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '“' | '”' | '„' | '‟' | '«' | '»' | '＂')
}

/// Returns true if text after the colon of a field is its value: `from:alice`, but not `from::new` or `title:`.
fn is_value(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '@' | '#' | '.' | '+'))
        && text.contains(char::is_alphanumeric)
}

/// Returns true if text after a minus is a word to exclude. `-5` and `-v` are plain text.
fn is_excludable(text: &str) -> bool {
    let is_short = text.len() == 1;
    text.starts_with(char::is_alphabetic) && !is_short
}

/// Collects the pieces of a query.
#[derive(Debug)]
struct Parser<'a> {
    now: Timestamp,
    parsed: ParsedQuery,
    words: Vec<&'a str>,
}

impl<'a> Parser<'a> {
    fn add(&mut self, piece: Piece<'a>) {
        match piece.kind {
            PieceKind::Word => self.words.push(piece.whole),
            PieceKind::Phrase(phrase) => self.parsed.text.phrases.push(phrase.to_owned()),
            PieceKind::Exclusion(excluded) => self.parsed.text.excluded.push(excluded.to_owned()),
            PieceKind::ExcludedField => {
                self.keep_as_words(piece.whole, "only words and phrases can be excluded");
            }
            PieceKind::Field(name, value) => self.add_field(piece.whole, name, value),
        }
    }

    fn add_field(&mut self, whole: &'a str, name: FieldName, value: &'a str) {
        let text = &mut self.parsed.text;
        match name {
            FieldName::Text(field) => text.fields.push(FieldText { field, text: value.to_owned() }),
            FieldName::Has => match value.to_ascii_lowercase().as_str() {
                "attachment" | "attachments" => text.has_attachment = true,
                _ => self.words.push(whole),
            },
            FieldName::Stream => match value.parse() {
                Ok(stream) if self.parsed.streams.contains(&stream) => {}
                Ok(stream) => self.parsed.streams.push(stream),
                Err(_no_name) => self.words.push(whole),
            },
            FieldName::Connection => match value.parse() {
                Ok(connection) => self.parsed.connections.push(connection),
                Err(_no_name) => self.words.push(whole),
            },
            FieldName::After => match parse_date(value) {
                Some(time) => text.after = text.after.max(Some(time)),
                None => self.keep_as_words(whole, "a date is written 2026-01-31"),
            },
            FieldName::Before => match parse_date(value) {
                Some(time) => text.before = Some(text.before.map_or(time, |before| before.min(time))),
                None => self.keep_as_words(whole, "a date is written 2026-01-31"),
            },
            FieldName::Since => match parse_since(value, self.now) {
                Some(time) => text.after = text.after.max(Some(time)),
                None => self.keep_as_words(whole, "an age is written 12h, 30d, 2w, 6m or 1y"),
            },
        }
    }

    /// Keeps a piece as plain text, with a warning.
    fn keep_as_words(&mut self, whole: &'a str, reason: &'static str) {
        self.words.push(whole);
        self.warn(whole, reason);
    }

    fn warn(&mut self, whole: &str, reason: &'static str) {
        if self.parsed.warnings.len() < MAX_WARNINGS {
            self.parsed.warnings.push(OperatorWarning::new(whole, reason));
        }
    }

    /// Returns the query. A text without operators stays as it was written.
    fn finish(mut self, written: &str) -> ParsedQuery {
        let words = self.words.join(" ");
        let has_words = words.contains(char::is_alphanumeric);
        let parsed = &mut self.parsed;
        let has_places = !parsed.streams.is_empty() || !parsed.connections.is_empty();
        let only_excludes = !has_words
            && !has_places
            && SearchText { excluded: Vec::new(), ..parsed.text.clone() } == SearchText::default();
        if only_excludes && !parsed.text.excluded.is_empty() {
            parsed.text.excluded.clear();
            self.warn(written.trim(), "there are only words to exclude");
        }
        let parsed = &mut self.parsed;
        if parsed.text.is_plain() && !has_places {
            written.clone_into(&mut parsed.text.words);
        } else if has_words {
            parsed.text.words = words;
        }
        self.parsed
    }
}

impl ParsedQuery {
    /// Returns the text of the query without the streams and connections.
    pub fn text(&self) -> &SearchText {
        &self.text
    }

    /// Returns true if the text names streams or connections.
    pub(crate) fn names_places(&self) -> bool {
        !self.streams.is_empty() || !self.connections.is_empty()
    }

    /// Returns the warnings about operators that were taken as text.
    pub fn warnings(&self) -> &[OperatorWarning] {
        &self.warnings
    }

    /// Returns how the dates in the text were read; empty without dates.
    pub fn dates(&self) -> &str {
        &self.dates
    }

    /// Sets the text of a query and limits it to the streams and connection that the text names, too.
    ///
    /// # Errors
    ///
    /// The text names other streams, or another connection, than the query.
    pub fn apply(&self, query: SearchQuery) -> Result<SearchQuery, QueryConflict> {
        let mut connection = query.connection;
        for named in &self.connections {
            match &connection {
                Some(one) if one != named => {
                    return Err(QueryConflict::Connections { one: one.clone(), other: named.clone() });
                }
                _ => connection = Some(named.clone()),
            }
        }
        let mut streams = query.streams;
        if streams.is_empty() {
            streams.clone_from(&self.streams);
        } else if let Some(first) = self.streams.first() {
            streams.retain(|stream| self.streams.contains(stream));
            if streams.is_empty() {
                return Err(QueryConflict::Streams { stream: first.clone() });
            }
        }
        Ok(SearchQuery { text: self.text.clone(), connection, streams, ..query })
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use proptest::prelude::*;

    use super::*;

    const NOW: &str = "2026-11-23T12:00:00[UTC]";

    /// Writes a parsed query as its words and one item for each operator.
    fn written(query: &ParsedQuery) -> String {
        let ParsedQuery { text, streams, connections, warnings, dates } = query;
        let mut items = vec![text.words.clone()];
        items.extend(text.phrases.iter().map(|phrase| format!("+{phrase}")));
        items.extend(text.excluded.iter().map(|excluded| format!("-{excluded}")));
        items.extend(text.fields.iter().map(|field| format!("{}={}", field.field.as_str(), field.text)));
        items.extend(text.has_attachment.then(|| "has=attachment".to_owned()));
        items.extend(streams.iter().map(|stream| format!("stream={stream}")));
        items.extend(connections.iter().map(|connection| format!("connection={connection}")));
        items.extend(text.after.map(|time| format!(">={time}")));
        items.extend(text.before.map(|time| format!("<{time}")));
        items.extend((!dates.is_empty()).then(|| format!("({dates})")));
        items.extend((!warnings.is_empty()).then(|| format!("{} warned", warnings.len())));
        items.join("|")
    }

    #[track_caller]
    fn check(query: &str, expect: &str) {
        assert_eq!(written(&parse_query(query, &NOW.parse().unwrap())), expect, "{query}");
    }

    #[test]
    fn operators_are_separated_from_words() {
        for (query, expect) in [
            ("overdue \"exact phrase\" invoice", "overdue invoice|+exact phrase"),
            ("“curly quotes” x", "x|+curly quotes"),
            ("what about \"this one\"?", "what about|+this one"),
            ("\"one\", \"two\"", "|+one|+two"),
            ("invoice -draft -\"not this\"", "invoice|-draft|-not this"),
            ("title:budget from:alice author:\"Bob B\" x", "x|title=budget|from=alice|from=Bob B"),
            ("From:alice@example.com", "|from=alice@example.com"),
            ("has:attachment lease", "lease|has=attachment"),
            ("HAS:Attachments filename:menu.pdf", "|filename=menu.pdf|has=attachment"),
            ("x filename:\"annual report\"", "x|filename=annual report"),
            ("x -has:attachment", "x -has:attachment|1 warned"),
            ("stream:messages stream:notes stream:notes x", "x|stream=messages|stream=notes"),
            ("x account:cin_work connection:\"cin work\"", "x|connection=cin_work|connection=cin work"),
            ("-draft stream:messages", "|-draft|stream=messages"),
            ("from:alice ?!", "|from=alice"),
            (
                "\u{5BC4}\u{5B58} -\u{732B} from:\u{5C71}\u{7530}",
                "\u{5BC4}\u{5B58}|-\u{732B}|from=\u{5C71}\u{7530}",
            ),
        ] {
            check(query, expect);
        }
    }

    #[test]
    fn dates_in_plain_text_are_read_and_stay_there() {
        let read = "lease 5 March 2025|from=alice|(5 March 2025: 2025-03-05)";
        check("lease from:alice 5 March 2025", read);
        check("lease \"5 March 2025\"", "lease|+5 March 2025");
        check(
            "lease after:2026-01-01 yesterday",
            "lease yesterday|>=2026-01-01T00:00:00Z|(yesterday: 2026-11-22)",
        );
    }

    #[test]
    fn times_are_dates_and_ages() {
        for (query, expect) in [
            ("x after:2026-01-01", "x|>=2026-01-01T00:00:00Z"),
            ("x before:2026-02", "x|<2026-02-01T00:00:00Z"),
            ("x after:2026 after:2025", "x|>=2026-01-01T00:00:00Z"),
            ("x before:2026 before:2025-06-01", "x|<2025-06-01T00:00:00Z"),
            ("x after:2026-01-01T10:30:00+02:00", "x|>=2026-01-01T08:30:00Z"),
            ("x before:2026-01-01T10:30", "x|<2026-01-01T10:30:00Z"),
            ("since:30d", "|>=2026-10-24T12:00:00Z"),
            ("since:12h", "|>=2026-11-23T00:00:00Z"),
            ("since:2w", "|>=2026-11-09T12:00:00Z"),
            ("since:6M", "|>=2026-05-23T12:00:00Z"),
            ("since:1y", "|>=2025-11-23T12:00:00Z"),
            ("since:2026", "|>=2026-01-01T00:00:00Z"),
            ("since:\"2026-03-01\"", "|>=2026-03-01T00:00:00Z"),
            ("x after:2026-13-01", "x after:2026-13-01|1 warned"),
            ("x before:lunch", "x before:lunch|1 warned"),
            ("x since:99999y", "x since:99999y|1 warned"),
            ("x since:9999999d", "x since:9999999d|1 warned"),
            ("before:a before:b before:c", "before:a before:b before:c|2 warned"),
            ("x -from:alice", "x -from:alice|1 warned"),
            ("-draft", "-draft|1 warned"),
        ] {
            check(query, expect);
        }
    }

    #[test]
    fn text_that_is_not_exactly_an_operator_is_plain() {
        for query in [
            "",
            "  ",
            "  pay   now ",
            r"C:\dir\file.txt",
            "http://example.com/x?q=1",
            "re: hello",
            "from: alice",
            "title:",
            "from:\"\"",
            "12:30",
            "foo::bar from::new",
            "color:red",
            "has:star has:",
            "filename:",
            "x.title:y",
            "5 - 3",
            "-5",
            "-v",
            "--flag",
            "-",
            "- draft",
            "well-known",
            "a \"lone quote",
            "5\" pipe and 6\" pipe",
            "\"nested \"quotes\"inside",
            "\"?!\"",
            "{\"key\": \"value\"}",
            "(invoice OR bill) AND NOT paid",
            "[a] {b} <c>",
            "*",
        ] {
            check(query, query);
        }
    }

    #[test]
    fn places_of_operators_and_arguments_are_joined() {
        let parsed = parse_query("x stream:a stream:b connection:c", &NOW.parse().unwrap());
        let names =
            |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<Vec<StreamName>>();
        let joined = parsed.apply(SearchQuery::new("", 5)).unwrap();
        assert_eq!((joined.streams, joined.connection), (names(&["a", "b"]), "c".parse().ok()));
        let narrower = SearchQuery { streams: names(&["b", "d"]), ..SearchQuery::new("", 5) };
        assert_eq!(parsed.apply(narrower).unwrap().streams, names(&["b"]));
        let other = SearchQuery { streams: names(&["d"]), ..SearchQuery::new("", 5) };
        assert!(matches!(parsed.apply(other), Err(QueryConflict::Streams { .. })));
        let other = SearchQuery { connection: "d".parse().ok(), ..SearchQuery::new("", 5) };
        assert!(matches!(parsed.apply(other), Err(QueryConflict::Connections { .. })));
        let two = parse_query("connection:a connection:b", &NOW.parse().unwrap());
        assert!(matches!(two.apply(SearchQuery::new("", 5)), Err(QueryConflict::Connections { .. })));
    }

    proptest! {
        #[test]
        fn parsing_never_fails_and_invents_no_text(
            pieces in prop::collection::vec(prop_oneof![
                any::<String>(),
                "[-:\"“” ]{0,4}",
                Just("title:".to_owned()),
                Just("since:9d".to_owned()),
                Just("before:2026-01-01".to_owned()),
                Just("stream:".to_owned()),
                Just("from:\"".to_owned()),
            ], 0..9),
            now in -377_705_023_201_i64..253_402_207_200,
        ) {
            let query = pieces.concat();
            let parsed = parse_query(&query, &Timestamp::from_second(now).unwrap().to_zoned(TimeZone::UTC));
            let text = parsed.text();
            let places = parsed.streams.len() + parsed.connections.len();
            if text.is_plain() && places == 0 {
                prop_assert_eq!(&text.words, &query);
            }
            prop_assert!(parsed.warnings().len() <= MAX_WARNINGS);
            let parts = text.phrases.iter().chain(&text.excluded).chain(text.fields.iter().map(|field| &field.text));
            for part in parts {
                prop_assert!(query.contains(part.as_str()) && part.contains(char::is_alphanumeric), "{:?}", part);
            }
        }
    }
}
