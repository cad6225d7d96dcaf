//! A full disk: a small file system in memory, mounted in a namespace of the tested process.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use serde_json::json;

use crate::support::{Api, HttpServer, get, import_records, stderr, text, with_disk};

/// Returns a folder as a process with its own mounts sees it.
fn inside(process: &Child, folder: &Path) -> PathBuf {
    PathBuf::from(format!("/proc/{}/root{}", process.id(), folder.display()))
}

/// Fills a disk to its last byte.
fn fill(folder: &Path) {
    let file = folder.join("filler");
    for piece in [64 * 1024, 4 * 1024] {
        let block = vec![b'x'; piece];
        while let Ok(mut filler) = fs::OpenOptions::new().create(true).append(true).open(&file) {
            if std::io::Write::write_all(&mut filler, &block).is_err() {
                break;
            }
        }
    }
}

fn lines(count: usize, bytes: usize) -> String {
    let line = |number: usize| {
        let data = json!({"title": format!("letter {number}"), "body": "lorem ".repeat(bytes / 6)});
        json!({"stream": "letters", "key": format!("l{number:05}"), "data": data}).to_string() + "\n"
    };
    (0..count).map(line).collect()
}

#[test]
fn pages_continue_within_the_process_while_the_disk_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let (store, state) = (folder.path().join("store.db"), folder.path().join("state"));
    import_records(&store, "cin_a", &lines(300, 100));
    fs::create_dir(&state).unwrap();
    let Some(command) = with_disk(&state, 1_600) else { return };
    let server = HttpServer::start_with(
        command,
        "127.0.0.1:0",
        ["--store", text(&store), "--state-dir", text(&state)],
    );
    let api = Api { folder: tempfile::tempdir().unwrap(), server };
    let server = &api.server;
    let first = api.ok("/api/v1/letters?limit=5");
    assert_eq!(
        (first["meta"]["hasMore"].as_bool(), first["nextCursor"].is_string()),
        (Some(true), true),
        "{first}"
    );
    fill(&inside(&server.process, &state));
    for _ in 0..20 {
        let page = api.ok("/api/v1/letters?limit=5");
        let cursor = page["nextCursor"].as_str().unwrap();
        let second = api.ok(&format!("/api/v1/letters?cursor={cursor}"));
        assert_eq!(second["items"].as_array().unwrap().len(), 5, "{second}");
        assert_ne!(second["items"], page["items"]);
    }
    server.wait_until("the full disk is logged", || server.log().contains("free space on its disk"));
    // A result of one page needs no cursor.
    api.ok("/api/v1/letters/l00001");
    // The record-server API gives positions that need no disk.
    let page = get(&server.address, "/v1/streams/letters/records?limit=5").json();
    assert_eq!((page["has_more"].as_bool(), page["next_cursor"].is_string()), (Some(true), true), "{page}");
    let found = api.tool("query_records", &json!({"stream": "letters", "limit": 5}));
    let second = api.tool("query_records", &json!({"cursor": found["next_cursor"]}));
    assert_eq!(second["records"].as_array().unwrap().len(), 5, "{second}");
    fs::remove_file(inside(&server.process, &state).join("filler")).unwrap();
    assert_eq!(api.ok("/api/v1/letters?limit=5")["meta"]["hasMore"], true);
    server.wait_until("cursors are stored again", || server.log().contains("cursors are stored again"));
    let lines = server.log().matches("cursors are kept in memory").count();
    assert_eq!(lines, 1, "{}", server.log());
}

#[test]
fn import_on_a_full_disk_names_it_and_counts_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let file = folder.path().join("letters.ndjson");
    fs::write(&file, lines(9_000, 1_000)).unwrap();
    let Some(mut command) = with_disk(&disk, 6 * 1024) else { return };
    let store = disk.join("store.db");
    let arguments = ["import", "records", text(&file), "--store", text(&store), "--connection", "cin_a"];
    let ended = command.args(arguments).output().unwrap();
    let (said, counted) = (stderr(&ended), String::from_utf8_lossy(&ended.stdout).into_owned());
    assert!(!ended.status.success(), "{said}");
    assert!(said.contains(&format!("the disk of {} is full", disk.display())), "{said}");
    assert!(said.contains("run the command again"), "{said}");
    assert!(!said.contains("permissions") && !said.contains("delete"), "{said}");
    assert!(counted.contains("added"), "{counted}{said}");
    let index = format!("the search index of the store {} cannot be written", store.display());
    assert!(said.contains(&index) && said.contains("free space there"), "{said}");
    for foreign in ["IoError", "thread", "os error", "code: 28", "Internal"] {
        assert!(!said.contains(foreign), "{foreign}: {said}");
    }
}
