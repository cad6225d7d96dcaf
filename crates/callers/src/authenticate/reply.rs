//! The reply with which an authorization server sends a browser back.

use secrecy::SecretString;
use url::form_urlencoded;

/// Parameters of a reply (RFC 6749, 4.1.2; RFC 9207).
#[derive(Debug, Default)]
pub struct AuthorizationReply {
    /// State of the attempt.
    pub state: Option<String>,
    /// Code, which can be exchanged for a token once.
    pub code: Option<SecretString>,
    /// Issuer of the reply, parameter `iss`.
    pub issuer: Option<String>,
    /// Code of the error, parameter `error`.
    pub error: Option<String>,
}

impl AuthorizationReply {
    /// Parses the query of a redirect. Empty and repeated parameters are ignored (RFC 6749, 3.1).
    #[must_use]
    pub fn from_query(query: &str) -> Self {
        let value = |name: &str| {
            let mut values = form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == name);
            let value = values.next().map(|(_, value)| value.into_owned())?;
            (values.next().is_none() && !value.is_empty()).then_some(value)
        };
        let code = value("code").map(SecretString::from);
        Self { state: value("state"), code, issuer: value("iss"), error: value("error") }
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn parameters_are_decoded_and_repeated_ones_ignored() {
        let reply = AuthorizationReply::from_query("code=a%2Fb&state=s%2B1&iss=https%3A%2F%2Fa.example&x=1");
        assert_eq!(reply.code.as_ref().map(ExposeSecret::expose_secret), Some("a/b"));
        assert_eq!(reply.state.as_deref(), Some("s+1"));
        assert_eq!((reply.issuer.as_deref(), &reply.error), (Some("https://a.example"), &None));
        assert!(!format!("{reply:?}").contains("a/b"));
        for query in ["", "code=&state=&iss=&error=", "code=a&code=a&state=s&state=t", "Code=a"] {
            let reply = AuthorizationReply::from_query(query);
            assert!(reply.code.is_none() && reply.state.is_none() && reply.error.is_none(), "{query}");
        }
    }
}
