//! The fields of a record by the way in which they are shown: facts, texts, and other values.

use fetchwell_core::fit::{ContentChunks, ContentKind, clip, first_bytes};
use fetchwell_core::record::{RecordData, html_to_text, is_same_name, is_title_field};
use serde_json::Value;

/// Maximum length of a string that is a fact, in characters.
const MAX_FACT_CHARS: usize = 200;

/// Maximum number of facts.
const MAX_FACTS: usize = 100;

/// Maximum number of texts.
const MAX_TEXTS: usize = 50;

/// Maximum number of other values.
const MAX_VALUES: usize = 20;

/// Maximum length of the name of a field, in bytes of JSON.
const MAX_NAME_BYTES: usize = 120;

/// Bytes at the start of a text from which its kind is detected.
const TELLING_BYTES: usize = 8_192;

/// Names of fields with the text of a record, which is a text also if it is short.
const BODIES: [&str; 5] = ["body", "text", "content", "message", "description"];

/// File extensions of Markdown.
const MARKDOWN: [&str; 4] = ["md", "markdown", "mdx", "mdown"];

/// File extensions of code and data.
const CODE: [&str; 34] = [
    "c", "cc", "cpp", "cs", "css", "go", "h", "hpp", "html", "ini", "java", "js", "json", "jsx", "kt", "lua",
    "mjs", "php", "pl", "py", "rb", "rs", "scala", "sh", "sql", "swift", "toml", "ts", "tsx", "xml", "yaml",
    "yml", "csv", "tsv",
];

/// A short field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fact {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// A long text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextField {
    pub(crate) name: String,
    pub(crate) kind: TextKind,
    pub(crate) text: String,
}

/// Kind of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextKind {
    Markdown,
    Code,
    Plain,
}

/// The fields of a record.
#[derive(Debug, Default)]
pub(crate) struct RecordFields {
    pub(crate) facts: Vec<Fact>,
    pub(crate) texts: Vec<TextField>,
    pub(crate) values: Vec<(String, Value)>,
    /// Number of fields that are left out.
    pub(crate) omitted: usize,
}

impl RecordFields {
    /// Sorts the fields of a record. The field with the title is left out, because the page has it as its heading.
    pub(crate) fn new(data: RecordData, title: &str) -> Self {
        let extension = extension(&data);
        let mut fields = Self::default();
        for (name, value) in data {
            let is_heading =
                is_title_field(&name) && value.as_str().is_some_and(|value| value.trim() == title);
            if !is_heading && !is_empty(&value) && !fields.add(&name, value, extension.as_deref()) {
                fields.omitted += 1;
            }
        }
        fields
    }

    /// Adds a field. Returns false if there are too many of its kind.
    fn add(&mut self, name: &str, value: Value, extension: Option<&str>) -> bool {
        let name = clip(name, MAX_NAME_BYTES);
        let is_body = value.is_string() && BODIES.iter().any(|body| is_same_name(body, &name));
        if let Some(value) = fact(&value).filter(|_| !is_body) {
            let has_room = self.facts.len() < MAX_FACTS;
            self.facts.extend(has_room.then_some(Fact { name, value }));
            return has_room;
        }
        match value {
            Value::String(text) => {
                let has_room = self.texts.len() < MAX_TEXTS;
                self.texts.extend(has_room.then(|| TextField::new(name, text, extension)));
                has_room
            }
            other => {
                let has_room = self.values.len() < MAX_VALUES;
                self.values.extend(has_room.then_some((name, other)));
                has_room
            }
        }
    }
}

impl TextField {
    fn new(name: String, text: String, extension: Option<&str>) -> Self {
        if is_html(&name, &text) {
            return Self { name, kind: TextKind::Plain, text: html_to_text(&text) };
        }
        let is_one_of = |known: &[&str]| extension.is_some_and(|extension| known.contains(&extension));
        let kind = if is_one_of(&MARKDOWN) {
            TextKind::Markdown
        } else if is_one_of(&CODE) {
            TextKind::Code
        } else {
            match ContentChunks::new(first_bytes(&text, TELLING_BYTES), TELLING_BYTES).kind {
                ContentKind::Markdown => TextKind::Markdown,
                ContentKind::Code | ContentKind::Log => TextKind::Code,
                ContentKind::Prose => TextKind::Plain,
            }
        };
        Self { name, kind, text }
    }
}

/// Returns the lowercase extension of the file that a record was read from.
fn extension(data: &RecordData) -> Option<String> {
    let path = ["path", "file", "filename", "name"].iter().find_map(|name| data.get(*name)?.as_str())?;
    let (_, extension) = path.rsplit_once('.')?;
    Some(extension.to_ascii_lowercase())
}

fn is_html(name: &str, text: &str) -> bool {
    let start = text.trim_start().get(..15).unwrap_or_default().to_ascii_lowercase();
    let is_named =
        is_same_name(name, "html") || is_same_name(name, "body_html") || is_same_name(name, "html_body");
    is_named || start.starts_with("<!doctype html") || start.starts_with("<html")
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns a short value on one line: a scalar, or a list of scalars.
fn fact(value: &Value) -> Option<String> {
    let line = match value {
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) if items.len() <= MAX_FACTS => {
            let texts: Option<Vec<String>> = items.iter().map(item).collect();
            texts?.join(", ")
        }
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    let is_short = !line.contains(['\n', '\r']) && line.chars().nth(MAX_FACT_CHARS).is_none();
    is_short.then_some(line)
}

fn item(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sort(value: Value, title: &str) -> RecordFields {
        RecordFields::new(serde_json::from_value(value).unwrap(), title)
    }

    #[test]
    fn fields_are_facts_texts_or_values() {
        let long = "A sentence with some words. ".repeat(20);
        let fields = sort(
            json!({"subject": "Hello", "from": "Ann <a@x>", "labels": ["a", "b"], "n": 1, "none": null, "empty": "",
                "body": long, "html": "<p>One<script>x</script></p><p>Two</p>".repeat(9), "parts": [{"a": 1}]}),
            "Hello",
        );
        let facts: Vec<String> =
            fields.facts.iter().map(|fact| format!("{}={}", fact.name, fact.value)).collect();
        assert_eq!(facts, ["from=Ann <a@x>", "labels=a, b", "n=1"]);
        let texts: Vec<_> = fields.texts.iter().map(|text| (text.name.as_str(), text.kind)).collect();
        assert_eq!(texts, [("body", TextKind::Plain), ("html", TextKind::Plain)]);
        assert!(!fields.texts[1].text.contains("script"), "{}", fields.texts[1].text);
        assert_eq!(fields.values, [("parts".to_owned(), json!([{"a": 1}]))]);
    }

    #[test]
    fn the_path_of_a_file_tells_the_kind_of_its_text() {
        for (path, kind) in
            [("a/b.md", TextKind::Markdown), ("x.RS", TextKind::Code), ("x.unknown", TextKind::Plain)]
        {
            let fields = sort(json!({"path": path, "body": "plain words.\n".repeat(30)}), "");
            assert_eq!(fields.texts[0].kind, kind, "{path}");
        }
    }

    #[test]
    fn thousands_of_fields_are_counted() {
        let data: RecordData = (0..10_000).map(|number| (format!("f{number}"), json!(number))).collect();
        let fields = RecordFields::new(data, "");
        assert_eq!((fields.facts.len(), fields.omitted), (MAX_FACTS, 10_000 - MAX_FACTS));
    }
}
