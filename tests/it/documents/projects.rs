//! `fetchwell project` and `fetchwell import docs`, through the built binary.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use crate::support::{binary, fetchwell, stderr, stdout, text};

/// A folder of documents, and a store with the project `handbook`.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(place.origin()).unwrap();
        stdout(&place.run(&["project", "create", "handbook", "--name", "Team handbook"]));
        place
    }

    fn origin(&self) -> PathBuf {
        self.folder.path().join("docs")
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.origin().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn rename(&self, from: &str, to: &str) {
        let to = self.origin().join(to);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::rename(self.origin().join(from), to).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = binary();
        // `remove` deletes all cursors of a state directory, and other tests read theirs.
        command.env("XDG_STATE_HOME", self.folder.path().join("state"));
        command.args(arguments).args(["--store", text(&self.store())]).output().unwrap()
    }

    /// Imports the folder. Returns the numbers of added, changed and deleted documents.
    #[track_caller]
    fn import(&self, arguments: &[&str]) -> [u64; 3] {
        let origin = self.origin();
        let command = ["import", "docs", text(&origin), "--project", "handbook", "--json"];
        counts(&self.run(&[&command, arguments].concat()))
    }

    #[track_caller]
    fn sync(&self) -> [u64; 3] {
        let output = self.run(&["sync", "handbook", "--json"]);
        let reports: Value = serde_json::from_str(&stdout(&output)).unwrap();
        counts_of(&reports[0])
    }

    /// Ids of the documents by path.
    fn ids(&self) -> BTreeMap<String, String> {
        self.rows("SELECT path, id FROM documents").into_iter().collect()
    }

    fn rows(&self, sql: &str) -> Vec<(String, String)> {
        let database = rusqlite::Connection::open(self.store()).unwrap();
        let mut statement = database.prepare(sql).unwrap();
        let rows = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?)));
        rows.unwrap().map(Result::unwrap).collect()
    }

    fn version(&self) -> i64 {
        self.show()["project"]["corpus_version"].as_i64().unwrap()
    }

    #[track_caller]
    fn show(&self) -> Value {
        serde_json::from_str(&stdout(&self.run(&["project", "show", "handbook", "--json"]))).unwrap()
    }
}

#[track_caller]
fn counts(output: &Output) -> [u64; 3] {
    counts_of(&serde_json::from_str(&stdout(output)).unwrap())
}

fn counts_of(report: &Value) -> [u64; 3] {
    ["added", "changed", "deleted"].map(|name| report[name].as_u64().unwrap())
}

#[track_caller]
fn refused(output: &Output, part: &str) {
    let problem = stderr(output);
    assert!(!output.status.success() && problem.contains(part), "{part}: {problem}");
}

#[test]
fn projects_are_created_listed_shown_and_removed() {
    let place = Place::new();
    let shown = place.show();
    assert_eq!(
        (&shown["project"]["slug"], &shown["project"]["name"]),
        (&json!("handbook"), &json!("Team handbook"))
    );
    assert_eq!((&shown["project"]["corpus_version"], &shown["categories"]), (&json!(1), &json!({})));
    refused(&place.run(&["project", "create", "handbook"]), "choose another slug");
    for slug in ["Upper", "a:b", "a*", "a/b", "", "550e8400-e29b-41d4-a716-446655440000"] {
        refused(&place.run(&["project", "create", slug]), "a project slug has 1 to 100");
    }
    let other = stdout(&place.run(&["project", "create", "other", "--no-history", "--json"]));
    let other: Value = serde_json::from_str(&other).unwrap();
    assert_eq!(other["settings"], json!({"history": false}));
    let list = stdout(&place.run(&["project", "list", "--json"]));
    let list: Value = serde_json::from_str(&list).unwrap();
    let slugs: Vec<&str> = list.as_array().unwrap().iter().map(|one| one["slug"].as_str().unwrap()).collect();
    assert_eq!(slugs, ["handbook", "other"]);
    refused(&place.run(&["project", "show", "none"]), "there is no project `none`");
    place.write("a.md", "text");
    assert_eq!(place.import(&[]), [1, 0, 0]);
    let id = shown["project"]["id"].as_str().unwrap();
    refused(&place.run(&["project", "remove", id]), "add --yes to remove them");
    stdout(&place.run(&["project", "remove", id, "--yes"]));
    refused(&place.run(&["project", "show", "handbook"]), "there is no project");
    for table in ["documents", "chunks", "records", "imports"] {
        assert!(place.rows(&format!("SELECT '', '' FROM {table}")).is_empty(), "{table}");
    }
}

