//! The tree: values and keys with their lines, and errors with their position.

use std::fmt;

/// A value with the line on which it starts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(super) line: usize,
    pub(super) value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Nothing,
    Boolean(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    /// Entries with distinct keys.
    Table(Vec<(Key, Node)>),
}

impl Value {
    /// Returns the type of the value, for error messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Boolean(_) => "a boolean",
            Self::Integer(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Key {
    pub(super) line: usize,
    pub(super) name: String,
}

/// An error in a file, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Line of the error, from 1.
    pub line: Option<usize>,
    /// Full key, such as `context_protection.max_page_size`.
    pub key: Option<String>,
    /// Description of the error.
    pub problem: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "{line}: ")?;
        } else {
            f.write_str(" ")?;
        }
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.problem)
    }
}

impl Mistake {
    /// Creates the error for an empty file.
    pub(crate) fn empty_file() -> Self {
        let problem = "the file is empty; add at least one key, such as context_protection".to_owned();
        Self { line: None, key: None, problem }
    }
}

impl Node {
    /// Creates the mistake of a key. It has the line of the table if the key is not set.
    pub(crate) fn mistake(&self, path: &[&str], problem: String) -> Mistake {
        let line = self.line_of(path).or_else(|| self.line_of(path.split_last()?.1));
        Mistake { line, key: Some(key_of(path)), problem }
    }

    /// Returns the line of a key, or `None` if the file does not have it.
    pub(crate) fn line_of(&self, path: &[&str]) -> Option<usize> {
        let Some((first, rest)) = path.split_first() else { return Some(self.line) };
        match &self.value {
            Value::Table(entries) => {
                let (key, node) = entries.iter().find(|(key, _)| key.name == *first)?;
                if rest.is_empty() { Some(key.line) } else { node.line_of(rest) }
            }
            Value::List(nodes) => nodes.get(first.parse::<usize>().ok()?)?.line_of(rest),
            Value::Nothing | Value::Boolean(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_) => None,
        }
    }
}

/// Formats a key for error messages, such as `source[0].name`.
pub(crate) fn key_of(path: &[&str]) -> String {
    let mut key = String::new();
    for step in path {
        let is_number = !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit());
        let is_plain = step.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        let shown: String = step.chars().filter(|c| !c.is_control()).take(100).collect();
        if is_number && !key.is_empty() {
            key.push_str(&format!("[{step}]"));
        } else {
            let dot = if key.is_empty() { "" } else { "." };
            let quote = if is_plain && !step.is_empty() { "" } else { "\"" };
            key.push_str(&format!("{dot}{quote}{shown}{quote}"));
        }
    }
    key
}

/// Returns the line of a byte offset, from 1.
pub(super) fn line_at(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}
