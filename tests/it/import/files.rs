//! `fetchwell import` of files of many kinds: folders, archives and mail.

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::import::commands::Workshop;
use crate::import::values::record;
use crate::support::{stderr, text};

pub(crate) const MAIL: &str = "From: Ann <ann@x.test>\nTo: bob@x.test\nSubject: Ferry tickets\nMessage-ID: <m1@x.test>\nDate: Wed, 1 Apr 2026 10:00:00 +0000\n\nThe ferry to Oslo leaves at noon.\n";

pub(crate) fn gzip_of(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in files {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

pub(crate) fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mtime(1_775_037_600);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

/// Returns the folder of the workshop's files.
fn folder(workshop: &Workshop, name: &str) -> String {
    text(&Path::new(&workshop.store()).with_file_name(name)).to_owned()
}

#[test]
fn text_and_web_pages_are_imported() {
    let workshop = Workshop::new();
    workshop.file("f/notes/plan.txt", "\u{FEFF}Line one\nthe unusual word quokka\n");
    workshop.file("f/latin.txt", b"Ren\xE9 and the marmot\n");
    let page = "<!doctype html><title>Trip</title><meta name=author content=Ann>\
        <meta property='article:published_time' content='2026-04-01T10:00:00Z'><script>hidden()</script><p>By ferry";
    workshop.file("f/page.html", page);
    let folder = folder(&workshop, "f");
    assert_eq!(workshop.counts(&["text", &folder]), [2, 0, 0, 0, 0]);
    assert_eq!(workshop.search("quokka"), ["c/documents/notes%2Fplan.txt"]);
    assert_eq!(workshop.search("René marmot")[0], "c/documents:latin.txt");
    assert_eq!(workshop.counts(&["html", &folder]), [1, 0, 0, 0, 0]);
    let (data, time) = record(&workshop, "page.html");
    assert_eq!(
        (&data["title"], &data["author"], &data["body"]),
        (&"Trip".into(), &"Ann".into(), &"By ferry".into())
    );
    assert_eq!(time.as_deref(), Some("2026-04-01T10:00:00Z"));
}

#[test]
fn mail_files_and_maildirs_are_imported() {
    let workshop = Workshop::new();
    workshop.file("f/a.eml", MAIL);
    let other = MAIL.replace("m1@", "m2@").replace("noon", "midnight");
    workshop.file("m/cur/1.host:2,S", &other);
    workshop.file("m/.Sent.2026/cur/2.host", MAIL.replace("m1@", "m3@").replace("noon", "dawn"));
    std::fs::create_dir_all(Path::new(&folder(&workshop, "m")).join(".Sent.2026/new")).unwrap();
    assert_eq!(workshop.counts(&["eml", &folder(&workshop, "f/a.eml")]), [1, 0, 0, 0, 0]);
    assert_eq!(workshop.counts(&["maildir", &folder(&workshop, "m")]), [2, 0, 0, 0, 0]);
    assert_eq!(workshop.search("midnight"), ["c/messages:m2@x.test"]);
    let (data, time) = record(&workshop, "m3@x.test");
    assert_eq!((&data["folder"], &data["path"]), (&"Sent/2026".into(), &".Sent.2026/cur/2.host".into()));
    assert_eq!(time.as_deref(), Some("2026-04-01T10:00:00Z"));
}

/// Bytes of an attachment that is not encoded, or of an encoding that a message does not declare.
#[test]
fn messages_and_mailboxes_with_control_characters_are_imported() {
    let workshop = Workshop::new();
    let mail = |id: &str| MAIL.replace("m1@", &format!("{id}@")).replace("noon", "noon \0\u{1}");
    workshop.file("f/a.eml", mail("a"));
    workshop.file("f/Mail/cur/1.host:2,S", mail("b"));
    workshop.file("f/box.mbox", format!("From a@x.test Wed Apr  1 10:00:00 2026\n{}\n", mail("c")));
    assert_eq!(workshop.counts(&["files", &folder(&workshop, "f")]), [3, 0, 0, 0, 0]);
    let mut found = workshop.search("\"ferry to Oslo\"");
    found.sort_unstable();
    assert_eq!(found, ["c/messages:a@x.test", "c/messages:b@x.test", "c/messages:c@x.test"]);
}

#[test]
fn archives_of_files_are_imported() {
    let workshop = Workshop::new();
    let mailbox = format!("From ann@x.test Wed Apr  1 10:00:00 2026\n{MAIL}\n");
    let path = workshop.file("mail.mbox.gz", gzip_of(mailbox.as_bytes()));
    assert_eq!(workshop.counts(&["mbox", &path]), [1, 0, 0, 0, 0]);
    let inner = tar_of(&[("deep/note.md", b"# Deep\nthe word axolotl\n"), ("photo.jpg", b"\xFF\xD8\xFF")]);
    let zip = zip_of(&[
        ("a/text.txt", b"the word pangolin"),
        ("inner.tgz", &gzip_of(&inner)),
        ("Takeout/Mail/All mail.mbox", mailbox.replace("m1@", "m4@").as_bytes()),
        ("../evil.txt", b"out"),
    ]);
    let path = workshop.file("files.zip", zip);
    let output = workshop.import(&["zip", &path]);
    let said = stderr(&output);
    assert!(said.contains("files.zip/../evil.txt: its name leads out of the archive"), "{said}");
    assert!(!Path::new(&folder(&workshop, "evil.txt")).exists());
    assert_eq!(workshop.search("pangolin"), ["c/documents/files.zip%2Fa%2Ftext.txt"]);
    assert_eq!(workshop.search("axolotl"), ["c/documents/files.zip%2Finner.tar%2Fdeep%2Fnote.md"]);
    let (data, _) = record(&workshop, "m4@x.test");
    assert_eq!(data["path"], "files.zip/Takeout/Mail/All mail.mbox");
    let tar = workshop.file("files.tar.gz", gzip_of(&inner));
    assert_eq!(workshop.counts(&["tar", &tar]), [1, 0, 0, 0, 0]);
    let (_, time) = record(&workshop, "files.tar/deep/note.md");
    assert_eq!(time.as_deref(), Some("2026-04-01T10:00:00Z"));
    let takeout = Workshop::new();
    let zip = zip_of(&[("Takeout/Mail/x.mbox", mailbox.as_bytes()), ("Takeout/note.txt", b"no mail")]);
    let path = takeout.file("takeout.zip", zip);
    assert_eq!(takeout.counts(&["takeout", &path]), [1, 0, 0, 0, 0]);
}

#[test]
fn a_mixed_folder_is_imported_and_other_kinds_are_named() {
    let workshop = Workshop::new();
    workshop.file("f/a.txt", "one");
    workshop.file("f/b.md", "# Two");
    workshop.file("f/mail.eml", MAIL);
    workshop.file("f/table.csv", "id,name,date\n7,the lemur,2026-04-01\n8,x,2026-04-02\n");
    workshop.file("f/photo.jpg", b"\xFF\xD8\xFF\x00");
    workshop.file("f/wrong.pdf", "no PDF at all");
    workshop.file("f/broken.zip", b"PK\x03\x04 and no more");
    #[cfg(unix)]
    std::os::unix::fs::symlink("/etc/passwd", Path::new(&folder(&workshop, "f")).join("link.txt")).unwrap();
    let output = workshop.import(&["files", &folder(&workshop, "f")]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("broken.zip: it is no ZIP archive"), "{said}");
    assert!(
        said.contains("left out: 1 of no kind that is read (1 .jpg); save such files in a format"),
        "{said}"
    );
    assert!(said.contains("1 with other content than the extension says (1 .pdf)"), "{said}");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&summary["added"], &summary["rejected"], &summary["skipped"]),
        (&5.into(), &1.into(), &2.into())
    );
    assert_eq!(workshop.search("lemur"), ["c/rows/table.csv%2F7"]);
    let (data, time) = record(&workshop, "table.csv/7");
    assert_eq!((&data["path"], time.as_deref()), (&"table.csv".into(), Some("2026-04-01")));
    assert!(workshop.search("root").is_empty());
}

