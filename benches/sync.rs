//! `cargo bench --bench sync`: the time from a file event to a search that finds the file, with the release binary over
//! stdio and an import that is watched, of 10,000 notes.
//!
//! It asserts nothing: machines differ, so compare runs on one machine. docs/benchmarks.md has what was measured.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a bench prints, and fails by panicking"
)]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

#[expect(dead_code, reason = "the other benches use more of it")]
mod client;

use client::{Client, ms};

const NOTES: usize = 10_000;
const EVENTS: usize = 200;

/// Pause between two searches for a file.
const POLL: Duration = Duration::from_millis(5);

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    fs::create_dir(&notes).unwrap();
    for number in 0..NOTES {
        write(&notes, number);
    }
    let config = folder.path().join("fetchwell.toml");
    let text =
        "[[source]]\nname = \"notes\"\nstore = \"notes.db\"\n[[import]]\npath = \"notes\"\nwatch = true\n";
    fs::write(&config, text).unwrap();
    let (mut client, _) = Client::start(&["--config", config.to_str().unwrap()]);
    let first = Instant::now();
    wait_for(&mut client, NOTES - 1);
    println!("first import of {NOTES} notes     {:>9.1} ms", ms(first.elapsed()));
    let mut took: Vec<Duration> = (NOTES..NOTES + EVENTS)
        .map(|number| {
            let started = Instant::now();
            write(&notes, number);
            wait_for(&mut client, number);
            started.elapsed()
        })
        .collect();
    took.sort_unstable();
    let at = |percent: usize| ms(took[took.len() * percent / 100]);
    println!("new file to found by a search     p50 {:>9.1} ms   p95 {:>9.1} ms", at(50), at(95));
}

fn write(folder: &Path, number: usize) {
    let text = format!("# Note {number}\n\n{}\n", word(number));
    fs::write(folder.join(format!("n{number}.md")), text).unwrap();
}

/// Searches until a note is found.
fn wait_for(client: &mut Client, number: usize) {
    let arguments = format!(r#"{{"query":"{}"}}"#, word(number));
    let file = format!("n{number}.md");
    loop {
        client.call("search", &arguments);
        if client.answer().contains(&file) {
            return;
        }
        std::thread::park_timeout(POLL);
    }
}

/// A word of nine letters that no other number has.
fn word(number: usize) -> String {
    let mut state = number as u64 + 1;
    let letters = (0..9).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b"abcdefghijklmnopqrstuvwxyz"[usize::try_from(state >> 33).unwrap() % 26])
    });
    letters.collect()
}
