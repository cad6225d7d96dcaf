//! `fetchwell import` of RTF, notebooks, subtitles, code, messages of Apple Mail and Outlook, and exports of notes, chats
//! and bookmarks. Those of `fixtures/samples/kinds` were written by the libraries of these formats.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::import::commands::Workshop;
use crate::import::files::zip_of;
use crate::import::values::record;
use crate::support::{stderr, text};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/samples/kinds").join(name)
}

/// Imports a sample with one record. Returns its fields and its time.
#[track_caller]
fn import(workshop: &Workshop, kind: &str, name: &str, key: &str) -> (Value, Option<String>) {
    assert_eq!(workshop.counts(&[kind, text(&sample(name))]), [1, 0, 0, 0, 0], "{name}");
    record(workshop, key)
}

#[test]
fn documents_written_by_libraries_have_their_text() {
    let workshop = Workshop::new();
    let (note, _) = import(&workshop, "rtf", "notes.rtf", "notes.rtf");
    let body = "The rich text says über ibis.\nA bold curlew costs 5 €.\n\nField notes\nPage of the marsh";
    assert_eq!((&note["body"], &note["format"]), (&json!(body), &json!("rtf")));
    let (notebook, _) = import(&workshop, "notebook", "condors.ipynb", "condors.ipynb");
    let cells = "# Analysis of condors\nWing by *age*.\n\n```python\nx = wingspan()\nprint(x)\n```\n\n3.2 metres\n\n<Figure of a condor>";
    assert_eq!((&notebook["title"], &notebook["body"]), (&json!("Analysis of condors"), &json!(cells)));
    let (talk, _) = import(&workshop, "subtitles", "talk.de.srt", "talk.de.srt");
    assert_eq!(talk["body"], "[00:00:01] Welcome to the heron talk\n[01:00:04] slides are online");
    assert_eq!((&talk["language"], &talk["duration"]), (&json!("de"), &json!("01:00:06")));
    let (talk, _) = import(&workshop, "subtitles", "talk-utf16.srt", "talk-utf16.srt");
    assert_eq!(talk["body"].as_str().unwrap().lines().next(), Some("[00:00:01] Welcome to the héron talk"));
    let (talk, _) = import(&workshop, "subtitles", "talk.vtt", "talk.vtt");
    assert_eq!(talk["body"], "[00:00:01] Ann: The grebe dives\n[00:00:02] The grebe dives and comes up");
}

#[test]
fn messages_of_apple_mail_and_outlook_are_mail() {
    let workshop = Workshop::new();
    let folder = sample("Archive.mbox");
    let place = Path::new(&workshop.store()).with_file_name("mail");
    let message = std::fs::read(folder.join("Messages/1.emlx")).unwrap();
    workshop.file("mail/Archive.mbox/Messages/1.emlx", message);
    assert_eq!(workshop.counts(&["files", text(&place)]), [1, 0, 0, 0, 0]);
    let (mail, time) = record(&workshop, "m1@x.test");
    assert_eq!((&mail["subject"], &mail["folder"]), (&json!("The dipper"), &json!("Archive")));
    assert_eq!(
        (&mail["body"], time.as_deref()),
        (&json!("A dipper sat below the weir."), Some("2024-03-01T10:00:00Z"))
    );

    assert_eq!(workshop.counts(&["msg", text(&sample("bittern.msg"))]), [1, 0, 0, 0, 0]);
    let found = workshop.search("\"bittern booms\"");
    assert_eq!(found.len(), 1, "{found:?}");
    let (mail, time) = record(&workshop, found[0].trim_start_matches("c/messages:"));
    assert_eq!(
        (&mail["subject"], &mail["from"]),
        (&json!("The bittern Ünder the reeds"), &json!("Ann Berg <ann@x.test>"))
    );
    assert_eq!((&mail["to"], &mail["cc"]), (&json!("Bob <bob@x.test>"), &json!("Cy <cy@x.test>")));
    assert_eq!(
        (&mail["attachments"], time.as_deref()),
        (&json!(["notes ü.txt"]), Some("2024-03-01T10:00:00Z"))
    );
    assert_eq!(workshop.search("quokka"), found);
}

