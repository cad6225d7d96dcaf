//! `import markdown`: a folder of notes, a record per file.
//!
//! A record has the file's `path` within the folder (with `/`), which is its key too, its `title` (from
//! the front matter, else the first heading, else the file's name), the fields of its front matter, and
//! its text as `body`. Hidden files and folders are passed over; links are not followed.

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use serde_json::Value;
use walkdir::{DirEntry, WalkDir};

use super::ImportError;
use super::intake::{Draft, Intake, Repeated};
use crate::record::RecordData;

/// The largest note, in bytes. Larger files are exports of something else.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Bytes of a note in which its heading is looked for.
const MAX_HEADING_BYTES: usize = 256 * 1024;

/// Quotes and lists within each other in a line. The parser compares each line with all that are open.
const MAX_BLOCK_DEPTH: usize = 100;

/// Imports every Markdown file below `folder` into `stream`. `progress` is told each file's size.
///
/// # Errors
///
/// The folder cannot be read, the store cannot be written, or the user stopped the import.
pub fn import_markdown(
    folder: &Path,
    stream: &str,
    intake: &mut Intake<'_>,
    progress: &dyn Fn(u64),
) -> Result<(), ImportError> {
    let unreadable = |problem: String| ImportError::Unreadable { path: folder.to_owned(), problem };
    if !fs::metadata(folder).map_err(|error| unreadable(error.to_string()))?.is_dir() {
        return Err(unreadable("it is not a folder".to_owned()));
    }
    let visible =
        |entry: &DirEntry| entry.depth() == 0 || !entry.file_name().to_string_lossy().starts_with('.');
    for entry in WalkDir::new(folder).sort_by_file_name().into_iter().filter_entry(visible) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) if error.depth() == 0 => return Err(unreadable(error.to_string())),
            Err(error) => {
                let place = error.path().unwrap_or(folder).display().to_string();
                intake.reject(&place, "it cannot be read; check its permissions");
                continue;
            }
        };
        if !entry.file_type().is_file() || !is_markdown(entry.path()) {
            continue;
        }
        let within = entry.path().strip_prefix(folder).unwrap_or(entry.path());
        match read_note(&entry, within) {
            Ok((path, note, changed_at)) => {
                progress(note.len() as u64);
                let data = note_fields(&path, &note);
                let key = Some(Value::from(path.as_str()));
                let (bytes, repeated) = (note.len(), Repeated::Refused);
                let draft = Draft { stream, key, data: Some(data), emitted_at: changed_at, bytes, repeated };
                intake.take(&path, draft)?;
            }
            Err(reason) => intake.reject(&within.display(), &reason),
        }
    }
    Ok(())
}

fn is_markdown(path: &Path) -> bool {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    matches!(extension.as_deref(), Some("md" | "markdown" | "mdx"))
}

fn read_note(entry: &DirEntry, within: &Path) -> Result<(String, String, Option<String>), String> {
    let pieces: Option<Vec<&str>> = within.iter().map(|piece| piece.to_str()).collect();
    let path = pieces.ok_or("its name is not UTF-8")?.join("/");
    let metadata = entry.metadata().map_err(|error| error.to_string())?;
    if metadata.len() > MAX_FILE_BYTES {
        return Err(format!("it is larger than {MAX_FILE_BYTES} bytes"));
    }
    let bytes = fs::read(entry.path()).map_err(|error| error.to_string())?;
    let note = String::from_utf8(bytes)
        .map_err(|error| format!("it is not UTF-8 at byte {}", error.utf8_error().valid_up_to() + 1))?;
    let changed_at = metadata.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
    Ok((path, note, changed_at.map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())))
}

fn note_fields(path: &str, note: &str) -> RecordData {
    let note = note.strip_prefix('\u{FEFF}').unwrap_or(note);
    let (front_matter, body) = split_front_matter(note);
    let own_title = front_matter.get("title").and_then(Value::as_str).map(str::to_owned);
    let file_name = path.rsplit('/').next().unwrap_or(path);
    let stem = file_name.rsplit_once('.').map_or(file_name, |(stem, _)| stem);
    let title = own_title.or_else(|| first_heading(body)).unwrap_or_else(|| stem.to_owned());
    let mut data = RecordData::new();
    data.insert("title".to_owned(), Value::from(title));
    data.insert("path".to_owned(), Value::from(path));
    for (name, value) in front_matter {
        // A front matter that has a `path` or `body` of its own keeps it under another name.
        let name = match name.as_str() {
            "title" => continue,
            "path" | "body" => format!("front_matter_{name}"),
            _ => name,
        };
        data.insert(name, value);
    }
    data.insert("body".to_owned(), Value::from(body));
    data
}

/// The fields of a YAML (`---`) or TOML (`+++`) front matter and the text after it. What does not parse
/// stays text, so nothing of a note is lost.
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
            _ => serde_json::to_value(toml::from_str::<toml::Table>(matter).ok()?).ok()?,
        };
        match fields {
            Value::Object(fields) => Some((fields, body)),
            Value::Null => Some((RecordData::new(), body)),
            _ => None,
        }
    };
    parse("---").or_else(|| parse("+++")).unwrap_or((RecordData::new(), note))
}

/// Returns the start of a note, in which its heading is looked for.
fn start_of(body: &str) -> &str {
    let mut end = 0;
    let mut lines = body.split_inclusive('\n');
    let too_deep = lines.find(|line| {
        let is_deep = nesting(line) > MAX_BLOCK_DEPTH;
        end += if is_deep { 0 } else { line.len() };
        is_deep || end > MAX_HEADING_BYTES
    });
    let end = if too_deep.is_some() { end.min(MAX_HEADING_BYTES) } else { body.len() };
    body.get(..body.floor_char_boundary(end)).unwrap_or_default()
}

/// Returns how many quotes and lists a line begins.
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

fn first_heading(body: &str) -> Option<String> {
    let mut events = Parser::new(start_of(body));
    events.find(|event| matches!(event, Event::Start(Tag::Heading { .. })))?;
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
            "intro\n\n## The `big` *plan*\n",
            &json!({"title": "The big plan", "path": path, "body": "intro\n\n## The `big` *plan*\n"}),
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
    fn a_heading_after_deep_quotes_is_no_title() {
        let quotes = |depth: usize| format!("{}a\n\n# Title\n", "> ".repeat(depth));
        assert_eq!(first_heading(&quotes(100)).as_deref(), Some("Title"));
        assert_eq!(first_heading(&quotes(101)), None);
        let rule = format!("{}\n\n# Title\n", "-".repeat(1_000));
        assert_eq!(first_heading(&rule).as_deref(), Some("Title"));
        let late = format!("{}\n# Title\n", "word é\n".repeat(60_000));
        assert_eq!(first_heading(&late), None);
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
            format!("+++\n[[a{}]]\n+++\nx", ".a".repeat(101)),
        ] {
            assert_eq!(
                note_fields("n.md", &note).get("body"),
                Some(&json!(note)),
                "{}",
                note.get(..20).unwrap()
            );
        }
    }

    #[test]
    fn what_looks_like_front_matter_and_is_not_stays_text() {
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
