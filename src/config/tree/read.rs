//! A deserializer for the tree, with line and key in its errors.

use std::fmt;

use fetchwell_core::saturate::saturated;
use serde::de::value::{SeqDeserializer, StrDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, Visitor,
};

use super::node::{Key, Mistake, Node, Value, key_of};
use super::schema::{Kind, Schema};
use crate::config::values::DurationText;

/// A deserialization error. Its position is added while it is returned through the levels of the tree.
#[derive(Debug)]
struct Fault {
    problem: String,
    line: Option<usize>,
    /// Keys from the innermost to the outermost.
    steps: Vec<String>,
}

impl Fault {
    fn mistake(self) -> Mistake {
        let steps: Vec<&str> = self.steps.iter().rev().map(String::as_str).collect();
        let key = (!steps.is_empty()).then(|| key_of(&steps));
        Mistake { line: self.line, key, problem: self.problem }
    }

    fn within(mut self, step: &str, line: usize) -> Self {
        self.line.get_or_insert(line);
        self.steps.push(step.to_owned());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for Fault {}

impl Error for Fault {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        Self { problem: problem.to_string(), line: None, steps: Vec::new() }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("expected {expected}, found {}", kind_of(&found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(word: &str, known: &'static [&'static str]) -> Self {
        Self::custom(format_args!("`{word}` is unknown; use {}", OneOf(known)))
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        Self::custom(format_args!("unknown key `{key}`; the keys of this table are {}", Names(known)))
    }

    fn missing_field(key: &'static str) -> Self {
        Self::custom(format_args!("the key `{key}` is missing"))
    }
}

/// Returns the kind of a value that was found, with the value if it is short.
fn kind_of(found: &Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(boolean) => format!("the boolean `{boolean}`"),
        Unexpected::Unsigned(number) => format!("the number `{number}`"),
        Unexpected::Signed(number) => format!("the number `{number}`"),
        Unexpected::Float(number) => format!("the number `{number}`"),
        Unexpected::Str(_) => "a string".to_owned(),
        Unexpected::Unit | Unexpected::Option => "nothing".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a table".to_owned(),
        other => other.to_string(),
    }
}

/// Names in code marks, separated by commas.
struct Names(&'static [&'static str]);

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted: Vec<String> = self.0.iter().map(|name| format!("`{name}`")).collect();
        f.write_str(&quoted.join(", "))
    }
}

/// Names in code marks, the last one after "or".
struct OneOf(&'static [&'static str]);

impl fmt::Display for OneOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.split_last() {
            Some((last, [])) => write!(f, "`{last}`"),
            Some((last, others)) => {
                let others: Vec<String> = others.iter().map(|name| format!("`{name}`")).collect();
                write!(f, "{} or `{last}`", others.join(", "))
            }
            None => Ok(()),
        }
    }
}

/// A node with its full name, by which the schema knows its type.
struct Reader<'de> {
    node: &'de Node,
    schema: &'de Schema,
    name: String,
}

/// The node of a key that is absent, and has a default.
static ABSENT: Node = Node { line: 0, value: Value::Nothing };

impl Node {
    /// Deserializes the tree. The schema has the types and defaults of its keys.
    pub(crate) fn read<Settings: DeserializeOwned>(&self, schema: &Schema) -> Result<Settings, Mistake> {
        let reader = Reader { node: self, schema, name: String::new() };
        Settings::deserialize(reader).map_err(Fault::mistake)
    }
}

impl Reader<'_> {
    /// Returns the type of the key, or `None` if the field rejects a key without a value. A switch that is off by default,
    /// and was written without a value, may have been meant to be on.
    fn kind(&self) -> Option<Kind> {
        let has_no_value = self.node.value == Value::Nothing && !std::ptr::eq(self.node, &ABSENT);
        let rejects_it = |kind: &Kind| matches!(kind, Kind::Flag(Some(false)) | Kind::DefaultTable);
        self.schema.kind(&self.name).filter(|kind| !(has_no_value && rejects_it(kind)))
    }
}