#[test]
fn exports_of_notes_and_highlights_have_a_record_each() {
    let workshop = Workshop::new();
    let note = |title: &str, body: &str| {
        format!(
            "<note><title>{title}</title><content><![CDATA[<?xml version=\"1.0\"?><en-note><div>{body}</div></en-note>]]></content>\
             <created>20240102T030405Z</created><updated>20240103T030405Z</updated><tag>birds</tag>\
             <note-attributes><source-url>https://x.test/stork</source-url></note-attributes>\
             <resource><data encoding=\"base64\">{}</data><resource-attributes><file-name>nest.pdf</file-name></resource-attributes></resource></note>",
            "QUJD".repeat(100_000)
        )
    };
    let enex = format!(
        "<?xml version=\"1.0\"?><!DOCTYPE en-export SYSTEM \"x.dtd\"><en-export>{}{}</en-export>",
        note("Evernote stork", "stork body"),
        note("Second", "a jacana")
    );
    let file = workshop.file("notes.enex", enex);
    assert_eq!(workshop.counts(&["enex", &file]), [2, 0, 0, 0, 0]);
    let (note, time) = record(&workshop, "notes.enex/2024-01-02T03:04:05Z");
    assert_eq!(
        (&note["title"], &note["body"], &note["tags"]),
        (&json!("Evernote stork"), &json!("stork body"), &json!(["birds"]))
    );
    assert_eq!(
        (&note["url"], &note["attachments"], time.as_deref()),
        (&json!("https://x.test/stork"), &json!(["nest.pdf"]), Some("2024-01-02T03:04:05Z"))
    );
    // Notes of one moment are two records.
    assert_eq!(workshop.search("jacana").len(), 1);

    let note = r#"{"title": "Shopping", "textContent": "buy avocet feed", "userEditedTimestampUsec": 1714550400000000, "isTrashed": false}"#;
    let file = workshop.file("Keep/Shopping.json", note);
    assert_eq!(workshop.counts(&["keep", &file]), [1, 0, 0, 0, 0]);
    let (note, time) = record(&workshop, "Shopping.json");
    assert_eq!(
        (&note["title"], &note["body"], time.as_deref()),
        (&json!("Shopping"), &json!("buy avocet feed"), Some("2024-05-01T08:00:00Z"))
    );

    let clippings = "\u{FEFF}The Book (Ann Author)\r\n- Your Highlight on page 5 | Added on Friday, March 1, 2024 10:00:00 AM\r\n\r\nThe curlew cries.\r\n==========\r\n\
        \u{FEFF}The Book (Ann Author)\r\n- Your Bookmark on page 6 | Added on Friday, March 1, 2024 10:01:00 AM\r\n\r\n\r\n==========\r\n";
    let file = workshop.file("My Clippings.txt", clippings);
    assert_eq!(workshop.counts(&["files", &file]), [1, 0, 0, 0, 0]);
    let (highlight, time) = record(&workshop, "The Book/2024-03-01T10:00:00");
    assert_eq!(
        (&highlight["book"], &highlight["author"], &highlight["body"]),
        (&json!("The Book"), &json!("Ann Author"), &json!("The curlew cries."))
    );
    assert_eq!(
        (&highlight["place"], time.as_deref()),
        (&json!("Your Highlight on page 5"), Some("2024-03-01T10:00:00Z"))
    );

    assert_eq!(workshop.counts(&["bookmarks", text(&sample("bookmarks.html"))]), [2, 0, 0, 0, 0]);
    let (bookmark, time) = record(&workshop, "https://birds.test/crake");
    assert_eq!(
        (&bookmark["title"], &bookmark["folder"], time.as_deref()),
        (&json!("The crake"), &json!("Birds/Rails"), Some("2024-03-01T10:00:00Z"))
    );
}

