//! The commands and configurations of README.md and `docs/`. The commands of a document run as printed, in order, in a
//! new folder, and their output is compared with the output in the document.
//!
//! A command that is not in `NOT_RUN` is run, so a new one in a document either works or fails the test.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::documents::{Block, ShownCommand, blocks, documents, inline_commands};
use crate::support::{FakeServer, HttpServer, Reply, binary, hostaway_store, starter, text};

/// Commands that no test can run, by their beginning, with the reason. The options of a `fetchwell` command within them
/// are checked.
const NOT_RUN: [(&str, &str); 9] = [
    ("cargo run -- demo", "a build; `.ci/run` runs it"),
    ("cargo ", "builds, installs or tests the program"),
    ("claude ", "needs Claude Code; tests/clients/agents runs it"),
    (".ci/conformance ", "needs the official conformance suite; `.ci/run` runs it"),
    ("vault ", "another program's"),
    ("createdb ", "PostgreSQL's own; tests/it/postgres/backups.rs runs it"),
    ("pg_", "PostgreSQL's own: pg_dump and pg_restore; tests/it/postgres/backups.rs runs them"),
    ("psql ", "PostgreSQL's own; tests/it/postgres/backups.rs runs it"),
    ("PGPASSFILE=", "needs a PostgreSQL server; tests/it/postgres/store.rs runs such"),
];

/// Blocks in languages of other programs, with the reason why they are not checked here.
const OTHER_LANGUAGES: [(&str, &str); 2] = [("caddyfile", "Caddy's own"), ("nginx", "nginx's own")];

/// Blocks that are no configuration of fetchwell, by a part of their text, with the reason.
const OTHER_BLOCKS: [(&str, &str); 8] = [
    ("image: ", "manifests of docs/scaling.md, which were not run"),
    ("scrape_configs:", "Prometheus' own"),
    ("\"read\":\"record\"", "a line of the audit log; tests/it/http/audit_log.rs has such"),
    ("\"access_token\"", "two answers of a command, a line each"),
    ("\"relevant\"", "questions of other stores; tests/it/cli/eval.rs has such"),
    ("\"unavailable\"", "a shortened answer; tests/it/federation/walk.rs has whole ones"),
    ("\"uptime_seconds\"", "an answer of /health; tests/it/http/operations.rs checks it"),
    ("\"target\":\"fetchwell::telemetry::call\"", "a line of the log; tests/it/http/telemetry.rs checks it"),
];

/// The URL of the server in the documents.
const PUBLIC: &str = "https://records.example.com";

/// A folder in which the commands of one document run.
struct Scratch {
    name: String,
    folder: tempfile::TempDir,
    variables: Vec<(&'static str, String)>,
    /// Texts of the document with their replacements in the test.
    replaced: Vec<(&'static str, String)>,
    /// The running server, stopped at the end.
    server: Option<HttpServer>,
    /// The MCP server in the document.
    _mcp_server: Option<HttpServer>,
    record_server: FakeServer,
}

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("home")).unwrap();
        let record_server = FakeServer::start(|_| {
            Reply::Json(200, json!({"object": "schema", "connectors": []}).to_string())
        });
        let scratch = Self {
            name: name.to_owned(),
            variables: Vec::new(),
            replaced: Vec::new(),
            server: None,
            _mcp_server: None,
            record_server,
            folder,
        };
        scratch.prepare()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn demo(&self, name: &str) {
        self.run_quietly(&format!("fetchwell demo --store {name}"));
    }

    #[track_caller]
    fn run_quietly(&self, command: &str) -> String {
        let (output, succeeded) = self.run(command);
        assert!(succeeded, "{command}: {output}");
        output
    }

