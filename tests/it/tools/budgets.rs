//! Sizes of tool lists, instructions, answers and errors; `snapshots/` has the bytes of each.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_core::fit::{Limits, Protection, budget, count_tokens};
use fetchwell_core::handle::{Handle, InvalidHandle};
use fetchwell_core::record::RecordData;
use fetchwell_lab::recorded::{
    RecordedSource, fat_records_reply, fat_search_reply, long_record_reply, wide_schema_reply,
};
use fetchwell_mcp::{instructions, tool_list_json};
use fetchwell_source::contract::StoreError;
use fetchwell_source::federation::Federation;
use fetchwell_source::{ConnectionChoice, ProtocolFault, Refusal, SourceError};
use fetchwell_state::StateError;
use fetchwell_state::cursor::CursorFault;
use fetchwell_tools::{
    DEFAULT_CALL_DEADLINE, ErrorContext, Overrun, Profile, SourceHints, ToolError, Toolbox,
};
use serde_json::{Value, json};

use crate::support::fixture;

/// Compares JSON with its snapshot, which starts with its size. Replaces the cursor, which is random and of fixed
/// length.
#[track_caller]
fn check(name: &str, json: &str) {
    let mut value: Value = serde_json::from_str(json).unwrap();
    if let Some(cursor) = value.get_mut("next_cursor") {
        assert_eq!(cursor.as_str().unwrap().len(), 90);
        *cursor = json!("fw1_<86 characters>");
    }
    show(name, json.len(), &serde_json::to_string_pretty(&value).unwrap());
}

#[track_caller]
fn show(name: &str, bytes: usize, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let file = name.replace(", ", "-").replace([' ', ','], "-");
    settings.bind(|| insta::assert_snapshot!(file, format!("{bytes} bytes\n\n{text}")));
}

fn toolbox(search: String, record: String) -> Toolbox {
    let source = RecordedSource {
        name: "fixture".parse().unwrap(),
        search,
        record,
        records: fat_records_reply(),
        schema: wide_schema_reply(24, 30),
    };
    Toolbox::new(Arc::new(source), DEFAULT_CALL_DEADLINE).unwrap()
}

async fn answer(toolbox: &Toolbox, profile: Profile, tool: &str, arguments: Value) -> String {
    let arguments: RecordData = serde_json::from_value(arguments).unwrap();
    toolbox.call(profile, tool, arguments).await.unwrap().unwrap().json().to_owned()
}

#[test]
fn tool_lists_and_instructions_fit_their_budgets() {
    let standard = tool_list_json(Profile::Standard);
    check("tools list, standard", standard);
    assert!(standard.len() <= budget::TOOLS_LIST);
    let openai = tool_list_json(Profile::OpenAi);
    check("tools list, openai", openai);
    assert!(openai.len() <= budget::TOOLS_LIST_OPENAI);
    let docs = tool_list_json(Profile::Docs);
    check("tools list, docs", docs);
    assert!(docs.len() <= budget::TOOLS_LIST_DOCS);
    for (name, profile, calls) in [
        ("instructions", Profile::Standard, ["search(query)", "fetch(id)"]),
        ("instructions, openai", Profile::OpenAi, ["search(query)", "fetch(id)"]),
        ("instructions, docs", Profile::Docs, ["search_docs(query)", "get_document(path)"]),
    ] {
        let instructions = instructions(profile);
        show(name, instructions.len(), instructions);
        assert!(instructions.len() <= budget::INSTRUCTIONS);
        // The part of the instructions that every client reads ends with a sentence and says how to search and fetch.
        let head: String = instructions.chars().take(budget::INSTRUCTIONS_HEAD_CHARS).collect();
        assert!(calls.iter().all(|call| head.contains(call)), "{head}");
        assert!(head.contains("never instructions"), "{head}");
    }
}

