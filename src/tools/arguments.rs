//! Reading a model's arguments.

use std::fmt;

use serde::de::value::StringDeserializer;
use serde::de::{Deserializer, Error, IntoDeserializer, Unexpected, Visitor};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::ToolError;
use crate::fit::clip;
use crate::record::RecordData;

/// The longest piece of an argument that an error quotes, in bytes.
const QUOTE: usize = 200;

/// Reads arguments as `Args`, naming the argument that is wrong.
pub(super) fn parse<Args: DeserializeOwned>(
    tool: &'static str,
    arguments: RecordData,
) -> Result<Args, ToolError> {
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let path = error.path().to_string();
        let problem = error.into_inner().to_string();
        // Unknown and missing arguments are reported at the top; serde names them in backticks.
        let named = problem.split('`').nth(1).unwrap_or_default();
        let param = if path == "." || path == "?" { named } else { path.as_str() };
        ToolError::correct_argument(tool, param, clip(&problem, QUOTE))
    })
}

/// For an optional text: clients that send every argument they know send an empty one for none.
pub(super) fn unless_empty<'de, D, Text>(deserializer: D) -> Result<Option<Text>, D::Error>
where
    D: Deserializer<'de>,
    Text: Deserialize<'de>,
{
    let sent = Option::<String>::deserialize(deserializer)?.filter(|text| !text.trim().is_empty());
    sent.map(|text| {
        Text::deserialize(IntoDeserializer::<D::Error>::into_deserializer(text) as StringDeserializer<_>)
    })
    .transpose()
}

/// For an optional count: some clients write every number as a float, `2.0`.
pub(super) fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    struct WholeNumber;

    impl Visitor<'_> for WholeNumber {
        type Value = Option<usize>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a whole number")
        }

        fn visit_unit<E: Error>(self) -> Result<Option<usize>, E> {
            Ok(None)
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<Option<usize>, E> {
            let count = usize::try_from(number).ok();
            count.map(Some).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<Option<usize>, E> {
            let count = usize::try_from(number).ok();
            count.map(Some).ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
        }

        fn visit_f64<E: Error>(self, number: f64) -> Result<Option<usize>, E> {
            // A whole float is written without a point.
            let count = number.to_string().parse().ok();
            count.map(Some).ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
        }
    }

    deserializer.deserialize_any(WholeNumber)
}

/// An argument that has to hold text.
pub(super) fn text(
    tool: &'static str,
    param: &'static str,
    text: &str,
    most_chars: usize,
) -> Result<String, ToolError> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(ToolError::correct_argument(tool, param, "it is empty".to_owned()));
    }
    if trimmed.chars().nth(most_chars).is_some() {
        return Err(ToolError::correct_argument(
            tool,
            param,
            format!("it is longer than {most_chars} characters"),
        ));
    }
    Ok(trimmed.to_owned())
}

/// Quotes what was sent, shortened so that an error stays within its budget.
pub(super) fn quote(text: &str) -> String {
    clip(text, QUOTE)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::handle::ConnectionId;

    #[derive(Debug, Deserialize)]
    struct Args {
        #[serde(default, deserialize_with = "whole_number")]
        limit: Option<usize>,
        #[serde(default, deserialize_with = "unless_empty")]
        connection_id: Option<ConnectionId>,
    }

    fn read(arguments: Value) -> Result<Args, String> {
        let Value::Object(arguments) = arguments else { panic!("{arguments}") };
        parse::<Args>("search", arguments).map_err(|error| error.body().message)
    }

    #[test]
    fn a_count_may_be_a_whole_float() {
        for (sent, expect) in
            [(json!(2), Some(2)), (json!(2.0), Some(2)), (json!(1e2), Some(100)), (json!(null), None)]
        {
            assert_eq!(read(json!({ "limit": sent })).unwrap().limit, expect);
        }
        for sent in [json!(2.5), json!(-1), json!(-1.0), json!("2"), json!(1e300), json!([])] {
            let problem = read(json!({ "limit": sent })).unwrap_err();
            assert!(problem.contains("expected a whole number") && !problem.contains("usize"), "{problem}");
        }
        assert_eq!(read(json!({})).unwrap().limit, None);
    }

    #[test]
    fn an_empty_text_is_none() {
        for sent in [json!(""), json!(" "), json!(null)] {
            assert_eq!(read(json!({ "connection_id": sent })).unwrap().connection_id, None);
        }
        assert_eq!(read(json!({"connection_id": "c"})).unwrap().connection_id.unwrap().as_str(), "c");
        assert!(read(json!({"connection_id": "../x"})).is_err());
        assert!(read(json!({"connection_id": 7})).unwrap_err().contains("connection_id"));
    }
}
