//! The examples of the contract that `/api/v1` implements, run as printed: two programs in Python and two flows.

use std::process::Command;

use fetchwell_core::fit::count_tokens;
use serde_json::{Value, json};

use crate::support::Api;

/// Returns the result of an example. Fails with a message if Python is missing.
#[track_caller]
fn example(api: &Api, arguments: &[&str]) -> Value {
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/python/contract_client.py");
    let mut command = Command::new("python3");
    // Python leaves no files beside the script, and uses no proxy for this machine.
    command.args(["-B", client]).arg(api.server.url("")).args(arguments).env("no_proxy", "*");
    let output = command.output().unwrap_or_else(|error| panic!("these examples need python3: {error}"));
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
}

/// Returns the response to a request of the contract, by curl if it is installed.
#[track_caller]
fn curl(api: &Api, target: &str) -> Value {
    match Command::new("curl")
        .args(["--silent", "--noproxy", "*", "--fail", &api.server.url(target)])
        .output()
    {
        Err(_no_curl) => api.ok(target),
        Ok(output) => {
            assert!(output.status.success(), "{target}: {output:?}");
            serde_json::from_slice(&output.stdout).unwrap()
        }
    }
}

#[test]
fn all_listings_are_fetched() {
    let api = Api::hostaway();
    let listings = example(&api, &["fetch_all_listings"]);
    let ids: std::collections::HashSet<&str> =
        listings.as_array().unwrap().iter().map(|listing| listing["id"].as_str().unwrap()).collect();
    assert_eq!((listings.as_array().unwrap().len(), ids.len()), (500, 500));
}

#[test]
fn a_summarized_booking_is_fetched_whole() {
    let api = Api::protected("endpoints:\n  /api/v1/bookings: {threshold: 500}");
    let raw = |id: &str| raw_of(&api, id);
    assert_eq!(api.ok("/api/v1/bookings/BK12345")["meta"]["kind"], "preview");
    assert_eq!(example(&api, &["get_booking_details", "BK12345"]), raw("BK12345"));
    let fat = example(&api, &["get_booking_details", "BK99999"]);
    assert_eq!(fat.as_object().unwrap().len(), raw("BK99999").as_object().unwrap().len());
    assert!(fat.get("meta").is_none(), "{fat}");
    // With the thresholds of the demo, too; a booking below them is returned whole at once.
    let api = Api::hostaway();
    assert_eq!(example(&api, &["get_booking_details", "BK12345"]), raw_of(&api, "BK12345"));
    assert_eq!(example(&api, &["get_booking_details", "BK20005"]), raw_of(&api, "BK20005"));
    assert!(api.ok("/api/v1/bookings/BK20005").get("meta").is_none());
}

/// Returns a booking as it was imported.
fn raw_of(api: &Api, id: &str) -> Value {
    api.ok(&format!("/v1/streams/reservations/records/{id}?connection_id=cin_seaside"))["data"].clone()
}

/// Follows pages as the contract shows it.
#[test]
fn pages_are_followed_as_documented() {
    let api = Api::hostaway();
    let mut page = curl(&api, "/api/v1/listings?limit=50");
    for number in 1..=10 {
        assert_eq!(page.as_object().unwrap().keys().collect::<Vec<_>>(), ["items", "nextCursor", "meta"]);
        assert_eq!(page["items"].as_array().unwrap().len(), 50);
        let meta = &page["meta"];
        assert_eq!((&meta["totalCount"], &meta["pageSize"]), (&json!(500), &json!(50)));
        assert_eq!(meta["hasMore"], number < 10);
        let Some(next) = page["nextCursor"].as_str() else { break };
        page = curl(&api, &format!("/api/v1/listings?cursor={next}"));
    }
    assert_eq!(page["nextCursor"], Value::Null);
}

/// Follows a summary to the whole record as the contract shows it, with the demo's own thresholds.
#[test]
fn a_summary_is_followed_as_documented() {
    let api = Api::hostaway();
    let preview = curl(&api, "/api/v1/bookings/BK12345");
    let (shown, whole) =
        (count_tokens(&preview.to_string()), count_tokens(&raw_of(&api, "BK12345").to_string()));
    assert!(whole > 4_000 && shown * 5 <= whole * 2, "{shown} of {whole} tokens");
    let meta = &preview["meta"];
    assert_eq!((&meta["kind"], &meta["totalFields"]), (&json!("preview"), &json!(15)), "{meta}");
    assert_eq!(meta["budget"]["estimatedTokens"], whole, "{meta}");
    assert_eq!(preview.as_object().unwrap().keys().collect::<Vec<_>>(), ["summary", "meta"]);
    for (key, value) in [
        ("id", json!("BK12345")),
        ("status", json!("confirmed")),
        ("guestName", json!("John Doe")),
        ("checkInDate", json!("2025-11-01")),
        ("checkOutDate", json!("2025-11-05")),
        ("totalPrice", json!(1200.0)),
        ("propertyId", json!("PR789")),
    ] {
        assert_eq!(preview["summary"][key], value, "{key}");
    }
    let details = json!({"endpoint": "/api/v1/bookings/BK12345", "parameters": {"fields": "all"}});
    for (key, value) in details.as_object().unwrap() {
        assert_eq!(preview["meta"]["detailsAvailable"][key], *value, "{key}");
    }
    let whole = curl(&api, "/api/v1/bookings/BK12345?fields=all");
    assert_eq!(whole, raw_of(&api, "BK12345"));
}
