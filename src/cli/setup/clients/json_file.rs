//! Edits of a JSON file with or without comments. Text outside of the entry stays as it is.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::Value;

use super::entry::{NAME, ServerEntry};
use super::error::ClientFileError;

/// Mark that some editors write at the start of a file.
const BYTE_ORDER_MARK: char = '\u{FEFF}';

/// Keys of an entry that names a server at a URL.
pub(crate) const URL_KEYS: [&str; 3] = ["url", "serverUrl", "httpUrl"];

/// Returns the text with the entry of the server under a key. An entry that is there gets the command line, and keeps its
/// other keys. A text that has the entry is returned as it is.
pub(super) fn with_json_server(
    text: &str,
    key: &str,
    transport: Option<&str>,
    server: &ServerEntry,
) -> Result<String, ClientFileError> {
    let json = without_mark(text);
    let mark = text.strip_suffix(json).unwrap_or_default();
    let root = parse(json)?;
    let before = root.to_serde_value();
    let object = match root.value() {
        None => root.object_value_or_set(),
        Some(value) => object(&value, || "the whole".to_owned())?,
    };
    let servers = child(&object, key, || format!("`{key}`"))?;
    match servers.get(NAME).and_then(|entry| entry.value()) {
        None => {
            servers.append(NAME, entry(transport, server));
        }
        Some(value) => update(&self::object(&value, || format!("`{key}.{NAME}`"))?, transport, server)?,
    }
    let edited = root.to_string();
    check_lossless(json, before, &edited, key)?;
    Ok(format!("{mark}{edited}"))
}

/// Returns a text without the mark that some editors write at its start.
pub(super) fn without_mark(text: &str) -> &str {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// Parses strict JSON, apart from comments and trailing commas.
pub(super) fn parse(text: &str) -> Result<CstRootNode, ClientFileError> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    CstRootNode::parse(text, &options).map_err(|error| ClientFileError::InvalidSyntax {
        format: "JSON",
        problem: error.kind().to_string(),
        line: error.line_display(),
        column: error.column_display(),
    })
}

fn object(value: &CstNode, place: impl FnOnce() -> String) -> Result<CstObject, ClientFileError> {
    value
        .as_object()
        .ok_or_else(|| ClientFileError::UnexpectedShape { place: place(), expected: "an object" })
}

/// Returns the object under a key, which is added if it is missing.
fn child(
    parent: &CstObject,
    key: &str,
    place: impl FnOnce() -> String,
) -> Result<CstObject, ClientFileError> {
    match parent.get(key).and_then(|property| property.value()) {
        Some(value) => object(&value, place),
        None => Ok(parent.object_value_or_set(key)),
    }
}

fn entry(transport: Option<&str>, server: &ServerEntry) -> CstInputValue {
    let transport = transport.map(|transport| ("type".to_owned(), transport.into()));
    let command = ("command".to_owned(), server.command.as_str().into());
    let entry = transport.into_iter().chain([command, ("args".to_owned(), arguments(server))]);
    CstInputValue::Object(entry.collect())
}

fn arguments(server: &ServerEntry) -> CstInputValue {
    CstInputValue::Array(server.arguments.iter().map(|word| word.as_str().into()).collect())
}

/// Sets the command line of an entry.
fn update(entry: &CstObject, transport: Option<&str>, server: &ServerEntry) -> Result<(), ClientFileError> {
    if URL_KEYS.iter().any(|key| entry.get(key).is_some()) {
        return Err(ClientFileError::OtherServer);
    }
    let command = server.command.as_str();
    let set = |key: &str, is: Value, value: CstInputValue| match entry.get(key) {
        Some(property) if property.value().and_then(|value| value.to_serde_value()) == Some(is) => {}
        Some(property) => property.set_value(value),
        None => {
            entry.append(key, value);
        }
    };
    set("command", command.into(), command.into());
    set("args", server.arguments.clone().into(), arguments(server));
    if let (Some(transport), Some(_)) = (transport, entry.get("type")) {
        set("type", transport.into(), transport.into());
    }
    Ok(())
}

/// Checks that an edit changed nothing but the entry of the server, and lost no comment.
fn check_lossless(text: &str, before: Option<Value>, edited: &str, key: &str) -> Result<(), ClientFileError> {
    let after = parse(edited)?;
    let others = |value: Option<Value>| {
        let mut value = value.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        let servers = value.get_mut(key).and_then(Value::as_object_mut);
        let is_empty = servers.is_some_and(|servers| {
            servers.shift_remove(NAME);
            servers.is_empty()
        });
        if let Some(root) = value.as_object_mut().filter(|_| is_empty) {
            root.shift_remove(key);
        }
        value
    };
    let comments = |root: &CstRootNode| {
        let mut comments = Vec::new();
        root.children().iter().for_each(|node| collect_comments(node, &mut comments));
        comments
    };
    let is_same = others(before) == others(after.to_serde_value());
    if is_same && comments(&parse(text)?) == comments(&after) { Ok(()) } else { Err(ClientFileError::Lossy) }
}

