//! The sources of each caller: those that the policy allows, opened once for all callers or for each grant.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_callers::{AuthorizationPolicy, Caller, GrantToken, SourceCredential, SourceGrant};
use fetchwell_core::handle::SourceName;
use fetchwell_pdpp::Connections;
use fetchwell_source::{Reranking, Sources};
use fetchwell_tools::{CallerSources, SourceSignIns};

use super::sign_ins::{CallerSignIns, SignInStorage};
use crate::app::failure::Failure;
use crate::app::open::{OpenedSource, joined};
use crate::app::rerank::reranking;
use crate::config::{AuthSettings, Environment, FileSettings, SourceSettings};

/// Configured sources with the policy that grants them.
#[derive(Debug)]
pub(crate) struct ConfiguredSources {
    /// Settings of all sources.
    sources: Vec<SourceSettings>,
    /// Sources with a credential of their own. They do not depend on the caller, so they are open once.
    own: Vec<OpenedSource>,
    /// Connections to the sources that are read with the caller's own token.
    connections: HashMap<SourceName, Connections>,
    /// MCP servers that each caller signs in to.
    sign_ins: Option<Arc<CallerSignIns>>,
    everything: Option<Sources>,
    policy: AuthorizationPolicy,
    call_deadline: Duration,
    /// Reranking of searches, shared by all callers.
    reranking: Option<Reranking>,
    keeps_search_history: bool,
}

impl ConfiguredSources {
    pub(crate) fn new(
        settings: &FileSettings,
        environment: &Environment,
        own: Vec<OpenedSource>,
        auth: &AuthSettings,
        storage: SignInStorage,
    ) -> Result<Self, Failure> {
        let (sources, call_deadline) = (settings.sources.clone(), settings.call_deadline);
        let reranking = reranking(settings, environment);
        let everything = if own.is_empty() { None } else { Some(joined(own.clone(), call_deadline)?) };
        let of_callers = sources.iter().filter(|source| source.takes_callers_token());
        let connections = of_callers.map(|source| (source.name.clone(), Connections::default())).collect();
        let policy = policy(auth);
        let sign_ins = CallerSignIns::new(settings, environment, policy.clone(), storage)?;
        Ok(Self {
            sources,
            own,
            connections,
            sign_ins: sign_ins.map(Arc::new),
            everything,
            policy,
            call_deadline,
            reranking,
            keeps_search_history: settings.search_history,
        })
    }
}

/// Returns the grants of the configuration.
fn policy(auth: &AuthSettings) -> AuthorizationPolicy {
    let grant = |holder: &str, sources: &[SourceName]| SourceGrant {
        holder: holder.to_owned(),
        sources: sources.to_vec(),
    };
    AuthorizationPolicy {
        tokens: auth.tokens.iter().map(|token| grant(&token.name, &token.sources)).collect(),
        subjects: auth.subjects.iter().map(|subject| grant(&subject.subject, &subject.sources)).collect(),
    }
}

impl CallerSources for ConfiguredSources {
    fn granted(&self, to: &Caller, token: &GrantToken) -> Option<Sources> {
        let may_read = |source: &&SourceSettings| {
            let credential = if source.takes_callers_token() {
                SourceCredential::Caller
            } else {
                SourceCredential::Configured
            };
            self.policy.may_read(to, &source.name, credential)
        };
        let signed_in = |source: &SourceSettings| self.sign_ins.as_ref()?.read_by(to, source);
        let open = |source: &SourceSettings| match self.connections.get(&source.name) {
            _ if source.signs_callers_in() => Some(OpenedSource::new(source, signed_in(source)?)),
            Some(connections) => OpenedSource::for_caller(source, connections.clone(), token.clone()),
            None => self.own.iter().find(|open| open.is_of(source)).cloned(),
        };
        let opened: Vec<OpenedSource> = self.sources.iter().filter(may_read).filter_map(open).collect();
        if opened.is_empty() {
            return None;
        }
        let sources = joined(opened, self.call_deadline).ok()?.reranked_by(self.reranking.clone());
        Some(sources.with_search_history(self.keeps_search_history))
    }

    fn everything(&self) -> Option<Sources> {
        self.everything.clone()
    }

    fn sign_ins(&self) -> Option<Arc<dyn SourceSignIns>> {
        self.sign_ins.clone().map(|sign_ins| sign_ins as Arc<dyn SourceSignIns>)
    }
}
