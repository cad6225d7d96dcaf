//! The files of the search index: their owner, and the repair after they are damaged, lost or replaced, while a server
//! runs and between runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fetchwell_source::{BoundSource, SearchQuery};
use fetchwell_sqlite::{IndexState, SqliteStore};
use serde_json::{Value, json};

use crate::support::{HttpServer, StdioServer, binary, fetchwell, get, import_records, stderr, stdout, text};

/// Imports records `from..to` of a stream. Each has one unique word, and common words that make the index files too
/// long to be cached in memory.
fn import(path: &Path, from: usize, to: usize) {
    let line = |number: usize| {
        let words: Vec<String> = (0..12).map(|word| format!("w{}", number * 31 % 977 * 12 + word)).collect();
        let body = format!("needle{number} in a haystack of {}", words.join(" "));
        json!({"stream": "notes", "key": number, "data": {"body": body}}).to_string()
    };
    import_records(path, "c", &(from..to).map(line).collect::<Vec<_>>().join("\n"));
}

fn store_of(records: usize) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.db");
    import(&path, 0, records);
    (folder, path)
}

fn index_of(path: &Path) -> PathBuf {
    path.with_file_name("notes.db-index")
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Copies the files of a folder as `cp` does: an existing file is truncated and written.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in files_in(from) {
        fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
    }
}

/// Makes a folder contain the files of another folder, and no others.
fn restore(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    copy(from, to);
}

fn cli_search(path: &Path, words: &str) -> std::process::Output {
    fetchwell(["search", words, "--store", text(path)])
}

/// Checks that the commands find a record.
#[track_caller]
fn assert_searchable(path: &Path, number: usize) {
    let output = cli_search(path, &format!("needle{number}"));
    assert!(output.status.success(), "{output:?}");
    assert!(stdout(&output).contains(&format!("c/notes:{number}")), "{output:?}");
}

/// A server over stdio that searches.
struct Searcher(StdioServer);

impl Searcher {
    fn start(path: &Path) -> Self {
        let mut server = StdioServer::start(["--store", text(path)]);
        server.initialize("2025-06-18");
        Self(server)
    }

    fn search(&mut self, words: &str) -> Value {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "search", "arguments": {"query": words}}});
        self.0.send(&call.to_string());
        self.0.receive()["result"].clone()
    }

    /// Checks that a search for the word of a record finds that record only.
    #[track_caller]
    fn assert_finds(&mut self, number: usize) {
        let answer = self.search(&format!("needle{number}"));
        assert!(is_found(&answer, number), "{answer}");
    }

    /// Waits until a search for the word of a record finds it. On a busy machine, a search can run out of time while it
    /// rebuilds the index, or find that another server is rebuilding it.
    #[track_caller]
    fn wait_until_found(&mut self, number: usize) {
        let guard = Instant::now() + Duration::from_secs(120);
        loop {
            let answer = self.search(&format!("needle{number}"));
            if is_found(&answer, number) {
                return;
            }
            assert!(answer["isError"] == true && Instant::now() < guard, "{answer}");
            std::thread::park_timeout(Duration::from_millis(100));
        }
    }
}

fn is_found(answer: &Value, number: usize) -> bool {
    let answer = answer.to_string();
    answer.contains(&format!("c/notes:{number}\"")) || answer.contains(&format!("c/notes:{number}\\\""))
}

