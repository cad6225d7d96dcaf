//! Servers that answer by a script: changed texts and lists, tool lists with mistakes, tools that are denied.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::mcp_tool as tool;
use crate::support::{
    FakeServer, FederationClient, HttpServer, binary, get, mcp_reply, stderr, stdout, text, walk,
};

/// A server over HTTP, with the configuration of a client of it.
struct ScriptedServer {
    server: FakeServer,
    folder: tempfile::TempDir,
}

impl ScriptedServer {
    /// Starts a server that answers `tools/list` and `tools/call` by the script.
    fn start(script: impl Fn(&str, &Value) -> Value + Send + Sync + 'static) -> Self {
        let server = FakeServer::start(move |request| mcp_reply(request, &script));
        Self { server, folder: tempfile::tempdir().unwrap() }
    }

    /// Writes the configuration with further lines of the source.
    fn config(&self, lines: &str) -> PathBuf {
        let path = self.folder.path().join("fetchwell.toml");
        let url = format!("{}/mcp", self.server.url);
        std::fs::write(
            &path,
            format!("[[source]]\nname = \"wiki\"\nmcp = \"{url}\"\ndeadline = \"20s\"\n{lines}\n"),
        )
        .unwrap();
        path
    }

    /// Returns the number of requests for a method.
    fn count(&self, method: &str) -> usize {
        let named = format!("\"method\":\"{method}\"");
        self.server.requests().iter().filter(|request| request.body.contains(&named)).count()
    }
}

fn structured(answer: &Value) -> Value {
    json!({"content": [], "structuredContent": answer})
}

/// Returns results with these ids.
fn results(ids: &[&str]) -> Value {
    let result = |id: &&str| json!({"id": id, "title": format!("Note {id}")});
    json!(ids.iter().map(result).collect::<Vec<_>>())
}

fn run(config: &Path, arguments: &[&str]) -> std::process::Output {
    binary().args(arguments).args(["--config", text(config)]).output().unwrap()
}

#[test]
fn a_text_that_changed_between_two_parts_is_named_to_its_reader() {
    let shown = Arc::new(Mutex::new("first".to_owned()));
    let word = Arc::clone(&shown);
    let server = ScriptedServer::start(move |method, _| match method {
        "tools/list" => json!({"tools": [tool("search", &["query"]), tool("fetch", &["id"])]}),
        _ => structured(&json!({"id": "n1", "text": format!("{} ", word.lock().unwrap()).repeat(20_000)})),
    });
    let config = server.config("");
    // Each client has a cache of its own.
    let part = |client: &mut FederationClient, id: &str| {
        let part = client.call("fetch", &json!({"id": id}));
        assert!(!part.is_error, "{id}: {part:?}");
        part.body
    };
    let first = part(&mut FederationClient::start(&config), "wiki/items:n1");
    let next = first["metadata"]["next"].as_str().unwrap();
    let (handle, version) = next.split_once('~').unwrap();
    assert_eq!((handle, version.len()), ("wiki/items/n1/p1", 8));
    let same = part(&mut FederationClient::start(&config), next);
    assert_eq!(same["metadata"].get("warning"), None);
    assert_eq!(same["id"], "wiki/items/n1/p1");
    // The page of a part leads to the next one of the same text.
    let page = |path: &str| {
        let server = HttpServer::start(["--config", text(&config), "--state-dir", "none"]);
        get(&server.address, path).text
    };
    let first_page = page("/records/wiki/items:n1?view=text");
    assert!(first_page.contains(&format!("href=\"/records/{next}\"")), "{first_page}");
    assert!(!page(&format!("/records/{next}")).contains("changed after the part before"));
    *shown.lock().unwrap() = "other".to_owned();
    let second_page = page(&format!("/records/{next}"));
    assert!(second_page.contains("changed after the part before"), "{second_page}");
    let mut client = FederationClient::start(&config);
    // Another reader began after the change.
    let begun = part(&mut client, "wiki/items:n1");
    let going_on = begun["metadata"]["next"].as_str().unwrap();
    assert_eq!(part(&mut client, going_on)["metadata"].get("warning"), None);
    let changed = part(&mut client, next);
    assert!(
        changed["metadata"]["warning"].as_str().unwrap().contains("changed after the part before"),
        "{changed}"
    );
    // The parts that follow are of the new text, also without a version.
    for id in [changed["metadata"]["next"].as_str().unwrap(), "wiki/items/n1/p2"] {
        assert_eq!(part(&mut client, id)["metadata"].get("warning"), None, "{id}");
    }
}

