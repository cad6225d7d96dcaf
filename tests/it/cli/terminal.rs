//! Terminal output of every command with hostile names: standard output and standard error have no control character
//! and no bidirectional control, as text, as JSON, and with forced colours.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::{CREDENTIAL, FakeServer, Reply, binary, connect};

/// A name with C0 and C1 control characters, DEL, bidirectional controls and line ends. The zero-width joiner is
/// allowed.
const HOSTILE: &str = "a\u{1b}[2J\u{1b}[45mb\u{1b}]0;t\u{7}\u{9b}31m\u{90}q\u{7f}\u{202e}c\u{2066}d\u{200f}\u{61c}\u{2028}e\r\nerror: forged\tf\u{200d}";

/// The same without characters that Windows paths, URLs and lines of NDJSON cannot contain.
const LABEL: &str = "L\u{1b}[2J\u{9b}5m\u{202e}\u{2069}x";

/// The styles that fetchwell uses: bold, dimmed, underlined, red, green, yellow, and reset.
const OURS: [&str; 7] = ["0", "1", "2", "4", "31", "32", "33"];

struct Place {
    folder: tempfile::TempDir,
    server: FakeServer,
}

impl Place {
    /// Creates a store, files and a configuration with hostile names, and starts a hostile record server.
    fn new() -> Self {
        let server = FakeServer::start(|request| {
            let known = json!({"connection_id": HOSTILE, "display_name": LABEL});
            if request.line.contains("/v1/schema") {
                let streams = json!([{"name": HOSTILE, "field_capabilities": {HOSTILE: "t=string"}}]);
                let connector =
                    json!({"connector_key": LABEL, "streams": streams, "granted_connections": [known]});
                return Reply::Json(200, json!({"connectors": [connector]}).to_string());
            }
            if request.line.contains("q=hits") {
                let hit = json!({"stream": "s", "record_key": HOSTILE, "connection_id": HOSTILE, "title": HOSTILE, "snippet": {"text": HOSTILE}});
                return Reply::Json(200, json!({"data": [hit]}).to_string());
            }
            let error = json!({"code": "ambiguous_connection", "message": HOSTILE, "hint": HOSTILE, "available_connections": [known]});
            Reply::Json(409, json!({ "error": error }).to_string())
        });
        let folder = tempfile::tempdir().unwrap();
        connect(folder.path(), &server.url, CREDENTIAL);
        let place = Self { folder, server };
        place.write(
            "remote.toml",
            &format!(
                "[[source]]\nname = \"r\"\nlabel = {}\nurl = \"{}\"\ncache_root = \".\"\n",
                json_text(LABEL),
                place.server.url
            ),
        );
        let record = json!({"stream": HOSTILE, "key": HOSTILE, "data": {"title": HOSTILE, "body": format!("words {HOSTILE}"), HOSTILE: 1}});
        let other = json!({"stream": "s", "key": "k", "data": {"title": "plain", "body": "words"}});
        place.write("records.ndjson", &format!("{record}\n{other}\n"));
        place.write(
            "bad.ndjson",
            &format!("{{\"{LABEL}\":\n{{\"stream\":\"s\",\"key\":{{}},\"data\":{{\"{LABEL}\":1}}}}\n"),
        );
        place.write(&format!("{HOSTILE}.csv"), &format!("id,{LABEL}\n1,{LABEL}\n1,x,y,{LABEL}\n"));
        place.write("keys.toml", &format!("{} = 1\n", json_text(HOSTILE)));
        place.write(
            "values.yaml",
            &format!("source:\n- name: {}\n  store: x\n  {}: 1\n", json_text(LABEL), json_text(LABEL)),
        );
        place.write(
            &format!("{HOSTILE}.toml"),
            &format!(
                "[[source]]\nname = {}\nstore = \"store.db\"\nstreams = [{}]\n",
                json_text(LABEL),
                json_text(LABEL)
            ),
        );
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Returns every command with hostile names. The first one creates the store for the others.
    #[expect(clippy::too_many_lines, reason = "a line for each command line")]
    fn command_lines(&self) -> Vec<Vec<String>> {
        let store = ["--store", "store.db"];
        let remote = ["--config", "remote.toml"];
        let hostile_file = format!("{HOSTILE}.csv");
        let hostile_config = format!("{HOSTILE}.toml");
        let import = |kind: &'static str, file: &str, rest: &[&str]| {
            [&["import", kind, file, "--store", "store.db", "--connection", "c"], rest]
                .concat()
                .into_iter()
                .map(str::to_owned)
                .collect()
        };
        let line = |parts: &[&[&str]]| parts.concat().into_iter().map(str::to_owned).collect();
        vec![
            line(&[
                &[
                    "import",
                    "records",
                    "records.ndjson",
                    "--connection",
                    HOSTILE,
                    "--name",
                    LABEL,
                    "--connector",
                    LABEL,
                ],
                &store,
            ]),
            import("records", "bad.ndjson", &[]),
            import("records", HOSTILE, &[]),
            import("records", "records.ndjson", &["--manifest", HOSTILE]),
            import("records", "records.ndjson", &["--manifest", "bad.ndjson"]),
            import("csv", &hostile_file, &["--stream", "s", "--key", "id"]),
            import("csv", &hostile_file, &["--stream", HOSTILE, "--key", HOSTILE]),
            import("json", HOSTILE, &[]),
            import("json", "bad.ndjson", &["--stream", HOSTILE, "--key", HOSTILE]),
            import("markdown", HOSTILE, &[]),
            import("mbox", HOSTILE, &[]),
            line(&[&["connections"], &store]),
            line(&[&["connections"], &remote]),
            line(&[&["search", "words"], &store]),
            line(&[&["search", HOSTILE], &store]),
            line(&[&["search", "words", "--connection-id", HOSTILE], &remote]),
            line(&[&["search", "hits"], &remote]),
            line(&[&["fetch", HOSTILE], &store]),
            line(&[&["fetch", "s:k", "--fields", HOSTILE], &store]),
            line(&[&["fetch", "s:k"], &remote]),
            line(&[&["fetch", &self.handle()], &store]),
            line(&[&["doctor"], &store]),
            line(&[&["doctor"], &remote]),
            line(&[&["doctor", "--store", HOSTILE]]),
            line(&[&["doctor", "--config", &hostile_config]]),
            line(&[&["source", "list"], &remote]),
            line(&[&["source", "list", "--config", &hostile_config]]),
            line(&[&["source", "test"], &remote]),
            line(&[&["source", "test", HOSTILE], &remote]),
            line(&[&["source", "test", "--config", &hostile_config]]),
            line(&[&["source", "remove", HOSTILE], &remote]),
            line(&[&[
                "source",
                "add",
                LABEL,
                "--store",
                HOSTILE,
                "--label",
                LABEL,
                "--config",
                &format!("new {HOSTILE}.toml"),
            ]]),
            line(&[&["source", "add", "x", "--url", HOSTILE, "--config", "new.toml"]]),
            line(&[&["config", "check", &hostile_config]]),
            line(&[&["config", "check", "keys.toml"]]),
            line(&[&["config", "check", "values.yaml"]]),
            line(&[&["config", "check", HOSTILE]]),
            line(&[&["config", "trust", &hostile_config]]),
            line(&[&["config", "trust", &hostile_config, "--remove"]]),
            line(&[&["config", "trust", "values.yaml", "--dry-run"]]),
            line(&[&["config", "trust", "--list"]]),
            line(&[&["client-config", "claude-code", "--store", HOSTILE]]),
            line(&[&["client-config", "codex", "--store", HOSTILE]]),
            line(&[&["client-config", "claude-code", "--url", &format!("https://x/{HOSTILE}")]]),
            line(&[&["token", "new", "--name", HOSTILE]]),
            line(&[&["tokens", "count", HOSTILE]]),
            line(&[&["cursor", "inspect", HOSTILE, "--state-dir", HOSTILE]]),
            line(&[&["cursor", "list", "--state-dir", "records.ndjson"]]),
            line(&[&["cursor", "rotate", "--state-dir", "records.ndjson"]]),
            line(&[&["telemetry", "tail", "--state-dir", HOSTILE]]),
            line(&[&["telemetry", "endpoints", "--caller", HOSTILE, "--state-dir", "state"]]),
            line(&[&["bundle", "--out", &format!("none/{HOSTILE}")]]),
            line(&[&["completions", HOSTILE]]),
            line(&[&["demo", "--store", &format!("none/{HOSTILE}")]]),
            line(&[&["serve", "--stdio", "--store", HOSTILE]]),
            line(&[&["serve", "--stdio", "--config", HOSTILE]]),
            line(&[&["serve", "--listen", HOSTILE]]),
            line(&[&["serve", "--stdio"], &store]),
            line(&[&["search", "x", "--log", HOSTILE], &store]),
            line(&[&["search", "x", "--log-format", HOSTILE], &store]),
            line(&[&["search", "x", "--limit", HOSTILE], &store]),
            line(&[&[HOSTILE]]),
            line(&[&[&format!("--{HOSTILE}")]]),
            line(&[&["search", "--help"]]),
        ]
    }

