//! The arguments `expand` and `expand_limit`, which include related records.

use std::collections::HashSet;

use fetchwell_core::record::RecordData;
use fetchwell_core::saturate::saturated;
use fetchwell_source::Expansion;
use serde_json::Value;

use crate::error::ToolError;
use crate::tool::ToolSpec;

/// Maximum number of relations in `expand`.
const MAX_RELATIONS: usize = 100;

/// Parses the relations to include, each with its limit.
pub(crate) fn parse_expansions(
    spec: &ToolSpec,
    mut names: Vec<String>,
    limits: &RecordData,
) -> Result<Vec<Expansion>, ToolError> {
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    if names.len() > MAX_RELATIONS {
        let text = format!("it names more than {MAX_RELATIONS} relations");
        return Err(spec.invalid_argument("expand", text));
    }
    if let Some(unknown) = limits.keys().find(|name| !names.contains(name)) {
        let text = format!("it limits `{unknown}`, which `expand` does not name");
        return Err(spec.invalid_argument("expand_limit", text));
    }
    let expansion = |relation: String| match limits.get(&relation).map(Value::as_u64) {
        None => Ok(Expansion { relation, limit: None }),
        Some(Some(limit)) if limit > 0 => Ok(Expansion { limit: Some(saturated::<usize>(limit)), relation }),
        Some(_) => {
            let text = format!("the limit of `{relation}` is not a positive integer");
            Err(spec.invalid_argument("expand_limit", text))
        }
    };
    names.into_iter().map(expansion).collect()
}
