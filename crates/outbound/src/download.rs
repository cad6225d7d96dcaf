//! Downloads: `GET` requests that follow redirects to other hosts, and bodies in pieces.
//!
//! A file server redirects to the hosts that keep its files. The secret goes to the origin of the server alone, and every
//! host is asked over https, or on this machine if the server is on this machine.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RANGE};
use http::{HeaderName, StatusCode};
use reqwest::{Client, Response};
use tokio::time::timeout;
use url::Url;

use super::{build_client_without_redirects, innermost, is_confidential};

/// Maximum number of redirects of a download.
const MAX_REDIRECTS: usize = 5;

/// Reason why a download failed. No variant has a URL with its query, which may contain a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DownloadFault {
    /// The connection failed or broke off.
    Broken(String),
    /// The server sent nothing for this long.
    Silent(Duration),
    /// A redirect leads to a host that must not be asked, named by its scheme and host.
    RefusedRedirect(String),
    /// The redirects do not end.
    TooManyRedirects,
    /// The body is longer than the limit.
    TooLarge,
}

/// Client of downloads from one server and the hosts that it redirects to.
#[derive(Debug, Clone)]
pub struct Downloader {
    client: Client,
    server: Url,
    authorization: Option<HeaderValue>,
    /// Maximum time without a byte.
    patience: Duration,
}

impl Downloader {
    /// Creates a client of a server. `authorization` is sent to its origin alone.
    ///
    /// # Errors
    ///
    /// The client cannot be created.
    pub fn new(server: &Url, authorization: Option<HeaderValue>, patience: Duration) -> Result<Self, String> {
        let client = build_client_without_redirects(server)?;
        Ok(Self { client, server: server.clone(), authorization, patience })
    }

    /// Requests a URL of the server from a byte on. Returns the response after the redirects, whatever its status.
    ///
    /// # Errors
    ///
    /// A host cannot be reached, is silent, or redirects to a place that must not be asked.
    pub async fn get(&self, url: &Url, offset: u64) -> Result<Download, DownloadFault> {
        let (mut url, mut stated) = (url.clone(), HeaderMap::new());
        for _ in 0..=MAX_REDIRECTS {
            if !self.may_ask(&url) {
                return Err(DownloadFault::RefusedRedirect(place(&url)));
            }
            let is_own = url.origin() == self.server.origin();
            let response = self.ask(&url, is_own, offset).await?;
            if is_own {
                // A later response of the server is about the file, an earlier one may be about another name of it.
                for (name, value) in response.headers() {
                    stated.insert(name.clone(), value.clone());
                }
            }
            let Some(next) = redirect(&response, &url) else {
                return Ok(Download { response, stated, is_own, patience: self.patience });
            };
            url = next;
        }
        Err(DownloadFault::TooManyRedirects)
    }

    async fn ask(&self, url: &Url, is_own: bool, offset: u64) -> Result<Response, DownloadFault> {
        let mut request = self.client.get(url.clone());
        if let Some(authorization) = self.authorization.as_ref().filter(|_| is_own) {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        if offset > 0 {
            request = request.header(RANGE, format!("bytes={offset}-"));
        }
        let answered = timeout(self.patience, request.send()).await;
        answered.map_err(|_late| DownloadFault::Silent(self.patience))?.map_err(|error| broken(&error))
    }

    /// Returns true if a URL is https, or is on this machine as the server is, and has no user name or password.
    fn may_ask(&self, url: &Url) -> bool {
        let is_safe = url.scheme() == "https" || self.server.scheme() == "http" && is_confidential(url);
        is_safe && url.username().is_empty() && url.password().is_none()
    }
}

/// A response whose body is read in pieces.
#[derive(Debug)]
pub struct Download {
    response: Response,
    stated: HeaderMap,
    is_own: bool,
    patience: Duration,
}

impl Download {
    /// Returns the status of the response.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// Returns true if the server itself sent the response, not a host that it redirected to.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.is_own
    }

    /// Returns a header of the response.
    #[must_use]
    pub fn header(&self, name: &HeaderName) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// Returns a header that the server itself sent, with its redirect or with the response.
    #[must_use]
    pub fn stated(&self, name: &str) -> Option<&str> {
        self.stated.get(name)?.to_str().ok()
    }

    /// Returns true if the body is announced as a web page.
    #[must_use]
    pub fn is_web_page(&self) -> bool {
        let kind = self.header(&CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
        kind.starts_with("text/html") || kind.starts_with("application/xhtml")
    }

    /// Returns the announced length of the body in bytes.
    #[must_use]
    pub fn announced(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// Returns the next piece of the body, or `None` at its end.
    ///
    /// # Errors
    ///
    /// The connection broke off, or no byte came in time.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, DownloadFault> {
        let next = timeout(self.patience, self.response.chunk()).await;
        next.map_err(|_late| DownloadFault::Silent(self.patience))?.map_err(|error| broken(&error))
    }

    /// Reads the body within a limit in bytes, and within the time that the server may be silent.
    ///
    /// # Errors
    ///
    /// The body is longer, late, or the connection broke off.
    pub async fn read(mut self, limit: usize) -> Result<Bytes, DownloadFault> {
        let within = self.patience;
        let all = async {
            let mut body = BytesMut::new();
            while let Some(piece) = self.chunk().await? {
                if body.len() + piece.len() > limit {
                    return Err(DownloadFault::TooLarge);
                }
                body.extend_from_slice(&piece);
            }
            Ok(body.freeze())
        };
        timeout(within, all).await.unwrap_or(Err(DownloadFault::Silent(within)))
    }
}

/// Returns the target of a redirect, or `None` for other responses.
fn redirect(response: &Response, from: &Url) -> Option<Url> {
    let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let target = response.headers().get(LOCATION).filter(|_| is_redirect)?;
    from.join(target.to_str().ok()?).ok()
}

/// Returns scheme and host of a URL, for messages.
fn place(url: &Url) -> String {
    format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default())
}

fn broken(error: &reqwest::Error) -> DownloadFault {
    DownloadFault::Broken(innermost(error).unwrap_or_else(|| "no connection".to_owned()))
}
