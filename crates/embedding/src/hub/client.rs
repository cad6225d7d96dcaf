//! The client of a model hub: the list of files of a repository, and their contents.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use fetchwell_outbound::{Download, DownloadFault, Downloader, bearer, is_confidential};
use http::header::{LINK, RETRY_AFTER};
use secrecy::SecretString;
use serde::Deserialize;
use url::Url;

use super::checksum::Checksum;
use super::error::InstallError;
use super::listing::{RemoteFile, TreeEntry, select};
use super::repository::{Commit, Repository, Revision};

/// The hub if `HF_ENDPOINT` names no other one.
const DEFAULT_ENDPOINT: &str = "https://huggingface.co";

/// Maximum time without a byte from the hub.
const PATIENCE: Duration = Duration::from_secs(30);

/// Maximum size in bytes of an answer with a description or a list.
const MAX_ANSWER: usize = 16 * 1024 * 1024;

/// Maximum number of pages of a list, of 1,000 files each.
const MAX_PAGES: usize = 8;

/// Settings of the hub, as its ecosystem knows them.
#[derive(Debug, Clone, Default)]
pub struct HubSettings {
    /// Value of `HF_ENDPOINT`: the URL of the hub.
    pub endpoint: Option<String>,
    /// The token, which is sent to the origin of the hub alone.
    pub token: Option<SecretString>,
    /// Folder of the files that other programs downloaded.
    pub cache: Option<PathBuf>,
    /// True if no request may be sent (`HF_HUB_OFFLINE`).
    pub is_offline: bool,
}

impl HubSettings {
    /// Returns the settings, the repository and the revision of the page of a repository, such as
    /// `https://huggingface.co/ORGANIZATION/NAME`. The token is for the configured hub alone.
    ///
    /// # Errors
    ///
    /// The URL is not that of a repository.
    pub fn for_page(&self, page: &str) -> Result<(Self, Repository, Revision), InstallError> {
        let invalid = || InstallError::InvalidPage(page.to_owned());
        let mut url: Url = page.parse().map_err(|_error| invalid())?;
        let path = url.path().trim_matches('/').to_owned();
        let (repository, revision) = match path.split('/').collect::<Vec<_>>().as_slice() {
            [organization, name] => (format!("{organization}/{name}"), Revision::default()),
            [organization, name, "tree" | "blob" | "resolve", revision, ..] => {
                (format!("{organization}/{name}"), revision.parse()?)
            }
            _ => return Err(invalid()),
        };
        url.set_path("");
        url.set_query(None);
        url.set_fragment(None);
        let known: Option<Url> = self.endpoint.as_deref().unwrap_or(DEFAULT_ENDPOINT).parse().ok();
        let is_known = known.is_some_and(|known| known.origin() == url.origin());
        let token = self.token.clone().filter(|_| is_known);
        let settings = Self { endpoint: Some(url.to_string()), token, ..self.clone() };
        Ok((settings, repository.parse().map_err(|_error| invalid())?, revision))
    }
}

/// A client of one hub.
#[derive(Debug)]
pub(super) struct Hub {
    downloader: Downloader,
    endpoint: Url,
}

/// The part of the description of a repository that matters.
#[derive(Deserialize)]
struct Description {
    sha: String,
}

impl Hub {
    /// Creates a client.
    ///
    /// # Errors
    ///
    /// No request may be sent, the URL is not https (or http on this machine), the token cannot be sent, or no client can be created.
    pub(super) fn new(settings: &HubSettings) -> Result<Self, InstallError> {
        if settings.is_offline {
            return Err(InstallError::Offline);
        }
        let text = settings.endpoint.as_deref().unwrap_or(DEFAULT_ENDPOINT);
        let invalid = |problem: &str| InstallError::InvalidEndpoint(problem.to_owned());
        let endpoint: Url = text.parse().map_err(|_error| invalid("it is not a URL"))?;
        if !is_confidential(&endpoint) {
            return Err(invalid("it is not https"));
        }
        if !endpoint.username().is_empty() || endpoint.password().is_some() || endpoint.query().is_some() {
            return Err(invalid("it has a user name, a password or a query"));
        }
        let authorization =
            settings.token.as_ref().map(|token| bearer(token).ok_or(InstallError::InvalidToken));
        let authorization = authorization.transpose()?;
        let downloader = Downloader::new(&endpoint, authorization, PATIENCE);
        Ok(Self { downloader: downloader.map_err(|problem: String| invalid(&problem))?, endpoint })
    }