#[test]
fn a_project_is_changed_and_keeps_its_id() {
    let place = Place::new();
    let before = place.show();
    let changed = place.run(&["project", "set", "handbook", "--name", "Team notes", "--history-days", "7"]);
    assert!(stdout(&changed).contains("Team notes, searches are kept for 7 days"), "{changed:?}");
    let after = place.show();
    assert_eq!(after["project"]["id"], before["project"]["id"]);
    assert_eq!(after["project"]["name"], "Team notes");
    assert_eq!(after["project"]["settings"], json!({"history_days": 7}));
    place.run(&["project", "set", "handbook", "--no-history"]);
    assert_eq!(place.show()["project"]["settings"], json!({"history": false, "history_days": 7}));
    place.run(&["project", "set", "handbook", "--history"]);
    assert_eq!(place.show()["project"]["settings"], json!({"history_days": 7}));
    refused(&place.run(&["project", "set", "none", "--name", "x"]), "there is no project `none`");
    refused(&place.run(&["project", "set", "handbook"]), "required");
}

#[test]
fn a_repeated_import_changes_nothing() {
    let place = Place::new();
    place.write("research/a.md", "# A\n\nOne.\n");
    place.write("b.txt", "Two.\r\n");
    place.write("c.html", "<title>C</title><p>Three.</p>");
    place.write("d.bin", [0, 1, 2]);
    assert_eq!(place.import(&["--category-from", "folder"]), [3, 0, 0]);
    let (ids, version) = (place.ids(), place.version());
    assert_eq!(version, 2, "one batch is one commit");
    assert_eq!(place.import(&["--category-from", "folder"]), [0, 0, 0]);
    assert_eq!((place.ids(), place.version()), (ids.clone(), version));
    let shown = place.show();
    assert_eq!(shown["categories"], json!({"general": 2, "research": 1}));
    assert_eq!(shown["origin"], text(&fs::canonicalize(place.origin()).unwrap()));
    // Another origin of the categories reads the files again, and changes the category of one.
    assert_eq!(place.import(&["--category-from", "general"]), [0, 1, 0]);
    assert_eq!((place.ids(), place.version()), (ids, version + 1));
    assert_eq!(place.show()["categories"], json!({"general": 3}));
}

#[test]
fn the_origin_of_categories_is_remembered() {
    let place = Place::new();
    place.write("research/a.md", "---\ncategory: process\n---\n# A\n");
    assert_eq!(place.import(&["--category-from", "folder"]), [1, 0, 0]);
    assert_eq!((place.import(&[]), place.sync()), ([0, 0, 0], [0, 0, 0]));
    place.write("process/b.md", "# B\n");
    assert_eq!(place.sync(), [1, 0, 0]);
    assert_eq!(place.show()["categories"], json!({"process": 1, "research": 1}));
    place.write("references/c.md", "# C\n");
    assert_eq!(place.import(&[]), [1, 0, 0]);
    assert_eq!(place.show()["categories"], json!({"process": 1, "references": 1, "research": 1}));
    assert_eq!(place.import(&["--category-from", "front-matter"]), [0, 3, 0]);
    assert_eq!((place.import(&[]), place.sync()), ([0, 0, 0], [0, 0, 0]));
    assert_eq!(place.show()["categories"], json!({"general": 2, "process": 1}));
    place.import(&["--category-from", "general"]);
    assert_eq!((place.import(&[]), place.show()["categories"].clone()), ([0, 0, 0], json!({"general": 3})));
}

