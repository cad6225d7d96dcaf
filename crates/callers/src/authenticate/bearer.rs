//! The bearer token of a request: one `Authorization` header with `Bearer` and a token (RFC 6750, 2.1).

use http::HeaderMap;
use http::header::AUTHORIZATION;
use secrecy::{ExposeSecret, SecretString};

use super::{Denial, HeaderFault};

/// Maximum length of a token in bytes. JWTs with many claims have a few thousand.
const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// Returns the only `Authorization` header of a request, for [`Authenticator::authenticate`](super::Authenticator::authenticate).
///
/// # Errors
///
/// There are several, or it contains characters that are not visible ASCII.
pub fn authorization(headers: &HeaderMap) -> Result<Option<&str>, Denial> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(HeaderFault::Several.into());
    }
    value.to_str().map(Some).map_err(|_no_text| HeaderFault::Characters.into())
}

/// Extracts the token from the value of a header.
pub(super) fn parse_token(authorization: Option<&str>) -> Result<SecretString, Denial> {
    let authorization = authorization.ok_or(Denial::SignIn)?;
    let (scheme, token) = authorization.trim().split_once(' ').ok_or(HeaderFault::NotBearer)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(HeaderFault::NotBearer.into());
    }
    check_token(token)
}

/// Checks the length and the characters of a token that did not come in a header. White space at its end is ignored.
pub(super) fn check_bare_token(token: &SecretString) -> Result<SecretString, Denial> {
    match token.expose_secret().trim_end() {
        "" => Err(HeaderFault::NotBearer.into()),
        token => check_token(token),
    }
}

fn check_token(token: &str) -> Result<SecretString, Denial> {
    let token = token.trim_start_matches(' ');
    if token.len() > MAX_TOKEN_BYTES {
        return Err(HeaderFault::TooLong.into());
    }
    if !is_b64token(token) {
        return Err(HeaderFault::Characters.into());
    }
    Ok(SecretString::from(token))
}

/// Returns true for `1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="`.
fn is_b64token(text: &str) -> bool {
    let text = text.trim_end_matches('=');
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn one_bearer_token_and_nothing_else() {
        let longest = "a".repeat(MAX_TOKEN_BYTES);
        for (header, token) in [
            ("Bearer abc.DEF-_~+/09==", "abc.DEF-_~+/09=="),
            ("bearer abc", "abc"),
            ("BEARER   abc", "abc"),
            (&format!("Bearer {longest}"), &longest),
        ] {
            assert_eq!(parse_token(Some(header)).unwrap().expose_secret(), token);
        }
        assert_eq!(parse_token(None).unwrap_err(), Denial::SignIn);
        for (header, fault) in [
            ("", HeaderFault::NotBearer),
            ("Bearer", HeaderFault::NotBearer),
            ("Bearer ", HeaderFault::NotBearer),
            ("abc", HeaderFault::NotBearer),
            ("Basic YTpi", HeaderFault::NotBearer),
            ("Bearerabc", HeaderFault::NotBearer),
            ("Bearer a b", HeaderFault::Characters),
            ("Bearer a,Bearer b", HeaderFault::Characters),
            ("Bearer a=b", HeaderFault::Characters),
            ("Bearer ==", HeaderFault::Characters),
            ("Bearer a\tb", HeaderFault::Characters),
            ("Bearer tokén", HeaderFault::Characters),
            (&format!("Bearer {longest}a"), HeaderFault::TooLong),
        ] {
            assert_eq!(parse_token(Some(header)).unwrap_err(), Denial::SendBearer(fault), "{header:.40}");
        }
    }

    #[test]
    fn two_headers_are_no_token() {
        let mut headers = HeaderMap::new();
        assert_eq!(authorization(&headers), Ok(None));
        headers.append(AUTHORIZATION, "Bearer a".parse().unwrap());
        assert_eq!(authorization(&headers), Ok(Some("Bearer a")));
        headers.append(AUTHORIZATION, "Bearer a".parse().unwrap());
        assert_eq!(authorization(&headers), Err(HeaderFault::Several.into()));
    }
}
