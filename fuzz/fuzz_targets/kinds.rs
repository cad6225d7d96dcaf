//! Any RTF document, notebook, subtitles, code, JSON, message of Apple Mail or Outlook, and export of notes, chats,
//! highlights or bookmarks is read to its end or rejected with a reason. A panic of a reader becomes a rejection with a
//! text that this target detects.
#![no_main]

mod support;

use fetchwell_connectors::{ImportError, import_content};
use libfuzzer_sys::fuzz_target;

/// Names by which an input is read. Its first byte chooses one; add new ones at the end, so that the corpus keeps its
/// meaning.
const NAMES: [&str; 15] = [
    "a.rtf",
    "a.ipynb",
    "a.srt",
    "a.vtt",
    "main.py",
    "a.json",
    "a.emlx",
    "a.msg",
    "a.enex",
    "_chat.txt",
    "result.json",
    "Keep/a.json",
    "My Clippings.txt",
    "bookmarks.html",
    "Bookmarks",
];

fuzz_target!(|input: &[u8]| {
    let Some((first, content)) = input.split_first() else { return };
    let Some(name) = NAMES.get(usize::from(*first)) else { return };
    // The readers of these kinds have a target of their own.
    if [&b"%PDF-"[..], b"SQLite format 3", b"PK", b"\x1F\x8B"].iter().any(|start| content.starts_with(start))
    {
        return;
    }
    match support::import(|intake| import_content(&format!("folder/{name}"), content, intake)) {
        Ok(()) | Err(ImportError::Nothing { .. }) => {}
        Err(error) => panic!("{error}"),
    }
});
