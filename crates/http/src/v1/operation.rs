//! Descriptions of routes.

use schemars::{Schema, SchemaGenerator};

use super::table::Parameter;

/// Route with its description and its query parameters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    /// Path with the placeholders `{stream}` and `{id}`.
    pub(super) path: &'static str,
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) parameters: &'static [Parameter],
    /// Status codes of errors specific to the route.
    pub(super) statuses: &'static [u16],
    /// Function that returns the schema of the response.
    pub(super) answer: fn(&mut SchemaGenerator) -> Schema,
}
