//! Cookies of pages.
//!
//! Over https their names begin with `__Host-`. Browsers accept such a cookie only from this host, so that no other host of the
//! domain can set it.

use std::time::Duration;

use axum::http::{HeaderMap, header};

/// The cookies of one server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cookies {
    /// True if browsers reach the server over https.
    pub(crate) is_secure: bool,
}

impl Cookies {
    /// Returns the value of a cookie that a browser sent.
    pub(super) fn value<'a>(&self, headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
        self.beginning_with(headers, name).find_map(|(rest, value)| rest.is_empty().then_some(value))
    }

    /// Returns the cookies with names that begin with `prefix`: the rest of each name, and its value.
    pub(super) fn beginning_with<'a>(
        &self,
        headers: &'a HeaderMap,
        prefix: &str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let prefix = self.name(prefix);
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        lines.flat_map(|line| line.split(';')).filter_map(move |pair| {
            let (name, value) = pair.trim().split_once('=')?;
            Some((name.strip_prefix(&prefix)?, value)).filter(|_| !value.is_empty())
        })
    }

    /// Returns the header that sets a cookie. A `life` of zero deletes it.
    pub(super) fn set(&self, name: &str, value: &str, life: Duration) -> String {
        let (name, seconds) = (self.name(name), life.as_secs());
        // `__Host-` requires the path `/`.
        let secure = if self.is_secure { "; Secure" } else { "" };
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
    }

    fn name(&self, name: &str) -> String {
        let prefix = if self.is_secure { "__Host-" } else { "" };
        format!("{prefix}{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_over_https_are_bound_to_the_host() {
        let [secure, plain] = [true, false].map(|is_secure| Cookies { is_secure });
        let minute = Duration::from_secs(60);
        assert_eq!(
            secure.set("a", "x", minute),
            "__Host-a=x; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure"
        );
        assert_eq!(plain.set("a", "", Duration::ZERO), "a=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax");
        let lines =
            ["a=1; __Host-a=2;b_x=", "b_y=3; b_z=4"].map(|line| (header::COOKIE, line.parse().unwrap()));
        let headers = HeaderMap::from_iter(lines);
        assert_eq!((secure.value(&headers, "a"), plain.value(&headers, "a")), (Some("2"), Some("1")));
        assert_eq!(plain.value(&headers, "b_x"), None);
        let found: Vec<_> = plain.beginning_with(&headers, "b_").collect();
        assert_eq!(found, [("y", "3"), ("z", "4")]);
    }
}