#[tokio::test]
async fn large_hits_fit_the_search_budgets() {
    let toolbox = toolbox(fat_search_reply(), long_record_reply("short"));
    for (name, profile, arguments, most, min_hits) in [
        ("fat search, no limit", Profile::Standard, json!({"query": "x"}), 1_800, 12),
        ("fat search, limit 20", Profile::Standard, json!({"query": "x", "limit": 20}), 5_120, 20),
        ("fat search, limit 100", Profile::Standard, json!({"query": "x", "limit": 100}), 16_384, 100),
        ("fat search, openai", Profile::OpenAi, json!({"query": "x"}), 8_192, 25),
    ] {
        let json = answer(&toolbox, profile, "search", arguments).await;
        assert!(json.len() <= most, "{name}: {} bytes", json.len());
        let value: Value = serde_json::from_str(&json).unwrap();
        let results = value["results"].as_array().unwrap();
        assert!(results.len() >= min_hits, "{name}: {} hits", results.len());
        // Every handle is complete, and every hit has an excerpt.
        for (number, hit) in results.iter().enumerate() {
            assert_eq!(hit["id"], format!("conn_1/mail:m{number}"));
            assert!(hit["text"].as_str().unwrap().len() >= 40);
        }
        check(name, &json);
    }
}

#[tokio::test]
async fn a_search_under_a_low_cap_shows_fewer_hits_and_goes_on() {
    let hit = |number: usize| {
        json!({
            "id": format!("m{number}"),
            "stream": "mail",
            "title": format!("Minutes of the meeting no. {number}"),
            "snippet": { "text": "Ann said that the budget of the café is £3.14; Bob agreed. ".repeat(4) },
            "connection_id": "conn_1",
        })
    };
    let hits: Vec<Value> = (0..40).map(hit).collect();
    let reply = json!({ "results": hits, "has_more": false }).to_string();
    for (limit, cap) in [(None, 300), (Some(100), 300), (None, 450), (Some(100), 450)] {
        let global = Limits { threshold: cap, hard_cap: cap, ..Limits::default() };
        let protection = Arc::new(Protection { global, ..Protection::default() });
        let toolbox = toolbox(reply.clone(), String::new()).protected_by(protection);
        let (mut arguments, mut seen) = (json!({"query": "x"}), Vec::new());
        if let Some(limit) = limit {
            arguments["limit"] = json!(limit);
        }
        loop {
            let page = answer(&toolbox, Profile::Standard, "search", arguments).await;
            assert!(count_tokens(&page) <= cap && page.len() <= 4 * cap, "{page}");
            let page: Value = serde_json::from_str(&page).unwrap();
            let results = page["results"].as_array().unwrap();
            assert!(!results.is_empty() && page.get("omitted").is_none(), "{page}");
            seen.extend(results.iter().map(|result| result["id"].as_str().unwrap().to_owned()));
            let Some(cursor) = page.get("next_cursor") else { break };
            arguments = json!({"cursor": cursor});
        }
        let all: Vec<String> = (0..40).map(|number| format!("conn_1/mail:m{number}")).collect();
        assert_eq!(seen, all, "limit {limit:?}, cap {cap}");
    }
}

#[tokio::test]
async fn large_records_and_wide_schemas_fit_their_budgets() {
    let toolbox = toolbox(fat_search_reply(), long_record_reply("short"));
    for (name, arguments, bytes, tokens, records) in [
        ("fat records, no limit", json!({"stream": "mail"}), budget::RECORDS, budget::RECORDS_TOKENS, 25),
        ("fat records, limit 100", json!({"stream": "mail", "limit": 100}), 48_000, 12_000, 100),
    ] {
        let json = answer(&toolbox, Profile::Standard, "query_records", arguments).await;
        assert!(json.len() <= bytes, "{name}: {} bytes", json.len());
        assert!(count_tokens(&json) <= tokens, "{name}: {} tokens", count_tokens(&json));
        let value: Value = serde_json::from_str(&json).unwrap();
        let shown = value["records"].as_array().unwrap();
        assert_eq!(shown.len(), records, "{name}");
        for (number, record) in shown.iter().enumerate() {
            assert_eq!(record["id"], format!("conn_1/mail:m{number}"));
            assert_eq!(record["data"]["subject"], format!("Subject {number}"));
            assert_eq!(record["data"]["text"]["chars"], 1_500);
        }
        check(name, &json);
    }
    let overview = answer(&toolbox, Profile::Standard, "schema", json!({})).await;
    assert!(overview.len() <= 3_000, "{}", overview.len());
    check("schema of 24 streams", &overview);
    let stream = answer(&toolbox, Profile::Standard, "schema", json!({"stream": "stream_number_7"})).await;
    assert!(stream.len() <= 3_000, "{}", stream.len());
    check("schema of a stream", &stream);
    let source = RecordedSource {
        name: "fixture".parse().unwrap(),
        search: String::new(),
        record: String::new(),
        records: String::new(),
        schema: wide_schema_reply(80, 30),
    };
    let wide = Toolbox::new(Arc::new(source), DEFAULT_CALL_DEADLINE).unwrap();
    let overview = answer(&wide, Profile::Standard, "schema", json!({})).await;
    assert!(overview.len() <= 8_000, "{}", overview.len());
}

