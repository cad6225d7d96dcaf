//! Encrypts and authenticates positions and tokens that leave the process.
//!
//! ChaCha20-Poly1305 over a text, bound to a context that is not stored with it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::Mac;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::{Digest, Sha256};

use super::CursorFault;
use super::codec::{Key, KeyId, Reference, reference_text};

/// Context of positions in a file, beside their reference.
const POSITION: &str = "position";

/// Nonce. With another one, the same text has another ciphertext.
pub(crate) type NonceBytes = [u8; NONCE_LEN];

/// Encrypts `text`. Returns the nonce, the ciphertext and the tag, in this order.
pub fn encrypt(secret: &[u8; 32], nonce: NonceBytes, context: &[u8], text: &[u8]) -> Option<Vec<u8>> {
    let key = LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, secret).ok()?);
    let mut sealed = text.to_vec();
    let nonce_bytes = nonce;
    let nonce = Nonce::assume_unique_for_key(nonce);
    key.seal_in_place_append_tag(nonce, Aad::from(context), &mut sealed).ok()?;
    Some([&nonce_bytes[..], &sealed].concat())
}

/// Decrypts what [`encrypt`] returned for the same secret and context.
pub fn decrypt(secret: &[u8; 32], context: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
    let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>()?;
    let key = LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, secret).ok()?);
    let mut text = sealed.to_vec();
    let nonce = Nonce::assume_unique_for_key(*nonce);
    let length = key.open_in_place(nonce, Aad::from(context), &mut text).ok()?.len();
    text.truncate(length);
    Some(text)
}

/// Encrypts a text with a key. Equal texts have equal results.
pub(super) fn seal_text(key: &Key, context: &[&str], text: &str) -> String {
    let context = context_bytes(context);
    let mac = key.mac_of(&[b"nonce", &context, text.as_bytes()]).finalize().into_bytes();
    let nonce: NonceBytes = std::array::from_fn(|at| mac.get(at).copied().unwrap_or_default());
    seal_with_nonce(key, nonce, &context, text)
}

fn seal_with_nonce(key: &Key, nonce: NonceBytes, context: &[u8], text: &str) -> String {
    let sealed = encrypt(&secret(key), nonce, context, text.as_bytes()).unwrap_or_default();
    URL_SAFE_NO_PAD.encode([&key.id().0[..], &sealed].concat())
}

/// Encrypts the text of a position for a file. It opens only with its reference, so that a damaged file cannot answer a
/// cursor with the page of another. The nonce is random, because a MAC of the text takes as long as its encryption.
///
/// # Errors
///
/// The system provides no random bytes.
pub(super) fn seal_position(
    key: &Key,
    reference: &Reference,
    text: &str,
) -> Result<String, getrandom::Error> {
    let mut nonce = NonceBytes::default();
    getrandom::fill(&mut nonce)?;
    let context = context_bytes(&[POSITION, &reference_text(*reference)]);
    Ok(seal_with_nonce(key, nonce, &context, text))
}

/// Returns the text of `seal_position` with the key that `key` finds.
///
/// # Errors
///
/// As `open_text`.
pub fn open_position(
    key: impl FnOnce(KeyId) -> Option<Key>,
    reference: &Reference,
    sealed: &str,
) -> Result<String, CursorFault> {
    open_text(key, &[POSITION, &reference_text(*reference)], sealed)
}

/// Returns the text of [`seal_text`] with the key that `key` finds.
///
/// # Errors
///
/// `Malformed` if it is not a sealed text; `Mismatched` if it was sealed for another context or with a key that was
/// deleted, which cannot be distinguished.
pub(super) fn open_text(
    key: impl FnOnce(KeyId) -> Option<Key>,
    context: &[&str],
    sealed: &str,
) -> Result<String, CursorFault> {
    let bytes = URL_SAFE_NO_PAD.decode(sealed).map_err(|_not_base64| CursorFault::Malformed)?;
    let (id, sealed) = bytes.split_first_chunk::<4>().ok_or(CursorFault::Malformed)?;
    if sealed.len() < NONCE_LEN + CHACHA20_POLY1305.tag_len() {
        return Err(CursorFault::Malformed);
    }
    let key = key(KeyId(*id)).ok_or(CursorFault::Mismatched)?;
    let text = decrypt(&secret(&key), &context_bytes(context), sealed).ok_or(CursorFault::Mismatched)?;
    String::from_utf8(text).map_err(|_bytes| CursorFault::Malformed)
}

/// Derives the encryption key of texts, which is not used for signatures.
fn secret(key: &Key) -> [u8; 32] {
    key.mac_of(&[b"sealed text"]).finalize().into_bytes().into()
}

/// Returns one digest of several texts, each with its length.
fn context_bytes(context: &[&str]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for text in context {
        digest.update(text.len().to_be_bytes());
        digest.update(text);
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::{Cursors, Skew};

    #[tokio::test]
    async fn a_sealed_text_opens_in_its_context_only() {
        let cursors = || Cursors::in_memory(Skew::default()).unwrap();
        let (own, other) = (cursors(), cursors());
        let sealed = own.seal_text(&["a", "b"], "version 42").await;
        let bytes = URL_SAFE_NO_PAD.decode(&sealed).unwrap();
        assert!(!bytes.windows(7).any(|part| part == b"version"));
        assert_eq!(own.open_text(&["a", "b"], &sealed).await.unwrap(), "version 42");
        assert_eq!(own.seal_text(&["a", "b"], "version 42").await, sealed);
        for context in [&["ab", ""][..], &["a", "c"], &["a"]] {
            assert_eq!(own.open_text(context, &sealed).await, Err(CursorFault::Mismatched), "{context:?}");
        }
        assert_eq!(other.open_text(&["a", "b"], &sealed).await, Err(CursorFault::Mismatched));
        for malformed in ["", "x", "AAAA", "not base64!"] {
            assert_eq!(
                own.open_text(&["a", "b"], malformed).await,
                Err(CursorFault::Malformed),
                "{malformed}"
            );
        }
        for at in 0..bytes.len() {
            let mut forged = bytes.clone();
            forged[at] ^= 1;
            let forged = URL_SAFE_NO_PAD.encode(forged);
            assert_eq!(own.open_text(&["a", "b"], &forged).await, Err(CursorFault::Mismatched), "{at}");
        }
    }
}
