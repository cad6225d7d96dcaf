//! Counts of what is skipped by reason, with remedies, the same before an import and after it; and exit codes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::import::sync::{Place, report};
use crate::support::{binary, stderr, stdout, text};

/// A folder with two notes, and files that are skipped for many reasons.
fn mixed() -> Place {
    let place = Place::new();
    place.notes(0..2);
    for (name, content) in [
        (".gitignore", "drafts/\n*.log\n"),
        ("drafts/a.md", "# Draft\n"),
        ("run.log", "line\n"),
        (".cache/a.md", "# Hidden\n"),
        ("node_modules/x/readme.md", "# Module\n"),
        ("clip.mp3", "\u{0}\u{1}"),
        ("photo.jpg", "\u{0}\u{2}"),
        ("wrong.docx", "no document"),
        ("nothing.bin", ""),
        ("broken.pdf", "%PDF-1.7\nnothing"),
        ("orders.csv", "id,name\n1,Ann\n2,Bo,more\n"),
    ] {
        place.write(name, content);
    }
    for name in ["locked.pdf", "scan.pdf"] {
        let file = format!("{}/fixtures/files/{name}", env!("CARGO_MANIFEST_DIR"));
        fs::copy(file, place.origin().join(name)).unwrap();
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("..", place.origin().join("cycle")).unwrap();
        std::os::unix::fs::symlink("missing", place.origin().join("gone.md")).unwrap();
    }
    place
}

/// Returns every file and folder at a place with its content, and a file with its time: a database that is read has files beside
/// it for a moment.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
    let mut all = BTreeMap::new();
    for entry in walkdir::WalkDir::new(folder) {
        let entry = entry.unwrap();
        let is_file = entry.file_type().is_file();
        let content = if is_file { fs::read(entry.path()).unwrap() } else { Vec::new() };
        let time =
            if is_file { entry.metadata().unwrap().modified().unwrap() } else { SystemTime::UNIX_EPOCH };
        all.insert(entry.path().to_owned(), (time, content));
    }
    all
}

/// The records of orders.csv are two, or one and a rejected row.
fn counts_of(summary: &Value) -> [&Value; 3] {
    [&summary["rejected"], &summary["left_out"], &summary["not_read"]]
}

#[test]
fn a_dry_run_an_import_and_an_addition_count_the_same_by_reason() {
    let place = mixed();
    let origin = place.origin();
    let origin = text(&origin);
    let left_out = json!({
        "gitignore": 2, "generated": 1, "hidden": 2, "link": if cfg!(unix) { 2 } else { 0 },
        "unsupported": 1, "unrecognized": 2, "empty": 1
    });
    let dry = place.run(&["add", origin, "--dry-run", "--json"]);
    let imported = place.run(&["import", "files", origin, "--connection", "once", "--json"]);
    let added = place.run(&["add", origin, "--json"]);
    for output in [&dry, &imported, &added] {
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let summary = report(output);
        let [rejected, left, not_read] = counts_of(&summary);
        assert_eq!(left, &left_out, "{summary}");
        assert_eq!(
            (&not_read["encrypted"], &not_read["no_text"], &not_read["damaged"]),
            (&json!(1), &json!(1), &json!(1)),
            "{summary}"
        );
        let all: u64 = not_read.as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
        assert_eq!(rejected, &json!(all), "{summary}");
    }
    assert_eq!(report(&dry)["records"], report(&added)["added"]);
    assert_eq!(report(&imported)["skipped"], 4);
    // A file that could not be read is not counted as new by a synchronization, and keeps its reason.
    let again = place.run(&["sync", "--json"]);
    assert_eq!(again.status.code(), Some(3), "{again:?}");
    let (again, first) = (&report(&again)[0], report(&added));
    assert_eq!(again["not_read"]["encrypted"], 1, "{again}");
    assert_eq!((&again["not_read"]["no_text"], &again["added"]), (&json!(1), &json!(0)), "{again}");
    assert_eq!(again["left_out"]["gitignore"], first["left_out"]["gitignore"], "{again}");
}

