//! Record pages, printed ids and rate limits of servers that share a Redis.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

use super::servers::{OwnRedis, Replicas, contents, ops_address, read, shared_url};
use crate::support::hosted::{ANN, BOB, PUBLIC, call};
use crate::support::{Answer, HttpServer, Scrape, ask, get, post};

const LETTER: &str = "cin_ann/letters:ann01";

pub(super) fn page(server: &HttpServer, target: &str, cookie: &str) -> Answer {
    ask(&server.address, "GET", target, &[&format!("cookie: {cookie}")])
}

/// Sends a form of a page.
pub(super) fn send(server: &HttpServer, path: &str, cookie: &str, form: &[(&str, &str)]) -> Answer {
    let pair =
        |(name, value): &(&str, &str)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC));
    let form: Vec<String> = form.iter().map(pair).collect();
    let headers = [format!("origin: {PUBLIC}"), format!("cookie: {cookie}")];
    post(&server.address, path, &[&headers[0], &headers[1]], &form.join("&"))
}

/// Returns the cookie of a session that began.
#[track_caller]
pub(super) fn cookie(answer: &Answer) -> String {
    assert_eq!(answer.status, 303, "{answer:?}");
    answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

/// Returns the path of a record's page, and the key of a link that opens it.
pub(super) fn linked(server: &HttpServer, token: &str, id: &str) -> (String, String) {
    let record = call(server, token, "fetch", &json!({"id": id}));
    let url = record["url"].as_str().unwrap_or_else(|| panic!("{record}"));
    let (path, key) = url.strip_prefix(PUBLIC).unwrap().split_once("?link=").unwrap();
    (path.to_owned(), key.to_owned())
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn link_and_session_of_one_server_are_valid_on_the_other() {
    let url = shared_url();
    let replicas = Replicas::new(&url, "");
    let (one, other) = (replicas.start("one"), replicas.start("other"));
    let (path, key) = linked(&one, ANN, LETTER);
    let session = cookie(&send(&other, &path, "", &[("link", &key)]));
    for server in [&one, &other] {
        let shown = page(server, &path, &session);
        assert!(shown.status == 200 && shown.text.contains("only for ann"), "{shown:?}");
    }
    // The link opens its own record alone, and a forged one opens nothing.
    let elsewhere = path.replace("ann01", "ann02");
    assert_eq!(page(&one, &elsewhere, &session).status, 401);
    assert_eq!(send(&other, &elsewhere, "", &[("link", &key)]).status, 401);
    let (_, of_bob) = linked(&one, BOB, "cin_bob/letters:bob01");
    assert_eq!(send(&other, &path, "", &[("link", &of_bob)]).status, 401);
    // A session of a sign-in ends on every server, and its cookie is worth nothing afterwards.
    let whole = cookie(&send(&one, "/records/-/sign-in", "", &[("to", &path), ("token", ANN)]));
    assert!(page(&other, &elsewhere, &whole).text.contains("only for ann"));
    assert_eq!(send(&other, "/records/-/sign-out", &whole, &[]).status, 200);
    for server in [&one, &other] {
        assert_eq!(page(server, &path, &whole).status, 401);
    }
    // A session that is replaced on one server ends on the other: of all servers one takes it.
    let next = cookie(&send(&one, &path, &session, &[("link", &key)]));
    assert_eq!(page(&other, &path, &session).status, 401);
    assert_eq!(page(&other, &path, &next).status, 200);
    let kept = contents(&url);
    assert!(kept.contains(":session:") && kept.contains(":reader:"), "{kept}");
    for secret in [ANN, BOB, &next, next.split_once('=').unwrap().1, &key, "ann01"] {
        assert!(!kept.contains(secret), "{secret} is in {kept}");
    }
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn pages_without_redis_say_so_and_resume() {
    let mut redis = OwnRedis::start(&[]);
    let replicas = Replicas::new(&redis.url(), "");
    let server = replicas.start("one");
    let (path, key) = linked(&server, ANN, LETTER);
    let session = cookie(&send(&server, &path, "", &[("link", &key)]));
    redis.kill();
    assert_eq!(page(&server, &path, &session).status, 503);
    assert_eq!(send(&server, &path, &session, &[("link", &key)]).status, 503);
    assert_eq!(send(&server, "/records/-/sign-out", &session, &[]).status, 503);
    assert_eq!(page(&server, &path, "").status, 401);
    redis.restart();
    server.wait_until("sessions begin again", || send(&server, &path, "", &[("link", &key)]).status == 303);
    assert_eq!(page(&server, &path, &session).status, 401, "the session ended with the data");
}

/// Sends requests to each of the servers in turn, and returns the number that the rate limit let through.
pub(super) fn passed(servers: &[&HttpServer], requests: usize) -> usize {
    // A request without a token is counted before it is refused.
    let statuses =
        servers.iter().cycle().take(requests).map(|server| get(&server.address, "/v1/streams").status);
    statuses.filter(|status| *status == 401).count()
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn rate_limit_is_global() {
    let limit = "rate_limit = { requests = 200, per = \"1h\" }\n";
    let replicas = Replicas::new(&shared_url(), limit);
    let (one, other) = (replicas.start("one"), replicas.start("other"));
    let allowed = passed(&[&one, &other], 300);
    // 2 % of 200; an hour refills one request in 18 s, and the requests take less than a minute.
    assert!((196..=204).contains(&allowed), "{allowed} of 300 requests passed");
    let refused = read(&other, ANN, "/v1/streams");
    assert_eq!(refused.status, 429, "{refused:?}");
    assert_eq!(refused.header("x-ratelimit-limit"), Some("200"), "{refused:?}");
    assert!(refused.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1, "{refused:?}");
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn rate_limit_without_redis_refuses_nothing_and_is_counted() {
    let mut redis = OwnRedis::start(&[]);
    let limit = "ops_listen = \"127.0.0.1:0\"\nrate_limit = { requests = 5, per = \"1h\" }\n";
    let replicas = Replicas::new(&redis.url(), limit);
    let server = replicas.start("one");
    assert_eq!(passed(&[&server], 8), 5);
    redis.kill();
    assert_eq!(passed(&[&server], 20), 20);
    let ops = ops_address(&server);
    let metrics = Scrape::read(&get(&ops, "/metrics").text);
    assert!(metrics.value("fetchwell_rate_limit_uncounted_total") >= 20.0);
    assert!(metrics.sum("fetchwell_shared_state_failures_total{") >= 20.0);
    assert_eq!(metrics.value("fetchwell_shared_state_up{backend=\"redis\"}"), 0.0);
    let health = get(&ops, "/health").json();
    assert_eq!(health["shared_state"]["status"], "unreachable", "{health}");
    let ready = get(&ops, "/health/ready");
    assert_eq!((ready.status, ready.text.as_str()), (200, "ok\nredis: unreachable\n"));
    // Restarted empty: the bucket is full again.
    redis.restart();
    server.wait_until("requests are counted again", || passed(&[&server], 1) == 0);
    assert_eq!(get(&ops, "/health/ready").text, "ok\nredis: connected\n");
    assert_eq!(get(&ops, "/health").json()["shared_state"]["status"], "connected");
}