#[test]
fn a_project_without_documents_takes_another_folder() {
    let place = Place::new();
    place.write("a.md", b"a\0b");
    let (first, second) = (place.origin(), place.folder.path().join("second"));
    let import =
        |origin: &Path| place.run(&["import", "docs", text(origin), "--project", "handbook", "--json"]);
    refused(&import(&first), "a.md");
    fs::create_dir(&second).unwrap();
    fs::write(second.join("b.md"), "# B\n").unwrap();
    assert_eq!(counts(&import(&second)), [1, 0, 0]);
    assert_eq!(place.show()["origin"], text(&fs::canonicalize(&second).unwrap()));
    assert_eq!(place.sync(), [0, 0, 0]);
    // A project with documents keeps its folder, and the error says what to do.
    let again = import(&first);
    refused(&again, "create another project");
    refused(&again, "`fetchwell project remove handbook`");
    assert_eq!(place.ids().into_keys().collect::<Vec<_>>(), ["b.md"]);
}

#[test]
fn removed_documents_are_imported_again() {
    let place = Place::new();
    place.write("a.md", "# A\n");
    place.write("b.md", "# B\n");
    assert_eq!(place.import(&[]), [2, 0, 0]);
    let removed = place.run(&["remove", "handbook/documents", "--yes"]);
    stdout(&removed);
    let origin = fs::canonicalize(place.origin()).unwrap();
    let command = format!("fetchwell import docs {} --project handbook --store", text(&origin));
    assert!(stderr(&removed).contains(&command), "{removed:?}");
    assert_eq!((place.ids().len(), place.sync()), (0, [0, 0, 0]));
    assert_eq!(place.import(&[]), [2, 0, 0]);
    let found: Value = serde_json::from_str(&stdout(&place.run(&["search", "B", "--json"]))).unwrap();
    assert_eq!(found["results"].as_array().unwrap().len(), 1, "{found}");
    stdout(&place.run(&["remove", &format!("handbook/documents:{}", place.ids()["a.md"]), "--yes"]));
    assert_eq!(place.sync(), [0, 0, 0]);
    assert_eq!((place.import(&[]), place.ids().len()), ([1, 0, 0], 2));
}

#[test]
fn truncated_titles_and_long_paths_are_reported() {
    let place = Place::new();
    for name in ["a.md", "b.md"] {
        place.write(name, format!("# {}\n", "é".repeat(501)));
    }
    place.write("c.md", format!("# {}\n", "é".repeat(500)));
    let origin = place.origin();
    let command = ["import", "docs", text(&origin), "--project", "handbook"];
    let output = place.run(&command);
    stdout(&output);
    let warnings: Vec<String> =
        stderr(&output).lines().filter(|line| line.contains("truncated")).map(str::to_owned).collect();
    let expect = "handbook: the titles of `a.md` and 1 more documents are longer than 500 characters and were truncated";
    assert!(warnings.len() == 1 && warnings[0].ends_with(expect), "{warnings:?}");
    let titles: Vec<usize> = place
        .rows("SELECT title, '' FROM documents")
        .iter()
        .map(|(title, _)| title.chars().count())
        .collect();
    assert_eq!(titles, [500; 3]);
    place.write("a.md", format!("# {}\n", "e".repeat(501)));
    let output = stdout(&place.run(&["sync", "handbook", "--json"]));
    let reports: Value = serde_json::from_str(&output).unwrap();
    assert!(
        reports[0]["warning"].as_str().unwrap().starts_with("the title of `a.md` is longer"),
        "{reports}"
    );
    // A path of exactly 1,000 characters is taken.
    let folder = format!("{}/", "d".repeat(199)).repeat(4);
    for length in [200, 201] {
        place.write(&format!("{folder}{}.md", "x".repeat(length - 3)), "text");
    }
    let output = place.run(&command);
    let refused = stderr(&output);
    assert!(
        !output.status.success() && refused.contains("its path is longer than 1,000 characters"),
        "{refused}"
    );
    assert!(refused.contains(&format!("{}.md: ", "x".repeat(198))), "{refused}");
    assert_eq!(place.ids().len(), 4);
}

