//! Attachments of mail: their text is found, named and fetched, and one that cannot be read leaves its message whole.

use std::fmt::Write as _;
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::import::commands::Workshop;
use crate::import::files::{gzip_of, tar_of, zip_of};
use crate::import::values::record;
use crate::support::{Model, fetchwell, stderr, stdout, text};

/// Returns the bytes of a fixture.
fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)).unwrap()
}

/// A message that is being written.
pub(super) struct Mail {
    id: String,
    parts: String,
}

impl Mail {
    pub(super) fn new(id: &str) -> Self {
        Self { id: id.to_owned(), parts: String::new() }
    }

    /// Adds an attachment. `header` is the value of the header `Content-Type`.
    pub(super) fn attach(mut self, header: &str, content: &[u8]) -> Self {
        let encoded = BASE64_STANDARD.encode(content);
        let lines: Vec<&str> =
            encoded.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
        write!(
            self.parts,
            "--b-{}\nContent-Type: {header}\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment\n\n{}\n",
            self.id,
            lines.join("\n")
        )
        .unwrap();
        self
    }

    fn file(self, name: &str, content: &[u8]) -> Self {
        self.attach(&format!("application/octet-stream; name=\"{name}\""), content)
    }

    pub(super) fn written(self) -> String {
        let Self { id, parts } = self;
        format!(
            "From: Ann <ann@x.test>\nSubject: Papers of {id}\nMessage-ID: <{id}@x.test>\nDate: Wed, 1 Apr 2026 10:00:00 +0000\n\
             Content-Type: multipart/mixed; boundary=\"b-{id}\"\n\n--b-{id}\n\nSee below\n{parts}--b-{id}--\n"
        )
    }

    /// Imports the message alone, and returns its fields.
    #[track_caller]
    fn import(self, workshop: &Workshop) -> Value {
        let key = format!("{}@x.test", self.id);
        let file = workshop.file(&format!("{}.eml", self.id), self.written());
        let [added, changed, unchanged, _, rejected] = workshop.counts(&["eml", &file]);
        assert_eq!((added + changed + unchanged, rejected), (1, 0));
        record(workshop, &key).0
    }
}

/// Returns the name and the reason of each attachment that was not read.
fn problems(data: &Value) -> Vec<(&str, &str)> {
    let problems = data["attachment_problems"].as_array().map(Vec::as_slice).unwrap_or_default();
    problems
        .iter()
        .map(|problem| (problem["name"].as_str().unwrap(), problem["reason"].as_str().unwrap()))
        .collect()
}

