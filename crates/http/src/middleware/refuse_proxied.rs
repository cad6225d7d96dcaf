//! Refuses proxied requests on an address without authentication.
//!
//! Without authentication the server listens on a loopback address, and a proxy or tunnel on the same machine would
//! make it public. Most proxies add a header of `PROXY_HEADERS` or `PROXY_PREFIXES`. A proxy that adds none
//! cannot be distinguished from a local program; `docs/security.md` says so.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::Response;

use super::authenticate::FORBIDDEN;
use super::refusal::{ErrorResponder, Refusal, refused};
use crate::probes::PROBES;
use crate::server::forwarded::TrustedProxies;

/// Request headers that proxies, tunnels and content delivery networks add, in lower case. MCP clients send none of
/// them.
const PROXY_HEADERS: [&str; 28] = [
    "forwarded",
    "via",
    // nginx, Apache, IIS and others: the address of the client, or the URL before a rewrite.
    "client-ip",
    "proxy-client-ip",
    "wl-proxy-client-ip",
    "remote-addr",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-coming-from",
    "x-forward-for",
    "forwarded-for",
    "x-host",
    "x-original-url",
    "x-originating-ip",
    "x-remote-addr",
    "x-remote-ip",
    "x-rewrite-url",
    "x-scheme",
    // Akamai, Cloudflare Enterprise; Fastly and Cloudflare (RFC 8586).
    "true-client-ip",
    "cdn-loop",
    // DigitalOcean, Imperva, Sucuri and Azure.
    "do-connecting-ip",
    "incap-client-ip",
    "x-sucuri-clientip",
    "x-ms-forwarded-client-ip",
    // frp.
    "x-from-where",
    // Google Cloud's Identity-Aware Proxy.
    "x-goog-iap-jwt-assertion",
    "x-goog-authenticated-user-email",
    "x-goog-authenticated-user-id",
];

/// Prefixes of the names of such headers, in lower case.
const PROXY_PREFIXES: [&str; 25] = [
    "x-forwarded",
    "x-original-",
    "x-real-",
    // HAProxy's and others' `X-ProxyUser-Ip`, and zrok's `X-Proxy`.
    "x-proxy",
    // Cloudflare and cloudflared.
    "cf-",
    "fastly-",
    "akamai-",
    "x-akamai-",
    // Amazon CloudFront, API Gateway and Elastic Load Balancing.
    "cloudfront-",
    "x-amz-cf-",
    "x-amzn-",
    // Azure Front Door, App Service and dev tunnels.
    "x-azure-",
    "x-fd-",
    "x-arr-",
    "x-tunnel-",
    "x-appengine-",
    "x-envoy-",
    "fly-",
    "x-nf-",
    "x-vercel-",
    "x-railway-",
    "ngrok-",
    "x-ngrok-",
    // `tailscale serve` and `tailscale funnel`.
    "tailscale-",
    "x-tailscale-",
];

/// Maximum number of characters of a header name in a message.
const MAX_SHOWN_NAME: usize = 64;

/// Rule for proxied requests on one listener.
#[derive(Debug, Clone)]
pub(crate) struct ProxyGuard {
    /// Proxies that may forward requests.
    allowed: TrustedProxies,
    remedy: &'static str,
    responder: ErrorResponder,
    is_logged: Arc<AtomicBool>,
}

impl ProxyGuard {
    /// Creates the guard of the address that serves records without authentication.
    pub(crate) fn new_for_records(allowed: TrustedProxies, responder: ErrorResponder) -> Self {
        let remedy = "and this server has no authentication, so everybody who reaches the proxy could read every record; \
                      add [auth] to its configuration (`fetchwell token new --name NAME` makes a token). To serve \
                      everybody on purpose, name the proxy in http.trusted_proxies and set \
                      http.allow_unauthenticated_proxy = true";
        Self::new(allowed, remedy, responder)
    }

    /// Creates the guard of `ops_listen`.
    pub(crate) fn new_for_ops(allowed: TrustedProxies, responder: ErrorResponder) -> Self {
        let remedy = "and ops_listen has no authentication; ask this address directly, ask the main address with a \
                      token that has metrics = true, or name the proxy in http.trusted_proxies";
        Self::new(allowed, remedy, responder)
    }

    fn new(allowed: TrustedProxies, remedy: &'static str, responder: ErrorResponder) -> Self {
        Self { allowed, remedy, responder, is_logged: Arc::default() }
    }

