//! `fetchwell import markdown` of single notes, and of folders without any.

use std::path::Path;

use serde_json::json;

use crate::import::commands::Workshop;
use crate::import::values::record;
use crate::support::{stderr, text};

#[test]
fn a_folder_without_notes_is_an_error_that_counts_its_files() {
    let workshop = Workshop::new();
    for name in ["f/a.txt", "f/b/b.TXT", "f/c.pdf", "f/.hidden.md", "f/Makefile"] {
        workshop.file(name, "x");
    }
    let folder = Path::new(&workshop.store()).with_file_name("f");
    let output = workshop.import(&["markdown", text(&folder)]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("it has no Markdown file (.md, .markdown, .mdx); found: 2 .txt, 1 without an ending, 1 .pdf, 1 hidden"),
        "{said}"
    );
    assert!(output.stdout.is_empty() && !Path::new(&workshop.store()).exists());
    std::fs::create_dir(folder.join("empty")).unwrap();
    let said = stderr(&workshop.import(&["markdown", text(&folder.join("empty"))]));
    assert!(said.contains("it has no Markdown file (.md, .markdown, .mdx); it is empty"), "{said}");
}

#[test]
fn a_single_note_is_imported() {
    let workshop = Workshop::new();
    let note =
        workshop.file("vault/Trip to Oslo.md", "---\ncreated: 2026-04-01\ntags: a, b\n---\n## Plan\nferry\n");
    assert_eq!(workshop.counts(&["markdown", &note]), [1, 0, 0, 0, 0]);
    assert_eq!(workshop.fetch("c/documents/Trip%20to%20Oslo.md")["title"], "Trip to Oslo");
    let (data, time) = record(&workshop, "Trip to Oslo.md");
    assert_eq!((&data["tags"], time.as_deref()), (&json!(["a", "b"]), Some("2026-04-01")));
    // Without a time in its front matter, a note has the time of its file.
    let plain = workshop.file("vault/plain.md", "no front matter\n");
    let changed = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    std::fs::File::options().write(true).open(&plain).unwrap().set_modified(changed).unwrap();
    assert_eq!(workshop.counts(&["markdown", &plain]), [1, 0, 0, 0, 0]);
    assert_eq!(record(&workshop, "plain.md").1.as_deref(), Some("2023-11-14T22:13:20Z"));
    #[cfg(unix)]
    {
        let link = Path::new(&note).with_file_name("link.md");
        std::os::unix::fs::symlink(&note, &link).unwrap();
        assert_eq!(workshop.counts(&["markdown", text(&link)]), [1, 0, 0, 0, 0]);
    }
}
