//! The reader of the HTML file in which browsers export bookmarks (`NETSCAPE-Bookmark-file-1`).

use std::rc::Rc;

use html5gum::emitters::default::StartTag;
use html5gum::{DefaultEmitter, Token, Tokenizer};
use serde_json::Value;

use super::super::super::intake::Intake;
use super::super::super::item::{Item, ReadError};
use super::super::super::values::time_of_value;
use super::bookmark::{Bookmark, folder_path};

/// Maximum nesting of folders.
const MAX_FOLDERS: usize = 100;

/// Returns true if a text begins as a file of bookmarks does.
pub(crate) fn is_bookmarks(start: &str) -> bool {
    const TYPE: &str = "<!doctype netscape-bookmark-file";
    start.trim_start().get(..TYPE.len()).is_some_and(|start| start.eq_ignore_ascii_case(TYPE))
}

/// Reads the bookmarks of a file.
pub(super) fn read_netscape(mut item: Item<'_>, intake: &mut Intake<'_>) -> Result<(), ReadError> {
    let html = item.read_markup()?;
    let mut number = 0_u64;
    each_bookmark(&html, &mut |bookmark| {
        number += 1;
        let place = format!("{}: bookmark {number}", item.path);
        if bookmark.is_page() { Ok(bookmark.into_record(&item).take_into(&place, intake)?) } else { Ok(()) }
    })
}

/// The element whose text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    None,
    Link,
    Folder,
    /// The note of the bookmark before.
    Note,
}

/// Calls `visit` with each bookmark.
fn each_bookmark(
    html: &str,
    visit: &mut dyn FnMut(Bookmark) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    // The paths of open folders: the name of a folder precedes its list.
    let (mut folders, mut name) = (Vec::<Rc<str>>::new(), String::new());
    let (mut element, mut bookmark) = (Element::None, None::<Bookmark>);
    for token in Tokenizer::new_with_emitter(html, DefaultEmitter::default()) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => match tag.name.as_slice() {
                b"a" => {
                    if let Some(bookmark) = bookmark.take() {
                        visit(bookmark)?;
                    }
                    bookmark = Some(read_link(&tag, folders.last().cloned().unwrap_or_default()));
                    element = Element::Link;
                }
                b"h3" => (element, name) = (Element::Folder, String::new()),
                b"dd" => element = Element::Note,
                b"dt" => element = Element::None,
                b"dl" => {
                    element = Element::None;
                    if folders.len() < MAX_FOLDERS {
                        let parent = folders.last().cloned().unwrap_or_default();
                        folders.push(folder_path(&parent, &std::mem::take(&mut name)));
                    }
                }
                _ => {}
            },
            Token::EndTag(tag) => match tag.name.as_slice() {
                b"a" | b"h3" => element = Element::None,
                b"dl" => {
                    element = Element::None;
                    folders.pop();
                }
                _ => {}
            },
            Token::String(text) => {
                let text = String::from_utf8_lossy(&text);
                match (element, &mut bookmark) {
                    (Element::Folder, _) => name.push_str(&text),
                    (Element::Link, Some(bookmark)) => bookmark.title.push_str(&text),
                    (Element::Note, Some(bookmark)) => bookmark.note.push_str(&text),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    bookmark.map_or(Ok(()), visit)
}

fn read_link(tag: &StartTag<()>, folder: Rc<str>) -> Bookmark {
    let attribute = |name: &str| {
        let value = tag.attributes.get(name.as_bytes());
        value.map(|value| String::from_utf8_lossy(value).into_owned()).unwrap_or_default()
    };
    let seconds: Option<i64> = attribute("add_date").parse().ok();
    let tags = attribute("tags");
    let tags = tags.split(',').map(str::trim).filter(|tag| !tag.is_empty());
    Bookmark {
        url: attribute("href"),
        folder,
        tags: tags.map(str::to_owned).collect(),
        added: seconds.and_then(|seconds| time_of_value(&Value::from(seconds))).unwrap_or_default(),
        ..Bookmark::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bookmarks_have_folders_tags_and_notes() {
        let html = "<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<TITLE>Bookmarks</TITLE><H1>Bookmarks</H1>\n<DL><p>\n\
            <DT><H3 ADD_DATE=\"1\">Birds &amp; more</H3>\n<DL><p>\n\
            <DT><A HREF=\"https://x.test/?a=1&amp;b=2\" ADD_DATE=\"1714550400\" TAGS=\"water,wing\" ICON=\"data:x\">The ibis</A>\n<DD>Seen in May\n\
            </DL><p>\n<DT><A HREF=\"javascript:void(0)\">Script</A>\n</DL>";
        let mut found = Vec::new();
        each_bookmark(html, &mut |bookmark| {
            found.push(bookmark);
            Ok(())
        })
        .unwrap();
        let expect = Bookmark {
            title: "The ibis".to_owned(),
            url: "https://x.test/?a=1&b=2".to_owned(),
            folder: "Birds & more".into(),
            tags: vec!["water".to_owned(), "wing".to_owned()],
            added: "2024-05-01T08:00:00Z".to_owned(),
            note: "Seen in May\n".to_owned(),
        };
        assert_eq!((found.len(), &found[0]), (2, &expect));
        assert!(!found[1].is_page() && found[1].folder.is_empty());
        // The path of a deep folder is truncated, and all bookmarks in it share it.
        let deep = format!("{}{}", "<h3>name<dl>".repeat(90), "<a href=x>".repeat(3))
            .replace("name", &"n".repeat(200));
        found.clear();
        each_bookmark(&deep, &mut |bookmark| {
            found.push(bookmark);
            Ok(())
        })
        .unwrap();
        assert!(
            found.len() == 3
                && found[0].folder.len() == 1_000
                && Rc::ptr_eq(&found[0].folder, &found[2].folder)
        );
        assert!(is_bookmarks("<!DOCTYPE NETSCAPE-Bookmark-file-1>") && !is_bookmarks("<!doctype html>"));
    }
}
