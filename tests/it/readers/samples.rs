//! `fetchwell import` of files that other programs wrote: calendars, contacts, feeds, exports, mail and a web page
//! (fixtures/samples/README.md). Those of documents and spreadsheets are in `import::documents`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::import::commands::Workshop;
use crate::import::files::zip_of;
use crate::import::values::record;
use crate::support::text;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/samples").join(name)
}

/// Imports a sample and checks the number of its records.
#[track_caller]
fn import(workshop: &Workshop, kind: &str, name: &str, records: u64) {
    assert_eq!(workshop.counts(&[kind, text(&sample(name))]), [records, 0, 0, 0, 0], "{name}");
}

/// Checks the title and the time of a record. Returns its fields.
#[track_caller]
fn check(workshop: &Workshop, key: &str, title: &str, time: &str) -> Value {
    let (data, found) = record(workshop, key);
    let shown = data.get("title").or(data.get("subject")).or(data.get("name"));
    assert_eq!((shown, found.as_deref()), (Some(&json!(title)), Some(time)), "{data}");
    data
}

#[test]
fn calendars_have_the_times_of_their_zones() {
    let workshop = Workshop::new();
    // Outlook's zone is `Eastern Standard Time`, which only the calendar defines.
    import(&workshop, "ics", "outlook.ics", 1);
    let title = "Anonymous Test Event for TZID";
    let event =
        check(&workshop, "minimal-demo-event-est-20241028@example.com", title, "2024-10-28T21:00:00Z");
    assert_eq!(event["end"], "2024-10-28T22:00:00Z");
    import(&workshop, "ics", "google.ics", 1);
    let event = check(
        &workshop,
        "79fs7pkqvht9m5igs0vjv1sfra@google.com",
        "event with alarms",
        "2024-10-04T18:15:00Z",
    );
    assert_eq!((&event["calendar"], event.get("body")), (&json!("Nicco Kunzmann"), None));
    import(&workshop, "ics", "apple.ics", 1);
    let event =
        check(&workshop, "BFE33ADD-5553-48B5-B5A5-F9DA5CA4C393", "Daily Sync", "2016-10-28T12:00:00Z");
    assert_eq!(event["location"], "Roadstar 16\n12764 Happyville\nDenmark");
    assert_eq!(event["repeats"], "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR");

    import(&workshop, "ics", "plans.ics", 4);
    let event = check(
        &workshop,
        "plan-1@harbour.test",
        "Harbour walk; with guests, and René",
        "2026-04-01T12:00:00Z",
    );
    assert_eq!(event["categories"], json!(["crew", "work, weekly"]));
    assert_eq!(event["organizer"], "Berg, Ann <ann@harbour.test>");
    check(
        &workshop,
        "plan-0@harbour.test/2026-04-08T07:00:00Z",
        "Crew briefing (moved)",
        "2026-04-08T09:00:00Z",
    );
    check(&workshop, "task-1@harbour.test", "Paint the hull", "2026-05-01");
    let mut found = workshop.search("\"A capercaillie sits on the third bollard\"");
    found.sort_unstable();
    assert_eq!(found, ["c/events:plan-0@harbour.test", "c/events:plan-1@harbour.test"]);
}

#[test]
fn contacts_have_names_addresses_and_notes() {
    let workshop = Workshop::new();
    import(&workshop, "vcard", "contacts.vcf", 3);
    let card = check(&workshop, "contact-1", "René Garçon", "2026-04-01T10:00:00Z");
    assert_eq!(card["emails"], json!(["garçon.work@harbour.test", "garçon.home@harbour.test"]));
    assert_eq!(card["organization"], "Harbour, Ltd., Ferries");
    assert_eq!(card["addresses"], json!(["Pier 3, Oslo, 0150, Norway"]));
    assert_eq!((&card["birthday"], &card["phones"]), (&json!("1985-04-12"), &json!(["+47 100 00 000"])));
    assert_eq!(workshop.search("\"Keeps a binturong; never on deck\""), ["c/contacts:contact-1"]);

    // Android writes vCard 2.1, with texts in quoted-printable.
    import(&workshop, "vcard", "android.vcf", 1);
    let (card, _time_of_the_file) = record(&workshop, "android.vcf/1");
    assert_eq!((&card["name"], &card["phones"]), (&json!("René Garçon"), &json!(["+4712345678"])));
    assert_eq!(card["addresses"], json!(["Øvre gate 3, Tromsø, 9008, Norge"]));
    assert_eq!(card["body"], "Takes the early boat.\nThe fossa is his.");
    assert_eq!(workshop.search("\"The fossa is his\""), ["c/contacts/android.vcf%2F1"]);
}

