//! Configuration files that were found in a folder, not named: settings that need trust, and commands that give it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    FakeServer, HttpServer, Reply, binary, demo_store, get, recorded, stderr, stdout, text,
};

/// A folder with a store, and beside it the state of a user.
struct Place(TempDir);

const STORE: &str = "[[source]]\nname = \"demo\"\nstore = \"demo.db\"\n";

impl Place {
    fn new(toml: &str) -> Self {
        let (folder, _store) = demo_store();
        let place = Self(folder);
        place.write(toml);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self) -> PathBuf {
        self.path("fetchwell.toml")
    }

    fn write(&self, toml: &str) {
        std::fs::write(self.file(), toml).unwrap();
    }

    /// Returns the binary in a folder, run by this user.
    fn binary_in(&self, folder: &Path) -> Command {
        let mut command = binary();
        command.current_dir(folder);
        command.env("XDG_STATE_HOME", self.path("state")).env("XDG_CONFIG_HOME", self.path("of-user"));
        command.env("HOME", self.0.path()).env("WORK_TOKEN", "tok_5ecret");
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.binary_in(self.0.path()).args(arguments).output().unwrap()
    }
}

#[track_caller]
fn refused(output: &Output, part: &str) {
    refused_with(output, 1, part);
}

/// Asserts that a search is refused. Exit code 1 would say that nothing was found.
#[track_caller]
fn refused_search(output: &Output, part: &str) {
    refused_with(output, 2, part);
}

#[track_caller]
fn refused_with(output: &Output, code: i32, part: &str) {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let shown = format!("{}{}", stderr(output), String::from_utf8_lossy(&output.stdout));
    assert!(shown.contains(part), "`{part}` is not in {shown}");
}

#[test]
fn a_found_file_is_trusted_by_its_content() {
    let server = FakeServer::start(|_: &_| recorded("search-lexical"));
    let source = format!(
        "[[source]]\nname = \"work\"\nurl = \"{}\"\ncredential = \"command:touch was-run; echo tok_5ecret\"\n",
        server.url
    );
    let place = Place::new(&source);
    let was_run = || place.path("was-run").exists();
    let remedy = "run `fetchwell config trust fetchwell.toml`, or name it: --config fetchwell.toml";
    let commands = [&["doctor"][..], &["source", "test"], &["config", "check"]];
    let check_refused = || {
        for command in commands.iter().copied().chain([&["client-config", "codex"][..]]) {
            refused(&place.run(command), remedy);
        }
        refused_search(&place.run(&["search", "invoice"]), remedy);
        refused_search(&place.run(&["search", "invoice"]), "source[0].url needs trust");
        assert!(!was_run() && server.requests().is_empty());
    };
    check_refused();
    // Showing the file does not trust it.
    let shown = stdout(&place.run(&["config", "trust", "--dry-run"]));
    assert!(
        shown.contains("line 4: source[0].credential = \"command:touch was-run; echo tok_5ecret\""),
        "{shown}"
    );
    assert!(shown.contains("runs this command") && shown.contains(&server.url), "{shown}");
    assert!(shown.contains("is not trusted yet"), "{shown}");
    check_refused();

    let shown = stdout(&place.run(&["config", "trust"]));
    assert!(shown.contains("is trusted as it is now") && shown.contains("runs this command"), "{shown}");
    stdout(&place.run(&["search", "invoice"]));
    assert!(was_run() && !server.requests().is_empty());
    stdout(&place.run(&["config", "check"]));

    // The command line that is printed for a client needs the same trust.
    let snippet = stdout(&place.run(&["client-config", "claude", "--json"]));
    let snippet: Value = serde_json::from_str(&snippet).unwrap();
    let snippet: Value = serde_json::from_str(snippet["snippet"].as_str().unwrap()).unwrap();
    let arguments = &snippet["mcpServers"]["fetchwell"]["args"];
    assert_eq!(arguments[1], "--found-config", "{arguments}");
    assert!(Path::new(arguments[2].as_str().unwrap()).is_absolute(), "{arguments}");
    let elsewhere = tempfile::tempdir().unwrap();
    let found = text(&place.file()).to_owned();
    let from_elsewhere = |arguments: &[&str]| {
        place.binary_in(elsewhere.path()).args(arguments).args(["--found-config", &found]).output().unwrap()
    };
    stdout(&from_elsewhere(&["search", "invoice"]));
    // A copy in another folder is not trusted.
    std::fs::copy(place.file(), elsewhere.path().join("fetchwell.toml")).unwrap();
    let copy = place.binary_in(elsewhere.path()).args(["search", "invoice"]).output().unwrap();
    refused_search(&copy, "fetchwell config trust");

    // One more byte ends the trust.
    std::fs::remove_file(place.path("was-run")).unwrap();
    place.write(&format!("{source}\n"));
    for command in commands {
        refused(&place.run(command), remedy);
    }
    refused_search(&from_elsewhere(&["search", "invoice"]), &format!("`fetchwell config trust {found}`"));
    refused(&from_elsewhere(&["client-config", "codex"]), "needs trust");
    assert!(!was_run());
    assert!(stdout(&place.run(&["config", "trust", "--list"])).contains("changed since"));
    // With its earlier content the file is trusted, until the user revokes that.
    place.write(&source);
    stdout(&place.run(&["search", "invoice"]));
    let listed: Value =
        serde_json::from_str(&stdout(&place.run(&["config", "trust", "--list", "--json"]))).unwrap();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["state"]), (1, &Value::from("trusted")));
    stdout(&place.run(&["config", "trust", "--remove"]));
    refused_search(&place.run(&["search", "invoice"]), remedy);
    refused(&place.run(&["config", "trust", "--remove"]), "is not among the trusted files");
}

