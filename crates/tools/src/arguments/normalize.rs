//! Normalizes the arguments of a call as clients and models send them, by the input schema of the tool.
//!
//! An optional argument is absent if it is `null`, `""`, an empty array or object, or 0 for a limit. JSON in a string is
//! parsed if an object, array, number or boolean is declared, never if a string is. One string becomes an array of one. A
//! number over its maximum is replaced by the maximum, with a warning. Everything else that does not match the schema is
//! refused with the name of the argument.

use fetchwell_core::fit::clip;
use fetchwell_core::record::{RecordData, kind_name};
use serde_json::{Number, Value};

use crate::error::{MAX_WORD_BYTES, ToolError};
use crate::tool::ToolSpec;

/// The arguments of a call, in the types that the input schema declares.
#[derive(Debug, Default)]
pub(crate) struct NormalizedArguments {
    /// Arguments that are not empty.
    pub(crate) values: RecordData,
    /// Corrections that the client should know of.
    pub(crate) warnings: Vec<String>,
}

/// The arguments that the input schema of a tool declares.
pub(crate) struct DeclaredArguments {
    spec: ToolSpec,
    arguments: Vec<Argument>,
}

struct Argument {
    name: String,
    value_type: ValueType,
    is_required: bool,
}

/// The type that a schema declares for a value.
enum ValueType {
    /// A string; one of these choices if there are any.
    String(Vec<String>),
    /// An integer within these bounds.
    Integer { minimum: u64, maximum: Option<u64> },
    /// A number of any kind.
    Number,
    /// `true` or `false`.
    Boolean,
    /// An array with items of a type.
    List(Box<Self>),
    /// An object with values of a type.
    Object(Box<Self>),
    /// Any value. The tool validates it.
    Any,
}

impl DeclaredArguments {
    pub(crate) fn new(spec: &ToolSpec) -> Self {
        // Schemas are constants, and tests parse every one of them.
        let schema: Value = serde_json::from_str(spec.input_schema).unwrap_or_default();
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|one| one == name));
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let argument = |(name, schema): (&String, &Value)| {
            let mut value_type = ValueType::new(schema);
            if let ValueType::String(choices) = &mut value_type {
                let extra = spec.extra_choices.iter().filter(|(argument, _)| argument == name);
                choices.extend(extra.map(|(_, choice)| (*choice).to_owned()));
            }
            Argument { name: name.clone(), value_type, is_required: is_required(name) }
        };
        Self { spec: *spec, arguments: properties.map(argument).collect() }
    }

    pub(crate) fn normalize(&self, sent: RecordData) -> Result<NormalizedArguments, ToolError> {
        let mut read = NormalizedArguments::default();
        for (name, value) in sent {
            let alias = self.spec.aliases.iter().find(|(alias, _)| *alias == name);
            let name = alias.map_or(name.as_str(), |(_, declared)| declared);
            let Some(argument) = self.arguments.iter().find(|argument| argument.name == name) else {
                let known: Vec<&str> = self.arguments.iter().map(|argument| argument.name.as_str()).collect();
                return Err(self.spec.unknown_argument(name, &known));
            };
            let mut normalizer = Normalizer { name, warnings: &mut read.warnings };
            let value = normalizer.normalize(&argument.value_type, value, argument.is_required);
            let value = value.map_err(|problem| self.spec.invalid_argument(name, problem))?;
            // The declared name takes precedence over its alias.
            if let Some(value) = value
                && (alias.is_none() || !read.values.contains_key(name))
            {
                read.values.insert(name.to_owned(), value);
            }
        }
        let is_missing =
            |argument: &&Argument| argument.is_required && !read.values.contains_key(&argument.name);
        match self.arguments.iter().find(is_missing) {
            Some(argument) => Err(self.spec.missing_argument(&argument.name)),
            None => Ok(read),
        }
    }
}

impl ValueType {
    fn new(schema: &Value) -> Self {
        let choices = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
        let count = |name| schema.get(name).and_then(Value::as_u64);
        let inner = |name| Box::new(schema.get(name).map_or(Self::Any, Self::new));
        match schema.get("type").and_then(Value::as_str) {
            Some("string") => {
                Self::String(choices.filter_map(|choice| choice.as_str().map(str::to_owned)).collect())
            }
            Some("integer") => {
                Self::Integer { minimum: count("minimum").unwrap_or(0), maximum: count("maximum") }
            }
            Some("number") => Self::Number,
            Some("boolean") => Self::Boolean,
            Some("array") => Self::List(inner("items")),
            Some("object") => Self::Object(inner("additionalProperties")),
            _ => Self::Any,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::String(_) => "a string",
            Self::Integer { .. } => "an integer",
            Self::Number => "a number",
            Self::Boolean => "a boolean",
            Self::List(item) if matches!(**item, Self::String(_)) => "an array of strings",
            Self::List(_) => "an array",
            Self::Object(_) => "an object",
            Self::Any => "a value",
        }
    }
}

