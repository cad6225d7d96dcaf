//! `fetchwell import` of ordinary files: encodings, delimiters, dates and numbers of several countries, column names in
//! any case, and files with broken lines.

use std::path::Path;

use serde_json::{Value, json};

use crate::import::commands::Workshop;
use crate::support::{HttpServer, fetchwell, get, stderr, stdout};

/// Returns the fields of a record and its time, as the store has them.
#[track_caller]
pub(crate) fn record(workshop: &Workshop, key: &str) -> (Value, Option<String>) {
    let store = rusqlite::Connection::open(workshop.store()).unwrap();
    let mut query = store.prepare("SELECT data, emitted_at FROM records WHERE key = ?1").unwrap();
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get(1)?));
    let (data, time) = query.query_one([key], read).unwrap_or_else(|error| panic!("{key}: {error}"));
    (serde_json::from_str(&data).unwrap(), time)
}

/// Imports a table, and checks the record of a key.
#[track_caller]
fn check_table(table: impl AsRef<[u8]>, key: &str, expect: &Value, time: Option<&str>) {
    let workshop = Workshop::new();
    let file = workshop.file("table.csv", table);
    let [_, _, _, _, rejected] = workshop.counts(&["csv", &file]);
    let (data, found) = record(&workshop, key);
    assert_eq!((rejected, &data, found.as_deref()), (0, expect, time));
}

#[test]
fn a_table_is_read_in_its_encoding_and_with_its_delimiter() {
    let expect = json!({"id": 1, "name": "René, \"R\"; €"});
    let table = "id,name\n1,\"René, \"\"R\"\"; €\"\n2,x\n";
    check_table(table, "1", &expect, None);
    check_table(format!("\u{FEFF}{table}"), "1", &expect, None);
    let utf16 = |bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        format!("\u{FEFF}{table}").encode_utf16().flat_map(bytes).collect()
    };
    check_table(utf16(u16::to_le_bytes), "1", &expect, None);
    check_table(utf16(u16::to_be_bytes), "1", &expect, None);
    check_table(b"id,name\n1,\"Ren\xE9, \"\"R\"\"; \x80\"\n2,x\n", "1", &expect, None);
    check_table(
        table.replace("id,name", "id;name").replace("1,", "1;").replace("2,", "2;"),
        "1",
        &expect,
        None,
    );
    check_table(
        table.replace("id,name", "id\tname").replace("1,", "1\t").replace("2,", "2\t"),
        "1",
        &expect,
        None,
    );
    check_table(format!("sep=,\r\n{table}"), "1", &expect, None);
    // The first non-ASCII byte comes late.
    let late = [b"id,name\n".to_vec(), b"9,x\n".repeat(100_000), b"1,Ren\xE9\n".to_vec()].concat();
    check_table(late, "1", &json!({"id": 1, "name": "René"}), None);
}

#[test]
fn values_of_several_countries_are_typed() {
    check_table(
        "ID,Amount,Price,Share,Paid,Zip,Ordered At\n7,\"1,234.50\",$12.00,45%,TRUE,01234,2026-04-01 10:00:00\n8,2.25,$3.50,5%,FALSE,10115,2026-04-02 11:30:00\n",
        "7",
        &json!({"ID": 7, "Amount": 1234.5, "Price": 12.0, "Share": 45, "Paid": true, "Zip": "01234", "Ordered At": "2026-04-01T10:00:00Z"}),
        None,
    );
    check_table(
        "id;Betrag;Datum;Notiz\n7;1.234,50;01.04.2026;a\n8;;13.04.2026;b\n",
        "7",
        &json!({"id": 7, "Betrag": 1234.5, "Datum": "2026-04-01", "Notiz": "a"}),
        None,
    );
    check_table("id;Betrag\n7;1.234,50\n8;\n", "8", &json!({"id": 8, "Betrag": null}), None);
    // An empty field is null in a column of any type, and a word in a column of numbers is kept.
    check_table("id,n,t\n1,5,a\n2,n/a,\n", "2", &json!({"id": 2, "n": "n/a", "t": null}), None);
    // The key is the text of the file, not a number.
    check_table("id,t\n007,a\n7,b\n", "007", &json!({"id": "007", "t": "a"}), None);
}

#[test]
fn names_are_known_in_any_case() {
    let workshop = Workshop::new();
    let file = workshop.file(
        "links.csv",
        "Title,URL,Date\nKraków,https://example.com/k,02.04.2026\nOslo,https://example.com/o,01.04.2026\n",
    );
    assert_eq!(workshop.counts(&["csv", &file]), [2, 0, 0, 0, 0]);
    let found = workshop.fetch("c/links:1");
    assert_eq!((&found["title"], &found["url"]), (&json!("Kraków"), &json!("https://example.com/k")));
    assert_eq!(found["metadata"]["authored_at"], "2026-04-02");
    assert_eq!(record(&workshop, "1").1.as_deref(), Some("2026-04-02"));
    assert_eq!(workshop.counts(&["csv", &file, "--key", "title", "--stream", "titled"]), [2, 0, 0, 0, 0]);
    assert_eq!(workshop.fetch("c/titled:Oslo")["title"], "Oslo");
}

