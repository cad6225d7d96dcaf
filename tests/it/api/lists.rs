//! Lists of `/api/v1`: the rules that hold for every page, walks over every stream, and the sizes of pages.

use std::collections::HashSet;

use fetchwell_core::fit::count_tokens;
use serde_json::{Value, json};

use crate::support::{Api, demo_store};

/// The collections of the sample, with their numbers of records.
const COLLECTIONS: [(&str, u64); 6] = [
    ("listings", 500),
    ("bookings", 5_000),
    ("financial-transactions", 2_000),
    ("conversations", 500),
    ("reviews", 800),
    ("analytics", 28),
];

fn items(page: &Value) -> &Vec<Value> {
    page["items"].as_array().unwrap()
}

fn ids(page: &Value) -> Vec<String> {
    items(page).iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

/// Checks the rules that hold for every page.
#[track_caller]
fn rule_page(page: &Value, limit: usize, total: u64) {
    let meta = &page["meta"];
    assert_eq!(items(page).len() as u64, meta["pageSize"], "{meta}");
    assert!(items(page).len() <= limit, "{meta}");
    assert!(!page["nextCursor"].is_null() || page.as_object().unwrap().contains_key("nextCursor"));
    assert_eq!(page["nextCursor"].is_null(), meta["hasMore"] == false, "{meta}");
    assert!(!items(page).is_empty() || page["nextCursor"].is_null(), "an empty page has a next one");
    assert_eq!(meta["totalCount"], total, "{meta}");
    assert!(meta.get("totalCountAccuracy").is_none(), "{meta}");
    let budget = &meta["budget"];
    let over = budget["estimatedTokens"].as_u64().unwrap() > budget["threshold"].as_u64().unwrap();
    assert_eq!(budget["summaryMode"], over, "{budget}");
    let used = budget["budgetUsed"].as_f64().unwrap();
    let ratio = budget["budgetRatio"].as_f64().unwrap();
    assert!((used - ratio.min(1.0)).abs() < 1e-9, "{budget}");
}

/// Returns the ids of all pages, and the size of each page.
#[track_caller]
fn walk(api: &Api, path: &str, limit: usize, total: u64) -> (Vec<String>, Vec<usize>) {
    let (mut seen, mut sizes) = (Vec::new(), Vec::new());
    let mut page = api.ok(&format!("{path}?limit={limit}"));
    loop {
        rule_page(&page, limit, total);
        assert!(count_tokens(&page.to_string()) <= 12_000, "{path}");
        seen.extend(ids(&page));
        sizes.push(items(&page).len());
        let Some(next) = page["nextCursor"].as_str() else { break };
        assert!(next.len() <= 96, "{next}");
        page = api.ok(&format!("{path}?cursor={next}"));
    }
    (seen, sizes)
}

#[test]
fn rule_pages_of_every_stream_have_every_record_once() {
    let api = Api::hostaway();
    for (collection, total) in COLLECTIONS {
        let (seen, _) = walk(&api, &format!("/api/v1/{collection}"), 200, total);
        assert_eq!(seen.len() as u64, total, "{collection}");
        // Three reservations have an id that the other account has as well.
        let shared = if collection == "bookings" { 3 } else { 0 };
        assert_eq!(seen.iter().collect::<HashSet<_>>().len() as u64, total - shared, "{collection}");
    }
}

#[test]
fn a_stream_without_a_route_is_found_by_its_name() {
    let (_folder, store) = demo_store();
    let api = Api::of(&store, "");
    let index = api.ok("/api/v1");
    let streams = api.ok("/v1/streams")["data"].as_array().unwrap().clone();
    for row in index["routes"].as_array().unwrap() {
        let counts = streams.iter().filter(|stream| stream["name"] == row["stream"]);
        let total: u64 = counts.map(|stream| stream["record_count"].as_u64().unwrap()).sum();
        let path = row["path"].as_str().unwrap();
        assert_eq!(path, format!("/api/v1/{}", row["stream"].as_str().unwrap()));
        for limit in [1, 2, 200] {
            let (seen, _) = walk(&api, path, limit, total);
            assert_eq!(seen.len() as u64, total, "{path}");
        }
    }
    assert_eq!(index["routes"].as_array().unwrap().len(), 3);
}

#[test]
fn five_hundred_listings_are_ten_pages_of_fifty() {
    let api = Api::hostaway();
    let (seen, sizes) = walk(&api, "/api/v1/listings", 50, 500);
    assert_eq!(sizes, [50; 10]);
    assert_eq!(seen.iter().collect::<HashSet<_>>().len(), 500);
    let (seen, sizes) = walk(&api, "/api/v1/listings", 100, 500);
    assert_eq!((sizes, seen.iter().collect::<HashSet<_>>().len()), (vec![100; 5], 500));
}

#[test]
fn empty_and_one_page_lists_have_no_next_cursor() {
    let api = Api::hostaway();
    let none = api.ok("/api/v1/bookings?status=nothing-of-the-kind");
    rule_page(&none, 50, 0);
    assert_eq!((&none["items"], &none["nextCursor"]), (&json!([]), &Value::Null));
    let one = api.ok("/api/v1/analytics?limit=28");
    rule_page(&one, 28, 28);
    assert_eq!((items(&one).len(), &one["nextCursor"]), (28, &Value::Null));
    let all_but_one = api.ok("/api/v1/analytics?limit=27");
    rule_page(&all_but_one, 27, 28);
    let rest = api.ok(&format!("/api/v1/analytics?cursor={}", all_but_one["nextCursor"].as_str().unwrap()));
    assert_eq!((items(&rest).len(), &rest["nextCursor"]), (1, &Value::Null));
}

#[test]
fn two_concurrent_walks_give_the_same_records() {
    let api = Api::hostaway();
    let path = "/api/v1/listings";
    let walks: Vec<Vec<String>> = std::thread::scope(|scope| {
        let walks: Vec<_> =
            [50, 20, 50].map(|limit| scope.spawn(move || limit)).into_iter().map(|it| it.join()).collect();
        let api = &api;
        let walks: Vec<_> = walks
            .into_iter()
            .map(|limit| scope.spawn(move || walk(api, path, limit.unwrap(), 500).0))
            .collect();
        walks.into_iter().map(|walk| walk.join().unwrap()).collect()
    });
    assert!(walks[0].len() == 500 && walks[0] == walks[1] && walks[1] == walks[2]);
    // A cursor can be used any number of times, and gives the same page.
    let first = api.ok(&format!("{path}?limit=5"));
    let next = format!("{path}?cursor={}", first["nextCursor"].as_str().unwrap());
    let pages: Vec<Vec<String>> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..4).map(|_| scope.spawn(|| ids(&api.ok(&next)))).collect();
        asked.into_iter().map(|page| page.join().unwrap()).collect()
    });
    assert!(pages.iter().all(|page| *page == pages[0] && page.len() == 5), "{pages:?}");
}

