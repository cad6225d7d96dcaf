//! The HTTP settings of a configuration file: public URL, limits, rate limit, trusted proxies, allowed hosts and origins, TLS.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

use super::tree::{Mistake, Node, key_of};
use super::values::{Callers, Connections, Count, DurationText, Requests};
use crate::http::{
    AllowedHost, AllowedNames, AllowedOrigin, DEFAULT_MAX_CONNECTIONS, DEFAULT_MAX_CONNECTIONS_PER_ADDRESS,
    DEFAULT_WRITE_TIMEOUT, Limits, PublicUrl, RateLimit, TlsSettings, TrustedProxies, TrustedProxy,
};

/// Default maximum of concurrent calls of one caller.
const DEFAULT_CALLS_PER_CALLER: u32 = 16;

/// Maximum length of a list of names.
const MAX_NAMES: usize = 100;

/// The settings of the HTTP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpSettings {
    /// URL at which clients reach the server.
    pub public_url: Option<PublicUrl>,
    /// Maximum number of concurrent connections.
    pub max_connections: u32,
    /// Maximum number of concurrent connections of one address.
    pub max_connections_per_address: u32,
    /// Timeout for a client that reads nothing of a pending response.
    pub write_timeout: Duration,
    /// Maximum number of concurrent calls of one caller.
    pub calls_per_caller: u32,
    /// Proxies with trusted `X-Forwarded-For` and `Forwarded` headers.
    pub trusted_proxies: TrustedProxies,
    /// True if requests through a trusted proxy are answered without `[auth]`.
    pub allow_unauthenticated_proxy: bool,
    /// Accepted `Host` headers, besides those of this machine and of `public_url`.
    pub allowed_hosts: Vec<AllowedHost>,
    /// Accepted `Origin` headers, besides those of this machine and of `public_url`.
    pub allowed_origins: Vec<AllowedOrigin>,
    /// Certificate and key, if the server uses TLS.
    pub tls: Option<TlsSettings>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            public_url: None,
            max_connections: DEFAULT_MAX_CONNECTIONS,
            max_connections_per_address: DEFAULT_MAX_CONNECTIONS_PER_ADDRESS,
            write_timeout: DEFAULT_WRITE_TIMEOUT,
            calls_per_caller: DEFAULT_CALLS_PER_CALLER,
            trusted_proxies: TrustedProxies::default(),
            allow_unauthenticated_proxy: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            tls: None,
        }
    }
}

impl HttpSettings {
    /// Returns the accepted `Host` and `Origin` headers.
    #[must_use]
    pub fn names(&self) -> AllowedNames {
        AllowedNames::new(self.public_url.as_ref(), &self.allowed_hosts, &self.allowed_origins)
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
            connections_per_address: self.max_connections_per_address,
            write: self.write_timeout,
            ..Limits::default()
        }
    }

    /// Returns true if a setting differs that a running server cannot change.
    #[must_use]
    pub fn tables_differ(&self, other: &Self) -> bool {
        let (public_url, tls) = (other.public_url.clone(), other.tls.clone());
        let calls_per_caller = other.calls_per_caller;
        let same_beside = Self { public_url, tls, calls_per_caller, ..self.clone() };
        same_beside != *other
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpTable {
    max_connections: Option<Count<Connections>>,
    max_connections_per_address: Option<Count<Connections>>,
    write_timeout: Option<DurationText>,
    calls_per_caller: Option<Count<Callers>>,
    #[serde(default)]
    trusted_proxies: Names<TrustedProxy>,
    #[serde(default)]
    allow_unauthenticated_proxy: bool,
    #[serde(default)]
    allowed_hosts: Names<AllowedHost>,
    #[serde(default)]
    allowed_origins: Names<AllowedOrigin>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TlsTable {
    certificate: PathBuf,
    key: PathBuf,
}

impl HttpTable {
    /// Rejects `allow_unauthenticated_proxy` if it has no effect, or if `[auth]` is present.
    pub(super) fn check(&self, tree: &Node, has_auth: bool) -> Result<(), Mistake> {
        if !self.allow_unauthenticated_proxy {
            return Ok(());
        }
        let problem = if has_auth {
            "this has no effect with [auth]; remove one of them"
        } else if self.trusted_proxies.0.is_empty() {
            "trusted_proxies is empty; add the addresses of the proxy, such as \"127.0.0.1\""
        } else {
            return Ok(());
        };
        let path = ["http", "allow_unauthenticated_proxy"];
        Err(Mistake { line: tree.line_of(&path), key: Some(key_of(&path)), problem: problem.to_owned() })
    }

    pub(super) fn settings(
        self,
        public_url: Option<PublicUrl>,
        tls: Option<TlsTable>,
        folder: &Path,
    ) -> HttpSettings {
        let whole = HttpSettings::default();
        let tls = tls
            .map(|tls| TlsSettings { certificate: folder.join(tls.certificate), key: folder.join(tls.key) });
        let max_connections = self.max_connections.map_or(whole.max_connections, |count| count.get().get());
        let per_address = self.max_connections_per_address.map(|count| count.get().get());
        HttpSettings {
            public_url,
            max_connections,
            max_connections_per_address: per_address.unwrap_or_else(|| default_per_address(max_connections)),
            write_timeout: self.write_timeout.map_or(whole.write_timeout, |timeout| timeout.0),
            calls_per_caller: self.calls_per_caller.map_or(whole.calls_per_caller, |count| count.get().get()),
            trusted_proxies: self.trusted_proxies.0.into_iter().collect(),
            allow_unauthenticated_proxy: self.allow_unauthenticated_proxy,
            allowed_hosts: self.allowed_hosts.0,
            allowed_origins: self.allowed_origins.0,
            tls,
        }
    }
}

/// Returns the default maximum of connections per address: at most half of all connections.
fn default_per_address(max_connections: u32) -> u32 {
    (max_connections / 2).clamp(1, DEFAULT_MAX_CONNECTIONS_PER_ADDRESS)
}

/// A list of names that are parsed one by one, so that an error has the line of its item.
struct Names<Name>(Vec<Name>);

impl<Name> Default for Names<Name> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// One item of [`Names`].
struct NameItem<Name>(Name);

impl<'de, Name: FromStr<Err = String>> Deserialize<'de> for NameItem<Name> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(D::Error::custom)
    }
}

