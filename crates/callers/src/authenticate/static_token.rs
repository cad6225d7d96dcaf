//! Static tokens of this program: `fwt_` and 32 random bytes. Only their SHA-256 is stored.
//!
//! The tokens have 256 random bits, so a plain hash cannot be reversed by guessing and is cheap to check.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fetchwell_core::hex::hexadecimal;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use super::StaticToken;

/// Prefix of the tokens, which makes leaked tokens recognizable.
const PREFIX: &str = "fwt_";

/// A new token, which is shown once.
#[derive(Debug)]
pub struct NewToken {
    /// The token itself.
    pub token: SecretString,
    /// SHA-256 of the token as 64 hexadecimal digits, for the configuration.
    pub sha256: String,
}

impl NewToken {
    /// Generates a random token.
    ///
    /// # Errors
    ///
    /// The system provides no random bytes.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut random = [0; 32];
        getrandom::fill(&mut random)?;
        let token = SecretString::from(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random)));
        let sha256 = hexadecimal(&sha256(&token));
        Ok(Self { token, sha256 })
    }
}

/// Returns true if a token has the prefix of static tokens. Such a token is never sent to an authorization server.
pub(super) fn is_ours(token: &SecretString) -> bool {
    token.expose_secret().starts_with(PREFIX)
}

/// Computes the SHA-256 of a token.
pub(super) fn sha256(token: &SecretString) -> [u8; 32] {
    Sha256::digest(token.expose_secret()).into()
}

/// Finds the static token that equals `token`. Compares all of them, each in constant time, so that the duration
/// reveals nothing.
pub(super) fn find<'a>(tokens: &'a [StaticToken], token: &SecretString) -> Option<&'a StaticToken> {
    let hash = sha256(token);
    let mut found = u64::MAX;
    for (at, known) in (0_u64..).zip(tokens) {
        let same: Choice = known.sha256.ct_eq(&hash);
        found.conditional_assign(&at, same);
    }
    usize::try_from(found).ok().and_then(|at| tokens.get(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_token_is_found_by_its_hash() {
        let [first, second] = [(); 2].map(|()| NewToken::generate().unwrap());
        assert_eq!(first.token.expose_secret().len(), 4 + 43);
        assert!(is_ours(&first.token) && first.sha256.len() == 64 && first.sha256 != second.sha256);
        assert!(!format!("{first:?}").contains(first.token.expose_secret()));
        let known = |name: &str, token: &NewToken| StaticToken {
            name: name.to_owned(),
            sha256: sha256(&token.token),
            metrics: false,
            admin: false,
        };
        let tokens = [known("first", &first), known("second", &second)];
        for (token, name) in [(&first, "first"), (&second, "second")] {
            assert_eq!(find(&tokens, &token.token).unwrap().name, name);
        }
        assert_eq!(find(&tokens, &SecretString::from("fwt_other")), None);
        assert_eq!(find(&[], &first.token), None);
    }

    #[test]
    fn a_hash_is_sha256_of_the_whole_token() {
        // printf %s fwt_x | sha256sum
        assert_eq!(
            hexadecimal(&sha256(&SecretString::from("fwt_x"))),
            "a142c86b910bcc49e8ac025c7ae1a9ee75145130bc7b1e9113c02c314088c025"
        );
    }
}