    /// Creates the files that the document assumes.
    fn prepare(mut self) -> Self {
        self.write("etc/keep", "");
        self.replaced.push(("/etc/fetchwell/", format!("{}/", text(&self.path("etc")))));
        self.replaced.push(("/var/lib/fetchwell/", format!("{}/", text(self.folder.path()))));
        match self.name.as_str() {
            "README.md" => {
                self.write("home/notes/idea.md", "# An idea\n\nWrite to Ann.\n");
                self.write("home/notes/trip.md", "# Trip\n\nTo Oslo, with Ann.\n");
                self.write("mail.mbox", MAILBOX);
                let record =
                    json!({"stream": "reservations", "key": "r1", "data": {"id": "r1", "guestName": "Ann"}});
                self.write("export.ndjson", record.to_string());
                self.write("connector.json", manifest());
                copy_store(hostaway_store(), &self.path("lets.db"));
                self.demo("notes.db");
                let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
                self.write("fullchain.pem", made.cert.pem());
                self.write("privkey.pem", made.signing_key.serialize_pem());
                self.run_quietly("chmod 600 privkey.pem");
                self.variables.push(("WORK_TOKEN", "tok".to_owned()));
                self.replaced.push((PUBLIC, self.record_server.url.clone()));
                let arguments = ["--store", "notes.db", "--state-dir", "none"];
                let server = HttpServer::start_with(self.environment(binary()), "127.0.0.1:0", arguments);
                self.replaced.push(("https://mcp.example.com/mcp", server.url("/mcp/openai")));
                self._mcp_server = Some(server);
            }
            "docs/setup.md" => {
                self.write("home/.thunderbird/x.default/ImapMail/imap.example.com/INBOX", MAILBOX);
                self.write("home/Vault/.obsidian/app.json", "{}");
                self.write("home/Vault/ferry.md", "# The ferry\n\nIt leaves at noon.\n");
                self.write("home/.cursor/settings", "");
            }
            "docs/document-search.md" => {
                self.write("home/handbook/process/release.md", "# Release\n\nSteps.\n");
            }
            "docs/api.md" => copy_store(hostaway_store(), &self.path("hostaway.db")),
            "docs/v1.md" => self.demo("mail.db"),
            "docs/backup.md" | "docs/search.md" | "docs/stores.md" => self.demo("notes.db"),
            "docs/configuration.md" => {
                self.demo("home/notes.db");
                self.replaced.push((PUBLIC, self.record_server.url.clone()));
            }
            "docs/cursors.md" => {
                let cursor = self.cursor();
                self.replaced.push(("fw1_...", cursor));
            }
            "docs/hosting.md" => {
                self.demo("notes.db");
                self.variables.push(("FETCHWELL_TOKEN", "fwt_anything".to_owned()));
            }
            "docs/sync.md" => {
                self.write("home/notes/idea.md", "# An idea\n\nWrite to Ann.\n");
                self.write("home/notes/trip.md", "# Trip\n\nTo Oslo.\n");
            }
            "docs/monitoring.md" => {
                self.demo("demo.db");
                self.serve("fetchwell serve --store demo.db");
                self.run_quietly("curl -sf 'http://127.0.0.1:7400/v1/search?q=invoice'");
                self.stop();
            }
            _ => {}
        }
        self
    }

