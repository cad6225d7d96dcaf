//! Tests of the `context_protection` table in both formats, with environment variables.

use std::path::Path;
use std::time::Duration;

use fetchwell_core::fit::{Estimator, Limits, Overrides};

use crate::config::{ConfigError, Environment, FileSettings, settings_of};

/// The reference configuration of the Context Protection API, unchanged.
const CONTRACT: &str = include_str!("../../../fixtures/configuration/contract.yaml");

fn read(text: &str, name: &str, variables: &[(&'static str, &str)]) -> Result<FileSettings, ConfigError> {
    let protection = variables.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    settings_of(text, Path::new(name), &Environment { protection, ..Environment::default() })
}

#[track_caller]
fn refused(text: &str, name: &str, variables: &[(&'static str, &str)], expect: &str) {
    let refused = match read(text, name, variables) {
        Err(error) => error.to_string(),
        Ok(settings) => panic!("{text}\n{settings:?}"),
    };
    assert!(refused.starts_with(expect), "{text}\n{refused}\n{expect}");
}

#[test]
fn the_reference_configuration_is_valid() {
    let protection = read(CONTRACT, "c.yaml", &[]).unwrap().protection;
    assert_eq!((protection.global, protection.estimator), (Limits::default(), Estimator::O200k));
    let listings = Overrides { page_size: Some(50), threshold: Some(4_000), ..Overrides::default() };
    let analytics = Overrides { summarization: Some(false), ..Overrides::default() };
    assert_eq!(
        protection.endpoints,
        [("/api/v1/listings".to_owned(), listings), ("/api/v1/analytics".to_owned(), analytics)]
    );
}

#[test]
fn both_formats_give_the_same_settings() {
    let toml = "listen = \"127.0.0.1:7401\"\nstate_dir = \"state\"\ncall_deadline = \"8s\"\n\
        [[source]]\nname = \"notes\"\nstore = \"notes.db\"\nstreams = [\"a\"]\n\
        [rate_limit]\nrequests = 15\nper = \"10s\"\n[telemetry]\nring = 500\n\
        [context_protection]\nestimator = \"chars4\"\nhard_output_token_cap = 20000\n\
        [context_protection.endpoints.\"/a*\"]\nexempt = true\nhard_cap = 30000\npagination_enabled = false\n\
        [context_protection.endpoints.\"tool:fetch\"]\npage_size = 7\n";
    let yaml = "listen: 127.0.0.1:7401\nstate_dir: state\ncall_deadline: 8s\n\
        source:\n- name: notes\n  store: notes.db\n  streams: [a]\n\
        rate_limit: {requests: 15, per: 10s}\ntelemetry: {ring: 500}\n\
        context_protection:\n  estimator: chars4\n  hard_output_token_cap: 20000\n  endpoints:\n    /a*:\n      exempt: true\n      \
        hard_cap: 30000\n      pagination_enabled: false\n    tool:fetch: {page_size: 7}\n";
    let settings = read(toml, "/etc/c.toml", &[]).unwrap();
    assert_eq!(settings, read(yaml, "/etc/c.yml", &[]).unwrap());
    let limit = settings.rate_limit.unwrap();
    assert_eq!((limit.requests.get(), limit.per), (15, Duration::from_secs(10)));
    assert_eq!((settings.sources.len(), settings.telemetry.ring), (1, 500));
    assert_eq!(read("telemetry: {}\n", "c.yaml", &[]).unwrap().telemetry.ring, 10_000);
    assert_eq!(read("telemetry = {ring = 1000000}\n", "c.toml", &[]).unwrap().telemetry.ring, 1_000_000);
    assert_eq!(settings.protection.estimator, Estimator::Chars4);
    assert!(settings.protection.limits("/abc").exempt);
}

#[test]
fn mistakes_have_line_and_key_in_both_formats() {
    // Each is on the third line of a table, or of an endpoint's table.
    for (line, key, problem) in [
        ("output_token_threshold = 0", "", "0 is not between 1 and 1000000 tokens"),
        ("output_token_threshold = -5", "", "-5 is not between"),
        ("output_token_threshold = 1000001", "", "1000001 is not between"),
        ("output_token_threshold = 99999999999999999999", "", ""),
        (
            "output_token_threshold = 1.5",
            "",
            "expected an integer between 1 and 1000000, found the number `1.5`",
        ),
        (
            "output_token_threshold = \"4000\"",
            "",
            "expected an integer between 1 and 1000000, found a string",
        ),
        (
            "output_token_threshold = true",
            "",
            "expected an integer between 1 and 1000000, found the boolean `true`",
        ),
        ("output_token_threshold = 12001", "", "the hard cap, 12000, is below the threshold, 12001"),
        ("hard_output_token_cap = 3999", "", "the hard cap, 3999, is below the threshold, 4000"),
        ("default_page_size = 201", "", "201 is not between 1 and 200 records"),
        ("max_page_size = 201", "", "201 is not between 1 and 200 records"),
        ("max_page_size = 49", "", "the page size, 50, is above the largest, 49"),
        ("enable_pagination = \"true\"", "", "expected a boolean, found a string"),
        ("enable_pagination = 1", "", "expected a boolean, found the number `1`"),
        ("estimator = \"words\"", "", "`words` is unknown; use `o200k` or `chars4`"),
        ("output_tokens = 1", "", "unknown key `output_tokens`"),
        ("threshold = 12001", "/a", "the hard cap, 12000, is below the threshold, 12001"),
        ("hard_cap = 3999", "/a", "the hard cap, 3999, is below the threshold, 4000"),
        ("page_size = 201", "/a", "201 is not between 1 and 200 records"),
        ("page_size = 0", "/a", "0 is not between 1 and 200 records"),
        ("max_page_size = 0", "", "0 is not between 1 and 200 records"),
        ("max_page_size = 13000", "", "13000 is not between 1 and 200 records"),
        ("default_page_size = 0", "", "0 is not between 1 and 200 records"),
        ("max_page_size = 10", "/a", "unknown key `max_page_size`"),
        ("hard_cap = 12001", "tool:fetch", "12001 is too much: a tool's answers never exceed 12000 tokens"),
        ("exempt = 1", "tool:fetch", "expected a boolean, found the number `1`"),
        ("exempt = true", "tool:fetch", "no tool is exempt"),
    ] {
        let (name, value) = line.split_once(" = ").unwrap();
        let (toml, yaml, key) = match key {
            "" => (
                format!("[context_protection]\n# why\n{line}\n"),
                format!("context_protection:\n  # why\n  {name}: {value}\n"),
                format!("context_protection.{name}"),
            ),
            entry => (
                format!("\n[context_protection.endpoints.\"{entry}\"]\n{line}\n"),
                format!("context_protection: {{endpoints: {{\n  {entry}: {{\n   {name}: {value} }}}}}}\n"),
                format!("context_protection.endpoints.\"{entry}\".{name}"),
            ),
        };
        refused(&toml, "c.toml", &[], &format!("c.toml:3: {key}: {problem}"));
        refused(&yaml, "c.yaml", &[], &format!("c.yaml:3: {key}: {problem}"));
    }
}

#[test]
fn endpoint_names_are_validated() {
    for (name, problem) in [
        ("a/b", "an endpoint is a path"),
        ("", "an endpoint is a path"),
        ("tool:find", "there is no such tool; there are search, fetch"),
        ("tool:search*", "there is no such tool"),
        ("/a*b", "`*` is allowed only at the end"),
        ("/a**", "`*` is allowed only at the end"),
        ("/a b", "an endpoint is a path of at most"),
        ("/a?b", "an endpoint is a path of at most"),
    ] {
        let yaml = format!("context_protection:\n  endpoints:\n    \"{name}\":\n      page_size: 1\n");
        refused(
            &yaml,
            "c.yaml",
            &[],
            &format!("c.yaml:3: context_protection.endpoints.\"{name}\": {problem}"),
        );
    }
    let many: String = (0..201).map(|n| format!("    /{n}: {{exempt: true}}\n")).collect();
    let many = format!("context_protection:\n  endpoints:\n{many}");
    refused(&many, "c.yaml", &[], "c.yaml:2: context_protection.endpoints: there are more than 200");
}

#[test]
fn environment_variables_override_the_file_and_are_checked_with_it() {
    let file =
        "context_protection:\n  output_token_threshold: 5000\n  endpoints:\n    /a: {threshold: 6000}\n";
    let set = [
        ("MCP_OUTPUT_TOKEN_THRESHOLD", "3000"),
        ("MCP_HARD_OUTPUT_TOKEN_CAP", " 9000 "),
        ("MCP_DEFAULT_PAGE_SIZE", "10"),
        ("MCP_MAX_PAGE_SIZE", "20"),
        ("MCP_FEATURE_PAGINATION", "Off"),
        ("MCP_FEATURE_SUMMARY_PREVIEW", "NO"),
    ];
    let protection = read(file, "c.yaml", &set).unwrap().protection;
    let expect = Limits {
        threshold: 3_000,
        hard_cap: 9_000,
        page_size: 10,
        max_page_size: 20,
        summarization: false,
        pagination: false,
        exempt: false,
    };
    assert_eq!(protection.global, expect);
    assert_eq!(protection.limits("/a").threshold, 6_000);
    for (name, value, expect) in [
        (
            "MCP_OUTPUT_TOKEN_THRESHOLD",
            "0",
            "0 is not between 1 and 1000000 tokens; write an integer such as 4000",
        ),
        ("MCP_HARD_OUTPUT_TOKEN_CAP", "many", "`many` is not an integer; write an integer such as 4000"),
        ("MCP_MAX_PAGE_SIZE", "1.5", "`1.5` is not an integer; write an integer such as 50"),
        ("MCP_MAX_PAGE_SIZE", "0", "0 is not between 1 and 200 records; write an integer such as 50"),
        ("MCP_MAX_PAGE_SIZE", "13000", "13000 is not between 1 and 200 records; write an integer such as 50"),
        ("MCP_DEFAULT_PAGE_SIZE", "x", "`x` is not an integer; write an integer such as 50"),
        ("MCP_MAX_PAGE_SIZE", "500", "500 is not between 1 and 200"),
        ("MCP_FEATURE_PAGINATION", "maybe", "`maybe` is not a boolean; write true or false"),
        ("MCP_FEATURE_SUMMARY_PREVIEW", "2", "`2` is not a boolean"),
        ("MCP_DEFAULT_PAGE_SIZE", "201", "201 is not between"),
    ] {
        let expect = format!("the environment variable {name} is not valid: {expect}");
        refused(file, "c.yaml", &[(name, value)], &expect);
    }
    // A number of the file and one of the environment that contradict each other.
    refused(
        file,
        "c.yaml",
        &[("MCP_HARD_OUTPUT_TOKEN_CAP", "4500")],
        "c.yaml:2: context_protection.output_token_threshold: the hard cap, 4500, is below the threshold, 5000; raise the \
         one or lower the other (MCP_HARD_OUTPUT_TOKEN_CAP is set",
    );
    refused(
        file,
        "c.yaml",
        &[("MCP_HARD_OUTPUT_TOKEN_CAP", "5500")],
        "c.yaml:4: context_protection.endpoints.\"/a\".threshold: the hard cap, 5500, is below the threshold, 6000",
    );
    // A contradiction in the file that the environment resolves.
    assert!(read("[context_protection]\nhard_output_token_cap = 3000\n", "c.toml", &[]).is_err());
    let mended = [("MCP_OUTPUT_TOKEN_THRESHOLD", "2000")];
    assert!(read("[context_protection]\nhard_output_token_cap = 3000\n", "c.toml", &mended).is_ok());
}

#[test]
fn a_file_that_is_not_a_table_of_keys_is_rejected() {
    for (text, name, expect) in [
        ("", "c.yaml", "c.yaml: the file is empty"),
        ("# only a comment\n", "c.yaml", "c.yaml: the file is empty"),
        ("~\n", "c.yml", "c.yml: the file is empty"),
        ("- a\n", "c.yaml", "c.yaml:1: the file is not a table"),
        ("word\n", "c.yaml", "c.yaml:1: the file is not a table"),
        (
            "listen: 127.0.0.1:7400\n---\nlisten: 127.0.0.1:7401\n",
            "c.yaml",
            "c.yaml:2: there is more than one document; keep one",
        ),
        ("listen: x\nlisten: y\n", "c.yaml", "c.yaml:2: listen: duplicate key"),
        ("listen = \"x\"\nlisten = \"y\"\n", "c.toml", "c.toml:2: listen: duplicate key"),
        (
            "context_protection:\n  endpoints:\n    /a: {page_size: 1}\n    /a: {page_size: 2}\n",
            "c.yaml",
            "c.yaml:4: \"/a\": duplicate key",
        ),
        (
            "context_protection: [1]\n",
            "c.yaml",
            "c.yaml:1: context_protection: expected a table, found a list",
        ),
        ("context_protection:\n", "c.yaml", "c.yaml:1: context_protection: expected a table, found nothing"),
        (
            "context_protection:\n  endpoints: [1]\n",
            "c.yaml",
            "c.yaml:2: context_protection.endpoints: expected",
        ),
        ("a: &a {b: 1}\nc: {<<: *a}\n", "c.yaml", "c.yaml:2: "),
        ("rate_limit: {requests: 0, per: 1s}\n", "c.yaml", "c.yaml:1: rate_limit.requests: 0 is not between"),
        (
            "telemetry: {ring: 0}\n",
            "c.yaml",
            "c.yaml:1: telemetry.ring: 0 is not between 1 and 1000000 calls",
        ),
        (
            "[telemetry]\nring = 1000001\n",
            "c.toml",
            "c.toml:2: telemetry.ring: 1000001 is not between 1 and 1000000",
        ),
        ("telemetry: {rings: 1}\n", "c.yaml", "c.yaml:1: telemetry.rings: unknown key `rings`"),
        ("rate_limit: {requests: 1}\n", "c.yaml", "c.yaml:1: rate_limit: the key `per` is missing"),
        (
            "rate_limit: {requests: 1, per: soon}\n",
            "c.yaml",
            "c.yaml:1: rate_limit.per: `soon` is not a duration",
        ),
        ("context_protection:\n  max_page", "c.yaml", "c.yaml:"),
        ("context_protection: {max_page_size: 1", "c.yaml", "c.yaml:"),
        ("[context_protection\n", "c.toml", "c.toml:1: "),
        ("source:\n- name: [\n", "c.yaml", "c.yaml:"),
    ] {
        refused(text, name, &[], expect);
    }
}

#[test]
fn messages_name_no_types_of_this_program() {
    for (text, name, expect) in [
        (
            "[context_protection.endpoints]\n\"/a\" = 5\n",
            "c.toml",
            "c.toml:2: context_protection.endpoints.\"/a\": expected a table, found a number",
        ),
        ("rate_limit: soon\n", "c.yaml", "c.yaml:1: rate_limit: expected a table, found a string"),
        ("rate_limit = true\n", "c.toml", "c.toml:1: rate_limit: expected a table, found a boolean"),
        (
            "[context_protection]\nestimator = 5\n",
            "c.toml",
            "c.toml:2: context_protection.estimator: expected `o200k` or `chars4`, found a number",
        ),
    ] {
        refused(text, name, &[], expect);
    }
}

#[test]
fn parsing_time_is_bounded() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        let all = [before.as_str(); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{all}]\n"));
    }
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_keys: String = (0..2_000).map(|depth| format!("{}a:\n", " ".repeat(depth % 500))).collect();
    let wide: String = (0..100_000).map(|n| format!("k{n}: 1\n")).collect();
    // Without limits this test would not end.
    for text in [&bomb, &deep, &deep_keys, &wide] {
        refused(text, "c.yaml", &[], "c.yaml:");
    }
    let wide: String = (0..60_000).map(|n| format!("k{n} = 1\n")).collect();
    let deep = format!("a = {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    for text in [&wide, &deep] {
        refused(text, "c.toml", &[], "c.toml:");
    }
}
