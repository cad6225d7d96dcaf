//! Query string of a request: known parameters by name, all others as filter conditions.

use std::collections::VecDeque;

use fetchwell_core::fit::clip;
use fetchwell_core::handle::{ConnectionId, InvalidName};
use fetchwell_core::record::RecordData;
use serde_json::{Map, Value, json};
use url::form_urlencoded;

use super::error::ApiError;
use crate::error::RequestError;

/// Maximum number of parameters of a request.
const MAX_PARAMETERS: usize = 100;

/// Parameters that were not read yet.
#[derive(Debug, Default)]
pub(super) struct Parameters(VecDeque<(String, String)>);

impl Parameters {
    /// Parses a query string.
    pub(super) fn read(query: Option<&str>) -> Result<Self, ApiError> {
        let mut read: VecDeque<(String, String)> = VecDeque::new();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            if read.len() == MAX_PARAMETERS {
                let problem = format!("there are more than {MAX_PARAMETERS} parameters");
                return Err(RequestError::bad("invalid_argument", problem).into());
            }
            if read.iter().any(|(known, _)| *known == name) {
                let problem = format!("`{}` is repeated; send it once", clip(&name, 80));
                return Err(RequestError::bad("invalid_argument", problem).about(&name).into());
            }
            read.push_back((name.into_owned(), value.into_owned()));
        }
        Ok(Self(read))
    }

    /// Removes a parameter and returns its value. An empty value counts as missing.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        self.0.remove(at).map(|(_, value)| value).filter(|value| !value.is_empty())
    }

    /// Removes a flag: `true`, `1` or an empty value for true; `None` if it was not sent.
    pub(super) fn flag(&mut self, name: &str) -> Result<Option<bool>, ApiError> {
        let Some(at) = self.0.iter().position(|(known, _)| known == name) else { return Ok(None) };
        let Some((_, value)) = self.0.remove(at) else { return Ok(None) };
        match value.as_str() {
            "" | "true" | "1" => Ok(Some(true)),
            "false" | "0" => Ok(Some(false)),
            other => {
                let problem = format!("`{}` is neither `true` nor `false`", clip(other, 80));
                Err(RequestError::bad("invalid_argument", problem).about(name).into())
            }
        }
    }

    /// Removes a parameter and parses it as an unsigned integer.
    pub(super) fn number(&mut self, name: &str) -> Result<Option<usize>, ApiError> {
        self.take(name).map(|text| number(name, &text)).transpose()
    }

    /// Refuses parameters that were not read.
    pub(super) fn reject_remaining(&mut self) -> Result<(), ApiError> {
        match self.0.pop_front() {
            None => Ok(()),
            Some((name, _)) => {
                let problem = format!("unknown parameter `{}`; leave it out", clip(&name, 80));
                Err(RequestError::bad("invalid_argument", problem).about(&name).into())
            }
        }
    }

    /// Converts all remaining parameters to a filter: `status=confirmed`, `totalPrice[gte]=100`, or either inside
    /// `filter[...]` for a field with the name of a parameter.
    pub(super) fn filter(&mut self) -> Result<RecordData, ApiError> {
        let mut filter = Map::new();
        for (name, value) in std::mem::take(&mut self.0) {
            let wrong = || {
                let problem = format!(
                    "`{}` is not a filter; write `field=value`, `field[gte]=value` or `filter[field][gte]=value`",
                    clip(&name, 80)
                );
                ApiError::from(RequestError::bad("invalid_filter", problem).about(&name))
            };
            let (field, operator) = field_and_operator(&name).ok_or_else(wrong)?;
            let before = match operator {
                None => filter.insert(field, value.into()),
                Some(operator) => {
                    let range = filter.entry(field).or_insert_with(|| json!({}));
                    range.as_object_mut().ok_or_else(wrong)?.insert(operator, Value::from(value))
                }
            };
            // The same condition in two spellings is refused, because one of them would be ignored.
            if before.is_some() {
                let problem = format!("`{}` repeats another parameter; send one of them", clip(&name, 80));
                return Err(RequestError::bad("invalid_filter", problem).about(&name).into());
            }
        }
        Ok(filter)
    }
}

/// Parses an unsigned integer of a parameter.
pub(super) fn number(name: &str, text: &str) -> Result<usize, ApiError> {
    text.parse().map_err(|_no_number| {
        let problem = format!("`{}` is not a non-negative integer", clip(text, 80));
        RequestError::bad("invalid_argument", problem).about(name).into()
    })
}

/// Parses the id of a connection. A value that cannot be an id names no connection.
pub(super) fn connection(text: &str) -> Result<ConnectionId, ApiError> {
    text.parse().map_err(|problem: InvalidName| RequestError::connection_not_found(text, &problem).into())
}

fn field_and_operator(name: &str) -> Option<(String, Option<String>)> {
    let (head, brackets) = match name.split_once('[') {
        None => return Some((name.to_owned(), None)),
        Some((head, rest)) => (head, rest.strip_suffix(']')?),
    };
    let parts: Vec<&str> = brackets.split("][").collect();
    match (head, parts.as_slice()) {
        ("filter", [field]) => Some(((*field).to_owned(), None)),
        ("filter", [field, operator]) => Some(((*field).to_owned(), Some((*operator).to_owned()))),
        (field, [operator]) => Some((field.to_owned(), Some((*operator).to_owned()))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::ErrorResponse;

    #[test]
    fn other_parameters_are_filters() {
        let mut parameters = Parameters::read(Some(
            "limit=5&status=confirmed&totalPrice[gte]=100&totalPrice[lt]=200&filter[limit]=x&meta",
        ))
        .unwrap();
        assert_eq!(parameters.number("limit").unwrap(), Some(5));
        assert_eq!(
            (parameters.flag("meta").unwrap(), parameters.flag("summary").unwrap()),
            (Some(true), None)
        );
        assert_eq!(
            Value::Object(parameters.filter().unwrap()),
            json!({"status": "confirmed", "totalPrice": {"gte": "100", "lt": "200"}, "limit": "x"})
        );
        assert!(parameters.reject_remaining().is_ok());
    }

    #[test]
    fn invalid_parameters_are_refused_by_name() {
        for (query, code) in [
            ("a=1&a=2", "invalid_argument"),
            ("a[b=1", "invalid_filter"),
            ("a[b][c]=1", "invalid_filter"),
            ("a=1&a[gte]=2", "invalid_filter"),
            ("filter[a]=1&a=2", "invalid_filter"),
            ("filter[a][gte]=1&a[gte]=2", "invalid_filter"),
        ] {
            let refused = Parameters::read(Some(query)).and_then(|mut parameters| parameters.filter());
            assert_eq!(refused.unwrap_err().outcome().0, code, "{query}");
        }
        assert!(Parameters::read(Some("limit=-1")).unwrap().number("limit").is_err());
        assert!(Parameters::read(Some("meta=maybe")).unwrap().flag("meta").is_err());
        assert!(Parameters::read(Some(&"a&".repeat(101))).is_err());
    }
}
