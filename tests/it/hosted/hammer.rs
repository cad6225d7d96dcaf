//! Concurrent calls of two grants. A checker knows the records of each.
//!
//! `FETCHWELL_HAMMER_SECONDS` sets the duration; `.ci/run` sets a minute.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::HttpServer;
use crate::support::hosted::{
    ANNS, BOBS, Place, STORES, authorization_server, call, record_server, start, with_authorization_server,
};

/// Concurrent calls of each caller.
const WORKERS: usize = 4;

/// Default duration in seconds.
const SECONDS: u64 = 5;

/// Handles and cursors of one caller, which the other tries to use.
#[derive(Default)]
struct CallerHandles {
    handles: Mutex<Vec<String>>,
    cursors: Mutex<Vec<(&'static str, String)>>,
    answers: AtomicUsize,
    refusals: AtomicUsize,
}

struct Caller<'a> {
    server: &'a HttpServer,
    token: &'a str,
    who: &'a str,
    letters: usize,
    own: &'a CallerHandles,
    other: (&'a str, &'a CallerHandles),
}

impl Caller<'_> {
    /// Calls a tool, and checks that the answer has nothing of the other caller.
    fn ask(&self, tool: &'static str, arguments: &Value) -> Value {
        let answer = call(self.server, self.token, tool, arguments);
        // Random values may contain any name.
        let mut words = answer.clone();
        for random in ["next_cursor", "next_changes_since"] {
            words.as_object_mut().unwrap().remove(random);
        }
        if let Some((page, _key)) = answer["url"].as_str().and_then(|url| url.split_once("?link=")) {
            words["url"] = page.into();
        }
        let text = words.to_string();
        let (other, _) = self.other;
        assert!(answer.get("error").is_none(), "{} {tool} {arguments}: {text}", self.who);
        assert!(!text.contains(other), "{} was shown of {other}: {tool} {arguments}: {text}", self.who);
        self.own.answers.fetch_add(1, Ordering::Relaxed);
        if let Some(cursor) = answer["next_cursor"].as_str() {
            keep(&self.own.cursors, (tool, cursor.to_owned()));
        }
        answer
    }

    /// Checks that handles and cursors of the other caller are refused.
    fn try_the_others(&self) {
        let (other, found) = self.other;
        let refused = |tool: &'static str, arguments: Value, codes: &[&str]| {
            let answer = call(self.server, self.token, tool, &arguments);
            let code =
                answer["error"]["code"].as_str().unwrap_or_else(|| panic!("{tool} {arguments}: {answer}"));
            assert!(codes.contains(&code), "{tool} {arguments}: {answer}");
            // The answer may repeat the handle, and no words of the record.
            assert!(!answer.to_string().contains(&format!("for {other}")), "{answer}");
            assert!(!answer.to_string().contains(&format!("{other} letter")), "{answer}");
            self.own.refusals.fetch_add(1, Ordering::Relaxed);
        };
        if let Some(handle) = last(&found.handles) {
            refused("fetch", json!({"id": handle}), &["connection_not_found", "not_found"]);
        }
        if let Some((tool, cursor)) = last(&found.cursors) {
            refused(tool, json!({"cursor": cursor}), &["invalid_cursor"]);
        }
    }

    fn once(&self, round: usize) {
        let mut page = self.ask("search", &json!({"query": "letter", "limit": 10}));
        for _ in 0..round % 4 {
            let Some(cursor) = page["next_cursor"].as_str() else { break };
            page = self.ask("search", &json!({"cursor": cursor}));
        }
        let hits = page["results"].as_array().unwrap();
        let id = hits[round % hits.len()]["id"].as_str().unwrap();
        // The record server is called with the token of this call, although another token of the grant is in use, too.
        for hit in hits.iter().filter(|hit| hit["id"].as_str().unwrap().contains("mail:")) {
            assert_eq!(hit["title"], format!("Mail of {}", self.token), "{page}");
        }
        if id.contains("letters") {
            keep(&self.own.handles, id.to_owned());
            assert_eq!(self.ask("fetch", &json!({"id": id}))["id"], id);
            let letters = self.ask("aggregate", &json!({"stream": "letters", "metric": "count"}));
            assert_eq!(letters["value"], self.letters, "{letters}");
        }
        let mut seen = 0;
        let mut rows = self.ask("query_records", &json!({"stream": "letters", "limit": 25}));
        loop {
            seen += rows["records"].as_array().unwrap().len();
            let Some(cursor) = rows["next_cursor"].as_str() else { break };
            rows = self.ask("query_records", &json!({"cursor": cursor}));
        }
        assert_eq!(seen, self.letters);
        self.ask("schema", &json!({}));
        self.try_the_others();
    }
}

fn keep<What>(list: &Mutex<Vec<What>>, what: What) {
    let mut list = list.lock().unwrap();
    if list.len() > 100 {
        list.clear();
    }
    list.push(what);
}

fn last<What: Clone>(list: &Mutex<Vec<What>>) -> Option<What> {
    list.lock().unwrap().last().cloned()
}

#[test]
fn concurrent_grants_see_nothing_of_each_other() {
    let (place, asked, records) = (Place::new(), authorization_server(), record_server());
    std::fs::write(place.path("secret"), "s3cret").unwrap();
    let subject = |who: &str| format!("[[auth.subject]]\nsubject = \"{who}\"\nsources = [\"{who}\"]\n");
    let mail = format!("[[source]]\nname = \"mail\"\nurl = \"{}\"\ncredential = \"caller\"\n", records.url);
    let more = format!("{}{}{STORES}{mail}", subject("ann"), subject("bob"));
    let server = start(&place.configure(&with_authorization_server(&asked, &more)));
    #[expect(clippy::disallowed_methods, reason = "it is said to the test, and not to the program")]
    let seconds = std::env::var("FETCHWELL_HAMMER_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    let until = Instant::now() + Duration::from_secs(seconds.unwrap_or(SECONDS));
    let (ann, bob) = (CallerHandles::default(), CallerHandles::default());
    std::thread::scope(|threads| {
        for hand in 0..WORKERS {
            let caller =
                |token, who, letters, own, other| Caller { server: &server, token, who, letters, own, other };
            // The grant continues with its next token.
            let anns = if hand % 2 == 0 { "ann-1" } else { "ann-2" };
            for caller in [
                caller(anns, "ann", ANNS, &ann, ("bob", &bob)),
                caller("bob-1", "bob", BOBS, &bob, ("ann", &ann)),
            ] {
                threads.spawn(move || {
                    let mut round = hand;
                    while Instant::now() < until {
                        caller.once(round);
                        round += 1;
                    }
                });
            }
        }
    });
    for (who, found) in [("ann", &ann), ("bob", &bob)] {
        let [answers, refusals] =
            [&found.answers, &found.refusals].map(|count| count.load(Ordering::Relaxed));
        assert!(answers > 0 && refusals > 0, "{who} was not tried: {answers} answers, {refusals} refusals");
        println!(
            "{who}: {answers} answers, nothing of the other; {refusals} refusals of what is the other's"
        );
    }
}
