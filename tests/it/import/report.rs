//! Messages of an import about records and files that it rejects or skips, and its report file.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::support::{binary, stderr, stdout};

/// Lines of record envelopes: `good` valid ones and some with each of three mistakes.
fn lines(good: usize, bad: usize) -> String {
    let mut lines = String::new();
    for n in 0..good {
        lines
            .push_str(&format!("{{\"stream\":\"notes\",\"key\":\"n{n}\",\"data\":{{\"body\":\"text\"}}}}\n"));
    }
    for n in 0..bad {
        lines.push_str(match n % 3 {
            0 => "{\"stream\":\"notes\",\"data\":{}}\n",
            1 => "{\"stream\":\"notes\",\"key\":\"n\",\"op\":\"upsert\"}\n",
            _ => "{\"stream\":\"..\",\"key\":\"n\",\"data\":{}}\n",
        });
    }
    lines
}

fn import(folder: &Path, arguments: &[&str]) -> Output {
    let place = ["--store", "s.db", "--connection", "c"];
    binary().arg("import").args(arguments).args(place).current_dir(folder).output().unwrap()
}

fn report(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn many_rejections_are_at_most_ten_lines_and_all_are_in_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.ndjson");
    std::fs::write(&path, lines(5, 600)).unwrap();
    let output = import(folder.path(), &["records", "in.ndjson", "--report", "report.ndjson"]);
    assert_eq!(output.status.code(), Some(3));
    let said = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
    assert!(said.lines().count() <= 10, "{said}");
    for part in ["5 added", "600 rejected", "200 rejected, first 6", "report.ndjson", "there is no `key`"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let listed = report(&folder.path().join("report.ndjson"));
    assert_eq!(listed[0]["report"], "fetchwell import");
    assert_eq!(listed.len(), 1 + 600);
    assert_eq!((listed[1]["rejected"].as_str(), listed[600]["rejected"].as_str()), (Some("6"), Some("605")));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let metadata = std::fs::metadata(folder.path().join("report.ndjson")).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    }
    // Without a report, the summary says how to get one.
    assert!(stderr(&import(folder.path(), &["records", "in.ndjson"])).contains("--report FILE"));
    // The next report replaces the earlier one.
    std::fs::write(&path, lines(5, 7)).unwrap();
    let output = import(folder.path(), &["records", "in.ndjson", "--report", "report.ndjson"]);
    assert_eq!(report(&folder.path().join("report.ndjson")).len(), 1 + 7);
    // A few are named one by one.
    let said = stderr(&output);
    assert!((6..=12).all(|line| said.contains(&format!("in.ndjson:{line}: "))), "{said}");
}

#[test]
fn skipped_files_are_counted_and_named_in_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let documents = folder.path().join("documents");
    std::fs::create_dir(&documents).unwrap();
    std::fs::write(documents.join("note.md"), "# A note\n").unwrap();
    std::fs::write(documents.join("clip.mp3"), [0xff, 0xfb, 0, 0, 1, 2]).unwrap();
    std::fs::write(documents.join("broken.pdf"), "%PDF-1.7\nnothing").unwrap();
    let output = import(folder.path(), &["files", "documents", "--report", "report.ndjson"]);
    assert!(stderr(&output).contains("1 .mp3"), "{output:?}");
    // The path is one that a user can copy.
    let path = Path::new("documents").join("broken.pdf");
    assert!(stderr(&output).contains(&format!("{}: ", path.display())), "{output:?}");
    let listed = report(&folder.path().join("report.ndjson"));
    assert!(listed.iter().any(|line| line["skipped"] == "clip.mp3"), "{listed:?}");
    assert!(listed.iter().any(|line| line["rejected"] == "broken.pdf"), "{listed:?}");
}

#[test]
fn a_report_replaces_no_other_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in.ndjson"), lines(5, 0)).unwrap();
    for (name, content) in [("mine.txt", "mine"), ("in.ndjson", "")] {
        if !content.is_empty() {
            std::fs::write(folder.path().join(name), content).unwrap();
        }
        let refused = import(folder.path(), &["records", "in.ndjson", "--report", name]);
        assert!(stderr(&refused).contains("is no report of fetchwell"), "{refused:?}");
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("mine.txt")).unwrap(), "mine");
    assert!(!folder.path().join("s.db").exists());
    let imported = import(folder.path(), &["records", "in.ndjson", "--report", "new.ndjson"]);
    assert!(stdout(&imported).contains("5 added"), "{imported:?}");
}
