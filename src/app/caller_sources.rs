//! Authorization policy of a server: the sources that each caller may read, by the configuration.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::failure::Failure;
use super::open::{OpenedSource, joined};
use crate::callers::{Caller, CallersToken};
use crate::config::{AuthSettings, SourceSettings};
use crate::handle::SourceName;
use crate::source::Source;
use crate::source::pdpp::Connections;
use crate::tools::GrantedSources;

/// Configured sources with the grants of callers.
#[derive(Debug)]
pub(crate) struct AuthorizationPolicy {
    /// Settings of all sources.
    sources: Vec<SourceSettings>,
    /// Sources with a credential of their own. They do not depend on the caller, so they are open once.
    own: Vec<OpenedSource>,
    /// Connections to the sources that are read with the caller's own token.
    connections: HashMap<SourceName, Connections>,
    everything: Option<Arc<dyn Source>>,
    auth: AuthSettings,
    call_deadline: Duration,
}

impl AuthorizationPolicy {
    pub(crate) fn new(
        sources: Vec<SourceSettings>,
        own: Vec<OpenedSource>,
        auth: AuthSettings,
        call_deadline: Duration,
    ) -> Result<Self, Failure> {
        let everything = if own.is_empty() { None } else { Some(joined(own.clone(), call_deadline)?) };
        let of_callers = sources.iter().filter(|source| source.takes_callers_token());
        let connections = of_callers.map(|source| (source.name.clone(), Connections::default())).collect();
        Ok(Self { sources, own, connections, everything, auth, call_deadline })
    }

    /// Returns true if a caller may read a source.
    fn may_read(&self, caller: &Caller, source: &SourceSettings) -> bool {
        let (auth, name) = (&self.auth, &source.name);
        match caller {
            Caller::Token { name: token } => {
                auth.tokens.iter().any(|grant| grant.name == *token && grant.sources.contains(name))
            }
            Caller::Subject(subject) => {
                let is_theirs = |grant: &&str| *grant == "*" || *grant == subject.subject;
                let theirs = auth.subjects.iter().filter(|grant| is_theirs(&grant.subject.as_str()));
                source.takes_callers_token() || theirs.into_iter().any(|grant| grant.sources.contains(name))
            }
        }
    }
}

impl GrantedSources for AuthorizationPolicy {
    fn granted(&self, to: &Caller, token: &CallersToken) -> Option<Arc<dyn Source>> {
        let open = |source: &SourceSettings| match self.connections.get(&source.name) {
            Some(connections) => OpenedSource::for_caller(source, connections.clone(), token.clone()),
            None => self.own.iter().find(|open| open.is_of(source)).cloned(),
        };
        let asked = self.sources.iter().filter(|source| self.may_read(to, source));
        let opened: Vec<OpenedSource> = asked.filter_map(open).collect();
        if opened.is_empty() {
            return None;
        }
        joined(opened, self.call_deadline).ok()
    }

    fn everything(&self) -> Option<Arc<dyn Source>> {
        self.everything.clone()
    }
}
