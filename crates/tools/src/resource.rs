//! Resources: tool calls in the form of URIs, and projects of documents.
//!
//! A `pdpp:` resource stands for a call of a tool and has the same answer, so that clients without resources miss nothing. A
//! `project:` resource is the project as `GET /api/v1/projects/{id}` has it, a `docs:` resource the answer of
//! `list_categories`. They are in profiles without that tool, too.

use fetchwell_core::handle::Handle;
use fetchwell_core::record::RecordData;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::Value;

use super::project_resource::ProjectResource;

/// Prefix of the URI of a record.
const RECORD: &str = "pdpp://record/";

/// A URI template of resources.
#[derive(Debug, Clone, Copy)]
pub struct ResourceTemplate {
    /// Template in the syntax of RFC 6570.
    pub uri_template: &'static str,
    /// Name for people.
    pub name: &'static str,
    /// Description of the content.
    pub description: &'static str,
}

/// All resource templates.
pub const RESOURCE_TEMPLATES: [ResourceTemplate; 5] = [
    ResourceTemplate {
        uri_template: "pdpp://stream/{name}",
        name: "stream",
        description: "The fields of a stream; the same as schema(stream).",
    },
    ResourceTemplate {
        uri_template: "pdpp://record/{handle}",
        name: "record",
        description: "A record by the id of a search result; the same as fetch(id).",
    },
    ResourceTemplate {
        uri_template: "pdpp://field-window/{handle}{?field,offset_chars,limit_chars}",
        name: "field-window",
        description: "A piece of a long text field; the same as read_record_field.",
    },
    PROJECT,
    CATEGORIES,
];

/// The resource templates of projects.
pub const PROJECT_TEMPLATES: [ResourceTemplate; 2] = [PROJECT, CATEGORIES];

const PROJECT: ResourceTemplate = ResourceTemplate {
    uri_template: "project://{id}/info",
    name: "project",
    description: "A project of documents by its slug or id: name, settings, corpus_version and dates.",
};

const CATEGORIES: ResourceTemplate = ResourceTemplate {
    uri_template: "docs://{id}/categories",
    name: "categories",
    description: "The categories of a project of documents with their numbers of documents, by its slug or id.",
};

/// The read that a resource stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum ResourceCall {
    /// A call of a tool.
    Tool {
        /// Name of the tool.
        tool: &'static str,
        /// Arguments of the call.
        arguments: RecordData,
    },
    /// A read of a project of documents.
    Project(ProjectResource),
}

/// Returns the URI of a record by the id that a search printed. [`resource_call`] parses it into the fetch of that id.
#[must_use]
pub(crate) fn record_uri(id: &str) -> String {
    if id.contains('/') && id.parse::<Handle>().is_ok() {
        return format!("{RECORD}{id}");
    }
    format!("{RECORD}{}", utf8_percent_encode(id, NON_ALPHANUMERIC))
}

/// Parses a URI. Returns `None` if it matches no template. A handle may stand as printed, or with its `/`
/// and `%` percent-encoded, as clients that expand the template send it.
#[must_use]
pub fn resource_call(uri: &str) -> Option<ResourceCall> {
    if let Some(project) = uri.strip_prefix("project://") {
        let project = named_project(project, "/info")?;
        return Some(ResourceCall::Project(ProjectResource::Info(project)));
    }
    if let Some(project) = uri.strip_prefix("docs://") {
        let project = named_project(project, "/categories")?;
        return Some(ResourceCall::Project(ProjectResource::Categories(project)));
    }
    let (kind, rest) = uri.strip_prefix("pdpp://")?.split_once('/')?;
    // A printed handle may contain `?`. Only a field window has a query, which begins at the last one.
    let (name, query) = match kind {
        "field-window" => rest.rsplit_once('?').map(|(name, query)| (name, Some(query)))?,
        _ => (rest, None),
    };
    if name.is_empty() {
        return None;
    }
    let arguments =
        |pairs: Vec<(&str, Value)>| pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    match kind {
        "stream" => Some(ResourceCall::Tool {
            tool: "schema",
            arguments: arguments(vec![("stream", decode(name)?.into())]),
        }),
        "record" => Some(ResourceCall::Tool {
            tool: "fetch",
            arguments: arguments(vec![("id", decode_handle(name)?.into())]),
        }),
        "field-window" => {
            let mut pairs = vec![("id", Value::from(decode_handle(name)?))];
            for pair in query?.split('&') {
                let (name, value) = pair.split_once('=')?;
                match name {
                    "field" => pairs.push(("field", decode(value)?.into())),
                    "offset_chars" => pairs.push(("offset_chars", value.parse::<u64>().ok()?.into())),
                    "limit_chars" => pairs.push(("limit_chars", value.parse::<u64>().ok()?.into())),
                    _ => return None,
                }
            }
            Some(ResourceCall::Tool { tool: "read_record_field", arguments: arguments(pairs) })
        }
        _ => None,
    }
}

