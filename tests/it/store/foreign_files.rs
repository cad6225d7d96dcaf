//! A user's own files in the places of fetchwell's files: they are never written, truncated, followed or deleted.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::{binary, fetchwell, import_records, stderr, stdout, text};

const LETTER: &str = "dear Ann, this is precious";

fn import(store: &Path) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lines.ndjson");
    fs::write(&file, r#"{"stream":"notes","key":1,"data":{"body":"needle1"}}"#).unwrap();
    fetchwell(["import", "records", text(&file), "--store", text(store), "--connection", "c"])
}

/// Returns every file of a folder with its content; a link with its target.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut contents = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            contents.insert(path, target.to_str().unwrap().as_bytes().to_vec());
        } else if path.is_dir() {
            contents.append(&mut self::contents(&path));
        } else if path.is_file() {
            contents.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    contents
}

#[track_caller]
fn assert_refused(output: &Output, file: &Path, remedy: &str) {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = stderr(output);
    assert!(said.contains(text(file)) && said.contains(remedy), "{said}");
}

#[test]
fn a_users_file_beside_a_new_store_is_refused_and_left_as_it_is() {
    for suffix in ["-lock", "-wal", "-shm", "-journal"] {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("notes.db");
        let mine = folder.path().join(format!("notes.db{suffix}"));
        fs::write(&mine, LETTER).unwrap();
        for refused in [import(&store), fetchwell(["demo", "--store", text(&store)])] {
            assert_refused(&refused, &mine, "rename or move it");
        }
        assert_eq!(fs::read_to_string(&mine).unwrap(), LETTER, "{suffix}");
        assert!(!store.exists(), "{suffix}");
        fs::rename(&mine, folder.path().join("elsewhere")).unwrap();
        assert!(import(&store).status.success(), "{suffix}");
    }
}

#[test]
fn a_users_file_beside_a_store_is_refused_and_left_as_it_is() {
    for suffix in ["-lock", "-wal", "-shm", "-journal"] {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("notes.db");
        import_records(&store, "c", r#"{"stream":"notes","key":2,"data":{"body":"needle2"}}"#);
        let mine = folder.path().join(format!("notes.db{suffix}"));
        fs::write(&mine, LETTER).unwrap();
        let before = contents(folder.path());
        assert_refused(&import(&store), &mine, "rename or move it");
        let searched = fetchwell(["search", "needle2", "--store", text(&store)]);
        if suffix == "-lock" {
            // A search of a complete index needs no lock.
            assert!(stdout(&searched).contains("c/notes:2"), "{searched:?}");
        } else {
            assert_eq!(searched.status.code(), Some(2), "{searched:?}");
            assert!(stderr(&searched).contains("rename or move it"), "{searched:?}");
        }
        let backup = folder.path().join("backup.db");
        let restored = fetchwell(["restore", text(&backup), "--store", text(&store)]);
        assert_eq!(restored.status.code(), Some(1), "{restored:?}");
        assert_eq!(contents(folder.path()), before, "{suffix}");
        fs::remove_file(&mine).unwrap();
        assert!(import(&store).status.success(), "{suffix}");
    }
}

#[test]
fn a_store_is_created_again_beside_the_shared_memory_of_a_killed_server() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("notes.db");
    fs::write(folder.path().join("notes.db-shm"), vec![0; 32_768]).unwrap();
    fs::write(folder.path().join("notes.db-wal"), "").unwrap();
    assert!(import(&store).status.success());
}