#[test]
fn documents_of_every_kind_are_found_by_their_text() {
    let latin: Vec<u8> = "Zürich has a dassie".chars().map(|character| character as u8).collect();
    let nested = Mail::new("inner").file("plan.docx", &fixture("files/plan.docx")).written();
    for (name, content, word, expect) in [
        ("plan.docx", fixture("files/plan.docx"), "quokka", "Port\tTime\nOslo\t12:00"),
        ("deck.pptx", fixture("files/deck.pptx"), "pangolin", "An axolotl swims below deck."),
        ("letter.odt", fixture("files/letter.odt"), "wombat", "Ferry letter\n\nDear Bob"),
        ("book.epub", fixture("files/book.epub"), "numbat", "A numbat reads the tide table."),
        ("report.pdf", fixture("files/report.pdf"), "tapir", "Ferry report\n\nPage 1"),
        (
            "trips.xlsx",
            fixture("files/trips.xlsx"),
            "capybara",
            "[Trips]\nTitle\tDate\tPrice\tPaid\tNote\nOslo\t2026-04-01\t120\ttrue\twith a capybara",
        ),
        ("trips.ods", fixture("files/trips.ods"), "Bergen", "Title\tDate\tPrice\nOslo\t2026-04-01\t120"),
        ("page.html", b"<title>T</title><p>a <b>numbat</b> sat".to_vec(), "numbat", "a numbat sat"),
        ("latin.txt", latin.clone(), "dassie", "Zürich has a dassie"),
        (
            "latin.csv",
            [b"id;animal\n1;".to_vec(), latin].concat(),
            "dassie",
            "id\tanimal\n1\tZürich has a dassie",
        ),
        ("utf8.csv", b"id,animal\n1,dassie".to_vec(), "dassie", "id,animal\n1,dassie"),
        ("plans.ics", fixture("samples/plans.ics"), "VEVENT", ""),
        ("card.vcf", b"BEGIN:VCARD\nFN:Zo\xEB Dassie\nEND:VCARD\n".to_vec(), "dassie", "Zoë Dassie"),
        (
            "papers.zip",
            zip_of(&[("a/one.txt", b"a dassie"), ("b.png", b"\x89PNG\0")]),
            "dassie",
            "[a/one.txt]\n\na dassie",
        ),
        (
            "papers.tgz",
            gzip_of(&tar_of(&[("one.md", b"# H\na dassie")])),
            "dassie",
            "[papers.tar/one.md]\n\n# H\na dassie",
        ),
        ("inner.eml", nested.clone().into_bytes(), "quokka", "attachment_1 (plan.docx):\nFerry plan"),
        (
            "inner.mbox",
            format!("From a@x Wed Apr  1 10:00:00 2026\n{nested}").into_bytes(),
            "quokka",
            "subject: Papers of inner",
        ),
    ] {
        let workshop = Workshop::new();
        let data = Mail::new("m").file(name, &content).import(&workshop);
        assert_eq!((&data["attachments"], problems(&data)), (&json!([name]), vec![]), "{data}");
        let found = data["attachment_1"].as_str().unwrap();
        assert!(found.contains(expect), "{name}: {found}");
        if expect.is_empty() {
            // The source of a calendar is no text.
            assert!(!found.contains(word), "{name}: {found}");
            continue;
        }
        assert_eq!(workshop.search(word), ["c/messages:m@x.test"], "{name}");
        let hits = stdout(&fetchwell(["search", word, "--json", "--store", &workshop.store()]));
        let hits: Value = serde_json::from_str(&hits).unwrap();
        let shown = hits["results"][0]["text"].as_str().unwrap();
        let has_word = shown.to_lowercase().contains(&word.to_lowercase());
        assert!(shown.starts_with(&format!("{name}: ")) && has_word, "{name}: {shown}");
    }
}

#[test]
fn content_decides_when_names_and_types_are_wrong() {
    let workshop = Workshop::new();
    let docx = fixture("files/plan.docx");
    for (id, header, names) in [
        (
            "none",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            json!(["unnamed.docx"]),
        ),
        ("bare", "application/octet-stream; name=report", json!(["report"])),
        ("wrong", "application/pdf; name=\"plan.txt\"", json!(["plan.txt"])),
        ("text", "text/plain; name=\"plan.docx\"; charset=utf-8", json!(["plan.docx"])),
        ("folders", "application/x; name=\"..\\\\..\\\\C:/plan.docx\"", json!(["plan.docx"])),
        (
            "long",
            &format!("application/x; name=\"{}.docx\"", "n".repeat(10_000)),
            json!([format!("{}….docx", "n".repeat(194))]),
        ),
        ("escape", "application/x; name*=utf-8''%1B%5B31mplan%E2%80%AE.docx", json!(["[31mplan.docx"])),
    ] {
        let data = Mail::new(id).attach(header, &docx).import(&workshop);
        assert_eq!(data["attachments"], names, "{id}");
        assert!(data["attachment_1"].as_str().is_some_and(|text| text.contains("quokka")), "{id}: {data}");
    }
    assert_eq!(workshop.search("quokka").len(), 7);
    // A picture is named, and that is all.
    let data = Mail::new("photo").attach("image/png; name=a.png", b"\x89PNG\r\n\0").import(&workshop);
    assert_eq!((&data["attachments"], &data["attachment_1"]), (&json!(["a.png"]), &Value::Null));
    assert_eq!(problems(&data), []);
}

