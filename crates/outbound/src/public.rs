//! Requests to URLs that another server names: they reach public addresses alone.
//!
//! A server must not make this program call machines that only this program can reach, such as databases of its network or
//! the metadata service of its cloud. The names are resolved here, and a connection is opened to an address that was
//! checked, so an answer of DNS that changes meanwhile makes no difference.

use std::collections::HashSet;
use std::error::Error;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, Request, Response};
use tokio::net::lookup_host;
use url::{Host, Url};

use super::client::build_resolving_client;

/// Last labels of names that no public server has (RFC 6761, RFC 6762 appendix G, RFC 8375).
const INTERNAL_SUFFIXES: [&str; 10] = [
    "localhost",
    "local",
    "localdomain",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "home.arpa",
];

/// Address at which Azure serves metadata to its machines. It is none of a reserved range.
const AZURE_METADATA: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// Returns true if the host of a URL can be one of the internet: a public address, or a name that is not reserved for
/// internal networks. The addresses of the name are not looked up.
pub fn has_public_host(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => is_public(address.into()),
        Some(Host::Ipv6(address)) => is_public(address.into()),
        Some(Host::Domain(name)) => {
            let name = normalized(name);
            let is_below = |suffix: &&str| {
                name.strip_suffix(*suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            };
            name.contains('.') && !INTERNAL_SUFFIXES.iter().any(is_below)
        }
        None => false,
    }
}

/// Client of one server and of the URLs that it names. Follows no redirects. Clones share it.
#[derive(Debug, Clone)]
pub struct PublicClient {
    client: Client,
    names: Arc<Names>,
}

/// Reason why a request to a URL of another server was not answered.
#[derive(Debug)]
pub enum PublicFault {
    /// The host is an internal one, and nothing was sent.
    Internal,
    /// The request failed.
    Failed(reqwest::Error),
}

/// The names that are resolved.
#[derive(Debug)]
struct Names {
    /// Host of the server itself, which may be at any address.
    own: String,
    state: Mutex<NamesState>,
}

#[derive(Debug, Default)]
struct NamesState {
    /// Names that may have only public addresses. Names that were not requested are those of proxies.
    checked: HashSet<String>,
    /// Internal addresses of the server itself.
    own_internal: HashSet<IpAddr>,
    /// True once the server has answered at one of these. A server of this network may name others of it.
    is_internal: bool,
}

/// Error of a name that has no public address.
#[derive(Debug)]
struct InternalAddress;

impl fmt::Display for InternalAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name has only internal addresses")
    }
}

impl Error for InternalAddress {}

impl PublicClient {
    /// Creates the client of a server, whose own host may be an internal one: people have configured its URL.
    ///
    /// # Errors
    ///
    /// The client cannot be built.
    pub fn new(server: &Url) -> Result<Self, String> {
        let own = normalized(server.host_str().unwrap_or_default());
        let names = Arc::new(Names { own, state: Mutex::default() });
        let client = build_resolving_client(server, Arc::new(PublicResolver(Arc::clone(&names))))?;
        Ok(Self { client, names })
    }

    /// Sends a request to the server, or to a public address.
    ///
    /// # Errors
    ///
    /// The host is internal, or the request failed.
    pub async fn execute(&self, request: Request) -> Result<Response, PublicFault> {
        let host = normalized(request.url().host_str().unwrap_or_default());
        let is_own = host == self.names.own;
        if !is_own {
            if !has_public_host(request.url()) {
                return Err(PublicFault::Internal);
            }
            self.names.state.lock().checked.insert(host);
        }
        let response = self.client.execute(request).await.map_err(PublicFault::from)?;
        if let Some(address) = response.remote_addr()
            && is_own
        {
            self.names.answered(address.ip());
        }
        Ok(response)
    }
}

impl From<reqwest::Error> for PublicFault {
    fn from(error: reqwest::Error) -> Self {
        let mut cause = error.source();
        while let Some(deeper) = cause {
            if deeper.is::<InternalAddress>() {
                return Self::Internal;
            }
            cause = deeper.source();
        }
        Self::Failed(error)
    }
}

impl Names {
    /// Returns the addresses of a name that may be connected to.
    fn permitted(&self, name: &str, found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, InternalAddress> {
        let mut state = self.state.lock();
        if name == self.own {
            let internal = found.iter().map(SocketAddr::ip).filter(|address| !is_public(*address));
            state.own_internal = internal.collect();
            return Ok(found);
        }
        if state.is_internal || !state.checked.contains(name) {
            return Ok(found);
        }
        let public: Vec<SocketAddr> = found.into_iter().filter(|address| is_public(address.ip())).collect();
        if public.is_empty() { Err(InternalAddress) } else { Ok(public) }
    }

    /// Notes the address at which the server itself has answered. It has proved its name over TLS, so a name that points to
    /// this network for a moment does not count.
    fn answered(&self, address: IpAddr) {
        let mut state = self.state.lock();
        state.is_internal |= state.own_internal.contains(&address);
    }
}

/// Resolver of the system that leaves out addresses that are not permitted.
struct PublicResolver(Arc<Names>);

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let names = Arc::clone(&self.0);
        Box::pin(async move {
            let found: Vec<SocketAddr> = lookup_host((name.as_str(), 0)).await?.collect();
            if found.is_empty() {
                return Err(io::Error::from(io::ErrorKind::NotFound).into());
            }
            let permitted = names.permitted(&normalized(name.as_str()), found)?;
            Ok(Box::new(permitted.into_iter()) as Addrs)
        })
    }
}

