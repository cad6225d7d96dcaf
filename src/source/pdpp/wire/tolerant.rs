//! Reading JSON that may hold anything anywhere.
//!
//! A [`Tolerant`] type says what it makes of a scalar, a list or an object; of what it does not expect it
//! makes its default. So an unexpected type is a missing value, and never the end of a whole answer.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// A value made of whatever JSON stands there.
pub(super) trait Tolerant<'de>: Default {
    /// Of a string, number or boolean, as text.
    fn from_text(_text: Cow<'de, str>) -> Self {
        Self::default()
    }

    /// Of an object.
    fn from_map<A: MapAccess<'de>>(mut fields: A) -> Result<Self, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    /// Of a list.
    fn from_list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

/// Reads a [`Tolerant`] type.
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

/// A scalar as text.
#[derive(Debug, Default)]
pub(super) struct Text<'a>(Option<Cow<'a, str>>);

impl<'de: 'a, 'a> Tolerant<'de> for Text<'a> {
    fn from_text(text: Cow<'de, str>) -> Self {
        Self(Some(text))
    }
}

impl<'a> Text<'a> {
    /// The text, if there is any.
    pub(super) fn get(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }

    /// Takes another spelling of the field, if this one is missing.
    pub(super) fn or(&mut self, other: Any<Self>) {
        if self.get().is_none() {
            *self = other.0;
        }
    }
}

/// For derived types: a value of an unexpected type counts as missing.
pub(super) fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}

/// For derived types: a list without its items of an unexpected shape; anything but a list is empty.
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
