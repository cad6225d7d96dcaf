//! PgBouncer in transaction mode: each transaction is in another session of the server.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::stores::postgres::Database;
use crate::support::{binary, fetchwell, stderr, stdout};

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
