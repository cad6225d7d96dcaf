//! `fetchwell import` of calendars, notes and PDF documents in the shapes that people have.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::import::commands::Workshop;
use crate::import::values::record;
use crate::support::text;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/samples").join(name)
}

#[test]
fn zones_of_windows_and_of_exchange_have_their_offsets() {
    let workshop = Workshop::new();
    assert_eq!(workshop.counts(&["ics", text(&sample("zone-of-windows.ics"))]), [4, 0, 0, 0, 0]);
    for (key, start, time) in [
        ("win", "2024-07-10T08:00:00Z", "2024-07-10T08:00:00Z"),
        ("r1", "2024-03-25T08:00:00Z", "2024-03-25T08:00:00Z"),
        ("r1/2024-04-08T07:00:00Z", "2024-04-08T09:00:00Z", "2024-04-08T09:00:00Z"),
        ("allday", "2024-05-01", "2024-05-01"),
    ] {
        let (event, found) = record(&workshop, key);
        assert_eq!((&event["start"], found.as_deref()), (&json!(start), Some(time)), "{key}");
    }
    let event =
        |uid: &str, start: &str| format!("BEGIN:VEVENT\nUID:{uid}\nDTSTART{start}\nSUMMARY:x\nEND:VEVENT\n");
    let zone = "BEGIN:VTIMEZONE\nTZID:tzone://Microsoft/Custom\nBEGIN:STANDARD\nDTSTART:16010101T000000\n\
        TZOFFSETFROM:+0530\nTZOFFSETTO:+0530\nEND:STANDARD\nEND:VTIMEZONE\n";
    let events = [
        event("custom", ";TZID=\"tzone://Microsoft/Custom\":20240710T100000"),
        event("floating", ":20240710T100000"),
    ];
    let file = workshop.file("e.ics", format!("BEGIN:VCALENDAR\n{zone}{}END:VCALENDAR\n", events.concat()));
    assert_eq!(workshop.counts(&["ics", &file]), [2, 0, 0, 0, 0]);
    assert_eq!(record(&workshop, "custom").0["start"], "2024-07-10T04:30:00Z");
    // A floating time has no zone. It counts as UTC where events are ordered.
    let (event, time) = record(&workshop, "floating");
    assert_eq!(
        (&event["start"], time.as_deref()),
        (&json!("2024-07-10T10:00:00"), Some("2024-07-10T10:00:00Z"))
    );
}

#[test]
fn notes_have_the_days_of_their_names_and_the_tags_of_their_text() {
    let workshop = Workshop::new();
    assert_eq!(workshop.counts(&["markdown", text(&sample("notes/2024-03-09.md"))]), [1, 0, 0, 0, 0]);
    let (note, time) = record(&workshop, "2024-03-09.md");
    assert_eq!((&note["title"], time.as_deref()), (&json!("2024-03-09"), Some("2024-03-09")));
    let notion = "f/Plan 0123456789abcdef0123456789abcdef.md";
    workshop.file(notion, "See [[Heron|the bird]]. #birds/water `#code` https://x.test/#part #ff8800\n");
    workshop.file("f/2024_03_10.md", "date:: 2024-03-11\n\n- A marmot\n");
    let folder = Path::new(&workshop.store()).with_file_name("f");
    assert_eq!(workshop.counts(&["markdown", text(&folder)]), [2, 0, 0, 0, 0]);
    let (note, _) = record(&workshop, notion.strip_prefix("f/").unwrap());
    assert_eq!((&note["title"], &note["tags"]), (&json!("Plan"), &json!(["birds/water"])));
    assert!(note["body"].as_str().unwrap().starts_with("See the bird (Heron)."), "{note}");
    // A time in the note precedes that of the name.
    assert_eq!(record(&workshop, "2024_03_10.md").1.as_deref(), Some("2024-03-11"));
}

/// Returns a document of one page with this title and content.
fn pdf(title: &str, content: &str, encoding: &str) -> String {
    let font = if encoding.starts_with("Win") {
        format!("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/{encoding}>>")
    } else {
        format!(
            "<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/{encoding}/DescendantFonts[<</Type/Font/Subtype/CIDFontType0/BaseFont/X>>]>>"
        )
    };
    format!(
        "%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n\
         2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n\
         3 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>\nendobj\n\
         4 0 obj\n<</Length {}>>\nstream\n{content}\nendstream\nendobj\n\
         5 0 obj\n{font}\nendobj\n6 0 obj\n<</Title({title})>>\nendobj\n\
         trailer\n<</Root 1 0 R/Info 6 0 R>>\nstartxref\n0\n%%EOF\n",
        content.len()
    )
}

#[test]
fn titles_of_pdf_documents_are_titles_and_divided_words_are_found() {
    let workshop = Workshop::new();
    let body = "BT /F1 10 Tf 14 TL 50 700 Td (We saw a capy-) Tj T* (bara and a well-) Tj T* (known heron there.) Tj ET";
    let headed = format!("BT /F1 20 Tf 50 750 Td (The river) Tj ET {body}");
    for (name, title, content, expect) in [
        ("a.pdf", "untitled", body, "a"),
        ("b.pdf", "Microsoft Word - x.docx", headed.as_str(), "The river"),
        ("c.pdf", "Annual report", headed.as_str(), "Annual report"),
        ("d 0123456789abcdef0123456789abcdef.pdf", "", headed.as_str(), "d"),
    ] {
        let file = workshop.file(name, pdf(title, content, "WinAnsiEncoding"));
        assert_eq!(workshop.counts(&["pdf", &file]), [1, 0, 0, 0, 0]);
        assert_eq!(record(&workshop, name).0["title"], expect, "{name}");
    }
    assert_eq!(workshop.search("capybara").len(), 4);
    assert_eq!(workshop.search("\"well-known heron\"").len(), 4);
    // Text whose characters are not known is no missing text layer.
    for (encoding, reason) in [
        ("Identity-H", "its fonts do not say which characters they show"),
        ("Some-Unknown-H", "its fonts need the CMap Some-Unknown-H, which is broken or not known"),
    ] {
        let file = workshop.file("e.pdf", pdf("x", "BT /F1 10 Tf 50 700 Td <0041> Tj ET", encoding));
        let said = crate::support::stderr(&workshop.import(&["pdf", &file]));
        assert!(said.contains(reason) && !said.contains("text layer"), "{said}");
    }
    // Fonts with a predefined CMap need no map of their own.
    let content = "BT /F1 10 Tf 50 700 Td <6771 4EAC 306E 72F8> Tj ET";
    let file = workshop.file("f.pdf", pdf("x", content, "UniJIS-UCS2-H"));
    assert_eq!(workshop.counts(&["pdf", &file]), [1, 0, 0, 0, 0]);
    assert_eq!(record(&workshop, "f.pdf").0["body"], "東京の狸");
}
