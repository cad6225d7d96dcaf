//! Numbers, aggregates and orders of the embedded store: equality and comparison of values.

use std::path::{Path, PathBuf};

use fetchwell_source::{
    AggregateAnswer, AggregateQuery, BoundSource, Change, Direction, Granularity, Grouping, Metric,
    QueryFault, RecordsQuery, SourceError, Start, StreamQuery,
};
use fetchwell_sqlite::SqliteStore;
use serde_json::{Value, json};

use crate::support::{fetchwell, import_records, stdout, text};

/// Returns a store of one stream `s` of records with these fields, keyed by their position.
fn store_of(records: &[Value]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("figures.db");
    add(&path, "", records);
    (folder, path)
}

/// Adds a connection with records of stream `s` with these fields, whose keys begin with `prefix`.
fn add(path: &Path, prefix: &str, records: &[Value]) {
    let line = |(key, data): (usize, &Value)| {
        json!({"stream": "s", "key": format!("{prefix}{key}"), "data": data}).to_string()
    };
    let lines = records.iter().enumerate().map(line).collect::<Vec<_>>();
    import_records(path, &format!("c{prefix}"), &lines.join("\n"));
}

fn values(field: &str, values: &[Value]) -> Vec<Value> {
    values.iter().map(|value| json!({field: value})).collect()
}

/// Returns a store of a table with texts in the column `amount`, as an import before CSV was typed made it.
fn table_of(amounts: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let row = |(key, amount): (usize, &&str)| json!({"id": key.to_string(), "name": format!("name {key}"), "amount": amount});
    store_of(&amounts.iter().enumerate().map(row).collect::<Vec<_>>())
}

fn open(path: &Path) -> BoundSource {
    SqliteStore::open("store".parse().unwrap(), path).unwrap().into()
}

fn of(metric: Metric, field: Option<&str>, grouping: Option<Grouping>) -> AggregateQuery {
    AggregateQuery {
        stream: "s".parse().unwrap(),
        connection: None,
        metric,
        field: field.map(str::to_owned),
        grouping,
        second_field: None,
        limit: 100,
        filter: fetchwell_source::Filter::default(),
        purpose: fetchwell_source::Purpose::Answer,
    }
}

fn by(field: &str) -> Option<Grouping> {
    Some(Grouping::Field(field.to_owned()))
}

async fn figure(path: &Path, query: &AggregateQuery) -> AggregateAnswer {
    open(path).aggregate(query).await.unwrap()
}

fn groups(answer: &AggregateAnswer) -> Value {
    let groups = answer.groups.as_ref().unwrap();
    groups.iter().map(|group| json!([group.key, group.value])).collect()
}

/// Returns the keys of the records that pass a filter, in order.
async fn passing(path: &Path, filter: Value) -> Vec<String> {
    let query = RecordsQuery {
        filter: serde_json::from_value(filter).unwrap(),
        direction: Direction::Ascending,
        ..RecordsQuery::new("s".parse().unwrap(), 100)
    };
    keys(&open(path).records(&query).await.unwrap().rows)
}

fn keys(rows: &[Change]) -> Vec<String> {
    let key = |row: &Change| match row {
        Change::Present(record) => record.address.record.to_string(),
        Change::Deleted { .. } => panic!("{row:?}"),
    };
    rows.iter().map(key).collect()
}

#[tokio::test]
async fn a_table_is_compared_by_its_numbers() {
    let (_folder, path) = table_of(&["5", "n/a", "", "50", "-", "120.5"]);
    assert_eq!(passing(&path, json!({"amount": {"gt": 10}})).await, ["3", "5"]);
    assert_eq!(passing(&path, json!({"amount": {"lt": 10}})).await, ["0"]);
    assert_eq!(passing(&path, json!({"amount": {"lt": "10"}})).await, ["0"]);
    assert_eq!(passing(&path, json!({"amount": "n/a"})).await, ["1"]);
    for (metric, expect) in [(Metric::Min, "5"), (Metric::Max, "120.5")] {
        let answer = figure(&path, &of(metric, Some("amount"), None)).await;
        assert_eq!(json!(answer.value), json!(expect), "{metric:?}");
        assert_eq!(answer.notes, ["2 texts in `amount` that are no number were passed over."]);
    }
}

