//! The JSON or the text of an answer.
//!
//! Servers put the same answer into different places: an object in `structuredContent`; the same, wrapped as `{"result": ...}`,
//! because it is no object; JSON as the text of one item, or of several items; JSON in a JSON string; resources and links to
//! them.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Map, Value, json};

/// Maximum number of wraps that are removed: strings with JSON, `result`, lists of items.
const MAX_WRAPS: usize = 6;

/// Answer of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Content {
    /// The JSON of the answer.
    pub(crate) json: Option<Value>,
    /// The text of the answer, if it has no JSON.
    pub(crate) text: String,
    /// Resources of the answer and links to them, as results with `id`, `title`, `text` and `url`.
    pub(crate) resources: Vec<Value>,
}

/// Error that a tool reports, in the server's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolError(pub(crate) String);

/// Reads an answer.
///
/// # Errors
///
/// The answer is marked as an error.
pub(crate) fn read(result: CallToolResult) -> Result<Content, ToolError> {
    let mut items = Items::default();
    result.content.into_iter().for_each(|block| items.add(block));
    if result.is_error == Some(true) {
        let text = items.texts.join("\n");
        let structured = result.structured_content.as_ref().and_then(error_inside);
        return Err(ToolError(structured.unwrap_or(text)));
    }
    let structured = result.structured_content.filter(|value| !value.is_null());
    let structured = structured.map(|value| unwrapped(value, MAX_WRAPS));
    let resources = items.resources.clone();
    Ok(match structured {
        Some(Value::String(text)) => Content { json: None, text, resources },
        Some(json) => Content { json: Some(json), text: items.texts.join("\n\n"), resources },
        None => match items.json() {
            Some(json) => Content { json: Some(json), text: String::new(), resources },
            None => Content { json: None, text: items.texts.join("\n\n"), resources },
        },
    })
}

/// Returns the error that a success has inside, such as `{"results": [], "error": "Unsupported client"}`.
pub(crate) fn error_inside(json: &Value) -> Option<String> {
    let words = |value: &Value| match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Object(fields) => fields.get("message").and_then(Value::as_str).map(str::to_owned),
        _ => None,
    };
    let fields = json.as_object()?;
    // Servers of documents put an error where the metadata of a document would be.
    let metadata = fields.get("metadata").and_then(Value::as_object).filter(|metadata| metadata.len() == 1);
    if let Some(error) = metadata.and_then(|metadata| metadata.get("error")).and_then(words) {
        return Some(error);
    }
    let error = fields.get("error").filter(|error| !matches!(error, Value::Null | Value::Bool(false)))?;
    let error = words(error);
    let details = ["error_description", "error_message", "message", "details", "detail", "error_details"];
    let details = details.iter().find_map(|name| fields.get(*name).and_then(words));
    match (error, details) {
        (Some(error), Some(details)) if error != details => Some(format!("{error}: {details}")),
        (Some(error), _) => Some(error),
        (None, details) => Some(details.unwrap_or_else(|| "the answer says `error`".to_owned())),
    }
}

/// Texts and resources of an answer.
#[derive(Debug, Default)]
struct Items {
    texts: Vec<String>,
    resources: Vec<Value>,
}

impl Items {
    fn add(&mut self, block: ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.texts.push(text.text),
            ContentBlock::Resource(resource) => {
                if let ResourceContents::TextResourceContents { uri, text, .. } = resource.resource {
                    self.resources.push(json!({"id": uri, "url": uri, "text": text}));
                    self.texts.push(text);
                }
            }
            ContentBlock::ResourceLink(link) => {
                let title = link.title.unwrap_or(link.name);
                let text = link.description;
                self.resources.push(json!({"id": link.uri, "title": title, "text": text, "url": link.uri}));
            }
            // Pictures and sounds have no text.
            _ => {}
        }
    }

    /// Returns the JSON of the texts: of the only one, a list of those of several, or of the first one among plain texts. A text
    /// may have its JSON in a fenced block.
    fn json(&self) -> Option<Value> {
        let parsed: Vec<Option<Value>> = self.texts.iter().map(|text| json_of(text)).collect();
        if parsed.len() > 1 && parsed.iter().all(Option::is_some) {
            return Some(Value::Array(parsed.into_iter().flatten().collect()));
        }
        let first = parsed.into_iter().flatten().next();
        let first = first.or_else(|| self.texts.iter().find_map(|text| json_of(fenced(text)?)));
        first.map(|json| unwrapped(json, MAX_WRAPS))
    }
}

/// Returns the content of the first fenced block of JSON.
fn fenced(text: &str) -> Option<&str> {
    let (_, block) = text.split_once("```json")?;
    block.split_once("```").map(|(json, _)| json)
}

/// Parses a text that is a JSON object or list.
fn json_of(text: &str) -> Option<Value> {
    if !text.trim_start().starts_with(['{', '[', '"']) {
        return None;
    }
    let parsed: Value = serde_json::from_str(text).ok()?;
    match parsed {
        Value::String(inner) => json_of(&inner),
        Value::Object(_) | Value::Array(_) => Some(parsed),
        _ => None,
    }
}

