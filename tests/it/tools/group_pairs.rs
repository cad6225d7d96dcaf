//! Groups by two fields, and means over several sources, as a model asks for them.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Model, import_records, text};

const CITIES: [&str; 3] = ["Oslo", "Bergen", "Oslo"];

/// A configuration of two stores, which have different accounts with the stream `orders`.
fn two_stores(folder: &Path) -> String {
    let mut config = String::new();
    for (name, from, to) in [("east", 0, 8), ("west", 8, 20)] {
        let order = |number: usize| {
            let data = json!({
                "status": if number.is_multiple_of(4) { "open" } else { "paid" },
                "city": CITIES.get(number % 4),
                "tags": ["all", format!("t{}", number % 2)],
                "amount": number as f64 + 0.5,
                "a,b": number % 2,
                "sent_at": format!("2026-0{}-03T10:00:00Z", 1 + number % 3),
            });
            json!({"stream": "orders", "key": format!("o{number:02}"), "data": data}).to_string()
        };
        let store = folder.join(format!("{name}.db"));
        import_records(&store, &format!("cin_{name}"), &(from..to).map(order).collect::<Vec<_>>().join("\n"));
        config += &format!("[[source]]\nname = \"{name}\"\nstore = \"{}\"\n", store.display());
    }
    let path = folder.join("fetchwell.toml");
    std::fs::write(&path, config).unwrap();
    text(&path).to_owned()
}

/// The groups of an answer as `key/second key=value`.
fn shown(answer: &Value) -> Vec<String> {
    let groups = answer["groups"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let line = |group: &Value| {
        format!("{}/{}={}", text(&group["key"]), text(&group["second_key"]), text(&group["value"]))
    };
    groups.iter().map(line).collect()
}

#[tokio::test]
async fn two_fields_are_grouped_in_one_store_and_over_two() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::over_stdio(["--config", &two_stores(folder.path())]).await;
    let count = |arguments: Value| {
        let mut call = json!({"stream": "orders", "metric": "count", "limit": 50});
        call.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
        model.call("aggregate", call)
    };
    let pairs = count(json!({"group_by": "status, city"})).await;
    assert_eq!(pairs["group_by"], "status,city");
    assert_eq!(shown(&pairs), ["open/Oslo=5", "paid/null=5", "paid/Bergen=5", "paid/Oslo=5"]);
    assert_eq!((&pairs["records"], &pairs["other_count"]), (&json!(20), &json!(0)));
    let one = count(json!({"group_by": "status,city", "connection_id": "cin_east"})).await;
    assert_eq!(shown(&one), ["open/Oslo=2", "paid/null=2", "paid/Bergen=2", "paid/Oslo=2"]);
    // A record is in the group of each item of a list.
    let lists = count(json!({"group_by": "tags,status", "limit": 2})).await;
    assert_eq!(shown(&lists), ["all/paid=15", "t1/paid=10"]);
    // The record that has both items of one field is counted once in each pair.
    let named = count(json!({"group_by": "[\"a,b\", \"status\"]"})).await;
    assert_eq!(named["group_by"], "[\"a,b\",\"status\"]");
    assert_eq!(shown(&named), ["1/paid=10", "0/open=5", "0/paid=5"]);
}

#[tokio::test]
async fn times_are_divided_by_a_field() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::over_stdio(["--config", &two_stores(folder.path())]).await;
    let months = |limit: usize| {
        model.call(
            "aggregate",
            json!({"stream": "orders", "metric": "count", "group_by": "status", "group_by_time": "sent_at",
                   "granularity": "month", "limit": limit}),
        )
    };
    let all = months(20).await;
    assert_eq!(
        shown(&all),
        [
            "2026-01-01/paid=5",
            "2026-01-01/open=2",
            "2026-02-01/paid=5",
            "2026-02-01/open=2",
            "2026-03-01/paid=5",
            "2026-03-01/open=1"
        ]
    );
    // Both sources leave out groups, in the month that the third of their groups is in.
    let newest = months(3).await;
    assert_eq!(shown(&newest), ["2026-03-01/paid=5", "2026-03-01/open=1"]);
    assert!(newest["warnings"].to_string().contains("newest periods"), "{newest}");
}

