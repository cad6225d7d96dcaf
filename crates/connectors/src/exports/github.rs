//! The reader of issues and pull requests that `gh issue list --json` and `gh pr list --json` wrote.

use fetchwell_core::record::RecordData;
use serde_json::Value;

use super::super::intake::Intake;
use super::super::item::{FileRecord, Item, ReadError};
use super::objects::{each_object, text_at};

/// Reads a list of issues or pull requests.
pub(crate) fn read_github(item: Item<'_>, intake: &mut Intake<'_>) -> Result<(), ReadError> {
    let (path, changed_at) = (item.path.clone(), item.changed_at.clone());
    each_object(item, &mut |place, issue| {
        let place = format!("{path}: item {place}");
        let Some(number) = issue.get("number").and_then(Value::as_u64) else {
            intake.reject(&place, "it has no number; add it to --json");
            return Ok(());
        };
        let url = text_at(&issue, "url");
        let created = text_at(&issue, "createdAt");
        let mut record = FileRecord {
            stream: if url.contains("/pull/") { "pull_requests" } else { "issues" }.to_owned(),
            key: key_of(url).unwrap_or_else(|| format!("{path}/{number}")),
            data: RecordData::new(),
            emitted_at: Some(created.to_owned())
                .filter(|time| !time.is_empty())
                .or_else(|| changed_at.clone()),
            identity: None,
        };
        record.put_text("title", text_at(&issue, "title"));
        record.put_text("url", url);
        record.data.insert("number".to_owned(), Value::from(number));
        record.put_text("state", &text_at(&issue, "state").to_ascii_lowercase());
        record.put_text("author", person(issue.get("author")));
        record.put_list("labels", names(&issue, "labels", "name"));
        record.put_list("assignees", names(&issue, "assignees", "login"));
        for (field, name) in [
            ("created_at", "createdAt"),
            ("updated_at", "updatedAt"),
            ("closed_at", "closedAt"),
            ("merged_at", "mergedAt"),
        ] {
            record.put_text(field, text_at(&issue, name));
        }
        record.put_text("path", &path);
        record.put_text("body", text_at(&issue, "body"));
        record.put_text("comments", &comments(&issue).join("\n\n"));
        Ok(record.take_into(&place, intake)?)
    })
}

/// Returns `OWNER/REPOSITORY/NUMBER` of a web address.
fn key_of(url: &str) -> Option<String> {
    let mut segments = url.split("://").nth(1)?.split('/').skip(1);
    let (owner, repository, _kind) = (segments.next()?, segments.next()?, segments.next()?);
    let number: u64 = segments.next()?.parse().ok()?;
    Some(format!("{owner}/{repository}/{number}"))
}

fn person(value: Option<&Value>) -> &str {
    value.and_then(|person| person.get("login")).and_then(Value::as_str).unwrap_or_default()
}

fn names(issue: &RecordData, field: &str, name: &str) -> Vec<String> {
    let items = issue.get(field).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| item.get(name)?.as_str().map(str::to_owned)).collect()
}

fn comments(issue: &RecordData) -> Vec<String> {
    let comments = issue.get("comments").and_then(Value::as_array).into_iter().flatten();
    comments
        .filter_map(|comment| {
            Some(format!("{}: {}", person(comment.get("author")), comment.get("body")?.as_str()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_names_the_repository() {
        assert_eq!(key_of("https://github.com/o/r/issues/12").as_deref(), Some("o/r/12"));
        assert_eq!(key_of("https://github.com/o/r"), None);
        assert_eq!(key_of(""), None);
    }
}
