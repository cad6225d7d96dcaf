//! Redacts the text of a client's file before it is shown.
//!
//! A change of a file on one line includes the entries of other servers, which have tokens. An allow-list has the values
//! that are shown: the command line in the entry of this server. A placeholder replaces each other string and number, and
//! each comment. Names of keys stay. The file is written without placeholders.

use jsonc_parser::cst::{CstNode, CstObjectProp};
use toml_edit::{DocumentMut, Item, TableLike, Value};

use super::entry::{Format, NAME};
use super::json_file::{parse, without_mark};
use super::toml_file::SERVERS;

/// Placeholder of a value.
const HIDDEN: &str = "…";

/// Keys of the entry of this server with values that are shown.
const SHOWN: [&str; 3] = ["type", "command", "args"];

/// Returns a text with placeholders, or an empty text if it is not valid.
pub(super) fn redact(text: &str, format: Format) -> String {
    match format {
        Format::Json { servers, .. } => redact_json(text, servers),
        Format::Toml => redact_toml(text),
    }
}

/// Returns true if the value at a path of keys is shown.
fn is_shown(path: &[String], servers: &str) -> bool {
    matches!(path, [key, name, field] if key == servers && name == NAME && SHOWN.contains(&field.as_str()))
}

fn redact_json(text: &str, servers: &str) -> String {
    let Ok(root) = parse(without_mark(text)) else { return String::new() };
    root.children().iter().for_each(|node| hide_node(node, &mut Vec::new(), servers));
    root.to_string()
}

fn hide_node(node: &CstNode, path: &mut Vec<String>, servers: &str) {
    if let Some(property) = node.as_object_prop() {
        hide_property(&property, path, servers);
    } else if let Some(string) = node.as_string_lit() {
        string.set_raw_value(format!("\"{HIDDEN}\""));
    } else if let Some(number) = node.as_number_lit() {
        number.set_raw_value(HIDDEN.to_owned());
    } else if let Some(comment) = node.as_comment() {
        let hidden =
            if comment.is_line_comment() { format!("// {HIDDEN}") } else { format!("/* {HIDDEN} */") };
        comment.set_raw_value(hidden);
    } else {
        node.children().iter().for_each(|child| hide_node(child, path, servers));
    }
}

/// Hides the value of a property and the comments before it. The name stays.
fn hide_property(property: &CstObjectProp, path: &mut Vec<String>, servers: &str) {
    let comments = property.children().into_iter().filter(|child| child.as_comment().is_some());
    comments.for_each(|comment| hide_node(&comment, path, servers));
    path.push(property.decoded_name().unwrap_or_default());
    if let Some(value) = property.value().filter(|_| !is_shown(path, servers)) {
        hide_node(&value, path, servers);
    }
    path.pop();
}

fn redact_toml(text: &str) -> String {
    let Ok(mut document) = text.parse::<DocumentMut>() else { return String::new() };
    hide_table(document.as_table_mut(), &mut Vec::new());
    hide_comments(&document.to_string())
}

fn hide_table(table: &mut dyn TableLike, path: &mut Vec<String>) {
    for (key, item) in table.iter_mut() {
        path.push(key.get().to_owned());
        if !is_shown(path, SERVERS) {
            hide_item(item, path);
        }
        path.pop();
    }
}

fn hide_item(item: &mut Item, path: &mut Vec<String>) {
    match item {
        Item::None => {}
        Item::Value(value) => hide_value(value, path),
        Item::Table(table) => hide_table(table, path),
        Item::ArrayOfTables(tables) => tables.iter_mut().for_each(|table| hide_table(table, path)),
    }
}

fn hide_value(value: &mut Value, path: &mut Vec<String>) {
    match value {
        Value::InlineTable(table) => hide_table(table, path),
        Value::Array(values) => values.iter_mut().for_each(|value| hide_value(value, path)),
        Value::Boolean(_) => {}
        Value::String(_) | Value::Integer(_) | Value::Float(_) | Value::Datetime(_) => {
            let decor = value.decor().clone();
            *value = HIDDEN.into();
            *value.decor_mut() = decor;
        }
    }
}