#[tokio::test]
async fn texts_that_are_no_times_are_one_group() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let texts = ["2026-04-01", "2026-04-30 23:30:00", "2026-05-01T00:30:00+02:00", "n/a", "", "2026-02-30"];
    let paid = texts.into_iter().map(|text| json!({"paid_at": text}));
    let others = [json!({"paid_at": null}), json!({"other": 1}), json!({"paid_at": ["2026-04-01"]})];
    let line =
        |(number, data)| json!({"stream": "bills", "key": format!("b{number}"), "data": data}).to_string();
    let lines: Vec<String> = (0..).zip(paid.chain(others)).map(line).collect();
    import_records(&store, "cin_bills", &lines.join("\n"));
    // The field of another connection has no times at all.
    import_records(
        &store,
        "cin_drafts",
        r#"{"stream": "bills", "key": "b1", "data": {"paid_at": "n/a", "amount": "n/a"}}"#,
    );
    import_records(&store, "cin_sums", r#"{"stream": "bills", "key": "b1", "data": {"amount": 2}}"#);
    let model = Model::over_stdio(["--store", text(&store)]).await;
    let sum = model.call("aggregate", json!({"stream": "bills", "metric": "sum", "field": "amount"})).await;
    assert_eq!(sum["value"], 2, "{sum}");
    for (zone, expect) in
        [("UTC", ["null/null=8", "2026-04-01/null=3"]), ("Etc/GMT-2", ["null/null=8", "2026-04-01/null=2"])]
    {
        let months = json!({"stream": "bills", "metric": "count", "group_by_time": "paid_at", "granularity": "month",
                            "time_zone": zone});
        let months = model.call("aggregate", months).await;
        assert_eq!(shown(&months).get(..2).unwrap(), expect, "{zone}: {months}");
    }
}

#[tokio::test]
async fn means_of_two_stores_are_the_mean_of_all_records() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::over_stdio(["--config", &two_stores(folder.path())]).await;
    let mean = model.call("aggregate", json!({"stream": "orders", "metric": "avg", "field": "amount"})).await;
    assert_eq!(mean["value"], 10.0, "{mean}");
    let groups = json!({"stream": "orders", "metric": "avg", "field": "amount", "group_by": "status"});
    let groups = model.call("aggregate", groups).await;
    let values: Vec<(&Value, &Value)> =
        groups["groups"].as_array().unwrap().iter().map(|group| (&group["key"], &group["value"])).collect();
    assert_eq!(values.len(), 2, "{groups}");
    assert!(values.contains(&(&json!("open"), &json!(8.5))), "{groups}");
    assert!(values.contains(&(&json!("paid"), &json!(10.5))), "{groups}");
}

#[tokio::test]
async fn wrong_groups_are_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::over_stdio(["--config", &two_stores(folder.path())]).await;
    for (arguments, names) in [
        (json!({"group_by": "a,b,c"}), "two with a comma"),
        (json!({"group_by": "status,status"}), "two with a comma"),
        (json!({"group_by": ","}), "two with a comma"),
        (json!({"group_by": "[1]"}), "two with a comma"),
        (json!({"group_by": "status,city", "group_by_time": "sent_at", "granularity": "day"}), "one field"),
        (json!({"group_by": "status,nowhere"}), "nowhere"),
    ] {
        let mut call = json!({"stream": "orders", "metric": "count"});
        call.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
        let refused = model.refusal("aggregate", call).await;
        assert!(refused["message"].as_str().unwrap().contains(names), "{arguments} {refused}");
        assert!(!refused["hint"].as_str().unwrap().is_empty(), "{refused}");
    }
}
