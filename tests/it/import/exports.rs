//! `fetchwell import` of calendars, contacts, feeds, databases, repositories and the exports of other programs.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::import::commands::Workshop;
use crate::import::files::zip_of;
use crate::import::values::record;
use crate::support::{stderr, text};

#[test]
fn events_and_contacts_are_imported() {
    let workshop = Workshop::new();
    let calendar = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nX-WR-CALNAME:Work\r\n\
        BEGIN:VEVENT\r\nUID:e1@x.test\r\nSUMMARY:Ferry to Oslo\r\nDTSTART;TZID=Europe/Oslo:20260401T100000\r\n\
        DTEND;TZID=Europe/Oslo:20260401T113000\r\nLOCATION:Pier 3\\, Oslo\r\nORGANIZER;CN=Ann:mailto:ann@x.test\r\n\
        ATTENDEE;CN=\"Bob; B\":mailto:bob@x.test\r\nDESCRIPTION:Bring the quokka and a lo\r\n ng coat.\\nThen board.\r\n\
        BEGIN:VALARM\r\nDESCRIPTION:alarm\r\nEND:VALARM\r\nEND:VEVENT\r\n\
        BEGIN:VTODO\r\nUID:t1\r\nSUMMARY:Pack\r\nDUE;VALUE=DATE:20260331\r\nEND:VTODO\r\nEND:VCALENDAR\r\n";
    let path = workshop.file("work.ics", calendar);
    assert_eq!(workshop.counts(&["ics", &path]), [2, 0, 0, 0, 0]);
    assert_eq!(workshop.search("quokka"), ["c/events:e1@x.test"]);
    let (data, time) = record(&workshop, "e1@x.test");
    assert_eq!(time.as_deref(), Some("2026-04-01T08:00:00Z"));
    assert_eq!((&data["title"], &data["location"]), (&json!("Ferry to Oslo"), &json!("Pier 3, Oslo")));
    assert_eq!((&data["organizer"], &data["calendar"]), (&json!("Ann <ann@x.test>"), &json!("Work")));
    assert_eq!(data["attendees"], json!(["Bob; B <bob@x.test>"]));
    assert_eq!(data["body"], "Bring the quokka and a long coat.\nThen board.");
    let (data, time) = record(&workshop, "t1");
    assert_eq!((&data["kind"], time.as_deref()), (&json!("task"), Some("2026-03-31")));

    let contacts = "BEGIN:VCARD\nVERSION:3.0\nFN:Ann Berg\nN:Berg;Ann;;;\nitem1.EMAIL;TYPE=WORK:ann@x.test\nTEL:+47 1\n\
        ORG:Harbour;Ferries\nNOTE:Keeps an axolotl\nNOTE:Likes fog\nTITLE:Captain\nROLE:Pilot\nUID:u1\nREV:20260401T100000Z\nEND:VCARD\n\
        BEGIN:VCARD\nVERSION:2.1\nN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:Gar=C3=A7on;Ren=C3=A9\nEND:VCARD\n";
    let path = workshop.file("people.vcf", contacts);
    assert_eq!(workshop.counts(&["vcard", &path]), [2, 0, 0, 0, 0]);
    let (data, time) = record(&workshop, "u1");
    assert_eq!((&data["name"], &data["emails"]), (&json!("Ann Berg"), &json!(["ann@x.test"])));
    assert_eq!(
        (&data["organization"], time.as_deref()),
        (&json!("Harbour, Ferries"), Some("2026-04-01T10:00:00Z"))
    );
    assert_eq!(data["body"], "Keeps an axolotl\nLikes fog");
    assert_eq!((&data["job_title"], &data["role"]), (&json!("Captain"), &json!("Pilot")));
    assert_eq!(workshop.search("axolotl"), ["c/contacts:u1"]);
}

