//! Tables and trees of JSON values.

use fetchwell_core::fit::clip;
use fetchwell_core::record::{RecordData, WebLink};
use serde_json::Value;

use super::markup::BoundedMarkup;

/// Maximum number of rows of a table.
const MAX_ROWS: usize = 200;

/// Maximum number of columns of a table; a list of objects with more fields is a tree.
const MAX_COLUMNS: usize = 24;

/// Maximum number of items of one list or object in a tree.
const MAX_ITEMS: usize = 300;

/// Maximum depth of a tree. Deeper values are shown as JSON.
const MAX_TREE_DEPTH: usize = 8;

/// Number of levels that are open at first.
const OPEN_DEPTH: usize = 2;

/// Maximum length of a string in bytes of JSON.
const MAX_STRING_BYTES: usize = 4_000;

/// Maximum length of a value that is shown as JSON, in bytes of JSON.
const MAX_JSON_BYTES: usize = 1_000;

/// Renders a list of objects as a table, and any other value as a tree.
pub(super) fn render_value(value: &Value, out: &mut BoundedMarkup) {
    match table(value) {
        Some(table) => table.render(out),
        None => tree(value, 0, out),
    }
}

/// A list of objects, or of lists, as rows.
struct Table<'a> {
    columns: Vec<&'a str>,
    rows: Vec<Vec<Option<&'a Value>>>,
    /// Number of rows that are left out.
    more: usize,
}

fn table(value: &Value) -> Option<Table<'_>> {
    let items = value.as_array().filter(|items| !items.is_empty())?;
    let shown = items.iter().take(MAX_ROWS);
    let more = items.len().saturating_sub(MAX_ROWS);
    if let Some(objects) = shown.clone().map(Value::as_object).collect::<Option<Vec<&RecordData>>>() {
        let mut columns: Vec<&str> = Vec::new();
        for name in objects.iter().flat_map(|object| object.keys()) {
            if !columns.contains(&name.as_str()) {
                columns.push(name);
            }
            if columns.len() > MAX_COLUMNS {
                return None;
            }
        }
        let rows = objects.iter().map(|object| columns.iter().map(|name| object.get(*name)).collect());
        return (!columns.is_empty()).then(|| Table { rows: rows.collect(), columns: columns.clone(), more });
    }
    let lists = shown.map(Value::as_array).collect::<Option<Vec<&Vec<Value>>>>()?;
    let width =
        lists.iter().map(|list| list.len()).max().filter(|width| (1..=MAX_COLUMNS).contains(width))?;
    let rows = lists.iter().map(|list| (0..width).map(|index| list.get(index)).collect());
    Some(Table { columns: Vec::new(), rows: rows.collect(), more })
}

impl Table<'_> {
    fn render(&self, out: &mut BoundedMarkup) {
        out.open("div", " class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"");
        out.open("table", "");
        if self.more > 0 {
            out.open("caption", "");
            out.text(&format!("The first {MAX_ROWS} of {} rows", MAX_ROWS + self.more));
            out.close();
        }
        if !self.columns.is_empty() {
            out.open("thead", "");
            out.open("tr", "");
            for (index, column) in self.columns.iter().enumerate() {
                let is_number =
                    self.rows.iter().any(|row| matches!(row.get(index), Some(Some(Value::Number(_)))));
                out.open(
                    "th",
                    if is_number {
                        " scope=\"col\" lang=\"\" class=\"number\""
                    } else {
                        " scope=\"col\" lang=\"\""
                    },
                );
                out.text(column);
                out.close();
            }
            out.close();
            out.close();
        }
        out.open("tbody", "");
        for row in &self.rows {
            out.open("tr", "");
            for cell in row {
                out.open(
                    "td",
                    if cell.is_some_and(Value::is_number) {
                        " class=\"number\""
                    } else {
                        " dir=\"auto\" lang=\"\""
                    },
                );
                match cell {
                    Some(value @ (Value::Array(_) | Value::Object(_))) => {
                        out.text(&clip(&value.to_string(), MAX_JSON_BYTES));
                    }
                    Some(value) => scalar(value, out),
                    None => {}
                }
                out.close();
            }
            out.close();
            if out.is_cut() {
                break;
            }
        }
        out.close();
        out.close();
        out.close();
    }
}