/// Returns the name of a project, which is followed by `suffix`.
fn named_project(text: &str, suffix: &str) -> Option<String> {
    decode(text.strip_suffix(suffix)?).filter(|project| !project.is_empty())
}

/// Decodes a handle. A printed one has a `/` in all forms but the oldest; an expanded template has it encoded.
fn decode_handle(name: &str) -> Option<String> {
    if name.contains('/') || !name.contains('%') {
        return Some(name.to_owned());
    }
    decode(name)
}

fn decode(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(|text| text.into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(uri: &str, expect: Option<&(&str, Value)>) {
        let call = resource_call(uri).map(|call| match call {
            ResourceCall::Tool { tool, arguments } => (tool, Value::Object(arguments)),
            ResourceCall::Project(ProjectResource::Info(project)) => ("project", json!(project)),
            ResourceCall::Project(ProjectResource::Categories(project)) => ("categories", json!(project)),
        });
        assert_eq!(call.as_ref(), expect, "{uri}");
    }

    #[test]
    fn uris_are_parsed_into_calls() {
        check("pdpp://stream/messages", Some(&("schema", json!({"stream": "messages"}))));
        check("pdpp://stream/my%20stream", Some(&("schema", json!({"stream": "my stream"}))));
        check("pdpp://record/c/s:r", Some(&("fetch", json!({"id": "c/s:r"}))));
        check("pdpp://record/c/s:a?b", Some(&("fetch", json!({"id": "c/s:a?b"}))));
        check("pdpp://record/c%2Fs%3Ar", Some(&("fetch", json!({"id": "c/s:r"}))));
        check("pdpp://record/c/files/a%2Fb.md", Some(&("fetch", json!({"id": "c/files/a%2Fb.md"}))));
        check("pdpp://record/c%2Ffiles%2Fa%252Fb.md", Some(&("fetch", json!({"id": "c/files/a%2Fb.md"}))));
        check(
            "pdpp://field-window/c/s:r?field=body&offset_chars=4096",
            Some(&("read_record_field", json!({"id": "c/s:r", "field": "body", "offset_chars": 4096}))),
        );
        check("project://handbook/info", Some(&("project", json!("handbook"))));
        check("project://handbook%40work/info", Some(&("project", json!("handbook@work"))));
        check("docs://handbook%40work/categories", Some(&("categories", json!("handbook@work"))));
        for nonsense in [
            "docs://handbook/info",
            "docs:///categories",
            "project://handbook",
            "project:///info",
            "project://handbook/other",
            "pdpp://record/",
            "pdpp://other/x",
            "http://record/x",
            "pdpp://field-window/c/s:r",
            "pdpp://field-window/c/s:r?x=1",
        ] {
            check(nonsense, None);
        }
    }

    #[test]
    fn the_uri_of_a_record_is_parsed_into_its_fetch() {
        for (id, expect) in [
            ("cin_4f2a/orders:o1", "pdpp://record/cin_4f2a/orders:o1"),
            ("a%2Fb/orders/o1", "pdpp://record/a%2Fb/orders/o1"),
            ("orders:100%25", "pdpp://record/orders%3A100%2525"),
            ("doc 17", "pdpp://record/doc%2017"),
            ("https://example.com/a?b", "pdpp://record/https%3A%2F%2Fexample%2Ecom%2Fa%3Fb"),
        ] {
            assert_eq!(record_uri(id), expect);
            check(expect, Some(&("fetch", json!({ "id": id }))));
        }
    }
}
