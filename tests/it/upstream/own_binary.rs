//! This program reads itself as an MCP server, over stdio and over HTTP, beside a store.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::{FederationClient, HttpServer, binary, import_records, stderr, stdout, text, walk};

/// Writes a store of notes with the words `common` and `of_NAME`.
fn store(folder: &Path, name: &str, keys: &[&str]) -> PathBuf {
    let lines = keys.iter().enumerate().map(|(number, key)| {
        let data = json!({"title": format!("Note {number} of {name}"), "body": format!("A common text of_{name}, number {number}."),
            "updated_at": format!("2026-03-{:02}T10:00:00Z", number % 28 + 1)});
        json!({"stream": "notes", "key": key, "data": data}).to_string() + "\n"
    });
    let path = folder.join(format!("{name}.db"));
    import_records(&path, name, &lines.collect::<String>());
    path
}

/// Keys whose handles need quoting, and their number.
const KEYS: [&str; 8] = [
    "plain",
    "a/b/c",
    "with:colon",
    "https://example.com/x?y=%2F#z",
    "ümläut 😀",
    "100%",
    "..a",
    "acc/notes:1",
];

/// A store, and the same kind of store behind this program, over stdio and over HTTP, and a server that never answers.
struct Setting {
    _folder: tempfile::TempDir,
    config: PathBuf,
    _http: HttpServer,
}

fn setting(keys: &[&str]) -> Setting {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let stores: Vec<PathBuf> = ["own", "piped", "served"].map(|name| store(path, name, keys)).to_vec();
    let http = HttpServer::start(["--store", text(&stores[2])]);
    let program = binary().get_program().to_str().unwrap().to_owned();
    let piped = [&program, "serve", "--stdio", "--state-dir", "none", "--store", text(&stores[1])];
    let config = path.join("fetchwell.toml");
    let lines = format!(
        "[[source]]\nname = \"own\"\nstore = {own:?}\n\
         [[source]]\nname = \"piped\"\ncommand = {piped:?}\ndeadline = \"20s\"\n\
         [[source]]\nname = \"served\"\nmcp = {url:?}\ndeadline = \"20s\"\n\
         [[source]]\nname = \"silent\"\ncommand = [\"sleep\", \"600\"]\ndeadline = \"2s\"\n",
        own = stores[0],
        url = http.url("/mcp"),
    );
    std::fs::write(&config, lines).unwrap();
    Setting { _folder: folder, config, _http: http }
}

#[test]
fn all_servers_are_searched_and_every_id_is_fetched() {
    let setting = setting(&KEYS);
    let mut client = FederationClient::start(&setting.config);
    // Servers start at the first call.
    let mut ids = Vec::new();
    for query in ["common of_own", "common of_piped", "common of_served"] {
        let found = client.call("search", &json!({"query": query, "limit": 40}));
        assert!(!found.is_error, "{found:?}");
        assert_eq!(found.unavailable(), [("silent".to_owned(), "source_timeout".to_owned())], "{found:?}");
        ids.extend(found.ids());
    }
    let ids: BTreeSet<String> = ids.into_iter().collect();
    let of = |start: &str| ids.iter().filter(|id| id.starts_with(start)).count();
    assert_eq!((of("own/"), of("piped/"), of("served/")), (8, 8, 8), "{ids:?}");
    for id in &ids {
        let fetched = client.call("fetch", &json!({"id": id}));
        assert!(!fetched.is_error, "{id}: {fetched:?}");
        let text = fetched.body["text"].as_str().unwrap();
        assert!(text.contains("A common text of_"), "{id}: {text}");
    }
    let record = ids.iter().find(|id| id.starts_with("piped/")).unwrap();
    let field = client.call("read_record_field", &json!({"id": record, "field": "text"}));
    assert!(!field.is_error && field.body.to_string().contains("common text"), "{field:?}");
    client.ping();
}

#[test]
fn what_a_server_cannot_do_is_said_with_what_to_use() {
    let setting = setting(&["a"]);
    let mut client = FederationClient::start(&setting.config);
    let schema = client.call("schema", &json!({}));
    assert!(!schema.is_error, "{schema:?}");
    for name in ["own", "piped", "served", "silent"] {
        assert!(schema.body.to_string().contains(name), "{name}: {schema:?}");
    }
    for (tool, more) in [("query_records", json!({})), ("aggregate", json!({"metric": "count"}))] {
        let mut arguments = json!({"stream": "items", "connection_id": "served"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let refused = client.call(tool, &arguments);
        assert!(refused.is_error, "{tool}: {refused:?}");
        assert_eq!(refused.body["code"], "not_supported", "{tool}: {refused:?}");
        assert!(refused.body["hint"].as_str().unwrap().contains("`search`"), "{refused:?}");
    }
    let unknown = client.call("fetch", &json!({"id": "served/items/nothing%2Fnotes%3Ax"}));
    assert!(unknown.is_error, "{unknown:?}");
}

#[test]
fn pages_of_several_servers_lose_and_repeat_nothing() {
    let keys: Vec<String> = (0..60).map(|number| format!("n/{number}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let setting = setting(&keys);
    let mut client = FederationClient::start(&setting.config);
    let ids = walk(&mut client, "search", json!({"query": "common text", "limit": 7}));
    let distinct: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "{ids:?}");
    let of = |start: &str| ids.iter().filter(|id| id.starts_with(start)).count();
    assert_eq!((of("own/"), of("piped/"), of("served/")), (60, 60, 60));
}

#[test]
fn commands_show_what_a_server_has() {
    let setting = setting(&["a"]);
    let run = |arguments: &[&str]| {
        binary().args(arguments).args(["--config", text(&setting.config)]).output().unwrap()
    };
    let shown = stdout(&run(&["source", "inspect", "served", "common"]));
    for part in ["fetchwell", "search(query", "reads only", "Note 0 of served", "The first one has:"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let absent = setting.config.with_file_name("absent.toml");
    std::fs::write(&absent, "[[source]]\nname = \"absent\"\ncommand = [\"/no/such/program\"]\n").unwrap();
    let tested = binary().args(["source", "test", "--config", text(&absent)]).output().unwrap();
    assert!(!tested.status.success());
    assert!(stdout(&run(&["source", "test", "piped"])).contains("ok"), "{}", stderr(&tested));
    let missing = run(&["source", "inspect", "own"]);
    assert!(stderr(&missing).contains("no MCP server"), "{}", stderr(&missing));
}

#[test]
fn servers_that_name_each_other_in_a_circle_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("first.toml");
    let second = folder.path().join("second.toml");
    let program = binary().get_program().to_str().unwrap().to_owned();
    for (file, other) in [(&first, &second), (&second, &first)] {
        let command = [&program, "serve", "--stdio", "--state-dir", "none", "--config", text(other)];
        let lines = format!("[[source]]\nname = \"other\"\ncommand = {command:?}\ndeadline = \"25s\"\n");
        std::fs::write(file, lines).unwrap();
    }
    let mut client = FederationClient::start(&first);
    let refused = client.call("search", &json!({"query": "x"}));
    assert!(refused.is_error, "{refused:?}");
    assert!(refused.body.to_string().contains("circle"), "{refused:?}");
}