#[test]
fn feeds_have_their_entries() {
    for (name, authors, updated) in [
        ("news.rss", json!("ann@harbour.test (Ann Berg)"), None),
        ("news.atom", json!("Ann Berg"), Some("2026-04-02T12:00:00+02:00")),
    ] {
        let workshop = Workshop::new();
        import(&workshop, "feed", name, 3);
        let found = workshop.search("\"A kakapo blocks berth seven\"");
        assert_eq!(found, ["c/entries/https%3A%2F%2Fharbour.test%2F2"], "{name}");
        let (entry, time) = record(&workshop, "https://harbour.test/2");
        assert_eq!(entry["title"], "Notice 2: wind < 5 & fog");
        assert_eq!((&entry["feed"], &entry["author"]), (&json!("Harbour & fog"), &authors), "{name}");
        assert_eq!(entry["categories"], json!(["weather"]));
        assert_eq!(entry.get("updated_at").and_then(Value::as_str), updated);
        let time: jiff::Timestamp = time.unwrap().parse().unwrap();
        assert_eq!(time.to_string(), "2026-04-02T08:00:00Z");
        let body = entry["body"].as_str().unwrap();
        assert!(!body.contains('<') && body.contains("door.\n\nA kakapo"), "{body}");
    }
}

#[test]
fn elements_of_extensions_are_no_fields_of_a_feed() {
    let workshop = Workshop::new();
    let feed = "<rss xmlns:media='http://search.yahoo.com/mrss/' xmlns:itunes='i' xmlns:content='c'><channel>\
        <item><guid isPermaLink='true'>https://blog.test/1</guid><title>Post</title><itunes:author>Cast</itunes:author>\
        <content:encoded><![CDATA[<p>The whole dormouse</p>]]></content:encoded>\
        <media:content url='https://x.test/a.jpg'><media:title type='html'>admin</media:title></media:content>\
        <media:title>Picture</media:title></item></channel></rss>";
    let path = workshop.file("blog.rss", feed);
    assert_eq!(workshop.counts(&["feed", &path]), [1, 0, 0, 0, 0]);
    let (entry, _) = record(&workshop, "https://blog.test/1");
    assert_eq!((&entry["title"], &entry["body"]), (&json!("Post"), &json!("The whole dormouse")));
    assert_eq!((&entry["url"], &entry["author"]), (&json!("https://blog.test/1"), &json!("Cast")));
    let feed = "<feed xmlns='http://www.w3.org/2005/Atom'><entry><id>e</id><title>Use of &lt;div&gt;</title>\
        <contributor><name>Reviewer</name></contributor><author><name>Ann</name><email>a@x.test</email></author>\
        <content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'><p>One &lt;b&gt;</p><p>two</p></div></content>\
        </entry></feed>";
    let path = workshop.file("log.atom", feed);
    assert_eq!(workshop.counts(&["feed", &path]), [1, 0, 0, 0, 0]);
    let (entry, _) = record(&workshop, "e");
    assert_eq!((&entry["title"], &entry["author"]), (&json!("Use of <div>"), &json!("Ann")));
    assert_eq!(entry["body"], "One <b>\n\ntwo");
}

#[test]
fn pages_and_feeds_are_read_in_the_encoding_they_declare() {
    let workshop = Workshop::new();
    let (page, _, _) = encoding_rs::WINDOWS_1251
        .encode("<!doctype html><meta charset=windows-1251><title>Паром</title><p>Выхухоль ждёт");
    let path = workshop.file("page.html", &page);
    assert_eq!(workshop.counts(&["html", &path]), [1, 0, 0, 0, 0]);
    assert_eq!(record(&workshop, "page.html").0["title"], "Паром");
    assert_eq!(workshop.search("выхухоль"), ["c/documents:page.html"]);
    let (feed, _, _) = encoding_rs::SHIFT_JIS.encode(
        "<?xml version='1.0' encoding='Shift_JIS'?><rss><channel><item><guid>j</guid><title>船の時刻表</title></item></channel></rss>",
    );
    let path = workshop.file("feed.xml", &feed);
    assert_eq!(workshop.counts(&["feed", &path]), [1, 0, 0, 0, 0]);
    assert_eq!(record(&workshop, "j").0["title"], "船の時刻表");
    // Programs on Windows write UTF-16.
    let utf16 = |text: &str| -> Vec<u8> {
        "\u{FEFF}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
    };
    let workshop = Workshop::new();
    workshop.file("f/card.vcf", utf16("BEGIN:VCARD\r\nUID:w\r\nFN:Zoë Wombat\r\nEND:VCARD\r\n"));
    let feed = "<?xml version='1.0' encoding='UTF-16'?><rss><channel><item><guid>u</guid><title>Möwe</title></item></channel></rss>";
    workshop.file("f/feed.xml", utf16(feed));
    let folder = Path::new(&workshop.store()).with_file_name("f");
    assert_eq!(workshop.counts(&["files", text(&folder)]), [2, 0, 0, 0, 0]);
    assert_eq!(record(&workshop, "w").0["name"], "Zoë Wombat");
    assert_eq!(record(&workshop, "u").0["title"], "Möwe");
}

