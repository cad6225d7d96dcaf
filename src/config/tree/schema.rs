//! The types and former names of keys, by which a tree is read.

use std::collections::BTreeMap;
use std::time::Duration;

use super::node::{Node, Value};

/// The type of a key, with its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A table, or a list of tables.
    Table,
    /// A table that has the defaults of its keys if it is absent.
    DefaultTable,
    /// A text, whose form the type of its field decides.
    Text,
    /// A boolean, with its default.
    Flag(Option<bool>),
    /// An integer from 1 to a maximum, with the plural of its unit.
    Integer { max: u32, unit: &'static str, default: Option<usize> },
    /// A duration with its unit.
    Duration(Option<Duration>),
}

impl Kind {
    /// Returns true if an absent key has a value.
    pub(super) fn has_default(self) -> bool {
        match self {
            Self::Table | Self::Text => false,
            Self::DefaultTable => true,
            Self::Flag(default) => default.is_some(),
            Self::Integer { default, .. } => default.is_some(),
            Self::Duration(default) => default.is_some(),
        }
    }
}

/// The kinds and former names of all keys.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    /// Kinds by full name, in which `[]` stands for the items of a list and `*` for any key.
    kinds: BTreeMap<&'static str, Kind>,
    /// Keys with a default by table.
    defaults: BTreeMap<&'static str, Vec<&'static str>>,
    /// Present names by full former name.
    aliases: BTreeMap<String, &'static str>,
}

