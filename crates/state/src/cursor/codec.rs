//! Codec of cursors.
//!
//! A cursor is `fw1_` and base64url, without padding, of 64 bytes: version (1), kind (1), key id (4), time of issue
//! in milliseconds since 1970 (6), offset (4), reference (16), HMAC-SHA256 tag over all before it (32). It has ninety
//! characters of the base64url alphabet, whatever the position is. One position has one text: other spellings of the
//! same bytes are refused.

use std::fmt;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fetchwell_core::hex::hexadecimal;
use fetchwell_core::saturate::saturated;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::CursorFault;

/// Prefix of every cursor.
pub const PREFIX: &str = "fw1_";
const VERSION: u8 = 1;
const CLAIMS: usize = 32;
const TAG: usize = 32;
const BYTES: usize = CLAIMS + TAG;

/// Default lifetime of a cursor.
pub const VALID_FOR: Duration = Duration::from_secs(600);

/// Maximum lifetime of a cursor.
pub(super) const MAX_VALID_FOR: Duration = Duration::from_secs(60 * 60);

/// Maximum time by which the clock of the issuer may be ahead.
const AHEAD: Duration = Duration::from_secs(60);

/// Maximum length of a cursor in characters.
pub const MAX_CURSOR_CHARS: usize = 96;

/// Id of a stored position.
pub type Reference = [u8; 16];

/// Returns a reference as hexadecimal digits.
pub(super) fn reference_text(reference: Reference) -> String {
    hexadecimal(&reference)
}

/// Kind of list that a cursor continues. A cursor of one kind is invalid for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Hits of a search.
    Search,
    /// Records of a list.
    Records,
    /// Hits of a search by the record-server contract.
    V1Search,
    /// Records of a list by the record-server contract.
    V1Records,
    /// Records of a list by the paths of a connector's API.
    ApiRecords,
    /// Chunks of a text.
    Chunk,
}

impl Kind {
    const ALL: [Self; 6] =
        [Self::Search, Self::Records, Self::V1Search, Self::V1Records, Self::ApiRecords, Self::Chunk];

    /// Returns the kind of a byte, or `None` for an unknown byte.
    #[must_use]
    pub fn of_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.byte() == byte)
    }

    /// Returns the byte of the kind. Bytes are never reused.
    #[must_use]
    pub fn byte(self) -> u8 {
        match self {
            Self::Search => 1,
            Self::Records => 2,
            Self::V1Search => 3,
            Self::V1Records => 4,
            Self::ApiRecords => 5,
            Self::Chunk => 6,
        }
    }

    /// Returns the tool or the route of the kind.
    #[must_use]
    pub fn tool(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Records => "query_records",
            Self::V1Search => "/v1/search",
            Self::V1Records => "/v1/streams/{stream}/records",
            Self::ApiRecords => "/api/v1",
            Self::Chunk => "chunk",
        }
    }
}

/// Id of a key; it is no secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyId(pub [u8; 4]);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

impl KeyId {
    /// Parses an id of 8 hexadecimal digits.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let id = u32::from_str_radix(text, 16).ok().filter(|_| text.len() == 8)?;
        Some(Self(id.to_be_bytes()))
    }
}

/// Signing key. There is no default key.
#[derive(Clone)]
pub struct Key {
    id: KeyId,
    /// HMAC state after the secret, which saves the key schedule for each cursor.
    keyed: Hmac<Sha256>,
}

impl Key {
    /// Creates a key of 32 random bytes.
    #[must_use]
    pub fn new(id: KeyId, secret: &[u8; 32]) -> Self {
        // Padded to the block size of SHA-256, as HMAC defines it.
        let mut block = [0; 64];
        block.iter_mut().zip(secret).for_each(|(padded, byte)| *padded = *byte);
        Self { id, keyed: Hmac::new(&block.into()) }
    }

    /// Returns the id of the key.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Computes an HMAC over other texts. They cannot be read as cursors, which begin with their version.
    #[must_use]
    pub fn mac_of(&self, texts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = self.keyed.clone();
        mac.update(&[u8::MAX]);
        for text in texts {
            mac.update(&text.len().to_be_bytes());
            mac.update(text);
        }
        mac
    }