#[test]
fn harmless_settings_need_no_trust() {
    let place = Place::new(STORE);
    assert!(stdout(&place.run(&["search", "invoice"])).contains("cin_home/messages:m1"));
    assert!(stdout(&place.run(&["config", "trust"])).contains("has nothing that needs trust"));
    let shown = stdout(&place.run(&["client-config", "codex"]));
    assert!(shown.contains("--found-config") && !shown.contains("\"--config\""), "{shown}");
    // The name of a server is not that of a file.
    assert!(
        stdout(&place.run(&["client-config", "codex", "--url", "https://a.example"])).contains("a.example")
    );
    // A file that is named on the command line or in a client's configuration is trusted.
    let named = stdout(&place.run(&["client-config", "codex", "--config", "fetchwell.toml"]));
    assert!(named.contains("\"--config\""), "{named}");
    // The user's own configuration file.
    std::fs::remove_file(place.file()).unwrap();
    stdout(&place.run(&["source", "add", "demo", "--store", "demo.db"]));
    let shown = stdout(&place.run(&["client-config", "codex"]));
    assert!(shown.contains("\"--config\""), "{shown}");
    assert!(stderr(&place.run(&["config", "trust"])).contains("trusted already"));
}

#[test]
fn a_change_by_the_user_keeps_the_trust() {
    let place = Place::new(&format!("{STORE}[http]\nallowed_hosts = [\"a.example\"]\n"));
    let add = |name: &str| place.run(&["source", "add", name, "--store", "demo.db"]);
    let told = stderr(&add("b"));
    assert!(told.contains("http.allowed_hosts[0] needs trust"), "{told}");
    refused(&place.run(&["doctor"]), "needs trust");
    stdout(&place.run(&["config", "trust"]));
    assert_eq!(stderr(&add("c")), "");
    stdout(&place.run(&["source", "remove", "b"]));
    stdout(&place.run(&["doctor"]));
}

#[test]
fn a_running_server_ignores_changes_that_need_trust() {
    let place = Place::new(STORE);
    let found = text(&place.file()).to_owned();
    let command = place.binary_in(Path::new("/"));
    let server = HttpServer::start_with(command, "127.0.0.1:0", ["--found-config", &found]);
    let is_served = || get(&server.address, "/v1/schema").text.contains("cin_work");
    assert!(is_served());
    place.write(
        "[[source]]\nname = \"x\"\nurl = \"https://a.example\"\ncredential = \"command:touch was-run\"\n",
    );
    server.wait_until("the change is refused", || server.log().contains("source[0].credential needs trust"));
    assert!(server.log().contains("stays in use") && server.log().contains("fetchwell config trust"));
    assert!(is_served() && !place.path("was-run").exists());
    // A change that needs no trust is applied.
    place.write(&STORE.replace("demo\"\n", "other\"\n"));
    server.wait_until("the change is live", || server.log().contains("configuration reloaded"));
    // Trust applies to the current content of a file only.
    let trusted = format!("{STORE}[http]\nallowed_hosts = [\"a.example\"]\n");
    place.write(&trusted);
    server.wait_until("it is refused", || server.log().contains("http.allowed_hosts[0] needs trust"));
    stdout(&place.run(&["config", "trust"]));
    drop(server);
    let command = place.binary_in(Path::new("/"));
    let server = HttpServer::start_with(command, "127.0.0.1:0", ["--found-config", &found]);
    place.write(&trusted.replace("a.example", "b.example"));
    server.wait_until("it is refused", || server.log().contains("http.allowed_hosts[0] needs trust"));
}

#[test]
fn a_hostile_file_is_shown_without_its_escapes() {
    let place = Place::new(
        "[[source]]\nname = \"a\"\nurl = \"https://a.example\"\ncredential = \"command:x\\u001b[2K\\u202e\\nlisten = 1\"\n",
    );
    let shown = stdout(&place.run(&["config", "trust", "--dry-run"]));
    assert!(shown.contains("\"command:x\\u{1b}[2K\\u{202e}\\nlisten = 1\""), "{shown}");
    assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
}

#[test]
#[cfg(unix)]
fn the_list_of_trusted_files_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new(&format!("{STORE}[http]\nallowed_hosts = [\"a.example\"]\n"));
    stdout(&place.run(&["config", "trust"]));
    let record = place.path("state/fetchwell/trusted-configurations.json");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&record), mode(record.parent().unwrap())), (0o600, 0o700));
    stdout(&place.run(&["doctor"]));
    std::fs::set_permissions(&record, std::fs::Permissions::from_mode(0o666)).unwrap();
    refused(&place.run(&["doctor"]), "chmod 600");
}

#[test]
fn a_found_file_cannot_send_a_token_to_its_own_server() {
    let server = FakeServer::start(|_: &_| Reply::Json(200, "{}".to_owned()));
    for lines in
        ["", "credential = \"env:WORK_TOKEN\"\n", "allow_insecure = true\n", "cache_root = \"state\"\n"]
    {
        let place = Place::new(&format!("[[source]]\nname = \"x\"\nurl = \"{}\"\n{lines}", server.url));
        crate::support::connect(&place.path(".pdpp"), &server.url, crate::support::CREDENTIAL);
        refused_search(&place.run(&["search", "x"]), "needs trust");
        assert!(server.requests().is_empty(), "{lines}");
    }
}