#[test]
fn a_tool_that_is_not_valid_hides_no_other_and_the_first_of_one_name_is_used() {
    let server = ScriptedServer::start(|method, params| match method {
        "tools/list" => json!({"tools": [
            {"name": "broken", "inputSchema": "none"}, 5, tool("search", &["query"]), tool("search", &["words"]),
            tool("fetch", &["id"]), {"name": null},
        ]}),
        _ if params["arguments"].get("query").is_some() => structured(&json!({"results": results(&["a"])})),
        _ => structured(&json!({"id": "a", "text": "A text."})),
    });
    let config = server.config("");
    let mut client = FederationClient::start(&config);
    let found = client.call("search", &json!({"query": "x"}));
    assert_eq!(found.ids(), ["wiki/items:a"], "{found:?}");
    let inspected = run(&config, &["source", "inspect", "wiki", "x"]);
    let shown = stdout(&inspected);
    for part in
        ["several tools `search`. The first one is used.", "3 other tools whose name", "search(query)"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("words"), "{shown}");
    let json: Value =
        serde_json::from_slice(&run(&config, &["source", "inspect", "wiki", "x", "--json"]).stdout).unwrap();
    assert_eq!((&json["unread"], &json["repeated"]), (&json!(3), &json!(["search"])));
}

#[test]
fn results_that_cannot_be_fetched_are_counted_in_the_terminal() {
    let long = "k".repeat(3_000);
    let server =
        ScriptedServer::start(move |method, params| match (method, params["arguments"]["query"].as_str()) {
            ("tools/list", _) => json!({"tools": [tool("search", &["query"]), tool("fetch", &["id"])]}),
            (_, Some("one")) => structured(&json!({"results": [{"title": "No id"}]})),
            _ => structured(
                &json!({"results": [{"id": null, "title": "No id"}, {"id": long, "title": "Too long"}]}),
            ),
        });
    let config = server.config("");
    for (query, expect) in [
        ("one", "1 result is omitted: it has no id that can be fetched"),
        ("two", "2 results are omitted: they have no id that can be fetched"),
    ] {
        let output = run(&config, &["search", query]);
        let said = stderr(&output);
        assert!(said.contains(expect) && !said.contains("nothing found"), "{said}");
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn a_result_without_a_text_is_shown_with_its_title() {
    let url = "https://wiki.example.com/pages/8812-a-longer-address-than-the-title";
    let rows = [
        (json!({"id": "1", "title": "Tax plan", "url": url}), "Tax plan"),
        (
            json!({"id": "2", "title": "Pages", "url": url, "text": " ", "date": "2026-01-02T10:00:00Z"}),
            "Pages",
        ),
        (json!({"id": "3", "title": "Tax plan", "url": url, "text": "Due in May."}), "Due in May."),
    ];
    let found = json!({"results": rows.iter().map(|(result, _)| result.clone()).collect::<Vec<_>>()});
    let server = ScriptedServer::start(move |method, _| match method {
        "tools/list" => json!({"tools": [tool("search", &["query"]), tool("fetch", &["id"])]}),
        _ => structured(&found),
    });
    // One query has words of the link only, and one has none of any field.
    for query in ["wiki pages", "elsewhere"] {
        let found = FederationClient::start(&server.config("")).call("search", &json!({"query": query}));
        let results = found.body["results"].as_array().unwrap();
        assert_eq!(results.len(), rows.len(), "{found:?}");
        for (result, (_, text)) in results.iter().zip(&rows) {
            assert_eq!((&result["text"], &result["url"]), (&json!(text), &json!(url)), "{query}");
        }
    }
}

/// Answers as a server that has renamed its tools without a notice, if `is_listed_anew`, and denies the former ones.
fn renaming(is_listed_anew: bool, denial: Value) -> ScriptedServer {
    let lists = Mutex::new(0);
    ScriptedServer::start(move |method, params| match (method, params["name"].as_str()) {
        ("tools/list", _) => {
            let mut count = lists.lock().unwrap();
            *count += 1;
            let names = if *count > 1 && is_listed_anew { ["find", "read"] } else { ["search", "fetch"] };
            let mut tools = [tool(names[0], &["query"]), tool(names[1], &["id"])];
            for tool in &mut tools {
                tool["annotations"] = json!({"readOnlyHint": true});
            }
            json!({ "tools": tools })
        }
        (_, Some("find")) => structured(&json!({"results": results(&["a"])})),
        (_, Some("read")) => structured(&json!({"id": "a", "text": "A text."})),
        _ => denial.clone(),
    })
}

#[test]
fn a_denied_tool_is_an_error_of_the_source_after_the_tools_were_listed_again() {
    let denials = [
        json!({"error": {"code": -32602, "message": "Unknown tool: fetch"}}),
        json!({"error": {"code": -32602, "message": "tool not found"}}),
        json!({"content": [{"type": "text", "text": "MCP error -32602: Tool fetch not found"}], "isError": true}),
    ];
    let calls = [("fetch", json!({"id": "wiki/items:a"})), ("search", json!({"query": "x"}))];
    for denial in &denials {
        let server = renaming(true, denial.clone());
        let fetched =
            FederationClient::start(&server.config("")).call("fetch", &json!({"id": "wiki/items:a"}));
        assert!(!fetched.is_error, "{denial}: {fetched:?}");
        assert_eq!(server.count("tools/list"), 2);
    }
    for (tool, arguments) in &calls {
        let server = renaming(false, denials[1].clone());
        let refused = FederationClient::start(&server.config("")).call(tool, arguments);
        assert_eq!(refused.body["code"], "source_protocol", "{refused:?}");
        assert_eq!((server.count("tools/list"), server.count("tools/call")), (2, 2), "{tool}");
    }
}

#[test]
fn a_server_that_sends_its_first_page_again_ends_no_cursor_of_another_search() {
    let list = Arc::new(Mutex::new(vec!["a", "b", "c", "d"]));
    let current = Arc::clone(&list);
    // Each page has another position, and the same results.
    let server = ScriptedServer::start(move |method, params| match method {
        "tools/list" => json!({"tools": [tool("search", &["query", "cursor"]), tool("fetch", &["id"])]}),
        _ => {
            let next = format!("{}x", params["arguments"]["cursor"].as_str().unwrap_or_default());
            structured(&json!({"results": results(&current.lock().unwrap()), "next_cursor": next}))
        }
    });
    let mut client = FederationClient::start(&server.config(""));
    let search = |cursor: Option<&Value>| {
        let mut arguments = json!({"query": "note", "limit": 2});
        if let Some(cursor) = cursor {
            arguments["cursor"] = cursor.clone();
        }
        arguments
    };
    let ids = walk(&mut client, "search", search(None));
    assert_eq!(ids, ["a", "b", "c", "d"].map(|id| format!("wiki/items:{id}")));
    let first = client.call("search", &search(None));
    *list.lock().unwrap() = vec!["e", "f", "g"];
    let other = client.call("search", &search(None));
    assert_eq!((first.ids().len(), other.ids().len()), (2, 2), "{other:?}");
    for (begun, expect) in [(&first, "wiki/items:c"), (&other, "wiki/items:g")] {
        let next = client.call("search", &search(begun.body.get("next_cursor")));
        assert!(!next.is_error, "{next:?}");
        assert_eq!(next.ids()[0], expect);
    }
}

#[test]
fn positions_that_lead_in_a_circle_and_endless_ones_end_the_list() {
    // The number of positions in the circle, results of each page, calls, and results in all.
    for (circle, per_page, calls, found) in
        [(3, 2, 4, 6), (90, 1, 91, 90), (4, 0, 5, 0), (usize::MAX, 1, 1_000, 1_000)]
    {
        let server = ScriptedServer::start(move |method, params| match method {
            "tools/list" => json!({"tools": [tool("search", &["query", "cursor"]), tool("fetch", &["id"])]}),
            _ => {
                let position =
                    params["arguments"]["cursor"].as_str().unwrap_or("0").parse::<usize>().unwrap();
                let ids: Vec<String> = (0..per_page).map(|number| format!("{position}-{number}")).collect();
                let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                let next = ((position + 1) % circle).to_string();
                structured(&json!({"results": results(&ids), "next_cursor": next}))
            }
        });
        let mut client = FederationClient::start(&server.config(""));
        let (mut ids, mut arguments) = (Vec::new(), json!({"query": "note", "limit": 100}));
        loop {
            let answer = client.call("search", &arguments);
            assert!(!answer.is_error && server.count("tools/call") <= calls, "{circle}: {answer:?}");
            ids.extend(answer.ids());
            match answer.body.get("next_cursor") {
                Some(cursor) => arguments["cursor"] = cursor.clone(),
                None => break,
            }
        }
        assert_eq!((server.count("tools/call"), ids.len()), (calls, found), "{circle}");
    }
}

#[test]
fn commands_wait_for_a_slow_start_and_calls_go_on_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("own.db");
    let line = json!({"stream": "notes", "key": "n1", "data": {"title": "Own note", "body": "ledger"}});
    crate::support::import_records(&store, "own", &line.to_string());
    let program = binary().get_program().to_str().unwrap().to_owned();
    let serve =
        format!("sleep 4; exec '{program}' serve --stdio --state-dir none --store '{}'", text(&store));
    let config = folder.path().join("fetchwell.toml");
    let command = ["sh", "-c", &serve];
    std::fs::write(
        &config,
        format!("[[source]]\nname = \"slow\"\ncommand = {command:?}\ndeadline = \"2s\"\n"),
    )
    .unwrap();
    for command in [&["source", "test", "slow"][..], &["source", "inspect", "slow", "ledger"]] {
        let output = run(&config, command);
        assert!(output.status.success(), "{command:?}: {output:?}");
    }
}

#[test]
fn a_program_that_ends_is_named_with_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("fetchwell.toml");
    let answered = json!({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
        "serverInfo": {"name": "ends", "version": "1"}}});
    let later = format!("read line; echo '{answered}'; read line; read line; exit 4");
    for (command, expect) in [
        (&["echo", "hi"][..], "the program `echo` ended with exit code 0; `--log debug` shows"),
        (&["sh", "-c", "echo secret >&2; exit 3"], "the program `sh` ended with exit code 3"),
        (&["sh", "-c", "kill -9 $$"], "the program `sh` ended by signal: 9"),
        (&["sh", "-c", &later], "the program `sh` ended with exit code 4"),
        (&["/no/such/program"], "`/no/such/program` cannot be started"),
    ] {
        let source = format!("[[source]]\nname = \"ends\"\ncommand = {command:?}\ndeadline = \"20s\"\n");
        std::fs::write(&config, source).unwrap();
        for arguments in [&["source", "test"][..], &["source", "inspect", "ends"], &["doctor"]] {
            let output = run(&config, arguments);
            let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
            assert!(!output.status.success() && said.contains(expect), "{command:?} {arguments:?}: {said}");
            assert!(said.contains("check that `command`") && !said.contains("secret"), "{said}");
        }
    }
}