#[test]
fn pages_without_a_limit_fit_the_threshold_and_others_the_cap() {
    let api = Api::hostaway();
    for (collection, total) in COLLECTIONS {
        let path = format!("/api/v1/{collection}");
        for (query, most) in
            [("", 4_000), ("?limit=50", 12_000), ("?limit=200", 12_000), ("?limit=200&fields=all", 12_000)]
        {
            let answer = api.get(&format!("{path}{query}"));
            assert_eq!(answer.status, 200, "{}", answer.text);
            let tokens = count_tokens(&answer.text);
            assert!(tokens <= most, "{path}{query}: {tokens}");
            let page = answer.json();
            rule_page(&page, if query.is_empty() { 50 } else { 200 }, total);
            if total > 200 {
                assert_eq!(page["meta"]["hasMore"], true, "{path}{query}");
            }
        }
        assert_eq!(items(&api.ok(&path)).len() as u64, total.min(50), "{path}");
    }
    assert_eq!(items(&api.ok("/api/v1/listings?limit=200")).len(), 200);
    // Whole records are larger, so fewer of them fit.
    let whole = api.ok("/api/v1/listings?limit=200&fields=all");
    assert!((1..200).contains(&items(&whole).len()) && whole["meta"].get("summarized").is_none());
    let id = whole["items"][0]["id"].as_str().unwrap();
    assert_eq!(whole["items"][0], api.ok(&format!("/api/v1/listings/{id}?fields=all")));
}

