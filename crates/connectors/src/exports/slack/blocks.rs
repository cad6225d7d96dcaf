//! The text of the blocks of a message: rich text, sections, headers, tables and so on.

use fetchwell_core::record::RecordData;
use serde_json::Value;

use super::super::objects::{objects_at, text_at};
use super::names::Names;
use super::notation::{add_link, plain_text};

/// Bytes of a text after which people and channels are shown by their ids: a name is much longer than an id.
const MAX_NAMED_BYTES: usize = 4 * 1024 * 1024;

/// Returns the text of all blocks of an object, each in lines of its own. Buttons and menus have none.
pub(super) fn text_of_blocks(object: &RecordData, names: &Names) -> String {
    let mut text = String::new();
    for block in objects_at(object, "blocks") {
        add_block(block, names, &mut text);
        end_line(&mut text);
    }
    text.truncate(text.trim_end().len());
    text
}

/// Appends the text of a block or of an element in it. The parser of JSON bounds how deep these are nested.
fn add_block(block: &RecordData, names: &Names, text: &mut String) {
    match text_at(block, "type") {
        "rich_text" | "rich_text_section" | "rich_text_quote" | "rich_text_preformatted" | "context" => {
            let is_context = text_at(block, "type") == "context";
            for element in objects_at(block, "elements") {
                add_block(element, names, text);
                if is_context || text_at(element, "type").starts_with("rich_text_") {
                    end_line(text);
                }
            }
        }
        "rich_text_list" => {
            for element in objects_at(block, "elements") {
                text.push_str("- ");
                add_block(element, names, text);
                end_line(text);
            }
        }
        "section" | "header" | "markdown" => {
            add_text(block.get("text"), names, text);
            end_line(text);
            for field in objects_at(block, "fields") {
                add_block(field, names, text);
                end_line(text);
            }
        }
        "image" | "video" => {
            for field in ["title", "alt_text", "description"] {
                add_text(block.get(field), names, text);
                end_line(text);
            }
        }
        "table" => add_table(block, names, text),
        _ => add_element(block, names, text),
    }
}

/// Appends the text of an element.
fn add_element(element: &RecordData, names: &Names, text: &mut String) {
    let known = (text.len() < MAX_NAMED_BYTES).then_some(names);
    match text_at(element, "type") {
        "text" | "plain_text" => text.push_str(text_at(element, "text")),
        "mrkdwn" => text.push_str(&plain_text(text_at(element, "text"), names)),
        "link" => add_link(text_at(element, "url"), text_at(element, "text"), text),
        "user" => {
            let id = text_at(element, "user_id");
            text.push('@');
            text.push_str(known.and_then(|names| names.person(id)).unwrap_or(id));
        }
        "channel" => {
            let id = text_at(element, "channel_id");
            text.push('#');
            text.push_str(&known.map_or_else(|| id.to_owned(), |names| names.channel_of(id)));
        }
        "broadcast" => {
            text.push('@');
            text.push_str(text_at(element, "range"));
        }
        "emoji" => {
            text.push(':');
            text.push_str(text_at(element, "name"));
            text.push(':');
        }
        "date" => text.push_str(text_at(element, "fallback")),
        "raw_text" => text.push_str(text_at(element, "text")),
        _ => {}
    }
}

/// Appends a text, or an object that has one.
fn add_text(value: Option<&Value>, names: &Names, text: &mut String) {
    match value {
        Some(Value::String(value)) => text.push_str(&plain_text(value, names)),
        Some(Value::Object(object)) => add_element(object, names, text),
        _ => {}
    }
}

/// Appends the rows of a table, with a tab between cells.
fn add_table(table: &RecordData, names: &Names, text: &mut String) {
    let rows = table.get("rows").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_array);
    for row in rows {
        for cell in row.iter().filter_map(Value::as_object) {
            let start = text.len();
            add_block(cell, names, text);
            let bytes = text.get(start..).unwrap_or_default().trim_end_matches('\n').len();
            text.truncate(start + bytes);
            text.push('\t');
        }
        text.truncate(text.trim_end_matches('\t').len());
        end_line(text);
    }
}

/// Ends a line, unless it is empty.
fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks_have_text() {
        let rich = |elements: Value| json!({"type": "rich_text_section", "elements": elements});
        for (block, expect) in [
            (
                json!({"type": "rich_text", "elements": [
                    rich(json!([{"type": "text", "text": "Hi "}, {"type": "user", "user_id": "U1"},
                        {"type": "emoji", "name": "tada"}, {"type": "broadcast", "range": "here"}])),
                    {"type": "rich_text_list", "elements": [
                        rich(json!([{"type": "link", "url": "https://x.test", "text": "page"}])),
                        rich(json!([{"type": "channel", "channel_id": "C1"}]))]},
                    {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": "let x;\n"}]},
                ]}),
                "Hi @U1:tada:@here\n- page (https://x.test)\n- #C1\nlet x;",
            ),
            (
                json!({"type": "section", "text": {"type": "mrkdwn", "text": "1 &lt; 2"}, "fields": [
                    {"type": "plain_text", "text": "a"}, {"type": "mrkdwn", "text": "<https://y.test>"}]}),
                "1 < 2\na\nhttps://y.test",
            ),
            (json!({"type": "header", "text": {"type": "plain_text", "text": "Head"}}), "Head"),
            (
                json!({"type": "context", "elements": [
                    {"type": "image", "alt_text": "Logo"}, {"type": "mrkdwn", "text": "by <@U1>"}]}),
                "Logo\nby @U1",
            ),
            (
                json!({"type": "table", "rows": [
                    [{"type": "raw_text", "text": "A"}, {"type": "raw_text", "text": "B"}],
                    [{"type": "rich_text", "elements": [rich(json!([{"type": "text", "text": "1"}]))]}],
                    [{"type": "raw_text", "text": ""}, {"type": "raw_text", "text": "2"}]]}),
                "A\tB\n1\n\t2",
            ),
            (json!({"type": "actions", "elements": [{"type": "button", "text": {"text": "Yes"}}]}), ""),
            (json!({"type": "rich_text", "elements": "x"}), ""),
        ] {
            let object = json!({"blocks": [block, 1]});
            assert_eq!(text_of_blocks(object.as_object().unwrap(), &Names::default()), expect);
        }
    }
}
