//! The command line: exit codes, remedies, and output for people and for programs.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    Account, Fault, RecordServer, binary, configured, connect, demo_store, fetchwell, stderr, stdout, text,
};

#[test]
fn the_demo_prints_its_records_and_a_client_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("nested/demo.db");
    let shown = stdout(&fetchwell(["demo", "--store", text(&store)]));
    for part in [
        "14 records",
        "search({\"query\":\"invoice\"})",
        "fetch({\"id\":",
        "bytes",
        "To search this sample data in Claude Desktop: ",
        "mcpServers",
        "--stdio",
        "To search your own data, run `fetchwell setup`.",
    ] {
        assert!(shown.contains(part), "{part} is not in:\n{shown}");
    }
    // A second run changes nothing, and the handles work on the command line, too.
    assert_eq!(stdout(&fetchwell(["demo", "--store", text(&store)])), shown);
    let demo: Value =
        serde_json::from_str(&stdout(&fetchwell(["demo", "--json", "--store", text(&store)]))).unwrap();
    for hit in demo["search"]["results"].as_array().unwrap() {
        let id = hit["id"].as_str().unwrap();
        stdout(&fetchwell(["fetch", id, "--store", text(&store)]));
    }
}

#[test]
fn a_store_is_searched_and_read_on_the_terminal() {
    let (_folder, store) = demo_store();
    let shown = stdout(&fetchwell(["search", "overdue", "--store", text(&store)]));
    assert!(shown.contains("cin_work/messages:m2") && !shown.contains('\u{1b}'), "{shown}");
    let found = fetchwell(["search", "invoice", "--store", text(&store), "--limit", "2", "--json"]);
    let found: Value = serde_json::from_str(&stdout(&found)).unwrap();
    assert_eq!((found["results"].as_array().unwrap().len(), &found["more"]), (2, &json!(true)));
    // The process has ended, so a cursor of it could not be used.
    assert!(found.get("next_cursor").is_none());
    let shown =
        stdout(&fetchwell(["fetch", "cin_work/messages:m3", "--fields", "subject", "--store", text(&store)]));
    assert!(shown.ends_with("\nOffsite in Kraków: trains and rooms\n"), "{shown}");
    let output = fetchwell(["fetch", "messages:m1", "--store", text(&store)]);
    assert!(
        output.status.code() == Some(1) && stderr(&output).contains("cin_home/messages:m1  Home"),
        "{output:?}"
    );
    let output = fetchwell(["search", "nothingatall", "--store", text(&store)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("nothing found"), "{output:?}");
    let shown = stdout(&fetchwell(["connections", "--store", text(&store)]));
    assert!(shown.contains("cin_home  Home, acme-suite") && shown.contains("  files  1 record"), "{shown}");
}

#[test]
fn credentials_have_the_exit_codes_of_pdpp() {
    let folder = tempfile::tempdir().unwrap();
    let url = "http://127.0.0.1:9";
    let run = || fetchwell(["serve", "--stdio", "--provider-url", url, "--cache-root", text(folder.path())]);
    let check = |credential: Option<&str>, code: i32, part: &str| {
        if let Some(credential) = credential {
            connect(folder.path(), url, credential);
        }
        let output = run();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(stderr(&output).contains(part) && output.stdout.is_empty(), "{output:?}");
        assert!(!stderr(&output).contains("tok_"), "{output:?}");
    };
    check(None, 78, "pdpp connect http://127.0.0.1:9");
    check(Some(r#"{"access_token":"tok_1","expires_at":"2020-01-01T00:00:00Z"}"#), 78, "expired");
    check(Some(r#"{"access_token":7}"#), 78, "malformed");
    check(Some(r#"{"access_token":"tok_1","role":"Owner"}"#), 77, "owner");
    connect(folder.path(), url, r#"{"access_token":"tok_1"}"#);
    let output = binary()
        .args(["serve", "--stdio", "--provider-url", url, "--cache-root", text(folder.path())])
        .env("PDPP_OWNER_TOKEN", "tok_owner")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(77));
    assert!(
        stderr(&output).contains("PDPP_OWNER_TOKEN") && !stderr(&output).contains("tok_owner"),
        "{output:?}"
    );
    for bad in ["", "ftp://x.example", "http://"] {
        let output = fetchwell(["serve", "--stdio", "--provider-url", bad]);
        assert_eq!(output.status.code(), Some(64), "{output:?}");
    }
}

#[test]
fn sources_that_fail_are_named() {
    let [mail, work] = [("cin_one", Fault::Status(401)), ("cin_two", Fault::Refused)]
        .map(|(connection, fault)| RecordServer::faulty(Account::of(connection, 1), fault));
    let (_folder, config) = configured(&[("mail", &mail), ("work", &work)], Duration::from_secs(3));
    for (arguments, code) in
        [(&["search", "invoice"][..], 2), (&["fetch", "messages:m1"], 1), (&["connections"], 1)]
    {
        let run = |json: &[&str]| {
            binary().args(arguments).args(["--config", text(&config)]).args(json).output().unwrap()
        };
        let output = run(&[]);
        assert!(output.status.code() == Some(code) && output.stdout.is_empty(), "{output:?}");
        for part in
            ["`mail` did not answer (reauthorize); run `pdpp connect", "`work` did not answer (source_"]
        {
            assert_eq!(stderr(&output).matches(part).count(), 1, "{output:?}");
        }
        let output = run(&["--json"]);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
        let named = &shown["unavailable"];
        assert_eq!((&named[0]["source"], &named[0]["code"]), (&json!("mail"), &json!("reauthorize")));
        assert_eq!(named[1], json!({"source": "work", "code": "source_unavailable"}));
    }
}

#[test]
fn exactly_one_source_must_be_named() {
    for arguments in [
        &["serve", "--stdio"][..],
        &["search", "x"],
        &["serve", "--stdio", "--store", "a", "--provider-url", "b"],
    ] {
        let output = binary().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(stderr(&output).contains("--store"), "{output:?}");
    }
}

#[test]
fn a_configuration_file_is_read_and_its_errors_are_named() {
    let (folder, _store) = demo_store();
    let config = folder.path().join("fetchwell.toml");
    // The path of the store is relative to the file.
    std::fs::write(&config, "[[source]]\nname = \"demo\"\nstore = \"demo.db\"\n").unwrap();
    assert!(stdout(&fetchwell(["doctor", "--config", text(&config)])).contains("14 records"));
    std::fs::write(&config, "[[source]]\nname = \"demo\"\nstor = \"demo.db\"\n").unwrap();
    let output = fetchwell(["serve", "--stdio", "--config", text(&config)]);
    assert!(
        output.status.code() == Some(1) && stderr(&output).contains("fetchwell.toml:3: source[0].stor: "),
        "{output:?}"
    );
    let output = fetchwell(["serve", "--stdio", "--config", "/no/such/file.toml"]);
    assert!(output.status.code() == Some(1) && stderr(&output).contains("check the path"), "{output:?}");
}

#[test]
fn doctor_says_what_is_wrong() {
    let (_folder, store) = demo_store();
    let shown = stdout(&fetchwell(["doctor", "--store", text(&store)]));
    assert!(shown.contains("ok    search"), "{shown}");
    let output = fetchwell(["doctor", "--store", "/no/such/store.db", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let checks: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(checks[1]["ok"], false);
    assert!(checks[1]["found"].as_str().unwrap().contains("fetchwell import"), "{checks}");
}

#[test]
fn every_client_has_its_configuration() {
    let (_folder, store) = demo_store();
    for (client, part) in [
        ("claude", "\"mcpServers\""),
        ("claude-desktop", "claude_desktop_config.json"),
        ("claude-code", "claude mcp add --scope user fetchwell -- "),
        ("codex", "[mcp_servers.fetchwell]"),
        ("cursor", "\"mcpServers\""),
        ("vscode", "\"servers\""),
        ("windsurf", ".codeium"),
        ("zed", "\"context_servers\""),
        ("gemini", "settings.json"),
        ("opencode", "\"type\": \"local\""),
        ("copilot", "mcp-config.json"),
        ("continue", "- name: fetchwell"),
        ("cline", "cline_mcp_settings.json"),
        ("chatgpt", "/mcp/openai"),
    ] {
        let shown = stdout(&fetchwell(["client-config", client, "--store", text(&store)]));
        assert!(shown.contains(part) && shown.contains(text(&store)), "{client}: {shown}");
    }
}

#[test]
fn missing_arguments_are_listed_with_their_possible_values() {
    for (arguments, part) in [
        (&["client-config"][..], "<CLIENT> [possible values: claude, claude-code, codex,"),
        (&["--json", "client-config", "--url", "https://a.example"], "continue, cline, chatgpt]"),
        (&["completions"], "<SHELL> [possible values: bash,"),
        (&["export", "c"], "--format <FORMAT> [possible values: ndjson, csv, md]"),
        (&["source", "remove"], "  <NAME>\n"),
    ] {
        let output = binary().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(stderr(&output).contains(part), "{part} is not in {}", stderr(&output));
    }
}

#[cfg(unix)]
#[test]
fn a_snippet_never_changes_the_path_of_a_file() {
    for name in ["a\u{1b}[2Jb.db", "a\nb.db", "a\u{202e}b.db"] {
        let output = fetchwell(["client-config", "codex", "--store", name]);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{output:?}");
        let problem = String::from_utf8(output.stderr).unwrap();
        assert!(problem.contains("has control characters") && !problem.contains('\u{1b}'), "{problem:?}");
        // JSON can escape control characters.
        let output = fetchwell(["client-config", "codex", "--store", name, "--json"]);
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let snippet: toml::Table = answer["snippet"].as_str().unwrap().parse().unwrap();
        let arguments = snippet["mcp_servers"]["fetchwell"]["args"].as_array().unwrap();
        assert!(arguments.iter().any(|word| word.as_str().unwrap().ends_with(name)), "{answer}");
    }
}

#[test]
fn every_client_has_its_configuration_for_a_remote_server() {
    let url = "https://records.example.com/mcp";
    for (client, part) in [
        ("claude", url),
        (
            "claude-code",
            "claude mcp add --scope user --transport http fetchwell https://records.example.com/mcp",
        ),
        ("codex", "url = \"https://records.example.com/mcp\""),
        ("cursor", "\"url\": \"https://records.example.com/mcp\""),
        ("vscode", "\"type\": \"http\""),
        ("windsurf", "\"serverUrl\": \"https://records.example.com/mcp\""),
        ("zed", "\"url\": \"https://records.example.com/mcp\""),
        ("gemini", "\"httpUrl\": \"https://records.example.com/mcp\""),
        ("opencode", "\"type\": \"remote\""),
        ("copilot", "\"type\": \"http\""),
        ("continue", "type: streamable-http"),
        ("cline", "\"type\": \"streamableHttp\""),
        ("chatgpt", "https://records.example.com/mcp/openai"),
    ] {
        let shown = stdout(&fetchwell(["client-config", client, "--url", url]));
        assert!(shown.contains(part), "{client}: {shown}");
    }
    let token = ["--token-env", "MY_TOKEN"];
    let shown = stdout(&fetchwell(["client-config", "codex", "--url", url, token[0], token[1]]));
    assert!(shown.contains("bearer_token_env_var = \"MY_TOKEN\""), "{shown}");
    for wrong in [
        ["client-config", "chatgpt", "--url", url, "--token-env", "MY_TOKEN"],
        ["client-config", "codex", "--url", url, "--store", "a.db"],
        ["client-config", "codex", "--url", "http://records.example.com", "--token-env", "MY_TOKEN"],
        ["client-config", "codex", "--url", url, "--token-env", "fwt_abc"],
    ] {
        assert_eq!(fetchwell(wrong).status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn variables_of_all_services_are_in_the_snippet() {
    let (folder, store) = demo_store();
    let config = folder.path().join("fetchwell.toml");
    let service = "provider = \"http\"\nurl = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\n";
    let settings = format!(
        "[[source]]\nname = \"a\"\nstore = \"{}\"\n[embedding]\n{service}dimensions = 8\napi_key = \"env:EMBEDDING_KEY\"\n\
         [rerank]\n{service}api_key = \"env:RERANK_KEY\"\n",
        text(&store)
    );
    std::fs::write(&config, settings).unwrap();
    let snippet = stdout(&fetchwell(["client-config", "claude", "--config", text(&config), "--json"]));
    let snippet: Value = serde_json::from_str(&snippet).unwrap();
    let client: Value = serde_json::from_str(snippet["snippet"].as_str().unwrap()).unwrap();
    let environment = client["mcpServers"]["fetchwell"]["env"].as_object().unwrap();
    assert_eq!(environment.keys().collect::<Vec<_>>(), ["EMBEDDING_KEY", "RERANK_KEY"]);
}

#[test]
fn the_command_of_a_snippet_runs() {
    let (_folder, store) = demo_store();
    let snippet = stdout(&fetchwell(["client-config", "claude", "--store", text(&store), "--json"]));
    let snippet: Value = serde_json::from_str(&snippet).unwrap();
    let config: Value = serde_json::from_str(snippet["snippet"].as_str().unwrap()).unwrap();
    let server = &config["mcpServers"]["fetchwell"];
    let arguments = server["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap());
    let output = std::process::Command::new(server["command"].as_str().unwrap())
        .args(arguments)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
}

#[test]
fn completions_and_help_are_printed() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(stdout(&fetchwell(["completions", shell])).contains("fetchwell"));
    }
    // A reader that closes the pipe early, as `head` does, ends the command quietly.
    let line = format!("'{}' completions bash | head -c 1", env!("CARGO_BIN_EXE_fetchwell"));
    let piped = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
    assert!(piped.status.success() && piped.stdout.len() == 1 && piped.stderr.is_empty(), "{piped:?}");
    let help = stdout(&fetchwell(["--help"]));
    let commands = [
        "serve",
        "demo",
        "import",
        "connections",
        "search",
        "fetch",
        "budget",
        "doctor",
        "client-config",
        "completions",
    ];
    for command in commands {
        assert!(help.contains(&format!("\n  {command}")), "{help}");
        stdout(&fetchwell([command, "--help"]));
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man/man1");
    stdout(&fetchwell(["man", text(&pages)]));
    for name in ["fetchwell", "fetchwell-setup", "fetchwell-source-add"] {
        let page = std::fs::read_to_string(pages.join(format!("{name}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS") && page.contains(".SH OPTIONS"), "{page}");
    }
    // Commands that are not for users have none.
    assert!(!pages.join("fetchwell-read-pdf.1").exists() && !pages.join("fetchwell-man.1").exists());
    let refused = fetchwell(["man", "/dev/null/man"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("name another folder"), "{refused:?}");
}

#[test]
fn commands_of_stores_list_no_options_of_servers() {
    let commands = [
        &["backup"][..],
        &["restore"],
        &["export"],
        &["remove"],
        &["store", "info"],
        &["embeddings", "build"],
        &["project", "list"],
    ];
    for command in commands {
        let help = stdout(&binary().args(command).arg("--help").output().unwrap());
        assert!(help.contains("--store <DB>") && help.contains("--config <FILE>"), "{help}");
        assert!(!help.contains("--provider-url") && !help.contains("--cache-root"), "{help}");
    }
    assert!(stdout(&fetchwell(["search", "--help"])).contains("--provider-url <URL>"));
    // A script that passes them gets the error of the command, and none of the arguments.
    let url = ["--provider-url", "http://127.0.0.1:9", "--cache-root", "."];
    let refused = binary().args(["export", "c", "--format", "csv"]).args(url).output().unwrap();
    assert!(stderr(&refused).contains("no store is configured"), "{refused:?}");
}

#[test]
fn measured_budgets_hold() {
    let shown = stdout(&fetchwell(["budget"]));
    assert!(shown.contains("search, fat, no limit"), "{shown}");
    let rows: Value = serde_json::from_str(&stdout(&fetchwell(["budget", "--json"]))).unwrap();
    let rows = rows.as_array().unwrap();
    assert!(rows.len() >= 12);
    assert!(rows.iter().all(|row| row["ok"] == true), "{rows:?}");
}

#[test]
fn a_filter_that_cannot_be_read_is_refused() {
    let output = fetchwell(["budget", "--log", "a=b=c"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("fetchwell=debug"), "{output:?}");
}

/// Runs `tokens count` on standard input, as JSON.
#[track_caller]
fn counted(arguments: &[&str], input: &str) -> Value {
    use std::io::Write;
    let mut command = binary();
    command.args(["tokens", "count", "--json"]).args(arguments);
    let pipe = std::process::Stdio::piped;
    let mut process = command.stdin(pipe()).stdout(pipe()).stderr(pipe()).spawn().unwrap();
    process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    serde_json::from_str(&stdout(&process.wait_with_output().unwrap())).unwrap()
}

#[test]
fn tokens_are_counted_and_estimated() {
    let expect = |tokens: u64, estimator: &str, exact: bool| serde_json::json!({"tokens": tokens, "bytes": 13, "chars": 12, "estimator": estimator, "exact": exact});
    let hello = "hello wörld\n";
    assert_eq!(counted(&[], hello), expect(5, "o200k", true));
    assert_eq!(counted(&["-", "--exact"], hello), expect(5, "o200k", true));
    assert_eq!(counted(&["--estimator", "chars4"], hello), expect(3, "chars4", false));
    // Longer texts are estimated unless `--exact` is given; the estimate is never below the exact number.
    let long = "Please pay the invoice number 2; the amount due is 20 EUR.\n".repeat(5_000);
    let (estimate, exact) = (counted(&[], &long), counted(&["--exact"], &long));
    assert_eq!((&estimate["exact"], &exact["exact"]), (&Value::Bool(false), &Value::Bool(true)));
    let tokens = |counted: &Value| counted["tokens"].as_u64().unwrap();
    assert!((tokens(&exact)..=tokens(&exact) * 6 / 5).contains(&tokens(&estimate)), "{estimate} {exact}");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text");
    std::fs::write(&file, "hello world").unwrap();
    assert_eq!(stdout(&fetchwell(["tokens", "count", text(&file)])), "2 tokens\n");
    std::fs::write(&file, [0xFF]).unwrap();
    let no_text = fetchwell(["tokens", "count", text(&file)]);
    assert!(no_text.status.code() == Some(1) && stderr(&no_text).contains("not UTF-8"), "{no_text:?}");
    let both = fetchwell(["tokens", "count", text(&file), "--exact", "--estimator", "chars4"]);
    assert!(both.status.code() == Some(2) && stderr(&both).contains("remove --exact"), "{both:?}");
    // A file above the limit is refused before it is read.
    std::fs::File::create(&file).unwrap().set_len(64 * 1024 * 1024 + 1).unwrap();
    let giant = fetchwell(["tokens", "count", text(&file)]);
    assert!(giant.status.code() == Some(1) && stderr(&giant).contains("larger than 64 MiB"), "{giant:?}");
}

#[test]
fn a_new_token_is_printed_once_with_its_configuration() {
    let output = fetchwell(["token", "new", "--name", "ci"]);
    let shown = stdout(&output);
    let (token, configuration) = shown.split_once('\n').unwrap();
    assert!(token.starts_with("fwt_") && token.len() == 47, "{shown}");
    assert!(configuration.starts_with("[[auth.token]]\nname = \"ci\"\nsha256 = \""), "{shown}");
    assert!(stderr(&output).contains("shown only once") && !stderr(&output).contains(token), "{output:?}");
    let made: Value =
        serde_json::from_str(&stdout(&fetchwell(["token", "new", "--name", "ci", "--json"]))).unwrap();
    let keys: Vec<&String> = made.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["name", "token", "sha256", "configuration"]);
    let configuration: toml::Table = made["configuration"].as_str().unwrap().parse().unwrap();
    let written = &configuration["auth"]["token"][0];
    assert_eq!((written["name"].as_str(), written["sha256"].as_str()), (Some("ci"), made["sha256"].as_str()));
    assert_ne!(made["token"], json!(token));
    for name in ["", "a b", "a\"\nmetrics = true"] {
        let output = fetchwell(["token", "new", "--name", name]);
        assert!(output.status.code() == Some(2) && output.stdout.is_empty(), "{output:?}");
        assert!(stderr(&output).contains("letters, digits"), "{output:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_printed_command_is_quoted_for_a_shell() {
    for host in [
        "$(id).example",
        "`id`.example",
        "a;id;.example",
        "a&id&.example",
        "a'id'b.example",
        "a\"b*!.example",
    ] {
        let url = format!("https://{host}/mcp");
        let snippet = |client: &str, more: &[&str]| {
            let mut command = binary();
            command.args(["client-config", client, "--url", &url, "--json"]).args(more);
            let shown: Value = serde_json::from_str(&stdout(&command.output().unwrap())).unwrap();
            shown["snippet"].as_str().unwrap().to_owned()
        };
        for more in [&[][..], &["--token-env", "MY_TOKEN"]] {
            // A shell that runs the printed line passes these words to the client.
            let line = format!("claude() {{ printf '%s\\n' \"$@\"; }}; {}", snippet("claude-code", more));
            let mut shell = std::process::Command::new("sh");
            let output = shell.args(["-c", &line]).env("MY_TOKEN", "a b").output().unwrap();
            let said = stdout(&output);
            let mut expect = vec!["mcp", "add", "--scope", "user", "--transport", "http", "fetchwell", &url];
            if !more.is_empty() {
                expect.extend(["--header", "Authorization: Bearer a b"]);
            }
            assert_eq!(said.lines().collect::<Vec<_>>(), expect, "{line}");
            let codex: toml::Table = toml::from_str(&snippet("codex", more)).unwrap();
            assert_eq!(codex["mcp_servers"]["fetchwell"]["url"].as_str(), Some(url.as_str()));
            let cursor: Value = serde_json::from_str(&snippet("cursor", more)).unwrap();
            assert_eq!(cursor["mcpServers"]["fetchwell"]["url"], url);
            let vscode: Value = serde_json::from_str(&snippet("vscode", more)).unwrap();
            assert_eq!(vscode["servers"]["fetchwell"]["url"], url);
        }
    }
}