/// Normalizes the values of one argument.
struct Normalizer<'a> {
    /// Name of the argument.
    name: &'a str,
    warnings: &'a mut Vec<String>,
}

impl Normalizer<'_> {
    /// Converts a value to its declared type. Returns `None` if it is empty, unless `keeps_empty` leaves an empty string
    /// to the tool, which refuses it.
    fn normalize(
        &mut self,
        kind: &ValueType,
        value: Value,
        keeps_empty: bool,
    ) -> Result<Option<Value>, String> {
        let is_empty = match &value {
            Value::Null => true,
            Value::String(text) => {
                text.trim().is_empty() && !(keeps_empty && matches!(kind, ValueType::String(_)))
            }
            Value::Array(items) => items.is_empty() && !matches!(kind, ValueType::Any),
            Value::Object(fields) => fields.is_empty() && !matches!(kind, ValueType::Any),
            Value::Bool(_) | Value::Number(_) => false,
        };
        if is_empty {
            return Ok(None);
        }
        match (kind, value) {
            (ValueType::Any, value) | (ValueType::Boolean, value @ Value::Bool(_)) => Ok(Some(value)),
            (ValueType::Number, value @ Value::Number(_)) => Ok(Some(value)),
            (ValueType::String(choices), Value::String(text)) => one_of(choices, text).map(Some),
            (ValueType::Integer { minimum, maximum }, Value::Number(number)) => {
                self.integer(&number, *minimum, *maximum)
            }
            (ValueType::List(item), Value::Array(items)) => {
                let mut read = Vec::with_capacity(items.len());
                for value in items {
                    let found = describe(&value);
                    let value = self.normalize(item, value, true)?;
                    read.push(value.ok_or_else(|| format!("it has {found} among its values"))?);
                }
                Ok(Some(Value::Array(read)))
            }
            (ValueType::Object(inner), Value::Object(fields)) => {
                let mut read = RecordData::new();
                for (name, value) in fields {
                    // Without a declared type, `null` and `""` may have a meaning to the tool.
                    let value = match **inner {
                        ValueType::Any => Some(value),
                        _ => self
                            .normalize(inner, value, false)
                            .map_err(|problem| format!("`{}`: {problem}", clip(&name, MAX_WORD_BYTES)))?,
                    };
                    if let Some(value) = value {
                        read.insert(name, value);
                    }
                }
                Ok(Some(Value::Object(read))
                    .filter(|read| read.as_object().is_some_and(|read| !read.is_empty())))
            }
            (kind, Value::String(text)) => self.parse(kind, text, keeps_empty),
            (kind, value) => Err(format!("it is {}, not {}", describe(&value), kind.name())),
        }
    }

    /// Parses a string for which another type is declared: as JSON, or as the only item of an array.
    fn parse(&mut self, kind: &ValueType, text: String, keeps_empty: bool) -> Result<Option<Value>, String> {
        match serde_json::from_str::<Value>(text.trim()) {
            // A JSON string in a string does not have the declared type either, except as the only item of an array.
            Ok(Value::String(_)) | Err(_) => {}
            Ok(value) => match (kind, &value) {
                (ValueType::List(_), Value::Array(_) | Value::Null) => {
                    return self.normalize(kind, value, keeps_empty);
                }
                (ValueType::List(_), _) => {}
                _ => return self.normalize(kind, value, keeps_empty),
            },
        }
        match kind {
            ValueType::List(item) if matches!(**item, ValueType::String(_)) => {
                let only = self.normalize(item, Value::String(text), true)?;
                Ok(only.map(|only| Value::Array(vec![only])))
            }
            _ => Err(format!("it is the string \"{}\", not {}", clip(&text, MAX_WORD_BYTES), kind.name())),
        }
    }

    fn integer(
        &mut self,
        number: &Number,
        minimum: u64,
        maximum: Option<u64>,
    ) -> Result<Option<Value>, String> {
        let bounds = match maximum {
            Some(maximum) => format!("between {minimum} and {maximum}"),
            None => format!("from {minimum} on"),
        };
        let Some(count) = whole(number) else {
            return Err(format!("{number} is not an integer {bounds}"));
        };
        match maximum {
            // 0 for a limit with a minimum of 1 means no limit.
            _ if count == 0 && minimum > 0 => Ok(None),
            _ if count < minimum => Err(format!("{number} is not an integer {bounds}")),
            Some(maximum) if count > maximum => {
                let number = clip(&number.to_string(), MAX_WORD_BYTES);
                self.warnings.push(format!("`{}` {number} is over the maximum: {maximum} used", self.name));
                Ok(Some(maximum.into()))
            }
            _ => Ok(Some(count.into())),
        }
    }
}