    /// Returns a cursor of a stdio server with the user's own state directory.
    fn cursor(&self) -> String {
        self.demo("demo.db");
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "search", "arguments": {"query": "invoice", "limit": 1}}});
        let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"capabilities": {},
            "protocolVersion": "2025-06-18", "clientInfo": {"name": "test", "version": "0"}}});
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let mut server = self.shell("exec fetchwell serve --stdio --store demo.db");
        let mut server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // The input stays open until the answer is read: after the end of its input a server waits only briefly for
        // slow calls.
        let mut input = server.stdin.take().unwrap();
        writeln!(input, "{initialize}\n{initialized}\n{call}").unwrap();
        let lines = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut answers = lines.map(|line| serde_json::from_str::<Value>(&line).unwrap());
        let answer = answers.find(|answer| answer["id"] == 1).unwrap();
        drop(input);
        assert!(server.wait().unwrap().success());
        answer["result"]["structuredContent"]["next_cursor"].as_str().unwrap().to_owned()
    }

    /// Sets the environment of the binary, with a home directory of its own.
    fn environment(&self, mut command: Command) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_fetchwell")).parent().unwrap();
        command.current_dir(self.folder.path()).env("PROGRAM", program).env("HOME", self.path("home"));
        for variable in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "WORK_TOKEN"] {
            command.env_remove(variable);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Returns a command line of `sh` in the environment of the binary, with the binary on the path.
    fn shell(&self, command: &str) -> Command {
        let mut shell = starter("sh");
        shell.args(["-c", &format!("PATH=\"$PROGRAM:$PATH\"\n{command}")]);
        self.environment(shell)
    }

    /// Runs a command. Returns its output on both streams, and true if it succeeded.
    fn run(&self, command: &str) -> (String, bool) {
        // curl prints its progress to standard error.
        let errors = if command.starts_with("curl ") { "2>/dev/null" } else { "2>&1" };
        let output = self.shell(&format!("{{ {}\n}} {errors}", self.here(command))).output().unwrap();
        (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.success())
    }

    /// Replaces URLs and paths of the document with those of the test.
    fn here(&self, printed: &str) -> String {
        let mut text = printed.to_owned();
        if let Some(server) = &self.server {
            text = text.replace("http://127.0.0.1:7400", &server.url("")).replace(PUBLIC, &server.url(""));
        }
        for (printed, here) in &self.replaced {
            text = text.replace(printed, here);
        }
        text
    }

    /// Starts `fetchwell serve ...` on a free port and waits until it serves.
    fn serve(&mut self, command: &str) {
        self.stop();
        let command = self.here(command);
        let mut words = command.split_whitespace().skip(2);
        let mut server = self.environment(binary());
        let mut arguments = Vec::new();
        while let Some(word) = words.next() {
            if word == "--listen" {
                words.next();
            } else {
                arguments.push(word.to_owned());
            }
        }
        // `HttpServer` adds `serve` and the address.
        server.args(["--log", "warn"]);
        let state = text(&self.path("home/.local/state/fetchwell")).to_owned();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.server = Some(match *arguments {
            [] => HttpServer::start_with(server, "127.0.0.1:0", ["--state-dir", &state]),
            [flag, value] => {
                HttpServer::start_with(server, "127.0.0.1:0", [flag, value, "--state-dir", &state])
            }
            _ => panic!("{command}: the test starts servers with at most one option"),
        });
    }

    /// Stops the server, which must end without an error.
    fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }
}

const MAILBOX: &str = "From ann@example.com Thu Jan  1 00:00:00 2026\nFrom: Ann <ann@example.com>\nTo: me@example.com\n\
    Subject: Overdue invoice\nMessage-ID: <m1>\nDate: Thu, 01 Jan 2026 00:00:00 +0000\n\nThe invoice is overdue.\n";

fn copy_store(from: &Path, to: &Path) {
    let from = rusqlite::Connection::open(from).unwrap();
    from.execute("VACUUM INTO ?1", [text(to)]).unwrap();
}

/// Returns the manifest in docs/connectors.md.
fn manifest() -> String {
    blocks("docs/connectors.md").into_iter().find(|block| block.language == "json").unwrap().text
}

/// Runs the commands of a document, from the first to the last.
fn check(name: &str) {
    let mut scratch = Scratch::new(name);
    for block in blocks(name) {
        match block.language.as_str() {
            "console" | "sh" => {
                for shown in block.commands() {
                    check_command(&mut scratch, &block, &shown);
                }
            }
            "toml" => save(&scratch, &block),
            _ => {}
        }
    }
    scratch.stop();
}

/// Saves a configuration that begins with a comment with its path.
fn save(scratch: &Scratch, block: &Block) {
    let first = block.text.lines().next().unwrap_or_default();
    let Some(path) = first.strip_prefix("# /") else { return };
    let path = scratch.here(&format!("/{path}"));
    std::fs::write(path, complete(&scratch.here(&block.text))).unwrap();
}

