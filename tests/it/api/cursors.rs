//! Cursors of `/api/v1`: the arguments they hold, the arguments they conflict with, and the errors of invalid ones.

use serde_json::{Value, json};

use crate::support::{Api, HttpServer, fetchwell, hostaway_store, stdout, text};

fn next(page: &Value) -> &str {
    page["nextCursor"].as_str().unwrap_or_else(|| panic!("no cursor: {}", page["meta"]))
}

#[test]
fn a_cursor_alone_continues_with_all_arguments() {
    let api = Api::hostaway();
    let asked = "limit=7&status=confirmed&fields=status,checkInDate&order_by=created_asc";
    let first = api.ok(&format!("/api/v1/bookings?{asked}"));
    let second = api.ok(&format!("/api/v1/bookings?cursor={}", next(&first)));
    let rows: Vec<&Value> =
        [&first, &second].into_iter().flat_map(|page| page["items"].as_array().unwrap()).collect();
    assert_eq!(rows.len(), 14);
    assert!(rows.iter().all(|row| row["status"] == "confirmed"));
    assert!(rows.iter().all(|row| row.as_object().unwrap().keys().eq(["id", "status", "checkInDate"])));
    assert!(rows.iter().map(|row| row["checkInDate"].as_str().unwrap()).is_sorted());
    assert_eq!(first["meta"]["totalCount"], second["meta"]["totalCount"]);
    // Repeating all arguments, repeating some of them, or giving another page size continues the same list.
    for same in [asked, "status=confirmed", "limit=7"] {
        let again = api.ok(&format!("/api/v1/bookings?{same}&cursor={}", next(&first)));
        assert_eq!(again["items"], second["items"], "{same}");
    }
    let larger = api.ok(&format!("/api/v1/bookings?limit=9&cursor={}", next(&first)));
    assert_eq!(larger["items"].as_array().unwrap().len(), 9);

    let summary = api.ok("/api/v1/listings?limit=3&summary=true");
    let more = api.ok(&format!("/api/v1/listings?cursor={}", next(&summary)));
    assert_eq!(more["meta"]["note"], summary["meta"]["note"]);
    assert!(more["items"][0].get("description").is_none() && more["meta"]["note"].is_string(), "{more}");
}

#[test]
fn a_cursor_with_other_arguments_is_refused() {
    let api = Api::hostaway();
    let first = api.ok("/api/v1/bookings?limit=5&status=confirmed&order_by=created_asc&summary=true");
    let cursor = next(&first);
    for other in [
        "bookings?order_by=created_desc",
        "bookings?status=cancelled",
        "bookings?guestName=Nobody",
        "bookings?connection_id=cin_alpine",
        "bookings?fields=status",
        "bookings?summary=false",
        "reservations?limit=5",
        "listings?limit=5",
    ] {
        assert_eq!(api.cursor_fault(&format!("/api/v1/{other}&cursor={cursor}")), "mismatched", "{other}");
    }
    // An invalid argument is reported before a conflict with the cursor.
    api.refused(&format!("/api/v1/bookings?limit=0&cursor={cursor}"), 400, "INVALID_ARGUMENT");
    api.refused(&format!("/api/v1/bookings?limit=201&cursor={cursor}"), 400, "INVALID_ARGUMENT");
}

#[test]
fn a_foreign_cursor_is_refused_with_the_reason() {
    let api = Api::hostaway();
    let first = api.ok("/api/v1/listings?limit=50");
    let cursor = next(&first);
    // Replaces the letter at one position.
    let flipped = |at: usize| -> String {
        let other = |letter: char| if letter == 'A' { 'B' } else { 'A' };
        let letters = cursor.chars().enumerate();
        letters.map(|(place, letter)| if place == at { other(letter) } else { letter }).collect()
    };
    for at in [4, 20, cursor.len() / 2, cursor.len() - 2] {
        let tampered = flipped(at);
        let reason = api.cursor_fault(&format!("/api/v1/listings?cursor={tampered}"));
        assert!(["tampered", "malformed"].contains(&reason.as_str()), "{reason} at {at}");
    }
    let tampered = flipped(cursor.len() / 2);
    assert_eq!(api.cursor_fault(&format!("/api/v1/listings?cursor={tampered}")), "tampered");
    for junk in [
        // A cursor as the document of the contract prints it: base64 of JSON, not signed.
        "eyJvZmZzZXQiOjUwLCJ0cyI6MTY5NzQ1MjgwMC4wfQ==",
        "eyJvZmZzZXQiOjEwMCwidHMiOjE2OTc0NTI4MDAuMH0=",
        "x",
        "fw1_",
        "%00",
        "%F0%9F%98%80",
        &format!("{cursor}A"),
        cursor.split_at(cursor.len() - 1).0,
    ] {
        assert_eq!(api.cursor_fault(&format!("/api/v1/listings?cursor={junk}")), "malformed", "{junk}");
    }
    api.cursor_fault(&format!("/api/v1/listings?cursor={}", "A".repeat(5_000)));
}

