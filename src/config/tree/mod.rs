//! A configuration file as a tree in which every key and value knows its line, for TOML and YAML.
//!
//! The parsers differ in their error messages. Settings are read from this tree, so both formats have the same keys,
//! rules and messages.
//!
//! * `node`: the tree
//! * `toml`, `yaml`: the parsers
//! * `read`: a deserializer for the tree
//! * `leaves`: the values of the tree with their keys

mod leaves;
mod node;
mod read;
mod toml;
mod yaml;

use std::path::Path;

use serde::de::DeserializeOwned;

pub(super) use leaves::Leaf;
pub use node::Mistake;
pub(super) use node::{Node, key_of};

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

    /// Deserializes the tree.
    pub(super) fn read<Settings: DeserializeOwned>(&self) -> Result<Settings, Mistake> {
        Settings::deserialize(self).map_err(read::Fault::mistake)
    }
}
