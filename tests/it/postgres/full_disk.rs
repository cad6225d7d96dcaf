//! Imports into a database with a full disk. The import fails with the reason and keeps what it wrote, searches still work,
//! and the next import writes the rest.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::json;
use tokio_postgres::Client;

use crate::support::stores::postgres::{Database, programs};
use crate::support::{HttpServer, binary, fetchwell, get, stderr, text};

/// Number of records of the import that does not fit: several batches of 2,000.
const RECORDS: usize = 9_000;

/// Number of records before it.
const EARLIER: usize = 40;

/// Size of the disk in KiB.
const DISK_KIB: u64 = 96 * 1_024;

/// Free space on the disk before the import, in KiB.
const FREE_KIB: u64 = 10 * 1_024;

/// Returns records with text that cannot be compressed much.
fn lines(prefix: &str, count: usize) -> String {
    let line = |number: usize| {
        let seed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let words: Vec<String> = (1..16).map(|at| format!("{:x}", seed.rotate_left(at * 4))).collect();
        let data = json!({"title": format!("{prefix} {number}"), "body": words.join(" ")});
        format!("{}\n", json!({"stream": "s", "key": format!("{prefix}{number}"), "data": data}))
    };
    (0..count).map(line).collect()
}

/// A way in which the disk of a database is full.
enum FullDisk {
    /// A file system in memory with the tablespace of the database.
    Mounted(MountedDisk),
    /// A trigger with the error of a full disk after some records.
    Trigger,
}

/// A small file system with a tablespace.
struct MountedDisk {
    folder: tempfile::TempDir,
    /// Name of the tablespace.
    name: String,
    /// URL of a superuser of the server.
    server: String,
    database: String,
}

fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).stdin(Stdio::null()).output().unwrap()
}

impl MountedDisk {
    /// Mounts a disk and creates a tablespace on it. Returns the reason if that is not allowed.
    async fn create(server: &Database) -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let place = text(folder.path()).to_owned();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={DISK_KIB}k,mode=755"), "tmpfs", &place])
            .stdin(Stdio::null())
            .output();
        match mounted {
            Ok(mounted) if mounted.status.success() => {}
            Ok(refused) => return Err(stderr(&refused)),
            Err(error) => return Err(error.to_string()),
        }
        let disk = Self {
            name: format!("disk_{}", server.name),
            server: server.url.clone(),
            database: format!("full_{}", server.name),
            folder,
        };
        let space = disk.path("space");
        fs::create_dir(&space).unwrap();
        let client = server.client().await;
        let data: String = client.query_one("SHOW data_directory", &[]).await.unwrap().get(0);
        assert!(run("chmod", &["755", &place]).status.success());
        assert!(run("chown", &["--reference", &data, text(&space)]).status.success());
        let create = format!("CREATE TABLESPACE {} LOCATION '{}'", disk.name, space.display());
        client.batch_execute(&create).await.unwrap();
        Ok(disk)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn free_kib(&self) -> u64 {
        let output = run("df", &["--output=avail", "-k", text(self.folder.path())]);
        String::from_utf8(output.stdout).unwrap().lines().last().unwrap().trim().parse().unwrap()
    }

    /// Leaves only some space.
    fn fill(&self) {
        let ballast = self.free_kib().checked_sub(FREE_KIB).unwrap();
        fs::write(self.path("ballast"), vec![1; usize::try_from(ballast * 1_024).unwrap()]).unwrap();
    }

    fn free(&self) {
        fs::remove_file(self.path("ballast")).unwrap();
    }
}

impl Drop for MountedDisk {
    fn drop(&mut self) {
        let psql = Path::new(&programs()).join("psql");
        for sql in [
            format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.database),
            format!("DROP TABLESPACE IF EXISTS {}", self.name),
        ] {
            let _dropped = run(text(&psql), &["-q", "-d", &self.server, "-c", &sql]);
        }
        let _unmounted = run("umount", &["-l", text(self.folder.path())]);
    }
}

impl FullDisk {
    /// Leaves space for some batches of records.
    async fn fill(&self, database: &Database) {
        match self {
            Self::Mounted(disk) => disk.fill(),
            Self::Trigger => database.client().await.batch_execute(TRIGGER).await.unwrap(),
        }
    }

    async fn free(&self, database: &Database) {
        match self {
            Self::Mounted(disk) => disk.free(),
            Self::Trigger => {
                let sql = "DROP TRIGGER fill ON fetchwell.records";
                database.client().await.batch_execute(sql).await.unwrap();
            }
        }
    }
}

/// Error of a full disk after more records than one batch has. `nextval` is not undone with its transaction.
const TRIGGER: &str = "CREATE SEQUENCE public.rows_written;
    CREATE FUNCTION public.fill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('public.rows_written') > 5000 THEN
            RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER fill BEFORE INSERT ON fetchwell.records FOR EACH ROW EXECUTE FUNCTION public.fill()";

