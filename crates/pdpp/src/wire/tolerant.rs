//! Deserialization of JSON with unexpected types.
//!
//! A `Tolerant` type is built from a scalar, a list or an object, and is its default for any of these that it does
//! not expect. So an unexpected type is a missing value and not a failure of the whole response.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use fetchwell_core::record::RecordData;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// Value that can be built from any JSON.
pub(super) trait Tolerant<'de>: Default {
    /// Builds the value from a string, number or boolean, as text.
    fn from_text(_text: Cow<'de, str>) -> Self {
        Self::default()
    }

    /// Builds the value from an object.
    fn from_map<A: MapAccess<'de>>(mut fields: A) -> Result<Self, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    /// Builds the value from a list.
    fn from_list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

/// Deserializer wrapper for a [`Tolerant`] type.
pub(super) struct Any<T>(pub(super) T);

impl<'de, T: Tolerant<'de>> Deserialize<'de> for Any<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyVisitor(PhantomData)).map(Self)
    }
}

struct AnyVisitor<T>(PhantomData<T>);

impl<'de, T: Tolerant<'de>> Visitor<'de> for AnyVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<T, E> {
        Ok(T::from_text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::from_text(Cow::Owned(text.to_owned())))
    }

    fn visit_bool<E>(self, value: bool) -> Result<T, E> {
        Ok(T::from_text(Cow::Borrowed(if value { "true" } else { "false" })))
    }

    fn visit_u64<E>(self, value: u64) -> Result<T, E> {
        Ok(T::from_text(Cow::Owned(value.to_string())))
    }

    fn visit_i64<E>(self, value: i64) -> Result<T, E> {
        Ok(T::from_text(Cow::Owned(value.to_string())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<T, E> {
        Ok(T::from_text(Cow::Owned(value.to_string())))
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<T, A::Error> {
        T::from_list(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
        T::from_map(fields)
    }
}

/// Scalar as text.
#[derive(Debug, Default)]
pub(super) struct Text<'a>(Option<Cow<'a, str>>);

impl<'de: 'a, 'a> Tolerant<'de> for Text<'a> {
    fn from_text(text: Cow<'de, str>) -> Self {
        Self(Some(text))
    }
}

impl<'a> Text<'a> {
    /// Returns the text, if there is any.
    pub(super) fn get(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }

    /// Uses another spelling of the field if this one is missing.
    pub(super) fn or(&mut self, other: Any<Self>) {
        if self.get().is_none() {
            *self = other.0;
        }
    }
}

/// Deserializes a field; a value of an unexpected type counts as missing.
pub(super) fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}

/// List without its items of an unexpected shape; a value that is not a list is empty.
pub(super) struct LenientList<T>(pub(super) Vec<T>);

impl<T> Default for LenientList<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for LenientList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Value::Array(items) = Value::deserialize(deserializer)? else { return Ok(Self::default()) };
        Ok(Self(items.into_iter().filter_map(|item| serde_json::from_value(item).ok()).collect()))
    }
}

/// An object with members by name.
pub(super) trait Lookup {
    /// Returns the member of a name.
    fn get(&self, name: &str) -> Option<&Value>;
}

impl Lookup for RecordData {
    fn get(&self, name: &str) -> Option<&Value> {
        Self::get(self, name)
    }
}

/// Returns the first member of an object under one of these names that is not `null`.
pub(super) fn member<'a>(object: &'a impl Lookup, names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|name| object.get(name).filter(|value| !value.is_null()))
}

/// Returns the first of these members that is a string.
pub(super) fn text<'a>(object: &'a impl Lookup, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| object.get(name)?.as_str()).filter(|text| !text.is_empty())
}

/// Returns the first of these members that is an integer.
pub(super) fn whole(object: &RecordData, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| object.get(*name)?.as_u64())
}

/// Returns the first of these members that is a list of strings or a single string.
pub(super) fn texts(object: &RecordData, names: &[&str]) -> Vec<String> {
    let of = |value: &Value| match value {
        Value::String(one) => Some(vec![one.clone()]),
        Value::Array(many) => Some(many.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
        _ => None,
    };
    names.iter().find_map(|name| of(object.get(*name)?)).unwrap_or_default()
}

/// Returns objects with their names, from a list of objects with a `name` or from an object of objects.
pub(super) fn named<'a>(value: Option<&'a Value>, names: &[&str]) -> Vec<(&'a str, &'a RecordData)> {
    match value {
        Some(Value::Array(items)) => {
            let objects = items.iter().filter_map(Value::as_object);
            objects.filter_map(|object| Some((text(object, names)?, object))).collect()
        }
        Some(Value::Object(objects)) => {
            objects.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_object()?))).collect()
        }
        _ => Vec::new(),
    }
}
