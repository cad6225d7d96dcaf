//! The `[http]` table: limits of connections, trusted proxies, allowed hosts and origins.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::Duration;

use fetchwell_http::{
    AllowedHost, AllowedNames, AllowedOrigin, DEFAULT_MAX_CONNECTIONS_PER_ADDRESS, Limits, PublicUrl,
    TrustedProxies,
};
use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

use super::tree::{Mistake, Node};
use super::values::Parsed;

/// Maximum length of a list of names.
const MAX_NAMES: usize = 100;

/// The `[http]` table: the settings of the HTTP server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpSettings {
    /// Maximum number of concurrent connections.
    pub max_connections: u32,
    /// Maximum number of concurrent connections of one address, or `None` for a part of all.
    pub max_connections_per_address: Option<u32>,
    /// Timeout for a client that reads nothing of a pending response.
    pub write_timeout: Duration,
    /// Maximum number of concurrent calls of one caller.
    pub calls_per_caller: u32,
    /// Proxies with trusted `X-Forwarded-For` and `Forwarded` headers.
    #[serde(default, deserialize_with = "names")]
    pub trusted_proxies: TrustedProxies,
    /// True if requests through a trusted proxy are answered without `[auth]`.
    pub allow_unauthenticated_proxy: bool,
    /// Accepted `Host` headers, besides those of this machine and of `public_url`.
    #[serde(default, deserialize_with = "names")]
    pub allowed_hosts: Vec<AllowedHost>,
    /// Accepted `Origin` headers, besides those of this machine and of `public_url`.
    #[serde(default, deserialize_with = "names")]
    pub allowed_origins: Vec<AllowedOrigin>,
}

impl HttpSettings {
    /// Returns the accepted `Host` and `Origin` headers.
    #[must_use]
    pub fn names(&self, public_url: Option<&PublicUrl>) -> AllowedNames {
        AllowedNames::new(public_url, &self.allowed_hosts, &self.allowed_origins)
    }

    /// Returns the proxies with requests that are answered without a token.
    #[must_use]
    pub fn unauthenticated_proxies(&self) -> TrustedProxies {
        if self.allow_unauthenticated_proxy {
            self.trusted_proxies.clone()
        } else {
            TrustedProxies::default()
        }
    }

    /// Returns the limits of connections.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            connections: self.max_connections,
            connections_per_address: self.connections_per_address(),
            write: self.write_timeout,
            ..Limits::default()
        }
    }

    /// Returns the maximum of connections per address, by default at most half of all.
    pub(super) fn connections_per_address(&self) -> u32 {
        let default = (self.max_connections / 2).clamp(1, DEFAULT_MAX_CONNECTIONS_PER_ADDRESS);
        self.max_connections_per_address.unwrap_or(default)
    }

    /// Rejects `allow_unauthenticated_proxy` if it has no effect, or if `[auth]` is present.
    pub(super) fn check(&self, tree: &Node, has_auth: bool) -> Result<(), Mistake> {
        if !self.allow_unauthenticated_proxy {
            return Ok(());
        }
        let problem = if has_auth {
            "this has no effect with [auth]; remove one of them"
        } else if self.trusted_proxies.is_empty() {
            "trusted_proxies is empty; add the addresses of the proxy, such as \"127.0.0.1\""
        } else {
            return Ok(());
        };
        Err(tree.mistake(&["http", "allow_unauthenticated_proxy"], problem.to_owned()))
    }
}

