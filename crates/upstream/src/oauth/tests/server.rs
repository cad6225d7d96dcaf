//! An MCP server and its authorization server on two ports of this machine.
//!
//! The MCP server answers 401; the authorization server has its metadata at the URL with the path inserted (RFC 8414, 3.1),
//! rotates refresh tokens, and revokes all tokens of a sign-in when one is used twice.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use url::{Url, form_urlencoded};

/// Behaviour of the servers, which differs between real ones.
pub(super) struct Behaviour {
    /// Status of the MCP server for a GET: 401 with the challenge, 405, or 200 with a stream that does not end.
    pub(super) get_status: u16,
    /// Status of the MCP server for a POST.
    pub(super) post_status: u16,
    /// True if the challenge names the resource metadata.
    pub(super) names_metadata: bool,
    /// Path of the resource metadata, if there is any.
    pub(super) resource_metadata: Option<&'static str>,
    /// True if the authorization server publishes metadata.
    pub(super) has_metadata: bool,
    /// Members that replace those of the metadata.
    pub(super) metadata: Value,
    /// Status of a registration, and the secret of the client.
    pub(super) registration: u16,
    pub(super) client_secret: Option<&'static str>,
    /// Lifetime of access tokens in seconds.
    pub(super) expires_in: Option<u64>,
    /// Time before the token endpoint answers.
    pub(super) delay: Duration,
    /// A fixed response of the token endpoint.
    pub(super) token_response: Option<(u16, String)>,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            get_status: 401,
            post_status: 401,
            names_metadata: true,
            resource_metadata: Some("/.well-known/oauth-protected-resource/mcp"),
            has_metadata: true,
            metadata: json!({}),
            registration: 201,
            client_secret: None,
            expires_in: Some(3600),
            delay: Duration::ZERO,
            token_response: None,
        }
    }
}

/// A request that was received.
#[derive(Debug, Clone)]
pub(super) struct Received {
    /// Method and path.
    pub(super) line: String,
    pub(super) authorization: Option<String>,
    /// Fields of a form.
    pub(super) form: BTreeMap<String, String>,
    pub(super) body: String,
}

#[derive(Default)]
struct State {
    behaviour: Behaviour,
    mcp_origin: String,
    issuer: String,
    requests: Vec<Received>,
    /// Parameters of the authorization requests by code.
    codes: HashMap<String, BTreeMap<String, String>>,
    /// Valid refresh tokens, those that were used, and the number of tokens.
    refresh_tokens: HashSet<String>,
    used: HashSet<String>,
    count: u32,
}

/// The two servers. They end with the runtime of the test.
pub(super) struct Servers {
    /// URL of the MCP server.
    pub(super) mcp: String,
    /// Issuer of the authorization server.
    pub(super) issuer: String,
    state: Arc<Mutex<State>>,
}

impl Servers {
    pub(super) async fn start(behaviour: Behaviour) -> Self {
        let state = Arc::new(Mutex::new(State { behaviour, ..State::default() }));
        let (mcp_origin, login) = (listen(Arc::clone(&state)).await, listen(Arc::clone(&state)).await);
        let issuer = format!("{login}/tenant");
        {
            let mut state = state.lock();
            state.mcp_origin.clone_from(&mcp_origin);
            state.issuer.clone_from(&issuer);
        }
        Self { mcp: format!("{mcp_origin}/mcp"), issuer, state }
    }

    /// Changes the behaviour.
    pub(super) fn change(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.state.lock().behaviour);
    }

    /// Returns the requests with this method and path.
    pub(super) fn requests(&self, line: &str) -> Vec<Received> {
        let state = self.state.lock();
        state.requests.iter().filter(|request| request.line == line).cloned().collect()
    }

    /// Returns the requests for a refresh.
    pub(super) fn refreshes(&self) -> Vec<Received> {
        let mut requests = self.requests("POST /tenant/token");
        requests.retain(|request| request.form["grant_type"] == "refresh_token");
        requests
    }

    /// Consents to an authorization request, and returns the URL that the browser is sent back to.
    pub(super) fn consent(&self, url: &Url) -> String {
        let parameters: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
        let mut state = self.state.lock();
        state.count += 1;
        let code = format!("code-{}", state.count);
        let mut back: Url = parameters["redirect_uri"].parse().unwrap();
        back.query_pairs_mut().append_pair("code", &code).append_pair("state", &parameters["state"]);
        if let Some(issuer) = state.metadata_issuer() {
            back.query_pairs_mut().append_pair("iss", &issuer);
        }
        state.codes.insert(code, parameters);
        back.into()
    }

    /// Returns true if a token is the latest one that was issued.
    pub(super) fn is_latest(&self, access_token: &str) -> bool {
        access_token == format!("sekret-access-{}", self.state.lock().count)
    }
}

