//! The text of a cursor.
//!
//! `fw1.` and base64url, without padding, of 56 bytes: version (1), key id (1), time of issue in
//! milliseconds since 1970 (6), reference (16), HMAC-SHA256 tag over all before it (32). Eighty
//! characters in all, whatever the position is.

use std::fmt;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::CursorFault;

const PREFIX: &str = "fw1.";
const VERSION: u8 = 1;
const CLAIMS: usize = 24;
const TAG: usize = 32;

/// How long a cursor is valid after its issue.
pub const VALID_FOR: Duration = Duration::from_secs(600);

/// How far ahead the clock of its issue may be.
const AHEAD: Duration = Duration::from_secs(60);

/// The most characters a cursor has.
pub const MAX_CURSOR_CHARS: usize = 96;

/// Names a stored position.
pub type Reference = [u8; 16];

/// A signing key. There is no default one.
#[derive(Clone)]
pub struct Key {
    id: u8,
    /// The secret, padded to the block of SHA-256 as HMAC defines it.
    block: [u8; 64],
}

impl Key {
    /// A key made of 32 random bytes.
    #[must_use]
    pub fn new(id: u8, secret: [u8; 32]) -> Self {
        let mut block = [0; 64];
        block.iter_mut().zip(secret).for_each(|(padded, byte)| *padded = byte);
        Self { id, block }
    }

    fn mac(&self, claims: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new(&self.block.into());
        mac.update(claims);
        mac
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The cursor that refers to a position, issued at `now` (time since 1970).
#[must_use]
pub fn seal(key: &Key, reference: &Reference, now: Duration) -> String {
    let millis = u64::try_from(now.as_millis()).unwrap_or(u64::MAX).to_be_bytes();
    let mut bytes = Vec::with_capacity(CLAIMS + TAG);
    bytes.extend_from_slice(&[VERSION, key.id]);
    bytes.extend_from_slice(millis.get(2..).unwrap_or_default());
    bytes.extend_from_slice(reference);
    let tag = key.mac(&bytes).finalize().into_bytes();
    bytes.extend_from_slice(&tag);
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
}

/// The reference of a cursor that was sealed with `key` and is valid at `now` (time since 1970).
///
/// # Errors
///
/// The text is malformed, its signature is not the key's, it is out of its time, or it names another key.
pub fn open(key: &Key, text: &str, now: Duration) -> Result<Reference, CursorFault> {
    let encoded = text.strip_prefix(PREFIX).ok_or(CursorFault::Malformed)?;
    let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|_not_base64| CursorFault::Malformed)?;
    let (claims, tag) = bytes.split_at_checked(CLAIMS).ok_or(CursorFault::Malformed)?;
    let ([version, key_id], rest) = claims.split_first_chunk::<2>().ok_or(CursorFault::Malformed)?;
    let (millis, reference) = rest.split_first_chunk::<6>().ok_or(CursorFault::Malformed)?;
    if *version != VERSION || tag.len() != TAG {
        return Err(CursorFault::Malformed);
    }
    // A key that is not known was another run's. Saying so gives nothing away: the id is no secret.
    if *key_id != key.id {
        return Err(CursorFault::Expired);
    }
    // Compared in constant time, and before anything the cursor claims is believed.
    key.mac(claims).verify_slice(tag).map_err(|_wrong| CursorFault::Tampered)?;
    let [a, b, c, d, e, f] = *millis;
    let issued = Duration::from_millis(u64::from_be_bytes([0, 0, a, b, c, d, e, f]));
    if now > issued + VALID_FOR || issued > now + AHEAD {
        return Err(CursorFault::Expired);
    }
    reference.try_into().map_err(|_length| CursorFault::Malformed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Duration = Duration::from_secs(1_795_000_000);

    fn key() -> Key {
        Key::new(1, [7; 32])
    }

    #[test]
    fn a_cursor_is_short_and_opens() {
        let cursor = seal(&key(), &[9; 16], NOW);
        assert_eq!(cursor.len(), 79);
        assert!(cursor.len() <= MAX_CURSOR_CHARS);
        assert_eq!(open(&key(), &cursor, NOW), Ok([9; 16]));
    }

    #[test]
    fn a_cursor_lives_ten_minutes_and_not_before_its_issue() {
        let cursor = seal(&key(), &[9; 16], NOW);
        assert!(open(&key(), &cursor, NOW + Duration::from_secs(599)).is_ok());
        assert_eq!(open(&key(), &cursor, NOW + Duration::from_secs(601)), Err(CursorFault::Expired));
        assert_eq!(open(&key(), &cursor, NOW - Duration::from_secs(3_600)), Err(CursorFault::Expired));
    }

    #[test]
    fn another_key_does_not_open_it() {
        let cursor = seal(&key(), &[9; 16], NOW);
        assert_eq!(open(&Key::new(1, [8; 32]), &cursor, NOW), Err(CursorFault::Tampered));
        assert_eq!(open(&Key::new(2, [8; 32]), &cursor, NOW), Err(CursorFault::Expired));
    }

    #[test]
    fn what_is_no_cursor_is_malformed() {
        let cursor = seal(&key(), &[9; 16], NOW);
        let cut = cursor.get(..70).unwrap();
        let padded = format!("{cursor}=");
        for text in ["", "fw1.", "fw2.AAAA", "eyJvZmZzZXQiOjUwfQ", "fw1.!!!!", cut, &padded] {
            assert_eq!(open(&key(), text, NOW), Err(CursorFault::Malformed), "{text}");
        }
    }

    #[test]
    fn ten_thousand_bit_flips_are_refused() {
        let cursor = seal(&key(), &[9; 16], NOW);
        let encoded = cursor.strip_prefix(PREFIX).unwrap();
        let bytes = URL_SAFE_NO_PAD.decode(encoded).unwrap();
        for flip in 0..10_000 {
            let mut flipped = bytes.clone();
            // Every single bit, then pairs of them.
            let bits = bytes.len() * 8;
            flipped[flip % bits / 8] ^= 1 << (flip % 8);
            if flip >= bits {
                let other = (flip * 31 + 7) % bits;
                if other != flip % bits {
                    flipped[other / 8] ^= 1 << (other % 8);
                }
            }
            if flipped != bytes {
                let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(&flipped));
                assert!(open(&key(), &text, NOW).is_err(), "{flip}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_reference_survives(reference in any::<Reference>(), secret in any::<[u8; 32]>()) {
            let key = Key::new(0, secret);
            prop_assert_eq!(open(&key, &seal(&key, &reference, NOW), NOW), Ok(reference));
        }

        #[test]
        fn no_text_makes_it_panic(text in any::<String>()) {
            let _ = open(&key(), &text, NOW);
            let _ = open(&key(), &format!("{PREFIX}{text}"), NOW);
        }
    }
}