/// Returns the database of a test, whose disk will be full.
async fn database(disk: &FullDisk) -> Database {
    let database = Database::create().await;
    let FullDisk::Mounted(disk) = disk else { return database };
    let create = format!("CREATE DATABASE {} TABLESPACE {} TEMPLATE template0", disk.database, disk.name);
    database.client().await.batch_execute(&create).await.unwrap();
    let url = database.url.replace(&database.name, &disk.database);
    Database { url, authority: database.authority.clone(), name: disk.database.clone() }
}

/// Returns the numbers of rows, different keys, rows with words and records of streams, and the version.
async fn counts(client: &Client) -> [i64; 5] {
    let sql = "SELECT (SELECT count(*) FROM fetchwell.records), (SELECT count(DISTINCT key) FROM fetchwell.records),
         (SELECT count(*) FROM fetchwell.texts), (SELECT sum(record_count)::bigint FROM fetchwell.streams),
         (SELECT version FROM fetchwell.store)";
    let row = client.query_one(sql, &[]).await.unwrap();
    std::array::from_fn(|at| row.get(at))
}

/// Imports into a database with a full disk, and again when there is space. `earlier` records are there before.
async fn check(disk: FullDisk, earlier: usize) {
    let database = database(&disk).await;
    database.store().state().await.unwrap();
    if earlier > 0 {
        database.import("before", &lines("earlier", earlier));
    }
    // A new session cannot write its cache on a full disk.
    let client = database.client().await;
    let server = HttpServer::start(["--store", &database.url]);
    let is_found = || {
        let found = get(&server.address, "/v1/search?q=earlier&limit=100");
        assert_eq!(found.status, 200, "{found:?}");
        found.json()["data"].as_array().map_or(0, Vec::len) == earlier
    };
    server.wait_until("the earlier records are found", is_found);
    disk.fill(&database).await;

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("records.ndjson");
    fs::write(&file, lines("letter", RECORDS)).unwrap();
    let import =
        ["import", "records", text(&file), "--store", &database.url, "--connection", "work", "--json"];
    assert_full(&run_beside(&import, || assert!(is_found(), "a search while the disk fills")));
    // The batches before are written, whole and once; readers see them.
    let [rows, keys, texts, counted, version] = counts(&client).await;
    let written = usize::try_from(rows).unwrap() - earlier;
    assert!(written > 0 && written < RECORDS && written.is_multiple_of(2_000), "{rows}");
    assert_eq!([keys, texts, counted, version], [rows; 4]);
    assert!(is_found(), "a search while the disk is full");
    assert_full(&fetchwell(import));
    assert_eq!(counts(&client).await, [rows; 5], "the disk is still full");

    disk.free(&database).await;
    let done = fetchwell(import);
    assert!(done.status.success(), "{done:?}");
    let all = i64::try_from(RECORDS + earlier).unwrap();
    assert_eq!(counts(&client).await, [all; 5], "each record is written once");
    assert_eq!(database.store().state().await.unwrap().missing_indexes, 0);
    server.wait_until("the last record is found", || has_letter(&server, RECORDS - 1));
    assert!(is_found(), "the earlier records");
}

/// Runs a command, and another check again and again until the command ends.
fn run_beside(command: &[&str], check: impl Fn()) -> Output {
    let mut process = binary();
    process.args(command).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = process.spawn().unwrap();
    while process.try_wait().unwrap().is_none() {
        check();
    }
    process.wait_with_output().unwrap()
}

/// Checks that an import failed on a full disk. The error has the remedy, and no text of a record.
#[track_caller]
fn assert_full(import: &Output) {
    let problem = stderr(import);
    assert!(!import.status.success() && problem.contains("the disk of the server"), "{import:?}");
    assert!(problem.contains("is full; free space there, then run the command again"), "{import:?}");
    assert!(!problem.contains("fetchwell-test") && !problem.contains("letter"), "{import:?}");
}

/// Returns true if a search finds a record of the import.
fn has_letter(server: &HttpServer, number: usize) -> bool {
    let found = get(&server.address, &format!("/v1/search?q=%22letter%20{number}%22"));
    found.text.contains(&format!("letter{number}"))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn import_into_a_full_tablespace_goes_on_when_there_is_space() {
    let server = Database::create().await;
    match MountedDisk::create(&server).await {
        Ok(disk) => check(FullDisk::Mounted(disk), EARLIER).await,
        Err(reason) => {
            println!(
                "no file system can be mounted here ({}), so a trigger reports the error",
                reason.trim()
            );
            check(FullDisk::Trigger, EARLIER).await;
        }
    }
}

/// The first import of a database drops its indexes, and builds them at its end.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn first_import_into_a_full_disk_goes_on_when_there_is_space() {
    check(FullDisk::Trigger, 0).await;
}
