//! PgBouncer in transaction mode: each transaction is in another session of the server.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::stores::postgres::Database;
use crate::support::{EmbeddingService, binary, fetchwell, stderr, stdout, text};

/// Running PgBouncer. It stops with the test.
struct PgBouncer {
    process: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _status = self.process.wait();
    }
}

impl PgBouncer {
    /// Starts PgBouncer before the server of a database, with fewer sessions than clients.
    fn start(database: &Database) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (host, server_port) = database.authority.split_once(':').unwrap();
        let settings = format!(
            "[databases]\n{name} = host={host} port={server_port} user=postgres password=fetchwell-test\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
             pool_mode = transaction\ndefault_pool_size = 4\nmax_client_conn = 200\nserver_round_robin = 1\n",
            name = database.name
        );
        let file = folder.path().join("pgbouncer.ini");
        std::fs::write(&file, settings).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut command = Command::new("pgbouncer");
        // It refuses to run as root.
        if Command::new("id").arg("-u").output().unwrap().stdout == b"0\n" {
            command.args(["-u", "nobody"]);
        }
        let process = command.arg(&file).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        // tests/postgres/run installs it.
        let process = process.unwrap();
        let started = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(started.elapsed() < Duration::from_secs(30), "PgBouncer does not start");
            std::thread::park_timeout(Duration::from_millis(20));
        }
        Self { process, port, _folder: folder }
    }

    fn url(&self, database: &Database, parameters: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{}{parameters}", self.port, database.name)
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn everything_works_behind_a_pooler_in_transaction_mode() {
    let mut database = Database::create().await;
    let pooler = PgBouncer::start(&database);
    database.url = pooler.url(&database, "?pooler=transaction");
    let line = |number: usize| {
        format!("{{\"stream\":\"s\",\"key\":\"k{number}\",\"data\":{{\"title\":\"Zeppelin {number}\"}}}}\n")
    };
    let lines: String = (0..2_500).map(line).collect();
    // The tables are created through the pooler, too.
    database.import("work", &lines);
    database.import("work", &lines);
    // Processes share the sessions, in which each prepares its statements.
    let search = || {
        let mut command = binary();
        command.args(["search", "zeppelin 7", "--store", &database.url, "--json"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    for _ in 0..3 {
        let searches: Vec<Child> = (0..6).map(|_| search()).collect();
        for search in searches {
            let output = search.wait_with_output().unwrap();
            assert!(output.status.success() && stdout(&output).contains("k7"), "{output:?}");
        }
    }
    for arguments in [["store", "info"], ["store", "status"]] {
        let output = fetchwell([arguments[0], arguments[1], "--store", &database.url]);
        assert!(output.status.success(), "{output:?}");
    }
    let export = fetchwell(["export", "work", "--format", "ndjson", "--store", &database.url]);
    assert_eq!(stdout(&export).lines().count(), 2_500);
    let remove = fetchwell(["remove", "work/s:k1", "--yes", "--store", &database.url]);
    assert!(remove.status.success(), "{remove:?}");
}

/// Synchronized imports and builds of vectors hold leases and write in transactions of their own.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn synchronizations_and_builds_of_vectors_work_behind_a_pooler() {
    let mut database = Database::create().await;
    let sql = "SELECT EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'vector')";
    let has_pgvector: bool = database.client().await.query_one(sql, &[]).await.unwrap().get(0);
    let pooler = PgBouncer::start(&database);
    database.url = pooler.url(&database, "?pooler=transaction");
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    std::fs::create_dir(&notes).unwrap();
    for number in 0..20 {
        let note = format!("# Note {number}\n\nA zeppelin over town {number}.\n");
        std::fs::write(notes.join(format!("{number}.md")), note).unwrap();
    }
    let service = EmbeddingService::start();
    let config = folder.path().join("fetchwell.toml");
    let table = service.table(true) + "pad_to = 1024\nbackground = false\nquery_timeout = \"30s\"\n";
    let source = format!("[[source]]\nname = \"team\"\nstore = \"{}\"\n", database.url);
    std::fs::write(&config, source + &table).unwrap();
    let run = |arguments: &[&str]| {
        let output = binary().args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        stdout(&output)
    };
    run(&["add", text(&notes), "--store", &database.url, "--no-embed"]);
    std::fs::write(notes.join("3.md"), "# Note 3\n\nAn airship instead.\n").unwrap();
    std::fs::remove_file(notes.join("4.md")).unwrap();
    let synchronized = |count: usize| {
        let reports = run(&["sync", "--store", &database.url, "--json", "--no-embed"]);
        let reports: serde_json::Value = serde_json::from_str(&reports).unwrap();
        assert_eq!(reports[0]["changed"], count, "{reports}");
        assert_eq!(reports[0]["deleted"], count, "{reports}");
    };
    // Several clients share the sessions of the server.
    let searching: Vec<Child> = (0..6)
        .map(|_| {
            let mut command = binary();
            command.args(["search", "zeppelin 7", "--store", &database.url, "--json"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    synchronized(1);
    synchronized(0);
    for search in searching {
        let output = search.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    if !has_pgvector {
        return;
    }
    crate::support::handbook::import(&folder.path().join("docs"), std::path::Path::new(&database.url));
    for command in ["build", "rebuild"] {
        let built = run(&["embeddings", command, "--config", text(&config), "--json"]);
        let built: serde_json::Value = serde_json::from_str(&built).unwrap();
        assert_eq!(built["embedded"], 19 + 21, "{built}");
    }
    let status = run(&["embeddings", "status", "--config", text(&config), "--json"]);
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["vectors"]["records"]["current"]["chunks"], 19, "{status}");
    assert_eq!(status["vectors"]["models"][0]["chunks"], 21, "{status}");
    let found = run(&[
        "search",
        "an airship",
        "--mode",
        "semantic",
        "--connection-id",
        "notes",
        "--config",
        text(&config),
    ]);
    assert!(found.contains("airship"), "{found}");
    run(&["embeddings", "remove", "--config", text(&config)]);
}

/// Without the parameter, statements of several clients collide. The error says what to add.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn a_pooler_that_is_not_declared_is_named() {
    let mut database = Database::create().await;
    let pooler = PgBouncer::start(&database);
    database.url = pooler.url(&database, "?pooler=transaction");
    database.import("work", "{\"stream\":\"s\",\"key\":\"k\",\"data\":{\"title\":\"Zeppelin\"}}\n");
    let undeclared = pooler.url(&database, "");
    for _ in 0..40 {
        let output = fetchwell(["search", "zeppelin", "--store", &undeclared]);
        if !output.status.success() {
            assert!(stderr(&output).contains("pooler=transaction"), "{output:?}");
            return;
        }
    }
    panic!("no statement collided");
}