#[cfg(unix)]
#[test]
fn files_without_permission_are_named() {
    use std::os::unix::fs::PermissionsExt;
    let workshop = Workshop::new();
    workshop.file("f/a.txt", "one");
    let closed = workshop.file("f/b.txt", "two");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::read(&closed).is_ok() {
        // This user may read all files, so nothing can be tested.
        return;
    }
    let said = stderr(&workshop.import(&["text", &folder(&workshop, "f")]));
    assert!(said.contains("b.txt: Permission denied"), "{said}");
    assert_eq!(workshop.search("one"), ["c/documents:a.txt"]);
}

#[test]
fn a_bomb_in_a_folder_is_rejected_without_others() {
    let workshop = Workshop::new();
    let zeros = vec![b'a'; 60 << 20];
    workshop.file("f/bomb.zip", zip_of(&[("a.bin", &zeros), ("b.bin", &zeros), ("c.txt", &zeros)]));
    workshop.file("f/bomb.txt.gz", gzip_of(&vec![b'a'; 100 << 20]));
    workshop.file("f/good.txt", "fine");
    let output = workshop.import(&["files", &folder(&workshop, "f")]);
    let said = stderr(&output);
    assert!(said.contains("bomb.txt: it is larger than 67108864 bytes"), "{said}");
    assert_eq!(workshop.search("fine"), ["c/documents:good.txt"]);
}
