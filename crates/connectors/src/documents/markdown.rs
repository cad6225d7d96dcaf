//! The reader of Markdown notes.
//!
//! A record has the file's `path` within the folder (with `/`), which is also its key, a `title` (from the front
//! matter, else a first-level heading at the top, else the file name), the fields of the front matter, with `tags`
//! and `aliases` as lists, and the text as `body`, with its links between notes as text. Tags in the text are `tags`, too. Its
//! time is that of the front matter, else of the file's name, else of the file.

use fetchwell_core::fit::first_bytes;
use fetchwell_core::record::{RecordData, field_named};
use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};
use serde_json::Value;

use super::super::item::{FileRecord, Item};
use super::super::skips::Problem;
use super::super::values::time_of_value;
use super::joplin::{JoplinItem, read_joplin};
use super::note_name::{time_of_name, title_of_name};
use super::note_text::{Tags, property_list, read_text, split_properties};

/// Stream of notes.
const STREAM: &str = "documents";

/// Maximum number of bytes of a note in which its heading is searched.
const MAX_HEADING_BYTES: usize = 256 * 1024;

/// Maximum nesting of quotes and lists in a line. The parser compares each line with all open ones.
const MAX_BLOCK_DEPTH: usize = 100;

/// Fields of a front matter with the time at which a note was written, the preferred first.
const TIME_FIELDS: [&str; 3] = ["created", "modified", "date"];

/// Reads a note.
pub(crate) fn read_note(item: &mut Item<'_>) -> Result<FileRecord, Problem> {
    let note = String::from_utf8(item.read_all()?)
        .map_err(|error| format!("it is not UTF-8 at byte {}", error.utf8_error().valid_up_to() + 1))?;
    let mut record = FileRecord::for_item(STREAM, item);
    record.data = note_fields(&item.path, &note);
    let own = written_at(&record.data).or_else(|| time_of_name(item.stem()));
    record.emitted_at = own.or(record.emitted_at);
    Ok(record)
}

fn note_fields(path: &str, note: &str) -> RecordData {
    let note = note.strip_prefix('\u{FEFF}').unwrap_or(note);
    let (mut fields, body) = split_front_matter(note);
    let joplin = read_joplin(body).unwrap_or(JoplinItem { body, ..JoplinItem::default() });
    for (name, value) in joplin.fields {
        add_field(&mut fields, name, Value::from(value));
    }
    let (properties, body) = split_properties(joplin.body);
    let (of_tags, properties): (Vec<_>, Vec<_>) =
        properties.into_iter().partition(|(name, _)| name.eq_ignore_ascii_case("tags"));
    for (name, value) in properties {
        add_field(&mut fields, name, property_value(name, value));
    }
    let own_title = field_named(&fields, "title").and_then(|title| match title {
        Value::String(title) => Some(title.trim().to_owned()).filter(|title| !title.is_empty()),
        Value::Number(title) => Some(title.to_string()),
        _ => None,
    });
    let file_name = path.rsplit('/').next().unwrap_or(path);
    let stem = file_name.rsplit_once('.').map_or(file_name, |(stem, _)| stem);
    let own_title = own_title.or_else(|| Some(joplin.title.to_owned()).filter(|title| !title.is_empty()));
    let title = own_title.or_else(|| top_heading(body)).unwrap_or_else(|| title_of_name(stem));
    let mut tags = Tags::default();
    let mut data = RecordData::new();
    data.insert("title".to_owned(), Value::from(title));
    data.insert("path".to_owned(), Value::from(path));
    for (name, value) in fields {
        // A `path` or `body` of the front matter is stored under another name.
        let (name, value) = match name.to_ascii_lowercase().as_str() {
            "title" if !value.is_array() && !value.is_object() => continue,
            "title" | "path" | "body" => (format!("front_matter_{name}"), value),
            "tags" | "tag" => {
                string_list(value, &[',', ' ']).iter().for_each(|tag| tags.add(tag));
                ("tags".to_owned(), Value::from(tags.list.clone()))
            }
            "aliases" | "alias" => ("aliases".to_owned(), Value::from(string_list(value, &[',']))),
            _ => (name, value),
        };
        data.insert(name, value);
    }
    of_tags.into_iter().flat_map(|(_, tags)| property_list(tags)).for_each(|tag| tags.add(&tag));
    let text = read_text(body, &mut tags);
    if !tags.list.is_empty() {
        data.insert("tags".to_owned(), Value::from(tags.list));
    }
    data.insert("body".to_owned(), Value::from(text));
    data
}

