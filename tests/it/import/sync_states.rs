//! States of imports that are not up to date: replaced origins, rejected files, removed records, and paths that are no files.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::import::sync::{Place, counts, report, word};
use crate::support::{stderr, stdout, text, wait_until};

#[test]
fn a_watched_folder_that_is_replaced_is_watched_again() {
    let place = Place::new();
    place.notes(0..2);
    place.add();
    let (mut watch, printed) = place.watch();
    // Deleted, and created again after a synchronization found it missing.
    place.write("first.md", "# First\n");
    wait_until("the first note is imported", || printed().contains("1 added"));
    fs::remove_dir_all(place.origin()).unwrap();
    wait_until("the folder is missing", || printed().contains("not up to date"));
    fs::create_dir(place.origin()).unwrap();
    place.notes(0..2);
    place.write("first.md", "# First\n");
    wait_until("the folder is read again", || printed().contains("0 added, 0 changed, 0 deleted"));
    place.write("second.md", "# Second\n");
    wait_until("a note in the new folder is imported", || printed().matches("1 added").count() >= 2);
    // Replaced by another folder at once.
    fs::create_dir(place.path("next")).unwrap();
    for entry in fs::read_dir(place.origin()).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), place.path("next").join(entry.file_name())).unwrap();
    }
    fs::rename(place.origin(), place.path("away")).unwrap();
    fs::rename(place.path("next"), place.origin()).unwrap();
    place.write("third.md", "# Third\n");
    wait_until("the third note is imported", || printed().matches("1 added").count() >= 3);
    place.write("fourth.md", "# Fourth\n");
    wait_until("a note in the other folder is imported", || printed().matches("1 added").count() >= 4);
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn rejected_files_are_counted_until_they_are_read() {
    let place = Place::new();
    place.notes(0..2);
    place.write("broken.pdf", "%PDF-1.7\nnothing");
    let origin = place.origin();
    let added = place.run(&["add", text(&origin)]);
    assert_eq!(added.status.code(), Some(3), "{added:?}");
    let last = |output: &std::process::Output| {
        String::from_utf8(output.stdout.clone()).unwrap().lines().last().unwrap_or_default().to_owned()
    };
    assert_eq!(last(&added), "notes: 2 added, 0 changed, 0 deleted, 1 rejected");
    // The file has not changed, so it is not read, and the import is not up to date.
    for _ in 0..2 {
        let again = place.run(&["sync"]);
        assert_eq!(again.status.code(), Some(3), "{again:?}");
        let expect = "1 import: 1 not completely up to date; 1 item rejected, which `--report FILE` lists";
        assert_eq!(last(&again), expect);
        assert!(stderr(&again).contains("1 file rejected before and not changed since"), "{again:?}");
    }
    let file = place.path("report.ndjson");
    place.run(&["sync", "notes", "--report", text(&file)]);
    let listed: Vec<Value> =
        fs::read_to_string(&file).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert_eq!(
        (&listed[0]["report"], &listed[1]["rejected"]),
        (&json!("fetchwell import"), &json!("broken.pdf"))
    );
    assert!(listed[1]["reason"].is_string(), "{listed:?}");
    fs::remove_file(place.origin().join("broken.pdf")).unwrap();
    let complete = place.run(&["sync"]);
    assert_eq!((complete.status.code(), last(&complete).as_str()), (Some(0), "1 import: up to date"));
}

#[test]
fn removed_records_stay_removed_until_they_are_added_again() {
    let place = Place::new();
    place.notes(0..3);
    place.add();
    let removed = place.run(&["remove", "notes/documents:n1.md", "--yes"]);
    let said = stderr(&removed);
    let said_so = "brings removed records back when their file changes, and `fetchwell add";
    assert!(removed.status.success() && said.contains(said_so), "{removed:?}");
    assert_eq!(place.sync(&[]), [0, 0, 0, 0, 0]);
    assert!(place.search(&word(1)).is_empty());
    // Only the file of the removed record is read again.
    assert_eq!(counts(&place.add()), [1, 0, 0, 1, 0]);
    assert_eq!(place.search(&word(1)), ["notes/documents:n1.md"]);
    place.run(&["remove", "notes/documents", "--yes"]);
    assert_eq!(place.sync(&[]), [0, 0, 0, 0, 0]);
    place.write("n2.md", "# Changed\n");
    assert_eq!(place.sync(&[]), [1, 0, 0, 1, 0]);
    assert_eq!(counts(&place.add())[0], 2);
    assert_eq!(place.records(&place.store()).len(), 3);
    place.run(&["remove", "notes", "--yes"]);
    assert_eq!(counts(&place.add())[0], 3);
}