#[tokio::test]
async fn texts_in_a_field_of_numbers_are_ordered_before_them() {
    let (_folder, path) = table_of(&["5", "n/a", "", "50", "-", "120.5"]);
    for (direction, expect) in [
        (Direction::Ascending, ["2", "4", "1", "0", "3", "5"]),
        (Direction::Descending, ["5", "3", "0", "1", "4", "2"]),
    ] {
        assert_eq!(sorted(&path, "amount", direction).await, expect);
    }
}

/// Returns the keys of all records by a field.
async fn sorted(path: &Path, field: &str, direction: Direction) -> Vec<String> {
    let sort = Some(field.to_owned());
    let query = RecordsQuery { sort, direction, ..RecordsQuery::new("s".parse().unwrap(), 100) };
    keys(&open(path).records(&query).await.unwrap().rows)
}

/// Returns the keys of all records by a field, ascending.
async fn sorted_by(path: &Path, field: &str) -> Vec<String> {
    sorted(path, field, Direction::Ascending).await
}

#[tokio::test]
async fn records_of_all_connections_are_in_one_order() {
    let (_folder, path) = store_of(&values("v", &[json!("5"), json!("n/a"), json!(12), json!({"w": 1})]));
    add(&path, "b", &values("v", &[json!("abc"), json!("zz"), json!("m")]));
    assert_eq!(sorted_by(&path, "v").await, ["3", "b0", "b2", "1", "b1", "0", "2"]);
}

#[tokio::test]
async fn a_field_of_one_connection_has_no_value_in_another() {
    let inside = ["5", "n/a", "12"].map(|text| json!({"v": text}));
    let (_folder, path) = store_of(&values("o", &inside));
    add(&path, "b", &values("p", &[json!(1)]));
    assert_eq!(sorted_by(&path, "o.v").await, ["b0", "1", "0", "2"]);
    assert_eq!(sorted_by(&path, "p").await, ["0", "1", "2", "b0"]);
    assert_eq!(passing(&path, json!({"p": 1})).await, ["b0"]);
    let sum = figure(&path, &of(Metric::Sum, Some("p"), None)).await;
    assert_eq!(json!(sum.value), json!(1));
    let filter = serde_json::from_value(json!({"q": 1})).unwrap();
    let query = RecordsQuery { filter, ..RecordsQuery::new("s".parse().unwrap(), 1) };
    let refused = open(&path).records(&query).await.unwrap_err();
    assert!(refused.to_string().contains("no field `q`"), "{refused}");
}

#[tokio::test]
async fn a_field_that_orders_one_connection_may_lack_in_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("times.db");
    let line = |key: &str, at: Value| json!({"stream": "s", "key": key, "data": {"at": at}}).to_string();
    let lines = [line("0", json!("2026-04-01 12:00:00")), line("1", json!("2026-04-01T09:00:00Z"))];
    import_with_cursor(&path, &lines.join("\n"), "at");
    add(&path, "b", &values("w", &[json!(1)]));
    assert_eq!(sorted_by(&path, "at").await, ["b0", "1", "0"]);
    assert_eq!(sorted_by(&path, "w").await, ["0", "1", "b0"]);
    assert_eq!(passing(&path, json!({"at": {"gte": "2026-04-01T10:00:00"}})).await, ["0"]);
}

#[tokio::test]
async fn booleans_are_ordered_at_a_path() {
    let inside = [json!(true), json!(false), json!("x"), json!(null)].map(|done| json!({"done": done}));
    let (_folder, path) = store_of(&values("o", &inside));
    assert_eq!(sorted_by(&path, "o.done").await, ["3", "2", "1", "0"]);
}

#[tokio::test]
async fn a_cursor_ends_with_the_first_number_of_a_field() {
    let (_folder, path) = store_of(&values("v", &["a", "b", "c"].map(|text| json!(text))));
    let query = RecordsQuery { sort: Some("v".to_owned()), ..RecordsQuery::new("s".parse().unwrap(), 1) };
    let next = open(&path).records(&query).await.unwrap().next.unwrap();
    add(&path, "n", &values("v", &[json!("7")]));
    let refused = open(&path).records(&RecordsQuery { start: Start::After(next), ..query }).await;
    assert!(matches!(
        refused.unwrap_err(),
        SourceError::InvalidQuery { fault: QueryFault::MismatchedCursor, .. }
    ));
}

