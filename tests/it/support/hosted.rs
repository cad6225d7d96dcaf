//! A server for many callers, with fake authorization and record servers.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{FakeServer, HttpServer, Reply, Request, import_records, post, text};

pub(crate) const ANN: &str = "fwt_annannannannannannannannannannannannannanna";
pub(crate) const BOB: &str = "fwt_bobbobbobbobbobbobbobbobbobbobbobbobbobbobb";
pub(crate) const CAROL: &str = "fwt_carolcarolcarolcarolcarolcarolcarolcarolcar";

/// The number of letters of each caller.
pub(crate) const ANNS: usize = 60;
pub(crate) const BOBS: usize = 45;

/// The public URL of the server.
pub(crate) const PUBLIC: &str = "http://localhost:7400";

/// A folder with the files of a server: a store for Ann, one for Bob, and a configuration.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        // The callers have different numbers of letters, so that a wrong store is noticed.
        for (who, letters) in [("ann", ANNS), ("bob", BOBS)] {
            let lines: String = (0..letters)
                .map(|number| {
                    let data = json!({"subject": format!("{who} letter {number}"), "secret": format!("only for {who}")});
                    let key = format!("{who}{number:02}");
                    json!({"stream": "letters", "key": key, "data": data}).to_string() + "\n"
                })
                .collect();
            import_records(&place.path(&format!("{who}.db")), &format!("cin_{who}"), &lines);
        }
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn configure(&self, text: &str) -> PathBuf {
        let file = self.path("fetchwell.toml");
        fs::write(&file, text).unwrap();
        file
    }

    /// Writes a configuration with a static token for each of the two.
    pub(crate) fn of_two(&self) -> PathBuf {
        self.configure(&format!("{HEAD}{}{}{STORES}", token("ann", ANN), token("bob", BOB)))
    }
}

pub(crate) const HEAD: &str = "public_url = \"http://localhost:7400\"\n";

pub(crate) const STORES: &str =
    "[[source]]\nname = \"ann\"\nstore = \"ann.db\"\n[[source]]\nname = \"bob\"\nstore = \"bob.db\"\n";

pub(crate) fn token(name: &str, token: &str) -> String {
    let digest: String = Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("[[auth.token]]\nname = \"{name}\"\nsha256 = \"{digest}\"\nsources = [\"{name}\"]\n")
}

/// Returns the tables of two stores with three tokens. Ann, an administrator, and Bob read the store `shared`, and Carol, an
/// administrator, the store `other`.
pub(crate) fn administered() -> String {
    let grant = |name: &str, secret: &str, source: &str, admin: &str| {
        token(name, secret).replace(&format!("[\"{name}\"]"), &format!("[\"{source}\"]")) + admin
    };
    let tokens = [
        grant("ann", ANN, "shared", "admin = true\n"),
        grant("bob", BOB, "shared", ""),
        grant("carol", CAROL, "other", "admin = true\n"),
    ];
    let sources =
        ["shared", "other"].map(|name| format!("[[source]]\nname = \"{name}\"\nstore = \"{name}.db\"\n"));
    tokens.concat() + &sources.concat()
}

pub(crate) fn start(file: &Path) -> HttpServer {
    HttpServer::start(["--config", text(file)])
}

pub(crate) fn bearer(token: &str) -> String {
    format!("authorization: Bearer {token}")
}

/// Returns the payload of a tool over `/mcp`, or its error.
pub(crate) fn call(server: &HttpServer, token: &str, tool: &str, arguments: &Value) -> Value {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
    let answer = post(&server.address, "/mcp", &[&bearer(token)], &message.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["result"]["structuredContent"].clone()
}

/// Starts an authorization server for introspection that knows tokens by their names.
pub(crate) fn authorization_server() -> FakeServer {
    FakeServer::start(introspected)
}

/// Returns its reply to an introspection request.
pub(crate) fn introspected(request: &Request) -> Reply {
    let token = request.body.split('&').find_map(|pair| pair.strip_prefix("token=")).unwrap_or_default();
    let grant = |sub: &str, grant: &str| {
        json!({"active": true, "sub": sub, "client_id": "c", "aud": format!("{PUBLIC}/mcp"), "grant_id": grant,
                "exp": 4_000_000_000_u64, "scope": "records"})
    };
    let mut claims = match token {
        "no-answer" => return Reply::Reset,
        "ann-1" | "ann-2" | "ann-owner" | "ann-elsewhere" | "ann-old" | "ann-package" | "ann-bound"
        | "ann-identity" => grant("ann", "g1"),
        "ann-narrow" | "ann-browser" => grant("ann", "g2"),
        "carol-browser" => grant("carol", "g4"),
        "bob-1" | "bob-browser" => grant("bob", "g3"),
        "dave-browser" => grant("dave", "g5"),
        "ann-north" | "ann-south" => grant("ann", "g1"),
        _ => json!({"active": false}),
    };
    match token {
        "ann-owner" => claims["pdpp_token_kind"] = "owner".into(),
        "ann-north" => claims["tenant"] = "north".into(),
        "ann-south" => claims["tenant"] = "south".into(),
        "ann-bound" => claims["cnf"] = json!({"jkt": "x"}),
        "ann-identity" => claims["nonce"] = "n".into(),
        "ann-package" => claims["pdpp_token_kind"] = "mcp_package".into(),
        "ann-elsewhere" => claims["aud"] = "https://elsewhere.example/mcp".into(),
        "dave-browser" => claims["aud"] = "https://elsewhere.example/mcp".into(),
        "ann-old" => claims["exp"] = 1_000_000_000.into(),
        _ => {}
    }
    Reply::Json(200, claims.to_string())
}

/// Starts a record server that shows each token its own record.
pub(crate) fn record_server() -> FakeServer {
    FakeServer::start(|request: &Request| {
        let token = request.authorization.clone().unwrap_or_default().replace("Bearer ", "");
        if request.line.starts_with("GET /v1/search") {
            let hit = json!({"id": format!("of-{token}"), "stream": "mail", "title": format!("Mail of {token}"),
                "connection_id": "conn_1", "snippet": {"text": "x"}});
            return Reply::Json(200, json!({"results": [hit], "has_more": false}).to_string());
        }
        if request.line.starts_with("GET /v1/schema") {
            let connection = json!({"connection_id": "conn_1", "display_name": "Mail"});
            let stream = json!({"name": "mail", "granted_connections": [connection]});
            let connector = json!({"object": "connector", "connector_key": "mail", "streams": [stream]});
            return Reply::Json(200, json!({"object": "schema", "connectors": [connector]}).to_string());
        }
        let error =
            json!({"error": {"type": "not_found_error", "code": "not_found", "message": "there is none"}});
        Reply::Json(404, error.to_string())
    })
}

pub(crate) fn with_authorization_server(asked: &FakeServer, more: &str) -> String {
    format!(
        "{HEAD}[auth.introspection]\nurl = \"{}/introspect\"\nclient_id = \"fetchwell\"\nclient_secret = \"file:secret\"\n{more}",
        asked.url
    )
}