/// Returns a TOML text with placeholders for its comments.
fn hide_comments(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut open = None;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, open) {
            ('#', None) => {
                shown.push_str("# ");
                shown.push_str(HIDDEN);
                while letters.next_if(|letter| *letter != '\n').is_some() {}
            }
            ('\\', Some(OpenString { quote: '"', .. })) => {
                shown.push(letter);
                shown.extend(letters.next());
            }
            ('"' | '\'', _) => {
                let mut count = 1;
                shown.push(letter);
                while letters.next_if_eq(&letter).is_some() {
                    count += 1;
                    shown.push(letter);
                }
                open = after_quotes(open, letter, count);
            }
            _ => shown.push(letter),
        }
    }
    shown
}

/// A TOML string that has begun.
#[derive(Debug, Clone, Copy)]
struct OpenString {
    quote: char,
    /// True for a string of three quotes, which has single ones in it.
    is_triple: bool,
}

/// Returns the string that is open after `count` equal quotes in a row.
fn after_quotes(open: Option<OpenString>, quote: char, count: usize) -> Option<OpenString> {
    match open {
        Some(string) if string.quote == quote && (!string.is_triple || count >= 3) => None,
        Some(string) => Some(string),
        None if count == 1 => Some(OpenString { quote, is_triple: false }),
        None if (3..=5).contains(&count) => Some(OpenString { quote, is_triple: true }),
        // An empty string.
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: Format = Format::Json { servers: "mcpServers", transport: None };

    #[track_caller]
    fn check(format: Format, text: &str, expect: &str) {
        assert_eq!(redact(text, format), expect);
    }

    #[test]
    fn only_the_command_line_of_this_server_is_shown() {
        check(
            JSON,
            "\u{FEFF}{/* s3 */\"a\": 12, \"mcpServers\": {\"fetchwell\": {\"command\": \"f\", \"args\": [\"x\"], \"env\": {\"T\": \"s3\"}},\
             \"b\": {\"command\": \"s3\", \"args\": [\"s3\", true, null]}}} // s3\n",
            "{/* … */\"a\": …, \"mcpServers\": {\"fetchwell\": {\"command\": \"f\", \"args\": [\"x\"], \"env\": {\"T\": \"…\"}},\
             \"b\": {\"command\": \"…\", \"args\": [\"…\", true, null]}}} // …\n",
        );
        // Another place of the same keys.
        check(JSON, r#"{"fetchwell":{"command":"s3"}}"#, r#"{"fetchwell":{"command":"…"}}"#);
        check(
            JSON,
            r#"{"a":{"mcpServers":{"fetchwell":{"args":"s3"}}}}"#,
            r#"{"a":{"mcpServers":{"fetchwell":{"args":"…"}}}}"#,
        );
        check(
            JSON,
            r#"{"mcpServers":{"fetchwell":{"env" /* s3 */ : {"command":"s3"}}}}"#,
            r#"{"mcpServers":{"fetchwell":{"env" /* … */ : {"command":"…"}}}}"#,
        );
    }

    #[test]
    fn toml_is_redacted_as_json_is() {
        check(
            Format::Toml,
            "# s3\na = 1 # s3\n[mcp_servers.b]\nenv = { T = 's3', U = \"\"\"\ns3\"\"\" } # s3\nargs = [\"s3\"]\n\
             [mcp_servers.fetchwell]\ncommand = \"a # \\\" b\" # s3\nargs = ['#']\nenv = { T = \"s3\" }\n[[x]]\nt = 's3'\n",
            "# …\na = \"…\" # …\n[mcp_servers.b]\nenv = { T = \"…\", U = \"…\" } # …\nargs = [\"…\"]\n\
             [mcp_servers.fetchwell]\ncommand = \"a # \\\" b\" # …\nargs = ['#']\nenv = { T = \"…\" }\n[[x]]\nt = \"…\"\n",
        );
    }

    #[test]
    fn comments_behind_strings_of_three_quotes_are_hidden() {
        check(
            Format::Toml,
            "[mcp_servers.fetchwell]\ncommand = \"\"\"it\"s\"\"\" # s3\nargs = ['''it's''', \"\", \"\"\"\"\"\"] # s3\n# s3\n",
            "[mcp_servers.fetchwell]\ncommand = \"\"\"it\"s\"\"\" # …\nargs = ['''it's''', \"\", \"\"\"\"\"\"] # …\n# …\n",
        );
    }

    #[test]
    fn texts_of_another_format_are_not_shown() {
        check(JSON, "{\"a\": s3}", "");
        check(Format::Toml, "{\"a\": \"s3\"}", "");
    }
}