/// Adds a field to those of the front matter, unless that has it.
fn add_field(fields: &mut RecordData, name: &str, value: Value) {
    if field_named(fields, name).is_none() {
        fields.insert(name.to_owned(), value);
    }
}

/// Returns the value of a property of Logseq: a list of aliases, or a text without the brackets of links.
fn property_value(name: &str, value: &str) -> Value {
    match name.to_ascii_lowercase().as_str() {
        "alias" | "aliases" => Value::from(property_list(value)),
        _ => Value::from(read_text(value, &mut Tags::default())),
    }
}

/// Returns tags or aliases as a list: `[a, b]`, `a, b` and `#a #b` are equal.
fn string_list(value: Value, separators: &[char]) -> Vec<String> {
    let words = match value {
        Value::Array(items) => items.iter().flat_map(|item| string_list(item.clone(), &[])).collect(),
        Value::String(text) if separators.is_empty() => vec![text],
        Value::String(text) => text.split(separators).map(str::to_owned).collect(),
        Value::Number(number) => vec![number.to_string()],
        Value::Null | Value::Bool(_) | Value::Object(_) => Vec::new(),
    };
    let words = words.iter().map(|word| word.trim().trim_start_matches('#').to_owned());
    words.filter(|word| !word.is_empty()).collect()
}

/// Returns the time at which a note was written, according to its front matter.
fn written_at(data: &RecordData) -> Option<String> {
    TIME_FIELDS.iter().filter_map(|name| field_named(data, name)).find_map(time_of_value)
}

/// Converts a TOML value to JSON. Times become strings.
fn toml_to_json(value: toml::Value) -> Value {
    match value {
        toml::Value::Datetime(time) => Value::from(time.to_string()),
        toml::Value::Array(items) => items.into_iter().map(toml_to_json).collect(),
        toml::Value::Table(fields) => {
            Value::Object(fields.into_iter().map(|(name, value)| (name, toml_to_json(value))).collect())
        }
        other => serde_json::to_value(other).unwrap_or_default(),
    }
}

/// Splits a note into the fields of its YAML (`---`) or TOML (`+++`) front matter and the text after it. A front
/// matter that does not parse stays in the text, so that nothing is lost.
fn split_front_matter(note: &str) -> (RecordData, &str) {
    let parse = |fence: &str| {
        let rest = note.strip_prefix(fence)?;
        let rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n'))?;
        let mut end = 0;
        let closing = rest.split_inclusive('\n').find(|line| {
            let closes = line.trim_end() == fence;
            end += if closes { 0 } else { line.len() };
            closes
        })?;
        let (matter, body) = (rest.get(..end)?, rest.get(end + closing.len()..)?);
        let fields = match fence {
            "---" => serde_saphyr::from_str::<Value>(matter).ok()?,
            _ => Value::Object(
                toml::from_str::<toml::Table>(matter)
                    .ok()?
                    .into_iter()
                    .map(|(name, value)| (name, toml_to_json(value)))
                    .collect(),
            ),
        };
        match fields {
            Value::Object(fields) => Some((fields, body)),
            Value::Null => Some((RecordData::new(), body)),
            _ => None,
        }
    };
    parse("---").or_else(|| parse("+++")).unwrap_or((RecordData::new(), note))
}

/// Returns the start of a note, in which its heading is searched.
fn start_of(body: &str) -> &str {
    let mut end = 0;
    let mut lines = body.split_inclusive('\n');
    let too_deep = lines.find(|line| {
        let is_deep = nesting(line) > MAX_BLOCK_DEPTH;
        end += if is_deep { 0 } else { line.len() };
        is_deep || end > MAX_HEADING_BYTES
    });
    let end = if too_deep.is_some() { end.min(MAX_HEADING_BYTES) } else { body.len() };
    first_bytes(body, end)
}

/// Returns the number of quotes and lists that a line opens.
fn nesting(line: &str) -> usize {
    let mut before = b' ';
    let starts = line.bytes().take_while(|byte| {
        byte.is_ascii_whitespace() || matches!(byte, b'>' | b'-' | b'*' | b'+' | b'0'..=b'9' | b'.' | b')')
    });
    let is_marker = |byte: u8| {
        let ends_list = matches!(before, b'-' | b'*' | b'+' | b'.' | b')') && byte.is_ascii_whitespace();
        before = byte;
        byte == b'>' || ends_list
    };
    starts.map(is_marker).filter(|is_marker| *is_marker).count()
}

