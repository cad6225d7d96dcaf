//! The values of a tree with their full keys.

use super::node::{Node, Value, key_of};

/// A value that is not a table or list with entries.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Leaf {
    /// Names of the keys from the top, and indices of list items.
    path: Vec<Step>,
    /// Line of the value, from 1.
    pub(crate) line: usize,
    /// Value as text, quoted and escaped if it is a string.
    pub(crate) shown: String,
    /// Content of a string.
    pub(crate) text: Option<String>,
    /// True for an empty table, an empty list or no value.
    is_empty: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    Item(usize),
}

impl Leaf {
    /// Returns the full key for messages, such as `source[0].name`.
    pub(crate) fn key(&self) -> String {
        let steps = self.path.iter().map(|step| match step {
            Step::Key(name) => name.clone(),
            Step::Item(number) => number.to_string(),
        });
        let steps: Vec<String> = steps.collect();
        key_of(&steps.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Returns true if the key matches a pattern such as `source[].streams[]` or `endpoints.*.threshold`, where `[]`
    /// matches every item and `*` every key. An empty table or list matches the patterns of its possible content.
    pub(crate) fn fits(&self, pattern: &str) -> bool {
        let spaced = pattern.replace("[]", ".[]");
        let parts: Vec<&str> = spaced.split('.').collect();
        let is_whole = parts.len() == self.path.len() || self.is_empty && parts.len() > self.path.len();
        is_whole
            && self.path.iter().zip(parts).all(|(step, part)| match step {
                Step::Key(name) => part == "*" || part == name,
                Step::Item(_) => part == "[]",
            })
    }
}

impl Node {
    /// Returns all values in the order of the file.
    pub(crate) fn leaves(&self) -> Vec<Leaf> {
        let mut leaves = Vec::new();
        collect(self, &mut Vec::new(), &mut leaves);
        leaves
    }
}

/// Collects the values below a node by recursion. The parsers limit the depth.
fn collect(node: &Node, path: &mut Vec<Step>, leaves: &mut Vec<Leaf>) {
    match &node.value {
        Value::Table(entries) if !entries.is_empty() => {
            for (key, node) in entries {
                path.push(Step::Key(key.name.clone()));
                collect(node, path, leaves);
                path.pop();
            }
        }
        Value::List(nodes) if !nodes.is_empty() => {
            for (number, node) in nodes.iter().enumerate() {
                path.push(Step::Item(number));
                collect(node, path, leaves);
                path.pop();
            }
        }
        value => leaves.push(Leaf {
            path: path.clone(),
            line: node.line,
            shown: value.shown(),
            text: match value {
                Value::Text(text) => Some(text.clone()),
                _ => None,
            },
            is_empty: matches!(value, Value::Table(_) | Value::List(_) | Value::Nothing),
        }),
    }
}

impl Value {
    /// Formats a value. Control characters of a string are escaped.
    fn shown(&self) -> String {
        match self {
            Self::Nothing => "nothing".to_owned(),
            Self::Boolean(boolean) => boolean.to_string(),
            Self::Integer(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            Self::Text(text) => format!("\"{}\"", text.escape_debug()),
            Self::List(_) => "[]".to_owned(),
            Self::Table(_) => "{}".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn leaves_have_their_keys_and_fit_patterns() {
        let text = "a = 1\nb = []\n[c.\"x.y\"]\nd = \"q\\u001b\"\n[[s]]\nn = [true]\n[t]\n";
        let leaves = Node::parse(text, Path::new("f.toml")).unwrap().leaves();
        let shown: Vec<(String, usize, &str)> =
            leaves.iter().map(|leaf| (leaf.key(), leaf.line, leaf.shown.as_str())).collect();
        assert_eq!(
            shown,
            [
                ("a".to_owned(), 1, "1"),
                ("b".to_owned(), 2, "[]"),
                ("c.\"x.y\".d".to_owned(), 4, "\"q\\u{1b}\""),
                ("s[0].n[0]".to_owned(), 6, "true"),
                ("t".to_owned(), 7, "{}"),
            ]
        );
        for (at, pattern, fits) in [
            (0, "a", true),
            (0, "a.b", false),
            (0, "*", true),
            (1, "b[]", true),
            (1, "b", true),
            (2, "c.*.d", true),
            (2, "c.x.y.d", false),
            (2, "c.*", false),
            (3, "s[].n[]", true),
            (3, "s[].n", false),
            (3, "s.n[]", false),
            (4, "t.u", true),
            (4, "u", false),
        ] {
            assert_eq!(leaves[at].fits(pattern), fits, "{at} {pattern}");
        }
    }
}