#[test]
fn a_renamed_document_keeps_its_id_and_its_chunks() {
    let place = Place::new();
    place.write("a.md", "# A\n\nThe same text.\n");
    place.write("b.md", "# B\n\nOther text.\n");
    place.write("c.md", "# B\n\nOther text.\n");
    assert_eq!(place.import(&[]), [3, 0, 0]);
    let before = place.ids();
    let chunks = "SELECT id, document_id FROM chunks ORDER BY id";
    let chunks_before = place.rows(chunks);
    place.rename("a.md", "deep/er/renamed.md");
    assert_eq!(place.sync(), [0, 1, 0]);
    let after = place.ids();
    assert_eq!(after["deep/er/renamed.md"], before["a.md"]);
    assert_eq!((&after["b.md"], &after["c.md"], after.len()), (&before["b.md"], &before["c.md"], 3));
    assert_eq!(place.rows(chunks), chunks_before);
    // A copy is another document, and a changed file is the same.
    place.write("copy.md", "# A\n\nThe same text.\n");
    place.write("b.md", "# B\n\nChanged text.\n");
    assert_eq!(place.sync(), [1, 1, 0]);
    let copied = place.ids();
    assert!(!before.values().any(|id| *id == copied["copy.md"]));
    assert_eq!(copied["b.md"], before["b.md"]);
}

#[test]
fn deletions_are_followed() {
    let place = Place::new();
    for number in 0..5 {
        place.write(&format!("n{number}.md"), format!("# Note {number}\n\nzebra{number}\n"));
    }
    assert_eq!(place.import(&[]), [5, 0, 0]);
    let version = place.version();
    fs::remove_file(place.origin().join("n3.md")).unwrap();
    assert_eq!(place.sync(), [0, 0, 1]);
    assert_eq!((place.ids().len(), place.version()), (4, version + 1));
    assert!(
        place
            .rows("SELECT id, '' FROM chunks WHERE document_id NOT IN (SELECT id FROM documents)")
            .is_empty()
    );
    let found: Value = serde_json::from_slice(&place.run(&["search", "zebra3", "--json"]).stdout).unwrap();
    assert_eq!(found["results"], json!([]));
    // A removed record takes its document with it.
    let id = &place.ids()["n1.md"];
    stdout(&place.run(&["remove", &format!("handbook/documents:{id}"), "--yes"]));
    assert_eq!((place.ids().len(), place.version()), (3, version + 2));
}

#[test]
fn projects_take_only_documents() {
    let place = Place::new();
    let origin = place.origin();
    place.write("a.md", "text");
    let markdown = ["import", "markdown", text(&origin), "--connection", "handbook"];
    refused(&place.run(&markdown), "`handbook` is a project of documents");
    let add = ["add", text(&origin), "--connection", "handbook"];
    refused(&place.run(&add), "`handbook` is a project of documents");
    let none = ["import", "docs", text(&origin), "--project", "none"];
    refused(&place.run(&none), "fetchwell project create none");
    stdout(&place.run(&["import", "markdown", text(&origin), "--connection", "notes"]));
    refused(&place.run(&["project", "create", "notes"]), "choose another slug");
    let notes = ["import", "docs", text(&origin), "--project", "notes"];
    refused(&place.run(&notes), "there is no project `notes`");
    assert_eq!(place.import(&[]), [1, 0, 0]);
    let other = place.folder.path().join("other");
    fs::create_dir(&other).unwrap();
    let other = ["import", "docs", text(&other), "--project", "handbook"];
    refused(&place.run(&other), "has the documents of");
    refused(
        &place.run(&["import", "docs", "x", "--project", "handbook", "--category-from", "x"]),
        "front-matter",
    );
}