impl Value {
    /// Describes the value that was found instead of an expected one.
    fn instead_of(&self, expected: fmt::Arguments<'_>) -> Fault {
        let found = match self {
            Self::Boolean(boolean) => format!("the boolean `{boolean}`"),
            Self::Integer(number) => format!("the number `{number}`"),
            Self::Float(number) => format!("the number `{number}`"),
            other => other.kind().to_owned(),
        };
        Fault::custom(format_args!("expected {expected}, found {found}"))
    }
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match (self.kind(), &self.node.value) {
            (Some(Kind::Flag(Some(default))), Value::Nothing) => return visitor.visit_bool(default),
            (Some(Kind::DefaultTable), Value::Nothing) => return visitor.visit_map(Entries::new(&[], self)),
            (Some(Kind::Integer { max, default, .. }), value) => {
                let number = match (value, default) {
                    (Value::Integer(number), _) => {
                        self.schema.integer(&self.name, *number).map_err(Fault::custom)?
                    }
                    (Value::Nothing, Some(default)) => default,
                    _ => return Err(value.instead_of(format_args!("an integer between 1 and {max}"))),
                };
                return visitor.visit_u64(saturated::<u64>(number));
            }
            _ => {}
        }
        match &self.node.value {
            Value::Nothing => visitor.visit_unit(),
            Value::Boolean(boolean) => visitor.visit_bool(*boolean),
            Value::Integer(number) => match (i64::try_from(*number), u64::try_from(*number)) {
                (Ok(number), _) => visitor.visit_i64(number),
                (_, Ok(number)) => visitor.visit_u64(number),
                _ => visitor.visit_i128(*number),
            },
            Value::Float(number) if number.is_finite() => visitor.visit_f64(*number),
            // JSON has no such number, and would have null in its place.
            value @ Value::Float(_) => Err(value.instead_of(format_args!("a finite number"))),
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::List(nodes) => visitor.visit_seq(Items { nodes: nodes.iter(), at: 0, list: self }),
            Value::Table(entries) => visitor.visit_map(Entries::new(entries, self)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.value {
            // A key without a value counts as missing. That is possible in YAML only.
            Value::Nothing => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.node.value {
            Value::Text(text) => {
                let word: StrDeserializer<'_, Fault> = text.as_str().into_deserializer();
                visitor.visit_enum(word)
            }
            other => Err(Fault::custom(format_args!("expected {}, found {}", OneOf(variants), other.kind()))),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match (self.kind(), &self.node.value) {
            // `std::time::Duration` is a struct of seconds and nanoseconds.
            (Some(Kind::Duration(default)), value) => {
                let DurationText(duration) = match (value, default) {
                    (Value::Text(text), _) => text.parse().map_err(Fault::custom::<String>)?,
                    (Value::Nothing, Some(default)) => DurationText(default),
                    _ => {
                        let expected = format_args!("a duration with its unit, such as \"2s\" or \"500ms\"");
                        return Err(value.instead_of(expected));
                    }
                };
                let parts = [duration.as_secs(), u64::from(duration.subsec_nanos())];
                visitor.visit_seq(SeqDeserializer::new(parts.into_iter()))
            }
            (_, Value::Table(_)) | (Some(Kind::DefaultTable), Value::Nothing) => {
                self.deserialize_any(visitor)
            }
            (_, Value::Nothing) => {
                Err(Fault::custom("expected a table, found nothing; add keys, or remove it"))
            }
            // Derived code would accept a list as the fields in order, and its error would contain the name of a Rust
            // type.
            (_, other) => Err(Fault::custom(format!("expected a table, found {}", other.kind()))),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map identifier ignored_any
    }
}

struct Items<'de> {
    nodes: std::slice::Iter<'de, Node>,
    at: usize,
    list: Reader<'de>,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some(node) = self.nodes.next() else { return Ok(None) };
        let step = self.at.to_string();
        self.at += 1;
        let item = Reader { node, schema: self.list.schema, name: format!("{}[]", self.list.name) };
        seed.deserialize(item).map(Some).map_err(|fault| fault.within(&step, node.line))
    }
}

struct Entries<'de> {
    entries: std::slice::Iter<'de, (Key, Node)>,
    /// Keys that are absent and have a default.
    absent: std::vec::IntoIter<&'static str>,
    open: Option<(&'de str, &'de Node)>,
    table: Reader<'de>,
}

impl<'de> Entries<'de> {
    fn new(entries: &'de [(Key, Node)], table: Reader<'de>) -> Self {
        let is_absent = |name: &&str| !entries.iter().any(|(key, _)| key.name == *name);
        let absent: Vec<&str> = table.schema.defaults_of(&table.name).filter(is_absent).collect();
        Self { entries: entries.iter(), absent: absent.into_iter(), open: None, table }
    }
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let written = self.entries.next().map(|(key, node)| (key.name.as_str(), key.line, node));
        let next = written.or_else(|| self.absent.next().map(|name| (name, self.table.node.line, &ABSENT)));
        let Some((name, line, node)) = next else { return Ok(None) };
        self.open = Some((name, node));
        let key: StrDeserializer<'_, Fault> = name.into_deserializer();
        seed.deserialize(key).map(Some).map_err(|fault| fault.within(name, line))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let Some((key, node)) = self.open.take() else { return Err(Fault::custom("a value without a key")) };
        let schema = self.table.schema;
        let value = Reader { node, schema, name: schema.name_in(&self.table.name, key) };
        seed.deserialize(value).map_err(|fault| fault.within(key, node.line))
    }
}
