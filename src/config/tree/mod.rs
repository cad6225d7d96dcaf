//! What a configuration file says, TOML or YAML, as one tree in which everything knows its line.
//!
//! The parsers differ in what they tell of a mistake; read from this tree, both formats have the same keys, the same
//! rules and the same messages.

mod leaves;
mod read;
mod toml;
mod yaml;

use std::fmt;
use std::path::Path;

use serde::de::DeserializeOwned;

pub(super) use leaves::Leaf;

/// A value with the line it begins on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    line: usize,
    value: Value,
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Nothing,
    Boolean(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    /// No key stands twice.
    Table(Vec<(Key, Node)>),
}

impl Value {
    /// What it is, in words of whoever wrote it.
    fn kind(&self) -> &'static str {
        match self {
            Self::Nothing => "empty",
            Self::Boolean(_) => "a switch",
            Self::Integer(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Key {
    line: usize,
    name: String,
}

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The line, from 1.
    pub line: Option<usize>,
    /// The key from the top, such as `context_protection.max_page_size`.
    pub key: Option<String>,
    /// What is wrong with it.
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
    /// Nothing is said at all.
    pub(super) fn says_nothing() -> Self {
        let problem = "the file says nothing; write at least one key, such as context_protection".to_owned();
        Self { line: None, key: None, problem }
    }
}

/// Whether a file is YAML: by its name alone.
#[must_use]
pub fn is_yaml(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("yaml") || ending.eq_ignore_ascii_case("yml"))
}

impl Node {
    /// The tree of a text, YAML or TOML by the name of its file.
    pub(super) fn of(text: &str, path: &Path) -> Result<Self, Mistake> {
        // Windows editors begin a file so, and both formats let them.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if is_yaml(path) { yaml::parse(text) } else { toml::parse(text) }
    }

    /// The tree as a type of its own.
    pub(super) fn read<Settings: DeserializeOwned>(&self) -> Result<Settings, Mistake> {
        Settings::deserialize(self).map_err(read::Fault::mistake)
    }

    /// Where a key is; nothing when the file does not say it.
    pub(super) fn line_of(&self, path: &[&str]) -> Option<usize> {
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

/// A key as messages name it.
pub(super) fn key_of(path: &[&str]) -> String {
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

/// The line of a byte, from 1.
fn line_at(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}
