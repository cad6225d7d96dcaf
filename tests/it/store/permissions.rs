//! The modes of files that fetchwell creates (0600) and of folders (0700), under any umask.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::{HttpServer, binary, get, stdout, text};

/// Returns the binary with umask 0.
fn open_to_all() -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "umask 000; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_fetchwell")]);
    for (name, value) in binary().get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

fn run(home: &Path, arguments: &[&str]) -> Output {
    let folders = ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"];
    let mut command = open_to_all();
    command.env("HOME", home).envs(folders.map(|name| (name, home.join(name))));
    command.args(arguments).current_dir(home).output().unwrap()
}

/// Fails and lists all files and folders below a folder that others can read.
#[track_caller]
fn assert_private(folder: &Path) -> usize {
    let (mut folders, mut open, mut checked) = (vec![folder.to_owned()], Vec::new(), 0);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let (mode, expect) =
                (metadata.permissions().mode() & 0o777, if metadata.is_dir() { 0o700 } else { 0o600 });
            if mode != expect {
                open.push(format!("{mode:o} {}", path.display()));
            }
            checked += 1;
            if metadata.is_dir() {
                folders.push(path);
            }
        }
    }
    assert!(open.is_empty(), "open to others:\n{}", open.join("\n"));
    checked
}

#[test]
fn everything_that_commands_and_servers_create_is_private() {
    let input = tempfile::tempdir().unwrap();
    let lines = input.path().join("lines.ndjson");
    fs::write(&lines, r#"{"stream":"notes","key":1,"data":{"body":"needle1"}}"#).unwrap();
    let place = tempfile::tempdir().unwrap();
    let home = place.path();
    for arguments in [
        &["import", "records", text(&lines), "--store", "notes.db", "--connection", "c"][..],
        &["demo"],
        &["demo", "--store", "a/b/demo.db"],
        &["search", "needle1", "--store", "notes.db"],
        &["backup", "backup.db", "--store", "notes.db"],
        &["restore", "backup.db", "--store", "notes.db"],
        &["restore", "backup.db", "--store", "new.db"],
        &["search", "needle1", "--store", "new.db"],
        &["bundle", "--out", "notes.mcpb"],
        &["source", "add", "notes", "--store", "notes.db"],
        &["cursor", "rotate", "--state-dir", "keys"],
    ] {
        stdout(&run(home, arguments));
        assert_private(home);
    }
    let (store, state) = (home.join("notes.db"), home.join("state"));
    let server = HttpServer::start_with(
        open_to_all(),
        "127.0.0.1:0",
        ["--store", text(&store), "--state-dir", text(&state)],
    );
    for path in ["/v1/streams", "/api/v1/search?q=needle1", "/v1/search?q=needle1&limit=1"] {
        get(&server.address, path);
    }
    server.wait_until("calls are recorded", || state.join("telemetry.db").exists());
    assert!(home.join("notes.db-wal").exists() && home.join("notes.db-shm").exists());
    let checked = assert_private(home);
    assert!(checked > 40, "{checked}");
    server.stop();
    assert_private(home);
}
