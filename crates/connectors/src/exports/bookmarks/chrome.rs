//! The reader of the file `Bookmarks` of Chrome, Edge, Brave and others.
//!
//! The name of a folder is behind its entries, so the tree is read before its bookmarks are visited.

use std::borrow::Cow;
use std::fmt;
use std::rc::Rc;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::super::super::intake::Intake;
use super::super::super::item::{Item, ReadError};
use super::super::super::values::time_since_1601;
use super::bookmark::{Bookmark, folder_path};

/// Maximum number of values of a file: entries, and their names, addresses and times.
const MAX_VALUES: usize = 2_000_000;

/// Reads the bookmarks of a file.
pub(super) fn read_chrome(mut item: Item<'_>, intake: &mut Intake<'_>) -> Result<(), ReadError> {
    let text = item.read_text()?;
    let mut number = 0_u64;
    each_bookmark(&text, &mut |bookmark| {
        number += 1;
        let place = format!("{}: bookmark {number}", item.path);
        match bookmark {
            Ok(bookmark) if bookmark.is_page() => {
                Ok(bookmark.into_record(&item).take_into(&place, intake)?)
            }
            Ok(_script) => Ok(()),
            Err(reason) => {
                intake.reject(&place, reason);
                Ok(())
            }
        }
    })
}

/// A value in a file.
enum Node<'t> {
    Text(Cow<'t, str>),
    List(Vec<Self>),
    Entry(Box<Entry<'t>>),
    Other,
}

/// A bookmark, or a folder with others.
#[derive(Default)]
struct Entry<'t> {
    name: Cow<'t, str>,
    /// Address of a bookmark. `None` if the entry has none, or one that is no text.
    url: Option<Cow<'t, str>>,
    added: Cow<'t, str>,
    /// Entries of a folder. `None` if the entry is none.
    children: Option<Vec<Node<'t>>>,
}

/// Calls `visit` with the bookmarks in the order of the file, and with the reason for an entry that is none.
fn each_bookmark(
    text: &str,
    visit: &mut dyn FnMut(Result<Bookmark, &'static str>) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let mut left = MAX_VALUES;
    let file = NodeSeed { left: &mut left, is_roots: false };
    let file = file.deserialize(&mut serde_json::Deserializer::from_str(text));
    let file = file.map_err(|error| format!("its JSON is not that of bookmarks: {error}"))?;
    let roots = match file {
        Node::Entry(file) => file.children,
        Node::Text(_) | Node::List(_) | Node::Other => None,
    };
    let roots = roots.ok_or_else(|| "its JSON is not that of bookmarks: it has no roots".to_owned())?;
    // Besides folders, there may be a version.
    let roots: Vec<Node<'_>> = roots.into_iter().filter(|root| matches!(root, Node::Entry(_))).collect();
    // The open folders with the entries that are still to be read.
    let mut open = vec![(Rc::<str>::default(), roots.into_iter())];
    while let Some((folder, entries)) = open.last_mut() {
        let Some(entry) = entries.next() else {
            open.pop();
            continue;
        };
        let Node::Entry(entry) = entry else {
            visit(Err("it is not an object"))?;
            continue;
        };
        let Entry { name, url, added, children } = *entry;
        match (url.filter(|url| !url.is_empty()), children) {
            (Some(url), _) => {
                let (title, url, folder) = (name.into_owned(), url.into_owned(), Rc::clone(folder));
                let added = time_of(&added).unwrap_or_default();
                visit(Ok(Bookmark { title, url, folder, added, ..Bookmark::default() }))?;
            }
            (None, Some(children)) => {
                let inner = folder_path(folder, &name);
                open.push((inner, children.into_iter()));
            }
            (None, None) => visit(Err("it has neither an address nor entries"))?,
        }
    }
    Ok(())
}

/// Returns a number of microseconds since 1601 in RFC 3339.
fn time_of(text: &str) -> Option<String> {
    let micros: i64 = text.parse().ok().filter(|micros| *micros > 0)?;
    time_since_1601(micros / 1_000_000).map(|time| time.to_string())
}

/// A reader of one value, of any type.
struct NodeSeed<'c> {
    /// Number of values that may still be read.
    left: &'c mut usize,
    /// True for the object of the roots, which have any name.
    is_roots: bool,
}

impl<'t> DeserializeSeed<'t> for NodeSeed<'_> {
    type Value = Node<'t>;

    fn deserialize<D: Deserializer<'t>>(self, deserializer: D) -> Result<Node<'t>, D::Error> {
        let left = self.left.checked_sub(1);
        *self.left = left.ok_or_else(|| D::Error::custom(format!("it has more than {MAX_VALUES} values")))?;
        deserializer.deserialize_any(self)
    }
}

