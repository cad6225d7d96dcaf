//! Readers of documents: files that become one record each.
//!
//! * `document`: the fields of documents of all kinds
//! * `text`, `html`, `markdown`: the readers
//! * `html_text`: the visible text of HTML

mod document;
mod html;
mod html_text;
mod markdown;
mod text;

pub(super) use document::Document;
pub(super) use html::read_html;
pub(super) use html_text::html_to_text;
pub(super) use markdown::read_note;
pub(super) use text::read_text;
