//! A configuration file as a tree in which every key and value knows its line, for TOML and YAML.
//!
//! The parsers differ in their error messages. Settings are read from this tree, so both formats have the same keys,
//! rules and messages.
//!
//! * `node`: the tree
//! * `toml`, `yaml`: the parsers
//! * `read`: a deserializer for the tree
//! * `schema`: the types, defaults and former names of keys
//! * `leaves`: the values of the tree with their keys

mod leaves;
mod node;
mod read;
mod schema;
mod toml;
mod yaml;

use std::path::Path;

pub(super) use leaves::Leaf;
pub use node::Mistake;
pub(super) use node::{Node, key_of};
pub(super) use schema::{Kind, Schema};

/// Returns true if the extension of the file name is that of YAML.
#[must_use]
pub fn is_yaml(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("yaml") || ending.eq_ignore_ascii_case("yml"))
}

impl Node {
    /// Parses a text as YAML or TOML, depending on the file name.
    pub(super) fn parse(text: &str, path: &Path) -> Result<Self, Mistake> {
        // Windows editors write a byte order mark, which both formats allow.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if is_yaml(path) { yaml::parse(text) } else { toml::parse(text) }
    }
}
