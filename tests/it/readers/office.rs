//! `fetchwell import` of office documents: headers, footers, text boxes and notes once each, and the formats of Office 97.

use std::io::{Cursor, Write};

use serde_json::{Value, json};

use crate::import::commands::Workshop;
use crate::import::files::zip_of;
use crate::import::values::record;
use crate::support::stderr;

/// Returns the part that lists the relationships of another one.
fn relationships(targets: &[(&str, &str)]) -> String {
    let relationship = |(at, (kind, target)): (usize, &(&str, &str))| {
        format!("<Relationship Id='r{at}' Type='http://x.test/relationships/{kind}' Target='{target}'/>")
    };
    format!(
        "<Relationships>{}</Relationships>",
        targets.iter().enumerate().map(relationship).collect::<String>()
    )
}

/// Imports a document and returns its fields.
#[track_caller]
fn import(workshop: &Workshop, kind: &str, name: &str, content: impl AsRef<[u8]>) -> Value {
    let file = workshop.file(name, content);
    assert_eq!(workshop.counts(&[kind, &file]), [1, 0, 0, 0, 0], "{name}");
    record(workshop, name).0
}

#[test]
fn headers_boxes_and_notes_of_word_documents_stand_once() {
    let paragraph = |text: &str| format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>");
    let part = |text: &str| format!("<w:part xmlns:w='w' xmlns:mc='m'>{}</w:part>", paragraph(text));
    let text_box = format!("<w:txbxContent>{}</w:txbxContent>", paragraph("A boxed caracal"));
    let body = format!(
        "<w:document xmlns:w='w' xmlns:mc='m'><w:p><w:r><w:t>The main </w:t></w:r><w:r><mc:AlternateContent><mc:Choice>\
         {text_box}</mc:Choice><mc:Fallback>{text_box}</mc:Fallback></mc:AlternateContent></w:r><w:r><w:t>text</w:t></w:r></w:p>\
         </w:document>"
    );
    let related = relationships(&[
        ("header", "header1.xml"),
        ("header", "header2.xml"),
        ("header", "header1.xml"),
        ("footer", "footer1.xml"),
        ("footnotes", "footnotes.xml"),
        ("image", "missing.png"),
        ("header", "missing.xml"),
    ]);
    // The main part has another name in documents of Office 365.
    let file = zip_of(&[
        ("[Content_Types].xml", b"<Types/>"),
        ("_rels/.rels", relationships(&[("officeDocument", "word/document2.xml")]).as_bytes()),
        ("word/document2.xml", body.as_bytes()),
        ("word/_rels/document2.xml.rels", related.as_bytes()),
        ("word/header1.xml", part("Harbour Ltd").as_bytes()),
        ("word/header2.xml", part("Harbour Ltd").as_bytes()),
        ("word/footer1.xml", part("In confidence").as_bytes()),
        ("word/footnotes.xml", part("A noted numbat").as_bytes()),
    ]);
    let data = import(&Workshop::new(), "docx", "a.docx", file);
    assert_eq!(data["body"], "The main text\nA boxed caracal\nA noted numbat\nHarbour Ltd\nIn confidence");
}

#[test]
fn footers_boxes_and_notes_of_slides_stand_once() {
    let shape = |kind: &str, text: &str| {
        format!(
            "<p:sp><p:nvPr><p:ph type='{kind}'/></p:nvPr><p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
        )
    };
    let slide = |title: &str| {
        let twice = shape("", "A boxed caracal");
        format!(
            "<p:sld xmlns:p='p' xmlns:a='a' xmlns:mc='m'>{}{}<mc:AlternateContent><mc:Choice>{twice}</mc:Choice>\
             <mc:Fallback>{twice}</mc:Fallback></mc:AlternateContent></p:sld>",
            shape("title", title),
            shape("ftr", "In confidence"),
        )
    };
    let list =
        "<p:presentation xmlns:p='p' xmlns:r='r'><p:sldId r:id='r0'/><p:sldId r:id='r1'/></p:presentation>";
    let notes = format!(
        "<p:notes xmlns:p='p' xmlns:a='a'>{}{}</p:notes>",
        shape("body", "Say numbat"),
        shape("ftr", "In confidence")
    );
    let file = zip_of(&[
        ("[Content_Types].xml", b"<Types/>"),
        ("ppt/presentation.xml", list.as_bytes()),
        (
            "ppt/_rels/presentation.xml.rels",
            relationships(&[("slide", "slides/slide1.xml"), ("slide", "slides/slide2.xml")]).as_bytes(),
        ),
        ("ppt/slides/slide1.xml", slide("One").as_bytes()),
        ("ppt/slides/slide2.xml", slide("Two").as_bytes()),
        (
            "ppt/slides/_rels/slide2.xml.rels",
            relationships(&[("notesSlide", "../notesSlides/n.xml")]).as_bytes(),
        ),
        ("ppt/notesSlides/n.xml", notes.as_bytes()),
    ]);
    let data = import(&Workshop::new(), "pptx", "a.pptx", file);
    assert_eq!(data["body"], "One\nIn confidence\nA boxed caracal\n\nTwo\nA boxed caracal\n\nSay numbat");
}

