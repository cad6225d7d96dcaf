//! Stores in places that are read-only: a file, a folder and a mount.

#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::{HttpServer, binary, get, import_records, starter, stderr, stdout, text};

/// Returns the built binary as a process that cannot override file modes. The named folder is mounted read-only for it.
/// `None` if the system allows no namespaces.
fn without_rights(mount: Option<&Path>) -> Option<Command> {
    let arguments: &[&str] =
        if mount.is_some() { &["--user", "--map-root-user", "--mount"] } else { &["--user"] };
    let status = Command::new("unshare").args(arguments).arg("true").stderr(Stdio::null()).status();
    if !status.is_ok_and(|status| status.success()) {
        return None;
    }
    let mut command = starter("unshare");
    command.args(arguments);
    if let Some(mount) = mount {
        let script = "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" && exec \"$@\"";
        command.args(["sh", "-c", script]).arg(mount);
    }
    command.arg(binary().get_program());
    Some(command)
}

fn line(key: &str, word: &str) -> String {
    format!(r#"{{"stream":"notes","key":"{key}","data":{{"title":"{key}","body":"the {word} text"}}}}"#)
}

/// Returns a store in a folder of its own, with a complete index and without a write-ahead log.
fn store() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let shelf = folder.path().join("shelf");
    fs::create_dir(&shelf).unwrap();
    let store = shelf.join("store.db");
    import_records(&store, "c", &line("n1", "needle"));
    assert!(!shelf.join("store.db-wal").exists());
    (folder, store)
}

/// Sets the modes of a folder and its contents.
fn set_modes(folder: &Path, folders: u32, files: u32) {
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    set(folder, 0o755);
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { set_modes(&path, folders, files) } else { set(&path, files) }
    }
    set(folder, folders);
}

#[track_caller]
fn run(mount: Option<&Path>, arguments: &[&str]) -> Option<Output> {
    Some(without_rights(mount)?.args(arguments).output().unwrap())
}

/// Checks that every kind of read works.
#[track_caller]
fn check_reads(mount: Option<&Path>, store: &Path) {
    for (arguments, expect) in [
        (["search", "needle"].as_slice(), "c/notes:n1"),
        (&["fetch", "c/notes:n1"], "the needle text"),
        (&["connections"], "notes"),
    ] {
        let Some(output) = run(mount, &[arguments, &["--store", text(store)]].concat()) else { return };
        assert!(stdout(&output).contains(expect), "{arguments:?} {output:?}");
        assert!(!stderr(&output).contains("cannot"), "{output:?}");
    }
    let Some(output) =
        run(mount, &["import", "csv", "/dev/null", "--store", text(store), "--connection", "c"])
    else {
        return;
    };
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn read_only_file_folder_and_mount_are_read() {
    let (_folder, store) = store();
    let shelf = store.parent().unwrap();
    fs::set_permissions(&store, fs::Permissions::from_mode(0o444)).unwrap();
    check_reads(None, &store);
    set_modes(shelf, 0o555, 0o444);
    check_reads(None, &store);
    set_modes(shelf, 0o755, 0o644);
    check_reads(Some(shelf), &store);
}

#[test]
fn import_into_a_read_only_store_is_an_error() {
    let (folder, store) = store();
    let file = folder.path().join("more.ndjson");
    fs::write(&file, line("n2", "second")).unwrap();
    set_modes(store.parent().unwrap(), 0o555, 0o444);
    let arguments = ["import", "records", text(&file), "--store", text(&store), "--connection", "c"];
    let Some(output) = run(None, &arguments) else { return };
    set_modes(store.parent().unwrap(), 0o755, 0o644);
    let said = stderr(&output);
    assert!(!output.status.success() && said.contains("cannot be written"), "{said}");
    assert!(
        said.contains("change its permissions") && !said.contains("full") && !said.contains("locked"),
        "{said}"
    );
}

#[test]
fn read_only_store_without_an_index_is_read_and_says_what_to_run() {
    let (_folder, store) = store();
    let shelf = store.parent().unwrap();
    fs::remove_dir_all(shelf.join("store.db-index")).unwrap();
    let Some(output) = run(Some(shelf), &["fetch", "c/notes:n1", "--store", text(&store)]) else { return };
    assert!(stdout(&output).contains("the needle text"), "{output:?}");
    let Some(output) = run(Some(shelf), &["search", "needle", "--store", text(&store)]) else { return };
    let said = stderr(&output);
    assert!(!output.status.success() && said.contains("has no search index of this version"), "{said}");
    assert!(said.contains("run `fetchwell search` on it once where it can be written"), "{said}");
}

#[test]
fn changes_of_other_processes_are_seen_through_a_read_only_mount() {
    let (_folder, store) = store();
    let shelf = store.parent().unwrap();
    let Some(command) = without_rights(Some(shelf)) else { return };
    let server = HttpServer::start_with(command, "127.0.0.1:0", ["--store", text(&store)]);
    let has = |key: &str, word: &str| {
        let record = get(&server.address, &format!("/v1/streams/notes/records/{key}"));
        record.status == 200 && record.text.contains(word)
    };
    assert!(has("n1", "needle") && !has("n2", "second"));
    import_records(&store, "c", &line("n2", "second"));
    assert!(has("n2", "second"), "another process imported it");
    import_records(&store, "c", &line("n1", "third"));
    assert!(has("n1", "third") && has("n2", "second"));
    let found = get(&server.address, "/v1/search?q=third").text;
    assert!(found.contains("n1"), "{found}");
    // Another process has the store open, with changes in its log.
    let other = rusqlite::Connection::open(&store).unwrap();
    other
        .execute("UPDATE records SET data = replace(data, 'second', 'fourth') WHERE key = 'n2'", ())
        .unwrap();
    assert!(fs::metadata(shelf.join("store.db-wal")).unwrap().len() > 0);
    assert!(has("n2", "fourth") && has("n1", "third"));
    drop(other);
    assert!(has("n2", "fourth"));
}

#[test]
fn log_that_cannot_be_read_is_named() {
    let (folder, store) = store();
    let other = rusqlite::Connection::open(&store).unwrap();
    other.execute("UPDATE records SET data = replace(data, 'needle', 'pin')", ()).unwrap();
    let copy = folder.path().join("copy");
    fs::create_dir(&copy).unwrap();
    for name in ["store.db", "store.db-wal"] {
        fs::copy(store.with_file_name(name), copy.join(name)).unwrap();
    }
    let copied = copy.join("store.db");
    let Some(output) = run(Some(&copy), &["fetch", "c/notes:n1", "--store", text(&copied)]) else { return };
    let said = stderr(&output);
    assert!(
        !output.status.success() && said.contains("store.db-wal; run `fetchwell connections --store`"),
        "{said}"
    );
    // The command that the error names works.
    stdout(&binary().args(["connections", "--store", text(&copied)]).output().unwrap());
    let Some(output) = run(Some(&copy), &["fetch", "c/notes:n1", "--store", text(&copied)]) else { return };
    assert!(stdout(&output).contains("the pin text"), "{output:?}");
}
