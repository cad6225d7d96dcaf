//! Requests and answers of each kind of rerank service.

use serde::Deserialize;
use serde_json::{Value, json};

/// The shape of requests and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// `/rerank` of Text Embeddings Inference: `texts`, and a list of scores.
    Tei,
    /// `/v1/rerank` or `/v2/rerank` of Cohere, also served by Jina, Infinity and vLLM.
    Cohere,
    /// `/v1/rerank` of Voyage, with `top_k` and `truncation`.
    Voyage,
}

impl Shape {
    /// Returns the body of a request for the scores of all passages.
    pub(super) fn body(self, model: Option<&str>, query: &str, passages: &[String]) -> Value {
        let count = passages.len();
        match self {
            Self::Tei => json!({"query": query, "texts": passages, "truncate": true}),
            Self::Cohere => json!({"model": model, "query": query, "documents": passages, "top_n": count}),
            Self::Voyage => {
                json!({"model": model, "query": query, "documents": passages, "top_k": count, "truncation": true})
            }
        }
    }
}

/// An answer: a list, or an object with one.
#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    List(Vec<Item>),
    Results { results: Vec<Item> },
    Data { data: Vec<Item> },
}

#[derive(Deserialize)]
struct Item {
    index: usize,
    #[serde(alias = "relevance_score")]
    score: f64,
}

/// Parses an answer: one finite score for each of `expected` passages, in their order. The error names no content.
pub(super) fn scores(body: &[u8], expected: usize) -> Result<Vec<f32>, String> {
    let answer: Answer =
        serde_json::from_slice(body).map_err(|_error| "it is not JSON with a list of scores".to_owned())?;
    let (Answer::List(items) | Answer::Results { results: items } | Answer::Data { data: items }) = answer;
    if items.len() != expected {
        return Err(format!("it has {} scores for {expected} passages", items.len()));
    }
    let mut scores: Vec<Option<f32>> = vec![None; expected];
    for Item { index, score } in items {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "scores are compared, and one beyond f32 is refused"
        )]
        let score = score as f32;
        if !score.is_finite() {
            return Err("it has a score that is not finite".to_owned());
        }
        match scores.get_mut(index) {
            Some(place @ None) => *place = Some(score),
            Some(Some(_)) => return Err(format!("the index {index} occurs twice")),
            None => return Err(format!("the index {index} is too large")),
        }
    }
    Ok(scores.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_all_services_are_ordered_by_index() {
        for answer in [
            r#"[{"index": 1, "score": 0.9}, {"index": 0, "score": 0.1, "text": null}]"#,
            r#"{"id": "x", "results": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}]}"#,
            r#"{"object": "list", "data": [{"relevance_score": 0.9, "index": 1}, {"relevance_score": 0.1, "index": 0}]}"#,
        ] {
            assert_eq!(scores(answer.as_bytes(), 2).unwrap(), [0.1, 0.9], "{answer}");
        }
    }

    #[test]
    fn other_answers_are_errors_without_their_content() {
        for (answer, expect) in [
            (r#"[{"index": 0, "score": 1}]"#, "1 scores for 2"),
            (r#"[{"index": 0, "score": 1}, {"index": 0, "score": 1}]"#, "occurs twice"),
            (r#"[{"index": 0, "score": 1}, {"index": 9, "score": 1}]"#, "too large"),
            (r#"[{"index": 0, "score": 1}, {"index": 1, "score": 1e60}]"#, "not finite"),
            (r#"[{"index": 0, "score": 1}, {"index": 1, "score": NaN}]"#, "not JSON"),
            (r#"[{"index": -1, "score": 1}, {"index": 1, "score": null}]"#, "not JSON"),
            (r#"{"error": "sekret"}"#, "not JSON"),
            ("<html>sekret", "not JSON"),
            ("", "not JSON"),
        ] {
            let problem = scores(answer.as_bytes(), 2).unwrap_err();
            assert!(problem.contains(expect) && !problem.contains("sekret"), "{answer}: {problem}");
        }
    }

    #[test]
    fn bodies_have_the_fields_of_their_service() {
        let passages = ["a".to_owned()];
        assert_eq!(
            Shape::Tei.body(None, "q", &passages),
            json!({"query": "q", "texts": ["a"], "truncate": true})
        );
        assert_eq!(
            Shape::Cohere.body(Some("m"), "q", &passages),
            json!({"model": "m", "query": "q", "documents": ["a"], "top_n": 1})
        );
        assert_eq!(Shape::Voyage.body(Some("m"), "q", &passages)["top_k"], json!(1));
    }
}
