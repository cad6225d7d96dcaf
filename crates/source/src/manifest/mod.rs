//! Parser of PDPP connector manifests: the streams that a connector has and the routes that serve them.
//!
//! * `declaration`: a stream of a manifest, and its fields
//! * `routes`: the routes of a manifest
//! * `kinds`: the types that a field has in the records of a stream
//! * `observed`: the fields that records of a stream were seen to have
//! * `error`: `ManifestError`

pub mod declaration;
mod error;
pub mod kinds;
pub mod observed;
mod routes;

use std::sync::{Arc, LazyLock};

use fetchwell_core::lru::{LruCache, LruLimits};
use fetchwell_core::record::{HttpRoute, RecordData, short_connector_key};
use serde::Deserialize;
use serde_json::Value;

pub use self::declaration::StreamDeclaration;
pub use self::error::ManifestError;

use self::routes::routes;

/// Maximum size of the texts of cached manifests in bytes.
const MAX_CACHED_BYTES: u64 = 1024 * 1024;

/// Description of a connector and its streams. Keys that are unknown here are kept in the text and passed on
/// unchanged.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    text: String,
    connector_key: Option<String>,
    display_name: Option<String>,
    streams: Vec<StreamDeclaration>,
    routes: Vec<HttpRoute>,
}

impl Manifest {
    /// Parses a manifest.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not JSON, has no streams, or has a route that cannot be served.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        let (mut manifest, routes) = Self::read(text)?;
        manifest.routes = routes.into_iter().collect::<Result<_, _>>()?;
        Ok(manifest)
    }

    /// Parses a manifest from a store. Routes that cannot be served are left out.
    #[must_use]
    pub fn from_stored(text: &str) -> Option<Self> {
        let (mut manifest, routes) = Self::read(text).ok()?;
        manifest.routes = routes.into_iter().filter_map(Result::ok).collect();
        Some(manifest)
    }

    /// Returns the parsed manifest of a store from a cache: every read of a stream needs it.
    pub fn cached(text: &str) -> Option<Arc<Self>> {
        static PARSED: LazyLock<LruCache<String, Arc<Manifest>>> = LazyLock::new(|| {
            LruCache::with_weights(LruLimits::new(MAX_CACHED_BYTES), |text: &String, _| text.len())
        });
        if let Some(manifest) = PARSED.get(text) {
            return Some(manifest);
        }
        let manifest = Arc::new(Self::from_stored(text)?);
        PARSED.insert(text.to_owned(), Arc::clone(&manifest));
        Some(manifest)
    }

    /// Parses everything but the routes, and each route on its own.
    fn read(text: &str) -> Result<(Self, Vec<Result<HttpRoute, ManifestError>>), ManifestError> {
        #[derive(Deserialize)]
        struct RawManifest {
            connector_key: Option<String>,
            connector_id: Option<String>,
            key: Option<String>,
            display_name: Option<String>,
            name: Option<String>,
            streams: Vec<RecordData>,
            routes: Option<Value>,
        }
        let raw: RawManifest = serde_json::from_str(text)?;
        if raw.streams.is_empty() {
            return Err(ManifestError::NoStreams);
        }
        let streams = raw.streams.into_iter().map(StreamDeclaration::read).collect::<Result<Vec<_>, _>>()?;
        let routes = routes(raw.routes, |name| streams.iter().any(|stream| stream.name == name));
        let key = raw.connector_key.or(raw.connector_id).or(raw.key);
        let manifest = Self {
            text: text.to_owned(),
            connector_key: key.map(|key| short_connector_key(&key).to_owned()),
            display_name: raw.display_name.or(raw.name),
            streams,
            routes: Vec::new(),
        };
        Ok((manifest, routes))
    }

    /// Returns the manifest as it was given.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the short key of the connector, such as `gmail`.
    #[must_use]
    pub fn connector_key(&self) -> Option<&str> {
        self.connector_key.as_deref()
    }

    /// Returns the display name of the connector.
    #[must_use]
    pub fn display_name(&self) -> Option<&str> {
        self.display_name.as_deref()
    }

    /// Returns the routes under which the streams are served.
    #[must_use]
    pub fn routes(&self) -> &[HttpRoute] {
        &self.routes
    }

    /// Returns the declaration of a stream.
    ///
    /// # Errors
    ///
    /// Returns a message that lists the declared streams if there is none of that name.
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
    fn invalid_manifest_error_names_the_missing_part() {
        for text in ["", "[]", "{}", r#"{"streams":[]}"#, r#"{"streams":[{}]}"#] {
            assert!(Manifest::parse(text).unwrap_err().to_string().contains("streams"), "{text}");
        }
    }
}
