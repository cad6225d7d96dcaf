//! `Host` and `Origin` validation, which protects against DNS rebinding.
//!
//! A web page elsewhere can make a browser send requests to this server under another host name. `Host` must
//! therefore be a name of this server, and `Origin`, if a browser sends one, must be an allowed origin. All paths are
//! checked here.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::Response;
use url::Url;

use super::refusal::{ErrorResponder, Refusal, refused};
use crate::probes::PROBES;
use crate::public_url::PublicUrl;

/// Allowed host names and origins. Loopback names and origins are always allowed.
#[derive(Debug, Clone, Default)]
pub struct AllowedNames(Arc<Names>);

#[derive(Debug, Clone, Default)]
struct Names {
    hosts: Vec<AllowedHost>,
    origins: Vec<AllowedOrigin>,
    /// True if every IP address is allowed as a host. That is safe from DNS rebinding, because DNS does not resolve
    /// addresses.
    is_every_address_allowed: bool,
}

/// Allowed value of `Host`: a host name, with a port if only that port is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHost {
    /// Host name in lower case; IPv6 addresses are in brackets.
    host: String,
    port: Option<u16>,
}

/// Allowed origin: scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedOrigin(String);

impl FromStr for AllowedHost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let authority = Authority::from_str(text.trim())
            .ok()
            .filter(|authority| !authority.as_str().contains(['@', '*']) && !authority.host().is_empty());
        let authority = authority.ok_or_else(|| {
            "it is not a host name; write it as \"records.example.com\" or \"records.example.com:8443\""
                .to_owned()
        })?;
        Ok(Self { host: authority.host().to_ascii_lowercase(), port: authority.port_u16() })
    }
}

impl FromStr for AllowedOrigin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let url = Url::parse(text.trim()).ok().filter(|url| {
            let is_bare = url.username().is_empty() && url.password().is_none() && url.path() == "/";
            matches!(url.scheme(), "http" | "https")
                && is_bare
                && url.query().is_none()
                && url.fragment().is_none()
        });
        match url.filter(|_| !text.contains('*')) {
            Some(url) => Ok(Self(url.origin().ascii_serialization())),
            None => Err(
                "it is not an origin; write scheme, host and port, as in \"https://inspector.example.com\""
                    .to_owned(),
            ),
        }
    }
}

impl AllowedNames {
    /// Combines the loopback names, the public URL and the configured names.
    #[must_use]
    pub fn new(public_url: Option<&PublicUrl>, hosts: &[AllowedHost], origins: &[AllowedOrigin]) -> Self {
        let mut names = Names { hosts: hosts.to_vec(), origins: origins.to_vec(), ..Names::default() };
        if let Some(url) = public_url {
            // Proxies forward `Host` with or without the port that clients use.
            names.hosts.push(AllowedHost { host: url.host().to_ascii_lowercase(), port: None });
            names.origins.push(AllowedOrigin(url.as_str().to_owned()));
        }
        Self(Arc::new(names))
    }

    /// Adds the listening address, unless it is unspecified or a loopback address.
    pub(crate) fn listening_at(&self, address: SocketAddr) -> Self {
        let mut names = (*self.0).clone();
        let ip = address.ip().to_canonical();
        if !ip.is_unspecified() && !ip.is_loopback() {
            let host = match ip {
                IpAddr::V4(ip) => ip.to_string(),
                IpAddr::V6(ip) => format!("[{ip}]"),
            };
            names.hosts.push(AllowedHost { host, port: None });
        }
        Self(Arc::new(names))
    }

    /// Allows every IP address as a host, because a pod does not know the address that clients use for it.
    pub(crate) fn and_every_address(&self) -> Self {
        Self(Arc::new(Names { is_every_address_allowed: true, ..(*self.0).clone() }))
    }

    /// Returns true if the host names and origins of a request are allowed.
    #[must_use]
    pub fn allow(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let mut named = headers.get_all(header::HOST).iter().map(authority_of).peekable();
        // HTTP/2 sends the host in the URI.
        let is_named = named.peek().is_some() || uri.authority().is_some();
        is_named
            && named.all(|authority| authority.is_some_and(|authority| self.allow_host(&authority)))
            && uri.authority().is_none_or(|authority| self.allow_host(authority))
            && headers.get_all(header::ORIGIN).iter().all(|origin| self.allow_origin(origin))
    }

    /// Returns true if requests from pages of an origin are allowed.
    pub(crate) fn allow_origin(&self, origin: &HeaderValue) -> bool {
        let Some(url) = origin.to_str().ok().and_then(|origin| Url::parse(origin).ok()) else { return false };
        let is_local =
            matches!(url.scheme(), "http" | "https") && url.host_str().is_some_and(names_this_machine);
        is_local || self.0.origins.iter().any(|allowed| allowed.0 == url.origin().ascii_serialization())
    }

    fn allow_host(&self, authority: &Authority) -> bool {
        let host = authority.host();
        let is_listed = |allowed: &AllowedHost| {
            allowed.host.eq_ignore_ascii_case(host)
                && allowed.port.is_none_or(|port| authority.port_u16() == Some(port))
        };
        // A user name in the authority can make it look like another host.
        let is_address = self.0.is_every_address_allowed && address_of(host).is_some();
        !authority.as_str().contains('@')
            && (is_address || names_this_machine(host) || self.0.hosts.iter().any(is_listed))
    }
}

fn authority_of(host: &HeaderValue) -> Option<Authority> {
    host.to_str().ok().and_then(|host| Authority::from_str(host).ok())
}

/// Returns true for `localhost` and loopback addresses, which no DNS name can imitate.
fn names_this_machine(host: &str) -> bool {
    address_of(host).is_some_and(|address| address.is_loopback()) || host.eq_ignore_ascii_case("localhost")
}