impl Schema {
    /// Creates the schema of keys. A former name is in the table of its key.
    pub(crate) fn new(keys: impl Iterator<Item = (&'static str, Kind, &'static [&'static str])>) -> Self {
        let mut schema = Self::default();
        for (name, kind, aliases) in keys {
            let (table, own) = name.rsplit_once('.').unwrap_or(("", name));
            let renamed = |alias: &&str| (joined(table, alias), own.trim_end_matches("[]"));
            schema.aliases.extend(aliases.iter().map(renamed));
            schema.kinds.insert(name, kind);
            if kind.has_default() {
                schema.defaults.entry(table).or_default().push(own);
            }
        }
        schema
    }

    /// Returns the type of a key by its full name.
    pub(super) fn kind(&self, name: &str) -> Option<Kind> {
        self.kinds.get(name).copied()
    }

    /// Checks a number against the bounds of a key.
    ///
    /// # Errors
    ///
    /// The number is out of bounds.
    pub(crate) fn integer(&self, name: &str, number: i128) -> Result<usize, String> {
        let (max, unit) = match self.kind(name) {
            Some(Kind::Integer { max, unit, .. }) => (max, unit),
            _ => (u32::MAX, ""),
        };
        let valid = u32::try_from(number).ok().filter(|number| (1..=max).contains(number));
        let valid = valid.and_then(|number| usize::try_from(number).ok());
        valid.ok_or_else(|| format!("{number} is not between 1 and {max} {unit}"))
    }

    /// Returns the full name of a key in a table.
    pub(super) fn name_in(&self, table: &str, key: &str) -> String {
        let (own, any) = (joined(table, key), joined(table, "*"));
        if !self.kinds.contains_key(own.as_str()) && self.kinds.contains_key(any.as_str()) {
            any
        } else {
            own
        }
    }

    /// Returns the keys of a table that have a value if they are absent.
    pub(super) fn defaults_of(&self, table: &str) -> impl Iterator<Item = &'static str> {
        self.defaults.get(table).into_iter().flatten().copied()
    }
}

fn joined(table: &str, key: &str) -> String {
    if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") }
}

impl Node {
    /// Replaces former names of keys by the present ones, and returns a warning for each. A former name beside the present
    /// one stays, and is an unknown key.
    pub(crate) fn rename_keys(&mut self, schema: &Schema) -> Vec<String> {
        let mut warnings = Vec::new();
        if !schema.aliases.is_empty() {
            rename(self, schema, "", &mut warnings);
        }
        warnings
    }
}

/// Renames the keys below a node by recursion. The parsers limit the depth.
fn rename(node: &mut Node, schema: &Schema, name: &str, warnings: &mut Vec<String>) {
    match &mut node.value {
        Value::Table(entries) => {
            let present: Vec<String> = entries.iter().map(|(key, _)| key.name.clone()).collect();
            for (key, node) in entries {
                let former = schema.name_in(name, &key.name);
                if let Some(renamed) =
                    schema.aliases.get(&former).filter(|name| !present.iter().any(|key| key == *name))
                {
                    let line = key.line;
                    warnings
                        .push(format!("line {line}: {former} is now {}; rename it", joined(name, renamed)));
                    key.name = (*renamed).to_owned();
                }
                rename(node, schema, &schema.name_in(name, &key.name), warnings);
            }
        }
        Value::List(nodes) => {
            nodes.iter_mut().for_each(|node| rename(node, schema, &format!("{name}[]"), warnings));
        }
        Value::Nothing | Value::Boolean(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Settings {
        wait: Duration,
        server: Server,
        #[serde(default)]
        person: Vec<Person>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Server {
        connections: u32,
        names: Option<Vec<String>>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Person {
        is_admin: bool,
    }

    fn schema() -> Schema {
        let connections = Kind::Integer { max: 9, unit: "connections", default: Some(4) };
        let keys: [(_, _, &'static [&'static str]); 6] = [
            ("wait", Kind::Duration(Some(Duration::from_secs(1))), &["timeout", "delay"]),
            ("server", Kind::DefaultTable, &["http"]),
            ("server.connections", connections, &["clients"]),
            ("server.names[]", Kind::Text, &["hosts"]),
            ("person", Kind::Table, &["user"]),
            ("person[].is_admin", Kind::Flag(Some(false)), &["admin"]),
        ];
        Schema::new(keys.into_iter())
    }

    /// Reads a text. Returns the settings with the warnings.
    fn read(text: &str, file: &str) -> Result<(Settings, Vec<String>), String> {
        let schema = schema();
        let mut tree = Node::parse(text, Path::new(file)).unwrap();
        let warnings = tree.rename_keys(&schema);
        tree.read(&schema).map(|settings| (settings, warnings)).map_err(|mistake| mistake.to_string())
    }

    #[test]
    fn former_names_are_read_with_a_warning() {
        let former =
            "delay = \"2s\"\n[http]\nclients = 3\nhosts = [\"a\"]\n[[user]]\n[[user]]\nadmin = true\n";
        let present = "wait = \"2s\"\n[server]\nconnections = 3\nnames = [\"a\"]\n[[person]]\n[[person]]\nis_admin = true\n";
        let (settings, warnings) = read(former, "f.toml").unwrap();
        assert_eq!((settings, Vec::new()), read(present, "f.toml").unwrap());
        assert_eq!(
            warnings,
            [
                "line 1: delay is now wait; rename it",
                "line 2: http is now server; rename it",
                "line 3: server.clients is now server.connections; rename it",
                "line 4: server.hosts is now server.names; rename it",
                "line 5: user is now person; rename it",
                "line 7: person[].admin is now person[].is_admin; rename it",
            ]
        );
        let twice = read("wait = \"2s\"\ntimeout = \"3s\"\n", "f.toml").unwrap_err();
        assert!(
            twice.starts_with("2: timeout: unknown key `timeout`; the keys of this table are"),
            "{twice}"
        );
    }

    #[test]
    fn absent_keys_have_their_defaults() {
        let defaults = Settings {
            wait: Duration::from_secs(1),
            server: Server { connections: 4, names: None },
            person: vec![Person { is_admin: false }],
        };
        for (text, file) in [
            ("[[person]]\n", "f.toml"),
            ("server = {}\n[[person]]\n", "f.toml"),
            ("person: [{}]\nwait:\nserver: {connections: }\n", "f.yaml"),
        ] {
            assert_eq!(read(text, file).unwrap().0, defaults, "{text}");
        }
        for (text, file, expect) in [
            (
                "[server]\nconnections = 10\n",
                "f.toml",
                "2: server.connections: 10 is not between 1 and 9 connections",
            ),
            (
                "server: {connections: true}\n",
                "f.yaml",
                "1: server.connections: expected an integer between 1 and 9, found the boolean `true`",
            ),
            (
                "wait = 1.5\n",
                "f.toml",
                "1: wait: expected a duration with its unit, such as \"2s\" or \"500ms\", found the number `1.5`",
            ),
            // A boolean without a value may have been meant to be true.
            (
                "person: [{is_admin: }]\n",
                "f.yaml",
                "1: person[0].is_admin: expected a boolean, found nothing",
            ),
            ("server:\n", "f.yaml", "1: server: expected a table, found nothing; add keys, or remove it"),
        ] {
            assert_eq!(read(text, file).unwrap_err(), expect, "{text}");
        }
    }
}
