//! MCP servers in the files of clients, which become sources.

use std::process::Output;

use serde_json::{Value, json};

use super::Home;
#[cfg(target_os = "linux")]
use super::choices::on_terminal;
use super::page::SetupPage;
use crate::support::{FakeServer, Reply, Request, import_records, stderr, stdout, text};

/// Server over standard input and output. It writes the variables that it was started with into a file of the home folder.
const SERVER: &str = r#"import json, os, sys
kind = sys.argv[1]
with open(os.path.join(os.environ["HOME"], "started-" + kind), "a") as log:
    log.write(json.dumps(dict(os.environ)) + "\n")
def tool(name, argument):
    return {"name": name, "inputSchema": {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}}
TOOLS = {"notes": [tool("search", "query"), tool("fetch", "id")], "shell": [tool("run", "line")]}[kind]
ANSWERS = {"search": {"results": [{"id": "n/1", "title": "Ferry", "text": "It leaves at noon."}]},
    "fetch": {"id": "n/1", "title": "Ferry", "text": "It leaves at noon.", "url": "", "metadata": {}}}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message["method"]
    if method == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": kind, "version": "1"}}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    else:
        answer = json.dumps(ANSWERS[message["params"]["name"]])
        result = {"content": [{"type": "text", "text": answer}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// Answers as a server with a search and a fetch, if the request has this header.
fn wiki(token: &'static str) -> FakeServer {
    FakeServer::start(move |request: &Request| {
        if request.authorization.as_deref() != Some(token) {
            return Reply::Full(401, vec![("www-authenticate", "Bearer".to_owned())], String::new());
        }
        let Ok(message) = serde_json::from_str::<Value>(&request.body) else {
            return Reply::Json(405, String::new());
        };
        let tool = |name: &str, argument: &str| json!({"name": name, "inputSchema": {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}});
        let result = match message["method"].as_str() {
            Some("initialize") => json!({"protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}}, "serverInfo": {"name": "wiki", "version": "1"}}),
            Some("tools/list") => json!({"tools": [tool("search", "query"), tool("fetch", "id")]}),
            _ => return Reply::Full(202, Vec::new(), String::new()),
        };
        Reply::Json(200, json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string())
    })
}

/// Creates a home folder with a server in the file of Cursor.
fn home(servers: &Value) -> Home {
    let home = Home::new();
    home.write("server.py", SERVER);
    let program = text(&home.path("server.py")).to_owned();
    let servers = servers.to_string().replace("SERVER", &program);
    home.write(".cursor/mcp.json", &format!("{{ // mine\n\"mcpServers\": {servers}}}"));
    home
}

fn notes() -> Value {
    json!({"command": "python3", "args": ["SERVER", "notes"],
        "env": {"NOTES_KEY": "s3cret", "LOG_LEVEL": "debug", "EMPTY": ""}})
}

/// Returns the output of a run on both streams.
fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(output))
}

#[track_caller]
fn answer(output: &Output) -> Value {
    assert!(!said(output).contains("s3cret"), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

const CONFIG: &str = ".config/fetchwell/config.toml";

/// Checks what setup wrote for the store, the wiki and the notes.
#[track_caller]
fn check_configuration(home: &Home, wiki: &str) {
    // The servers were asked with the values of the client, which are written nowhere.
    assert!(home.read("started-notes").contains("s3cret"));
    let config = home.read(CONFIG);
    assert!(!config.contains("s3cret"), "{config}");
    let config: toml::Table = config.parse().unwrap();
    let source = |at: usize| &config["source"][at];
    assert_eq!(source(0)["store"].as_str(), Some(text(&home.store())));
    assert_eq!(source(1)["mcp"].as_str(), Some(&*format!("{wiki}/mcp")));
    assert_eq!(source(1)["credential"].as_str(), Some("env:WIKI_TOKEN"));
    assert_eq!(source(2)["command"][2].as_str(), Some("notes"));
    assert_eq!(source(2)["env"]["NOTES_KEY"].as_str(), Some("env:NOTES_KEY"));
    assert_eq!(source(2)["env"]["LOG_LEVEL"].as_str(), Some("debug"));
}

#[test]
fn servers_of_clients_become_sources() {
    let wiki = wiki("Bearer s3cret");
    let home = home(&json!({
        "Notes of Ann": notes(),
        "shell": {"command": "python3", "args": ["SERVER", "shell"]},
        "fetchwell": {"command": "fetchwell", "args": ["serve", "--stdio"]},
        "records": {"command": "npx", "args": ["-y", "fetchwell@latest", "serve", "--stdio"]},
        "old": {"command": "python3", "args": ["SERVER", "notes", "old"], "disabled": true},
    }));
    home.write(
        ".codex/config.toml",
        &format!(
            "[mcp_servers.wiki]\nurl = \"{}/mcp\"\nhttp_headers = {{ Authorization = \"Bearer s3cret\" }}\n",
            wiki.url
        ),
    );
    home.write(".claude.json", "{\"mcpServers\": s3cret");
    std::fs::create_dir_all(home.path("data/fetchwell")).unwrap();
    import_records(
        &home.store(),
        "mail",
        "{\"stream\":\"notes\",\"key\":\"1\",\"data\":{\"title\":\"a ferry\"}}\n",
    );
    let before = home.read(".cursor/mcp.json");
    let output = home.setup(&["--yes", "--no-import", "--client", "cursor", "--json"]);
    let result = answer(&output);
    assert!(stderr(&output).is_empty() || !stderr(&output).contains("no source is added"), "{output:?}");

    let servers = result["servers"].as_array().unwrap();
    let names: Vec<_> = servers.iter().map(|server| server["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["wiki", "notes-of-ann", "shell"], "{result}");
    assert_eq!(servers[1]["env"], json!(["NOTES_KEY", "LOG_LEVEL"]), "{result}");
    assert_eq!(servers[1]["variables"], json!([{"name": "NOTES_KEY", "key": "env.NOTES_KEY"}]), "{result}");

    let sources = result["sources"].as_array().unwrap();
    let state = |at: usize| (sources[at]["name"].as_str().unwrap(), sources[at]["state"].as_str().unwrap());
    assert_eq!(
        [state(0), state(1), state(2)],
        [("wiki", "added"), ("notes-of-ann", "added"), ("shell", "not_added")],
        "{result}"
    );
    assert_eq!(sources[0]["calls"], json!(["search(query)", "fetch(id)"]), "{result}");
    assert_eq!(sources[0]["variables"][0]["name"], "WIKI_TOKEN", "{result}");
    let problem = sources[2]["problem"].as_str().unwrap();
    assert!(problem.contains("no tool that searches was recognized; the server has `run`"), "{problem}");
    assert!(sources[2]["next"][0].as_str().unwrap().starts_with("fetchwell source add shell -- python3 "));

    check_configuration(&home, &wiki.url);

    // Clients read all of them, and the entries that were there stay.
    let cursor = home.read(".cursor/mcp.json");
    assert!(cursor.contains("--config") && cursor.contains("config.toml"), "{cursor}");
    assert_eq!(cursor.matches("s3cret").count(), before.matches("s3cret").count());

    // A second run finds nothing new.
    let files = || {
        let mut files = home.files();
        files.retain(|path, _| !path.file_name().unwrap().to_str().unwrap().starts_with("started-"));
        files
    };
    let unchanged = files();
    let result = answer(&home.setup(&["--yes", "--no-import", "--client", "cursor", "--json"]));
    let is_source = |server: &Value| server["is_source"] == true;
    assert_eq!(result["servers"].as_array().unwrap().iter().filter(|server| is_source(server)).count(), 2);
    assert_eq!(result["sources"].as_array().unwrap().len(), 1, "{result}");
    assert_eq!(result["clients"][0]["state"], "current", "{result}");
    assert_eq!(files(), unchanged);

    let mut search = home.command(&["search", "ferry", "--json"]);
    let found = search.env("NOTES_KEY", "s3cret").env("WIKI_TOKEN", "s3cret").output().unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    assert!(found.contains("notes-of-ann/") && found.contains("mail/notes:1"), "{found}");
}

#[test]
fn nothing_is_started_before_it_is_chosen() {
    let home = home(&json!({"notes": notes()}));
    let files = home.files();
    for arguments in [&["--json"][..], &["--dry-run", "--json"], &["--dry-run", "--yes", "--json"]] {
        let result = answer(&home.setup(arguments));
        assert_eq!(result["sources"][0]["state"], "planned", "{result}");
        assert!(result["clients"][0]["diff"].to_string().contains("--config"), "{result}");
    }
    let shown = home.setup(&["--dry-run"]);
    assert!(stdout(&shown).contains("notes: would be asked what it has"), "{shown:?}");
    for arguments in
        [&["--no-import", "--no-clients", "--json"][..], &["--yes", "--no-sources", "--no-clients", "--json"]]
    {
        let result = answer(&home.setup(arguments));
        assert_eq!((&result["servers"], &result["sources"]), (&json!([]), &json!([])), "{result}");
    }
    assert_eq!(home.files(), files);
}

#[test]
fn flags_name_servers() {
    let home = home(&json!({"notes": notes(), "shell": {"command": "python3", "args": ["SERVER", "shell"]}}));
    let arguments = ["--no-import", "--no-clients", "--source"];
    let refused = home.setup(&[&arguments[..], &["wiki"]].concat());
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(
        stderr(&refused).contains("no MCP server `wiki`") && stderr(&refused).contains("`notes`, `shell`")
    );
    let added = home.setup(&[&arguments[..], &["notes"]].concat());
    let shown = stdout(&added);
    assert!(shown.contains("notes: added; it is asked by `search(query)` and `fetch(id)`"), "{shown}");
    assert!(shown.contains("set the environment variable `NOTES_KEY`"), "{shown}");
    assert!(!said(&added).contains("s3cret"), "{added:?}");
    assert!(home.path(CONFIG).exists() && !home.path("started-shell").exists());
    // Without a store, clients get the sources.
    let result = answer(&home.setup(&["--no-import", "--client", "cursor", "--json"]));
    assert!(result["clients"][0]["diff"].to_string().contains("--config"), "{result}");
    // A store that a later import creates is one of them.
    home.write("Vault/.obsidian/app.json", "{}");
    home.write("Vault/Trip.md", "# Trip\n\nThe ferry.\n");
    answer(&home.setup(&["--import", text(&home.path("Vault")), "--client", "cursor", "--json"]));
    assert!(home.read(CONFIG).contains("store.db"), "{}", home.read(CONFIG));
    assert!(home.read(".cursor/mcp.json").contains("--config"));
}

#[test]
fn secrets_in_command_lines_and_urls_are_not_copied() {
    let home = home(&json!({
        "flag": {"command": "server", "args": ["--api-key", "s3cret"]},
        "header": {"command": "npx", "args": ["mcp-remote", "https://h.example/mcp", "--header", "Authorization: Bearer s3cret"]},
        "database": {"command": "server", "args": ["postgres://ann:s3cret@db.example/x"]},
        "query": {"url": "https://q.example/mcp?key=s3cret"},
        "folder": {"command": "server", "cwd": "/srv"},
        "input": {"url": "https://i.example/${input:s3cret}"},
        "reference": {"url": "https://r.example/mcp", "headers": {"X-Key": "${env:R_KEY}", "X-Other": "s3cret"}},
        "empty": {},
    }));
    let result = answer(&home.setup(&["--dry-run", "--json"]));
    let server = |name: &str| {
        let servers = result["servers"].as_array().unwrap();
        servers.iter().find(|server| server["name"] == name).unwrap().clone()
    };
    for (name, part) in [
        ("flag", "command line seems to have a secret"),
        ("database", "command line seems to have a secret"),
        ("query", "URL seems to have a secret"),
        ("folder", "`cwd`"),
        ("input", "placeholder"),
        ("empty", "neither a command nor a URL"),
    ] {
        assert!(server(name)["problem"].as_str().unwrap().contains(part), "{result}");
    }
    // A program that only forwards messages is left out.
    assert_eq!(server("header")["url"], "https://h.example/mcp");
    assert_eq!(server("header")["variables"][0]["name"], "HEADER_TOKEN");
    assert_eq!(server("reference")["headers"], json!(["X-Key", "X-Other"]));
    let names = [0, 1].map(|at| server("reference")["variables"][at]["name"].clone());
    assert_eq!(names, ["R_KEY", "REFERENCE_X_OTHER"]);
    assert!(!said(&home.setup(&["--dry-run"])).contains("s3cret"));
}

#[test]
fn a_server_that_asks_for_a_sign_in_is_added_with_the_command() {
    let server = wiki("Bearer no one has it");
    let home = home(&json!({
        "wiki": {"url": format!("{}/mcp", server.url)},
        "gone": {"command": "/no/such/program"},
        "unset": {"command": "python3", "args": ["SERVER", "notes"], "env": {"NOTES_KEY": "${NO_SUCH_KEY}"}},
    }));
    let output = home.setup(&["--yes", "--no-import", "--no-clients", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let result = answer(&output);
    let sources = &result["sources"];
    assert_eq!(
        (&sources[0]["state"], &sources[0]["next"][0]),
        (&json!("added"), &json!("fetchwell source login wiki"))
    );
    assert_eq!(sources[1]["state"], "not_added", "{result}");
    assert!(sources[1]["problem"].as_str().unwrap().contains("cannot be started"), "{result}");
    assert_eq!(
        (&sources[2]["state"], &sources[2]["variables"][0]["name"]),
        (&json!("not_added"), &json!("NO_SUCH_KEY"))
    );
    assert!(!home.path("started-notes").exists());
    let config: toml::Table = home.read(CONFIG).parse().unwrap();
    assert_eq!(config["source"].as_array().unwrap().len(), 1, "{config}");
}

#[test]
fn a_configuration_that_is_not_valid_stays_and_the_rest_is_done() {
    let home = home(&json!({"notes": notes()}));
    home.write(CONFIG, "listen = \n");
    home.write("Vault/.obsidian/app.json", "{}");
    home.write("Vault/Trip.md", "# Trip\n\nThe ferry.\n");
    let output = home.setup(&["--yes"]);
    assert!(
        stderr(&output).contains("no MCP server can be a source") && stderr(&output).contains("config.toml"),
        "{output:?}"
    );
    assert!(stdout(&output).contains("vault: 1 added"), "{output:?}");
    assert_eq!(home.read(CONFIG), "listen = \n");
}

#[cfg(target_os = "linux")]
#[test]
fn a_user_on_a_terminal_chooses_servers() {
    let home = home(&json!({"notes": notes(), "shell": {"command": "python3", "args": ["SERVER", "shell"]}}));
    // The second server, then no client.
    let output = on_terminal(&home, "2\\nn\\n");
    let shown = stdout(&output);
    for part in
        ["Search which of them, too?", "shell: not added; no tool that searches", "source inspect shell"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(home.path("started-shell").exists() && !home.path("started-notes").exists());
    assert!(!home.path(CONFIG).exists() && !shown.contains("s3cret"), "{shown}");
}

#[test]
fn the_page_offers_servers_and_adds_the_chosen_ones() {
    let home = home(&json!({
        "notes": notes(),
        "shell": {"command": "python3", "args": ["SERVER", "shell"]},
        "query": {"url": "https://q.example/mcp?key=s3cret"},
    }));
    let page = SetupPage::start(&home);
    let shown = page.get(&page.target).text;
    for part in ["MCP servers", "value=\"notes\"", "NOTES_KEY", "`query` of Cursor is not offered"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("s3cret") && !home.path("started-notes").exists(), "{shown}");
    assert_eq!(page.submit(&page.origin(), &[("source", "notes"), ("client", "Cursor")]).status, 303);
    let done = page.wait();
    assert!(done.contains("notes: added") && done.contains("`NOTES_KEY`"), "{done}");
    assert!(done.contains("Restart Cursor") && !done.contains("s3cret"), "{done}");
    assert!(
        home.read(CONFIG).contains("env:NOTES_KEY") && home.read(".cursor/mcp.json").contains("--config")
    );
    assert!(!home.path("started-shell").exists());
    let again = page.get(&format!("{}&again=1", page.target)).text;
    assert!(again.contains(": a source") && again.contains("value=\"shell\""), "{again}");
}
