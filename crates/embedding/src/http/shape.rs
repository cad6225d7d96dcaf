//! Requests and answers of each shape.

use serde::Deserialize;
use serde_json::{Value, json};

use super::endpoint::Shape;
use crate::Purpose;

/// Beginnings of the names of models that offer several dimensions. Other models refuse a request that names them.
const MODELS_WITH_DIMENSIONS: [&str; 6] =
    ["text-embedding-3", "voyage-3-large", "voyage-3.5", "voyage-code-3", "voyage-4", "jina-embeddings-v"];

impl Shape {
    /// Returns the body of a request.
    pub(super) fn body(self, model: &str, dimensions: usize, texts: &[String], purpose: Purpose) -> Value {
        let has_dimensions = MODELS_WITH_DIMENSIONS.iter().any(|known| model.starts_with(known));
        match self {
            Self::OpenAi => {
                let mut body = json!({"model": model, "input": texts, "encoding_format": "float"});
                if has_dimensions {
                    add(&mut body, "dimensions", json!(dimensions));
                }
                body
            }
            Self::Voyage => {
                let input_type = match purpose {
                    Purpose::Query => "query",
                    Purpose::Document => "document",
                };
                let mut body =
                    json!({"model": model, "input": texts, "input_type": input_type, "truncation": false});
                if has_dimensions {
                    add(&mut body, "output_dimension", json!(dimensions));
                }
                body
            }
            Self::Tei => json!({"inputs": texts, "truncate": false, "normalize": true}),
        }
    }

    /// Returns the vectors of an answer, in the order of the texts.
    pub(super) fn vectors(self, body: &[u8]) -> Result<Vec<Vec<f32>>, String> {
        match self {
            Self::OpenAi | Self::Voyage => {
                let answer: Answer = parse(body)?;
                ordered(answer.data)
            }
            Self::Tei => parse(body),
        }
    }
}

fn add(body: &mut Value, key: &str, value: Value) {
    if let Some(fields) = body.as_object_mut() {
        fields.insert(key.to_owned(), value);
    }
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    /// Number of the text. Some services leave it out and keep the order.
    index: Option<usize>,
    embedding: Vec<f32>,
}

/// Orders vectors by the number of their text. A number that is missing, repeated or too large is an error.
fn ordered(items: Vec<Item>) -> Result<Vec<Vec<f32>>, String> {
    let mut vectors: Vec<Option<Vec<f32>>> = vec![None; items.len()];
    for (position, item) in items.into_iter().enumerate() {
        let index = item.index.unwrap_or(position);
        match vectors.get_mut(index) {
            Some(place @ None) => *place = Some(item.embedding),
            Some(Some(_)) => return Err(format!("the index {index} occurs twice")),
            None => return Err(format!("the index {index} is too large")),
        }
    }
    Ok(vectors.into_iter().flatten().collect())
}

/// Parses JSON. The error names the place and not the content, which can be text of a record.
fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, String> {
    let text = std::str::from_utf8(body).map_err(|_error| "it is not UTF-8".to_owned())?;
    if text.trim_start().starts_with('<') {
        return Err("it is HTML".to_owned());
    }
    serde_json::from_str(text).map_err(|error| {
        let kind = match error.classify() {
            serde_json::error::Category::Syntax => "is not JSON with finite numbers",
            serde_json::error::Category::Eof => "ends too early",
            _ => "has other fields",
        };
        format!("it {kind}, line {} column {}", error.line(), error.column())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_the_fields_of_their_shape() {
        let texts = ["a".to_owned()];
        let body = |shape: Shape, model| shape.body(model, 256, &texts, Purpose::Query);
        assert_eq!(
            body(Shape::OpenAi, "text-embedding-3-small"),
            json!({"model": "text-embedding-3-small", "input": ["a"], "encoding_format": "float", "dimensions": 256})
        );
        assert_eq!(
            body(Shape::OpenAi, "nomic-embed-text"),
            json!({"model": "nomic-embed-text", "input": ["a"], "encoding_format": "float"})
        );
        assert_eq!(
            body(Shape::Voyage, "voyage-3"),
            json!({"model": "voyage-3", "input": ["a"], "input_type": "query", "truncation": false})
        );
        assert_eq!(body(Shape::Tei, "x"), json!({"inputs": ["a"], "truncate": false, "normalize": true}));
    }

    #[test]
    fn answers_are_ordered_by_index() {
        let answer =
            br#"{"data": [{"index": 1, "embedding": [2]}, {"index": 0, "embedding": [1]}], "usage": {}}"#;
        assert_eq!(Shape::OpenAi.vectors(answer).unwrap(), [[1.0], [2.0]]);
        let answer = br#"{"data": [{"embedding": [1]}, {"embedding": [2]}]}"#;
        assert_eq!(Shape::OpenAi.vectors(answer).unwrap(), [[1.0], [2.0]]);
        assert_eq!(Shape::Tei.vectors(b"[[1], [2]]").unwrap(), [[1.0], [2.0]]);
    }

    #[test]
    fn other_answers_are_errors_without_their_content() {
        for (answer, expect) in [
            (r#"{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}"#, "occurs twice"),
            (r#"{"data": [{"index": 7, "embedding": [1]}]}"#, "too large"),
            (r#"{"data": [{"index": 0, "embedding": [NaN]}]}"#, "is not JSON"),
            (r#"{"data": [{"index": 0, "embedding": [null]}]}"#, "has other fields"),
            (r#"{"data": [{"index": 0, "embedding": "sekret"}]}"#, "has other fields"),
            (r#"{"error": "sekret"}"#, "has other fields"),
            (r#"{"data": ["#, "ends too early"),
            ("<html>sekret", "it is HTML"),
            ("", "ends too early"),
        ] {
            let problem = Shape::OpenAi.vectors(answer.as_bytes()).unwrap_err();
            assert!(problem.contains(expect) && !problem.contains("sekret"), "{answer}: {problem}");
        }
        assert!(Shape::Tei.vectors(b"\xff").unwrap_err().contains("UTF-8"));
    }
}
