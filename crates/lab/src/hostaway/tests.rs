//! Tests of the properties that other tests rely on: the number of records, the content of the two known bookings,
//! and the same bytes on every run.

use std::collections::{BTreeMap, HashMap, HashSet};

use fetchwell_core::fit::count_tokens;
use fetchwell_source::Manifest;
use jiff::civil::Date;
use sha2::{Digest, Sha256};

use super::*;

fn all() -> Vec<(&'static str, &'static str, Value)> {
    let of =
        |account: &'static Account| records_of(account).map(|(stream, record)| (account.id, stream, record));
    ACCOUNTS.iter().flat_map(of).collect()
}

fn reservation(id: &str) -> Value {
    let is_it = |(account, stream, record): &(&str, &str, Value)| {
        *account == "cin_seaside" && *stream == "reservations" && record["id"] == id
    };
    let found: Vec<_> = all().into_iter().filter(is_it).collect();
    assert_eq!(found.len(), 1, "{id}");
    found.into_iter().next().unwrap().2
}

fn fields(value: &Value) -> usize {
    value.as_object().unwrap().len()
}

#[test]
fn the_sample_has_the_documented_number_of_records() {
    let all = all();
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut owners: HashMap<(&str, String), HashSet<&str>> = HashMap::new();
    for (account, stream, record) in &all {
        *counts.entry((account, stream)).or_default() += 1;
        let id = record["id"].as_str().unwrap().to_owned();
        let new = owners.entry((stream, id)).or_default().insert(account);
        assert!(new, "{stream} {} is there twice in {account}", record["id"]);
    }
    let of = |stream: &str| ["cin_seaside", "cin_alpine"].map(|account| counts[&(account, stream)]);
    assert_eq!(of("listings"), [300, 200]);
    assert_eq!(of("reservations"), [3_000, 2_000]);
    assert_eq!(of("financial_transactions"), [1_200, 800]);
    assert_eq!(of("conversations"), [300, 200]);
    assert_eq!(of("reviews"), [480, 320]);
    assert_eq!(of("analytics"), [14, 14]);
    let mut shared: Vec<String> = owners
        .into_iter()
        .filter(|(_, accounts)| accounts.len() > 1)
        .map(|((stream, id), _)| format!("{stream} {id}"))
        .collect();
    shared.sort();
    assert_eq!(shared, ["reservations BK00001", "reservations BK00002", "reservations BK00003"]);
}

#[test]
fn every_record_matches_the_manifest() {
    let manifest: Value = serde_json::from_str(MANIFEST).unwrap();
    let validators: HashMap<&str, jsonschema::Validator> = manifest["streams"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stream| {
            let mut schema = stream["schema"].clone();
            schema["additionalProperties"] = false.into();
            (stream["name"].as_str().unwrap(), jsonschema::draft202012::new(&schema).unwrap())
        })
        .collect();
    let (mut sizes, mut ids) =
        (BTreeMap::<&str, (usize, usize)>::new(), HashMap::<_, HashSet<String>>::new());
    let all = all();
    for (account, stream, record) in &all {
        if let Err(error) = validators[stream].validate(record) {
            panic!("{record}: {error}");
        }
        let size = sizes.entry(stream).or_default();
        *size = (size.0 + 1, size.1 + record.to_string().len());
        ids.entry((*account, *stream)).or_default().insert(record["id"].as_str().unwrap().to_owned());
    }
    for (account, stream, record) in &all {
        for (field, other) in
            [("propertyId", "listings"), ("listingId", "listings"), ("reservationId", "reservations")]
        {
            if let Some(id) = record[field].as_str() {
                assert!(ids[&(*account, other)].contains(id), "{stream} {} names no {id}", record["id"]);
            }
        }
    }
    let average = |stream: &str| sizes[stream].1 / sizes[stream].0;
    assert!((1_500..2_500).contains(&average("listings")), "{}", average("listings"));
    assert!((700..1_100).contains(&average("reservations")), "{}", average("reservations"));
}

#[test]
fn the_manifest_lists_its_routes() {
    let manifest = Manifest::parse(MANIFEST).unwrap();
    let shown: Vec<String> = manifest
        .routes()
        .iter()
        .map(|route| {
            format!("{} {} {}", route.path, route.stream, route.record_type.as_deref().unwrap_or_default())
        })
        .collect();
    assert_eq!(
        shown,
        [
            "/api/v1/listings listings Listing",
            "/api/v1/bookings reservations Booking",
            "/api/v1/reservations reservations Booking",
            "/api/v1/financial-transactions financial_transactions FinancialTransaction",
            "/api/v1/financials financial_transactions FinancialTransaction",
            "/api/v1/conversations conversations Conversation",
            "/api/v1/reviews reviews Review",
            "/api/v1/analytics analytics AnalyticsReport",
        ]
    );
}

