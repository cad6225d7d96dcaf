//! Real mail: the messages that Python tests its e-mail package with, and a mailbox of a git history.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::import::commands::Workshop;

/// Returns the output of a command.
#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the records of a store.
fn records(workshop: &Workshop) -> Vec<Value> {
    let store = rusqlite::Connection::open(workshop.store()).unwrap();
    let mut rows = store.prepare("SELECT data FROM records ORDER BY id").unwrap();
    let rows = rows.query_map((), |row| row.get::<_, String>(0)).unwrap();
    rows.map(|data| serde_json::from_str(&data.unwrap()).unwrap()).collect()
}

/// Returns a field of a record with single spaces between its words.
fn words(record: &Value, field: &str) -> String {
    let text = record[field].as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn messages_of_pythons_own_tests_are_found() {
    let workshop = Workshop::new();
    let (mailbox, expected) = (workshop.file("python.mbox", ""), workshop.file("python.json", ""));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/python/mailbox.py");
    // Debian has these messages in the package libpython3-testsuite.
    run(Command::new("python3").arg(script).args([&mailbox, &expected]));
    let expected: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(&expected).unwrap()).unwrap();
    assert!(expected.len() >= 40, "{}", expected.len());

    let [added, changed, unchanged, deleted, rejected] = workshop.counts(&["mbox", &mailbox]);
    assert_eq!((changed, deleted, rejected), (0, 0, 0));
    assert_eq!(usize::try_from(added + unchanged).unwrap(), expected.len());

    let records = records(&workshop);
    let titles: Vec<String> = records.iter().map(|record| words(record, "subject")).collect();
    let missing = expected.iter().filter_map(|message| message["subject"].as_str());
    let missing: Vec<&str> = missing.filter(|subject| !titles.iter().any(|title| title == subject)).collect();
    assert!(missing.is_empty(), "subjects that no record has: {missing:#?}");

    let texts: Vec<String> = records
        .iter()
        .map(|record| {
            let fields = record.as_object().unwrap().keys();
            let texts = fields.filter(|field| *field == "body" || field.starts_with("attach"));
            texts.map(|field| words(record, field)).collect::<Vec<_>>().join(" ")
        })
        .collect();
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    let mut missing = Vec::new();
    for message in &expected {
        for text in message["texts"].as_array().unwrap() {
            let (kind, line) = (text["kind"].as_str().unwrap(), text["text"].as_str().unwrap());
            *kinds.entry(kind).or_default() += 1;
            // The line of msg_35 is inside the headers, but is not a header: Python reads it as text.
            if message["file"] != "msg_35.txt" && !texts.iter().any(|text| text.contains(line)) {
                missing.push(format!("{} ({kind}): {line}", message["file"]));
            }
        }
    }
    assert!(missing.is_empty(), "lines that no record has: {missing:#?}");
    for kind in ["text/plain", "text/html", "text/plain forwarded", "text/rfc822-headers"] {
        assert!(kinds.contains_key(kind), "{kinds:?}");
    }
    // A message within a message, an encoded one, a digest, and a delivery report.
    for sentence in [
        "Here is the body of the message",
        "Testing email forwarding with Groupwise",
        "You can reach the person managing the list at",
        "Action: failed",
    ] {
        assert!(!workshop.search(&format!("\"{sentence}\"")).is_empty(), "{sentence}");
    }
}

#[test]
fn a_mailbox_of_a_git_history_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args([
            "-c",
            "user.name=Zoë Q",
            "-c",
            "user.email=zoe@x.test",
            "-c",
            "init.defaultBranch=main",
        ]);
        command.current_dir(folder.path()).args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null");
        run(command
            .env("GIT_AUTHOR_DATE", "2026-04-01T10:00:00+02:00")
            .env("GIT_COMMITTER_DATE", "2026-04-01T10:00:00+02:00"))
    };
    git(&["init", "--quiet"]);
    for number in 1..=12 {
        std::fs::write(folder.path().join("notes.txt"), format!("line {number} of änderung{number}\n"))
            .unwrap();
        git(&["add", "notes.txt"]);
        let text = format!("From Monday on, step{number} waits for café.\n\nFrom me too.");
        git(&["commit", "--quiet", "-m", &format!("area: improve part {number}"), "-m", &text]);
    }
    let patches = git(&["format-patch", "--root", "--stdout", "--thread=shallow"]);
    let workshop = Workshop::new();
    let file = workshop.file("git.mbox", &patches);
    assert_eq!(workshop.counts(&["mbox", &file]), [12, 0, 0, 0, 0]);
    assert_eq!(workshop.counts(&["mbox", &file]), [0, 0, 12, 0, 0]);
    let found = records(&workshop);
    assert_eq!(found[6]["subject"], "[PATCH 07/12] area: improve part 7");
    assert_eq!((&found[6]["from.name"], &found[6]["from.address"]), (&"Zoë Q".into(), &"zoe@x.test".into()));
    assert!(found.iter().all(|record| record["thread_id"] == found[0]["message_id"]), "{found:#?}");
    assert!(words(&found[6], "body").contains("From Monday on, step7 waits for café."), "{}", found[6]);
    assert_eq!(workshop.search("änderung7").len(), 2, "it is added by one commit and removed by the next");

    // The same patches as attachments.
    let attached = git(&["format-patch", "--root", "--stdout", "--attach"]);
    let workshop = Workshop::new();
    let file = workshop.file("attached.mbox", &attached);
    assert_eq!(workshop.counts(&["mbox", &file]), [12, 0, 0, 0, 0]);
    let found = records(&workshop);
    assert!(words(&found[6], "attachment_1").contains("+line 7 of änderung7"), "{}", found[6]);
    assert_eq!(found[6]["attachments"], serde_json::json!(["0007-area-improve-part-7.patch"]));
}
