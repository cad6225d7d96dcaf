//! `fetchwell import slack` and synchronizations of exports of Slack, as archives and folders.

use std::path::Path;

use serde_json::{Value, json};

use crate::import::commands::Workshop;
use crate::import::files::zip_of;
use crate::import::sync::Place;
use crate::import::values::record;
use crate::support::{stderr, text};

/// The lists of an export and a day of a channel.
fn export() -> Vec<(&'static str, String)> {
    let users = json!([
        {"id": "U1", "name": "ann", "profile": {"real_name": "Ann Berg", "display_name": "ann"}},
        {"id": "U2", "name": "bob", "profile": {"real_name": "Bob Tan", "display_name": ""}},
    ]);
    let rich = json!([{"type": "rich_text", "elements": [
        {"type": "rich_text_section", "elements": [{"type": "text", "text": "only in blocks a caracal"}]}]}]);
    let day = json!([
        {"type": "message", "user": "U1", "ts": "1714550400.000100",
            "text": "<@U2> please see <https://example.org/pr/1|the PR> &amp; deploy &lt;now&gt; in <#C1|general>"},
        {"type": "message", "user": "U2", "ts": "1714550500.000200", "thread_ts": "1714550400.000100",
            "text": "done, gibbon merged"},
        {"type": "message", "subtype": "channel_join", "user": "U2", "ts": "1714550300.000100",
            "text": "<@U2> has joined the channel"},
        {"type": "message", "bot_id": "B1", "username": "CI", "text": "", "ts": "1714550600.000300", "blocks": rich,
            "attachments": [{"fallback": "Build 77 failed", "text": "step tapir failed"}]},
        {"type": "message", "user": "U1", "ts": "1714550700.000400", "text": "Kept", "thread_ts": "1714550700.000400"},
    ]);
    let next = json!([
        {"user": "U2", "ts": "1714640000.000100", "thread_ts": "1714550700.000400", "text": "Late"},
    ]);
    let direct = json!([{"user": "U1", "ts": "1714550800.000100", "text": "A dhole for <@U1>"}]);
    // In an archive, messages may come before names.
    vec![
        ("general/2024-05-01.json", day.to_string()),
        ("general/2024-05-02.json", next.to_string()),
        ("D1/2024-05-01.json", direct.to_string()),
        ("users.json", users.to_string()),
        ("channels.json", json!([{"id": "C1", "name": "general"}]).to_string()),
        ("dms.json", json!([{"id": "D1", "members": ["U1", "U2"]}]).to_string()),
    ]
}

#[track_caller]
fn check(workshop: &Workshop) {
    let fields = |key: &str| record(workshop, key).0;
    let first = fields("general/1714550400.000100");
    assert_eq!((&first["from"], &first["channel"]), (&json!("Ann Berg"), &json!("general")));
    assert_eq!(
        first["body"],
        "@Bob Tan please see the PR (https://example.org/pr/1) & deploy <now> in #general"
    );
    assert_eq!(first.get("thread"), None);
    let reply = fields("general/1714550500.000200");
    assert_eq!((&reply["from"], &reply["thread_id"]), (&json!("Bob Tan"), &first["thread_id"]));
    assert!(reply["thread"].as_str().unwrap().starts_with("Ann Berg: @Bob Tan please see"), "{reply}");
    assert_eq!(fields("general/1714640000.000100")["thread"], "Ann Berg: Kept");
    let build = fields("general/1714550600.000300");
    assert_eq!(build["from"], "CI");
    assert_eq!(build["body"], "only in blocks a caracal\nstep tapir failed\nBuild 77 failed");
    let direct = fields("D1/1714550800.000100");
    assert_eq!(
        (&direct["channel"], &direct["body"]),
        (&json!("Ann Berg, Bob Tan"), &json!("A dhole for @Ann Berg"))
    );
}

#[test]
fn messages_have_names_blocks_and_threads() {
    let archive = Workshop::new();
    let files = export();
    let entries: Vec<(&str, &[u8])> = files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    let path = archive.file("slack.zip", zip_of(&entries));
    assert_eq!(archive.counts(&["slack", &path]), [6, 0, 0, 0, 0]);
    check(&archive);
    assert_eq!(archive.search("caracal"), ["c/messages/general%2F1714550600.000300"]);
    assert!(archive.search("joined").is_empty());
    let folder = Workshop::new();
    for (name, content) in &files {
        folder.file(&format!("export/{name}"), content);
    }
    let path = Path::new(&folder.store()).with_file_name("export");
    assert_eq!(folder.counts(&["slack", text(&path)]), [6, 0, 0, 0, 0]);
    check(&folder);
    // A day alone has the names of its export, and the keys of it.
    let day = path.join("general/2024-05-02.json");
    assert_eq!(folder.counts(&["slack", text(&day)]), [0, 1, 0, 0, 0]);
    assert_eq!(record(&folder, "general/1714640000.000100").0["thread"], "Ann Berg: Kept");
}

#[test]
fn a_changed_list_of_names_changes_messages() {
    let place = Place::new();
    for (name, content) in export() {
        place.write(name, &content);
    }
    place.add();
    assert_eq!(place.sync(&[])[..3], [0, 0, 0]);
    place.write("users.json", &json!([{"id": "U1", "name": "cleo"}]).to_string());
    let [added, changed, deleted, ..] = place.sync(&[]);
    // The message of a program names no person.
    assert_eq!((added, changed, deleted), (0, 5, 0));
    let records: Vec<(String, String, Value)> = place.records(&place.store());
    assert_eq!(records.len(), 6);
    assert!(records.iter().all(|(_, _, data)| data["from"] != "Ann Berg"), "{records:?}");
}

#[test]
fn broken_lists_of_names_are_named() {
    let workshop = Workshop::new();
    let day = json!([{"user": "U1", "ts": "1714550400.000100", "text": "A kinkajou for <@U1> <@U9> <", "blocks": [[]]}]);
    let many = format!("[{{\"id\": \"U1\", \"name\": \"ann\"}}, {}", "[".repeat(100_000));
    let files =
        [("users.json", many), ("c/2024-05-01.json", day.to_string()), ("x/users.json", "{}".to_owned())];
    let entries: Vec<(&str, &[u8])> = files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    let path = workshop.file("slack.zip", zip_of(&entries));
    let output = workshop.import(&["slack", &path]);
    let said = stderr(&output);
    assert!(said.contains("slack.zip/users.json: its JSON is broken"), "{said}");
    assert!(said.contains("messages have ids in place of names") && !said.contains("x/users.json"), "{said}");
    assert_eq!(record(&workshop, "c/1714550400.000100").0["body"], "A kinkajou for @ann @U9 <");
}
