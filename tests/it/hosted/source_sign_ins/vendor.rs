//! A fake MCP server with its authorization server. It shows each person their own notes.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use url::Url;

use crate::support::hosted::PUBLIC;
use crate::support::{FakeServer, Reply, Request, mcp_reply, mcp_tool};

/// The redirect URI of sign-ins.
pub(crate) const CALLBACK: &str = "/sources/signed-in";

/// Number of notes of a person.
pub(crate) const NOTES: usize = 3;

pub(crate) struct Vendor {
    pub(crate) server: FakeServer,
    state: Arc<Mutex<State>>,
    /// True while the token endpoint does not answer.
    pub(crate) holds_tokens: Arc<AtomicBool>,
}

struct State {
    url: String,
    /// Issued authorization codes with the person and the parameters of the request. Each can be used once.
    codes: HashMap<String, (String, BTreeMap<String, String>)>,
    /// Access tokens with their person and expiry.
    access: HashMap<String, (String, Instant)>,
    /// Refresh tokens with their person. Each can be used once.
    refresh: HashMap<String, String>,
    /// Number of issued tokens.
    count: usize,
    lifetime: Duration,
    refreshes: usize,
}

impl Vendor {
    /// Starts a server whose access tokens live as long.
    pub(crate) fn start(lifetime: Duration) -> Self {
        let state = Arc::new(Mutex::new(State {
            url: String::new(),
            codes: HashMap::new(),
            access: HashMap::new(),
            refresh: HashMap::new(),
            count: 0,
            lifetime,
            refreshes: 0,
        }));
        let holds_tokens = Arc::new(AtomicBool::new(false));
        let is_held = Arc::clone(&holds_tokens);
        let shared = Arc::clone(&state);
        let server = FakeServer::start(move |request: &Request| {
            while request.line == "POST /token" && is_held.load(Ordering::SeqCst) {
                std::thread::park_timeout(Duration::from_millis(5));
            }
            shared.lock().unwrap().answer(request)
        });
        state.lock().unwrap().url.clone_from(&server.url);
        Self { server, state, holds_tokens }
    }

    /// Returns the table of a source that each caller signs in to.
    pub(crate) fn source(&self, name: &str) -> String {
        format!("[[source]]\nname = \"{name}\"\nmcp = \"{}/mcp\"\ncredential = \"caller\"\n", self.server.url)
    }

    /// Signs a person in as the authorization endpoint does, and returns the path that the browser is redirected to.
    pub(crate) fn approve(&self, location: &str, person: &str) -> String {
        let asked = query(location);
        let mut state = self.state.lock().unwrap();
        let code = format!("code-{person}-{}", state.count);
        state.count += 1;
        let iss = utf8_percent_encode(&self.server.url, NON_ALPHANUMERIC);
        let back = format!("{}?code={code}&state={}&iss={iss}", asked["redirect_uri"], asked["state"]);
        state.codes.insert(code, (person.to_owned(), asked));
        back.strip_prefix(PUBLIC).unwrap().to_owned()
    }

    /// Revokes all tokens.
    pub(crate) fn revoke_all(&self) {
        let mut state = self.state.lock().unwrap();
        state.access.clear();
        state.refresh.clear();
    }

    pub(crate) fn refreshes(&self) -> usize {
        self.state.lock().unwrap().refreshes
    }

    /// Returns the number of requests with this method and path.
    pub(crate) fn requests(&self, line: &str) -> usize {
        self.server.requests().iter().filter(|request| request.line == line).count()
    }

    /// Returns the number of sessions that were opened.
    pub(crate) fn sessions(&self) -> usize {
        let is_start =
            |request: &Request| request.body.contains("\"initialize\"") && request.authorization.is_some();
        self.server.requests().into_iter().filter(is_start).count()
    }
}