fn check_command(scratch: &mut Scratch, block: &Block, shown: &ShownCommand) {
    let place = format!("{}:{}: {}", scratch.name, block.line, shown.command);
    if NOT_RUN.iter().any(|(start, _)| shown.command.starts_with(start)) {
        if let Some((_, command)) = shown.command.split_once("-- ") {
            check_options(&place, command.trim_start_matches("fetchwell "));
        }
        return;
    }
    if let Some(file) = shown.command.strip_prefix("cat ") {
        std::fs::write(scratch.path(file), complete(&shown.output)).unwrap();
        return;
    }
    given(scratch, &shown.command);
    let (before, serve) = match shown.command.rsplit_once(" && ") {
        Some((before, last)) if last.starts_with("fetchwell serve") => (before, last),
        _ if shown.command.starts_with("fetchwell serve") => ("", shown.command.as_str()),
        _ => (shown.command.as_str(), ""),
    };
    if !before.is_empty() {
        let (output, succeeded) = scratch.run(before);
        let is_failure = shown.output.contains("error: ") || shown.output.contains("\n  wrong  ");
        assert_ne!(succeeded, is_failure, "{place}\n{output}");
        let expected = scratch.here(&shown.output);
        check_output(&place, &expected, &output, scratch.name == "README.md");
        check_comment(&place, &shown.comment, &output);
        if before.starts_with("curl ") && shown.output.is_empty() {
            let start: String = output.chars().take(500).collect();
            let answer: Value = serde_json::from_str(&output).unwrap_or_else(|_| panic!("{place}\n{start}"));
            assert!(answer.get("error").is_none(), "{place}\n{start}");
        }
        if before.starts_with("fetchwell token new") {
            keep_token(scratch, &output);
        }
    }
    if !serve.is_empty() {
        scratch.serve(serve);
    }
}

/// Creates the file that a command needs.
fn given(scratch: &Scratch, command: &str) {
    let lab = "[[source]]\nname = \"lab\"\nurl = \"https://lab.example.com\"\ncredential = \"command:vault read -field=token lab/client\"\n";
    match (&*scratch.name, command) {
        ("docs/configuration.md", "fetchwell config trust") => scratch.write("fetchwell.toml", lab),
        ("docs/configuration.md", "fetchwell config check") => {
            scratch
                .write("fetchwell.toml", format!("{lab}\n\n\n[context_protection]\nmax_page_size = 500\n"));
        }
        _ => {}
    }
}

/// Keeps a new token and its hash for later commands of the document.
fn keep_token(scratch: &mut Scratch, output: &str) {
    let token = output.lines().find(|line| line.starts_with("fwt_")).unwrap();
    let hash = output.lines().find(|line| line.starts_with("sha256 = ")).unwrap();
    scratch.variables.push(("TOKEN", token.to_owned()));
    scratch.replaced.push(("sha256 = \"…\"                           # what", format!("{hash} # what")));
}

/// Compares the documented output with the printed one. `…` stands for any text, and a line may be broken at any space.
/// Folders of absolute paths are not compared, and numbers only `with_numbers`.
#[track_caller]
fn check_output(place: &str, shown: &str, printed: &str, with_numbers: bool) {
    let printed = normal(printed, with_numbers);
    let mut rest = printed.as_str();
    for piece in normal(shown, with_numbers).split('…') {
        let Some((_, after)) = rest.split_once(piece.trim()) else {
            panic!("{place}\nis shown with: {}\nand printed: {printed}", piece.trim());
        };
        rest = after;
    }
}

fn normal(text: &str, with_numbers: bool) -> String {
    let words = text.split_whitespace().map(|word| {
        let bare = word.trim_start_matches(['`', '"']);
        let is_path = bare.starts_with('/') || bare.starts_with("~/");
        if is_path { word.rsplit('/').next().unwrap_or(word) } else { word }
    });
    let text = words.collect::<Vec<_>>().join(" ");
    if with_numbers {
        return text;
    }
    let mut normal = String::new();
    for character in text.chars() {
        match character {
            '0'..='9' if normal.ends_with('N') => {}
            '0'..='9' => normal.push('N'),
            ',' | '.' if normal.ends_with('N') => {}
            other => normal.push(other),
        }
    }
    normal
}

/// Checks that the words in quotes of a comment are in the output that it describes.
#[track_caller]
fn check_comment(place: &str, comment: &str, output: &str) {
    if comment.contains('{') {
        let words = comment.split('"').skip(1).step_by(2);
        for word in words.filter(|word| !word.contains('…')) {
            assert!(output.contains(&format!("\"{word}\"")), "{place}: no \"{word}\" in {output}");
        }
    }
}