/// Returns a compound file with these streams.
fn compound(streams: &[(&str, &[u8])]) -> Vec<u8> {
    let mut file = cfb::CompoundFile::create(Cursor::new(Vec::new())).unwrap();
    for (name, content) in streams {
        file.create_stream(format!("/{name}")).unwrap().write_all(content).unwrap();
    }
    file.flush().unwrap();
    file.into_inner().into_inner()
}

/// A piece of the text of a Word document, of one or two bytes a character.
enum Piece {
    Narrow(&'static str),
    Wide(&'static str),
}

/// Returns a document with these pieces, of which so many characters are the document, its footnotes and its headers.
fn doc(pieces: &[Piece], lengths: [u32; 3], flags: u16) -> Vec<u8> {
    let mut main = vec![0; 0x400];
    let mut put = |at: usize, bytes: &[u8]| main[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &[0xEC, 0xA5, 0xC1, 0]);
    put(0x0A, &(flags | 0x200).to_le_bytes());
    for (at, length) in [0x4C, 0x50, 0x54].into_iter().zip(lengths) {
        put(at, &length.to_le_bytes());
    }
    let (mut positions, mut places, mut position) = (vec![0_u32], Vec::new(), 0);
    let mut text = Vec::new();
    for piece in pieces {
        let at = u32::try_from(0x400 + text.len()).unwrap();
        let (place, count) = match piece {
            Piece::Narrow(piece) => {
                text.extend(encoding_rs::WINDOWS_1252.encode(piece).0.iter());
                ((at * 2) | (1 << 30), piece.chars().count())
            }
            Piece::Wide(piece) => {
                text.extend(piece.encode_utf16().flat_map(u16::to_le_bytes));
                (at, piece.encode_utf16().count())
            }
        };
        position += u32::try_from(count).unwrap();
        positions.push(position);
        places.push(place);
    }
    let mut list: Vec<u8> = positions.iter().flat_map(|position| position.to_le_bytes()).collect();
    for place in places {
        list.extend([0, 0]);
        list.extend(place.to_le_bytes());
        list.extend([0, 0]);
    }
    // A change of format stands before the list.
    let table =
        [&[1, 3, 0, 7, 7, 7, 2][..], &u32::try_from(list.len()).unwrap().to_le_bytes(), &list].concat();
    put(0x1A2, &[0; 4]);
    put(0x1A6, &u32::try_from(table.len()).unwrap().to_le_bytes());
    main.extend(text);
    compound(&[("WordDocument", &main), ("1Table", &table)])
}

#[test]
fn documents_of_word_97_have_their_text() {
    let workshop = Workshop::new();
    let main = "See \u{13} HYPERLINK \"https://x.test\" \u{14}the page\u{15} \u{2}of\rA\u{7}B\u{7}\u{7}\u{1}";
    let headers = "Harbour, page \u{13} PAGE \u{14}7\u{15}\rHarbour, page \u{13} PAGE \u{14}8\u{15}\r";
    let pieces = [
        Piece::Narrow(main),
        Piece::Wide("東京 — “René”\u{1E}x\r"),
        Piece::Narrow("A numbat\r"),
        Piece::Narrow(headers),
    ];
    let count = |text: &str| u32::try_from(text.encode_utf16().count()).unwrap();
    let lengths = [count(main) + count("東京 — “René”\u{1E}x\r"), count("A numbat\r"), count(headers)];
    let data = import(&workshop, "docx", "plan.doc", doc(&pieces, lengths, 0));
    assert_eq!(data["body"], "See the page of\nA\tB\n東京 — “René”-x\nA numbat\nHarbour, page");
    assert_eq!((&data["title"], &data["format"]), (&json!("plan"), &json!("doc")));

    let broken = |streams: &[(&str, &[u8])]| compound(streams);
    let old = [&[0xDC, 0xA5, 0x68, 0][..], &[0; 0x400]].concat();
    let mut far = vec![0; 0x400];
    far[..4].copy_from_slice(&[0xEC, 0xA5, 0xC1, 0]);
    far[0x1A6..0x1AA].copy_from_slice(&u32::MAX.to_le_bytes());
    // A million pieces, each of which is the same 60,000 characters.
    let many = 1_000_000_u32;
    let list = (0..=many).flat_map(|number| number.wrapping_mul(60_000).to_le_bytes());
    let list: Vec<u8> = list.chain((0..many).flat_map(|_| [0, 0, 0, 8, 0, 0x40, 0, 0])).collect();
    let table = [&[2][..], &u32::try_from(list.len()).unwrap().to_le_bytes(), &list].concat();
    let mut huge = far.clone();
    huge[0x1A6..0x1AA].copy_from_slice(&u32::try_from(table.len()).unwrap().to_le_bytes());
    huge.extend([b'x'; 70_000]);
    for (name, content, reason) in [
        ("locked.doc", doc(&pieces, lengths, 0x100), "it is encrypted; save it without a password"),
        ("old.doc", broken(&[("WordDocument", &old)]), "soffice --headless --convert-to docx"),
        ("none.doc", broken(&[("Other", b"x")]), "it has no stream WordDocument"),
        ("table.doc", broken(&[("WordDocument", &far)]), "it has no stream 0Table"),
        (
            "far.doc",
            broken(&[("WordDocument", &far), ("0Table", b"x")]),
            "its list of pieces of text is broken",
        ),
        ("huge.doc", broken(&[("WordDocument", &huge), ("0Table", &table)]), "its text is longer than"),
    ] {
        let file = workshop.file(name, content);
        let said = stderr(&workshop.import(&["docx", &file]));
        assert!(said.contains(reason), "{name}: {said}");
    }
}

/// Returns a record of a presentation. A container has records as its content.
fn atom(version: u16, kind: u16, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap();
    [&version.to_le_bytes()[..], &kind.to_le_bytes(), &length.to_le_bytes(), content].concat()
}

/// Returns a presentation of these parts, numbered from 1, of which the first one is the document.
fn ppt(parts: &[Vec<u8>], last_edit: Option<u32>, mark: u32) -> Vec<u8> {
    let (mut stream, mut directory) =
        (Vec::new(), (u32::try_from(parts.len()).unwrap() << 20 | 1).to_le_bytes().to_vec());
    // An old place of the document, which a later save replaced.
    stream.extend(atom(0xF, 0x3E8, &atom(0, 0xFA8, b"A deleted dodo")));
    for part in parts {
        directory.extend(u32::try_from(stream.len()).unwrap().to_le_bytes());
        stream.extend(part);
    }
    let at = u32::try_from(stream.len()).unwrap();
    stream.extend(atom(0, 0x1772, &directory));
    let edit = u32::try_from(stream.len()).unwrap();
    let content: Vec<u8> = [0, 0, last_edit.unwrap_or(0), at, 1, 0, 0]
        .iter()
        .flat_map(|word: &u32| word.to_le_bytes())
        .collect();
    stream.extend(atom(0, 0xFF5, &content));
    let user: Vec<u8> = [0, 0, 0x14, mark, edit].iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
    compound(&[("Current User", &user), ("PowerPoint Document", &stream)])
}

#[test]
fn presentations_of_powerpoint_97_have_their_text() {
    const MARK: u32 = 0xE391_C05F;
    let wide =
        |text: &str| atom(0, 0xFA0, &text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>());
    let narrow = |text: &str| atom(0, 0xFA8, text.as_bytes());
    let listed = |part: u32, id: u32| {
        let words = [part, 0, 0, id, 0];
        atom(0, 0x3F3, &words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())
    };
    let slides = [listed(2, 256), narrow("First\rslide"), listed(3, 257), wide("Zweite für René")].concat();
    let document = [atom(0xF, 0xFF0, &slides), atom(0x2F, 0xFF0, &listed(4, 0))].concat();
    let boxed = |text: &str| atom(0xF, 0x40C, &atom(0xF, 0xF00D, &[narrow(text), narrow("*")].concat()));
    let notes = [atom(0, 0x3F1, &[257_u32.to_le_bytes(), [0; 4]].concat()), boxed("Say numbat")].concat();
    let parts = [
        atom(0xF, 0x3E8, &document),
        atom(0xF, 0x3EE, &[boxed("First\rslide"), boxed("A boxed caracal")].concat()),
        atom(0xF, 0x3EE, &[]),
        atom(0xF, 0x3F0, &notes),
    ];
    let workshop = Workshop::new();
    let data = import(&workshop, "pptx", "deck.ppt", ppt(&parts, None, MARK));
    assert_eq!(data["body"], "First\nslide\nA boxed caracal\n\nZweite für René\nSay numbat");
    assert_eq!((&data["slides"], &data["format"]), (&json!(2), &json!("ppt")));
    // A save before the last one that is missing, records in records without end, and slides without parts.
    let deep = (0..10_000).fold(narrow("deep"), |inner, _| atom(0xF, 0x40C, &inner));
    let data = import(&workshop, "pptx", "loop.ppt", ppt(&[parts[0].clone(), deep], Some(1_000_000), MARK));
    assert_eq!(data["body"], "First\nslide\n\nZweite für René");
    for (name, content, reason) in [
        ("locked.ppt", ppt(&parts, None, 0xF3D1_C4DF), "it is encrypted; save it without a password"),
        ("cut.ppt", ppt(&[], None, MARK), "its directory of slides is broken"),
        ("old.ppt", compound(&[("PP40", b"x")]), "soffice --headless --convert-to pptx"),
    ] {
        let file = workshop.file(name, content);
        let said = stderr(&workshop.import(&["pptx", &file]));
        assert!(said.contains(reason), "{name}: {said}");
    }
}

/// Returns a record of a workbook.
fn biff(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &u16::try_from(content.len()).unwrap().to_le_bytes(), content].concat()
}

#[test]
fn workbooks_of_excel_97_have_their_rows() {
    let workshop = Workshop::new();
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/samples/trips.xls");
    assert_eq!(workshop.counts(&["xlsx", crate::support::text(&file)]), [6, 0, 0, 0, 0]);
    let (row, _time_of_the_file) = record(&workshop, "trips.xls/Trips/3");
    assert_eq!(
        (&row["Ferry"], &row["Guests"], &row["Price"]),
        (&json!("Łódź 日本"), &json!(7), &json!(1250.5))
    );
    assert_eq!(
        (&row["Day"], &row["Hour"], &row["Open"]),
        (&json!("2026-04-02"), &json!("23:59:00"), &json!(false))
    );
    // A text that continues in another record, and one with formats.
    let notes = record(&workshop, "trips.xls/Notes/2").0;
    assert!(notes["Text"].as_str().unwrap().ends_with("xx numbat"), "{notes}");
    assert_eq!(record(&workshop, "trips.xls/Notes/3").0["Text"], "bold plain");

    let book = |globals: &[u8]| {
        compound(&[("Workbook", &[biff(0x809, &[0, 6, 5, 0]), globals.to_vec(), biff(0x0A, &[])].concat())])
    };
    let sheet = |position: u32| biff(0x85, &[&position.to_le_bytes()[..], &[0, 0, 1, 0, b'S']].concat());
    for (name, content, reason) in [
        ("locked.xls", book(&biff(0x2F, &[0; 6])), "it is encrypted; save it without a password"),
        ("shared.xls", book(&biff(0xFC, &[0xFF; 8])), "its cells share more than 5000000 texts"),
        ("old.xls", compound(&[("Book", b"x")]), "soffice --headless --convert-to xlsx"),
        (
            "old-2.xls",
            compound(&[("Workbook", &biff(0x809, &[0, 5, 5, 0]))]),
            "soffice --headless --convert-to xlsx",
        ),
        ("broken.xls", compound(&[("Workbook", b"text")]), "its stream Workbook is broken"),
    ] {
        let file = workshop.file(name, content);
        let said = stderr(&workshop.import(&["xlsx", &file]));
        assert!(said.contains(reason), "{name}: {said}");
    }
    // Sheets that are the start of the workbook, or beyond its end.
    let file = workshop.file("loop.xls", book(&[sheet(0), sheet(u32::MAX)].concat()));
    assert_eq!(workshop.counts(&["xlsx", &file]), [0, 0, 0, 0, 0]);
}

#[test]
fn open_document_presentations_and_other_forms_of_books_are_read() {
    let workshop = Workshop::new();
    let slide = |text: &str| format!("<draw:page><text:p>{text}</text:p></draw:page>");
    let content = format!(
        "<office:document-content xmlns:office='o' xmlns:draw='d' xmlns:text='t'><office:body><office:presentation>{}{}\
         </office:presentation></office:body></office:document-content>",
        slide("A quokka"),
        slide("Its diet"),
    );
    let kind = "application/vnd.oasis.opendocument.presentation";
    let file = zip_of(&[("mimetype", kind.as_bytes()), ("content.xml", content.as_bytes())]);
    let deck = import(&workshop, "odt", "deck.odp", file);
    assert_eq!(
        (&deck["format"], &deck["slides"], &deck["body"]),
        (&json!("odp"), &json!(2), &json!("A quokka\n\nIts diet"))
    );

    let container = "<container><rootfiles><rootfile full-path='other.pdf' media-type='application/pdf'/><rootfile full-path=\
        'book.opf' media-type='application/oebps-package+xml'/></rootfiles></container>";
    let package = "<package><manifest><item id='a' href='a.xhtml'/></manifest><spine><itemref idref='a'/></spine></package>";
    let file = zip_of(&[
        ("mimetype", b"application/epub+zip"),
        ("META-INF/container.xml", container.as_bytes()),
        ("book.opf", package.as_bytes()),
        ("a.xhtml", b"<html><body>A numbat</body></html>"),
    ]);
    assert_eq!(import(&workshop, "epub", "book.epub", file)["body"], "A numbat");
}