impl<'de, Name: FromStr<Err = String>> Deserialize<'de> for Names<Name> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List<Name>(std::marker::PhantomData<Name>);
        impl<'de, Name: FromStr<Err = String>> Visitor<'de> for List<Name> {
            type Value = Names<Name>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of at most {MAX_NAMES} strings")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Names<Name>, A::Error> {
                let mut names = Vec::new();
                while let Some(NameItem(name)) = list.next_element()? {
                    if names.len() == MAX_NAMES {
                        return Err(A::Error::custom(format_args!(
                            "there are more than {MAX_NAMES}; use a network for many addresses"
                        )));
                    }
                    names.push(name);
                }
                Ok(Names(names))
            }
        }
        deserializer.deserialize_seq(List(std::marker::PhantomData))
    }
}

/// The `[rate_limit]` table as deserialized.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RateLimitTable {
    requests: Count<Requests>,
    per: DurationText,
}

impl RateLimitTable {
    /// Returns the rate limit of the table.
    pub(super) fn settings(self) -> RateLimit {
        RateLimit { requests: self.requests.get(), per: self.per.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::check_text;

    fn read(text: &str) -> Result<HttpSettings, String> {
        let settings = check_text(text, Path::new("/etc/fetchwell/f.toml"));
        settings.map(|settings| settings.http).map_err(|error| error.to_string())
    }

    #[test]
    fn all_keys_are_read() {
        let settings = read(
            "public_url = \"https://records.example.com/\"\n\
             [http]\nmax_connections = 500\nmax_connections_per_address = 20\nwrite_timeout = \"2s\"\ncalls_per_caller = 4\ntrusted_proxies = [\"127.0.0.1\", \"10.0.0.0/8\"]\n\
             allow_unauthenticated_proxy = true\nallowed_hosts = [\"fetchwell.internal\"]\nallowed_origins = [\"https://inspector.example.com\"]\n\
             [tls]\ncertificate = \"fullchain.pem\"\nkey = \"/k/privkey.pem\"\n",
        )
        .unwrap();
        assert_eq!(settings.unauthenticated_proxies(), settings.trusted_proxies);
        assert_eq!(settings.public_url.as_ref().unwrap().as_str(), "https://records.example.com");
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
        assert_eq!(settings.tls, Some(tls));
        assert_eq!(read("").unwrap(), HttpSettings::default());
        assert_eq!(read("[http]\n").unwrap(), HttpSettings::default());
    }

    #[test]
    fn one_address_has_at_most_half_of_the_connections() {
        for (all, of_one) in [(1, 1), (2, 1), (50, 25), (12_000, 1_000), (1_000_000, 1_000)] {
            let settings = read(&format!("[http]\nmax_connections = {all}\n")).unwrap();
            assert_eq!(settings.max_connections_per_address, of_one, "{all}");
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
