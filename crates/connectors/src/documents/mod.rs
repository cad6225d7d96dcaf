//! Readers of documents: files that become one record each.
//!
//! * `document`: the fields of documents of all kinds
//! * `text`, `html`, `markdown`: the readers

mod document;
mod html;
mod markdown;
mod text;

pub(crate) use document::Document;
pub(crate) use html::read_html;
pub(crate) use markdown::read_note;
pub(crate) use text::read_text;