#[test]
fn a_limit_has_bounds() {
    let api = Api::hostaway();
    let over = api.refused("/api/v1/listings?limit=201", 400, "INVALID_ARGUMENT");
    assert_eq!(over["error"], "Limit exceeds maximum");
    assert!(over["detail"].as_str().unwrap().contains("Limit exceeds maximum of 200"), "{over}");
    for limit in ["0", "-1", "abc", "1.5", "99999999999999999999999"] {
        let body = api.refused(&format!("/api/v1/listings?limit={limit}"), 400, "INVALID_ARGUMENT");
        assert_eq!(body["param"], "limit", "{limit}");
    }
    let api = Api::protected("default_page_size: 7\nmax_page_size: 9");
    assert_eq!(items(&api.ok("/api/v1/listings")).len(), 7);
    assert_eq!(items(&api.ok("/api/v1/listings?limit=9")).len(), 9);
    let over = api.refused("/api/v1/listings?limit=10", 400, "INVALID_ARGUMENT");
    assert!(over["detail"].as_str().unwrap().contains("maximum of 9"), "{over}");
}

#[test]
fn fields_of_a_list_are_the_selected_ones_and_the_id() {
    let api = Api::hostaway();
    let names = |query: &str| -> Vec<Vec<String>> {
        let page = api.ok(&format!("/api/v1/bookings?limit=3&{query}"));
        let keys = |item: &Value| item.as_object().unwrap().keys().cloned().collect();
        items(&page).iter().map(keys).collect()
    };
    assert_eq!(names("fields=status,guestName"), vec![vec!["id", "status", "guestName"]; 3]);
    assert_eq!(names("fields=guestAddress.city"), vec![vec!["id", "guestAddress"]; 3]);
    assert_eq!(names("fields=status,id"), vec![vec!["status", "id"]; 3]);
    let page = api.ok("/api/v1/bookings?limit=3&fields=guestAddress.city");
    assert!(
        items(&page).iter().all(|item| item["guestAddress"].as_object().unwrap().keys().eq(["city"])),
        "{page}"
    );
    // A declared field may be missing in all records of a page.
    assert_eq!(names("fields=messages"), vec![vec!["id"]; 3]);
    let unknown = api.refused("/api/v1/bookings?fields=status,nope", 400, "UNKNOWN_FIELD");
    let detail = unknown["detail"].as_str().unwrap();
    assert!(detail.contains("`nope`") && detail.contains("guestName"), "{unknown}");
    assert_eq!((detail.matches("guestName").count(), &unknown["param"]), (1, &json!("fields")), "{unknown}");
}

#[test]
fn a_summary_is_at_most_a_fifth_and_keeps_nulls() {
    let api = Api::hostaway();
    let bytes = |page: &Value| page["items"].to_string().len();
    let mut whole = 0;
    let mut summaries = 0;
    let summary = api.ok("/api/v1/listings?limit=20&summary=true");
    for item in items(&summary) {
        whole += api
            .ok(&format!("/api/v1/listings/{}?fields=all", item["id"].as_str().unwrap()))
            .to_string()
            .len();
        summaries += item.to_string().len();
    }
    assert!(summaries * 5 <= whole, "{summaries} of {whole} bytes");
    assert!(summary["meta"]["note"].as_str().is_some_and(|note| note.contains("by its id")), "{summary}");
    assert_eq!(summary["meta"]["summarized"], true);
    assert!(bytes(&summary) < 20 * 500, "{}", bytes(&summary));
    // `summary` has no effect on a single record.
    let plain = api.get("/api/v1/bookings/BK12345").text;
    assert_eq!(api.get("/api/v1/bookings/BK12345?summary=true").text, plain);

    let record = json!({"id": "r1", "title": "A title", "closed": null, "body": "long ".repeat(200)});
    let (_folder, api) = Api::records(&[("notes", "r1", record)], "");
    let page = api.ok("/api/v1/notes?summary=true");
    assert_eq!(page["items"][0]["closed"], Value::Null, "{page}");
    assert!(page["items"][0].as_object().unwrap().contains_key("closed"), "{page}");
    assert!(page["items"].to_string().len() < 300, "{page}");
}

