//! Parser of the capabilities of a field: flags of a compact schema, or objects of a full one.

use fetchwell_core::record::{Capability, FieldDetail, RecordData};
use serde_json::Value;

use super::tolerant::{member, texts};

/// Parses a field as its stream describes it. Returns `None` if the grant excludes it.
pub(super) fn field(name: &str, described: &Value) -> Option<FieldDetail> {
    let name = name.to_owned();
    match described {
        Value::String(flags) => of_flags(name, flags),
        Value::Object(body) => of_object(name, body),
        _ => Some(FieldDetail { name, ..FieldDetail::default() }),
    }
}

/// Returns the role of a field from its flags; `cursor` is the field that orders the records.
pub(super) fn role(described: &Value) -> Option<&str> {
    let flags = described.as_str()?;
    flags.split(',').find_map(|flag| flag.trim().strip_prefix("role="))
}

/// Parses `t=string,role=title,eq,r=gte|lt,lex,sem,a=count_distinct|group_by`, or `declared`.
fn of_flags(name: String, flags: &str) -> Option<FieldDetail> {
    let mut field = FieldDetail { name, ..FieldDetail::default() };
    for flag in flags.split(',') {
        match flag.trim().split_once('=').unwrap_or((flag.trim(), "")) {
            ("g", "false") => return None,
            ("t", types) => field.types = words(types).map(str::to_owned).collect(),
            ("eq", _) => drop(field.capabilities.insert(Capability::Equal)),
            ("r", operators) if words(operators).next().is_some() => {
                field.capabilities.insert(Capability::Range);
            }
            ("lex", _) => drop(field.capabilities.insert(Capability::Lexical)),
            ("sem", _) => drop(field.capabilities.insert(Capability::Semantic)),
            ("a", kinds) => field.capabilities.extend(words(kinds).filter_map(aggregation)),
            _ => {}
        }
    }
    Some(field)
}

fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split('|').map(str::trim).filter(|word| !word.is_empty())
}

fn of_object(name: String, body: &RecordData) -> Option<FieldDetail> {
    if body.get("granted") == Some(&Value::Bool(false)) {
        return None;
    }
    let types = body.get("schema").and_then(Value::as_object).map(types).unwrap_or_default();
    let mut field = FieldDetail { name, types, ..FieldDetail::default() };
    for (names, capability) in [
        (["exact_filter", "exactFilter"], Capability::Equal),
        (["range_filter", "rangeFilter"], Capability::Range),
        (["lexical_search", "lexicalSearch"], Capability::Lexical),
        (["semantic_search", "semanticSearch"], Capability::Semantic),
    ] {
        if member(body, &names).is_some_and(is_usable) {
            field.capabilities.insert(capability);
        }
    }
    let kinds = body.get("aggregation").and_then(Value::as_object);
    let usable = kinds.into_iter().flatten().filter(|(_, kind)| is_usable(kind));
    field.capabilities.extend(usable.filter_map(|(word, _)| aggregation(word)));
    Some(field)
}

/// Returns the types in JSON Schema's terms. A string that is a time is `date-time`.
pub(super) fn types(schema: &RecordData) -> Vec<String> {
    let mut types = texts(schema, &["type"]);
    if schema.get("format").and_then(Value::as_str) == Some("date-time") {
        types.iter_mut().filter(|name| *name == "string").for_each(|name| "date-time".clone_into(name));
    }
    types
}

/// Returns true for `true`, `{"usable":true}`, `{"declared":true}` without `usable`, or `{"operators":["gte"]}`.
fn is_usable(value: &Value) -> bool {
    match value {
        Value::Bool(usable) => *usable,
        Value::Object(body) => match member(body, &["usable", "declared"]) {
            Some(said) => said == &Value::Bool(true),
            None => body.get("operators").and_then(Value::as_array).is_some_and(|list| !list.is_empty()),
        },
        _ => false,
    }
}

fn aggregation(word: &str) -> Option<Capability> {
    match word {
        "group_by" | "groupBy" => Some(Capability::GroupBy),
        "group_by_time" | "groupByTime" => Some(Capability::GroupByTime),
        "sum" => Some(Capability::Sum),
        "min" => Some(Capability::Min),
        "max" => Some(Capability::Max),
        "count_distinct" | "countDistinct" => Some(Capability::CountDistinct),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(described: &Value, expect: &str) {
        let shown =
            field("f", described).map(|field| format!("{} {:?}", field.types.join("|"), field.capabilities));
        assert_eq!(shown.as_deref().unwrap_or("none"), expect, "{described}");
    }

    #[test]
    fn flags_of_a_compact_schema() {
        check(&json!("declared"), " {}");
        check(&json!("t=string,role=title,eq,lex,sem"), "string {Equal, Lexical, Semantic}");
        check(&json!("t=number|null,r=gte|lt,a=sum|min|max"), "number|null {Range, Sum, Min, Max}");
        check(&json!("t=date-time, r=gte, a=group_by_time"), "date-time {Range, GroupByTime}");
        check(
            &json!("t=string,a=count_distinct|group_by|median,new=flag"),
            "string {GroupBy, CountDistinct}",
        );
        check(&json!("r="), " {}");
        check(&json!("t=string,g=false,eq"), "none");
        check(&json!(7), " {}");
        assert_eq!(role(&json!("t=date-time,role=cursor")), Some("cursor"));
        assert_eq!(role(&json!({"role": "cursor"})), None);
    }

    #[test]
    fn objects_of_a_full_schema() {
        let no = json!({"declared": true, "usable": false});
        let yes = json!({"declared": true, "usable": true});
        check(
            &json!({"schema": {}, "granted": true, "lexical_search": no, "aggregation": {"sum": no}}),
            " {}",
        );
        check(
            &json!({"schema": {"type": ["string", "null"], "format": "date-time"}, "exact_filter": true,
                "range_filter": {"operators": ["gte"]}, "lexical_search": yes,
                "aggregation": {"group_by_time": yes, "min": yes, "max": no, "odd": yes}}),
            "date-time|null {Equal, Range, Lexical, GroupByTime, Min}",
        );
        check(
            &json!({"exactFilter": yes, "rangeFilter": {"operators": []}, "semanticSearch": {"declared": true}}),
            " {Equal, Semantic}",
        );
        check(&json!({"granted": false, "exact_filter": true}), "none");
    }
}
