//! Cursors are bound to the configured sources: a restarted server with other sources refuses cursors of the server
//! before, over HTTP and with the same state directory.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use rmcp::ClientLifecycleMode;
use serde_json::{Value, json};

use crate::support::{Account, HttpServer, Model, RecordServer, configured, rows_of, text};

const DEADLINE: Duration = Duration::from_secs(60);

/// Returns two lists that take several pages.
fn lists() -> [(&'static str, Value); 2] {
    [
        ("search", json!({"query": "invoice", "limit": 5})),
        ("query_records", json!({"stream": "messages", "limit": 5})),
    ]
}

/// A server, and a model that is connected to it.
struct ServerWithModel {
    model: Model,
    server: HttpServer,
    _folder: tempfile::TempDir,
}

/// Starts a server of these sources with this state.
async fn serve(sources: &[(&str, &RecordServer)], state: &Path) -> ServerWithModel {
    let (folder, config) = configured(sources, DEADLINE);
    let server = HttpServer::start(["--config", text(&config), "--state-dir", text(state)]);
    let model = Model::over_http(server.url("/mcp"), ClientLifecycleMode::Initialize).await;
    ServerWithModel { model, server, _folder: folder }
}

/// Returns the first pages of both lists with their cursors, and stops the server.
async fn first_pages(sources: &[(&str, &RecordServer)], state: &Path) -> Vec<(Vec<String>, Value)> {
    let served = serve(sources, state).await;
    let mut pages = Vec::new();
    for (tool, arguments) in lists() {
        let page = served.model.call(tool, arguments).await;
        assert!(page["next_cursor"].is_string(), "{tool}: {page}");
        pages.push((rows_of(&page), page["next_cursor"].clone()));
    }
    // A server that is killed loses the cursors of its last milliseconds.
    let ServerWithModel { model, server, _folder } = served;
    drop(model);
    server.stop();
    pages
}

fn servers() -> [RecordServer; 3] {
    ["cin_one", "cin_two", "cin_three"].map(|connection| RecordServer::start(Account::of(connection, 12)))
}

#[tokio::test]
async fn a_list_continues_over_the_same_sources() {
    let [one, two, _] = servers();
    let sources = [("alpha", &one), ("beta", &two)];
    let state = tempfile::tempdir().unwrap();
    let pages = first_pages(&sources, state.path()).await;
    let served = serve(&sources, state.path()).await;
    let all: BTreeSet<String> = [&one, &two].iter().flat_map(|server| server.account.handles()).collect();
    for ((tool, mut arguments), (mut rows, mut cursor)) in lists().into_iter().zip(pages) {
        while cursor.is_string() {
            arguments["cursor"] = cursor;
            let page = served.model.call(tool, arguments.clone()).await;
            rows.extend(rows_of(&page));
            cursor = page["next_cursor"].clone();
        }
        assert_eq!(rows.len(), all.len(), "{tool}: {rows:?}");
        assert_eq!(rows.into_iter().collect::<BTreeSet<String>>(), all, "{tool}");
    }
}

/// Checks that both lists are refused over other sources, and start again without the cursor.
async fn check_changed(before: &[(&str, &RecordServer)], after: &[(&str, &RecordServer)]) {
    let state = tempfile::tempdir().unwrap();
    let pages = first_pages(before, state.path()).await;
    let served = serve(after, state.path()).await;
    for ((tool, arguments), (_, cursor)) in lists().into_iter().zip(pages) {
        let mut with_cursor = arguments.clone();
        with_cursor["cursor"] = cursor;
        let refused = served.model.refusal(tool, with_cursor).await;
        assert_eq!((&refused["code"], &refused["reason"]), (&json!("invalid_cursor"), &json!("changed")));
        assert_eq!(rows_of(&served.model.call(tool, arguments).await).len(), 5, "{tool}");
    }
}

#[tokio::test]
async fn an_added_source_invalidates_cursors() {
    let [one, two, three] = servers();
    let before = [("alpha", &one), ("beta", &two)];
    check_changed(&before, &[("alpha", &one), ("beta", &two), ("gamma", &three)]).await;
}

#[tokio::test]
async fn a_removed_source_invalidates_cursors() {
    let [one, two, three] = servers();
    let before = [("alpha", &one), ("beta", &two), ("gamma", &three)];
    check_changed(&before, &[("alpha", &one), ("gamma", &three)]).await;
}

#[tokio::test]
async fn a_source_with_another_url_invalidates_cursors() {
    let [one, two, three] = servers();
    check_changed(&[("alpha", &one), ("beta", &two)], &[("alpha", &one), ("beta", &three)]).await;
}
