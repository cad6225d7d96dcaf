//! The URL of a rerank service, and the shape of its requests.

use std::fmt;
use std::str::FromStr;

use url::Url;

use super::shape::Shape;
use crate::embedding::http::{InvalidEndpoint, is_this_machine, is_voyage, place_of, service_url};
use crate::outbound::is_confidential;

/// The URL of a service as a configuration names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceUrl(Url);

impl FromStr for ServiceUrl {
    type Err = InvalidEndpoint;

    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        service_url(text).map(Self)
    }
}

/// The URL of a rerank service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RerankEndpoint {
    url: Url,
    shape: Shape,
}

impl RerankEndpoint {
    /// Completes the path of a URL. A service that is sent no model has the shape of Text Embeddings Inference.
    #[must_use]
    pub fn new(ServiceUrl(mut url): ServiceUrl, has_model: bool) -> Self {
        let shape = match (is_voyage(&url), has_model) {
            (true, _) => Shape::Voyage,
            (false, true) => Shape::Cohere,
            (false, false) => Shape::Tei,
        };
        let path = url.path().trim_end_matches('/').to_owned();
        let path = match path.as_str() {
            "" if shape == Shape::Tei => "/rerank".to_owned(),
            "" => "/v1/rerank".to_owned(),
            path if path.ends_with("/v1") || path.ends_with("/v2") => format!("{path}/rerank"),
            _ => path,
        };
        url.set_path(&path);
        Self { url, shape }
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns host and port, for messages.
    pub(super) fn place(&self) -> String {
        place_of(&self.url)
    }

    /// Returns true if no other machine can read requests.
    #[must_use]
    pub fn is_confidential(&self) -> bool {
        is_confidential(&self.url)
    }

    /// Returns true if the service runs on this machine.
    #[must_use]
    pub fn is_this_machine(&self) -> bool {
        is_this_machine(&self.url)
    }
}

impl fmt::Display for RerankEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
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
            assert_eq!((endpoint.to_string().as_str(), endpoint.shape), (url, shape), "{text}");
        }
        assert_eq!("https://a:b@x".parse::<ServiceUrl>(), Err(InvalidEndpoint::HasUserInfo));
    }
}