#[test]
fn feeds_are_imported() {
    let workshop = Workshop::new();
    let rss = "<?xml version='1.0'?><rss version='2.0' xmlns:dc='d' xmlns:content='c'><channel><title>Harbour news</title>\
        <item><title>Ferry &amp; fog</title><link>https://x.test/1</link><guid>g1</guid><dc:creator>Ann</dc:creator>\
        <pubDate>Wed, 01 Apr 2026 10:00:00 GMT</pubDate><category>fog</category><description>short</description>\
        <content:encoded><![CDATA[<p>The numbat</p><p>waits</p>]]></content:encoded></item>\
        <item><title>Second</title><link>https://x.test/2</link></item></channel></rss>";
    let path = workshop.file("news.xml", rss);
    assert_eq!(workshop.counts(&["feed", &path]), [2, 0, 0, 0, 0]);
    assert_eq!(workshop.search("numbat"), ["c/entries:g1"]);
    let (data, time) = record(&workshop, "g1");
    assert_eq!((&data["title"], &data["author"]), (&json!("Ferry & fog"), &json!("Ann")));
    assert_eq!((&data["feed"], &data["url"]), (&json!("Harbour news"), &json!("https://x.test/1")));
    assert_eq!(
        (&data["body"], time.as_deref()),
        (&json!("The numbat\n\nwaits"), Some("2026-04-01T10:00:00Z"))
    );
    let atom = "<feed xmlns='http://www.w3.org/2005/Atom'><title>Log</title><author><name>Feed</name></author>\
        <entry><title type='html'>One &lt;b&gt;bold&lt;/b&gt;</title><id>urn:1</id><link rel='alternate' href='https://y.test/1'/>\
        <link rel='self' href='https://y.test/self'/><author><name>Bob</name><email>bob@x.test</email></author>\
        <updated>2026-04-02T10:00:00Z</updated><content type='xhtml'><div>the<p>wombat</p></div></content></entry></feed>";
    let path = workshop.file("log.atom", atom);
    assert_eq!(workshop.counts(&["feed", &path]), [1, 0, 0, 0, 0]);
    let (data, time) = record(&workshop, "urn:1");
    assert_eq!((&data["title"], &data["author"]), (&json!("One bold"), &json!("Bob")));
    assert_eq!((&data["url"], time.as_deref()), (&json!("https://y.test/1"), Some("2026-04-02T10:00:00Z")));
    assert_eq!(workshop.search("wombat"), ["c/entries:urn:1"]);
}

