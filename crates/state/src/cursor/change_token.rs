//! Change tokens: the state from which changes of a stream are read, as a text that a client keeps.
//!
//! A token is `fw1_` and base64url, without padding, of: format (1 byte), key id (4), nonce (12), and by
//! ChaCha20-Poly1305 the binding (8) and the state of a source, with the tag (16). The binding is a MAC of what the
//! token is valid for, such as the stream and the caller, so that a token of another stream is distinguished from a
//! forged one.
//!
//! A token does not expire, and nothing is stored for it: it opens as long as its key exists, which `cursor rotate`
//! does not replace. The nonce is random, so that two tokens do not reveal whether their states are equal. After 2^36
//! tokens of one key, two have the same nonce with a probability of 2^-25.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::Mac;

use super::CursorFault;
use super::codec::{Key, KeyId, PREFIX};
use super::cursors::Cursors;
use super::sealed_text::{NonceBytes, decrypt, encrypt};
use crate::StateError;

/// First byte of a token. That of a cursor is 1.
const FORMAT: u8 = 2;

/// Length of the binding in bytes.
const BINDING: usize = 8;

/// MAC of what a token is valid for.
type Binding = [u8; BINDING];

impl Cursors {
    /// Returns the token of a source's state. It opens only with the same binding.
    ///
    /// # Errors
    ///
    /// The system provides no random bytes.
    pub async fn seal_changes(&self, binding: &[&str], state: &[u8]) -> Result<String, StateError> {
        let key = self.change_keys().await.newest(self.now());
        let mut nonce = NonceBytes::default();
        getrandom::fill(&mut nonce)?;
        Ok(seal(&key, nonce, binding, state))
    }

    /// Returns the state of a token for the same binding.
    ///
    /// # Errors
    ///
    /// `Malformed` if it is not a token, `Tampered` if it was changed, `Mismatched` if it has another binding, and
    /// `Expired` if its key was deleted or is that of another server.
    pub async fn open_changes(&self, binding: &[&str], token: &str) -> Result<Vec<u8>, CursorFault> {
        let keys = self.change_keys().await;
        open(|id| keys.key(id, self.now()), binding, token)
    }
}

/// Returns true if a text has the format of tokens and cursors of this program.
#[must_use]
pub fn is_own_text(text: &str) -> bool {
    text.starts_with(PREFIX)
}

fn seal(key: &Key, nonce: NonceBytes, binding: &[&str], state: &[u8]) -> String {
    let header = [&[FORMAT][..], &key.id().0].concat();
    let text = [&binding_of(key, binding)[..], state].concat();
    let sealed = encrypt(&secret(key), nonce, &header, &text).unwrap_or_default();
    let mut token = PREFIX.to_owned();
    URL_SAFE_NO_PAD.encode_string([header, sealed].concat(), &mut token);
    token
}

fn open(
    key: impl FnOnce(KeyId) -> Option<Key>,
    binding: &[&str],
    token: &str,
) -> Result<Vec<u8>, CursorFault> {
    let encoded = token.strip_prefix(PREFIX).ok_or(CursorFault::Malformed)?;
    let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|_not_base64| CursorFault::Malformed)?;
    let (header, sealed) = bytes.split_first_chunk::<5>().ok_or(CursorFault::Malformed)?;
    let [FORMAT, id @ ..] = *header else { return Err(CursorFault::Malformed) };
    let key = key(KeyId(id)).ok_or(CursorFault::Expired)?;
    let text = decrypt(&secret(&key), header, sealed).ok_or(CursorFault::Tampered)?;
    let (bound, state) = text.split_first_chunk::<BINDING>().ok_or(CursorFault::Malformed)?;
    if *bound != binding_of(&key, binding) {
        return Err(CursorFault::Mismatched);
    }
    Ok(state.to_vec())
}

fn binding_of(key: &Key, binding: &[&str]) -> Binding {
    let parts: Vec<&[u8]> =
        [&b"binding of changes"[..]].into_iter().chain(binding.iter().map(|part| part.as_bytes())).collect();
    let mac = key.mac_of(&parts).finalize().into_bytes();
    std::array::from_fn(|at| mac.get(at).copied().unwrap_or_default())
}

