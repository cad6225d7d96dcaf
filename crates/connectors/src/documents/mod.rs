//! Readers of documents: files that become one record each.
//!
//! * `document`: the fields of documents of all kinds, `title`: titles that are none
//! * `text`, `html`, `markdown`, `rtf`, `notebook`, `subtitles`: the readers
//! * `source_code`: source code and configuration
//! * `note_name`, `note_text`, `joplin`: what names and texts of notes hold in the ways of several programs

mod document;
mod html;
mod joplin;
mod markdown;
mod note_name;
mod note_text;
mod notebook;
mod rtf;
mod source_code;
mod subtitles;
mod text;
mod title;

pub(crate) use document::Document;
pub(crate) use html::read_html;
pub(crate) use markdown::read_note;
pub(crate) use notebook::read_notebook;
pub(crate) use rtf::{read_rtf, rtf_document};
pub(crate) use source_code::{is_generated, read_code};
pub(crate) use subtitles::{is_subtitles, read_subtitles};
pub(crate) use text::read_text;
