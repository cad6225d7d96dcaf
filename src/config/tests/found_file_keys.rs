//! Tests with every key of a configuration file and the rule for it in a found file. A new key fails here until it
//! has a row.

use std::collections::BTreeSet;
use std::path::Path;

use crate::config::{check_text, restricted_keys};

/// The rule for a key in a found file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// The file may have the key with this value.
    Allowed(&'static str),
    /// The key requires trust with this value.
    NeedsTrust(&'static str),
    /// The key is a table with rows for its keys.
    Table,
}

use Decision::{Allowed, NeedsTrust, Table};

/// Rules by key. `[]` stands for the items of a list of tables, and `*` for any key.
pub(super) const KEYS: &[(&str, Decision)] = &[
    ("listen", NeedsTrust("\"127.0.0.1:7401\"")),
    ("ops_listen", NeedsTrust("\"127.0.0.1:7402\"")),
    ("public_url", NeedsTrust("\"https://a.example\"")),
    ("state_dir", NeedsTrust("\"state\"")),
    ("state", NeedsTrust("\"redis://a.example/0\"")),
    ("call_deadline", Allowed("\"3s\"")),
    ("cursor_ttl", Allowed("\"5m\"")),
    ("search_history", Allowed("false")),
    ("source", Table),
    ("source[].name", Allowed("\"work\"")),
    ("source[].label", Allowed("\"Work\"")),
    ("source[].store", Allowed("\"notes.db\"")),
    ("source[].store", Allowed("\"/srv/notes.db\"")),
    ("source[].store", Allowed("\"../C:\\\\notes.db\"")),
    ("source[].store", NeedsTrust("\"\\\\\\\\evil\\\\share\\\\notes.db\"")),
    ("source[].store", NeedsTrust("\"//evil/share/notes.db\"")),
    ("source[].store", NeedsTrust("\"postgres://db.example/mail\"")),
    ("source[].store", NeedsTrust("\"PostgreSQL://u:env:HOME@db.example/mail\"")),
    ("source[].url", Allowed("\"https://a.example\"")),
    ("source[].url", Allowed("\"a.example:8443\"")),
    ("source[].url", NeedsTrust("\"http://a.example\"")),
    ("source[].url", NeedsTrust("\"http://127.0.0.1:7663\"")),
    ("source[].credential", Allowed("\"pdpp-cache\"")),
    ("source[].credential", NeedsTrust("\"env:HOME\"")),
    ("source[].credential", NeedsTrust("\"file:token\"")),
    ("source[].credential", NeedsTrust("\"command:true\"")),
    ("source[].credential", NeedsTrust("\"caller\"")),
    ("source[].cache_root", NeedsTrust("\"cache\"")),
    ("source[].allow_insecure", NeedsTrust("true")),
    ("source[].allow_insecure", NeedsTrust("false")),
    ("source[].deadline", Allowed("\"3s\"")),
    ("source[].streams", Allowed("[\"mail\"]")),
    ("source[].read_urls", NeedsTrust("[\"postgres://db.example/mail\"]")),
    ("source[].max_lag", NeedsTrust("\"3s\"")),
    ("source[].mcp", NeedsTrust("\"https://a.example/mcp\"")),
    ("source[].command", NeedsTrust("[\"true\"]")),
    ("source[].env", NeedsTrust("{ A = \"b\" }")),
    ("source[].headers", NeedsTrust("{ a = \"b\" }")),
    ("source[].client_name", NeedsTrust("\"a\"")),
    ("source[].preset", NeedsTrust("\"basic-memory\"")),
    ("source[].oauth", Table),
    ("source[].oauth.client_id", NeedsTrust("\"a\"")),
    ("source[].oauth.client_secret", NeedsTrust("\"env:KEY\"")),
    ("source[].oauth.client_metadata_url", NeedsTrust("\"https://a.example\"")),
    ("source[].oauth.scopes", NeedsTrust("[\"a\"]")),
    ("source[].oauth.redirect_port", NeedsTrust("7000")),
    ("source[].search", Table),
    ("source[].search.tool", NeedsTrust("\"/a\"")),
    ("source[].search.query", NeedsTrust("\"/a\"")),
    ("source[].search.limit", NeedsTrust("\"/a\"")),
    ("source[].search.cursor", NeedsTrust("\"/a\"")),
    ("source[].search.page", NeedsTrust("\"/a\"")),
    ("source[].search.next", NeedsTrust("\"/a\"")),
    ("source[].search.results", NeedsTrust("\"/a\"")),
    ("source[].search.id", NeedsTrust("\"/a\"")),
    ("source[].search.title", NeedsTrust("\"/a\"")),
    ("source[].search.text", NeedsTrust("\"/a\"")),
    ("source[].search.url", NeedsTrust("\"/a\"")),
    ("source[].search.date", NeedsTrust("\"/a\"")),
    ("source[].search.line", NeedsTrust("\"/a\"")),
    ("source[].search.arguments", NeedsTrust("{ a = 1 }")),
    ("source[].fetch", Table),
    ("source[].fetch.tool", NeedsTrust("\"/a\"")),
    ("source[].fetch.id", NeedsTrust("\"/a\"")),
    ("source[].fetch.title", NeedsTrust("\"/a\"")),
    ("source[].fetch.text", NeedsTrust("\"/a\"")),
    ("source[].fetch.url", NeedsTrust("\"/a\"")),
    ("source[].fetch.date", NeedsTrust("\"/a\"")),
    ("source[].fetch.arguments", NeedsTrust("{ a = 1 }")),
    ("context_protection", Table),
    ("context_protection.output_token_threshold", Allowed("3000")),
    ("context_protection.hard_output_token_cap", Allowed("3000")),
    ("context_protection.default_page_size", Allowed("20")),
    ("context_protection.max_page_size", Allowed("20")),
    ("context_protection.enable_summarization", Allowed("false")),
    ("context_protection.enable_pagination", Allowed("false")),
    ("context_protection.estimator", Allowed("\"chars4\"")),
    ("context_protection.endpoints", Table),
    ("context_protection.endpoints.*", Table),
    ("context_protection.endpoints.*.page_size", Allowed("20")),
    ("context_protection.endpoints.*.threshold", Allowed("3000")),
    ("context_protection.endpoints.*.hard_cap", Allowed("3000")),
    ("context_protection.endpoints.*.summarization_enabled", Allowed("false")),
    ("context_protection.endpoints.*.pagination_enabled", Allowed("false")),
    ("context_protection.endpoints.*.exempt", Allowed("true")),
    ("rate_limit", Table),
    ("rate_limit.requests", Allowed("15")),
    ("rate_limit.per", Allowed("\"1s\"")),
    ("telemetry", Table),
    ("telemetry.ring", Allowed("10")),
    ("telemetry.otlp_endpoint", NeedsTrust("\"https://a.example\"")),
    ("telemetry.allow_insecure", NeedsTrust("true")),
    // The file is written by every call.
    ("audit", Table),
    ("audit.path", NeedsTrust("\"audit.jsonl\"")),
    // Only a named or trusted file may send records to a model, or read one.
    ("embedding", Table),
    ("embedding.provider", NeedsTrust("\"local\"")),
    ("embedding.url", NeedsTrust("\"https://a.example\"")),
    ("embedding.model", NeedsTrust("\"small\"")),
    ("embedding.background", NeedsTrust("true")),
    ("embedding.query_timeout", NeedsTrust("\"1s\"")),
    ("embedding.api_key", NeedsTrust("\"env:KEY\"")),
    ("embedding.dimensions", NeedsTrust("384")),
    ("embedding.path", NeedsTrust("\"model\"")),
    ("embedding.pad_to", NeedsTrust("1024")),
    ("embedding.vector_memory", NeedsTrust("256")),
    ("embedding.allow_insecure", NeedsTrust("true")),
    ("http", Table),
    ("http.max_connections", Allowed("10")),
    ("http.max_connections_per_address", Allowed("10")),
    ("http.write_timeout", Allowed("\"3s\"")),
    ("http.calls_per_caller", Allowed("10")),
    ("http.trusted_proxies", NeedsTrust("[\"10.0.0.1\"]")),
    ("http.allow_unauthenticated_proxy", NeedsTrust("true")),
    ("http.allowed_hosts", NeedsTrust("[\"a.example\"]")),
    ("http.allowed_origins", NeedsTrust("[]")),
    // A reranker gets queries and passages of records.
    ("rerank", Table),
    ("rerank.provider", NeedsTrust("\"local\"")),
    ("rerank.url", NeedsTrust("\"https://a.example\"")),
    ("rerank.model", NeedsTrust("\"small\"")),
    ("rerank.api_key", NeedsTrust("\"env:KEY\"")),
    ("rerank.path", NeedsTrust("\"model\"")),
    ("rerank.timeout", NeedsTrust("\"1s\"")),
    ("rerank.allow_insecure", NeedsTrust("true")),
    // A file that was only found imports nothing.
    ("import", Table),
    ("import[].path", NeedsTrust("\"notes\"")),
    ("import[].kind", NeedsTrust("\"csv\"")),
    ("import[].connection", NeedsTrust("\"notes\"")),
    ("import[].name", NeedsTrust("\"Notes\"")),
    ("import[].source", NeedsTrust("\"work\"")),
    ("import[].every", NeedsTrust("\"5m\"")),
    ("import[].watch", NeedsTrust("true")),
    ("import[].stream", NeedsTrust("\"notes\"")),
    ("import[].key", NeedsTrust("[\"id\"]")),
    ("import[].title", NeedsTrust("\"subject\"")),
    ("import[].time", NeedsTrust("\"sent_at\"")),
    ("import[].url", NeedsTrust("\"link\"")),
    ("import[].ocr", NeedsTrust("true")),
    ("import[].ocr_languages", NeedsTrust("[\"eng\"]")),
    ("tls", Table),
    ("tls.certificate", NeedsTrust("\"cert.pem\"")),
    ("tls.key", NeedsTrust("\"key.pem\"")),
    ("auth", Table),
    ("auth.issuer", NeedsTrust("\"https://a.example\"")),
    ("auth.jwks_url", NeedsTrust("\"https://a.example\"")),
    ("auth.algorithms", NeedsTrust("[\"ES256\"]")),
    ("auth.audience", NeedsTrust("[\"a\"]")),
    ("auth.scopes", NeedsTrust("[\"a\"]")),
    // No key of the tables below is allowed.
    ("auth.introspection", NeedsTrust("{url = \"https://a.example\"}")),
    ("auth.pages", NeedsTrust("{ client_id = \"pages\" }")),
    ("auth.token", NeedsTrust("[{name = \"a\"}]")),
    ("auth.subject", NeedsTrust("[{subject = \"a\"}]")),
];

/// Returns the text of a file that has only one key.
pub(super) fn with_key(path: &str, value: &str) -> String {
    let (table, key) = path.rsplit_once('.').unwrap_or(("", path));
    format!("{}{key} = {value}\n", header(table))
}

fn header(table: &str) -> String {
    let table = table.replace('*', "\"/a\"");
    if let Some((list, table)) = table.split_once("[].") {
        return format!("[[{list}]]\n[{list}.{table}]\n");
    }
    match (table.as_str(), table.strip_suffix("[]")) {
        ("", _) => String::new(),
        (_, Some(list)) => format!("[[{list}]]\n"),
        (table, None) => format!("[{table}]\n"),
    }
}

/// Returns the keys of a table, as the error for an unknown key lists them.
fn known_keys(table: &str) -> BTreeSet<String> {
    let refused = check_text(&format!("{}no_such_key = 1\n", header(table)), Path::new("f.toml"));
    let refused = refused.unwrap_err().to_string();
    let (_, listed) =
        refused.split_once("; the keys of this table are ").unwrap_or_else(|| panic!("{table}: {refused}"));
    listed.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_key_has_a_decision() {
    // A list of tables has the keys of its items, and `endpoints` accepts any key.
    let tables = KEYS.iter().filter(|(_, decision)| *decision == Table).map(|(path, _)| match *path {
        "source" => "source[]",
        "import" => "import[]",
        path => path,
    });
    for table in [""].into_iter().chain(tables).filter(|table| *table != "context_protection.endpoints") {
        let prefix = if table.is_empty() { String::new() } else { format!("{table}.") };
        let decided = KEYS.iter().map(|(path, _)| *path);
        let decided: BTreeSet<String> = decided
            .filter_map(|path| path.strip_prefix(&prefix))
            .filter(|key| !key.contains(['.', '[', '*']))
            .map(str::to_owned)
            .collect();
        assert_eq!(known_keys(table), decided, "the keys of [{table}] against the rows above");
    }
}

#[test]
fn a_found_file_may_have_the_allowed_keys_only() {
    for (path, decision) in KEYS {
        let (value, needs_trust) = match decision {
            Allowed(value) => (value, false),
            NeedsTrust(value) => (value, true),
            Table => continue,
        };
        let text = with_key(path, value);
        let keys = restricted_keys(&text, Path::new("f.toml")).unwrap();
        assert_eq!(!keys.is_empty(), needs_trust, "{text}{keys:?}");
        if let Some(first) = keys.first() {
            let key = first.key.replace("[0]", "[]");
            assert!(key.starts_with(path), "{text}{key}");
            assert_eq!(text.lines().nth(first.line - 1).unwrap().split(' ').next(), path.rsplit('.').next());
        }
    }
}

#[test]
fn unknown_keys_require_trust() {
    for (text, key) in [
        ("new = 1\n", "new"),
        ("new = {}\n", "new"),
        ("[new]\n", "new"),
        ("[http]\nnew = 1\n", "http.new"),
        ("[[source]]\nnew = []\n", "source[0].new"),
        ("[[source]]\n[source.name]\nnew = 1\n", "source[0].name.new"),
        ("[context_protection.endpoints.\"/a\"]\nnew = 1\n", "context_protection.endpoints.\"/a\".new"),
        ("[tls]\n", "tls"),
        ("auth = {}\n", "auth"),
    ] {
        let keys = restricted_keys(text, Path::new("f.toml")).unwrap();
        assert_eq!(keys.iter().map(|key| key.key.as_str()).collect::<Vec<_>>(), [key], "{text}");
    }
    for empty in ["", "# nothing\n", "[http]\n", "source = []\n", "[context_protection.endpoints]\n"] {
        assert_eq!(restricted_keys(empty, Path::new("f.toml")).unwrap(), [], "{empty}");
    }
    let yaml = "source:\n  - name: a\n    credential: 'command:true'\n";
    assert_eq!(restricted_keys(yaml, Path::new("f.yaml")).unwrap()[0].key, "source[0].credential");
}
