//! Imports that share a store with other commands, are killed, or read one file on several threads.
#![cfg(unix)]

use std::fs;
use std::io::Write;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::sync::{Place, kills, report};
use crate::support::{stderr, stdout, text, wait_until};

/// Records of one batch, the unit of a transaction.
const BATCH: u64 = 2_000;

fn envelopes(numbers: std::ops::Range<u64>) -> String {
    let line = |number: u64| {
        let data = json!({"title": format!("record {number}"), "body": "some text of it"});
        format!("{}\n", json!({"stream": "s", "key": format!("k{number}"), "data": data}))
    };
    numbers.map(line).collect()
}

fn count(place: &Place, connection: &str) -> u64 {
    let database = rusqlite::Connection::open(place.store()).unwrap();
    let sql = "SELECT count(*) FROM records r JOIN streams s ON s.id = r.stream
         JOIN connections c ON c.id = s.connection WHERE c.connection_id = ?1 AND r.data IS NOT NULL";
    // The tables are there after the first transaction.
    let count: i64 = database.query_row(sql, [connection], |row| row.get(0)).unwrap_or_default();
    count.unsigned_abs()
}

/// Starts an import of standard input.
fn start_import(place: &Place, connection: &str) -> Child {
    let arguments = ["import", "records", "/dev/stdin", "--connection", connection];
    let mut command = place.command(&arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn other_commands_write_while_an_import_runs() {
    let place = Place::new();
    let mut import = start_import(&place, "slow");
    let mut input = import.stdin.take().unwrap();
    input.write_all(envelopes(0..9_000).as_bytes()).unwrap();
    wait_until("batches are written", || count(&place, "slow") >= 2 * BATCH);
    assert_eq!(count(&place, "slow") % BATCH, 0, "a reader sees complete batches");
    // The import waits for its input. A table and a folder are imported meanwhile, and found.
    let table = place.path("t.csv");
    fs::write(&table, "id,title\n1,capybara\n").unwrap();
    let imported = place.run(&["import", "csv", text(&table), "--connection", "t"]);
    assert!(imported.status.success() && !stderr(&imported).contains("waiting"), "{imported:?}");
    place.notes(0..3);
    assert_eq!(place.add()["added"], 3);
    place.write("later.md", "# Later\n\ncornflower\n");
    assert_eq!(place.sync(&[])[0], 1);
    wait_until("the table is found", || place.search("capybara") == ["t/t:1"]);
    wait_until("the note is found", || place.search("cornflower") == ["notes/documents:later.md"]);
    // Another import of the same connection is refused by name.
    let refused = place.run(&["import", "csv", text(&table), "--connection", "slow"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("another import writes to `slow`"), "{refused:?}");
    input.write_all(envelopes(9_000..10_000).as_bytes()).unwrap();
    drop(input);
    let ended = import.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!((count(&place, "slow"), count(&place, "t"), count(&place, "notes")), (10_000, 1, 4));
    assert_eq!(place.search("9999"), ["slow/s:k9999"]);
    let checked = stdout(&place.run(&["doctor"]));
    assert!(checked.lines().any(|line| line.contains("index") && line.ends_with("complete")), "{checked}");
}

#[test]
fn concurrent_imports_of_several_connections_lose_and_double_nothing() {
    let place = Place::new();
    let files: Vec<String> = (0..3)
        .map(|number| {
            let path = place.path(&format!("{number}.ndjson"));
            fs::write(&path, envelopes(number * 10_000..(number + 1) * 10_000)).unwrap();
            text(&path).to_owned()
        })
        .collect();
    let start = |(number, file): (usize, &String)| {
        let arguments = ["import", "records", file, "--connection", &format!("c{number}")];
        place.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let imports: Vec<Child> = files.iter().enumerate().map(start).collect();
    for mut import in imports {
        assert!(import.wait().unwrap().success());
    }
    for number in 0..3 {
        assert_eq!(count(&place, &format!("c{number}")), 10_000);
        let last = number * 10_000 + 9_999;
        assert_eq!(place.search(&last.to_string()), [format!("c{number}/s:k{last}")]);
    }
}

/// Milliseconds that look random.
fn pause(round: u64, at_most: u64) -> Duration {
    let mixed = (round + 1).wrapping_mul(6_364_136_223_846_793_005).rotate_left(23);
    Duration::from_millis(mixed % at_most)
}

#[test]
fn an_import_that_is_killed_again_and_again_loses_and_doubles_nothing() {
    let kills = kills() as u64;
    let place = Place::new();
    let file = place.path("in.ndjson");
    let arguments = ["import", "records", text(&file), "--connection", "c"];
    let mut interrupted = 0;
    for round in 0..kills {
        // Each file has the records of the earlier ones, and more.
        fs::write(&file, envelopes(0..(round + 1) * 3_000)).unwrap();
        let mut import =
            place.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::park_timeout(pause(round, 1_500));
        interrupted += u64::from(import.try_wait().unwrap().is_none());
        import.kill().unwrap();
        import.wait().unwrap();
        assert!(count(&place, "c") <= (round + 1) * 3_000);
    }
    assert!(interrupted > 0, "no import was killed in the middle");
    let all = kills * 3_000;
    let done = report(&place.run(&[&arguments[..], &["--json"]].concat()));
    assert_eq!(done["added"].as_u64().unwrap() + done["unchanged"].as_u64().unwrap(), all, "{done}");
    assert_eq!(count(&place, "c"), all);
    let again = report(&place.run(&[&arguments[..], &["--json"]].concat()));
    assert_eq!((&again["added"], &again["unchanged"]), (&json!(0), &json!(all)), "{again}");
    // The index has each record once.
    for number in [0, all / 2, all - 1] {
        assert_eq!(place.search(&format!("record {number}"))[0], format!("c/s:k{number}"));
    }
    let checked = stdout(&place.run(&["doctor"]));
    assert!(checked.lines().any(|line| line.contains("index") && line.ends_with("complete")), "{checked}");
}

#[test]
fn a_file_that_is_parsed_on_several_threads_keeps_its_order_and_its_line_numbers() {
    let place = Place::new();
    let broken = |number: u64| number % 1_000 == 999;
    let table = place.path("t.csv");
    let row = |number: u64| if broken(number) { "1,2,3\n".to_owned() } else { format!("row {number},x\n") };
    fs::write(&table, format!("name,b\n{}", (0..5_000).map(row).collect::<String>())).unwrap();
    let lines = place.path("l.jsonl");
    let line = |number: u64| {
        if broken(number) { "{\"name\":\n".to_owned() } else { format!("{{\"name\":\"row {number}\"}}\n") }
    };
    fs::write(&lines, (0..5_000).map(line).collect::<String>()).unwrap();
    for (kind, file, offset) in [("csv", &table, 2), ("json", &lines, 1)] {
        let rejected = place.path("report.ndjson");
        let arguments =
            ["import", kind, text(file), "--connection", kind, "--stream", "s", "--report", text(&rejected)];
        let output = place.run(&arguments);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let listed = fs::read_to_string(&rejected).unwrap();
        let places: Vec<Value> = listed
            .lines()
            .skip(1)
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["rejected"].clone())
            .collect();
        let expect: Vec<Value> = (0..5).map(|at| json!((at * 1_000 + 999 + offset).to_string())).collect();
        assert_eq!(places, expect, "{kind}");
        // The number of a row is its key.
        let database = rusqlite::Connection::open(place.store()).unwrap();
        let sql = "SELECT r.key, r.data FROM records r JOIN streams s ON s.id = r.stream
             JOIN connections c ON c.id = s.connection WHERE c.connection_id = ?1 ORDER BY r.version";
        let mut rows = database.prepare(sql).unwrap();
        let rows = rows.query_map([kind], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)));
        let rows: Vec<(String, String)> = rows.unwrap().map(Result::unwrap).collect();
        let expect: Vec<(String, String)> = (0..5_000)
            .filter(|number| !broken(*number))
            .map(|number| {
                let data = match kind {
                    "csv" => format!("{{\"name\":\"row {number}\",\"b\":\"x\"}}"),
                    _ => format!("{{\"name\":\"row {number}\"}}"),
                };
                ((number + 1).to_string(), data)
            })
            .collect();
        assert!(
            rows == expect,
            "{kind}: {:?}",
            rows.iter().zip(&expect).find(|(found, expect)| found != expect)
        );
    }
}

/// Runs a command with a terminal for both outputs. Returns what it shows.
fn on_terminal(place: &Place, arguments: &[&str]) -> String {
    let code = "import os, pty, sys\nsys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let mut command = crate::support::starter("python3");
    command
        .args(["-c", code, env!("CARGO_BIN_EXE_fetchwell")])
        .args(arguments)
        .args(["--store", &place.store()]);
    let output = command.env("TERM", "xterm").stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn add_sync_and_import_show_their_progress_on_a_terminal_only() {
    let place = Place::new();
    place.notes(0..1_500);
    let table = place.path("t.csv");
    fs::write(&table, (0..20_000).map(|number| format!("{number},x\n")).collect::<String>()).unwrap();
    let shows = |shown: &str| {
        for part in ["KiB/", "/s", "records, "] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        // The last output is the result: the progress is removed.
        assert!(shown.trim_end().lines().next_back().unwrap().contains("added"), "{shown}");
    };
    let origin = place.origin();
    shows(&on_terminal(&place, &["add", text(&origin)]));
    place.notes(1_500..3_000);
    shows(&on_terminal(&place, &["sync", "notes"]));
    shows(&on_terminal(&place, &["import", "csv", text(&table), "--connection", "t"]));
    // The index is brought up to date with its own progress.
    fs::remove_dir_all(place.path("store.db-index")).unwrap();
    place.notes(0..1);
    place.write("more.md", "# More\n");
    let shown = on_terminal(&place, &["sync", "notes"]);
    assert!(shown.contains("completing the search index"), "{shown}");
    // Without a terminal, there is no progress.
    place.write("other.md", "# Other\n");
    let output = place.run(&["sync", "notes"]);
    assert_eq!((stderr(&output).as_str(), stdout(&output).lines().count()), ("", 1), "{output:?}");
}

#[test]
fn a_summary_of_add_has_few_lines() {
    let place = Place::new();
    place.notes(0..2);
    for number in 0..20 {
        place.write(&format!("broken{number}.pdf"), "%PDF-1.7\nnothing");
        place.write(&format!("table{number}.csv"), "a,b\n1,2,3,4,5\n");
        place.write(&format!("data{number}.csv"), "a,b\n1,2,3,4\n");
        place.write(&format!("clip{number}.xyz"), "\0\u{1}");
        place.write(&format!("empty{number}.docx"), "no archive");
    }
    let report_file = place.path("report.ndjson");
    let output = place.run(&["add", text(&place.origin()), "--report", text(&report_file)]);
    let said = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
    // Four of them say what was left out and what to do.
    assert!(said.lines().count() <= 13, "{said}");
    assert!(said.contains("report.ndjson") && said.contains(".xyz"), "{said}");
    let listed = fs::read_to_string(&report_file).unwrap();
    for part in ["broken19.pdf", "table19.csv", "data19.csv", "clip19.xyz", "empty19.docx"] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
}

#[test]
fn a_store_in_a_missing_folder_is_an_error_with_the_remedy() {
    let place = Place::new();
    place.notes(0..1);
    let (origin, store) = (place.origin(), place.path("no/such/store.db"));
    for arguments in
        [&["add", text(&origin)][..], &["import", "markdown", text(&origin), "--connection", "n"]]
    {
        let output =
            crate::support::binary().args(arguments).args(["--store", text(&store)]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = stderr(&output);
        assert!(said.contains("there is no folder") && said.contains("create it"), "{said}");
    }
}
