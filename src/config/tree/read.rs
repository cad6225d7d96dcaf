//! A deserializer for the tree, with line and key in its errors.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};

use super::node::{Key, Mistake, Node, Value, key_of};

/// A deserialization error. Its position is added while it is returned through the levels of the tree.
#[derive(Debug)]
pub(in crate::config) struct Fault {
    problem: String,
    line: Option<usize>,
    /// Keys from the innermost to the outermost.
    steps: Vec<String>,
}

impl Fault {
    pub(super) fn mistake(self) -> Mistake {
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

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.value {
            Value::Nothing => visitor.visit_unit(),
            Value::Boolean(boolean) => visitor.visit_bool(*boolean),
            Value::Integer(number) => match (i64::try_from(*number), u64::try_from(*number)) {
                (Ok(number), _) => visitor.visit_i64(number),
                (_, Ok(number)) => visitor.visit_u64(number),
                _ => visitor.visit_i128(*number),
            },
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::List(nodes) => visitor.visit_seq(Items { nodes: nodes.iter(), at: 0 }),
            Value::Table(entries) => visitor.visit_map(Entries { entries: entries.iter(), open: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.value {
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
        match &self.value {
            Value::Text(text) => visitor.visit_enum(UnitVariantName(text)),
            other => Err(Fault::custom(format_args!("expected {}, found {}", OneOf(variants), other.kind()))),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.value {
            Value::Table(_) => self.deserialize_any(visitor),
            Value::Nothing => Err(Fault::custom("expected a table, found nothing; add keys, or remove it")),
            // Derived code would accept a list as the fields in order, and its error would contain the name of a Rust
            // type.
            other => Err(Fault::custom(format!("expected a table, found {}", other.kind()))),
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
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some(node) = self.nodes.next() else { return Ok(None) };
        let step = self.at.to_string();
        self.at += 1;
        seed.deserialize(node).map(Some).map_err(|fault| fault.within(&step, node.line))
    }
}

struct Entries<'de> {
    entries: std::slice::Iter<'de, (Key, Node)>,
    open: Option<&'de (Key, Node)>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        self.open = self.entries.next();
        let Some((key, _)) = self.open else { return Ok(None) };
        let name: StrDeserializer<'_, Fault> = key.name.as_str().into_deserializer();
        seed.deserialize(name).map(Some).map_err(|fault| fault.within(&key.name, key.line))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let Some((key, node)) = self.open.take() else { return Err(Fault::custom("a value without a key")) };
        seed.deserialize(node).map_err(|fault| fault.within(&key.name, node.line))
    }
}

/// A string that names a variant of an enum.
struct UnitVariantName<'de>(&'de str);

impl<'de> EnumAccess<'de> for UnitVariantName<'de> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Fault> {
        let word: StrDeserializer<'_, Fault> = self.0.into_deserializer();
        Ok((seed.deserialize(word)?, self))
    }
}

impl<'de> VariantAccess<'de> for UnitVariantName<'de> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _seed: T) -> Result<T::Value, Fault> {
        Err(Fault::custom("expected a string"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, _visitor: V) -> Result<V::Value, Fault> {
        Err(Fault::custom("expected a string"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Fault> {
        Err(Fault::custom("expected a string"))
    }
}