#[test]
fn options_name_the_key_the_title_the_time_and_the_address() {
    let workshop = Workshop::new();
    let options = ["--key", "nr", "--title", "what", "--time", "seen", "--url", "page"];
    let file = workshop
        .file("a.csv", "Nr,What,Title,Seen,Page,Date\n1,Tea,x,03/04/2026,https://example.com/1,2020-01-01\n");
    assert_eq!(workshop.counts(&[["csv", &file].as_slice(), &options].concat()), [1, 0, 0, 0, 0]);
    let expect = json!({"title": "Tea", "url": "https://example.com/1", "Nr": 1, "What": "Tea", "Title": "x", "Seen": "2026-03-04", "Page": "https://example.com/1", "Date": "2020-01-01"});
    assert_eq!(record(&workshop, "1"), (expect, Some("2026-03-04".to_owned())));
    let found = workshop.fetch("c/a:1");
    assert_eq!((&found["title"], &found["url"]), (&json!("Tea"), &json!("https://example.com/1")));
    // A result has the address, too.
    let hits = stdout(&fetchwell(["search", "tea", "--json", "--store", &workshop.store()]));
    let hits: Value = serde_json::from_str(&hits).unwrap();
    assert_eq!(hits["results"][0]["url"], "https://example.com/1", "{hits}");
    for wrong in ["--title", "--time", "--url", "--key"] {
        let said = stderr(&workshop.import(&["csv", &file, wrong, "none"]));
        assert!(said.contains("no column `none`; its columns are Nr, What"), "{said}");
    }
    let file = workshop.file("b.json", r#"[{"info": {"no": "k1", "label": "Tea", "seen": 1775037600000}}]"#);
    let options = ["--key", "info.no", "--title", "info.label", "--time", "info.seen"];
    assert_eq!(workshop.counts(&[["json", &file].as_slice(), &options].concat()), [1, 0, 0, 0, 0]);
    assert_eq!(workshop.fetch("c/b:k1")["title"], "Tea");
    assert_eq!(record(&workshop, "k1").1.as_deref(), Some("2026-04-01T10:00:00Z"));
}

#[test]
fn records_without_a_key_get_their_number() {
    let workshop = Workshop::new();
    let table = workshop.file("t.csv", "name\nAnn\nBob\nAnn\n");
    assert_eq!(workshop.counts(&["csv", &table]), [3, 0, 0, 0, 0]);
    assert_eq!(workshop.counts(&["csv", &table]), [0, 0, 3, 0, 0]);
    assert_eq!(workshop.fetch("c/t:3")["text"], "Ann");
    let array = workshop.file("j.json", r#"[{"name": "Ann"}, {"name": "Bob"}]"#);
    assert_eq!(workshop.counts(&["json", &array]), [2, 0, 0, 0, 0]);
    assert_eq!(workshop.fetch("c/j:2")["text"], "Bob");
}

/// A file with corrected items keeps the keys of the items that were accepted before.
#[test]
fn rejected_items_count_in_the_numbers_of_records() {
    let workshop = Workshop::new();
    let array = workshop.file("j.json", r#"[5, {"name": "Ann"}, "x", {"name": "Bob"}]"#);
    assert_eq!(workshop.counts(&["json", &array]), [2, 0, 0, 0, 2]);
    let lines = workshop.file("l.ndjson", "{\"name\":\"Zoe\"\n{\"name\":\"Ann\"}\n\n7\n{\"name\":\"Bob\"}\n");
    assert_eq!(workshop.counts(&["json", &lines]), [2, 0, 0, 0, 2]);
    for stream in ["j", "l"] {
        assert_eq!(workshop.fetch(&format!("c/{stream}:2"))["text"], "Ann");
        assert_eq!(workshop.fetch(&format!("c/{stream}:4"))["text"], "Bob");
    }
    let corrected =
        workshop.file("j.json", r#"[{"name": "Zoe"}, {"name": "Ann"}, {"name": "Cem"}, {"name": "Bob"}]"#);
    assert_eq!(workshop.counts(&["json", &corrected]), [2, 0, 2, 0, 0]);
}

#[test]
fn json_of_web_services_has_titles_and_times() {
    let workshop = Workshop::new();
    let file = workshop.file(
        "api.json",
        r#"[{"id": 1, "displayName": "One", "createdAt": "2026-04-01T10:00:00Z"},
            {"id": 2, "snippet": {"title": "Two", "publishedAt": "2026-04-02T10:00:00Z"}},
            {"id": 3, "name": "Three", "modifiedTime": "2026-04-03T10:00:00Z"},
            {"id": 4, "name": "Four", "created": 1775296800}]"#,
    );
    assert_eq!(workshop.counts(&["json", &file]), [4, 0, 0, 0, 0]);
    for (key, title, time) in [
        ("1", "One", "2026-04-01T10:00:00Z"),
        ("2", "Two", "2026-04-02T10:00:00Z"),
        ("3", "Three", "2026-04-03T10:00:00Z"),
        ("4", "Four", "2026-04-04T10:00:00Z"),
    ] {
        assert_eq!(workshop.fetch(&format!("c/api:{key}"))["title"], title);
        assert_eq!(record(&workshop, key).1.as_deref(), Some(time));
    }
    let graph = workshop.file(
        "graph.json",
        r#"{"@context": "https://schema.org", "@graph": [
            {"@id": "https://example.com/a", "@type": "Article", "headline": "A", "datePublished": "2026-04-01"},
            {"@id": "_:b", "@type": "Person", "name": "B"}]}"#,
    );
    assert_eq!(workshop.counts(&["json", &graph]), [2, 0, 0, 0, 0]);
    let found = workshop.fetch("c/graph/https%3A%2F%2Fexample.com%2Fa");
    assert_eq!((&found["title"], &found["url"]), (&json!("A"), &json!("https://example.com/a")));
    assert_eq!(record(&workshop, "_:b").0["name"], "B");
}

#[test]
fn a_broken_line_does_not_end_an_import() {
    let workshop = Workshop::new();
    let lines = "{\"id\":1}\n{\"id\":2,\"t\":\n\n{\"id\":3}\nnot json\n{\"id\":4}\n";
    for name in ["a.ndjson", "a.jsonl", "a.json"] {
        let file = workshop.file(name, lines);
        let stream = name.replace('.', "-");
        assert_eq!(workshop.counts(&["json", &file, "--stream", &stream]), [3, 0, 0, 0, 2], "{name}");
        let said = stderr(&workshop.import(&["json", &file, "--stream", &stream]));
        assert!(said.contains(&format!("{name}:2: it ends too early")), "{said}");
        assert!(said.contains(&format!("{name}:5: it is not JSON (column 2)")), "{said}");
    }
    // Objects that span several lines are not read as one object a line.
    let pretty = workshop.file("p.json", "{\n  \"id\": 1,\n  \"t\": {\"a\": 1}\n}\n{\n  \"id\": 2\n}\n");
    assert_eq!(workshop.counts(&["json", &pretty]), [2, 0, 0, 0, 0]);
}

#[test]
fn a_wrong_key_is_reported_in_one_line() {
    let workshop = Workshop::new();
    let items: Vec<Value> = (1..=3_000).map(|number| json!({"nr": number, "name": "x"})).collect();
    let file = workshop.file("a.json", Value::from(items).to_string());
    let output = workshop.import(&["json", &file, "--key", "nope"]);
    let said = stderr(&output);
    assert!(
        said.contains("a.json:item 1 and 2999 more: they have no field `nope`; name their key with --key; the fields of item 1 are nr, name"),
        "{said}"
    );
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 3), "{said}");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["added"], &summary["rejected"]), (&json!(0), &json!(3_000)));
    assert!(!Path::new(&workshop.store()).exists());
}