#[test]
fn an_attachment_that_contradicts_its_name_is_read_by_its_content_or_named() {
    let workshop = Workshop::new();
    let archive = zip_of(&[
        ("plan.docx", b"the ferry is late"),
        ("\u{202e}fdp.\u{1b}[31mx.txt", b"a numbat"),
        ("\u{202e}cod.pdf", b"nothing"),
        ("photo.jpg", b"no picture"),
        ("program.exe", b"MZ\0"),
    ]);
    let data = Mail::new("m")
        .attach("application/vnd.ms-excel; name=r.xls", b"id\tanimal\n1\tdassie\n2\twombat\n")
        .file("report.pdf", b"<html><body><p>a capybara")
        .file("letter.pdf", b"the letter is in the post")
        .file("empty.docx", b"")
        .file("photo.png", b"no picture")
        .file("papers.zip", &archive)
        .import(&workshop);
    assert_eq!(data["attachment_1"], "id\tanimal\n1\tdassie\n2\twombat");
    assert_eq!(data["attachment_2"], "a capybara");
    assert_eq!(data["attachment_6"], "[\\u{202e}fdp.\\u{1b}[31mx.txt]\n\na numbat");
    let other = "its content is not of the kind that its extension names";
    assert_eq!(
        problems(&data),
        [
            ("letter.pdf", other),
            ("empty.docx", "it is empty"),
            ("papers.zip/plan.docx", other),
            ("papers.zip/\\u{202e}cod.pdf", other),
        ]
    );
}

#[test]
fn an_attachment_that_cannot_be_read_leaves_its_message_whole() {
    let workshop = Workshop::new();
    let truncated = &fixture("files/report.pdf")[..400];
    let mail = Mail::new("m")
        .attach("application/pdf; name=locked.pdf", &fixture("files/locked.pdf"))
        .file("plan.docx", &fixture("samples/encrypted/plan.docx"))
        .file("secret.zip", &fixture("samples/encrypted/aes.zip"))
        .file("cut.pdf", truncated)
        .file("plan.docx", &fixture("files/plan.docx"))
        .file("mixed.zip", &zip_of(&[("bad.pdf", b"%PDF-1.4 nothing"), ("good.txt", b"a dassie")]));
    let file = workshop.file("m.eml", mail.written());
    let report = workshop.store() + ".report";
    let output = workshop.import(&["eml", &file, "--report", &report]);
    assert!(output.status.success(), "{output:?}");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&summary["added"], &summary["rejected"], &summary["unread_attachments"]),
        (&json!(1), &json!(0), &json!(5))
    );
    let (data, _) = record(&workshop, "m@x.test");
    assert_eq!(
        data["attachments"],
        json!(["locked.pdf", "plan.docx", "secret.zip", "cut.pdf", "plan.docx", "mixed.zip"])
    );
    let found = problems(&data);
    let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["locked.pdf", "plan.docx", "secret.zip/secret.txt", "cut.pdf", "mixed.zip/bad.pdf"]);
    for ((name, reason), expect) in
        found.iter().zip(["needs a password", "is encrypted", "it is encrypted", "it is", "it is"])
    {
        assert!(reason.contains(expect), "{name}: {reason}");
    }
    assert_eq!(
        (&data["attachment_problems"][0]["type"], &data["attachment_problems"][0]["bytes"]),
        (&json!("application/pdf"), &json!(2_981))
    );
    assert!(data["attachment_5"].as_str().unwrap().contains("quokka"));
    assert_eq!(data["attachment_6"], "[good.txt]\n\na dassie");
    for word in ["quokka", "dassie", "locked.pdf"] {
        assert_eq!(workshop.search(word), ["c/messages:m@x.test"], "{word}");
    }
    let said = stderr(&output);
    assert!(
        said.contains(
            "1 attachment not read, first m.eml (locked.pdf): it is encrypted: it needs a password"
        ),
        "{said}"
    );
    let report = std::fs::read_to_string(report).unwrap();
    assert!(
        report.contains(
            r#"{"attachment":"locked.pdf","of":"m.eml","reason":"it is encrypted: it needs a password"}"#
        ),
        "{report}"
    );
}

#[test]
fn all_imports_of_mail_read_attachments() {
    let mail = |id: &str| Mail::new(id).file("plan.docx", &fixture("files/plan.docx")).written();
    let mailbox = format!("From ann@x.test Wed Apr  1 10:00:00 2026\n{}\n", mail("b"));
    let workshop = Workshop::new();
    let path = workshop.file("alone.mbox", &mailbox);
    assert_eq!(workshop.counts(&["mbox", &path]), [1, 0, 0, 0, 0]);
    workshop.file("f/box.mbox", mailbox.replace("<b@", "<c@"));
    workshop.file("f/box/cur/1.host:2,S", mail("d"));
    workshop.file("f/mail.zip", zip_of(&[("e.eml", mail("e").as_bytes())]));
    let forwarded =
        format!("Message-ID: <f@x.test>\nSubject: Fwd\nContent-Type: message/rfc822\n\n{}", mail("inner"));
    workshop.file("f/forwarded.eml", forwarded);
    let folder = Path::new(&workshop.store()).with_file_name("f");
    assert_eq!(workshop.counts(&["files", text(&folder)]), [4, 0, 0, 0, 0]);
    let mut found = workshop.search("quokka");
    found.sort_unstable();
    assert_eq!(found, ["b", "c", "d", "e", "f"].map(|id| format!("c/messages:{id}@x.test")));
}

