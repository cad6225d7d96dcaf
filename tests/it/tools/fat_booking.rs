//! BK99999, a booking larger than any answer, through the built binary: the size of its preview, and the calls that
//! answer ordinary questions for a reader who has only the preview.

use fetchwell_core::fit::count_tokens;
use serde_json::{Map, Value, json};

use crate::support::{HttpServer, Model, ask, fetchwell, get, stdout, text};

/// Tokens of the booking as JSON.
const WHOLE: usize = 12_802;

/// Maximum number of tokens of a preview: two fifths of the booking.
const MAX_PREVIEW: usize = WHOLE * 2 / 5;

/// Minimum number of questions that the preview alone answers.
const MIN_FROM_PREVIEW: usize = 8;

/// A question, with a function that finds its answer in the booking or in a part of it.
struct Question {
    asked: &'static str,
    /// The field to read if the preview does not have the answer.
    field: &'static str,
    /// Returns `None` if the data does not have the answer, or only a part of it.
    answer: fn(&Value) -> Option<String>,
    expect: &'static str,
}

const QUESTIONS: [Question; 12] = [
    Question { asked: "What is its status?", field: "status", answer: status, expect: "confirmed" },
    Question {
        asked: "When is the stay?",
        field: "checkInDate",
        answer: dates,
        expect: "2025-11-01 to 2025-11-05",
    },
    Question { asked: "What does it cost?", field: "totalPrice", answer: total, expect: "1200.00 USD" },
    Question {
        asked: "Which property is it?",
        field: "propertyDetails",
        answer: property,
        expect: "Bright Beach House, Monterey",
    },
    Question {
        asked: "How is the guest reached by phone?",
        field: "guestPhone",
        answer: phone,
        expect: "+1-555-0100",
    },
    Question {
        asked: "Which city is the guest from?",
        field: "guestAddress",
        answer: city,
        expect: "Portland",
    },
    Question {
        asked: "What is the price of a night?",
        field: "priceBreakdown",
        answer: nightly,
        expect: "250.00",
    },
    Question {
        asked: "What do the payments add up to?",
        field: "payments",
        answer: paid,
        expect: "1200.00 in 25",
    },
    Question {
        asked: "What is the last message?",
        field: "messages",
        answer: last_message,
        expect: "MSG-060: key box 4471",
    },
    Question {
        asked: "Which is the best review?",
        field: "reviews",
        answer: best_review,
        expect: "REV-07 by Priya Nair",
    },
    Question {
        asked: "Which days cannot be booked?",
        field: "calendar",
        answer: taken_days,
        expect: "2025-12-24",
    },
    Question {
        asked: "What if it is cancelled?",
        field: "policies",
        answer: cancellation,
        expect: "Free until 14 days before arrival, then half of the price",
    },
];

fn said(data: &Value, pointer: &str) -> Option<String> {
    data.pointer(pointer)?.as_str().map(str::to_owned)
}

fn money(data: &Value, pointer: &str) -> Option<String> {
    data.pointer(pointer)?.as_f64().map(|amount| format!("{amount:.2}"))
}

/// Returns a list that is whole; a placeholder is not a list.
fn list<'a>(data: &'a Value, name: &str) -> Option<&'a Vec<Value>> {
    data.get(name)?.as_array()
}

fn status(data: &Value) -> Option<String> {
    said(data, "/status")
}

fn dates(data: &Value) -> Option<String> {
    Some(format!("{} to {}", said(data, "/checkInDate")?, said(data, "/checkOutDate")?))
}

fn total(data: &Value) -> Option<String> {
    Some(format!("{} {}", money(data, "/totalPrice")?, said(data, "/currency")?))
}

fn property(data: &Value) -> Option<String> {
    said(data, "/propertyDetails/name")
}

fn phone(data: &Value) -> Option<String> {
    said(data, "/guestPhone")
}

fn city(data: &Value) -> Option<String> {
    said(data, "/guestAddress/city")
}

fn nightly(data: &Value) -> Option<String> {
    money(data, "/priceBreakdown/nightlyRate")
}

fn paid(data: &Value) -> Option<String> {
    let payments = list(data, "payments")?;
    let amounts: Option<Vec<f64>> = payments.iter().map(|payment| payment["amount"].as_f64()).collect();
    Some(format!("{:.2} in {}", amounts?.iter().sum::<f64>(), payments.len()))
}

fn last_message(data: &Value) -> Option<String> {
    let message = list(data, "messages")?.iter().max_by_key(|message| message["sentAt"].to_string())?;
    let code = message["text"].as_str()?.split("key box is ").nth(1)?.split('.').next()?;
    Some(format!("{}: key box {code}", message["id"].as_str()?))
}

fn best_review(data: &Value) -> Option<String> {
    let best = list(data, "reviews")?.iter().max_by_key(|review| review["rating"].as_u64())?;
    Some(format!("{} by {}", best["id"].as_str()?, best["author"].as_str()?))
}

fn taken_days(data: &Value) -> Option<String> {
    let days = list(data, "calendar")?.iter().filter(|day| day["available"] == false);
    Some(days.filter_map(|day| day["date"].as_str()).collect::<Vec<_>>().join(", "))
}

fn cancellation(data: &Value) -> Option<String> {
    said(data, "/policies/cancellation")
}

