//! Imports of files that try to exhaust the stack, the memory or the time of their parser, through the built binary.
//!
//! Each import ends with records, with a rejection that names the place, or with an error of the command, never with a
//! signal.

use std::fmt::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::import::commands::Workshop;
use crate::support::{fetchwell, stderr};

/// A mailbox of messages between two usual ones.
fn mailbox(hostile: &[String]) -> String {
    let usual = |id: &str| format!("Message-ID: <{id}>\nSubject: {id}\n\nusual text of {id}\n");
    let mut text = String::new();
    for message in [&[usual("first")], hostile, &[usual("last")]].concat() {
        write!(text, "From a@x.test Wed Apr  1 10:00:00 2026\n{message}\n\n").unwrap();
    }
    text
}

fn nested_messages(depth: usize) -> String {
    format!("{}\nSubject: innermost\n\nx\n", "Content-Type: message/rfc822\n\n".repeat(depth))
}

#[test]
fn an_attached_message_nested_too_deep_for_the_stack_is_imported() {
    let workshop = Workshop::new();
    let encoded: String = BASE64_STANDARD
        .encode(nested_messages(200_000))
        .as_bytes()
        .chunks(76)
        .map(|line| format!("{}\n", String::from_utf8_lossy(line)))
        .collect();
    let hostile = [
        format!("Message-ID: <nested>\n{}", nested_messages(32_000)),
        format!("Message-ID: <deeper>\n{}", nested_messages(200_000)),
        format!(
            "Message-ID: <encoded>\nContent-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n{encoded}"
        ),
        format!(
            "Message-ID: <digest>\n{}",
            "Content-Type: multipart/digest; boundary=b\n\n--b\n\n".repeat(5_000)
        ),
    ];
    let file = workshop.file("mail.mbox", mailbox(&hostile));
    assert_eq!(workshop.counts(&["mbox", &file]), [6, 0, 0, 0, 0]);
    for id in ["first", "nested", "deeper", "encoded", "digest", "last"] {
        workshop.fetch(&format!("c/messages:{id}"));
    }
    assert_eq!(workshop.counts(&["mbox", &file]), [0, 0, 6, 0, 0]);
}