/// Renders a value as a tree: lists and objects can be opened and closed.
fn tree(value: &Value, depth: usize, out: &mut BoundedMarkup) {
    let items: Vec<(Option<&str>, &Value)> = match value {
        Value::Array(items) => items.iter().take(MAX_ITEMS).map(|item| (None, item)).collect(),
        Value::Object(fields) => {
            fields.iter().take(MAX_ITEMS).map(|(name, item)| (Some(name.as_str()), item)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return scalar(value, out),
    };
    if depth >= MAX_TREE_DEPTH {
        return out.text(&clip(&value.to_string(), MAX_JSON_BYTES));
    }
    let total =
        value.as_array().map(Vec::len).or_else(|| value.as_object().map(RecordData::len)).unwrap_or(0);
    out.open("details", if depth < OPEN_DEPTH { " class=\"tree\" open" } else { " class=\"tree\"" });
    out.open("summary", "");
    let noun = if value.is_array() { "item" } else { "field" };
    out.text(&format!("{total} {noun}{}", if total == 1 { "" } else { "s" }));
    out.close();
    out.open("ul", "");
    for (name, item) in &items {
        out.open("li", "");
        if let Some(name) = name {
            out.open("bdi", " class=\"soft\" lang=\"\"");
            out.text(name);
            out.close();
            out.raw(": ");
        }
        tree(item, depth + 1, out);
        out.close();
        if out.is_cut() {
            break;
        }
    }
    if total > items.len() {
        out.open("li", " class=\"soft\"");
        out.text(&format!("and {} more", total - items.len()));
        out.close();
    }
    out.close();
    out.close();
}

fn scalar(value: &Value, out: &mut BoundedMarkup) {
    match value {
        Value::String(text) => match text.parse::<WebLink>() {
            Ok(link) => {
                out.open_link(link.as_str());
                out.text(text);
                out.close();
            }
            Err(_no_link) => {
                out.open("bdi", " lang=\"\"");
                out.text(&clip(text, MAX_STRING_BYTES));
                out.close();
            }
        },
        Value::Null => out.raw("<span class=\"soft\">–</span>"),
        other => out.text(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn render(value: &Value) -> String {
        let mut out = BoundedMarkup::new(200_000);
        render_value(value, &mut out);
        out.finish()
    }

    #[test]
    fn lists_of_objects_are_tables() {
        let html = render(&json!([{"a": "<b>", "n": 1}, {"n": null, "c": [1]}]));
        assert!(html.contains("<th scope=\"col\" lang=\"\">a</th>") && html.contains("&lt;b&gt;"), "{html}");
        assert!(html.contains("<td class=\"number\">1</td>") && html.contains(">[1]</td>"), "{html}");
        assert_eq!(html.matches("<tr>").count(), 3, "{html}");
        let html = render(&json!([[1, 2], [3]]));
        assert!(html.contains("<td class=\"number\">3</td>") && !html.contains("<thead>"), "{html}");
        let many: Vec<Value> = (0..1_000).map(|number| json!({"n": number})).collect();
        let html = render(&Value::from(many));
        assert!(html.contains("The first 200 of 1000 rows"), "{html}");
    }

    #[test]
    fn other_values_are_trees_within_limits() {
        let html = render(&json!({"a": {"b": ["javascript:alert(1)", "https://a.example"]}}));
        assert!(html.contains("<details class=\"tree\" open><summary>1 field</summary>"), "{html}");
        assert!(html.contains("<bdi lang=\"\">javascript:alert(1)</bdi>"), "{html}");
        assert!(html.contains("href=\"https://a.example\""), "{html}");
        let wide: RecordData = (0..10_000).map(|number| (format!("f{number}"), json!(number))).collect();
        assert!(render(&Value::Object(wide)).contains("and 9700 more"));
        let deep = (0..100).fold(Value::Null, |inner, _| json!({ "a": inner }));
        let html = render(&deep);
        assert_eq!(html.matches("<details").count(), html.matches("</details>").count());
        assert!(html.matches("<details").count() <= MAX_TREE_DEPTH, "{html}");
    }
}