/// Returns the path of an archive of a sample folder's files.
fn archive(workshop: &Workshop, name: &str, files: &[&str]) -> String {
    let read = |file: &&str| std::fs::read(sample(&format!("{name}/{file}"))).unwrap();
    let contents: Vec<Vec<u8>> = files.iter().map(read).collect();
    let entries: Vec<(&str, &[u8])> = files.iter().copied().zip(contents.iter().map(Vec::as_slice)).collect();
    workshop.file(&format!("{name}.zip"), zip_of(&entries))
}

#[test]
fn conversations_have_what_was_shown() {
    let workshop = Workshop::new();
    let path = archive(&workshop, "chatgpt", &["conversations.json"]);
    assert_eq!(workshop.counts(&["chatgpt", &path]), [2, 0, 0, 0, 0]);
    let id = "680f1c2e-0000-8000-8000-000000000001";
    let chat = check(&workshop, id, "Planning the ferry trip", "2026-04-01T10:00:00.123Z");
    assert_eq!(
        chat["body"],
        "You: Which ferry is on this photo?\n\nChatGPT: That is the MS Harbour.\n\nA pygmy marmoset is painted on its \
         funnel and it leaves at noon.\n\n| Port | Time |\n|---|---|\n| Oslo | 12:00 |\n\nYou: Thank you, book two tickets"
    );
    assert_eq!((&chat["messages"], &chat["updated_at"]), (&json!(3), &json!("2026-04-01T10:01:30.123Z")));
    assert_eq!(chat["url"], format!("https://chatgpt.com/c/{id}"));
    let found = workshop.search("\"A pygmy marmoset is painted on its funnel\"");
    assert_eq!(found, [format!("c/conversations:{id}")]);

    let path = archive(&workshop, "claude", &["conversations.json"]);
    assert_eq!(workshop.counts(&["claude", &path]), [2, 0, 0, 0, 0]);
    let id = "b3a1f2c4-0000-4000-8000-000000000001";
    let chat = check(&workshop, id, "Tide tables", "2026-04-01T10:00:00.123456Z");
    assert_eq!(
        chat["body"],
        "You: Read this table\n\n--- tides.txt ---\nHigh water at 04:10, the dunlin waits\n\n\
         Claude: The water is highest at ten past four.\nA potoroo would swim."
    );
    assert_eq!(chat["messages"], 2);
    check(&workshop, "b3a1f2c4-0000-4000-8000-000000000002", "Untitled", "2026-04-02T10:00:00.000000Z");
    assert_eq!(workshop.search("\"A potoroo would swim\""), [format!("c/conversations:{id}")]);
}

#[test]
fn slack_messages_have_names_channels_and_threads() {
    let workshop = Workshop::new();
    let files = ["users.json", "channels.json", "general/2026-04-01.json", "harbour/2026-04-02.json"];
    let path = archive(&workshop, "slack", &files);
    assert_eq!(workshop.counts(&["slack", &path]), [5, 0, 0, 0, 0]);
    let (data, time) = record(&workshop, "general/1775037660.000200");
    assert_eq!((&data["from"], &data["channel"]), (&json!("Bo Li"), &json!("general")));
    assert_eq!(data["thread_id"], "general/1775037600.000100");
    assert_eq!(
        data["body"],
        "> noted @Ann Berg, see the tide table (https://harbour.test/tide) in #harbour\n\
         A solenodon sleeps in the https://harbour.test/hold"
    );
    assert_eq!(time.as_deref(), Some("2026-04-01T10:01:00Z"));
    let (data, _) = record(&workshop, "general/1775037800.000300");
    assert_eq!(
        (&data["from"], &data["body"]),
        (&json!("Build"), &json!("Build 7\nThe hull has a leak\nBuild 7 failed"))
    );
    let (data, _) = record(&workshop, "general/1775037900.000400");
    assert_eq!(data["attachments"], json!(["tide.pdf"]));
    assert_eq!(workshop.search("\"A solenodon sleeps\""), ["c/messages/general%2F1775037660.000200"]);
    // The folder of the archive is the same export.
    assert_eq!(Workshop::new().counts(&["slack", text(&sample("slack"))]), [5, 0, 0, 0, 0]);
}

