//! `fetchwell import` of tables in the shapes that people have: titles above the header, repeated names, and rows with too
//! few or too many fields.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::import::commands::Workshop;
use crate::import::files::zip_of;
use crate::import::values::record;
use crate::support::{stderr, text};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/samples/tables").join(name)
}

/// Imports a table, and returns what is written to standard error. Nothing may be rejected.
#[track_caller]
fn import(workshop: &Workshop, kind: &str, path: &str, records: u64) -> String {
    let output = workshop.import(&[kind, path]);
    let said = stderr(&output);
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!((&summary["added"], &summary["rejected"]), (&json!(records), &json!(0)), "{said}");
    said
}

#[test]
fn rows_above_a_header_are_the_note_of_the_table() {
    let workshop = Workshop::new();
    let file = sample("notes-above-header.csv");
    let said = import(&workshop, "csv", text(&file), 3);
    assert!(said.contains("notes-above-header: its header is line 4"), "{said}");
    let (row, _) = record(&workshop, "3");
    assert_eq!(
        row,
        json!({
            "First Name": "Ada", "Last Name": "Moreno", "URL": "https://example.org/in/ada", "Email Address": null,
            "Company": "Acme", "Position": "Engineer", "Connected On": "2024-03-05",
        })
    );
    let (note, _) = record(&workshop, "notes-above-header");
    assert_eq!(note["title"], "notes-above-header");
    assert!(
        note["body"].as_str().unwrap().starts_with("Notes:\nWhen exporting your connection data"),
        "{note}"
    );
    assert_eq!(workshop.search("exporting"), ["c/tables:notes-above-header"]);

    let workshop = Workshop::new();
    let said = import(&workshop, "xlsx", text(&sample("title-above-header.xlsx")), 5);
    assert!(said.contains("title-above-header.xlsx/With title: its header is row 3"), "{said}");
    let (row, _) = record(&workshop, "title-above-header.xlsx/With title/4");
    assert_eq!((&row["Item"], &row["Count"]), (&json!("Hammer"), &json!(3)));
    let (note, _) = record(&workshop, "title-above-header.xlsx/With title");
    assert_eq!(
        note,
        json!({
            "title": "With title", "path": "title-above-header.xlsx", "sheet": "With title",
            "body": "Annual export of the depot",
        })
    );
}

#[test]
fn rows_above_a_header_of_a_table_in_a_folder_are_a_record() {
    let workshop = Workshop::new();
    let table = "Prices in kEUR;;;\n;;;\nid;item;price;path\nk1;saw;1,50;a/b\nk2;nail;0,10;c\n";
    workshop.file("f/prices.csv", table);
    let folder = Path::new(&workshop.store()).with_file_name("f");
    import(&workshop, "files", text(&folder), 3);
    let (row, _) = record(&workshop, "prices.csv/k1");
    assert_eq!(
        row,
        json!({"id": "k1", "item": "saw", "price": 1.5, "column_path": "a/b", "path": "prices.csv"})
    );
    let (note, _) = record(&workshop, "prices.csv");
    assert_eq!(note, json!({"title": "prices", "path": "prices.csv", "body": "Prices in kEUR"}));
}

#[test]
fn columns_of_one_name_get_a_number() {
    let workshop = Workshop::new();
    let said = import(&workshop, "csv", text(&sample("two-columns-of-one-name.csv")), 2);
    assert!(said.contains("a column with the name of another has a number: name_2"), "{said}");
    let (row, time) = record(&workshop, "1");
    assert_eq!(
        row,
        json!({"name": "alpha", "date": "2024-05-01", "name_2": "beta", "notes": "line one\nline two, with comma"})
    );
    assert_eq!(time.as_deref(), Some("2024-05-01"));
    // The same rule for spreadsheets.
    let cells = ["name", "date", "name"]
        .map(|name| format!("<table:table-cell><text:p>{name}</text:p></table:table-cell>"));
    let row = format!("<table:table-row>{}</table:table-row>", cells.concat());
    let sheet = format!(
        "<office:d xmlns:office='o' xmlns:table='t' xmlns:text='x'><table:table table:name='S'>{row}{row}</table:table></office:d>"
    );
    let kind: (&str, &[u8]) = ("mimetype", b"application/vnd.oasis.opendocument.spreadsheet");
    let path = workshop.file("s.ods", zip_of(&[kind, ("content.xml", sheet.as_bytes())]));
    let said = import(&workshop, "ods", &path, 1);
    assert!(said.contains("s.ods/S: a column with the name of another has a number: name_2"), "{said}");
    assert_eq!(record(&workshop, "s.ods/S/2").0["name_2"], "name");
}

