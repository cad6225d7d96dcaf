//! Resolves the client address behind trusted proxies.
//!
//! `X-Forwarded-For` and `Forwarded` are read only if the connection is from a trusted proxy; the client is then the
//! nearest address that is not a trusted proxy itself.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, header};
use axum::middleware::Next;
use axum::response::Response;
use ipnet::IpNet;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Trusted proxies; empty by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(Arc<[TrustedProxy]>);

/// Address of a proxy, or a network of proxies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrustedProxy(IpNet);

impl FromStr for TrustedProxy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let network =
            text.trim().parse::<IpAddr>().map(IpNet::from).or_else(|_| text.trim().parse::<IpNet>());
        match network {
            Ok(network) if network.prefix_len() == 0 => {
                Err("it contains every address, so that any client could send the header; name the proxy's own address"
                    .to_owned())
            }
            Ok(network) => Ok(Self(network.trunc())),
            Err(_) => {
                Err("it is not an address or network; write it as \"10.0.0.7\" or \"10.0.0.0/8\"".to_owned())
            }
        }
    }
}

impl FromIterator<TrustedProxy> for TrustedProxies {
    fn from_iter<I: IntoIterator<Item = TrustedProxy>>(proxies: I) -> Self {
        Self(proxies.into_iter().collect())
    }
}

impl TrustedProxies {
    /// Returns true if no proxy is trusted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if an address is that of a trusted proxy.
    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|proxy| proxy.0.contains(&address.to_canonical()))
    }

    /// Returns the client address of a request from `peer`.
    fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.trusts(peer) {
            return peer;
        }
        let x_forwarded_for = header_values(headers, &X_FORWARDED_FOR, ',');
        let forwarded = header_values(headers, &header::FORWARDED, ',');
        // A proxy writes one of the headers and forwards the other as the client sent it, so both must agree.
        match (x_forwarded_for.is_empty(), forwarded.is_empty()) {
            (true, true) => peer,
            (false, true) => self.nearest(peer, x_forwarded_for.iter().map(|hop| address_of(hop))),
            (true, false) => self.nearest(peer, forwarded.iter().map(|hop| forwarded_for(hop))),
            (false, false) => {
                let one = self.nearest(peer, x_forwarded_for.iter().map(|hop| address_of(hop)));
                let other = self.nearest(peer, forwarded.iter().map(|hop| forwarded_for(hop)));
                if one == other { one } else { peer }
            }
        }
    }

    /// Returns the last address that is not a trusted proxy. At an unreadable address, returns the proxy that
    /// reported it.
    fn nearest(&self, peer: IpAddr, hops: impl DoubleEndedIterator<Item = Option<IpAddr>>) -> IpAddr {
        let mut nearest = peer;
        for hop in hops.rev() {
            let Some(address) = hop else { return nearest };
            nearest = address;
            if !self.trusts(address) {
                break;
            }
        }
        nearest
    }
}

/// Returns the network that identifies a client: an IPv4 address, or the /64 of an IPv6 address, since a client
/// usually controls all addresses of its /64.
pub(crate) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

/// Returns the values of a header that may be repeated, in order.
fn header_values<'a>(headers: &'a HeaderMap, name: &HeaderName, separator: char) -> Vec<&'a str> {
    // A header that is not text counts as one unreadable value.
    let lines = headers.get_all(name).iter().map(|line| line.to_str().unwrap_or_default());
    lines.flat_map(|line| line.split(separator)).map(str::trim).collect()
}

/// Parses an address with or without a port.
fn address_of(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<IpAddr>().or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()));
    address.ok().map(|address| address.to_canonical())
}

/// Parses `for` in an element of `Forwarded` (RFC 7239).
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let node = element.split(';').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then(|| value.trim().trim_matches('"'))
    });
    node.and_then(address_of)
}

