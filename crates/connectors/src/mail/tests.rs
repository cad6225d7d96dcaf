//! Tests of messages of every shape.

use serde_json::json;

use super::super::attached::NoAttachments;
use super::super::intake::ATTACHMENT_PROBLEMS;
use super::*;

fn read_message(raw: &[u8]) -> Result<MailRecord, String> {
    super::read_message(raw, &NoAttachments)
}

#[test]
fn headers_and_text_are_decoded() {
    let raw = "Message-ID: <m1@x.test>\nFrom: =?utf-8?q?Ren=C3=A9?= <rene@x.test>\nTo: a@x.test, B <b@x.test>\n\
        Subject: =?utf-8?b?w4lww6k=?=\nDate: Wed, 1 Apr 2026 10:00:00 +0200\nX-Gmail-Labels: Inbox,Work/Bills\n\
        Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\nCaf=C3=A9=\n au lait\n";
    let read = read_message(raw.as_bytes()).unwrap();
    assert_eq!(read.key, "m1@x.test");
    assert_eq!(
        Value::Object(read.data),
        json!({
            "subject": "Épé", "from": "René <rene@x.test>", "from.address": "rene@x.test", "from.name": "René",
            "to": "a@x.test, B <b@x.test>", "date": "2026-04-01T10:00:00+02:00", "message_id": "m1@x.test",
            "thread_id": "m1@x.test", "labels": ["Inbox", "Work/Bills"], "body": "Café au lait",
        })
    );
}

#[track_caller]
fn check_body(raw: &str, attachments: &Value, body: &str) {
    let read = read_message(raw.as_bytes()).unwrap();
    assert_eq!(read.data.get("attachments").unwrap_or(&Value::Null), attachments, "{raw}");
    assert_eq!(read.data.get("body"), Some(&json!(body)), "{raw}");
}

#[test]
fn the_text_of_an_attached_message_stands_below_its_headers() {
    let attached = "Content-Type: message/rfc822; name=\"rfc822.eml\"\n\nFrom: Ann <a@x.test>\nSubject: inner\n\ninner text\n";
    let shown = "---------- Forwarded message ----------\nFrom: Ann <a@x.test>\nSubject: inner\n\ninner text";
    let outer = |kind: &str, parts: &str| {
        format!("Subject: x\nContent-Type: multipart/{kind}; boundary=b\n\n--b\n{parts}\n--b--\n")
    };
    let text = "Content-Type: text/plain\n\nContent-Type: message/rfc822\n";
    check_body(
        &outer("mixed", &format!("{text}--b\n{attached}")),
        &json!(["rfc822.eml"]),
        &format!("Content-Type: message/rfc822\n\n{shown}"),
    );
    let digest = "\nSubject: inner\n\ninner text\n--b\n\nSubject: other\n\nother text";
    check_body(
        &outer("digest", &format!("{text}--b\n{digest}")),
        &Value::Null,
        "Content-Type: message/rfc822\n\n---------- Forwarded message ----------\nSubject: inner\n\ninner text\n\n\
         ---------- Forwarded message ----------\nSubject: other\n\nother text",
    );
    check_body(&format!("Subject: x\n{attached}"), &json!(["rfc822.eml"]), shown);
    let removed = "Content-Type: message/rfc822\n\nMessage removed\n";
    for removed in [removed, removed.trim_end()] {
        check_body(
            &outer("mixed", &format!("{text}--b\n{removed}")),
            &Value::Null,
            "Content-Type: message/rfc822\n\nMessage removed",
        );
    }
    // `From: a`, an empty line and `x` in base64.
    let encoded = "Content-Type: message/global\nContent-Transfer-Encoding: base64\n\nRnJvbTogYQoKeA==\n";
    check_body(
        &outer("mixed", &format!("{text}--b\n{encoded}")),
        &Value::Null,
        "Content-Type: message/rfc822\n\n---------- Forwarded message ----------\nFrom: a\n\nx",
    );
}

#[test]
fn forwarded_messages_are_read_five_levels_deep() {
    let nested = (1..=7).rev().fold("Subject: none\n\nlevel 8\n".to_owned(), |inner, level| {
        format!(
            "Subject: s{level}\nContent-Type: multipart/mixed; boundary=b{level}.\n\n--b{level}.\n\nlevel {level}\n\
             --b{level}.\nContent-Type: message/rfc822\n\n{inner}\n--b{level}.--\n"
        )
    });
    let read = read_message(nested.as_bytes()).unwrap();
    let body = read.data.get("body").and_then(Value::as_str).unwrap();
    for level in 1..=8 {
        assert_eq!(body.contains(&format!("level {level}")), level <= 6, "{level} {body}");
    }
    let problems = read.data.get("attachment_problems").unwrap();
    assert_eq!(
        (&problems[0]["type"], &problems[0]["name"]),
        (&json!("message/rfc822"), &json!("attached message"))
    );
}

