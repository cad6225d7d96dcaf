//! The store that commands use if neither a flag nor a configuration names a source.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::{binary, stderr, stdout, text};

/// A home folder with a table to import, and no store.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        std::fs::write(home.path("orders.csv"), "id,customer\n7,Ann Overdue\n").unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn store(&self) -> PathBuf {
        self.path("data/fetchwell/store.db")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = binary();
        command.args(arguments).current_dir(self.0.path()).env("HOME", self.0.path());
        command.env("XDG_DATA_HOME", self.path("data")).env("XDG_CONFIG_HOME", self.path("config"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn import(&self) -> Output {
        self.run(&["import", "csv", "orders.csv", "--connection", "shop"])
    }
}

const SEARCH: [&str; 3] = ["search", "overdue", "--json"];

#[track_caller]
fn assert_found(output: &Output) {
    let found: Value = serde_json::from_str(&stdout(output)).unwrap();
    assert_eq!(found["results"][0]["id"], "shop/orders:7");
}

#[test]
#[cfg(target_os = "linux")]
fn an_import_fills_the_default_store_and_commands_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let imported = home.import();
    assert!(stdout(&imported).contains("1 added"), "{imported:?}");
    assert!(stderr(&imported).contains(text(&home.store())), "{imported:?}");
    for (path, mode) in [(home.store(), 0o600), (home.path("data/fetchwell"), 0o700)] {
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, mode);
    }
    // Only a new store is announced.
    assert_eq!(stderr(&home.import()), "");
    assert_found(&home.run(&SEARCH));
    for (arguments, part) in [
        (&["fetch", "shop/orders:7"][..], "Ann Overdue"),
        (&["connections"], "shop"),
        (&["doctor"], "1 connection, 1 stream, 1 record, answered in"),
        (&["backup", "saved.db"], "1 record of 1 connection"),
        (&["restore", "saved.db"], "1 record of 1 connection"),
        (&["eval", "make", "--out", "made.jsonl"], ""),
        (&["client-config", "codex"], text(&home.store())),
    ] {
        let output = home.run(arguments);
        assert!(stdout(&output).contains(part), "{arguments:?} {output:?}");
    }
}

#[test]
fn the_environment_names_another_default_store() {
    let home = Home::new();
    let run = |arguments: &[&str]| {
        home.command(arguments).env("FETCHWELL_STORE", home.path("deep/er/own.db")).output().unwrap()
    };
    stdout(&run(&["import", "csv", "orders.csv", "--connection", "shop"]));
    assert_found(&run(&SEARCH));
    assert!(!home.path("data").exists());
    // An empty value names nothing.
    let unset = home.command(&SEARCH).env("FETCHWELL_STORE", "").output().unwrap();
    assert!(stderr(&unset).contains("fetchwell add"), "{unset:?}");
}

#[test]
fn commands_that_read_create_no_store() {
    let home = Home::new();
    for arguments in [
        &SEARCH[..],
        &["fetch", "shop/orders:7"],
        &["connections"],
        &["serve", "--stdio"],
        &["backup", "saved.db"],
        &["restore", "saved.db"],
        &["embeddings", "status"],
        &["client-config", "codex"],
        &["source", "add", "mine"],
    ] {
        let output = home.run(arguments);
        let problem = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?} {output:?}");
        assert!(problem.contains("there is no store at") && problem.contains("fetchwell add"), "{problem}");
    }
    // The remedy is not the command that failed.
    let added = stderr(&home.run(&["source", "add", "mine"]));
    assert!(added.contains("--store DB, --url URL or --mcp URL") && !added.contains("source add"), "{added}");
    assert!(!home.path("data").exists() && !home.path("config").exists());
}

fn configure(home: &Home, toml: &str) {
    std::fs::create_dir_all(home.path("config/fetchwell")).unwrap();
    std::fs::write(home.path("config/fetchwell/config.toml"), toml).unwrap();
}

