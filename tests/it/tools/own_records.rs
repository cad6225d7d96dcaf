//! Questions about files of one's own, as a model asks them over MCP with the built binary: tables, packages, notes, mail.

use serde_json::{Value, json};

use crate::import::commands::Workshop;
use crate::support::{Model, binary, text};

const TRIPS: &str = "id,customer,region,amount,date\n1,Ann,north,120.50,2026-04-01\n2,Bo,south,99.00,2026-04-03\n\
    3,Cy,north,450.00,2026-03-01\n4,Di,south,10.00,2026-04-02\n";

const PACKAGES: &str = r#"[
    {"name": "ferry-cli", "dependencies": {"chalk": "^5.0.0", "ora": "1"}},
    {"name": "tide", "dependencies": {"left-pad": "1"}, "description": "chalk is not used"},
    {"name": "dock", "devDependencies": {"chalk": "4"}},
    {"name": "hull", "dependencies": {"chalk": "4.1.2"}}
]"#;

const MAIL: [(&str, &str, &str, &str); 4] = [
    ("m1", "Ann Berg <ann@x.test>", "Wed, 1 Apr 2026 10:00:00 +0000", "Bo <bo@x.test>"),
    ("m2", "Bo Li <bo@x.test>", "Wed, 1 Apr 2026 22:30:00 +0000", "Ann Berg <ann@x.test>"),
    ("m3", "ann@x.test", "Thu, 2 Apr 2026 01:30:00 +0200", "bo@x.test"),
    ("m4", "Annette Berg <annette@x.test>", "Thu, 2 Apr 2026 10:00:00 +0000", "bo@x.test"),
];

/// Imports files of each kind, each into its connection.
fn imported() -> Workshop {
    let workshop = Workshop::new();
    let mailbox: String = MAIL
        .iter()
        .map(|(id, from, date, to)| {
            format!(
                "From a@x.test Wed Apr  1 10:00:00 2026\nFrom: {from}\nTo: {to}\nSubject: {id}\nDate: {date}\n\
                 Message-ID: <{id}>\n\nbody\n\n"
            )
        })
        .collect();
    let note = |tags: &str| format!("---\n{tags}\ndate: 2026-04-01\n---\n# Note\ntext\n");
    workshop.file("notes/ferry.md", note("tags: [ferry, oslo]"));
    workshop.file("notes/trips/oslo.md", note("tags: oslo"));
    workshop.file("notes/trips/deep/fog.md", note("tags:\n  - fog"));
    workshop.file("notes/tripsheet.md", "# Without tags about oslo\n");
    let notes = workshop.file("notes/empty.txt", "");
    let notes = notes.strip_suffix("/empty.txt").unwrap();
    for (kind, path, connection) in [
        ("csv", &*workshop.file("trips.csv", TRIPS), "trips"),
        ("json", &workshop.file("packages.json", PACKAGES), "packages"),
        ("markdown", notes, "notes"),
        ("mbox", &workshop.file("mail.mbox", mailbox), "mail"),
    ] {
        let mut command = binary();
        command.args(["import", kind, path, "--store", &workshop.store(), "--connection", connection]);
        if kind == "json" {
            command.args(["--key", "name"]);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    workshop
}

/// Returns the keys of the records of an answer, in its order.
fn keys(answer: &Value) -> Vec<&str> {
    let records = answer["records"].as_array().unwrap_or_else(|| panic!("{answer}"));
    records.iter().map(|record| record["id"].as_str().unwrap().rsplit([':', '/']).next().unwrap()).collect()
}

#[tokio::test]
async fn questions_about_own_files_are_answered() {
    let workshop = imported();
    let store = workshop.store();
    let model = Model::over_stdio(["--store", text(store.as_ref())]).await;
    for (task, arguments, expect) in [
        ("newest rows", json!({"stream": "trips", "sort": "-date", "limit": 2}), &["2", "4"][..]),
        ("newest rows by default", json!({"stream": "trips", "limit": 2}), &["2", "4"]),
        ("largest rows", json!({"stream": "trips", "sort": "-amount", "limit": 2}), &["3", "1"]),
        (
            "rows over an amount",
            json!({"stream": "trips", "filter": {"amount": {"gte": 99}}}),
            &["2", "1", "3"],
        ),
        (
            "packages that depend on chalk",
            json!({"stream": "packages", "filter": {"dependencies.chalk": {"exists": true}}, "sort": "name"}),
            &["ferry-cli", "hull"],
        ),
        (
            "packages with one version of chalk",
            json!({"stream": "packages", "filter": {"dependencies.chalk": {"prefix": "^5"}}}),
            &["ferry-cli"],
        ),
        (
            "notes with a tag",
            json!({"stream": "documents", "filter": {"tags": "oslo"}, "sort": "path"}),
            &["ferry.md", "trips%2Foslo.md"],
        ),
        (
            "notes with any of two tags",
            json!({"stream": "documents", "filter": {"tags": ["fog", "ferry"]}, "sort": "path"}),
            &["ferry.md", "trips%2Fdeep%2Ffog.md"],
        ),
        (
            "files below a path",
            json!({"stream": "documents", "filter": {"path": {"prefix": "trips/"}}, "sort": "path"}),
            &["trips%2Fdeep%2Ffog.md", "trips%2Foslo.md"],
        ),
        ("mails from a name", json!({"stream": "messages", "filter": {"from": "ann berg"}}), &["m1"]),
        (
            "mails from an address",
            json!({"stream": "messages", "filter": {"from": "Ann@X.test"}, "sort": "date"}),
            &["m1", "m3"],
        ),
        (
            "mails of a day in UTC",
            json!({"stream": "messages", "filter": {"date": "2026-04-01"}, "sort": "subject"}),
            &["m1", "m2", "m3"],
        ),
    ] {
        let answer = model.call("query_records", arguments).await;
        assert_eq!(keys(&answer), expect, "{task}: {answer}");
        assert!(answer.get("warnings").is_none(), "{task}: {answer}");
    }
    let average = json!({"stream": "trips", "metric": "avg", "field": "amount", "group_by": "region"});
    let average = model.call("aggregate", average).await;
    assert_eq!(
        average["groups"],
        json!([{"key": "north", "value": 285.25}, {"key": "south", "value": 54.5}]),
        "{average}"
    );
}
