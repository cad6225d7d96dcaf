//! Decides which URLs a secret may be sent to.

use url::{Host, Url};

/// Returns true if no other machine can read requests to a URL: it is `https`, or `http` on this machine.
pub fn is_confidential(url: &Url) -> bool {
    let is_this_machine = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    url.scheme() == "https" || url.scheme() == "http" && is_this_machine
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_and_this_machine_are_confidential() {
        for (url, expect) in [
            ("https://login.example.com", true),
            ("http://localhost:9000", true),
            ("http://127.0.0.2", true),
            ("http://[::1]:9000/x", true),
            ("http://login.example.com", false),
            ("http://localhost.example.com", false),
            ("http://127.0.0.1.example.com", false),
            ("http://10.0.0.1", false),
            ("ftp://localhost", false),
            ("file:///etc/passwd", false),
        ] {
            assert_eq!(is_confidential(&url.parse().unwrap()), expect, "{url}");
        }
    }
}
