//! Resources: the same answers under URIs, for clients that like those. No resource is the only way to
//! anything.

use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::record::RecordData;

/// A kind of resource.
#[derive(Debug, Clone, Copy)]
pub struct ResourceTemplate {
    /// RFC 6570.
    pub uri_template: &'static str,
    /// A name for people.
    pub name: &'static str,
    /// What it gives.
    pub description: &'static str,
}

/// All of them.
pub const RESOURCE_TEMPLATES: [ResourceTemplate; 3] = [
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
];

/// The call that a resource is the same as.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceCall {
    /// The tool.
    pub tool: &'static str,
    /// Its arguments.
    pub arguments: RecordData,
}

/// The call of a URI; `None` when it is of none of the templates. A handle may stand as it is printed, or
/// with its `/` and `%` percent-encoded, as a client that fills the template in sends it.
#[must_use]
pub fn resource_call(uri: &str) -> Option<ResourceCall> {
    let (kind, rest) = uri.strip_prefix("pdpp://")?.split_once('/')?;
    // A handle may hold a `?` as it is printed; only a window has a query, after the last one.
    let (name, query) = match kind {
        "field-window" => rest.rsplit_once('?').map(|(name, query)| (name, Some(query)))?,
        _ => (rest, None),
    };
    if name.is_empty() {
        return None;
    }
    let as_text = |name: &str| percent_decode_str(name).decode_utf8().ok().map(|text| text.into_owned());
    let arguments =
        |pairs: Vec<(&str, Value)>| pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    match kind {
        "stream" => Some(ResourceCall {
            tool: "schema",
            arguments: arguments(vec![("stream", as_text(name)?.into())]),
        }),
        "record" => {
            Some(ResourceCall { tool: "fetch", arguments: arguments(vec![("id", handle(name)?.into())]) })
        }
        "field-window" => {
            let mut pairs = vec![("id", Value::from(handle(name)?))];
            for pair in query?.split('&') {
                let (name, value) = pair.split_once('=')?;
                match name {
                    "field" => pairs.push(("field", as_text(value)?.into())),
                    "offset_chars" => pairs.push(("offset_chars", value.parse::<u64>().ok()?.into())),
                    "limit_chars" => pairs.push(("limit_chars", value.parse::<u64>().ok()?.into())),
                    _ => return None,
                }
            }
            Some(ResourceCall { tool: "read_record_field", arguments: arguments(pairs) })
        }
        _ => None,
    }
}

/// A handle as printed has a `/` in all forms but the oldest; one from a template has it encoded.
fn handle(name: &str) -> Option<String> {
    if name.contains('/') || !name.contains('%') {
        return Some(name.to_owned());
    }
    percent_decode_str(name).decode_utf8().ok().map(|text| text.into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(uri: &str, expect: Option<&(&str, Value)>) {
        let call = resource_call(uri).map(|call| (call.tool, Value::Object(call.arguments)));
        assert_eq!(call.as_ref(), expect, "{uri}");
    }

    #[test]
    fn uris_are_calls() {
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
        for nonsense in [
            "pdpp://record/",
            "pdpp://other/x",
            "http://record/x",
            "pdpp://field-window/c/s:r",
            "pdpp://field-window/c/s:r?x=1",
        ] {
            check(nonsense, None);
        }
    }
}