#[test]
fn encoded_messages_share_the_limit_of_their_message() {
    // Each has 1,900 multiparts in 116 KB, which is a tenth of the limit of one message.
    let part = "--b\nContent-Type: multipart/mixed; boundary=none\n\nx\n".repeat(1_900);
    let inner = format!(
        "Subject: needle\nContent-Type: multipart/mixed; boundary=b\n\n{part}--b--\n{}",
        "y".repeat(20_000)
    );
    let encoded = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, inner);
    let attached =
        format!("--o\nContent-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n{encoded}\n");
    let raw =
        format!("Subject: x\nContent-Type: multipart/mixed; boundary=o\n\n{}--o--\n", attached.repeat(40));
    let read = read_message(raw.as_bytes()).unwrap();
    let needles = read.data.get("body").and_then(Value::as_str).unwrap().matches("needle").count();
    assert!((5..40).contains(&needles), "{needles}");
}

#[test]
fn texts_of_attachments_are_indexed_apart_from_the_body() {
    let part = |header: &str, text: &str| format!("--b\n{header}\n\n{text}\n");
    let raw = [
        "Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n".to_owned(),
        part("Content-Type: text/plain", "the body"),
        part("Content-Type: text/csv; name=\"a.csv\"", "id,name\n1,Ann"),
        part(
            "Content-Type: text/html\nContent-Disposition: attachment; filename=\"r.html\"",
            "<p>one</p><p>two</p>",
        ),
        part("Content-Type: message/delivery-status", "Action: failed"),
        part("Content-Type: application/octet-stream; name=\"notes.TXT\"", "late notes"),
        part("Content-Type: application/octet-stream; name=\"a.bin\"", "binary"),
        part("Content-Type: image/png; name=\"b.png\"", "picture"),
        "--b--\n".to_owned(),
    ]
    .concat();
    check_body(&raw, &json!(["a.csv", "r.html", "notes.TXT", "a.bin", "b.png"]), "the body");
    let read = read_message(raw.as_bytes()).unwrap();
    for (field, expect) in [
        ("attachment_1", json!("id,name\n1,Ann")),
        ("attachment_2", json!("one\n\ntwo")),
        ("attachment_3", json!("late notes")),
        ("attachment_4", Value::Null),
        ("attached_text", json!("Action: failed")),
        ("attachment_problems", Value::Null),
    ] {
        assert_eq!(read.data.get(field).unwrap_or(&Value::Null), &expect, "{field}");
    }
}

#[test]
fn a_conversation_has_the_id_of_its_first_message() {
    for (headers, thread, references) in [
        ("Message-ID: <c@x>\nIn-Reply-To: <b@x>\nReferences: <a@x>\n\t<b@x>\n", "a@x", json!(["a@x", "b@x"])),
        ("Message-ID: <b@x>\nIn-Reply-To: <a@x>\n", "a@x", Value::Null),
        ("Message-ID: <a@x>\n", "a@x", Value::Null),
        ("X-GM-THRID: 1788\nMessage-ID: <b@x>\nReferences: <a@x>\n", "1788", json!(["a@x"])),
    ] {
        let read = read_message(format!("{headers}Subject: x\n\ny\n").as_bytes()).unwrap();
        assert_eq!(read.data.get("thread_id"), Some(&json!(thread)), "{headers}");
        assert_eq!(read.data.get("references").unwrap_or(&Value::Null), &references, "{headers}");
    }
    let read = read_message(b"Subject: x\n\ny\n").unwrap();
    assert_eq!(read.data.get("thread_id"), Some(&json!(read.key)));
}

#[test]
fn the_keys_of_version_0_1_0_stay() {
    let raw =
        "Message-ID: <m@x>\nFrom: Ann <a@x>\nContent-Type: text/html\n\n<div>one</div><div hidden>two</div>";
    let read = read_message(raw.as_bytes()).unwrap();
    assert_eq!(read.data.get("body"), Some(&json!("one")));
    assert_eq!(
        serde_json::to_string(&read.identity).unwrap(),
        r#"{"from":"Ann <a@x>","message_id":"m@x","body":"onetwo"}"#
    );
}

#[test]
fn a_message_nested_a_million_deep_is_read() {
    let nested = "Content-Type: message/rfc822\n\n".repeat(1_000_000);
    check_body(&format!("Subject: x\n{nested}"), &Value::Null, "");
    let open = |level: u32| format!("Content-Type: multipart/mixed; boundary=b{level}.\n\n--b{level}.\n");
    let close = |level: u32| format!("\n--b{level}.--\n");
    let multiparts: String = (0..1_000).map(open).collect();
    let ends: String = (0..1_000).rev().map(close).collect();
    check_body(&format!("Subject: x\n{multiparts}\ntext\n{ends}"), &Value::Null, "text");
}

