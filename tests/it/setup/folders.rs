//! Folders of files that `fetchwell setup` offers: counted by kind, and imported only if the user names them.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::Home;
use super::choices::on_terminal;
use crate::support::{binary, stderr, stdout, text};

/// A home folder with documents, notes and an empty desktop, of which the system has the names in another language.
fn german() -> Home {
    let home = Home::new();
    home.write(
        ".config/user-dirs.dirs",
        "# broken lines are passed over\nXDG_DOCUMENTS_DIR=\"$HOME/Dokumente\"\nXDG_DESKTOP_DIR=\"$HOME/\"\nXDG_DOWNLOAD_DIR=nowhere\n=\n",
    );
    for name in ["Brief.DOCX", "plan.txt", "table.csv", "photo.jpg", ".hidden.pdf", "node_modules/x/a.md"] {
        home.write(&format!("Dokumente/{name}"), "id,name\n1,Ann\n");
    }
    home.write("Notizen/a.txt", "The heron waits.\n");
    home.write("Notizen/b.txt", "The heron leaves.\n");
    fs::create_dir(home.path("Desktop")).unwrap();
    home
}

fn found(home: &Home) -> Vec<Value> {
    let output = home.setup(&["--dry-run", "--json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    answer["found"].as_array().unwrap().clone()
}

#[test]
fn folders_are_counted_by_kind_and_imported_only_by_name() {
    let home = german();
    let listed = found(&home);
    let names: Vec<&Value> = listed.iter().map(|folder| &folder["program"]).collect();
    assert_eq!(names, ["Documents", "Notes"], "an empty folder is not offered: {listed:?}");
    assert!(listed.iter().all(|folder| folder["is_default"] == false && folder["group"] == "folder"));
    assert_eq!(
        listed[0]["files"],
        json!({"total": 4, "is_partial": false, "kinds": {"csv": 1, "docx": 1, "image": 1, "text": 1}})
    );
    let shown = stdout(&home.setup(&["--dry-run"]));
    let counts = "4 files: 1 csv, 1 docx, 1 image, 1 text";
    assert!(shown.contains("~/Dokumente") && shown.contains(counts), "{shown}");
    assert!(!shown.contains("would import"), "{shown}");
    let yes = stdout(&home.setup(&["--yes"]));
    assert!(!yes.contains("added") && !home.store().exists(), "{yes}");
    // A folder that is named becomes an import as others do, and one that could not be read completely is partial.
    let notes = home.setup(&["--import", text(&home.path("Notizen")), "--no-clients"]);
    assert!(notes.status.success() && stdout(&notes).contains("notizen: 2 added"), "{notes:?}");
    home.write("Dokumente/broken.pdf", "%PDF-1.7\nnothing");
    let documents = home.setup(&["--import", text(&home.path("Dokumente")), "--no-clients"]);
    assert_eq!(documents.status.code(), Some(3), "{documents:?}");
    assert!(stderr(&documents).contains("not read: 1 damaged or incomplete; "), "{documents:?}");
    assert!(found(&home).iter().all(|folder| folder["is_imported"] == true));
}

#[test]
fn a_user_on_a_terminal_chooses_folders_by_number() {
    let home = Home::with_records();
    // Enter chooses all but the folders.
    let output = on_terminal(&home, "none\\nn\\nn\\nn\\n");
    let shown = stdout(&output);
    assert!(shown.contains("Enter for all but the folders, `all`, `none`, or numbers"), "{shown}");
    // The recipes are in the documents.
    let output = on_terminal(&home, "2,5\\nn\\nn\\nn\\n");
    let shown = stdout(&output);
    for part in ["recipes is imported as a part of ", "documents: 2 added"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("recipes: 2 added"), "{shown}");
}

#[test]
fn hostile_folders_are_counted_within_bounds_and_shown_without_escapes() {
    let home = Home::new();
    let name = "Docu\u{1b}[31mments";
    home.write(".config/user-dirs.dirs", &format!("XDG_DOCUMENTS_DIR=\"$HOME/{name}\"\n"));
    home.write(&format!("{name}/a\u{1b}]0;x\u{7}.txt"), "The ibis.\n");
    symlink("..", home.path(name).join("up")).unwrap();
    symlink(home.path(name), home.path(name).join("cycle")).unwrap();
    symlink("/usr", home.path("Desktop")).unwrap();
    fs::create_dir(home.path("Downloads")).unwrap();
    for number in 0..50_002 {
        fs::File::create(home.path("Downloads").join(number.to_string())).unwrap();
    }
    let output = home.setup(&["--dry-run"]);
    let shown = stdout(&output) + &stderr(&output);
    assert!(!shown.contains('\u{1b}') && shown.contains("1 file: 1 text"), "{shown}");
    let downloads = shown.lines().find(|line| line.contains("~/Downloads")).unwrap();
    assert!(downloads.contains("more than ") && downloads.contains(" files"), "{downloads}");
    assert!(!shown.contains("~/Desktop") && !shown.contains("/usr"), "{shown}");
    let missing = binary().arg("setup").env("HOME", "/no/such/home").output().unwrap();
    assert_eq!(missing.status.code(), Some(1), "{missing:?}");
    assert!(stderr(&missing).contains("does not exist; set HOME to a folder that exists"), "{missing:?}");
}