#[tokio::test]
async fn recorded_replies_match_their_snapshots() {
    for name in [
        "search-lexical",
        "search-lexical-page2",
        "search-compound",
        "search-conn",
        "search-zero",
        "search-semantic",
        "search-hybrid",
    ] {
        let reply: Value = serde_json::from_str(&fixture(&format!("record-server/{name}.json"))).unwrap();
        let toolbox = toolbox(reply["response"].to_string(), String::new());
        check(name, &answer(&toolbox, Profile::Standard, "search", json!({"query": "x"})).await);
    }
    for (name, id) in [
        ("record-connection", "cin_work/messages:m2"),
        ("record-compound", "cin_work/daily_stats/%5B%22user_123%22%2C%222026-04-01%22%5D"),
        ("record-slash", "cin_work/labels/Projects%2F2026%2FQ2"),
        ("record-space", "cin_work/labels/my%20label"),
    ] {
        let reply: Value = serde_json::from_str(&fixture(&format!("record-server/{name}.json"))).unwrap();
        let toolbox = toolbox(String::new(), reply["response"].to_string());
        check(name, &answer(&toolbox, Profile::Standard, "fetch", json!({"id": id})).await);
    }
}

#[tokio::test]
async fn parts_of_a_long_record_fit_the_budget() {
    let text = "Please pay the invoice number 2; the amount due is 20 EUR.\n".repeat(848);
    let toolbox = toolbox(String::new(), long_record_reply(&text));
    let json = answer(&toolbox, Profile::Standard, "fetch", json!({"id": "conn_1/mail:m1"})).await;
    assert!(json.len() <= budget::DOCUMENT);
    let mut value: Value = serde_json::from_str(&json).unwrap();
    let chars = value["text"].as_str().unwrap().chars().count();
    value["text"] = json!(format!("<{chars} characters>"));
    show("fetch of 50,000 characters", json.len(), &serde_json::to_string_pretty(&value).unwrap());
}

/// Returns an error of a federation.
fn of_several(error: SourceError) -> ToolError {
    ToolError::from_source(&Federation::new("sources".parse().unwrap(), Vec::new()).into(), error)
}

/// Returns the hints of a tool.
fn hints(profile: Profile, tool: &str) -> SourceHints {
    profile.tools().iter().find(|spec| spec.name == tool).unwrap().hints
}

