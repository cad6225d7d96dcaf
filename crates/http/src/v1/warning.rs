//! Warnings in responses.

use schemars::JsonSchema;
use serde::Serialize;

/// A warning that is not an error.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Warning {
    code: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    param: Option<String>,
}

impl Warning {
    pub(super) fn new(code: &'static str, message: String) -> Self {
        Self { code, message, param: None }
    }

    pub(super) fn about(mut self, param: &str) -> Self {
        self.param = Some(param.to_owned());
        self
    }
}
