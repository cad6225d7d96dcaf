//! `fetchwell bundle`: its files, and an MCP session with the unpacked server as a client starts it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use zip::ZipArchive;

use crate::support::{demo_store, fetchwell, stderr, stdout, text};

fn read(bundle: &mut ZipArchive<File>, name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    bundle.by_name(name).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

#[cfg(unix)]
#[test]
fn an_unpacked_bundle_serves_the_chosen_store() {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

    let (folder, store) = demo_store();
    let out = folder.path().join("out.mcpb");
    let shown = stdout(&fetchwell(["bundle", "--out", text(&out), "--store", text(&store), "--json"]));
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["bytes"], out.metadata().unwrap().len());
    assert_eq!(out.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    let mut bundle = ZipArchive::new(File::open(&out).unwrap()).unwrap();
    assert_eq!(
        bundle.file_names().map(Result::unwrap).collect::<Vec<_>>(),
        ["manifest.json", "server/fetchwell"]
    );
    assert_eq!(bundle.by_name("server/fetchwell").unwrap().unix_mode().unwrap() & 0o777, 0o755);
    let manifest: Value = serde_json::from_slice(&read(&mut bundle, "manifest.json")).unwrap();
    assert_eq!(
        (&manifest["manifest_version"], &manifest["server"]["type"]),
        (&json!("0.3"), &json!("binary"))
    );
    assert_eq!(manifest["compatibility"]["platforms"][0], shown["platform"]);
    assert_eq!(manifest["user_config"]["store"]["type"], "file");
    assert_eq!(manifest["user_config"]["store"]["default"], text(&store));
    assert_eq!(manifest["tools"][0]["name"], "search");

    let program = folder.path().join("unpacked");
    let mut file = File::options().write(true).create_new(true).mode(0o755).open(&program).unwrap();
    file.write_all(&read(&mut bundle, "server/fetchwell")).unwrap();
    drop(file);
    let config = &manifest["server"]["mcp_config"];
    assert_eq!(config["command"], "${__dirname}/server/fetchwell");
    let arguments = config["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap());
    let arguments = arguments.map(|argument| argument.replace("${user_config.store}", text(&store)));
    let mut server = Command::new(&program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    writeln!(server.stdin.take().unwrap(), "{initialize}").unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(answer["result"]["serverInfo"]["version"], manifest["version"], "{line}");
    assert!(server.wait().unwrap().success());
}

#[test]
fn a_bundle_that_cannot_be_written_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("no/such/folder.mcpb");
    let refused = fetchwell(["bundle", "--out", text(&out)]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("name another with --out"), "{}", stderr(&refused));
    let both = fetchwell(["bundle", "--store", "a.db", "--config", "b.toml"]);
    assert_eq!(both.status.code(), Some(2));
}
