//! Handles with a part, and ids of parts with the version of a text: every part of a record has a handle that parses back, and no
//! text parses as the handle of another part or another record.
#![no_main]

use fetchwell_core::handle::{Handle, MAX_HANDLE_BYTES, PartId, TextVersion};
use libfuzzer_sys::fuzz_target;

// The input: a number, a line break, and a handle.
fuzz_target!(|text: &str| {
    let Some((number, text)) = text.split_once('\n') else { return };
    if let (Ok(whole), Ok(number)) = (text.parse::<Handle>(), number.parse::<u32>()) {
        mint_part(&whole, number);
    }
    let spelled = format!("{text}/p{number}");
    for text in [text, &spelled, &format!("{text}~{number}"), &format!("{text}/p1~{number}")] {
        check_id(text);
        if let Ok(handle) = text.parse::<Handle>() {
            check_part(text, &handle);
        }
    }
});

/// Mints the handle of a part, and parses it back.
fn mint_part(whole: &Handle, number: u32) {
    let address = whole.address();
    let Some(connection) = &address.connection else {
        assert_eq!(whole.with_part(number), None);
        return;
    };
    let Some(part) = whole.with_part(number) else {
        // Each byte of a name takes at most three in a handle.
        let names = [address.stream.as_str(), address.record.as_str()];
        let bytes: usize = connection.as_str().len() + names.map(str::len).iter().sum::<usize>();
        assert!(3 * bytes + "///p4294967295".len() > MAX_HANDLE_BYTES);
        return;
    };
    assert!(part.as_str().len() <= MAX_HANDLE_BYTES);
    assert_eq!((part.address(), part.part()), (address, Some(number)));
    assert_eq!(part.as_str().parse::<Handle>().as_ref(), Ok(&part));
    let version = Some(TextVersion::from_hash(address.record.as_str()));
    let id = PartId { handle: part, version };
    assert_eq!(id.to_string().parse::<PartId>().as_ref(), Ok(&id));
}

/// Checks that a text is the only spelling of its id, and that every handle is an id.
fn check_id(text: &str) {
    let handle = text.parse::<Handle>();
    let Ok(id) = text.parse::<PartId>() else {
        assert!(handle.is_err());
        return;
    };
    assert_eq!(id.to_string(), text);
    assert_eq!(id.version.is_none(), handle.is_ok());
}

/// Checks that a text with a part is the only spelling of its handle, and that the record without the part is the same.
fn check_part(text: &str, handle: &Handle) {
    let Some(number) = handle.part() else { return };
    assert!(text.ends_with(&format!("/p{number}")));
    let whole = Handle::mint(handle.address()).unwrap();
    assert_eq!((whole.address(), whole.part()), (handle.address(), None));
    assert_eq!(whole.with_part(number).as_ref(), Some(handle));
}
