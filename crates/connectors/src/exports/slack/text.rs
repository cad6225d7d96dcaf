//! The text of a message with its blocks, attachments and files.

use std::collections::HashSet;

use fetchwell_core::record::RecordData;

use super::super::objects::{objects_at, text_at, title_from};
use super::blocks::text_of_blocks;
use super::names::Names;
use super::notation::plain_text;

/// Text that programs write in place of one that only their blocks have.
const NO_PREVIEW: &str = "[no preview available]";

/// The text of a message.
pub(super) struct MessageText {
    /// Start of the first line, or the name of the first file.
    pub(super) title: String,
    pub(super) body: String,
    /// Names of files.
    pub(super) files: Vec<String>,
}

/// Returns the text of a message. People write the text, and its blocks say the same with formats; programs write
/// blocks and attachments, and the text is a summary or missing.
pub(super) fn message_text(message: &RecordData, names: &Names) -> MessageText {
    let mut body = Lines::default();
    add_written(message, &["text"], names, &mut body);
    for attachment in objects_at(message, "attachments") {
        add_written(attachment, &["pretext", "title", "text"], names, &mut body);
        for field in objects_at(attachment, "fields") {
            let [title, value] = ["title", "value"].map(|name| plain_text(text_at(field, name), names));
            body.add([title, value].join(": ").trim_matches([':', ' ']));
        }
        body.add_new(&plain_text(text_at(attachment, "fallback"), names));
    }
    let mut files = Vec::new();
    for file in objects_at(message, "files") {
        let [name, title] = ["name", "title"].map(|field| text_at(file, field));
        files.extend([name, title].into_iter().find(|name| !name.is_empty()).map(str::to_owned));
        if title != name {
            body.add_new(title);
        }
        let texts = ["plain_text", "preview"].map(|field| text_at(file, field));
        body.add_new(texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default());
    }
    let body = body.into_text();
    let title = title_from(&body, files.first().map(String::as_str).unwrap_or_default()).to_owned();
    MessageText { title, body, files }
}

/// Appends the fields with texts of an object, and its blocks if they say more.
fn add_written(object: &RecordData, fields: &[&str], names: &Names, body: &mut Lines) {
    let mut own = Lines::default();
    for field in fields {
        own.add(&plain_text(text_at(object, field), names));
    }
    let blocks = text_of_blocks(object, names);
    if own.lacks_nothing_but(&blocks) {
        body.add(&blocks);
    } else {
        own.texts.iter().for_each(|text| body.add(text));
        body.add_new(&blocks);
    }
}

/// Texts with their words.
#[derive(Debug, Default)]
struct Lines {
    texts: Vec<String>,
    words: HashSet<String>,
}

impl Lines {
    /// Appends a text, unless it is the one before.
    fn add(&mut self, text: &str) {
        let text = text.trim();
        if !text.is_empty() && text != NO_PREVIEW && self.texts.last().is_none_or(|last| last != text) {
            self.words.extend(words_of(text));
            self.texts.push(text.to_owned());
        }
    }

    /// Appends a text that has words which these texts lack.
    fn add_new(&mut self, text: &str) {
        if words_of(text).any(|word| !self.words.contains(&word)) {
            self.add(text);
        }
    }

    /// Returns true if another text has all words of these, and more.
    fn lacks_nothing_but(&self, other: &str) -> bool {
        let words: HashSet<String> = words_of(other).collect();
        words.len() > self.words.len() && self.words.is_subset(&words)
    }

    fn into_text(self) -> String {
        self.texts.join("\n")
    }
}

/// Returns the words of a text in lower case.
fn words_of(text: &str) -> impl Iterator<Item = String> + '_ {
    let words = text.split(|character: char| !character.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rich(text: &str) -> Value {
        let section = json!({"type": "rich_text_section", "elements": [{"type": "text", "text": text}]});
        json!([{"type": "rich_text", "elements": [section]}])
    }

    #[test]
    fn messages_have_the_text_of_all_their_parts() {
        for (message, title, body) in [
            (
                json!({"text": "", "attachments": [
                    {"title": "Build 7", "text": "It failed", "fallback": "Build 7 failed"}, {"fallback": "No text"},
                ]}),
                "Build 7",
                "Build 7\nIt failed\nNo text",
            ),
            // The blocks say the same with formats.
            (
                json!({"text": "*See* &amp; hear", "blocks": rich("See & hear")}),
                "*See* & hear",
                "*See* & hear",
            ),
            (json!({"text": "", "blocks": rich("only here")}), "only here", "only here"),
            (
                json!({"text": "A summary", "blocks": rich("Other words")}),
                "A summary",
                "A summary\nOther words",
            ),
            (
                json!({"text": "Deploy", "blocks": rich("Deploy of 7 ended")}),
                "Deploy of 7 ended",
                "Deploy of 7 ended",
            ),
            (
                json!({"attachments": [{"fallback": "[no preview available]", "blocks": rich("in blocks"),
                    "fields": [{"title": "State", "value": "red"}, {"value": "x"}]}]}),
                "in blocks",
                "in blocks\nState: red\nx",
            ),
            (
                json!({"text": "", "files": [{"name": "a.txt", "title": "Plan", "preview": "the start"}]}),
                "Plan",
                "Plan\nthe start",
            ),
            (json!({"text": "", "files": [{"name": "a.png", "title": "a.png"}, {}]}), "a.png", ""),
            (json!({"text": 1, "blocks": {}, "attachments": "x", "files": [1]}), "", ""),
        ] {
            let text = message_text(message.as_object().unwrap(), &Names::default());
            assert_eq!((text.title.as_str(), text.body.as_str()), (title, body), "{message}");
        }
    }
}
