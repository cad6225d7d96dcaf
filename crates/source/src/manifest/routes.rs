//! Routes in a manifest.
//!
//! A manifest with an invalid route is refused at import, so that its author learns of it. A stored manifest may have
//! been accepted by a release that did not know routes; there, invalid routes are left out.

use fetchwell_core::record::HttpRoute;
use serde::Deserialize;
use serde_json::Value;

use super::error::ManifestError;

/// Parses the routes of a manifest, each with its own error. `declares` returns true for the names of the manifest's
/// streams.
pub(crate) fn routes(
    given: Option<Value>,
    declares: impl Fn(&str) -> bool,
) -> Vec<Result<HttpRoute, ManifestError>> {
    let items = match given {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Array(items)) => items,
        Some(other) => vec![other],
    };
    let mut paths: Vec<String> = Vec::new();
    let mut read = |item: &Value| {
        let route = route(item, &declares)?;
        if paths.contains(&route.path) {
            return Err("it is repeated".to_owned());
        }
        paths.push(route.path.clone());
        Ok(route)
    };
    let named = |item: &Value| match item.get("path").and_then(Value::as_str) {
        Some(path) => path.to_owned(),
        None => item.to_string(),
    };
    let route =
        |item| read(&item).map_err(|problem| ManifestError::BadRoute { route: named(&item), problem });
    items.into_iter().map(route).collect()
}

fn route(item: &Value, declares: &impl Fn(&str) -> bool) -> Result<HttpRoute, String> {
    #[derive(Deserialize)]
    struct RawRoute {
        path: String,
        stream: String,
        #[serde(rename = "type")]
        record_type: Option<String>,
    }
    let raw = RawRoute::deserialize(item).map_err(|error| {
        format!("a route is {{\"path\", \"stream\", \"type\"}}, all of them texts: {error}")
    })?;
    if !declares(&raw.stream) {
        return Err(format!("the manifest declares no stream `{}`", raw.stream));
    }
    let stream = raw.stream.parse().map_err(|problem| format!("its stream is no name: {problem}"))?;
    HttpRoute::new(&raw.path, stream, raw.record_type.as_deref()).map_err(|problem| problem.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::manifest::Manifest;

    fn manifest(routes: &Value) -> String {
        json!({"streams": [{"name": "reservations"}, {"name": "listings"}], "routes": routes}).to_string()
    }

    #[test]
    fn routes_are_read() {
        let given = json!([
            {"path": "/api/v1/bookings", "stream": "reservations", "type": "Booking"},
            {"path": "/api/v1/reservations", "stream": "reservations", "note": "kept in the text"}]);
        let text = manifest(&given);
        let parsed = Manifest::parse(&text).unwrap();
        let shown: Vec<_> = parsed
            .routes()
            .iter()
            .map(|route| (route.path.as_str(), route.stream.as_str(), route.record_type.as_deref()))
            .collect();
        let bookings = ("/api/v1/bookings", "reservations", Some("Booking"));
        assert_eq!(shown, [bookings, ("/api/v1/reservations", "reservations", None)]);
        assert_eq!(Manifest::cached(&text).unwrap().routes(), parsed.routes());
        assert_eq!(Manifest::parse(&manifest(&Value::Null)).unwrap().routes(), []);
    }

    #[test]
    fn invalid_route_is_refused_and_skipped_in_a_store() {
        let good = json!({"path": "/api/v1/listings", "stream": "listings"});
        for (bad, name, part) in [
            (json!({"path": "/v1/x", "stream": "listings"}), "`/v1/x`", "does not begin with"),
            (json!({"path": "/api/v1/x", "stream": "guests"}), "`/api/v1/x`", "no stream `guests`"),
            (good.clone(), "`/api/v1/listings`", "repeated"),
            (json!({"path": "/api/v1/content", "stream": "listings"}), "`/api/v1/content`", "taken"),
            (json!({"path": "/api/v1/x"}), "`/api/v1/x`", "stream"),
            (json!({"path": "/api/v1/x", "stream": "listings", "type": 7}), "`/api/v1/x`", "texts"),
            (json!({"path": "/api/v1/x", "stream": "listings", "type": "a b"}), "`/api/v1/x`", "type"),
            (json!("bookings"), "bookings", "path"),
        ] {
            let text = manifest(&json!([good, bad]));
            let refused = Manifest::parse(&text).unwrap_err().to_string();
            assert!(refused.contains(name) && refused.contains(part), "{refused}");
            assert_eq!(Manifest::cached(&text).unwrap().routes().len(), 1, "{text}");
            let kept = Manifest::from_stored(&text).unwrap();
            assert!(kept.routes().len() == 1 && kept.stream("listings").is_ok(), "{text}");
        }
        assert!(Manifest::parse(&manifest(&json!({"bookings": "reservations"}))).is_err());
    }
}