/// Checks that a command exists and knows its options, through its help.
#[track_caller]
fn check_options(place: &str, command: &str) {
    let command = command.replace("KIND", "csv").replace("client-config NAME", "client-config claude");
    let words: Vec<&str> = command.split_whitespace().collect();
    let is_name =
        |word: &&&str| word.chars().all(|character| character.is_ascii_lowercase() || character == '-');
    let path: Vec<&str> =
        words.iter().take_while(|word| !word.starts_with('-')).take_while(is_name).copied().collect();
    let output = binary().args(&path).arg("--help").output().unwrap();
    let help = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && help.contains("Usage: fetchwell"), "{place}: {output:?}");
    for word in words {
        let option = word.trim_matches(['(', ')', '[', ']', ',']);
        // Words after `--` are another command.
        if option == "--" {
            break;
        }
        if option.starts_with("--") && option != "--version" {
            let known = help.split_whitespace().any(|known| known.trim_matches(['<', '>', ',']) == option);
            assert!(known, "{place}: {option} is no option of {path:?}:\n{help}");
        }
    }
}

/// Adds to a configuration what its document leaves out: digests, sources that it names, and authentication if it
/// listens for other machines.
fn complete(printed: &str) -> String {
    let mut text = String::new();
    for (index, line) in printed.lines().enumerate() {
        let digest = format!("{index:064x}");
        let line = match line.split_once('…') {
            Some((start, rest)) if start.starts_with("sha256 =") => format!("sha256 = \"{digest}{rest}"),
            _ => line.to_owned(),
        };
        text.push_str(&line);
        text.push('\n');
    }
    if text.contains("listen = \"0.0.0.0:") && !text.contains("[auth]") && !text.contains("[[auth") {
        text.push_str(&format!("[[auth.token]]\nname = \"ann\"\nsha256 = \"{:064x}\"\n", 10));
    }
    let has_public_url = text.contains("public_url =");
    if text.contains("[auth]") || text.contains("[[auth") {
        let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
        let defined: Vec<&str> = table
            .get("source")
            .and_then(|sources| sources.as_array())
            .into_iter()
            .flatten()
            .filter_map(|source| source["name"].as_str())
            .collect();
        let mut missing = BTreeMap::new();
        for name in named_sources(&table["auth"]) {
            if !defined.contains(&name.as_str()) {
                missing
                    .insert(name.clone(), format!("[[source]]\nname = \"{name}\"\nstore = \"{name}.db\"\n"));
            }
        }
        text.extend(missing.into_values());
    }
    if !has_public_url && text.contains("[auth]") {
        text.insert_str(0, "public_url = \"https://records.example.com\"\n");
    }
    text
}

/// Returns the sources that are granted to tokens and subjects.
fn named_sources(value: &toml::Value) -> Vec<String> {
    match value {
        toml::Value::Table(table) => {
            let own = table.get("sources").and_then(toml::Value::as_array).into_iter().flatten();
            let own: Vec<String> = own.filter_map(|name| name.as_str().map(str::to_owned)).collect();
            own.into_iter().chain(table.values().flat_map(named_sources)).collect()
        }
        toml::Value::Array(items) => items.iter().flat_map(named_sources).collect(),
        _ => Vec::new(),
    }
}

/// Checks a block that is not a command.
fn check_block(name: &str, block: &Block) {
    let place = format!("{name}:{}", block.line);
    if OTHER_LANGUAGES.iter().any(|(language, _)| block.language == *language)
        || OTHER_BLOCKS.iter().any(|(part, _)| block.text.contains(part))
    {
        return;
    }
    match block.language.as_str() {
        "console" | "sh" => {}
        "toml" if block.text.contains("[mcp_servers.") => {
            let table: toml::Table = block.text.parse().unwrap();
            check_client(&place, &serde_json::to_value(&table["mcp_servers"]["fetchwell"]).unwrap());
        }
        "json" if block.text.contains("ervers\"") => {
            let value: Value = serde_json::from_str(&block.text).unwrap();
            let servers = value.get("mcpServers").or_else(|| value.get("servers")).unwrap();
            check_client(&place, &servers["fetchwell"]);
        }
        "json" if block.text.contains("\"connector_key\"") => {
            let folder = tempfile::tempdir().unwrap();
            let [records, manifest, store] =
                ["r.ndjson", "m.json", "s.db"].map(|name| folder.path().join(name));
            let record =
                json!({"stream": "reservations", "key": "r1", "data": {"id": "r1", "guestName": "Ann"}});
            std::fs::write(&records, record.to_string()).unwrap();
            std::fs::write(&manifest, &block.text).unwrap();
            let output = binary()
                .args(["import", "records", text(&records), "--store", text(&store), "--connection", "c"])
                .args(["--manifest", text(&manifest)])
                .output()
                .unwrap();
            assert!(output.status.success(), "{place}: {output:?}");
        }
        "toml" | "yaml" => {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join(format!("config.{}", block.language));
            let printed = if block.language == "toml" { complete(&block.text) } else { block.text.clone() };
            std::fs::write(&file, printed).unwrap();
            let output = binary().args(["config", "check", "--config", text(&file)]).output().unwrap();
            assert!(output.status.success(), "{place}: {}", String::from_utf8_lossy(&output.stderr));
        }
        // Run by `the_view_of_chunks_has_the_columns_of_the_contract`.
        "sql" if block.text.contains("ATTACH") => {}
        other => panic!("{place}: a block of {other:?} is neither run nor listed here"),
    }
}