#[test]
fn html_of_any_shape_becomes_text() {
    for shape in ["<div>", "<", ">", "&", "&lt;", "<!--", "<style>", "<a href=\"", "</p>", "é<"] {
        let raw = format!("Content-Type: text/html; charset=utf-8\n\n{}", shape.repeat(300_000));
        assert!(read_message(raw.as_bytes()).is_ok(), "{shape}");
    }
}

#[test]
fn headers_of_any_shape_are_read() {
    for shape in
        ["(", "<", "\"", "=?aa?q?", "=?utf-8?b?YQ", "a <a@b>, ", "\n ", ";a*1=", "\\", "@", ",", "[", ":"]
    {
        for name in ["From", "Subject", "Date", "Received", "References", "X-Gmail-Labels", "List-Id"] {
            let raw = format!("{name}: {}\n\nx\n", shape.repeat(100_000 / shape.len()));
            let _ = read_message(raw.as_bytes());
        }
    }
}

#[test]
fn a_message_without_an_id_gets_a_key_of_its_content() {
    let raw = b"Subject: x\n\ny\n";
    let message = MessageParser::default().parse(&raw[..]).unwrap();
    let key = message_key(&message, raw);
    assert!(key.starts_with("sha256-") && key.len() == 7 + 64, "{key}");
}

/// Returns a multipart message with these parts: headers, an empty line and text.
fn multipart(kind: &str, parts: &[&str]) -> String {
    let parts: String = parts.iter().map(|part| format!("--b\n{part}\n")).collect();
    format!("Subject: x\nContent-Type: multipart/{kind}; boundary=b\n\n{parts}--b--\n")
}

#[test]
fn the_richer_alternative_is_the_body() {
    let (stub, html) =
        ("Content-Type: text/plain\n\nNo HTML viewer", "Content-Type: text/html\n\n<p>Order one ships today");
    let inner = multipart("related", &[html, "Content-Type: image/png; name=\"a.png\"\n\npicture"])
        .replace("--b", "--c");
    let inner = inner.replace("boundary=b", "boundary=c").replace("Subject: x\n", "");
    let picture = json!(["a.png"]);
    for (parts, attachments, body) in [
        (vec![stub, html], &Value::Null, "Order one ships today"),
        (vec![html, stub], &Value::Null, "Order one ships today"),
        (vec![stub, &inner], &picture, "Order one ships today"),
        (vec!["Content-Type: text/plain\n\n", html], &Value::Null, "Order one ships today"),
        (
            vec!["Content-Type: text/plain\n\nOrder ONE ships: today", html],
            &Value::Null,
            "Order ONE ships: today",
        ),
        (vec!["Content-Type: text/plain\n\nOrder one ships", html], &Value::Null, "Order one ships"),
        (vec![html], &Value::Null, "Order one ships today"),
        (vec![stub], &Value::Null, "No HTML viewer"),
    ] {
        check_body(&multipart("alternative", &parts), attachments, body);
    }
    // Two alternatives in one message are chosen apart.
    let first =
        multipart("alternative", &[stub, html]).replace("--b", "--c").replace("boundary=b", "boundary=c");
    let first = first.replace("Subject: x\n", "");
    let second = first
        .replace("--c", "--d")
        .replace("boundary=c", "boundary=d")
        .replace("No HTML viewer", "Order one ships today!");
    check_body(
        &multipart("mixed", &[&first, "Content-Type: text/plain\n\nbetween", &second]),
        &Value::Null,
        "Order one ships today\n\nbetween\n\nOrder one ships today!",
    );
}

#[test]
fn invitations_are_events_wherever_they_are() {
    let event = "BEGIN:VCALENDAR\nMETHOD:CANCEL\nBEGIN:VEVENT\nSUMMARY:Walk\nEND:VEVENT\nEND:VCALENDAR";
    let calendar = format!("Content-Type: text/calendar; method=CANCEL\n\n{event}");
    let plain = "Content-Type: text/plain\n\nNo walk";
    check_body(&format!("Subject: x\n{calendar}\n"), &Value::Null, "Cancelled: Walk");
    check_body(&multipart("alternative", &[plain, &calendar]), &Value::Null, "No walk\n\nCancelled: Walk");
    let attached = format!(
        "Content-Type: application/octet-stream; name=a.ics\nContent-Disposition: attachment\n\n{event}"
    );
    let raw = multipart("mixed", &[plain, &attached]);
    check_body(&raw, &json!(["a.ics"]), "No walk");
    let read = read_message(raw.as_bytes()).unwrap();
    assert_eq!(read.data.get("attachment_1"), Some(&json!("Cancelled: Walk")));
}

