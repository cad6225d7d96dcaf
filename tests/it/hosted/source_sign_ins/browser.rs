//! A browser, which keeps cookies.

use std::collections::BTreeMap;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::vendor::Vendor;
use crate::support::hosted::PUBLIC;
use crate::support::{Answer, HttpServer, ask, post};

#[derive(Default, Clone)]
pub(crate) struct Browser {
    pub(crate) cookies: BTreeMap<String, String>,
}

impl Browser {
    /// Returns a browser with a session that began with a token.
    pub(crate) fn signed_in(server: &HttpServer, token: &str) -> Self {
        let mut browser = Self::default();
        let answer = browser.send(server, "/records/-/sign-in", &[("to", "/sources"), ("token", token)]);
        assert_eq!(answer.status, 303, "{answer:?}");
        browser
    }

    pub(crate) fn get(&mut self, server: &HttpServer, target: &str) -> Answer {
        let answer = ask(&server.address, "GET", target, &[&self.cookie_header()]);
        self.keep(&answer);
        answer
    }

    /// Sends a form of a page of the server.
    pub(crate) fn send(&mut self, server: &HttpServer, path: &str, form: &[(&str, &str)]) -> Answer {
        let pair =
            |(name, value): &(&str, &str)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC));
        let form: Vec<String> = form.iter().map(pair).collect();
        let headers = [format!("origin: {PUBLIC}"), self.cookie_header()];
        let answer = post(&server.address, path, &[&headers[0], &headers[1]], &form.join("&"));
        self.keep(&answer);
        answer
    }

    /// Begins a sign-in to the source `wiki`, and returns the URL that the browser is sent to.
    #[track_caller]
    pub(crate) fn begin(&mut self, server: &HttpServer) -> String {
        let page = self.send(server, "/sources/sign-in", &[("source", "wiki")]);
        assert_eq!(page.status, 200, "{page:?}");
        let url = page.header("refresh").and_then(|value| value.strip_prefix("0;url=")).unwrap();
        assert!(page.text.contains(&url.replace('&', "&amp;")), "{page:?}");
        url.to_owned()
    }

    /// Signs in to the source `wiki` as a person of the vendor.
    #[track_caller]
    pub(crate) fn sign_in(&mut self, server: &HttpServer, vendor: &Vendor, person: &str) {
        let location = self.begin(server);
        let back = self.get(server, &vendor.approve(&location, person));
        assert_eq!((back.status, back.header("location")), (303, Some("/sources")), "{back:?}");
    }

    fn keep(&mut self, answer: &Answer) {
        for line in answer.headers("set-cookie") {
            assert!(line.contains("; HttpOnly; SameSite=Lax"), "{line}");
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            match value {
                "" => self.cookies.remove(name),
                value => self.cookies.insert(name.to_owned(), value.to_owned()),
            };
        }
    }

    pub(crate) fn cookie_header(&self) -> String {
        let pairs = self.cookies.iter().map(|(name, value)| format!("{name}={value}"));
        format!("cookie: {}", pairs.collect::<Vec<String>>().join("; "))
    }
}
