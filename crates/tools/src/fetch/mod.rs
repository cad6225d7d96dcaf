//! `fetch`: one record as a document, a long one in parts.
//!
//! * `spec`: the specifications of both profiles.
//! * `request`: typed arguments and their validation.
//! * `document`: the answer of a record.

mod document;
mod request;
mod spec;

use std::sync::Arc;

use serde_json::Value;

use document::{DocumentContext, document, hit_document};
use fetchwell_core::handle::PartId;
use fetchwell_core::record::{Record, RecordData};
use fetchwell_source::RecordQuery;
use request::{FetchArgs, OpenAiFetchArgs, resolve};
use spec::{FETCH, FETCH_OPENAI};

use super::answer::{Payload, StopOnDrop, run_blocking};
use super::arguments::parse;
use super::error::ToolError;
use super::profile::Profile;
use super::tool::{Tool, ToolCall, ToolSpec};
use super::toolbox::Toolbox;

/// Maximum size, in bytes, of a record that is made into a document on the thread of the call.
const MAX_INLINE_BYTES: usize = 4 * 1024;

/// Minimum size that a value counts for, in bytes.
const MIN_VALUE_BYTES: usize = 4;

/// The tool `fetch` of the profile `standard`.
pub(crate) struct Fetch;

/// The tool `fetch` of the profile `openai`.
pub(crate) struct FetchOpenAi;

impl Tool for Fetch {
    type Arguments = FetchArgs;

    const SPEC: ToolSpec = FETCH;

    async fn parse(_call: &ToolCall<'_>, arguments: RecordData) -> Result<Self::Arguments, ToolError> {
        parse(&FETCH, arguments)
    }

    async fn call(call: ToolCall<'_>, arguments: Self::Arguments) -> Result<Payload, ToolError> {
        fetch(call.toolbox, Profile::Standard, arguments).await
    }
}

impl Tool for FetchOpenAi {
    type Arguments = OpenAiFetchArgs;

    const SPEC: ToolSpec = FETCH_OPENAI;

    async fn parse(_call: &ToolCall<'_>, arguments: RecordData) -> Result<Self::Arguments, ToolError> {
        parse(&FETCH_OPENAI, arguments)
    }

    async fn call(call: ToolCall<'_>, arguments: Self::Arguments) -> Result<Payload, ToolError> {
        fetch(call.toolbox, Profile::OpenAi, arguments.into()).await
    }
}

async fn fetch(toolbox: &Toolbox, profile: Profile, args: FetchArgs) -> Result<Payload, ToolError> {
    match toolbox.printed(&args.id).await {
        Ok(Some(hit)) => return hit_document(&args.id, &hit, profile, toolbox.budget("fetch")),
        // An id of a source's own that another server printed is no handle.
        Err(error) if args.id.parse::<PartId>().is_err() => {
            return Err(ToolError::StateUnavailable(error.into()));
        }
        Ok(None) | Err(_) => {}
    }
    let source = toolbox.named_source("fetch", args.source.as_ref())?;
    let request = resolve(args)?;
    let query = RecordQuery {
        address: request.address.clone(),
        fields: request.fields.clone(),
        expand: request.expand.clone(),
    };
    let failed = |error| ToolError::from_source(&source, error).with_record(&request.named);
    let record = source.record(&query).await.map_err(failed)?;
    let context = DocumentContext {
        parts: toolbox.parts.clone(),
        budget: toolbox.budget("fetch"),
        pages: toolbox.pages().cloned(),
        profile,
        stop: Arc::default(),
    };
    let _stop = StopOnDrop(Arc::clone(&context.stop));
    // A short document takes less time than handing it to another thread.
    if is_short(&record) {
        return document(&context, &request, &record);
    }
    // A record can have megabytes, and dividing it must not block other calls.
    run_blocking(move || document(&context, &request, &record)).await
}

/// Returns true if a document can be built faster than handed to another thread. Stops reading a long record early.
fn is_short(record: &Record) -> bool {
    let mut left = MAX_INLINE_BYTES;
    record.expanded.is_empty() && record.data.iter().all(|(name, value)| is_within(name, value, &mut left))
}

/// Subtracts the size of a named value from the bytes that are `left`. Returns false if there are not enough.
fn is_within(name: &str, value: &Value, left: &mut usize) -> bool {
    let text = value.as_str().map_or(MIN_VALUE_BYTES, |text| text.len().max(MIN_VALUE_BYTES));
    let Some(rest) = left.checked_sub(name.len() + text) else { return false };
    *left = rest;
    match value {
        Value::Array(items) => items.iter().all(|item| is_within("", item, left)),
        Value::Object(fields) => fields.iter().all(|(name, value)| is_within(name, value, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use fetchwell_callers::{Caller, GrantToken, Reader, RecordPages};
    use fetchwell_lab::recorded::RecordedSource;
    use serde_json::json;

    use super::*;
    use crate::{Profile, Toolbox};

    #[test]
    fn is_short_counts_nested_values() {
        let is_short = |value: &Value| is_within("body", value, &mut MAX_INLINE_BYTES.clone());
        let text = |bytes| Value::from("x".repeat(bytes));
        assert!(is_short(&text(4_092)) && !is_short(&text(4_093)));
        assert!(is_short(&json!({"a": [text(2_000), {"b": text(2_000)}, 1, null]})));
        assert!(!is_short(&json!({"a": [text(2_000), {"b": text(2_000)}], "c": text(200)})));
        assert!(is_short(&json!(vec![0; 1_000])) && !is_short(&json!(vec![0; 1_100])));
        let deep = (0..1_100).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
        assert!(!is_short(&deep));
    }

    #[tokio::test]
    async fn a_part_ends_where_the_next_begins_whatever_link_comes_with_it() {
        let text: String = (0..5_000).map(|line| format!("Line {line} of many.\n")).collect();
        let record = json!({"object": "record", "id": "m1", "stream": "messages", "connection_id": "cin_home",
            "emitted_at": "2026-11-22T00:00:00Z", "data": {"text": text}});
        let [search, records, schema] = Default::default();
        let pages = RecordPages::new("https://records.example.com");
        let reader = Reader::new(&Caller::Token { name: "ann".to_owned() }, GrantToken::default());
        let name = "home".parse().unwrap();
        let source = RecordedSource { name, search, record: record.to_string(), records, schema };
        let toolbox = Toolbox::new(Arc::new(source), Duration::from_secs(60)).unwrap();
        let toolbox = toolbox.with_pages(Some(pages.read_by(reader)));
        let (mut ids, mut read) = (vec!["cin_home/messages:m1".to_owned()], String::new());
        while let Some(id) = ids.pop() {
            let mut part = Value::Null;
            // Each of these has another link.
            for again in 0..40 {
                let arguments = [("id".to_owned(), Value::from(id.as_str()))].into_iter().collect();
                let answer = toolbox.call(Profile::Standard, "fetch", arguments).await.unwrap().unwrap();
                let mut answer: Value = serde_json::from_str(answer.json()).unwrap();
                assert!(answer["url"].take().as_str().unwrap().contains("?link="));
                assert!(again == 0 || answer == part, "{id} is another text");
                part = answer;
            }
            read.push_str(part["text"].as_str().unwrap());
            ids.extend(part["metadata"]["next"].as_str().map(str::to_owned));
        }
        assert!(read == text, "the parts are not the text");
    }
}