#[test]
fn records_without_a_time_are_ordered_by_key_with_a_warning() {
    let workshop = Workshop::new();
    let timed = workshop.file("timed.csv", "id,date\n1,01.04.2026\n2,03.04.2026\n3,02.04.2026\n");
    let plain = workshop.file("plain.csv", "id,name\n1,Ann\n2,Bob\n3,Cleo\n");
    assert_eq!(workshop.counts(&["csv", &timed]), [3, 0, 0, 0, 0]);
    assert_eq!(workshop.counts(&["csv", &plain]), [3, 0, 0, 0, 0]);
    let server = HttpServer::start(["--store", &workshop.store()]);
    let list = |stream: &str| get(&server.address, &format!("/v1/streams/{stream}/records")).json();
    let keys = |page: &Value| -> Vec<Value> {
        page["data"].as_array().unwrap().iter().map(|record| record["data"]["id"].clone()).collect()
    };
    let page = list("timed");
    assert_eq!(keys(&page), [2, 3, 1], "{page}");
    assert!(!page.to_string().contains("to order by"), "{page}");
    let page = list("plain");
    assert_eq!(keys(&page), [3, 2, 1], "{page}");
    assert!(
        page.to_string().contains("no record of `plain` has a time to order by; they are ordered by key"),
        "{page}"
    );
}
