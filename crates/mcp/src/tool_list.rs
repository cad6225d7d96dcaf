//! The tools of a profile in the form of the protocol.

use std::sync::{Arc, LazyLock};

use fetchwell_tools::{Profile, ToolSpec};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};

static STANDARD: LazyLock<Vec<Tool>> = LazyLock::new(|| Profile::Standard.tools().iter().map(tool).collect());
static DOCS: LazyLock<Vec<Tool>> = LazyLock::new(|| Profile::Docs.tools().iter().map(tool).collect());
static OPENAI: LazyLock<Vec<Tool>> = LazyLock::new(|| Profile::OpenAi.tools().iter().map(tool).collect());

/// Returns the tools of a profile. They are the same for all clients and never change at run time.
pub(crate) fn tool_list(profile: Profile) -> &'static [Tool] {
    match profile {
        Profile::Standard => &STANDARD,
        Profile::OpenAi => &OPENAI,
        Profile::Docs => &DOCS,
    }
}

static STANDARD_JSON: LazyLock<String> = LazyLock::new(|| json(Profile::Standard));
static DOCS_JSON: LazyLock<String> = LazyLock::new(|| json(Profile::Docs));
static OPENAI_JSON: LazyLock<String> = LazyLock::new(|| json(Profile::OpenAi));

/// Returns the `tools` array of a profile as JSON, for measuring. It is computed once.
#[must_use]
pub fn tool_list_json(profile: Profile) -> &'static str {
    match profile {
        Profile::Standard => &STANDARD_JSON,
        Profile::OpenAi => &OPENAI_JSON,
        Profile::Docs => &DOCS_JSON,
    }
}

fn json(profile: Profile) -> String {
    serde_json::to_string(tool_list(profile)).unwrap_or_default()
}

fn tool(spec: &ToolSpec) -> Tool {
    // ChatGPT requires every hint. A missing one is an error there.
    let hints = ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false);
    Tool::new(spec.name, spec.description, schema(spec.input_schema))
        .with_title(spec.title)
        .with_raw_output_schema(schema(spec.output_schema))
        .with_annotations(hints)
}

/// Parses a schema of a tool. Tests ensure that each is an object.
fn schema(json: &'static str) -> Arc<JsonObject> {
    Arc::new(serde_json::from_str(json).unwrap_or_default())
}
