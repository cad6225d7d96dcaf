//! Imports of files that are encrypted, truncated or written while they are read: each is named and skipped, and
//! everything else is imported.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::import::commands::Workshop;
use crate::import::files::{gzip_of, tar_of, zip_of};
use crate::support::{stderr, text};

/// Returns the path of a fixture.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// A folder with a whole file, which every import of it has to find.
struct Damaged {
    workshop: Workshop,
    folder: PathBuf,
}

impl Damaged {
    fn new() -> Self {
        let workshop = Workshop::new();
        let whole = workshop.file("f/whole.txt", "the whole tamandua");
        Self { folder: Path::new(&whole).parent().unwrap().to_owned(), workshop }
    }

    fn add(&self, name: &str, content: impl AsRef<[u8]>) {
        self.workshop.file(&format!("f/{name}"), content);
    }

    /// Imports the folder. Checks that exactly these files are rejected, each with its reason. Returns the summary.
    #[track_caller]
    fn check(&self, expect: &[(&str, &str)]) -> Value {
        let report = self.folder.with_file_name("report.ndjson");
        let output = self.workshop.import(&["files", text(&self.folder), "--report", text(&report)]);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let report = std::fs::read_to_string(report).unwrap();
        let lines: Vec<Value> = report.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut rejected: Vec<(&str, &str)> = lines
            .iter()
            .filter_map(|line| Some((line.get("rejected")?.as_str()?, line["reason"].as_str()?)))
            .collect();
        rejected.sort_unstable();
        let names: Vec<&str> = rejected.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, expect.iter().map(|(name, _)| *name).collect::<Vec<_>>(), "{rejected:#?}");
        for ((name, reason), (_, part)) in rejected.iter().zip(expect) {
            assert!(reason.contains(part), "{name}: {reason}");
        }
        assert_eq!(self.workshop.search("tamandua"), ["c/documents:whole.txt"]);
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

#[test]
fn encrypted_files_of_every_kind_are_named() {
    let damaged = Damaged::new();
    for name in ["aes.zip", "book.epub", "deck.pptx", "letter.odt", "plan.docx", "trips.ods", "trips.xlsx"] {
        damaged.add(name, std::fs::read(fixture(&format!("samples/encrypted/{name}"))).unwrap());
    }
    damaged.add("locked.pdf", std::fs::read(fixture("files/locked.pdf")).unwrap());
    // An encrypted database has no header, so its kind is not known.
    let noise: Vec<u8> =
        (0..8_192_u32).map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    damaged.add("cipher.db", &noise);
    let summary = damaged.check(&[
        ("aes.zip/secret.txt", "it is encrypted"),
        ("book.epub", "it is encrypted (a book with copy protection)"),
        ("deck.pptx", "it is encrypted; save it without a password"),
        ("letter.odt", "it is encrypted"),
        ("locked.pdf", "it is encrypted: it needs a password"),
        ("plan.docx", "it is encrypted; save it without a password"),
        ("trips.ods", "it is encrypted"),
        ("trips.xlsx", "it is encrypted; save it without a password"),
    ]);
    assert_eq!((&summary["added"], &summary["skipped"]), (&1.into(), &1.into()));
    let named = damaged.workshop.import(&["sqlite", text(&damaged.folder.join("cipher.db"))]);
    let said = stderr(&named);
    assert!(named.status.code() == Some(1) && said.contains("file is not a database"), "{said}");
}

#[test]
fn truncated_files_of_every_kind_are_named() {
    let damaged = Damaged::new();
    let cut = |name: &str, content: &[u8]| damaged.add(name, &content[..content.len() * 3 / 5]);
    for name in ["book.epub", "deck.pptx", "letter.odt", "plan.docx", "report.pdf", "trips.ods", "trips.xlsx"]
    {
        cut(name, &std::fs::read(fixture(&format!("files/{name}"))).unwrap());
    }
    // Texts that do not compress, so that the cut is within one of them.
    let texts: Vec<(String, Vec<u8>)> = (0..40_u64)
        .map(|file| {
            let mut state = file + 1;
            let word = |_: u32| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                format!("{state:016x} ")
            };
            (format!("t{file:02}.txt"), (0..200).map(word).collect::<String>().into_bytes())
        })
        .collect();
    let files: Vec<(&str, &[u8])> =
        texts.iter().map(|(name, content)| (name.as_str(), content.as_slice())).collect();
    cut("zip.zip", &zip_of(&files));
    cut("tar.tar", &tar_of(&files));
    cut("tgz.tar.gz", &gzip_of(&tar_of(&files)));
    let mut mailbox = Vec::new();
    for (name, content) in &files {
        write!(mailbox, "From a@x.test Wed Apr  1 10:00:00 2026\nMessage-ID: <{name}>\nSubject: x\n\n")
            .unwrap();
        mailbox.extend_from_slice(content);
        mailbox.extend_from_slice(b"\n\n");
    }
    cut("mail.mbox.gz", &gzip_of(&mailbox));
    let path = damaged.folder.with_file_name("whole.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    let rows = "CREATE TABLE t (word TEXT);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
        INSERT INTO t SELECT hex(randomblob(500)) FROM n";
    database.execute_batch(rows).unwrap();
    drop(database);
    cut("app.db", &std::fs::read(path).unwrap());
    let event = "BEGIN:VEVENT\nSUMMARY:x\nEND:VEVENT\n";
    damaged.add("plans.ics", format!("BEGIN:VCALENDAR\n{event}BEGIN:VEVENT\nSUMMARY:cut"));
    damaged.add("people.vcf", "BEGIN:VCARD\nFN:Whole\nEND:VCARD\nBEGIN:VCARD\nFN:Cut");
    damaged.add("news.rss", "<rss><channel><item><guid>1</guid></item><item><title>Cut");
    damaged.add("chats.json", "[{\"uuid\":\"u1\",\"chat_messages\":[]},{\"uuid\":\"u2\",\"chat_mess");
    let summary = damaged.check(&[
        ("app.db", "it is no readable database"),
        ("book.epub", "its container is broken"),
        ("chats.json", "its JSON is broken: EOF"),
        ("deck.pptx", "its container is broken"),
        ("letter.odt", "its container is broken"),
        ("mail.mbox", "mail.mbox.gz is incomplete or damaged"),
        ("news.rss", "its XML ends within an element"),
        ("people.vcf", "it ends within a contact"),
        ("plan.docx", "its container is broken"),
        ("plans.ics", "it ends within an event"),
        ("report.pdf", "the end of the file is missing"),
        ("tar.tar", "it is no complete tar archive"),
        ("tgz.tar", "tgz.tar.gz is incomplete or damaged"),
        ("trips.ods", "its container is broken"),
        ("trips.xlsx", "its container is broken"),
        ("zip.zip", "it is no ZIP archive"),
    ]);
    // The part before the cut is kept: of the calendar, the contacts, the feed, the chats, the archives and the mailbox.
    let added = summary["added"].as_u64().unwrap();
    assert!(added > 60, "{summary}");
    for id in ["c/conversations:u1", "c/entries:1", "c/messages:t00.txt", "c/documents/tar.tar%2Ft00.txt"] {
        damaged.workshop.fetch(id);
    }
}

/// A table and a mailbox that a program keeps writing to.
#[test]
fn files_that_change_while_they_are_read_are_named() {
    let damaged = Damaged::new();
    let mail = "From a@x.test Wed Apr  1 10:00:00 2026\nSubject: more\n\nmore\n\n";
    damaged.add("log.csv", format!("word,more\n{}", "x,y\n".repeat(10_000)));
    damaged.add("log.mbox", mail.repeat(3_000));
    let (stop, paths) =
        (AtomicBool::new(false), ["log.csv", "log.mbox"].map(|name| damaged.folder.join(name)));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for (path, more) in paths.iter().zip(["x,z\n", mail]) {
                    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
                    file.write_all(more.as_bytes()).unwrap();
                }
                std::thread::park_timeout(Duration::from_millis(2));
            }
        });
        let imported = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let output = damaged.workshop.import(&["files", text(&damaged.folder)]);
            stderr(&output)
        }));
        stop.store(true, Ordering::Relaxed);
        let said = imported.unwrap();
        for name in ["log.csv", "log.mbox"] {
            let expect = format!("{name}: it was changed while it was read; import it again");
            assert!(said.contains(&expect), "{said}");
        }
    });
    assert_eq!(damaged.workshop.search("tamandua"), ["c/documents:whole.txt"]);
    // The next import has the rest.
    assert_eq!(damaged.workshop.import(&["files", text(&damaged.folder)]).status.code(), Some(0));
}