#[test]
fn chats_have_a_record_for_each_message() {
    let workshop = Workshop::new();
    let chat = "\u{200E}[05/03/2024, 14:04:00] Ana: \u{200E}Messages and calls are end-to-end encrypted.\r\n\
        [05/03/2024, 14:05:12] Ana: shall we meet\r\nat the lagoon?\r\n[05/03/2024, 14:06:01] Ben: yes, bring the ukulele\r\n\
        \u{200E}[13/03/2024, 14:06:01] Ben: \u{200E}image omitted\r\n";
    let zip = workshop.file("WhatsApp Chat - Ana.zip", zip_of(&[("_chat.txt", chat.as_bytes())]));
    assert_eq!(workshop.counts(&["whatsapp", &zip]), [3, 0, 0, 0, 0]);
    let (message, time) = record(&workshop, "Ana/2024-03-05T14:05:12");
    assert_eq!((&message["from"], &message["channel"]), (&json!("Ana"), &json!("Ana")));
    assert_eq!(
        (&message["body"], time.as_deref()),
        (&json!("shall we meet\nat the lagoon?"), Some("2024-03-05T14:05:12Z"))
    );
    assert_eq!(record(&workshop, "Ana/2024-03-13T14:06:01").0["attachments"], json!(["image omitted"]));
    // A chat is a text where only texts are asked for.
    let file = workshop.file("notes/WhatsApp Chat with Ana.txt", chat);
    assert_eq!(workshop.counts(&["text", &file]), [1, 0, 0, 0, 0]);

    let telegram = json!({"name": "Ana", "type": "personal_chat", "id": 1, "messages": [
        {"id": 1, "type": "message", "date": "2024-05-01T10:00:00", "date_unixtime": "1714550400", "from": "Ana",
         "text": ["see ", {"type": "link", "text": "https://example.org"}, " about the bittern"]},
        {"id": 2, "type": "service", "action": "phone_call"},
        {"id": 3, "type": "message", "from": "Ana", "text": "no date"},
        {"id": 4, "type": "message", "date": "2024-05-01T10:00:00", "from": "Ben", "text": "", "file_name": "Plan.pdf", "reply_to_message_id": 1},
    ]});
    let all = json!({"about": "Here is the data you requested from Telegram.", "chats": {"about": "x", "list": [telegram]}});
    for (name, export) in [("result.json", &telegram), ("all/result.json", &all)] {
        let workshop = Workshop::new();
        let file = workshop.file(name, export.to_string());
        let output = workshop.import(&["files", &file]);
        assert!(stderr(&output).contains("message 3: it has no date"), "{output:?}");
        let (message, time) = record(&workshop, "1/1");
        assert_eq!(
            (&message["body"], time.as_deref()),
            (&json!("see https://example.org about the bittern"), Some("2024-05-01T08:00:00Z"))
        );
        let (message, _) = record(&workshop, "1/4");
        assert_eq!((&message["attachments"], &message["reply_to"]), (&json!(["Plan.pdf"]), &json!("1/1")));
    }
}

