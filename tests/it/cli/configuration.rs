//! Configuration files and environment variables, checked and reloaded while a server runs, through the built binary.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{
    HttpServer, Model, StdioServer, ask, binary, demo_store, fetchwell, get, import_records, stderr, stdout,
    text,
};

/// The configuration file that the contract prints, unchanged.
const CONTRACT: &str = include_str!("../../../fixtures/configuration/contract.yaml");

/// A folder with two stores and a configuration file.
struct Place(TempDir);

impl Place {
    fn new(name: &str, config: &str) -> Self {
        let (folder, _store) = demo_store();
        let place = Self(folder);
        import_records(
            &place.path("more.db"),
            "cin_more",
            &json!({"stream": "notes", "key": "n1", "data": {"title": "One more"}}).to_string(),
        );
        place.write(name, config);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Replaces a file by another, as editors do.
    fn put(&self, name: &str, text: &str) {
        self.write("fresh", text);
        std::fs::rename(self.path("fresh"), self.path(name)).unwrap();
    }
}

const ONE: &str = "[[source]]\nname = \"demo\"\nstore = \"demo.db\"\n";
const TWO: &str =
    "[[source]]\nname = \"demo\"\nstore = \"demo.db\"\n[[source]]\nname = \"more\"\nstore = \"more.db\"\n";

/// Returns a configuration with a rate limit that does not refill during a test.
fn limited(requests: u32) -> String {
    format!("{ONE}[rate_limit]\nrequests = {requests}\nper = \"1h\"\n")
}

/// Waits until a condition holds.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(60), "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn shows(server: &HttpServer, connection: &str) -> bool {
    let answer = get(&server.address, "/v1/schema");
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.text.contains(connection)
}

fn limit(server: &HttpServer) -> Option<String> {
    get(&server.address, "/nowhere").header("x-ratelimit-limit").map(str::to_owned)
}

fn check(file: &Path, variables: &[(&str, &str)]) -> Output {
    binary().args(["config", "check", "--json"]).arg(file).envs(variables.iter().copied()).output().unwrap()
}

#[track_caller]
fn failed(output: &Output, code: i32, part: &str) {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert!(stderr(output).contains(part), "`{part}` is not in {}", stderr(output));
}

#[tokio::test]
async fn a_file_without_sources_is_used_beside_a_store() {
    let place = Place::new("config.yaml", CONTRACT);
    let (store, config) = (place.path("demo.db"), place.path("config.yaml"));
    let server = HttpServer::start(["--store", text(&store), "--config", text(&config)]);
    assert!(shows(&server, "cin_work"));
    let model = Model::over_stdio(["--store", text(&store), "--config", text(&config)]).await;
    let found = model.call("search", json!({"query": "invoice"})).await;
    assert!(!found["results"].as_array().unwrap().is_empty(), "{found}");
    // By itself it names no source; a file with sources of its own conflicts with `--store`.
    let alone = fetchwell(["serve", "--stdio", "--config", text(&config)]);
    failed(&alone, 1, "fetchwell source add");
    failed(&alone, 1, "--store DB or --provider-url URL");
    place.write("own.toml", ONE);
    let both = fetchwell(["search", "x", "--store", text(&store), "--config", text(&place.path("own.toml"))]);
    failed(&both, 2, "own.toml has sources of its own, and --store names another; remove --store");
    let edited = fetchwell(["source", "add", "x", "--store", "x.db", "--config", text(&config)]);
    failed(&edited, 1, "only TOML files can be edited; edit YAML by hand");
    assert_eq!(std::fs::read_to_string(&config).unwrap(), CONTRACT);
}