fn collect_comments(node: &CstNode, comments: &mut Vec<String>) {
    if let Some(comment) = node.as_comment() {
        comments.push(comment.raw_value());
    }
    node.children().iter().for_each(|child| collect_comments(child, comments));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn edited(text: &str) -> String {
        let after = with_json_server(text, "mcpServers", None, &ServerEntry::sample()).unwrap();
        let entry = parse(after.trim_start_matches(BYTE_ORDER_MARK)).unwrap().to_serde_value().unwrap();
        assert_eq!(entry["mcpServers"]["fetchwell"]["command"], "/opt/fetchwell", "{after}");
        assert_eq!(
            entry["mcpServers"]["fetchwell"]["args"],
            json!(ServerEntry::sample().arguments),
            "{after}"
        );
        // A second edit changes nothing.
        assert_eq!(with_json_server(&after, "mcpServers", None, &ServerEntry::sample()).unwrap(), after);
        after
    }

    #[test]
    fn lines_of_other_settings_and_comments_stay() {
        let text = "// mine\n{\n\t\"theme\": \"dark\", // not light\n\t\"mcpServers\": {\n\t\t/* work */\n\t\t\"github\": {\n\
            \t\t\t\"command\": \"gh\",\n\t\t\t\"env\": {\"T\": \"s3cret\"}\n\t\t} // last\n\t},\n\t\"n\": 1.50,\n}\n";
        let after = edited(text);
        for line in text.lines().map(|line| line.trim_end_matches(',')) {
            assert!(after.contains(line.split(" // last").next().unwrap()), "{line:?} is not in {after}");
        }
        assert!(
            after.contains("// last") && after.contains("\n\t\t\"fetchwell\": {\n\t\t\t\"command\""),
            "{after}"
        );
    }

    #[test]
    fn missing_parts_are_added() {
        for text in ["", " \n", "{}", "{\"mcpServers\":{}}", "{\n  \"a\": 1\n}\n", "\u{FEFF}{\"a\": 1}"] {
            let after = edited(text);
            assert_eq!(after.starts_with(BYTE_ORDER_MARK), text.starts_with(BYTE_ORDER_MARK));
        }
        let windows = edited("{\r\n  \"a\": 1\r\n}\r\n");
        assert_eq!(windows.matches('\n').count(), windows.matches("\r\n").count(), "{windows:?}");
    }

    #[test]
    fn an_entry_keeps_its_other_keys() {
        let text = "{\"mcpServers\": {\"fetchwell\": {\"command\": \"old\", \"env\": {\"A\": \"b\"}, \"disabled\": true}}}";
        let after: Value = serde_json::from_str(&edited(text)).unwrap();
        let entry = &after["mcpServers"]["fetchwell"];
        assert_eq!((&entry["env"]["A"], &entry["disabled"]), (&json!("b"), &json!(true)));
        let typed = with_json_server("{}", "servers", Some("stdio"), &ServerEntry::sample()).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&typed).unwrap()["servers"]["fetchwell"]["type"], "stdio");
    }

    #[test]
    fn files_that_cannot_be_edited_are_refused() {
        for (text, code) in [
            ("{\"a\": }", "invalid_syntax"),
            ("{'a': 1}", "invalid_syntax"),
            ("{\"a\": 1 \"b\": 2}", "invalid_syntax"),
            ("[1]", "unexpected_shape"),
            ("{\"mcpServers\": []}", "unexpected_shape"),
            ("{\"mcpServers\": {\"fetchwell\": 1}}", "unexpected_shape"),
            ("{\"mcpServers\": {\"fetchwell\": {\"url\": \"https://a.example\"}}}", "other_server"),
            ("{\"mcpServers\": {\"fetchwell\": {\"args\": [/* why */ \"serve\"]}}}", "lossy"),
        ] {
            let refused = with_json_server(text, "mcpServers", None, &ServerEntry::sample()).unwrap_err();
            assert_eq!(refused.code(), code, "{text}: {refused}");
        }
        let refused = with_json_server("{\n  \"a\": \"s3cret\n}", "mcpServers", None, &ServerEntry::sample())
            .unwrap_err();
        let message = refused.to_string();
        assert!(message.contains("in line 2") && !message.contains("s3cret"), "{message}");
    }
}
