//! `fetchwell backup` and `fetchwell restore`: under running servers and imports, and with every bad input.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::{HttpServer, StdioServer, binary, fetchwell, get, import_records, stderr, stdout, text};

fn lines(keys: impl IntoIterator<Item = usize>) -> String {
    let line = |key| json!({"stream": "notes", "key": key, "data": {"body": format!("needle{key} in hay")}});
    keys.into_iter().map(|key| line(key).to_string()).collect::<Vec<_>>().join("\n")
}

/// A folder with a store, and methods to import, back up and restore it.
struct Place {
    folder: tempfile::TempDir,
    store: PathBuf,
}

impl Place {
    fn new(records: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Self { store: folder.path().join("notes.db"), folder };
        place.import(0..records);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn import(&self, keys: impl IntoIterator<Item = usize>) {
        import_records(&self.store, "c", &lines(keys));
    }

    fn run(&self, command: &str, file: &Path, more: &[&str]) -> Output {
        binary().args([command, text(file), "--store", text(&self.store)]).args(more).output().unwrap()
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Asserts that a search of the command line finds a record, or not.
    #[track_caller]
    fn assert_has(&self, key: usize, is_there: bool) {
        let found = fetchwell(["search", &format!("needle{key}"), "--store", text(&self.store)]);
        // The exit code is 1 if nothing is found, not even a similar word.
        assert!(matches!(found.status.code(), Some(0 | 1)), "{key}: {found:?}");
        let printed = String::from_utf8_lossy(&found.stdout);
        assert_eq!(printed.contains(&format!("c/notes:{key}\n")), is_there, "{key}: {found:?}");
    }
}

/// Returns the records and the version of a store or a backup.
fn records_of(file: &Path) -> (i64, i64) {
    let sqlite = Connection::open(file).unwrap();
    let sql = "SELECT (SELECT count(*) FROM records WHERE data IS NOT NULL), version FROM store";
    sqlite.query_row(sql, (), |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
}

/// A stdio server that searches.
struct Searcher(StdioServer);

impl Searcher {
    fn start(store: &Path) -> Self {
        let mut server = StdioServer::start(["--store", text(store)]);
        server.initialize("2025-06-18");
        Self(server)
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}});
        self.0.send(&call.to_string());
        self.0.receive()["result"].clone()
    }

    #[track_caller]
    fn assert_has(&mut self, key: usize, is_there: bool) {
        let found = self.call("search", &json!({"query": format!("needle{key}")}));
        assert_ne!(found["isError"], true, "{found}");
        let ids = found["structuredContent"]["results"].to_string();
        assert_eq!(ids.contains(&format!("\"c/notes:{key}\"")), is_there, "{key}: {found}");
    }
}