#[test]
fn parts_for_other_programs_are_named() {
    let encrypted = "multipart/encrypted; protocol=\"application/pgp-encrypted\"";
    let raw = multipart(
        "mixed",
        &[
            "Content-Type: application/pgp-encrypted\n\nVersion: 1",
            "Content-Type: application/octet-stream; name=\"encrypted.asc\"\n\n-----BEGIN PGP MESSAGE-----\n\nx",
        ],
    );
    let raw = raw.replace("multipart/mixed", encrypted);
    let read = read_message(raw.as_bytes()).unwrap();
    let body = read.data.get("body").and_then(Value::as_str).unwrap();
    assert!(body.starts_with("[Encrypted with OpenPGP. ") && !body.contains("BEGIN"), "{body}");
    assert_eq!(read.data.get("attachments"), Some(&json!(["encrypted.asc"])));
    assert_eq!(read.data.get("attached_text"), None);

    let clear = "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nHello\n-----BEGIN PGP SIGNATURE-----\n\niQ\n-----END PGP SIGNATURE-----";
    check_body(&format!("Subject: x\n\n{clear}\n"), &Value::Null, "Hello");
    let signed = "multipart/signed; protocol=\"application/pgp-signature\"";
    let raw = multipart(
        "mixed",
        &[
            "Content-Type: text/plain\n\nHello",
            "Content-Type: application/pgp-signature; name=\"signature.asc\"\n\n-----BEGIN PGP SIGNATURE-----",
        ],
    );
    check_body(&raw.replace("multipart/mixed", signed), &json!(["signature.asc"]), "Hello");

    // A signature, a key, and the name of an attachment with its attributes.
    let tnef = b"\x78\x9F\x3E\x22\x01\x00\x02\x10\x80\x01\x00\x0A\x00\x00\x00plan.docx\0\x00\x00";
    let encoded = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, tnef);
    let part = format!(
        "Content-Type: application/ms-tnef; name=\"winmail.dat\"\nContent-Transfer-Encoding: base64\n\n{encoded}"
    );
    let raw = multipart("mixed", &["Content-Type: text/plain\n\nSee below", &part]);
    check_body(&raw, &json!(["winmail.dat", "plan.docx"]), "See below");
    let read = read_message(raw.as_bytes()).unwrap();
    let named = read.data.get("attachment_1").and_then(Value::as_str).unwrap();
    assert!(named.starts_with("[Outlook's own format (TNEF) with: plan.docx. "), "{named}");

    let smime = "Subject: x\nContent-Type: application/pkcs7-mime; name=smime.p7m\n\nno CMS\n";
    let read = read_message(smime.as_bytes()).unwrap();
    assert!(
        read.data.get("body").and_then(Value::as_str).unwrap().starts_with("[S/MIME that cannot be read.")
    );
}

#[test]
fn headers_in_other_bytes_keep_the_identity() {
    let raw = b"Message-ID: <m@x>\nSubject: Gr\xF6\xDFe\nX-Gmail-Labels: Caf\xE9\n\nbody";
    let read = read_message(raw).unwrap();
    assert_eq!(read.data.get("subject"), Some(&json!("Größe")));
    assert_eq!(read.data.get("labels"), Some(&json!(["Café"])));
    assert_eq!(read.identity.get("subject"), Some(&json!("Gr\u{FFFD}\u{FFFD}e")));
}

#[test]
fn attached_messages_that_are_left_out_are_named() {
    let mut raw = "Subject: innermost\n\ntext\n".to_owned();
    for level in 0..7 {
        raw = format!("Subject: {level}\nContent-Type: message/rfc822; name=m{level}.eml\n\n{raw}");
    }
    let shown = |raw: &str| {
        let data = read_message(raw.as_bytes()).unwrap().data;
        let problem = data[ATTACHMENT_PROBLEMS][0].clone();
        let text = |field: &str| problem[field].as_str().unwrap_or_default().to_owned();
        [text("name"), text("type"), text("reason")]
    };
    let reason = "it is in more than 5 messages that are attached to each other";
    assert_eq!(shown(&raw), ["m1.eml", "message/rfc822", reason]);
    // One that is encoded has a limit of its own.
    let headers = format!("Content-Type: a/b{}\n\nx", "; a=b".repeat(10_000));
    let encoded = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, headers);
    let part = format!("Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n{encoded}");
    let [name, _, reason] = shown(&multipart("mixed", &[&part]));
    assert!(name == "attached message" && reason.contains("longer than 16384 bytes"), "{name}: {reason}");
}