#[test]
fn deadlines_that_cut_query_timeouts_are_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fetchwell.toml");
    let warnings = |query_timeout: &str, deadline: &str| {
        let text = format!(
            "[embedding]\nprovider = \"http\"\nurl = \"http://127.0.0.1:9\"\nmodel = \"m\"\ndimensions = 8\n\
             query_timeout = \"{query_timeout}\"\n[[source]]\nname = \"notes\"\nstore = \"notes.db\"\ndeadline = \"{deadline}\"\n"
        );
        std::fs::write(&file, text).unwrap();
        let checked: Value = serde_json::from_str(&stdout(&check(&file, &[]))).unwrap();
        checked["warnings"].clone()
    };
    assert_eq!(warnings("4s", "5s"), json!([]));
    let expect = "embedding.query_timeout is 5s, and searches of `notes` wait at most 4s, since its deadline is 5s; \
                  raise its deadline or lower query_timeout";
    assert_eq!(warnings("5s", "5s"), json!([expect]));
    // Half of a short deadline is left for the search.
    assert_eq!(warnings("500ms", "1s"), json!([]));
    assert_eq!(warnings("600ms", "1s").as_array().unwrap().len(), 1);
}

#[test]
fn examples_are_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (example, sources) in [("config.example.yaml", 0), ("docs/fetchwell.example.toml", 3)] {
        let checked: Value = serde_json::from_str(&stdout(&check(&root.join(example), &[]))).unwrap();
        assert_eq!((&checked["ok"], &checked["sources"]), (&json!(true), &json!(sources)), "{checked}");
        assert_eq!(checked["telemetry_ring"], 10_000, "{checked}");
    }
    let said = stdout(&fetchwell(["config", "check", text(&root.join("docs/fetchwell.example.toml"))]));
    assert!(said.contains("is valid: 3 sources, answers of 4,000 tokens and 12,000 at most"), "{said}");
    assert!(
        said.contains("4 endpoints of their own, 60 requests per 10s") && said.lines().count() == 1,
        "{said}"
    );
}

