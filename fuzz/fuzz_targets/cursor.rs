//! No text opens as a cursor but one that was sealed.
#![no_main]

use std::time::Duration;

use fetchwell::cursor::{Key, open, seal};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (key, now) = (Key::new(0, [7; 32]), Duration::from_secs(1_800_000_000));
    if let Ok(reference) = open(&key, text, now) {
        // Only possible for what this key sealed, at a time that is still valid.
        assert!((0..600_060).any(|ahead| {
            seal(&key, &reference, now + Duration::from_secs(60) - Duration::from_millis(ahead)) == text
        }));
    }
});
