//! Only sealed text opens as a cursor.
#![no_main]

use std::time::Duration;

use fetchwell_state::cursor::{Key, KeyId, KeyRing, VALID_FOR, seal};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (key, now) = (Key::new(KeyId([0; 4]), &[7; 32]), Duration::from_secs(1_800_000_000));
    if let Ok(claims) = KeyRing::new(key.clone()).open(text, now) {
        // This key sealed the text, the time is still valid, and the text is the only spelling.
        assert_eq!(seal(&key, &claims), text);
        assert!(claims.check_time(now, VALID_FOR).is_ok());
    }
});
