//! Mistakes in the keys of MCP servers. Each is named with the line of its key, and with the remedy.

use std::path::Path;

use crate::config::{SourcePlace, check_text};

/// Lines of a source from line 3 on, with `URL` for the location of a server, and the beginning of the error.
const MISTAKES: &[(&str, &str)] = &[
    ("URL\ncommand = ['a']", "4: source[0].command: source `a`: mcp and command are two servers"),
    ("URL\nenv = { A = 'b' }", "4: source[0].env: source `a`: env is for a server that is started"),
    ("URL\nstore = 'a.db'", "4: source[0].store: source `a`: this is another source"),
    ("URL\nurl = 'https://b.example'", "4: source[0].url: source `a`: this is another source"),
    ("URL\ncache_root = 'x'", "4: source[0].cache_root: source `a`: this is for the credential"),
    ("URL\nmax_lag = '3s'", "4: source[0].max_lag: source `a`: this is for a store in a database"),
    (
        "command = ['a']\nstreams = ['items']",
        "4: source[0].streams: source `a`: an MCP server has one stream, so there is none to choose; remove",
    ),
    ("command = [' ']", "3: source[0].command: source `a`: command is empty"),
    (
        "command = ['a']\nallow_insecure = true",
        "4: source[0].allow_insecure: source `a`: allow_insecure is for a server behind a URL",
    ),
    ("mcp = 'http://a.example/mcp'", "3: source[0].mcp: source `a`: over http the credential"),
    ("mcp = 'http://x.localhost/mcp'", "3: source[0].mcp: source `a`: over http the credential"),
    ("URL\n\npreset = 'x'", "5: source[0].preset: source `a`: there is no preset of this name"),
    ("URL\nclient_name = ''", "4: source[0].client_name: source `a`: client_name is a name"),
    (
        "URL\ncredential = 'pdpp-cache'",
        "4: source[0].credential: source `a`: the credential \"pdpp-cache\" is for record servers",
    ),
    (
        "URL\noauth = { client_id = 'x', client_secret = 's3cret' }",
        "4: source[0].oauth.client_secret: the secret must be \"env:NAME\" or \"file:PATH\"",
    ),
    (
        "URL\ncredential = 'env:A'\n[source.oauth]\nclient_id = 'x'",
        "5: source[0].oauth: source `a`: oauth is for a sign-in",
    ),
    (
        "URL\n[source.headers]\nX-Key = 'a'\nContent-Length = '5'",
        "6: source[0].headers.Content-Length: source `a`: the protocol or the connection sets this header itself; remove it",
    ),
    (
        "URL\nheaders = { mcp-session-id = 'a' }",
        "4: source[0].headers.mcp-session-id: source `a`: the protocol or the connection sets",
    ),
    (
        "URL\nheaders = { 'a b' = 'a' }",
        "4: source[0].headers.\"a b\": source `a`: this is not the name of a header",
    ),
    (
        "URL\ncredential = 'env:A'\nheaders = { Authorization = 'env:B' }",
        "5: source[0].headers.Authorization: source `a`: a credential and a sign-in send this header; remove",
    ),
    (
        "URL\nheaders = { authorization = 'env:B' }\noauth = { client_id = 'x' }",
        "4: source[0].headers.authorization: source `a`: a credential and a sign-in send this header",
    ),
];

/// Lines of a mapping from line 6 on, after `tool = "find"` of `[source.search]`, and the beginning of the error.
const MAPPINGS: &[(&str, &str)] = &[
    ("[source.fetch]\nid = 'x'", "6: source[0].fetch.tool: source `a`: fetch needs tool"),
    (
        "cursor = 'c'\npage = 'p'",
        "6: source[0].search.cursor: source `a`: cursor is for a tool with positions",
    ),
    ("page = 'p'\nnext = '/n'", "7: source[0].search.next: source `a`: next is for a tool with positions"),
    (
        "query = 'q'\nlimit = 'q'",
        "7: source[0].search.limit: source `a`: query and limit are the same argument `q`",
    ),
    (
        "query = 'q'\n[source.search.arguments]\na = 1\nq = 'x'",
        "9: source[0].search.arguments.q: source `a`: `q` is the argument of query",
    ),
    (
        "[source.fetch]\ntool = 'get'\nid = 'x'\narguments = { x = 1 }",
        "9: source[0].fetch.arguments.x: source `a`: `x` is the argument of id",
    ),
    ("arguments = { a = inf }", "6: source[0].search.arguments.a: expected a finite number"),
    ("arguments = { a = [1, -nan] }", "6: source[0].search.arguments.a[1]: expected a finite number"),
    ("line = '{id} {title} ({id})'", "6: source[0].search.line: `{id}` occurs twice"),
];

#[test]
fn mistakes_are_named_with_the_line_of_the_key() {
    let url = "mcp = 'https://a.example/mcp'";
    let plain = MISTAKES.iter().map(|(lines, expect)| (lines.replace("URL", url), *expect));
    let mapped = MAPPINGS
        .iter()
        .map(|(lines, expect)| (format!("{url}\n[source.search]\ntool = 'find'\n{lines}"), *expect));
    for (lines, expect) in plain.chain(mapped) {
        let text = format!("[[source]]\nname = 'a'\n{lines}\n");
        let problem = check_text(&text, Path::new("c.toml")).unwrap_err().to_string();
        assert!(problem.starts_with(&format!("c.toml:{expect}")), "{text}{problem}");
        assert!(!problem.contains("s3cret"), "{problem}");
    }
}

#[test]
fn headers_of_the_connection_are_refused() {
    let check = |name: &str| {
        let url = "mcp = 'https://a.example/mcp'";
        let text = format!("[[source]]\nname = 'a'\n{url}\nheaders = {{ {name} = 'x' }}\n");
        check_text(&text, Path::new("c.toml")).map(drop).map_err(|problem| problem.to_string())
    };
    for name in [
        "Origin",
        "upgrade",
        "Connection",
        "Proxy-Authorization",
        "proxy-connection",
        "Sec-Fetch-Site",
        "TE",
        "Trailer",
        "Expect",
        "Keep-Alive",
        "Accept-Encoding",
    ] {
        let problem = check(name).unwrap_err();
        assert!(problem.contains(&format!("c.toml:4: source[0].headers.{name}: ")), "{problem}");
        assert!(problem.contains("the protocol or the connection sets this header itself"), "{problem}");
    }
    for name in ["Cookie", "X-Api-Key", "X-Proxy-Key", "User-Agent"] {
        check(name).unwrap();
    }
}

#[test]
fn keys_that_go_together_are_accepted() {
    let text = "state_dir = \"state\"\n[[source]]\nname = \"a\"\nmcp = \"http://127.0.0.1:1/mcp\"\n\
                headers = { Authorization = \"env:B\", X-Org = \"acme\" }\n\
                search = { tool = \"find\", query = \"q\", cursor = \"c\", limit = \"n\", arguments = { n = 5, x = 1.5 } }\n";
    let settings = check_text(text, Path::new("/etc/c.toml")).unwrap();
    let SourcePlace::Mcp(server) = &settings.sources[0].place else { panic!("{settings:?}") };
    // Sign-ins are in the state directory of the configuration.
    assert_eq!(server.state_dir, Some("/etc/state".into()));
}
