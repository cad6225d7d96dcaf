//! Positions of cursors in a state directory: what other processes find of them however their process ended.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{StdioServer, binary, import_records, starter, text};

const REVISION: &str = "2025-06-18";

/// A store of a hundred letters, all of which a search finds, and a state directory.
struct Place {
    folder: tempfile::TempDir,
    /// Ids of all hits, in the order of the search.
    hits: Vec<String>,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let line = |key: usize| {
            json!({"stream": "letters", "key": format!("l{key:03}"), "data": {"title": format!("Letter {key}")}})
                .to_string()
        };
        let lines: Vec<String> = (0..100).map(line).collect();
        import_records(&folder.path().join("store.db"), "cin_a", &lines.join("\n"));
        std::fs::create_dir(folder.path().join("state")).unwrap();
        let mut place = Self { folder, hits: Vec::new() };
        place.hits = ids(&search(&mut place.start(binary(), Path::new("none")), &first(100)));
        assert_eq!(place.hits.len(), 100);
        place
    }

    fn state(&self) -> std::path::PathBuf {
        self.folder.path().join("state")
    }

    fn serve(&self) -> StdioServer {
        self.start(binary(), &self.state())
    }

    fn start(&self, command: Command, state: &Path) -> StdioServer {
        let store = self.folder.path().join("store.db");
        let arguments = ["--store", text(&store), "--state-dir", text(state)];
        let mut server = StdioServer::start_with(command, arguments);
        server.initialize(REVISION);
        server
    }

    /// Checks the second page of a search with a limit, of which the first page had as many hits.
    #[track_caller]
    fn assert_second(&self, page: &Value, limit: usize) {
        assert_eq!(ids(page), self.hits[limit..2 * limit], "{page}");
    }
}

fn first(limit: usize) -> Value {
    json!({"query": "letter", "limit": limit})
}

/// Returns the payload of a search, or its error.
fn search(server: &mut StdioServer, arguments: &Value) -> Value {
    let params = json!({"name": "search", "arguments": arguments});
    server.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string());
    let mut answer = server.receive();
    let is_error = answer["result"]["isError"] == true;
    let mut payload = answer["result"]["structuredContent"].take();
    if is_error { payload["error"].take() } else { payload }
}

#[track_caller]
fn ids(page: &Value) -> Vec<String> {
    let hits = page["results"].as_array().unwrap_or_else(|| panic!("{page}"));
    hits.iter().map(|hit| hit["id"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn next(page: &Value) -> Value {
    assert!(page["next_cursor"].is_string(), "{page}");
    json!({"cursor": page["next_cursor"]})
}

/// Ends of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The client closes the input.
    Input,
    /// SIGTERM
    #[cfg(unix)]
    Terminate,
    /// SIGKILL
    Kill,
}

#[test]
fn a_process_that_ends_loses_no_cursor_and_a_killed_one_only_the_last() {
    let place = Place::new();
    for end in [
        End::Input,
        #[cfg(unix)]
        End::Terminate,
        End::Kill,
    ] {
        let mut server = place.serve();
        let cursors: Vec<(usize, Value)> =
            (3..10).map(|limit| (limit, next(&search(&mut server, &first(limit))))).collect();
        match end {
            End::Input => assert!(server.end().1.success()),
            #[cfg(unix)]
            End::Terminate => {
                let id = server.process.id().to_string();
                assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
                server.process.wait().unwrap();
            }
            End::Kill => {
                server.process.kill().unwrap();
                server.process.wait().unwrap();
            }
        }
        let mut other = place.serve();
        for (limit, cursor) in cursors {
            let page = search(&mut other, &cursor);
            // The first position of a process is stored before its answer.
            let may_be_lost = end == End::Kill && limit > 3;
            if !(may_be_lost && page["code"] == "invalid_cursor") {
                place.assert_second(&page, limit);
            }
        }
    }
}

#[test]
fn a_cursor_of_a_busy_process_is_continued_by_another_at_once() {
    let place = Place::new();
    let (mut one, mut other) = (place.serve(), place.serve());
    for limit in (3..40).chain(3..40) {
        let page = search(&mut one, &first(limit));
        place.assert_second(&search(&mut other, &next(&page)), limit);
        // Its own process has it in memory.
        place.assert_second(&search(&mut one, &next(&page)), limit);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn pages_of_a_read_only_directory_continue_within_their_process() {
    let place = Place::new();
    let state = place.state();
    let mut unshare = starter("unshare");
    let script = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" && exec \"$@\"";
    unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).arg(&state);
    let mut probe = starter("unshare");
    probe.args(unshare.get_args()).arg("true").stderr(Stdio::null());
    if !probe.status().is_ok_and(|status| status.success()) {
        return;
    }
    // First an empty directory, then one with files.
    for has_files in [false, true] {
        if has_files {
            next(&search(&mut place.serve(), &first(3)));
        }
        let mut command = starter("unshare");
        command.args(unshare.get_args()).arg(binary().get_program());
        let mut server = place.start(command, &state);
        for limit in 3..9 {
            let page = search(&mut server, &first(limit));
            place.assert_second(&search(&mut server, &next(&page)), limit);
        }
        let log = server.end().2;
        let named: Vec<&str> =
            log.lines().filter(|line| line.contains("cursors end with this process")).collect();
        assert_eq!(named.len(), 1, "{log}");
        assert!(named[0].contains(text(&state)) && named[0].contains("--state-dir"), "{log}");
    }
}

#[test]
fn a_damaged_file_is_replaced_with_one_line_in_the_log() {
    let place = Place::new();
    let mut server = place.serve();
    let cursors: Vec<Value> = (3..20).map(|limit| next(&search(&mut server, &first(limit)))).collect();
    assert!(server.end().1.success());
    // After a power failure, the header is on the disk, and other pages are not.
    let path = place.state().join("cursors.db");
    let file = rusqlite::Connection::open(&path).unwrap();
    file.query_one("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(())).unwrap();
    drop(file);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4_096..].fill(0);
    std::fs::write(&path, bytes).unwrap();
    let mut server = place.serve();
    for limit in 3..9 {
        let page = search(&mut server, &first(limit));
        place.assert_second(&search(&mut server, &next(&page)), limit);
    }
    for cursor in &cursors {
        let refused = search(&mut server, cursor);
        assert_eq!((&refused["code"], &refused["reason"]), (&json!("invalid_cursor"), &json!("expired")));
    }
    let log = server.end().2;
    assert_eq!(log.lines().filter(|line| line.contains("WARN")).count(), 1, "{log}");
    assert!(
        log.contains(text(&path)) && log.contains("is damaged") && log.contains("only cursors were lost")
    );
    // The next process finds the new file.
    let mut server = place.serve();
    next(&search(&mut server, &first(3)));
    assert_eq!(server.end().2, "");
}