#[test]
fn adding_again_renames_and_a_dry_run_prints_its_plan() {
    let place = Place::new();
    place.notes(0..2);
    let origin = place.origin();
    let plan = report(&place.run(&["add", text(&origin), "--dry-run", "--json"]));
    assert_eq!(
        plan,
        json!({"connection_id": "notes", "origin": fs::canonicalize(&origin).unwrap(), "kind": "files", "is_known": false, "files": 2, "bytes": 40,
            "records": 2, "rejected": 0})
    );
    place.add();
    let plan = report(&place.run(&["add", text(&origin), "--dry-run", "--json"]));
    assert_eq!((&plan["is_known"], &plan["connection_id"]), (&json!(true), &json!("notes")));
    let renamed = place.run(&["add", text(&origin), "--name", "My notes", "--json"]);
    assert_eq!(counts(&report(&renamed))[..3], [0, 0, 0]);
    let info = stdout(&place.run(&["store", "info"]));
    assert!(info.contains("notes  My notes, files") && info.contains("  synchronized 2"), "{info}");
    let info = report(&place.run(&["store", "info", "--json"]));
    assert_eq!(info["imports"][0]["connection_id"], "notes", "{info}");
    assert!(info["imports"][0]["last_sync"].is_string(), "{info}");
}

#[test]
fn a_folder_without_files_that_are_read_is_refused() {
    let place = Place::new();
    let origin = place.origin();
    let origin = text(&origin);
    let check = |arguments: &[&str], parts: [&str; 2]| {
        let refused = place.run(arguments);
        let said = stderr(&refused);
        assert!(refused.status.code() == Some(1) && refused.stdout.is_empty(), "{arguments:?}: {refused:?}");
        assert!(said.contains("there is nothing to import in ") && said.contains(origin), "{said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{arguments:?}: {said}");
    };
    let (add, import) = (["add", origin], ["import", "files", origin, "--connection", "c"]);
    for arguments in [&add[..], &import[..], &["add", origin, "--dry-run"]] {
        check(arguments, ["a kind that is read (text, markdown, html, ", "; it is empty"]);
    }
    check(&["add", origin, "--kind", "pdf"], ["it has no PDF document (.pdf)", "; it is empty"]);
    place.write("main.bin", "a thing");
    for arguments in [&add[..], &import[..]] {
        check(arguments, ["a kind that is read (text, markdown, html, ", "; found: 1 .bin"]);
    }
    fs::create_dir(place.origin().join(".git")).unwrap();
    check(&add, ["found: 1 .bin", "it is a repository, so `--kind git` imports its commits"]);
    assert!(!Path::new(&place.store()).exists());
    stdout(&place.run(&["project", "create", "handbook"]));
    let docs = ["import", "docs", origin, "--project", "handbook"];
    check(&docs, ["a kind that is read (markdown, text, html, pdf, ", "; found: 1 .bin"]);
    let sync = place.run(&["sync"]);
    assert!(stderr(&sync).contains("the store remembers no import"), "{sync:?}");
    place.notes(0..1);
    assert_eq!(place.add()["added"], 1);
}

#[cfg(unix)]
#[test]
fn pipes_sockets_and_devices_are_refused() {
    let place = Place::new();
    let (fifo, socket, binary) = (place.path("fifo"), place.path("socket"), place.path("bin.dat"));
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    fs::write(&binary, [0, 159, 146, 150, 0, 1]).unwrap();
    for (arguments, expect) in [
        (vec!["add", text(&fifo)], "is a pipe (FIFO); write its content to a file"),
        (vec!["add", text(&fifo), "--kind", "csv"], "is a pipe (FIFO)"),
        (vec!["import", "files", text(&fifo), "--connection", "c"], "is a pipe (FIFO)"),
        (vec!["add", text(&socket)], "is a socket; name a file or a folder"),
        (vec!["import", "csv", text(&socket), "--connection", "c"], "is a socket"),
        (vec!["add", "/dev/zero"], "is a device"),
        (vec!["import", "json", "/dev/zero", "--connection", "c"], "is a device"),
        (vec!["add", text(&binary)], "bin.dat is not known; if it is text, add `--kind text`"),
    ] {
        let refused = place.run(&arguments);
        let said = stderr(&refused);
        assert!(refused.status.code() == Some(1) && said.contains(expect), "{arguments:?}: {said}");
        assert!(!said.contains("check the path and its permissions"), "{said}");
    }
}