#[test]
fn folders_of_code_are_read_without_what_programs_made() {
    let workshop = Workshop::new();
    for (name, content) in [
        ("f/.gitignore", "secret.py\n"),
        ("f/package.json", "{\"name\": \"spoonbill\"}"),
        ("f/package-lock.json", "{\"name\": \"spoonbill\"}"),
        ("f/node_modules/x/index.js", "crane()"),
        ("f/dist/app.js", "crane()"),
        ("f/main.py", "def crane_lift(x):\n    \"\"\"Lift by crane.\"\"\"\n"),
        ("f/secret.py", "crane()"),
        ("f/conf.yaml", "service: spoonbill\nport: 80\n"),
        ("f/app.min.js", "crane()"),
        ("f/birds.json", "[{\"id\": 7, \"name\": \"crane\"}, {\"id\": 8, \"name\": \"rail\"}]"),
    ] {
        workshop.file(name, content);
    }
    let folder = Path::new(&workshop.store()).with_file_name("f");
    let output = workshop.import(&["files", text(&folder)]);
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&summary["added"], &summary["rejected"], &summary["skipped"]),
        (&json!(5), &json!(0), &json!(2)),
        "{output:?}"
    );
    let said = stderr(&output);
    assert!(said.contains("2 generated by programs;") && said.contains("1 named by .gitignore;"), "{said}");
    assert!(said.contains("left out: 2 of no kind that is read (1 .js, 1 .json);"), "{said}");
    assert!(said.contains("also not imported: 1 hidden"), "{said}");
    let mut found = workshop.search("crane");
    found.sort_unstable();
    assert_eq!(found, ["c/documents:main.py", "c/items/birds.json%2F7"]);
    let (code, _) = record(&workshop, "main.py");
    assert_eq!((&code["title"], &code["language"]), (&json!("main.py"), &json!("python")));
    assert_eq!(record(&workshop, "package.json/1").0["name"], "spoonbill");
}

/// Returns the bytes of a message of Outlook with a number at a place.
fn corrupted(at: impl Fn(&[u8]) -> (usize, u32)) -> Vec<u8> {
    let mut bytes = std::fs::read(sample("bittern.msg")).unwrap();
    let (at, number) = at(&bytes);
    bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn number(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

#[test]
fn hostile_files_are_named_and_skipped() {
    let workshop = Workshop::new();
    // The first sectors of the table of sectors and of the directory.
    let (table, directory) = (|bytes: &[u8]| (number(bytes, 76) + 1) * 512, |bytes: &[u8]| number(bytes, 48));
    let chain =
        corrupted(|bytes| (table(bytes) + 4 * directory(bytes), u32::try_from(directory(bytes)).unwrap()));
    // The root has itself as its child.
    let storage = corrupted(|bytes| ((directory(bytes) + 1) * 512 + 76, 0));
    let long = format!("{{\"cells\":[{{\"cell_type\":\"code\",\"x\":\"{}\"}}]}}", "a".repeat(70_000_000));
    for (kind, name, content, expect) in [
        (
            "rtf",
            "deep.rtf",
            "{\\rtf1".repeat(2_000_000).into_bytes(),
            "its groups are nested more than 1000 levels deep",
        ),
        ("notebook", "long.ipynb", long.into_bytes(), "it is larger than 67108864 bytes"),
        (
            "notebook",
            "broken.ipynb",
            b"{\"cells\": [{\"cell_type\": 1".to_vec(),
            "its JSON is not that of a notebook",
        ),
        ("subtitles", "a.srt", b"no times".to_vec(), "it has no lines with times"),
        ("msg", "chain.msg", chain, "its container is broken"),
        ("msg", "storage.msg", storage, "its container is broken"),
        ("msg", "text.msg", b"no message".to_vec(), "its container is broken"),
        (
            "enex",
            "deep.enex",
            format!("<en-export>{}", "<a>".repeat(1_000_000)).into_bytes(),
            "nested more than 100 levels deep",
        ),
        ("emlx", "a.emlx", b"Subject: x\n\n".to_vec(), "it does not begin with the number of bytes"),
    ] {
        let file = workshop.file(name, content);
        let output = workshop.import(&[kind, &file]);
        assert_eq!(output.status.code(), Some(1), "{name}: {output:?}");
        assert!(stderr(&output).contains(expect), "{name}: {}", stderr(&output));
    }
    // The length of binary content may be a lie, and so may an extension.
    let bin = workshop.file("bin.rtf", "{\\rtf1 The last ibis\\bin2147483647 x");
    assert_eq!(workshop.counts(&["rtf", &bin]), [1, 0, 0, 0, 0]);
    let word = workshop.file("letter.doc", "{\\rtf1 A letter about the ibis}");
    assert_eq!(workshop.counts(&["files", &word]), [1, 0, 0, 0, 0]);
    assert_eq!(workshop.search("ibis").len(), 2);
}