    /// Returns the handle of the hostile record as a search prints it.
    fn handle(&self) -> String {
        let mut command =
            self.command(&["search", "words", "--store", "store.db", "--json"].map(str::to_owned));
        let output = command.output().unwrap();
        let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let results = found["results"].as_array().cloned().unwrap_or_default();
        let id = results.iter().filter_map(|hit| hit["id"].as_str()).find(|id| *id != "c/s:k");
        id.unwrap_or("s:k").to_owned()
    }

    fn command(&self, arguments: &[String]) -> Command {
        let mut command = binary();
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }
}

fn json_text(text: &str) -> String {
    // TOML cannot contain `\u{7f}` unescaped, and YAML no other control character, either.
    let escaped = |c: char| if c.is_control() { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    format!("\"{}\"", text.chars().map(escaped).collect::<String>())
}

/// Removes fetchwell's own styles.
fn without_our_styles(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.split_once('m').filter(|(style, _)| OURS.contains(style)).map(|(_, rest)| rest);
        plain.push_str(rest.map_or_else(|| format!("\u{1b}[{part}"), str::to_owned).as_str());
    }
    plain
}

#[track_caller]
fn check_stream(stream: &[u8], is_coloured: bool, of: &[String]) -> String {
    let shown = String::from_utf8(stream.to_vec()).unwrap_or_else(|_| panic!("no UTF-8: {of:?}"));
    let plain = if is_coloured { without_our_styles(&shown) } else { shown };
    let is_hazard = |c: &char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let hazard = plain.chars().find(is_hazard);
    assert_eq!(hazard, None, "{of:?}: {plain:?}");
    // A line end in a name must not begin a line. Record text, as `fetch` prints it, has several lines.
    if of.first().is_none_or(|command| command != "fetch") {
        assert!(!plain.lines().any(|line| line.starts_with("error: forged")), "{of:?}: {plain}");
    }
    plain
}

