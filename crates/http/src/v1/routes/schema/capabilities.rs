//! Capabilities of a field, as an object and as a line of flags.

use std::collections::BTreeSet;

use fetchwell_core::record::{Capability, FieldDetail};
use fetchwell_source::RangeOperator;
use schemars::JsonSchema;
use serde::Serialize;

/// Capabilities of a field.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FieldCapabilities {
    schema: FieldSchema,
    granted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    exact_filter: Option<Support>,
    #[serde(skip_serializing_if = "Option::is_none")]
    range_filter: Option<RangeSupport>,
    lexical_search: Support,
    semantic_search: Support,
    aggregation: Aggregations,
}

/// A field's JSON Schema, as far as its types are known.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct FieldSchema {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<Types>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("const" = "date-time"))]
    format: Option<&'static str>,
}

#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
enum Types {
    One(String),
    Several(Vec<String>),
}

#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
struct Support {
    declared: bool,
    usable: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct RangeSupport {
    declared: bool,
    usable: bool,
    operators: [&'static str; 4],
}

#[derive(Debug, Serialize, JsonSchema)]
struct Aggregations {
    count_distinct: Support,
    group_by: Support,
    group_by_time: Support,
    max: Support,
    min: Support,
    sum: Support,
}

/// Aggregations with their names in flags, in alphabetical order.
const AGGREGATIONS: [(Capability, &str); 6] = [
    (Capability::CountDistinct, "count_distinct"),
    (Capability::GroupBy, "group_by"),
    (Capability::GroupByTime, "group_by_time"),
    (Capability::Max, "max"),
    (Capability::Min, "min"),
    (Capability::Sum, "sum"),
];

impl FieldCapabilities {
    pub(crate) fn new(field: &FieldDetail) -> Self {
        let has = |capability| field.capabilities.contains(&capability);
        let support = |capability| Support { declared: has(capability), usable: has(capability) };
        Self {
            schema: FieldSchema::from_types(&field.types),
            granted: true,
            exact_filter: has(Capability::Equal).then(|| support(Capability::Equal)),
            range_filter: has(Capability::Range).then(|| RangeSupport {
                declared: true,
                usable: true,
                operators: RangeOperator::ALL.map(RangeOperator::as_str),
            }),
            lexical_search: support(Capability::Lexical),
            semantic_search: support(Capability::Semantic),
            aggregation: Aggregations {
                count_distinct: support(Capability::CountDistinct),
                group_by: support(Capability::GroupBy),
                group_by_time: support(Capability::GroupByTime),
                max: support(Capability::Max),
                min: support(Capability::Min),
                sum: support(Capability::Sum),
            },
        }
    }
}

impl FieldSchema {
    pub(crate) fn from_types(types: &[String]) -> Self {
        let is_time = |name: &String| name == "date-time";
        let format =
            (types.iter().any(is_time) && !types.iter().any(|name| name == "string")).then_some("date-time");
        let names: BTreeSet<&str> =
            types.iter().map(|name| if is_time(name) { "string" } else { name.as_str() }).collect();
        let mut names = names.into_iter().map(str::to_owned);
        let kind = match (names.next(), names.len()) {
            (None, _) => None,
            (Some(only), 0) => Some(Types::One(only)),
            (Some(first), _) => Some(Types::Several(std::iter::once(first).chain(names).collect())),
        };
        Self { kind, format }
    }
}

/// Returns the flags of a field: `t=number,eq,r=gte|gt|lte|lt,a=max|min|sum`, or `declared` if nothing is known of
/// it.
pub(crate) fn flags(field: &FieldDetail) -> String {
    let has = |capability| field.capabilities.contains(&capability);
    let mut flags = Vec::new();
    if !field.types.is_empty() {
        flags.push(format!("t={}", field.types.join("|")));
    }
    if has(Capability::Equal) {
        flags.push("eq".to_owned());
    }
    if has(Capability::Range) {
        flags.push(format!("r={}", RangeOperator::ALL.map(RangeOperator::as_str).join("|")));
    }
    if has(Capability::Lexical) {
        flags.push("lex".to_owned());
    }
    if has(Capability::Semantic) {
        flags.push("sem".to_owned());
    }
    let usable = AGGREGATIONS.into_iter().filter(|(capability, _)| has(*capability));
    let usable: Vec<&str> = usable.map(|(_, name)| name).collect();
    if !usable.is_empty() {
        flags.push(format!("a={}", usable.join("|")));
    }
    if flags.is_empty() { "declared".to_owned() } else { flags.join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(types: &[&str], capabilities: &[Capability]) -> FieldDetail {
        FieldDetail {
            name: "f".to_owned(),
            types: types.iter().map(ToString::to_string).collect(),
            capabilities: capabilities.iter().copied().collect(),
        }
    }

    #[track_caller]
    fn check(types: &[&str], capabilities: &[Capability], expect: &str) {
        assert_eq!(flags(&field(types, capabilities)), expect);
    }

    #[test]
    fn field_as_flags() {
        check(&[], &[], "declared");
        check(&["string"], &[Capability::Lexical, Capability::Equal], "t=string,eq,lex");
        let number = [Capability::Sum, Capability::Range, Capability::GroupBy, Capability::Semantic];
        check(&["number", "null"], &number, "t=number|null,r=gte|gt|lte|lt,sem,a=group_by|sum");
    }

    #[track_caller]
    fn check_schema(types: &[&str], expect: &str) {
        let schema = FieldSchema::from_types(&field(types, &[]).types);
        assert_eq!(serde_json::to_string(&schema).unwrap(), expect);
    }

    #[test]
    fn types_as_json_schema() {
        check_schema(&[], "{}");
        check_schema(&["number"], r#"{"type":"number"}"#);
        check_schema(&["date-time"], r#"{"type":"string","format":"date-time"}"#);
        check_schema(&["date-time", "null"], r#"{"type":["null","string"],"format":"date-time"}"#);
        check_schema(&["date-time", "string"], r#"{"type":"string"}"#);
    }
}