#[test]
fn the_known_booking_matches_the_documentation() {
    let booking = reservation("BK12345");
    let groups = ["guestAddress", "priceBreakdown", "propertyDetails", "policies"];
    assert_eq!((fields(&booking), groups.map(|group| fields(&booking[group]))), (15, [10, 15, 20, 8]));
    assert_eq!(booking["amenities"].as_array().unwrap().len(), 30);
    for (field, expect) in [
        ("status", "confirmed"),
        ("guestName", "John Doe"),
        ("guestEmail", "john@example.com"),
        ("guestPhone", "+1-555-0100"),
        ("checkInDate", "2025-11-01"),
        ("checkOutDate", "2025-11-05"),
        ("currency", "USD"),
        ("propertyId", "PR789"),
    ] {
        assert_eq!(booking[field], expect);
    }
    assert_eq!(booking["totalPrice"], 1200.0);
    assert_eq!(booking["guestAddress"]["city"], "Portland");
    let price = booking["priceBreakdown"].as_object().unwrap();
    assert_eq!((&price["nightlyRate"], &price["total"]), (&250.0.into(), &booking["totalPrice"]));
    let parts = price
        .iter()
        .filter(|(name, _)| !["nightlyRate", "nights", "subtotal", "total"].contains(&name.as_str()));
    assert!((parts.map(|(_, part)| part.as_f64().unwrap()).sum::<f64>() - 1200.0).abs() < 1e-9);
    let listing =
        all().into_iter().find(|(_, stream, record)| *stream == "listings" && record["id"] == "PR789");
    let (account, _, listing) = listing.unwrap();
    assert_eq!((account, &listing["name"]), ("cin_seaside", &booking["propertyDetails"]["name"]));
    assert!((60..=75).contains(&fields(&listing)), "{}", fields(&listing));
    let (json, tokens) = (booking.to_string(), count_tokens(&booking.to_string()));
    assert!((4_200..8_000).contains(&tokens), "{tokens} tokens, {} bytes", json.len());
}

#[test]
fn the_large_booking_has_one_answer_to_each_question() {
    let booking = reservation("BK99999");
    assert_eq!(fields(&booking), 19);
    let list = |field: &str| booking[field].as_array().unwrap().clone();
    let (messages, payments) = (list("messages"), list("payments"));
    let (reviews, calendar) = (list("reviews"), list("calendar"));
    assert_eq!([messages.len(), payments.len(), reviews.len(), calendar.len()], [60, 25, 10, 60]);
    for message in &messages {
        assert!((200..=500).contains(&message["text"].as_str().unwrap().chars().count()), "{message}");
    }
    assert!(messages.is_sorted_by_key(|message| message["sentAt"].as_str().unwrap()));
    assert_eq!(messages[59]["text"], bookings::fat_booking::LAST_MESSAGE);
    assert!(bookings::fat_booking::LAST_MESSAGE.contains("4471"));
    let paid: f64 = payments.iter().map(|payment| payment["amount"].as_f64().unwrap()).sum();
    assert!((paid - booking["totalPrice"].as_f64().unwrap()).abs() < 1e-9, "{paid}");
    let best: Vec<&Value> = reviews.iter().filter(|review| review["rating"] == 5).collect();
    assert_eq!((best.len(), &best[0]["id"], &best[0]["author"]), (1, &"REV-07".into(), &"Priya Nair".into()));
    let taken: Vec<&Value> = calendar.iter().filter(|day| day["available"] == false).collect();
    assert_eq!((taken.len(), &taken[0]["date"]), (1, &"2025-12-24".into()));
    let days: Vec<Date> = calendar.iter().map(|day| day["date"].as_str().unwrap().parse().unwrap()).collect();
    assert_eq!(
        (days[0].to_string(), days[59].to_string()),
        ("2025-11-06".to_owned(), "2026-01-04".to_owned())
    );
    let json = booking.to_string();
    let tokens = count_tokens(&json);
    assert!(
        tokens > 12_000 && (40_000..60_000).contains(&json.len()),
        "{tokens} tokens, {} bytes",
        json.len()
    );
}

#[test]
fn the_sample_is_the_same_bytes_on_every_run() {
    let mut digest = Sha256::new();
    for (account, stream, record) in all() {
        digest.update(format!("{account} {stream} {record}\n"));
    }
    let hex = digest.finalize().iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    assert_eq!(hex, "9b75beaa52c00ff6207c93eac3beaaa44d8a00a49a34cb43c5a622b78f59b28c");
}
