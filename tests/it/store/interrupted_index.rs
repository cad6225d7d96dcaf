//! The folder of the search index after a process was killed: every state that a killed process can leave is set up, and the store is used again.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::{fetchwell, import_records, stderr, stdout, text};

const MARKER: &str = "fetchwell-index.json";

/// Name that a file has until it is complete.
const UNFINISHED: &str = ".fetchwell-Ab12Cd.tmp";

/// Files of a folder with their contents.
type Files = Vec<(String, Vec<u8>)>;

fn files_in(folder: &Path) -> Files {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let mut files: Files = entries
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

fn fill(folder: &Path, files: &Files) {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir(folder).unwrap();
    files.iter().for_each(|(name, content)| fs::write(folder.join(name), content).unwrap());
}

/// A store with one record and its index.
struct Place {
    folder: tempfile::TempDir,
    complete: Files,
}

impl Place {
    fn new() -> Self {
        let mut place = Self { folder: tempfile::tempdir().unwrap(), complete: Vec::new() };
        import_records(
            &place.store(),
            "c",
            &json!({"stream": "notes", "key": "1", "data": {"body": "needle"}}).to_string(),
        );
        place.complete = files_in(&place.index(""));
        place
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("notes.db")
    }

    /// Returns a folder of the index: `-next` is built beside the current one, `-old` is the one that was replaced.
    fn index(&self, suffix: &str) -> PathBuf {
        self.folder.path().join(format!("notes.db-index{suffix}"))
    }

    fn file(&self, name: &str) -> Vec<u8> {
        self.complete.iter().find(|(file, _)| file == name).unwrap().1.clone()
    }

    /// Returns the folder at each moment in which a process can be killed that begins or deletes an index.
    fn states(&self) -> Vec<(String, Files)> {
        let marker = self.file(MARKER);
        let half = marker[..marker.len() / 2].to_vec();
        let named = |name: &str, content: &[u8]| (name.to_owned(), content.to_vec());
        let claimed = named(MARKER, &marker);
        let mut states = vec![
            ("the folder is made", vec![]),
            ("the marker is begun", vec![named(UNFINISHED, b"")]),
            ("half of the marker is written", vec![named(UNFINISHED, &half)]),
            ("the marker is written", vec![named(UNFINISHED, &marker)]),
            (
                "the marker is begun twice",
                vec![named(UNFINISHED, &half), named(".fetchwell-Ef34Gh.tmp", b"")],
            ),
            ("the marker has its name", vec![claimed.clone()]),
            ("a list is begun", vec![claimed.clone(), named(UNFINISHED, b"{")]),
            (
                "one list is written",
                vec![claimed.clone(), named(".managed.json", &self.file(".managed.json"))],
            ),
            ("a reader locks a deleted index", vec![named(".tantivy-meta.lock", b"")]),
            (
                "a deleted index is begun again",
                vec![named(".tantivy-meta.lock", b""), named(UNFINISHED, &half)],
            ),
            ("a new marker is written beside the old one", {
                let mut files = self.complete.clone();
                files.push(named(UNFINISHED, &marker));
                files
            }),
        ]
        .into_iter()
        .map(|(name, files)| (name.to_owned(), files))
        .collect::<Vec<_>>();
        // The marker is deleted last.
        let mut files = self.complete.clone();
        files.sort_by_key(|(name, _)| name != MARKER);
        while let Some((name, _)) = files.pop() {
            states.push((format!("{name} is deleted"), files.clone()));
        }
        states
    }

    fn search(&self) -> std::process::Output {
        fetchwell(["search", "needle", "--store", text(&self.store())])
    }

    /// Checks that the store is searched without a step by the user.
    #[track_caller]
    fn assert_usable(&self, state: &str) {
        let found = self.search();
        assert!(found.status.success() && stdout(&found).contains("c/notes:1"), "{state}: {found:?}");
        let names: Vec<String> = files_in(&self.index("")).into_iter().map(|(name, _)| name).collect();
        assert!(names.iter().any(|name| name == MARKER), "{state}: {names:?}");
    }
}

#[test]
fn an_index_is_used_again_after_a_process_was_killed_at_any_step() {
    let place = Place::new();
    for (state, files) in place.states() {
        fill(&place.index(""), &files);
        place.assert_usable(&state);
    }
    let checked = stdout(&fetchwell(["doctor", "--store", text(&place.store())]));
    assert!(checked.lines().any(|line| line.contains("index") && line.ends_with("complete")), "{checked}");
}

#[test]
fn an_index_beside_another_is_used_or_deleted_after_a_process_was_killed_at_any_step() {
    let place = Place::new();
    for (state, files) in place.states() {
        // The one that is being built, after the current one was lost.
        fs::remove_dir_all(place.index("")).unwrap();
        fill(&place.index("-next"), &files);
        place.assert_usable(&format!("next: {state}"));
        // The one that was replaced, after the current one was moved away.
        fs::remove_dir_all(place.index("")).unwrap();
        fill(&place.index("-next"), &place.complete);
        fill(&place.index("-old"), &files);
        place.assert_usable(&format!("old: {state}"));
        assert!(!place.index("-next").exists() && !place.index("-old").exists(), "{state}");
    }
}

#[test]
fn files_that_only_resemble_unfinished_ones_are_refused_and_kept() {
    let place = Place::new();
    let unfinished = (UNFINISHED.to_owned(), place.file(MARKER));
    let lock = (".tantivy-writer.lock".to_owned(), Vec::new());
    let of_user = |name: &str| (name.to_owned(), b"dear Ann".to_vec());
    for files in [
        vec![of_user("letters.txt")],
        vec![unfinished.clone(), of_user("letters.txt")],
        vec![lock, of_user("letters.txt")],
        vec![of_user(".tantivy-writer.lock")],
        vec![of_user(".tmpAb12Cd")],
        vec![of_user("0123456789abcdef0123456789abcdef.term")],
        vec![unfinished, of_user("meta.json")],
    ] {
        fill(&place.index(""), &files);
        let refused = place.search();
        assert!(stderr(&refused).contains("rename or move it"), "{files:?}: {refused:?}");
        let mut kept = files;
        kept.sort();
        assert_eq!(files_in(&place.index("")), kept);
    }
}

#[test]
fn a_users_file_in_the_index_survives_its_deletion_and_the_store_is_used_again() {
    let place = Place::new();
    import_records(
        &place.store(),
        "other",
        &json!({"stream": "notes", "key": "2", "data": {"body": "removed"}}).to_string(),
    );
    let of_user = place.index("").join("letters.txt");
    fs::write(&of_user, "dear Ann").unwrap();
    let removed = fetchwell(["remove", "other", "--store", text(&place.store()), "--yes"]);
    assert!(removed.status.success(), "{removed:?}");
    // The index was deleted, not damaged.
    assert!(!stderr(&removed).contains("damaged"), "{removed:?}");
    place.assert_usable("removed");
    assert_eq!(fs::read_to_string(&of_user).unwrap(), "dear Ann");
}
