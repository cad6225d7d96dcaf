//! The reader of RSS and Atom feeds that were saved: a record for each entry.

use serde_json::Value;

use super::documents::html_to_text;
use super::intake::Intake;
use super::item::{FileRecord, Item, ReadError};
use super::office::{Node, Tag, walk_xml};
use super::values::time_of_value;

/// Stream of entries.
const STREAM: &str = "entries";

/// Reads a feed.
pub(super) fn read_feed(item: &mut Item<'_>, intake: &mut Intake<'_>) -> Result<(), ReadError> {
    let xml = item.read_text()?;
    let mut feed = Feed {
        item,
        intake,
        feed_title: String::new(),
        entry: None,
        number: 0,
        depth: 0,
        text: String::new(),
    };
    walk_xml(&xml, &mut |node| feed.visit(&node))?;
    if feed.number == 0 {
        return Err("it has no entries".into());
    }
    Ok(())
}

/// The feed, and the entry that is being read.
struct Feed<'r, 'a, 'i> {
    item: &'r Item<'a>,
    intake: &'r mut Intake<'i>,
    feed_title: String,
    entry: Option<Entry>,
    /// Number of entries so far.
    number: usize,
    /// Nesting below the entry, or below the feed.
    depth: usize,
    /// Text of the element on the first level of the entry.
    text: String,
}

/// The fields of an entry.
#[derive(Debug, Default)]
struct Entry {
    title: String,
    url: String,
    id: String,
    authors: Vec<String>,
    published: String,
    updated: String,
    categories: Vec<String>,
    summary: String,
    content: String,
}

impl Feed<'_, '_, '_> {
    fn visit(&mut self, node: &Node<'_>) -> Result<(), ReadError> {
        match node {
            Node::Start(tag) => self.start(tag),
            Node::Text(piece) => self.text.push_str(piece),
            Node::End(name) => return self.end(name),
        }
        Ok(())
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match &mut self.entry {
            None if matches!(tag.name, "item" | "entry") => {
                self.entry = Some(Entry::default());
                self.depth = 0;
            }
            None => self.depth += 1,
            Some(entry) => {
                self.depth += 1;
                if self.depth == 1 {
                    entry.set_attributes(tag);
                }
            }
        }
        if self.depth <= 1 || tag.name == "name" {
            self.text.clear();
        } else {
            // Elements in a text are separate words.
            self.text.push(' ');
        }
    }

    fn end(&mut self, name: &str) -> Result<(), ReadError> {
        let Some(entry) = &mut self.entry else {
            self.depth = self.depth.saturating_sub(1);
            if name == "title" && self.feed_title.is_empty() {
                self.text.trim().clone_into(&mut self.feed_title);
            }
            self.text.clear();
            return Ok(());
        };
        match self.depth {
            0 => {
                self.number += 1;
                if let Some(entry) = self.entry.take() {
                    let place = format!("{}: entry {}", self.item.path, self.number);
                    let record = entry.into_record(self.item, self.number, &self.feed_title);
                    record.take_into(&place, self.intake)?;
                }
            }
            // The address of an author follows the name.
            1 if name != "author" || entry.authors.is_empty() => {
                entry.set(name, self.text.trim());
                self.depth = 0;
            }
            2 if name == "name" => {
                entry.set("author", self.text.trim());
                self.depth = 1;
            }
            _ => self.depth -= 1,
        }
        Ok(())
    }
}

impl Entry {
    fn set_attributes(&mut self, tag: &Tag<'_>) {
        match tag.name {
            "link" if tag.attribute("rel").is_none_or(|rel| rel == "alternate") => {
                self.url = tag.attribute("href").unwrap_or_else(|| self.url.clone());
            }
            "category" => self.categories.extend(tag.attribute("term")),
            _ => {}
        }
    }

    fn set(&mut self, name: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        let text = text.to_owned();
        match name {
            "title" if self.title.is_empty() => self.title = html_to_text(&text),
            "link" if self.url.is_empty() => self.url = text,
            "guid" | "id" => self.id = text,
            "author" | "creator" => self.authors.push(text),
            "pubDate" | "published" | "date" | "issued" => self.published = text,
            "updated" | "modified" => self.updated = text,
            "category" | "subject" => self.categories.push(text),
            "description" | "summary" => self.summary = text,
            "encoded" | "content" => self.content = text,
            _ => {}
        }
    }

    /// Returns the record. Its key is the id of the entry, else its address or number.
    fn into_record(self, item: &Item<'_>, number: usize, feed: &str) -> FileRecord {
        let mut record = FileRecord::for_item(STREAM, item);
        let body = html_to_text(if self.content.is_empty() { &self.summary } else { &self.content });
        let keys = [&self.id, &self.url].into_iter().find(|key| !key.is_empty());
        record.key = keys.map_or_else(|| format!("{}/{number}", item.path), Clone::clone);
        let [published, updated] =
            [self.published, self.updated].map(|time| time_of_value(&Value::from(time)).unwrap_or_default());
        record.put_text("title", &self.title);
        record.put_text("url", &self.url);
        record.put_text("feed", feed);
        record.put_text("author", &self.authors.join(", "));
        record.put_list("categories", self.categories);
        record.put_text("published_at", &published);
        record.put_text("updated_at", &updated);
        record.put_text("path", &item.path);
        record.put_text("body", &body);
        let time = [published, updated].into_iter().find(|time| !time.is_empty());
        record.emitted_at = time.or(record.emitted_at);
        record.identity = Some(record.data.clone());
        record
    }
}
