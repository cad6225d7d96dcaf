//! `fetchwell add` and `fetchwell sync`: imports that follow their origins, through the built binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{HttpServer, binary, fetchwell, get, stderr, stdout, text, wait_until};

/// Returns the number of times that a test kills a process; `FETCHWELL_KILLS` sets another one than 20.
pub(crate) fn kills() -> usize {
    #[expect(clippy::disallowed_methods, reason = "it is said to the test, and not to the program")]
    let kills = std::env::var("FETCHWELL_KILLS").ok().and_then(|kills| kills.parse().ok());
    kills.unwrap_or(20)
}

/// A folder that is imported, and a store.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(place.origin()).unwrap();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn origin(&self) -> PathBuf {
        self.path("notes")
    }

    pub(crate) fn store(&self) -> String {
        text(&self.path("store.db")).to_owned()
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.origin().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn notes(&self, numbers: std::ops::Range<usize>) {
        for number in numbers {
            self.write(&format!("n{number}.md"), &note(number));
        }
    }

    /// Starts `sync --watch`. Returns it with a function that reads what it printed.
    pub(crate) fn watch(&self) -> (Child, impl Fn() -> String + use<>) {
        let out = self.path("out");
        let watch = self
            .command(&["sync", "--watch"])
            .stdout(fs::File::create(&out).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        (watch, move || fs::read_to_string(&out).unwrap())
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = binary();
        // `remove` deletes all cursors of a state directory, and other tests read theirs.
        command.env("XDG_STATE_HOME", self.path("state"));
        command.args(arguments).args(["--store", &self.store()]);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    #[track_caller]
    pub(crate) fn add(&self) -> Value {
        report(&self.run(&["add", text(&self.origin()), "--json"]))
    }

    /// Added, changed and deleted records, read files, held records.
    #[track_caller]
    pub(crate) fn sync(&self, arguments: &[&str]) -> [u64; 5] {
        let output = self.run(&[&["sync", "--json", "notes"], arguments].concat());
        let reports: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        counts(&reports[0])
    }

    /// The records of the store: stream, key and data.
    pub(crate) fn records(&self, store: &str) -> Vec<(String, String, Value)> {
        let schema: Value =
            serde_json::from_str(&stdout(&fetchwell(["connections", "--store", store, "--json"]))).unwrap();
        assert_eq!(schema.as_array().unwrap().len(), 1, "{schema}");
        let database = rusqlite::Connection::open(store).unwrap();
        let mut rows = database
            .prepare(
                "SELECT s.name, r.key, r.data FROM records r JOIN streams s ON s.id = r.stream
                 WHERE r.data IS NOT NULL ORDER BY 1, 2",
            )
            .unwrap();
        let rows = rows.query_map((), |row| {
            Ok((row.get(0)?, row.get(1)?, serde_json::from_str(&row.get::<_, String>(2)?).unwrap()))
        });
        let records: Vec<(String, String, Value)> = rows.unwrap().map(Result::unwrap).collect();
        let streams = schema[0]["streams"].as_array().unwrap();
        let listed: u64 = streams.iter().map(|stream| stream["record_count"].as_u64().unwrap()).sum();
        assert_eq!(listed, records.len() as u64, "counts of streams match their records");
        records
    }

    /// Asserts that the store equals a first import of the same folder.
    #[track_caller]
    fn check_equals_first_import(&self) {
        let fresh = tempfile::tempdir().unwrap();
        let store = text(&fresh.path().join("fresh.db")).to_owned();
        let output =
            fetchwell(["import", "files", text(&self.origin()), "--store", &store, "--connection", "notes"]);
        assert!(Path::new(&store).exists(), "{output:?}");
        let (expect, found) = (self.records(&store), self.records(&self.store()));
        let lost: Vec<_> = expect.iter().filter(|record| !found.contains(record)).collect();
        let doubled: Vec<_> = found.iter().filter(|record| !expect.contains(record)).collect();
        assert!(lost.is_empty() && doubled.is_empty(), "lost {lost:?}\nsuperfluous {doubled:?}");
    }

    pub(crate) fn search(&self, query: &str) -> Vec<String> {
        let output = self.run(&["search", query, "--limit", "100", "--json"]);
        let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        let hits = found["results"].as_array().unwrap();
        hits.iter().map(|hit| hit["id"].as_str().unwrap().to_owned()).collect()
    }
}

/// A word of nine letters that no other number has.
pub(crate) fn word(number: usize) -> String {
    let mut random = Random(number as u64 + 1);
    (0..9).map(|_| char::from(b"abcdefghijklmnopqrstuvwxyz"[random.below(26)])).collect()
}

fn note(number: usize) -> String {
    format!("# Note {number}\n\n{}\n", word(number))
}

#[track_caller]
pub(crate) fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

pub(crate) fn counts(report: &Value) -> [u64; 5] {
    ["added", "changed", "deleted", "files_read", "held"].map(|name| report[name].as_u64().unwrap())
}

/// Numbers that look random, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// Random changes of a folder with notes, calendars, mailboxes and tables that share keys.
struct Changes {
    random: Random,
    files: Vec<String>,
    number: usize,
}

impl Changes {
    fn new(seed: u64) -> Self {
        Self { random: Random(seed), files: Vec::new(), number: 0 }
    }

    fn content(&mut self, name: &str) -> String {
        let number = self.number;
        let random = &mut self.random;
        match name.rsplit('.').next() {
            Some("ics") => {
                let event = |id: usize| {
                    format!(
                        "BEGIN:VEVENT\r\nUID:u{id}@x\r\nDTSTART:20260401T100000Z\r\nSUMMARY:Event {number}\r\nEND:VEVENT\r\n"
                    )
                };
                let events: String = (0..3).map(|_| event(random.below(12))).collect();
                format!("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{events}END:VCALENDAR\r\n")
            }
            Some("mbox") => {
                let mail = |id: usize, text: usize| {
                    format!(
                        "From a@x.test Wed Apr  1 10:00:00 2026\nFrom: a@x.test\nMessage-ID: <m{id}@x>\nSubject: Mail {text}\n\nbody {text}\n\n"
                    )
                };
                (0..4)
                    .map(|_| mail(random.below(12), if random.below(2) == 0 { 1 } else { number }))
                    .collect()
            }
            Some("csv") => {
                let first = random.below(10);
                let rows = (first..first + 5).map(|id| format!("{id},row {number}\n"));
                format!("id,title\n{}", rows.collect::<String>())
            }
            _ => note(number),
        }
    }

    /// Creates, edits, renames or deletes a file.
    fn change(&mut self, place: &Place) {
        self.number += 1;
        let number = self.number;
        let folder = ["", "a/", "b/", "a/c/"][self.random.below(4)];
        let choice = self.random.below(100);
        if self.files.len() < 3 || choice < 40 {
            let ending = ["md", "md", "ics", "mbox", "csv"][self.random.below(5)];
            let name = format!("{folder}f{number}.{ending}");
            let content = self.content(&name);
            place.write(&name, &content);
            self.files.push(name);
        } else if choice < 65 {
            let at = self.random.below(self.files.len());
            let name = self.files[at].clone();
            let content = self.content(&name);
            place.write(&name, &content);
        } else {
            let at = self.random.below(self.files.len());
            let name = self.files.swap_remove(at);
            if choice < 82 {
                let renamed = format!("{folder}r{number}.{}", name.rsplit('.').next().unwrap());
                let to = place.origin().join(&renamed);
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::rename(place.origin().join(name), to).unwrap();
                self.files.push(renamed);
            } else {
                fs::remove_file(place.origin().join(name)).unwrap();
            }
        }
    }
}

#[test]
fn an_import_is_remembered_and_follows_its_folder() {
    let place = Place::new();
    place.notes(0..5);
    let added = place.add();
    assert_eq!((counts(&added), &added["connection_id"]), ([5, 0, 0, 5, 0], &json!("notes")), "{added}");
    assert_eq!(place.sync(&[])[..3], [0, 0, 0]);
    place.write("n1.md", "# Note 1\n\nedited\n");
    fs::remove_file(place.origin().join("n2.md")).unwrap();
    fs::rename(place.origin().join("n3.md"), place.origin().join("moved.md")).unwrap();
    place.notes(5..6);
    assert_eq!(place.sync(&[]), [2, 1, 2, 3, 0]);
    assert_eq!(place.search("edited"), ["notes/documents:n1.md"]);
    assert_eq!(place.search(&word(3)), ["notes/documents:moved.md"]);
    assert!(place.search(&word(2)).is_empty() && place.search(&word(1)).is_empty());
    // Adding it again is a synchronization.
    place.notes(6..7);
    let again = place.run(&["add", text(&place.origin()), "--json"]);
    assert_eq!(counts(&report(&again))[..3], [1, 0, 0]);
    assert!(stderr(&again).contains("is already added as `notes`"), "{again:?}");
    place.check_equals_first_import();
}

#[test]
fn what_is_added_is_described_and_mistakes_are_refused() {
    let place = Place::new();
    place.notes(0..2);
    let origin = place.origin();
    let origin = text(&origin);
    let dry = place.run(&["add", origin, "--dry-run"]);
    assert!(stderr(&dry).contains("(2 files, 40 B) as files into the connection `notes`"), "{dry:?}");
    assert!(!Path::new(&place.store()).exists());
    let table = place.path("orders.csv");
    fs::write(&table, "no,customer\n7,Ann\n8,Bo\n").unwrap();
    for (arguments, expect) in [
        (vec!["add", "/no/such/path"], "cannot be read"),
        (
            vec!["add", "https://ann:s3cret@example.com/a.csv"],
            "only files and folders are imported, not URLs",
        ),
        (vec!["add", "https://example.com"], "fetchwell source add NAME --url URL"),
        (vec!["add", origin, "--kind", "word"], "`word` is no kind of import"),
        (vec!["add", origin, "--kind", "csv"], "notes is a folder; name a file in it"),
        (vec!["add", origin, "--key", "no"], "--key does not apply to imports of kind files"),
        (vec!["add", origin, "--manifest", text(&table)], "streams"),
    ] {
        let refused = place.run(&arguments);
        assert!(!refused.status.success() && stderr(&refused).contains(expect), "{refused:?}");
    }
    let added = report(&place.run(&["add", text(&table), "--key", "no", "--json"]));
    assert_eq!((counts(&added)[0], &added["kind"]), (2, &json!("csv")), "{added}");
    let other = place.run(&["add", origin, "--connection", "orders"]);
    assert!(stderr(&other).contains("the connection `orders` has the records of"), "{other:?}");
    // A name that another import has is numbered.
    let namesake = place.path("orders.tsv");
    fs::write(&namesake, "no\tcustomer\n1\tDi\n").unwrap();
    let numbered = place.run(&["add", text(&namesake), "--dry-run"]);
    assert!(stderr(&numbered).contains("so this one is `orders-2`; --connection chooses"), "{numbered:?}");
    let unknown = place.run(&["sync", "mail"]);
    assert!(stderr(&unknown).contains("`mail` is not an import of this store; it has orders"), "{unknown:?}");
    assert_eq!(place.run(&["sync", "--prune"]).status.code(), Some(2), "--prune needs a name");
    // A row that is no longer in the table is deleted.
    fs::write(&table, "no,customer\n8,Bo\n9,Cy\n").unwrap();
    let reports = report(&place.run(&["sync", "--json"]));
    assert_eq!(counts(&reports[0])[..3], [1, 0, 1], "{reports}");
}

#[test]
fn paths_that_overlap_are_warned_of() {
    let place = Place::new();
    place.write("work/plan.md", "# Plan\n");
    place.notes(0..1);
    let (outer, inner) = (place.origin().canonicalize().unwrap(), place.origin().join("work"));
    let inner = inner.canonicalize().unwrap();
    let first = place.run(&["add", text(&inner)]);
    assert!(!stderr(&first).contains("imported twice"), "{first:?}");
    let around = place.run(&["add", text(&outer), "--dry-run"]);
    let expect = format!("{} contains {}, which is added as `work`", text(&outer), text(&inner));
    assert!(around.status.success() && stderr(&around).contains(&expect), "{around:?}");
    stdout(&place.run(&["add", text(&outer)]));
    let within = place.run(&["add", text(&inner.join("plan.md"))]);
    for (name, path) in [("work", &inner), ("notes", &outer)] {
        let expect = format!("plan.md is inside {}, which is added as `{name}`", text(path));
        assert!(stderr(&within).contains(&expect), "{expect}: {within:?}");
    }
    // Adding a path again, and a path beside another, imports nothing twice.
    fs::create_dir(place.path("notes-2")).unwrap();
    fs::write(place.path("notes-2/a.md"), "# A\n").unwrap();
    for path in [&outer, &place.path("notes-2")] {
        let added = place.run(&["add", text(path)]);
        assert!(added.status.success() && !stderr(&added).contains("imported twice"), "{added:?}");
    }
}

/// Also prints the time from a file event to a search that finds the file: `cargo test --test it thousand -- --nocapture`.
#[test]
fn a_thousand_random_changes_are_followed_while_a_client_searches() {
    let place = Place::new();
    let mut changes = Changes::new(42);
    // Fewer files would be held when many of them are deleted at a time.
    (0..200).for_each(|_| changes.change(&place));
    place.add();
    let server = HttpServer::start(["--store", &place.store()]);
    let (mut watch, printed) = place.watch();
    let (mut step, mut took) = (0, Vec::new());
    while step < 1_000 {
        let many = 1 + changes.random.below(60);
        for _ in 0..many {
            changes.change(&place);
            step += 1;
        }
        let (name, number) = (format!("last{step}.md"), 1_000_000 + step);
        place.write(&name, &note(number));
        let written = Instant::now();
        wait_until("the last file is found", || {
            let found = get(&server.address, &format!("/v1/search?q={}", word(number)));
            assert_eq!(found.status, 200, "{}", found.text);
            found.text.contains(&name)
        });
        took.push(written.elapsed());
        changes.files.push(name);
    }
    took.sort_unstable();
    let at = |percent: usize| took[took.len() * percent / 100];
    println!("{step} changes; file event to found by a search: p50 {:?}, p95 {:?}", at(50), at(95));
    // Deletions are the last part of a synchronization.
    let mut before = String::new();
    wait_until("nothing changes any more", || {
        std::thread::park_timeout(Duration::from_secs(2));
        let now = printed();
        let is_same = now == before;
        before = now;
        is_same
    });
    watch.kill().unwrap();
    watch.wait().unwrap();
    place.check_equals_first_import();
    for name in &changes.files {
        let Some(text) = fs::read_to_string(place.origin().join(name)).ok().filter(|_| name.ends_with(".md"))
        else {
            continue;
        };
        let hits = place.search(text.trim().rsplit('\n').next().unwrap());
        let file = name.rsplit('/').next().unwrap();
        assert!(hits.len() == 1 && hits[0].ends_with(file), "{name}: {hits:?}");
    }
}

#[test]
fn an_origin_that_is_gone_deletes_nothing() {
    let place = Place::new();
    place.notes(0..30);
    place.add();
    let away = place.path("away");
    fs::rename(place.origin(), &away).unwrap();
    let gone = place.run(&["sync"]);
    assert_eq!(gone.status.code(), Some(1), "{gone:?}");
    assert!(String::from_utf8_lossy(&gone.stdout).contains("notes: not up to date"), "{gone:?}");
    let listed = stdout(&place.run(&["connections"]));
    assert!(listed.contains("not up to date") && listed.contains("30 records"), "{listed}");
    let checked = stdout(&place.run(&["doctor"]));
    assert!(checked.contains("1 import; `notes` is not up to date"), "{checked}");
    // The folder of a disk that is not mounted is empty.
    fs::create_dir(place.origin()).unwrap();
    assert_eq!(place.sync(&[]), [0, 0, 0, 0, 30]);
    fs::remove_dir(place.origin()).unwrap();
    fs::rename(&away, place.origin()).unwrap();
    assert_eq!(place.sync(&[]), [0, 0, 0, 0, 0]);
    fs::rename(place.origin(), &away).unwrap();
    assert_eq!(place.sync(&["--prune"]), [0, 0, 30, 0, 0]);
    assert!(place.search(&word(1)).is_empty());
}

#[test]
fn more_than_half_are_deleted_only_on_request() {
    let place = Place::new();
    place.notes(0..41);
    place.add();
    for number in 0..21 {
        fs::remove_file(place.origin().join(format!("n{number}.md"))).unwrap();
    }
    place.write("new.md", "# New\n");
    let held = place.run(&["sync", "notes"]);
    assert_eq!(held.status.code(), Some(1), "{held:?}");
    assert!(stderr(&held).contains("run `fetchwell sync notes --prune`"), "{held:?}");
    // New files are imported all the same, and it stays as it is until it is decided.
    assert_eq!(place.sync(&[]), [0, 0, 0, 0, 21]);
    let listed: Value = serde_json::from_str(&stdout(&place.run(&["connections", "--json"]))).unwrap();
    assert_eq!(listed[0]["import"]["held"], 21, "{listed}");
    assert_eq!(place.sync(&["--prune"]), [0, 0, 21, 0, 0]);
    place.check_equals_first_import();
    // Twenty of twenty-one are deleted without a question.
    for number in 21..41 {
        fs::remove_file(place.origin().join(format!("n{number}.md"))).unwrap();
    }
    assert_eq!(place.sync(&[]), [0, 0, 20, 0, 0]);
}

#[test]
fn a_moved_folder_is_not_missing() {
    let place = Place::new();
    place.notes(0..40);
    place.add();
    fs::create_dir(place.origin().join("archive")).unwrap();
    for number in 0..40 {
        let name = format!("n{number}.md");
        fs::rename(place.origin().join(&name), place.origin().join("archive").join(&name)).unwrap();
    }
    assert_eq!(place.sync(&[]), [40, 0, 40, 40, 0]);
    place.check_equals_first_import();
}

#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_read_keeps_its_records() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let place = Place::new();
    place.notes(0..3);
    place.write("book.pdf", "%PDF-1.7\nbroken");
    place.add();
    let broken = |name: &str| place.origin().join(name);
    // Root reads every file, so a reader that fails is used as well.
    fs::write(broken("n0.md"), "%PDF-1.7\nnot a document any more").unwrap();
    fs::set_permissions(broken("n1.md"), fs::Permissions::from_mode(0o000)).unwrap();
    assert_eq!(place.sync(&[])[2], 0);
    assert_eq!(place.search(&word(0)), ["notes/documents:n0.md"]);
    assert_eq!(place.search(&word(1)), ["notes/documents:n1.md"]);
    fs::set_permissions(broken("n1.md"), fs::Permissions::from_mode(0o600)).unwrap();
    // A link is never followed: the file that it replaced is gone.
    fs::write(place.path("secret.md"), "# Secret\n\nconfidential\n").unwrap();
    fs::remove_file(broken("n2.md")).unwrap();
    symlink(place.path("secret.md"), broken("n2.md")).unwrap();
    symlink(place.folder.path(), broken("loop")).unwrap();
    assert_eq!(place.sync(&[])[..3], [0, 0, 1]);
    assert!(place.search(&word(2)).is_empty() && place.search("confidential").is_empty());
}

#[test]
fn a_file_that_grows_while_it_is_read_is_read_again() {
    let place = Place::new();
    let log = place.origin().join("rows.csv");
    fs::write(&log, "id,title\n").unwrap();
    place.add();
    let writer = std::thread::spawn(move || {
        use std::io::Write;
        let mut file = fs::File::options().append(true).open(log).unwrap();
        for number in 0..2_000 {
            writeln!(file, "{number},row {number}").unwrap();
            if number % 100 == 0 {
                std::thread::park_timeout(Duration::from_millis(20));
            }
        }
    });
    while !writer.is_finished() {
        place.run(&["sync"]);
    }
    writer.join().unwrap();
    place.run(&["sync"]);
    place.check_equals_first_import();
    assert_eq!(place.records(&place.store()).len(), 2_000);
}

#[test]
fn a_killed_synchronization_loses_and_doubles_nothing() {
    let place = Place::new();
    let mut random = Random(7);
    place.write("a.md", "# A\n");
    place.add();
    let mut interrupted = 0;
    for round in 0..kills() {
        let base = round * 300;
        place.notes(base..base + 600);
        for number in base.saturating_sub(200)..base {
            fs::remove_file(place.origin().join(format!("n{number}.md"))).unwrap();
        }
        let mut sync: Child =
            place.command(&["sync", "notes", "--prune"]).stdout(Stdio::null()).spawn().unwrap();
        std::thread::park_timeout(Duration::from_millis(random.below(900) as u64));
        interrupted += u64::from(sync.try_wait().unwrap().is_none());
        sync.kill().unwrap();
        sync.wait().unwrap();
    }
    assert!(interrupted > 0, "no synchronization was killed in the middle");
    place.sync(&["--prune"]);
    place.check_equals_first_import();
    assert_eq!(place.sync(&[])[..3], [0, 0, 0]);
}

/// A commit changes only the write-ahead log, until the next checkpoint.
#[test]
fn a_commit_to_the_log_of_a_database_is_read() {
    let place = Place::new();
    let database = rusqlite::Connection::open(place.origin().join("app.db")).unwrap();
    database.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (word TEXT)").unwrap();
    database.execute_batch("INSERT INTO t VALUES ('capybara')").unwrap();
    place.add();
    assert_eq!(place.search("capybara"), ["notes/t/app.db%2F1"]);
    database.execute_batch("INSERT INTO t VALUES ('numbat')").unwrap();
    assert_eq!(place.sync(&[])[..3], [1, 0, 0]);
    assert_eq!(place.sync(&[])[..3], [0, 0, 0]);
    assert_eq!(place.search("numbat"), ["notes/t/app.db%2F2"]);
}

#[test]
fn a_synchronization_and_an_import_share_a_store() {
    let place = Place::new();
    place.notes(0..1_500);
    let add =
        place.command(&["add", text(&place.origin())]).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut add = add.unwrap();
    wait_until("the store exists", || Path::new(&place.store()).exists());
    let table = place.path("t.csv");
    fs::write(&table, "id,title\n1,other\n").unwrap();
    let imported = place.run(&["import", "csv", text(&table), "--connection", "t"]);
    assert!(imported.status.success(), "{imported:?}");
    assert!(add.wait().unwrap().success());
    assert_eq!(place.search("other"), ["t/t:1"]);
    assert_eq!(place.search(&word(1499)), ["notes/documents:n1499.md"]);
}

#[test]
fn a_server_follows_the_imports_of_its_configuration() {
    let place = Place::new();
    place.notes(0..3);
    let config = place.path("fetchwell.toml");
    let source = "[[source]]\nname = \"mine\"\nstore = \"store.db\"\n";
    let broken = "[[import]]\npath = \"unmounted\"\nkind = \"files\"\n";
    let import = "[[import]]\npath = \"notes\"\nwatch = true\n";
    fs::write(&config, format!("{source}{broken}{import}")).unwrap();
    let server = HttpServer::start(["--config", text(&config)]);
    let import_of = |connection: &str| -> Value {
        let health = get(&server.address, "/health").json();
        let imports = health["imports"].as_array().cloned().unwrap_or_default();
        imports.into_iter().find(|import| import["connection"] == connection).unwrap_or_default()
    };
    let finds = |word: &str| get(&server.address, &format!("/v1/search?q={word}")).json()["data"].to_string();
    wait_until("the notes are imported", || import_of("notes")["state"] == "current");
    wait_until("a note is found", || finds(&word(1)).contains("n1.md"));
    wait_until("the other import fails", || import_of("unmounted")["state"] == "failing");
    assert_eq!(import_of("unmounted")["problem"], "origin_unreadable");
    place.write("later.md", "# Later\n\ncornflower\n");
    wait_until("a new file is found", || finds("cornflower").contains("later.md"));
    fs::remove_file(place.origin().join("n1.md")).unwrap();
    wait_until("a deleted file is gone", || !finds(&word(1)).contains("n1.md"));
    let metrics = get(&server.address, "/metrics").text;
    assert!(metrics.contains("fetchwell_import_failures_total{source=\"mine\",connection=\"unmounted\"}"));
    assert!(
        metrics.contains("fetchwell_import_held_records{source=\"mine\",connection=\"notes\"} 0"),
        "{metrics}"
    );
    // An import that is removed from the configuration is no longer followed.
    fs::write(&config, format!("{source}{import}")).unwrap();
    wait_until("the configuration is reloaded", || import_of("unmounted") == Value::Null);
}

#[test]
fn watching_prints_what_changed() {
    let place = Place::new();
    place.notes(0..2);
    place.add();
    let (mut watch, printed) = place.watch();
    place.write("more.md", "# More\n");
    wait_until("the new note is imported", || printed().contains("notes: 1 added, 0 changed, 0 deleted"));
    fs::remove_file(place.origin().join("more.md")).unwrap();
    wait_until("the note is deleted", || printed().contains("notes: 0 added, 0 changed, 1 deleted"));
    watch.kill().unwrap();
    watch.wait().unwrap();
    place.check_equals_first_import();
}

#[test]
fn files_renamed_to_a_name_that_is_not_read_are_missing() {
    let place = Place::new();
    place.notes(0..50);
    let origin = place.origin();
    let added = place.run(&["add", text(&origin), "--kind", "markdown", "--json"]);
    assert_eq!(counts(&report(&added))[0], 50);
    for number in 0..50 {
        fs::rename(origin.join(format!("n{number}.md")), origin.join(format!("n{number}.old"))).unwrap();
    }
    let held = place.sync(&[]);
    assert_eq!((held[2], held[4]), (0, 50));
    assert_eq!(place.records(&place.store()).len(), 50);
    assert_eq!(place.sync(&["--prune"])[2], 50);
}

/// Envelopes of records, of which some are deleted again.
fn envelopes(put: std::ops::Range<usize>, deleted: std::ops::Range<usize>) -> String {
    let line = |number: usize| json!({"stream": "s", "key": format!("k{number}"), "data": {"n": number}});
    let delete = |number: usize| json!({"stream": "s", "key": format!("k{number}"), "op": "delete"});
    let lines: Vec<String> =
        put.map(line).chain(deleted.map(delete)).map(|line: Value| line.to_string() + "\n").collect();
    lines.concat()
}

#[test]
fn records_that_their_own_file_deletes_are_not_missing() {
    let place = Place::new();
    let file = place.path("notes.ndjson");
    fs::write(&file, envelopes(0..50, 0..30)).unwrap();
    let added = place.run(&["add", text(&file), "--kind", "records", "--connection", "notes", "--json"]);
    assert_eq!(counts(&report(&added))[4], 0);
    assert_eq!(place.records(&place.store()).len(), 20);
    fs::write(&file, envelopes(0..52, 0..30)).unwrap();
    assert_eq!(place.sync(&[])[4], 0);
    assert_eq!(place.records(&place.store()).len(), 22);
}

#[test]
fn a_file_that_became_empty_and_other_records_of_its_connection_keep_their_records() {
    let place = Place::new();
    let file = place.path("notes.ndjson");
    fs::write(&file, envelopes(0..30, 0..0)).unwrap();
    place.run(&["add", text(&file), "--kind", "records", "--connection", "notes", "--json"]);
    let other = place.path("other.ndjson");
    fs::write(&other, envelopes(100..300, 0..0)).unwrap();
    let imported = place.run(&["import", "records", text(&other), "--connection", "notes"]);
    assert!(imported.status.success(), "{imported:?}");
    // Records that another import brought do not make the share smaller.
    fs::write(&file, envelopes(0..5, 0..0)).unwrap();
    assert_eq!(place.sync(&[])[2..], [0, 1, 25]);
    fs::write(&file, "").unwrap();
    place.sync(&[]);
    assert_eq!(place.records(&place.store()).len(), 230);
    fs::write(&file, envelopes(0..30, 0..0)).unwrap();
    assert_eq!(place.sync(&[])[4], 0);
    assert_eq!(place.records(&place.store()).len(), 230);
}