/// Response with its status, headers and body.
struct Response(u16, Vec<String>, String);

impl State {
    fn respond(&mut self, request: &Received) -> Response {
        let Behaviour { get_status, post_status, resource_metadata, has_metadata, .. } = self.behaviour;
        let json = |status: u16, body: &Value| Response(status, Vec::new(), body.to_string());
        match request.line.as_str() {
            "GET /mcp" if get_status == 200 => Response(200, Vec::new(), String::new()),
            "GET /mcp" => Response(get_status, self.challenge(get_status), String::new()),
            "POST /mcp" => Response(post_status, self.challenge(post_status), "{}".to_owned()),
            line if resource_metadata.is_some_and(|path| line == format!("GET {path}")) => json(
                200,
                &json!({
                    "resource": format!("{}/mcp", self.mcp_origin),
                    "authorization_servers": [self.issuer],
                    "scopes_supported": ["everything"],
                }),
            ),
            "GET /.well-known/oauth-authorization-server/tenant" if has_metadata => {
                json(200, &self.metadata())
            }
            "GET /.well-known/oauth-authorization-server" if has_metadata && resource_metadata.is_none() => {
                json(200, &self.metadata())
            }
            "POST /tenant/register" | "POST /register" => self.register(),
            "POST /tenant/token" | "POST /token" => self.exchange(request),
            _ => Response(404, Vec::new(), "<html>".to_owned()),
        }
    }

    fn challenge(&self, status: u16) -> Vec<String> {
        let metadata = format!(
            ", resource_metadata=\"{}{}\"",
            self.mcp_origin,
            self.behaviour.resource_metadata.unwrap_or_default()
        );
        let metadata = if self.behaviour.names_metadata { metadata } else { String::new() };
        let challenge = format!("WWW-Authenticate: Bearer scope=\"read write\"{metadata}");
        if status == 401 {
            vec!["WWW-Authenticate: Basic realm=\"x\"".to_owned(), challenge]
        } else {
            Vec::new()
        }
    }

    /// Returns the issuer in the metadata. A server without resource metadata is its own authorization server.
    fn metadata_issuer(&self) -> Option<String> {
        let Behaviour { resource_metadata, has_metadata, .. } = &self.behaviour;
        let issuer = if resource_metadata.is_some() { &self.issuer } else { &self.mcp_origin };
        has_metadata.then(|| issuer.clone())
    }

    fn metadata(&self) -> Value {
        let issuer = &self.issuer;
        let mut metadata = json!({
            "issuer": self.metadata_issuer(),
            "authorization_endpoint": format!("{issuer}/authorize?tenant=a"),
            "token_endpoint": format!("{issuer}/token"),
            "registration_endpoint": format!("{issuer}/register"),
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
        });
        let changes = self.behaviour.metadata.as_object().unwrap().clone();
        metadata.as_object_mut().unwrap().extend(changes);
        metadata.as_object_mut().unwrap().retain(|_name, value| !value.is_null());
        metadata
    }

    fn register(&self) -> Response {
        let Behaviour { registration, client_secret, .. } = self.behaviour;
        let mut body = json!({"client_id": "registered", "redirect_uris": []});
        if let Some(secret) = client_secret {
            body["client_secret"] = secret.into();
        }
        let error = json!({"error": "invalid_redirect_uri", "error_description": "sekret"});
        let body = if registration == 201 { body } else { error };
        Response(registration, Vec::new(), body.to_string())
    }

