//! Example calls, one for every argument of every tool. Hints of errors show the one that fits.

/// Tool, argument and a call that has it. The first call of a tool is the shortest that works.
const EXAMPLES: &[(&str, &str, &str)] = &[
    ("search", "query", r#"{"query": "words to find"}"#),
    ("search", "limit", r#"{"query": "words to find", "limit": 10}"#),
    ("search", "cursor", r#"{"cursor": "the next_cursor of the page before"}"#),
    (
        "search",
        "connection_id",
        r#"{"query": "words to find", "connection_id": "what an id has before its first /"}"#,
    ),
    ("search", "streams", r#"{"query": "words to find", "streams": ["messages"]}"#),
    (
        "search",
        "filter",
        r#"{"query": "words to find", "streams": ["orders"], "filter": {"status": "open", "amount": {"gte": 10}}}"#,
    ),
    ("search", "mode", r#"{"query": "words to find", "mode": "lexical"}"#),
    ("fetch", "id", r#"{"id": "an id of a search result"}"#),
    (
        "fetch",
        "connection_id",
        r#"{"id": "orders:o1", "connection_id": "what another id has before its first /"}"#,
    ),
    ("fetch", "fields", r#"{"id": "an id of a search result", "fields": ["subject"]}"#),
    ("fetch", "expand", r#"{"id": "an id of a search result", "expand": ["attachments"]}"#),
    (
        "fetch",
        "expand_limit",
        r#"{"id": "an id of a search result", "expand": ["attachments"], "expand_limit": {"attachments": 5}}"#,
    ),
    ("schema", "", "{}"),
    ("schema", "stream", r#"{"stream": "messages"}"#),
    ("schema", "connection_id", r#"{"connection_id": "what an id has before its first /"}"#),
    ("schema", "detail", r#"{"stream": "messages", "detail": "full"}"#),
    ("query_records", "stream", r#"{"stream": "messages"}"#),
    (
        "query_records",
        "connection_id",
        r#"{"stream": "messages", "connection_id": "what an id has before its first /"}"#,
    ),
    ("query_records", "limit", r#"{"stream": "messages", "limit": 10}"#),
    ("query_records", "cursor", r#"{"cursor": "the next_cursor of the page before"}"#),
    ("query_records", "order", r#"{"stream": "messages", "order": "asc"}"#),
    ("query_records", "sort", r#"{"stream": "messages", "sort": "-sent_at"}"#),
    ("query_records", "count", r#"{"stream": "messages", "count": "exact"}"#),
    (
        "query_records",
        "filter",
        r#"{"stream": "orders", "filter": {"status": "open", "amount": {"gte": 10, "lt": 20}}}"#,
    ),
    ("query_records", "fields", r#"{"stream": "messages", "fields": ["subject", "from"]}"#),
    ("query_records", "view", r#"{"stream": "messages", "view": "a view that schema names"}"#),
    ("query_records", "expand", r#"{"stream": "messages", "expand": ["attachments"]}"#),
    (
        "query_records",
        "expand_limit",
        r#"{"stream": "messages", "expand": ["attachments"], "expand_limit": {"attachments": 5}}"#,
    ),
    ("query_records", "changes_since", r#"{"stream": "messages", "changes_since": "beginning"}"#),
    ("aggregate", "metric", r#"{"stream": "messages", "metric": "count"}"#),
    ("aggregate", "stream", r#"{"stream": "messages", "metric": "count"}"#),
    (
        "aggregate",
        "connection_id",
        r#"{"stream": "messages", "metric": "count", "connection_id": "what an id has before its first /"}"#,
    ),
    ("aggregate", "field", r#"{"stream": "orders", "metric": "sum", "field": "amount"}"#),
    ("aggregate", "group_by", r#"{"stream": "messages", "metric": "count", "group_by": "from"}"#),
    (
        "aggregate",
        "group_by_time",
        r#"{"stream": "messages", "metric": "count", "group_by_time": "sent_at", "granularity": "month"}"#,
    ),
    (
        "aggregate",
        "granularity",
        r#"{"stream": "messages", "metric": "count", "group_by_time": "sent_at", "granularity": "month"}"#,
    ),
    (
        "aggregate",
        "time_zone",
        r#"{"stream": "messages", "metric": "count", "group_by_time": "sent_at", "granularity": "day", "time_zone": "Europe/Oslo"}"#,
    ),
    ("aggregate", "limit", r#"{"stream": "messages", "metric": "count", "group_by": "from", "limit": 10}"#),
    (
        "aggregate",
        "filter",
        r#"{"stream": "orders", "metric": "count", "filter": {"status": "open", "amount": {"gte": 10, "lt": 20}}}"#,
    ),
    ("read_record_field", "field", r#"{"id": "an id of a search result", "field": "body"}"#),
    ("read_record_field", "id", r#"{"id": "an id of a search result", "field": "body"}"#),
    (
        "read_record_field",
        "connection_id",
        r#"{"connection_id": "what an id has before its first /", "stream": "messages", "record_id": "m1", "field": "body"}"#,
    ),
    ("read_record_field", "stream", r#"{"stream": "messages", "record_id": "m1", "field": "body"}"#),
    ("read_record_field", "record_id", r#"{"stream": "messages", "record_id": "m1", "field": "body"}"#),
    (
        "read_record_field",
        "offset_chars",
        r#"{"id": "an id of a search result", "field": "body", "offset_chars": 4096}"#,
    ),
    (
        "read_record_field",
        "limit_chars",
        r#"{"id": "an id of a search result", "field": "body", "limit_chars": 2000}"#,
    ),
    (
        "read_record_field",
        "q",
        r#"{"id": "an id of a search result", "field": "body", "q": "words to find"}"#,
    ),
    (
        "read_record_field",
        "before_chars",
        r#"{"id": "an id of a search result", "field": "body", "q": "words to find", "before_chars": 200}"#,
    ),
    (
        "read_record_field",
        "after_chars",
        r#"{"id": "an id of a search result", "field": "body", "q": "words to find", "after_chars": 200}"#,
    ),
    ("read_record_field", "unit", r#"{"id": "an id of a search result", "field": "body", "unit": "chunk"}"#),
    (
        "read_record_field",
        "cursor",
        r#"{"id": "an id of a search result", "field": "body", "unit": "chunk", "cursor": "the cursor of next"}"#,
    ),
];

/// Returns the hint for an argument that is wrong, or for one that the tool does not have.
pub(super) fn hint(tool: &str, argument: &str) -> String {
    if argument == "source" {
        return "Leave out `source`: it is only for an error that names sources to choose from.".to_owned();
    }
    let of_tool = || EXAMPLES.iter().filter(|(of, _, _)| *of == tool);
    let fitting = of_tool().find(|(_, of, _)| *of == argument).or_else(|| of_tool().next());
    let arguments = fitting.map_or("{}", |(_, _, arguments)| arguments);
    format!("Call {tool} with {arguments}.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::Profile;
    use crate::tools::normalize::normalize;

    #[test]
    fn every_argument_has_an_example_that_is_accepted() {
        for spec in Profile::Standard.tools() {
            let schema: serde_json::Value = serde_json::from_str(spec.input_schema).unwrap();
            for name in schema["properties"].as_object().unwrap().keys().filter(|name| *name != "source") {
                let hint = hint(spec.name, name);
                assert!(hint.contains(&format!("\"{name}\": ")), "{hint}");
                let call = hint.strip_prefix(&format!("Call {} with ", spec.name)).unwrap();
                let call = serde_json::from_str(call.strip_suffix('.').unwrap()).unwrap();
                let read = normalize(Profile::Standard, spec.name, call).unwrap().unwrap();
                assert!(read.warnings.is_empty() && read.values.contains_key(name), "{hint}");
            }
        }
    }
}
