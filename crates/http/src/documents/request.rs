//! The bodies of requests, and their validation.

use fetchwell_source::documents::{Feedback, InvalidFeedback};
use fetchwell_tools::documents::{MAX_QUERY_CHARS, SearchRequest};
use serde_json::Value;

use super::error::{DocumentError, Place, ValidationError};
use super::parameters::{Parameters, category};

/// Maximum length of `project_id` in characters.
pub(super) const MAX_PROJECT_CHARS: usize = 100;

/// Maximum of `top_k`.
const MAX_RESULTS: usize = 50;

/// Value of `top_k` if the request has none.
const DEFAULT_RESULTS: usize = 5;

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
    pub(super) fn from_body(body: Value) -> Result<Self, DocumentError> {
        Self::parse(Parameters::from_body(body, &PARAMETERS)?)
    }

    /// Validates the query string of a search. Reports all errors at once.
    pub(super) fn from_query(query: Option<&str>) -> Result<Self, DocumentError> {
        Self::parse(Parameters::from_query(query, &PARAMETERS))
    }

    fn parse(mut parameters: Parameters) -> Result<Self, DocumentError> {
        let request = SearchRequest {
            query: parameters.required_text("query", MAX_QUERY_CHARS),
            top_k: parameters.integer("top_k", DEFAULT_RESULTS, MAX_RESULTS),
            category: category(&mut parameters),
            use_reranker: parameters.boolean("use_reranker", true),
        };
        let project_id = parameters.required_text("project_id", MAX_PROJECT_CHARS);
        let include_metadata = parameters.boolean("include_metadata", false);
        parameters.finish()?;
        Ok(Self { request, project_id, include_metadata })
    }
}

/// Reads the body of feedback: `{"feedback": "helpful" | "not_helpful" | null}`.
pub(super) fn feedback_of(body: &Value) -> Result<Option<Feedback>, DocumentError> {
    let refuse = |problem: &str| {
        DocumentError::validation(vec![ValidationError::parameter(
            Place::Body,
            "feedback",
            problem,
            "value_error",
        )])
    };
    match body.get("feedback") {
        Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => match text.parse() {
            Ok(feedback) => Ok(Some(feedback)),
            Err(invalid @ InvalidFeedback) => Err(refuse(&invalid.to_string())),
        },
        _ => Err(refuse("it is helpful, not_helpful or null")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use fetchwell_source::documents::Category;

    #[track_caller]
    fn refused(body: Value, code: &str, places: &[&str]) {
        let error = ValidSearch::from_body(body).unwrap_err();
        let body: Value = serde_json::from_str(&error.body("r")).unwrap();
        assert_eq!(body["code"], code);
        let errors = body["errors"].as_array().unwrap();
        let last =
            |error: &Value| error["loc"].as_array().unwrap().last().unwrap().as_str().unwrap().to_owned();
        assert_eq!(errors.iter().map(last).collect::<Vec<_>>(), places);
    }

    #[test]
    fn searches_have_defaults_and_bounds() {
        let parse = |body: Value| ValidSearch::from_body(body).unwrap();
        let minimal = parse(json!({"query": "q", "project_id": "p"}));
        assert_eq!(
            (minimal.request.top_k, minimal.request.use_reranker, minimal.include_metadata),
            (5, true, false)
        );
        for (top_k, expect) in [(json!(1), 1), (json!(50), 50), (json!("5"), 5), (json!(7.0), 7)] {
            assert_eq!(parse(json!({"query": "q", "project_id": "p", "top_k": top_k})).request.top_k, expect);
        }
        assert!(parse(json!({"query": "q", "project_id": "p", "include_metadata": "true"})).include_metadata);
        refused(
            json!({"query": "q", "project_id": "p", "use_reranker": "yes"}),
            "INVALID_ARGUMENT",
            &["use_reranker"],
        );
        assert!(ValidSearch::from_body(json!({"query": "q".repeat(1_000), "project_id": "p"})).is_ok());
        for top_k in [json!(0), json!(51), json!(-1), json!(1.5), json!(null), json!("x")] {
            refused(json!({"query": "q", "project_id": "p", "top_k": top_k}), "INVALID_ARGUMENT", &["top_k"]);
        }
        refused(json!({"query": "", "project_id": "p"}), "INVALID_QUERY", &["query"]);
        refused(json!({"query": "q".repeat(1_001), "project_id": "p"}), "INVALID_QUERY", &["query"]);
        refused(json!({"project_id": "p"}), "INVALID_QUERY", &["query"]);
        refused(json!({"query": "q", "limit": 1}), "INVALID_ARGUMENT", &["limit", "project_id"]);
        for category in [json!(1), json!("other"), json!("")] {
            let body = json!({"query": "q", "project_id": "p", "category": category});
            refused(body, "INVALID_ARGUMENT", &["category"]);
        }
        let known = parse(json!({"query": "q", "project_id": "p", "category": "Research"}));
        assert_eq!(known.request.category, Category::known("research"));
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