    /// Returns the host of the hub, for messages.
    pub(super) fn place(&self) -> String {
        let host = self.endpoint.host_str().unwrap_or_default();
        self.endpoint.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Returns the commit of a revision.
    pub(super) async fn commit(
        &self,
        repository: &Repository,
        revision: &Revision,
    ) -> Result<Commit, InstallError> {
        let [organization, name] = repository.parts();
        let url = self.url(&["api", "models", organization, name, "revision", revision.as_str()]);
        let (body, _) =
            self.answer(&url, repository, &format!("{repository} at {}", revision.as_str())).await?;
        let description: Description = self.parse(&body)?;
        Commit::parse(&description.sha).ok_or_else(|| self.invalid("it names no commit"))
    }

    /// Returns the files of a commit that a model needs.
    pub(super) async fn files(
        &self,
        repository: &Repository,
        commit: &Commit,
    ) -> Result<Vec<RemoteFile>, InstallError> {
        let [organization, name] = repository.parts();
        let mut url = self.url(&["api", "models", organization, name, "tree", commit.as_str()]);
        url.query_pairs_mut().append_pair("recursive", "1");
        let mut entries: Vec<TreeEntry> = Vec::new();
        for _ in 0..MAX_PAGES {
            let (body, next) = self.answer(&url, repository, "the list of files").await?;
            entries.extend(self.parse::<Vec<TreeEntry>>(&body)?);
            match next {
                Some(next) => url = next,
                None => return select(&entries, &repository.to_string(), &self.place()),
            }
        }
        Err(self.invalid("its list of files does not end"))
    }

    /// Requests a file from a byte on. Checks what the hub states about it again.
    pub(super) async fn open(
        &self,
        repository: &Repository,
        commit: &Commit,
        file: &RemoteFile,
        offset: u64,
    ) -> Result<Download, InstallError> {
        let [organization, name] = repository.parts();
        let parts = [organization, name, "resolve", commit.as_str()];
        let url = self.url(&parts.into_iter().chain(file.name.split('/')).collect::<Vec<_>>());
        let download = self.downloader.get(&url, offset).await.map_err(|fault| self.fault(fault))?;
        // The range was read to its end before.
        if download.status().as_u16() == 416 && offset > 0 {
            return Ok(download);
        }
        self.check(&download, repository, file.name)?;
        let size = download.stated("x-linked-size").and_then(|size| size.parse::<u64>().ok());
        if let Some(found) = size.filter(|size| *size != file.size) {
            return Err(InstallError::WrongSize { file: file.name.to_owned(), expected: file.size, found });
        }
        let tag = download.stated("x-linked-etag").and_then(|tag| Checksum::parse(tag.trim_matches('"')));
        if tag.is_some_and(|tag| tag != file.checksum) {
            return Err(InstallError::WrongChecksum { file: file.name.to_owned() });
        }
        Ok(download)
    }

    /// Returns an answer with the URL of the next page, which is on the hub, too.
    async fn answer(
        &self,
        url: &Url,
        repository: &Repository,
        subject: &str,
    ) -> Result<(Bytes, Option<Url>), InstallError> {
        let download = self.downloader.get(url, 0).await.map_err(|fault| self.fault(fault))?;
        self.check(&download, repository, subject)?;
        let next = download.header(&LINK).and_then(next_page).and_then(|next| url.join(next).ok());
        let next = next.filter(|next| next.origin() == self.endpoint.origin());
        let body = download.read(MAX_ANSWER).await.map_err(|fault| self.fault(fault))?;
        if body.trim_ascii_start().starts_with(b"<") {
            return Err(self.web_page(subject));
        }
        Ok((body, next))
    }

    /// Checks the status of a response, and that it is not a web page.
    fn check(&self, download: &Download, repository: &Repository, subject: &str) -> Result<(), InstallError> {
        let (place, status) = (self.place(), download.status().as_u16());
        let code = download.header(&ERROR_CODE).unwrap_or_default();
        let repository_name = || repository.to_string();
        Err(match status {
            200 | 206 if download.is_web_page() => self.web_page(subject),
            200 | 206 => return Ok(()),
            401 | 403 if code == "GatedRepo" => {
                let page = self.url(&repository.parts()).to_string();
                InstallError::Gated { repository: repository_name(), page }
            }
            // A host with files refuses a link that has expired; the hub gives a new one.
            401 | 403 | 404 | 410 if !download.is_own() => InstallError::Unreachable {
                place,
                problem: format!("status {status} of the host that it redirects to"),
            },
            401 | 403 => InstallError::Unauthorized { place, repository: repository_name(), status },
            404 | 410 => {
                let subject = if code == "RepoNotFound" { repository_name() } else { subject.to_owned() };
                InstallError::NotFound { place, subject }
            }
            429 => {
                let seconds = download.header(&RETRY_AFTER).and_then(|text| text.trim().parse().ok());
                InstallError::RateLimited { place, retry_after: seconds.map(Duration::from_secs) }
            }
            _ => InstallError::Refused { place, status },
        })
    }

    /// Converts a fault of a connection.
    pub(super) fn fault(&self, fault: DownloadFault) -> InstallError {
        let place = self.place();
        let problem = match fault {
            DownloadFault::Broken(problem) => problem,
            DownloadFault::Silent(within) => format!("it is silent for {} s", within.as_secs()),
            DownloadFault::RefusedRedirect(target) => return InstallError::RefusedRedirect { place, target },
            DownloadFault::TooManyRedirects => return self.invalid("its redirects do not end"),
            DownloadFault::TooLarge => return self.invalid(&format!("it has more than {MAX_ANSWER} bytes")),
        };
        InstallError::Unreachable { place, problem }
    }

    /// Returns the URL of a path below that of the hub.
    fn url(&self, segments: &[&str]) -> Url {
        let mut url = self.endpoint.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    fn parse<'b, T: Deserialize<'b>>(&self, body: &'b [u8]) -> Result<T, InstallError> {
        serde_json::from_slice(body).map_err(|error| {
            // The message of serde would quote the answer.
            self.invalid(&format!(
                "it is not JSON as expected at line {}, column {}",
                error.line(),
                error.column()
            ))
        })
    }

    fn invalid(&self, problem: &str) -> InstallError {
        InstallError::InvalidAnswer { place: self.place(), problem: problem.to_owned() }
    }

    fn web_page(&self, subject: &str) -> InstallError {
        InstallError::WebPage { place: self.place(), subject: subject.to_owned() }
    }
}

/// Header with the reason of an error.
const ERROR_CODE: http::HeaderName = http::HeaderName::from_static("x-error-code");

/// Returns the target with `rel="next"` of a `Link` header.
fn next_page(header: &str) -> Option<&str> {
    let next = header.split(',').find(|link| link.contains("rel=\"next\""))?;
    next.split_once('<')?.1.split_once('>').map(|(target, _)| target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_https_or_this_machine() {
        for (endpoint, expect) in [
            ("https://huggingface.co", true),
            ("https://hub.example.com/base/", true),
            ("http://127.0.0.1:9", true),
            ("http://hub.example.com", false),
            ("https://user:pass@hub.example.com", false),
            ("https://hub.example.com/?a=b", false),
            ("ftp://hub.example.com", false),
            ("", false),
        ] {
            let settings = HubSettings { endpoint: Some(endpoint.to_owned()), ..HubSettings::default() };
            assert_eq!(Hub::new(&settings).is_ok(), expect, "{endpoint}");
        }
        let token = Some(SecretString::from("a\nb"));
        assert_eq!(
            Hub::new(&HubSettings { token, ..HubSettings::default() }).unwrap_err(),
            InstallError::InvalidToken
        );
    }

    #[test]
    fn pages_name_a_repository_and_other_hosts_get_no_token() {
        let token = Some(SecretString::from("hf_x"));
        let settings = HubSettings { token, ..HubSettings::default() };
        for (page, expect) in [
            ("https://huggingface.co/a/b", Some(("https://huggingface.co/", "a/b", "main", true))),
            (
                "https://huggingface.co/a/b/tree/v1?x=y#z",
                Some(("https://huggingface.co/", "a/b", "v1", true)),
            ),
            ("https://hub.example.com/a/b/", Some(("https://hub.example.com/", "a/b", "main", false))),
            ("https://huggingface.co/a", None),
            ("https://huggingface.co/a/b/discussions", None),
            ("https://huggingface.co/a/..", None),
            ("https://", None),
        ] {
            let parsed = settings.for_page(page).ok();
            let parsed = parsed.as_ref().map(|(settings, repository, revision)| {
                (
                    settings.endpoint.as_deref().unwrap(),
                    repository.to_string(),
                    revision.as_str(),
                    settings.token.is_some(),
                )
            });
            let expect =
                expect.map(|(endpoint, name, revision, has)| (endpoint, name.to_owned(), revision, has));
            assert_eq!(parsed, expect, "{page}");
        }
    }

    #[test]
    fn segments_are_encoded_below_the_path_of_the_hub() {
        let endpoint = Some("https://hub.example.com/base/".to_owned());
        let hub = Hub::new(&HubSettings { endpoint, ..HubSettings::default() }).unwrap();
        let url = hub.url(&["a", "refs/pr/1", "b?c"]);
        assert_eq!(url.as_str(), "https://hub.example.com/base/a/refs%2Fpr%2F1/b%3Fc");
    }

    #[test]
    fn the_next_page_is_read_from_its_header() {
        for (header, expect) in [
            ("<https://hub/x?cursor=a>; rel=\"next\"", Some("https://hub/x?cursor=a")),
            ("<a>; rel=\"prev\", <b>; rel=\"next\"", Some("b")),
            ("<a>; rel=\"prev\"", None),
            ("rel=\"next\"", None),
        ] {
            assert_eq!(next_page(header), expect, "{header}");
        }
    }
}