/// The call that answered a question, and its cost.
struct AnswerCost {
    asked: &'static str,
    by: String,
    tokens: usize,
}

/// Prints the calls and their tokens, and returns the number of questions without a further call. `cargo test --
/// --nocapture` shows it.
#[expect(clippy::print_stdout, reason = "prints a table for the person who runs the test")]
fn table(title: &str, preview_tokens: usize, answered: &[AnswerCost]) -> usize {
    let from_preview = answered.iter().filter(|answer| answer.tokens == 0).count();
    println!("{title}: {preview_tokens} tokens of {WHOLE}, {from_preview} of 12 without another call");
    for AnswerCost { asked, by, tokens } in answered {
        println!("| {asked} | {by} | {tokens} |");
    }
    from_preview
}

fn sample() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("hostaway.db");
    stdout(&fetchwell(["demo", "hostaway", "--store", text(&store)]));
    (folder, store)
}

#[track_caller]
fn check_preview_size(preview: usize) {
    assert!(preview <= MAX_PREVIEW, "{preview} tokens of {WHOLE} are less than 60 % saved");
}

#[test]
fn twelve_questions_over_http_need_at_most_one_further_call() {
    let (_folder, store) = sample();
    let server = HttpServer::start(["--store", text(&store)]);
    let target = "/api/v1/bookings/BK99999";
    let answer = ask(&server.address, "GET", target, &["x-context-budget: compare"]);
    let tokens = count_tokens(&answer.text);
    // The headers of the binary agree with the counts of this test.
    let header = |name| answer.header(name).unwrap().parse::<usize>().unwrap();
    assert_eq!(header("x-context-original-tokens"), WHOLE);
    assert_eq!(header("x-context-returned-tokens"), tokens);
    let whole = get(&server.address, "/v1/streams/reservations/records/BK99999").json();
    assert_eq!(count_tokens(&whole["data"].to_string()), WHOLE);
    check_preview_size(tokens);

    let preview = answer.json();
    assert_eq!(preview["meta"]["kind"], "preview");
    let details = &preview["meta"]["detailsAvailable"];
    let answered = QUESTIONS.map(|Question { asked, field, answer, expect }| {
        if let Some(found) = answer(&preview["summary"]) {
            assert_eq!(found, expect, "{asked}");
            return AnswerCost { asked, by: "preview".to_owned(), tokens: 0 };
        }
        // Only information from the preview is used.
        let group = details["groups"].as_array().unwrap().iter().find(|group| group["fields"] == field);
        let group = group.unwrap_or_else(|| panic!("`{field}` is neither shown nor named: {details}"));
        let call = call_of(details, group);
        let part = get(&server.address, &call);
        assert_eq!(part.status, 200, "{call}: {}", part.text);
        assert_eq!(answer(&part.json()).as_deref(), Some(expect), "{asked} {call}");
        AnswerCost { asked, by: format!("GET {call}"), tokens: count_tokens(&part.text) }
    });
    assert!(table("over HTTP", tokens, &answered) >= MIN_FROM_PREVIEW);
}

/// Returns the endpoint with its parameters and those of a group.
fn call_of(details: &Value, group: &Value) -> String {
    let mut parameters = details["parameters"].as_object().unwrap().clone();
    parameters.insert("fields".to_owned(), group["fields"].clone());
    let written = parameters.iter().map(|(name, value)| format!("{name}={}", value.as_str().unwrap()));
    format!("{}?{}", details["endpoint"].as_str().unwrap(), written.collect::<Vec<_>>().join("&"))
}

#[tokio::test]
async fn twelve_questions_over_mcp_need_at_most_one_further_call() {
    let (_folder, store) = sample();
    let model = Model::over_stdio(["--store", text(&store)]).await;
    let asked = json!({"stream": "reservations", "filter": {"id": "BK99999"}});
    let page = model.call("query_records", asked).await;
    let tokens = count_tokens(&page.to_string());
    check_preview_size(tokens);
    let row = &page["records"][0];
    let mut answered = Vec::new();
    for Question { asked, field, answer, expect } in QUESTIONS {
        if let Some(found) = answer(&row["data"]) {
            assert_eq!(found, expect, "{asked}");
            answered.push(AnswerCost { asked, by: "preview".to_owned(), tokens: 0 });
            continue;
        }
        // The placeholder of the field says that there is more.
        assert!(row["data"][field]["items"].is_u64(), "`{field}` is neither shown nor marked: {row}");
        let document = model.call("fetch", json!({"id": row["id"], "fields": [field]})).await;
        assert_eq!(document["metadata"]["next"], Value::Null, "{field} takes more than one call");
        assert_eq!(answer(&part(&document, field)).as_deref(), Some(expect), "{asked}");
        let by = format!("fetch({}, fields: [{field:?}])", row["id"]);
        answered.push(AnswerCost { asked, by, tokens: count_tokens(&document.to_string()) });
    }
    assert!(table("over MCP", tokens, &answered) >= MIN_FROM_PREVIEW);
}

/// Returns the field of a document, which is printed as `name: value`.
fn part(document: &Value, field: &str) -> Value {
    let text = document["text"].as_str().unwrap();
    let value = text.strip_prefix(&format!("{field}: ")).unwrap();
    Value::Object(Map::from_iter([(field.to_owned(), serde_json::from_str(value).unwrap())]))
}