fn run(place: &Place, arguments: &[String], is_coloured: bool) -> Output {
    let mut command = place.command(arguments);
    if is_coloured {
        command.env("CLICOLOR_FORCE", "1");
    }
    command.output().unwrap()
}

#[test]
fn no_command_writes_control_sequences_of_names() {
    let place = Place::new();
    let (mut escapes, mut styles, mut values) = (0, 0, 0);
    for arguments in place.command_lines() {
        for (is_json, is_coloured) in [(false, true), (true, false)] {
            let mut arguments = arguments.clone();
            if is_json {
                arguments.push("--json".to_owned());
            }
            let output = run(&place, &arguments, is_coloured);
            let out = check_stream(&output.stdout, is_coloured, &arguments);
            let err = check_stream(&output.stderr, is_coloured, &arguments);
            assert!(output.status.code().is_some(), "{arguments:?}: {output:?}");
            escapes += usize::from(out.contains("\\u{1b}[2J") || err.contains("\\u{1b}[2J"));
            styles += usize::from(output.stderr.starts_with(b"\x1b[1m\x1b[31merror:"));
            if is_json && output.status.success() {
                for line in out.lines().filter(|line| line.starts_with(['{', '['])) {
                    let value: Value =
                        serde_json::from_str(line).unwrap_or_else(|_| panic!("{arguments:?}: {line}"));
                    values += usize::from(value.to_string().contains('\u{202e}'));
                }
            }
        }
    }
    // The names are printed in escaped form, fetchwell's own styles are kept, and JSON has the exact name.
    assert!(escapes > 40, "{escapes}");
    assert!(styles > 20, "{styles}");
    assert!(values >= 4, "{values}");
}

#[test]
fn logs_are_escaped() {
    let place = Place::new();
    // A source that cannot be opened is reported, and an invalid state directory is logged.
    let config = format!(
        "[[source]]\nname = \"a\"\nstore = \"store.db\"\n[[source]]\nname = \"b\"\nstore = {}\n",
        json_text(LABEL)
    );
    place.write("both.toml", &config);
    let imported = run(&place, &place.command_lines()[0], false);
    assert!(imported.status.success(), "{imported:?}");
    for format in ["text", "json"] {
        let arguments =
            ["serve", "--stdio", "--config", "both.toml", "--log", "debug", "--log-format", format];
        let arguments = arguments.map(str::to_owned);
        let output = run(&place, &arguments, false);
        let log = check_stream(&output.stderr, false, &arguments);
        assert!(log.contains("L\\u{1b}[2J"), "{log}");
    }
}

#[test]
fn record_text_keeps_its_lines() {
    let place = Place::new();
    let record = json!({"stream": "s", "key": "k", "data": {"title": "t", "body": "one\r\ntwo\tthree\u{1b}[31m\u{202e}"}});
    place.write("lines.ndjson", &record.to_string());
    let import = ["import", "records", "lines.ndjson", "--store", "lines.db", "--connection", "c"];
    assert!(run(&place, &import.map(str::to_owned), false).status.success());
    let fetch = ["fetch", "c/s:k", "--store", "lines.db"].map(str::to_owned);
    let shown = check_stream(&run(&place, &fetch, false).stdout, false, &fetch);
    assert!(shown.contains("one\ntwo\tthree\\u{1b}[31m\\u{202e}\n"), "{shown:?}");
}

#[test]
fn completions_are_not_escaped() {
    for shell in ["bash", "zsh", "fish"] {
        let output = binary().args(["completions", shell]).output().unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && script.contains("fetchwell") && script.ends_with('\n'), "{shell}");
        assert!(!script.contains("\\u{"), "{shell}: a part of the script was escaped");
    }
}

#[test]
fn wrong_file_names_are_quoted() {
    let place = Place::new();
    let arguments = [
        "import",
        "csv",
        "no\nsuch\u{1b}[2J",
        "--stream",
        "s",
        "--key",
        "id",
        "--store",
        "s.db",
        "--connection",
        "c",
    ];
    let output = run(&place, &arguments.map(str::to_owned), false);
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.starts_with("error: no\\nsuch\\u{1b}[2J cannot be read ("), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
}