/// Middleware that replaces the peer address of a request by the client address that a trusted proxy reports.
pub(crate) async fn resolve_client_ip(
    State(proxies): State<TrustedProxies>,
    mut request: Request,
    next: Next,
) -> Response {
    if let Some(ConnectInfo(peer)) = request.extensions().get::<ConnectInfo<SocketAddr>>().copied() {
        let client = proxies.client(peer.ip(), request.headers());
        if client != peer.ip() {
            request.extensions_mut().insert(ConnectInfo(SocketAddr::new(client, 0)));
        }
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[track_caller]
    fn check(peer: &str, lines: &[(&str, &str)], expect: &str) {
        let proxies: TrustedProxies =
            ["127.0.0.1", "10.0.0.0/8", "2001:db8::/32"].iter().map(|proxy| proxy.parse().unwrap()).collect();
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(
                name.parse::<HeaderName>().unwrap(),
                HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            );
        }
        let client = proxies.client(peer.parse().unwrap(), &headers);
        assert_eq!(client, expect.parse::<IpAddr>().unwrap(), "{peer} {lines:?}");
    }

    const XFF: &str = "x-forwarded-for";

    #[test]
    fn headers_of_untrusted_peers_are_ignored() {
        check("127.0.0.1", &[], "127.0.0.1");
        check("127.0.0.1", &[(XFF, "192.0.2.7")], "192.0.2.7");
        check("::ffff:127.0.0.1", &[(XFF, "192.0.2.7")], "192.0.2.7");
        check("198.51.100.1", &[(XFF, "192.0.2.7")], "198.51.100.1");
        check("127.0.0.2", &[(XFF, "192.0.2.7")], "127.0.0.2");
    }

    #[test]
    fn client_is_the_nearest_untrusted_address() {
        // The client wrote the addresses before that one itself.
        check("127.0.0.1", &[(XFF, "203.0.113.9, 192.0.2.7")], "192.0.2.7");
        check("127.0.0.1", &[(XFF, "203.0.113.9, 192.0.2.7, 10.1.2.3")], "192.0.2.7");
        check("127.0.0.1", &[(XFF, "203.0.113.9"), (XFF, "192.0.2.7,10.1.2.3")], "192.0.2.7");
        check("127.0.0.1", &[(XFF, "10.1.2.3")], "10.1.2.3");
        check("127.0.0.1", &[(XFF, "192.0.2.7, unknown")], "127.0.0.1");
        check("127.0.0.1", &[(XFF, "192.0.2.7, unknown, 10.1.2.3")], "10.1.2.3");
        check("127.0.0.1", &[(XFF, "192.0.2.7,")], "127.0.0.1");
        check("127.0.0.1", &[(XFF, "\u{fc}")], "127.0.0.1");
        check("127.0.0.1", &[(XFF, "192.0.2.7:4711")], "192.0.2.7");
        check("127.0.0.1", &[(XFF, "[2001:db9::1]:4711")], "2001:db9::1");
        check("2001:db8::2", &[(XFF, "2001:db9::1")], "2001:db9::1");
    }

    #[test]
    fn forwarded_header_is_equivalent() {
        check(
            "127.0.0.1",
            &[("forwarded", "for=203.0.113.9, For=\"192.0.2.7:80\";proto=https")],
            "192.0.2.7",
        );
        check("127.0.0.1", &[("forwarded", "for=\"[2001:db9::1]:4711\"")], "2001:db9::1");
        check("127.0.0.1", &[("forwarded", "proto=https")], "127.0.0.1");
        check("127.0.0.1", &[("forwarded", "for=_hidden")], "127.0.0.1");
        // The headers disagree, and one of them is the client's own.
        check("127.0.0.1", &[("forwarded", "for=192.0.2.7"), (XFF, "192.0.2.8")], "127.0.0.1");
        check("127.0.0.1", &[("forwarded", "for=192.0.2.7"), (XFF, "192.0.2.7")], "192.0.2.7");
    }

    #[test]
    fn all_addresses_cannot_be_trusted() {
        for text in ["0.0.0.0/0", "::/0", "", "proxy.internal", "10.0.0.0/33"] {
            assert!(text.parse::<TrustedProxy>().is_err(), "{text}");
        }
        assert_eq!("10.1.2.3/8".parse::<TrustedProxy>().unwrap(), "10.0.0.0/8".parse().unwrap());
    }
}
