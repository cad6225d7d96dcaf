//! Any content of a file is read to its end or rejected with a reason: calendars, contacts, feeds, office documents,
//! PDF documents, exports and archives of them, the headers of pictures, and what tesseract prints. A panic of a reader becomes a rejection with a text that this target
//! detects.
#![no_main]

mod support;

use fetchwell_connectors::{ImportError, extract_pdf, import_content, picture_pages, recognized_words};
use libfuzzer_sys::fuzz_target;

/// Extensions by which an input is read. Its first byte chooses one.
const EXTENSIONS: [&str; 11] =
    ["txt", "md", "html", "eml", "ics", "vcf", "xml", "json", "docx", "xlsx", "zip"];

fuzz_target!(|input: &[u8]| {
    let Some((first, content)) = input.split_first() else { return };
    let extension = EXTENSIONS[usize::from(*first) % EXTENSIONS.len()];
    if content.starts_with(b"%PDF-") {
        let _ = extract_pdf(content.to_vec());
        return;
    }
    let _ = (picture_pages(content), recognized_words(&String::from_utf8_lossy(content)));
    // SQLite has its own fuzzers, and needs a file.
    if content.starts_with(b"SQLite format 3") {
        return;
    }
    match support::import(|intake| import_content(&format!("folder/file.{extension}"), content, intake)) {
        Ok(()) | Err(ImportError::Nothing { .. }) => {}
        Err(error) => panic!("{error}"),
    }
});
