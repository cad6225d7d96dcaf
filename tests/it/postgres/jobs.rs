//! Jobs of which one process runs each: imports of a configuration and `sync --watch`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::support::stores::postgres::Database;
use crate::support::{HttpServer, binary, fetchwell, get, stderr, text};

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
        HttpServer::start(["--config", text(&self.config)])
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
    let servers = [notes.serve(), notes.serve()];
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
