//! The results of a search.

use std::collections::HashSet;

use serde_json::Value;

use super::content::{Content, ToolError, error_inside};
use super::fields::{DATE, ID, TEXT, TITLE, URL, named, text_at, text_of, time_of};
use crate::line_pattern::LineField;
use crate::mapping::{Pointer, SearchMapping};

/// Maximum number of results that are read of one answer.
const MAX_RESULTS: usize = 10_000;

/// Maximum size of a position of the server, in bytes. It is kept in the position of a search.
const MAX_CURSOR_BYTES: usize = 8 * 1024;

/// Names of lists of results, and of objects around them.
const RESULTS: &[&str] = &[
    "results",
    "items",
    "hits",
    "matches",
    "documents",
    "notes",
    "pages",
    "records",
    "entries",
    "issues",
    "messages",
    "values",
    "data",
    "result",
];

/// Names of positions of next pages.
const NEXT: &[&str] = &["next_cursor", "nextCursor", "next_page_token", "nextPageToken", "next", "cursor"];

/// Names of the statement that there are more results.
const MORE: &[&str] = &["has_more", "hasMore", "has_next", "hasNext"];

/// One result of a search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ResultItem {
    /// The id by which it is fetched.
    pub(crate) id: Option<String>,
    /// Title of the record.
    pub(crate) title: Option<String>,
    /// The text or a passage of it.
    pub(crate) text: Option<String>,
    /// The link for a person.
    pub(crate) url: Option<String>,
    /// The time at which it was written.
    pub(crate) date: Option<String>,
    /// Rank on its page as the server sent it, from 1; 0 before the page is complete.
    pub(crate) rank: u32,
}

/// Page of results.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ResultsPage {
    /// Results, each id once.
    pub(crate) items: Vec<ResultItem>,
    /// Number of results that the answer had, those with an id of another one included.
    pub(crate) received: usize,
    /// Position of the next page.
    pub(crate) next: Option<String>,
    /// True if the answer says that there are more, false if it says that there are none.
    pub(crate) has_more: Option<bool>,
}

/// The reason why an answer has no results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoResults {
    /// The tool reports an error.
    Error(ToolError),
    /// The answer has no list of results.
    NoList,
    /// The answer is text, and the mapping has no form of its lines.
    Text,
}

/// Reads the results of an answer.
///
/// # Errors
///
/// The answer is an error, or has no results where they are expected.
pub(crate) fn results(content: &Content, mapping: &SearchMapping) -> Result<ResultsPage, NoResults> {
    if let Some(json) = &content.json {
        let list = list(json, mapping.results.as_ref());
        if list.is_none_or(Vec::is_empty)
            && let Some(words) = error_inside(json)
        {
            return Err(NoResults::Error(ToolError(words)));
        }
        return match list {
            Some(list) => {
                let has_more = MORE.iter().find_map(|name| json.get(*name)?.as_bool());
                let next = next(json, mapping.next.as_ref()).filter(|_| has_more != Some(false));
                Ok(ResultsPage { next, has_more, ..page(list, mapping) })
            }
            None if !content.resources.is_empty() => Ok(page(&content.resources, mapping)),
            None => Err(NoResults::NoList),
        };
    }
    if !content.resources.is_empty() {
        return Ok(page(&content.resources, &SearchMapping::default()));
    }
    match &mapping.line {
        Some(pattern) => {
            let mut items: Vec<ResultItem> = Vec::new();
            for line in content.text.lines().take(MAX_RESULTS) {
                match (pattern.read(line), items.last_mut()) {
                    (Some(fields), _) => items.push(item_of_line(&fields)),
                    // Lines between results are the text of the one before.
                    (None, Some(item)) if !line.trim().is_empty() => {
                        let text = item.text.get_or_insert_default();
                        if !text.is_empty() {
                            text.push('\n');
                        }
                        text.push_str(line.trim());
                    }
                    (None, _) => {}
                }
            }
            let received = items.len();
            Ok(ResultsPage { items: distinct(items), received, ..ResultsPage::default() })
        }
        None if is_nothing(&content.text) => Ok(ResultsPage::default()),
        None => Err(NoResults::Text),
    }
}

/// Returns true for a text that says that nothing was found.
fn is_nothing(text: &str) -> bool {
    let text = text.trim().to_lowercase();
    let negations = ["no ", "0 ", "nothing", "none"];
    text.is_empty()
        || (text.len() <= 200 && negations.iter().any(|word| text.starts_with(word)) && !text.contains('\n'))
}