#[tokio::test]
async fn sums_are_exact_decimals() {
    let (_folder, path) = store_of(&values("amount", &[json!(0.1), json!(0.2), json!(508_753.14)]));
    let answer = figure(&path, &of(Metric::Sum, Some("amount"), None)).await;
    assert_eq!(json!(answer.value).to_string(), "508753.44");
}

#[tokio::test]
async fn a_column_of_a_table_is_summed_up() {
    let (_folder, path) = table_of(&["5", "n/a", "", "50", "-", "120.5"]);
    let stream = "s".parse().unwrap();
    let detail = open(&path).stream(&StreamQuery { stream, connection: None }).await.unwrap().details;
    assert_eq!(detail[0].field("amount").unwrap().types, ["string"]);
    let answer = figure(&path, &of(Metric::Sum, Some("amount"), None)).await;
    assert_eq!(json!(answer.value), json!(175.5));
    assert_eq!(answer.notes.len(), 1);
    let refused = open(&path).aggregate(&of(Metric::Sum, Some("name"), None)).await.unwrap_err();
    let SourceError::InvalidQuery { hint, .. } = refused else { panic!("{refused:?}") };
    assert_eq!(hint, "Fields that can be summed up: amount, id.");
}

#[tokio::test]
async fn a_hint_names_fields_or_says_that_there_are_none() {
    let (_folder, path) = store_of(&values("tags", &[json!(["a"]), json!([])]));
    let query = RecordsQuery {
        filter: serde_json::from_value(json!({"tags": {"gt": "a"}})).unwrap(),
        ..RecordsQuery::new("s".parse().unwrap(), 1)
    };
    let refused = open(&path).records(&query).await.unwrap_err();
    let SourceError::InvalidQuery { hint, .. } = refused else { panic!("{refused:?}") };
    assert_eq!(hint, "No field of stream `s` can be filtered by range.");
    let refused = open(&path).aggregate(&of(Metric::Sum, Some("tags"), None)).await.unwrap_err();
    let SourceError::InvalidQuery { hint, .. } = refused else { panic!("{refused:?}") };
    assert_eq!(hint, "No field of stream `s` can be summed up.");
}

#[tokio::test]
async fn a_filter_on_the_cursor_field_compares_as_on_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flags.db");
    let lines = [json!(true), json!(false), json!("true"), json!(1)];
    let line =
        |(key, flag): (usize, &Value)| json!({"stream": "s", "key": key, "data": {"flag": flag}}).to_string();
    let lines: Vec<String> = lines.iter().enumerate().map(line).collect();
    import_with_cursor(&path, &lines.join("\n"), "flag");
    for filter in [json!({"flag": "true"}), json!({"flag": true})] {
        assert_eq!(passing(&path, filter).await, ["0", "2"]);
    }
}

/// Imports records of stream `s`; a manifest declares its cursor field.
fn import_with_cursor(store: &Path, lines: &str, cursor_field: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (file, manifest) = (folder.path().join("r.ndjson"), folder.path().join("m.json"));
    std::fs::write(&file, lines).unwrap();
    let declared = json!({"streams": [{"name": "s", "cursor_field": cursor_field}]});
    std::fs::write(&manifest, declared.to_string()).unwrap();
    stdout(&fetchwell([
        "import",
        "records",
        text(&file),
        "--store",
        text(store),
        "--connection",
        "c",
        "--manifest",
        text(&manifest),
    ]));
}

