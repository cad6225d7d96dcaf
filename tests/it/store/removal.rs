//! `fetchwell remove`: nothing of the records is left in any file, and everything else stays.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use crate::support::{EmbeddingService, Model, binary, fetchwell, stderr, stdout, text};

/// A word that only removed records have.
const NEEDLE: &str = "zanzibarsecret";

/// A word of an earlier version of a removed record.
const FORMER: &str = "formerlyhidden";

/// A store of two connections, beside its vectors and a state directory.
struct Place {
    folder: tempfile::TempDir,
    service: EmbeddingService,
}

fn record(stream: &str, key: &str, body: &str) -> String {
    json!({"stream": stream, "key": key, "data": {"title": format!("Note {key}"), "body": body}}).to_string()
        + "\n"
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap(), service: EmbeddingService::start() };
        let source = "[[source]]\nname = \"notes\"\nstore = \"files/notes.db\"\n";
        std::fs::create_dir(place.path("files")).unwrap();
        std::fs::write(place.path("fetchwell.toml"), format!("{source}{}", place.service.table(true)))
            .unwrap();
        place
    }

    /// Imports records with the needle into `gone`, in two versions, and others into `kept`.
    fn fill(&self) {
        let many = |stream: &str, word: &str| -> String {
            (0..60).map(|n| record(stream, &format!("n{n}"), &format!("The {word} of number {n}"))).collect()
        };
        self.import("gone", &(many("notes", FORMER) + &many("files", FORMER)));
        self.import("gone", &(many("notes", NEEDLE) + &many("files", NEEDLE)));
        self.import("gone", "{\"stream\":\"notes\",\"key\":\"n59\",\"op\":\"delete\"}\n");
        self.import("kept", &many("notes", "remaining text"));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn store(&self) -> PathBuf {
        self.path("files/notes.db")
    }

    #[track_caller]
    fn import(&self, connection: &str, lines: &str) {
        let file = self.path("records.ndjson");
        std::fs::write(&file, lines).unwrap();
        let (store, config) = (self.store(), self.path("fetchwell.toml"));
        let place = ["--store", text(&store), "--config", text(&config), "--connection", connection];
        stdout(&binary().args(["import", "records", text(&file)]).args(place).output().unwrap());
        std::fs::remove_file(file).unwrap();
    }

    fn remove(&self, arguments: &[&str]) -> Output {
        let (store, state) = (self.store(), self.path("files/state"));
        let place = ["--store", text(&store), "--state-dir", text(&state), "--json"];
        binary().arg("remove").args(arguments).args(place).output().unwrap()
    }

    fn info(&self) -> Value {
        let store = self.store();
        serde_json::from_str(&stdout(&fetchwell(["store", "info", "--store", text(&store), "--json"])))
            .unwrap()
    }

    fn search(&self, query: &str) -> String {
        let store = self.store();
        let output = fetchwell(["search", query, "--store", text(&store), "--limit", "100", "--json"]);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns the files that contain a text, also spelled backwards, as some index files have it.
    fn files_with(&self, word: &str) -> Vec<PathBuf> {
        let backwards: String = word.chars().rev().collect();
        let has = |path: &PathBuf| {
            let bytes = std::fs::read(path).unwrap();
            [word, &backwards]
                .iter()
                .any(|word| bytes.windows(word.len()).any(|window| window == word.as_bytes()))
        };
        files(&self.path("files")).into_iter().filter(has).collect()
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[tokio::test]
async fn no_file_has_text_of_a_removed_connection() {
    let place = Place::new();
    place.fill();
    let (config, state) = (place.path("fetchwell.toml"), place.path("files/state"));
    let model = Model::over_stdio(["--config", text(&config), "--state-dir", text(&state)]).await;
    let changes =
        json!({"stream": "notes", "connection_id": "kept", "changes_since": "beginning", "limit": 100});
    let token = model.call("query_records", changes).await["next_changes_since"].as_str().unwrap().to_owned();
    let found = model.call("search", json!({"query": NEEDLE, "limit": 2, "mode": "lexical"})).await;
    let cursor = found["next_cursor"].as_str().unwrap().to_owned();
    assert!(place.files_with(NEEDLE).len() >= 2, "{:?}", place.files_with(NEEDLE));
    assert!(!place.files_with(FORMER).is_empty());
    let index = |place: &Place| files(&place.path("files/notes.db-index"));
    let segments: Vec<PathBuf> =
        index(&place).into_iter().filter(|path| path.extension().is_some_and(|end| end == "store")).collect();
    let before = place.info();
    assert_eq!(before["vectors"]["current"]["chunks"], 60 + 60 + 59);

    let removed: Value = serde_json::from_str(&stdout(&place.remove(&["gone", "--yes"]))).unwrap();
    assert_eq!(removed["removed"], json!({"connections": 1, "streams": 2, "records": 119, "deleted": 1}));
    assert_eq!(removed["vectors"], 119);
    for word in [NEEDLE, FORMER] {
        assert_eq!(place.files_with(word), Vec::<PathBuf>::new(), "{word}");
    }
    assert!(!segments.is_empty() && segments.iter().all(|segment| !segment.exists()), "{segments:?}");
    // The vectors of the other records are still those of the store.
    let info = place.info();
    assert_eq!(
        (&info["records"], &info["deleted"], &info["bytes"]["free"]),
        (&json!(60), &json!(0), &json!(0))
    );
    assert_eq!(info["vectors"]["current"]["chunks"], 60);
    assert_eq!(info["vectors"]["current"]["missing_records"], 0);
    assert_eq!(info["connections"].as_array().unwrap().len(), 1);
    let positions = rusqlite::Connection::open(place.path("files/state/cursors.db")).unwrap();
    assert_eq!(positions.query_one("SELECT count(*) FROM positions", (), |row| row.get(0)), Ok(0));
    // The server, which runs all the while, has none of it, and still answers for the rest.
    assert_eq!(model.call("search", json!({"query": NEEDLE, "mode": "lexical"})).await["results"], json!([]));
    let kept = model.call("search", json!({"query": "remaining", "mode": "lexical"})).await;
    let kept = kept["results"].as_array().unwrap();
    assert!(!kept.is_empty() && kept.iter().all(|hit| hit["id"].as_str().unwrap().starts_with("kept/")));
    assert_eq!(
        model.refusal("search", json!({"query": NEEDLE, "cursor": cursor})).await["code"],
        "invalid_cursor"
    );
    let since = json!({"stream": "notes", "connection_id": "kept", "changes_since": token});
    assert_eq!(model.refusal("query_records", since).await["code"], "cursor_expired");
    assert_eq!(model.refusal("fetch", json!({"id": "gone/notes:n1"})).await["code"], "connection_not_found");
}

#[test]
fn a_stream_and_a_record_are_removed_alone() {
    let place = Place::new();
    place.fill();
    stdout(&place.remove(&["gone/files", "--yes"]));
    let info = place.info();
    assert_eq!(info["connections"][0]["streams"], json!([{"name": "notes", "records": 59, "deleted": 1}]));
    stdout(&place.remove(&["gone/notes:n7", "--yes"]));
    // Of a deleted record there is the history alone.
    stdout(&place.remove(&["gone/notes:n59", "--yes"]));
    let info = place.info();
    assert_eq!(info["connections"][0]["streams"], json!([{"name": "notes", "records": 58, "deleted": 0}]));
    assert_eq!(info["vectors"]["current"]["chunks"], 58 + 60);
    let found = place.search(NEEDLE);
    assert!(found.contains("\"gone/notes:n8\"") && !found.contains("\"gone/notes:n7\""), "{found}");
    // Removed records can be imported again.
    place.import("gone", &record("notes", "n7", "It is back"));
    assert!(place.search("back").contains("\"gone/notes:n7\""));
}

#[test]
fn removal_needs_an_existing_scope_and_a_yes() {
    let place = Place::new();
    place.fill();
    let before = place.info();
    let counted: Value = serde_json::from_str(&stdout(&place.remove(&["gone/notes", "--dry-run"]))).unwrap();
    assert_eq!(counted["removed"], json!({"connections": 0, "streams": 1, "records": 59, "deleted": 1}));
    for (arguments, code, parts) in [
        (&["gone/notes"][..], 2, &["59 records", "--yes"][..]),
        (&["lost", "--yes"], 1, &["no connection `lost`", "gone, kept"]),
        (&["gone/mail", "--yes"], 1, &["no stream `mail`", "notes, files"]),
        (&["gone/notes:n99", "--yes"], 1, &["no record `gone/notes:n99`"]),
        (&["notes:n1/x/y/z/w", "--yes"], 2, &["CONNECTION/STREAM:KEY"]),
        (&["gone", "--yes", "--dry-run"], 2, &["cannot be used with"]),
    ] {
        let refused = place.remove(arguments);
        assert_eq!(refused.status.code(), Some(code), "{refused:?}");
        assert!(parts.iter().all(|part| stderr(&refused).contains(part)), "{}", stderr(&refused));
    }
    assert_eq!(place.info(), before);
}

#[test]
fn a_removal_waits_for_no_import() {
    let place = Place::new();
    place.fill();
    let lock = std::fs::File::options().write(true).open(place.path("files/notes.db-lock")).unwrap();
    lock.lock().unwrap();
    let refused = place.remove(&["gone", "--yes"]);
    assert!(stderr(&refused).contains("locked by another process"), "{refused:?}");
    drop(lock);
    assert_eq!(place.info()["records"], 179);
    // A folder that is not the index of the store is left alone, and the command says so.
    std::fs::remove_dir_all(place.path("files/notes.db-index")).unwrap();
    std::fs::create_dir(place.path("files/notes.db-index")).unwrap();
    std::fs::write(place.path("files/notes.db-index/thesis.txt"), "mine").unwrap();
    let removed = place.remove(&["gone", "--yes"]);
    assert_eq!(removed.status.code(), Some(1));
    assert!(stderr(&removed).contains("the records are removed, but"), "{removed:?}");
    assert!(place.path("files/notes.db-index/thesis.txt").exists());
    assert_eq!(place.info()["records"], 60);
}

#[test]
fn an_interrupted_removal_is_completed_by_the_next_writer() {
    let place = Place::new();
    place.fill();
    let store = place.store();
    let has_text = || {
        let beside = [store.clone(), place.path("files/notes.db-wal")];
        place.files_with(NEEDLE).into_iter().any(|path| beside.contains(&path))
    };
    // The records are deleted, and their text is in free pages, as after a kill before these are overwritten.
    let remove_rows = || {
        let sqlite = rusqlite::Connection::open(&store).unwrap();
        let streams = "(SELECT id FROM streams WHERE connection = (SELECT id FROM connections WHERE connection_id = 'gone'))";
        let delete = format!(
            "PRAGMA secure_delete = OFF; DELETE FROM records WHERE stream IN {streams};
             UPDATE streams SET record_count = 0 WHERE id IN {streams};
             CREATE TABLE IF NOT EXISTS unfinished_removal (id INTEGER PRIMARY KEY);
             INSERT INTO unfinished_removal VALUES (1)"
        );
        sqlite.execute_batch(&delete).unwrap();
    };
    remove_rows();
    assert!(has_text(), "the text is in free pages");
    // The record is not found any more, and its text is overwritten all the same.
    let refused = place.remove(&["gone/notes:n8", "--yes"]);
    assert!(stderr(&refused).contains("there is no record"), "{refused:?}");
    assert!(!has_text());
    for completing in [&["add", "fetchwell.toml", "--kind", "text"][..], &["sync"]] {
        place.import("gone", &record("notes", "n1", &NEEDLE.repeat(500)));
        remove_rows();
        assert!(has_text(), "the text is in free pages");
        let mut command = binary();
        command.args(completing).args(["--store", text(&store)]).current_dir(place.folder.path());
        stdout(&command.output().unwrap());
        assert!(!has_text(), "{completing:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_removal_deletes_the_index_of_every_link() {
    let place = Place::new();
    place.fill();
    let (store, link) = (place.store(), place.path("files/link.db"));
    std::os::unix::fs::symlink("notes.db", &link).unwrap();
    // Links share the index of the file.
    stdout(&fetchwell(["search", NEEDLE, "--store", text(&link)]));
    assert!(!place.path("files/link.db-index").exists());
    // Earlier releases kept an index beside each link.
    let (index, earlier) = (place.path("files/notes.db-index"), place.path("files/link.db-index"));
    std::fs::create_dir(&earlier).unwrap();
    for entry in std::fs::read_dir(&index).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), earlier.join(entry.file_name())).unwrap();
    }
    assert!(place.files_with(NEEDLE).iter().any(|path| path.starts_with(&earlier)));
    stdout(&place.remove(&["gone", "--yes"]));
    assert_eq!(place.files_with(NEEDLE), Vec::<PathBuf>::new());
    assert!(store.exists() && link.exists() && !earlier.exists());
}