/// Deserializes a list of names that are parsed one by one, so that an error has the line of its item.
fn names<'de, D, Name, List>(deserializer: D) -> Result<List, D::Error>
where
    D: Deserializer<'de>,
    Name: FromStr<Err = String>,
    List: FromIterator<Name>,
{
    struct Names<Name>(PhantomData<Name>);
    impl<'de, Name: FromStr<Err = String>> Visitor<'de> for Names<Name> {
        type Value = Vec<Name>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {MAX_NAMES} strings")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Name>, A::Error> {
            let mut names = Vec::new();
            while let Some(Parsed(name)) = list.next_element()? {
                if names.len() == MAX_NAMES {
                    return Err(A::Error::custom(format_args!(
                        "there are more than {MAX_NAMES}; use a network for many addresses"
                    )));
                }
                names.push(name);
            }
            Ok(names)
        }
    }
    Ok(deserializer.deserialize_seq(Names(PhantomData))?.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{FileSettings, check_text};
    use fetchwell_http::{DEFAULT_MAX_CONNECTIONS, DEFAULT_WRITE_TIMEOUT, TlsSettings};

    fn read_file(text: &str) -> Result<FileSettings, String> {
        check_text(text, Path::new("/etc/fetchwell/f.toml")).map_err(|error| error.to_string())
    }

    fn read(text: &str) -> Result<HttpSettings, String> {
        read_file(text).map(|settings| settings.http)
    }

    #[test]
    fn all_keys_are_read() {
        let file = read_file(
            "public_url = \"https://records.example.com/\"\n\
             [http]\nmax_connections = 500\nmax_connections_per_address = 20\nwrite_timeout = \"2s\"\ncalls_per_caller = 4\ntrusted_proxies = [\"127.0.0.1\", \"10.0.0.0/8\"]\n\
             allow_unauthenticated_proxy = true\nallowed_hosts = [\"fetchwell.internal\"]\nallowed_origins = [\"https://inspector.example.com\"]\n\
             [tls]\ncertificate = \"fullchain.pem\"\nkey = \"/k/privkey.pem\"\n",
        )
        .unwrap();
        let settings = file.http;
        assert_eq!(settings.unauthenticated_proxies(), settings.trusted_proxies);
        assert_eq!(file.public_url.as_ref().unwrap().as_str(), "https://records.example.com");
        assert_eq!((settings.max_connections, settings.calls_per_caller), (500, 4));
        let limits = settings.limits();
        assert_eq!((limits.connections_per_address, limits.write), (20, Duration::from_secs(2)));
        let proxies: TrustedProxies =
            ["127.0.0.1", "10.0.0.0/8"].iter().map(|proxy| proxy.parse().unwrap()).collect();
        assert_eq!(settings.trusted_proxies, proxies);
        let without = read("[http]\ntrusted_proxies = [\"127.0.0.1\"]\n").unwrap();
        assert!(without.unauthenticated_proxies().is_empty() && !without.trusted_proxies.is_empty());
        assert_eq!(settings.allowed_hosts, ["fetchwell.internal".parse().unwrap()]);
        assert_eq!(settings.allowed_origins, ["https://inspector.example.com".parse().unwrap()]);
        let tls =
            TlsSettings { certificate: "/etc/fetchwell/fullchain.pem".into(), key: "/k/privkey.pem".into() };
        assert_eq!(file.tls, Some(tls));
        let defaults = HttpSettings {
            max_connections: DEFAULT_MAX_CONNECTIONS,
            max_connections_per_address: None,
            write_timeout: DEFAULT_WRITE_TIMEOUT,
            calls_per_caller: 16,
            trusted_proxies: TrustedProxies::default(),
            allow_unauthenticated_proxy: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
        };
        assert_eq!((read("").unwrap(), read("[http]\n").unwrap()), (defaults.clone(), defaults));
    }

    #[test]
    fn one_address_has_at_most_half_of_the_connections() {
        for (all, of_one) in [(1, 1), (2, 1), (50, 25), (12_000, 1_000), (1_000_000, 1_000)] {
            let settings = read(&format!("[http]\nmax_connections = {all}\n")).unwrap();
            assert_eq!(settings.limits().connections_per_address, of_one, "{all}");
        }
    }

    #[test]
    fn mistakes_have_their_lines() {
        for (text, expect) in [
            ("public_url = \"http://records.example.com\"\n", "1: public_url: it is not https"),
            ("public_url = \"https://u:sekret@records.example.com\"\n", "1: public_url: it has a user name"),
            ("[http]\nmax_conections = 5\n", "2: http.max_conections: unknown key"),
            (
                "[http]\nmax_connections = 0\n",
                "2: http.max_connections: 0 is not between 1 and 1000000 connections",
            ),
            (
                "[http]\nmax_connections_per_address = 0\n",
                "2: http.max_connections_per_address: 0 is not between 1 and 1000000 connections",
            ),
            ("[http]\nwrite_timeout = 30\n", "2: http.write_timeout: "),
            (
                "[http]\ncalls_per_caller = 0\n",
                "2: http.calls_per_caller: 0 is not between 1 and 10000 calls",
            ),
            (
                "[http]\ntrusted_proxies = [\"10.0.0.1\", \"proxy\"]\n",
                "2: http.trusted_proxies[1]: it is not an address",
            ),
            (
                "[http]\ntrusted_proxies = [\"0.0.0.0/0\"]\n",
                "2: http.trusted_proxies[0]: it contains every address",
            ),
            (
                "[http]\nallowed_hosts = [\"*.example.com\"]\n",
                "2: http.allowed_hosts[0]: it is not a host name",
            ),
            ("[http]\nallowed_hosts = \"example.com\"\n", "2: http.allowed_hosts: "),
            (
                "[http]\nallowed_origins = [\"example.com\"]\n",
                "2: http.allowed_origins[0]: it is not an origin",
            ),
            (
                "[http]\nallow_unauthenticated_proxy = true\n",
                "2: http.allow_unauthenticated_proxy: trusted_proxies is empty",
            ),
            (
                "[http]\ntrusted_proxies = [\"127.0.0.1\"]\nallow_unauthenticated_proxy = true\n\
                 [auth]\nissuer = \"https://as.example\"\n",
                "3: http.allow_unauthenticated_proxy: this has no effect with [auth]",
            ),
            ("[http]\nallow_unauthenticated_proxy = 1\n", "2: http.allow_unauthenticated_proxy: expected"),
            ("[tls]\ncertificate = \"c.pem\"\n", "1: tls: the key `key` is missing"),
            ("[tls]\ncertificate = \"c.pem\"\nkey = \"k.pem\"\nca = \"x\"\n", "4: tls.ca: unknown key"),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.starts_with(&format!("/etc/fetchwell/f.toml:{expect}")), "{text}{problem}");
            assert!(!problem.contains("sekret"), "{problem}");
        }
        let many = format!("[http]\nallowed_hosts = [{}]\n", "\"a\",".repeat(MAX_NAMES + 1));
        assert!(read(&many).unwrap_err().contains("more than 100"));
    }
}