/// Derives the encryption key of tokens, which is not used for signatures or other texts.
fn secret(key: &Key) -> [u8; 32] {
    key.mac_of(&[b"change token"]).finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::{Database, KeyFile, Skew};

    const BINDING: [&str; 2] = ["messages", "ann"];

    fn key(number: u8) -> Key {
        Key::new(KeyId([0, 0, 0, number]), &[number; 32])
    }

    fn opened(token: &str, binding: &[&str]) -> Result<Vec<u8>, CursorFault> {
        open(|id| Some(key(1)).filter(|key| key.id() == id), binding, token)
    }

    #[test]
    fn token_opens_for_its_binding_only() {
        let token = seal(&key(1), [7; 12], &BINDING, b"version 42");
        assert_eq!(token.len(), 4 + (1_usize + 4 + 12 + 8 + 10 + 16) * 4 / 3);
        assert_eq!(opened(&token, &BINDING).unwrap(), b"version 42");
        for binding in [&["messages", "bob"][..], &["messagesann", ""], &["messages"], &[]] {
            assert_eq!(opened(&token, binding), Err(CursorFault::Mismatched), "{binding:?}");
        }
        assert_ne!(token, seal(&key(1), [8; 12], &BINDING, b"version 42"));
    }

    #[test]
    fn changed_token_and_token_of_another_key_are_told_apart() {
        let token = seal(&key(1), [7; 12], &BINDING, b"version 42");
        let other = seal(&key(2), [7; 12], &BINDING, b"version 42");
        assert_eq!(opened(&other, &BINDING), Err(CursorFault::Expired));
        let same_id = seal(&Key::new(key(1).id(), &[9; 32]), [7; 12], &BINDING, b"version 42");
        assert_eq!(opened(&same_id, &BINDING), Err(CursorFault::Tampered));
        let bytes = URL_SAFE_NO_PAD.decode(token.strip_prefix(PREFIX).unwrap()).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let expect = match at {
                0 => CursorFault::Malformed,
                1..=4 => CursorFault::Expired,
                _ => CursorFault::Tampered,
            };
            let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(changed));
            assert_eq!(opened(&text, &BINDING), Err(expect), "byte {at}");
        }
        for malformed in ["", "fw1_", "fw1_AAAA", "eyJ2IjoxfQ", "fw1_not base64!"] {
            assert_eq!(opened(malformed, &BINDING), Err(CursorFault::Malformed), "{malformed}");
        }
        assert_eq!(opened(token.get(..60).unwrap(), &BINDING), Err(CursorFault::Tampered));
    }

    #[tokio::test]
    async fn token_outlives_process_and_rotation() {
        let folder = tempfile::tempdir().unwrap();
        let open = |skew: &str| {
            let skew: Skew = skew.parse().unwrap();
            Cursors::lazily_in_directory(folder.path().to_owned(), skew).unwrap()
        };
        let token = open("+0s").seal_changes(&BINDING, b"here").await.unwrap();
        Database::in_directory(folder.path()).prepare().unwrap();
        let later = open("+9000h");
        for _ in 0..3 {
            KeyFile::in_directory(folder.path()).rotate(later.now()).unwrap();
        }
        assert_eq!(later.open_changes(&BINDING, &token).await.unwrap(), b"here");
        let eager = Cursors::in_directory(folder.path(), Skew::default()).unwrap();
        assert_eq!(eager.open_changes(&BINDING, &token).await.unwrap(), b"here");
        let memory = Cursors::in_memory(Skew::default()).unwrap();
        assert_eq!(memory.open_changes(&BINDING, &token).await, Err(CursorFault::Expired));
        let own = memory.seal_changes(&BINDING, b"there").await.unwrap();
        assert_eq!(memory.open_changes(&BINDING, &own).await.unwrap(), b"there");
    }
}