#[tokio::test]
async fn the_text_of_an_attachment_is_a_part_and_a_field() {
    let workshop = Workshop::new();
    let long =
        |word: &str| (0..2_000).map(|line| format!("Line {line} of the {word}.\n")).collect::<String>();
    let mail = Mail::new("m")
        .file("first.txt", long("dassie").as_bytes())
        .file("short.txt", b"two\nlines")
        .file("second.txt", long("numbat").as_bytes());
    mail.import(&workshop);
    let model = Model::over_stdio(["--store", &workshop.store()]).await;
    let (mut ids, mut parts) = (vec!["c/messages:m@x.test".to_owned()], Vec::new());
    while let Some(id) = ids.pop() {
        let part = model.call("fetch", json!({ "id": id })).await;
        parts.push(part["text"].as_str().unwrap().to_owned());
        ids.extend(part["metadata"]["next"].as_str().map(str::to_owned));
    }
    let starts: Vec<&str> =
        parts.iter().filter_map(|part| part.lines().next()?.strip_prefix("attachment_")).collect();
    assert_eq!(starts, ["1 (first.txt):", "2 (short.txt):", "3 (second.txt):"]);
    assert!(parts.contains(&"attachment_2 (short.txt):\ntwo\nlines\n\n".to_owned()), "{parts:?}");
    assert!(parts.iter().all(|part| !(part.contains("dassie") && part.contains("numbat"))));
    let around = json!({"id": "c/messages:m@x.test", "field": "attachment_3", "q": "Line 1234"});
    let piece = model.call("read_record_field", around).await;
    assert!(piece["text"].as_str().unwrap().contains("Line 1234 of the numbat."), "{piece}");
    let hit = model.call("search", json!({"query": "\"Line 1234 of the numbat\""})).await;
    let shown = hit["results"][0]["text"].as_str().unwrap();
    assert!(shown.starts_with("second.txt: ") && shown.contains("Line 1234 of the numbat"), "{shown}");
}

#[tokio::test]
async fn attachments_are_operators() {
    let workshop = Workshop::new();
    let docx = fixture("files/plan.docx");
    workshop.file(
        "f/a.eml",
        Mail::new("a").file("Annual plan 2026.docx", &docx).file("photo.png", b"\x89PNG\0").written(),
    );
    workshop.file("f/b.eml", Mail::new("b").file("photo.png", b"\x89PNG\0").written());
    workshop.file("f/c.eml", "Message-ID: <c@x.test>\nSubject: Papers\n\nplan.docx is not attached\n");
    let folder = Path::new(&workshop.store()).with_file_name("f");
    assert_eq!(workshop.counts(&["files", text(&folder)]), [3, 0, 0, 0, 0]);
    let model = Model::over_stdio(["--store", &workshop.store()]).await;
    for (query, expect) in [
        ("papers", &["a", "b", "c"][..]),
        ("papers has:attachment", &["a", "b"]),
        ("has:attachment", &["a", "b"]),
        ("filename:plan.docx", &["a"]),
        ("filename:\"annual plan\" papers", &["a"]),
        ("filename:photo filename:docx", &["a"]),
        ("filename:\"photo docx\"", &[]),
        ("papers filename:missing.pdf", &[]),
        ("has:attachment -quokka", &["b"]),
    ] {
        let found = model.call("search", json!({ "query": query })).await;
        let results = found["results"].as_array().unwrap().iter();
        let mut keys: Vec<&str> = results.map(|hit| hit["id"].as_str().unwrap()).collect();
        keys.sort_unstable();
        let expect: Vec<String> = expect.iter().map(|id| format!("c/messages:{id}@x.test")).collect();
        assert_eq!(keys, expect, "{query}: {found}");
        assert_eq!(found.get("warnings"), None, "{found}");
    }
}