    /// Returns the name of a proxy header if the request must be refused.
    fn offending_header<'a>(&self, request: &'a Request) -> Option<&'a str> {
        let name = proxy_header(request.headers())?;
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let is_allowed = peer.is_some_and(|peer| self.allowed.trusts(peer.0.ip()));
        (!is_allowed).then_some(name)
    }
}

/// Middleware that refuses proxied requests with 403, except the probes, which reveal nothing.
pub(crate) async fn refuse_proxied(
    State(guard): State<ProxyGuard>,
    request: Request,
    next: Next,
) -> Response {
    let is_probe = PROBES.contains(&request.uri().path());
    let Some(header) = guard.offending_header(&request).filter(|_| !is_probe) else {
        return next.run(request).await;
    };
    if !guard.is_logged.swap(true, Ordering::Relaxed) {
        tracing::warn!(header, "refused a request that came through a proxy; later ones are not logged");
    }
    let problem = format!(
        "the header `{header}` says that a proxy or a tunnel passed this request on, {}",
        guard.remedy
    );
    let refusal = Refusal::new(StatusCode::FORBIDDEN, "forbidden", FORBIDDEN, problem);
    refused(request, &refusal, &guard.responder).await
}

/// Returns the name of a header that proxies add, in lower case and at most [`MAX_SHOWN_NAME`] characters long.
fn proxy_header(headers: &HeaderMap) -> Option<&str> {
    let name = headers.keys().map(|name| name.as_str()).find(|name| is_proxy_header(name))?;
    Some(name.get(..MAX_SHOWN_NAME).unwrap_or(name))
}

fn is_proxy_header(name: &str) -> bool {
    // Tracing libraries send this header, too; Amazon's load balancers send `X-Forwarded-For` in addition to it.
    if name == "x-amzn-trace-id" {
        return false;
    }
    let name = name.replace('_', "-");
    PROXY_HEADERS.contains(&name.as_str()) || PROXY_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    #[track_caller]
    fn check(lines: &[(&str, &str)], expect: Option<&str>) {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap());
        }
        assert_eq!(proxy_header(&headers), expect, "{lines:?}");
    }

    #[test]
    fn headers_of_proxies_are_found() {
        for name in [
            "Forwarded",
            "Via",
            "X-Forwarded-For",
            "X-Forwarded-Host",
            "X-Forwarded-Proto",
            "X-Forwarded",
            "X-Real-IP",
            "X-Client-IP",
            "True-Client-IP",
            "Fastly-Client-IP",
            "CF-Connecting-IP",
            "CF-Ray",
            "Cdn-Loop",
            "X-Original-Host",
            "X-Original-Forwarded-For",
            "X-ProxyUser-Ip",
            "Ngrok-Auth-User-Id",
            "X-Amzn-Requestid",
            "X-Amz-Cf-Id",
            "X-Envoy-External-Address",
            "X-Cluster-Client-IP",
            "X-Azure-ClientIP",
            "Fly-Client-IP",
            "X-Vercel-Id",
            "Tailscale-User-Login",
            "X-Tailscale-Tailnet",
            "X-Tunnel-Authorization",
            "X_Forwarded_For",
            "X-Forward-For",
            "X-Host",
            "DO-Connecting-IP",
            "X-Sucuri-ClientIP",
        ] {
            let lower = name.to_ascii_lowercase();
            check(&[("host", "localhost"), (name, "192.0.2.7")], Some(&lower));
            check(&[(&name.to_ascii_uppercase(), "")], Some(&lower));
            check(&[(name, "127.0.0.1"), (name, "127.0.0.1")], Some(&lower));
        }
        let long = format!("cf-{}", "x".repeat(1_000));
        check(&[(&long, "1")], long.get(..MAX_SHOWN_NAME));
    }

    #[test]
    fn headers_of_clients_are_not() {
        check(&[], None);
        for name in [
            "host",
            "origin",
            "accept",
            "authorization",
            "content-type",
            "user-agent",
            "mcp-protocol-version",
            "mcp-session-id",
            "last-event-id",
            "x-request-id",
            "x-correlation-id",
            "x-context-budget",
            "traceparent",
            "x-amzn-trace-id",
            "x-cloud-trace-context",
            "tracestate",
            "x-api-key",
            "x-custom-auth-headers",
            "sec-fetch-site",
            "cookie",
        ] {
            check(&[(name, "x")], None);
        }
    }
}
