//! Metadata beside items and summaries: budgets, counts and the calls for omitted fields.

use std::collections::BTreeMap;

use fetchwell_core::fit::{Limits, OmittedField, TokenBudget, bytes_of};
use fetchwell_core::handle::ConnectionId;
use fetchwell_core::record::{FieldGroup, FieldPath, RecordData, Unavailable, project};
use schemars::JsonSchema;
use serde::Serialize;

use super::fields::MAX_FIELDS;
use crate::error::RequestError;

/// Maximum number of omitted fields that are named one by one.
const MAX_NAMED_GROUPS: usize = 24;

/// Maximum bytes of a field name that is shown; fields with longer names are only counted.
const MAX_NAME_BYTES: usize = 120;

/// Size of the complete answer in relation to its budget.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BudgetMeta {
    /// Estimated tokens of the complete items, or of the complete record.
    pub(super) estimated_tokens: usize,
    /// Tokens above which the answer is summarised.
    pub(super) threshold: usize,
    /// Maximum tokens of any answer.
    pub(super) hard_cap: usize,
    /// Share of the threshold, at most 1.
    pub(super) budget_used: f64,
    /// Tokens below the threshold.
    pub(super) budget_remaining: usize,
    /// Estimated tokens divided by the threshold.
    pub(super) budget_ratio: f64,
    /// True if the estimate exceeds the threshold.
    pub(super) summary_mode: bool,
}

impl From<&TokenBudget> for BudgetMeta {
    fn from(budget: &TokenBudget) -> Self {
        let rounded = |share: f64| (share * 10_000.0).round() / 10_000.0;
        Self {
            estimated_tokens: budget.estimated_tokens(),
            threshold: budget.threshold(),
            hard_cap: budget.hard_cap(),
            budget_used: rounded(budget.budget_used()),
            budget_remaining: budget.budget_remaining(),
            budget_ratio: rounded(budget.budget_ratio()),
            summary_mode: budget.summary_mode(),
        }
    }
}

/// Relates a number of estimated tokens to the limits.
pub(super) fn token_budget(limits: &Limits, estimated: usize) -> Result<TokenBudget, RequestError> {
    let budget = TokenBudget::new(limits.threshold, limits.hard_cap.max(limits.threshold), estimated);
    // Limits are validated when the configuration is loaded.
    budget.map_err(|_unsound| RequestError::internal())
}

/// Metadata of a page.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageMeta {
    /// Total number of records; null if no source could count them.
    pub(super) total_count: Option<u64>,
    /// Set if the total is an estimate or a lower bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total_count_accuracy: Option<&'static str>,
    /// Records on this page.
    pub(super) page_size: usize,
    /// True if there is a next page.
    pub(super) has_more: bool,
    /// True if items are incomplete: long values are replaced by placeholders or left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) summarized: bool,
    /// Call that returns a complete item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) details_available: Option<Details>,
    /// Value of `{id}` in that call for each item, if it differs from the item's `id`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) keys: Vec<String>,
    /// Indexes of the items of each connection, from 0, if there are several: the `connection_id` to send with an id that
    /// several connections have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) connections: BTreeMap<String, Vec<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<&'static str>,
    pub(super) budget: BudgetMeta,
    /// Sources that did not answer; their records are missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) unavailable: Vec<MissingSource>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
}

/// A source that did not answer.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct MissingSource {
    source: String,
    code: String,
}

impl From<&Unavailable> for MissingSource {
    fn from(missing: &Unavailable) -> Self {
        Self { source: missing.source.to_string(), code: missing.code.to_string() }
    }
}

/// Metadata of one record.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RecordMeta {
    /// `preview` or `full`.
    pub(super) kind: &'static str,
    /// Number of fields of the record.
    pub(super) total_fields: usize,
    /// Number of fields of the record and of all objects inside it.
    pub(super) total_fields_deep: usize,
    /// Fields that are present, completely or in part.
    pub(super) projected_fields: Vec<String>,
    pub(super) details_available: Details,
    pub(super) budget: BudgetMeta,
}

/// Calls that return the missing fields.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Details {
    /// Path to call.
    pub(super) endpoint: String,
    /// Parameters that return everything.
    pub(super) parameters: DetailParameters,
    /// Id for the MCP tool `fetch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    /// Missing or incomplete fields, with the call for each of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) groups: Vec<Group>,
    /// Number of further missing fields.
    #[serde(rename = "moreGroups", skip_serializing_if = "is_none")]
    pub(super) more_groups: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

impl Details {
    /// Returns the call for all fields at an endpoint, with the connection if the request named one.
    pub(super) fn of_all(endpoint: String, connection: Option<&ConnectionId>) -> Self {
        let parameters =
            DetailParameters { fields: "all".to_owned(), connection_id: connection.map(ToString::to_string) };
        Self { endpoint, parameters, id: None, groups: Vec::new(), more_groups: 0 }
    }
}

/// Parameters of a call for details.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct DetailParameters {
    /// `all`, or the names of fields.
    pub(super) fields: String,
    /// Connection of the record, if the call has to name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) connection_id: Option<String>,
}

