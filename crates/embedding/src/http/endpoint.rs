//! The URL of an embedding service, and the shape of its requests.

use std::str::FromStr;

use crate::service_url::{InvalidServiceUrl, ServiceUrl};

/// The shape of requests and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// `/v1/embeddings` of OpenAI, also served by Ollama, vLLM, LM Studio and TEI.
    OpenAi,
    /// `/v1/embeddings` of Voyage, with `input_type` and `truncation`.
    Voyage,
    /// `/embed` of Text Embeddings Inference.
    Tei,
}

/// The URL of an embedding service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    url: ServiceUrl,
    shape: Shape,
}

impl FromStr for Endpoint {
    type Err = InvalidServiceUrl;

    /// Parses a URL. A path that names no operation is completed: `https://host`, `https://host/v1`.
    fn from_str(text: &str) -> Result<Self, InvalidServiceUrl> {
        let url: ServiceUrl = text.parse()?;
        let url = url.with_path(|path| match path {
            "" => "/v1/embeddings".to_owned(),
            path if path.ends_with("/v1") => format!("{path}/embeddings"),
            path => path.to_owned(),
        });
        let shape = if url.is_voyage() {
            Shape::Voyage
        } else if url.as_url().path().ends_with("/embed") {
            Shape::Tei
        } else {
            Shape::OpenAi
        };
        Ok(Self { url, shape })
    }
}

impl Endpoint {
    /// Returns the URL of the requests.
    #[must_use]
    pub fn url(&self) -> &ServiceUrl {
        &self.url
    }

    pub(super) fn shape(&self) -> Shape {
        self.shape
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_completed_and_decide_the_shape() {
        for (text, url, shape) in [
            ("https://api.openai.com/v1", "https://api.openai.com/v1/embeddings", Shape::OpenAi),
            ("http://localhost:11434", "http://localhost:11434/v1/embeddings", Shape::OpenAi),
            ("http://localhost:11434/v1/embeddings/", "http://localhost:11434/v1/embeddings", Shape::OpenAi),
            ("https://api.voyageai.com/v1", "https://api.voyageai.com/v1/embeddings", Shape::Voyage),
            ("http://127.0.0.1:8080/embed", "http://127.0.0.1:8080/embed", Shape::Tei),
            ("https://gw.example.com/team/v1", "https://gw.example.com/team/v1/embeddings", Shape::OpenAi),
        ] {
            let endpoint: Endpoint = text.parse().unwrap();
            assert_eq!((endpoint.url.to_string().as_str(), endpoint.shape), (url, shape), "{text}");
        }
    }
}
