//! `fetchwell import`, by running it.

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::support::{binary, fetchwell, stderr, stdout, text};

/// A folder with files to import and a store.
pub(crate) struct Workshop {
    folder: tempfile::TempDir,
}

impl Workshop {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn store(&self) -> String {
        text(&self.folder.path().join("store.db")).to_owned()
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        text(&path).to_owned()
    }

    pub(crate) fn import(&self, arguments: &[&str]) -> Output {
        let place = ["--store", &self.store(), "--connection", "c", "--json"];
        binary().arg("import").args(arguments).args(place).output().unwrap()
    }

    /// Returns the numbers of added, changed, unchanged, deleted and rejected records.
    #[track_caller]
    pub(crate) fn counts(&self, arguments: &[&str]) -> [u64; 5] {
        let output = self.import(arguments);
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        assert_eq!(output.status.success(), summary["rejected"] == 0, "{output:?}");
        ["added", "changed", "unchanged", "deleted", "rejected"].map(|name| summary[name].as_u64().unwrap())
    }

    pub(crate) fn fetch(&self, id: &str) -> Value {
        let output = fetchwell(["fetch", id, "--store", &self.store(), "--json"]);
        serde_json::from_str(&stdout(&output)).unwrap()
    }

    pub(crate) fn search(&self, query: &str) -> Vec<String> {
        let output = fetchwell(["search", query, "--store", &self.store(), "--limit", "100", "--json"]);
        // The exit code is 1 if nothing is found.
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        found["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|hit| hit["id"].as_str().unwrap().to_owned())
            .collect()
    }
}

#[test]
fn new_known_changed_and_repeated_records_are_told_apart_in_any_order() {
    let workshop = Workshop::new();
    let lines = |keys: &[(u32, u32)]| {
        keys.iter().fold(String::new(), |mut lines, (id, value)| {
            writeln!(lines, r#"{{"id":{id},"tags":["x{value}",{{"n":-1.5}}],"empty":null,"is":true}}"#)
                .unwrap();
            lines
        })
    };
    let file = workshop.file("a.ndjson", lines(&[(1, 1), (2, 2), (3, 3), (1, 1)]));
    assert_eq!(workshop.counts(&["json", &file, "--stream", "s"]), [3, 0, 1, 0, 0]);
    // A repeated key is rejected, unless the record is equal to the first one.
    let mixed = [(4, 4), (1, 1), (5, 5), (6, 6), (2, 20), (4, 40), (7, 7), (7, 7), (3, 3)];
    let file = workshop.file("b.ndjson", lines(&mixed));
    assert_eq!(workshop.counts(&["json", &file, "--stream", "s"]), [4, 1, 3, 0, 1]);
    assert_eq!(workshop.search("x20"), ["c/s:2"]);
    assert_eq!(workshop.search("x4"), ["c/s:4"]);
    assert!(workshop.search("x2").is_empty() && workshop.search("x40").is_empty());
}

#[test]
fn equal_fields_in_another_order_are_another_record() {
    let workshop = Workshop::new();
    let lines = ["{\"id\":1,\"a\":1,\"b\":2}", "{\"id\":1,\"b\":2,\"a\":1}", "{\"id\":1,\"a\":1.0,\"b\":2}"];
    let file = workshop.file("a.ndjson", lines.join("\n"));
    assert_eq!(workshop.counts(&["json", &file]), [1, 0, 0, 0, 2]);
}

const LINES: &str = r#"{"stream":"messages","key":"m1","data":{"subject":"One","body":"alpha"},"emitted_at":"2026-01-01T00:00:00Z"}
{"stream":"messages","key":"m2","data":{"subject":"Two","body":"beta"},"emitted_at":"2026-01-02T00:00:00Z","op":"upsert"}

{"stream":"daily_stats","key":["user_123","2026-04-01"],"data":{"steps":9}}
"#;

#[test]
fn records_are_imported_once_changed_and_deleted() {
    let workshop = Workshop::new();
    let file = workshop.file("a.ndjson", LINES);
    assert_eq!(workshop.counts(&["records", &file]), [3, 0, 0, 0, 0]);
    assert_eq!(workshop.counts(&["records", &file]), [0, 0, 3, 0, 0]);
    let changes = workshop.file("b.ndjson", "{\"stream\":\"messages\",\"key\":\"m1\",\"data\":{\"subject\":\"One\",\"body\":\"gamma\"}}\n{\"stream\":\"messages\",\"key\":\"m2\",\"op\":\"delete\"}\n{\"stream\":\"messages\",\"key\":\"none\",\"op\":\"delete\"}");
    assert_eq!(workshop.counts(&["records", &changes]), [0, 1, 1, 1, 0]);
    assert_eq!(workshop.search("gamma"), ["c/messages:m1"]);
    assert!(workshop.search("alpha").is_empty() && workshop.search("beta").is_empty());
    // A change without an emission time keeps the earlier one.
    assert_eq!(workshop.fetch("c/messages:m1")["metadata"]["emitted_at"], "2026-01-01T00:00:00Z");
    assert_eq!(workshop.fetch("c/daily_stats/%5B%22user_123%22%2C%222026-04-01%22%5D")["text"], "steps: 9");
    assert_eq!(workshop.counts(&["records", &file]), [1, 1, 1, 0, 0]);
}

#[test]
fn every_bad_line_is_reported_with_its_number_and_reason() {
    let workshop = Workshop::new();
    let mut lines: Vec<Vec<u8>> = Vec::new();
    let mut expect = Vec::new();
    let bad: &[(&[u8], &str)] = &[
        (b"not json", "it is not JSON (column 2)"),
        (b"{\"stream\":\"s\"", "it ends too early (column 13)"),
        (b"[1,2]", "it is an array, not an object"),
        (b"{\"key\":\"k\",\"data\":{}}", "there is no `stream`"),
        (b"{\"stream\":\"s\",\"data\":{}}", "no `key`"),
        (b"{\"stream\":\"s\",\"key\":null,\"data\":{}}", "no `key`"),
        (b"{\"stream\":\"s\",\"key\":{},\"data\":{}}", "neither a string"),
        (b"{\"stream\":\"s\",\"key\":[],\"data\":{}}", "empty array"),
        (b"{\"stream\":\"s\",\"key\":\"\",\"data\":{}}", "it is empty"),
        (b"{\"stream\":\"\",\"key\":\"k\",\"data\":{}}", "stream name"),
        (b"{\"stream\":\"s\",\"key\":\"k\"}", "no `data`"),
        (b"{\"stream\":\"s\",\"key\":\"k\",\"data\":[]}", "`data` is an array, not an object"),
        (b"{\"stream\":5,\"key\":\"k\",\"data\":{}}", "`stream` is a number, not a string"),
        (b"{\"stream\":\"s\",\"stream\":\"s\",\"key\":\"k\",\"data\":{}}", "duplicate field `stream`"),
        (b"{\"stream\":\"s\",\"key\":\"k\",\"data\":{},\"op\":\"explode\"}", "`op` is `explode`"),
        (b"{\"stream\":\"s\",\"key\":\"..\",\"data\":{}}", "path segment `..`"),
        (b"{\"stream\":\"s\",\"key\":\"a\\u0000b\",\"data\":{}}", "U+0000"),
        (b"{\"stream\":\"s\",\"key\":\"k\",\"data\":{\"a\":\"\\ud800\"}}", "hex escape"),
        (b"{\"stream\":\"s\",\"key\":\"k\",\"data\":{\"a\":\"\xFF\"}}", "not UTF-8 at byte 38"),
    ];
    for (number, (line, reason)) in bad.iter().enumerate() {
        lines.push(line.to_vec());
        expect.push((number * 2 + 1, *reason));
        lines.push(
            format!("{{\"stream\":\"s\",\"key\":\"good{number}\",\"data\":{{\"n\":{number}}}}}").into_bytes(),
        );
    }
    let long = json!({"stream": "s", "key": "é".repeat(1_200), "data": {}}).to_string();
    lines.push(long.into_bytes());
    expect.push((bad.len() * 2 + 1, "more than the 2048"));
    let wide = json!({"stream": "s", "key": "é".repeat(700), "data": {}}).to_string();
    lines.push(wide.into_bytes());
    expect.push((bad.len() * 2 + 2, "too long"));
    // Keys that leave room for the handle of the record, and none for the handles of its parts.
    for key in ["k".repeat(2_040), ":".repeat(700)] {
        lines.push(json!({"stream": "s", "key": key, "data": {}}).to_string().into_bytes());
        expect.push((lines.len(), "too long"));
    }
    let file = workshop.file("bad.ndjson", lines.join(&b'\n'));
    let list = workshop.store() + ".report";
    let output = workshop.import(&["records", &file, "--report", &list]);
    assert_eq!(output.status.code(), Some(3));
    let list = std::fs::read_to_string(list).unwrap();
    let listed: Vec<Value> = list.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    for (line, reason) in &expect {
        let line = line.to_string();
        let found = listed.iter().find(|listed| listed["rejected"] == *line);
        let found = found.unwrap_or_else(|| panic!("line {line}: {list}"));
        assert!(found["reason"].as_str().unwrap().contains(reason), "{found} should say {reason}");
    }
    assert_eq!(listed.len(), expect.len());
    // The first three are on standard error.
    let said = stderr(&output);
    for (line, reason) in expect.iter().take(3) {
        let start = format!("bad.ndjson:{line}: ");
        assert!(said.lines().any(|said| said.contains(&start) && said.contains(reason)), "{line}: {said}");
    }
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["added"], &summary["rejected"]), (&json!(bad.len()), &json!(expect.len())));
    // The other lines are imported.
    assert_eq!(workshop.fetch("c/s:good0")["text"], "n: 0");
}

