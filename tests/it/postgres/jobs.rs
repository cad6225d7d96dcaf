//! Jobs of which one process runs each: imports of a configuration and `sync --watch`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::support::stores::postgres::Database;
use crate::support::{HttpServer, binary, fetchwell, get, stderr, text, with_clock};

/// A folder of notes, and the configuration of servers that keep it current in a database.
struct Notes {
    folder: tempfile::TempDir,
    config: PathBuf,
}

impl Notes {
    fn new(database: &Database) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("notes")).unwrap();
        let config = folder.path().join("fetchwell.toml");
        let source = format!("[[source]]\nname = \"team\"\nstore = \"{}\"\n", database.url);
        fs::write(&config, format!("{source}[[import]]\npath = \"notes\"\nwatch = true\nevery = \"1s\"\n"))
            .unwrap();
        Self { folder, config }
    }

    fn write(&self, word: &str) {
        fs::write(self.origin().join(format!("{word}.md")), format!("# {word}\n\nA note.\n")).unwrap();
    }

    fn origin(&self) -> PathBuf {
        self.folder.path().join("notes")
    }

    fn serve(&self) -> HttpServer {
        self.serve_with_clock("+0s")
    }

    fn serve_with_clock(&self, clock: &str) -> HttpServer {
        HttpServer::start_with(with_clock(clock), "127.0.0.1:0", ["--config", text(&self.config)])
    }
}

/// Returns the state of the only import of a server.
fn state(server: &HttpServer) -> String {
    let health: Value = get(&server.address, "/health").json();
    health["imports"][0]["state"].as_str().unwrap_or_default().to_owned()
}

fn finds(server: &HttpServer, word: &str) -> bool {
    get(&server.address, &format!("/v1/search?q={word}")).text.contains(&format!("{word}.md"))
}