/// Removes wraps around an answer: `{"result": ...}`, a list of content items, and JSON in a string.
fn unwrapped(value: Value, wraps: usize) -> Value {
    if wraps == 0 {
        return value;
    }
    match value {
        Value::String(text) => match json_of(&text) {
            Some(json) => unwrapped(json, wraps - 1),
            None => Value::String(text),
        },
        Value::Object(mut fields) if is_wrap(&fields) => {
            let inner = fields.remove("result").unwrap_or(Value::Null);
            unwrapped(inner, wraps - 1)
        }
        Value::Array(items) if is_content(&items) => {
            let text = |item: &Value| item.get("text").and_then(Value::as_str).map(str::to_owned);
            let items = Items { texts: items.iter().filter_map(text).collect(), resources: Vec::new() };
            match items.json() {
                Some(json) => unwrapped(json, wraps - 1),
                None => Value::String(items.texts.join("\n\n")),
            }
        }
        other => other,
    }
}

/// Returns true for the object that `FastMCP` puts around what is no object.
fn is_wrap(fields: &Map<String, Value>) -> bool {
    fields.len() == 1 && fields.contains_key("result")
}

/// Returns true for a list of content items with text.
fn is_content(items: &[Value]) -> bool {
    let is_text = |item: &Value| {
        item.get("type").and_then(Value::as_str) == Some("text")
            && item.get("text").is_some_and(Value::is_string)
    };
    !items.is_empty() && items.iter().all(is_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(value: Value) -> CallToolResult {
        serde_json::from_value(value).unwrap()
    }

    fn texts(texts: &[&str]) -> Value {
        Value::from_iter(texts.iter().map(|text| json!({"type": "text", "text": text})))
    }

    #[test]
    fn json_is_found_wherever_a_server_puts_it() {
        let list = json!({"results": [{"id": "1"}]});
        let in_text = list.to_string();
        let in_string = Value::from(in_text.as_str());
        for (case, structured) in [
            ("object", list.clone()),
            ("wrapped", json!({"result": list})),
            ("string in a wrap", json!({"result": in_string})),
            ("items in a wrap", json!({"result": texts(&[&in_text])})),
        ] {
            let content =
                read(answer(json!({"content": texts(&["preview"]), "structuredContent": structured})));
            assert_eq!(content.unwrap().json, Some(list.clone()), "{case}");
        }
        for (case, content, expect) in [
            ("one text", texts(&[&in_text]), Some(list.clone())),
            ("a string in a text", texts(&[&in_string.to_string()]), Some(list.clone())),
            ("several texts", texts(&[r#"{"id": 1}"#, r#"{"id": 2}"#]), Some(json!([{"id": 1}, {"id": 2}]))),
            ("JSON before a remark", texts(&[&in_text, "That is all."]), Some(list.clone())),
            ("JSON after a remark", texts(&["Found:", &in_text]), Some(list.clone())),
            (
                "a fenced block",
                texts(&[&format!("Found:\n```json\n{in_text}\n```\nAll.")]),
                Some(list.clone()),
            ),
            ("plain text", texts(&["[x] is done", "a"]), None),
            ("a number", texts(&["42"]), None),
        ] {
            assert_eq!(read(answer(json!({"content": content}))).unwrap().json, expect, "{case}");
        }
    }

    #[test]
    fn text_and_resources_are_kept() {
        let content = read(answer(json!({"content": [
            {"type": "text", "text": "# Plan"},
            {"type": "resource", "resource": {"uri": "note://1", "text": "Buy"}},
            {"type": "resource_link", "uri": "note://2", "name": "two", "description": "Sell"},
            {"type": "image", "data": "AA==", "mimeType": "image/png"},
        ]})));
        let content = content.unwrap();
        assert_eq!(content.text, "# Plan\n\nBuy");
        assert_eq!(
            content.resources[1],
            json!({"id": "note://2", "title": "two", "text": "Sell", "url": "note://2"})
        );
    }

    #[test]
    fn errors_are_found_beside_and_inside_a_success() {
        let error = read(answer(json!({"content": texts(&["no access"]), "isError": true}))).unwrap_err();
        assert_eq!(error, ToolError("no access".to_owned()));
        for (json, expect) in [
            (json!({"error": null, "results": []}), None),
            (json!({"error": false}), None),
            (json!({"results": []}), None),
            (json!({"results": [], "error": "Unsupported MCP client"}), Some("Unsupported MCP client")),
            (json!({"error": "bad", "error_details": "more"}), Some("bad: more")),
            (json!({"error": {"code": 3, "message": "bad"}}), Some("bad")),
            (json!({"error": true}), Some("the answer says `error`")),
            (
                json!({"error": "NOT_FOUND", "message": "Note not found: x"}),
                Some("NOT_FOUND: Note not found: x"),
            ),
            (
                json!({"text": "# Not found", "metadata": {"error": "Document not found"}}),
                Some("Document not found"),
            ),
            (json!({"text": "x", "metadata": {"error": "E5", "level": "warn"}}), None),
        ] {
            assert_eq!(error_inside(&json).as_deref(), expect, "{json}");
        }
    }
}
