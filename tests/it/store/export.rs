//! `fetchwell export`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use crate::support::{binary, demo_store, fetchwell, import_records, stderr, stdout, text};

/// A store of a connection with one stream, with hostile keys and texts.
fn hostile_store() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("s.db");
    let lines: Vec<String> = [
        ("../../escape", json!({"title": "=HYPERLINK(\"http://x\")", "body": "one"})),
        ("/etc/passwd", json!({"title": "+1", "body": "two\r\nlines, \"quoted\""})),
        ("CON", json!({"title": "-cmd|x", "amount": -5.5})),
        ("m1", json!({"title": "@SUM", "tags": ["a", "b"], "nested": {"x": 1}})),
        ("M1", json!({"title": "Über \u{1b}[2J \u{202e}", "body": "three"})),
        ("a\nb", json!({"title": "---", "body": "---\nfour"})),
    ]
    .into_iter()
    .map(|(key, data)| json!({"stream": "st ream", "key": key, "data": data}).to_string())
    .collect();
    import_records(&store, "c", &lines.join("\n"));
    (folder, store)
}

fn export(store: &Path, arguments: &[&str]) -> Output {
    binary().arg("export").args(arguments).args(["--store", text(store)]).output().unwrap()
}

fn connections(store: &Path) -> Value {
    serde_json::from_str(&stdout(&fetchwell(["connections", "--store", text(store), "--json"]))).unwrap()
}

#[test]
fn exported_lines_are_imported_as_the_same_records() {
    let (_hostile, hostile) = hostile_store();
    let (_demo, demo) = demo_store();
    for (store, connection) in [(&hostile, "c"), (&demo, "cin_work"), (&demo, "cin_home")] {
        let lines = stdout(&export(store, &[connection, "--format", "ndjson"]));
        let folder = tempfile::tempdir().unwrap();
        let again = folder.path().join("again.db");
        import_records(&again, connection, &lines);
        let streams = |store: &Path| {
            let mut all = connections(store);
            let all = all.as_array_mut().unwrap();
            all.iter_mut().find(|known| known["connection_id"] == connection).unwrap()["streams"].take()
        };
        assert_eq!(streams(&again), streams(store));
        // Keys, fields in their order and times are the same, so a second export is, too.
        assert_eq!(stdout(&export(&again, &[connection, "--format", "ndjson"])), lines);
    }
}

#[test]
fn deleted_records_are_not_exported() {
    let (folder, store) = hostile_store();
    import_records(&store, "c", "{\"stream\":\"st ream\",\"key\":\"m1\",\"op\":\"delete\"}");
    let file = folder.path().join("out.ndjson");
    let said = stdout(&export(&store, &["c/st ream", "--format", "ndjson", "--output", text(&file)]));
    assert!(said.contains("5 records"), "{said}");
    assert!(!std::fs::read_to_string(&file).unwrap().contains("@SUM"));
}

#[test]
fn tables_have_all_fields_and_no_formulas() {
    let (folder, store) = hostile_store();
    let table = stdout(&export(&store, &["c", "--format", "csv"]));
    let mut reader = csv::Reader::from_reader(table.as_bytes());
    let heading: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    assert_eq!(heading, ["_key", "_emitted_at", "title", "body", "amount", "nested", "tags"]);
    let rows: Vec<Vec<String>> =
        reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect();
    let titles: Vec<&str> = rows.iter().map(|row| row[2].as_str()).collect();
    assert_eq!(titles[..4], ["'=HYPERLINK(\"http://x\")", "+1", "'-cmd|x", "'@SUM"]);
    assert_eq!(rows[1][3], "two\r\nlines, \"quoted\"");
    assert_eq!((&*rows[2][4], &*rows[3][5], &*rows[3][6]), ("-5.5", "{\"x\":1}", "[\"a\",\"b\"]"));
    // Several streams are several files of a folder.
    let (_demo, demo) = demo_store();
    let refused = export(&demo, &["cin_work", "--format", "csv"]);
    assert!(stderr(&refused).contains("--output"), "{refused:?}");
    let out = folder.path().join("tables");
    stdout(&export(&demo, &["cin_work", "--format", "csv", "--output", text(&out)]));
    let streams = connections(&demo)[0]["streams"].as_array().unwrap().len();
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), streams);
}

