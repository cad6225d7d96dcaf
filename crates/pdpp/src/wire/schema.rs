//! Parser of schemas and of stream lists with record counts.

use std::collections::HashSet;

use fetchwell_core::handle::{ConnectionId, StreamName};
use fetchwell_core::record::{ConnectionSchema, HttpRoute, Schema, StreamSchema, short_connector_key};
use fetchwell_source::{ConnectionChoice, SourceError};
use serde::Deserialize;

use super::tolerant::{LenientList, lenient};
use super::{parse, wrong_shape};

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireSchema {
    #[serde(deserialize_with = "lenient")]
    data: Option<Box<Self>>,
    connectors: Option<LenientList<WireConnector>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireConnector {
    #[serde(deserialize_with = "lenient")]
    connector_key: Option<String>,
    #[serde(deserialize_with = "lenient")]
    connector_id: Option<String>,
    streams: LenientList<WireStream>,
    granted_connections: LenientList<WireConnection>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireStream {
    #[serde(deserialize_with = "lenient")]
    name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    record_count: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    connection_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    connector_instance_id: Option<String>,
    granted_connections: LenientList<WireConnection>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireConnection {
    #[serde(deserialize_with = "lenient")]
    connection_id: Option<String>,
    #[serde(rename = "connectionId", deserialize_with = "lenient")]
    connection_id_camel: Option<String>,
    #[serde(deserialize_with = "lenient")]
    display_name: Option<String>,
    #[serde(rename = "displayName", deserialize_with = "lenient")]
    display_name_camel: Option<String>,
    http_routes: LenientList<WireRoute>,
}

/// Path of the connector's own API.
#[derive(Deserialize, Default)]
#[serde(default)]
struct WireRoute {
    path: String,
    stream: String,
    #[serde(rename = "type", deserialize_with = "lenient")]
    record_type: Option<String>,
}

/// Parses the connections of a schema, with the record counts of a stream list if there is one.
pub fn schema(body: &[u8], streams: Option<&[u8]>) -> Result<Schema, SourceError> {
    let outer: WireSchema = parse(body)?;
    let inner = outer.data.and_then(|inner| inner.connectors);
    let connectors = outer.connectors.or(inner).ok_or(wrong_shape("`connectors`"))?;
    #[derive(Deserialize)]
    struct Streams {
        data: LenientList<WireStream>,
    }
    let counted =
        streams.and_then(|body| parse::<Streams>(body).ok()).map_or_else(Vec::new, |list| list.data.0);
    let count = |connection: &ConnectionId, stream: &StreamName| {
        let id = |row: &WireStream| row.connection_id.clone().or(row.connector_instance_id.clone());
        let mut rows = counted.iter().filter(|row| row.name.as_deref() == Some(stream.as_str()));
        rows.find(|row| id(row).as_deref() == Some(connection.as_str()))?.record_count
    };
    let mut schema = Schema::default();
    for connector in connectors.0 {
        let key = connector
            .connector_key
            .or(connector.connector_id)
            .map(|key| short_connector_key(&key).to_owned());
        for stream in &connector.streams.0 {
            let Some(name) = stream.name.as_ref().and_then(|name| name.parse::<StreamName>().ok()) else {
                continue;
            };
            let own = &stream.granted_connections.0;
            let granted = if own.is_empty() { &connector.granted_connections.0 } else { own };
            for wire in granted {
                let Some(ConnectionChoice { connection_id, display_name }) = choice(wire) else { continue };
                let record_count = count(&connection_id, &name);
                let stream = StreamSchema { name: name.clone(), record_count };
                let routes = routes_of(wire, &name);
                match schema.connections.iter_mut().find(|known| known.connection_id == connection_id) {
                    Some(known) => {
                        known.streams.push(stream);
                        known.routes.extend(routes);
                    }
                    None => schema.connections.push(ConnectionSchema {
                        source: None,
                        connection_id,
                        display_name,
                        connector_key: key.clone(),
                        streams: vec![stream],
                        routes,
                    }),
                }
            }
        }
    }
    for connection in &mut schema.connections {
        let mut paths = HashSet::new();
        connection.routes.retain(|route| paths.insert(route.path.clone()));
    }
    Ok(schema)
}

/// Returns the routes of one stream that can be served. Others are skipped.
fn routes_of(wire: &WireConnection, stream: &StreamName) -> Vec<HttpRoute> {
    let of_stream = wire.http_routes.0.iter().filter(|route| route.stream == stream.as_str());
    of_stream
        .filter_map(|route| HttpRoute::new(&route.path, stream.clone(), route.record_type.as_deref()).ok())
        .collect()
}

pub(super) fn choice(wire: &WireConnection) -> Option<ConnectionChoice> {
    let connection_id = wire.connection_id.as_ref().or(wire.connection_id_camel.as_ref())?.parse().ok()?;
    let display_name = wire.display_name.clone().or_else(|| wire.display_name_camel.clone());
    Some(ConnectionChoice { connection_id, display_name })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn routes_are_read_with_their_connection_and_bad_ones_passed_over() {
        let body = json!({"connectors": [{
            "connector_key": "hostaway",
            "granted_connections": [{"connection_id": "c1", "http_routes": [
                {"path": "/api/v1/bookings", "stream": "reservations", "type": "Booking"},
                {"path": "/api/v1/bookings", "stream": "listings"},
                {"path": "/etc/passwd", "stream": "listings"},
                {"path": "/api/v1/guests", "stream": "guests"},
                {"path": ["/api/v1/x"], "stream": "listings"},
                "listings", 7,
                {"path": "/api/v1/listings", "stream": "listings", "type": 7}]},
                {"connection_id": "c2", "http_routes": "none"}],
            "streams": [{"name": "listings"}, {"name": "reservations"},
                {"name": "reviews", "granted_connections": [{"connection_id": "c1", "http_routes": [
                    {"path": "/api/v1/reviews", "stream": "reviews", "type": "Review"},
                    {"path": "/api/v1/bookings", "stream": "reviews"}]}]}]}]});
        let schema = schema(body.to_string().as_bytes(), None).unwrap();
        let shown: Vec<String> = schema.connections[0]
            .routes
            .iter()
            .map(|route| format!("{} {} {:?}", route.path, route.stream, route.record_type.as_deref()))
            .collect();
        // Of two routes with one path, the one of the first stream wins.
        assert_eq!(
            shown,
            [
                "/api/v1/bookings listings None",
                "/api/v1/listings listings None",
                "/api/v1/reviews reviews Some(\"Review\")"
            ]
        );
        assert_eq!(schema.connections[1].routes, []);
    }
}
