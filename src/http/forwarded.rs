//! Which client a proxy asks for. What a header says of a client is its own word, unless the connection is from a proxy
//! that is configured to be trusted; then the nearest address that is not a trusted proxy itself is the client.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, header};
use axum::middleware::Next;
use axum::response::Response;
use ipnet::IpNet;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The proxies whose word is taken; none, unless some are configured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(Arc<[TrustedProxy]>);

/// The address of a proxy, or the network of many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrustedProxy(IpNet);

impl FromStr for TrustedProxy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let network =
            text.trim().parse::<IpAddr>().map(IpNet::from).or_else(|_| text.trim().parse::<IpNet>());
        match network {
            Ok(network) if network.prefix_len() == 0 => {
                Err("it is every address there is, and anybody could say anything; name the proxy's own"
                    .to_owned())
            }
            Ok(network) => Ok(Self(network.trunc())),
            Err(_) => {
                Err("it is no address or network; write it as \"10.0.0.7\" or \"10.0.0.0/8\"".to_owned())
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
    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether an address is one of these proxies.
    pub(super) fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|proxy| proxy.0.contains(&address.to_canonical()))
    }

    /// The client of a request that `peer` sent.
    fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.trusts(peer) {
            return peer;
        }
        let x_forwarded_for = list(headers, &X_FORWARDED_FOR, ',');
        let forwarded = list(headers, &header::FORWARDED, ',');
        // A proxy writes one of them and passes the other on as its client wrote it. Only where both agree is that no matter.
        match (x_forwarded_for.is_empty(), forwarded.is_empty()) {
            (true, true) => peer,
            (false, true) => self.nearest(peer, x_forwarded_for.iter().map(|hop| address_of(hop))),
            (true, false) => self.nearest(peer, forwarded.iter().map(|hop| for_of(hop))),
            (false, false) => {
                let one = self.nearest(peer, x_forwarded_for.iter().map(|hop| address_of(hop)));
                let other = self.nearest(peer, forwarded.iter().map(|hop| for_of(hop)));
                if one == other { one } else { peer }
            }
        }
    }

    /// The last of these addresses that is no trusted proxy; where one is not told, the proxy that did not tell it.
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

/// Returns the network that stands for a client: an IPv4 address, and of an IPv6 address its /64, since a client that has one of
/// these addresses has all of them.
pub(super) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

/// The values of a header that may stand several times, in their order.
fn list<'a>(headers: &'a HeaderMap, name: &HeaderName, separator: char) -> Vec<&'a str> {
    // What is no text hides whom it is for.
    let lines = headers.get_all(name).iter().map(|line| line.to_str().unwrap_or_default());
    lines.flat_map(|line| line.split(separator)).map(str::trim).collect()
}

/// An address, with or without a port.
fn address_of(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<IpAddr>().or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()));
    address.ok().map(|address| address.to_canonical())
}

/// The `for` of an element of `Forwarded` (RFC 7239).
fn for_of(element: &str) -> Option<IpAddr> {
    let node = element.split(';').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then(|| value.trim().trim_matches('"'))
    });
    node.and_then(address_of)
}

/// Makes the client that a trusted proxy asks for the client of the request.
pub(super) async fn as_of_its_client(
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
    fn only_a_trusted_proxy_is_believed() {
        check("127.0.0.1", &[], "127.0.0.1");
        check("127.0.0.1", &[(XFF, "192.0.2.7")], "192.0.2.7");
        check("::ffff:127.0.0.1", &[(XFF, "192.0.2.7")], "192.0.2.7");
        check("198.51.100.1", &[(XFF, "192.0.2.7")], "198.51.100.1");
        check("127.0.0.2", &[(XFF, "192.0.2.7")], "127.0.0.2");
    }

    #[test]
    fn the_nearest_that_is_no_proxy_is_the_client() {
        // What stands before it, the client wrote itself.
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
    fn forwarded_says_the_same() {
        check(
            "127.0.0.1",
            &[("forwarded", "for=203.0.113.9, For=\"192.0.2.7:80\";proto=https")],
            "192.0.2.7",
        );
        check("127.0.0.1", &[("forwarded", "for=\"[2001:db9::1]:4711\"")], "2001:db9::1");
        check("127.0.0.1", &[("forwarded", "proto=https")], "127.0.0.1");
        check("127.0.0.1", &[("forwarded", "for=_hidden")], "127.0.0.1");
        // Two words for it, of which one is the client's own.
        check("127.0.0.1", &[("forwarded", "for=192.0.2.7"), (XFF, "192.0.2.8")], "127.0.0.1");
        check("127.0.0.1", &[("forwarded", "for=192.0.2.7"), (XFF, "192.0.2.7")], "192.0.2.7");
    }

    #[test]
    fn not_everybody_can_be_a_proxy() {
        for text in ["0.0.0.0/0", "::/0", "", "proxy.internal", "10.0.0.0/33"] {
            assert!(text.parse::<TrustedProxy>().is_err(), "{text}");
        }
        assert_eq!("10.1.2.3/8".parse::<TrustedProxy>().unwrap(), "10.0.0.0/8".parse().unwrap());
    }
}
