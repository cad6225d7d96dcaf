//! Reading a query string.
//!
//! One table a route says what is read, what is refused by name, and what `/openapi.json` describes, so that the
//! three cannot disagree.

use percent_encoding::percent_decode_str;

use super::envelope::Warning;
use super::error::ApiError;
use super::table::{
    CONNECTION, CONNECTION_ALIAS, FILTER, LIMIT, LIMIT_DEFAULT, LIMIT_MOST, Parameter, Takes,
};
use crate::handle::ConnectionId;
use crate::source::{Condition, Filter, Operator};

/// The most conditions of one filter.
const CONDITIONS_MOST: usize = 32;

/// A query string, read by a route's table.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    given: Vec<Given>,
    pub(super) warnings: Vec<Warning>,
}

#[derive(Debug)]
struct Given {
    name: &'static str,
    /// What stood between the brackets of a keyed one: `amount][gte` for `filter[amount][gte]`.
    key: String,
    value: String,
}

impl Parameters {
    /// # Errors
    ///
    /// It is not UTF-8, holds a parameter that is not in the table, one twice that can be there once, or a word that
    /// is none of its words.
    pub(super) fn read(raw: Option<&str>, table: &'static [Parameter]) -> Result<Self, ApiError> {
        let mut given: Vec<Given> = Vec::new();
        for pair in raw.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            let Some((parameter, key)) = table.iter().find_map(|row| row.key_of(&name).map(|key| (row, key)))
            else {
                return Err(ApiError::request(format!("Unsupported query parameter: {name}")).about(&name));
            };
            let repeats =
                matches!(parameter.takes, Takes::Names | Takes::Repeated | Takes::Keyed | Takes::KeyedCounts);
            if !repeats && given.iter().any(|before| before.name == parameter.name) {
                return Err(ApiError::request(format!("`{name}` is given more than once")).about(&name));
            }
            if let Takes::Choice(words) | Takes::NeededChoice(words) = parameter.takes
                && !words.contains(&value.as_str())
            {
                return Err(
                    ApiError::request(format!("{name} must be one of {}", words.join(", "))).about(&name)
                );
            }
            given.push(Given { name: parameter.name, key: key.to_owned(), value });
        }
        Ok(Self { given, warnings: Vec::new() })
    }

    /// The value of one that is there at most once.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.given.iter().find(|given| given.name == name).map(|given| given.value.as_str())
    }

    /// The value of one that has to be there and hold something.
    pub(super) fn needed(&self, name: &str) -> Result<&str, ApiError> {
        let value = self.text(name).filter(|value| !value.is_empty());
        value.ok_or_else(|| ApiError::request(format!("{name} is required")).about(name))
    }

    /// Every value of one that is repeated.
    pub(super) fn repeated(&self, name: &str) -> impl Iterator<Item = &str> {
        self.given.iter().filter(move |given| given.name == name).map(|given| given.value.as_str())
    }

    /// The names of one that takes several, whether repeated or with commas between.
    pub(super) fn names(&self, name: &str) -> Result<Vec<String>, ApiError> {
        let names: Vec<String> =
            self.repeated(name).flat_map(|value| value.split(',')).map(str::to_owned).collect();
        if names.iter().any(String::is_empty) {
            return Err(ApiError::request(format!("`{name}` holds an empty name")).about(name));
        }
        Ok(names)
    }

    /// The keys and values of a keyed one.
    pub(super) fn keyed(&self, name: &str) -> impl Iterator<Item = (&str, &str)> {
        let named = self.given.iter().filter(move |given| given.name == name);
        named.map(|given| (given.key.as_str(), given.value.as_str()))
    }

    /// How many rows a page has.
    pub(super) fn page_limit(&mut self) -> usize {
        let Some(asked) = self.text(LIMIT.name).and_then(digits) else { return LIMIT_DEFAULT };
        if asked > LIMIT_MOST {
            self.clamped(LIMIT.name, LIMIT_MOST);
        }
        if asked == 0 { LIMIT_DEFAULT } else { asked.min(LIMIT_MOST) }
    }

    /// Says in a warning that less is given than was asked.
    pub(super) fn clamped(&mut self, name: &str, most: usize) {
        let message = format!("{name} is at most {most} and was set to it");
        self.warnings.push(Warning::of("limit_clamped", message).about(name));
    }

    /// A whole number between `least` and `most`; `None` when it is not given.
    ///
    /// # Errors
    ///
    /// What is wrong with it, as a sentence.
    pub(super) fn whole(&self, name: &str, least: usize, most: usize) -> Result<Option<usize>, String> {
        let Some(value) = self.text(name) else { return Ok(None) };
        match digits(value).filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(Some(number)),
            None if (least, most) == (0, usize::MAX) => Err(format!("{name} must be a non-negative integer")),
            None if most == usize::MAX => Err(format!("{name} must be an integer of at least {least}")),
            None => Err(format!("{name} must be an integer from {least} to {most}")),
        }
    }

    /// The connection that is asked for, under its name or its older one.
    pub(super) fn connection(&mut self) -> Result<Option<ConnectionId>, ApiError> {
        let alias = self.text(CONNECTION_ALIAS.name).map(str::to_owned);
        let asked = match (self.text(CONNECTION.name), &alias) {
            (Some(asked), Some(alias)) if asked != alias => {
                let problem = "connection_id and its older name connector_instance_id differ";
                return Err(ApiError::request(problem.to_owned()).about(CONNECTION_ALIAS.name));
            }
            (Some(asked), _) => Some(asked.to_owned()),
            (None, alias) => alias.clone(),
        };
        if alias.is_some() {
            let message = "connector_instance_id is deprecated; use connection_id".to_owned();
            self.warnings.push(Warning::of("deprecated_alias_used", message).about(CONNECTION_ALIAS.name));
        }
        let Some(asked) = asked else { return Ok(None) };
        // What cannot be a name of anything is not a name of a connection.
        asked.parse().map(Some).map_err(|problem| ApiError::connection_not_found(&asked, &problem))
    }

    /// The conditions on fields. Values are texts here; the source makes of them what the field is.
    pub(super) fn filter(&self) -> Result<Filter, ApiError> {
        let mut conditions = Vec::new();
        for (key, value) in self.keyed(FILTER.name) {
            let (field, operator) = match key.split_once("][") {
                None => (key, Some(Operator::Equal)),
                Some((field, word)) => (field, Operator::of_range(word)),
            };
            let Some(operator) = operator.filter(|_| !field.is_empty()) else {
                let problem = format!(
                    "`filter[{key}]` is none of filter[field]=value and filter[field][gte|gt|lte|lt]=value"
                );
                return Err(invalid_filter(problem));
            };
            let value = crate::record::Scalar::Text(value.to_owned());
            conditions.push(Condition { field: field.to_owned(), operator, value });
        }
        if conditions.len() > CONDITIONS_MOST {
            return Err(invalid_filter(format!("a filter has at most {CONDITIONS_MOST} conditions")));
        }
        Ok(Filter(conditions))
    }
}

fn invalid_filter(problem: String) -> ApiError {
    ApiError::bad("invalid_filter", problem).about(FILTER.name)
}

/// A name or value of a query string, as browsers encode forms.
fn decode(text: &str) -> Result<String, ApiError> {
    let spaced = text.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8();
    let decoded = decoded.map_err(|_broken| ApiError::request("the query string is not UTF-8".to_owned()))?;
    Ok(decoded.into_owned())
}

/// A number of digits alone; one too large to count with is the largest there is.
fn digits(text: &str) -> Option<usize> {
    let all_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| text.parse().unwrap_or(usize::MAX))
}

/// Two parameters that cannot both be given.
pub(super) fn exclusive(one: &str, other: &str) -> ApiError {
    ApiError::request(format!("{one} and {other} are mutually exclusive")).about(one)
}