#[test]
fn errors_of_an_empty_store_and_of_exports_name_the_remedy() {
    let place = Place::new();
    fs::write(place.store(), "").unwrap();
    let refused = place.run(&["search", "x"]);
    assert!(stderr(&refused).contains("(the file is missing or empty)"), "{refused:?}");
    assert_eq!(refused.status.code(), Some(2), "a failed search is not an empty one");
    place.notes(0..2);
    place.write("t.csv", "id,title\n1,x\n");
    place.add();
    assert_eq!(place.run(&["search", "nothingofthiskind"]).status.code(), Some(1));
    let to_stdout = stdout(&place.run(&["export", "notes", "--format", "ndjson", "--output", "-"]));
    assert_eq!(to_stdout.lines().count(), 3, "{to_stdout}");
    let file = place.path("file");
    fs::write(&file, "mine").unwrap();
    for (arguments, expect) in [
        (vec!["--format", "md", "--output", "-"], "error: this export has several files; name a folder"),
        (vec!["--format", "md", "--output", text(&file)], "file is a file; name a folder"),
        (vec!["--format", "ndjson", "--output", text(&file)], "file exists; add --force"),
        (vec!["--format", "ndjson", "--output", text(&place.origin())], "notes exists; add --force"),
    ] {
        let refused = place.run(&[vec!["export", "notes"], arguments].concat());
        let said = stderr(&refused);
        assert!(refused.status.code() == Some(1) && said.contains(expect), "{said}");
        assert!(!said.contains("cannot be written"), "{said}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn results_that_cannot_be_written_are_an_error() {
    let place = Place::new();
    place.notes(0..2);
    place.add();
    for (arguments, code) in [
        (vec!["connections"], 1),
        (vec!["connections", "--json"], 1),
        (vec!["store", "info"], 1),
        (vec!["sync"], 1),
        (vec!["search", "note"], 2),
        (vec!["export", "notes", "--format", "ndjson"], 1),
        (vec!["remove", "notes", "--dry-run"], 1),
        (vec!["export", "--help"], 1),
    ] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let failed = place.command(&arguments).stdout(full).output().unwrap();
        let said = stderr(&failed);
        assert_eq!(failed.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains("standard output cannot be written"), "{said}");
    }
    // A reader that has read enough closes the pipe, which is no error.
    let mut closed = place.command(&["connections"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(closed.stdout.take());
    assert!(closed.wait().unwrap().success());
}

#[test]
fn large_synchronizations_are_indexed_to_their_last_record() {
    let place = Place::new();
    let table = |numbers: std::ops::Range<usize>, suffix: &str| {
        let rows = numbers.map(|number| format!("{number},{}{suffix}\n", word(number)));
        place.write("words.csv", &format!("id,title\n{}", rows.collect::<String>()));
    };
    // A search would complete the index, so its version is compared first.
    let check_complete = || {
        let index = fs::read_to_string(place.path("store.db-index/meta.json")).unwrap();
        // A checksum follows the JSON.
        let mut values = serde_json::Deserializer::from_str(&index).into_iter::<Value>();
        let payload = values.next().unwrap().unwrap()["payload"].clone();
        let payload: Value = serde_json::from_str(payload.as_str().unwrap()).unwrap();
        let info = report(&place.run(&["store", "info", "--json"]));
        assert_eq!(payload["version"], info["version"], "{payload} {info}");
    };
    table(0..9_000, "");
    assert_eq!(place.add()["added"], 9_000);
    check_complete();
    let id = |number: usize| format!("notes/rows/words.csv%2F{number}");
    for number in [0, 1_999, 2_000, 5_000, 8_999] {
        assert_eq!(place.search(&word(number)), [id(number)]);
    }
    // The records of all batches change, the first thousand disappear, and others are new.
    table(1_000..9_500, "zq");
    assert_eq!(place.sync(&[])[..3], [500, 8_000, 1_000]);
    check_complete();
    for number in [1_000, 4_000, 8_999, 9_499] {
        assert_eq!(place.search(&format!("\"{}zq\"", word(number))), [id(number)]);
    }
    assert!(place.search(&format!("\"{}\"", word(999))).is_empty());
}
