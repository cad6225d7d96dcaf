//! Editing the text of a configuration file: adding and removing sources. All other bytes stay as they are.
//!
//! * `edited_file`: a file to which sources are added
//! * `embedding`: the table of the embedding model
//! * `save`: atomic writes of a file, and its deletion

mod edited_file;
mod embedding;
mod save;

use toml_edit::{Array, ArrayOfTables, Document, DocumentMut, InlineTable, Item, Table, value};

pub use self::edited_file::EditedFile;
pub use self::embedding::with_local_model;
pub use self::save::{delete, save};

/// A source to be added to a file. Each field is the value of a key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewSource {
    /// Value of the key `name`.
    pub name: String,
    /// Value of the key `label`.
    pub label: Option<String>,
    /// Value of the key `store`.
    pub store: Option<String>,
    /// Value of the key `url`.
    pub url: Option<String>,
    /// Value of the key `mcp`.
    pub mcp: Option<String>,
    /// Value of the key `command`, which is omitted if empty.
    pub command: Vec<String>,
    /// Variables of the key `env` with their values, which is omitted if empty.
    pub env: Vec<(String, String)>,
    /// Names of the key `headers` with their values, which is omitted if empty.
    pub headers: Vec<(String, String)>,
    /// Value of the key `preset`.
    pub preset: Option<String>,
    /// Value of the key `credential`.
    pub credential: Option<String>,
    /// Value of the key `cache_root`.
    pub cache_root: Option<String>,
    /// Value of the key `deadline`.
    pub deadline: Option<String>,
    /// Value of the key `streams`, which is omitted if empty.
    pub streams: Vec<String>,
}

impl NewSource {
    fn table(&self) -> Table {
        let mut table = Table::new();
        table.insert("name", value(&self.name));
        for (key, written) in [
            ("label", &self.label),
            ("store", &self.store),
            ("url", &self.url),
            ("mcp", &self.mcp),
            ("preset", &self.preset),
            ("credential", &self.credential),
            ("cache_root", &self.cache_root),
            ("deadline", &self.deadline),
        ] {
            if let Some(written) = written {
                table.insert(key, value(written));
            }
        }
        for (key, list) in [("command", &self.command), ("streams", &self.streams)] {
            if !list.is_empty() {
                table.insert(key, value(list.iter().collect::<Array>()));
            }
        }
        for (key, values) in [("env", &self.env), ("headers", &self.headers)] {
            if !values.is_empty() {
                let values = values.iter().map(|(name, text)| (name.as_str(), text.as_str()));
                table.insert(key, value(values.collect::<InlineTable>()));
            }
        }
        table
    }
}