fn page(list: &[Value], mapping: &SearchMapping) -> ResultsPage {
    // A result without the id that others have cannot be fetched by its link.
    let has = |name: &str| list.iter().any(|value| value.get(name).and_then(text_of).is_some());
    let top = ID.iter().find(|name| has(name));
    // Objects in a result have ids of other things, so they come second.
    let id_name =
        top.or_else(|| ID.iter().find(|name| list.iter().any(|value| named(value, &[name]).is_some())));
    let is_top = top.is_some();
    let id_names = id_name.map_or(&[][..], std::slice::from_ref);
    let items = list.iter().take(MAX_RESULTS).map(|value| item(value, mapping, id_names, is_top)).collect();
    ResultsPage { items: distinct(items), received: list.len(), ..ResultsPage::default() }
}

/// Removes results with the id of an earlier one.
fn distinct(mut items: Vec<ResultItem>) -> Vec<ResultItem> {
    let mut seen = HashSet::new();
    items.retain(|item| item.id.as_ref().is_none_or(|id| seen.insert(id.clone())));
    items
}

fn item(value: &Value, mapping: &SearchMapping, id_names: &[&str], is_top: bool) -> ResultItem {
    if let Some(text) = value.as_str().filter(|_| mapping.id.is_none()) {
        return ResultItem {
            id: Some(text.to_owned()),
            title: Some(text.to_owned()),
            ..ResultItem::default()
        };
    }
    let SearchMapping { id, title, text, url, date, .. } = mapping;
    let part = |pointer: &Option<Pointer>, names: &[&str]| text_at(value, pointer.as_ref(), names);
    ResultItem {
        id: match id {
            None if is_top => id_names.iter().find_map(|name| text_of(value.get(*name)?)),
            id => part(id, id_names),
        },
        title: part(title, TITLE),
        text: part(text, TEXT),
        url: part(url, URL),
        date: part(date, DATE).and_then(|date| time_of(&date)),
        ..ResultItem::default()
    }
}

fn item_of_line(fields: &[(LineField, &str)]) -> ResultItem {
    let part = |wanted: LineField| {
        let found = fields.iter().find(|(field, text)| *field == wanted && !text.is_empty());
        found.map(|(_, text)| (*text).to_owned())
    };
    ResultItem {
        id: part(LineField::Id),
        title: part(LineField::Title),
        text: part(LineField::Text),
        url: part(LineField::Url),
        date: part(LineField::Date).and_then(|date| time_of(&date)),
        ..ResultItem::default()
    }
}

/// Returns the list of results: at the pointer, else the answer itself, else the first list with a usual name, else the only
/// list of objects in it.
fn list<'a>(json: &'a Value, pointer: Option<&Pointer>) -> Option<&'a Vec<Value>> {
    if let Some(pointer) = pointer {
        return pointer.value_in(json)?.as_array();
    }
    let fields = match json {
        Value::Array(list) => return Some(list),
        other => other.as_object()?,
    };
    let named = || RESULTS.iter().filter_map(|name| fields.get(*name));
    if let Some(list) = named().find_map(Value::as_array) {
        return Some(list);
    }
    let inner = named().filter_map(Value::as_object);
    if let Some(list) =
        inner.flat_map(|fields| RESULTS.iter().filter_map(|name| fields.get(*name)?.as_array())).next()
    {
        return Some(list);
    }
    let mut lists = fields.values().filter_map(Value::as_array);
    let lists = lists.by_ref().filter(|list| !list.is_empty() && list.iter().all(Value::is_object));
    let mut lists = lists.take(2);
    lists.next().filter(|_| lists.next().is_none())
}

