//! Aggregates of a record server that limits groups per connection, gives the oldest times first and leaves out
//! `other_count` over several connections.

use std::collections::BTreeMap;

use fetchwell_source::{
    AggregateAnswer, AggregateQuery, Filter, Granularity, Grouping, Metric, QueryFault, SourceError,
};
use serde_json::{Value, json};

use crate::support::remote::Remote;
use crate::support::{Reply, Request};

/// Returns the number of records of each sender for two connections.
fn accounts() -> [BTreeMap<String, u64>; 2] {
    let senders = |first: u64, step: u64| (0..30).map(|n| (format!("s{n:02}"), first + step * n)).collect();
    // Frequent senders of one connection are rare ones of the other.
    [
        senders(1, 1),
        senders(90, 0)
            .into_iter()
            .map(|(name, count): (String, u64)| {
                let rank: u64 = name.trim_start_matches('s').parse().unwrap();
                (name, count.saturating_sub(3 * rank))
            })
            .collect(),
    ]
}

/// Number of days in one connection, each with one record.
const DAYS: u32 = 40;

fn quirky(request: &Request) -> Reply {
    let line = request.line.trim_start_matches("GET ").split(' ').next().unwrap_or_default().to_owned();
    let url = url::Url::parse(&format!("http://x{line}")).unwrap();
    let params: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
    let limit: usize = params["limit"].parse().unwrap();
    if let Some(granularity) = params.get("group_by_time") {
        assert_eq!(granularity, "received_at");
        let days = if params["granularity"] == "minute" { 150 } else { DAYS };
        let groups: Vec<Value> = (0..days)
            .map(|day| json!({"key": format!("2026-{:02}-{:02}T00:00:00Z", 1 + day / 28, 1 + day % 28), "count": 1}))
            .take(limit)
            .collect();
        return Reply::Json(200, json!({"groups": groups, "filtered_record_count": days}).to_string());
    }
    let mut whole: BTreeMap<String, u64> = BTreeMap::new();
    let mut all = 0;
    for account in accounts() {
        let mut groups: Vec<(String, u64)> = account.into_iter().collect();
        all += groups.iter().map(|(_, count)| count).sum::<u64>();
        groups.sort_by(|(a_name, a), (b_name, b)| b.cmp(a).then_with(|| a_name.cmp(b_name)));
        groups.truncate(limit);
        groups.into_iter().for_each(|(name, count)| *whole.entry(name).or_default() += count);
    }
    let figure = |count: u64| match params["metric"].as_str() {
        "sum" => json!(count * 10),
        _ => json!(count),
    };
    let mut groups: Vec<(String, u64)> = whole.into_iter().collect();
    groups.sort_by(|(_, a), (_, b)| b.cmp(a));
    let groups: Vec<Value> =
        groups.into_iter().map(|(name, count)| json!({"key": name, "count": figure(count)})).collect();
    Reply::Json(200, json!({"groups": groups, "filtered_record_count": all}).to_string())
}

fn query(grouping: Grouping, limit: usize) -> AggregateQuery {
    AggregateQuery {
        stream: "messages".parse().unwrap(),
        connection: None,
        metric: Metric::Count,
        field: None,
        grouping: Some(grouping),
        second_field: None,
        limit,
        filter: Filter::default(),
        purpose: fetchwell_source::Purpose::Answer,
    }
}

fn by_time(granularity: Granularity, limit: usize) -> AggregateQuery {
    let grouping =
        Grouping::Time { field: "received_at".to_owned(), granularity, time_zone: "UTC".parse().unwrap() };
    query(grouping, limit)
}

fn shown(answer: &AggregateAnswer) -> Vec<String> {
    let text = |group: &fetchwell_source::Group| {
        format!("{}={}", group.key.as_ref().unwrap(), group.value.as_ref().unwrap())
    };
    answer.groups.iter().flatten().map(text).collect()
}

