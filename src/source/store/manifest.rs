//! PDPP connector manifests.

use serde::Deserialize;
use serde_json::Value;

use super::declaration::StreamDeclaration;
use super::routes::routes;
use crate::record::{HttpRoute, RecordData, short_connector_key};

/// A connector's description of its streams. Accepted as it is: what is not listed here is kept in the
/// text and given on unchanged.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    text: String,
    connector_key: Option<String>,
    display_name: Option<String>,
    streams: Vec<StreamDeclaration>,
    routes: Vec<HttpRoute>,
}

/// Why a text is not a manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It is not JSON of the right shape.
    #[error("it is not a connector manifest ({0}); it needs `streams`, an array of objects with a `name`")]
    Shape(#[from] serde_json::Error),
    /// It declares no stream.
    #[error("it declares no stream; `streams` is empty")]
    NoStreams,
    /// One of its streams has no name.
    #[error("one of its `streams` has no `name`, which is a text")]
    NamelessStream,
    /// One of its routes cannot be served.
    #[error("its route `{route}` cannot be served: {problem}")]
    BadRoute {
        /// The route's path, or all of it when it has none.
        route: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    ///
    /// The text is not JSON, has no streams, or has a route that cannot be served.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        let (mut manifest, routes) = Self::read(text)?;
        manifest.routes = routes.into_iter().collect::<Result<_, _>>()?;
        Ok(manifest)
    }

    /// A manifest that a store has, without the routes that cannot be served.
    pub(super) fn kept(text: &str) -> Option<Self> {
        let (mut manifest, routes) = Self::read(text).ok()?;
        manifest.routes = routes.into_iter().filter_map(Result::ok).collect();
        Some(manifest)
    }

    /// All but the routes, and each of these with what is wrong with it.
    fn read(text: &str) -> Result<(Self, Vec<Result<HttpRoute, ManifestError>>), ManifestError> {
        #[derive(Deserialize)]
        struct Sent {
            connector_key: Option<String>,
            connector_id: Option<String>,
            key: Option<String>,
            display_name: Option<String>,
            name: Option<String>,
            streams: Vec<RecordData>,
            routes: Option<Value>,
        }
        let sent: Sent = serde_json::from_str(text)?;
        if sent.streams.is_empty() {
            return Err(ManifestError::NoStreams);
        }
        let streams = sent.streams.into_iter().map(StreamDeclaration::read).collect::<Result<Vec<_>, _>>()?;
        let routes = routes(sent.routes, |name| streams.iter().any(|stream| stream.name == name));
        let key = sent.connector_key.or(sent.connector_id).or(sent.key);
        let manifest = Self {
            text: text.to_owned(),
            connector_key: key.map(|key| short_connector_key(&key).to_owned()),
            display_name: sent.display_name.or(sent.name),
            streams,
            routes: Vec::new(),
        };
        Ok((manifest, routes))
    }

    /// The manifest as it was given.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The short key of the connector, such as `gmail`.
    #[must_use]
    pub fn connector_key(&self) -> Option<&str> {
        self.connector_key.as_deref()
    }

    /// The name of the connector.
    #[must_use]
    pub fn display_name(&self) -> Option<&str> {
        self.display_name.as_deref()
    }

    /// The paths under which its streams are served.
    #[must_use]
    pub fn routes(&self) -> &[HttpRoute] {
        &self.routes
    }

    /// The declaration of a stream.
    ///
    /// # Errors
    ///
    /// There is none; the text says which there are.
    pub fn stream(&self, name: &str) -> Result<&StreamDeclaration, String> {
        self.streams.iter().find(|stream| stream.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.streams.iter().map(|stream| stream.name.as_str()).collect();
            format!("the manifest declares no stream `{name}`; it declares {}", known.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_accepted_as_it_is() {
        let text = r#"{"protocol_version":"0.1","connector_id":"https://registry.pdpp.dev/connectors/acme-mail",
            "display_name":"Acme mail","streams":[
            {"name":"messages","schema":{"type":"object"},"primary_key":["id"],"cursor_field":"received_at","semantics":"append"},
            {"name":"daily_stats","primary_key":["user_id","day"]},{"name":"labels","primary_key":"name"},{"name":"raw"}]}"#;
        let manifest = Manifest::parse(text).unwrap();
        assert_eq!(manifest.connector_key(), Some("acme-mail"));
        assert_eq!(manifest.display_name(), Some("Acme mail"));
        assert_eq!(manifest.text(), text);
        assert_eq!(manifest.stream("daily_stats").unwrap().primary_key, ["user_id", "day"]);
        assert_eq!(manifest.stream("labels").unwrap().primary_key, ["name"]);
        assert_eq!(manifest.stream("messages").unwrap().cursor_field.as_deref(), Some("received_at"));
        assert!(manifest.stream("nope").unwrap_err().contains("messages, daily_stats"));
    }

    #[test]
    fn what_is_no_manifest_says_what_is_missing() {
        for text in ["", "[]", "{}", r#"{"streams":[]}"#, r#"{"streams":[{}]}"#] {
            assert!(Manifest::parse(text).unwrap_err().to_string().contains("streams"), "{text}");
        }
    }
}