/// A missing or incomplete field, or several that one call returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Group {
    /// Value of the parameter `fields`.
    pub(super) fields: String,
    /// Missing or incomplete fields of a group, if the group has another name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) names: Vec<String>,
    /// Size in bytes of JSON.
    pub(super) bytes: usize,
    /// Number of items, if the field is a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) items: Option<usize>,
}

/// Way in which omitted fields are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OmissionDetail {
    /// One by one, or by groups that the stream declares; those beyond [`MAX_NAMED_GROUPS`] together.
    Each,
    /// All in one call.
    Together,
    /// Counted only, without names.
    Counted,
}

/// Returns the calls for the omitted fields of a record, and the number of fields that these calls do not name.
pub(super) fn groups(
    data: &RecordData,
    left_out: &[OmittedField],
    declared: &[FieldGroup],
    naming: OmissionDetail,
) -> (Vec<Group>, usize) {
    let nameable: Vec<&OmittedField> =
        left_out.iter().filter(|left| left.field.len() <= MAX_NAME_BYTES).collect();
    let each = if naming == OmissionDetail::Each { MAX_NAMED_GROUPS } else { 0 };
    let mut groups: Vec<Group> = Vec::new();
    let mut together: Vec<&OmittedField> = Vec::new();
    for left in &nameable {
        let group = declared.iter().find(|group| is_in_group(group, data, &left.field));
        let fields =
            group.map_or_else(|| FieldPath::field(&left.field).to_string(), |group| group.name.clone());
        if let Some(known) = groups.iter_mut().find(|known| group.is_some() && known.fields == fields) {
            known.names.push(left.field.clone());
        } else if groups.len() < each {
            let names = group.map(|_| left.field.clone()).into_iter().collect();
            let bytes = group.map_or(left.bytes, |group| bytes_of_group(data, group));
            let items = left.items.filter(|_| group.is_none());
            groups.push(Group { fields, names, bytes, items });
        } else {
            together.push(left);
        }
    }
    if naming == OmissionDetail::Counted {
        together.clear();
    }
    together.truncate(MAX_FIELDS);
    if !together.is_empty() {
        let names: Vec<String> =
            together.iter().map(|left| FieldPath::field(&left.field).to_string()).collect();
        let bytes = together.iter().map(|left| left.bytes).sum();
        groups.push(Group { fields: names.join(","), names: Vec::new(), bytes, items: None });
    }
    let named = |group: &Group| group.names.len().max(1);
    let one_by_one: usize = if together.is_empty() {
        groups.iter().map(named).sum()
    } else {
        groups.iter().take(groups.len() - 1).map(named).sum::<usize>() + together.len()
    };
    let more = left_out.len().saturating_sub(one_by_one);
    (groups, more)
}

/// Returns true if a field belongs to a group that can be requested by its name. A field of the record with the same
/// name takes precedence.
fn is_in_group(group: &FieldGroup, data: &RecordData, field: &str) -> bool {
    !data.contains_key(&group.name)
        && group.paths.iter().any(|path| path.is_whole_field() && path.root() == field)
}

fn bytes_of_group(data: &RecordData, group: &FieldGroup) -> usize {
    project(data, &group.paths).values().map(bytes_of).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use fetchwell_core::fit::left_out;

    #[test]
    fn fields_left_out_are_named_by_group_together_or_counted() {
        let data = json!({"id": 1, "name": "Ann", "mail": "a@b", "list": [1, 2], "list of": {}, "x": "y"});
        let data = data.as_object().unwrap();
        let declared = [
            FieldGroup { name: "who".to_owned(), paths: ["name", "mail"].map(FieldPath::field).to_vec() },
            // A field of that name takes precedence over the group.
            FieldGroup { name: "x".to_owned(), paths: vec![FieldPath::field("list")] },
        ];
        let left = left_out(
            data,
            &RecordData::from_iter([("id".to_owned(), json!(1)), ("mail".to_owned(), json!("a@b"))]),
        );
        let of = |naming| {
            let (groups, more) = groups(data, &left, &declared, naming);
            (json!(groups), more)
        };
        let each = json!([
            {"fields": "who", "names": ["name"], "bytes": 10},
            {"fields": "list", "bytes": 5, "items": 2},
            {"fields": "list of", "bytes": 2},
            {"fields": "x", "bytes": 3},
        ]);
        assert_eq!(of(OmissionDetail::Each), (each, 0));
        assert_eq!(
            of(OmissionDetail::Together),
            (json!([{"fields": "name,list,list of,x", "bytes": 15}]), 0)
        );
        assert_eq!(of(OmissionDetail::Counted), (json!([]), 4));

        let many: RecordData = (0..200).map(|number| (format!("f{number}"), json!(number))).collect();
        let (groups, more) = groups(&many, &left_out(&many, &RecordData::new()), &[], OmissionDetail::Each);
        assert_eq!((groups.len(), more), (MAX_NAMED_GROUPS + 1, 200 - MAX_NAMED_GROUPS - MAX_FIELDS));
        assert_eq!(groups[MAX_NAMED_GROUPS].fields.split(',').count(), MAX_FIELDS);
    }
}
