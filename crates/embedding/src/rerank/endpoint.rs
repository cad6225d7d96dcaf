//! The URL of a rerank service, and the shape of its requests.

use super::shape::Shape;
use crate::service_url::ServiceUrl;

/// The URL of a rerank service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RerankEndpoint {
    url: ServiceUrl,
    shape: Shape,
}

impl RerankEndpoint {
    /// Completes the path of a URL. A service that is sent no model has the shape of Text Embeddings Inference.
    #[must_use]
    pub fn new(url: ServiceUrl, has_model: bool) -> Self {
        let shape = match (url.is_voyage(), has_model) {
            (true, _) => Shape::Voyage,
            (false, true) => Shape::Cohere,
            (false, false) => Shape::Tei,
        };
        let url = url.with_path(|path| match path {
            "" if shape == Shape::Tei => "/rerank".to_owned(),
            "" => "/v1/rerank".to_owned(),
            path if path.ends_with("/v1") || path.ends_with("/v2") => format!("{path}/rerank"),
            path => path.to_owned(),
        });
        Self { url, shape }
    }

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
        for (text, has_model, url, shape) in [
            ("http://127.0.0.1:8080", false, "http://127.0.0.1:8080/rerank", Shape::Tei),
            ("http://127.0.0.1:8080/rerank", false, "http://127.0.0.1:8080/rerank", Shape::Tei),
            ("http://127.0.0.1:7997/rerank", true, "http://127.0.0.1:7997/rerank", Shape::Cohere),
            ("https://api.cohere.com/v2", true, "https://api.cohere.com/v2/rerank", Shape::Cohere),
            ("https://api.jina.ai", true, "https://api.jina.ai/v1/rerank", Shape::Cohere),
            ("https://api.voyageai.com/v1", true, "https://api.voyageai.com/v1/rerank", Shape::Voyage),
        ] {
            let endpoint = RerankEndpoint::new(text.parse().unwrap(), has_model);
            assert_eq!((endpoint.url.to_string().as_str(), endpoint.shape), (url, shape), "{text}");
        }
    }
}
