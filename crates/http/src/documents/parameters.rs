//! The parameters of a request: the members of a JSON body, or the names and values of a query string.

use fetchwell_source::documents::Category;
use serde_json::{Map, Value};

use super::error::{DocumentError, Place, ValidationError};

/// Reader of parameters, with the errors so far.
#[derive(Debug)]
pub(super) struct Parameters {
    place: Place,
    values: Map<String, Value>,
    errors: Vec<ValidationError>,
}

impl Parameters {
    /// Reads the members of a body.
    pub(super) fn from_body(body: Value, known: &[&str]) -> Result<Self, DocumentError> {
        let Value::Object(values) = body else {
            let error = ValidationError::body("it is not an object", "dict_type");
            return Err(DocumentError::validation(vec![error]));
        };
        Ok(Self { place: Place::Body, values, errors: Vec::new() }.reject_unknown(known))
    }

    /// Reads a query string. A parameter may be there once.
    pub(super) fn from_query(query: Option<&str>, known: &[&str]) -> Self {
        let mut read = Self { place: Place::Query, values: Map::new(), errors: Vec::new() };
        for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            let is_any_category = name == "category" && value.is_empty();
            let value = if is_any_category { Value::Null } else { Value::from(&*value) };
            if read.values.insert((*name).to_owned(), value).is_some() {
                read.refuse(&name, "it is there more than once", "value_error");
            }
        }
        read.reject_unknown(known)
    }

    fn reject_unknown(mut self, known: &[&str]) -> Self {
        let unknown: Vec<String> =
            self.values.keys().filter(|name| !known.contains(&name.as_str())).cloned().collect();
        for name in unknown {
            self.refuse(&name, "there is no such parameter", "extra_forbidden");
        }
        self
    }

    /// Returns the value of a parameter.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// Adds the error of a parameter.
    pub(super) fn refuse(&mut self, name: &str, problem: &str, kind: &'static str) {
        self.errors.push(ValidationError::parameter(self.place, name, problem, kind));
    }

    /// Adds an error if a parameter is there.
    pub(super) fn refuse_if_present(&mut self, name: &str, problem: &str) {
        if self.values.contains_key(name) {
            self.refuse(name, problem, "value_error");
        }
    }

    /// Reads a required string.
    pub(super) fn required_text(&mut self, name: &str, max_chars: usize) -> String {
        if self.values.contains_key(name) {
            return self.text(name, max_chars).unwrap_or_default();
        }
        self.refuse(name, "it is missing", "missing");
        String::new()
    }

    /// Reads a string that may be left out.
    pub(super) fn text(&mut self, name: &str, max_chars: usize) -> Option<String> {
        let (problem, kind) = match self.values.get(name)? {
            Value::String(text) if text.trim().is_empty() => ("it is empty".to_owned(), "string_too_short"),
            Value::String(text) if text.chars().nth(max_chars).is_some() => {
                (format!("it is longer than {max_chars} characters"), "string_too_long")
            }
            Value::String(text) => return Some(text.clone()),
            _ => ("it is not a string".to_owned(), "string_type"),
        };
        self.refuse(name, &problem, kind);
        None
    }

    /// Reads an integer from 1 to `max`, also as a string or with a fraction of zero.
    pub(super) fn integer(&mut self, name: &str, default: usize, max: usize) -> usize {
        let value: Option<usize> = match self.values.get(name) {
            None => return default,
            // A float without a fraction is written like an integer.
            Some(Value::Number(number)) => number.as_f64().and_then(|number| number.to_string().parse().ok()),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(_) => None,
        };
        value.filter(|value| (1..=max).contains(value)).unwrap_or_else(|| {
            self.refuse(name, &format!("it is not an integer from 1 to {max}"), "int_range");
            default
        })
    }

    /// Reads a boolean, also as a string.
    pub(super) fn boolean(&mut self, name: &str, default: bool) -> bool {
        match self.values.get(name) {
            None => default,
            Some(Value::Bool(value)) => *value,
            Some(Value::String(text)) if text == "true" => true,
            Some(Value::String(text)) if text == "false" => false,
            Some(_) => {
                self.refuse(name, "it is not a boolean", "bool_type");
                default
            }
        }
    }

    /// Returns an error with all problems, if there is any.
    pub(super) fn finish(self) -> Result<(), DocumentError> {
        if self.errors.is_empty() { Ok(()) } else { Err(DocumentError::validation(self.errors)) }
    }
}

/// Reads `category`: one of the known ones, or null.
pub(super) fn category(parameters: &mut Parameters) -> Option<Category> {
    let (problem, kind) = match parameters.get("category")? {
        Value::Null => return None,
        Value::String(text) => match Category::known(text) {
            Some(category) => return Some(category),
            None => (format!("it is not one of {}", Category::KNOWN.join(", ")), "enum"),
        },
        _ => ("it is not a string".to_owned(), "string_type"),
    };
    parameters.refuse("category", &problem, kind);
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn query_strings_have_values_of_their_types() {
        let known = ["query", "category", "use_reranker"];
        let mut read = Parameters::from_query(Some("query=a+b%3F&category=&use_reranker=false"), &known);
        let expect = json!({"query": "a b?", "category": null, "use_reranker": "false"});
        assert_eq!(Value::Object(read.values.clone()), expect);
        assert!(!read.boolean("use_reranker", true));
        assert!(read.finish().is_ok());
        assert!(Parameters::from_query(None, &known).finish().is_ok());
    }

    #[test]
    fn repeated_and_unknown_parameters_are_refused_in_their_place() {
        let error = Parameters::from_query(Some("query=a&query=b&top=1"), &["query"]).finish().unwrap_err();
        let body: Value = serde_json::from_str(&error.body("r")).unwrap();
        let places: Vec<&Value> =
            body["errors"].as_array().unwrap().iter().map(|error| &error["loc"]).collect();
        assert_eq!(places, [&json!(["query", "query"]), &json!(["query", "top"])]);
        assert_eq!(body["code"], "INVALID_QUERY");
    }
}