/// Returns every error, built with its largest possible values or with typical ones.
#[expect(clippy::too_many_lines, reason = "it is a list, one entry per error")]
fn every_error() -> Vec<(&'static str, ToolError)> {
    let refused = |id: &str| -> InvalidHandle { id.parse::<Handle>().unwrap_err() };
    let copy = |id: &str| ToolError::InvalidHandle { input: id.to_owned(), refused: refused(id) };
    let with_context = |error, context| ToolError::Source {
        source_name: "work".parse().ok(),
        error,
        context: Box::new(context),
    };
    let source = |error| with_context(error, ErrorContext::default());
    let of_search_in =
        |error, profile| with_context(error, ErrorContext { hints: hints(profile, "search"), record: None });
    let of_search = |error| of_search_in(error, Profile::Standard);
    let of_fetch = |error, id: &str, profile| {
        let record = Some(id.parse::<Handle>().unwrap().address().clone());
        with_context(error, ErrorContext { hints: hints(profile, "fetch"), record })
    };
    let choices = |count: usize, id: &str| -> Vec<ConnectionChoice> {
        let choice = |number| ConnectionChoice {
            connection_id: format!("{id}{number}").parse().unwrap(),
            display_name: Some("Work mail ".repeat(20)),
        };
        (0..count).map(choice).collect()
    };
    let refusal = |status, code: &str, message: &str, param: Option<&str>, choices| {
        source(SourceError::Refused(Box::new(Refusal {
            fault: None,
            advice: None,
            status,
            code: code.to_owned(),
            message: message.to_owned(),
            hint: None,
            param: param.map(str::to_owned),
            choices,
        })))
    };
    let path = || "/home/ann/notes.db".into();
    let argument = |tool, param: &str, problem: &str| ToolError::InvalidArgument {
        tool,
        param: param.to_owned(),
        problem: problem.to_owned(),
        hint: "Call search with {\"query\": \"words to find\"}.".to_owned(),
    };
    vec![
        ("invalid_handle, no separator", copy("orders")),
        ("invalid_handle, path traversal", copy("cin/../orders:o1")),
        ("invalid_handle, another spelling", copy("cin/files:notes/a.md")),
        ("invalid_handle, a link", copy("https://example.com/page")),
        ("invalid_handle, 100,000 bytes", copy(&"\u{1}".repeat(100_000))),
        ("invalid_handle, no such part", ToolError::PartNotFound { parts: 3, last: "c/s/r/p2".to_owned() }),
        (
            "invalid_handle, a handle too long to repeat",
            ToolError::PartNotFound { parts: 3, last: format!("c/s/{}/p2", "k".repeat(1_985)) },
        ),
        (
            "invalid_handle, another spelling too long to repeat",
            copy(&format!("c/s:{}/x", "k".repeat(2_030))),
        ),
        ("invalid_handle, no part of that number", ToolError::PartOutOfRange { first: "c/s:r".to_owned() }),
        ("invalid_argument", argument("search", "limit", "it is not between 1 and 100")),
        (
            "conflicting_connection_id",
            ToolError::ConflictingConnection {
                argument: "cin_home".parse().unwrap(),
                embedded: "cin_work".parse().unwrap(),
            },
        ),
        (
            "conflicting_connection_id, in a query",
            ToolError::ConflictingQuery {
                one: "cin_home".parse().unwrap(),
                other: "cin_work".parse().unwrap(),
            },
        ),
        ("invalid_cursor, malformed", ToolError::InvalidSearchCursor(CursorFault::Malformed)),
        ("invalid_cursor, tampered", ToolError::InvalidSearchCursor(CursorFault::Tampered)),
        ("invalid_cursor, expired", ToolError::InvalidSearchCursor(CursorFault::Expired)),
        ("invalid_cursor, mismatched", ToolError::InvalidSearchCursor(CursorFault::Mismatched)),
        ("invalid_cursor, changed", source(SourceError::InvalidCursor)),
        ("invalid_cursor, other sources", ToolError::InvalidListCursor(CursorFault::Changed)),
        ("invalid_cursor, another record", ToolError::InvalidTextCursor(CursorFault::RecordChanged)),
        (
            "state_unavailable",
            ToolError::StateUnavailable(StateError::Locked {
                path: "/home/ann/.local/state/fetchwell/cursors.db".into(),
                what: "cursor store",
            }),
        ),
        (
            "response_too_large",
            ToolError::ResponseTooLarge {
                overrun: Overrun::Bytes { bytes: 300_000, budget: 48_000 },
                hint: "Fetch `c/s:r` without `fields`: it comes in parts.".to_owned(),
            },
        ),
        (
            "response_too_large, tokens",
            ToolError::ResponseTooLarge {
                overrun: Overrun::Tokens { tokens: 323, budget: 300 },
                hint: "Ask for less.".to_owned(),
            },
        ),
        (
            "response_too_large, not made",
            ToolError::ResponseTooLarge {
                overrun: Overrun::Unmeasured { budget: 300 },
                hint: "Name `fields`, or fetch one record of a search result.".to_owned(),
            },
        ),
        ("source_timeout", source(SourceError::Timeout { after: Duration::from_secs(5) })),
        ("source_timeout, whole call", ToolError::Timeout { seconds: 20 }),
        (
            "source_unavailable",
            source(SourceError::Unreachable {
                problem: "the server cannot be reached (Connection refused)".to_owned(),
            }),
        ),
        (
            "source_rate_limited",
            source(SourceError::RateLimited { retry_after: Some(Duration::from_secs(120)) }),
        ),
        ("source_rate_limited, unknown pause", source(SourceError::RateLimited { retry_after: None })),
        (
            "source_unavailable, left alone",
            source(SourceError::CircuitOpen { pause: Duration::from_secs(12) }),
        ),
        (
            "source_unavailable, nobody answered",
            of_several(SourceError::AllFailed {
                what: "no source answered the search".to_owned(),
                failed: vec![
                    SourceError::Timeout { after: Duration::from_secs(5) }
                        .unavailable("home".parse().unwrap()),
                    SourceError::Reauthorize {
                        problem: "expired".to_owned(),
                        remedy: "run `pdpp connect https://records.example.com`".to_owned(),
                    }
                    .unavailable("work".parse().unwrap()),
                ],
            }),
        ),
        (
            "source_unavailable, 60 sources",
            of_several(SourceError::AllFailed {
                what: "no source answered the search".to_owned(),
                failed: (0..60)
                    .map(|number| {
                        let name = format!("source-{number}-{}", "s".repeat(60)).parse().unwrap();
                        SourceError::CircuitOpen { pause: Duration::from_secs(12) }.unavailable(name)
                    })
                    .collect(),
            }),
        ),
        (
            "ambiguous_connection, two sources",
            of_several(SourceError::AmbiguousSource {
                what: "connection `cin_work`".to_owned(),
                sources: vec!["home".parse().unwrap(), "work".parse().unwrap()],
                choices: choices(2, "cin_work@"),
            }),
        ),
        (
            "source_timeout, one of several",
            of_several(SourceError::FromSource {
                source_name: "home".parse().unwrap(),
                error: Box::new(SourceError::Timeout { after: Duration::from_secs(5) }),
            }),
        ),
        (
            "source_protocol, HTML",
            source(SourceError::Protocol(ProtocolFault::NotJson {
                status: 200,
                content_type: "text/html".to_owned(),
            })),
        ),
        (
            "source_protocol, broken",
            source(SourceError::Protocol(ProtocolFault::BrokenJson {
                problem: "it ends after 10 bytes".to_owned(),
            })),
        ),
        (
            "source_protocol, shape",
            source(SourceError::Protocol(ProtocolFault::WrongShape { missing: "list of hits" })),
        ),
        (
            "source_protocol, too large",
            source(SourceError::Protocol(ProtocolFault::TooLarge { limit: 16_777_216 })),
        ),
        (
            "source_protocol, redirect",
            source(SourceError::Protocol(ProtocolFault::ForeignRedirect {
                to: "https://elsewhere.example".to_owned(),
            })),
        ),
        (
            "source_protocol, redirects without end",
            source(SourceError::Protocol(ProtocolFault::EndlessRedirect)),
        ),
        (
            "reauthorize",
            source(SourceError::Reauthorize {
                problem: "the credential for https://records.example.com expired at 2026-04-01T00:00:00Z"
                    .to_owned(),
                remedy: "run `pdpp connect https://records.example.com`".to_owned(),
            }),
        ),
        (
            "ambiguous_connection",
            source(SourceError::AmbiguousConnection {
                what: "record `m1` of stream `messages`".to_owned(),
                choices: choices(2, "cin_"),
            }),
        ),
        (
            "ambiguous_connection, 40 choices",
            refusal(
                409,
                "ambiguous_connection",
                "Record 'm1' is present under more than one connection.",
                None,
                choices(40, "cin_"),
            ),
        ),
        (
            "ambiguous_connection, long ids",
            source(SourceError::AmbiguousConnection {
                what: "record `m1`".to_owned(),
                choices: choices(9, &"c".repeat(700)),
            }),
        ),
        (
            "ambiguous_connection, of a record",
            of_fetch(
                SourceError::AmbiguousConnection {
                    what: "record `m1` of stream `messages`".to_owned(),
                    choices: choices(2, "cin_"),
                },
                "messages:m1",
                Profile::OpenAi,
            ),
        ),
        (
            "ambiguous_connection, of a search",
            of_search(SourceError::AmbiguousConnection {
                what: "that".to_owned(),
                choices: choices(1, "cin_"),
            }),
        ),
        (
            "ambiguous_connection, of a search that cannot choose",
            of_search_in(
                SourceError::AmbiguousConnection { what: "that".to_owned(), choices: choices(1, "cin_") },
                Profile::OpenAi,
            ),
        ),
        (
            "connection_not_found, in the id",
            of_fetch(
                SourceError::ConnectionNotFound { asked: "nope".to_owned(), choices: choices(1, "cin_") },
                "nope/messages:m1",
                Profile::Standard,
            ),
        ),
        (
            "not_found, of a search",
            of_search(SourceError::NotFound {
                what: "there is no stream `male`; there are: mail".to_owned(),
            }),
        ),
        ("a server's defect", refusal(500, "internal", "Something broke", None, Vec::new())),
        (
            "connection_not_found",
            source(SourceError::ConnectionNotFound { asked: "nope".to_owned(), choices: choices(1, "cin_") }),
        ),
        (
            "not_found",
            source(SourceError::NotFound { what: "there is no record `m9` in stream `messages`".to_owned() }),
        ),
        (
            "unknown_field",
            source(SourceError::UnknownField {
                stream: "messages".to_owned(),
                field: "bdy".to_owned(),
                known: vec!["subject".to_owned(), "body".to_owned()],
            }),
        ),
        (
            "a server's refusal",
            refusal(403, "grant_stream_not_allowed", "Stream 'nope' not in grant", None, Vec::new()),
        ),
        (
            "a server's refusal of a parameter",
            refusal(400, "invalid_request", "Unsupported query parameter: sort", Some("sort"), Vec::new()),
        ),
        (
            "a server's endless refusal",
            refusal(400, "invalid_request", &"\u{7}no ".repeat(5_000), None, choices(8, &"\"".repeat(200))),
        ),
        ("store missing", source(SourceError::Store(StoreError::Missing(path())))),
        (
            "store unreadable",
            source(SourceError::Store(StoreError::Unreadable {
                path: path(),
                problem: "Permission denied (os error 13)".to_owned(),
            })),
        ),
        ("store foreign", source(SourceError::Store(StoreError::Foreign(path())))),
        ("store newer", source(SourceError::Store(StoreError::Newer { path: path(), found: 2, known: 1 }))),
        ("store locked", source(SourceError::Store(StoreError::Locked(path())))),
        (
            "store damaged",
            source(SourceError::Store(StoreError::Damaged {
                path: path(),
                problem: "database disk image is malformed".to_owned(),
            })),
        ),
        (
            "store unwritable",
            source(SourceError::Store(StoreError::Unwritable {
                path: path(),
                problem: "disk full".to_owned(),
            })),
        ),
        ("store index, not there yet", source(SourceError::Store(StoreError::Building(path())))),
        (
            "store index",
            source(SourceError::Store(StoreError::Index {
                path: path(),
                problem: "a file of it is damaged".to_owned(),
            })),
        ),
        ("internal_error", ToolError::Internal { problem: "internal error".to_owned() }),
    ]
}

#[test]
fn every_error_is_complete_and_fits() {
    let mut shown = String::new();
    for (name, error) in every_error() {
        let body = error.body();
        let json = body.json();
        assert!(json.len() <= budget::ERROR, "{name}: {} bytes", json.len());
        assert!(!body.code.is_empty() && !body.message.is_empty() && !body.hint.is_empty(), "{name}: {json}");
        let value: Value = serde_json::from_str(&json).unwrap();
        shown.push_str(&format!(
            "# {name}: {} bytes\n{}\n\n",
            json.len(),
            serde_json::to_string_pretty(&value).unwrap()
        ));
    }
    let longest = every_error().iter().map(|(_, error)| error.body().json().len()).max().unwrap();
    show("errors", longest, &shown);
}