#[test]
fn a_users_folder_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.db");
    let index = index_of(&path);
    let precious = [("letters.txt", "dear Ann"), ("meta.json", r#"{"segments": "of an orange"}"#)];
    fs::create_dir_all(index.join("photos")).unwrap();
    fs::write(index.join("photos/1.jpg"), "a photo").unwrap();
    precious.iter().for_each(|(name, content)| fs::write(index.join(name), content).unwrap());
    let lines = folder.path().join("lines.ndjson");
    fs::write(&lines, r#"{"stream":"notes","key":1,"data":{"body":"needle1"}}"#).unwrap();
    let import = ["import", "records", text(&lines), "--store", text(&path), "--connection", "c"];
    let assert_untouched = || {
        precious.iter().for_each(|(name, content)| {
            assert_eq!(fs::read_to_string(index.join(name)).unwrap(), *content);
        });
        assert_eq!(fs::read_to_string(index.join("photos/1.jpg")).unwrap(), "a photo");
        assert_eq!(files_in(&index).len(), 3);
    };

    // The records are imported, and the remedy is printed.
    let imported = fetchwell(import);
    assert_eq!(imported.status.code(), Some(1), "{imported:?}");
    assert!(String::from_utf8_lossy(&imported.stdout).contains("1 added"), "{imported:?}");
    let said = stderr(&imported);
    assert!(said.contains("notes.db-index") && said.contains("rename or move it"), "{said}");
    assert_untouched();
    let fetched = fetchwell(["fetch", "c/notes:1", "--store", text(&path)]);
    assert!(stdout(&fetched).contains("needle1"), "{fetched:?}");

    let searched = cli_search(&path, "needle1");
    assert_eq!(searched.status.code(), Some(2), "{searched:?}");
    assert!(stderr(&searched).contains("rename or move it"), "{searched:?}");
    let mut server = Searcher::start(&path);
    let refused = server.search("needle1");
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(refused.to_string().contains("rename or move it"), "{refused}");
    let checked = fetchwell(["doctor", "--store", text(&path)]);
    assert!(!checked.status.success(), "{checked:?}");
    assert_untouched();

    // The server works again as soon as the folder is moved.
    fs::rename(&index, folder.path().join("elsewhere")).unwrap();
    server.assert_finds(1);
    assert!(fetchwell(import).status.success());
    assert_searchable(&path, 1);
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_instead_of_the_folder_is_not_followed() {
    let (folder, path) = store_of(3);
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(index_of(&path), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, index_of(&path)).unwrap();
    let before: Vec<_> =
        files_in(&elsewhere).into_iter().map(|file| (fs::read(&file).unwrap(), file)).collect();
    let searched = cli_search(&path, "needle1");
    assert_eq!(searched.status.code(), Some(2), "{searched:?}");
    assert!(stderr(&searched).contains("symbolic link"), "{searched:?}");
    let after: Vec<_> =
        files_in(&elsewhere).into_iter().map(|file| (fs::read(&file).unwrap(), file)).collect();
    assert_eq!(before, after);
}

#[test]
fn a_new_store_replaces_the_index_of_a_deleted_one() {
    let (folder, path) = store_of(3);
    fs::write(index_of(&path).join("notes-of-mine.txt"), "mine").unwrap();
    for suffix in ["", "-wal", "-shm", "-lock"] {
        let _ = fs::remove_file(folder.path().join(format!("notes.db{suffix}")));
    }
    import(&path, 10, 12);
    assert_searchable(&path, 11);
    // The exit code is 1 if nothing is found.
    let deleted = cli_search(&path, "needle2");
    assert_eq!((deleted.status.code(), deleted.stdout.as_slice()), (Some(1), &b""[..]), "{deleted:?}");
    assert_eq!(fs::read_to_string(index_of(&path).join("notes-of-mine.txt")).unwrap(), "mine");
}

#[test]
fn a_folder_of_an_earlier_version_is_taken_over_by_its_stores_id_alone() {
    let (_folder, path) = store_of(3);
    let sqlite = rusqlite::Connection::open(&path).unwrap();
    let uuid: String = sqlite.query_row("SELECT uuid FROM store", (), |row| row.get(0)).unwrap();
    let index = index_of(&path);
    let segment = index.join("0123456789abcdef0123456789abcdef.term");
    let earlier = |store: &str| {
        fs::remove_dir_all(&index).unwrap();
        fs::create_dir(&index).unwrap();
        let payload = json!({"layout": 1, "store": store, "version": 3}).to_string();
        let meta =
            json!({"index_settings": {}, "segments": [], "schema": [], "opstamp": 3, "payload": payload});
        fs::write(index.join("meta.json"), meta.to_string()).unwrap();
        fs::write(&segment, "terms").unwrap();
    };
    earlier("00112233445566778899AABBCCDDEEFF");
    let refused = cli_search(&path, "needle1");
    assert!(stderr(&refused).contains("another store"), "{refused:?}");
    assert!(segment.exists());
    earlier(&uuid);
    assert_searchable(&path, 1);
    assert!(!segment.exists() && index.join("fetchwell-index.json").exists());
}

/// Damage to one file.
type Damage = (&'static str, fn(&Path));

fn flip(file: &Path, at: impl Fn(usize) -> usize) {
    let mut bytes = fs::read(file).unwrap();
    if !bytes.is_empty() {
        let at = at(bytes.len());
        bytes[at] ^= 0x55;
        fs::write(file, bytes).unwrap();
    }
}

const DAMAGES: [Damage; 7] = [
    ("first byte flipped", |file| flip(file, |_| 0)),
    ("middle byte flipped", |file| flip(file, |len| len / 2)),
    ("last byte flipped", |file| flip(file, |len| len - 1)),
    ("cut in half", |file| {
        let bytes = fs::read(file).unwrap();
        fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
    }),
    ("emptied", |file| fs::write(file, "").unwrap()),
    ("deleted", |file| fs::remove_file(file).unwrap()),
    ("replaced by a folder", |file| {
        fs::remove_file(file).unwrap();
        fs::create_dir(file).unwrap();
    }),
];

/// Every kind of damage to every kind of file: an open reader, and one that opens the index, both find all records.
#[tokio::test]
async fn damage_to_any_file_is_detected_and_repaired() {
    let (folder, path) = store_of(40);
    // An index with deletions has additional files.
    import_records(&path, "c", r#"{"stream":"notes","key":7,"op":"delete"}"#);
    let (index, intact) = (index_of(&path), folder.path().join("intact"));
    copy(&index, &intact);
    let names: Vec<_> = files_in(&intact).iter().map(|file| file.file_name().unwrap().to_owned()).collect();
    assert!(names.len() > 8, "{names:?}");
    let open = || SqliteStore::open("store".parse().unwrap(), &path).unwrap();
    let keys = |store: SqliteStore, words: &'static str| async move {
        let page = BoundSource::from(store).search(&SearchQuery::new(words, 50)).await.unwrap();
        (page.hits.len(), page.notes)
    };
    for name in &names {
        for (what, damage) in DAMAGES {
            restore(&intact, &index);
            let running = open();
            assert_eq!(keys(running.clone(), "haystack").await, (39, vec![]));
            damage(&index.join(name));
            let damaged = format!("{what}: {}", name.display());
            assert_eq!(keys(running, "haystack").await, (39, vec![]), "running, {damaged}");
            let fresh = open();
            assert_eq!(keys(fresh.clone(), "haystack").await, (39, vec![]), "{damaged}");
            assert_eq!(keys(fresh.clone(), "needle39").await, (1, vec![]), "{damaged}");
            assert_eq!(fresh.verify_index().unwrap(), IndexState::Complete, "{damaged}");
        }
    }
}

#[test]
fn commands_repair_a_damaged_index_and_report_it() {
    let (folder, path) = store_of(40);
    let (index, intact) = (index_of(&path), folder.path().join("intact"));
    copy(&index, &intact);
    let postings =
        files_in(&index).into_iter().find(|file| file.extension().is_some_and(|is| is == "idx")).unwrap();
    flip(&postings, |len| len / 2);
    assert_searchable(&path, 39);

    restore(&intact, &index);
    flip(&postings, |len| len / 2);
    let checked = stdout(&fetchwell(["doctor", "--store", text(&path)]));
    assert!(checked.contains("rebuilt for 40 records") && checked.contains(".idx"), "{checked}");
    let checked = stdout(&fetchwell(["doctor", "--store", text(&path)]));
    assert!(checked.lines().any(|line| line.contains("index") && line.ends_with("complete")), "{checked}");

    // An import repairs a damaged index before it adds to it.
    restore(&intact, &index);
    fs::remove_file(&postings).unwrap();
    import(&path, 40, 41);
    assert_searchable(&path, 3);
    assert_searchable(&path, 40);
}

#[cfg(unix)]
#[test]
fn a_pipe_instead_of_an_index_file_is_damage_and_does_not_block() {
    let (_folder, path) = store_of(40);
    let index = index_of(&path);
    let segment = files_in(&index).into_iter().find(|file| file.extension().is_some_and(|is| is == "term"));
    for file in [segment.unwrap(), index.join("meta.json"), index.join(".managed.json")] {
        fs::remove_file(&file).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
        assert_searchable(&path, 39);
    }
}

#[test]
fn a_running_server_survives_truncation_of_every_index_file_and_loss_of_the_folder() {
    let (_folder, path) = store_of(3_000);
    let index = index_of(&path);
    let mut server = Searcher::start(&path);
    server.assert_finds(1);
    for length in [100, 0] {
        for file in files_in(&index) {
            fs::File::options().write(true).open(&file).unwrap().set_len(length).unwrap();
        }
        [2, 1_500, 2_999].into_iter().for_each(|number| server.assert_finds(number));
        let all = server.search("haystack");
        assert_ne!(all["isError"], true, "{all}");
    }
    fs::remove_dir_all(&index).unwrap();
    [3, 1_501, 2_998].into_iter().for_each(|number| server.assert_finds(number));
    import(&path, 3_000, 3_001);
    [4, 3_000].into_iter().for_each(|number| server.assert_finds(number));
    let (_, status, log) = server.0.end();
    assert!(status.success(), "{status} {log}");
    assert!(!log.contains("internal error (panic)"), "{log}");
    assert_searchable(&path, 5);
}

#[test]
fn a_running_server_survives_a_backup_that_is_copied_over_its_index_while_it_searches() {
    let (folder, path) = store_of(1_500);
    let (index, backup) = (index_of(&path), folder.path().join("backup"));
    copy(&index, &backup);
    import(&path, 1_500, 2_000);
    let newer = folder.path().join("newer");
    copy(&index, &newer);
    let mut stdio = Searcher::start(&path);
    let http = HttpServer::start(["--store", text(&path)]);
    let done = Arc::new(AtomicBool::new(false));
    let copying = std::thread::spawn({
        let done = Arc::clone(&done);
        move || {
            while !done.load(Ordering::Relaxed) {
                [&backup, &newer].into_iter().for_each(|from| copy(from, &index));
            }
        }
    });
    let started = Instant::now();
    let mut number = 0;
    while started.elapsed() < Duration::from_secs(3) {
        number = (number + 7) % 2_000;
        let answer = stdio.search(&format!("needle{number}"));
        // An incomplete answer must be an error or carry a note; it is never silently empty.
        let says_why = answer["isError"] == true || answer.to_string().contains("not searchable yet");
        assert!(is_found(&answer, number) || says_why, "{answer}");
        assert_eq!(get(&http.address, "/health/live").status, 200);
        let url = format!("/api/v1/search?q=needle{number}");
        assert_ne!(get(&http.address, &url).status, 0);
    }
    done.store(true, Ordering::Relaxed);
    copying.join().unwrap();
    [0, 999, 1_999].into_iter().for_each(|number| stdio.wait_until_found(number));
    let (_, status, log) = stdio.0.end();
    assert!(status.success(), "{status} {log}");
    http.stop();
    [0, 999, 1_999].into_iter().for_each(|number| assert_searchable(&path, number));
}

#[test]
fn health_reports_and_repairs_a_damaged_index() {
    let (_folder, path) = store_of(40);
    let server = HttpServer::start(["--store", text(&path)]);
    let health = || get(&server.address, "/health").json();
    assert_eq!(health()["status"], "healthy");
    let postings =
        files_in(&index_of(&path)).into_iter().find(|file| file.extension().is_some_and(|is| is == "idx"));
    fs::remove_file(postings.unwrap()).unwrap();
    let degraded = health();
    assert_eq!(degraded["status"], "degraded", "{degraded}");
    assert_eq!(degraded["unavailable"][0]["code"], "search_index_damaged", "{degraded}");
    server.wait_until("the index is rebuilt", || health()["status"] == "healthy");
    assert_searchable(&path, 39);
    fs::remove_dir_all(index_of(&path)).unwrap();
    assert_eq!(health()["unavailable"][0]["code"], "search_index_missing");
    server.wait_until("the index is rebuilt", || health()["status"] == "healthy");
    fs::remove_dir_all(index_of(&path)).unwrap();
    fs::create_dir(index_of(&path)).unwrap();
    fs::write(index_of(&path).join("mine.txt"), "mine").unwrap();
    assert_eq!(health()["unavailable"][0]["code"], "search_index_foreign");
}

#[test]
fn a_search_names_the_process_that_keeps_the_index_from_being_rebuilt() {
    let (folder, path) = store_of(40);
    let lock = fs::File::options().write(true).open(folder.path().join("notes.db-index-lock")).unwrap();
    let mut server = Searcher::start(&path);
    server.assert_finds(1);
    lock.lock().unwrap();
    let holder = if cfg!(target_os = "linux") {
        format!("process {}", std::process::id())
    } else {
        "another process".to_owned()
    };
    let postings =
        files_in(&index_of(&path)).into_iter().find(|file| file.extension().is_some_and(|is| is == "idx"));
    flip(&postings.unwrap(), |len| len / 2);
    let output = binary().args(["search", "needle2", "--store", text(&path)]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("is damaged") && stderr(&output).contains(&holder), "{output:?}");
    fs::remove_dir_all(index_of(&path)).unwrap();
    let mut fresh = Searcher::start(&path);
    let refused = fresh.search("needle2").to_string();
    assert!(refused.contains("has no search index yet") && refused.contains(&holder), "{refused}");
    lock.unlock().unwrap();
    fresh.assert_finds(2);
    server.assert_finds(3);
}
