//! The order of records of a folder with files that are parsed on several threads.

use serde_json::Value;

use crate::support::{binary, fetchwell, stdout, text};

/// Number of files in the folder.
const FILES: usize = 240;

#[test]
fn records_are_written_in_the_order_of_the_paths() {
    let folder = tempfile::tempdir().unwrap();
    let documents = folder.path().join("documents");
    std::fs::create_dir(&documents).unwrap();
    for n in 0..FILES {
        // A large file between small ones is parsed last.
        let words = if n % 40 == 7 { "word ".repeat(60_000) } else { format!("text {n}") };
        let (name, content) = match n % 6 {
            0 => (format!("f{n:03}.md"), format!("# Note {n}\n\n{words}\n")),
            1 => (format!("f{n:03}.html"), format!("<title>Page {n}</title><p>{words}</p>")),
            2 => (format!("f{n:03}.csv"), format!("id,name\n{n},{words}\n")),
            3 => (format!("f{n:03}.pdf"), "%PDF-1.7 that is broken".to_owned()),
            4 => (format!("f{n:03}.xyz"), "\u{0}\u{1}".to_owned()),
            _ => (format!("f{n:03}.txt"), words),
        };
        std::fs::write(documents.join(name), content).unwrap();
    }
    let import = |name: &str| -> (Vec<String>, Vec<String>) {
        let (store, report) = (folder.path().join(name), folder.path().join(format!("{name}.report")));
        let place = ["--store", text(&store), "--connection", "c", "--report", text(&report)];
        binary().args(["import", "files", text(&documents)]).args(place).output().unwrap();
        let read = |lines: &str, field: &str| -> Vec<String> {
            let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            lines.filter_map(|line| line[field].as_str().map(str::to_owned)).collect()
        };
        let export = |stream: &str| {
            let scope = format!("c/{stream}");
            stdout(&fetchwell(["export", &scope, "--format", "ndjson", "--store", text(&store)]))
        };
        let report = std::fs::read_to_string(report).unwrap();
        let records = [read(&export("documents"), "key"), read(&export("rows"), "key")].concat();
        (records, [read(&report, "rejected"), read(&report, "skipped")].concat())
    };
    let (records, others) = import("one.db");
    assert_eq!((records.len(), others.len()), (FILES / 6 * 4, FILES / 6 * 2));
    for list in [&records[..FILES / 2], &records[FILES / 2..], &others[..FILES / 6], &others[FILES / 6..]] {
        assert!(list.is_sorted(), "{list:?}");
    }
    assert_eq!(import("two.db"), (records, others));
}
