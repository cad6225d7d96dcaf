//! Parser of aggregates.

use fetchwell_core::record::{RecordData, Scalar};
use fetchwell_source::{AggregateAnswer, Group, Metric, SourceError};
use serde_json::Value;

use super::tolerant::{member, whole};
use super::{parse, wrong_shape};

/// Parses an aggregate, or one for each group, bare or wrapped in `data`.
pub(crate) fn aggregate(body: &[u8], metric: Metric) -> Result<AggregateAnswer, SourceError> {
    let body: RecordData = parse(body)?;
    let answers =
        |body: &RecordData| body.contains_key("value") || body.get("groups").is_some_and(Value::is_array);
    let body = match body.get("data").and_then(Value::as_object) {
        Some(inner) if !answers(&body) => inner.clone(),
        _ => body,
    };
    if !answers(&body) {
        return Err(wrong_shape("`value` or `groups`"));
    }
    let mut answer = AggregateAnswer {
        value: body.get("value").and_then(Scalar::from_value),
        groups: body.get("groups").and_then(Value::as_array).map(|groups| {
            groups.iter().filter_map(Value::as_object).map(|body| group(body, metric)).collect()
        }),
        other_count: whole(&body, &["other_count", "otherCount"]),
        filtered_count: whole(&body, &["filtered_record_count", "filteredRecordCount"]),
        ..AggregateAnswer::default()
    };
    if body.get("approximate") == Some(&Value::Bool(true)) {
        answer.notes.push("The figures are approximate.".to_owned());
    }
    Ok(answer)
}

/// Parses a group: `{"key":"a","count":3}`, or with the number under `value` or the name of the metric.
fn group(body: &RecordData, metric: Metric) -> Group {
    let value = member(body, &["value", metric.as_str(), "count"]);
    Group {
        key: body.get("key").and_then(Scalar::from_value),
        value: value.and_then(Scalar::from_value),
        ..Group::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: &Value, metric: Metric) -> Result<AggregateAnswer, SourceError> {
        aggregate(body.to_string().as_bytes(), metric)
    }

    fn shown(answer: &AggregateAnswer) -> String {
        let show = |value: &Option<Scalar>| value.as_ref().map_or("-".to_owned(), Scalar::to_string);
        let groups = answer
            .groups
            .iter()
            .flatten()
            .map(|group| format!(" {}={}", show(&group.key), show(&group.value)));
        format!(
            "{}{} other {:?} of {:?}",
            show(&answer.value),
            groups.collect::<String>(),
            answer.other_count,
            answer.filtered_count
        )
    }

    #[track_caller]
    fn check(body: &Value, metric: Metric, expect: &str) {
        assert_eq!(shown(&read(body, metric).unwrap()), expect, "{body}");
    }

    #[test]
    fn recorded_figures_are_read() {
        for (name, metric, expect) in [
            ("agg-count", Metric::Count, "80 other None of Some(80)"),
            ("agg-sum", Metric::Sum, "8190 other None of Some(40)"),
            ("agg-min", Metric::Min, "2026-04-01T00:00:00.000Z other None of Some(40)"),
            ("agg-count-distinct", Metric::CountDistinct, "3 other None of Some(40)"),
            (
                "agg-group-by",
                Metric::Count,
                "- billing0@acme.test=14 billing1@acme.test=13 other Some(13) of Some(40)",
            ),
        ] {
            let file = format!("{}/../../fixtures/record-server/{name}.json", env!("CARGO_MANIFEST_DIR"));
            let reply: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
            check(&reply["response"], metric, expect);
        }
    }

    #[test]
    fn other_spellings_are_read_and_what_is_none_is_missing() {
        check(
            &json!({"data": {"value": 1.5, "filteredRecordCount": 2}}),
            Metric::Sum,
            "1.5 other None of Some(2)",
        );
        check(&json!({"value": null}), Metric::Max, "- other None of None");
        check(&json!({"value": {"x": 1}, "other_count": "some"}), Metric::Max, "- other None of None");
        check(
            &json!({"groups": [{"key": null, "sum": 2, "count": 9}, {"key": true, "value": 3, "count": 9}, 7]}),
            Metric::Sum,
            "- -=2 true=3 other None of None",
        );
        let long =
            read(&json!({"groups": [{}, {}, {}, {}, {}], "approximate": true}), Metric::Count).unwrap();
        assert_eq!(long.groups.unwrap().len(), 5);
        assert_eq!(long.notes, ["The figures are approximate."]);
        for body in [json!({}), json!({"data": []}), json!({"groups": {}}), json!(7)] {
            assert!(matches!(read(&body, Metric::Count), Err(SourceError::Protocol(_))), "{body}");
        }
    }
}
