//! Laws of handles for any text: a parsed handle is printed unchanged, a minted handle parses back, and no name changes
//! its segment.
#![no_main]

use fetchwell_core::handle::{Handle, RecordAddress};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(handle) = text.parse::<Handle>() {
        assert_eq!(handle.as_str(), text);
        let minted = Handle::mint(handle.address()).and_then(|whole| match handle.part() {
            Some(number) => whole.with_part(number),
            None => Some(whole),
        });
        if text.matches('/').count() >= 2 {
            assert_eq!(minted.as_ref().map(Handle::as_str), Some(text));
        }
        if let Some(minted) = minted {
            assert_eq!(minted.as_str().parse::<Handle>().unwrap().address(), handle.address());
        }
    }
    // The same for any three names.
    let mut names = text.split('\u{1}');
    let (connection, stream, record) = (names.next(), names.next(), names.next());
    let address = || {
        Some(RecordAddress {
            connection: connection
                .filter(|name| !name.is_empty())
                .map(|name| name.parse().ok())
                .unwrap_or_default(),
            stream: stream?.parse().ok()?,
            record: record?.parse().ok()?,
        })
    };
    if let Some(address) = address()
        && let Some(handle) = Handle::mint(&address)
    {
        let read: Handle = handle.as_str().parse().unwrap();
        assert_eq!(read.address(), &address);
    }
});