#[cfg(unix)]
#[test]
fn links_and_pipes_beside_a_store_are_not_opened() {
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("precious.txt");
    for suffix in ["", "-lock", "-wal", "-shm", "-journal"] {
        for is_dangling in [false, true] {
            let _ = fs::remove_file(&target);
            if !is_dangling {
                fs::write(&target, LETTER).unwrap();
            }
            let folder = tempfile::tempdir().unwrap();
            let store = folder.path().join("notes.db");
            let link = folder.path().join(format!("notes.db{suffix}"));
            std::os::unix::fs::symlink(&target, &link).unwrap();
            let refused = import(&store);
            assert_eq!(refused.status.code(), Some(1), "{suffix} {refused:?}");
            assert!(link.is_symlink(), "{suffix}");
            assert_eq!(fs::read_to_string(&target).ok().as_deref(), (!is_dangling).then_some(LETTER));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (store, pipe) = (folder.path().join("notes.db"), folder.path().join("notes.db-lock"));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_refused(&import(&store), &pipe, "not a regular file");
}

#[test]
fn files_other_than_stores_are_left_alone_with_their_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("letter.txt"), LETTER).unwrap();
    fs::write(path("long.txt"), LETTER.repeat(100)).unwrap();
    fs::create_dir(path("photos")).unwrap();
    // A database of another program, with changes in its log, that is not open.
    let live = rusqlite::Connection::open(path("live.sqlite")).unwrap();
    live.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)").unwrap();
    live.execute_batch("PRAGMA wal_checkpoint; INSERT INTO t VALUES (2)").unwrap();
    fs::copy(path("live.sqlite"), path("places.sqlite")).unwrap();
    fs::copy(path("live.sqlite-wal"), path("places.sqlite-wal")).unwrap();
    drop(live);
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(path(&format!("live.sqlite{suffix}")));
    }
    let own = rusqlite::Connection::open(path("own.sqlite")).unwrap();
    own.execute_batch("PRAGMA application_id = 77; CREATE TABLE t (a)").unwrap();
    drop(own);
    let before = contents(folder.path());
    assert_eq!(before.len(), 5);
    for name in ["letter.txt", "long.txt", "photos", "places.sqlite", "own.sqlite"] {
        let store = path(name);
        for refused in [
            import(&store),
            fetchwell(["demo", "--store", text(&store)]),
            fetchwell(["search", "x", "--store", text(&store)]),
            fetchwell(["doctor", "--store", text(&store)]),
        ] {
            assert!(!refused.status.success(), "{name}: {refused:?}");
        }
        assert_eq!(contents(folder.path()), before, "{name}");
    }
    assert_refused(&import(&path("places.sqlite")), &path("places.sqlite"), "not a fetchwell store");
}

#[test]
fn a_users_files_in_the_state_directory_are_left_as_they_are() {
    let rotate = |state: &Path| fetchwell(["cursor", "rotate", "--state-dir", text(state)]);
    let folder = tempfile::tempdir().unwrap();
    let state = |name: &str| folder.path().join(name);
    fs::write(state("lock"), LETTER).unwrap();
    assert_refused(&rotate(folder.path()), &state("lock"), "--state-dir");
    assert_eq!(fs::read_to_string(state("lock")).unwrap(), LETTER);
    fs::remove_file(state("lock")).unwrap();
    fs::write(state("cursor-keys.json.new"), LETTER).unwrap();
    assert!(rotate(folder.path()).status.success());
    assert_eq!(fs::read_to_string(state("cursor-keys.json.new")).unwrap(), LETTER);
    fs::write(state("cursor-keys.json"), LETTER).unwrap();
    #[cfg(unix)]
    fs::set_permissions(state("cursor-keys.json"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .unwrap();
    assert_refused(&rotate(folder.path()), &state("cursor-keys.json"), "is damaged");
    assert_eq!(fs::read_to_string(state("cursor-keys.json")).unwrap(), LETTER);
}

#[test]
fn a_server_does_not_write_into_a_users_state_files() {
    let place = tempfile::tempdir().unwrap();
    let store = place.path().join("notes.db");
    assert!(import(&store).status.success());
    for (name, links) in [("cursors.db", false), ("cursors.db-wal", false), ("cursors.db", true)] {
        let state = tempfile::tempdir().unwrap();
        let mine = state.path().join(name);
        let target = place.path().join("target.db");
        if links {
            #[cfg(unix)]
            std::os::unix::fs::symlink(&target, &mine).unwrap();
        } else {
            fs::write(&mine, LETTER).unwrap();
        }
        let serve = ["serve", "--listen", "127.0.0.1:0", "--store", text(&store), "--state-dir"];
        let refused = binary().args(serve).arg(state.path()).output().unwrap();
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(stderr(&refused).contains(name) && stderr(&refused).contains("--state-dir"), "{refused:?}");
        assert!(!target.exists());
        if !links {
            assert_eq!(fs::read_to_string(&mine).unwrap(), LETTER);
        }
    }
}

#[test]
fn a_bundle_replaces_only_bundles() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("notes.mcpb");
    let bundle = || fetchwell(["bundle", "--out", text(&out)]);
    stdout(&bundle());
    stdout(&bundle());
    fs::write(&out, LETTER).unwrap();
    assert_refused(&bundle(), &out, "name another file with --out");
    assert_eq!(fs::read_to_string(&out).unwrap(), LETTER);
    fs::remove_file(&out).unwrap();
    #[cfg(unix)]
    {
        let target = folder.path().join("letter.txt");
        fs::write(&target, LETTER).unwrap();
        std::os::unix::fs::symlink(&target, &out).unwrap();
        assert_refused(&bundle(), &out, "name another file with --out");
        assert_eq!(fs::read_to_string(&target).unwrap(), LETTER);
    }
}