#[tokio::test]
async fn groups_over_connections_are_limited_after_their_sum() {
    let remote = Remote::start(quirky);
    let [work, home] = accounts();
    let mut expected: Vec<(u64, String)> =
        work.iter().map(|(name, count)| (count + home[name], name.clone())).collect();
    expected.sort_by(|(a, a_name), (b, b_name)| b.cmp(a).then_with(|| a_name.cmp(b_name)));
    let all: u64 = expected.iter().map(|(count, _)| count).sum();
    for metric in [Metric::Count, Metric::Sum] {
        let factor = if metric == Metric::Sum { 10 } else { 1 };
        let field = (metric == Metric::Sum).then(|| "amount".to_owned());
        let asked = AggregateQuery { metric, field, ..query(Grouping::Field("from".to_owned()), 3) };
        let answer = remote.pdpp.aggregate(&asked).await.unwrap();
        let first: Vec<String> =
            expected.iter().take(3).map(|(count, name)| format!("{name}={}", count * factor)).collect();
        assert_eq!(shown(&answer), first);
        let told: u64 = expected.iter().take(3).map(|(count, _)| count).sum();
        assert_eq!(answer.other_count, Some(all - told), "{metric:?}");
    }
}

#[tokio::test]
async fn the_newest_groups_of_time_are_shown() {
    let remote = Remote::start(quirky);
    let answer = remote.pdpp.aggregate(&by_time(Granularity::Day, 2)).await.unwrap();
    assert_eq!(shown(&answer), ["2026-02-11T00:00:00Z=1", "2026-02-12T00:00:00Z=1"]);
    assert_eq!(answer.other_count, Some(u64::from(DAYS) - 2));
    let whole = remote.pdpp.aggregate(&by_time(Granularity::Day, 100)).await.unwrap();
    assert_eq!((whole.groups.unwrap().len(), whole.other_count), (40, Some(0)));
}

#[tokio::test]
async fn aggregates_with_only_the_oldest_groups_are_refused() {
    let remote = Remote::start(quirky);
    match remote.pdpp.aggregate(&by_time(Granularity::Minute, 2)).await {
        Err(SourceError::InvalidQuery { fault: QueryFault::InvalidArgument, hint, .. }) => {
            assert_eq!(hint, "Set `granularity` to \"hour\" or longer.");
        }
        other => panic!("{other:?}"),
    }
}

/// Returns the replies of a server with this many days of one record each; `undated` records have no time.
fn days(count: usize, undated: usize) -> impl Fn(&Request) -> Reply + Send + Sync {
    move |request| {
        let groups: Vec<Value> = (0..count.min(100))
            .map(|day| {
                let value = if request.line.contains("metric=sum") { 7 } else { 1 };
                json!({"key": format!("2026-{:02}-{:02}", 1 + day / 28, 1 + day % 28), "count": value})
            })
            .collect();
        let body = json!({"groups": groups, "filtered_record_count": count + undated});
        Reply::Json(200, body.to_string())
    }
}

#[tokio::test]
async fn groups_of_time_up_to_the_server_limit_are_complete() {
    for metric in [Metric::Count, Metric::Sum] {
        let field = (metric == Metric::Sum).then(|| "amount".to_owned());
        let asked = AggregateQuery { metric, field, ..by_time(Granularity::Day, 3) };
        let answer = Remote::start(days(100, 0)).pdpp.aggregate(&asked).await.unwrap();
        assert_eq!((shown(&answer).len(), answer.other_count), (3, Some(97)), "{metric:?}");
        assert_eq!(answer.notes, [""; 0]);
        for (count, undated) in [(101, 0), (100, 1)] {
            let refused = Remote::start(days(count, undated)).pdpp.aggregate(&asked).await;
            assert!(
                matches!(refused, Err(SourceError::InvalidQuery { fault: QueryFault::InvalidArgument, .. })),
                "{metric:?} {count} {undated}"
            );
        }
    }
}

#[tokio::test]
async fn groups_of_one_connection_are_exact_without_a_count() {
    let remote = Remote::start(|_| {
        let groups: Vec<Value> =
            (0..100).map(|n| json!({"key": format!("s{n}"), "count": 200 - n})).collect();
        Reply::Json(200, json!({"groups": groups, "other_count": 11}).to_string())
    });
    let of_all = query(Grouping::Field("from".to_owned()), 98);
    let one = AggregateQuery { connection: "cin_work".parse().ok(), ..of_all.clone() };
    let answer = remote.pdpp.aggregate(&one).await.unwrap();
    assert_eq!((answer.notes.len(), answer.other_count), (0, Some(11 + 102 + 101)));
    let answer = remote.pdpp.aggregate(&of_all).await.unwrap();
    assert!(answer.notes[0].contains("`connection_id`"), "{:?}", answer.notes);
}