#[test]
fn inspect_says_what_to_write() {
    let destructive = |name: &str| {
        let mut tool = tool(name, &["query"]);
        tool["annotations"] = json!({"destructiveHint": true});
        tool
    };
    let read_only = |name: &str| {
        let mut tool = tool(name, &["query"]);
        tool["annotations"] = json!({"readOnlyHint": true});
        tool
    };
    let contract = json!([tool("search", &["query"]), tool("fetch", &["id"])]);
    for (tools, lines, parts) in [
        (json!([]), "", ["the server has no tools; a source needs", "one that fetches"]),
        (
            json!([read_only("find_a"), read_only("find_b"), tool("fetch", &["id"])]),
            "",
            ["`find_b`", "`search = { tool = \"NAME\" }`"],
        ),
        (
            json!([destructive("search"), tool("fetch", &["id"])]),
            "",
            ["`search` is not called: it declares that it may change data", "`search = { tool = \"NAME\" }`"],
        ),
        (
            json!([destructive("search"), tool("fetch", &["id"])]),
            "search = { tool = \"search\" }",
            ["declares that it", "name another one as `tool`"],
        ),
        (contract.clone(), "search = { tool = \"seek\" }", ["no tool `seek`", "name another one as `tool`"]),
        (
            contract.clone(),
            "search = { tool = \"search\", query = \"q\" }",
            ["no argument `q`, which `query` of `search` names; it has `query`", "one of these as `query`"],
        ),
        (
            contract.clone(),
            "search = { tool = \"search\", results = \"/nope\" }",
            ["no list of results", "remove a wrong `results`"],
        ),
    ] {
        let server = ScriptedServer::start(move |method, _| match method {
            "tools/list" => json!({ "tools": tools }),
            _ => structured(&json!({"results": results(&["a"])})),
        });
        let config = server.config(lines);
        let output = run(&config, &["source", "inspect", "wiki"]);
        let said = stderr(&output);
        assert!(
            !output.status.success() && parts.iter().all(|part| said.contains(part)),
            "{parts:?}: {said}"
        );
        assert!(!said.contains("source inspect"), "{said}");
        for command in [&["source", "test"][..], &["doctor"]] {
            let shown = stdout_of(&run(&config, command));
            assert!(shown.contains("run `fetchwell source inspect wiki`"), "{command:?}: {shown}");
        }
    }
}

