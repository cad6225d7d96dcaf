//! Paths of a connector's own API under which streams are served, as the schema lists them per connection.

use fetchwell_core::record::{ConnectionSchema, HttpRoute};
use schemars::JsonSchema;
use serde::Serialize;

/// A path of the connector's own API, with the stream that is served there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct HttpRouteRow {
    /// Path below `/api/v1/`.
    path: String,
    stream: String,
    /// Name of one record, such as `Booking`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    record_type: Option<String>,
}

impl HttpRouteRow {
    fn new(route: &HttpRoute) -> Self {
        Self {
            path: route.path.clone(),
            stream: route.stream.to_string(),
            record_type: route.record_type.clone(),
        }
    }
}

/// Returns the routes of a connection, or those of one of its streams.
pub(crate) fn routes_of(
    known: &[&ConnectionSchema],
    connection_id: &str,
    stream: Option<&str>,
) -> Vec<HttpRouteRow> {
    let connection = known.iter().find(|known| known.connection_id.as_str() == connection_id);
    let routes = connection.into_iter().flat_map(|connection| &connection.routes);
    routes
        .filter(|route| stream.is_none_or(|stream| route.stream.as_str() == stream))
        .map(HttpRouteRow::new)
        .collect()
}
