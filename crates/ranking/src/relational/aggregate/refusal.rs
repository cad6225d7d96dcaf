//! Limits of aggregates, and errors of queries that are not valid or exceed them.

use fetchwell_source::{Purpose, QueryFault, SourceError};

/// Maximum number of groups. All of them are in memory until the pass ends.
const MAX_GROUPS: usize = 200_000;

/// Maximum number of groups for the explanation of an empty answer, which shows the most frequent values of a field.
const MAX_GROUPS_OF_HINT: usize = 20_000;

/// Maximum number of bytes that the keys and aggregates of all groups hold together.
pub(super) const MAX_GROUP_BYTES: usize = 128 * 1024 * 1024;

/// Returns the maximum number of groups of an aggregate.
pub(super) fn max_groups(purpose: Purpose) -> usize {
    match purpose {
        Purpose::Answer => MAX_GROUPS,
        Purpose::Hint => MAX_GROUPS_OF_HINT,
    }
}

/// Returns the error of a query that is not valid.
pub(super) fn refused(problem: String, hint: &str) -> SourceError {
    SourceError::InvalidQuery { fault: QueryFault::InvalidAggregate, problem, hint: hint.to_owned() }
}

/// Returns the error of too many groups or distinct values.
pub(super) fn too_many(max_values: usize) -> SourceError {
    refused(
        format!("there are more than {max_values} different values to tell apart"),
        "Narrow it with `filter`, or group by time.",
    )
}

/// Returns the error of groups of too many bytes.
pub(super) fn too_much() -> SourceError {
    refused(
        format!("the values to tell apart take more than {MAX_GROUP_BYTES} bytes"),
        "Narrow it with `filter`, or group by a field of shorter values.",
    )
}

/// Returns the error of a sum that no number can hold.
pub(super) fn too_large(field: &str) -> SourceError {
    refused(
        format!("the sum of `{field}` is larger than a number can be"),
        "Narrow it with `filter`, or ask for `max`.",
    )
}
