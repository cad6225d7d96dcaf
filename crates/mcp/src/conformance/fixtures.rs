//! The fixtures of the conformance suite.

use std::collections::HashMap;
use std::sync::LazyLock;

use rmcp::model::{
    CallToolResult, ErrorData, GetPromptResult, InputRequests, JsonObject, Prompt, Resource,
    ResourceContents, ResourceTemplate, ResultType, Tool,
};
use serde::Deserialize;
use serde_json::Value;

static FIXTURES: LazyLock<Fixtures> =
    LazyLock::new(|| serde_json::from_str(include_str!("fixtures.json")).unwrap_or_default());

/// Returns the fixtures. A test ensures that they can be parsed.
pub(super) fn fixtures() -> &'static Fixtures {
    &FIXTURES
}

/// Tools, prompts and resources with their results.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Fixtures {
    pub(super) tools: Vec<Tool>,
    results: HashMap<String, CallToolResult>,
    pub(super) prompts: Vec<Prompt>,
    prompt_results: HashMap<String, Value>,
    pub(super) resources: Vec<Resource>,
    pub(super) templates: Vec<ResourceTemplate>,
    contents: HashMap<String, ResourceContents>,
    /// Questions of each round, for tools and prompts that ask the client for input.
    pub(super) rounds: HashMap<String, Vec<InputRequests>>,
}

impl Fixtures {
    pub(super) fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    pub(super) fn has_prompt(&self, name: &str) -> bool {
        self.prompts.iter().any(|prompt| prompt.name == name)
    }

    /// Returns the result of a tool.
    pub(super) fn result(&self, tool: &str) -> Result<CallToolResult, ErrorData> {
        let missing = || ErrorData::internal_error(format!("fixtures.json has no result of {tool}"), None);
        let mut result = self.results.get(tool).cloned().ok_or_else(missing)?;
        result.result_type = Some(ResultType::COMPLETE);
        Ok(result)
    }

    /// Returns a prompt with its arguments in the placeholders.
    pub(super) fn prompt(&self, name: &str, arguments: &JsonObject) -> Result<GetPromptResult, ErrorData> {
        let unknown = || ErrorData::invalid_params(format!("there is no prompt {name}"), None);
        let mut prompt = self.prompt_results.get(name).cloned().ok_or_else(unknown)?;
        fill_placeholders(&mut prompt, arguments);
        let broken = |error: serde_json::Error| ErrorData::internal_error(error.to_string(), None);
        let mut prompt: GetPromptResult = serde_json::from_value(prompt).map_err(broken)?;
        prompt.result_type = Some(ResultType::COMPLETE);
        Ok(prompt)
    }

    /// Returns the contents of a URI of the suite.
    pub(super) fn contents(&self, uri: &str) -> Option<ResourceContents> {
        if let Some(id) = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data")) {
            let text =
                serde_json::json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            return Some(ResourceContents::text(text.to_string(), uri).with_mime_type("application/json"));
        }
        self.contents.get(uri).cloned()
    }
}

/// Replaces the placeholder `{argument}` in every string.
fn fill_placeholders(value: &mut Value, arguments: &JsonObject) {
    match value {
        Value::String(text) => {
            for (name, argument) in arguments {
                *text = text.replace(&format!("{{{name}}}"), argument.as_str().unwrap_or_default());
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| fill_placeholders(value, arguments)),
        Value::Object(fields) => fields.values_mut().for_each(|value| fill_placeholders(value, arguments)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{Fixtures, fixtures};

    #[test]
    fn every_tool_and_prompt_has_a_result() {
        let read: Fixtures = serde_json::from_str(include_str!("fixtures.json")).unwrap();
        assert_eq!(read.tools.len(), fixtures().tools.len());
        for tool in &read.tools {
            assert!(
                read.rounds.contains_key(&*tool.name) || read.result(&tool.name).is_ok(),
                "{}",
                tool.name
            );
        }
        for prompt in &read.prompts {
            let answered = read.prompt(&prompt.name, &serde_json::Map::new()).is_ok();
            assert!(read.rounds.contains_key(&prompt.name) || answered, "{}", prompt.name);
        }
        assert!(read.resources.iter().all(|resource| read.contents(&resource.uri).is_some()));
    }
}
