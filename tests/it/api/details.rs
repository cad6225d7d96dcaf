//! One record under `/api/v1`: whole, or as a preview. Every call that a preview names is made and checked.

use fetchwell_core::fit::count_tokens;
use serde_json::{Value, json};

use crate::support::{Api, call_of, encoded, error_of};

const THRESHOLD: &str = "endpoints:\n  /api/v1/bookings: {threshold: 500}";

/// The seven fields that the contract's own example has in a summary.
const SUMMARY_KEYS: [&str; 7] =
    ["id", "status", "guestName", "checkInDate", "checkOutDate", "totalPrice", "propertyId"];

/// Returns a reservation of the first account unchanged, as `/v1` has it.
fn raw(api: &Api, id: &str) -> Value {
    api.ok(&format!("/v1/streams/reservations/records/{id}?connection_id=cin_seaside"))["data"].clone()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Checks the rules that hold for every preview.
#[track_caller]
fn rule_preview(preview: &Value, whole: &Value) {
    let meta = &preview["meta"];
    assert_eq!(meta["kind"], "preview", "{meta}");
    assert_eq!(meta["totalFields"], keys(whole).len(), "{meta}");
    assert_eq!(json!(keys(&preview["summary"])), meta["projectedFields"], "{meta}");
    assert!(keys(&preview["summary"]).iter().all(|key| whole.get(key).is_some()), "{meta}");
    assert_eq!(meta["budget"]["summaryMode"], true, "{meta}");
    let (shown, all) = (count_tokens(&preview.to_string()), count_tokens(&whole.to_string()));
    assert_eq!(meta["budget"]["estimatedTokens"], all, "{meta}");
    assert!(shown as u64 <= meta["budget"]["threshold"].as_u64().unwrap(), "{shown}: {meta}");
    assert_eq!(preview["summary"]["id"], whole["id"], "{preview}");
    assert!(keys(&preview["summary"]).len() > 1, "{preview}");
}

#[test]
fn a_record_below_the_threshold_is_itself_byte_for_byte() {
    let api = Api::hostaway();
    let whole = raw(&api, "BK20005").to_string();
    assert_eq!(api.get("/api/v1/bookings/BK20005").text, whole);
    assert_eq!(api.get("/api/v1/reservations/BK20005?fields=all").text, whole);
    let full = api.ok("/api/v1/bookings/BK20005?meta=1");
    assert_eq!((full["summary"].to_string(), &full["meta"]["kind"]), (whole, &json!("full")));
    let details = json!({"endpoint": "/api/v1/bookings/BK20005", "parameters": {"fields": "all"},
        "id": "cin_seaside/reservations:BK20005"});
    let meta = &full["meta"];
    assert_eq!((&meta["totalFields"], &meta["detailsAvailable"]), (&json!(15), &details));
    let all = api.ok("/api/v1/bookings/BK20005?meta=1&fields=all");
    assert_eq!((&all["meta"]["kind"], &all["meta"]["detailsAvailable"]), (&json!("full"), &details));
}

#[test]
fn a_booking_over_the_threshold_is_a_preview() {
    let api = Api::protected(&format!("{THRESHOLD}\n  /api/v1/reservations: {{threshold: 8000}}"));
    let whole = raw(&api, "BK12345");
    let preview = api.ok("/api/v1/bookings/BK12345");
    rule_preview(&preview, &whole);
    assert_eq!(preview["meta"]["totalFields"], 15);
    for key in SUMMARY_KEYS {
        assert_eq!(preview["summary"][key], whole[key], "{key}");
    }
    let details = &preview["meta"]["detailsAvailable"];
    assert_eq!(details["endpoint"], "/api/v1/bookings/BK12345");
    assert_eq!(details["parameters"], json!({"fields": "all"}));
    assert_eq!(api.get(&call_of(details)).text, whole.to_string());
    assert_eq!(api.tool("fetch", &json!({"id": details["id"]}))["id"], details["id"]);
    // The other path of the same stream has its own threshold.
    assert_eq!(api.get("/api/v1/reservations/BK12345").text, whole.to_string());
}

#[test]
fn every_group_of_a_large_record_is_fetched_by_its_name() {
    let api = Api::hostaway();
    let whole = raw(&api, "BK99999");
    let answer = api.get("/api/v1/bookings/BK99999");
    let tokens = count_tokens(&answer.text);
    assert!(tokens <= 4_000, "{tokens}");
    let preview = answer.json();
    rule_preview(&preview, &whole);
    assert!(tokens * 10 <= count_tokens(&whole.to_string()) * 4, "{tokens}");
    for key in SUMMARY_KEYS {
        assert_eq!(preview["summary"][key], whole[key], "{key}");
    }
    let details = &preview["meta"]["detailsAvailable"];
    let groups = details["groups"].as_array().unwrap();
    names_all(&preview, &whole);
    for group in groups {
        let field = group["fields"].as_str().unwrap();
        if field == "guestDetails" {
            let part = api.ok("/api/v1/bookings/BK99999?fields=guestDetails");
            assert_eq!(keys(&part), ["id", "guestName", "guestEmail", "guestPhone", "guestAddress"]);
            let bytes: usize = keys(&part)[1..].iter().map(|key| whole[key].to_string().len()).sum();
            assert_eq!((&group["bytes"], &group["names"]), (&json!(bytes), &json!(["guestAddress"])));
            continue;
        }
        assert_eq!(group["bytes"], whole[field].to_string().len(), "{field}");
        assert_eq!(
            group.get("items").and_then(Value::as_u64),
            whole[field].as_array().map(|list| list.len() as u64)
        );
        let part = api.get(&format!("/api/v1/bookings/BK99999?fields={}", encoded(field)));
        assert!(count_tokens(&part.text) <= 12_000);
        assert_eq!(keys(&part.json()), ["id", field], "{field}");
        assert_eq!(whole_of(&api, &part.json()[field]), whole[field], "{field}");
    }
}

/// Returns the fields that the groups of a preview stand for, in the order of the record.
fn named(preview: &Value, whole: &Value) -> Vec<String> {
    let groups = preview["meta"]["detailsAvailable"]["groups"].as_array().cloned().unwrap_or_default();
    let mut names: Vec<String> = Vec::new();
    for group in &groups {
        match group["names"].as_array() {
            Some(own) => names.extend(own.iter().map(|name| name.as_str().unwrap().to_owned())),
            None => names.extend(group["fields"].as_str().unwrap().split(',').map(str::to_owned)),
        }
    }
    let order = keys(whole);
    names.sort_by_key(|name| order.iter().position(|key| key == name));
    names
}

/// Checks that every field that is missing or not whole is named once.
#[track_caller]
fn names_all(preview: &Value, whole: &Value) {
    let left: Vec<&str> =
        keys(whole).into_iter().filter(|key| preview["summary"].get(*key) != whole.get(*key)).collect();
    assert!(!left.is_empty(), "{preview}");
    assert_eq!(named(preview, whole), left, "{preview}");
    assert_eq!(preview["meta"]["detailsAvailable"].get("moreGroups"), None, "{preview}");
}

#[test]
fn small_thresholds_leave_a_preview_that_names_every_field() {
    for threshold in [300, 500] {
        let api = Api::protected(&THRESHOLD.replace("500", &threshold.to_string()));
        for id in ["BK12345", "BK99999"] {
            let (whole, answer) = (raw(&api, id), api.get(&format!("/api/v1/bookings/{id}")));
            let preview = answer.json();
            rule_preview(&preview, &whole);
            names_all(&preview, &whole);
            let groups = preview["meta"]["detailsAvailable"]["groups"].as_array().unwrap();
            for group in groups {
                let fields = group["fields"].as_str().unwrap();
                let part = api.ok(&format!("/api/v1/bookings/{id}?fields={}", encoded(fields)));
                let names = if fields == "guestDetails" { "guestAddress" } else { fields };
                assert!(names.split(',').all(|name| part.get(name).is_some()), "{fields}: {part}");
            }
        }
    }
}

#[test]
fn a_threshold_below_any_preview_gives_the_smallest_preview() {
    for threshold in [1, 20, 100] {
        let api = Api::protected(&THRESHOLD.replace("500", &threshold.to_string()));
        for target in ["BK12345", "BK12345?meta=1", "BK99999", "BK99999?meta=1"] {
            let answer = api.get(&format!("/api/v1/bookings/{target}"));
            let tokens = count_tokens(&answer.text);
            assert!(tokens <= 200, "{threshold} {target}: {tokens} tokens: {}", answer.text);
            let preview = answer.json();
            let id = target.split('?').next().unwrap();
            assert_eq!(preview["summary"], json!({"id": id}), "{threshold} {target}");
            let meta = &preview["meta"];
            assert_eq!((&meta["kind"], &meta["budget"]["threshold"]), (&json!("preview"), &json!(threshold)));
            let more = meta["totalFields"].as_u64().unwrap() - 1;
            assert_eq!(meta["detailsAvailable"]["moreGroups"], more, "{meta}");
        }
        assert_eq!(api.ok("/api/v1/bookings/BK12345?fields=all")["id"], "BK12345");
    }
}

#[test]
fn groups_of_the_contract_are_accepted_as_fields() {
    let api = Api::hostaway();
    let whole = raw(&api, "BK12345");
    let of = |fields: &str| api.ok(&format!("/api/v1/bookings/BK12345?fields={fields}"));
    let parts = of("guestDetails,priceBreakdown,propertyDetails,amenities,policies");
    assert_eq!(
        keys(&parts),
        [
            "id",
            "guestName",
            "guestEmail",
            "guestPhone",
            "guestAddress",
            "priceBreakdown",
            "propertyDetails",
            "amenities",
            "policies"
        ]
    );
    assert!(keys(&parts).iter().all(|key| parts[key] == whole[key]));
    let page = api.ok("/api/v1/bookings?limit=3&fields=guestDetails");
    for item in page["items"].as_array().unwrap() {
        assert_eq!(keys(item), ["id", "guestName", "guestEmail", "guestPhone", "guestAddress"]);
    }
    let next = api.ok(&format!("/api/v1/bookings?cursor={}", page["nextCursor"].as_str().unwrap()));
    assert_eq!(keys(&next["items"][0]), keys(&page["items"][0]));
    // A group has no names inside it; the error lists its fields.
    for path in
        ["bookings/BK12345?fields=guestDetails.nope", "bookings?limit=3&fields=id,guestDetails.guestName"]
    {
        let refused = api.refused(&format!("/api/v1/{path}"), 400, "UNKNOWN_FIELD").to_string();
        assert!(refused.contains("guestDetails.") && refused.contains("guestEmail"), "{path} {refused}");
    }
    let listing = api.ok("/api/v1/listings/PR642?fields=policies,amenities");
    assert!(listing["houseRules"].is_string() && listing["amenities"].is_array(), "{listing}");

    // The manifest of another connector declares its own groups.
    let folder = tempfile::tempdir().unwrap();
    let manifest = json!({"connector_key": "acme", "streams": [{"name": "deals", "primary_key": ["id"],
        "groups": [{"name": "money", "fields": ["price", "terms.tax"]}]}]});
    let (store, file) = (folder.path().join("acme.db"), folder.path().join("deals.ndjson"));
    let declared = folder.path().join("manifest.json");
    std::fs::write(&declared, manifest.to_string()).unwrap();
    let record = json!({"stream": "deals", "key": "d1",
        "data": {"id": "d1", "price": 5, "terms": {"tax": 7, "note": "n"}, "text": "t"}});
    std::fs::write(&file, record.to_string()).unwrap();
    crate::support::stdout(&crate::support::fetchwell([
        "import",
        "records",
        crate::support::text(&file),
        "--store",
        crate::support::text(&store),
        "--connection",
        "cin_acme",
        "--manifest",
        crate::support::text(&declared),
    ]));
    let api = Api::of(&store, "");
    assert_eq!(api.ok("/api/v1/deals/d1?fields=money"), json!({"id": "d1", "price": 5, "terms": {"tax": 7}}));
    let unknown = api.refused("/api/v1/deals/d1?fields=terms.nope", 400, "UNKNOWN_FIELD");
    assert!(unknown["detail"].as_str().unwrap().contains("`terms.nope`"), "{unknown}");
}

/// Returns a value; a placeholder is read to its end.
#[track_caller]
fn whole_of(api: &Api, shown: &Value) -> Value {
    let Some(read) = shown.get("read").and_then(Value::as_str) else { return shown.clone() };
    let mut chunk = api.ok(read);
    let mut text = chunk["content"].as_str().unwrap().to_owned();
    while let Some(next) = chunk["nextCursor"].as_str() {
        chunk = api.ok(&format!("{}?cursor={next}", read.split('?').next().unwrap()));
        text.push_str(chunk["content"].as_str().unwrap());
    }
    if shown.get("chars").is_some() { Value::from(text) } else { serde_json::from_str(&text).unwrap() }
}

#[test]
fn placeholders_of_a_record_over_the_cap_lead_to_every_value() {
    let api = Api::hostaway();
    let whole = raw(&api, "BK99999");
    assert!(count_tokens(&whole.to_string()) > 12_000);
    let answer = api.get("/api/v1/bookings/BK99999?fields=all");
    assert!(count_tokens(&answer.text) <= 12_000);
    let shown = answer.json();
    assert_eq!(keys(&shown), keys(&whole));
    let marks = shown.as_object().unwrap().values().filter(|value| value.get("read").is_some()).count();
    assert!(marks > 0, "nothing is marked");
    for key in keys(&whole) {
        assert_eq!(whole_of(&api, &shown[key]), whole[key], "{key}");
    }
    // The envelope says that the record is not whole.
    let enveloped = api.get("/api/v1/bookings/BK99999?fields=all&meta=1");
    assert!(count_tokens(&enveloped.text) <= 12_000);
    let enveloped = enveloped.json();
    assert_eq!(enveloped["meta"]["kind"], "preview", "{}", enveloped["meta"]);
    assert_eq!(json!(keys(&enveloped["summary"])), enveloped["meta"]["projectedFields"]);
    for key in keys(&whole) {
        assert_eq!(whole_of(&api, &enveloped["summary"][key]), whole[key], "{key}");
    }
}

/// Follows every link of previews. Returns the number of groups read.
#[track_caller]
fn links_resolve(api: &Api, collection: &str, count: usize) -> usize {
    let (mut previews, mut groups_read, mut cursor) = (0, 0, String::new());
    while previews < count {
        let page = api.ok(&format!("/api/v1/{collection}?limit=200&fields=id{cursor}"));
        for item in page["items"].as_array().unwrap() {
            let id = item["id"].as_str().unwrap();
            // Three ids exist in both accounts.
            let connection = if id.starts_with("BK0000") { "?connection_id=cin_alpine" } else { "" };
            let target = format!("/api/v1/{collection}/{id}{connection}");
            let preview = api.ok(&target);
            if preview.get("summary").is_none() {
                continue;
            }
            previews += 1;
            let details = &preview["meta"]["detailsAvailable"];
            let whole = api.ok(&call_of(details));
            assert_eq!(whole["id"], id);
            // One record is over the hard cap even with all fields: its values are placeholders.
            let whole = if id == "BK99999" { raw(api, id) } else { whole };
            rule_preview(&preview, &whole);
            let groups = details["groups"].as_array().cloned().unwrap_or_default();
            if let Some(group) = groups.get(previews % groups.len().max(1)) {
                let fields = group["fields"].as_str().unwrap();
                let mark = if connection.is_empty() { '?' } else { '&' };
                let part = api.ok(&format!("{target}{mark}fields={fields}"));
                let names = group["names"].as_array().map_or_else(
                    || fields.split(',').map(str::to_owned).collect::<Vec<_>>(),
                    |names| names.iter().map(|name| name.as_str().unwrap().to_owned()).collect(),
                );
                for field in names {
                    assert_eq!(whole_of(api, &part[&field]), whole[&field], "{id} {field}");
                }
                groups_read += 1;
            }
        }
        cursor = format!(
            "&cursor={}",
            page["nextCursor"].as_str().unwrap_or_else(|| panic!("{previews} previews"))
        );
    }
    groups_read
}

#[test]
fn every_link_of_hundreds_of_previews_resolves() {
    let api = Api::protected(
        "endpoints:\n  /api/v1/bookings: {threshold: 220}\n  /api/v1/listings: {threshold: 450}",
    );
    links_resolve(&api, "bookings", 300);
    assert!(links_resolve(&api, "listings", 150) >= 150);
}

#[test]
fn a_record_of_two_connections_is_ambiguous() {
    let api = Api::protected(&THRESHOLD.replace("500", "210"));
    let body = api.refused("/api/v1/bookings/BK00001", 409, "AMBIGUOUS_CONNECTION");
    let offered: Vec<&str> = body["available_connections"]
        .as_array()
        .unwrap()
        .iter()
        .map(|connection| connection["connection_id"].as_str().unwrap())
        .collect();
    assert_eq!(offered, ["cin_seaside", "cin_alpine"]);
    for connection in offered {
        let preview = api.ok(&format!("/api/v1/bookings/BK00001?connection_id={connection}"));
        let details = &preview["meta"]["detailsAvailable"];
        assert_eq!(details["parameters"], json!({"fields": "all", "connection_id": connection}));
        assert!(details["id"].as_str().unwrap().contains(connection), "{details}");
        let whole = api.ok(&call_of(details));
        rule_preview(&preview, &whole);
        let own = format!("/v1/streams/reservations/records/BK00001?connection_id={connection}");
        assert_eq!(whole, api.ok(&own)["data"]);
    }
    api.refused("/api/v1/bookings/BK00001?connection_id=cin_none", 404, "CONNECTION_NOT_FOUND");
}

#[test]
fn fields_of_a_record_are_the_selected_ones_and_the_id() {
    let api = Api::hostaway();
    let whole = raw(&api, "BK99999");
    let of = |fields: &str| api.ok(&format!("/api/v1/bookings/BK99999?fields={fields}"));
    // The contract's own remedy for a record that is too large.
    let two = of("guestAddress,priceBreakdown");
    assert_eq!(
        two,
        json!({"id": "BK99999", "guestAddress": whole["guestAddress"], "priceBreakdown": whole["priceBreakdown"]})
    );
    assert_eq!(of("guestAddress.city"), json!({"id": "BK99999", "guestAddress": {"city": "Portland"}}));
    let amounts: Vec<&Value> =
        whole["payments"].as_array().unwrap().iter().map(|payment| &payment["amount"]).collect();
    let picked = of("payments%5B%5D.amount");
    assert_eq!(keys(&picked), ["id", "payments"]);
    assert_eq!(
        json!(amounts.iter().map(|amount| json!({"amount": amount})).collect::<Vec<_>>()),
        picked["payments"]
    );
    assert_eq!(of("payments%5B-1%5D.amount")["payments"], json!([{"amount": amounts.last().unwrap()}]));
    assert_eq!(of("status,id"), json!({"id": "BK99999", "status": "confirmed"}));
    let unknown = api.refused("/api/v1/bookings/BK99999?fields=guestStuff,status", 400, "UNKNOWN_FIELD");
    let detail = unknown["detail"].as_str().unwrap();
    assert!(detail.contains("`guestStuff`") && detail.contains("guestDetails"), "{unknown}");
    for path in ["bookings/BK99999", "bookings"] {
        for (field, inside) in [
            ("guestAddress.nope", "guestAddress.city"),
            ("payments%5B%5D.nope", "payments[].amount"),
            ("status.nope", "status"),
        ] {
            if path == "bookings" && field.starts_with("payments") {
                continue;
            }
            let inner = api.refused(&format!("/api/v1/{path}?fields={field},status"), 400, "UNKNOWN_FIELD");
            let named = field.replace("%5B%5D", "[]");
            let detail = inner["detail"].as_str().unwrap();
            assert!(detail.contains(&format!("`{named}`")) && detail.contains(inside), "{inner}");
        }
    }
    // A field that the schema declares is no error for a record without it.
    assert_eq!(api.ok("/api/v1/bookings/BK12345?fields=payments%5B%5D.note"), json!({"id": "BK12345"}));
    assert_eq!((detail.matches("guestAddress").count(), &unknown["param"]), (1, &json!("fields")));
    // A field that the stream declares is no error for a record without it.
    assert_eq!(api.ok("/api/v1/bookings/BK12345?fields=messages"), json!({"id": "BK12345"}));
    api.refused("/api/v1/bookings/BK99999?fields=a..b", 400, "INVALID_ARGUMENT");
    api.refused("/api/v1/bookings/BK99999?limit=5", 400, "INVALID_ARGUMENT");
    api.refused("/api/v1/bookings/BK99999?meta=maybe", 400, "INVALID_ARGUMENT");
}

#[test]
fn errors_are_small_and_list_alternatives() {
    let api = Api::hostaway();
    let nowhere = api.refused("/api/v1/nowhere", 404, "NOT_FOUND");
    assert!(nowhere["detail"].as_str().unwrap().contains("/api/v1/listings"), "{nowhere}");
    api.refused("/api/v1/bookings/none", 404, "NOT_FOUND");
    api.refused("/api/v1/bookings/BK12345/more", 404, "NOT_FOUND");
    api.refused("/api/v1/?limit=5", 400, "INVALID_ARGUMENT");
    let long = "%F0%9F%98%80%22".repeat(700);
    api.refused(&format!("/api/v1/{long}"), 404, "NOT_FOUND");
    api.refused(&format!("/api/v1/bookings/{long}"), 404, "NOT_FOUND");
    for name in ["fields", "order_by", "limit", "cursor", "connection_id", "meta", "status%5Bgte%5D%5Bx", ""]
    {
        for path in ["bookings", "bookings/BK12345", "content/reservations%3ABK99999"] {
            let answer = api.get(&format!("/api/v1/{path}?{name}={long}"));
            let code = answer.json()["code"].as_str().unwrap().to_owned();
            assert!((400..500).contains(&answer.status), "{path} {name}: {answer:?}");
            error_of(&answer, &code);
        }
    }
    for method in ["POST", "PUT", "PATCH", "DELETE", "HEAD"] {
        let answer = api.ask(method, "/api/v1/listings", &[]);
        assert_eq!((answer.status, answer.header("allow")), (405, Some("GET")), "{method}");
    }
    error_of(&api.ask("POST", "/api/v1/listings", &[]), "METHOD_NOT_ALLOWED");
    let foreign = api.ask("GET", "/api/v1/listings", &["host: evil.example", "x-request-id: mine"]);
    assert_eq!((foreign.status, error_of(&foreign, "FORBIDDEN")["request_id"].as_str()), (403, Some("mine")));

    // Two hundred fields with long names, in ten connections.
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("wide.db");
    let fields: serde_json::Map<String, Value> =
        (0..200).map(|number| (format!("field \"{}\" {number}", "n".repeat(60)), json!(number))).collect();
    let record = json!({"stream": "wide", "key": "w1", "data": fields}).to_string();
    for number in 0..10 {
        let connection = format!("cin_{}_{number}", "c".repeat(40));
        crate::support::import_records(&store, &connection, &record);
    }
    let api = Api::of(&store, "");
    let body = api.refused("/api/v1/wide/w1", 409, "AMBIGUOUS_CONNECTION");
    assert!(body["available_connections"].as_array().unwrap().len() >= 3, "{body}");
    api.refused("/api/v1/wide?fields=nope", 400, "UNKNOWN_FIELD");
    api.refused("/api/v1/wide?nope=1", 400, "INVALID_FILTER");
}