#[test]
fn a_manifest_with_a_route_that_cannot_be_served_is_refused_by_its_path() {
    let workshop = Workshop::new();
    let file = workshop.file("r.ndjson", r#"{"stream":"messages","key":"m1","data":{}}"#);
    let import = |path: &str| {
        let routes = json!([{"path": path, "stream": "messages"}]);
        let manifest = json!({"streams": [{"name": "messages"}], "routes": routes}).to_string();
        let manifest = workshop.file("manifest.json", manifest);
        workshop.import(&["records", &file, "--manifest", &manifest])
    };
    let output = import("/api/v1/../messages");
    let said = stderr(&output);
    assert!(
        output.status.code() == Some(1) && said.contains("its route `/api/v1/../messages`"),
        "{output:?}"
    );
    assert!(!Path::new(&workshop.store()).exists());
    assert!(import("/api/v1/messages").status.success());
}

#[test]
fn a_manifest_gives_keys_and_refuses_streams_it_does_not_declare() {
    let workshop = Workshop::new();
    let manifest = workshop.file(
        "manifest.json",
        json!({"connector_id": "https://registry.example/connectors/acme-mail", "protocol_version": "0.1.0", "streams": [
            {"name": "messages", "schema": {"type": "object"}, "primary_key": ["id"], "cursor_field": "received_at"},
            {"name": "daily_stats", "primary_key": ["user_id", "day"], "views": [], "relationships": [], "query": {}},
        ]})
        .to_string(),
    );
    let file = workshop.file(
        "a.ndjson",
        "{\"stream\":\"messages\",\"data\":{\"id\":\"m1\"}}\n{\"stream\":\"daily_stats\",\"data\":{\"user_id\":\"u\",\"day\":\"d\"}}\n{\"stream\":\"other\",\"key\":\"x\",\"data\":{}}\n{\"stream\":\"messages\",\"data\":{}}",
    );
    let output = workshop.import(&["records", &file, "--manifest", &manifest, "--name", "Work mail"]);
    let said = stderr(&output);
    assert!(
        said.contains(":3: the manifest declares no stream `other`; it declares messages, daily_stats"),
        "{said}"
    );
    assert!(said.contains(":4: there is no `key` and the primary key field `id` is missing"), "{said}");
    let shown = stdout(&fetchwell(["connections", "--store", &workshop.store()]));
    assert!(shown.contains("c  Work mail, acme-mail"), "{shown}");
    assert_eq!(
        workshop.fetch("c/daily_stats/%5B%22u%22%2C%22d%22%5D")["metadata"]["display_name"],
        "Work mail"
    );
    let output = workshop.import(&["records", &file, "--manifest", &file]);
    assert!(
        output.status.code() == Some(1) && stderr(&output).contains("not a connector manifest"),
        "{output:?}"
    );
}

#[test]
fn a_table_is_imported_by_its_header() {
    let workshop = Workshop::new();
    let table =
        "\u{feff}id,name,note\n1,Ann,\"two\nlines, \"\"quoted\"\"\"\n2,Bob,x,y\n3,Cleo,\"x\"\n4,Dan,y\n";
    let file = workshop.file("people.csv", table);
    assert_eq!(workshop.counts(&["csv", &file, "--stream", "people", "--key", "id"]), [3, 0, 0, 0, 1]);
    let output = workshop.import(&["csv", &file, "--stream", "people", "--key", "id"]);
    assert!(stderr(&output).contains("people.csv:4: it has 4 fields and the header has 3"), "{output:?}");
    let text = workshop.fetch("c/people:1")["text"].as_str().unwrap().to_owned();
    assert_eq!(text, "id: 1\nname: Ann\n\nnote:\ntwo\nlines, \"quoted\"");
    assert_eq!(
        workshop.counts(&["csv", &file, "--stream", "pairs", "--key", "id", "--key", "name"]),
        [3, 0, 0, 0, 1]
    );
    workshop.fetch("c/pairs/%5B%221%22%2C%22Ann%22%5D");
    let output = workshop.import(&["csv", &file, "--stream", "people", "--key", "nope"]);
    assert!(
        stderr(&output).contains(".csv has no column `nope`; its columns are id, name, note"),
        "{output:?}"
    );
}

#[test]
fn json_is_imported_in_every_shape() {
    let workshop = Workshop::new();
    let array = workshop.file("notes.json", r#"[{"id":1,"t":"a"},{"id":"x/y","t":"b"},7,{"t":"c"}]"#);
    assert_eq!(workshop.counts(&["json", &array]), [2, 0, 0, 0, 2]);
    let output = workshop.import(&["json", &array]);
    assert!(stderr(&output).contains("notes.json:item 3: it is not an object"), "{output:?}");
    assert!(
        stderr(&output).contains("notes.json:item 4: it has no field `id`; name its key with --key"),
        "{output:?}"
    );
    workshop.fetch("c/notes:1");
    workshop.fetch("c/notes/x%2Fy");
    let lines = workshop.file("lines.json", "{\"k\":\"a\"}\n{\"k\":\"b\"}\n");
    assert_eq!(workshop.counts(&["json", &lines, "--stream", "lines", "--key", "k"]), [2, 0, 0, 0, 0]);
    let tables = workshop.file("tables.json", r#"{"users":[{"id":1}],"posts":[{"id":1},{"id":2}]}"#);
    assert_eq!(workshop.counts(&["json", &tables]), [3, 0, 0, 0, 0]);
    workshop.fetch("c/posts:2");
    let single = workshop.file("single.json", r#"{"id":"only","tags":["a"]}"#);
    assert_eq!(workshop.counts(&["json", &single]), [1, 0, 0, 0, 0]);
    let broken = workshop.file("broken.json", r#"[{"id":1},{"id":2},{"id":"#);
    let output = workshop.import(&["json", &broken]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("line 1 column")
            && stderr(&output).contains("items before that place are imported"),
        "{output:?}"
    );
    workshop.fetch("c/broken:2");
    let empty = workshop.file("empty.json", "");
    let said = stderr(&workshop.import(&["json", &empty]));
    assert!(said.contains("not a JSON file of objects") && !said.contains("are imported"), "{said}");
}

#[test]
fn a_folder_of_markdown_is_imported_by_its_paths() {
    let workshop = Workshop::new();
    workshop.file("vault/index.md", "# Welcome\n\nhello");
    workshop.file(
        "vault/trips/Kraków 2026.md",
        "---\ntitle: Kraków\ntags: [travel, pl]\nurl: https://example.com/k\n---\nTake the night train.\n",
    );
    workshop.file("vault/.obsidian/hidden.md", "secret");
    workshop.file("vault/picture.png", [0x89, 0x50]);
    workshop.file("vault/latin.md", b"Ren\xE9");
    let vault = text(&workshop.folder.path().join("vault")).to_owned();
    assert_eq!(workshop.counts(&["markdown", &vault]), [2, 0, 0, 0, 1]);
    let output = workshop.import(&["markdown", &vault]);
    assert!(stderr(&output).contains("latin.md: it is not UTF-8 at byte 4"), "{output:?}");
    assert_eq!(workshop.search("night train"), ["c/documents/trips%2FKrak%C3%B3w%202026.md"]);
    let note = workshop.fetch("c/documents/trips%2FKrak%C3%B3w%202026.md");
    assert_eq!((&note["title"], &note["url"]), (&json!("Kraków"), &json!("https://example.com/k")));
    assert_eq!(workshop.fetch("c/documents:index.md")["title"], "Welcome");
    assert!(workshop.search("secret").is_empty());
    let output = workshop.import(&["markdown", &workshop.store()]);
    assert!(
        output.status.code() == Some(1) && stderr(&output).contains("neither a folder nor"),
        "{output:?}"
    );
}

#[test]
fn a_mailbox_is_imported_by_its_message_ids() {
    let workshop = Workshop::new();
    let mut mailbox = String::new();
    for (id, subject, body) in [
        ("<a/b=1@x.test>", "=?utf-8?q?Caf=C3=A9?=", "See you at the caf=C3=A9\nFrom nine on\n"),
        ("<2@x.test>", "Two", "second\n"),
    ] {
        write!(mailbox, "From ann@x.test Wed Apr  1 10:00:00 2026\nMessage-ID: {id}\nFrom: Ann <ann@x.test>\nDate: Wed, 1 Apr 2026 10:00:00 +0000\nSubject: {subject}\nContent-Transfer-Encoding: quoted-printable\nContent-Type: text/plain; charset=utf-8\n\n{body}\n").unwrap();
    }
    mailbox.push_str(
        "From x Wed Apr  1 11:00:00 2026\nContent-Type: text/html; charset=utf-8\nSubject: Web\n\n<p>Only <b>HTML</b> here</p>\n",
    );
    let file = workshop.file("mail.mbox", &mailbox);
    assert_eq!(workshop.counts(&["mbox", &file]), [3, 0, 0, 0, 0]);
    assert_eq!(workshop.counts(&["mbox", &file]), [0, 0, 3, 0, 0]);
    let message = workshop.fetch("c/messages/a%2Fb%3D1%40x.test");
    assert_eq!(message["title"], "Café");
    let body = message["text"].as_str().unwrap();
    assert!(
        body.contains("from: Ann <ann@x.test>") && body.ends_with("body:\nSee you at the café\nFrom nine on"),
        "{body}"
    );
    assert_eq!(message["metadata"]["authored_at"], "2026-04-01T10:00:00Z");
    let html = workshop.search("only html here");
    assert!(html[0].starts_with("c/messages:sha256-"), "{html:?}");
    let wrong = workshop.file("wrong.mbox", "Subject: no mailbox\n");
    assert!(stderr(&workshop.import(&["mbox", &wrong])).contains("does not start with `From `"));
}

/// Returns records of one stream.
fn many(count: usize) -> String {
    let mut lines = String::new();
    for number in 0..count {
        writeln!(lines, "{{\"stream\":\"s\",\"key\":\"k{number}\",\"data\":{{\"body\":\"record number {number} of many {}\"}}}}", "words ".repeat(20)).unwrap();
    }
    lines
}

#[cfg(unix)]
#[test]
fn a_killed_import_continues_after_its_last_batch() {
    let workshop = Workshop::new();
    let file = workshop.file("many.ndjson", many(60_000));
    let arguments = ["import", "records", &file, "--store", &workshop.store(), "--connection", "c"];
    let mut process = binary().args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let written = || {
        let count = rusqlite::Connection::open(workshop.store()).and_then(|store| {
            store.query_row("SELECT count(*) FROM records", (), |row| row.get::<_, i64>(0))
        });
        count.unwrap_or(0)
    };
    while written() == 0 {
        std::thread::park_timeout(std::time::Duration::from_millis(2));
        assert!(process.try_wait().unwrap().is_none(), "it was too fast to be killed");
    }
    process.kill().unwrap();
    process.wait().unwrap();
    let kept = written();
    assert!(kept > 0 && kept < 60_000 && kept % 2_000 == 0, "whole batches only, not {kept}");
    // Committed records can be found although the index was not complete.
    assert_eq!(workshop.search("\"number 1999\""), ["c/s:k1999"]);
    let counts = workshop.counts(&["records", &file]);
    assert_eq!(counts, [60_000 - u64::try_from(kept).unwrap(), 0, u64::try_from(kept).unwrap(), 0, 0]);
    assert_eq!(workshop.search("\"number 59999\""), ["c/s:k59999"]);
}

#[cfg(unix)]
#[test]
fn a_stopped_import_keeps_and_reports_its_records() {
    let workshop = Workshop::new();
    let file = workshop.file("many.ndjson", many(200_000));
    let arguments = ["import", "records", &file, "--store", &workshop.store(), "--connection", "c", "--json"];
    let process = binary().args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !Path::new(&workshop.store()).exists() {
        std::thread::park_timeout(std::time::Duration::from_millis(2));
    }
    std::process::Command::new("kill").args(["-INT", &process.id().to_string()]).status().unwrap();
    let output = process.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(stderr(&output).contains("Run the same command again"), "{output:?}");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["stopped"], true);
    let added = summary["added"].as_u64().unwrap();
    assert!(added < 200_000);
}

#[test]
fn an_import_waits_for_another_one_beside_readers() {
    let workshop = Workshop::new();
    let file = workshop.file("a.ndjson", LINES);
    assert_eq!(workshop.counts(&["records", &file]), [3, 0, 0, 0, 0]);
    // Another import holds the lock of the store.
    let lock = std::fs::File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(format!("{}-lock", workshop.store()))
        .unwrap();
    lock.try_lock().unwrap();
    let mut waiting = binary()
        .args(["import", "records", &file, "--store", &workshop.store(), "--connection", "c"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(waiting.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("another process writes to") && said.contains("waiting"), "{said}");
    assert_eq!(workshop.search("alpha"), ["c/messages:m1"]);
    // The import has not given up.
    assert!(waiting.try_wait().unwrap().is_none());
    drop(lock);
    assert!(waiting.wait().unwrap().success());
    // Another program locks the database itself.
    let other = rusqlite::Connection::open(workshop.store()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let changed = workshop.file("b.ndjson", LINES.replace("alpha", "omega"));
    let output = workshop.import(&["records", &changed]);
    assert!(
        output.status.code() == Some(1) && stderr(&output).contains("locked by another process"),
        "{output:?}"
    );
    assert_eq!(workshop.search("alpha"), ["c/messages:m1"]);
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(workshop.counts(&["records", &changed]), [0, 1, 2, 0, 0]);
}

#[test]
fn a_missing_file_creates_no_store() {
    let workshop = Workshop::new();
    let output = workshop.import(&["records", "/no/such/file.ndjson"]);
    assert!(output.status.code() == Some(1) && stderr(&output).contains("check the path"), "{output:?}");
    assert!(!Path::new(&workshop.store()).exists());
    let file = workshop.file("a.ndjson", LINES);
    let output =
        fetchwell(["import", "records", &file, "--store", &workshop.store(), "--connection", "a/../b"]);
    assert!(
        output.status.code() == Some(1) && stderr(&output).contains("cannot be a connection id"),
        "{output:?}"
    );
}

#[test]
fn an_import_that_fails_at_once_creates_nothing() {
    let workshop = Workshop::new();
    let table = workshop.file("a.csv", "id,name\n1,Ann\n");
    let empty = workshop.file("empty", "");
    let broken = workshop.file("broken.json", "{\"id\":");
    let folder = text(workshop.folder.path()).to_owned();
    for arguments in [
        &["csv", &table, "--stream", "s", "--key", "nope"][..],
        &["csv", &empty, "--stream", "s", "--key", "id"],
        &["csv", &folder, "--stream", "s", "--key", "id"],
        &["json", &broken],
        &["json", &folder],
        &["mbox", &empty],
        &["mbox", &table],
        &["records", &folder],
        &["markdown", &table],
    ] {
        let output = workshop.import(arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(!stderr(&output).contains("are imported") && output.stdout.is_empty(), "{output:?}");
        assert!(!Path::new(&workshop.store()).exists(), "{arguments:?}");
    }
    // A failed import into an existing store adds no connection, either.
    assert_eq!(workshop.counts(&["csv", &table, "--stream", "s", "--key", "id"]), [1, 0, 0, 0, 0]);
    let place = ["--store", &workshop.store(), "--connection", "other"];
    fetchwell(["import", "json", &broken, place[0], place[1], place[2], place[3]]);
    assert!(!stdout(&fetchwell(["connections", place[0], place[1]])).contains("other"));
}

#[test]
fn a_row_is_named_by_its_line_however_lines_end() {
    let workshop = Workshop::new();
    let table = "id,name\n1,\"two\nlines\"\n2,a,b\n\n3,x\n4,y,z\n";
    for (name, table) in [("lf.csv", table.to_owned()), ("crlf.csv", table.replace('\n', "\r\n"))] {
        let file = workshop.file(name, table);
        let said = stderr(&workshop.import(&["csv", &file, "--stream", name, "--key", "id"]));
        for part in [":4: it has 3 fields", ":7: it has 3 fields"] {
            assert!(said.contains(&format!("{name}{part}")), "{part} is not in {said}");
        }
        assert_eq!(said.lines().filter(|line| line.contains(name)).count(), 2, "{said}");
    }
}

#[test]
fn a_repeated_key_in_a_file_is_reported() {
    let workshop = Workshop::new();
    let table = workshop.file("a.csv", "id,name\n1,Ann\n1,Bob\n2,Cleo\n2,Cleo\n");
    let csv = ["csv", &table, "--stream", "people", "--key", "id"];
    assert_eq!(workshop.counts(&csv), [2, 0, 1, 0, 1]);
    assert!(
        stderr(&workshop.import(&csv)).contains("a.csv:3: its key was already used by an earlier record")
    );
    assert_eq!(workshop.counts(&csv), [0, 0, 3, 0, 1]);
    assert!(workshop.fetch("c/people:1")["text"].as_str().unwrap().contains("Ann"));
    let json = workshop.file("a.json", r#"[{"id":1,"t":"a"},{"id":1,"t":"b"},{"id":"1","t":"c"}]"#);
    assert_eq!(workshop.counts(&["json", &json, "--stream", "notes"]), [1, 0, 0, 0, 2]);
    // Integers that some JSON readers round to the same number.
    let large = r#"[{"id":123456789012345678901,"t":"a"},{"id":123456789012345678902,"t":"b"}]"#;
    let file = workshop.file("large.json", large);
    assert_eq!(workshop.counts(&["json", &file]), [0, 0, 0, 0, 2]);
    assert!(stderr(&workshop.import(&["json", &file])).contains("write it as a text"));
    // Two messages with one id are both kept; a copy of one is not.
    let message = |subject: &str| {
        format!(
            "From a@x Wed Apr  1 10:00:00 2026\nMessage-ID: <same@x>\nSubject: {subject}\n\nneedle\n\nFrom me to you.\n\n"
        )
    };
    let mailbox = [message("One"), message("Two"), message("One"), message("Two")].concat();
    let mailbox = workshop.file("a.mbox", mailbox);
    assert_eq!(workshop.counts(&["mbox", &mailbox]), [2, 0, 2, 0, 0]);
    assert_eq!(workshop.counts(&["mbox", &mailbox]), [0, 0, 4, 0, 0]);
    let found = workshop.search("needle");
    assert_eq!(found.len(), 2);
    for id in &found {
        assert!(workshop.fetch(id)["text"].as_str().unwrap().ends_with("From me to you."));
    }
    // Envelopes are a log: a later line replaces an earlier one.
    let log = workshop.file("log.ndjson", "{\"stream\":\"s\",\"key\":\"k\",\"data\":{\"n\":1}}\n{\"stream\":\"s\",\"key\":\"k\",\"data\":{\"n\":2}}");
    assert_eq!(workshop.counts(&["records", &log]), [1, 1, 0, 0, 0]);
    assert_eq!(workshop.fetch("c/s:k")["text"], "n: 2");
}

#[test]
fn a_byte_order_mark_is_skipped() {
    let workshop = Workshop::new();
    let json = workshop.file("a.json", "\u{feff}[{\"id\":1}]");
    assert_eq!(workshop.counts(&["json", &json]), [1, 0, 0, 0, 0]);
    let mailbox = workshop
        .file("a.mbox", "\u{feff}From a@x Wed Apr  1 10:00:00 2026\nMessage-ID: <m@x>\nSubject: Hi\n\nx\n");
    assert_eq!(workshop.counts(&["mbox", &mailbox]), [1, 0, 0, 0, 0]);
    let table = workshop.file("a.csv", "\u{feff}id\n1\n1,2\n");
    let output = workshop.import(&["csv", &table, "--stream", "t", "--key", "id"]);
    assert!(stderr(&output).contains("a.csv:3: it has 2 fields"), "{output:?}");
}

#[test]
fn a_record_of_more_than_64_mib_is_refused_by_every_importer() {
    let workshop = Workshop::new();
    let long = "x".repeat(64 * 1024 * 1024 + 200_000);
    let json =
        workshop.file("a.json", format!("[{{\"id\":1}},{{\"id\":2,\"t\":[\"{long}\"]}},{{\"id\":3}}]"));
    let said = stderr(&workshop.import(&["json", &json]));
    assert!(
        said.contains("one record is longer than 67108864 bytes") && said.contains("items before"),
        "{said}"
    );
    workshop.fetch("c/a:1");
    let single = workshop.file("b.json", format!("{{\"id\":2,\"t\":[\"{long}\"]}}\n{{\"id\":3}}"));
    assert_eq!(workshop.counts(&["json", &single]), [1, 0, 0, 0, 1]);
    let table = workshop.file("a.csv", format!("id,t\n1,a\n2,\"{long}"));
    let said = stderr(&workshop.import(&["csv", &table, "--stream", "t", "--key", "id"]));
    assert!(said.contains("line 3: one record is longer than 67108864 bytes; is a quote"), "{said}");
    workshop.fetch("c/t:1");
}

#[test]
fn an_ignored_connector_is_reported() {
    let workshop = Workshop::new();
    let file = workshop.file("a.ndjson", LINES);
    let output = workshop.import(&["records", &file, "--connector", "acme"]);
    assert!(output.status.success() && !stderr(&output).contains("acme"), "{output:?}");
    let output = workshop.import(&["records", &file, "--connector", "other"]);
    assert!(stderr(&output).contains("c has the connector acme, which cannot change"), "{output:?}");
}