/// Converts a number to an integer. Some clients write every number as a float, such as `2.0`.
fn whole(number: &Number) -> Option<u64> {
    if let Some(count) = number.as_u64() {
        return Some(count);
    }
    let float = number.as_f64().filter(|float| *float >= 0.0 && float.fract() == 0.0)?;
    // Rust formats such a float without a decimal point.
    Some(float.to_string().parse().unwrap_or(u64::MAX))
}

fn one_of(choices: &[String], text: String) -> Result<Value, String> {
    if choices.is_empty() || choices.contains(&text) {
        return Ok(Value::String(text));
    }
    Err(format!("\"{}\" is none of {}", clip(&text, MAX_WORD_BYTES), choices.join(", ")))
}

fn describe(value: &Value) -> &'static str {
    match value {
        Value::String(text) if text.is_empty() => "an empty string",
        value => kind_name(value),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::Profile;

    fn declared(tool: &str) -> DeclaredArguments {
        let spec = Profile::Standard.tools().iter().find(|spec| spec.name == tool).unwrap();
        DeclaredArguments::new(spec)
    }

    /// Any JSON that a client may send, also inside strings.
    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (0_u32..300).prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[ -~]{0,6}".prop_map(Value::from),
            "(lexical|count|asc|null|7|\\[\\]|\\{\\})".prop_map(Value::from),
        ];
        let nested = leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[a-z]{1,3}", inner), 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        });
        (nested, any::<bool>())
            .prop_map(|(value, is_text)| if is_text { value.to_string().into() } else { value })
    }

    proptest! {
        #[test]
        fn normalizing_is_idempotent(
            tool in 0_usize..6,
            values in prop::collection::vec(any_json(), 16),
            given in prop::collection::vec(any::<bool>(), 16),
        ) {
            let declared = DeclaredArguments::new(&Profile::Standard.tools()[tool]);
            let sent = declared.arguments.iter().zip(values).zip(given).filter_map(|((argument, value), given)| {
                let kept = given || argument.is_required;
                kept.then(|| (argument.name.clone(), value))
            });
            if let Ok(first) = declared.normalize(sent.collect()) {
                let again = declared.normalize(first.values.clone()).unwrap();
                prop_assert_eq!(again.values, first.values);
                prop_assert!(again.warnings.is_empty());
            }
        }
    }

    /// Returns the normalized arguments with the warnings.
    fn read(tool: &str, sent: Value) -> Result<(Value, Vec<String>), String> {
        let Value::Object(sent) = sent else { panic!("{sent}") };
        let read = declared(tool).normalize(sent);
        read.map(|read| (Value::Object(read.values), read.warnings)).map_err(|error| error.body().message)
    }

    #[track_caller]
    fn check(tool: &str, sent: Value, expect: &Value) {
        let shown = sent.to_string();
        assert_eq!(read(tool, sent).unwrap(), (expect.clone(), Vec::new()), "{shown}");
    }

    #[track_caller]
    fn refuses(tool: &str, sent: Value, part: &str) {
        let shown = sent.to_string();
        let problem = read(tool, sent).unwrap_err();
        assert!(problem.contains(part), "{shown}: {problem}");
        assert!(!problem.contains("expected") && !problem.contains("invalid type"), "{problem}");
    }

    #[test]
    fn empty_optional_arguments_are_absent() {
        let all = |value: &Value| {
            json!({"stream": "s", "connection_id": value, "source": value, "limit": value, "cursor": value,
                "order": value, "sort": value, "count": value, "filter": value, "q": value, "fields": value, "view": value,
                "expand": value, "expand_limit": value, "changes_since": value})
        };
        for value in [json!(null), json!(""), json!("  ")] {
            check("query_records", all(&value), &json!({"stream": "s"}));
        }
        check(
            "query_records",
            json!({"stream": "s", "limit": 0, "fields": [], "filter": {}, "expand_limit": {"r": 0, "q": null}}),
            &json!({"stream": "s"}),
        );
        check(
            "read_record_field",
            json!({"field": "f", "offset_chars": 0}),
            &json!({"field": "f", "offset_chars": 0}),
        );
    }

    #[test]
    fn json_in_strings_is_parsed_where_no_string_is_declared() {
        check(
            "query_records",
            json!({"stream": "7", "limit": "5", "filter": "{\"a\": \"\", \"n\": {\"gte\": \"1\"}}",
                "fields": "[\"a\", \"b\"]", "expand": "r", "expand_limit": "{\"r\": \"2\"}"}),
            &json!({"stream": "7", "limit": 5, "filter": {"a": "", "n": {"gte": "1"}}, "fields": ["a", "b"],
                "expand": ["r"], "expand_limit": {"r": 2}}),
        );
        check("query_records", json!({"stream": "s", "query": "x"}), &json!({"stream": "s", "q": "x"}));
        for text in ["{\"a\": 1}", "[\"a\"]", "7", "true", "null"] {
            check("search", json!({"query": text}), &json!({"query": text}));
        }
        check("search", json!({"query": "x", "streams": "null"}), &json!({"query": "x"}));
        check("search", json!({"query": "x", "streams": "7"}), &json!({"query": "x", "streams": ["7"]}));
        check(
            "search",
            json!({"query": "x", "filter": {"a": "", "b": null}}),
            &json!({"query": "x", "filter": {"a": "", "b": null}}),
        );
    }

    #[test]
    fn numbers_are_whole_and_within_bounds() {
        for sent in [json!(2), json!(2.0), json!("2"), json!(" 2.0 ")] {
            check("search", json!({"query": "x", "limit": sent}), &json!({"query": "x", "limit": 2}));
        }
        for sent in [json!(101), json!("4000"), json!(1e300)] {
            let (values, warnings) = read("search", json!({"query": "x", "limit": sent})).unwrap();
            assert_eq!(values, json!({"query": "x", "limit": 100}));
            assert!(
                warnings[0].starts_with("`limit` ") && warnings[0].ends_with(": 100 used"),
                "{warnings:?}"
            );
        }
        for sent in [json!(2.5), json!(-1), json!("-1.0")] {
            refuses("search", json!({"query": "x", "limit": sent}), "not an integer between 1 and 100");
        }
        refuses("read_record_field", json!({"field": "f", "offset_chars": -1}), "from 0 on");
    }

    #[test]
    fn values_of_another_type_are_refused() {
        for (sent, part) in [
            (json!({"query": 7}), "it is a number, not a string"),
            (json!({"query": "x", "limit": "ten"}), "it is the string \"ten\", not an integer"),
            (json!({"query": "x", "limit": [1]}), "it is an array, not an integer"),
            (json!({"query": "x", "streams": 7}), "it is a number, not an array of strings"),
            (json!({"query": "x", "streams": [7]}), "it is a number, not a string"),
            (json!({"query": "x", "streams": [null]}), "it has null among its values"),
            (json!({"query": "x", "filter": "a=b"}), "it is the string \"a=b\", not an object"),
            (json!({"query": "x", "filter": "[1]"}), "it is an array, not an object"),
            (json!({"query": "x", "mode": "best"}), "\"best\" is none of auto, lexical, semantic, hybrid"),
            (json!({"query": "x", "querry": "y"}), "no such argument; it takes query, limit, cursor,"),
            (json!({"query": "x", "streams": {"a": 1}}), "it is an object, not an array of strings"),
        ] {
            refuses("search", sent, part);
        }
        refuses("fetch", json!({"id": null}), "it is missing");
        refuses(
            "fetch",
            json!({"id": "x", "expand": ["r"], "expand_limit": {"r": "x"}}),
            "`r`: it is the string",
        );
    }

    #[test]
    fn an_alias_is_replaced_by_its_argument() {
        check("search", json!({"q": "x"}), &json!({"query": "x"}));
        check("search", json!({"query": "y", "q": "x"}), &json!({"query": "y"}));
        check("search", json!({"q": "x", "query": "y"}), &json!({"query": "y"}));
    }

    #[test]
    fn every_argument_has_an_example_that_is_accepted() {
        for spec in Profile::Standard.tools() {
            let schema: Value = serde_json::from_str(spec.input_schema).unwrap();
            for name in schema["properties"].as_object().unwrap().keys().filter(|name| *name != "source") {
                let hint = spec.invalid_argument(name, "").body().hint;
                assert!(hint.contains(&format!("\"{name}\": ")), "{hint}");
                let call = hint.strip_prefix(&format!("Call {} with ", spec.name)).unwrap();
                let call = serde_json::from_str(call.strip_suffix('.').unwrap()).unwrap();
                let read = DeclaredArguments::new(spec).normalize(call).unwrap();
                assert!(read.warnings.is_empty() && read.values.contains_key(name), "{hint}");
            }
        }
    }
}
