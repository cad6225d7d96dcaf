//! The YAML parser of configuration files, with limits for nesting and aliases.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::options::{AliasLimits, DuplicateKeyPolicy, MergeKeyPolicy};
use serde_saphyr::{Error, Spanned};

use super::node::{Key, Mistake, Node, Value, key_of};

/// Maximum nesting. Settings are four levels deep.
const MAX_DEPTH: usize = 16;

/// Maximum number of keys and values. A file of 1 MiB can contain many more.
const MAX_NODES: usize = 50_000;

/// Maximum number of anchors, and of aliases.
const MAX_ANCHORS: usize = 100;

/// Maximum number of events that all aliases together may replay.
const MAX_REPLAYED: usize = 10_000;

/// Parses a whole file.
pub(super) fn parse(text: &str) -> Result<Node, Mistake> {
    let mut alias_limits = AliasLimits::default();
    alias_limits.max_total_replayed_events = MAX_REPLAYED;
    alias_limits.max_replay_stack_depth = MAX_DEPTH;
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_events: 4 * MAX_NODES,
            max_anchors: MAX_ANCHORS,
            max_aliases: MAX_ANCHORS,
            max_documents: 1,
        },
        alias_limits: alias_limits,
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        with_snippet: false,
    };
    let read = serde_saphyr::from_str_with_options::<Spanned<Yaml>>(text, options);
    let node = read.map(node).map_err(|error| mistake(&error))?;
    match node.value {
        Value::Nothing => Err(Mistake::empty_file()),
        Value::Table(_) => Ok(node),
        _ => Err(Mistake {
            line: Some(node.line),
            key: None,
            problem: "the file is not a table of keys, such as `listen: 127.0.0.1:7400`".to_owned(),
        }),
    }
}

fn mistake(error: &Error) -> Mistake {
    let error = error.without_snippet();
    let line = error.location().and_then(|at| usize::try_from(at.line()).ok()).filter(|line| *line > 0);
    let (key, problem) = match error {
        Error::DuplicateMappingKey { key, .. } => {
            (key.as_deref(), "duplicate key; remove one of them".to_owned())
        }
        Error::MergeKeyNotAllowed { .. } => {
            (Some("<<"), "merge keys are not supported; write the keys out".to_owned())
        }
        Error::Eof { .. } => (None, "the file ends too early".to_owned()),
        Error::MultipleDocuments { .. } | Error::Budget { breach: BudgetBreach::Documents { .. }, .. } => {
            (None, "there is more than one document; keep one".to_owned())
        }
        Error::Budget { .. } => {
            (None, "the file is nested too deeply, or has too many keys or aliases; simplify it".to_owned())
        }
        other => {
            let said = other.to_string();
            // The message may have several lines, and a position that is added anyway.
            (None, said.lines().next().unwrap_or("it cannot be read").to_owned())
        }
    };
    Mistake { line, key: key.map(|key| key_of(&[key])), problem }
}

/// A YAML value with positions.
enum Yaml {
    Scalar(Value),
    List(Vec<Spanned<Self>>),
    Table(Vec<(Spanned<String>, Spanned<Self>)>),
}

fn node(spanned: Spanned<Yaml>) -> Node {
    let line = line(&spanned);
    let value = match spanned.value {
        Yaml::Scalar(value) => value,
        Yaml::List(items) => Value::List(items.into_iter().map(node).collect()),
        Yaml::Table(entries) => {
            let entry = |(key, value): (Spanned<String>, Spanned<Yaml>)| {
                let key = Key { line: self::line(&key), name: key.value };
                let mut node = node(value);
                // A table starts with its first key, but errors show the line of the key that names the table.
                if matches!(node.value, Value::Table(_)) {
                    node.line = key.line;
                }
                (key, node)
            };
            Value::Table(entries.into_iter().map(entry).collect())
        }
    };
    Node { line, value }
}

fn line<T>(spanned: &Spanned<T>) -> usize {
    usize::try_from(spanned.referenced.line()).unwrap_or(1).max(1)
}

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Yaml;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, boolean: bool) -> Result<Yaml, E> {
        Ok(Yaml::Scalar(Value::Boolean(boolean)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Yaml, E> {
        Ok(Yaml::Scalar(Value::Integer(number.into())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Yaml, E> {
        Ok(Yaml::Scalar(Value::Integer(number.into())))
    }

    fn visit_i128<E>(self, number: i128) -> Result<Yaml, E> {
        Ok(Yaml::Scalar(Value::Integer(number)))
    }

    fn visit_u128<E: serde::de::Error>(self, number: u128) -> Result<Yaml, E> {
        let number = i128::try_from(number).map_err(|_large| E::custom("the number is too large"))?;
        Ok(Yaml::Scalar(Value::Integer(number)))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Yaml, E> {
        Ok(Yaml::Scalar(Value::Float(number)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Yaml, E> {
        Ok(Yaml::Scalar(Value::Text(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Yaml, E> {
        Ok(Yaml::Scalar(Value::Nothing))
    }

    fn visit_none<E>(self) -> Result<Yaml, E> {
        Ok(Yaml::Scalar(Value::Nothing))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Yaml, D::Error> {
        Yaml::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Yaml, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Yaml::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Yaml, A::Error> {
        let mut table = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            table.push((key, entries.next_value()?));
        }
        Ok(Yaml::Table(table))
    }
}
