//! Servers whose clocks differ by ten minutes, and by midnight.
//!
//! libfaketime gives the whole process another system clock; `--clock` moves the clock of cursors alone.

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use serde_json::json;

use super::cursors::walk;
use super::pages::{cookie, linked, page, passed, send};
use super::servers::{Replicas, shared_url};
use crate::support::hosted::{ANN, ANNS, BOB};
use crate::support::{HttpServer, get, with_clock};

const LETTER: &str = "cin_ann/letters:ann01";

/// Returns the time that a server has, in seconds.
fn clock(server: &HttpServer) -> i64 {
    let live = get(&server.address, "/health/live");
    rfc2822::parse(live.header("date").unwrap()).unwrap().timestamp().as_second()
}

/// Checks that cursors, links, sessions and rate limits of each server are those of the other.
fn share_everything(replicas: &Replicas, one: &HttpServer, other: &HttpServer) {
    for servers in [[one, other], [other, one]] {
        for (tool, first) in [
            ("query_records", json!({"stream": "letters", "limit": 9})),
            ("search", json!({"query": "letter", "limit": 9})),
        ] {
            assert_eq!(walk(&servers, tool, &first).len(), ANNS, "{tool}");
        }
        let [issues, opens] = servers;
        let (path, key) = linked(issues, ANN, LETTER);
        let session = cookie(&send(opens, &path, "", &[("link", &key)]));
        for server in servers {
            let shown = page(server, &path, &session);
            assert!(shown.status == 200 && shown.text.contains("only for ann"), "{shown:?}");
        }
        assert_eq!(send(opens, &path.replace("ann01", "ann02"), "", &[("link", &key)]).status, 401);
        let whole = cookie(&send(issues, "/records/-/sign-in", "", &[("to", &path), ("token", ANN)]));
        assert!(page(opens, &path, &whole).text.contains("only for ann"));
        assert_eq!(send(opens, "/records/-/sign-out", &whole, &[]).status, 200);
        assert_eq!(page(issues, &path, &whole).status, 401);
        let (_, of_bob) = linked(issues, BOB, "cin_bob/letters:bob01");
        assert_eq!(send(opens, &path, "", &[("link", &of_bob)]).status, 401);
    }
    for server in [one, other] {
        assert!(!server.log().contains("panicked"), "{}", server.log());
    }
    assert!(replicas.place.path("keys").exists());
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn servers_ten_minutes_apart_share_everything() {
    for (ahead, clocks) in [(600, "+600s"), (-600, "-600s")] {
        let limit = "rate_limit = { requests = 400, per = \"1h\" }\n";
        let replicas = Replicas::new(&shared_url(), limit);
        let one = replicas.start("one");
        let other = replicas.start_by(with_clock(clocks), "other");
        let apart = clock(&other) - clock(&one);
        assert!((apart - ahead).abs() < 60, "the clocks are {apart} s apart");
        // Neither server gives the clients of the other more or less, and no bucket refills sooner.
        let allowed = passed(&[&one, &other], 500);
        assert!((392..=408).contains(&allowed), "{allowed} of 500 requests passed");

        let replicas = Replicas::new(&shared_url(), "");
        let one = replicas.start("one");
        let other = replicas.start_by(with_clock(clocks), "other");
        share_everything(&replicas, &one, &other);
    }
}

/// One server has the next day (UTC) already.
#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn servers_on_both_sides_of_midnight_share_everything() {
    let replicas = Replicas::new(&shared_url(), "");
    let one = replicas.start_by(with_clock("@2031-01-01 23:55:00"), "one");
    let other = replicas.start_by(with_clock("@2031-01-02 00:05:00"), "other");
    let days = [&one, &other]
        .map(|server| Timestamp::from_second(clock(server)).unwrap().strftime("%F").to_string());
    assert_eq!(days, ["2031-01-01", "2031-01-02"]);
    share_everything(&replicas, &one, &other);
}