#[test]
fn files_that_cannot_be_read_are_reported_and_keep_their_documents() {
    let place = Place::new();
    place.write("a.md", "first");
    place.write("b.md", "second");
    assert_eq!(place.import(&[]), [2, 0, 0]);
    let ids = place.ids();
    place.write("a.md", b"not \xFF UTF-8");
    place.write("c.txt", b"a\0b");
    place.write("b.md", "changed");
    let output = place.run(&["sync", "handbook", "--json"]);
    let reports: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(counts_of(&reports[0]), [0, 1, 0], "{output:?}");
    assert!(!output.status.success() && stderr(&output).contains("a.md"), "{output:?}");
    assert_eq!(place.ids(), ids);
    // A document that is not text any more is not a deleted one.
    place.write("b.md", b"a\0b");
    let output = place.run(&["sync", "handbook", "--json"]);
    assert!(!output.status.success() && stderr(&output).contains("b.md"), "{output:?}");
    assert_eq!(place.ids(), ids);
    place.write("a.md", "third");
    assert_eq!(
        counts_of(
            &serde_json::from_slice::<Value>(&place.run(&["sync", "handbook", "--json"]).stdout).unwrap()[0]
        )[1],
        1
    );
    assert_eq!(place.ids(), ids);
}

#[test]
fn skipped_and_rejected_files_are_named_in_the_report() {
    let place = Place::new();
    place.write("a.md", "text");
    place.write("b.md", b"a\0b");
    place.write("table.csv", "id\n1\n");
    place.write("drawing.svg", "<svg/>");
    let (origin, report) = (place.origin(), place.origin().with_file_name("report.ndjson"));
    let import = ["import", "docs", text(&origin), "--project", "handbook", "--report", text(&report)];
    let output = place.run(&import);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let said = stderr(&output);
    assert!(said.contains("left out: 2 of no kind that is read (1 .csv, 1 .svg); "), "{said}");
    let report = fs::read_to_string(&report).unwrap();
    let lines: Vec<Value> = report.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    let named = |key: &str| lines.iter().filter_map(|line| line[key].as_str()).collect::<Vec<_>>();
    assert_eq!((named("rejected"), named("skipped")), (vec!["b.md"], vec!["drawing.svg", "table.csv"]));
    // The hint of a later import names an option that the command has.
    let again = stderr(&place.run(&import[..5]));
    assert!(again.contains("add --report FILE to list them"), "{again}");
}

#[test]
fn a_missing_store_is_an_error_with_the_command_for_a_project() {
    let folder = tempfile::tempdir().unwrap();
    let (origin, store) = (folder.path().join("docs"), folder.path().join("none.db"));
    fs::create_dir(&origin).unwrap();
    let import = ["import", "docs", text(&origin), "--project", "handbook"];
    let named = binary().args(import).args(["--store", text(&store)]).output().unwrap();
    let command = format!("create both with `fetchwell project create handbook --store {}`", text(&store));
    let default = binary().args(import).env("FETCHWELL_STORE", &store).output().unwrap();
    for (output, expect) in
        [(named, &*command), (default, "create both with `fetchwell project create handbook`")]
    {
        refused(&output, expect);
        assert!(!stderr(&output).contains("new store") && !store.exists(), "{output:?}");
    }
}

#[test]
fn a_store_without_projects_is_read_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    stdout(&fetchwell(["demo", "--store", text(&store)]));
    assert_eq!(stdout(&fetchwell(["project", "list", "--store", text(&store), "--json"])).trim(), "[]");
    let tables = |store: &Path| -> i64 {
        let database = rusqlite::Connection::open(store).unwrap();
        let sql = "SELECT count(*) FROM sqlite_schema WHERE name = 'projects'";
        database.query_row(sql, (), |row| row.get(0)).unwrap()
    };
    assert_eq!(tables(&store), 0);
    stdout(&fetchwell(["project", "create", "docs", "--store", text(&store)]));
    assert_eq!(tables(&store), 1);
    let found = stdout(&fetchwell(["search", "invoice", "--store", text(&store), "--json"]));
    assert!(found.contains("\"id\""), "{found}");
}
