//! Builds HTTP clients.

use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::Resolve;
use reqwest::{Client, redirect};
use rustls::{ClientConfig, RootCertStore};
use url::Url;

/// Timeout of a connection attempt.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Maximum number of redirects within the origin.
const MAX_REDIRECTS: usize = 4;

/// Maximum number of idle connections, and the time for which they are kept.
const MAX_IDLE_CONNECTIONS: usize = 8;
const MAX_IDLE_FOR: Duration = Duration::from_secs(30);

/// Returns a client for the scheme of `url` with limits, our own root certificates, and redirects only within the
/// origin, so that the token is not sent elsewhere.
///
/// # Errors
///
/// The client cannot be built.
pub fn build_client(url: &Url) -> Result<Client, String> {
    let same_origin = redirect::Policy::custom(|attempt| {
        let from = attempt.previous().first().map(Url::origin);
        if attempt.previous().len() <= MAX_REDIRECTS && from.as_ref() == Some(&attempt.url().origin()) {
            attempt.follow()
        } else {
            attempt.stop()
        }
    });
    build(url, same_origin, None)
}

/// Returns a client as [`build_client`] does that follows no redirects, for requests of a library that decides about each.
///
/// # Errors
///
/// The client cannot be built.
pub fn build_client_without_redirects(url: &Url) -> Result<Client, String> {
    build(url, redirect::Policy::none(), None)
}

/// Returns a client without redirects whose names are resolved by `resolver`.
pub(crate) fn build_resolving_client(url: &Url, resolver: Arc<dyn Resolve>) -> Result<Client, String> {
    build(url, redirect::Policy::none(), Some(resolver))
}

/// Builds a client. A proxy of the environment is used for `https` alone, which it cannot read: over plain `http` it would
/// get the token of a server on this machine.
fn build(
    url: &Url,
    redirects: redirect::Policy,
    resolver: Option<Arc<dyn Resolve>>,
) -> Result<Client, String> {
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    #[expect(clippy::disallowed_methods, reason = "this is the one builder")]
    let builder = Client::builder();
    let builder = if url.scheme() == "https" { builder } else { builder.no_proxy() };
    let builder = match resolver {
        Some(resolver) => builder.dns_resolver(resolver),
        None => builder,
    };
    builder
        .user_agent(concat!("fetchwell/", env!("CARGO_PKG_VERSION")))
        .redirect(redirects)
        .connect_timeout(CONNECT_WITHIN)
        .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
        .pool_idle_timeout(MAX_IDLE_FOR)
        .tls_backend_preconfigured(tls)
        .build()
        .map_err(|error| error.to_string())
}

/// Returns the innermost cause, such as `Connection refused`, which contains no URL.
pub fn innermost(error: &reqwest::Error) -> Option<String> {
    let mut cause = std::error::Error::source(error)?;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    Some(cause.to_string())
}