#[test]
fn rows_of_another_length_are_kept_or_named() {
    let workshop = Workshop::new();
    let table = "id,name,note\n1,Ann,x\n2,Bob\n3,Cleo,y,,\n4,Dan,y,more\nrest of a line,z\n5,Eve,\n";
    let file = workshop.file("a.csv", table);
    let output = workshop.import(&["csv", &file]);
    let said = stderr(&output);
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["added"], &summary["rejected"]), (&json!(4), &json!(2)), "{said}");
    for part in [
        "a.csv:5: it has 4 fields and the header has 3; fields with the delimiter need quotes",
        "a.csv:6: it has 2 fields and the header has 3; fields with a line break need quotes",
        "a: 1 row has fewer fields than the header; the missing ones are null",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    assert_eq!(record(&workshop, "2").0, json!({"id": 2, "name": "Bob", "note": null}));
    assert_eq!(record(&workshop, "3").0, json!({"id": 3, "name": "Cleo", "note": "y"}));
    // R does not name the column with the names of rows.
    let workshop = Workshop::new();
    let file = workshop.file("r.csv", "\"mpg\",\"cyl\"\n\"Mazda RX4\",21,6\n\"Fiat 128\",32.4,4\n");
    import(&workshop, "csv", &file, 2);
    assert_eq!(record(&workshop, "1").0["column_1"], "Mazda RX4");
}

#[test]
fn keys_of_plain_tables_are_those_of_before() {
    let workshop = Workshop::new();
    let check = |name: &str, table: &str, keys: &[&str]| {
        let file = workshop.file(name, table);
        let said = import(&workshop, "csv", &file, keys.len() as u64);
        assert_eq!(said.lines().count(), 0, "{said}");
        keys.iter().for_each(|key| drop(record(&workshop, key)));
    };
    check("ids.csv", "id,name\n007,Ann\n\n8,Bob\n", &["007", "8"]);
    check("numbers.csv", "2020,2021,\nx,y,z\nu,v,w\n", &["1", "2"]);
}

#[test]
fn tables_of_thousands_of_columns_are_bounded() {
    let workshop = Workshop::new();
    let row = |cell: &dyn Fn(usize) -> String| (0..5_000).map(cell).collect::<Vec<_>>().join(",");
    let table = [row(&|_| "x".to_owned()), row(&|at| at.to_string()), row(&|at| format!("v{at}"))].join("\n");
    let file = workshop.file("wide.csv", table);
    let said = stderr(&workshop.import(&["csv", &file]));
    assert!(said.contains("columns with the name of another have a number: x_2, x_3"), "{said}");
    let cells =
        "<table:table-cell table:number-columns-repeated='5000'><text:p>x</text:p></table:table-cell>";
    let row = format!("<table:table-row>{cells}</table:table-row>");
    let sheet = format!(
        "<office:d xmlns:office='o' xmlns:table='t' xmlns:text='x'><table:table table:name='S'>{row}{row}</table:table></office:d>"
    );
    let kind: (&str, &[u8]) = ("mimetype", b"application/vnd.oasis.opendocument.spreadsheet");
    let path = workshop.file("wide.ods", zip_of(&[kind, ("content.xml", sheet.as_bytes())]));
    let said = import(&workshop, "ods", &path, 1);
    assert!(said.contains("it has more than 900 columns; the others are left out"), "{said}");
}

#[test]
fn the_only_row_of_a_table_is_a_record_and_empty_files_are_named() {
    let workshop = Workshop::new();
    let sheet = "<worksheet><sheetData><row><c t='inlineStr'><is><t>Only a caracal</t></is></c></row></sheetData></worksheet>";
    let book = zip_of(&[
        ("[Content_Types].xml", b"<Types/>"),
        ("xl/workbook.xml", b"<workbook xmlns:r='r'><sheets><sheet name='One' r:id='r1'/></sheets></workbook>"),
        (
            "xl/_rels/workbook.xml.rels",
            b"<Relationships><Relationship Id='r1' Type='x/worksheet' Target='worksheets/sheet1.xml'/></Relationships>",
        ),
        ("xl/worksheets/sheet1.xml", sheet.as_bytes()),
    ]);
    workshop.file("tables/book.xlsx", book);
    workshop.file("tables/names.csv", "numbat,quokka\n");
    workshop.file("tables/marks.html", "<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<TITLE>Bookmarks</TITLE>");
    let folder = Path::new(&workshop.store()).with_file_name("tables");
    let output = workshop.import(&["files", text(&folder)]);
    let said = stderr(&output);
    assert_eq!(record(&workshop, "book.xlsx/One").0["body"], "Only a caracal");
    assert!(said.contains("book.xlsx/One: it has no rows below the first one"), "{said}");
    for name in ["names.csv", "marks.html"] {
        assert!(said.contains(&format!("{name}: it has no records")), "{said}");
    }
}