#[test]
fn three_reasons_have_their_remedies_and_others_are_counted() {
    let place = mixed();
    let listed = place.path("report.ndjson");
    let origin = place.origin();
    let added = place.run(&["add", text(&origin), "--report", text(&listed)]);
    let said = stderr(&added);
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| {
            ["not read: ", "left out: ", "also not imported: "].iter().any(|start| line.starts_with(start))
        })
        .collect();
    assert_eq!(lines.len(), 4, "{said}");
    assert!(said.contains("not read: 1 encrypted; save these files without a password, and run"), "{said}");
    assert!(said.contains("not read: 1 without readable text; recognize the text with `--ocr`"), "{said}");
    assert!(lines[3].contains("2 hidden") && lines[3].contains("2 named by .gitignore"), "{said}");
    assert!(lines[3].contains("1 of no kind that is read (1 .mp3)"), "{said}");
    let report = fs::read_to_string(&listed).unwrap();
    let lines: Vec<Value> = report.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (path, code) in [
        ("drafts", "gitignore"),
        ("node_modules", "generated"),
        (".cache", "hidden"),
        ("nothing.bin", "empty"),
        ("photo.jpg", "unrecognized"),
        ("wrong.docx", "unrecognized"),
    ] {
        assert!(lines.iter().any(|line| line["skipped"] == path && line["code"] == code), "{path}: {report}");
    }
    // A synchronization that reads nothing says only what could not be read.
    let again = stderr(&place.run(&["sync"]));
    assert!(again.contains("not read: 1 encrypted;") && !again.contains("left out"), "{again}");
}

#[test]
fn a_dry_run_changes_nothing_with_and_without_a_store() {
    let place = mixed();
    let home = place.path("home");
    fs::create_dir(&home).unwrap();
    let origin = place.origin();
    let run = |arguments: &[&str]| -> Output {
        let mut command = binary();
        command.env("HOME", &home).env("XDG_DATA_HOME", home.join("data"));
        command.env("XDG_STATE_HOME", home.join("state")).env("XDG_CONFIG_HOME", home.join("config"));
        command.args(arguments).output().unwrap()
    };
    let before = snapshot(place.folder.path());
    let dry = run(&["add", text(&origin), "--dry-run"]);
    assert_eq!(dry.status.code(), Some(3), "{dry:?}");
    let shown = String::from_utf8(dry.stdout.clone()).unwrap();
    assert!(shown.starts_with("notes: ") && shown.ends_with("; nothing was imported\n"), "{shown}");
    let said = stderr(&dry);
    assert!(said.contains("reading ") && !said.contains("importing "), "{said}");
    assert!(!said.contains("new store"), "{said}");
    assert_eq!(snapshot(place.folder.path()), before);
    // With a store of another import, and with one that has this import.
    for _ in 0..2 {
        assert_eq!(place.add()["added"].as_u64().map(|added| added > 0), Some(true));
        let before = snapshot(place.folder.path());
        for arguments in [&["add", text(&origin), "--dry-run"][..], &["add", text(&home), "--dry-run"]] {
            let dry = place.run(arguments);
            assert!(!String::from_utf8_lossy(&dry.stdout).contains("added"), "{dry:?}");
        }
        assert_eq!(snapshot(place.folder.path()), before);
        stdout(&place.run(&["remove", "notes", "--yes"]));
    }
}

#[test]
fn exit_codes_tell_whole_partial_and_failed_imports_apart() {
    let place = Place::new();
    place.notes(0..1);
    place.write("photo.jpg", "\u{0}\u{2}");
    let origin = place.origin();
    let origin = text(&origin);
    let import = ["import", "files", origin, "--connection", "c"];
    let dry = ["add", origin, "--dry-run"];
    let check = |arguments: &[&str], code: i32| {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
    };
    // A file that is left out by design is no problem.
    for arguments in [&dry[..], &import, &["add", origin], &["sync"]] {
        check(arguments, 0);
    }
    place.write("broken.pdf", "%PDF-1.7\nnothing");
    for arguments in [&dry[..], &import, &["add", origin], &["sync"], &["sync", "notes"]] {
        check(arguments, 3);
    }
    // Nothing can be imported.
    let broken = place.origin().join("broken.pdf");
    let broken = text(&broken);
    for arguments in
        [&["add", broken, "--dry-run"][..], &["import", "pdf", broken, "--connection", "d"], &["add", broken]]
    {
        check(arguments, 1);
    }
    // One of two imports fails as a whole.
    fs::remove_file(broken).unwrap();
    check(&["sync"], 1);
    check(&["sync", "notes"], 0);
    check(&["add", "/no/such/path"], 1);
    check(&["add"], 2);
    for command in ["add", "sync", "import"] {
        let help = stdout(&binary().args([command, "--help"]).output().unwrap());
        assert!(help.contains("Exit codes: 0 if everything was read, 3 if some"), "{help}");
    }
}

#[cfg(unix)]
#[test]
fn a_folder_without_permission_makes_an_import_partial() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.notes(0..1);
    place.write("closed/b.md", "# Closed\n");
    let closed = place.origin().join("closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let is_open = fs::read_dir(&closed).is_ok();
    let added = place.run(&["add", text(&place.origin())]);
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    // A user who may read all files cannot test this.
    if !is_open {
        assert_eq!(added.status.code(), Some(3), "{added:?}");
        assert!(stderr(&added).contains("not read: 1 not readable; check the permissions"), "{added:?}");
    }
}
