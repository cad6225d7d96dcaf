//! Hostile attachments: each message is imported, within bounds, and says what it lacks.

use serde_json::{Value, json};

use super::attachments::Mail;
use crate::import::commands::Workshop;
use crate::import::files::{gzip_of, zip_of};
use crate::import::values::record;

/// Imports a message. Returns its fields.
#[track_caller]
fn import(workshop: &Workshop, id: &str, mail: impl AsRef<[u8]>) -> Value {
    let file = workshop.file(&format!("{id}.eml"), mail);
    assert_eq!(workshop.counts(&["eml", &file]), [1, 0, 0, 0, 0], "{id}");
    record(workshop, &format!("{id}@x.test")).0
}

fn reasons(data: &Value) -> String {
    data["attachment_problems"].to_string()
}

#[test]
fn attachments_nested_ten_deep_are_read_to_their_bounds() {
    let workshop = Workshop::new();
    let messages = (0..10).rev().fold(b"the wallaby".to_vec(), |inner, level| {
        let name = if level == 9 { "deep.log" } else { "inner.eml" };
        let header = format!("application/octet-stream; name={name}");
        Mail::new(&format!("m{level}")).attach(&header, &inner).written().into_bytes()
    });
    let data = import(&workshop, "m0", messages);
    assert!(reasons(&data).contains("in more than 5 messages that are attached to each other"), "{data}");
    assert_eq!(workshop.search("\"Papers of m5\"").len(), 1);
    let archives = (0..10).rev().fold(b"the wallaby".to_vec(), |inner, level| {
        let name = if level == 9 { "deep.txt" } else { "inner.zip" };
        zip_of(&[(name, &inner), ("note.txt", format!("level{level}").as_bytes())])
    });
    let data =
        import(&workshop, "z", Mail::new("z").attach("application/zip; name=a.zip", &archives).written());
    assert!(reasons(&data).contains("it is in more than 4 archives"), "{data}");
    assert_eq!((workshop.search("\"level3\"").len(), workshop.search("\"level4\"").len()), (1, 0));
    assert!(workshop.search("wallaby").is_empty());
}

#[test]
fn a_thousand_attachments_are_named_and_read() {
    let workshop = Workshop::new();
    let parts = |count: usize, name: &dyn Fn(usize) -> String| {
        (0..count).fold(Mail::new("m"), |mail, number| {
            let header = format!("application/octet-stream; name=\"{}\"", name(number));
            mail.attach(&header, format!("<!doctype html>word{number}").as_bytes())
        })
    };
    // Equal names are no problem.
    let data = import(&workshop, "m", parts(1_000, &|_| "a.html".to_owned()).written());
    assert_eq!(data["attachments"].as_array().unwrap().len(), 1_000);
    assert_eq!((&data["attachment_1"], &data["attachment_20"]), (&json!("word0"), &json!("word19")));
    assert_eq!((&data["attachment_21"], &data["attachment_problems"]), (&Value::Null, &Value::Null));
    assert!(
        data["attached_text"]
            .as_str()
            .unwrap()
            .starts_with("--- a.html ---\nword20\n\n--- a.html ---\nword21")
    );
    assert_eq!(workshop.search("word999").len(), 1);
    let workshop = Workshop::new();
    let mail = parts(1_060, &|number| format!("{number}.html")).written();
    let summary = workshop.import(&["eml", &workshop.file("summary.eml", &mail)]);
    let summary: Value = serde_json::from_slice(&summary.stdout).unwrap();
    assert_eq!(summary["unread_attachments"], 60, "{summary}");
    let data = record(&workshop, "m@x.test").0;
    assert_eq!(data["attachments"].as_array().unwrap().len(), 1_060);
    let problems = data["attachment_problems"].as_array().unwrap();
    assert_eq!(problems.len(), 51);
    assert_eq!(problems[0]["name"], "1000.html");
    assert!(
        problems[0]["reason"].as_str().unwrap().contains("more than 1000 attached files"),
        "{problems:?}"
    );
    assert_eq!(
        (&problems[50]["name"], &problems[50]["reason"], &problems[50]["files"]),
        (
            &json!("1050.html, 1051.html, 1052.html and 7 more"),
            &json!("10 more attached files could not be read"),
            &json!(10)
        )
    );
    assert_eq!(workshop.search("1059.html").len(), 1);
}