/// Questions about a list that its summaries answer, as the fields of the answers.
const SUMMARIES: [(&str, &str, &[&str]); 3] = [
    (
        "bookings",
        "reservations",
        &["id", "status", "guestName", "checkInDate", "checkOutDate", "totalPrice", "propertyId"],
    ),
    ("conversations", "conversations", &["id", "subject", "guestName", "status", "unreadCount"]),
    ("reviews", "reviews", &["id", "title", "rating", "guestName", "listingId"]),
];

/// Bytes and tokens, of the items and of the whole response, against the complete records in the same envelope.
#[test]
fn summaries_save_four_fifths_and_answer_questions() {
    let api = Api::hostaway();
    for (collection, stream, fields) in SUMMARIES {
        for limit in [20, 50] {
            let page = api.ok(&format!("/api/v1/{collection}?limit={limit}&summary=true"));
            assert_eq!(items(&page).len(), limit, "{collection}");
            let accounts = page["meta"]["connections"].as_object().unwrap();
            let mut whole = page.clone();
            for (place, item) in items(&page).iter().enumerate() {
                assert!(item.as_object().unwrap().keys().eq(fields), "{collection}: {item}");
                let is_of = |places: &Value| places.as_array().unwrap().contains(&json!(place));
                let account = accounts.iter().find(|(_, places)| is_of(places)).unwrap().0;
                let id = item["id"].as_str().unwrap();
                let target = format!("/v1/streams/{stream}/records/{id}?connection_id={account}");
                let record = api.ok(&target)["data"].clone();
                assert!(fields.iter().all(|field| item[field] == record[field]), "{item}");
                whole["items"][place] = record;
            }
            for (what, all, shown) in [
                ("items", whole["items"].to_string(), page["items"].to_string()),
                ("response", whole.to_string(), page.to_string()),
            ] {
                for (unit, all, shown) in
                    [("bytes", all.len(), shown.len()), ("tokens", count_tokens(&all), count_tokens(&shown))]
                {
                    let saved = 100 - shown * 100 / all;
                    let least = if (what, unit) == ("response", "tokens") { 75 } else { 80 };
                    assert!(
                        (least..=90).contains(&saved),
                        "{collection} {limit} {what} {unit}: {shown} of {all}"
                    );
                }
            }
            // The estimate is that of the complete items.
            let (estimated, counted) = (
                page["meta"]["budget"]["estimatedTokens"].as_u64().unwrap(),
                count_tokens(&whole["items"].to_string()) as u64,
            );
            assert!((counted..=counted * 11 / 10).contains(&estimated), "{estimated}: {counted}");
        }
    }
}

#[test]
fn a_list_is_in_the_requested_order() {
    let api = Api::hostaway();
    let dates = |query: &str| -> Vec<String> {
        let page = api.ok(&format!("/api/v1/bookings?limit=30&fields=checkInDate{query}"));
        items(&page).iter().map(|item| item["checkInDate"].as_str().unwrap().to_owned()).collect()
    };
    let (newest, oldest) = (dates(""), dates("&order_by=created_asc"));
    assert!(newest.is_sorted_by(|one, other| one >= other) && oldest.is_sorted() && newest[0] > oldest[0]);
    assert_eq!(dates("&order_by=created_desc"), newest);
    assert_eq!(dates("&order_by=checkInDate_desc"), newest);
    assert_eq!(dates("&order_by=checkInDate_asc"), oldest);
    let page = api.ok("/api/v1/bookings?limit=30&fields=totalPrice&order_by=totalPrice_desc");
    let prices: Vec<f64> = items(&page).iter().map(|item| item["totalPrice"].as_f64().unwrap()).collect();
    assert!(prices.is_sorted_by(|one, other| one >= other), "{prices:?}");
    for (order, code) in [
        ("created", "INVALID_ARGUMENT"),
        ("created_up", "INVALID_ARGUMENT"),
        ("guestAddress_desc", "INVALID_SORT"),
    ] {
        let body = api.refused(&format!("/api/v1/bookings?order_by={order}"), 400, code);
        assert_eq!(body["param"], "order_by", "{body}");
        assert!(!body["detail"].as_str().unwrap().contains("`sort`"), "{body}");
    }
    let body = api.refused("/api/v1/bookings?order_by=guestAddress_desc", 400, "INVALID_SORT");
    assert!(body["detail"].as_str().unwrap().contains("checkInDate"), "{body}");
}

