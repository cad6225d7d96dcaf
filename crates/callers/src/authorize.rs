//! Authorization of callers: the sources that each may read, by the grants of the configuration.

use fetchwell_core::handle::SourceName;

use super::{Caller, Subject};

/// Grant of a subject that is every subject of the authorization server.
const ANY_SUBJECT: &str = "*";

/// The grants of the configuration.
#[derive(Debug, Clone, Default)]
pub struct AuthorizationPolicy {
    /// Grants by the name of a static token.
    pub tokens: Vec<SourceGrant>,
    /// Grants by the subject (`sub`) of an authorization server; `*` is every subject.
    pub subjects: Vec<SourceGrant>,
}

/// The sources that one holder may read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceGrant {
    /// Name of a static token, or a subject.
    pub holder: String,
    /// Sources that the holder may read.
    pub sources: Vec<SourceName>,
}

/// The credential that a source is read with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceCredential {
    /// A credential of the configuration, or none.
    Configured,
    /// The token of the caller, with which the record server decides itself.
    Caller,
}

impl AuthorizationPolicy {
    /// Returns true if a caller may read a source. A subject may read every source that is read with its own token.
    #[must_use]
    pub fn may_read(&self, caller: &Caller, source: &SourceName, credential: SourceCredential) -> bool {
        match caller {
            Caller::Token { name } => {
                self.tokens.iter().any(|grant| grant.holder == *name && grant.sources.contains(source))
            }
            Caller::Subject(Subject { subject, .. }) => {
                credential == SourceCredential::Caller
                    || self.subjects.iter().any(|grant| {
                        (grant.holder == ANY_SUBJECT || grant.holder == *subject)
                            && grant.sources.contains(source)
                    })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(holder: &str, source: &str) -> SourceGrant {
        SourceGrant { holder: holder.to_owned(), sources: vec![source.parse().unwrap()] }
    }

    fn policy() -> AuthorizationPolicy {
        AuthorizationPolicy {
            tokens: vec![grant("ann", "mail"), grant("*", "notes")],
            subjects: vec![grant("bob", "mail"), grant("*", "wiki")],
        }
    }

    #[track_caller]
    fn check(caller: &Caller, source: &str, credential: SourceCredential, expect: bool) {
        let is_allowed = policy().may_read(caller, &source.parse().unwrap(), credential);
        assert_eq!(is_allowed, expect, "{caller:?} {source} {credential:?}");
    }

    #[test]
    fn static_token_reads_only_its_sources() {
        let token = |name: &str| Caller::Token { name: name.to_owned() };
        for (name, source, expect) in
            [("ann", "mail", true), ("ann", "notes", false), ("bob", "mail", false), ("bob", "wiki", false)]
        {
            check(&token(name), source, SourceCredential::Configured, expect);
            check(&token(name), source, SourceCredential::Caller, expect);
        }
    }

    #[test]
    fn subject_reads_its_sources_and_those_of_every_subject() {
        let subject = |name: &str| {
            let [issuer, subject, grant] = ["https://a.example", name, ""].map(str::to_owned);
            Caller::Subject(Subject { issuer, subject, client: None, grant })
        };
        for (name, source, expect) in
            [("bob", "mail", true), ("bob", "wiki", true), ("eve", "mail", false), ("eve", "wiki", true)]
        {
            check(&subject(name), source, SourceCredential::Configured, expect);
            check(&subject(name), source, SourceCredential::Caller, true);
        }
    }
}
