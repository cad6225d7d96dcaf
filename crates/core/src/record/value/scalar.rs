//! Values that can be compared and counted.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A string, a number or a boolean. `null`, arrays and objects are not scalars.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Scalar {
    /// The boolean `true` or `false`.
    Bool(bool),
    /// A number of any size.
    Number(serde_json::Number),
    /// A string, or a time as a string.
    Text(String),
}

impl Scalar {
    /// Returns a value as a scalar, or `None` for `null`, arrays and objects.
    #[must_use]
    pub fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(value) => Some(Self::Bool(*value)),
            Value::Number(value) => Some(Self::Number(value.clone())),
            Value::String(value) => Some(Self::Text(value.clone())),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

impl From<Scalar> for Value {
    fn from(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Bool(value) => Self::Bool(value),
            Scalar::Number(value) => Self::Number(value),
            Scalar::Text(value) => Self::String(value),
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}
