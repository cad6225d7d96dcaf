//! The reader of RSS and Atom feeds that were saved: a record for each entry.

use fetchwell_core::fit::first_characters;
use fetchwell_core::record::html_text::html_to_text;
use quick_xml::escape::escape;
use serde_json::Value;

use super::intake::Intake;
use super::item::{FileRecord, Item, ReadError};
use super::office::{Node, Tag, walk_xml};
use super::values::time_of_value;

/// Stream of entries.
const STREAM: &str = "entries";

/// Maximum length of the title of a feed in characters. Every entry has it.
const MAX_FEED_TITLE: usize = 200;

/// Maximum number of authors of an entry, which are compared with each other.
const MAX_AUTHORS: usize = 100;

/// Reads a feed.
pub(crate) fn read_feed(item: &mut Item<'_>, intake: &mut Intake<'_>) -> Result<(), ReadError> {
    let xml = item.read_markup()?;
    let mut feed = Feed {
        item,
        intake,
        feed_title: String::new(),
        entry: None,
        number: 0,
        depth: 0,
        text: String::new(),
        holder: Holder::default(),
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
    /// HTML of the element on the first level of the entry.
    text: String,
    holder: Holder,
}

/// The element on the first level of an entry.
#[derive(Debug, Default)]
struct Holder {
    name: String,
    /// True if its text is plain text, not HTML.
    is_plain: bool,
    /// True if it belongs to an extension that uses a name of the feed's own elements, such as `media:title`.
    is_foreign: bool,
}

impl Holder {
    fn new(tag: &Tag<'_>, entry: &Entry) -> Self {
        let kind = tag.attribute("type").unwrap_or_default();
        let is_escaped = kind.contains("html") && kind != "xhtml" && kind != "application/xhtml+xml";
        let is_escaped = is_escaped || tag.attribute("mode").is_some_and(|mode| mode == "escaped");
        let is_shared = matches!(
            tag.name,
            "title" | "link" | "id" | "author" | "category" | "description" | "summary" | "content"
        );
        // Podcasts often have these only.
        let is_missing = match (tag.prefix(), tag.name) {
            ("itunes", "author") => entry.authors.is_empty(),
            ("itunes", "summary") => entry.summary.is_empty(),
            _ => false,
        };
        let is_own = ["", "dc", "dcterms", entry.prefix.as_str()].contains(&tag.prefix());
        Self {
            name: tag.name.to_owned(),
            is_plain: entry.is_atom && !is_escaped,
            is_foreign: is_shared && !is_own && !is_missing,
        }
    }
}

/// The fields of an entry.
#[derive(Debug, Default)]
struct Entry {
    /// True for Atom, which says what is HTML.
    is_atom: bool,
    /// Prefix of the feed's own elements.
    prefix: String,
    title: String,
    url: String,
    id: String,
    /// True if the id of an RSS item is its address.
    is_permalink: bool,
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
            // Text within elements of the feed is plain text beside markup.
            Node::Text(piece) if self.entry.is_some() && (self.depth > 1 || self.holder.is_plain) => {
                self.text.push_str(&escape(*piece));
            }
            Node::Text(piece) => self.text.push_str(piece),
            Node::End(name) => return self.end(name),
        }
        Ok(())
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match &mut self.entry {
            None if matches!(tag.name, "item" | "entry") => {
                self.entry = Some(Entry::new(tag));
                self.depth = 0;
            }
            None => self.depth += 1,
            Some(entry) => {
                self.depth += 1;
                if self.depth == 1 {
                    self.holder = Holder::new(tag, entry);
                    if !self.holder.is_foreign {
                        entry.set_attributes(tag);
                    }
                }
            }
        }
        if self.depth <= 1 || tag.name == "name" {
            self.text.clear();
        } else if self.entry.is_some() {
            self.text.push_str(&markup(tag));
        } else {
            // Elements of the feed itself are separate words.
            self.text.push(' ');
        }
    }

    fn end(&mut self, name: &str) -> Result<(), ReadError> {
        let Some(entry) = &mut self.entry else {
            self.depth = self.depth.saturating_sub(1);
            if name == "title" && self.feed_title.is_empty() {
                first_characters(self.text.trim(), MAX_FEED_TITLE).clone_into(&mut self.feed_title);
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
            1 => {
                let is_author = name == "author" && !entry.authors.is_empty();
                if !self.holder.is_foreign && !is_author {
                    entry.set(name, self.text.trim(), self.holder.is_plain);
                }
                self.depth = 0;
            }
            2 if name == "name" && self.holder.name == "author" => {
                entry.set("author", self.text.trim(), self.holder.is_plain);
                self.depth = 1;
            }
            _ => {
                self.depth -= 1;
                self.text.push_str(&format!("</{name}>"));
            }
        }
        Ok(())
    }
}

/// Returns a start tag as HTML.
fn markup(tag: &Tag<'_>) -> String {
    let name = tag.name;
    tag.attribute("href")
        .map_or_else(|| format!("<{name}>"), |href| format!("<{name} href=\"{}\">", escape(href)))
}

impl Entry {
    fn new(tag: &Tag<'_>) -> Self {
        // RSS 1.0 has the id of an item as an attribute.
        let id = tag.attribute("about").unwrap_or_default();
        Self { is_atom: tag.name == "entry", prefix: tag.prefix().to_owned(), id, ..Self::default() }
    }

    fn set_attributes(&mut self, tag: &Tag<'_>) {
        match tag.name {
            "link" if tag.attribute("rel").is_none_or(|rel| rel == "alternate") => {
                self.url = tag.attribute("href").unwrap_or_else(|| self.url.clone());
            }
            "category" => self.categories.extend(tag.attribute("term")),
            "guid" => self.is_permalink = tag.attribute("isPermaLink").is_none_or(|value| value == "true"),
            _ => {}
        }
    }

    /// Sets a field to the text of an element: HTML, or plain text with its special characters escaped.
    fn set(&mut self, name: &str, text: &str, is_plain: bool) {
        if text.is_empty() {
            return;
        }
        let is_html = matches!(name, "title" | "description" | "summary" | "encoded" | "content" | "body");
        let text = if is_html || !is_plain { text.to_owned() } else { html_to_text(text) };
        match name {
            "title" if self.title.is_empty() => self.title = html_to_text(&text),
            "link" if self.url.is_empty() => self.url = text,
            "guid" | "id" => self.id = text,
            "author" | "creator" if self.authors.len() < MAX_AUTHORS && !self.authors.contains(&text) => {
                self.authors.push(text);
            }
            "pubDate" | "published" | "date" | "issued" => self.published = text,
            "updated" | "modified" => self.updated = text,
            "category" | "subject" => self.categories.push(text),
            "description" | "summary" => self.summary = text,
            "encoded" | "content" | "body" => self.content = text,
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
        let is_address = self.is_permalink && self.id.starts_with("http");
        record.put_text("title", &self.title);
        record.put_text("url", if self.url.is_empty() && is_address { &self.id } else { &self.url });
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