#[test]
fn the_environment_overrides_the_file() {
    let place = Place::new("config.yaml", CONTRACT);
    let (config, store) = (place.path("config.yaml"), place.path("demo.db"));
    let set = [
        ("MCP_OUTPUT_TOKEN_THRESHOLD", "3000"),
        ("MCP_HARD_OUTPUT_TOKEN_CAP", "9000"),
        ("MCP_DEFAULT_PAGE_SIZE", "10"),
        ("MCP_MAX_PAGE_SIZE", "60"),
        ("MCP_FEATURE_PAGINATION", "OFF"),
        ("MCP_FEATURE_SUMMARY_PREVIEW", "yes"),
    ];
    let checked: Value = serde_json::from_str(&stdout(&check(&config, &set))).unwrap();
    for (key, expect) in [
        ("output_token_threshold", 3_000),
        ("hard_output_token_cap", 9_000),
        ("default_page_size", 10),
        ("max_page_size", 60),
    ] {
        assert_eq!(checked[key], json!(expect), "{checked}");
    }
    for (name, value, part) in [
        ("MCP_OUTPUT_TOKEN_THRESHOLD", "-1", "write an integer"),
        ("MCP_HARD_OUTPUT_TOKEN_CAP", "3000", "the hard cap, 3000, is below the threshold, 4000"),
        ("MCP_FEATURE_PAGINATION", "maybe", "write true or false"),
    ] {
        let file = check(&config, &[(name, value)]);
        failed(&file, 1, name);
        failed(&file, 1, part);
        // Without a configuration file an invalid variable is refused at startup, too.
        let mut command = binary();
        command.args(["serve", "--stdio", "--store", text(&store)]).env(name, value);
        let started = command.output().unwrap();
        failed(&started, 1, name);
        failed(&started, 1, part);
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of mistakes")]
fn a_check_names_file_line_and_key() {
    let place = Place::new("fetchwell.toml", ONE);
    for (file, config, line, key) in [
        (
            "c.yaml",
            CONTRACT.replace("threshold: 4000\n  hard", "threshold: 0\n  hard"),
            2,
            "context_protection.output_token_threshold",
        ),
        ("c.yaml", CONTRACT.replace("cap: 12000", "cap: -1"), 3, "context_protection.hard_output_token_cap"),
        (
            "c.yaml",
            CONTRACT.replace("cap: 12000", "cap: 2000"),
            3,
            "context_protection.hard_output_token_cap",
        ),
        (
            "c.yaml",
            CONTRACT.replace("      threshold: 4000", "      threshold: 20000"),
            12,
            "context_protection.endpoints.\"/api/v1/listings\".threshold",
        ),
        (
            "c.yaml",
            CONTRACT.replace("max_page_size: 200", "max_page_sizes: 200"),
            5,
            "context_protection.max_page_sizes",
        ),
        ("c.yaml", CONTRACT.replace("max_page_size: 200", "default_page_size: 60"), 5, "default_page_size"),
        ("c.toml", format!("{ONE}store = \"other.db\"\n"), 4, "store"),
        ("c.toml", format!("{ONE}[telemetry]\nring = 0\n"), 5, "telemetry.ring"),
        ("c.toml", format!("{ONE}[rate_limit]\nrequests = 1.5\nper = \"1s\"\n"), 5, "rate_limit.requests"),
    ] {
        place.write(file, &config);
        let path = place.path(file);
        let refused = check(&path, &[]);
        failed(&refused, 1, &format!("{}:{line}: {key}: ", text(&path)));
        let said: Value = serde_json::from_slice(&refused.stdout).unwrap();
        assert_eq!((&said["ok"], &said["line"], &said["key"]), (&json!(false), &json!(line), &json!(key)));
    }
    // Settings that `serve` would refuse; the password is not printed.
    for (config, part) in [
        (
            format!("listen = \"0.0.0.0:7400\"\n{ONE}"),
            "1: listen: 0.0.0.0:7400 can be reached from other machines",
        ),
        (
            "[[source]]\nname = \"far\"\nurl = \"https://ann:SECRETPW@records.example.com\"\n".to_owned(),
            "3: source[0].url: the URL contains a user name or a password",
        ),
    ] {
        place.write("c.toml", &config);
        let refused = check(&place.path("c.toml"), &[]);
        failed(&refused, 1, part);
        assert!(!format!("{refused:?}").contains("SECRETPW"), "{refused:?}");
    }
    let far = "https://ann:SECRETPW@records.example.com";
    for arguments in [
        ["source", "add", "far", "--url", far, "--config", text(&place.path("c.toml"))].as_slice(),
        ["search", "x", "--provider-url", far].as_slice(),
    ] {
        place.write("c.toml", ONE);
        let refused = binary().args(arguments).output().unwrap();
        failed(&refused, 2, "the URL contains a user name or a password");
        assert!(!format!("{refused:?}").contains("SECRETPW"), "{refused:?}");
    }
    // Half a file, an empty file, a missing file, a folder.
    place.write("half.yaml", "context_protection:\n  endpoints: {/a: {page_size");
    failed(&check(&place.path("half.yaml"), &[]), 1, "half.yaml:2: ");
    place.write("half.toml", "[[source]]\nname = \"demo");
    failed(&check(&place.path("half.toml"), &[]), 1, "half.toml:2: ");
    place.write("empty.yaml", "");
    failed(&check(&place.path("empty.yaml"), &[]), 1, "empty.yaml: the file is empty");
    for blank in ["", " \n\n"] {
        place.write("empty.toml", blank);
        failed(&check(&place.path("empty.toml"), &[]), 1, "empty.toml: the file is empty");
    }
    let empty = place.path("empty.toml");
    let added = fetchwell(["source", "add", "x", "--store", "x.db", "--config", text(&empty)]);
    assert!(added.status.success(), "{added:?}");
    failed(&check(&empty, &[]), 0, "");
    failed(&check(&place.path("nowhere.toml"), &[]), 1, "nowhere.toml cannot be read");
    failed(&check(place.0.path(), &[]), 1, "it is a directory");
    std::fs::write(place.path("bytes.toml"), [b'a', b'\n', 0xff]).unwrap();
    failed(&check(&place.path("bytes.toml"), &[]), 1, "it is not UTF-8 on line 2");
    // Without an argument the found file is checked.
    let found = binary().args(["config", "check"]).current_dir(place.0.path()).output().unwrap();
    assert!(stdout(&found).contains("fetchwell.toml is valid: 1 source"), "{found:?}");
}

#[tokio::test]
async fn a_saved_file_is_reloaded() {
    let place = Place::new("fetchwell.toml", ONE);
    let config = place.path("fetchwell.toml");
    let server = HttpServer::start(["--config", text(&config)]);
    assert!(!shows(&server, "cin_more") && limit(&server).is_none());
    let search = "/v1/search?q=invoice&limit=1";
    let first = get(&server.address, search).json();
    let next = first["next_cursor"].as_str().unwrap().to_owned();
    // A replaced file in which only a limit changed keeps the positions of searches.
    place.put("fetchwell.toml", &limited(900));
    until("the limit is there", || limit(&server).as_deref() == Some("900")).await;
    let second = get(&server.address, &format!("{search}&cursor={next}"));
    assert_eq!(second.status, 200, "{second:?}");
    // The file is written in place, with one more source and without the limit.
    place.write("fetchwell.toml", TWO);
    until("the source is there", || shows(&server, "cin_more")).await;
    assert!(shows(&server, "cin_work"));
    until("the limit is gone", || limit(&server).is_none()).await;
    place.put("fetchwell.toml", "[[source]]\nname = \"more\"\nstore = \"more.db\"\n");
    until("the source is gone", || !shows(&server, "cin_work")).await;
    // An invalid file changes nothing.
    place.write("fetchwell.toml", &format!("{ONE}[context_protection]\nmax_page_size = 0\n"));
    until("the line is logged", || server.log().contains("fetchwell.toml:5: ")).await;
    assert!(shows(&server, "cin_more") && !shows(&server, "cin_work"));
    std::fs::remove_file(&config).unwrap();
    until("its removal is logged", || server.log().contains("was removed")).await;
    assert!(shows(&server, "cin_more"));
    // A configuration with a single source that cannot be opened is not used.
    place.put("fetchwell.toml", "[[source]]\nname = \"x\"\nstore = \"nowhere.db\"\n");
    until("the store is named", || server.log().contains("nowhere.db")).await;
    assert!(shows(&server, "cin_more"));
    place.put(
        "fetchwell.toml",
        &format!("listen = \"127.0.0.1:1\"\nstate_dir = \"other\"\n{ONE}[telemetry]\nring = 9\n"),
    );
    until("it is back", || shows(&server, "cin_work")).await;
    until("what waits is logged", || server.log().matches("takes effect at the next start").count() == 3)
        .await;
    let log = server.end();
    let refused = "fetchwell.toml:5: context_protection.max_page_size: 0 is not between 1 and 200 records; the previous configuration";
    assert_eq!(log.matches(refused).count(), 1, "{log}");
    assert!(log.contains("configuration reloaded latency_us="), "{log}");
}

#[tokio::test]
async fn a_file_without_sources_is_reloaded_beside_a_store() {
    let place = Place::new("config.yaml", CONTRACT);
    let (store, config) = (place.path("demo.db"), place.path("config.yaml"));
    let server = HttpServer::start(["--store", text(&store), "--config", text(&config)]);
    place.put("config.yaml", &format!("{CONTRACT}rate_limit: {{requests: 700, per: 1h}}\n"));
    until("the limit is there", || limit(&server).as_deref() == Some("700")).await;
    // Sources in the file conflict with the flag `--store`.
    place.put("config.yaml", &format!("{CONTRACT}source: [{{name: more, store: more.db}}]\n"));
    until("that is logged", || server.log().contains("remove --store")).await;
    assert!(shows(&server, "cin_work") && limit(&server).as_deref() == Some("700"));
}

#[tokio::test]
async fn a_server_over_stdio_reloads_its_file() {
    let place = Place::new("fetchwell.toml", ONE);
    let config = place.path("fetchwell.toml");
    let model = Model::over_stdio(["--config", text(&config)]).await;
    let schema = model.call("schema", json!({})).await.to_string();
    assert!(schema.contains("cin_work") && !schema.contains("cin_more"), "{schema}");
    // A rate limit applies to clients over HTTP.
    place.put("fetchwell.toml", &format!("{TWO}[rate_limit]\nrequests = 1\nper = \"1h\"\n"));
    let started = Instant::now();
    while !model.call("schema", json!({})).await.to_string().contains("cin_more") {
        assert!(started.elapsed() < Duration::from_secs(60), "the source never came");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    place.write("fetchwell.toml", "call_deadline = 1\n");
    place.write("fetchwell.toml", TWO);
    model.call("schema", json!({})).await;
    // The server stops at the end of its input, whether or not it watches a file.
    let mut server = StdioServer::start(["--config", text(&config)]);
    server.initialize("2025-06-18");
    let (_, status, log) = server.end();
    assert!(status.success(), "{log}");
}

#[test]
fn requests_over_the_limit_get_the_error_of_their_endpoint() {
    let place = Place::new("fetchwell.toml", &limited(15));
    let server = HttpServer::start(["--config", text(&place.path("fetchwell.toml"))]);
    for left in (0..15).rev() {
        let answer = get(&server.address, "/v1/schema");
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.header("x-ratelimit-limit"), Some("15"));
        assert_eq!(answer.header("x-ratelimit-remaining"), Some(left.to_string().as_str()));
        assert!(answer.header("x-ratelimit-reset").is_some() && answer.header("retry-after").is_none());
    }
    for (method, path) in [
        ("GET", "/v1/schema"),
        ("POST", "/mcp"),
        ("POST", "/mcp/openai"),
        ("GET", "/api/v1/listings"),
        ("GET", "/nowhere"),
    ] {
        let answer = ask(&server.address, method, path, &[]);
        assert_eq!(answer.status, 429, "{answer:?}");
        let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=240).contains(&wait), "{answer:?}");
        assert_eq!(answer.header("x-ratelimit-remaining"), Some("0"));
        assert!(answer.header("x-ratelimit-reset").is_some());
        let body = answer.json();
        match path {
            "/v1/schema" => {
                assert_eq!(body["error"]["type"], "rate_limit_error");
                assert_eq!(body["error"]["code"], "rate_limited");
            }
            "/nowhere" | "/api/v1/listings" => {
                assert_eq!((&body["error"], &body["code"]), (&json!("Rate limited"), &json!("RATE_LIMITED")));
                assert!(body["request_id"].is_string() && body["detail"].is_string(), "{body}");
            }
            _ => assert_eq!((&body["jsonrpc"], &body["error"]["code"]), (&json!("2.0"), &json!(-32029))),
        }
        assert!(body.to_string().contains("retry after"), "{body}");
    }
    for free in ["/health", "/metrics"] {
        let answer = get(&server.address, free);
        assert!(answer.status != 429 && answer.header("x-ratelimit-limit").is_none(), "{answer:?}");
    }
}

#[test]
fn a_limit_over_ten_seconds_allows_no_larger_burst() {
    let place = Place::new("fetchwell.toml", &limited(15).replace("1h", "10s"));
    let server = HttpServer::start(["--config", text(&place.path("fetchwell.toml"))]);
    let statuses: Vec<u16> = (0..200).map(|_| get(&server.address, "/nowhere").status).collect();
    assert!(statuses.iter().take(15).all(|status| *status == 404), "{statuses:?}");
    assert!(statuses.contains(&429), "{statuses:?}");
}

#[test]
fn reloads_under_load_lose_no_call() {
    let measured: Value = serde_json::from_str(&stdout(&fetchwell(["bench", "reload", "--json"]))).unwrap();
    for (key, expect) in [("changes", 200), ("missed", 0), ("failed_calls", 0)] {
        assert_eq!(measured[key], json!(expect), "{measured}");
    }
}