#[test]
fn a_configuration_with_sources_is_used_instead() {
    let home = Home::new();
    let other = |arguments: &[&str]| stdout(&home.run(arguments));
    std::fs::write(home.path("other.csv"), "id,customer\n8,Bea Overdue\n").unwrap();
    other(&["import", "csv", "other.csv", "--connection", "shop", "--store", "other.db"]);
    configure(&home, "[[source]]\nname = \"other\"\nstore = \"../../other.db\"\n");
    let imported = home.import();
    assert!(imported.status.success() && stderr(&imported).contains("source add"), "{imported:?}");
    assert!(other(&SEARCH).contains("shop/other:8") && !other(&SEARCH).contains("shop/orders:7"));
    // Added without a place, the default store is one of the sources.
    let added = home.run(&["source", "add", "mine"]);
    assert!(added.status.success() && stderr(&added).is_empty(), "{added:?}");
    let found = other(&SEARCH);
    assert!(found.contains("orders:7") && found.contains("other:8"), "{found}");
    assert_eq!(stderr(&home.import()), "");
}

#[test]
fn removing_the_only_source_deletes_the_file() {
    let home = Home::new();
    stdout(&home.import());
    stdout(&home.run(&["source", "add", "mine"]));
    let config = home.path("config/fetchwell/config.toml");
    assert!(config.exists());
    let removed = stdout(&home.run(&["source", "remove", "mine"]));
    assert!(removed.contains("and deleted the file") && !config.exists(), "{removed}");
    // The commands are back at the default store.
    let checked = home.run(&["config", "check"]);
    assert!(stderr(&checked).contains("there is no configuration"), "{checked:?}");
    let entry = stdout(&home.run(&["client-config", "codex"]));
    assert!(entry.contains(text(&home.store())) && !entry.contains("--config"), "{entry}");
    assert_found(&home.run(&SEARCH));
    // A comment of the user is not deleted.
    configure(&home, "# Ours.\n\n[[source]]\nname = \"mine\"\nstore = \"x.db\"\n");
    let removed: Value =
        serde_json::from_str(&stdout(&home.run(&["source", "remove", "mine", "--json"]))).unwrap();
    assert_eq!(removed["config_deleted"], false, "{removed}");
    assert_eq!(std::fs::read_to_string(&config).unwrap(), "# Ours.\n\n");
    assert!(stdout(&home.run(&["config", "check"])).contains("no sources"));
}

#[test]
fn adding_the_first_source_says_that_the_default_store_is_not_searched() {
    let home = Home::new();
    stdout(&home.import());
    let added = home.run(&["source", "add", "lab", "--url", "https://lab.example.com"]);
    assert!(added.status.success() && stderr(&added).contains("source add NAME"), "{added:?}");
}

#[test]
fn settings_without_sources_go_with_the_default_store() {
    let home = Home::new();
    configure(&home, "call_deadline = \"9s\"\n");
    let empty = home.run(&SEARCH);
    assert!(stderr(&empty).contains("has no [[source]]"), "{empty:?}");
    stdout(&home.import());
    assert_found(&home.run(&SEARCH));
    // A server for callers names its sources: grants name them.
    let auth = format!("[[auth.token]]\nname = \"ann\"\nsha256 = \"{:064x}\"\n", 10);
    configure(&home, &auth);
    let refused = home.run(&["serve"]);
    assert!(stderr(&refused).contains("[[source]]"), "{refused:?}");
}

#[test]
fn a_file_that_is_no_store_is_not_the_default_store() {
    let home = Home::new();
    let foreign: &Path = &home.store();
    std::fs::create_dir_all(foreign.parent().unwrap()).unwrap();
    std::fs::write(foreign, "the notes of another program, which are long enough to have a head").unwrap();
    for arguments in [&SEARCH[..], &["import", "csv", "orders.csv", "--connection", "shop"]] {
        let refused = home.run(arguments);
        assert!(stderr(&refused).contains("is not a fetchwell store"), "{refused:?}");
    }
    assert!(std::fs::read_to_string(foreign).unwrap().starts_with("the notes"));
}
