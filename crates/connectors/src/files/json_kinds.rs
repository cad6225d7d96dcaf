//! The kinds of JSON files: exports of programs, by the keys of their first object.

use super::super::documents::is_generated;
use super::super::exports::{is_name_list, is_slack_day};
use super::super::item::{FileKind, Item};

/// Log beside the messages of an export of Slack, which is no record.
const SLACK_LOG: &str = "integration_logs.json";

/// Returns the kind of a JSON file by the keys of its first object.
pub(super) fn json_kind(start: &str, item: &Item<'_>) -> Option<FileKind> {
    let start = start.trim_start_matches('\u{FEFF}').trim_start();
    if is_generated(item.name(), "") {
        return None;
    }
    // Configuration with comments is no JSON.
    if start.starts_with("//") || start.starts_with("/*") || start.lines().take(COMMENT_LINES).any(is_comment)
    {
        return Some(FileKind::Code);
    }
    let Some(list) = start.strip_prefix('[') else { return object_kind(start) };
    let keys = first_keys(list);
    let has = |key: &str| keys.contains(&key);
    if has("mapping") && has("create_time") {
        return Some(FileKind::ChatGpt);
    }
    if has("chat_messages") {
        return Some(FileKind::Claude);
    }
    // `CHANNEL/2026-04-01.json`
    if item.path.contains('/') && is_slack_day(item.name()) && has("ts") {
        return Some(FileKind::Slack);
    }
    let has_address = || ["/issues/", "/pull/"].iter().any(|part| list.contains(part));
    let is_github = has("number") && has("title") && (has("state") || (has("url") && has_address()));
    if is_github {
        return Some(FileKind::Github);
    }
    // Lists of names are read with the messages of an export.
    let is_beside = is_name_list(&item.path) || item.name() == SLACK_LOG;
    (!keys.is_empty() && !is_beside).then_some(FileKind::Json)
}

/// Number of lines at the start of a file in which comments are looked for.
const COMMENT_LINES: usize = 200;

/// Returns true for a line of comment in configuration that is nearly JSON.
fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("//") || line.starts_with("/*")
}

/// Returns the kind of a file that is one object.
fn object_kind(start: &str) -> Option<FileKind> {
    let keys = first_keys(start);
    let has = |key: &str| keys.contains(&key);
    // The version of a notebook comes last.
    if has("nbformat") || has("cells") && start.contains("\"cell_type\"") {
        return Some(FileKind::Notebook);
    }
    if has("roots") && start.contains("\"bookmark_bar\"") {
        return Some(FileKind::Bookmarks);
    }
    let keep = ["isTrashed", "isArchived", "textContent", "listContent", "userEditedTimestampUsec"];
    if has("isTrashed") && keep.iter().filter(|key| has(key)).count() > 1 {
        return Some(FileKind::Keep);
    }
    let is_chat = ["_chat\"", "_group\"", "_supergroup\"", "_channel\"", "\"saved_messages\""];
    let is_chat = has("messages") && has("type") && is_chat.iter().any(|part| start.contains(part));
    // An export of all chats says first what it is.
    if is_chat || keys.first() == Some(&"about") && start.contains("Telegram") {
        return Some(FileKind::Telegram);
    }
    (!keys.is_empty()).then_some(FileKind::Json)
}

/// Returns the keys of the first object of a list, without those of objects in it. The text may end anywhere.
fn first_keys(list: &str) -> Vec<&str> {
    let (mut keys, mut depth, mut rest) = (Vec::new(), 0_usize, list.trim_start());
    if !rest.starts_with('{') {
        return keys;
    }
    while let Some(at) = rest.find(['"', '{', '[', '}', ']']) {
        let mut characters = rest.get(at..).unwrap_or_default().chars();
        match characters.next() {
            Some('{' | '[') => depth += 1,
            Some('}' | ']') if depth <= 1 => break,
            Some('}' | ']') => depth -= 1,
            _ => {
                let text = characters.as_str();
                let Some(end) = end_of_string(text) else { break };
                let (string, after) =
                    (text.get(..end).unwrap_or_default(), text.get(end + 1..).unwrap_or_default());
                if depth == 1 && after.trim_start().starts_with(':') {
                    keys.push(string);
                }
                rest = after;
                continue;
            }
        }
        rest = characters.as_str();
    }
    keys
}

/// Returns the position of the quote that ends a string of JSON.
fn end_of_string(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    let mut bytes = text.bytes();
    bytes.position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[track_caller]
    fn check(name: &str, content: &[u8], expect: Option<FileKind>) {
        let item = Item::from_reader(name.to_owned(), None, Box::new(Cursor::new(content))).unwrap();
        let found = json_kind(&String::from_utf8_lossy(content), &item);
        assert_eq!(found, expect, "{}", String::from_utf8_lossy(content));
    }

    #[test]
    fn exports_are_recognized_by_their_keys() {
        check("a.json", b"[{\"title\":\"x\",\"create_time\":1,\"mapping\":{}}]", Some(FileKind::ChatGpt));
        check("a.json", b"[{\"uuid\":\"x\",\"chat_messages\":[]}]", Some(FileKind::Claude));
        check("general/2026-04-01.json", b"[{\"type\":\"message\",\"ts\":\"1\"}]", Some(FileKind::Slack));
        check("a.json", b"[{\"number\":1,\"title\":\"x\",\"state\":\"OPEN\"}]", Some(FileKind::Github));
        let address = b"[{\"number\":1,\"title\":\"x\",\"url\":\"https://git.test/o/r/pull/1\"}]";
        check("a.json", address, Some(FileKind::Github));
        check(
            "a.json",
            b"[{\"number\":1,\"title\":\"x\",\"url\":\"https://books.test/1\"}]",
            Some(FileKind::Json),
        );
        check("a.json", b"[{\"number\":{\"title\":\"x\\\"\",\"state\":1}}]", Some(FileKind::Json));
        check("a.json", b"[{\"number\":1},{\"title\":\"x\",\"state\":1}]", Some(FileKind::Json));
        check(
            "a.json",
            b"[{\"a\":[{\"mapping\":1,\"create_time\":1}],\"number\":1,\"tit",
            Some(FileKind::Json),
        );
        check("a.json", b"[[{\"chat_messages\":[]}]]", None);
        check("a.ipynb", b"{\"cells\":[{\"cell_type\":\"code\"", Some(FileKind::Notebook));
        check("a.json", b"{\"worksheets\":[],\"nbformat\":3}", Some(FileKind::Notebook));
        check("a.json", b"{\"a\":1}", Some(FileKind::Json));
        check("package-lock.json", b"{\"a\":1}", None);
        check("export/users.json", b"[{\"id\":1}]", None);
        check("tsconfig.json", b"{\n  // strict\n  \"a\": 1}", Some(FileKind::Code));
        check("a.json", b"[1, 2]", None);
        check("Bookmarks", b"{\"checksum\":\"x\",\"roots\":{\"bookmark_bar\":{", Some(FileKind::Bookmarks));
        check("Keep/a.json", b"{\"isTrashed\":false,\"textContent\":\"x", Some(FileKind::Keep));
        let chat = b"{\"name\":\"Ana\",\"type\":\"personal_chat\",\"id\":1,\"messages\":[";
        check("result.json", chat, Some(FileKind::Telegram));
        check("result.json", b"{\"about\":\"Data from Telegram\",\"contacts\":{", Some(FileKind::Telegram));
        check("a.json", b"{}", None);
    }
}