    fn mac(&self, claims: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.keyed.clone();
        mac.update(claims);
        mac
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Contents of a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claims {
    /// Kind of the list.
    pub kind: Kind,
    /// Time of issue since 1970, in whole milliseconds.
    pub issued: Duration,
    /// Number of rows on earlier pages.
    pub offset: u32,
    /// Id of the stored position.
    pub reference: Reference,
}

impl Claims {
    /// Refuses a cursor that is not valid at `now`, with this lifetime.
    ///
    /// # Errors
    ///
    /// It was issued too long ago, or by a clock that is far ahead.
    pub fn check_time(&self, now: Duration, valid_for: Duration) -> Result<(), CursorFault> {
        match () {
            () if self.issued > now.saturating_add(AHEAD) => Err(CursorFault::NotYetValid),
            () if now > self.expires(valid_for) => Err(CursorFault::Expired),
            () => Ok(()),
        }
    }

    /// Returns the time of expiry, with this lifetime.
    #[must_use]
    pub fn expires(&self, valid_for: Duration) -> Duration {
        self.issued.saturating_add(valid_for)
    }
}

/// Encodes and signs a cursor.
#[must_use]
pub fn seal(key: &Key, claims: &Claims) -> String {
    let [_, _, millis @ ..] = saturated::<u64>(claims.issued.as_millis()).to_be_bytes();
    let mut bytes = Vec::with_capacity(BYTES);
    bytes.extend_from_slice(&[VERSION, claims.kind.byte()]);
    bytes.extend_from_slice(&key.id.0);
    bytes.extend_from_slice(&millis);
    bytes.extend_from_slice(&claims.offset.to_be_bytes());
    bytes.extend_from_slice(&claims.reference);
    let tag = key.mac(&bytes).finalize().into_bytes();
    bytes.extend_from_slice(&tag);
    let mut text = String::with_capacity(MAX_CURSOR_CHARS);
    text.push_str(PREFIX);
    URL_SAFE_NO_PAD.encode_string(bytes, &mut text);
    text
}

/// Decoded cursor, not yet verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnverifiedCursor {
    bytes: [u8; BYTES],
    key: KeyId,
    claims: Claims,
}

impl UnverifiedCursor {
    /// Decodes the text of a cursor.
    ///
    /// # Errors
    ///
    /// It is not the text of one.
    pub fn read(text: &str) -> Result<Self, CursorFault> {
        let encoded = text.strip_prefix(PREFIX).ok_or(CursorFault::Malformed)?;
        let mut bytes = [0; BYTES];
        // Refuses padding, white space, and bits after the last byte.
        let length = URL_SAFE_NO_PAD.decode_slice(encoded, &mut bytes);
        if !length.is_ok_and(|length| length == BYTES) {
            return Err(CursorFault::Malformed);
        }
        Self::of_bytes(bytes).ok_or(CursorFault::Malformed)
    }

    fn of_bytes(bytes: [u8; BYTES]) -> Option<Self> {
        let ([version, kind], rest) = bytes.split_first_chunk::<2>()?;
        let (key, rest) = rest.split_first_chunk::<4>()?;
        let ([a, b, c, d, e, f], rest) = rest.split_first_chunk::<6>()?;
        let (offset, rest) = rest.split_first_chunk::<4>()?;
        let (reference, _tag) = rest.split_first_chunk::<16>()?;
        let claims = Claims {
            kind: Kind::of_byte(*kind).filter(|_| *version == VERSION)?,
            issued: Duration::from_millis(u64::from_be_bytes([0, 0, *a, *b, *c, *d, *e, *f])),
            offset: u32::from_be_bytes(*offset),
            reference: *reference,
        };
        Some(Self { bytes, key: KeyId(*key), claims })
    }

    /// Returns the id of the key that the cursor names.
    #[must_use]
    pub fn key(&self) -> KeyId {
        self.key
    }

    /// Returns the unverified contents.
    #[must_use]
    pub fn unverified(&self) -> Claims {
        self.claims
    }