/// Returns the position of the next page. A position that is too large to be kept ends the list.
fn next(json: &Value, pointer: Option<&Pointer>) -> Option<String> {
    let value = match pointer {
        Some(pointer) => pointer.value_in(json)?,
        None => NEXT.iter().find_map(|name| json.get(*name).filter(|value| text_of(value).is_some()))?,
    };
    text_of(value).filter(|text| text.len() <= MAX_CURSOR_BYTES)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn content(json: Option<Value>, text: &str) -> Content {
        Content { json, text: text.to_owned(), resources: Vec::new() }
    }

    #[track_caller]
    fn ids(json: Value, mapping: &SearchMapping) -> Vec<String> {
        let page = results(&content(Some(json), ""), mapping).unwrap();
        page.items.into_iter().map(|item| item.id.unwrap_or_default()).collect()
    }

    #[test]
    fn lists_are_found_where_servers_put_them() {
        let list = json!([{"id": 1}, {"id": "b"}]);
        let auto = SearchMapping::default();
        for json in [
            list.clone(),
            json!({"results": list}),
            json!({"total": 2, "data": {"items": list}}),
            json!({"total": 2, "channels": list, "names": ["x"]}),
        ] {
            assert_eq!(ids(json.clone(), &auto), ["1", "b"], "{json}");
        }
        let mapping = SearchMapping {
            results: "/a/0".parse().ok(),
            id: "/key/n".parse().ok(),
            ..SearchMapping::default()
        };
        assert_eq!(ids(json!({"a": [[{"key": {"n": "x"}, "id": 4}]]}), &mapping), ["x"]);
        assert_eq!(ids(json!({"results": ["a/b", "c"]}), &auto), ["a/b", "c"]);
    }

    #[test]
    fn equal_ids_are_listed_once_and_results_without_ids_stay() {
        let json = json!({"results": [{"id": "a", "title": "1"}, {"id": "a", "title": "2"}, {"title": "3"}, {"title": "4"}]});
        let page = results(&content(Some(json), ""), &SearchMapping::default()).unwrap();
        let titles: Vec<_> = page.items.iter().map(|item| item.title.as_deref().unwrap()).collect();
        assert_eq!((titles, page.received), (vec!["1", "3", "4"], 4));
    }

    #[test]
    fn results_without_the_id_that_others_have_get_none() {
        let json =
            json!([{"id": "a", "url": "https://a"}, {"url": "https://b"}, {"id": null, "url": "https://c"}]);
        assert_eq!(ids(json, &SearchMapping::default()), ["a", "", ""]);
        let json = json!([{"uri": "a", "page": {"id": "parent"}}, {"uri": "b", "page": {"id": "parent"}}]);
        assert_eq!(ids(json, &SearchMapping::default()), ["a", "b"]);
        let json = json!([{"url": "https://a"}, {"url": "https://b"}]);
        assert_eq!(ids(json, &SearchMapping::default()), ["https://a", "https://b"]);
    }

    #[test]
    fn text_is_read_by_the_form_of_its_lines() {
        let mapping = SearchMapping { line: "- {title} ({id})".parse().ok(), ..SearchMapping::default() };
        let text = "2 found:\n- Plan (n1)\n  Buy milk\n  and bread\n\n- Tax (n2)\n";
        let page = results(&content(None, text), &mapping).unwrap();
        assert_eq!(page.items.len(), 2);
        assert_eq!(page.items[0].text.as_deref(), Some("Buy milk\nand bread"));
        assert_eq!(page.items[1].id.as_deref(), Some("n2"));
    }

    #[test]
    fn an_answer_without_results_says_why() {
        let auto = SearchMapping::default();
        let check = |json: Option<Value>, text: &str| results(&content(json, text), &auto);
        assert_eq!(check(None, "No results found.").unwrap().items, []);
        assert_eq!(check(None, "").unwrap().items, []);
        assert_eq!(check(None, "Found: a, b").unwrap_err(), NoResults::Text);
        assert_eq!(check(Some(json!({"ok": true})), "").unwrap_err(), NoResults::NoList);
        let error = json!({"results": [], "error": "Unsupported MCP client"});
        let error = check(Some(error), "").unwrap_err();
        assert_eq!(error, NoResults::Error(ToolError("Unsupported MCP client".to_owned())));
    }

    #[test]
    fn the_next_page_is_found_by_name_or_pointer() {
        let auto = SearchMapping::default();
        let named = SearchMapping { next: "/page/after".parse().ok(), ..SearchMapping::default() };
        for (json, mapping, expect) in [
            (json!({"results": [], "nextCursor": "c"}), &auto, Some("c")),
            (json!({"results": [], "next": 20}), &auto, Some("20")),
            (json!({"results": [], "next": null}), &auto, None),
            (json!({"results": [], "next": "c", "page": {"after": "d"}}), &named, Some("d")),
            (json!({"results": [], "next": "x".repeat(MAX_CURSOR_BYTES + 1)}), &auto, None),
        ] {
            let page = results(&content(Some(json.clone()), ""), mapping).unwrap();
            assert_eq!(page.next.as_deref(), expect, "{}", json["page"]);
        }
    }
}
