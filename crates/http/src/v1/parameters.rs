//! Parses query strings.
//!
//! One table per route determines the accepted parameters, the errors for others, and the description in
//! `/openapi.json`.

use fetchwell_core::handle::ConnectionId;
use fetchwell_source::{Condition, Filter, Test};
use percent_encoding::percent_decode_str;

use super::table::{
    CONNECTION, CONNECTION_ALIAS, DEFAULT_LIMIT, FILTER, LIMIT, MAX_LIMIT, Parameter, ParameterType,
};
use super::warning::Warning;
use crate::error::RequestError;

/// Maximum number of conditions of one filter.
const MAX_CONDITIONS: usize = 32;

/// Query string, parsed by the table of a route.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    given: Vec<RawParameter>,
    pub(super) warnings: Vec<Warning>,
}

#[derive(Debug)]
struct RawParameter {
    name: &'static str,
    /// Key in the brackets of a keyed parameter: `amount][gte` for `filter[amount][gte]`.
    key: String,
    value: String,
}

impl Parameters {
    /// Parses a query string.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not UTF-8, or contains a parameter that is not in the table, a repeated parameter
    /// that may be there once, or a value that is not one of the choices.
    pub(super) fn read(raw: Option<&str>, table: &'static [Parameter]) -> Result<Self, RequestError> {
        let mut given: Vec<RawParameter> = Vec::new();
        for pair in raw.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            let Some((parameter, key)) = table.iter().find_map(|row| row.key_of(&name).map(|key| (row, key)))
            else {
                return Err(
                    RequestError::request(format!("Unsupported query parameter: {name}")).about(&name)
                );
            };
            let repeats = matches!(
                parameter.takes,
                ParameterType::Names
                    | ParameterType::Repeated
                    | ParameterType::Keyed
                    | ParameterType::KeyedCounts
            );
            if !repeats && given.iter().any(|before| before.name == parameter.name) {
                return Err(RequestError::request(format!("`{name}` is given more than once")).about(&name));
            }
            if let ParameterType::Choice(words) | ParameterType::NeededChoice(words) = parameter.takes
                && !words.contains(&value.as_str())
            {
                return Err(
                    RequestError::request(format!("{name} must be one of {}", words.join(", "))).about(&name)
                );
            }
            given.push(RawParameter { name: parameter.name, key: key.to_owned(), value });
        }
        Ok(Self { given, warnings: Vec::new() })
    }

    /// Returns the value of a parameter that is not repeated.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.given.iter().find(|given| given.name == name).map(|given| given.value.as_str())
    }

    /// Returns the value of a required parameter; an empty value is an error.
    pub(super) fn needed(&self, name: &str) -> Result<&str, RequestError> {
        let value = self.text(name).filter(|value| !value.is_empty());
        value.ok_or_else(|| RequestError::request(format!("{name} is required")).about(name))
    }

    /// Returns every value of a repeated parameter.
    pub(super) fn repeated(&self, name: &str) -> impl Iterator<Item = &str> {
        self.given.iter().filter(move |given| given.name == name).map(|given| given.value.as_str())
    }

    /// Returns the names in a parameter that may be repeated or contain commas.
    pub(super) fn names(&self, name: &str) -> Result<Vec<String>, RequestError> {
        let names: Vec<String> =
            self.repeated(name).flat_map(|value| value.split(',')).map(str::to_owned).collect();
        if names.iter().any(String::is_empty) {
            return Err(RequestError::request(format!("`{name}` holds an empty name")).about(name));
        }
        Ok(names)
    }

    /// Returns the keys and values of a keyed parameter.
    pub(super) fn keyed(&self, name: &str) -> impl Iterator<Item = (&str, &str)> {
        let named = self.given.iter().filter(move |given| given.name == name);
        named.map(|given| (given.key.as_str(), given.value.as_str()))
    }

    /// Returns the page size.
    pub(super) fn page_limit(&mut self) -> usize {
        let Some(asked) = self.text(LIMIT.name).and_then(digits) else { return DEFAULT_LIMIT };
        if asked > MAX_LIMIT {
            self.warn_clamped(LIMIT.name, MAX_LIMIT);
        }
        if asked == 0 { DEFAULT_LIMIT } else { asked.min(MAX_LIMIT) }
    }

    /// Adds a warning that a value was reduced to the maximum.
    pub(super) fn warn_clamped(&mut self, name: &str, max: usize) {
        let message = format!("{name} is at most {max} and was set to it");
        self.warnings.push(Warning::new("limit_clamped", message).about(name));
    }

    /// Returns an integer between `min` and `max`, or `None` if the parameter is missing.
    ///
    /// # Errors
    ///
    /// Returns a sentence that says which numbers are valid.
    pub(super) fn whole(&self, name: &str, min: usize, max: usize) -> Result<Option<usize>, String> {
        let Some(value) = self.text(name) else { return Ok(None) };
        match digits(value).filter(|number| (min..=max).contains(number)) {
            Some(number) => Ok(Some(number)),
            None if (min, max) == (0, usize::MAX) => Err(format!("{name} must be a non-negative integer")),
            None if max == usize::MAX => Err(format!("{name} must be an integer of at least {min}")),
            None => Err(format!("{name} must be an integer from {min} to {max}")),
        }
    }

    /// Returns the requested connection, by the current or the deprecated parameter name.
    pub(super) fn connection(&mut self) -> Result<Option<ConnectionId>, RequestError> {
        let alias = self.text(CONNECTION_ALIAS.name).map(str::to_owned);
        let asked = match (self.text(CONNECTION.name), &alias) {
            (Some(asked), Some(alias)) if asked != alias => {
                let problem = "connection_id and its older name connector_instance_id differ";
                return Err(RequestError::request(problem.to_owned()).about(CONNECTION_ALIAS.name));
            }
            (Some(asked), _) => Some(asked.to_owned()),
            (None, alias) => alias.clone(),
        };
        if alias.is_some() {
            let message = "connector_instance_id is deprecated; use connection_id".to_owned();
            self.warnings.push(Warning::new("deprecated_alias_used", message).about(CONNECTION_ALIAS.name));
        }
        let Some(asked) = asked else { return Ok(None) };
        // A value that cannot be an id names no connection.
        asked.parse().map(Some).map_err(|problem| RequestError::connection_not_found(&asked, &problem))
    }

    /// Returns the filter. Values are texts; the source converts them to the type of the field.
    pub(super) fn filter(&self) -> Result<Filter, RequestError> {
        let mut conditions: Vec<Condition> = Vec::new();
        for (key, value) in self.keyed(FILTER.name) {
            let (field, operator) = key.split_once("][").unwrap_or((key, "eq"));
            if field.is_empty() {
                return Err(invalid_filter(format!("`filter[{key}]` names no field")));
            }
            let test = Test::parse(operator, value.into())
                .map_err(|problem| invalid_filter(format!("`filter[{key}]` is not valid: {problem}")))?;
            // `in` is repeated for each value.
            let same = conditions.iter_mut().find(|condition| condition.field == field);
            match (same.map(|condition| &mut condition.test), test) {
                (Some(Test::In(values)), Test::In(more)) => values.extend(more),
                (_, test) => conditions.push(Condition { field: field.to_owned(), test }),
            }
        }
        if conditions.len() > MAX_CONDITIONS {
            return Err(invalid_filter(format!("a filter has at most {MAX_CONDITIONS} conditions")));
        }
        Ok(Filter(conditions))
    }
}

fn invalid_filter(problem: String) -> RequestError {
    RequestError::bad("invalid_filter", problem).about(FILTER.name)
}

/// Decodes a name or value of a query string, in the form encoding of browsers.
fn decode(text: &str) -> Result<String, RequestError> {
    let spaced = text.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8();
    let decoded =
        decoded.map_err(|_broken| RequestError::request("the query string is not UTF-8".to_owned()))?;
    Ok(decoded.into_owned())
}

/// Parses a text of digits. A number that is too large becomes the maximum.
fn digits(text: &str) -> Option<usize> {
    let all_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| text.parse().unwrap_or(usize::MAX))
}

/// Creates the error of two parameters that exclude each other.
pub(super) fn exclusive(one: &str, other: &str) -> RequestError {
    RequestError::request(format!("{one} and {other} are mutually exclusive")).about(one)
}