    /// Returns the contents if `key` signed the cursor.
    ///
    /// # Errors
    ///
    /// Its signature is not the key's.
    pub fn verified(&self, key: &Key) -> Result<Claims, CursorFault> {
        let (claims, tag) = self.bytes.split_at(CLAIMS);
        // Compared in constant time.
        key.mac(claims).verify_slice(tag).map_err(|_wrong| CursorFault::Tampered)?;
        Ok(self.claims)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Duration = Duration::from_secs(1_795_000_000);
    const ID: KeyId = KeyId([0, 0, 0, 1]);

    fn key() -> Key {
        Key::new(ID, &[7; 32])
    }

    fn claims() -> Claims {
        Claims { kind: Kind::Search, issued: NOW, offset: 50, reference: [9; 16] }
    }

    fn open(key: &Key, text: &str, now: Duration) -> Result<Claims, CursorFault> {
        let claims = UnverifiedCursor::read(text)?.verified(key)?;
        claims.check_time(now, VALID_FOR).map(|()| claims)
    }

    #[test]
    fn a_cursor_is_short_and_opens() {
        let cursor = seal(&key(), &claims());
        assert_eq!(cursor.len(), 90);
        assert!(cursor.len() <= MAX_CURSOR_CHARS);
        assert!(cursor.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
        assert_eq!(open(&key(), &cursor, NOW), Ok(claims()));
        let sealed = UnverifiedCursor::read(&cursor).unwrap();
        assert_eq!((sealed.key(), sealed.unverified(), ID.to_string().as_str()), (ID, claims(), "00000001"));
    }

    #[test]
    fn rule_a_timestamp_is_within_ten_minutes_and_not_of_the_future() {
        let cursor = seal(&key(), &claims());
        for (seconds, lives) in [(0, true), (599, true), (600, true), (601, false), (36_000, false)] {
            assert_eq!(open(&key(), &cursor, NOW + Duration::from_secs(seconds)).is_ok(), lives, "{seconds}");
        }
        for (seconds, lives) in [(59, true), (60, true), (61, false), (3_600, false)] {
            assert_eq!(
                open(&key(), &cursor, NOW - Duration::from_secs(seconds)).is_ok(),
                lives,
                "-{seconds}"
            );
        }
        let last = Claims { issued: Duration::MAX, ..claims() };
        assert_eq!(last.check_time(Duration::MAX, VALID_FOR), Ok(()));
        assert_eq!(open(&key(), &cursor, NOW + Duration::from_secs(601)), Err(CursorFault::Expired));
        assert_eq!(open(&key(), &cursor, NOW - Duration::from_secs(61)), Err(CursorFault::NotYetValid));
        let short = Duration::from_secs(5);
        assert_eq!(claims().check_time(NOW + short, short), Ok(()));
        assert_eq!(claims().check_time(NOW + Duration::from_secs(6), short), Err(CursorFault::Expired));
    }

    #[test]
    fn another_secret_does_not_open_it() {
        let cursor = seal(&key(), &claims());
        assert_eq!(open(&Key::new(ID, &[8; 32]), &cursor, NOW), Err(CursorFault::Tampered));
    }

    #[test]
    fn what_is_no_cursor_is_malformed() {
        let cursor = seal(&key(), &claims());
        let cut = cursor.get(..80).unwrap();
        let spellings = ["=", "A", " ", "\n", "\0"].map(|end| format!("{cursor}{end}"));
        // 64 bytes leave four bits of the last character unused, and they have to be zero.
        let head = cursor.get(..89).unwrap();
        let last = "AQgw".chars().filter(|last| cursor.ends_with(*last)).count();
        assert_eq!(last, 1, "{cursor}");
        let loose = "BCDEFGHIJKLMNOPRSTUVWXYZabcdefhijklmnopqrstuvxyz0123456789-_"
            .chars()
            .map(|last| format!("{head}{last}"));
        let seeds = [
            "eyJvZmZzZXQiOjUwfQ",
            "eyJvZmZzZXQiOiA1MCwgInRpbWVzdGFtcCI6IDE3MzAwMDAwMDAuMH0=",
            "fw1.AAAA",
            "fw2_AAAA",
        ];
        let texts = ["", "fw1_", "fw1_!!!!", cut].into_iter().chain(seeds).map(str::to_owned);
        for text in texts.chain(spellings).chain(loose).chain([format!(" {cursor}"), cursor.to_uppercase()]) {
            assert_eq!(UnverifiedCursor::read(&text), Err(CursorFault::Malformed), "{text}");
        }
    }

    #[test]
    fn kinds_keep_their_bytes() {
        for byte in 0..=u8::MAX {
            assert_eq!(
                Kind::of_byte(byte).map(Kind::tool),
                match byte {
                    1 => Some("search"),
                    2 => Some("query_records"),
                    3 => Some("/v1/search"),
                    4 => Some("/v1/streams/{stream}/records"),
                    5 => Some("/api/v1"),
                    6 => Some("chunk"),
                    _ => None,
                }
            );
        }
    }

    #[test]
    fn rule_a_signature_is_valid_so_ten_thousand_bit_flips_are_refused() {
        let cursor = seal(&key(), &claims());
        let bytes = UnverifiedCursor::read(&cursor).unwrap().bytes;
        let bits = BYTES * 8;
        for flip in 0..10_000 {
            let mut flipped = bytes;
            // Every single bit, then pairs of them.
            flipped[flip % bits / 8] ^= 1 << (flip % 8);
            if flip >= bits {
                let other = (flip * 31 + 7) % bits;
                if other != flip % bits {
                    flipped[other / 8] ^= 1 << (other % 8);
                }
            }
            if flipped != bytes {
                let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(flipped));
                assert!(open(&key(), &text, NOW).is_err(), "{flip}");
            }
        }
    }

    #[test]
    fn any_character_that_is_changed_added_or_left_out_is_noticed() {
        let cursor = seal(&key(), &claims());
        for at in 0..cursor.len() {
            for character in "AZaz09-_.=+/ ".chars() {
                let (before, after) = cursor.split_at(at);
                let changed = format!("{before}{character}{}", after.get(1..).unwrap());
                let inserted = format!("{before}{character}{after}");
                let removed = format!("{before}{}", after.get(1..).unwrap());
                for text in [changed, inserted, removed] {
                    assert!(text == cursor || open(&key(), &text, NOW).is_err(), "{text}");
                }
            }
        }
    }

    #[test]
    fn a_tag_over_another_text_is_no_cursors() {
        let bytes = UnverifiedCursor::read(&seal(&key(), &claims())).unwrap().bytes;
        let tag = key().mac_of(&[&bytes[..CLAIMS]]).finalize().into_bytes();
        assert_ne!(tag.as_slice(), &bytes[CLAIMS..]);
        let same = key().mac_of(&[b"ab", b"c"]).finalize().into_bytes();
        assert_ne!(same, key().mac_of(&[b"a", b"bc"]).finalize().into_bytes());
    }

    proptest! {
        #[test]
        fn any_claims_survive(
            reference in any::<Reference>(),
            secret in any::<[u8; 32]>(),
            id in any::<[u8; 4]>(),
            offset in any::<u32>(),
            millis in 0_u64..1 << 48,
            is_search in any::<bool>(),
        ) {
            let kind = if is_search { Kind::Search } else { Kind::Records };
            let claims = Claims { kind, issued: Duration::from_millis(millis), offset, reference };
            let key = Key::new(KeyId(id), &secret);
            prop_assert_eq!(open(&key, &seal(&key, &claims), claims.issued), Ok(claims));
        }

        #[test]
        fn no_text_makes_it_panic(text in any::<String>()) {
            let _ = UnverifiedCursor::read(&text);
            let _ = UnverifiedCursor::read(&format!("{PREFIX}{text}"));
        }

        #[test]
        fn a_text_that_reads_is_the_one_text_of_its_bytes(bytes in proptest::collection::vec(any::<u8>(), BYTES)) {
            let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(&bytes));
            if let Ok(sealed) = UnverifiedCursor::read(&text) {
                prop_assert_eq!(sealed.bytes.as_slice(), bytes.as_slice());
                prop_assert_eq!(sealed.verified(&key()), Err(CursorFault::Tampered));
            }
        }
    }
}