#[tokio::test]
async fn a_position_is_invalid_after_the_order_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("order.db");
    let line = |n: i64| json!({"stream": "s", "key": n, "data": {"n": n, "m": -n}}).to_string();
    let lines: Vec<String> = (0..10).map(line).collect();
    import_with_cursor(&path, &lines.join("\n"), "n");
    let mut query =
        RecordsQuery { direction: Direction::Ascending, ..RecordsQuery::new("s".parse().unwrap(), 5) };
    let first = open(&path).records(&query).await.unwrap();
    assert_eq!(keys(&first.rows), ["0", "1", "2", "3", "4"]);
    query.start = Start::After(first.next.unwrap());
    assert_eq!(keys(&open(&path).records(&query).await.unwrap().rows), ["5", "6", "7", "8", "9"]);
    import_with_cursor(&path, &line(10), "m");
    let refused = open(&path).records(&query).await.unwrap_err();
    assert!(
        matches!(refused, SourceError::InvalidQuery { fault: QueryFault::MismatchedCursor, .. }),
        "{refused:?}"
    );
    // The position is not valid in another store with the same query, either.
    let other = folder.path().join("other.db");
    import_with_cursor(&other, &lines.join("\n"), "n");
    let refused = open(&other).records(&query).await.unwrap_err();
    assert!(
        matches!(refused, SourceError::InvalidQuery { fault: QueryFault::MismatchedCursor, .. }),
        "{refused:?}"
    );
}

#[tokio::test]
async fn the_repeated_hour_is_grouped_in_order_of_time() {
    // Clocks in Oslo go back at 01:00 UTC: from 03:00 in summer time to 02:00.
    let times =
        ["2026-10-24T23:10:00Z", "2026-10-25T00:10:00Z", "2026-10-25T01:10:00Z", "2026-10-25T02:10:00Z"];
    let (_folder, path) = store_of(&values("t", &times.map(Value::from)));
    let hours = Grouping::Time {
        field: "t".to_owned(),
        granularity: Granularity::Hour,
        time_zone: "Europe/Oslo".parse().unwrap(),
    };
    let query = of(Metric::Count, None, Some(hours));
    let expect = [
        json!(["2026-10-25T01:00:00+02:00", 1]),
        json!(["2026-10-25T02:00:00+02:00", 1]),
        json!(["2026-10-25T02:00:00+01:00", 1]),
        json!(["2026-10-25T03:00:00+01:00", 1]),
    ];
    assert_eq!(groups(&figure(&path, &query).await), json!(expect));
    let latest = figure(&path, &AggregateQuery { limit: 2, ..query }).await;
    assert_eq!((groups(&latest), latest.other_count), (json!(expect[2..]), Some(2)));
}

#[tokio::test]
async fn long_texts_are_distinguished_and_shown_truncated() {
    let long = "a word ".repeat(100_000);
    let bodies = [format!("{long}1"), format!("{long}2"), format!("{long}2"), "short".to_owned()];
    let (_folder, path) = store_of(&values("body", &bodies.map(Value::from)));
    let answer = figure(&path, &of(Metric::Count, None, by("body"))).await;
    let found = groups(&answer);
    assert_eq!([&found[0][1], &found[1][1], &found[2][1]], [2, 1, 1], "{found}");
    assert!(found.to_string().len() < 3_000, "{}", found.to_string().len());
    let least = json!(figure(&path, &of(Metric::Min, Some("body"), None)).await.value);
    let least = least.as_str().unwrap();
    assert!(least.starts_with("a word a word") && least.len() <= 1_000 && least.ends_with('…'), "{least}");
    let distinct = figure(&path, &of(Metric::CountDistinct, Some("body"), None)).await;
    assert_eq!(json!(distinct.value), json!(3));
}

#[tokio::test]
async fn groups_and_filters_agree_on_equality() {
    let (_folder, path) = store_of(&values("n", &[json!(1), json!(1.0), json!(-0.0), json!(0), json!("1")]));
    let answer = figure(&path, &of(Metric::Count, None, by("n"))).await;
    assert_eq!(groups(&answer), json!([[0, 2], [1, 2], ["1", 1]]));
    let distinct = figure(&path, &of(Metric::CountDistinct, Some("n"), None)).await;
    assert_eq!(json!(distinct.value), json!(3));
}

#[tokio::test]
async fn a_sum_beyond_all_numbers_is_refused() {
    let (_folder, path) = store_of(&values("n", &[json!(1e308), json!(1e308), json!(1e308)]));
    for grouping in [None, by("n")] {
        let refused = open(&path).aggregate(&of(Metric::Sum, Some("n"), grouping)).await.unwrap_err();
        let SourceError::InvalidQuery { fault, problem, .. } = refused else { panic!("{refused:?}") };
        assert_eq!(fault, QueryFault::InvalidAggregate);
        assert_eq!(problem, "the sum of `n` is larger than a number can be");
    }
}