/// Returns the text with a source appended.
///
/// # Errors
///
/// The text is not valid TOML, or lists its sources inline.
pub fn with_source(text: &str, source: &NewSource) -> Result<String, String> {
    sources(&parse(text)?)?;
    let mut block = DocumentMut::new();
    let mut tables = ArrayOfTables::new();
    tables.push(source.table());
    block.insert("source", Item::ArrayOfTables(tables));
    let between = match text {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let added = format!("{between}{block}");
    // A file with Windows line ends keeps them.
    let added = if text.contains("\r\n") { added.replace('\n', "\r\n") } else { added };
    Ok(format!("{text}{added}"))
}

/// Returns the text without the source of this name and the comments adjacent to it, or `None` if there is no such
/// source.
///
/// # Errors
///
/// The text is not valid TOML, or lists its sources inline.
pub fn without_source(text: &str, name: &str) -> Result<Option<String>, String> {
    let document = parse(text)?;
    let is_it = |table: &&Table| table.get("name").and_then(Item::as_str) == Some(name);
    let Some(source) = sources(&document)?.and_then(|sources| sources.iter().find(is_it)) else {
        return Ok(None);
    };
    let spans = source.iter().filter_map(|(_, item)| item.span()).chain(source.span());
    let (start, end) =
        spans.fold((text.len(), 0), |(start, end), span| (start.min(span.start), end.max(span.end)));
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let line_of = |offset: usize| text.bytes().take(offset).filter(|byte| *byte == b'\n').count();
    let comments = |lines: &mut dyn Iterator<Item = &&str>| {
        lines.take_while(|line| line.trim_start().starts_with('#')).count()
    };
    let (mut first, mut behind) = (line_of(start), line_of(end.saturating_sub(1)) + 1);
    first -= comments(&mut lines.iter().take(first).rev());
    let below = behind + comments(&mut lines.iter().skip(behind));
    let is_blank = |at: usize| lines.get(at).is_none_or(|line| line.trim().is_empty());
    // A comment adjacent to the next source belongs to that one.
    if is_blank(below) {
        behind = below;
    }
    // Of the empty lines around it, those above stay.
    if is_blank(behind) && (first == 0 || is_blank(first - 1)) {
        behind += 1;
    }
    Ok(Some(lines.iter().take(first).chain(lines.iter().skip(behind)).copied().collect()))
}

fn parse(text: &str) -> Result<Document<&str>, String> {
    Document::parse(text).map_err(|error| error.message().to_owned())
}

fn sources<'a>(document: &'a Document<&str>) -> Result<Option<&'a ArrayOfTables>, String> {
    match document.get("source") {
        None => Ok(None),
        Some(Item::ArrayOfTables(sources)) => Ok(Some(sources)),
        Some(_) => {
            Err("its sources are listed inline; write each as a [[source]] table, or edit it by hand"
                .to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# fetchwell, for all of us\n\nlisten = \"127.0.0.1:7401\"   # not the usual port\n\n\
        # The notes.\n[[source]]\nname = \"notes\" # mine\nstore = 'notes.db'\n# deadline = \"1s\"\n\n\
        # --- servers ---\n\n# Work\n[[source]]\nname = \"work\"\nurl = \"https://records.example.com\"\n\
        streams = [\n  \"messages\", # no files\n]\n# Home\n[[source]]\nname = \"home\"\nstore = \"home.db\"\n\n# The end.\n";

    #[track_caller]
    fn check_without(text: &str, name: &str, gone: &str) {
        assert!(text.contains(gone), "the test is wrong about {gone:?}");
        assert_eq!(without_source(text, name).unwrap().unwrap(), text.replacen(gone, "", 1));
    }

    #[test]
    fn a_source_is_removed_with_its_own_comments_only() {
        check_without(
            FILE,
            "notes",
            "# The notes.\n[[source]]\nname = \"notes\" # mine\nstore = 'notes.db'\n# deadline = \"1s\"\n\n",
        );
        check_without(
            FILE,
            "work",
            "# Work\n[[source]]\nname = \"work\"\nurl = \"https://records.example.com\"\nstreams = [\n  \"messages\", # no files\n]\n",
        );
        check_without(FILE, "home", "# Home\n[[source]]\nname = \"home\"\nstore = \"home.db\"\n");
        let windows = FILE.replace('\n', "\r\n");
        check_without(&windows, "home", "# Home\r\n[[source]]\r\nname = \"home\"\r\nstore = \"home.db\"\r\n");
        check_without(
            "[[source]]\nname = \"a\"\n\n[[source]]\nname = \"b\"",
            "a",
            "[[source]]\nname = \"a\"\n\n",
        );
        check_without(
            "[[source]]\nname = \"a\"\n\n[[source]]\nname = \"b\"",
            "b",
            "[[source]]\nname = \"b\"",
        );
        assert_eq!(without_source(FILE, "nobody"), Ok(None));
        assert_eq!(without_source("", "nobody"), Ok(None));
    }

    #[test]
    fn adding_and_removing_a_source_restores_the_file() {
        let source = NewSource {
            name: "new \"one\"".to_owned(),
            label: Some("New: ü".to_owned()),
            url: Some("https://new.example".to_owned()),
            credential: Some("command:pass 'new'".to_owned()),
            deadline: Some("2s".to_owned()),
            streams: vec!["a".to_owned(), "b".to_owned()],
            env: vec![("A_KEY".to_owned(), "env:A_KEY".to_owned()), ("b c".to_owned(), "\"".to_owned())],
            ..NewSource::default()
        };
        for text in [FILE, &FILE.replace('\n', "\r\n"), "# only a comment", ""] {
            let with = with_source(text, &source).unwrap();
            assert!(with.starts_with(text), "{with}");
            let read: toml::Table = toml::from_str(&with).unwrap();
            let last = read["source"].as_array().unwrap().last().unwrap();
            assert_eq!(last["name"].as_str(), Some("new \"one\""), "{with}");
            assert_eq!(last["credential"].as_str(), Some("command:pass 'new'"), "{with}");
            assert_eq!(last["streams"].as_array().unwrap().len(), 2, "{with}");
            assert_eq!(last["env"]["A_KEY"].as_str(), Some("env:A_KEY"), "{with}");
            assert_eq!(last["env"]["b c"].as_str(), Some("\""), "{with}");
            let without = without_source(&with, "new \"one\"").unwrap().unwrap();
            assert_eq!(without.trim_end(), text.trim_end());
            assert_eq!(with.contains("\r\n"), with.matches('\n').count() == with.matches("\r\n").count());
        }
    }

    #[test]
    fn a_file_that_cannot_be_edited_safely_is_rejected() {
        for (text, problem) in [("source = [{name = \"a\", store = \"x\"}]\n", "inline"), ("a = \n", "")] {
            let refused = with_source(text, &NewSource::default()).unwrap_err();
            assert!(refused.contains(problem) && !refused.is_empty(), "{refused}");
            assert_eq!(without_source(text, "a").unwrap_err(), refused);
        }
    }
}
