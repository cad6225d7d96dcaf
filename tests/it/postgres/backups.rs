//! The backup and the restore of a database, with the commands of docs/scaling.md.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::documents::has_pgvector;
use crate::support::stores::postgres::{Database, programs};
use crate::support::{fetchwell, handbook, stdout, text};

const LINES: &str = "{\"stream\":\"notes\",\"key\":\"a\",\"data\":{\"title\":\"Zeppelin\",\"n\":1.10},\"emitted_at\":\"2026-01-02T03:04:05Z\"}\n\
    {\"stream\":\"notes\",\"key\":\"b/ü\",\"data\":{\"title\":\"Balloon\",\"n\":12345678901234567890}}\n";

/// Returns the commands of the section about backups.
fn documented() -> Vec<String> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/scaling.md")).unwrap();
    let (_, section) = page.split_once("## Backup and restore").unwrap();
    let (_, block) = section.split_once("```console\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    block.lines().map(|line| line.strip_prefix("$ ").unwrap().to_owned()).collect()
}

/// Returns what commands print of a store.
#[track_caller]
fn contents(store: &str, has_project: bool) -> Vec<String> {
    let mut printed = vec![
        stdout(&fetchwell(["export", "work", "--format", "ndjson", "--store", store])),
        stdout(&fetchwell(["search", "zeppelin", "--store", store, "--json"])),
    ];
    if has_project {
        printed.push(stdout(&fetchwell(["export", "handbook", "--format", "ndjson", "--store", store])));
        let project = stdout(&fetchwell(["project", "show", "handbook", "--json", "--store", store]));
        let project: Value = serde_json::from_str(&project).unwrap();
        printed.push(project.to_string());
    }
    printed
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn a_dump_is_restored_by_the_documented_commands() {
    let database = Database::create().await;
    database.import("work", LINES);
    let folder = tempfile::tempdir().unwrap();
    let has_project = has_pgvector(&database).await;
    if has_project {
        handbook::import(&folder.path().join("docs"), Path::new(&database.url));
    }
    let (host, port) = database.authority.split_once(':').unwrap();
    let path = format!("{}:{}", programs(), "/usr/local/bin:/usr/bin:/bin");
    let commands = documented();
    assert_eq!(commands.len(), 4, "{commands:?}");
    for command in commands {
        if command.contains("EXTENSION") && !has_project {
            continue;
        }
        let output = Command::new("sh")
            .args(["-c", &command])
            .current_dir(folder.path())
            .env("PATH", &path)
            .env("DATABASE", &database.url)
            .envs([
                ("PGHOST", host),
                ("PGPORT", port),
                ("PGUSER", "postgres"),
                ("PGPASSWORD", "fetchwell-test"),
            ])
            .output()
            .unwrap();
        assert!(output.status.success(), "{command}: {output:?}");
    }
    let restored = database.url.replace(&database.name, "restored");
    assert_ne!(restored, database.url);
    assert_eq!(contents(&restored, has_project), contents(&database.url, has_project));
    // The restored database is used as any other: it is of the current version, and imports go on.
    let status = fetchwell(["store", "status", "--store", &restored]);
    assert!(status.status.success(), "{status:?}");
    let folder = folder.path().join("more.ndjson");
    std::fs::write(&folder, LINES.replace("\"a\"", "\"c\"")).unwrap();
    let import = ["import", "records", text(&folder), "--connection", "work", "--store", &restored];
    assert!(fetchwell(import).status.success());
    assert_eq!(
        stdout(&fetchwell(["export", "work", "--format", "ndjson", "--store", &restored])).lines().count(),
        3
    );
}