#[test]
fn inspect_prints_a_table_that_can_be_pasted() {
    let server = ScriptedServer::start(|method, _| match method {
        "tools/list" => json!({"tools": [tool("search", &["query"]), tool("fetch", &["id"])]}),
        _ => structured(&json!({"results": results(&["a"]), "id": "a", "text": "A text."})),
    });
    let written = "arguments = { kind = \"a \\\"note\\\"\", list = [1, 2.5], of = { deep = true } }";
    let config = server.config(&format!("search = {{ tool = \"search\", {written} }}"));
    let called = |config: &Path| -> String {
        let shown = stdout(&run(config, &["source", "inspect", "wiki"]));
        let lines = shown.lines().skip_while(|line| *line != "Called:").skip(1);
        lines.take_while(|line| line.starts_with("  ")).map(|line| format!("{}\n", line.trim())).collect()
    };
    let shown = called(&config);
    assert!(
        shown.starts_with("search = { tool = \"search\", query = \"query\"") && shown.contains("\nfetch = {"),
        "{shown}"
    );
    assert_eq!(called(&server.config(&shown)), shown);
    // The number of records is not known.
    for command in [&["source", "test"][..], &["doctor"]] {
        let shown = stdout_of(&run(&config, command));
        assert!(shown.contains("1 connection, 1 stream, answered in"), "{shown}");
    }
    let json: Value = serde_json::from_slice(&run(&config, &["source", "test", "--json"]).stdout).unwrap();
    assert!(json[0].get("records").is_none() && json[0]["streams"] == 1, "{json}");
}

/// Returns the standard output of a command that may have failed.
fn stdout_of(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
