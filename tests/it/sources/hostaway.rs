//! The hostaway sample through the built binary: the output of the demo, and the routes that a schema passes on, also
//! through another server.

use std::time::Duration;

use fetchwell_core::record::HttpRoute;
use fetchwell_pdpp::{Credentials, Pdpp, ProviderUrl};
use fetchwell_source::BoundSource;
use serde_json::{Value, json};

use crate::support::{CREDENTIAL, HttpServer, connect, fetchwell, get, stderr, stdout, text};

fn sample_store() -> (tempfile::TempDir, std::path::PathBuf, Value) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("nested/hostaway.db");
    let shown = stdout(&fetchwell(["demo", "hostaway", "--json", "--store", text(&store)]));
    (folder, store, serde_json::from_str(&shown).unwrap())
}

/// Returns a response after a check against `/openapi.json`.
#[track_caller]
fn ok(server: &HttpServer, route: &str, target: &str) -> Value {
    let answer = get(&server.address, target);
    assert_eq!(answer.status, 200, "{target}: {}", answer.text);
    let document = get(&server.address, "/openapi.json").json();
    let mut schema =
        document["paths"][route]["get"]["responses"]["200"]["content"]["application/json"]["schema"].clone();
    schema["components"] = document["components"].clone();
    let body = answer.json();
    if let Err(error) = jsonschema::draft202012::new(&schema).unwrap().validate(&body) {
        panic!("{target}: {error} at {}", error.instance_path());
    }
    body
}

#[test]
fn the_sample_is_imported_searched_and_served() {
    let (folder, store, demo) = sample_store();
    assert_eq!(demo["records"], 8_828);
    assert!(!demo["search"]["results"].as_array().unwrap().is_empty(), "{demo}");
    assert_eq!(demo["fetch"]["id"], demo["search"]["results"][0]["id"]);
    assert_eq!(demo["commands"].as_array().unwrap().len(), 3);
    // A second run changes nothing.
    let shown = stdout(&fetchwell(["demo", "hostaway", "--store", text(&store)]));
    for part in ["8,828 records of cin_seaside (Seaside Rentals) and cin_alpine", "/api/v1/bookings/BK12345"]
    {
        assert!(shown.contains(part), "{part} is not in:\n{shown}");
    }
    let ambiguous = fetchwell(["fetch", "reservations:BK00001", "--store", text(&store)]);
    assert!(stderr(&ambiguous).contains("cin_alpine/reservations:BK00001"), "{ambiguous:?}");

    let server = HttpServer::start(["--store", text(&store)]);
    a_schema_lists_routes(&server);
    a_view_with_paths_gives_their_fields(&server);
    another_server_passes_routes_on(&server, folder.path());
}

fn a_schema_lists_routes(server: &HttpServer) {
    let booking = json!({"path": "/api/v1/bookings", "stream": "reservations", "type": "Booking"});
    let compact = ok(server, "/v1/schema", "/v1/schema?view=compact");
    let connections = compact["connectors"][0]["granted_connections"].as_array().unwrap();
    for (connection, id) in connections.iter().zip(["cin_seaside", "cin_alpine"]) {
        let routes = connection["http_routes"].as_array().unwrap();
        assert_eq!((&connection["connection_id"], routes.len(), &routes[1]), (&json!(id), 8, &booking));
    }
    let full = ok(server, "/v1/schema", "/v1/schema");
    let streams = full["connectors"][0]["streams"].as_array().unwrap();
    let reservations = streams.iter().find(|stream| stream["name"] == "reservations").unwrap();
    let routes = reservations["granted_connections"][0]["http_routes"].as_array().unwrap();
    assert_eq!((routes.len(), &routes[0], &routes[1]["path"]), (2, &booking, &json!("/api/v1/reservations")));
    let one = ok(server, "/v1/schema", "/v1/schema?view=compact&stream=reviews");
    let routes = &one["connectors"][0]["granted_connections"][1]["http_routes"];
    assert_eq!(*routes, json!([{"path": "/api/v1/reviews", "stream": "reviews", "type": "Review"}]));
    let stream = ok(server, "/v1/streams/{stream}", "/v1/streams/reviews");
    assert!(stream["granted_connections"][0].get("http_routes").is_none());
}

fn a_view_with_paths_gives_their_fields(server: &HttpServer) {
    let page = ok(
        server,
        "/v1/streams/{stream}/records",
        "/v1/streams/reservations/records?view=preview&limit=1&filter[id]=BK12345",
    );
    let names: Vec<&String> = page["data"][0]["data"].as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        [
            "id",
            "status",
            "guestName",
            "guestPhone",
            "guestAddress",
            "checkInDate",
            "checkOutDate",
            "totalPrice",
            "currency",
            "priceBreakdown",
            "propertyId",
            "propertyDetails",
            "policies"
        ]
    );
}

fn another_server_passes_routes_on(server: &HttpServer, cache_root: &std::path::Path) {
    let url = format!("http://{}", server.address);
    connect(cache_root, &url, CREDENTIAL);
    let provider: ProviderUrl = url.parse().unwrap();
    let credentials = Credentials::new(&provider, cache_root);
    let remote = BoundSource::from(Pdpp::new(
        "remote".parse().unwrap(),
        provider,
        credentials,
        Duration::from_secs(20),
    ));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let schema = runtime.block_on(remote.schema()).unwrap();
    let expect =
        HttpRoute::new("/api/v1/bookings", "reservations".parse().unwrap(), Some("Booking")).unwrap();
    for connection in &schema.connections {
        assert!(connection.routes.len() == 8 && connection.routes.contains(&expect), "{connection:?}");
    }
    assert_eq!(schema.connections.len(), 2);
}