/// Returns the first-level heading at the start of a note. Comments and other HTML may precede it.
fn top_heading(body: &str) -> Option<String> {
    let mut events = Parser::new(start_of(body)).skip_while(|event| {
        matches!(
            event,
            Event::Start(Tag::HtmlBlock)
                | Event::End(TagEnd::HtmlBlock)
                | Event::Html(_)
                | Event::InlineHtml(_)
        )
    });
    let Some(Event::Start(Tag::Heading { level: HeadingLevel::H1, .. })) = events.next() else { return None };
    let inside = events.take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    let title: String = inside
        .filter_map(|event| match event {
            Event::Text(text) | Event::Code(text) => Some(text.into_string()),
            Event::SoftBreak | Event::HardBreak => Some(" ".to_owned()),
            _ => None,
        })
        .collect();
    Some(title.trim().to_owned()).filter(|title| !title.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(note: &str, expect: &Value) {
        assert_eq!(Value::Object(note_fields("a/my note.md", note)), *expect);
    }

    #[test]
    fn a_title_comes_from_the_front_matter_then_a_heading_then_the_name() {
        let path = "a/my note.md";
        check(
            "---\ntitle: Plan\ntags: [a, b]\n---\n# Other\ntext",
            &json!({"title": "Plan", "path": path, "tags": ["a", "b"], "body": "# Other\ntext"}),
        );
        check(
            "\n<!-- draft -->\n\n# The `big` *plan*\n# Other",
            &json!({"title": "The big plan", "path": path, "body": "\n<!-- draft -->\n\n# The `big` *plan*\n# Other"}),
        );
        check(
            "```\n# no heading\n```",
            &json!({"title": "my note", "path": path, "body": "```\n# no heading\n```"}),
        );
        check("+++\ntitle = \"T\"\n+++\nx", &json!({"title": "T", "path": path, "body": "x"}));
        check("---\r\ntitle: W\r\n---\r\nx", &json!({"title": "W", "path": path, "body": "x"}));
    }

    #[test]
    fn a_note_of_any_shape_has_a_title() {
        for shape in [
            ">",
            "> - ",
            "- ",
            "1. ",
            "[",
            "![",
            "](",
            "[a](",
            "*a **b ",
            "_a ",
            "`",
            "<",
            "<a ",
            "<!--",
            "<![CDATA[",
            "&a",
            "|",
            "\\",
            "a\n",
            "[a]: b '\n",
            "    a\n\n",
            "```\n",
            "#",
            "# a\n",
        ] {
            for lines in ["", "x\n", ">x\n", "\n  x\n"] {
                let note = format!("{}\n{}", shape.repeat(10_000), lines.repeat(5_000));
                let fields = note_fields("n.md", &note);
                assert!(fields.get("title").is_some_and(Value::is_string), "{shape}");
                assert_eq!(fields.get("body"), Some(&json!(note)));
            }
        }
    }

    #[test]
    fn a_heading_further_down_is_no_title() {
        // A Rust RFC, a note of a vault, and a README.
        for body in
            ["- Start Date: 2014-03-11\n\n# Summary\ntext", "## Notes\ntext", "intro\n\n# Notes", "#", "#1"]
        {
            check(body, &json!({"title": "my note", "path": "a/my note.md", "body": body}));
        }
        check(
            "Title\n=====\ntext",
            &json!({"title": "Title", "path": "a/my note.md", "body": "Title\n=====\ntext"}),
        );
    }

    #[test]
    fn tags_and_aliases_are_lists() {
        let path = "a/my note.md";
        for matter in [
            "tags: [a, b/c]\naliases: [One note, Two]",
            "Tags: a, b/c\nalias: One note, Two",
            "tag: '#a #b/c'\naliases:\n- One note\n- Two",
        ] {
            check(
                &format!("---\n{matter}\n---\nx"),
                &json!({"title": "my note", "path": path, "tags": ["a", "b/c"], "aliases": ["One note", "Two"], "body": "x"}),
            );
        }
    }

    #[test]
    fn notes_of_other_programs_have_titles_and_fields() {
        let check = |path: &str, note: &str, expect: Value| {
            assert_eq!(Value::Object(note_fields(path, note)), expect);
        };
        let path = "a/Road map 0123456789abcdef0123456789abcdef.md";
        check(
            path,
            "text #plan",
            json!({"title": "Road map", "path": path, "tags": ["plan"], "body": "text #plan"}),
        );
        check(
            "team___birds.md",
            "tags:: [[two words]], b\nstatus:: [[open]]\n\n- See [[Heron]] #B #c\n  id:: 64-ab\n",
            json!({
                "title": "team/birds", "path": "team___birds.md", "tags": ["two words", "b", "c"], "status": "open",
                "body": "\n- See Heron #B #c\n",
            }),
        );
        check(
            "n.md",
            "---\ntags: [a]\nstatus: done\n---\nstatus:: open\ntags:: b\n#A #d",
            json!({"title": "n", "path": "n.md", "tags": ["a", "b", "d"], "status": "done", "body": "#A #d"}),
        );
        let note = "Heron\n\nSaw [it](:/0123456789abcdef0123456789abcdef).\n\nid: 0123456789abcdef0123456789abcdef\n\
            created_time: 2024-03-09T10:00:00.000Z\ntype_: 1";
        check(
            "0123456789abcdef0123456789abcdef.md",
            note,
            json!({
                "title": "Heron", "path": "0123456789abcdef0123456789abcdef.md", "created": "2024-03-09T10:00:00.000Z",
                "body": "Saw [it].",
            }),
        );
    }

    #[test]
    fn the_time_is_that_of_the_front_matter() {
        for (matter, expect) in [
            ("---\ndate: 2026-04-01\n---\n", Some("2026-04-01")),
            (
                "---\nmodified: 2026-04-02T10:00\ncreated: 2026-04-01 09:30\n---\n",
                Some("2026-04-01T09:30:00Z"),
            ),
            ("---\nDate: 1 April 2026\n---\n", Some("2026-04-01")),
            ("+++\ndate = 2026-04-01T10:00:00+02:00\n+++\n", Some("2026-04-01T10:00:00+02:00")),
            ("---\ndate: soon\n---\n", None),
            ("created: 2026-04-01\n", None),
        ] {
            assert_eq!(written_at(&note_fields("n.md", matter)).as_deref(), expect, "{matter}");
        }
    }

    #[test]
    fn a_heading_after_deep_quotes_is_no_title() {
        let quotes = |depth: usize| format!("<!-- a -->\n\n# Title\n\n{}a\n", "> ".repeat(depth));
        assert_eq!(top_heading(&quotes(100)).as_deref(), Some("Title"));
        assert_eq!(top_heading(&quotes(101)).as_deref(), Some("Title"));
        assert_eq!(top_heading(&format!("{}# Title\n", "> ".repeat(101))), None);
        let late = format!("<!--{}-->\n# Title\n", "word é\n".repeat(60_000));
        assert_eq!(top_heading(&late), None);
    }

    #[test]
    fn a_front_matter_that_is_nested_too_deep_stays_text() {
        let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
        let (some, end) = ("[".repeat(101), "]".repeat(101));
        for note in [
            format!("---\na: {open}{close}\n---\nx"),
            format!("---\na: {some}{end}\n---\nx"),
            format!("---\n{}a\n---\nx", "- ".repeat(100_000)),
            format!("---\n{}\n---\nx", "{a: ".repeat(100_000)),
            format!("+++\na = {open}{close}\n+++\nx"),
            format!("+++\na = {some}{end}\n+++\nx"),
            format!("+++\na{} = 1\n+++\nx", ".a".repeat(100_000)),
            format!("+++\n[a{}]\n+++\nx", ".a".repeat(100_000)),
        ] {
            assert_eq!(
                note_fields("n.md", &note).get("body"),
                Some(&json!(note)),
                "{}",
                note.get(..20).unwrap()
            );
        }
        // A table of TOML looks like a link to a note.
        let (note, name) = (format!("+++\n[[a{0}]]\n+++\nx", ".a".repeat(101)), ".a".repeat(101));
        assert_eq!(note_fields("n.md", &note).get("body"), Some(&json!(format!("+++\na{name}\n+++\nx"))));
    }

    #[test]
    fn invalid_front_matter_stays_text() {
        for note in ["---\nno: [closing\n---\nx", "---\nnever closed", "--- \ntext", "---\njust text\n---\nx"]
        {
            assert_eq!(note_fields("n.md", note).get("body"), Some(&json!(note)), "{note}");
        }
    }

    #[test]
    fn a_front_matter_cannot_hide_the_text() {
        check(
            "---\nbody: mine\npath: elsewhere\n---\nthe text",
            &json!({"title": "my note", "path": "a/my note.md", "front_matter_body": "mine", "front_matter_path": "elsewhere", "body": "the text"}),
        );
    }
}