/// Returns the processes that follow an import now.
async fn followers(database: &Database) -> i64 {
    let sql = "SELECT count(*) FROM pg_stat_activity
         WHERE application_name = 'fetchwell follow notes' AND datname = current_database()";
    database.client().await.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn one_server_of_several_follows_an_import() {
    let database = Database::create().await;
    let notes = Notes::new(&database);
    notes.write("cornflower");
    // Leases do not depend on the clocks of the servers.
    let servers = [notes.serve(), notes.serve_with_clock("-600s")];
    servers[0]
        .wait_until("the notes are imported", || servers.iter().all(|server| finds(server, "cornflower")));
    let waiting = || servers.iter().filter(|server| state(server) == "waiting").count();
    servers[0].wait_until("the other one waits", || waiting() == 1);
    assert_eq!(followers(&database).await, 1);
    notes.write("marigold");
    servers[0].wait_until("a new note is found", || servers.iter().all(|server| finds(server, "marigold")));

    // The other one takes the place of one that is killed.
    let [one, other] = servers;
    let (mut leader, waiting) = if state(&other) == "waiting" { (one, other) } else { (other, one) };
    leader.process.kill().unwrap();
    leader.process.wait().unwrap();
    notes.write("bluebell");
    waiting.wait_until("the other server follows", || finds(&waiting, "bluebell"));
    assert_ne!(state(&waiting), "waiting");
    assert_eq!(followers(&database).await, 1);
    // A command beside it is not refused for long: the lease of an import is held only while it is synchronized.
    notes.write("foxglove");
    let sync = fetchwell(["sync", "notes", "--store", &database.url]);
    assert!(sync.status.success() || stderr(&sync).contains("being synchronized"), "{sync:?}");
    waiting.wait_until("the last note is found", || finds(&waiting, "foxglove"));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn watched_import_of_a_database_follows_its_folder() {
    let database = Database::create().await;
    let notes = Notes::new(&database);
    notes.write("cornflower");
    let added = fetchwell(["add", text(&notes.origin()), "--store", &database.url]);
    assert!(added.status.success(), "{added:?}");
    let out = notes.folder.path().join("out");
    let watch = |out: &Path| {
        let mut command = binary();
        command.args(["sync", "--watch", "--store", &database.url]);
        command.stdout(fs::File::create(out).unwrap()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut first = watch(&out);
    let server = HttpServer::start(["--store", &database.url]);
    while followers(&database).await == 0 {
        tokio::task::yield_now().await;
    }
    notes.write("marigold");
    server.wait_until("a new note is found", || finds(&server, "marigold"));
    fs::remove_file(notes.origin().join("cornflower.md")).unwrap();
    server.wait_until("a deleted note is gone", || !finds(&server, "cornflower"));
    // A second one waits, and takes the place of the first.
    let mut second = watch(&notes.folder.path().join("second"));
    first.kill().unwrap();
    first.wait().unwrap();
    notes.write("bluebell");
    server.wait_until("the second process follows", || finds(&server, "bluebell"));
    second.kill().unwrap();
    second.wait().unwrap();
    assert!(fs::read_to_string(&out).unwrap().contains("notes"), "{}", fs::read_to_string(&out).unwrap());
}

/// Runs a command with the password of the configured database in its environment. Returns its standard output as JSON.
fn run(arguments: &[&str]) -> (bool, Value) {
    let output = binary().args(arguments).env("STORE_PASSWORD", "fetchwell-test").output().unwrap();
    let shown = serde_json::from_slice(&output.stdout);
    (output.status.success(), shown.unwrap_or_else(|error| panic!("{error}: {output:?}")))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn imports_of_a_configured_database_are_checked_and_synchronized() {
    let database = Database::create().await;
    let notes = Notes::new(&database);
    let config = fs::read_to_string(&notes.config).unwrap();
    fs::write(&notes.config, config.replace("fetchwell-test", "env:STORE_PASSWORD")).unwrap();
    let config = text(&notes.config);
    let check = || {
        let (_, checks) = run(&["doctor", "--json", "--config", config]);
        checks.as_array().unwrap().iter().find(|check| check["name"] == "imports").unwrap().clone()
    };
    let warning = || check()["warning"].as_str().unwrap_or_default().to_owned();
    let sync = |more: &[&str]| run(&[&["sync", "--json", "--config", config][..], more].concat());

    // Nothing has synchronized the import of the configuration yet.
    assert!(warning().contains("`notes` of the configuration was never synchronized"), "{}", check());
    notes.write("cornflower");
    let added = fetchwell(["add", text(&notes.origin()), "--store", &database.url]);
    assert!(added.status.success(), "{added:?}");
    let current = check();
    assert_eq!(current["found"], "1 import", "{current}");
    assert!(current.get("warning").is_none(), "{current}");

    notes.write("marigold");
    let (is_complete, reports) = sync(&[]);
    assert!(is_complete && reports[0]["connection_id"] == "notes" && reports[0]["added"] == 1, "{reports}");
    let (is_complete, reports) = sync(&["notes"]);
    assert!(is_complete && reports[0]["files_unchanged"] == 2, "{reports}");
    let (_, shown) = run(&["connections", "--json", "--config", config]);
    assert!(shown[0]["import"]["last_sync"].is_string(), "{shown}");
    let (_, shown) = run(&["store", "info", "--json", "--config", config]);
    assert!(shown["imports"][0]["last_sync"].is_string(), "{shown}");

    // An old synchronization is stale, also for a role that may only read.
    let old = "UPDATE fetchwell.imports SET last_sync = '2026-01-01T00:00:00Z'";
    database.client().await.batch_execute(old).await.unwrap();
    assert!(warning().contains("days ago; run `fetchwell sync notes`"), "{}", check());
    let grants = "GRANT USAGE ON SCHEMA fetchwell TO ROLE_NAME; GRANT SELECT ON ALL TABLES IN SCHEMA fetchwell TO ROLE_NAME";
    let reader = database.role(grants).await;
    let (_, checks) = run(&["doctor", "--json", "--store", &reader]);
    let found = checks.as_array().unwrap().iter().find(|check| check["name"] == "imports").unwrap().clone();
    assert!(found["warning"].as_str().unwrap().contains("days ago"), "{found}");

    // An origin that is gone is an error of the import.
    fs::remove_dir_all(notes.origin()).unwrap();
    let (is_complete, reports) = sync(&[]);
    assert!(!is_complete && reports[0]["error"].is_string(), "{reports}");
    assert!(warning().contains("`notes` is not up to date"), "{}", check());
}
