//! TOML as a tree.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Key, Mistake, Node, Value, key_of, line_at};

/// Reads a whole file. The parser bounds its own depth.
pub(super) fn parse(text: &str) -> Result<Node, Mistake> {
    let table = DeTable::parse(text).map_err(|error| {
        let span = error.span();
        // The parser's own display quotes the line, which may hold a secret; a key is none.
        let is_about_key = error.message().contains("duplicate key");
        let key = span.clone().filter(|_| is_about_key).and_then(|span| text.get(span));
        Mistake {
            line: span.map(|span| line_at(text, span.start)),
            key: key.map(|key| key_of(&[key.trim_matches(['"', '\''])])),
            problem: error.message().trim_end().to_owned(),
        }
    })?;
    let lines = Lines::of(text);
    Ok(Node { line: 1, value: lines.table(table.get_ref()) })
}

/// Where lines begin, so that a file is not counted through for each of its keys.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
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
                // A table that only its own tables name has no place of its own.
                let mut node = self.node(value);
                node.line = node.line.max(key.line);
                (key, node)
            })
            .collect();
        // The parser sorts by name; the first mistake of a file is told first.
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
            DeValue::Datetime(moment) => Value::Text(moment.to_string()),
            DeValue::Array(list) => Value::List(list.iter().map(|item| self.node(item)).collect()),
            DeValue::Table(table) => self.table(table),
        };
        Node { line, value }
    }
}
