//! Imports that are stopped while their input stalls: a pipe or a FIFO with an open other end.
#![cfg(unix)]

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::import::commands::Workshop;
use crate::support::{binary, stderr, text, wait_until};

/// Longest wait for an event; a process that needs it hangs.
const GUARD: Duration = Duration::from_secs(30);

fn start(workshop: &Workshop, arguments: &[&str], stdin: Stdio) -> Child {
    let place = ["--store", &workshop.store(), "--connection", "c", "--json"];
    let mut command = binary();
    command.arg("import").args(arguments).args(place).stdin(stdin);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Sends a signal and returns how the process ended.
fn signal(mut process: Child, signal: &str) -> Output {
    Command::new("kill").args([signal, &process.id().to_string()]).status().unwrap();
    let start = Instant::now();
    while process.try_wait().unwrap().is_none() {
        if start.elapsed() > GUARD {
            process.kill().unwrap();
            panic!("it went on after {signal}");
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    process.wait_with_output().unwrap()
}

#[track_caller]
fn check_stopped(output: &Output, code: i32) -> u64 {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let said = stderr(output);
    assert!(
        said.contains("stopped; the records imported so far are kept. Run the same command again"),
        "{said}"
    );
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!(summary["stopped"], true);
    assert_eq!(summary["rejected"], 0, "{said}");
    summary["added"].as_u64().unwrap()
}

fn fifo(workshop: &Workshop) -> String {
    let path = Path::new(&workshop.store()).with_file_name("fifo");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    text(&path).to_owned()
}

#[test]
fn a_stopped_import_of_stalled_standard_input_keeps_its_records() {
    let mail = |id: &str| format!("From a@x.test Wed Apr  1 10:00:00 2026\nMessage-ID: <{id}>\n\nx\n\n");
    for (arguments, input, kept) in [
        (
            &["records", "/dev/stdin"][..],
            "{\"stream\":\"s\",\"key\":\"1\",\"data\":{}}\n{\"stream\":\"s\",\"key\":\"2\",\"da".to_owned(),
            "c/s:1",
        ),
        (&["json", "/dev/stdin", "--stream", "s"], "[{\"id\":1},{\"id\":2},{\"id\"".to_owned(), "c/s:1"),
        (&["csv", "/dev/stdin", "--stream", "s", "--key", "id"], "id,a\n1,b\n2,c\n3,\"".to_owned(), "c/s:1"),
        (&["mbox", "/dev/stdin"], format!("{}{}", mail("1"), mail("2")), "c/messages:1"),
    ] {
        for (name, code) in [("-INT", 130), ("-TERM", 143)] {
            let workshop = Workshop::new();
            let mut process = start(&workshop, arguments, Stdio::piped());
            let mut stdin = process.stdin.take().unwrap();
            stdin.write_all(input.as_bytes()).unwrap();
            wait_until("no record is imported", || Path::new(&workshop.store()).exists());
            let added = check_stopped(&signal(process, name), code);
            assert!((1..=2).contains(&added), "{arguments:?}: {added}");
            workshop.fetch(kept);
            drop(stdin);
        }
    }
}

#[test]
fn an_import_ends_while_its_manifest_stalls() {
    let workshop = Workshop::new();
    let process = start(&workshop, &["records", "/dev/null", "--manifest", &fifo(&workshop)], Stdio::null());
    let ended = signal(process, "-TERM");
    assert!(!ended.status.success() && !Path::new(&workshop.store()).exists(), "{ended:?}");
}

#[test]
fn a_stopped_import_of_a_fifo_can_be_repeated() {
    let workshop = Workshop::new();
    let fifo = fifo(&workshop);
    let process = start(&workshop, &["records", &fifo], Stdio::null());
    let lines: String = (0..10)
        .map(|key| format!("{{\"stream\":\"s\",\"key\":\"{key}\",\"data\":{{\"body\":\"text {key}\"}}}}\n"))
        .collect();
    let mut writer = std::fs::OpenOptions::new().write(true).open(&fifo).unwrap();
    writer.write_all(lines.as_bytes()).unwrap();
    wait_until("no record is imported", || Path::new(&workshop.store()).exists());
    let added = check_stopped(&signal(process, "-TERM"), 143);
    drop(writer);
    let file = workshop.file("all.ndjson", &lines);
    assert_eq!(workshop.counts(&["records", &file]), [10 - added, 0, added, 0, 0]);
}

#[test]
fn an_import_of_a_fifo_without_a_writer_is_stopped() {
    for (name, code) in [("-INT", 130), ("-TERM", 143)] {
        let workshop = Workshop::new();
        let fifo = fifo(&workshop);
        let process = start(&workshop, &["records", &fifo], Stdio::null());
        // The signal handlers are installed when the threads of the process exist.
        let threads = format!("/proc/{}/task", process.id());
        let has_input = || {
            let tasks = std::fs::read_dir(&threads).into_iter().flatten().flatten();
            let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
            tasks.filter_map(|task| name(task).ok()).any(|name| name.trim() == "input")
        };
        if Path::new("/proc/self/task").exists() {
            wait_until("it reads nothing", has_input);
            std::thread::park_timeout(Duration::from_millis(200));
        } else {
            std::thread::park_timeout(Duration::from_secs(1));
        }
        assert_eq!(check_stopped(&signal(process, name), code), 0);
        assert!(!Path::new(&workshop.store()).exists());
    }
}
