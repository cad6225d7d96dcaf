//! The bodies of requests, and their validation.

use serde_json::{Map, Value};

use super::error::{DocumentError, ValidationError};
use crate::docs::{MAX_QUERY_CHARS, SearchRequest};
use crate::source::documents::{Category, Feedback};

/// Maximum length of `project_id` in characters.
const MAX_PROJECT_CHARS: usize = 100;

/// Maximum of `top_k`.
const MAX_RESULTS: u64 = 50;

/// Value of `top_k` if the request has none.
const DEFAULT_RESULTS: u64 = 5;

/// Parameters of a search.
const PARAMETERS: [&str; 6] =
    ["query", "project_id", "top_k", "category", "use_reranker", "include_metadata"];

/// A validated search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ValidSearch {
    pub(super) request: SearchRequest,
    /// Project as the request names it.
    pub(super) project_id: String,
    pub(super) include_metadata: bool,
}

impl ValidSearch {
    /// Validates the body of a search. Reports all errors at once.
    pub(super) fn parse(body: Value) -> Result<Self, DocumentError> {
        let Value::Object(body) = body else {
            return Err(DocumentError::validation(vec![ValidationError::body(
                "it is not an object",
                "dict_type",
            )]));
        };
        let mut reader = Reader { body: &body, errors: Vec::new() };
        for name in body.keys().filter(|name| !PARAMETERS.contains(&name.as_str())) {
            reader.refuse(name, "there is no such parameter", "extra_forbidden");
        }
        let query = reader.text("query", MAX_QUERY_CHARS).unwrap_or_default();
        let project_id = reader.text("project_id", MAX_PROJECT_CHARS).unwrap_or_default();
        let top_k = reader.integer("top_k");
        let category = reader.category();
        let use_reranker = reader.boolean("use_reranker", true);
        let include_metadata = reader.boolean("include_metadata", false);
        if !reader.errors.is_empty() {
            return Err(DocumentError::validation(reader.errors));
        }
        let request = SearchRequest { query, top_k, category, use_reranker };
        Ok(Self { request, project_id, include_metadata })
    }
}

/// Reader of the parameters in a body, with the errors so far.
struct Reader<'a> {
    body: &'a Map<String, Value>,
    errors: Vec<ValidationError>,
}

impl Reader<'_> {
    fn refuse(&mut self, parameter: &str, problem: &str, kind: &'static str) {
        self.errors.push(ValidationError::parameter(parameter, problem, kind));
    }

    /// Reads a required string.
    fn text(&mut self, name: &str, max_chars: usize) -> Option<String> {
        match self.body.get(name) {
            None => self.refuse(name, "it is missing", "missing"),
            Some(Value::String(text)) if text.trim().is_empty() => {
                self.refuse(name, "it is empty", "string_too_short");
            }
            Some(Value::String(text)) if text.chars().nth(max_chars).is_some() => {
                let problem = format!("it is longer than {max_chars} characters");
                self.refuse(name, &problem, "string_too_long");
            }
            Some(Value::String(text)) => return Some(text.clone()),
            Some(_) => self.refuse(name, "it is not a string", "string_type"),
        }
        None
    }

    /// Reads `top_k`: an integer, also as a string.
    fn integer(&mut self, name: &str) -> usize {
        let value = match self.body.get(name) {
            None => Some(DEFAULT_RESULTS),
            Some(Value::Number(number)) => number.as_u64(),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(_) => None,
        };
        match value.filter(|value| (1..=MAX_RESULTS).contains(value)) {
            Some(value) => usize::try_from(value).unwrap_or(usize::MAX),
            None => {
                self.refuse(name, "it is not an integer from 1 to 50", "int_range");
                0
            }
        }
    }

    fn boolean(&mut self, name: &str, default: bool) -> bool {
        match self.body.get(name) {
            None => default,
            Some(Value::Bool(value)) => *value,
            Some(_) => {
                self.refuse(name, "it is not a boolean", "bool_type");
                default
            }
        }
    }

    fn category(&mut self) -> Option<Category> {
        match self.body.get("category") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => match text.parse() {
                Ok(category) => Some(category),
                Err(invalid) => {
                    let problem: &dyn std::fmt::Display = &invalid;
                    self.refuse("category", &problem.to_string(), "value_error");
                    None
                }
            },
            Some(_) => {
                self.refuse("category", "it is not a string", "string_type");
                None
            }
        }
    }
}

/// Reads the body of feedback: `{"feedback": "helpful" | "not_helpful" | null}`.
pub(super) fn feedback_of(body: &Value) -> Result<Option<Feedback>, DocumentError> {
    let refuse = |problem: &str| {
        DocumentError::validation(vec![ValidationError::parameter("feedback", problem, "value_error")])
    };
    match body.get("feedback") {
        Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => match text.parse() {
            Ok(feedback) => Ok(Some(feedback)),
            Err(invalid @ crate::source::documents::InvalidFeedback) => Err(refuse(&invalid.to_string())),
        },
        _ => Err(refuse("it is helpful, not_helpful or null")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn refused(body: Value, code: &str, places: &[&str]) {
        let error = ValidSearch::parse(body).unwrap_err();
        let body: Value = serde_json::from_slice(&error.body("r")).unwrap();
        assert_eq!(body["code"], code);
        let errors = body["errors"].as_array().unwrap();
        let last =
            |error: &Value| error["loc"].as_array().unwrap().last().unwrap().as_str().unwrap().to_owned();
        assert_eq!(errors.iter().map(last).collect::<Vec<_>>(), places);
    }

    #[test]
    fn searches_have_defaults_and_bounds() {
        let parse = |body: Value| ValidSearch::parse(body).unwrap();
        let least = parse(json!({"query": "q", "project_id": "p"}));
        assert_eq!(
            (least.request.top_k, least.request.use_reranker, least.include_metadata),
            (5, true, false)
        );
        for (top_k, expect) in [(json!(1), 1), (json!(50), 50), (json!("5"), 5)] {
            assert_eq!(parse(json!({"query": "q", "project_id": "p", "top_k": top_k})).request.top_k, expect);
        }
        assert!(ValidSearch::parse(json!({"query": "q".repeat(1_000), "project_id": "p"})).is_ok());
        for top_k in [json!(0), json!(51), json!(-1), json!(1.5), json!(null), json!("x")] {
            refused(json!({"query": "q", "project_id": "p", "top_k": top_k}), "INVALID_ARGUMENT", &["top_k"]);
        }
        refused(json!({"query": "", "project_id": "p"}), "INVALID_QUERY", &["query"]);
        refused(json!({"query": "q".repeat(1_001), "project_id": "p"}), "INVALID_QUERY", &["query"]);
        refused(json!({"project_id": "p"}), "INVALID_QUERY", &["query"]);
        refused(json!({"query": "q", "limit": 1}), "INVALID_ARGUMENT", &["limit", "project_id"]);
        refused(json!({"query": "q", "project_id": "p", "category": 1}), "INVALID_ARGUMENT", &["category"]);
        refused(json!([]), "INVALID_ARGUMENT", &["body"]);
    }

    #[test]
    fn feedback_is_one_of_two_or_withdrawn() {
        assert_eq!(feedback_of(&json!({"feedback": "helpful"})).unwrap(), Some(Feedback::Helpful));
        assert_eq!(feedback_of(&json!({"feedback": null})).unwrap(), None);
        for bad in [json!({}), json!({"feedback": "good"}), json!({"feedback": 1}), json!("helpful")] {
            assert!(feedback_of(&bad).is_err());
        }
    }
}