/// Parses a host that is an IP address; IPv6 addresses may be in brackets.
fn address_of(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// State of the middleware that checks hosts and origins.
#[derive(Debug, Clone)]
pub(crate) struct HostCheck {
    pub(crate) names: AllowedNames,
    pub(crate) responder: ErrorResponder,
}

/// Middleware that refuses requests with a host or origin that is not allowed.
pub(crate) async fn check_host(
    State(HostCheck { names, responder }): State<HostCheck>,
    request: Request,
    next: Next,
) -> Response {
    // Orchestrators probe by IP address, and the probes reveal nothing.
    if PROBES.contains(&request.uri().path()) || names.allow(request.uri(), request.headers()) {
        return next.run(request).await;
    }
    let problem = "`Host` must name this server, and `Origin`, if there is one, must be allowed; see [http] of its \
                   configuration";
    let refusal = Refusal::new(StatusCode::FORBIDDEN, "forbidden", -32600, problem.to_owned());
    refused(request, &refusal, &responder).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(text: &str) -> HeaderValue {
        HeaderValue::from_str(text).unwrap()
    }

    fn hosted() -> AllowedNames {
        let url = "https://records.example.com".parse().unwrap();
        let hosts = ["fetchwell.internal", "Other.internal:8080"].map(|host| host.parse().unwrap());
        AllowedNames::new(Some(&url), &hosts, &["https://inspector.example.com:8443".parse().unwrap()])
    }

    #[test]
    fn only_this_machine_is_local() {
        let names = AllowedNames::default();
        for local in ["http://localhost:6274", "http://127.0.0.1", "https://[::1]:8443"] {
            assert!(names.allow_origin(&origin(local)), "{local}");
            assert!(hosted().allow_origin(&origin(local)), "{local}");
        }
        for foreign in [
            "http://localhost.evil.example",
            "https://example.com",
            "https://records.example.com",
            "null",
            "file://",
            "http://127.0.0.1.nip.io",
        ] {
            assert!(!names.allow_origin(&origin(foreign)), "{foreign}");
        }
    }

    #[test]
    fn configured_origins_are_exact() {
        for (text, expect) in [
            ("https://records.example.com", true),
            ("https://records.example.com:443", true),
            ("https://inspector.example.com:8443", true),
            ("http://records.example.com", false),
            ("https://records.example.com:8443", false),
            ("https://inspector.example.com", false),
            ("https://a.records.example.com", false),
            ("null", false),
        ] {
            assert_eq!(hosted().allow_origin(&origin(text)), expect, "{text}");
        }
        for text in [
            "null",
            "*",
            "https://*.example.com",
            "https://a.example/b",
            "https://u@a.example",
            "a.example",
            "",
        ] {
            assert!(text.parse::<AllowedOrigin>().is_err(), "{text}");
        }
    }

    #[track_caller]
    fn check(names: &AllowedNames, hosts: &[&str], uri: &str, expect: bool) {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, HeaderValue::from_str(host).unwrap());
        }
        assert_eq!(names.allow(&uri.parse().unwrap(), &headers), expect, "{hosts:?} {uri}");
    }

    #[test]
    fn every_name_of_the_host_has_to_be_this_machine() {
        let names = AllowedNames::default();
        check(&names, &["localhost"], "/v1/schema", true);
        check(&names, &["LOCALHOST:7400"], "/v1/schema", true);
        check(&names, &["[::1]:80"], "/v1/schema", true);
        check(&names, &["127.0.0.2:80"], "/v1/schema", true);
        check(&names, &["192.168.0.2"], "/v1/schema", false);
        check(&names, &[], "/v1/schema", false);
        check(&names, &[], "http://localhost/v1/schema", true);
        check(&names, &[], "http://evil.example/v1/schema", false);
        check(&names, &["evil.example"], "/v1/schema", false);
        check(&names, &["localhost@evil.example"], "/v1/schema", false);
        check(&names, &["evil.example@localhost"], "/v1/schema", false);
        check(&names, &["localhost", "evil.example"], "/v1/schema", false);
        check(&names, &["localhost"], "http://evil.example/v1/schema", false);
    }

    #[test]
    fn a_hosted_server_has_names_of_its_own() {
        let names = hosted().listening_at("10.0.0.5:7400".parse().unwrap());
        check(&names, &["records.example.com"], "/mcp", true);
        check(&names, &["RECORDS.example.com:443"], "/mcp", true);
        check(&names, &["fetchwell.internal:9"], "/mcp", true);
        check(&names, &["other.internal:8080"], "/mcp", true);
        check(&names, &["other.internal"], "/mcp", false);
        check(&names, &["10.0.0.5:7400"], "/mcp", true);
        check(&names, &["10.0.0.6:7400"], "/mcp", false);
        check(&names, &["0.0.0.0"], "/mcp", false);
        check(&names, &["localhost:7400"], "/mcp", true);
        check(&names, &["a.records.example.com"], "/mcp", false);
        check(&names.listening_at("[2001:db8::1]:1".parse().unwrap()), &["[2001:db8::1]:1"], "/mcp", true);
        let names = names.and_every_address();
        check(&names, &["10.0.0.6:7401"], "/metrics", true);
        check(&names, &["[2001:db8::2]"], "/metrics", true);
        check(&names, &["a.records.example.com"], "/metrics", false);
        check(&names, &["10.0.0.6.nip.io"], "/metrics", false);
        check(&names, &["u@10.0.0.6"], "/metrics", false);
        for text in ["", "*", "*.example.com", "u@example.com", "https://example.com", "a b"] {
            assert!(text.parse::<AllowedHost>().is_err(), "{text}");
        }
    }
}
