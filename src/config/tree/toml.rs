//! The TOML parser of configuration files.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::node::{Key, Mistake, Node, Value, key_of, line_at};

/// Parses a whole file. The `toml` crate limits the depth.
pub(super) fn parse(text: &str) -> Result<Node, Mistake> {
    let table = DeTable::parse(text).map_err(|error| {
        let span = error.span();
        // The parser's `Display` quotes the line, which may contain a secret. A key is not a secret.
        let is_about_key = error.message().contains("duplicate key");
        let key = span.clone().filter(|_| is_about_key).and_then(|span| text.get(span));
        Mistake {
            line: span.map(|span| line_at(text, span.start)),
            key: key.map(|key| key_of(&[key.trim_matches(['"', '\''])])),
            problem: error.message().trim_end().to_owned(),
        }
    })?;
    let lines = LineIndex::new(text);
    Ok(Node { line: 1, value: lines.table(table.get_ref()) })
}

/// The offsets of line starts, so that looking up the line of a key does not scan the file.
struct LineIndex(Vec<usize>);

impl LineIndex {
    fn new(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self(std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect())
    }

    fn line(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset)
    }

    fn table(&self, table: &DeTable<'_>) -> Value {
        let mut entries: Vec<(Key, Node)> = table
            .iter()
            .map(|(key, value)| {
                let key = Key { line: self.line(key.span().start), name: key.get_ref().to_string() };
                // A table that is defined by its subtables only has no position of its own.
                let mut node = self.node(value);
                node.line = node.line.max(key.line);
                (key, node)
            })
            .collect();
        // The parser sorts by name. Sorting by line reports the first error of the file first.
        entries.sort_by_key(|(key, _)| key.line);
        Value::Table(entries)
    }

    fn node(&self, value: &Spanned<DeValue<'_>>) -> Node {
        let line = self.line(value.span().start);
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(digits) => match i128::from_str_radix(digits.as_str(), digits.radix()) {
                Ok(number) => Value::Integer(number),
                Err(_too_long) => Value::Text(digits.as_str().to_owned()),
            },
            DeValue::Float(digits) => Value::Float(digits.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(boolean) => Value::Boolean(*boolean),
            DeValue::Datetime(timestamp) => Value::Text(timestamp.to_string()),
            DeValue::Array(list) => Value::List(list.iter().map(|item| self.node(item)).collect()),
            DeValue::Table(table) => self.table(table),
        };
        Node { line, value }
    }
}
