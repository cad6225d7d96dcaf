//! A tool as a server lists it: its name, the schema of its arguments, and its hints.

use std::sync::Arc;

use rmcp::model::Tool;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Tool with its arguments and hints.
#[derive(Debug, Clone)]
pub(crate) struct ToolInfo {
    /// Name of the tool.
    pub(crate) name: String,
    schema: Arc<Map<String, Value>>,
    /// Hint that the tool only reads, if it declares one.
    pub(crate) read_only: Option<bool>,
    /// True if the tool declares that it may change or delete data.
    pub(crate) is_destructive: bool,
}

impl From<Tool> for ToolInfo {
    fn from(tool: Tool) -> Self {
        let hints = tool.annotations.unwrap_or_default();
        Self {
            name: tool.name.into_owned(),
            schema: tool.input_schema,
            read_only: hints.read_only_hint,
            is_destructive: hints.destructive_hint == Some(true),
        }
    }
}

/// The parts of an entry of a tool list that are read. Others may be anything.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolEntry {
    name: String,
    input_schema: Map<String, Value>,
    #[serde(default)]
    annotations: Option<ToolHints>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ToolHints {
    read_only_hint: Option<bool>,
    destructive_hint: Option<bool>,
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectedTool {
    /// Name of the tool.
    pub name: String,
    /// Names of its arguments; required ones first.
    pub arguments: Vec<String>,
    /// True if it declares that it only reads.
    pub reads_only: bool,
    /// True if it declares that it may change or delete data.
    pub is_destructive: bool,
}

impl ToolInfo {
    /// Reads an entry of a tool list. Returns `None` if its name, arguments or hints are not valid.
    pub(crate) fn from_json(entry: Value) -> Option<Self> {
        let ToolEntry { name, input_schema, annotations } = serde_json::from_value(entry).ok()?;
        let hints = annotations.unwrap_or_default();
        Some(Self {
            name,
            schema: Arc::new(input_schema),
            read_only: hints.read_only_hint,
            is_destructive: hints.destructive_hint == Some(true),
        })
    }

    /// Returns the tool as it is shown to people.
    pub(crate) fn inspected(&self) -> InspectedTool {
        let required: Vec<String> = self.required().into_iter().map(str::to_owned).collect();
        let optional =
            self.properties().map(|(name, _)| name.clone()).filter(|name| !required.contains(name));
        InspectedTool {
            name: self.name.clone(),
            arguments: required.iter().cloned().chain(optional).collect(),
            reads_only: self.read_only == Some(true),
            is_destructive: self.is_destructive,
        }
    }

    /// Returns true if a part of the name is one of some words.
    pub(crate) fn has_word(&self, words: &[&str]) -> bool {
        let name = self.name.to_lowercase();
        words.iter().any(|word| name.split(['_', '-', '.', '/']).any(|part| part == *word))
    }

    /// Returns the arguments with their schemas.
    pub(crate) fn properties(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.schema.get("properties").and_then(Value::as_object).into_iter().flatten()
    }

    /// Returns the schema of an argument.
    pub(crate) fn property(&self, name: &str) -> Option<&Value> {
        self.schema.get("properties")?.get(name)
    }

    /// Returns the names of the required arguments.
    pub(crate) fn required(&self) -> Vec<&str> {
        let required = self.schema.get("required").and_then(Value::as_array);
        required.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Returns the first of some names that is an argument.
    pub(crate) fn named<'a>(&self, names: &[&'a str]) -> Option<&'a str> {
        names.iter().copied().find(|name| self.property(name).is_some())
    }

    /// Returns true if an argument declares a type, alone or beside null.
    pub(crate) fn is(&self, name: &str, kind: &str) -> bool {
        let Some(property) = self.property(name) else { return false };
        let declares = |value: &Value| match value.get("type") {
            Some(Value::String(declared)) => declared == kind,
            Some(Value::Array(declared)) => declared.iter().any(|declared| declared == kind),
            _ => false,
        };
        let choices = property.get("anyOf").and_then(Value::as_array);
        declares(property) || choices.into_iter().flatten().any(declares)
    }

    /// Returns true if the input schema lists arguments, and not this one, and does not say that there are others.
    pub(crate) fn lacks(&self, name: &str) -> bool {
        let combines = ["allOf", "anyOf", "oneOf", "$ref", "patternProperties"];
        let is_open = match self.schema.get("additionalProperties") {
            None => {
                self.properties().next().is_none()
                    || combines.iter().any(|key| self.schema.contains_key(*key))
            }
            Some(more) => *more != Value::Bool(false),
        };
        self.property(name).is_none() && !is_open
    }

    /// Returns true if the input schema forbids an argument.
    pub(crate) fn forbids(&self, name: &str) -> bool {
        self.lacks(name) && self.schema.get("additionalProperties") == Some(&Value::Bool(false))
    }
}