    fn exchange(&mut self, request: &Received) -> Response {
        if let Some((status, body)) = &self.behaviour.token_response {
            return Response(*status, Vec::new(), body.clone());
        }
        let refused = |error: &str| {
            let body = json!({"error": error, "error_description": "sekret"}).to_string();
            Response(400, Vec::new(), body)
        };
        let form = &request.form;
        let secret = self.behaviour.client_secret;
        let is_client = match secret {
            None => form.contains_key("client_id") && request.authorization.is_none(),
            Some(secret) => {
                let pair = STANDARD.encode(format!("registered:{secret}"));
                request.authorization.as_deref() == Some(&format!("Basic {pair}"))
            }
        };
        if !is_client {
            return refused("invalid_client");
        }
        if form["resource"] != format!("{}/mcp", self.mcp_origin) {
            return refused("invalid_target");
        }
        let is_granted = match form["grant_type"].as_str() {
            "authorization_code" => self.take_code(form),
            _ => self.take_refresh_token(&form["refresh_token"]),
        };
        if is_granted { self.issue() } else { refused("invalid_grant") }
    }

    fn take_code(&mut self, form: &BTreeMap<String, String>) -> bool {
        let Some(asked) = self.codes.remove(&form["code"]) else { return false };
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&form["code_verifier"]));
        asked["code_challenge"] == challenge
            && asked["code_challenge_method"] == "S256"
            && asked["redirect_uri"] == form["redirect_uri"]
            && asked["resource"] == form["resource"]
    }

    /// Takes a refresh token. One that was used before revokes all others.
    fn take_refresh_token(&mut self, token: &str) -> bool {
        if self.used.contains(token) {
            self.refresh_tokens.clear();
        }
        self.used.insert(token.to_owned());
        self.refresh_tokens.remove(token)
    }

    fn issue(&mut self) -> Response {
        self.count += 1;
        let refresh_token = format!("sekret-refresh-{}", self.count);
        self.refresh_tokens.insert(refresh_token.clone());
        let mut body = json!({
            "access_token": format!("sekret-access-{}", self.count),
            "token_type": "bearer",
            "refresh_token": refresh_token,
            "id_token": "sekret-id",
        });
        if let Some(lifetime) = self.behaviour.expires_in {
            body["expires_in"] = lifetime.into();
        }
        Response(200, Vec::new(), body.to_string())
    }
}

/// Starts a server on a free port and returns its origin.
async fn listen(state: Arc<Mutex<State>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _address)) = listener.accept().await {
            tokio::spawn(serve(stream, Arc::clone(&state)));
        }
    });
    origin
}

async fn serve(mut stream: TcpStream, state: Arc<Mutex<State>>) {
    let Some(request) = receive(&mut stream).await else { return };
    let (delay, is_stream) = {
        let mut state = state.lock();
        state.requests.push(request.clone());
        let delay = if request.line.ends_with("/token") { state.behaviour.delay } else { Duration::ZERO };
        (delay, request.line == "GET /mcp" && state.behaviour.get_status == 200)
    };
    tokio::time::sleep(delay).await;
    let Response(status, headers, body) = state.lock().respond(&request);
    let media_type = if is_stream { "text/event-stream" } else { "application/json" };
    let mut head = format!("HTTP/1.1 {status} X\r\nContent-Type: {media_type}\r\nConnection: close\r\n");
    for header in headers {
        head.push_str(&format!("{header}\r\n"));
    }
    if is_stream {
        let _ = stream.write_all(format!("{head}\r\n: open\n\n").as_bytes()).await;
        // The stream stays open until the client closes it.
        let _ = stream.read(&mut [0; 1]).await;
        return;
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.shutdown().await;
}

async fn receive(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let header = |name: &str| {
            let line =
                head.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")))?;
            line.split_once(": ").map(|(_name, value)| value.to_owned())
        };
        let length = header("content-length").map_or(0, |length| length.parse().unwrap());
        if body.len() >= length {
            let mut words = head.split([' ', '?']);
            let line = format!("{} {}", words.next()?, words.next()?);
            let form = form_urlencoded::parse(body.as_bytes()).into_owned().collect();
            return Some(Received {
                line,
                authorization: header("authorization"),
                form,
                body: body.to_owned(),
            });
        }
    }
}