#[test]
fn attachments_that_are_text_by_their_type_are_all_read() {
    let workshop = Workshop::new();
    let mail = (0..1_100).fold(Mail::new("m"), |mail, number| {
        mail.attach("text/plain; name=a.txt", format!("word{number}").as_bytes())
    });
    let data = import(&workshop, "m", mail.written());
    assert_eq!((data["attachments"].as_array().unwrap().len(), reasons(&data)), (1_100, "null".to_owned()));
    assert_eq!(workshop.search("word1099").len(), 1);
}

#[test]
fn bombs_are_bounded() {
    let workshop = Workshop::new();
    // A gigabyte in a megabyte: pieces of a gzip file follow each other.
    let bomb = gzip_of(&vec![b'a'; 64 << 20]).repeat(16);
    assert!(bomb.len() < 2 << 20, "{}", bomb.len());
    let entries = zip_of(&[("a.txt", &vec![b'b'; 8 << 20]), ("b.txt", b"the wombat"), ("../up.txt", b"up")]);
    let document = format!("<document><body><p><r><t>{}</t></r></p></body></document>", "x ".repeat(4 << 20));
    let document =
        zip_of(&[("[Content_Types].xml", b"<Types/>"), ("word/document.xml", document.as_bytes())]);
    let mail = Mail::new("bomb")
        .attach("application/gzip; name=a.txt.gz", &bomb)
        .attach("text/plain; name=a.txt", b"a wallaby");
    let data = import(&workshop, "bomb", mail.written());
    assert!(reasons(&data).contains("it is larger than 67108864 bytes"), "{}", reasons(&data));
    assert_eq!((&data["attachment_1"], &data["attachment_2"]), (&Value::Null, &json!("a wallaby")));
    for (id, header, content) in
        [("zip", "application/zip; name=a.zip", &entries), ("docx", "application/x; name=a.docx", &document)]
    {
        let mail = Mail::new(id).attach(header, content).attach("text/plain; name=a.txt", b"a wallaby");
        let data = import(&workshop, id, mail.written());
        let text = data["attachment_1"].as_str().unwrap().len();
        // Thirty times the message, which is base64.
        assert!(text <= content.len() * 45, "{id}: {text} of {}", content.len());
        assert!(reasons(&data).contains("its text is cut"), "{id}: {}", reasons(&data));
        assert_eq!(data["attachment_2"], "a wallaby", "{id}");
    }
    assert_eq!(workshop.search("wallaby").len(), 3);
}

/// Returns a message that is attached to a message with its id, and so on.
fn self_containing(levels: usize) -> Vec<u8> {
    let inner = Mail::new("self").attach("message/rfc822", b"Subject: self\n\nx").written();
    (0..levels).fold(inner.into_bytes(), |inner, _| {
        let encoded = Mail::new("self").attach("application/octet-stream; name=self.eml", &inner);
        encoded.written().into_bytes()
    })
}

#[test]
fn a_message_that_contains_itself_ends() {
    let workshop = Workshop::new();
    let data = import(&workshop, "self", self_containing(8));
    assert!(reasons(&data).contains("in more than 5 messages"), "{}", reasons(&data));
    let forwarded = (0..12).fold("Subject: deep\n\nend\n".to_owned(), |inner, _| {
        format!("Message-ID: <loop@x.test>\nSubject: again\nContent-Type: message/rfc822; name=self.eml\n\n{inner}")
    });
    let data = import(&workshop, "loop", forwarded);
    assert_eq!(data["attachments"].as_array().unwrap().len(), 6);
}
