//! `fetchwell import` of documents and spreadsheets: samples written by common libraries (tests/samples/make.py), and
//! hostile ones.

use std::path::Path;

use serde_json::{Value, json};

use crate::import::commands::Workshop;
use crate::import::files::zip_of;
use crate::import::values::record;
use crate::support::{stderr, text};

/// Returns the path of a sample.
fn sample(name: &str) -> String {
    text(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/files").join(name)).to_owned()
}

/// Imports a sample, searches for a sentence in its middle, and returns its record with its time.
#[track_caller]
fn import_sample(kind: &str, name: &str, sentence: &str) -> (Value, Option<String>) {
    let workshop = Workshop::new();
    assert_eq!(workshop.counts(&[kind, &sample(name)]), [1, 0, 0, 0, 0]);
    assert_eq!(workshop.search(sentence), [format!("c/documents:{name}")]);
    let (data, time) = record(&workshop, name);
    assert!(data["body"].as_str().unwrap().contains(sentence), "{data}");
    assert_eq!((&data["path"], &data["format"]), (&json!(name), &json!(kind)));
    (data, time)
}

#[test]
fn documents_have_title_author_time_and_text() {
    let (data, time) = import_sample("docx", "plan.docx", "The captain keeps a quokka on the bridge.");
    assert_eq!((&data["title"], &data["author"]), (&json!("Ferry plan"), &json!("Ann Berg")));
    assert_eq!(
        (&data["keywords"], time.as_deref()),
        (&json!(["ferry", "oslo"]), Some("2026-04-01T10:00:00Z"))
    );
    assert!(data["body"].as_str().unwrap().contains("Port\tTime\nOslo\t12:00\n"), "{data}");

    let (data, time) = import_sample("pptx", "deck.pptx", "An axolotl swims below deck.");
    assert_eq!((&data["title"], &data["slides"]), (&json!("Ferry deck"), &json!(3)));
    assert_eq!(time.as_deref(), Some("2026-04-01T10:00:00Z"));
    let body = data["body"].as_str().unwrap();
    assert!(body.contains("Second\nAn axolotl swims below deck.\n\nMention the pangolin."), "{body}");

    let (data, time) = import_sample("odt", "letter.odt", "The wombat sends greetings.");
    assert_eq!((&data["title"], &data["author"]), (&json!("Ferry letter"), &json!("Ann Berg")));
    assert_eq!(time.as_deref(), Some("2026-04-01T10:00:00Z"));

    let (data, time) = import_sample("epub", "book.epub", "A numbat reads the tide table.");
    assert_eq!((&data["title"], &data["language"]), (&json!("The Harbour"), &json!("en")));
    assert_eq!((&data["chapters"], time.as_deref()), (&json!(3), Some("2026-04-01")));
}

#[test]
fn pdf_documents_have_their_text_layer() {
    for name in ["report.pdf", "open.pdf"] {
        let (data, time) = import_sample("pdf", name, "A tapir waits at berth seven for René.");
        assert_eq!((&data["title"], &data["author"]), (&json!("Ferry report"), &json!("Ann Berg")));
        assert_eq!((&data["pages"], time.is_some()), (&json!(3), true));
        assert!(data["body"].as_str().unwrap().starts_with("Page 1\n\nThe harbour was calm"), "{data}");
    }
    import_sample("pdf", "unicode.pdf", "Паром отходит в полдень, говорит выхухоль.");
}

#[test]
fn pdf_documents_that_cannot_be_read_are_named() {
    let workshop = Workshop::new();
    for (name, reason) in [
        ("locked.pdf", "it is encrypted: it needs a password"),
        (
            "scan.pdf",
            "it has no text layer on its 1 page; `--ocr` (`ocr = true`) recognizes the text; it needs",
        ),
    ] {
        let said = stderr(&workshop.import(&["pdf", &sample(name)]));
        assert!(said.contains(&format!("{name}: {reason}")), "{said}");
    }
    let whole = std::fs::read(sample("report.pdf")).unwrap();
    let truncated = workshop.file("cut.pdf", &whole[..400]);
    assert_eq!(workshop.import(&["pdf", &truncated]).status.code(), Some(1));
    let scan = std::fs::read(sample("scan.pdf")).unwrap();
    let end = scan.windows(4).rposition(|bytes| bytes == b"xref").unwrap() - b"start".len();
    let cut = workshop.file("cut-scan.pdf", &scan[..end]);
    let said = stderr(&workshop.import(&["pdf", &cut]));
    assert!(said.contains("the end of the file is missing"), "{said}");
}

/// Returns a PDF document with a line of text on each page.
fn pages(count: usize) -> Vec<u8> {
    let mut pdf = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    let kids: String = (0..count).map(|page| format!("{} 0 R ", 4 + page * 2)).collect();
    let fixed = [
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        format!("<</Type/Pages/Kids[{kids}]/Count {count}>>"),
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_owned(),
    ];
    let of_pages = (0..count).flat_map(|page| {
        let text = format!("BT /F1 12 Tf 72 700 Td (Page zeppelin{page}) Tj ET");
        let resources = "<</Font<</F1 3 0 R>>>>";
        let content = 5 + page * 2;
        [
            format!(
                "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Resources{resources}/Contents {content} 0 R>>"
            ),
            format!("<</Length {}>>\nstream\n{text}\nendstream", text.len()),
        ]
    });
    for (number, object) in (1..).zip(fixed.into_iter().chain(of_pages)) {
        places.push(pdf.len());
        pdf.extend(format!("{number} 0 obj\n{object}\nendobj\n").bytes());
    }
    let start = pdf.len();
    pdf.extend(format!("xref\n0 {}\n0000000000 65535 f \n", places.len() + 1).bytes());
    pdf.extend(places.iter().flat_map(|place| format!("{place:010} 00000 n \n").into_bytes()));
    let trailer = format!("trailer\n<</Size {}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n", places.len() + 1);
    pdf.extend(trailer.bytes());
    pdf
}

#[test]
fn pdf_documents_have_at_most_20000_pages() {
    let workshop = Workshop::new();
    workshop.file("f/long.pdf", pages(10_000));
    workshop.file("f/longer.pdf", pages(20_001));
    let folder = Path::new(&workshop.store()).with_file_name("f");
    let said = stderr(&workshop.import(&["files", text(&folder)]));
    assert!(said.contains("longer.pdf: it has more than 20000 pages"), "{said}");
    assert_eq!(workshop.search("zeppelin9999"), ["c/documents:long.pdf"]);
    assert_eq!(record(&workshop, "long.pdf").0["pages"], 10_000);
}

#[test]
fn the_rows_of_spreadsheets_are_records() {
    let workshop = Workshop::new();
    assert_eq!(workshop.counts(&["xlsx", &sample("trips.xlsx")]), [4, 0, 0, 0, 0]);
    assert_eq!(workshop.search("capybara"), ["c/rows/trips.xlsx%2FTrips%2F2"]);
    let (data, time) = record(&workshop, "trips.xlsx/Trips/2");
    let expect = json!({
        "Title": "Oslo", "Date": "2026-04-01", "Price": 120, "Paid": true, "Note": "with a capybara",
        "path": "trips.xlsx", "sheet": "Trips", "row": 2,
    });
    assert_eq!((&data, time.as_deref()), (&expect, Some("2026-04-01")));
    let (data, time) = record(&workshop, "trips.xlsx/Trips/3");
    assert_eq!((&data["Price"], time.as_deref()), (&json!(99.5), Some("2026-04-02T12:30:00Z")));
    assert_eq!(record(&workshop, "trips.xlsx/Ports/2").0["Berths"], 12);

    let workshop = Workshop::new();
    assert_eq!(workshop.counts(&["ods", &sample("trips.ods")]), [2, 0, 0, 0, 0]);
    let (data, time) = record(&workshop, "trips.ods/Trips/2");
    assert_eq!(
        (&data["Price"], &data["Title"], time.as_deref()),
        (&json!(120), &json!("Oslo"), Some("2026-04-01"))
    );
}

/// Returns a part of 200 MB in a container of 200 KB.
fn bomb(name: &str) -> Vec<u8> {
    zip_of(&[("[Content_Types].xml", b"<Types/>"), (name, &vec![b' '; 100 << 20])])
}

#[test]
fn hostile_containers_are_rejected() {
    let workshop = Workshop::new();
    let word =
        |xml: &str| zip_of(&[("[Content_Types].xml", b"<Types/>"), ("word/document.xml", xml.as_bytes())]);
    let entities = "<!DOCTYPE d [<!ENTITY x SYSTEM \"file:///etc/passwd\"><!ENTITY a \"boom\">]>\
        <w:d xmlns:w='w'><w:p><w:t>safe&x;&a;</w:t></w:p></w:d>";
    for (name, content) in [
        ("f/bomb.docx", bomb("word/document.xml")),
        ("f/bomb.xlsx", bomb("xl/workbook.xml")),
        ("f/deep.docx", word(&"<a>".repeat(100_000))),
        ("f/entities.docx", word(entities)),
        ("f/cut.doc", b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1".to_vec()),
        ("f/empty.epub", zip_of(&[("mimetype", b"application/epub+zip")])),
        ("f/cut.docx", std::fs::read(sample("plan.docx")).unwrap()[..9_000].to_vec()),
        ("f/cut.xlsx", std::fs::read(sample("trips.xlsx")).unwrap()[..3_000].to_vec()),
    ] {
        workshop.file(name, content);
    }
    let folder = Path::new(&workshop.store()).with_file_name("f");
    let said = stderr(&workshop.import(&["files", text(&folder)]));
    for expect in [
        "bomb.docx: its parts are larger than 67108864 bytes",
        "bomb.xlsx: its parts are larger than 67108864 bytes",
        "deep.docx: its XML is nested more than 1000 levels deep",
        "cut.doc: its container is broken",
        "empty.epub: it has no part META-INF/container.xml",
        "cut.docx: its container is broken",
        "cut.xlsx: its container is broken",
    ] {
        assert!(said.contains(expect), "{expect}: {said}");
    }
    assert_eq!(record(&workshop, "entities.docx").0["body"], "safe");
}

/// A sheet of a few hundred bytes may declare billions of cells.
#[test]
fn repeated_rows_and_cells_have_limits() {
    let workshop = Workshop::new();
    let cell = |repeated: &str| format!("<table:table-cell {repeated}><text:p>x</text:p></table:table-cell>");
    let ods = format!(
        "<office:d xmlns:office='o' xmlns:table='t' xmlns:text='x'><table:table table:name='S'>\
         <table:table-row>{}</table:table-row><table:table-row table:number-rows-repeated='99999999'>{}\
         </table:table-row></table:table></office:d>",
        cell("table:number-columns-repeated='99999999'"),
        cell("")
    );
    let kind: (&str, &[u8]) = ("mimetype", b"application/vnd.oasis.opendocument.spreadsheet");
    let path = workshop.file("huge.ods", zip_of(&[kind, ("content.xml", ods.as_bytes())]));
    assert_eq!(workshop.counts(&["ods", &path]), [10_000, 0, 0, 0, 0]);
    assert_eq!(record(&workshop, "huge.ods/S/10001").0["x"], "x");
}

/// A cell with a long text stands for 900 of them.
#[cfg(target_os = "linux")]
#[test]
fn a_small_spreadsheet_has_bounded_rows() {
    let workshop = Workshop::new();
    let long = "x".repeat(4 << 20);
    let cells = format!(
        "<table:table-cell table:number-columns-repeated='900'><text:p>{long}</text:p></table:table-cell>"
    );
    let kind: (&str, &[u8]) = ("mimetype", b"application/vnd.oasis.opendocument.spreadsheet");
    let ods = format!(
        "<office:d xmlns:office='o' xmlns:table='t' xmlns:text='x'><table:table table:name='S'>\
         <table:table-row><table:table-cell><text:p>a</text:p></table:table-cell></table:table-row>\
         <table:table-row>{cells}</table:table-row></table:table></office:d>"
    );
    workshop.file("f/a.ods", zip_of(&[kind, ("content.xml", ods.as_bytes())]));
    let sheet = format!(
        "<worksheet><sheetData><row><c t='inlineStr'><is><t>a</t></is></c></row><row>{}</row></sheetData></worksheet>",
        "<c t='s'><v>0</v></c>".repeat(900)
    );
    let parts: [(&str, &[u8]); 5] = [
        ("[Content_Types].xml", b"<Types/>"),
        ("xl/workbook.xml", b"<workbook xmlns:r='r'><sheets><sheet name='S' r:id='r1'/></sheets></workbook>"),
        (
            "xl/_rels/workbook.xml.rels",
            b"<Relationships><Relationship Id='r1' Type='x/worksheet' Target='worksheets/s.xml'/></Relationships>",
        ),
        ("xl/worksheets/s.xml", sheet.as_bytes()),
        ("xl/sharedStrings.xml", &[b"<sst><si><t>", long.as_bytes(), b"</t></si></sst>"].concat()),
    ];
    workshop.file("f/b.xlsx", zip_of(&parts));
    workshop.file("f/good.txt", "fine");
    let folder = Path::new(&workshop.store()).with_file_name("f");
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -v 3000000; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_fetchwell")])
        .args(["import", "files", text(&folder), "--connection", "c", "--store", &workshop.store()])
        .output()
        .unwrap();
    let said = stderr(&output);
    for name in ["a.ods", "b.xlsx"] {
        assert!(said.contains(&format!("{name}: a row has more than 67108864 bytes")), "{output:?}");
    }
    assert_eq!(workshop.search("fine"), ["c/documents:good.txt"]);
}

/// The content of a page is compressed twice, and expands to gigabytes.
#[test]
fn a_pdf_that_expands_is_rejected_without_others() {
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use std::io::Write;
    let workshop = Workshop::new();
    let deflate = |content: &[u8]| {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    };
    // Equal blocks compress to equal bytes, which can be compressed again.
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    let block = vec![b' '; 1 << 20];
    for _ in 0..2_048 {
        encoder.write_all(&block).unwrap();
    }
    let content = deflate(&encoder.finish().unwrap());
    let mut pdf = format!(
        "%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n\
         3 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>\nendobj\n\
         4 0 obj\n<</Filter[/FlateDecode/FlateDecode]/Length {}>>\nstream\n",
        content.len()
    )
    .into_bytes();
    pdf.extend(content);
    pdf.extend(b"\nendstream\nendobj\ntrailer\n<</Root 1 0 R>>\n");
    assert!(pdf.len() < 100_000);
    workshop.file("f/bomb.pdf", pdf);
    workshop.file("f/good.txt", "fine");
    let folder = Path::new(&workshop.store()).with_file_name("f");
    let output = workshop.import(&["files", text(&folder)]);
    assert!(stderr(&output).contains("bomb.pdf: "), "{output:?}");
    assert_eq!(workshop.search("fine"), ["c/documents:good.txt"]);
}
