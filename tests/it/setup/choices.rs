//! Choices of imports and clients: by flags, by answers on a terminal, and without either.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Home;
use crate::support::{stderr, stdout, text};

#[test]
fn without_a_terminal_nothing_is_asked_and_nothing_changes() {
    let home = Home::with_records();
    let files = home.files();
    // The input stays open and says nothing.
    let mut command = home.command(&["setup"]);
    let mut process =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let input = process.stdin.take();
    let start = Instant::now();
    while process.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < Duration::from_secs(30), "it waits for an answer");
        std::thread::yield_now();
    }
    drop(input);
    let output = process.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("nothing was changed") && said.contains("--yes"), "{said}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("would import"));
    assert_eq!(home.files(), files);
    assert!(!home.path("data").exists());
}

#[test]
fn a_dry_run_changes_nothing() {
    let home = Home::with_records();
    let files = home.files();
    let answer: Value =
        serde_json::from_str(&stdout(&home.setup(&["--dry-run", "--yes", "--json"]))).unwrap();
    assert_eq!(answer["dry_run"], true);
    let found = answer["found"].as_array().unwrap();
    assert_eq!(found.iter().filter(|found| found["is_default"] == true).count(), 4, "{answer}");
    assert_eq!(answer["clients"][0]["state"], "planned", "{answer}");
    assert!(answer["clients"][0]["diff"].as_array().unwrap().len() > 3, "{answer}");
    assert_eq!(home.files(), files);
    assert!(!home.path("data").exists());
}

#[test]
fn flags_choose_imports_and_clients() {
    let home = Home::with_records();
    let vault = home.path("Vault");
    let answer: Value = serde_json::from_str(&stdout(&home.setup(&[
        "--import",
        text(&vault),
        "--client",
        "cursor",
        "--json",
    ])))
    .unwrap();
    assert_eq!(answer["imports"].as_array().unwrap().len(), 1, "{answer}");
    assert_eq!(answer["imports"][0]["connection_id"], "vault", "{answer}");
    assert_eq!(answer["clients"].as_array().unwrap().len(), 1, "{answer}");
    assert!(home.path(".cursor/mcp.json").exists() && !home.path(".codex/config.toml").exists());
    let answer: Value =
        serde_json::from_str(&stdout(&home.setup(&["--no-import", "--client", "codex", "--json"]))).unwrap();
    assert_eq!((&answer["found"], &answer["clients"][0]["state"]), (&json!([]), &json!("created")));
    let answer: Value =
        serde_json::from_str(&stdout(&home.setup(&["--no-import", "--client", "claude-desktop", "--json"])))
            .unwrap();
    assert_eq!(answer["clients"][0]["client"], "Claude Desktop", "{answer}");
    let without = home.setup(&["--no-import", "--client", "cursor"]);
    let said = format!("{}{}", stdout(&without), stderr(&without));
    assert!(said.contains("for clients;") && !said.contains("notes") && !said.contains("import"), "{said}");
    for (arguments, part) in [
        (&["--import", "/usr"][..], "is not a file or folder in your home folder"),
        (&["--client", "zed"], "`fetchwell client-config` prints"),
        (&["--import", "Vault", "--no-import"], "cannot be used with"),
    ] {
        let refused = home.setup(arguments);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(stderr(&refused).contains(part), "{refused:?}");
    }
}

#[test]
fn a_client_is_not_configured_for_a_store_that_does_not_exist() {
    let home = Home::new();
    home.write(".cursor/mcp.json", "{}");
    let output = home.setup(&["--yes"]);
    assert!(stdout(&output).contains("No mail, notes or exports"), "{output:?}");
    assert!(stderr(&output).contains("import something first"), "{output:?}");
    assert_eq!(home.read(".cursor/mcp.json"), "{}");
}

/// Answers the questions on a terminal; `pty` of Python makes one.
#[cfg(target_os = "linux")]
const TERMINAL: &str = "import os, pty, sys
answers = sys.argv[1].encode().decode('unicode_escape').encode()
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
os.write(terminal, answers)
while True:
    try:
        data = os.read(terminal, 4096)
    except OSError:
        break
    if not data:
        break
    os.write(1, data)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";

/// Runs the command on a terminal, with answers to its questions.
#[cfg(target_os = "linux")]
pub(super) fn on_terminal(home: &Home, answers: &str) -> Output {
    let mut command = home.command(&[]);
    let program = command.get_program().to_owned();
    let environment: Vec<_> =
        command.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned))).collect();
    command = Command::new("python3");
    command.args(["-c", TERMINAL, answers]).arg(program).arg("setup").stdin(Stdio::null());
    for (name, value) in environment {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.output().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_user_on_a_terminal_chooses() {
    let home = Home::with_records();
    // The mail, then Codex and not Cursor. `7` is not in the list.
    let output = on_terminal(&home, "7\\n1\\nx\\nn\\nmaybe\\ny\\nn\\n");
    let shown = stdout(&output);
    for part in ["Import which?", "`7` is not a number", "imap-x-test: 1 added", "Make Codex use fetchwell?"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("vault: 1 added"), "{shown}");
    assert!(home.path(".codex/config.toml").exists() && !home.path(".cursor/mcp.json").exists());
    // The end of the input is no answer.
    let output = on_terminal(&home, "\\x04");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
}