#[test]
fn the_tables_of_a_database_are_streams() {
    let workshop = Workshop::new();
    let path = Path::new(&workshop.store()).with_file_name("app.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    database
        .execute_batch(
            "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, created_at TEXT, photo BLOB);
             INSERT INTO people VALUES (7, 'Ann the capybara', '2026-04-01', x'FF00');
             CREATE TABLE plain (word TEXT); INSERT INTO plain VALUES ('one'), ('two');
             CREATE VIEW secret AS SELECT * FROM people; CREATE VIRTUAL TABLE words USING fts5(word);",
        )
        .unwrap();
    drop(database);
    assert_eq!(workshop.counts(&["sqlite", text(&path)]), [3, 0, 0, 0, 0]);
    assert_eq!(workshop.search("capybara"), ["c/people/app.db%2F7"]);
    let (data, time) = record(&workshop, "app.db/7");
    assert_eq!((&data["id"], &data["photo"], time.as_deref()), (&json!(7), &json!(null), Some("2026-04-01")));
    assert_eq!(record(&workshop, "app.db/2").0, json!({"word": "two"}));
    let bytes = std::fs::read(&path).unwrap();
    let broken = workshop.file("cut.db", &bytes[..5_000]);
    let output = workshop.import(&["sqlite", &broken]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
}

/// A row has a computed column of 100 MB, another one a value and a default value that are too large together.
#[test]
fn the_rows_of_a_database_are_bounded() {
    let workshop = Workshop::new();
    let path = Path::new(&workshop.store()).with_file_name("app.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    let batch = "CREATE TABLE computed (word TEXT, long TEXT AS (printf('%.*c', 100000000, 'x')));
         INSERT INTO computed (word) VALUES ('numbat');
         CREATE TABLE wide (long BLOB); INSERT INTO wide VALUES (zeroblob(66000000));";
    database.execute_batch(batch).unwrap();
    let long = "d".repeat(2_000_000);
    database.execute_batch(&format!("ALTER TABLE wide ADD COLUMN more TEXT DEFAULT '{long}'")).unwrap();
    drop(database);
    let said = stderr(&workshop.import(&["sqlite", text(&path)]));
    assert!(said.contains("app.db: table wide: a row has more than 67108864 bytes"), "{said}");
    assert!(!said.contains("table computed"), "{said}");
    assert_eq!(record(&workshop, "app.db/1").0, json!({"word": "numbat"}));
}

/// A database in WAL mode is read with its log, and no files stay beside it.
#[test]
fn a_database_with_a_log_is_read_without_a_trace() {
    let workshop = Workshop::new();
    let path = Path::new(&workshop.store()).with_file_name("app").join("app.db");
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    let names = |folder: &Path| {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    };
    let database = rusqlite::Connection::open(&path).unwrap();
    database
        .execute_batch(
            "PRAGMA journal_mode = WAL; CREATE TABLE t (word TEXT, created_at TEXT);
             INSERT INTO t VALUES ('one', '2026-04-01');",
        )
        .unwrap();
    // Its log without its index, as after a copy.
    let copy = path.parent().unwrap().with_file_name("copy");
    std::fs::create_dir(&copy).unwrap();
    for name in ["app.db", "app.db-wal"] {
        std::fs::copy(path.with_file_name(name), copy.join(name)).unwrap();
    }
    assert_eq!(workshop.counts(&["sqlite", text(&copy.join("app.db"))]), [1, 0, 0, 0, 0]);
    assert_eq!(names(&copy), ["app.db", "app.db-wal"]);
    assert_eq!(workshop.counts(&["sqlite", text(&path)]), [0, 0, 1, 0, 0]);
    database.execute_batch("INSERT INTO t VALUES ('two', '2026-04-02')").unwrap();
    drop(database);
    assert_eq!(names(path.parent().unwrap()), ["app.db"]);
    assert_eq!(workshop.counts(&["sqlite", text(&path)]), [1, 0, 1, 0, 0]);
    assert_eq!(names(path.parent().unwrap()), ["app.db"]);
}

#[test]
fn the_commits_of_a_repository_are_imported() {
    let workshop = Workshop::new();
    let folder = Path::new(&workshop.store()).with_file_name("repo");
    std::fs::create_dir(&folder).unwrap();
    let git = |arguments: &[&str]| {
        let settings = ["-c", "user.name=Ann", "-c", "user.email=ann@x.test", "-c", "commit.gpgsign=false"];
        let mut command = Command::new("git");
        command.current_dir(&folder).args(settings).args(arguments);
        command.env("GIT_AUTHOR_DATE", "2026-04-01T10:00:00Z").env("GIT_CONFIG_GLOBAL", "/dev/null");
        assert!(command.output().unwrap().status.success(), "{arguments:?}");
    };
    git(&["init", "--quiet", "--initial-branch", "main"]);
    git(&["commit", "--quiet", "--allow-empty", "-m", "Add the pangolin", "-m", "It guards\nthe harbour."]);
    git(&["commit", "--quiet", "--allow-empty", "-m", "Second"]);
    // A hostile repository can name programs to run; none is started.
    let mark = folder.join("started");
    git(&["config", "log.showSignature", "true"]);
    git(&["config", "gpg.program", &format!("touch {}", mark.display())]);
    git(&["config", "core.fsmonitor", &format!("touch {}", mark.display())]);
    assert_eq!(workshop.counts(&["git", text(&folder)]), [2, 0, 0, 0, 0]);
    assert!(!mark.exists());
    let found = workshop.search("pangolin");
    assert!(found.len() == 1 && found[0].starts_with("c/commits:"), "{found:?}");
    let (data, time) = record(&workshop, found[0].trim_start_matches("c/commits:"));
    assert_eq!((&data["title"], &data["author"]), (&json!("Add the pangolin"), &json!("Ann")));
    assert_eq!((&data["body"], time.is_some()), (&json!("It guards\nthe harbour."), true));
    let empty = workshop.file("none/a.txt", "x");
    let output = workshop.import(&["git", text(Path::new(&empty).parent().unwrap())]);
    assert!(stderr(&output).contains("git says: "), "{output:?}");
}

#[test]
fn conversations_are_imported() {
    let workshop = Workshop::new();
    let message = |role: &str, words: &str| json!({"author": {"role": role}, "content": {"parts": [words]}});
    let chatgpt = json!([{
        "title": "Boats", "create_time": 1_775_037_600.5, "update_time": 1_775_037_700.0, "conversation_id": "c-1",
        "current_node": "b", "mapping": {
            "a": {"parent": null, "message": message("user", "Which boat?")},
            "b": {"parent": "a", "message": message("assistant", "The one with the tapir.")},
        },
    }]);
    let zip =
        zip_of(&[("conversations.json", chatgpt.to_string().as_bytes()), ("chat.html", b"<html>tapir")]);
    let path = workshop.file("chatgpt.zip", zip);
    assert_eq!(workshop.counts(&["chatgpt", &path]), [1, 0, 0, 0, 0]);
    assert_eq!(workshop.search("tapir"), ["c/conversations:c-1"]);
    let (data, time) = record(&workshop, "c-1");
    assert_eq!((&data["title"], &data["messages"]), (&json!("Boats"), &json!(2)));
    assert_eq!(data["body"], "You: Which boat?\n\nChatGPT: The one with the tapir.");
    assert_eq!(time.as_deref(), Some("2026-04-01T10:00:00.5Z"));
    let claude = json!([{
        "uuid": "u-1", "name": "Harbours", "created_at": "2026-04-01T10:00:00Z", "updated_at": "2026-04-01T11:00:00Z",
        "chat_messages": [
            {"sender": "human", "text": "Hi", "attachments": [{"file_name": "a.txt", "extracted_content": "the dugong"}]},
            {"sender": "assistant", "content": [{"type": "text", "text": "Hello"}]},
        ],
    }]);
    let path = workshop.file("conversations.json", claude.to_string());
    assert_eq!(workshop.counts(&["claude", &path]), [1, 0, 0, 0, 0]);
    let (data, time) = record(&workshop, "u-1");
    assert_eq!(data["body"], "You: Hi\n\n--- a.txt ---\nthe dugong\n\nClaude: Hello");
    assert_eq!((&data["title"], time.as_deref()), (&json!("Harbours"), Some("2026-04-01T10:00:00Z")));
}

#[test]
fn slack_messages_and_github_issues_are_imported() {
    let workshop = Workshop::new();
    let day = json!([
        {"type": "message", "user": "U1", "ts": "1775037600.000100", "text": "The ocelot &amp; <@U1>", "user_profile": {"real_name": "Ann"}},
        {"type": "message", "user": "U2", "ts": "1775037700.000200", "thread_ts": "1775037600.000100", "text": "ok"},
        {"type": "message", "text": "no time"},
    ]);
    let zip = zip_of(&[("users.json", b"[]"), ("general/2026-04-01.json", day.to_string().as_bytes())]);
    let path = workshop.file("slack.zip", zip);
    let output = workshop.import(&["slack", &path]);
    assert!(stderr(&output).contains("message 3: it has no time `ts`"), "{output:?}");
    // A reply names the first message of its thread.
    assert_eq!(
        workshop.search("ocelot"),
        ["c/messages/general%2F1775037600.000100", "c/messages/general%2F1775037700.000200"]
    );
    let (data, time) = record(&workshop, "general/1775037700.000200");
    assert_eq!((&data["from"], &data["channel"]), (&json!("U2"), &json!("general")));
    assert_eq!((&data["thread_id"], time.is_some()), (&json!("general/1775037600.000100"), true));
    let (data, _) = record(&workshop, "general/1775037600.000100");
    assert_eq!((&data["from"], &data["body"]), (&json!("Ann"), &json!("The ocelot & @Ann")));
    let issues = json!([{
        "number": 12, "title": "Leak", "body": "The manatee leaks", "state": "OPEN", "url": "https://github.com/o/r/issues/12",
        "author": {"login": "ann"}, "labels": [{"name": "bug"}], "createdAt": "2026-04-01T10:00:00Z",
        "comments": [{"author": {"login": "bob"}, "body": "Seen"}],
    }]);
    let path = workshop.file("issues.json", issues.to_string());
    assert_eq!(workshop.counts(&["github", &path]), [1, 0, 0, 0, 0]);
    assert_eq!(workshop.search("manatee"), ["c/issues/o%2Fr%2F12"]);
    let (data, time) = record(&workshop, "o/r/12");
    assert_eq!((&data["labels"], &data["comments"]), (&json!(["bug"]), &json!("bob: Seen")));
    assert_eq!((&data["state"], time.as_deref()), (&json!("open"), Some("2026-04-01T10:00:00Z")));
}

#[test]
fn names_that_every_record_has_are_truncated() {
    let (workshop, long) = (Workshop::new(), "N".repeat(9_000));
    let event = "BEGIN:VEVENT\nUID:long\nSUMMARY:s\nDTSTART:20260401\nEND:VEVENT\n";
    let calendar = format!("BEGIN:VCALENDAR\nX-WR-CALNAME:{long}\n{event}END:VCALENDAR\n");
    let feed = format!("<rss><channel><title>{long}</title><item><guid>entry</guid></item></channel></rss>");
    for (kind, content, key, field) in
        [("ics", calendar, "long", "calendar"), ("feed", feed, "entry", "feed")]
    {
        let path = workshop.file(kind, content);
        assert_eq!(workshop.counts(&[kind, &path]), [1, 0, 0, 0, 0], "{kind}");
        assert_eq!(record(&workshop, key).0[field], "N".repeat(200), "{kind}");
    }
    // An event without a calendar around it, and an entry of a Kindle that is damaged.
    workshop.file("f/event.ics", event);
    let clipping = "Book (A)\n- Highlight | Friday, March 1, 2024 10:00:00 AM\n\nThe curlew\n==========\ncut\n==========\n";
    workshop.file("f/My Clippings.txt", clipping);
    let folder = Path::new(&workshop.store()).with_file_name("f");
    let [added, changed, _, _, rejected] = workshop.counts(&["files", folder.to_str().unwrap()]);
    assert_eq!((added, changed, rejected), (1, 1, 1));
}
