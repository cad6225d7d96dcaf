//! The reader of PDF documents: their text layer, without text recognition.
//!
//! `hayro-syntax` parses the file and decrypts it if no password is needed. The rest is here: `page` follows the
//! operators that place text, `font` maps codes to characters, and `worker` reads a document in a process of its own,
//! because a document can make any parser take all memory or run for hours.
//!
//! * `extract`: the text of all pages
//! * `page`: the text of a page, `layout`: the lines and spaces between pieces of text, `heading`: its largest text
//! * `words`: words that are divided at the end of a line
//! * `font`, `encoding`: the characters of a font, and of encodings by the names of glyphs
//! * `cid`: the codes and characters of fonts for Chinese, Japanese and Korean
//! * `worker`: the process that reads a document

mod cid;
mod encoding;
mod extract;
mod font;
mod heading;
mod layout;
mod page;
mod words;
mod worker;

pub use self::extract::extract_pdf;
pub use self::worker::limit_pdf_memory;
pub(crate) use self::worker::read_pdf;
