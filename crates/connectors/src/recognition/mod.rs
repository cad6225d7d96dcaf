//! Text recognition (OCR) of pictures and scanned pages, by the programs `tesseract` and `pdftoppm`.
//!
//! Both are started from the `PATH`, as `git` is, with limits of time, memory and output. tesseract gets every picture
//! through a pipe and never sees a name of a file. What it prints is untrusted text.
//!
//! * `languages`: the languages of a text, by the names of tesseract
//! * `measure`: the size of a picture by its header
//! * `words`: the words that tesseract prints, with their confidence
//! * `recognizer`: the calls of tesseract, with their limits
//! * `allowance`: pages and time of several files together
//! * `pages`: the pages of PDF documents as pictures
//! * `picture`: the reader of picture files
//! * `process`: programs that run within limits, also the one that reads PDF documents

mod allowance;
mod languages;
mod measure;
mod pages;
mod picture;
mod process;
mod recognizer;
mod words;

pub(crate) use self::allowance::OcrAllowance;
pub use self::languages::{InvalidOcrLanguage, OcrLanguages};
pub(crate) use self::measure::is_picture;
pub use self::measure::picture_pages;
pub(crate) use self::pages::{PdfPage, RecognizedPages};
pub(crate) use self::picture::read_picture;
pub(crate) use self::process::{Permits, ProgramError, ProgramLimits, run_program};
pub use self::recognizer::{OcrError, Recognizer};
pub(crate) use self::recognizer::{pdf_hint, picture_hint};
pub use self::words::recognized_words;