#[test]
fn a_message_over_a_limit_is_named_and_skipped() {
    let workshop = Workshop::new();
    let multipart = "Content-Type: multipart/mixed; boundary=b\n\n";
    let missing = "--b\nContent-Type: multipart/mixed; boundary=none\n\nx\n".repeat(20_000);
    let parameters: String = (0..20_000).map(|number| format!("; a{number}*1=x")).collect();
    let hostile = [
        format!("{multipart}{missing}"),
        format!("{multipart}{}", "--b\n\n".repeat(600_000)),
        format!("Content-Type: text/plain{parameters}\n\nx\n"),
    ];
    let file = workshop.file("mail.mbox", mailbox(&hostile));
    let output = workshop.import(&["mbox", &file]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let said = stderr(&output);
    for expect in [
        "mail.mbox:8: it has too many multipart parts for its size (20001)",
        ": it may have more than 500000 parts",
        ": a Content-Type header is longer than 16384 bytes",
        "3 items were rejected, see above; everything else is imported",
    ] {
        assert!(said.contains(expect), "{said}");
    }
    workshop.fetch("c/messages:first");
    workshop.fetch("c/messages:last");
}

#[test]
fn mail_with_hostile_html_and_headers_is_imported() {
    let workshop = Workshop::new();
    let html = ["<div>", "<", "&", "<!--", "<table><tr><td>", "<style>", "<a href=\""];
    let mut messages: Vec<String> =
        html.iter().map(|tag| format!("Content-Type: text/html\n\n{}", tag.repeat(200_000))).collect();
    for shape in ["(", "=?utf-8?q?", "<", "\"", "a <a@b>, "] {
        let value = shape.repeat(20_000);
        messages.push(format!("From: {value}\nSubject: {value}\nReferences: {value}\n\nx\n"));
    }
    let file = workshop.file("mail.mbox", mailbox(&messages));
    let expect = u64::try_from(messages.len()).unwrap() + 2;
    assert_eq!(workshop.counts(&["mbox", &file]), [expect, 0, 0, 0, 0]);
}

#[test]
fn json_that_is_nested_too_deep_is_named_and_skipped() {
    let workshop = Workshop::new();
    let lists = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let objects = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    let items = format!(
        r#"[{{"id":1}},{{"id":2,"a":{}}},{{"id":3,"a":{objects}}},{{"id":4,"a":{}}},{{"id":5,"a":{}}},{{"id":6}}]"#,
        lists(1_000_000),
        lists(99),
        lists(100),
    );
    let file = workshop.file("a.json", &items);
    let output = workshop.import(&["json", &file]);
    let said = stderr(&output);
    for item in [2, 3, 5] {
        let expect = format!("a.json:item {item}: it is nested more than 100 levels deep");
        assert!(said.contains(&expect), "{said}");
    }
    assert_eq!(workshop.counts(&["json", &file]), [0, 0, 3, 0, 3]);
    for id in [1, 4, 6] {
        workshop.fetch(&format!("c/a:{id}"));
    }
    let tables = workshop.file("b.json", format!(r#"{{"t":{items},"u":[{{"id":1}}]}}"#));
    assert_eq!(workshop.counts(&["json", &tables]), [4, 0, 0, 0, 3]);
    let unclosed = workshop.file("c.json", format!("[{{\"id\":1}},{}", "[".repeat(1_000_000)));
    let said = stderr(&workshop.import(&["json", &unclosed]));
    assert!(said.contains("c.json is not a JSON file of objects"), "{said}");
    workshop.fetch("c/c:1");

    let line = |key: usize, value: &str| {
        format!("{{\"stream\":\"s\",\"key\":\"{key}\",\"data\":{{\"a\":{value}}}}}\n")
    };
    let lines =
        [line(1, "1"), line(2, &lists(1_000_000)), line(3, &lists(99)), line(4, &"[".repeat(1_000_000))];
    let records = workshop.file("a.ndjson", lines.concat());
    let said = stderr(&workshop.import(&["records", &records]));
    for number in [2, 4] {
        let expect = format!("a.ndjson:{number}: it is nested more than 100 levels deep");
        assert!(said.contains(&expect), "{said}");
    }
    assert_eq!(workshop.counts(&["records", &records]), [0, 0, 2, 0, 2]);
}

#[test]
fn hostile_notes_are_imported() {
    let workshop = Workshop::new();
    let brackets = "[".repeat(100_000);
    for (name, note) in [
        ("quotes.md", format!("{}a\n{}", ">".repeat(100_000), "x\n".repeat(100_000))),
        ("lists.md", format!("{}a\n{}", "> - ".repeat(50_000), "x\n".repeat(50_000))),
        ("links.md", "[a](".repeat(100_000)),
        ("brackets.md", format!("{brackets}\n{}", "![".repeat(100_000))),
        ("emphasis.md", "*a **b _c ".repeat(50_000)),
        ("html.md", "<a <!-- <![CDATA[ ".repeat(50_000)),
        ("yaml.md", format!("---\na: {brackets}\n---\ntext")),
        ("aliases.md", format!("---\na0: &a0 [x,x]\n{}---\ntext", aliases(60))),
        ("toml.md", format!("+++\na = {brackets}\n+++\ntext")),
        ("keys.md", format!("+++\na{} = 1\n+++\ntext", ".a".repeat(100_000))),
        ("last.md", "# Last\n".to_owned()),
    ] {
        workshop.file(&format!("notes/{name}"), note);
    }
    let folder = workshop.file("notes/first.md", "# First\n");
    let folder = folder.strip_suffix("/first.md").unwrap();
    assert_eq!(workshop.counts(&["markdown", folder]), [12, 0, 0, 0, 0]);
    workshop.fetch("c/documents:last.md");
}

/// Returns lines that each double the expansion of the line before.
fn aliases(count: usize) -> String {
    (1..count).map(|number| format!("a{number}: &a{number} [*a{0},*a{0}]\n", number - 1)).collect()
}

#[test]
fn hostile_configuration_is_an_error_of_the_command() {
    let workshop = Workshop::new();
    let deep = 100_000;
    for (name, text) in [
        ("flow.yaml", format!("a: {}", "[".repeat(deep))),
        ("maps.yaml", format!("a: {}", "{a: ".repeat(deep))),
        ("lists.yaml", format!("a:\n  {}a", "- ".repeat(deep))),
        (
            "blocks.yaml",
            (0..1_000).fold(String::new(), |text, depth| format!("{text}{}a:\n", " ".repeat(depth))),
        ),
        ("keys.yaml", format!("{}a", "? ".repeat(deep))),
        ("aliases.yaml", format!("a0: &a0 [x,x]\n{}", aliases(60))),
        ("arrays.toml", format!("a = {}", "[".repeat(deep))),
        ("tables.toml", format!("a = {}", "{a=".repeat(deep))),
        ("dotted.toml", format!("a{} = 1", ".a".repeat(deep))),
        ("headers.toml", format!("[a{}]", ".a".repeat(deep))),
        ("lists.toml", format!("[[a{}]]", ".a".repeat(deep))),
    ] {
        let file = workshop.file(name, text);
        let output = fetchwell(["config", "check", &file]);
        assert!(output.status.code().is_some_and(|code| code != 0), "{name}: {:?}", output.status);
        let said = stderr(&output);
        assert!(said.contains(name) && said.len() < 1_000, "{name}: {} bytes: {said:.500}", said.len());
    }
}