#[test]
fn issues_and_pull_requests_have_their_state() {
    let workshop = Workshop::new();
    import(&workshop, "github", "issues.json", 2);
    let issue = check(&workshop, "harbour/ferry/12", "Pump runs dry", "2026-04-01T10:00:00Z");
    assert_eq!((&issue["labels"], &issue["assignees"]), (&json!(["bug", "pump"]), &json!(["bo"])));
    assert_eq!(issue["comments"], "bo: Seen at low water\n\nann: Fixed by #13");
    assert_eq!((&issue["state"], &issue["author"]), (&json!("open"), &json!("ann")));
    let closed = check(&workshop, "harbour/ferry/9", "Bump chalk", "2026-03-01T10:00:00Z");
    assert_eq!((&closed["state"], &closed["closed_at"]), (&json!("closed"), &json!("2026-04-03T10:00:00Z")));
    assert_eq!(workshop.search("\"A gharial blocks the intake\""), ["c/issues/harbour%2Fferry%2F12"]);
    import(&workshop, "github", "pulls.json", 1);
    let pull = check(&workshop, "harbour/ferry/13", "Add a sieve", "2026-04-02T11:00:00Z");
    assert_eq!((&pull["state"], &pull["merged_at"]), (&json!("merged"), &json!("2026-04-02T12:00:00Z")));
    assert_eq!(workshop.search("sieve"), ["c/pull_requests/harbour%2Fferry%2F13"]);
}

#[test]
fn mail_of_a_maildir_and_of_takeout_is_found() {
    let workshop = Workshop::new();
    let folder = Path::new(&workshop.store()).with_file_name("maildir");
    let archive = folder.with_file_name("takeout.zip");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/maildir.py");
    let output = Command::new("python3").arg(script).args([&folder, &archive]).output().unwrap();
    assert!(output.status.success(), "{output:?}");

    assert_eq!(workshop.counts(&["maildir", text(&folder)]), [3, 0, 0, 0, 0]);
    let mail = check(&workshop, "m1@harbour.test", "Unread: René", "2026-04-01T10:00:00+02:00");
    assert_eq!((&mail["from.name"], &mail["attachments"]), (&json!("Zoë Berg"), &json!(["tide.bin"])));
    let sent = check(&workshop, "m3@harbour.test", "Sent", "2026-04-03T10:00:00+02:00");
    assert_eq!(sent["folder"], "Sent");
    assert_eq!(workshop.search("\"A pademelon waits on the quay\""), ["c/messages:m1@harbour.test"]);

    assert_eq!(workshop.counts(&["takeout", text(&archive)]), [2, 0, 0, 0, 0]);
    let mail = check(&workshop, "m5@harbour.test", "Takeout 5", "2026-04-05T10:00:00+02:00");
    assert_eq!(
        (&mail["labels"], &mail["thread_id"]),
        (&json!(["Gesendet", "Möwen"]), &json!("1794000000000000001"))
    );
    assert_eq!(mail["path"], "takeout.zip/Takeout/Mail/All mail Including Spam and Trash.mbox");
    let mut found = workshop.search("\"From the mast, a caracara calls\"");
    found.sort_unstable();
    assert_eq!(found, ["c/messages:m4@harbour.test", "c/messages:m5@harbour.test"]);
}

#[test]
fn documents_of_office_programs_and_pdftex_have_their_text() {
    for (kind, name, title, time, sentence, count) in [
        ("docx", "word.docx", "word", "2025-06-07T17:38:00Z", "Some text worthy of note.", None),
        (
            "pptx",
            "slides.pptx",
            // The title of the properties is "Presentation", which says nothing.
            "slides",
            "2012-11-17T11:07:40Z",
            "Paragraph having space after of no explicit setting",
            Some(("slides", 3)),
        ),
        (
            "pdf",
            "pdflatex.pdf",
            "pdflatex",
            "2022-04-06T20:15:41+02:00",
            "but the length of words should match the language",
            Some(("pages", 4)),
        ),
    ] {
        let workshop = Workshop::new();
        import(&workshop, kind, name, 1);
        let document = check(&workshop, name, title, time);
        assert!(document["body"].as_str().unwrap().contains(sentence), "{document}");
        if let Some((field, count)) = count {
            assert_eq!(document[field], count, "{name}");
        }
        assert_eq!(workshop.search(&format!("\"{sentence}\"")), [format!("c/documents:{name}")]);
    }
}

#[test]
fn a_web_page_has_the_text_that_it_shows() {
    let workshop = Workshop::new();
    import(&workshop, "html", "libxslt.html", 1);
    let (page, time) = record(&workshop, "libxslt.html");
    assert_eq!((&page["title"], time.is_some()), (&json!("Python and bindings"), true));
    let body = page["body"].as_str().unwrap();
    assert!(body.contains("- Downloads\n- FAQ\n") && !body.contains("text-decoration"), "{body}");
    let sentence = "There is a number of language bindings and wrappers available for libxml2";
    assert_eq!(workshop.search(&format!("\"{sentence}\"")), ["c/documents:libxslt.html"]);
}
