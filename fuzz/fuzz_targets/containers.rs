//! Any streams in a compound file of Office 97, any lists and messages of an export of Slack, and any CMap and codes of a
//! PDF document are read to their end or rejected with a reason. The containers themselves are valid, so that inputs
//! reach the parsers in them.
#![no_main]

mod support;

use std::io::{Cursor, Write};

use fetchwell_connectors::{ImportError, extract_pdf, import_content};
use libfuzzer_sys::fuzz_target;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

fuzz_target!(|input: &[u8]| {
    let [choice, cut, content @ ..] = input else { return };
    let (first, second) = content.split_at(content.len() * usize::from(*cut) / 256);
    // Add new ones at the end, so that the corpus keeps its meaning.
    let (name, file) = match choice % 5 {
        0 => ("a.doc", compound(&[("WordDocument", first), ("0Table", second), ("1Table", second)])),
        1 => ("a.ppt", compound(&[("Current User", first), ("PowerPoint Document", second)])),
        2 => ("a.xls", compound(&[("Workbook", content), ("\u{5}SummaryInformation", first)])),
        3 => ("a.zip", export(first, second)),
        _ => {
            let _ = extract_pdf(document(first, second));
            return;
        }
    };
    import(name, &file);
});

fn compound(streams: &[(&str, &[u8])]) -> Vec<u8> {
    let mut file = cfb::CompoundFile::create(Cursor::new(Vec::new())).unwrap();
    for (name, content) in streams {
        file.create_stream(format!("/{name}")).unwrap().write_all(content).unwrap();
    }
    file.flush().unwrap();
    file.into_inner().into_inner()
}

fn export(list: &[u8], day: &[u8]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in
        [("users.json", list), ("dms.json", list), ("c/2026-04-01.json", day), ("c/2026-04-02.json", day)]
    {
        archive.start_file(name, SimpleFileOptions::default()).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// Returns a document with a font whose codes these CMaps describe.
fn document(cmap: &[u8], codes: &[u8]) -> Vec<u8> {
    let codes: String = codes.iter().map(|byte| format!("{byte:02x}")).collect();
    let content = format!("BT /F1 9 Tf 50 700 Td <{codes}> Tj ET");
    let start = format!(
        "%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n\
         3 0 obj\n<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>\nendobj\n\
         4 0 obj\n<</Length {}>>\nstream\n{content}\nendstream\nendobj\n\
         5 0 obj\n<</Type/Font/Subtype/Type0/Encoding 6 0 R/ToUnicode 6 0 R/DescendantFonts[<</Type/Font\
         /CIDSystemInfo<</Registry(Adobe)/Ordering(Japan1)/Supplement 2>>>>]>>\nendobj\n\
         6 0 obj\n<</Length {}>>\nstream\n",
        content.len(),
        cmap.len()
    );
    [start.as_bytes(), cmap, b"\nendstream\nendobj\ntrailer\n<</Root 1 0 R>>\n"].concat()
}

fn import(name: &str, content: &[u8]) {
    match support::import(|intake| import_content(name, content, intake)) {
        Ok(()) | Err(ImportError::Nothing { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}