fn normalized(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// Returns true for an address of the internet. The ranges are those of the registries of special addresses (RFC 6890).
fn is_public(address: IpAddr) -> bool {
    let address = match address {
        IpAddr::V4(address) => return is_public_v4(address),
        IpAddr::V6(address) => address,
    };
    let pair = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        // Mapped addresses, NAT64 and 6to4 contain an IPv4 address.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            is_public_v4(pair(high, low))
        }
        [0x2002, high, low, ..] => is_public_v4(pair(high, low)),
        // Protocol assignments, of which Teredo is one, and documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        [first, ..] => (0x2000..=0x3fff).contains(&first),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let is_reserved = match address.octets() {
        // This network, private networks, loopback, link-local, networks of providers.
        [0 | 10 | 127, ..] | [172, 16..=31, ..] | [192, 168, ..] | [169, 254, ..] | [100, 64..=127, ..] => {
            true
        }
        // Protocol assignments, documentation, relays, benchmarks.
        [192, 0, 0 | 2, _] | [198, 51, 100, _] | [203, 0, 113, _] | [192, 88, 99, _] | [198, 18 | 19, ..] => {
            true
        }
        // Multicast, reserved, broadcast.
        [224..=255, ..] => true,
        _ => false,
    };
    !is_reserved && address != AZURE_METADATA
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internal_hosts_are_told_from_public_ones() {
        for host in [
            "login.example.com",
            "8.8.8.8",
            "[2606:4700::1111]",
            "[64:ff9b::808:808]",
            "[::ffff:8.8.8.8]",
            "local.example.com",
            "notinternal.example",
            "172.32.0.1",
            "100.128.0.1",
            "homes.arpa",
        ] {
            assert!(has_public_host(&format!("https://{host}/x").parse().unwrap()), "{host}");
        }
        for host in [
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "intranet",
            "vault.internal",
            "metadata.google.internal.",
            "nas.local",
            "router.home.arpa",
            "wiki.corp",
            "127.0.0.1",
            "127.1",
            "0x7f.1",
            "2130706433",
            "0.0.0.0",
            "10.0.0.1",
            "172.31.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "[::]",
            "[::1]",
            "[fd00:ec2::254]",
            "[fe80::1]",
            "[ff02::1]",
            "[::ffff:127.0.0.1]",
            "[::127.0.0.1]",
            "[64:ff9b::a00:1]",
            "[64:ff9b:1::a00:1]",
            "[2002:a00:1::]",
            "[2001::1]",
            "[2001:db8::1]",
            "[3fff::1]",
        ] {
            assert!(!has_public_host(&format!("https://{host}/x").parse().unwrap()), "{host}");
        }
        assert!(!has_public_host(&"file:///etc/passwd".parse().unwrap()));
    }

    #[test]
    fn a_name_has_its_public_addresses_alone() {
        let client = PublicClient::new(&"https://mcp.example.com".parse().unwrap()).unwrap();
        let names = &client.names;
        names.state.lock().checked.insert("login.example.com".to_owned());
        let addresses =
            |all: &[&str]| all.iter().map(|one| SocketAddr::new(one.parse().unwrap(), 0)).collect();
        let check = |name: &str, found: &[&str], expect: Option<&[&str]>| {
            let permitted = names.permitted(name, addresses(found)).ok();
            assert_eq!(permitted, expect.map(addresses), "{name} {found:?}");
        };
        check("login.example.com", &["8.8.8.8", "10.0.0.1"], Some(&["8.8.8.8"]));
        check("login.example.com", &["10.0.0.1", "::1"], None);
        // The server itself and a proxy are where people have configured them.
        check("mcp.example.com", &["10.0.0.2"], Some(&["10.0.0.2"]));
        check("proxy.example.com", &["10.0.0.3"], Some(&["10.0.0.3"]));
        // A server that answers elsewhere, such as through a proxy, is not of this network.
        names.answered("10.0.0.3".parse().unwrap());
        check("login.example.com", &["10.0.0.1"], None);
        names.answered("10.0.0.2".parse().unwrap());
        check("login.example.com", &["10.0.0.1"], Some(&["10.0.0.1"]));
    }

    #[tokio::test]
    async fn nothing_is_sent_to_an_internal_host() {
        let client = PublicClient::new(&"https://mcp.example.com".parse().unwrap()).unwrap();
        let request = |url: &str| Request::new(reqwest::Method::GET, url.parse().unwrap());
        let fault = client.execute(request("https://169.254.169.254/")).await.unwrap_err();
        assert!(matches!(fault, PublicFault::Internal), "{fault:?}");
        // A name that no rule knows, with an address of this machine.
        client.names.state.lock().checked.insert("localhost".to_owned());
        let fault = client.client.execute(request("https://localhost:1/")).await.unwrap_err();
        assert!(matches!(PublicFault::from(fault), PublicFault::Internal));
    }
}
