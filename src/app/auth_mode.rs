//! Builds the authentication mode of a server from its settings, at startup and after each change of the
//! configuration.

use std::sync::Arc;

use fetchwell_callers::{
    AuthenticatorSettings, IntrospectionSettings, IssuerSettings, RecordPages, SignInSettings, StaticToken,
};
use fetchwell_core::saturate::saturated;
use fetchwell_http::{AuthMode, Callers};
use fetchwell_state::cursor::Cursors;
use fetchwell_tools::{CallerSettings, CallerToolboxes, SharedToolbox, Toolbox};
use jiff::tz::TimeZone;
use url::Url;

use super::callers::{ConfiguredSources, SignInStorage};
use super::failure::Failure;
use super::open::{OpenedSource, joined, reopen_sources};
use super::rerank::reranking;
use super::secret::secret;
use crate::config::{AuthSettings, Environment, FileSettings};

/// Opens the sources that do not depend on the caller: all of them, or with `auth` those with a credential of their
/// own.
pub(crate) fn open_own(
    settings: &FileSettings,
    auth: Option<&AuthSettings>,
    environment: &Environment,
    open: &[OpenedSource],
) -> Result<Vec<OpenedSource>, Failure> {
    if auth.is_none() {
        return reopen_sources(settings, environment, open);
    }
    let mut settings = settings.clone();
    settings.sources.retain(|source| !source.takes_callers_token() && !source.signs_callers_in());
    reopen_sources(&settings, environment, open)
}

/// Creates the authentication mode with its toolboxes. `time_zone` is that of callers without a token.
pub(crate) fn served(
    settings: &FileSettings,
    auth: Option<&AuthSettings>,
    environment: &Environment,
    opened: &[OpenedSource],
    storage: SignInStorage,
    time_zone: TimeZone,
) -> Result<AuthMode, Failure> {
    let cursors = Arc::clone(&storage.cursors);
    let Some(auth) = auth else {
        let source = joined(opened.to_vec(), settings.call_deadline)?;
        let source =
            source.reranked_by(reranking(settings, environment)).with_search_history(settings.search_history);
        let toolbox = Toolbox::with_cursors(source, cursors, settings.call_deadline);
        let protection = Arc::new(settings.protection.clone());
        let toolbox = toolbox.protected_by(protection).with_pages(pages(settings, None, None));
        let toolbox = toolbox.in_time_zone(time_zone);
        return Ok(AuthMode::Unauthenticated(SharedToolbox::new(toolbox)));
    };
    let authenticator = authenticator_settings(settings, auth, environment)?;
    let mut callers = caller_settings(settings, auth, environment, opened.to_vec(), storage)?;
    callers.pages = pages(settings, Some(auth), Some(&*cursors));
    let toolboxes = CallerToolboxes::new(callers, cursors);
    Ok(AuthMode::Authenticated(Arc::new(Callers::new(authenticator, toolboxes, settings.public_url.clone()))))
}

/// Creates the authentication settings; reads the secrets that they name.
pub(crate) fn authenticator_settings(
    settings: &FileSettings,
    auth: &AuthSettings,
    environment: &Environment,
) -> Result<AuthenticatorSettings, Failure> {
    let introspection = match &auth.introspection {
        None => None,
        Some(place) => Some(IntrospectionSettings {
            url: place.url.clone(),
            client_id: place.client_id.clone(),
            client_secret: secret(&place.client_secret, environment, "[auth.introspection]")?,
        }),
    };
    let sign_in = match &auth.pages {
        None => None,
        Some(place) => {
            let client_secret = place.client_secret.as_ref();
            Some(SignInSettings {
                client_id: place.client_id.clone(),
                client_secret: client_secret
                    .map(|place| secret(place, environment, "[auth.pages]"))
                    .transpose()?,
                scopes: place.scopes.clone(),
                resource: resource(settings, auth),
            })
        }
    };
    let issuer = auth.issuer.as_ref().map(|place| IssuerSettings {
        issuer: place.issuer.clone(),
        jwks_url: place.jwks_url.clone(),
        algorithms: place.algorithms.clone(),
    });
    let token = |grant: &crate::config::TokenGrant| StaticToken {
        name: grant.name.clone(),
        sha256: grant.sha256,
        metrics: grant.metrics,
        admin: grant.admin,
    };
    Ok(AuthenticatorSettings {
        resources: audiences(settings, auth)?,
        issuer,
        introspection,
        scopes: auth.scopes.clone(),
        sign_in,
        tokens: auth.tokens.iter().map(token).collect(),
        searches_meaning: settings.embedding.is_some(),
    })
}

/// Returns the accepted audiences: those of the configuration, otherwise the public URLs of this server.
fn audiences(settings: &FileSettings, auth: &AuthSettings) -> Result<Vec<String>, Failure> {
    let has_authority = auth.issuer.is_some() || auth.introspection.is_some();
    match (auth.audience.as_slice(), &settings.public_url) {
        ([], None) if has_authority => Err(Failure::usage(
            &"[auth] names an authorization server, but the audience of its tokens is unknown; set public_url, or audience in [auth]",
        )),
        ([], None) => Ok(Vec::new()),
        ([], Some(url)) => Ok(["", "/mcp", "/mcp/openai", "/mcp/docs"].map(|path| url.at(path)).to_vec()),
        (named, _) => Ok(named.to_vec()),
    }
}

/// Returns what a token for record pages is asked for: the first audience that is a URL, else the resource that MCP clients
/// ask a token for.
fn resource(settings: &FileSettings, auth: &AuthSettings) -> Option<String> {
    let is_resource =
        |audience: &&String| Url::parse(audience).is_ok_and(|url| url.has_host() && url.fragment().is_none());
    match auth.audience.as_slice() {
        [] => settings.public_url.as_ref().map(|url| url.at("/mcp")),
        named => named.iter().find(is_resource).cloned(),
    }
}

/// Creates the settings of the callers' toolboxes.
pub(crate) fn caller_settings(
    settings: &FileSettings,
    auth: &AuthSettings,
    environment: &Environment,
    own: Vec<OpenedSource>,
    storage: SignInStorage,
) -> Result<CallerSettings, Failure> {
    let sources = ConfiguredSources::new(settings, environment, own, auth, storage)?;
    Ok(CallerSettings {
        sources: Arc::new(sources),
        call_deadline: settings.call_deadline,
        protection: Arc::new(settings.protection.clone()),
        pages: pages(settings, Some(auth), None),
        calls_at_once: saturated::<usize>(settings.http.calls_per_caller),
    })
}

/// Returns the base of links to record pages, if the public URL is known. Servers that share their state have one secret
/// of links.
fn pages(
    settings: &FileSettings,
    auth: Option<&AuthSettings>,
    cursors: Option<&Cursors>,
) -> Option<RecordPages> {
    let pages = RecordPages::new(settings.public_url.as_ref()?.as_str());
    let pages = pages.with_sign_in(has_sign_in(auth));
    let shared = cursors.filter(|cursors| cursors.redis().is_some());
    Some(match shared.and_then(|cursors| cursors.derived_secret("record links")) {
        Some(secret) => pages.with_secret(&secret),
        None => pages,
    })
}

/// Returns true if people sign in for record pages.
pub(crate) fn has_sign_in(auth: Option<&AuthSettings>) -> bool {
    auth.is_some_and(|auth| auth.pages.is_some())
}