/// Checks the entry of a client's configuration: a URL, or a command line of fetchwell.
fn check_client(place: &str, entry: &Value) {
    if let Some(url) = entry.get("url") {
        assert_eq!(url, "https://records.example.com/mcp", "{place}");
        return;
    }
    assert!(entry["command"].as_str().unwrap().ends_with("fetchwell"), "{place}");
    let arguments: Vec<&str> =
        entry["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap()).collect();
    check_options(place, &arguments.join(" "));
}

#[test]
fn commands_of_the_readme_work_as_printed() {
    check("README.md");
}

/// A test for each page of `docs/` that shows commands.
macro_rules! pages {
    ($($test:ident: $page:literal,)+) => {
        $(
            #[test]
            fn $test() {
                check($page);
            }
        )+

        #[test]
        fn every_page_with_commands_has_a_test() {
            let is_run = |block: &Block| ["console", "sh"].contains(&block.language.as_str());
            let pages = documents().into_iter().filter(|name| name != "README.md");
            let pages: Vec<String> = pages.filter(|name| blocks(name).iter().any(is_run)).collect();
            assert_eq!(pages, [$($page),+]);
        }
    };
}

pages! {
    commands_of_the_api_page_work_as_printed: "docs/api.md",
    commands_of_the_backup_page_work_as_printed: "docs/backup.md",
    commands_of_the_configuration_page_work_as_printed: "docs/configuration.md",
    commands_of_the_conformance_page_work_as_printed: "docs/conformance.md",
    commands_of_the_cursors_page_work_as_printed: "docs/cursors.md",
    commands_of_the_document_search_page_work_as_printed: "docs/document-search.md",
    commands_of_the_hosting_page_work_as_printed: "docs/hosting.md",
    commands_of_the_monitoring_page_work_as_printed: "docs/monitoring.md",
    commands_of_the_postgresql_page_work_as_printed: "docs/postgresql.md",
    commands_of_the_scaling_page_work_as_printed: "docs/scaling.md",
    commands_of_the_search_page_work_as_printed: "docs/search.md",
    commands_of_the_setup_page_work_as_printed: "docs/setup.md",
    commands_of_the_stores_page_work_as_printed: "docs/stores.md",
    commands_of_the_sync_page_work_as_printed: "docs/sync.md",
    commands_of_the_v1_page_work_as_printed: "docs/v1.md",
}

#[test]
fn configurations_of_the_documents_are_accepted() {
    for name in documents() {
        for block in blocks(&name) {
            check_block(&name, &block);
        }
    }
    for example in ["docs/fetchwell.example.toml", "config.example.yaml"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(example);
        let output = binary().args(["config", "check", text(&file)]).output().unwrap();
        assert!(output.status.success(), "{example}: {output:?}");
    }
}

#[test]
fn commands_within_sentences_exist_with_their_options() {
    for name in documents() {
        for command in inline_commands(&name) {
            check_options(&format!("{name}: {command}"), command.trim_start_matches("fetchwell "));
        }
    }
}

#[test]
#[should_panic(expected = "--no-such-option is no option")]
fn unknown_option_is_noticed() {
    check_options("a document", "import csv FILE --no-such-option");
}

#[test]
#[should_panic(expected = "is shown with: of 2 connections, 3 records")]
fn other_output_is_noticed() {
    check_output(
        "a document",
        "c.db: … of 2\n connections, 3 records",
        "/home/c.db: all of 2 connections, 2 records",
        true,
    );
}