#[test]
fn restore_under_running_servers_shows_the_records_of_the_backup() {
    let place = Place::new(600);
    let mut stdio = Searcher::start(&place.store);
    let http = HttpServer::start(["--store", text(&place.store)]);
    stdio.assert_has(599, true);
    let backup = place.path("notes.backup");
    let said = place.run("backup", &backup, &["--json"]);
    let said: Value = serde_json::from_str(&stdout(&said)).unwrap();
    assert_eq!((&said["contents"]["records"], &said["contents"]["connections"]), (&json!(600), &json!(1)));
    assert_eq!(said["contents"]["bytes"], backup.metadata().unwrap().len());
    place.import(600..700);
    import_records(&place.store, "c", r#"{"stream":"notes","key":5,"op":"delete"}"#);
    stdio.assert_has(650, true);
    stdio.assert_has(5, false);
    let changes = |stdio: &mut Searcher, since: &str| {
        let answer =
            stdio.call("query_records", &json!({"stream": "notes", "changes_since": since, "limit": 1}));
        answer["structuredContent"].clone()
    };
    let token = changes(&mut stdio, "beginning")["next_changes_since"].as_str().map(str::to_owned);

    // The servers answer during the restore, from the earlier records or from the restored ones.
    let done = Arc::new(AtomicBool::new(false));
    let asking = std::thread::spawn({
        let (done, address) = (Arc::clone(&done), http.address.clone());
        move || {
            let mut answers = 0;
            while !done.load(Ordering::Relaxed) {
                let answer = get(&address, "/v1/streams/notes/records/7");
                assert_eq!(answer.status, 200, "{answer:?}");
                answers += 1;
            }
            answers
        }
    });
    let restored = place.run("restore", &backup, &["--json"]);
    let said: Value = serde_json::from_str(&stdout(&restored)).unwrap();
    stdio.assert_has(5, true);
    stdio.assert_has(650, false);
    done.store(true, Ordering::Relaxed);
    assert!(asking.join().unwrap() > 0);
    assert_eq!(said["contents"]["records"], 600);
    assert_eq!(get(&http.address, "/v1/streams/notes/records/650").status, 404);
    assert_eq!(get(&http.address, "/v1/streams/notes/records/5").status, 200);
    // A change token from before the restore reaches an end, and skips no change.
    if let Some(token) = token {
        let refused = changes(&mut stdio, &token);
        assert!(refused["error"]["code"].is_string(), "{refused}");
    }

    // An import that leads to the same version number as before is not confused with the earlier import.
    place.import(800..901);
    stdio.assert_has(850, true);
    stdio.assert_has(650, false);
    let (_, status, log) = stdio.0.end();
    assert!(status.success() && !log.contains("ERROR"), "{status} {log}");
    assert!(!http.stop().contains("ERROR"));

    // The earlier records are kept, and can be restored.
    let earlier = PathBuf::from(said["earlier"].as_str().unwrap());
    assert_eq!(records_of(&earlier).0, 699);
    stdout(&place.run("restore", &earlier, &["--force"]));
    place.assert_has(650, true);
    place.assert_has(5, false);
    place.assert_has(850, false);
    let checked = stdout(&fetchwell(["doctor", "--store", text(&place.store)]));
    assert!(checked.lines().any(|line| line.contains("index") && line.ends_with("complete")), "{checked}");
    assert_eq!(place.names().iter().filter(|name| name.contains("before-restore")).count(), 1);
}

#[test]
fn a_cached_snapshot_is_not_used_after_a_restore() {
    let place = Place::new(10);
    let backup = place.path("backup.db");
    stdout(&place.run("backup", &backup, &[]));
    place.import([10]);
    let mut server = Searcher::start(&place.store);
    server.assert_has(10, true);
    stdout(&place.run("restore", &backup, &["--force"]));
    // The store reaches the version number of the server's index with another record.
    place.import([11]);
    server.assert_has(11, true);
    server.assert_has(10, false);
}

#[test]
fn backups_during_an_import_have_whole_batches() {
    const RECORDS: usize = 60_000;
    let place = Place::new(1);
    let file = place.path("many.ndjson");
    fs::write(&file, lines(1..RECORDS)).unwrap();
    let mut import = binary()
        .args(["import", "records", text(&file), "--store", text(&place.store), "--connection", "c"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let backup = place.path("backup.db");
    let mut partial = 0;
    while import.try_wait().unwrap().is_none() {
        stdout(&place.run("backup", &backup, &["--force"]));
        let (records, version) = records_of(&backup);
        assert_eq!(records, version);
        let records = usize::try_from(records).unwrap();
        assert!((records - 1) % 2_000 == 0 || records == RECORDS, "{records}");
        partial += usize::from(records > 1 && records < RECORDS);
        // A process that writes is not disturbed: its records are not replaced.
        if partial == 1 {
            let refused = place.run("restore", &backup, &[]);
            assert!(refused.status.code() == Some(1) || import.try_wait().unwrap().is_some(), "{refused:?}");
        }
    }
    assert!(import.wait().unwrap().success());
    assert!(partial > 0, "no backup was made during the import");
    stdout(&place.run("backup", &backup, &["--force"]));
    assert_eq!(usize::try_from(records_of(&backup).0).unwrap(), RECORDS);
    place.assert_has(RECORDS - 1, true);
}

#[test]
fn a_store_that_another_process_writes_is_backed_up_and_not_replaced() {
    let place = Place::new(3);
    let lock = fs::File::options().write(true).open(place.path("notes.db-lock")).unwrap();
    lock.lock().unwrap();
    let backup = place.path("backup.db");
    stdout(&place.run("backup", &backup, &[]));
    let refused = place.run("restore", &backup, &["--force"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("locked by another process"), "{refused:?}");
    lock.unlock().unwrap();
    stdout(&place.run("restore", &backup, &["--force"]));
}

#[test]
fn a_missing_store_is_created_from_its_backup() {
    let place = Place::new(12);
    let backup = place.path("backup.db");
    stdout(&place.run("backup", &backup, &[]));
    for name in place.names().iter().filter(|name| name.starts_with("notes.db")) {
        let path = place.path(name);
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }
    let said = stdout(&place.run("restore", &backup, &[]));
    assert!(said.contains("12 records of 1 connection") && !said.contains("before"), "{said}");
    place.assert_has(11, true);
    place.import([12]);
    place.assert_has(12, true);
    // An empty file, as `touch` makes it, is a missing store.
    let empty = place.path("empty.db");
    fs::write(&empty, "").unwrap();
    stdout(&fetchwell(["restore", text(&backup), "--store", text(&empty)]));
    assert_eq!(records_of(&empty).0, 12);
    // A backup can be used as a store, too.
    stdout(&fetchwell(["search", "needle3", "--store", text(&backup)]));
    import_records(&backup, "c", &lines([77]));
    assert_eq!(records_of(&backup).0, 13);
}

/// A way to damage a backup, and the error that names it.
type BackupDamage = (&'static str, fn(&Path), &'static str);

fn alter(file: &Path, sql: &str) {
    Connection::open(file).unwrap().execute_batch(sql).unwrap();
}

const BACKUP_DAMAGES: [BackupDamage; 12] = [
    ("truncated", |file| set_len(file, file.metadata().unwrap().len() / 2), "is damaged"),
    ("header only", |file| set_len(file, 60), "is not a SQLite database"),
    ("empty", |file| set_len(file, 0), "is not a SQLite database"),
    ("text", |file| fs::write(file, "dear Ann, ".repeat(100)).unwrap(), "is not a SQLite database"),
    (
        "damaged page",
        |file| {
            let mut bytes = fs::read(file).unwrap();
            let at = bytes.len() - 4096 * 2;
            bytes[at..at + 4096].fill(0x55);
            fs::write(file, bytes).unwrap();
        },
        "is damaged",
    ),
    (
        "other program",
        |file| {
            fs::remove_file(file).unwrap();
            alter(file, "CREATE TABLE t (a)");
        },
        "it is of another program",
    ),
    (
        "empty database",
        |file| {
            fs::remove_file(file).unwrap();
            alter(file, "PRAGMA application_id = 7; VACUUM");
        },
        "it is of another program",
    ),
    ("newer", |file| alter(file, "PRAGMA user_version = 99"), "upgrade fetchwell"),
    ("older", |file| alter(file, "PRAGMA user_version = 1"), "import its files again"),
    ("no index of records", |file| alter(file, "DROP INDEX records_by_version"), "it has no"),
    ("no column", |file| alter(file, "ALTER TABLE connections DROP COLUMN manifest"), "it has no"),
    ("wrong version", |file| alter(file, "UPDATE store SET version = 2"), "its version does not match"),
];

fn set_len(file: &Path, len: u64) {
    fs::File::options().write(true).open(file).unwrap().set_len(len).unwrap();
}

#[test]
fn invalid_backup_changes_nothing() {
    let place = Place::new(40);
    let (backup, bad) = (place.path("backup.db"), place.path("bad.db"));
    stdout(&place.run("backup", &backup, &[]));
    let before = place.names();
    for (what, spoil, said) in BACKUP_DAMAGES {
        fs::copy(&backup, &bad).unwrap();
        spoil(&bad);
        let refused = place.run("restore", &bad, &[]);
        assert_eq!(refused.status.code(), Some(1), "{what}: {refused:?}");
        let error = stderr(&refused);
        assert!(error.contains(said) && error.contains("bad.db"), "{what}: {error}");
        fs::remove_file(&bad).unwrap();
        assert_eq!(place.names(), before, "{what}");
        assert_eq!(records_of(&place.store), (40, 40), "{what}");
    }
    for (file, said) in [
        (place.path("missing.db"), "there is no backup at"),
        (place.folder.path().to_owned(), "it is not a file"),
        (place.store.clone(), "is the store itself"),
    ] {
        let refused = place.run("restore", &file, &["--force"]);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(stderr(&refused).contains(said), "{refused:?}");
    }
    // A store in use consists of several files.
    let live = place.path("live.db");
    fs::copy(&backup, &live).unwrap();
    let other = Connection::open(&live).unwrap();
    other.execute_batch("PRAGMA journal_mode = WAL; UPDATE connections SET display_name = 'x'").unwrap();
    let refused = place.run("restore", &live, &[]);
    assert!(stderr(&refused).contains("live.db-wal; make one with `fetchwell backup"), "{refused:?}");
    drop(other);
    place.assert_has(39, true);
}

#[test]
fn a_backup_replaces_only_backups() {
    let place = Place::new(4);
    let refused = |file: &Path, more: &[&str], said: &str| {
        let before = place.names();
        let refused = place.run("backup", file, more);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(stderr(&refused).contains(said), "{said}: {refused:?}");
        assert_eq!(place.names(), before);
    };
    let (mine, other) = (place.path("letter.txt"), place.path("other.db"));
    fs::write(&mine, "dear Ann").unwrap();
    import_records(&other, "c", &lines(0..2));
    alter(&place.path("places.sqlite"), "CREATE TABLE t (a)");
    refused(&mine, &[], "--force");
    refused(&mine, &["--force"], "it is not a backup of fetchwell");
    refused(&place.path("places.sqlite"), &["--force"], "it is not a backup of fetchwell");
    refused(&other, &["--force"], "it is a store in use");
    refused(&place.store, &["--force"], "it is the store itself");
    refused(&place.path("./notes.db"), &["--force"], "it is the store itself");
    for suffix in ["-wal", "-shm", "-journal", "-lock", "-index"] {
        refused(&place.path(&format!("notes.db{suffix}")), &["--force"], "keeps a file of that name");
    }
    for folder in ["notes.db-index", "other.db-index"] {
        refused(&place.path(&format!("{folder}/backup.db")), &["--force"], "the search index of a store");
    }
    refused(&place.path("no/such/folder.db"), &[], "there is no folder");
    refused(place.folder.path(), &["--force"], "it is a folder");
    fs::write(place.path("new.db-wal"), "mine").unwrap();
    refused(&place.path("new.db"), &[], "new.db-wal");
    #[cfg(unix)]
    {
        let link = place.path("link.db");
        std::os::unix::fs::symlink(&mine, &link).unwrap();
        refused(&link, &["--force"], "it is a symbolic link");
        std::os::unix::fs::symlink(place.path("nowhere"), place.path("dangling.db")).unwrap();
        refused(&place.path("dangling.db"), &[], "it is a symbolic link");
        let hard = place.path("hard.db");
        fs::hard_link(&place.store, &hard).unwrap();
        refused(&hard, &["--force"], "it is the store itself");
    }
    assert_eq!(fs::read_to_string(&mine).unwrap(), "dear Ann");
    assert_eq!(records_of(&other).0, 2);

    let backup = place.path("backup.db");
    stdout(&place.run("backup", &backup, &[]));
    refused(&backup, &[], "exists");
    place.import([4]);
    stdout(&place.run("backup", &backup, &["--force"]));
    assert_eq!(records_of(&backup).0, 5);
}

#[test]
fn files_other_than_stores_are_not_backed_up() {
    let place = Place::new(1);
    let backup = place.path("backup.db");
    alter(&place.path("places.sqlite"), "CREATE TABLE t (a)");
    let damaged = place.path("damaged.db");
    import_records(&damaged, "c", &lines(0..40));
    Connection::open(&damaged).unwrap().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let len = damaged.metadata().unwrap().len();
    let mut bytes = fs::read(&damaged).unwrap();
    bytes[usize::try_from(len).unwrap() - 4096 * 2..].fill(0x55);
    fs::write(&damaged, bytes).unwrap();
    for (store, said) in [
        (place.path("missing.db"), "there is no store at"),
        (place.path("places.sqlite"), "is not a fetchwell store"),
        (damaged.clone(), "damaged.db is damaged"),
    ] {
        let before = place.names();
        let refused = fetchwell(["backup", text(&backup), "--store", text(&store)]);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(stderr(&refused).contains(said), "{refused:?}");
        assert_eq!(place.names(), before, "{said}");
    }
    // A backup may replace a damaged store if its records need not be kept.
    stdout(&place.run("backup", &backup, &[]));
    let refused = fetchwell(["restore", text(&backup), "--store", text(&damaged)]);
    assert!(stderr(&refused).contains("could not be kept first"), "{refused:?}");
    stdout(&fetchwell(["restore", text(&backup), "--store", text(&damaged), "--force"]));
    assert_eq!(records_of(&damaged).0, 1);
    assert!(stdout(&fetchwell(["search", "needle0", "--store", text(&damaged)])).contains("c/notes:0"));
    // A file that lost its end is no longer a database.
    set_len(&damaged, 8192);
    let _ = fs::remove_file(place.path("damaged.db-wal"));
    let refused = fetchwell(["restore", text(&backup), "--store", text(&damaged), "--force"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(stderr(&refused).contains("then restore again"), "{refused:?}");
}

#[cfg(unix)]
#[test]
fn a_full_disk_leaves_store_and_backup_unchanged() {
    let place = Place::new(400);
    let backup = place.path("backup.db");
    stdout(&place.run("backup", &backup, &[]));
    place.import([1_000]);
    // A limit on the size of files, in blocks of 512 bytes, has the effect of a full disk.
    let limited = |command: &str, file: &Path, more: &[&str]| {
        std::process::Command::new("sh")
            .args(["-c", "trap '' XFSZ; ulimit -f 32; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_fetchwell")])
            .args([command, text(file), "--store", text(&place.store)])
            .args(more)
            .output()
            .unwrap()
    };
    let before = place.names();
    let mut server = Searcher::start(&place.store);
    server.assert_has(1_000, true);
    for (command, file, more, said) in [
        ("backup", place.path("new.db"), &[][..], "new.db cannot be written"),
        ("backup", backup.clone(), &["--force"], "backup.db cannot be written"),
        ("restore", backup.clone(), &[], "could not be kept first"),
        ("restore", backup.clone(), &["--force"], "notes.db cannot be written"),
    ] {
        let failed = limited(command, &file, more);
        assert_eq!(failed.status.code(), Some(1), "{failed:?}");
        assert!(stderr(&failed).contains(said), "{failed:?}");
        server.assert_has(1_000, true);
        assert_eq!(records_of(&backup).0, 400);
    }
    drop(server.0.end());
    let names: Vec<String> = place.names().into_iter().filter(|name| !before.contains(name)).collect();
    assert!(names.iter().all(|name| name.ends_with("-wal") || name.ends_with("-shm")), "{names:?}");
    assert_eq!(records_of(&place.store).0, 401);
}

#[test]
fn a_store_of_a_configuration_is_chosen_by_its_name() {
    let place = Place::new(3);
    import_records(&place.path("other.db"), "c", &lines(0..2));
    let config = place.path("fetchwell.toml");
    fs::write(&config, "[[source]]\nname = \"notes\"\nstore = \"notes.db\"\n").unwrap();
    let run =
        |arguments: &[&str]| binary().current_dir(place.folder.path()).args(arguments).output().unwrap();
    stdout(&run(&["backup", "one.db"]));
    assert_eq!(records_of(&place.path("one.db")).0, 3);
    // A found configuration file does not decide which store is written.
    let refused = run(&["restore", "one.db"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("was only found"), "{refused:?}");
    stdout(&run(&["restore", "one.db", "--config", "fetchwell.toml"]));

    let more = "[[source]]\nname = \"other\"\nstore = \"other.db\"\n\
        [[source]]\nname = \"far\"\nurl = \"https://records.example.com\"\n";
    fs::write(&config, fs::read_to_string(&config).unwrap() + more).unwrap();
    for (arguments, said) in [
        (&["backup", "two.db"][..], "several stores, `notes`, `other`; name one with --source"),
        (&["backup", "two.db", "--source", "far"], "there is no store `far`"),
        (&["backup", "two.db", "--provider-url", "https://records.example.com"], "no store is configured"),
    ] {
        let refused = run(arguments);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(stderr(&refused).contains(said), "{refused:?}");
    }
    stdout(&run(&["backup", "two.db", "--source", "other"]));
    assert_eq!(records_of(&place.path("two.db")).0, 2);
    stdout(&run(&["restore", "one.db", "--config", "fetchwell.toml", "--source", "other"]));
    assert_eq!(records_of(&place.path("other.db")).0, 3);
}