#[test]
fn other_parameters_of_the_query_are_filters() {
    let api = Api::hostaway();
    for (query, holds) in [("status=confirmed", "confirmed"), ("filter%5Bstatus%5D=cancelled", "cancelled")] {
        let page = api.ok(&format!("/api/v1/bookings?limit=50&fields=status&{query}"));
        assert!(
            items(&page).iter().all(|item| item["status"] == holds) && !items(&page).is_empty(),
            "{page}"
        );
    }
    let page = api.ok("/api/v1/bookings?limit=50&fields=checkInDate&checkInDate%5Bgte%5D=2025-11-01&checkInDate%5Blt%5D=2025-11-02");
    assert!(!items(&page).is_empty() && items(&page).iter().all(|item| item["checkInDate"] == "2025-11-01"));
    let account = api.ok("/api/v1/bookings?connection_id=cin_alpine&limit=1");
    assert_eq!(account["meta"]["totalCount"], 2_000);
    api.refused("/api/v1/bookings?connection_id=cin_none", 404, "CONNECTION_NOT_FOUND");
    for wrong in ["nope=1", "checkInDate%5Bnear%5D=1", "a%5Bb=1", "guestAddress=x"] {
        api.refused(&format!("/api/v1/bookings?{wrong}"), 400, "INVALID_FILTER");
    }
    api.refused("/api/v1/bookings?limit=1&limit=2", 400, "INVALID_ARGUMENT");
}

/// Each item of a page can be fetched by the keys that the page prints, also if its `id` field is no key.
#[test]
fn every_item_can_be_fetched_by_the_key_of_its_page() {
    let records =
        [("mis", "key9", json!({"id": 9, "body": "x".repeat(200)})), ("mis", "8", json!({"id": 8}))];
    let (_folder, api) = Api::records(&records, "");
    let page = api.ok("/api/v1/mis");
    let keys: Vec<&str> = page["meta"]["keys"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for (item, key) in items(&page).iter().zip(keys) {
        assert_eq!(api.ok(&format!("/api/v1/mis/{key}"))["id"], item["id"]);
    }
    let api = Api::hostaway();
    let page = api.ok("/api/v1/bookings?limit=200&summary=true");
    assert!(page["meta"].get("keys").is_none());
    let connections = page["meta"]["connections"].as_object().unwrap();
    assert_eq!(
        connections.values().map(|places| places.as_array().unwrap().len()).sum::<usize>(),
        items(&page).len()
    );
    for (connection, places) in connections {
        for place in places.as_array().unwrap().iter().take(3) {
            let item = &items(&page)[usize::try_from(place.as_u64().unwrap()).unwrap()];
            let path =
                format!("/api/v1/bookings/{}?connection_id={connection}", item["id"].as_str().unwrap());
            assert_eq!(api.ok(&path)["guestName"], item["guestName"], "{path}");
        }
    }
    let own = api.ok("/api/v1/bookings?connection_id=cin_seaside&summary=true&limit=2");
    assert!(own["meta"].get("connections").is_none());
    assert_eq!(own["meta"]["detailsAvailable"]["parameters"]["connection_id"], "cin_seaside");
}

/// A record that does not fit although all fields were asked for has placeholders for its longest values.
#[test]
fn a_record_too_large_for_its_page_has_placeholders() {
    let records = [("big", "r1", json!({"id": "r1", "body": "word ".repeat(40_000)}))];
    let (_folder, api) = Api::records(&records, "");
    let page = api.ok("/api/v1/big?fields=all");
    assert_eq!(page["meta"]["summarized"], true);
    let read = items(&page)[0]["body"]["read"].as_str().unwrap();
    assert_eq!(api.ok(read)["content"].as_str().unwrap().get(..10), Some("word word "));
}