/// Returns the parameters of a URL.
pub(crate) fn query(url: &str) -> BTreeMap<String, String> {
    let url: Url = url.parse().unwrap_or_else(|error| panic!("{url}: {error}"));
    url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

impl State {
    fn answer(&mut self, request: &Request) -> Reply {
        let json = |status: u16, body: Value| Reply::Json(status, body.to_string());
        let url = self.url.clone();
        match request.line.as_str() {
            "POST /mcp" => self.mcp(request),
            "GET /.well-known/oauth-protected-resource/mcp" => {
                json(200, json!({"resource": format!("{url}/mcp"), "authorization_servers": [url]}))
            }
            "GET /.well-known/oauth-authorization-server" => json(
                200,
                json!({
                    "issuer": url,
                    "authorization_endpoint": format!("{url}/authorize"),
                    "token_endpoint": format!("{url}/token"),
                    "registration_endpoint": format!("{url}/register"),
                    "code_challenge_methods_supported": ["S256"],
                    "authorization_response_iss_parameter_supported": true,
                }),
            ),
            "POST /register" => json(201, json!({"client_id": "fetchwell-1", "redirect_uris": []})),
            "POST /token" => self.exchange(request),
            "GET /mcp" => json(405, json!({})),
            "DELETE /mcp" => json(200, json!({})),
            _ => json(404, json!({})),
        }
    }

    fn exchange(&mut self, request: &Request) -> Reply {
        let form = query(&format!("http://form/?{}", request.body));
        let refused = Reply::Json(400, json!({"error": "invalid_grant"}).to_string());
        let person = if form["grant_type"] == "refresh_token" {
            self.refreshes += 1;
            self.refresh.remove(&form["refresh_token"])
        } else {
            let code = form.get("code").and_then(|code| self.codes.remove(code));
            let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&form["code_verifier"]));
            code.filter(|(_, asked)| {
                asked["code_challenge"] == challenge
                    && asked["redirect_uri"] == form["redirect_uri"]
                    && asked["resource"] == form["resource"]
            })
            .map(|(person, _)| person)
        };
        let Some(person) = person else { return refused };
        self.count += 1;
        let [access, refresh] =
            ["access", "refresh"].map(|kind| format!("sekret-{kind}-{person}-{}", self.count));
        // Refreshed tokens live on for the calls that are on their way.
        let expiry = Instant::now() + self.lifetime * 2;
        self.access.insert(access.clone(), (person.clone(), expiry));
        self.refresh.insert(refresh.clone(), person);
        let tokens = json!({"access_token": access, "token_type": "Bearer", "refresh_token": refresh,
            "expires_in": self.lifetime.as_secs()});
        Reply::Json(200, tokens.to_string())
    }

    fn mcp(&mut self, request: &Request) -> Reply {
        let token = request.authorization.as_deref().and_then(|header| header.strip_prefix("Bearer "));
        let now = Instant::now();
        self.access.retain(|_, (_, expiry)| now < *expiry);
        let Some((person, _)) = token.and_then(|token| self.access.get(token)) else {
            let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", self.url);
            let challenge = format!("Bearer resource_metadata=\"{metadata}\"");
            return Reply::Full(401, vec![("www-authenticate", challenge)], String::new());
        };
        mcp_reply(request, &|method, params| match method {
            "tools/list" => json!({"tools": [mcp_tool("search", &["query"]), mcp_tool("fetch", &["id"])]}),
            _ => called(person, params),
        })
    }
}

/// Returns the result of a tool for a person.
fn called(person: &str, call: &Value) -> Value {
    let url = |id: &str| format!("https://notes.example/{id}");
    let content = if call["name"] == "search" {
        let hit = |number: usize| {
            let id = format!("{person}-{number}");
            json!({"id": id, "title": format!("Note {number} of {person}"), "url": url(&id)})
        };
        json!({"results": (1..=NOTES).map(hit).collect::<Vec<Value>>()})
    } else {
        let id = call["arguments"]["id"].as_str().unwrap();
        if !id.starts_with(&format!("{person}-")) {
            return json!({"content": [{"type": "text", "text": "there is no such note"}], "isError": true});
        }
        json!({"id": id, "title": "Note", "text": format!("Only for {person}."), "url": url(id)})
    };
    json!({"content": [{"type": "text", "text": content.to_string()}], "structuredContent": content})
}