impl<'t> Visitor<'t> for NodeSeed<'_> {
    type Value = Node<'t>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'t str) -> Result<Node<'t>, E> {
        Ok(Node::Text(text.into()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Node<'t>, E> {
        Ok(Node::Text(text.to_owned().into()))
    }

    fn visit_bool<E: Error>(self, _value: bool) -> Result<Node<'t>, E> {
        Ok(Node::Other)
    }

    fn visit_i64<E: Error>(self, _value: i64) -> Result<Node<'t>, E> {
        Ok(Node::Other)
    }

    fn visit_u64<E: Error>(self, _value: u64) -> Result<Node<'t>, E> {
        Ok(Node::Other)
    }

    fn visit_f64<E: Error>(self, _value: f64) -> Result<Node<'t>, E> {
        Ok(Node::Other)
    }

    fn visit_unit<E: Error>(self) -> Result<Node<'t>, E> {
        Ok(Node::Other)
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut items: A) -> Result<Node<'t>, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = items.next_element_seed(NodeSeed { left: self.left, is_roots: false })? {
            nodes.push(node);
        }
        Ok(Node::List(nodes))
    }

    fn visit_map<A: MapAccess<'t>>(self, mut fields: A) -> Result<Node<'t>, A::Error> {
        let mut entry = Entry::default();
        while let Some(field) = fields.next_key::<String>()? {
            let is_roots = !self.is_roots && field == "roots";
            if !self.is_roots && !is_roots && !ENTRY_FIELDS.contains(&field.as_str()) {
                fields.next_value::<IgnoredAny>()?;
                continue;
            }
            let node = fields.next_value_seed(NodeSeed { left: self.left, is_roots })?;
            if self.is_roots {
                entry.children.get_or_insert_default().push(node);
                continue;
            }
            match (field.as_str(), node) {
                ("name", Node::Text(text)) => entry.name = text,
                ("url", Node::Text(text)) => entry.url = Some(text),
                ("date_added", Node::Text(text)) => entry.added = text,
                ("children", Node::List(nodes)) => entry.children = Some(nodes),
                ("roots", Node::Entry(roots)) => entry.children = roots.children,
                _ => {}
            }
        }
        Ok(Node::Entry(Box::new(entry)))
    }
}

/// Fields of an entry that are read.
const ENTRY_FIELDS: [&str; 4] = ["name", "url", "date_added", "children"];

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the title, the folder and the time of each bookmark, or the reason of one that is rejected.
    fn bookmarks(file: &str) -> Result<Vec<String>, ReadError> {
        let mut found = Vec::new();
        each_bookmark(file, &mut |bookmark| {
            found.push(match bookmark {
                Ok(Bookmark { title, folder, added, .. }) => format!("{title}|{folder}|{added}"),
                Err(reason) => reason.to_owned(),
            });
            Ok(())
        })
        .map(|()| found)
    }

    #[test]
    fn bookmarks_have_folders_and_times() {
        let file = r#"{"checksum": "x", "roots": {"bookmark_bar": {"name": "Bar", "type": "folder", "children": [
            {"name": "Birds", "children": [{"name": "The ibis", "url": "https://x.test/", "date_added": "13359024000000000"}]},
            {"name": "Second", "url": "https://y.test/"}, {"name": null, "url": "https://z.test/", "date_added": 7},
            {"name": "Wrong", "url": 1}, null, 2, [], {"name": "T\u00e9a", "url": "https://t.test/"}]},
            "sync_transaction_version": "1"}, "version": 1}"#;
        let neither = "it has neither an address nor entries";
        let no_object = "it is not an object";
        let expect = [
            "The ibis|Bar/Birds|2024-05-01T08:00:00Z",
            "Second|Bar|",
            "|Bar|",
            neither,
            no_object,
            no_object,
            no_object,
            "Téa|Bar|",
        ];
        assert_eq!(bookmarks(file).unwrap(), expect);
        for broken in ["{}", "[]", "{\"roots\": 1}", "{\"roots\": {\"a\": "] {
            assert!(bookmarks(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_file_of_any_shape_needs_bounded_memory() {
        let many = format!("{{\"roots\": {{\"a\": {{\"children\": [{}1]}}}}}}", "1,".repeat(MAX_VALUES));
        assert!(bookmarks(&many).is_err());
        // The path of a deep folder is not copied for each bookmark, and is truncated.
        let (name, link) = ("n".repeat(200), "{\"url\": \"http://x\"},".repeat(10));
        let folder = format!("{{\"name\": \"{name}\", \"children\": [");
        let deep = format!("{{\"roots\": {{\"a\": {}{link}1{}}}}}", folder.repeat(50), "]}".repeat(50));
        let found = bookmarks(&deep).unwrap();
        assert_eq!((found.len(), found[9].len()), (11, 1_002));
    }
}