#[test]
fn documents_stay_in_their_folder() {
    let (folder, store) = hostile_store();
    let out = folder.path().join("deep/documents");
    stdout(&export(&store, &["c/st ream", "--format", "md", "--output", text(&out)]));
    let files: Vec<PathBuf> = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).collect();
    let folded: BTreeSet<String> =
        files.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_lowercase()).collect();
    assert_eq!(folded.len(), 6, "{folded:?}");
    assert!(
        files.iter().all(|path| path.is_file()) && folded.contains("m1.md") && !folded.contains("con.md")
    );
    let beside: BTreeSet<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with("s.db"))
        .collect();
    assert_eq!(beside, BTreeSet::from(["deep".to_owned()]));
    // They are read back as notes with their fields.
    let again = folder.path().join("again.db");
    let (store, out) = (text(&again).to_owned(), text(&out).to_owned());
    stdout(&fetchwell(["import", "markdown", &out, "--store", &store, "--connection", "n"]));
    assert!(stdout(&fetchwell(["search", "four", "--store", &store])).contains("n/documents"));
    #[cfg(unix)]
    for path in files {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn an_export_replaces_only_with_force() {
    let (folder, store) = hostile_store();
    let file = folder.path().join("out.csv");
    std::fs::write(&file, "mine").unwrap();
    let arguments = ["c", "--format", "csv", "--output", text(&file)];
    let refused = export(&store, &arguments);
    assert!(!refused.status.success() && stderr(&refused).contains("--force"), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    std::fs::remove_file(&file).unwrap();
    stdout(&export(&store, &arguments));
    let refused = export(&store, &arguments);
    assert!(!refused.status.success() && stderr(&refused).contains("--force"), "{refused:?}");
    stdout(&export(&store, &[&arguments[..], &["--force"]].concat()));
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("_key,"));
    let out = folder.path().join("md");
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("mine.txt"), "mine").unwrap();
    let arguments = ["c", "--format", "md", "--output", text(&out)];
    let refused = export(&store, &arguments);
    assert!(!refused.status.success() && stderr(&refused).contains("--force"), "{refused:?}");
    for _again in 0..2 {
        stdout(&export(&store, &[&arguments[..], &["--force"]].concat()));
    }
    assert!(out.join("mine.txt").exists());
    for (arguments, part) in [
        (&["lost", "--format", "csv"][..], "no connection `lost`"),
        (&["c/lost", "--format", "csv"], "no stream `lost`"),
        (&["c/st ream:m1", "--format", "csv"], "is one record"),
        (&["c", "--format", "md"], "--output"),
        (&["c", "--format", "markdown"], "--output"),
        (&["c", "--format", "xml"], "possible values: ndjson, csv, md"),
    ] {
        let refused = export(&store, arguments);
        assert!(!refused.status.success() && stderr(&refused).contains(part), "{refused:?}");
    }
}

#[test]
fn only_an_earlier_export_is_replaced() {
    let (folder, store) = hostile_store();
    let thesis = folder.path().join("thesis.txt");
    std::fs::write(&thesis, "my own words").unwrap();
    for path in [&store, &thesis] {
        let before = std::fs::read(path).unwrap();
        for format in ["ndjson", "csv"] {
            let refused = export(&store, &["c", "--format", format, "--output", text(path), "--force"]);
            assert!(!refused.status.success(), "{refused:?}");
            assert!(stderr(&refused).contains("no earlier export"), "{refused:?}");
        }
        assert!(std::fs::read(path).unwrap() == before, "{} is unchanged", path.display());
    }
}