#[test]
fn a_cursor_expires_after_ten_minutes() {
    let api = Api::hostaway();
    let first = api.ok("/api/v1/listings?limit=50");
    let target = format!("/api/v1/listings?cursor={}", next(&first));
    let Api { folder, server } = api;
    server.end();
    let state = folder.path().join("state");
    for (clock, reason) in [("--clock=+590s", None), ("--clock=+601s", Some("expired"))] {
        let server =
            HttpServer::start(["--store", text(hostaway_store()), "--state-dir", text(&state), clock]);
        let api = Api { folder: tempfile::tempdir().unwrap(), server };
        match reason {
            None => assert_eq!(api.ok(&target)["items"].as_array().unwrap().len(), 50),
            Some(reason) => assert_eq!(api.cursor_fault(&target), reason),
        }
    }
}

#[test]
fn a_cursor_is_valid_for_the_configured_time_and_not_before_its_issue() {
    let folder = tempfile::tempdir().unwrap();
    let (state, config) = (folder.path().join("state"), folder.path().join("fetchwell.toml"));
    std::fs::write(&config, "cursor_ttl = \"30m\"\n").unwrap();
    let serve = |clock| {
        let own = [
            "--store",
            text(hostaway_store()),
            "--state-dir",
            text(&state),
            "--config",
            text(&config),
            clock,
        ];
        Api { folder: tempfile::tempdir().unwrap(), server: HttpServer::start(own) }
    };
    let api = serve("--clock=+0s");
    let first = api.ok("/api/v1/listings?limit=5&order_by=created_asc&status=listed");
    let target = format!("/api/v1/listings?cursor={}", next(&first));
    api.server.end();
    let shown =
        stdout(&fetchwell(["cursor", "inspect", next(&first), "--json", "--state-dir", text(&state)]));
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        (&shown["order_by"], &shown["filters"]),
        (&json!("created_asc"), &json!({"status": "listed"}))
    );
    for (clock, reason) in [("--clock=+1790s", None), ("--clock=+1801s", Some("expired"))] {
        let api = serve(clock);
        match reason {
            None => assert_eq!(api.ok(&target)["items"].as_array().unwrap().len(), 5),
            Some(reason) => assert_eq!(api.cursor_fault(&target), reason),
        }
        api.server.end();
    }
    // Two servers with one key; the clock of the server that signs is ahead.
    let (ahead, behind) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let at = |state: &std::path::Path, clock| {
        let server =
            HttpServer::start(["--store", text(hostaway_store()), "--state-dir", text(state), clock]);
        Api { folder: tempfile::tempdir().unwrap(), server }
    };
    let api = at(ahead.path(), "--clock=+1h");
    let target = format!("/api/v1/listings?cursor={}", next(&api.ok("/api/v1/listings?limit=5")));
    api.server.end();
    std::fs::copy(ahead.path().join("cursor-keys.json"), behind.path().join("cursor-keys.json")).unwrap();
    assert_eq!(at(behind.path(), "--clock=+0s").cursor_fault(&target), "not_yet_valid");
}

#[test]
fn cursors_of_tools_and_of_paths_are_not_interchangeable() {
    let api = Api::hostaway();
    let listed = api.tool("query_records", &json!({"stream": "listings", "limit": 5}));
    let of_tool = listed["next_cursor"].as_str().unwrap();
    let found = api.tool("search", &json!({"query": "house", "limit": 2}));
    let of_search = found["next_cursor"].as_str().unwrap();
    let page = api.ok("/api/v1/listings?limit=5");
    let of_path = next(&page);
    let chunk = api.ok("/api/v1/content/cin_seaside%2Freservations%3ABK99999?field=messages");
    let of_chunk = next(&chunk);
    for cursor in [of_tool, of_search, of_chunk] {
        let reason = api.cursor_fault(&format!("/api/v1/listings?cursor={cursor}"));
        assert_eq!(reason, "mismatched");
    }
    for cursor in [of_tool, of_path] {
        let target = format!("/api/v1/content/cin_seaside%2Freservations%3ABK99999?cursor={cursor}");
        assert_eq!(api.cursor_fault(&target), "mismatched");
    }
    for (tool, arguments) in [
        ("query_records", json!({"stream": "listings"})),
        ("query_records", json!({})),
        ("search", json!({})),
    ] {
        let mut arguments = arguments;
        arguments["cursor"] = json!(of_path);
        let refused = api.tool(tool, &arguments);
        assert_eq!((&refused["code"], &refused["reason"]), (&json!("invalid_cursor"), &json!("mismatched")));
    }
}
