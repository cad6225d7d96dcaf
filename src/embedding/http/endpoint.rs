//! The URL of an embedding service, and the shape of its requests.

use std::fmt;
use std::str::FromStr;

use url::{Host, Url};

use crate::outbound::is_confidential;

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
    url: Url,
    shape: Shape,
}

/// Reason why a text is not the URL of an embedding service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEndpoint {
    /// The text is not an http or https URL.
    #[error("it is not the http or https URL of a service, such as \"https://api.openai.com/v1\"")]
    NotAUrl,
    /// The URL has a user name or a password.
    #[error("the URL has a user name or a password; set api_key instead")]
    HasUserInfo,
    /// The URL has a query or a fragment.
    #[error("the URL has a query or a fragment; leave it out")]
    HasQuery,
}

/// Parses the URL of a service without user name, password, query and fragment.
pub(in crate::embedding) fn service_url(text: &str) -> Result<Url, InvalidEndpoint> {
    let url: Url = text.trim().parse().map_err(|_error| InvalidEndpoint::NotAUrl)?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(InvalidEndpoint::NotAUrl);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(InvalidEndpoint::HasUserInfo);
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(InvalidEndpoint::HasQuery);
    }
    Ok(url)
}

/// Returns host and port of a URL, for messages.
pub(in crate::embedding) fn place_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Returns true if the host of a URL is this machine.
pub(in crate::embedding) fn is_this_machine(url: &Url) -> bool {
    let mut plain = url.clone();
    // Plain http is confidential on this machine alone.
    plain.set_scheme("http").is_ok() && is_confidential(&plain)
}

/// Returns true if the host of a URL belongs to Voyage.
pub(in crate::embedding) fn is_voyage(url: &Url) -> bool {
    matches!(url.host(), Some(Host::Domain(name)) if name.ends_with("voyageai.com"))
}

impl FromStr for Endpoint {
    type Err = InvalidEndpoint;

    /// Parses a URL. A path that names no operation is completed: `https://host`, `https://host/v1`.
    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        let mut url = service_url(text)?;
        let path = url.path().trim_end_matches('/').to_owned();
        let shape = if is_voyage(&url) {
            Shape::Voyage
        } else if path.ends_with("/embed") {
            Shape::Tei
        } else {
            Shape::OpenAi
        };
        let path = match path.as_str() {
            "" => "/v1/embeddings".to_owned(),
            path if path.ends_with("/v1") => format!("{path}/embeddings"),
            _ => path,
        };
        url.set_path(&path);
        Ok(Self { url, shape })
    }
}

impl Endpoint {
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

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
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
            assert_eq!((endpoint.to_string().as_str(), endpoint.shape), (url, shape), "{text}");
        }
        for text in ["", "api.openai.com", "ftp://x", "https://", "file:///etc"] {
            assert_eq!(text.parse::<Endpoint>(), Err(InvalidEndpoint::NotAUrl), "{text}");
        }
        assert_eq!("https://a:b@x".parse::<Endpoint>(), Err(InvalidEndpoint::HasUserInfo));
        assert_eq!("https://x/v1?key=1".parse::<Endpoint>(), Err(InvalidEndpoint::HasQuery));
    }

    #[test]
    fn this_machine_is_recognized() {
        for (text, expect) in
            [("https://localhost", true), ("http://127.0.0.1:1", true), ("https://api.openai.com", false)]
        {
            assert_eq!(text.parse::<Endpoint>().unwrap().is_this_machine(), expect, "{text}");
        }
    }
}
