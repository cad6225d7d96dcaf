//! Who asks. A web page elsewhere can make a browser send requests here under its own name (DNS rebinding), so `Host`
//! has to name this machine, and `Origin`, where a browser sends one, too.

use std::net::IpAddr;
use std::str::FromStr;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use url::Url;

use crate::mcp::LOOPBACK_NAMES;

/// Whether a request is for this machine and from it. The MCP service behind `/mcp` checks the same for itself.
pub(super) fn asks_from_here(uri: &Uri, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter().peekable();
    let is_here = |host: &HeaderValue| {
        let authority = host.to_str().ok().and_then(|host| Authority::from_str(host).ok());
        authority.is_some_and(|authority| names_this_machine(authority.host()))
    };
    hosts.peek().is_some()
        && hosts.all(is_here)
        && uri.authority().is_none_or(|authority| names_this_machine(authority.host()))
        && headers.get_all(header::ORIGIN).iter().all(|origin| origin.to_str().is_ok_and(is_local_origin))
}

/// The answer to whoever asks from elsewhere, where no contract has words for it.
pub(super) fn refused_elsewhere() -> Response {
    let problem = "Only this machine may ask: `Host` and `Origin` have to name it.\n";
    (StatusCode::FORBIDDEN, problem).into_response()
}

/// Whether an origin is a page of this machine.
pub(super) fn is_local_origin(origin: &str) -> bool {
    let Ok(origin) = Url::parse(origin) else { return false };
    matches!(origin.scheme(), "http" | "https") && origin.host_str().is_some_and(names_this_machine)
}

/// A name of this machine, or any of its loopback addresses: no name elsewhere can be made to look like a number.
fn names_this_machine(host: &str) -> bool {
    let number = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    number.is_ok_and(|address| address.is_loopback())
        || LOOPBACK_NAMES.iter().any(|name| name.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_local() {
        for local in ["http://localhost:6274", "http://127.0.0.1", "https://[::1]:8443"] {
            assert!(is_local_origin(local), "{local}");
        }
        for foreign in [
            "http://localhost.evil.example",
            "https://example.com",
            "null",
            "file://",
            "http://127.0.0.1.nip.io",
        ] {
            assert!(!is_local_origin(foreign), "{foreign}");
        }
    }

    #[track_caller]
    fn check(hosts: &[&str], uri: &str, expect: bool) {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, HeaderValue::from_str(host).unwrap());
        }
        assert_eq!(asks_from_here(&uri.parse().unwrap(), &headers), expect, "{hosts:?} {uri}");
    }

    #[test]
    fn every_name_of_the_host_has_to_be_this_machine() {
        check(&["localhost"], "/v1/schema", true);
        check(&["LOCALHOST:7400"], "/v1/schema", true);
        check(&["[::1]:80"], "/v1/schema", true);
        check(&["127.0.0.2:80"], "/v1/schema", true);
        check(&["192.168.0.2"], "/v1/schema", false);
        check(&[], "/v1/schema", false);
        check(&["evil.example"], "/v1/schema", false);
        check(&["localhost@evil.example"], "/v1/schema", false);
        check(&["localhost", "evil.example"], "/v1/schema", false);
        check(&["localhost"], "http://evil.example/v1/schema", false);
    }
}
