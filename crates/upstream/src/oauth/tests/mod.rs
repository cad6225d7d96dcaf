//! Sign-ins and refreshes with an authorization server and an MCP server over real sockets.
//!
//! * `server`: the servers, which are awkward where real ones are
//! * `login`, `redirect`: sign-ins, and the port that the browser returns to
//! * `refresh`: refreshes

mod login;
mod redirect;
mod refresh;
mod server;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;

use self::server::Servers;
use super::account::Account;
use super::bearer::Bearer;
use super::fault::OAuthError;
use super::login::Login;
use super::registration::LoginSettings;
use super::storage::TokenStore;
use super::stored_login::StoredLogin;

/// Timeout of requests that are answered.
const LONG: Duration = Duration::from_secs(60);

fn account(url: &str) -> Account {
    Account::new("wiki".parse().unwrap(), url.parse().unwrap(), None).unwrap()
}

fn store(servers: &Servers, folder: &Path) -> Arc<TokenStore> {
    Arc::new(TokenStore::new(account(&servers.mcp), folder))
}

/// Returns the token of a process of its own.
fn bearer(servers: &Servers, folder: &Path) -> Bearer {
    Bearer::with_timeout(account(&servers.mcp), store(servers, folder), LONG)
}

/// Signs in with a browser that consents.
async fn sign_in(servers: &Servers, folder: &Path) -> Result<StoredLogin, OAuthError> {
    sign_in_with(servers, folder, LoginSettings::default()).await
}

async fn sign_in_with(
    servers: &Servers,
    folder: &Path,
    settings: LoginSettings,
) -> Result<StoredLogin, OAuthError> {
    let login = Login::new(account(&servers.mcp), settings, store(servers, folder)).with_timeouts(LONG, LONG);
    login
        .run(|url| {
            let back = servers.consent(url);
            tokio::spawn(async move { get(&back).await });
        })
        .await
}

/// Sends a GET request, and returns the whole response.
async fn get(url: &str) -> String {
    let url: Url = url.parse().unwrap();
    let target = url.query().map_or(url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    send(&url, &format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n")).await
}

/// Sends the bytes of a request to the host of a URL, and returns what comes back until the end.
async fn send(url: &Url, request: &str) -> String {
    let address = (url.host_str().unwrap(), url.port().unwrap());
    let mut stream = TcpStream::connect(address).await.unwrap();
    // A server that refuses a request may not read all of it.
    let _ = stream.write_all(request.as_bytes()).await;
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response).await;
    String::from_utf8(response).unwrap()
}
